"""Compiled parts of the peer objective: permutations of gains and the mean gradients over all of them."""

import numpy as np
from numba import prange

from cleanrank.compiled import kernel
from cleanrank.losses.objectives.pairs import WIDEST
from cleanrank.types import Array


@kernel()
def _mixed(z: np.uint64) -> np.uint64:
    """One step of splitmix64: neighbours among counters become unrelated words."""
    z += np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@kernel()
def _shuffle(values: Array, key: np.uint64) -> None:
    for k in range(len(values) - 1, 0, -1):
        # The high half of a word times the size: uniform to 2^-32 of a share.
        word = _mixed(key + np.uint64(k)) >> np.uint64(32)
        m = np.int64((word * np.uint64(k + 1)) >> np.uint64(32))
        values[k], values[m] = values[m], values[k]


@kernel(parallel=True)
def permute_within(gain: Array, indptr: Array, key: np.uint64, out: Array) -> None:
    """Permutes the gains of every query; a query's permutation depends on the key and its number alone."""
    for q in prange(len(indptr) - 1):
        a, b = indptr[q], indptr[q + 1]
        out[a:b] = gain[a:b]
        _shuffle(out[a:b], _mixed(key ^ _mixed(np.uint64(q))))


@kernel()
def permute_all(gain: Array, key: np.uint64, out: Array) -> None:
    """Permutes the gains of all rows."""
    out[:] = gain
    _shuffle(out, _mixed(key))


@kernel(parallel=True)
def mean_gain_gap(gain: Array, indptr: Array) -> Array:
    """The mean |G_a - G_b| over the pairs a != b of every query; 0 for a single document."""
    found = np.zeros(len(indptr) - 1)
    for q in prange(len(indptr) - 1):
        rising = np.sort(gain[indptr[q] : indptr[q + 1]])
        n = len(rising)
        for k in range(n):
            found[q] += (2 * k - n + 1) * rising[k]
        if n > 1:
            found[q] *= 2.0 / (n * (n - 1.0))
    return found


# Slices as arguments of a function of its own: written inline this loop is not vectorised.
@kernel(fastmath=True)
def _below(
    e: Array, s: Array, d: Array, inverse_e: float, score: float, discount: float, distance: float,
    lam: Array, hess: Array,
) -> tuple[float, float, float]:  # fmt: skip
    own, own_hess, total = 0.0, 0.0, 0.0
    for j in range(len(s)):
        x = e[j] * inverse_e
        inverse = 1.0 / (1.0 + x)
        delta = discount - d[j]
        if distance > 0.0:
            delta /= distance + (score - s[j])
        l = delta * (inverse - 0.5)
        h = delta * x * inverse * inverse
        own += l
        own_hess += h
        total += delta
        lam[j] -= l
        hess[j] += h
    return own, own_hess, total


@kernel()
def _query_expected(
    score: Array, order: Array, discount: Array, scale: float, sigma: float, norm: bool, level: int,
    grad: Array, hess: Array, work: Array,
) -> None:  # fmt: skip
    n = len(order)
    e, s, lam, h = work[0, :n], work[1, :n], work[2, :n], work[3, :n]
    d = discount[:n]
    best = score[order[0]]
    spread = sigma * (best - score[order[n - 1]])
    for k in range(n):
        s[k] = score[order[k]]
        e[k] = np.exp(sigma * (s[k] - best))
        lam[k] = 0.0
        h[k] = 0.0
    distance = 0.01 if norm and spread != 0.0 else 0.0
    total = 0.0
    for i in range(min(level, n - 1)):
        if spread > WIDEST:
            for k in range(i + 1, n):
                e[k] = np.exp(sigma * (s[k] - s[i]))
        inverse_e = 1.0 if spread > WIDEST else 1.0 / e[i]
        own, own_hess, size = _below(
            e[i + 1 :], s[i + 1 :], d[i + 1 :], inverse_e, s[i], d[i], distance, lam[i + 1 :], h[i + 1 :]
        )
        lam[i] += own
        h[i] += own_hess
        total += size
    factor = sigma * scale
    # |lambda| is sigma delta times p or 1 - p, each half of the time: the mean of S = 2 sum |lambda|.
    total *= factor
    if norm and total > 0.0:
        factor *= np.log2(1.0 + total) / total
    for k in range(n):
        grad[order[k]] = lam[k] * factor
        hess[order[k]] = h[k] * factor * sigma


@kernel(parallel=True)
def expected_gradients(
    score: Array, indptr: Array, bounds: Array, order: Array, discount: Array, scale: Array, sigma: float,
    norm: bool, level: int, grad: Array, hess: Array,
) -> None:  # fmt: skip
    """Mean gradients over all permutations of each query; ``scale`` is gbar / Z, ``order`` is up to date."""
    for piece in prange(len(bounds) - 1):
        first, last = bounds[piece], bounds[piece + 1]
        longest = 0
        for q in range(first, last):
            longest = max(longest, indptr[q + 1] - indptr[q])
        work = np.empty((4, longest))
        for q in range(first, last):
            a, b = indptr[q], indptr[q + 1]
            if b - a < 2 or scale[q] == 0.0:
                grad[a:b] = np.float32(0.0)
                hess[a:b] = np.float32(0.0)
            else:
                _query_expected(
                    score[a:b], order[a:b], discount, scale[q], sigma, norm, level, grad[a:b], hess[a:b], work
                )


@kernel(parallel=True)
def subtract_peers(grad: Array, hess: Array, peer_grad: Array, peer_hess: Array, alpha: float) -> None:
    """Puts g - alpha g' and max(h - alpha h', .001 h) in place; alpha h' stands in where h is 0."""
    for k in prange(len(grad)):
        h, peer = np.float64(hess[k]), alpha * peer_hess[k]
        grad[k] = np.float32(grad[k] - alpha * peer_grad[k])
        hess[k] = np.float32(max(h - peer, 1e-3 * h) if h > 0.0 else peer)
