"""Compiled loops of RankBoost: the pull on every document without a list of pairs, and edges of thresholds.

The weight of a pair (i above j) is w_i w_j exp(H_j - H_i), H the scores so far. So what all pairs want of a
document d, the sum of the weights of its pairs with lower grades minus that of its pairs with higher ones, is

    pull(d) = w_d exp(-H_d) sum_(lower j) w_j exp(H_j) - w_d exp(H_d) sum_(higher i) w_i exp(-H_i),

from sums by query and grade. A slot is one grade of one query; slots of a query are consecutive, in ascending
order of the grade. Within a slot exponents are taken from its lowest and highest score, and overall from the
heaviest pair of all (``top``), so that no exponent is above 0, whatever the scores.
"""

import numpy as np

from cleanrank.jit import kernel, prange
from cleanrank.types import Array


@kernel(parallel=True)
def slot_ranges(
    scores: Array, slot: Array, indptr: Array, slots: Array, bounds: Array, low: Array, high: Array,
    heaviest: Array,
) -> None:  # fmt: skip
    """Lowest and highest score of each slot; per query, the exponent of its heaviest pair (-inf: none)."""
    for b in prange(len(bounds) - 1):
        for q in range(bounds[b], bounds[b + 1]):
            for s in range(slots[q], slots[q + 1]):
                low[s], high[s] = np.inf, -np.inf
            for d in range(indptr[q], indptr[q + 1]):
                s = slot[d]
                low[s] = min(low[s], scores[d])
                high[s] = max(high[s], scores[d])
            below, most = -np.inf, -np.inf
            for s in range(slots[q], slots[q + 1]):
                most = max(most, below - low[s])
                below = max(below, high[s])
            heaviest[q] = most


@kernel(parallel=True)
def pulls(
    scores: Array, weights: Array, slot: Array, indptr: Array, slots: Array, bounds: Array, low: Array,
    high: Array, top: float, as_higher: Array, as_lower: Array, parts: Array, pull: Array, total: Array,
) -> None:  # fmt: skip
    """The pull on every document and the sum of the pair weights of each query, both times exp(-top)."""
    for b in prange(len(bounds) - 1):
        for q in range(bounds[b], bounds[b + 1]):
            first, last = slots[q], slots[q + 1]
            total[q] = 0.0
            if last - first < 2:
                for d in range(indptr[q], indptr[q + 1]):
                    pull[d] = 0.0
                continue
            _query_pulls(
                scores, weights, slot, indptr[q], indptr[q + 1], first, last, low, high, top, as_higher,
                as_lower, parts, pull, total, q,
            )  # fmt: skip


@kernel()
def _query_pulls(
    scores: Array, weights: Array, slot: Array, start: int, stop: int, first: int, last: int, low: Array,
    high: Array, top: float, as_higher: Array, as_lower: Array, parts: Array, pull: Array, total: Array,
    q: int,
) -> None:  # fmt: skip
    """One query; as_higher and as_lower hold sums over each slot, then over the slots it has pairs with."""
    up, down = parts[0], parts[1]
    for s in range(first, last):
        as_higher[s] = as_lower[s] = 0.0
    for d in range(start, stop):
        s = slot[d]
        up[d] = weights[d] * np.exp(low[s] - scores[d])
        down[d] = weights[d] * np.exp(scores[d] - high[s])
        as_higher[s] += up[d]
        as_lower[s] += down[d]
    below = np.empty(last - first)
    reference, running = -np.inf, 0.0
    for s in range(first, last):
        below[s - first] = running * np.exp(reference - low[s] - top)
        total[q] += as_higher[s] * below[s - first]
        largest = max(reference, high[s])
        running = running * np.exp(reference - largest) + as_lower[s] * np.exp(high[s] - largest)
        reference = largest
    reference, running = -np.inf, 0.0
    for s in range(last - 1, first - 1, -1):
        above = running * np.exp(reference + high[s] - top)
        largest = max(reference, -low[s])
        running = running * np.exp(reference - largest) + as_higher[s] * np.exp(-low[s] - largest)
        reference = largest
        as_lower[s] = above
        as_higher[s] = below[s - first]
    for d in range(start, stop):
        s = slot[d]
        pull[d] = as_higher[s] * up[d] - as_lower[s] * down[d]


@kernel()
def _sums_by_bin(bins: Array, pull: Array, sums: Array) -> None:
    for d in range(len(bins)):
        sums[bins[d]] += pull[d]


@kernel()
def _sums_of_four(bins: Array, pull: Array, sums: Array) -> None:
    """Four features at a time: additions to one bin wait for each other, those of other features do not."""
    a, b, c, d = bins[0], bins[1], bins[2], bins[3]
    sum_a, sum_b, sum_c, sum_d = sums[0], sums[1], sums[2], sums[3]
    for i in range(len(pull)):
        p = pull[i]
        sum_a[a[i]] += p
        sum_b[b[i]] += p
        sum_c[c[i]] += p
        sum_d[d[i]] += p


@kernel(parallel=True)
def best_edges(bins: Array, n_bins: Array, pull: Array, both: bool, out: Array) -> None:
    """Per feature, the largest sum of the pulls above one of its thresholds; of |sum| with ``both``."""
    for block in prange((len(bins) + 3) // 4):
        start, stop = 4 * block, min(4 * block + 4, len(bins))
        sums = np.zeros((stop - start, n_bins[start:stop].max()))
        if stop - start == 4:
            _sums_of_four(bins[start:stop], pull, sums)
        else:
            for f in range(start, stop):
                _sums_by_bin(bins[f], pull, sums[f - start])
        for f in range(start, stop):
            edge, best = 0.0, -np.inf
            for b in range(n_bins[f] - 1, 0, -1):
                edge += sums[f - start, b]
                best = max(best, abs(edge) if both else edge)
            out[f] = best


@kernel()
def first_edge(bins: Array, n_bins: int, pull: Array, both: bool, least: float) -> tuple[int, float]:
    """The lowest threshold of a feature whose sum is at least ``least``, and that sum."""
    sums = np.zeros(n_bins)
    _sums_by_bin(bins, pull, sums)
    edge, place, best = 0.0, 0, 0.0
    for b in range(n_bins - 1, 0, -1):
        edge += sums[b]
        if (abs(edge) if both else edge) >= least:
            place, best = b - 1, edge
    return place, best


@kernel()
def add_above(scores: Array, bins: Array, place: int, amount: float) -> None:
    """Adds an amount to the scores of documents above a threshold."""
    for d in range(len(scores)):
        if bins[d] > place:
            scores[d] += amount
