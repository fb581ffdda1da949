"""What the answers have changed: wrong labels found and left, and when judging more is no longer worth it.

Rows are judged again for two reasons. Rows *drawn* at random within their given grade tell how many labels
are wrong in all; rows chosen by doubt are mended, and tell nothing of the others. So the rows that were
chosen are counted, and the drawn ones speak for the rest (``labeling.left``).

How many of the next rows are wrong is read off the last LOCAL rows that were chosen by doubt, in its order:
P(wrong) of the row j places after them is 1 / (1 + exp(-a + b j / 100)), with a ~ N(-2, 9) and b ~ N(1/2, 1)
before the answers. It serves to look a hundred rows ahead, whether doubts are probabilities or an order. It
does not serve for the sum over all rows: without drawn rows nothing is said about that.

Whoever looks after every batch looks often: look k has the level 1 - alpha / (k (k + 1)), so that the
intervals of all looks hold together (``judges.looks``).
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from cleanrank.errors import invalid
from cleanrank.issues.rejudging import fit_logistic
from cleanrank.issues.table import BoolArray
from cleanrank.judges.evaluation import Estimate
from cleanrank.judges.looks import level_of
from cleanrank.labeling.left import DRAWS, wrong_left, wrong_pairs
from cleanrank.noise.estimate import WIDTH, NoiseEstimate
from cleanrank.noise.gold import from_gold
from cleanrank.types import FloatArray, IntArray, RankingData, plain
from cleanrank.validation import check_integer, check_number

UNJUDGED, DROPPED = -1, -2
NEXT = 100
WORTH = 0.1
STREAM = 5521
LOCAL = 100
PRIOR_MEAN = np.array([-2.0, 0.5])
PRIOR_VARIANCE = np.array([9.0, 1.0])


@dataclass(frozen=True, eq=False)
class LabelProgress:
    """What is known of the labels after some rows were judged again.

    Attributes:
        rows: labels in all.
        judged: labels that were judged again.
        wrong: those of them that were wrong, and are mended once the answers stand.
        before: the share of wrong labels as they were given; None where no row was drawn.
        after: the share of wrong labels once the answers stand.
        won_back: the share of the wrong labels that the answers put right.
        pairs_before: pNoise, the share of pairs that the given labels put in the wrong order.
        pairs_after: the same once the answers stand.
        pairs_won_back: the share of pNoise that the answers take away, 1 - after / before.
        next_rows: how many rows would be judged next.
        next_wrong: how many of them are expected to be wrong; None where no row was chosen by doubt.
        worth: the least share of wrong labels among judged rows that is worth the work.
        noise: the noise matrix from the drawn rows, with its intervals.
        width: how wide the interval of pNoise may be.
        level: of the intervals of this look.
        notes: what a reader must know, in words.
    """

    rows: int
    judged: int
    wrong: int
    before: Estimate | None = None
    after: Estimate | None = None
    won_back: Estimate | None = None
    pairs_before: Estimate | None = None
    pairs_after: Estimate | None = None
    pairs_won_back: Estimate | None = None
    next_rows: int = 0
    next_wrong: Estimate | None = None
    worth: float = WORTH
    noise: NoiseEstimate | None = None
    width: float = WIDTH
    level: float = 0.95
    notes: tuple[str, ...] = ()

    @property
    def noise_known(self) -> bool:
        """Whether enough rows were drawn and judged to know the noise: the interval of pNoise is narrow."""
        return self.noise is not None and self.noise.trusted and not self.noise.too_few(self.width)

    @property
    def repaired(self) -> bool:
        """Whether judging the most doubted rows again is no longer worth it."""
        return self.next_wrong is not None and self.next_wrong.mean < self.worth * self.next_rows

    def verdicts(self) -> list[str]:
        """Whether to stop, in sentences: measuring the noise, and mending labels."""
        if self.judged == self.rows:
            return ["Stop: all rows are judged."]
        sentences = []
        if self.noise is not None:
            short = self.noise.too_few(self.width)
            why = short.reasons or tuple(self.noise.reasons)
            sentences.append(
                f"Stop measuring the noise: the interval of pNoise is {short.width:.3f} wide, "
                f"{self.width:g} was wanted."
                if self.noise_known
                else f"Go on measuring the noise: {'; '.join(why)}."
            )
        if self.next_wrong is not None:
            expected = f"{self.next_wrong.mean:.0f} [{self.next_wrong.low:.0f}, {self.next_wrong.high:.0f}]"
            yields = f"about {expected} of the next {self.next_rows:,} rows are wrong"
            bar = f"it is worth the work where at least {self.worth:.0%} are"
            sentences.append(f"{'Stop' if self.repaired else 'Go on'} mending: {yields}; {bar}.")
        return sentences

    def to_json(self) -> dict[str, Any]:
        """All figures as plain values, without the draws of the matrix."""
        noise = None if self.noise is None else self.noise.to_json()
        figures = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "noise"}
        shares = {name: asdict(v) if isinstance(v, Estimate) else v for name, v in figures.items()}
        if noise is not None:
            noise = {name: value for name, value in noise.items() if name not in ("draws", "known_rows")}
        ready = {"noise_known": self.noise_known, "repaired": self.repaired, "verdicts": self.verdicts()}
        record: dict[str, Any] = plain({**shares, "noise": noise, **ready})
        return record


def label_progress(
    data: RankingData,
    judged: npt.ArrayLike,
    *,
    drawn: npt.ArrayLike | None = None,
    doubt: npt.ArrayLike | None = None,
    early: npt.ArrayLike | None = None,
    apart: npt.ArrayLike | None = None,
    n_grades: int | None = None,
    next_rows: int = NEXT,
    worth: float = WORTH,
    width: float = WIDTH,
    look: int = 1,
    level: float = 0.95,
    seed: int = 0,
) -> LabelProgress:
    """How many labels are wrong, how many are mended, and whether to go on.

    Args:
        data: the labels as they were given.
        judged: (N,) the new grade of every row; -1 where nobody judged it, -2 where the row was dropped.
        drawn: (N,) which rows were drawn at random among those of their given grade.
        doubt: (N,) of the rows that were judged because of it, as it was before the answers; NaN elsewhere.
        early: (N,) drawn rows that were judged before others were chosen: of these nobody knows whether they
            would have been, and they speak for all rows together.
        apart: (N,) rows that were judged for another reason, such as an evaluation.
        n_grades: grades of the scale, when the highest does not occur.
        next_rows: how many rows would be judged next, the most doubted ones.
        worth: the least share of wrong labels among judged rows that is worth the work.
        width: how wide the interval of pNoise may be.
        look: number of this look, from 1.
        level: of the intervals of all looks together.
        seed: of the draws.

    Returns:
        The figures; ``verdicts`` says in words whether to go on.

    >>> import cleanrank as cr
    >>> truth = cr.make_ranking(60, 5, docs_per_query=20, seed=0)
    >>> noisy = cr.corrupt(truth, rate=0.2, seed=1)
    >>> sheet = cr.sample_gold(noisy.data, 200, seed=2)
    >>> judged = np.full(noisy.data.n_docs, -1)
    >>> judged[sheet.rows] = truth.y[sheet.rows]
    >>> progress = label_progress(noisy.data, judged, drawn=judged >= 0)
    >>> progress.before.low < noisy.rate < progress.before.high
    True
    """
    check_integer("next_rows", next_rows, least=1)
    check_integer("look", look, least=1)
    check_number("worth", worth, above=0, below=1)
    check_number("width", width, above=0)
    check_number("level", level, above=0, below=1)
    new = _column("judged", judged, data, np.int64)
    if (new < DROPPED).any():
        raise invalid("judged", "must be grades, -1 (not judged) or -2 (dropped)", int(new.min()))
    random, before, other = (
        _column(name, np.zeros(data.n_docs) if values is None else values, data, np.bool_)
        for name, values in (("drawn", drawn), ("early", early), ("apart", apart))
    )
    doubts = _column("doubt", np.full(data.n_docs, np.nan) if doubt is None else doubt, data, np.float64)
    own = level_of(look, level)
    rng = np.random.default_rng([seed, STREAM])
    is_judged, wrong = new != UNJUDGED, (new != UNJUDGED) & (new != data.y)
    figures: dict[str, Any] = {"rows": data.n_docs, "judged": int(is_judged.sum()), "wrong": int(wrong.sum())}
    noise, notes = None, []
    # A drawn row that would have been chosen anyway speaks for nobody else.
    cut = doubts[is_judged & ~random].min(initial=np.inf, where=np.isfinite(doubts[is_judged & ~random]))
    chosen = is_judged & (doubts >= cut)
    if (sample := random & (new >= 0)).any():
        C = n_grades or max(data.n_grades, int(new[sample].max()) + 1, 2)
        options: dict[str, Any] = {"n_grades": C, "level": own, "draws": DRAWS, "seed": seed}
        noise = from_gold(data, data.row_ids[sample], new[sample], **options)
        late = sample & ~before & ~chosen & ~other
        left = wrong_left(data, new, noise=noise, late=late, early=sample & before, rng=rng, seed=seed)
        figures |= {} if left is None else _shares(data, new, wrong, left, noise, own)
        if waiting := int((random & ~is_judged).sum()):
            notes.append(
                f"{waiting:,} drawn rows have no answer; if they are the hard ones, wrong labels are "
                "underestimated"
            )
    if chosen.any():
        in_order = np.flatnonzero(chosen)[np.argsort(-doubts[chosen], kind="stable")]
        n = min(next_rows, int((~is_judged).sum()))
        figures |= {"next_rows": n, "next_wrong": _estimate(_next(wrong[in_order], n, rng), own)}
    settings: dict[str, Any] = {"worth": worth, "width": width, "level": own, "notes": tuple(notes)}
    return LabelProgress(**figures, noise=noise, **settings)


def _shares(
    data: RankingData, new: IntArray, wrong: BoolArray, left: FloatArray, noise: NoiseEstimate, level: float
) -> dict[str, Estimate | None]:
    """Shares of wrong labels and of wrong pairs, as given and once the answers stand."""
    n_wrong, still = int(wrong.sum()), left.sum(axis=1)
    before, after = wrong_pairs(data, new, left, noise)
    some = before > 0  # also no NaN
    pairs = {"before": before[some], "after": after[some], "won_back": 1 - after[some] / before[some]}
    return {
        "before": _estimate((still + n_wrong) / data.n_docs, level),
        "after": _estimate(still / data.n_docs, level),
        "won_back": _estimate(n_wrong / np.maximum(still + n_wrong, 1), level) if n_wrong else None,
        **{f"pairs_{name}": _estimate(each, level) for name, each in pairs.items() if some.any()},
    }


def _next(wrong: BoolArray, n: int, rng: np.random.Generator) -> FloatArray:
    """Draws of the number of wrong labels among the n rows after those judged, in the order of doubt."""
    last = wrong[-LOCAL:].astype(np.float64)
    behind = np.arange(len(last) - 1, -1, -1) / 100
    theta, covariance = fit_logistic(behind, last, PRIOR_MEAN, PRIOR_VARIANCE)
    drawn = rng.multivariate_normal(theta, covariance, size=DRAWS)
    chances = expit(drawn[:, :1] - drawn[:, 1:] * np.arange(1, n + 1) / 100)
    return np.asarray(rng.binomial(1, chances).sum(axis=1), dtype=np.float64)


def _estimate(draws: FloatArray, level: float) -> Estimate:
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(float(draws.mean()), float(low), float(high))


def _column(name: str, values: npt.ArrayLike, data: RankingData, dtype: Any) -> Any:
    column = np.asarray(values)
    if column.shape != (data.n_docs,):
        raise invalid(name, f"must have one value per row of data ({data.n_docs})", f"shape {column.shape}")
    return column.astype(dtype)
