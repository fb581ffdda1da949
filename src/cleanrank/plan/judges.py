"""How judges err on a scale, and what judging again makes of it.

T[l, m] = P(judged m | truly l) on a scale of c grades. *Same error per threshold*: a scale of c grades asks c
- 1 questions "better than this step?", each answered wrongly with probability e, and the grade is the number
of steps passed, so that

    T[l, .] = distribution of Bin(l, 1 - e) + Bin(c - 1 - l, e).

Two grades then err at rate e, and more grades err more: the more steps, the more ways to slip.
"""

from collections.abc import Mapping
from math import comb

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.noise.profiles import NoiseProfile, make_profile
from cleanrank.types import FloatArray


def threshold_matrix(error: float, n_grades: int) -> FloatArray:
    """The matrix of a judge who errs at the same rate at every step of the scale.

    >>> threshold_matrix(0.1, 3).round(2).tolist()
    [[0.81, 0.18, 0.01], [0.09, 0.82, 0.09], [0.01, 0.18, 0.81]]
    """
    if not 0 <= error <= 1:
        raise invalid("error rate", "must lie in [0, 1]", error)
    found = np.empty((n_grades, n_grades))
    for l in range(n_grades):
        row = np.ones(1)
        for step in range(n_grades - 1):
            passed = 1 - error if step < l else error
            row = np.convolve(row, [1 - passed, passed])
        found[l] = row
    return found


def judge_matrix(
    error: float | Mapping[int, float | npt.ArrayLike], n_grades: int, profile: str = "geometric"
) -> FloatArray:
    """The matrix on a scale: from one rate per step, or from what is known of this scale.

    Args:
        error: one rate, taken as the error per step; or, by number of grades, the share of wrong judgements
            on that scale (spread by ``profile``) or a whole matrix.
        n_grades: of the scale.
        profile: the family that spreads a scale's own rate.
    """
    if not isinstance(error, Mapping):
        return threshold_matrix(float(error), n_grades)
    if n_grades not in error:
        have = ", ".join(str(g) for g in sorted(error))
        raise invalid(
            "error", "must give a rate for every scale", f"{have} grades", remedy=f"Add one for {n_grades}."
        )
    given = error[n_grades]
    if isinstance(given, int | float):
        return make_profile(profile, float(given), n_grades).matrix
    matrix = NoiseProfile(np.asarray(given)).matrix
    if len(matrix) != n_grades:
        raise invalid(
            "error", f"must give a matrix of {n_grades} grades for that scale", f"{len(matrix)} grades"
        )
    return matrix


def median_matrix(matrix: npt.ArrayLike, judges: int, *, shared: float = 0.0) -> FloatArray:
    """The matrix of the median of several judgements; with two grades that is the majority.

    With F_l the distribution function of one judgement, P(median <= m) = P(Bin(judges, F_l(m)) > judges/2),
    exactly.

    Args:
        matrix: of one judgement.
        judges: an odd number.
        shared: the share of cases in which all judges give the same answer, right or wrong; 0 when they err
            independently.

    >>> median_matrix([[0.9, 0.1], [0.1, 0.9]], 3)[0].round(3).tolist()
    [0.972, 0.028]
    """
    T = np.asarray(matrix, dtype=np.float64)
    _odd(judges)
    if not 0 <= shared <= 1:
        raise invalid("shared", "must lie in [0, 1]", shared)
    below = np.clip(np.cumsum(T, axis=1), 0, 1)
    reached = _at_least_half(below, judges)
    alone = np.diff(np.concatenate((np.zeros((len(T), 1)), reached), axis=1), axis=1)
    found: FloatArray = shared * T + (1 - shared) * alone
    return found


def judgements_needed(matrix: npt.ArrayLike, judges: int, *, shared: float = 0.0) -> FloatArray:
    """Mean judgements per true grade when one stops as soon as the rest cannot move the median.

    After t judgements the median of ``judges`` = 2h + 1 lies between the (t - h)-th and the (h + 1)-th
    smallest.

    >>> judgements_needed([[0.9, 0.1], [0.1, 0.9]], 3).round(2).tolist()
    [2.18, 2.18]
    """
    T = np.asarray(matrix, dtype=np.float64)
    _odd(judges)
    half = (judges - 1) // 2
    mean = np.full(len(T), float(half + 1))
    for t in range(half + 1, judges):
        answers = np.indices((T.shape[1],) * t).reshape(t, -1)
        ordered = np.sort(answers, axis=0)
        open_ = answers[:, ordered[t - 1 - half] != ordered[half]]
        mean += T[:, open_].prod(axis=1).sum(axis=1)
    found: FloatArray = shared * (half + 1) + (1 - shared) * mean
    return found


def _at_least_half(p: FloatArray, judges: int) -> FloatArray:
    """P(Bin(judges, p) > judges/2)."""
    found = np.zeros_like(p)
    for k in range(judges // 2 + 1, judges + 1):
        found += comb(judges, k) * p**k * (1 - p) ** (judges - k)
    return found


def _odd(judges: int) -> None:
    if judges < 1 or judges % 2 == 0:
        raise invalid("judges", "must be an odd number, so that there is a median", judges)
