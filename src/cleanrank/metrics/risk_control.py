"""A cut-off that keeps a risk below a limit, with a guarantee that needs no model of the data.

A ranker, however trained, orders documents; a small set of queries with *clean* labels then decides where to
cut. Queries are taken as independent draws from one population. Of a query with a cut at lambda, a risk in
[0, 1] is

    false_negatives  relevant documents left out / relevant documents (queries that have some)
    false_positives  other documents shown / other documents (queries that have some)
    false_discovery  other documents shown / documents shown, 0 if none is

R(lambda) is its mean over the population, r its mean over the n queries at hand. The hypothesis R(lambda) >
alpha has the p-value (Hoeffding-Bentkus; Bates et al. 2021)

    p = min(exp(-n h(min(r, alpha), alpha)), e P(Bin(n, alpha) <= ceil(n r)))
    h(a, b) = a log(a / b) + (1 - a) log((1 - a) / (1 - b)).

Learn then Test (Angelopoulos et al. 2021) begins at the safest cut and stops where p > delta; the last cut
passed has R <= alpha with probability at least 1 - delta, for risks that are monotone in lambda or not. RCPS
(Bates et al. 2021) asks the same of an upper confidence bound and needs a monotone risk.
"""

import bisect
import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.data.inputs import as_judged, scores_by_row
from cleanrank.errors import invalid
from cleanrank.metrics.evaluation import checked_scores
from cleanrank.ragged import ranks
from cleanrank.types import FloatArray, RankingData
from cleanrank.validation import check_integer, check_number, one_of

MOST_CUTS = 2000


@dataclass(frozen=True)
class RiskKind:
    """What is kept low, whether more documents shown is safer, and whether it is monotone in the cut."""

    about: str
    more_is_safer: bool
    monotone: bool


@dataclass(frozen=True, repr=False)
class Cutoff:
    """Where to cut, and what is guaranteed.

    Attributes:
        at: the least score shown (cut "score") or how many documents (cut "rank").
        cut: "score" or "rank".
        risk: one of RISKS.
        alpha: the limit of the risk.
        delta: the probability that the limit is broken.
        n_queries: queries that the guarantee rests on.
        empirical: the mean risk of these queries at the cut.
        upper: the upper confidence bound of the risk at the cut.
        trivial: whether only showing everything (or nothing) could be guaranteed.
    """

    at: float
    cut: str
    risk: str
    alpha: float
    delta: float
    n_queries: int
    empirical: float
    upper: float
    trivial: bool

    @property
    def statement(self) -> str:
        """The guarantee in words."""
        where = f"scores >= {self.at:.6g}" if self.cut == "score" else f"the first {self.at:g}"
        words = (
            f"showing {where}: {RISKS[self.risk].about} at most {self.alpha:g} on average over queries, "
            f"with probability {1 - self.delta:g} "
            f"({self.n_queries:,} calibration queries, {self.empirical:.3f} there)"
        )
        return words + ("; nothing but this trivial cut could be guaranteed." if self.trivial else ".")

    def keep(
        self, scores: npt.ArrayLike, data: RankingData, *, order: str | None = None
    ) -> npt.NDArray[np.bool_]:
        """Which rows of other data are shown, in the order of ``data.X``; ``order`` is that of the scores."""
        checked = checked_scores(scores_by_row(scores, data, order), data.n_docs, data)
        if self.cut == "score":
            return np.asarray(checked >= self.at)
        return np.asarray(ranks(checked, data.indptr) <= self.at)

    def __repr__(self) -> str:
        return self.statement


def calibrate_cutoff(
    scores: npt.ArrayLike,
    data: Any = None,
    risk: str = "false_negatives",
    alpha: float = 0.1,
    delta: float = 0.05,
    *,
    order: str | None = None,
    y: npt.ArrayLike | None = None,
    label: str | None = None,
    qid: Any = None,
    group: npt.ArrayLike | None = None,
    cut: str = "score",
    method: str = "ltt",
    bound: str = "hoeffding_bentkus",
    grid: npt.ArrayLike | None = None,
    relevant: int = 1,
) -> Cutoff:
    """The boldest cut whose risk is at most alpha with probability 1 - delta; its ``keep`` applies it.

    Args:
        scores: one per row of the calibration data.
        data: queries with clean grades that took no part in training: a RankingData, or a frame with the
            columns ``label`` and ``qid``.
        risk: one of RISKS.
        alpha: the limit of the mean risk.
        delta: the probability that the limit may be broken.
        order: which order the scores are in, where the rows of ``data`` were regrouped by query: "input" as
            they stood in the input, "data" as in ``data.X``. Scores of a frame or of arrays are in its own.
        y: without a RankingData or a frame, the grades; with ``qid`` or ``group``.
        label: with a frame, its column of grades; "label" when not given.
        qid: with a frame, its column of query ids ("qid" when not given), else the query of every row.
        group: instead of ``qid``, documents per query.
        cut: "score" for one threshold, "rank" for one number of documents per query.
        method: "ltt" (Learn then Test, any risk) or "rcps" (monotone risks).
        bound: what p-values and upper bounds come from; one of BOUNDS.
        grid: cuts to try, fixed without a look at these data, as quantiles of scores of other queries are.
            Must be given for false_discovery of scores, which is not monotone; for the rest the scores
            themselves serve.
        relevant: the lowest grade that counts as relevant.

    Returns:
        A Cutoff: where to cut, the guarantee in words, and ``keep`` to apply it.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(200, 5, seed=0)
    >>> cut = calibrate_cutoff(data.y + np.random.default_rng(0).normal(size=len(data)), data, alpha=0.2)
    >>> cut.upper <= 0.2, cut.trivial
    (True, False)
    """
    kind = RISKS[one_of("risk", risk, RISKS)]
    one_of("cut", cut, ("score", "rank"))
    one_of("method", method, ("ltt", "rcps"))
    p_value = BOUNDS[one_of("bound", bound, BOUNDS)]
    check_number("alpha", alpha, above=0, below=1)
    check_number("delta", delta, above=0, below=1)
    check_integer("relevant", relevant)
    if method == "rcps" and not kind.monotone:
        raise invalid("method", f"must be 'ltt' for {risk}, which is not monotone in the cut", repr(method))
    data, order = as_judged(scores, data, order, y=y, label=label, qid=qid, group=group)
    checked = checked_scores(scores_by_row(scores, data, order), data.n_docs, data).astype(np.float64)
    cuts = _cuts(checked, data, kind, cut, grid)
    losses = _losses(checked, data, risk, cut, cuts, relevant)
    n = len(losses)
    _check_enough(n, alpha, delta, p_value, risk)
    means = losses.mean(axis=0)
    passed = _passed(means, n, alpha, delta, method, p_value)
    trivial = passed == 0
    # Before the first cut lies the trivial one, whose risk is 0: everything shown, or nothing.
    ends = {"score": (-np.inf, np.inf), "rank": (np.inf, 0.0)}[cut]
    at = float(cuts[passed - 1]) if passed else ends[0 if kind.more_is_safer else 1]
    empirical = float(means[passed - 1]) if passed else 0.0
    upper = upper_bound(empirical, n, delta, bound)
    return Cutoff(at, cut, risk, alpha, delta, n, empirical, upper, trivial)


def _cuts(scores: FloatArray, data: RankingData, kind: RiskKind, cut: str, grid: Any) -> FloatArray:
    """Cuts from the safest to the boldest."""
    if grid is not None:
        try:
            cuts = np.unique(np.asarray(grid, dtype=np.float64))
        except (TypeError, ValueError):
            raise invalid("grid", "must hold finite cuts", repr(grid)) from None
        if not len(cuts) or not np.isfinite(cuts).all():
            raise invalid("grid", "must hold finite cuts", f"{len(cuts)} of them")
    elif cut == "rank":
        cuts = np.arange(1.0, data.lengths.max(initial=1) + 1)
    elif not kind.monotone:
        remedy = "Take quantiles of the scores of other queries."
        raise invalid("grid", "must be given for a risk that is not monotone in the score", remedy=remedy)
    else:
        cuts = np.unique(scores)
        if len(cuts) > MOST_CUTS:
            cuts = np.unique(np.quantile(cuts, np.linspace(0, 1, MOST_CUTS), method="nearest"))
    ascending = kind.more_is_safer == (cut == "score")
    return cuts if ascending else cuts[::-1]


def _losses(
    scores: FloatArray, data: RankingData, risk: str, cut: str, cuts: FloatArray, relevant: int
) -> FloatArray:
    """(n, G) risk of every query at every cut; queries for which it has no meaning are left out."""
    # A rank becomes a score by its sign: shown is what has a key of at least the cut's.
    keys = scores if cut == "score" else -ranks(scores, data.indptr).astype(np.float64)
    limits = cuts if cut == "score" else -cuts
    good = data.y >= relevant
    rows = []
    for start, stop in pairwise(data.indptr):
        mine = good[start:stop]
        hits = _shown(keys[start:stop][mine], limits)
        false = _shown(keys[start:stop][~mine], limits)
        if risk == "false_negatives" and mine.any():
            rows.append(1.0 - hits / mine.sum())
        elif risk == "false_positives" and not mine.all():
            rows.append(false / (~mine).sum())
        elif risk == "false_discovery":
            rows.append(false / np.maximum(hits + false, 1.0))
    if not rows:
        kind = "grades below" if risk == "false_positives" else "a grade of at least"
        rule = f"must include one for which {risk} has a meaning, with {kind} {relevant}"
        raise invalid("calibration queries", rule, remedy="Judge more queries, or change `relevant`.")
    return np.stack(rows)


def _shown(keys: FloatArray, limits: FloatArray) -> FloatArray:
    ordered = np.sort(keys)
    return (len(ordered) - np.searchsorted(ordered, limits, side="left")).astype(np.float64)


def _check_enough(n: int, alpha: float, delta: float, p_value: Callable[..., float], risk: str) -> None:
    if p_value(0.0, n, alpha) <= delta:
        return
    # p falls with n at a mean of 0: doubled, then halved, for a small alpha may need millions.
    few, need = n, 2 * n
    while p_value(0.0, need, alpha) > delta:
        few, need = need, 2 * need
    while need - few > 1:
        middle = (few + need) // 2
        few, need = (few, middle) if p_value(0.0, middle, alpha) <= delta else (middle, need)
    rule = f"must number at least {need} to guarantee {risk} <= {alpha:g} with probability {1 - delta:g}"
    raise invalid("calibration queries", rule, n, remedy="Judge more queries, or raise alpha or delta.")


def _passed(
    means: FloatArray, n: int, alpha: float, delta: float, method: str, p_value: Callable[..., float]
) -> int:
    """How many cuts pass, beginning with the safest."""
    if method == "rcps":
        # Means rise along the cuts, and so do their upper bounds.
        return bisect.bisect_left(means, alpha, key=lambda mean: _upper(float(mean), n, delta, p_value))
    for g, mean in enumerate(means):
        if p_value(mean, n, alpha) > delta:
            return g
    return len(means)


def hoeffding_p(mean: float, n: int, alpha: float) -> float:
    """exp(-n h(min(r, alpha), alpha)), Hoeffding's in its tight form."""
    r = min(mean, alpha)
    first = r * math.log(r / alpha) if r > 0 else 0.0
    second = (1 - r) * (math.log1p(-r) - math.log1p(-alpha)) if r < 1 else 0.0
    return math.exp(-n * (first + second))


def bentkus_p(mean: float, n: int, alpha: float) -> float:
    """Bentkus's e P(Bin(n, alpha) <= ceil(n r))."""
    from scipy import special

    # Sums of ratios may lie just above the whole number they are.
    k = min(n, math.ceil(n * mean - 1e-9))
    return min(1.0, math.e * float(special.bdtr(k, n, alpha)))


def hoeffding_bentkus_p(mean: float, n: int, alpha: float) -> float:
    """The smaller of both p-values of the hypothesis that the mean of [0, 1] variables is above alpha."""
    return min(hoeffding_p(mean, n, alpha), bentkus_p(mean, n, alpha))


def upper_bound(mean: float, n: int, delta: float, bound: str = "hoeffding_bentkus") -> float:
    """The least alpha that the p-value of a mean rejects at the level delta."""
    p_value = BOUNDS[one_of("bound", bound, BOUNDS)]
    check_integer("n", n, least=1)
    check_number("mean", mean, least=0, most=1)
    check_number("delta", delta, above=0, below=1)
    return _upper(mean, n, delta, p_value)


def _upper(mean: float, n: int, delta: float, p_value: Callable[..., float]) -> float:
    low, high = mean, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if p_value(mean, n, middle) <= delta else (middle, high)
    return high


BOUNDS: dict[str, Callable[[float, int, float], float]] = {
    "hoeffding_bentkus": hoeffding_bentkus_p,
    "hoeffding": hoeffding_p,
    "bentkus": bentkus_p,
}

RISKS: dict[str, RiskKind] = {
    "false_negatives": RiskKind("relevant documents left out, a share of the relevant ones", True, True),
    "false_positives": RiskKind("other documents shown, a share of the other ones", False, True),
    "false_discovery": RiskKind("other documents shown, a share of those shown", False, False),
}
