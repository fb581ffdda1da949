"""How much of the peers a known noise asks for.

T[l, m] = P(given grade m | true grade l), r the shares of true grades. Of the signal of a pair of true grades
a > b the noise leaves the part

    kept(a, b) = sum over u > v of T[a, u] T[b, v] - T[a, v] T[b, u]

and peers with the weight 1 - kept over all ordered pairs undo it. For two grades kept = 1 - e+ - e-, which is
``theory.optimal_alpha``; with more grades the parts differ, and the mean over pairs is an approximation.
"""

from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.losses.binary import BinaryLoss
from cleanrank.theory.peer import Alpha, optimal_alpha
from cleanrank.types import FloatArray


def pair_alpha(noise: Any, y: npt.ArrayLike, *, lambdarank: bool = False) -> Alpha:
    """The weight of peers over all ordered pairs under a noise.

    Args:
        noise: a matrix P(given | true), a NoiseProfile or a NoiseEstimate.
        y: the given grades; their shares tell which pairs are frequent.
        lambdarank: whether pairs are weighted by what a swap does to a measure.

    >>> pair_alpha([[0.95, 0.05], [0.05, 0.95]], [0, 1, 0]).value
    0.1
    """
    T, grades = noise_matrix(noise), np.asarray(y)
    C = len(T)
    if grades.size and grades.max() >= C:
        raise invalid("noise", f"must have a row for each of the {int(grades.max()) + 1} grades", f"{C} rows")
    if C == 2:
        return optimal_alpha(float(T[1, 0]), float(T[0, 1]), lambdarank=lambdarank)
    kept = kept_signal(T)
    shares = _true_shares(T, np.bincount(grades.astype(np.int64), minlength=C))
    pairs = np.tril(np.outer(shares, shares), -1)
    mean = float((pairs * kept).sum() / pairs.sum()) if pairs.sum() > 0 else 0.0
    if not mean > 0:
        raise invalid(
            "noise",
            "must leave some of the order of pairs",
            f"{mean:.3g} of it",
            remedy="No weight of peers mends labels that say nothing.",
        )
    each = kept[np.tril_indices(C, -1)]
    words = (
        f"between {C} grades the noise keeps {each.min():.2f} to {each.max():.2f} of the signal, not one part"
    )
    more = "; weights from noisy labels are not covered by the proof" if lambdarank else ""
    return Alpha(float(np.clip(1.0 - mean, 0.0, 1.0)), True, words + more)


def point_alpha(noise: Any, relevant: npt.ArrayLike, loss: BinaryLoss) -> Alpha:
    """The weight of peers over documents that are given as relevant or not.

    >>> from cleanrank.losses.binary import LOSSES
    >>> shown = np.arange(10_000) < 502
    >>> point_alpha([[0.9627, 0.0373], [0.5037, 0.4963]], shown, LOSSES["sigmoid"]).value.__round__(3)
    0.518
    """
    T = noise_matrix(noise)
    if len(T) != 2:
        raise invalid("noise", "must be 2 x 2 for documents that are relevant or not", f"shape {T.shape}")
    e_plus, e_minus = float(T[1, 0]), float(T[0, 1])
    share = float(np.mean(np.asarray(relevant, dtype=np.float64)))
    true = float(np.clip((share - e_minus) / max(1 - e_plus - e_minus, 1e-12), 1e-9, 1 - 1e-9))
    found = optimal_alpha(e_plus, e_minus, pairs="points", prevalence=true, loss=loss)
    if not 0 <= found.value <= 1:
        raise invalid(
            "alpha='auto' over documents",
            f"must come out in [0, 1] where {share:.3g} of the documents are given as relevant",
            f"{found.value:.3g}",
            remedy="Give alpha as a number, or train on pairs, where e+ + e- is right.",
        )
    return found


def preference_alpha(noise: Any) -> Alpha:
    """The weight of peers over preferences in both orders: 2 e for preferences that are wrong with rate e.

    E noisy[l] = (1 - 2 e) l + 2 e m with m the mean of l over both targets, whatever the loss.

    >>> preference_alpha([[0.9, 0.1], [0.1, 0.9]]).value
    0.2
    """
    T = noise_matrix(noise)
    if T.shape != (2, 2) or abs(T[0, 1] - T[1, 0]) > 1e-9 or T[0, 1] >= 0.5:
        raise invalid("noise of preferences", "must be [[1 - e, e], [e, 1 - e]] with e below 1/2", T.tolist())
    return Alpha(float(2 * T[0, 1]), False, "exact for any loss: wrong preferences add 2 e of the peers")


def kept_signal(T: FloatArray) -> FloatArray:
    """kept(a, b) of every pair of true grades; antisymmetric.

    >>> kept_signal(np.array([[0.9, 0.1], [0.2, 0.8]])).round(3).tolist()
    [[0.0, -0.7], [0.7, 0.0]]
    """
    above = np.tril(np.ones_like(T), -1)
    found: FloatArray = T @ above @ T.T
    return found - found.T


def noise_matrix(noise: Any) -> FloatArray:
    """A matrix P(given | true) of an array, a profile or an estimate."""
    try:
        T = np.asarray(getattr(noise, "matrix", noise), dtype=np.float64)
    except (TypeError, ValueError):
        T = np.empty(0)
    square = T.ndim == 2 and T.shape[0] == T.shape[1] and len(T) > 1
    if not square or not np.allclose(T.sum(1), 1) or not (T >= 0).all():
        raise invalid(
            "noise",
            "must be a matrix P(given grade | true grade) whose rows sum to 1",
            f"shape {T.shape}" if T.ndim == 2 else repr(noise),
            remedy="A NoiseProfile or a NoiseEstimate will do.",
        )
    return T


def _true_shares(T: FloatArray, counts: npt.NDArray[np.int64]) -> FloatArray:
    given = counts / max(counts.sum(), 1)
    found = np.clip(np.linalg.lstsq(T.T, given, rcond=None)[0], 0.0, None)
    return np.asarray(found / found.sum()) if found.sum() > 0 else np.asarray(given)
