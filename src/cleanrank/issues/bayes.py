"""Bayes' rule for grades: noise turned round, likelihoods of given grades, posteriors, rows of known grade.

C grades; T[l, m] = P(given m | true l); rows of (N, C) arrays are documents.
"""

import numpy as np
import numpy.typing as npt
from scipy.special import log_softmax, logsumexp, softmax

from cleanrank.errors import invalid
from cleanrank.jit import kernel, prange, threads
from cleanrank.ragged import query_of_row, segment_sum
from cleanrank.types import Array, FloatArray, IntArray

SHIFTS = np.linspace(-3.0, 3.0, 25)
SPREADS = np.array([0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5])
STRENGTHS = np.linspace(-2.0, 2.0, 9)  # a judge who misread a query errs up to e^2 times as often
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


def bayes_by_query(
    prior: FloatArray, likelihood: FloatArray, indptr: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Bayes' rule where queries differ by more than the features say, and the prior as the query has it.

    Query k shifts the prior to q_l exp(l u_k) / sum; u_k ~ N(0, s^2), s by marginal likelihood. All given
    grades of the query tell about u_k, so that a document of a query with many relevant ones is likelier to
    be one. Integrals over u_k are sums over SHIFTS.

    >>> prior, likelihood = np.full((40, 2), 0.5), np.tile([[0.8, 0.2]] * 4 + [[0.2, 0.8]] * 4, (5, 1))
    >>> bayes_by_query(prior, likelihood, np.arange(0, 41, 4))[0][[0, 4]].round(1).tolist()
    [[0.9, 0.1], [0.1, 0.9]]
    """
    C = prior.shape[1]
    logs = np.log(np.maximum(prior, CLOSE))
    steps = np.arange(C) - (C - 1) / 2
    fits = np.empty((len(indptr) - 1, len(SHIFTS)))
    for place, shift in enumerate(SHIFTS):
        joint = softmax(logs + shift * steps, axis=1) * likelihood
        fits[:, place] = segment_sum(np.log(np.maximum(joint.sum(axis=1), TINY)), indptr)
    chances = log_softmax(-(SHIFTS**2) / (2 * SPREADS[:, None] ** 2), axis=1)
    evidence = [logsumexp(fits + log_chance, axis=1).sum() for log_chance in chances]
    of_shift = softmax(fits + chances[int(np.argmax(evidence))], axis=1)[query_of_row(indptr)]
    posterior, shifted = np.zeros_like(prior), np.zeros_like(prior)
    for place, shift in enumerate(SHIFTS):
        q = softmax(logs + shift * steps, axis=1)
        weight = of_shift[:, place, None]
        shifted += weight * q
        posterior += weight * bayes(q, likelihood)
    return posterior, shifted


def bayes_by_error_rate(
    prior: FloatArray, y: Array, matrix: FloatArray, indptr: IntArray, known: npt.ArrayLike | None = None
) -> FloatArray:
    """Bayes' rule where queries differ in how often their labels are wrong.

    In query k every error is e^v_k times as frequent as the matrix says (rows scaled to sum to 1); v_k ~ N(0,
    s^2), s by marginal likelihood. All given grades of the query tell about v_k, so that a query whose grades
    do not go with what is known of its documents is doubted as a whole: its judge may have misread it.
    Integrals over v_k are sums over STRENGTHS.

    >>> prior = np.tile([0.95, 0.05], (8, 1))
    >>> y = np.array([0, 0, 0, 1, 1, 1, 1, 1])
    >>> W = bayes_by_error_rate(prior, y, np.array([[0.9, 0.1], [0.1, 0.9]]), np.array([0, 4, 8]))
    >>> bool(W[4, 0] > W[3, 0])
    True
    """
    likelihood = [known_rows(likelihoods(y, _stronger(matrix, v)), known) for v in STRENGTHS]
    sums = [np.log(np.maximum((prior * each).sum(axis=1), TINY)) for each in likelihood]
    fits = np.stack([segment_sum(each, indptr) for each in sums], axis=1)
    chances = log_softmax(-(STRENGTHS**2) / (2 * SPREADS[:, None] ** 2), axis=1)
    evidence = [logsumexp(fits + chance, axis=1).sum() for chance in chances]
    weight = softmax(fits + chances[int(np.argmax(evidence))], axis=1)[query_of_row(indptr)]
    every = [weight[:, place, None] * bayes(prior, each) for place, each in enumerate(likelihood)]
    return np.asarray(sum(every))


def _stronger(matrix: FloatArray, strength: float) -> FloatArray:
    """A noise matrix whose errors are exp(strength) times as frequent, beside what is right."""
    right = np.eye(len(matrix), dtype=np.bool_)
    scaled = np.where(right, matrix, matrix * np.exp(strength))
    return np.asarray(scaled / scaled.sum(axis=1, keepdims=True))


def settled(probabilities: FloatArray, known: npt.ArrayLike | None) -> FloatArray:
    """Probabilities (N, C), those of rows of known grade 1 for it."""
    if known is None:
        return probabilities
    truth = np.asarray(known)[:, None]
    return np.where(truth < 0, probabilities, truth == np.arange(probabilities.shape[1])).astype(np.float64)
