"""Clicks as evidence about editorial labels, corrected for position.

For every entry of a log the click model gives P(click | clicks above it) = b + w r, with r the probability
that users find the document relevant. So sum(click - b) / sum(w) estimates r of a document without the bias
of the ranks at which it was shown (inverse propensity weighting pooled over ranks; w is the propensity), and
the product over its entries is the likelihood of each grade, whose r the model knows.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.clicks.logs import ClickLog
from cleanrank.clicks.models import ClickModel, PositionModel, make_click_model, relevance
from cleanrank.clicks.simulate import Flip, flip_rates
from cleanrank.errors import invalid
from cleanrank.noise.estimate import check_level
from cleanrank.ragged import match_rows
from cleanrank.types import Array, FloatArray, IntArray, RankingData

TINY = 1e-12


@dataclass(frozen=True, eq=False)
class ClickEvidence:
    """What clicks say about each row of the data, in row order.

    Attributes:
        impressions: how often it was shown.
        clicks: how often it was clicked.
        rate: the estimate of r, position corrected; NaN where it was never shown or never examined.
        low: lower end of the interval of ``rate`` at ``level``; ``high`` is the upper one.
        log_likelihood: log P(its clicks | grade), shape (N, C); 0 where it was never shown.
        relevance: r of each grade.
    """

    row_ids: IntArray
    query_ids: Array
    given_grades: npt.NDArray[np.int32]
    impressions: IntArray
    clicks: IntArray
    rate: FloatArray
    low: FloatArray
    high: FloatArray
    log_likelihood: FloatArray
    relevance: FloatArray
    level: float

    def to_frame(self) -> Any:
        """A pandas table with a row per document."""
        import pandas as pd

        ids = {"row_id": self.row_ids, "query_id": self.query_ids, "given_label": self.given_grades}
        columns = {name: getattr(self, name) for name in ("impressions", "clicks", "rate", "low", "high")}
        likely = {f"log_likelihood_{g}": self.log_likelihood[:, g] for g in range(len(self.relevance))}
        return pd.DataFrame({**ids, **columns, **likely})


def click_evidence(
    log: ClickLog,
    data: RankingData | None = None,
    model: str | ClickModel = "pbm",
    *,
    flip: Flip = None,
    examination: npt.ArrayLike | None = None,
    top_grade: int | None = None,
    level: float = 0.95,
    options: dict[str, Any] | None = None,
) -> ClickEvidence:
    """Position-corrected click rates, their intervals and the likelihood of every grade, row by row.

    Intervals are Clopper and Pearson's for the share of clicks, carried over by the means of b and w: exact
    where a document was always shown at one rank, wider than need be elsewhere. Cascade users' propensities
    take the given grades of the documents above as true.

    Args:
        log: the lists shown and the clicks on them.
        data: the rows to report on, matched by row_id, with the grades to test; those of the log by default.
        model: the click model, by name or as it is.
        flip: the rate, or rates (e_plus, e_minus), at which clicks are known to be flipped.
        examination: for position-based users, P(examined) at ranks 1, 2, ... in place of the model's, as from
            ``estimate_examination``.
        top_grade: the scale's highest grade.
        level: of the intervals.
        options: further arguments of a named model.

    >>> import cleanrank as cr
    >>> from cleanrank.clicks.simulate import simulate_clicks
    >>> data = cr.from_arrays(np.zeros((2, 1)), [1, 0], qid=[1, 1])
    >>> evidence = click_evidence(simulate_clicks(data, sessions=100))
    >>> evidence.rate.round(2).tolist(), evidence.log_likelihood.argmax(axis=1).tolist()
    ([1.03, 0.0], [1, 0])
    """
    users = make_click_model(model, options)
    if examination is not None:
        if not isinstance(users, PositionModel):
            raise invalid("examination", "goes with position-based users", users.name)
        users = replace(users, examination=tuple(np.asarray(examination, dtype=np.float64)), eta=1.0)
    check_level(level)
    data = log.data if data is None else data
    row, y = _matched(log, data)
    highest = max(1, data.n_grades - 1, log.data.n_grades - 1)
    top = highest if top_grade is None else top_grade
    if top < highest:
        raise invalid("top_grade", f"must be at least the highest grade ({highest})", top)
    by_grade = relevance(np.arange(top + 1), top, users.noise)
    base, weight = users.chances(by_grade[y], log.position, log.indptr, log.click)
    lost, false = flip_rates(flip)
    kept = 1 - lost - false
    if kept <= 0:
        raise invalid("flip", "must keep more clicks than it flips", flip)
    base, weight = false + kept * base, kept * weight
    in_data = row >= 0
    row, click = row[in_data], log.click[in_data].astype(np.float64)
    base, weight = base[in_data], weight[in_data]

    def total(values: FloatArray | None = None) -> FloatArray:
        return np.bincount(row, weights=values, minlength=data.n_docs).astype(np.float64)

    impressions, clicks, b, w = total(), total(click), total(base), total(weight)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = (clicks - b) / np.where(w > TINY, w, np.nan)
    low, high = _interval(clicks, impressions, b, w, level)
    likely = np.empty((data.n_docs, top + 1))
    for grade, r in enumerate(by_grade):
        p = np.clip(base + weight * r, TINY, 1 - TINY)
        likely[:, grade] = total(np.where(click > 0, np.log(p), np.log1p(-p)))
    n_shown, n_clicked = impressions.astype(np.int64), clicks.astype(np.int64)
    rows = (data.row_ids, data.qid, data.y)
    return ClickEvidence(*rows, n_shown, n_clicked, rate, low, high, likely, by_grade, level)


def estimate_examination(
    log: ClickLog,
    *,
    depth: int = 10,
    noise: float = 0.0,
    top_grade: int | None = None,
    min_clicks: int = 20,
) -> FloatArray:
    """P(examined) at ranks 1 to ``depth`` from clicks and given grades, for position-based users.

    theta_k = clicks at rank k / sum of r over what was shown at rank k; ranks beyond ``depth`` count as the
    last. Errors in single grades average out as long as they do not depend on the rank; a bias common to all
    ranks scales the whole vector. Raises unless every rank has ``min_clicks`` clicks.
    """
    data = log.data
    top = max(1, data.n_grades - 1) if top_grade is None else top_grade
    r = relevance(data.y[log.row], top, noise)
    rank = np.minimum(log.position, depth) - 1
    clicks = np.bincount(rank, weights=log.click, minlength=depth)
    relevant = np.bincount(rank, weights=r, minlength=depth)
    few = (clicks < min_clicks) | (relevant <= 0)
    if few.any():
        first = int(np.argmax(few))
        rule = f"must have at least {min_clicks} clicks at each rank up to {depth}"
        at, remedy = f"rank {first + 1}", "Collect more sessions or lower depth."
        raise invalid("click log", rule, int(clicks[first]), at=at, remedy=remedy)
    return np.minimum(clicks / relevant, 1.0)


def _matched(log: ClickLog, data: RankingData) -> tuple[IntArray, npt.NDArray[np.int32]]:
    """The place in ``data`` of every entry (-1: not there) and its given grade."""
    if data is log.data:
        return log.row, data.y[log.row]
    place = match_rows(data.row_ids, log.data.row_ids)
    grades = log.data.y.copy()
    grades[place >= 0] = data.y[place[place >= 0]]
    return place[log.row], grades[log.row]


def _interval(
    clicks: FloatArray, impressions: FloatArray, b: FloatArray, w: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    from scipy.stats import beta

    tail = (1 - level) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        below = np.where(clicks > 0, beta.ppf(tail, clicks, impressions - clicks + 1), 0.0)
        above = np.where(clicks < impressions, beta.ppf(1 - tail, clicks + 1, impressions - clicks), 1.0)
        low, high = ((p * impressions - b) / w for p in (below, above))
    # A negative w (less trust in relevant documents) reverses the ends; without impressions all is possible.
    low, high = np.minimum(low, high), np.maximum(low, high)
    informed = (impressions > 0) & (abs(w) > TINY)
    return np.where(informed, np.clip(low, 0, 1), 0.0), np.where(informed, np.clip(high, 0, 1), 1.0)
