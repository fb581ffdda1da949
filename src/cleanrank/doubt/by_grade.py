"""The detector that looks at nothing but the given grade: the bar that others must clear.

Rare grades are more often wrong than common ones, so their label alone says much. With T[l, m] = P(given m |
true l), w the shares of the given grades and r those of the true ones, r T = w,

    P(wrong | given m) = 1 - r_m T[m, m] / w_m.
"""

from typing import Any

import numpy as np

from cleanrank.doubt.posterior import noise_matrix
from cleanrank.doubt.table import DoubtTable
from cleanrank.errors import invalid
from cleanrank.noise.profiles import Corruption
from cleanrank.types import FloatArray, RankingData

ISSUE = 0.5


def find_by_grade(data: RankingData, *, noise: Any, seed: int = 0) -> DoubtTable:
    """Doubts every label by the share of wrong ones among rows of the same given grade.

    Args:
        data: judged rows.
        noise: a Corruption, whose truth then gives the shares (the oracle of benchmarks); or a noise matrix,
            NoiseProfile or NoiseEstimate, from which they are worked out.
        seed: not used; nothing here is random.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((4, 1)), [0, 0, 0, 1], group=[4])
    >>> find_by_grade(data, noise=[[0.9, 0.1], [0.0, 1.0]]).doubt.round(3).tolist()
    [0.0, 0.0, 0.0, 0.333]
    """
    if isinstance(noise, Corruption):
        shares = true_shares(noise)
        if data.n_grades > len(shares):
            rule = f"must be the corruption of these data, whose highest grade is {data.n_grades - 1}"
            raise invalid("noise", rule, f"one with grades up to {len(shares) - 1}")
    else:
        shares = expected_shares(data, noise)
    doubt = shares[data.y]
    return DoubtTable.of(data, doubt=doubt, is_label_issue=doubt > ISSUE, reasons={"by_grade": doubt})


def true_shares(truth: Corruption) -> FloatArray:
    """P(wrong | given grade) by a known corruption; 0 for grades that nobody gave."""
    y = truth.data.y
    count = np.bincount(y)
    wrong = np.bincount(y, weights=truth.changed)
    found: FloatArray = wrong / np.maximum(count, 1)
    return found


def expected_shares(data: RankingData, noise: Any) -> FloatArray:
    """P(wrong | given grade) by a noise matrix, from the shares of the given grades."""
    T = noise_matrix(noise, data.n_grades)
    C = len(T)
    given = np.bincount(data.y, minlength=C) / max(data.n_docs, 1)
    true = _simplex(given, T)
    with np.errstate(invalid="ignore", divide="ignore"):
        kept = np.where(given > 0, true * np.diag(T) / given, 1.0)
    found: FloatArray = np.clip(1 - kept, 0.0, 1.0)
    return found


def _simplex(given: FloatArray, T: FloatArray) -> FloatArray:
    """Shares r >= 0 whose r T is closest to the given ones; EM, which stays on the simplex."""
    r = np.full(len(T), 1 / len(T))
    for _ in range(2000):
        mixed = r @ T
        step = r * (T @ np.where(mixed > 0, given / np.where(mixed > 0, mixed, 1.0), 0.0))
        done = float(abs(step - r).max()) < 1e-12
        r = step
        if done:
            break
    return r
