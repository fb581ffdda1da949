"""Compiled sums of the logistic loss over the pairs of padded lists, with their gradients.

A pair has a better document i and a worse one j, or two of one grade; d = sigma (s_i - s_j). Summed over the
orders in which the pair counts, every mixture of log(1 + exp(-d)) and log(1 + exp(d)) is

    a log(1 + exp(-d)) + c d,   with slope  c - a / (1 + exp(d))

so four numbers say it all: (a, c) of pairs of different grades and (a, c) of ties. Plain pairs are taken in
the order of grades, where the pairs of a document are two slices; pairs weighted by the change of a gain
measure in the order of ranks, where only the first k documents have any.
"""

import numpy as np

from cleanrank.jit import kernel, prange
from cleanrank.types import Array

# exp(s_j - s_i) is a product of two exponentials per document; beyond this spread one would not be finite.
WIDEST = 600.0
TERMS = 13


@kernel(inline=True)
def _log1p(x: float) -> float:
    """log(1 + x) for x in [0, 1] to 1e-14: 2 atanh(x / (2 + x)) as a series, which is vectorised."""
    z = x / (2.0 + x)
    square = z * z
    total = 0.0
    for k in range(TERMS, 0, -1):
        total = total * square + 1.0 / (2 * k - 1)
    return 2.0 * z * total


# Slices as arguments of a function of its own: written inline such a loop is not vectorised.
@kernel(fastmath=True)
def _plain(
    e: Array, s: Array, w: Array, inverse_e: float, score: float, weight: float, a: float, c: float,
    slope: Array,
) -> tuple[float, float]:  # fmt: skip
    """Adds one document's pairs with the documents of a slice, none of them better; value and own slope."""
    total, own = 0.0, 0.0
    for j in range(len(s)):
        d = score - s[j]
        x = e[j] * inverse_e  # exp(-d)
        inverse = 1.0 / (1.0 + x)
        small = min(x, 1.0 / x)
        v = weight * w[j]
        total += v * (a * (max(-d, 0.0) + _log1p(small)) + c * d)
        g = v * (c - a * x * inverse)
        own += g
        slope[j] -= g
    return total, own


@kernel(fastmath=True)
def _swapped(
    e: Array, s: Array, w: Array, gain: Array, discount: Array, inverse_e: float, score: float, weight: float,
    own_gain: float, own_discount: float, a: float, c: float, slope: Array,
) -> tuple[float, float]:  # fmt: skip
    """As ``_plain`` for a document and those ranked below it, times |change of gain x change of discount|."""
    total, own = 0.0, 0.0
    for j in range(len(s)):
        u = score - s[j]
        x = e[j] * inverse_e  # exp(-u), at most 1
        gap = own_gain - gain[j]
        v = weight * w[j] * abs(gap) * (own_discount - discount[j])
        right = gap > 0.0
        inverse = 1.0 / (1.0 + x)
        d = u if right else -u
        total += v * (a * (_log1p(x) + (0.0 if right else u)) + c * d)
        g = v * (c - a * inverse * (x if right else 1.0))
        g = g if right else -g
        own += g
        slope[j] -= g
    return total, own


@kernel(inline=True)
def _exponentials(s: Array, best: float, spread: float, e: Array, start: int) -> float:
    """Fills e so that e[j] x the result = exp(s[j] - s[start]) for j > start."""
    if spread <= WIDEST:
        return 1.0 / float(e[start])
    for k in range(start + 1, len(s)):
        # Beyond +-700 the loss is linear and its slope 0 or 1 to the last bit.
        e[k] = np.exp(min(max(s[k] - s[start], -700.0), 700.0))
    return 1.0


@kernel()
def _load(
    score: Array, weight: Array, order: Array, sigma: float, s: Array, w: Array, e: Array, slope: Array
) -> tuple[float, float]:
    """Brings a list into an order; the best score and the spread, NaN when a score is not finite."""
    n = len(order)
    best, worst = -np.inf, np.inf
    for k in range(n):
        s[k] = sigma * score[order[k]]
        w[k] = weight[order[k]]
        slope[k] = 0.0
        if not np.isfinite(s[k]):
            return 0.0, np.nan
        best, worst = max(best, s[k]), min(worst, s[k])
    # In the middle of the spread, so that neither end leaves the range of exp.
    middle = 0.5 * (best + worst)
    if best - worst <= WIDEST:
        for k in range(n):
            e[k] = np.exp(s[k] - middle)
    return best, best - worst


@kernel()
def _plain_list(
    score: Array, label: Array, weight: Array, order: Array, sigma: float, mix: Array, gradient: Array,
    work: Array,
) -> float:  # fmt: skip
    n = len(order)
    s, w, e, slope = work[0, :n], work[1, :n], work[2, :n], work[3, :n]
    best, spread = _load(score, weight, order, sigma, s, w, e, slope)
    total = 0.0 if spread == spread else np.nan
    if n < 2 or spread != spread:
        gradient[order] = total
        return total
    end = 0
    for i in range(n - 1):
        if i >= end:
            end = i + 1
            while end < n and label[order[end]] == label[order[i]]:
                end += 1
        inverse_e = _exponentials(s, best, spread, e, i)
        own = 0.0
        if mix[2] != 0.0 or mix[3] != 0.0:
            lo, hi = i + 1, end
            value, g = _plain(
                e[lo:hi], s[lo:hi], w[lo:hi], inverse_e, s[i], w[i], mix[2], mix[3], slope[lo:hi]
            )
            total += value
            own += g
        value, g = _plain(e[end:], s[end:], w[end:], inverse_e, s[i], w[i], mix[0], mix[1], slope[end:])
        total += value
        slope[i] += own + g
    for k in range(n):
        gradient[order[k]] = sigma * slope[k]
    return total


@kernel()
def _swapped_list(
    score: Array, weight: Array, gain: Array, discount: Array, order: Array, sigma: float, mix: Array,
    gradient: Array, work: Array,
) -> float:  # fmt: skip
    n = len(order)
    s, w, e, slope = work[0, :n], work[1, :n], work[2, :n], work[3, :n]
    g, d = work[4, :n], work[5, :n]
    best, spread = _load(score, weight, order, sigma, s, w, e, slope)
    total = 0.0 if spread == spread else np.nan
    if n < 2 or spread != spread:
        gradient[order] = total
        return total
    for k in range(n):
        g[k] = gain[order[k]]
        d[k] = discount[order[k]]
    for i in range(n - 1):
        if d[i] == 0.0:
            # Ranks only fall in worth: no pair further down changes anything.
            break
        inverse_e = _exponentials(s, best, spread, e, i)
        lo = i + 1
        value, own = _swapped(
            e[lo:], s[lo:], w[lo:], g[lo:], d[lo:], inverse_e, s[i], w[i], g[i], d[i], mix[0], mix[1],
            slope[lo:],
        )  # fmt: skip
        total += value
        slope[i] += own
    for k in range(n):
        gradient[order[k]] = sigma * slope[k]
    return total


@kernel(parallel=True)
def plain_sums(
    scores: Array, labels: Array, weights: Array, lengths: Array, order: Array, sigma: float, mix: Array,
    sums: Array, gradient: Array,
) -> None:  # fmt: skip
    """Sums (B,) and gradients (B, L) over pairs; ``order`` lists documents by descending label."""
    for q in prange(len(scores)):
        work = np.empty((4, lengths[q]))
        sums[q] = _plain_list(
            scores[q], labels[q], weights[q], order[q, : lengths[q]], sigma, mix, gradient[q], work
        )


@kernel(parallel=True)
def swapped_sums(
    scores: Array, weights: Array, gains: Array, discounts: Array, lengths: Array, order: Array, sigma: float,
    mix: Array, sums: Array, gradient: Array,
) -> None:  # fmt: skip
    """As ``plain_sums`` with pairs weighted by a gain measure; ``order`` lists documents by rank."""
    for q in prange(len(scores)):
        work = np.empty((6, lengths[q]))
        sums[q] = _swapped_list(
            scores[q], weights[q], gains[q], discounts[q], order[q, : lengths[q]], sigma, mix, gradient[q],
            work,
        )  # fmt: skip
