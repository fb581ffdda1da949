"""How much of the peers a known noise asks for.

T[l, m] = P(given grade m | true grade l), r the shares of true grades. Noise leaves of the signal of a pair
of true grades a > b the part

    kept(a, b) = sum over u > v of T[a, u] T[b, v] - T[a, v] T[b, u]

and peers with weight 1 - kept over all ordered pairs undo it. For two grades kept = 1 - e+ - e- with the
flip rates e+ = T[1, 0] and e- = T[0, 1], so alpha = e+ + e- is exact for every loss (Wu 2022, corrected).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank import checks
from cleanrank.types import FloatArray


@dataclass(frozen=True)
class PeerWeight:
    """A weight of the peers and what is known about it.

    Attributes:
        alpha: in [0, 1].
        exact: whether it undoes the noise in expectation.
        reason: why it is only an approximation; empty when it is exact.
    """

    alpha: float
    exact: bool
    reason: str = ""


def peer_weight(noise: Any, y: npt.ArrayLike, *, weighted: bool = False) -> PeerWeight:
    """The weight of peers over all ordered pairs under a noise.

    Args:
        noise: a matrix P(given | true), a NoiseProfile or a NoiseEstimate.
        y: the given grades; their shares tell which pairs are frequent.
        weighted: whether pairs are weighted by what a swap does to a measure (LambdaRank).

    >>> peer_weight([[0.95, 0.05], [0.05, 0.95]], [0, 1, 0]).alpha
    0.1
    """
    T = _matrix(noise)
    grades = np.asarray(y)
    C = len(T)
    if grades.size and grades.max() >= C:
        checks.fail("noise", f"must have a row for each of the {int(grades.max()) + 1} grades", f"{C} rows")
    kept = kept_signal(T)
    shares = _true_shares(T, np.bincount(grades.astype(np.int64), minlength=C))
    pairs = np.tril(np.outer(shares, shares), -1)
    mean = float((pairs * kept).sum() / pairs.sum()) if pairs.sum() > 0 else float(kept[1, 0])
    if mean <= 0:
        checks.fail(
            "noise",
            "must leave some of the order of pairs",
            f"{mean:.3g} of it",
            remedy="No weight of peers mends labels that say nothing.",
        )
    reasons = []
    if C > 2:
        each = kept[np.tril_indices(C, -1)]
        parts = f"{each.min():.2f} to {each.max():.2f}"
        reasons.append(f"between {C} grades the noise keeps {parts} of the signal, not one part")
    if weighted:
        reasons.append("LambdaRank's weights of pairs come from noisy labels")
    return PeerWeight(float(np.clip(round(1.0 - mean, 12), 0.0, 1.0)), not reasons, "; ".join(reasons))


def kept_signal(T: FloatArray) -> FloatArray:
    """kept(a, b) of every pair of true grades; antisymmetric.

    >>> kept_signal(np.array([[0.9, 0.1], [0.2, 0.8]])).round(3).tolist()
    [[0.0, -0.7], [0.7, 0.0]]
    """
    above = np.tril(np.ones_like(T), -1)
    found: FloatArray = T @ above @ T.T
    return found - found.T


def _matrix(noise: Any) -> FloatArray:
    T = np.asarray(getattr(noise, "matrix", noise), dtype=np.float64)
    square = T.ndim == 2 and T.shape[0] == T.shape[1] and len(T) > 1
    if not square or not np.allclose(T.sum(1), 1) or (T < 0).any():
        checks.fail(
            "noise",
            "must be a matrix P(given grade | true grade) whose rows sum to 1",
            f"shape {T.shape}",
            remedy="A NoiseProfile or a NoiseEstimate will do.",
        )
    return T


def _true_shares(T: FloatArray, counts: npt.NDArray[np.int64]) -> FloatArray:
    given = counts / max(counts.sum(), 1)
    found = np.clip(np.linalg.lstsq(T.T, given, rcond=None)[0], 0.0, None)
    return np.asarray(found / found.sum()) if found.sum() > 0 else np.asarray(given)


def pointwise_weight(noise: Any, relevant: npt.ArrayLike, *, symmetric: bool) -> PeerWeight:
    """The weight of peers over documents: (e+ - e-) / (1 - 2 P(given relevant)) (Wu 2022, eq. 16).

    Args:
        noise: a 2 x 2 matrix P(given | true), a NoiseProfile or a NoiseEstimate.
        relevant: whether each document is given as relevant.
        symmetric: whether the loss is label-symmetric; for others, cross-entropy among them, no weight is
            exact.

    >>> shown = np.arange(10_000) < 502
    >>> round(pointwise_weight([[0.9627, 0.0373], [0.5037, 0.4963]], shown, symmetric=True).alpha, 4)
    0.5185
    """
    T = _matrix(noise)
    if len(T) != 2:
        checks.fail("noise", "must be 2 x 2 for documents that are relevant or not", f"shape {T.shape}")
    share = float(np.mean(np.asarray(relevant, dtype=np.float64)))
    gap = float(T[1, 0] - T[0, 1])
    alpha = 0.0 if abs(gap) < 1e-12 else gap / (1 - 2 * share) if share != 0.5 else np.inf
    if not -1e-12 <= alpha <= 1:
        checks.fail(
            "alpha='auto' over documents",
            f"must come out in [0, 1] at {share:.3g} of the documents relevant",
            f"{alpha:.3g}",
            remedy="Give alpha as a number, or train on pairs, where e+ + e- is right.",
        )
    return PeerWeight(max(alpha, 0.0), symmetric, "" if symmetric else "the loss is not label-symmetric")
