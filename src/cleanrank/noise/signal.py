"""How much features tell about grades, measured out of fold: without it, nothing can be said about labels.

The AUC of scores s against grades y is the share of pairs of documents of a query, of different grades, in
which the one of the higher grade has the higher score, ties counting one half; 1/2 is what a coin toss gets.
Its interval is over queries: with U_q pairs of query q ordered well, of D_q, AUC = sum U_q / sum D_q has the
variance sum_q (U_q - AUC D_q)^2 / (sum D_q)^2, to first order, and Student's t with one degree of freedom
fewer than queries. Over pairs of different queries as well, U_q and D_q are sums over the rows i of q of the
pairs that i is in, U_i and D_i (Obuchowski 1997).
"""

from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit

from cleanrank.ragged import query_of_row, segment_sum
from cleanrank.types import Array, FloatArray, IntArray

COIN = 0.5
LEVEL = 0.95


@dataclass(frozen=True)
class Signal:
    """How well features tell grades apart.

    Attributes:
        auc: the out-of-fold AUC; NaN where no two documents differ in grade.
        low: the lower end of its 95 % interval over queries.
        high: the upper end.

    >>> Signal(0.71, 0.66, 0.76)
    Signal(AUC .710 [.660, .760])
    """

    auc: float
    low: float
    high: float

    @property
    def is_shown(self) -> bool:
        """Whether the interval lies above a coin toss."""
        return bool(self.low > COIN)

    def to_json(self) -> dict[str, float | None]:
        """Plain values; what cannot be measured is None."""
        return {name: value if np.isfinite(value) else None for name, value in asdict(self).items()}

    def __str__(self) -> str:
        if np.isnan(self.auc):
            return "no two documents of different grades"
        auc, low, high = (f"{value:.3f}".removeprefix("0") for value in (self.auc, self.low, self.high))
        return f"AUC {auc} [{low}, {high}]"

    def __repr__(self) -> str:
        return f"Signal({self})"


def signal_of(
    y: Array, scores: npt.ArrayLike, indptr: IntArray, *, within: bool = True, level: float = LEVEL
) -> Signal:
    """The AUC of out-of-fold scores against grades, with its interval over queries.

    Args:
        y: (N,) grades.
        scores: (N,) what a model that never saw the row's query predicts, such as an expected grade.
        indptr: offsets of the queries.
        within: count pairs of one query, unless no query has any; else pairs of all documents.
        level: probability that the interval is meant to hold.

    Returns:
        A Signal; with fewer than two queries its interval is [0, 1].

    >>> y, scores = np.array([0, 1, 0, 1]), [0.1, 0.9, 0.4, 0.3]
    >>> signal_of(y, scores, np.array([0, 2, 4])).auc, signal_of(y, scores, np.array([0, 1, 2, 3, 4])).auc
    (0.5, 0.75)
    """
    values = np.asarray(scores, dtype=np.float64)
    auc, error = concordance(y, values, indptr, within=within)
    if np.isnan(auc) and within:
        auc, error = concordance(y, values, indptr)
    queries = len(indptr) - 1
    if np.isnan(auc) or queries < 2:
        return Signal(auc, 0.0, 1.0)
    reach = float(stdtrit(queries - 1, (1 + level) / 2)) * error
    return Signal(auc, max(auc - reach, 0.0), min(auc + reach, 1.0))


def concordance(
    y: Array, scores: FloatArray, indptr: IntArray, *, within: bool = False
) -> tuple[float, float]:
    """The AUC and its standard error over queries; NaN without pairs."""
    query = query_of_row(indptr) if within else np.zeros(len(y), dtype=np.int64)
    # Ranks in place of scores: one sorted array then serves all queries.
    place = np.unique(scores, return_inverse=True)[1].ravel() + query * np.int64(len(scores) + 1)
    grades = np.unique(y)
    of_grade = {grade: np.sort(place[y == grade]) for grade in grades}
    well, pairs = np.zeros(len(y)), np.zeros(len(y))
    start, end = query * np.int64(len(scores) + 1), (query + 1) * np.int64(len(scores) + 1)
    for grade in grades:
        rows = y == grade
        for other in grades[grades != grade]:
            others = of_grade[other]
            first, last = (np.searchsorted(others, bound[rows]) for bound in (start, end))
            below = np.searchsorted(others, place[rows]) + np.searchsorted(others, place[rows], "right")
            lower = below / 2 - first
            well[rows] += lower if other < grade else last - first - lower
            pairs[rows] += last - first
    if not pairs.any():
        return float("nan"), float("nan")
    auc = float(well.sum() / pairs.sum())
    by_query = segment_sum(well - auc * pairs, indptr)
    queries = max(len(by_query), 2)
    error = np.sqrt((by_query**2).sum() * queries / (queries - 1)) / (pairs.sum() / 2)
    # Within queries every pair is counted twice in the sum of its query.
    return auc, float(error) / (2 if within else 1)
