"""The simplest detector: doubt = P(wrong | given grade), the same for all rows of a grade."""

from typing import Any

import numpy as np

from cleanrank.errors import invalid
from cleanrank.issues.table import LabelIssues
from cleanrank.noise.profiles import Corruption, NoiseProfile
from cleanrank.types import FloatArray, RankingData

EM_STEPS = 2000


def find_by_grade(data: RankingData, *, noise: Any, seed: int = 0) -> LabelIssues:
    """Doubts every label by the share of wrong ones among rows of the same given grade: the bar to clear.

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
        y = noise.data.y
        wrong = np.bincount(y, weights=noise.changed) / np.maximum(np.bincount(y), 1)
        if data.n_grades > len(wrong):
            rule = f"must be the corruption of these data, whose highest grade is {data.n_grades - 1}"
            raise invalid("noise", rule, f"one with grades up to {len(wrong) - 1}")
    else:
        wrong = expected_wrong(data, noise)
    doubt = wrong[data.y]
    return LabelIssues.of(data, doubt=doubt, is_label_issue=doubt > 0.5, reasons={"by_grade": doubt})


def expected_wrong(data: RankingData, noise: Any) -> FloatArray:
    """P(wrong | given grade) by a noise matrix T, from the shares of the given grades.

    The shares r >= 0 of true grades are those whose r T is closest to the given ones, by EM.
    """
    T = NoiseProfile.of(noise, data.n_grades).matrix
    share = np.bincount(data.y, minlength=len(T)) / max(data.n_docs, 1)
    r = np.full(len(T), 1 / len(T))
    for _ in range(EM_STEPS):
        mixed = r @ T
        step = r * (T @ np.where(mixed > 0, share / np.where(mixed > 0, mixed, 1.0), 0.0))
        done = float(abs(step - r).max()) < 1e-12
        r = step
        if done:
            break
    with np.errstate(invalid="ignore", divide="ignore"):
        right = np.where(share > 0, r * np.diag(T) / share, 1.0)
    wrong: FloatArray = np.clip(1 - right, 0.0, 1.0)
    return wrong
