"""Bayes' rule for grades: noise turned round, likelihoods of given grades, posteriors, rows of known grade.

C grades; T[l, m] = P(given m | true l); rows of (N, C) arrays are documents.
"""

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.jit import kernel, prange, threads
from cleanrank.types import Array, FloatArray

STEPS = 300
CLOSE = 1e-7
TINY = 1e-300


def invert_noise(observed: FloatArray, matrix: FloatArray, n_jobs: int | None = 1) -> FloatArray:
    """Solves q T = p for q, row by row; where no q on the simplex does, gives the closest: (N, C)."""
    T = np.ascontiguousarray(matrix)
    p = np.pad(observed, ((0, 0), (0, len(T) - observed.shape[1])))
    p /= p.sum(axis=1, keepdims=True)
    q = p @ np.linalg.inv(T) if np.linalg.matrix_rank(T) == len(T) else np.full_like(p, 1 / len(T))
    with threads(n_jobs):
        _closest(p, T, q)
    return q


@kernel(parallel=True)
def _closest(p: Array, T: Array, q: Array) -> None:
    """Leaves solutions on the simplex as they are and moves the others there by EM steps."""
    N, C = p.shape
    for i in prange(N):
        lowest = q[i, 0]
        for l in range(1, C):
            lowest = min(lowest, q[i, l])
        exact = lowest >= 0.0
        if exact:
            for m in range(C):
                mixed = 0.0
                for l in range(C):
                    mixed += q[i, l] * T[l, m]
                exact = exact and abs(mixed - p[i, m]) < 1e-9
        if exact:
            continue
        total = 0.0
        for l in range(C):
            q[i, l] = max(q[i, l], 0.01)
            total += q[i, l]
        for l in range(C):
            q[i, l] /= total
        ratio = np.empty(C)
        for _ in range(STEPS):
            for m in range(C):
                mixed = 0.0
                for l in range(C):
                    mixed += q[i, l] * T[l, m]
                ratio[m] = p[i, m] / mixed if mixed > TINY else 0.0
            moved = 0.0
            for l in range(C):
                factor = 0.0
                for m in range(C):
                    factor += T[l, m] * ratio[m]
                new = q[i, l] * factor
                moved = max(moved, abs(new - q[i, l]))
                q[i, l] = new
            if moved < CLOSE:
                break


def likelihoods(y: Array, matrix: FloatArray) -> FloatArray:
    """P(given grade of the row | true grade l), for every row and l: (N, C)."""
    never = matrix.max(axis=0)[y] <= 0
    if never.any():
        row = int(np.argmax(never))
        rule = "must leave every grade that was given a chance to be given"
        raise invalid("noise", rule, f"probability 0 for grade {y[row]}", at=f"row {row}")
    return np.asarray(matrix.T[y])


def known_rows(likelihood: FloatArray, known: npt.ArrayLike | None) -> FloatArray:
    """Makes the likelihood (N, C) one-hot for rows of known true grade (not -1), whatever they were given."""
    if known is None:
        return likelihood
    truth = np.asarray(known)
    N, C = likelihood.shape
    if truth.shape != (N,) or truth.dtype.kind not in "iu":
        rule = f"must be a whole grade per row ({N}), -1 where unknown"
        raise invalid("known", rule, f"{truth.dtype}, shape {truth.shape}")
    bad = (truth < -1) | (truth >= C)
    if bad.any():
        row = int(np.argmax(bad))
        raise invalid(
            "known", f"must be grades from 0 to {C - 1}, -1 where unknown", int(truth[row]), at=f"row {row}",
            remedy="A longer scale needs a noise matrix of its size.",
        )  # fmt: skip
    return np.where(truth[:, None] < 0, likelihood, truth[:, None] == np.arange(C)).astype(np.float64)


def bayes(prior: FloatArray, likelihood: FloatArray) -> FloatArray:
    """Bayes' rule, row by row; where prior and likelihood leave nothing, the likelihood decides alone."""
    joint = prior * likelihood
    total = joint.sum(axis=1, keepdims=True)
    lost = total[:, 0] <= TINY
    joint[lost] = likelihood[lost] + TINY
    total[lost] = joint[lost].sum(axis=1, keepdims=True)
    return np.asarray(joint / total)


def settled(probabilities: FloatArray, known: npt.ArrayLike | None) -> FloatArray:
    """Probabilities (N, C), those of rows of known grade 1 for it."""
    if known is None:
        return probabilities
    truth = np.asarray(known)[:, None]
    return np.where(truth < 0, probabilities, truth == np.arange(probabilities.shape[1])).astype(np.float64)
