"""Compiled loops over the pairs of ragged queries: what all objectives share, and gradients of any loss.

A loss is one that ``read_slope`` can read. For a pair whose winner leads by d (in logits, sigma (s_i - s_j))
let g = psi'(d). The winner's gradient is +g, the loser's -g, and both receive the hessian

    h = max(psi''(d), |g| / STEP, LEAST),

which is positive where a loss is flat or curved downwards. A document's |gradient| is at most STEP times its
hessian, and so is a leaf's: before shrinkage no leaf moves a score by more than STEP logits. A table holds
one hessian a bin; beyond its reach of 64 logits the last one stands.

All pairs of a query need no sort: documents are kept in the order of their gains, so that those below one
are a slice.
"""

import numpy as np

from cleanrank.jit import kernel, prange
from cleanrank.types import Array

# exp(s_j - s_i) is a product of two exponentials per document; beyond this spread one would not be finite.
WIDEST = 600.0
# A slope is tabulated on bins of this width over [-REACH, REACH].
REACH = 64.0
WIDTH = 1.0 / 64.0
BINS = int(2 * REACH / WIDTH)
# A hessian is at least |slope| / STEP of its pair: no leaf moves a score by more than STEP logits.
STEP = 2.0
LEAST = 1e-6


@kernel()
def resort(score: Array, order: Array) -> None:
    """Brings the last order (rows of the query, best first, ties by row) up to date by insertion.

    Scores move little from tree to tree, so this is nearly linear; a long way to go becomes a full sort.
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


@kernel()
def longest_query(indptr: Array, first: int, last: int) -> int:
    """The most documents of a query among first..last - 1."""
    longest = 0
    for q in range(first, last):
        longest = max(longest, indptr[q + 1] - indptr[q])
    return longest


@kernel()
def load_ranked(
    score: Array, order: Array, sigma: float, s: Array, e: Array, lam: Array, hess: Array
) -> float:
    """Fills s with the scores by rank, e with exp(sigma (s - best)), the sums with 0; returns the spread."""
    best = score[order[0]]
    for k in range(len(order)):
        s[k] = score[order[k]]
        e[k] = np.exp(sigma * (s[k] - best))
        lam[k] = 0.0
        hess[k] = 0.0
    spread: float = sigma * (best - score[order[len(order) - 1]])
    return spread


@kernel()
def exponential_factor(s: Array, e: Array, i: int, sigma: float, spread: float) -> float:
    """The factor that makes e[k] exp(sigma (s_k - s_i)) for k > i; wide spreads are computed anew."""
    if not spread > WIDEST:
        return 1.0 / float(e[i])
    for k in range(i + 1, len(s)):
        e[k] = np.exp(sigma * (s[k] - s[i]))
    return 1.0


@kernel()
def store_sums(
    lam: Array, h: Array, order: Array, factor: float, sigma: float, norm: bool, total: float, grad: Array,
    hess: Array,
) -> None:  # fmt: skip
    """Writes the sums of a query back to its rows, with ``norm`` times log2(1 + S) / S of the total S."""
    if norm and total > 0.0:
        factor *= np.log2(1.0 + total) / total
    for k in range(len(order)):
        grad[order[k]] = lam[k] * factor
        hess[order[k]] = h[k] * factor * sigma


@kernel(parallel=True)
def rank_queries(score: Array, indptr: Array, bounds: Array, order: Array) -> None:
    """Brings the order of every query up to date."""
    for piece in prange(len(bounds) - 1):
        for q in range(bounds[piece], bounds[piece + 1]):
            resort(score[indptr[q] : indptr[q + 1]], order[indptr[q] : indptr[q + 1]])


# Slices as arguments of a function of its own: written inline this loop is not vectorised.
@kernel(fastmath=True)
def _polynomial_pairs(e: Array, inverse_e: float, c: Array, lam: Array, hess: Array) -> tuple[float, float]:
    """Adds the pairs of one winner with the documents of a slice; gives its own sums."""
    c0, c1, c2, c3, c4 = c[0], c[1], c[2], c[3], c[4]
    own, own_hess = 0.0, 0.0
    for j in range(len(e)):
        x = e[j] * inverse_e  # exp(-d)
        u = x / (1.0 + x)
        g = c0 + u * (c1 + u * (c2 + u * (c3 + u * c4)))
        rise = c1 + u * (2.0 * c2 + u * (3.0 * c3 + u * (4.0 * c4)))
        h = max(rise * (u * u - u), abs(g) * (1.0 / STEP), LEAST)
        own += g
        own_hess += h
        lam[j] -= g
        hess[j] += h
    return own, own_hess


# The table needs two loops: places are found on whole vectors, rows are fetched one by one.
@kernel(fastmath=True)
def _places(s: Array, score: float, sigma: float, row: Array, f: Array) -> None:
    """The row of every lead sigma (score - s_j) and its place in the bin."""
    for j in range(len(s)):
        place = (sigma * (score - s[j]) + REACH) * (1.0 / WIDTH)
        k = np.floor(min(max(place, -1.0), float(BINS)))
        row[j] = np.int32(k) + 1
        f[j] = place - max(k, 0.0)


@kernel()
def _past_kinks(cuts: Array, row: Array, f: Array) -> None:
    """Moves on to the row of the part of a bin beyond its kinks."""
    for j in range(len(row)):
        while f[j] >= cuts[row[j], 0]:
            row[j] = np.int32(cuts[row[j], 1])


@kernel(fastmath=True)
def _table_pairs(table: Array, row: Array, f: Array, lam: Array, hess: Array) -> tuple[float, float]:
    """As ``_polynomial_pairs``, with slopes and hessians of the table."""
    own, own_hess = 0.0, 0.0
    for j in range(len(row)):
        k, x = row[j], f[j]
        g = table[k, 0] + x * (table[k, 1] + x * table[k, 2])
        h = table[k, 3]
        own += g
        own_hess += h
        lam[j] -= g
        hess[j] += h
    return own, own_hess


@kernel()
def _polynomial_winner(
    e: Array, i: int, first: int, last: int, polynomial: Array, lam: Array, hess: Array
) -> None:  # fmt: skip
    """Adds the pairs of document i with those of the slice first:last."""
    own, own_hess = _polynomial_pairs(
        e[first:last], 1.0 / e[i], polynomial, lam[first:last], hess[first:last]
    )
    lam[i] += own
    hess[i] += own_hess


@kernel()
def _table_winner(
    s: Array, i: int, first: int, lower: int, sigma: float, table: Array, cuts: Array, tied_row: int,
    row: Array, f: Array, lam: Array, hess: Array,
) -> None:  # fmt: skip
    """Adds the pairs of document i with the documents >= ``first``, ties up to ``lower``, in one go."""
    n = len(s)
    rows, places = row[first:n], f[first:]
    _places(s[first:], s[i], sigma, rows, places)
    for j in range(lower - first):
        rows[j] += tied_row
    if len(cuts):
        _past_kinks(cuts, rows, places)
    own, own_hess = _table_pairs(table, rows, places, lam[first:], hess[first:])
    lam[i] += own
    hess[i] += own_hess


@kernel()
def _query_pairs(
    score: Array, order: Array, lower: Array, sigma: float, scale: float, polynomial: Array,
    tied_polynomial: Array, table: Array, cuts: Array, tied_row: int, grad: Array, hess: Array, work: Array,
    row: Array,
) -> None:  # fmt: skip
    n = len(order)
    e, s, lam, h, f = work[0, :n], work[1, :n], work[2, :n], work[3, :n], work[4, :n]
    best, worst = score.max(), score.min()
    wide = sigma * (best - worst) > WIDEST
    for k in range(n):
        s[k] = score[order[k]]
        lam[k] = 0.0
        h[k] = 0.0
    if len(polynomial):
        for k in range(n):
            e[k] = np.exp(sigma * (s[k] - best))
        for i in range(n - 1):
            if wide:
                # Products of two exponentials would not be finite: take that of the lead itself.
                for k in range(i, n):
                    e[k] = np.exp(min(max(sigma * (s[k] - s[i]), -WIDEST), WIDEST))
            if lower[i] < n:
                _polynomial_winner(e, i, lower[i], n, polynomial, lam, h)
            if len(tied_polynomial) and lower[i] > i + 1:
                _polynomial_winner(e, i, i + 1, lower[i], tied_polynomial, lam, h)
    else:
        for i in range(n - 1):
            first = i + 1 if tied_row else lower[i]
            if first < n:
                _table_winner(s, i, first, lower[i], sigma, table, cuts, tied_row, row, f, lam, h)
    for k in range(n):
        grad[order[k]] = lam[k] * (scale * sigma)
        hess[order[k]] = h[k] * (scale * sigma * sigma)


@kernel(parallel=True)
def pair_gradients(
    score: Array, indptr: Array, bounds: Array, order: Array, lower: Array, sigma: float, scale: Array,
    polynomial: Array, tied_polynomial: Array, table: Array, cuts: Array, tied_row: int, grad: Array,
    hess: Array,
) -> None:  # fmt: skip
    """Gradients of all pairs of every query.

    ``order`` holds the documents of a query by falling gain, ``lower`` the place in it where smaller gains
    begin, ``scale`` a factor for each query; readings of slopes as of ``SlopeReading``. Ties count when they
    have a polynomial or, in the same table, rows that begin at ``tied_row``.
    """
    for piece in prange(len(bounds) - 1):
        first, last = bounds[piece], bounds[piece + 1]
        longest = longest_query(indptr, first, last)
        work = np.empty((5, longest))
        row = np.empty(longest, np.int32)
        for q in range(first, last):
            a, b = indptr[q], indptr[q + 1]
            if b - a < 2 or scale[q] == 0.0:
                grad[a:b] = np.float32(0.0)
                hess[a:b] = np.float32(0.0)
            else:
                _query_pairs(
                    score[a:b], order[a:b], lower[a:b], sigma, scale[q], polynomial, tied_polynomial,
                    table, cuts, tied_row, grad[a:b], hess[a:b], work, row,
                )  # fmt: skip


@kernel(fastmath=True)
def _deltas(
    s: Array, g: Array, d: Array, score: float, gain: float, discount: float, swap: bool, distance: float,
    delta: Array,
) -> None:  # fmt: skip
    """What the pairs of one document with those below it weigh, negative when it should not stand above."""
    for j in range(len(s)):
        gap = gain - g[j]
        size = gap * (discount - d[j]) if swap else (1.0 if gap > 0.0 else 0.0) - (1.0 if gap < 0.0 else 0.0)
        if distance > 0.0:
            size /= distance + (score - s[j])
        delta[j] = size


@kernel(fastmath=True)
def _signed_places(s: Array, score: float, sigma: float, delta: Array, row: Array, f: Array) -> None:
    """As ``_places``, with the lead of the one that should win."""
    for j in range(len(s)):
        lead = sigma * (score - s[j])
        place = ((lead if delta[j] > 0.0 else -lead) + REACH) * (1.0 / WIDTH)
        k = np.floor(min(max(place, -1.0), float(BINS)))
        row[j] = np.int32(k) + 1
        f[j] = place - max(k, 0.0)


@kernel(fastmath=True)
def _weighed_table_pairs(
    table: Array, row: Array, f: Array, delta: Array, lam: Array, hess: Array
) -> tuple[float, float, float]:
    own, own_hess, total = 0.0, 0.0, 0.0
    for j in range(len(row)):
        k, x, size = row[j], f[j], delta[j]
        g = size * (table[k, 0] + x * (table[k, 1] + x * table[k, 2]))
        h = abs(size) * table[k, 3]
        own += g
        own_hess += h
        total += abs(g)
        lam[j] -= g
        hess[j] += h
    return own, own_hess, total


@kernel(fastmath=True)
def _weighed_polynomial_pairs(
    e: Array, inverse_e: float, delta: Array, c: Array, lam: Array, hess: Array
) -> tuple[float, float, float]:
    c0, c1, c2, c3, c4 = c[0], c[1], c[2], c[3], c[4]
    own, own_hess, total = 0.0, 0.0, 0.0
    for j in range(len(e)):
        x = e[j] * inverse_e
        size = delta[j]
        u = (x if size > 0.0 else 1.0) / (1.0 + x)
        g = c0 + u * (c1 + u * (c2 + u * (c3 + u * c4)))
        rise = c1 + u * (2.0 * c2 + u * (3.0 * c3 + u * (4.0 * c4)))
        h = abs(size) * max(rise * (u * u - u), abs(g) * (1.0 / STEP), LEAST)
        g *= size
        own += g
        own_hess += h
        total += abs(g)
        lam[j] -= g
        hess[j] += h
    return own, own_hess, total


@kernel()
def _query_top_pairs(
    score: Array, gain: Array, order: Array, discount: Array, scale: float, sigma: float, norm: bool,
    swap: bool, level: int, polynomial: Array, table: Array, cuts: Array, grad: Array, hess: Array,
    work: Array, row: Array,
) -> None:  # fmt: skip
    n = len(order)
    e, s, g, lam, h = work[0, :n], work[1, :n], work[2, :n], work[3, :n], work[4, :n]
    delta, f, d = work[5, :n], work[6, :n], discount[:n]
    spread = load_ranked(score, order, sigma, s, e, lam, h)
    for k in range(n):
        g[k] = gain[order[k]]
    distance = 0.01 if norm and spread != 0.0 else 0.0
    total = 0.0
    for i in range(min(level, n - 1)):
        m = i + 1
        _deltas(s[m:], g[m:], d[m:], s[i], g[i], d[i], swap, distance, delta[m:])
        if len(polynomial):
            inverse_e = exponential_factor(s, e, i, sigma, spread)
            own, own_hess, size = _weighed_polynomial_pairs(
                e[m:], inverse_e, delta[m:], polynomial, lam[m:], h[m:]
            )
        else:
            _signed_places(s[m:], s[i], sigma, delta[m:], row[m:n], f[m:])
            if len(cuts):
                _past_kinks(cuts, row[m:n], f[m:])
            own, own_hess, size = _weighed_table_pairs(table, row[m:n], f[m:], delta[m:], lam[m:], h[m:])
        lam[i] += own
        h[i] += own_hess
        total += size
    factor = sigma * scale
    store_sums(lam, h, order, factor, sigma, norm, total * (2.0 * factor), grad, hess)


@kernel(parallel=True)
def top_pair_gradients(
    score: Array, gain: Array, indptr: Array, bounds: Array, order: Array, discount: Array, scale: Array,
    sigma: float, norm: bool, swap: bool, level: int, polynomial: Array, table: Array, cuts: Array,
    grad: Array, hess: Array,
) -> None:  # fmt: skip
    """Gradients of the pairs with one document among the first ``level`` of the ranking.

    With ``swap`` a pair is weighed by the change of DCG when its documents change places, as in LambdaRank;
    ``norm`` as there. ``order`` is kept from call to call.
    """
    for piece in prange(len(bounds) - 1):
        first, last = bounds[piece], bounds[piece + 1]
        longest = longest_query(indptr, first, last)
        work = np.empty((7, longest))
        row = np.empty(longest, np.int32)
        for q in range(first, last):
            a, b = indptr[q], indptr[q + 1]
            resort(score[a:b], order[a:b])
            if b - a < 2 or scale[q] == 0.0:
                grad[a:b] = np.float32(0.0)
                hess[a:b] = np.float32(0.0)
            else:
                _query_top_pairs(
                    score[a:b], gain[a:b], order[a:b], discount, scale[q], sigma, norm, swap, level,
                    polynomial, table, cuts, grad[a:b], hess[a:b], work, row,
                )  # fmt: skip
