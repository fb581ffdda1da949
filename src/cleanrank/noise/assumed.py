"""Noise that is assumed where nothing is known: one matrix to learn by, one to order rows by, one to act on.

All are read off rows that look like grade 0 and were given another grade m. Such a row may be an error, or a
document of grade m whose relevance the features do not show; features that know nothing make all rows look
alike, so that every rare grade could be an error.

* ``possible_noise`` takes them for errors as far as it can. Rankers learn under it.
* ``suspected_noise`` also asks how common grade 0 is, since judges who give it rarely are rather generous
  than strict. Rows are ordered under it.
* ``least_noise`` takes them for errors only as far as features of this strength cannot have confused them.
  On the scale on which the scores of rows given 0 are standard normal, rows given m that are right are taken
  to be N(-d, 1), as in the binormal model of ROC curves, and errors look like grade 0, so that rows given m
  follow (1 - e) N(-d, 1) + e N(0, 1) (Dorfman & Berbaum 2000). Weak features have a small d and e = 0; errors
  have e > 0 however large d is. A grade has errors where e = 0 is refuted by the likelihood ratio at 95 %, in
  units of queries rather than of rows; then e is the likeliest one.
  Of neighbouring grades the higher one is told from grade 0 more easily. Where a larger share of the rows
  given m > 1 than of those given m - 1 is among the rows that look most surely like grade 0, the surplus is
  errors, however weak the features are.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from cleanrank.errors import invalid
from cleanrank.noise.anchors import anchor_rows
from cleanrank.noise.signal import concordance
from cleanrank.ragged import indptr_of, query_of_row
from cleanrank.types import Array, FloatArray, IntArray, RankingData

MISSED = 0.05
GENEROUS, STRICT = 0.5, 0.8  # shares of rows given grade 0
MISSED_BY_GENEROUS, MISSED_BY_STRICT = 0.03, 0.15
LEAST = 0.002
BINS = 20
FEWEST_ROWS = 10
SURPLUS = 2.326  # the 99 % quantile of the normal distribution
REFUTED = 2.706  # the 90 % quantile of chi-squared with one degree of freedom: one-sided 95 %
DISTANCES = np.linspace(0.0, 6.0, 121)
SHARES = np.linspace(0.0, 0.98, 50)


@dataclass(frozen=True, eq=False)
class AssumedNoise:
    """What is assumed about the noise of data of which nothing is known.

    Attributes:
        suspected: the matrix that rows are ordered by.
        least: the matrix that labels are called issues by.
        surplus: (C,) the share of the surest rows of grade 0 that were given a grade beyond what the grade
            below it explains.
    """

    suspected: FloatArray
    least: FloatArray
    surplus: FloatArray


def assume_noise(data: RankingData, p: FloatArray, *, has_signal: bool = True) -> AssumedNoise:
    """Reads both matrices off out-of-fold probabilities (N, C) of the given grades; see ``least_noise``."""
    possible = possible_noise(p, data.y)
    # What must be there is never more than what may be there, however far scores are from normal.
    surplus = surplus_of_grades(p, data.y) if has_signal else np.zeros(p.shape[1])
    least = np.minimum(least_noise(data, p, has_signal=has_signal), possible)
    least[0] = np.maximum(least[0], np.minimum(surplus, possible[0]))
    np.fill_diagonal(least, 0.0)
    np.fill_diagonal(least, 1 - least.sum(axis=1))
    return AssumedNoise(suspected_noise(p, data.y), least, surplus)


def surplus_of_grades(p: FloatArray, y: Array) -> FloatArray:
    """What the surest rows of grade 0 were given beyond what the grade below explains, at the least: (C,).

    With c_m of n_m rows given m among the anchors, hard documents alone have c_m / n_m <= c_(m-1) / n_(m-1).
    The surplus is c_m - c_(m-1) n_m / n_(m-1), as a share of the anchors, at the lower end of a 99 %
    interval; 0 where that does not lie above 0.

    >>> p = np.repeat([[0.9, 0.05, 0.05], [0.2, 0.4, 0.4]], [1000, 1000], axis=0)
    >>> y = np.concatenate((np.tile([0] * 8 + [2] * 2, 100), np.repeat([0, 1, 2], [200, 600, 200])))
    >>> surplus_of_grades(p, y).round(3).tolist()
    [0.0, 0.0, 0.148]
    """
    C = p.shape[1]
    anchors = anchor_rows(p, 0)
    counts = np.bincount(y[anchors], minlength=C).astype(np.float64)
    rows = np.bincount(y, minlength=C)
    surplus = np.zeros(C)
    for m in range(2, C):
        if min(rows[m], rows[m - 1]) >= FEWEST_ROWS:
            ratio = rows[m] / rows[m - 1]
            error = np.sqrt(counts[m] + ratio**2 * counts[m - 1])
            surplus[m] = max(counts[m] - ratio * counts[m - 1] - SURPLUS * error, 0.0) / len(anchors)
    return surplus


def possible_noise(p: FloatArray, y: Array) -> FloatArray:
    """The matrix that rows are ordered by, read off *anchors*: the rows most surely of grade 0.

    Hard documents look like noise between neighbouring grades, but a grade that anchors are given more often
    than the grade below it cannot be due to hardness. So t, the smallest share of a grade among them, is
    taken for every error; a grade m > 1 given more often than m - 1 keeps its own share; and since anchors of
    grade 0 show nothing about relevant documents that were missed, these become 0 with probability MISSED at
    least. Such a matrix orders rows well; its doubts are no probabilities to rely on.

    >>> p = np.array([[0.9, 0.1]] * 50 + [[0.2, 0.8]] * 50)
    >>> y = np.array(([0] * 9 + [1]) * 5 + [1] * 50)
    >>> possible_noise(p, y).round(2).tolist()
    [[0.9, 0.1], [0.1, 0.9]]
    """
    _, from_zero, t = _of_anchors(p, y)
    return _matrix(from_zero, t, MISSED)


def suspected_noise(p: FloatArray, y: Array) -> FloatArray:
    """The matrix that rows are ordered by: ``possible_noise``, as far as most rows are given grade 0.

    Where grade 0 is common, documents of higher grades are rather missed than made up, and hardness must not
    be taken for errors. Where it is rare, judges were generous: every grade keeps its share among the
    anchors, errors of other grades go half the way to the mean of these shares, and few relevant documents
    were missed. Between the shares GENEROUS and STRICT of rows given 0 rates change evenly on a logarithmic
    scale. That is an assumption about judges, like all of this.

    >>> p = np.array([[0.9, 0.06, 0.04]] * 50 + [[0.2, 0.5, 0.3]] * 50)
    >>> y = np.array(([0] * 8 + [1, 2]) * 5 + [1] * 30 + [2] * 20)
    >>> suspected_noise(p, y).round(2).tolist()  # grade 0 is rare
    [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    """
    share, from_zero, t = _of_anchors(p, y)
    strict = float(np.clip(((y == 0).mean() - GENEROUS) / (STRICT - GENEROUS), 0.0, 1.0))
    from_zero = from_zero**strict * share ** (1 - strict)
    half = (1 + strict) / 2
    t = float(t**half * share[1:].mean() ** (1 - half))
    return _matrix(from_zero, t, MISSED_BY_GENEROUS ** (1 - strict) * MISSED_BY_STRICT**strict)


def _of_anchors(p: FloatArray, y: Array) -> tuple[FloatArray, FloatArray, float]:
    """Shares of the grades among anchors of grade 0, what of them is taken for errors, and the smallest."""
    C = p.shape[1]
    if C < 2 or not len(p):
        raise invalid("probabilities", "must hold at least one row and two grades", f"shape {p.shape}")
    anchors = anchor_rows(p, 0)
    # Beyond 1 / C an error would be likelier than the truth.
    share = np.clip(np.bincount(y[anchors], minlength=C) / len(anchors), LEAST, 0.9 / C)
    t = float(share[1:].min())
    from_zero = np.full(C, t)
    for m in range(2, C):
        if share[m] > share[m - 1]:
            from_zero[m] = share[m]
    return share, from_zero, t


def least_noise(data: RankingData, p: FloatArray, *, has_signal: bool = True) -> FloatArray:
    """The matrix that labels are called issues by: only errors that weak features cannot explain.

    Rows given m of which a share e_m are errors, n_m in all, make T[0, m] = e_m n_m / (n_0 + sum_k e_k n_k).
    Beside each grade by itself, one rate for all grades is tried, as of errors that go anywhere, so that rare
    grades speak together; as that is an assumption, it counts with the smallest rate that is not refuted. The
    larger one is taken. Without signal no grade is taken to have errors.

    Args:
        data: judged rows.
        p: (N, C) out-of-fold probabilities of the given grades.
        has_signal: whether the features tell anything about the grades, see ``noise/signal.py``.
    """
    C = p.shape[1]
    rows = np.bincount(data.y, minlength=C)
    t = np.full(C, LEAST)
    grades = [m for m in range(1, C) if has_signal and min(rows[0], rows[m]) >= FEWEST_ROWS]
    if grades:
        fits = {m: error_likelihoods(data, p, m) for m in grades}
        errors = np.zeros(C)
        errors[grades] = [SHARES[_likeliest(fit)] * rows[m] for m, fit in fits.items()]
        t = np.maximum(t, errors / (rows[0] + errors.sum()))
        rates = np.linspace(0.0, 0.9 / C, len(SHARES))
        of_zero = rows[0] * rates / (1 - (C - 1) * rates)
        together = sum(np.interp(of_zero / rows[m], SHARES, fit) for m, fit in fits.items())
        t = np.maximum(t, rates[np.argmax(together >= np.max(together) - REFUTED / 2)])
    t = np.minimum(t, 0.9 / C)
    return _matrix(t, float(t[1:].min()), MISSED)


def error_likelihoods(data: RankingData, p: FloatArray, grade: int) -> FloatArray:
    """The log likelihood of every share e in SHARES of errors among the rows given a grade, d at its best.

    It is divided by the number of rows that count as one, because rows of a query are alike.
    """
    pair = (data.y == 0) | (data.y == grade)
    given, score = data.y[pair] == grade, p[pair, 0]
    edges = np.unique(np.quantile(score[~given], np.linspace(0, 1, BINS + 1)[1:-1]))
    in_bin = np.searchsorted(edges, score, side="right")
    counts = np.bincount(in_bin[given], minlength=len(edges) + 1)
    of_zero = np.bincount(in_bin[~given], minlength=len(edges) + 1) + 0.5
    of_zero /= of_zero.sum()
    # The bins' ends where rows given 0 are standard normal, and the bins' shares of N(-d, 1).
    ends = ndtr(ndtri(np.cumsum(of_zero)[:-1]) + DISTANCES[:, None])
    of_right = np.diff(ends, axis=1, prepend=0.0, append=1.0)
    mixed = (1 - SHARES[:, None, None]) * of_right + SHARES[:, None, None] * of_zero
    fit = (np.log(np.maximum(mixed, 1e-12)) @ counts).max(axis=1)
    return np.asarray(fit / _rows_per_vote(given, score, data.indptr, pair))


def _likeliest(fit: FloatArray) -> int:
    """The place of the largest log likelihood if it refutes the first, which stands for no errors; else 0."""
    best = int(np.argmax(fit))
    return best if 2 * (fit[best] - fit[0]) > REFUTED else 0


def _rows_per_vote(given: Array, score: FloatArray, indptr: IntArray, pair: Array) -> float:
    """How many rows count as one where queries differ: the AUC's variance over queries by that over rows."""
    lengths = np.bincount(query_of_row(indptr)[pair], minlength=len(indptr) - 1)
    queries, rows = indptr_of(lengths[lengths > 0]), np.arange(len(score) + 1)
    by_query, by_row = (concordance(given, -score, each)[1] for each in (queries, rows))
    return max(1.0, (by_query / by_row) ** 2) if by_row > 0 else 1.0


def _matrix(from_zero: FloatArray, t: float, missed: float) -> FloatArray:
    """Errors of grade 0 as listed, t for all others, ``missed`` at least for relevant documents given 0."""
    C = len(from_zero)
    T = np.full((C, C), t)
    T[0] = from_zero
    T[1:, 0] = max(t, missed)
    np.fill_diagonal(T, 0.0)
    np.fill_diagonal(T, 1 - T.sum(axis=1))
    return T
