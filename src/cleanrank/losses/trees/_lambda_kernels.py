"""Compiled LambdaRank gradients of ragged queries, in LightGBM's definition.

In a query let s be the scores sorted downwards, G the gains, D(r) = 1/log2(r + 1) the discount of rank r and
Z the ideal DCG up to rank K, the truncation level. A pair (i, j) counts when G_i > G_j and one of the two
stands at a rank <= K:

    delta = (G_i - G_j) |D_i - D_j| / Z,   with ``norm`` divided by .01 + |s_i - s_j| unless all scores tie
    p = 1 / (1 + exp(sigma (s_i - s_j)))
    lambda = sigma p delta,   h = sigma^2 p (1 - p) delta

Document i receives gradient -lambda, j +lambda, both the hessian h. With ``norm`` all of a query are
multiplied by log2(1 + S) / S, S = 2 sum lambda.

Two modes: *exact* computes in float64 on whole vectors; *parity* repeats LightGBM's arithmetic step by step,
with the sigmoid from a table of 2^20 entries and float32 sums in the order of the pairs.
"""

import numpy as np

from cleanrank.jit import kernel, prange
from cleanrank.types import Array

BINS = 1 << 20
# exp(s_j - s_i) is a product of two exponentials per document; beyond this spread one would not be finite.
WIDEST = 600.0


@kernel()
def resort(score: Array, order: Array) -> None:
    """Brings last round's order (rows of the query, best first, ties by row) up to date by insertion.

    Scores move little from round to round, so this is nearly linear; a long way to go becomes a full sort.
    """
    n = len(order)
    budget = 16 * n + 64
    for k in range(1, n):
        row = order[k]
        s = score[row]
        m = k - 1
        while m >= 0 and (score[order[m]] < s or (score[order[m]] == s and order[m] > row)):
            order[m + 1] = order[m]
            m -= 1
        order[m + 1] = row
        budget -= k - m
        if budget < 0:
            order[:] = np.argsort(-score, kind="mergesort")
            return


# Slices as arguments of a function of its own: written inline this loop is not vectorised.
@kernel(fastmath=True)
def _below(
    e: Array, s: Array, g: Array, d: Array, inverse_e: float, score: float, gain: float, discount: float,
    distance: float, lam: Array, hess: Array,
) -> tuple[float, float, float]:  # fmt: skip
    """Adds the pairs of one document with those below it; gives its own sums and the sum of |lambda|."""
    own, own_hess, total = 0.0, 0.0, 0.0
    for j in range(len(s)):
        x = e[j] * inverse_e  # exp(-sigma (score - s_j))
        inverse = 1.0 / (1.0 + x)
        gap = gain - g[j]
        delta = gap * (discount - d[j])
        if distance > 0.0:
            delta /= distance + (score - s[j])
        # p = x/(1+x) when the better document stands above, 1/(1+x) when it stands below.
        l = delta * inverse * (x if gap > 0.0 else 1.0)
        h = abs(delta) * x * inverse * inverse
        own += l
        own_hess += h
        total += abs(l)
        lam[j] += l
        hess[j] += h
    return own, own_hess, total


@kernel()
def _query_exact(
    score: Array, gain: Array, order: Array, discount: Array, inverse_ideal: float, sigma: float, norm: bool,
    level: int, grad: Array, hess: Array, work: Array,
) -> None:  # fmt: skip
    n = len(order)
    e, s, g, lam, h = work[0, :n], work[1, :n], work[2, :n], work[3, :n], work[4, :n]
    d = discount[:n]
    best = score[order[0]]
    spread = sigma * (best - score[order[n - 1]])
    for k in range(n):
        s[k] = score[order[k]]
        g[k] = gain[order[k]]
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
            e[i + 1 :], s[i + 1 :], g[i + 1 :], d[i + 1 :], inverse_e, s[i], g[i], d[i], distance,
            lam[i + 1 :], h[i + 1 :],
        )  # fmt: skip
        lam[i] -= own
        h[i] += own_hess
        total += size
    factor = sigma * inverse_ideal
    total *= 2.0 * factor
    if norm and total > 0.0:
        factor *= np.log2(1.0 + total) / total
    for k in range(n):
        grad[order[k]] = lam[k] * factor
        hess[order[k]] = h[k] * factor * sigma


def sigmoid_table(sigma: float) -> Array:
    """1 / (1 + exp(sigma x)) at 2^20 points, as LightGBM tabulates it."""
    edge = 50.0 / sigma / 2
    factor = BINS / (2 * edge)
    points = np.arange(BINS) / factor - edge
    table: Array = 1.0 / (1.0 + np.exp(points * sigma))
    return table


# Three loops instead of one, on slices: the first two are vectorised, the third waits for its own sums.
@kernel()
def _parity_deltas(
    s: Array, g: Array, d: Array, score: float, gain: float, discount: float, inverse_ideal: float,
    small: float, use: float, sigma: float, delta: Array, place: Array,
) -> None:  # fmt: skip
    """The |delta NDCG| of one document's pairs and their places in the table."""
    edge = 50.0 / sigma / 2
    factor = BINS / (2 * edge)
    for j in range(len(s)):
        distance = score - s[j]
        gap = gain - g[j]
        delta[j] = abs(gap) * (discount - d[j]) * inverse_ideal / (small + use * distance)
        place[j] = np.int32((np.copysign(distance, gap) + edge) * factor)


@kernel()
def _clamped_places(s: Array, g: Array, score: float, gain: float, sigma: float, place: Array) -> None:
    """Places in the table when some scores lie further apart than it reaches."""
    edge = 50.0 / sigma / 2
    factor = BINS / (2 * edge)
    for j in range(len(s)):
        signed = np.copysign(score - s[j], gain - g[j])
        if signed <= -edge:
            place[j] = 0
        elif signed >= edge:
            place[j] = BINS - 1
        else:
            place[j] = np.int32((signed + edge) * factor)


@kernel()
def _parity_lambdas(table: Array, place: Array, sigma: float, delta: Array, hess: Array) -> None:
    """Turns the deltas into -|lambda| and finds the hessians."""
    for j in range(len(place)):
        p = table[place[j]]
        hess[j] = p * (1.0 - p) * (sigma * sigma * delta[j])
        delta[j] = p * (-sigma * delta[j])


@kernel()
def _parity_sums(
    pair_lam: Array, pair_hess: Array, g: Array, gain: float, own: np.float32, own_hess: np.float32,
    total: float, lam: Array, hess: Array,
) -> tuple[np.float32, np.float32, float]:  # fmt: skip
    """Adds in float32, pair by pair; pairs of equal gains add zeros, which leaves every sum as it is."""
    for j in range(len(g)):
        l = np.float32(pair_lam[j])
        h = np.float32(pair_hess[j])
        l = -l if gain < g[j] else l
        own = np.float32(own + l)
        lam[j] = np.float32(lam[j] - l)
        own_hess = np.float32(own_hess + h)
        hess[j] = np.float32(hess[j] + h)
        total -= 2 * pair_lam[j]
    return own, own_hess, total


@kernel()
def _query_parity(
    score: Array, gain: Array, order: Array, discount: Array, inverse_ideal: float, sigma: float, norm: bool,
    level: int, grad: Array, hess: Array, table: Array, work: Array, single: Array, place: Array,
) -> None:  # fmt: skip
    n = len(order)
    s, g, pair_lam, pair_hess = work[0, :n], work[1, :n], work[2, :n], work[3, :n]
    d, lam, h = discount[:n], single[0, :n], single[1, :n]
    for k in range(n):
        s[k] = score[order[k]]
        g[k] = gain[order[k]]
        lam[k] = np.float32(0.0)
        h[k] = np.float32(0.0)
    apart = norm and s[0] != s[n - 1]
    small, use = (np.float64(np.float32(0.01)), 1.0) if apart else (1.0, 0.0)
    wide = s[0] - s[n - 1] > 24.0 / sigma
    total = 0.0
    for i in range(min(level, n - 1)):
        k = i + 1
        _parity_deltas(
            s[k:], g[k:], d[k:], s[i], g[i], d[i], inverse_ideal, small, use, sigma, pair_lam[k:], place[k:n]
        )
        if wide:
            _clamped_places(s[k:], g[k:], s[i], g[i], sigma, place[k:n])
        _parity_lambdas(table, place[k:n], sigma, pair_lam[k:], pair_hess[k:])
        lam[i], h[i], total = _parity_sums(
            pair_lam[k:], pair_hess[k:], g[k:], g[i], lam[i], h[i], total, lam[k:], h[k:]
        )
    scale = np.log2(1 + total) / total if norm and total > 0 else 1.0
    for k in range(n):
        grad[order[k]] = np.float32(lam[k] * scale)
        hess[order[k]] = np.float32(h[k] * scale)


@kernel(parallel=True)
def lambda_gradients(
    score: Array, gain: Array, indptr: Array, bounds: Array, order: Array, discount: Array,
    inverse_ideal: Array, sigma: float, norm: bool, level: int, table: Array, grad: Array, hess: Array,
) -> None:  # fmt: skip
    """Gradients of all queries.

    ``bounds`` cuts the queries into pieces of work, ``order`` is kept from call to call, and an empty
    ``table`` means the exact mode.
    """
    for piece in prange(len(bounds) - 1):
        first, last = bounds[piece], bounds[piece + 1]
        longest = 0
        for q in range(first, last):
            longest = max(longest, indptr[q + 1] - indptr[q])
        work = np.empty((5, longest))
        single = np.empty((2, longest), np.float32)
        place = np.empty(longest, np.int32)
        for q in range(first, last):
            a, b = indptr[q], indptr[q + 1]
            resort(score[a:b], order[a:b])
            if b - a < 2 or inverse_ideal[q] == 0.0:
                grad[a:b] = np.float32(0.0)
                hess[a:b] = np.float32(0.0)
            elif len(table):
                _query_parity(
                    score[a:b], gain[a:b], order[a:b], discount, inverse_ideal[q], sigma, norm, level,
                    grad[a:b], hess[a:b], table, work, single, place,
                )  # fmt: skip
            else:
                _query_exact(
                    score[a:b], gain[a:b], order[a:b], discount, inverse_ideal[q], sigma, norm, level,
                    grad[a:b], hess[a:b], work,
                )  # fmt: skip


@kernel(parallel=True)
def rank_queries(score: Array, indptr: Array, bounds: Array, order: Array) -> None:
    """Brings the order of every query up to date."""
    for piece in prange(len(bounds) - 1):
        for q in range(bounds[piece], bounds[piece + 1]):
            resort(score[indptr[q] : indptr[q + 1]], order[indptr[q] : indptr[q + 1]])


@kernel(parallel=True)
def ideal_dcg(gain: Array, indptr: Array, discount: Array, level: int) -> Array:
    """The DCG of every query's ideal ranking, cut at ``level``."""
    found = np.zeros(len(indptr) - 1)
    for q in prange(len(indptr) - 1):
        best = np.sort(gain[indptr[q] : indptr[q + 1]])[::-1]
        for k in range(min(level, len(best))):
            found[q] += best[k] * discount[k]
    return found
