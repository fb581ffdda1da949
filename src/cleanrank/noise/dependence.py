"""Whether judges err together, and how many independent votes their judgements count for.

The *error* of a judgement is what was answered minus what that judge answers on average to items of the same
true grade, divided by its standard deviation. Where the true grade of item i is l with probability p_il (a
gold row: 1 for one grade), the product of two judges' errors is averaged over l. Under independent errors it
has the mean 0, whatever each judge's noise matrix is; its mean over pairs of judgements is the correlation
rho, and k judgements of an item weigh as much in a mean or a majority as k / (1 + (k - 1) rho) independent
ones (Kish 1965).

Without gold rows p comes from the model of Dawid and Skene, which takes whatever all judges share for the
truth: what is left is a lower bound of rho. Items that are hard for everybody and judges that copy one
another look alike, except where two judges err alike far more than the others.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.types import Array, FloatArray, IntArray, plain

SOURCES = {"gold": "gold rows", "judgements": "the judgements alone"}
LEAST = 10  # items in common from which on two judges are compared
SHRUNK = 2.0  # answers that the average judge's mean counts for beside a judge's own
FEW_VOTES = 0.75  # share of the judgements below which votes are few
FEW_GROUPS = 5  # queries below which items count as drawn one by one
ALIKE = 0.1  # correlation of two judges that is too high
TINY = 1e-12


@dataclass(frozen=True)
class PairErrors:
    """Correlation of the errors of two judges over the ``items`` that both judged.

    The interval [low, high] holds for all pairs at once.
    """

    first: str
    second: str
    items: int
    correlation: float
    low: float
    high: float


@dataclass(frozen=True, eq=False, repr=False)
class Dependence:
    """How far judges err together.

    Attributes:
        source: one of SOURCES: what is known of the true grades.
        items: how many have two judgements or more.
        judgements: of an item, on average.
        correlation: of two judges' errors, the mean over pairs of judgements of the same item.
        correlation_interval: its interval.
        votes: independent judgements that those of an item count for; a correlation below two standard
            errors counts as none.
        votes_interval: its interval.
        pairs: judges with at least LEAST items in common, the highest correlation first.
        level: probability that an interval is meant to hold.
    """

    source: str
    items: int
    judgements: float
    correlation: float
    correlation_interval: tuple[float, float]
    votes: float
    votes_interval: tuple[float, float]
    pairs: Sequence[PairErrors] = field(default=(), repr=False)
    level: float = 0.95

    @property
    def alike(self) -> list[PairErrors]:
        """Pairs of judges whose correlation is above ALIKE at its lower end."""
        return [pair for pair in self.pairs if pair.low > ALIKE]

    @property
    def is_high(self) -> bool:
        """Whether votes are below three quarters of the judgements at their upper end, or two err alike."""
        return self.votes_interval[1] < FEW_VOTES * self.judgements or bool(self.alike)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is high, in words; empty where it is not."""
        if not self.is_high:
            return ()
        reasons = [str(self)]
        if self.alike:
            top, more = self.alike[0], len(self.alike) - 1
            span = f"{top.correlation:.2f} [{top.low:.2f}, {top.high:.2f}]"
            others = f", and {more} more pairs" if more > 1 else ", and another pair" if more else ""
            reasons.append(f"{top.first} and {top.second} err alike (correlation {span}){others}")
        return tuple(reasons)

    def __str__(self) -> str:
        low, high = self.correlation_interval
        few, many = self.votes_interval
        beyond = "" if self.source == "gold" else " beyond what a model of independent errors explains"
        return (
            f"judges' errors correlate at {self.correlation:.2f} [{low:.2f}, {high:.2f}]{beyond}: "
            f"{self.judgements:.3g} judgements of an item count for {self.votes:.1f} [{few:.1f}, {many:.1f}] "
            "votes"
        )

    def __repr__(self) -> str:
        return f"Dependence(from {SOURCES[self.source]}, {self.items:,} items): {self}"

    def to_json(self) -> dict[str, Any]:
        """Plain values; numbers that are not finite become None."""
        record: dict[str, Any] = plain(asdict(self))
        return record | {"is_high": self.is_high, "reasons": list(self.reasons)}


def error_dependence(
    item: IntArray,
    judge: IntArray,
    value: npt.ArrayLike,
    truth: FloatArray,
    names: Sequence[str] | Array = (),
    *,
    cluster: IntArray | None = None,
    source: str = "gold",
    level: float = 0.95,
) -> Dependence:
    """How far judges err together, from judgements of items whose true grades are known or estimated.

    Args:
        item: 0..I-1 of every judgement.
        judge: 0..A-1 of every judgement; all 0 when nobody knows who judged.
        value: the answer, on a scale that is the same for all (as shares of the top, where scales differ).
        truth: (I, C) probabilities of the true grade of every item.
        names: of the judges; without them no pairs are compared.
        cluster: (I,) the query of every item: errors within a query may depend on one another.
        source: one of SOURCES.
        level: probability that an interval is meant to hold.

    >>> rng = np.random.default_rng(0)
    >>> truth = rng.choice(3, 500)
    >>> wrong = rng.random((500, 4)) < 0.3
    >>> said = np.where(wrong, rng.integers(0, 3, (500, 4)), truth[:, None])
    >>> item, judge = np.divmod(np.arange(2000), 4)
    >>> round(error_dependence(item, judge, said.ravel(), np.eye(3)[truth]).votes, 1)
    4.0
    """
    from scipy import stats

    value = np.asarray(value, dtype=np.float64)
    count = np.bincount(item, minlength=len(truth))
    if not (count > 1).any():
        raise invalid("judgements", "must hold two judgements of some item", "none")
    errors, weight = _errors(item, judge, value, truth)
    products = np.zeros(len(truth))
    for e, p in zip(errors, weight, strict=True):
        together = np.bincount(item, e, len(truth)) ** 2 - np.bincount(item, e * e, len(truth))
        products += np.bincount(item, p, len(truth)) / np.maximum(count, 1) * together
    possible = count * (count - 1.0)
    rho = float(products.sum() / possible.sum())
    surplus = (products - rho * possible) / possible.sum()
    alone = float(np.sqrt((surplus**2).sum()))
    group = np.arange(len(truth)) if cluster is None else np.unique(cluster, return_inverse=True)[1]
    groups = len(np.unique(group[count > 1]))
    if groups < FEW_GROUPS:
        group, groups = np.arange(len(truth)), int((count > 1).sum())
    clustered = float(np.sqrt((np.bincount(group, surplus) ** 2).sum() * groups / max(groups - 1, 1)))
    error = max(alone, clustered)
    margin = error * float(stats.t.ppf((1 + level) / 2, max(groups - 1, 1)))
    low, high = max(rho - margin, -1.0), min(rho + margin, 1.0)
    k = count[count > 0]
    design = max((error / max(alone, TINY)) ** 2, 1.0)
    pairs = _pairs(item, judge, errors, weight, names, len(truth), design, level) if len(names) else []
    return Dependence(
        source,
        int((count > 1).sum()),
        float(k.mean()),
        rho,
        (low, high),
        effective_votes(k, rho if rho > 2 * error else 0.0),
        (effective_votes(k, high), effective_votes(k, low)),
        pairs,
        level,
    )


def effective_votes(judgements: npt.ArrayLike, correlation: float) -> float:
    """Independent votes that so many judgements count for, on average; never more than there are.

    >>> round(effective_votes([31], 0.65), 2), effective_votes([3, 5], -0.1)
    (1.51, 4.0)
    """
    k = np.asarray(judgements, dtype=np.float64)
    return float((k / (1 + (k - 1) * min(max(correlation, 0.0), 1.0))).mean())


def _errors(
    item: IntArray, judge: IntArray, value: FloatArray, truth: FloatArray
) -> tuple[list[FloatArray], list[FloatArray]]:
    """For each true grade the standardised error of every judgement and the probability of that grade."""
    A = int(judge.max()) + 1
    weight = [truth[item, grade] for grade in range(truth.shape[1])]
    means = []
    for p in weight:
        total, said = np.bincount(judge, p, A), np.bincount(judge, p * value, A)
        average = said.sum() / max(total.sum(), TINY)
        means.append((said + SHRUNK * average) / (total + SHRUNK))
    rest = [value - mean[judge] for mean in means]
    squares = np.bincount(judge, sum(p * e * e for p, e in zip(weight, rest, strict=True)), A)
    count = np.bincount(judge, minlength=A)
    spread = np.sqrt((squares + SHRUNK * squares.sum() / count.sum()) / (count + SHRUNK))
    return [e / np.maximum(spread, TINY)[judge] for e in rest], weight


def _pairs(
    item: IntArray,
    judge: IntArray,
    errors: Sequence[FloatArray],
    weight: Sequence[FloatArray],
    names: Sequence[str] | Array,
    items: int,
    design: float,
    level: float,
) -> list[PairErrors]:
    """Correlations of all judges with enough items in common, the highest first."""
    from scipy.sparse import csr_matrix

    def by_judge(values: FloatArray) -> Any:
        return csr_matrix((values, (judge, item)), shape=(len(names), items))

    said = by_judge(np.ones(len(item)))
    common = (said @ said.T).tocoo()
    kept = (common.row < common.col) & (common.data >= LEAST)
    first, second, n = common.row[kept], common.col[kept], common.data[kept]
    if not len(n):
        return []
    products, largest = np.zeros(len(n)), np.zeros(len(names))
    for e, p in zip(errors, weight, strict=True):
        scaled = by_judge(e * np.sqrt(p))
        products += np.asarray((scaled @ scaled.T).tocsr()[first, second]).ravel()
        largest = np.maximum(largest, abs(scaled).max(axis=1).toarray().ravel())
    r = np.clip(products / n, -1, 1)
    # Bernstein's bound: products of rare errors are far from normal.
    tail = np.log(2 * len(n) / (1 - level))
    bound = largest[first] * largest[second] / n * tail / 3
    margin = bound + np.sqrt(bound**2 + 2 * design * tail / n)
    low, high = np.maximum(r - margin, -1.0), np.minimum(r + margin, 1.0)
    order = np.argsort(-r, kind="stable")
    return [
        PairErrors(
            str(names[first[j]]), str(names[second[j]]), int(n[j]), *map(float, (r[j], low[j], high[j]))
        )
        for j in order
    ]
