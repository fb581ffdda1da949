"""Clicks as evidence about editorial labels: which judgements do users contradict, position aside?

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
from cleanrank.noise.profiles import proportions_of
from cleanrank.types import Array, FloatArray, IntArray, RankingData

TINY = 1e-12


@dataclass(frozen=True, eq=False)
class ClickEvidence:
    """What clicks say about each row of the data, in row order.

    Attributes:
        row_ids: the row's place in the input.
        query_ids: its query.
        given: its given grade.
        impressions: how often it was shown.
        clicks: how often it was clicked.
        rate: the estimate of r, position corrected; NaN where it was never shown or never examined.
        low: lower end of the interval of ``rate``.
        high: upper end.
        log_likelihood: log P(its clicks | grade), shape (N, C); 0 where it was never shown.
        relevance: r of each grade.
        level: of the intervals.
    """

    row_ids: IntArray
    query_ids: Array
    given: npt.NDArray[np.int32]
    impressions: IntArray
    clicks: IntArray
    rate: FloatArray
    low: FloatArray
    high: FloatArray
    log_likelihood: FloatArray
    relevance: FloatArray
    level: float

    def posterior(self, prior: npt.ArrayLike | None = None) -> FloatArray:
        """P(grade | clicks), shape (N, C), from shares of the grades; all alike without ``prior``."""
        C = len(self.relevance)
        shares = proportions_of(np.ones(C) if prior is None else prior, C)
        with np.errstate(divide="ignore"):
            weight = self.log_likelihood + np.log(shares)
        weight = np.exp(weight - weight.max(axis=1, keepdims=True))
        found: FloatArray = weight / weight.sum(axis=1, keepdims=True)
        return found

    def to_frame(self) -> Any:
        """A pandas table with a row per document."""
        import pandas as pd

        likely = {f"log_likelihood_{g}": self.log_likelihood[:, g] for g in range(len(self.relevance))}
        columns = ("given", "impressions", "clicks", "rate", "low", "high")
        shared = {name: getattr(self, name) for name in columns}
        return pd.DataFrame({"row_id": self.row_ids, "query_id": self.query_ids, **shared, **likely})


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
        log: what was shown and clicked.
        data: the rows to report on, with the grades to test; without it those of the log. Rows are matched by
            row_id.
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
    >>> found = click_evidence(simulate_clicks(data, sessions=100))
    >>> found.rate.round(2).tolist(), found.log_likelihood.argmax(axis=1).tolist()
    ([1.03, 0.0], [1, 0])
    """
    users = _users(model, options, examination)
    if not 0 < level < 1:
        raise invalid("level", "must lie strictly between 0 and 1", level)
    data = log.data if data is None else data
    row, y = _matched(log, data)
    highest = max(1, data.n_grades - 1, log.data.n_grades - 1)
    top = highest if top_grade is None else top_grade
    if top < highest:
        raise invalid("top_grade", f"must be at least the highest grade ({highest})", top)
    by_grade = relevance(np.arange(top + 1), top, users.noise)
    base, weight = users.chances(by_grade[y], log.position, log.indptr, log.click)
    lose, make_up = flip_rates(flip)
    kept = 1 - lose - make_up
    if kept <= 0:
        raise invalid("flip", "must leave more clicks than it turns round", flip)
    base, weight = make_up + kept * base, kept * weight
    here = row >= 0
    row, click = row[here], log.click[here].astype(np.float64)
    base, weight = base[here], weight[here]

    def total(values: FloatArray | None = None) -> FloatArray:
        return np.bincount(row, weights=values, minlength=data.n_docs).astype(np.float64)

    shown, clicks, b, w = total(), total(click), total(base), total(weight)
    with np.errstate(invalid="ignore", divide="ignore"):
        rate = (clicks - b) / np.where(w > TINY, w, np.nan)
    low, high = _interval(clicks, shown, b, w, level)
    likely = np.empty((data.n_docs, top + 1))
    for grade, r in enumerate(by_grade):
        p = np.clip(base + weight * r, TINY, 1 - TINY)
        likely[:, grade] = total(np.where(click > 0, np.log(p), np.log1p(-p)))
    return ClickEvidence(
        data.row_ids,
        data.qid,
        data.y,
        shown.astype(np.int64),
        clicks.astype(np.int64),
        rate,
        low,
        high,
        likely,
        by_grade,
        level,
    )


def contradicted(evidence: ClickEvidence, *, ratio: float = 100.0) -> Any:
    """Rows whose clicks speak against their given grade, the strongest first, as a pandas table.

    A row is listed when another grade is at least ``ratio`` times as likely as the given one and the interval
    of its click rate leaves out the rate of the given grade. ``log_ratio`` is the natural logarithm of how
    many times. Among many rows some stand out by chance: at ratio 100, of right labels at most C - 1 in a
    hundred, if users are as the model says.
    """
    import pandas as pd

    if ratio < 1:
        raise invalid("ratio", "must be at least 1", ratio)
    rows = np.arange(len(evidence.given))
    best = evidence.log_likelihood.argmax(axis=1)
    log_ratio = evidence.log_likelihood[rows, best] - evidence.log_likelihood[rows, evidence.given]
    expected = evidence.relevance[evidence.given]
    outside = (expected < evidence.low) | (expected > evidence.high)
    found = np.flatnonzero((log_ratio >= np.log(ratio)) & (best != evidence.given) & outside)
    found = found[np.argsort(-log_ratio[found], kind="stable")]
    return pd.DataFrame(
        {
            "row_id": evidence.row_ids[found],
            "query_id": evidence.query_ids[found],
            "given_label": evidence.given[found],
            "suggested_label": best[found],
            "log_ratio": log_ratio[found],
            "impressions": evidence.impressions[found],
            "clicks": evidence.clicks[found],
            "rate": evidence.rate[found],
            "low": evidence.low[found],
            "high": evidence.high[found],
            "expected_rate": expected[found],
        }
    )


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
    ranks scales the whole vector. ``min_clicks`` at a rank must be there, else the estimate says nothing.
    """
    data = log.data
    top = max(1, data.n_grades - 1) if top_grade is None else top_grade
    r = relevance(data.y[log.row], top, noise)
    rank = np.minimum(log.position, depth) - 1
    clicks = np.bincount(rank, weights=log.click, minlength=depth)
    hoped = np.bincount(rank, weights=r, minlength=depth)
    if (clicks < min_clicks).any() or (hoped <= 0).any():
        at = int(np.argmax((clicks < min_clicks) | (hoped <= 0)))
        raise invalid(
            "click log",
            f"must have at least {min_clicks} clicks at each rank up to {depth}",
            int(clicks[at]),
            at=f"rank {at + 1}",
            remedy="Gather more sessions or lower depth.",
        )
    return np.minimum(clicks / hoped, 1.0)


def _users(
    model: str | ClickModel, options: dict[str, Any] | None, examination: npt.ArrayLike | None
) -> ClickModel:
    users = make_click_model(model, options) if isinstance(model, str) else model
    if examination is None:
        return users
    if not isinstance(users, PositionModel):
        raise invalid("examination", "must not be given for users who go down the list", users.name)
    return replace(users, examination=tuple(np.asarray(examination, dtype=np.float64)), eta=1.0)


def _matched(log: ClickLog, data: RankingData) -> tuple[IntArray, npt.NDArray[np.int32]]:
    """The place in ``data`` of every entry (-1: not there) and its given grade."""
    if data is log.data:
        return log.row, data.y[log.row]
    order = np.argsort(data.row_ids, kind="stable")
    have = data.row_ids[order]
    wanted = log.data.row_ids
    at = np.minimum(np.searchsorted(have, wanted), max(len(have) - 1, 0))
    place = np.where(have[at] == wanted, order[at], -1) if len(have) else np.full(len(wanted), -1)
    grades = np.where(place >= 0, data.y[place] if len(have) else 0, log.data.y)
    return place[log.row], grades[log.row].astype(np.int32)


def _interval(
    clicks: FloatArray, shown: FloatArray, b: FloatArray, w: FloatArray, level: float
) -> tuple[FloatArray, FloatArray]:
    from scipy.stats import beta

    tail = (1 - level) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        below = np.where(clicks > 0, beta.ppf(tail, clicks, shown - clicks + 1), 0.0)
        above = np.where(clicks < shown, beta.ppf(1 - tail, clicks + 1, shown - clicks), 1.0)
        low, high = ((p * shown - b) / w for p in (below, above))
    # Users who are put off by trust could turn the order round; never shown means nothing is known.
    low, high = np.minimum(low, high), np.maximum(low, high)
    known = (shown > 0) & (abs(w) > TINY)
    return np.where(known, np.clip(low, 0, 1), 0.0), np.where(known, np.clip(high, 0, 1), 1.0)
