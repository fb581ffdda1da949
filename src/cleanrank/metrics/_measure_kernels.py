"""Compiled values of one ranked query: sums over ranks, whatever the policies of a measure.

Symbols as in ``_kernels``: ``rank[r]`` the document at rank r (from 0), ``end[r]`` one past the last rank
tied with r, ``code[d]`` the place of the grade of d; ``cut`` ranks count. With ``average`` a value is the
exact mean over all orders of tied documents.
"""

import numpy as np

from cleanrank.jit import kernel
from cleanrank.metrics._rank_kernels import sort_keys
from cleanrank.types import Array


@kernel()
def copy_values(source: Array, target: Array, n: int) -> None:
    # Assigning slices would compile a check and its message into every kernel.
    for d in range(n):
        target[d] = source[d]


@kernel()
def count_from(counts: Array, lowest: int) -> int:
    """Documents with a code of at least ``lowest``."""
    total = 0
    for c in range(lowest, len(counts)):
        total += counts[c]
    return total


@kernel()
def dcg_of(gain: Array, discount: Array, rank: Array, end: Array, cut: int, average: bool) -> float:
    total = 0.0
    if not average:
        for r in range(cut):
            total += gain[rank[r]] * discount[r]
        return total
    r = 0
    while r < cut:
        stop = end[r]
        gains = 0.0
        for i in range(r, stop):
            gains += gain[rank[i]]
        weights = 0.0
        for i in range(r, min(stop, cut)):
            weights += discount[i]
        total += gains / (stop - r) * weights
        r = stop
    return total


@kernel()
def ideal_by_count(counts: Array, gain_of: Array, discount: Array, cut: int) -> float:
    total = 0.0
    r = 0
    for c in range(len(counts) - 1, -1, -1):
        stop = min(r + counts[c], cut)
        while r < stop:
            total += gain_of[c] * discount[r]
            r += 1
    return total


@kernel()
def ideal_by_sort(gain: Array, discount: Array, n: int, cut: int) -> float:
    ordered = np.empty(n, np.float64)
    copy_values(gain, ordered, n)
    # Numbers that are not negative sort as their bits do.
    sort_keys(ordered.view(np.uint64), np.empty(n, np.uint64), n)
    total = 0.0
    for r in range(cut):
        total += ordered[n - 1 - r] * discount[r]
    return total


@kernel()
def retrieved_relevant(code: Array, rank: Array, end: Array, cut: int, relevant: int, average: bool) -> float:
    """Relevant documents in the first ``cut`` ranks."""
    total = 0.0
    r = 0
    while r < cut:
        stop = end[r] if average else r + 1
        inside = 0
        for i in range(r, stop):
            inside += code[rank[i]] >= relevant
        total += inside * ((min(stop, cut) - r) / (stop - r))
        r = stop
    return total


@kernel()
def precision_sum(code: Array, rank: Array, end: Array, cut: int, relevant: int, average: bool) -> float:
    """The precision at each relevant document, summed over ``cut`` ranks (ties: McSherry and Najork 2008)."""
    total = 0.0
    before = 0
    r = 0
    while r < cut:
        stop = end[r] if average else r + 1
        size = stop - r
        inside = 0
        for i in range(r, stop):
            inside += code[rank[i]] >= relevant
        if inside > 0:
            each = (inside - 1.0) / (size - 1.0) if size > 1 else 0.0
            share = inside / size
            for j in range(min(stop, cut) - r):
                total += share * (before + 1.0 + j * each) / (r + j + 1.0)
        before += inside
        r = stop
    return total


@kernel()
def first_relevant(
    code: Array, rank: Array, end: Array, cut: int, relevant: int, average: bool, reciprocal: bool
) -> float:
    """1 / rank of the first relevant document (or 1 if there is one); among ties it is hypergeometric."""
    r = 0
    while r < cut:
        stop = end[r] if average else r + 1
        size = stop - r
        inside = 0
        for i in range(r, stop):
            inside += code[rank[i]] >= relevant
        if inside > 0:
            total = 0.0
            none_yet = 1.0
            for j in range(min(stop, cut) - r):
                here = none_yet * inside / (size - j)
                total += here / (r + j + 1.0) if reciprocal else here
                none_yet *= (size - j - inside) / (size - j)
            return total
        r = stop
    return 0.0


@kernel()
def binary_preference(
    code: Array, judged: Array, rank: Array, end: Array, depth: int, relevant: int, average: bool
) -> float:
    """Binary preference; of s documents tied with a relevant one, 0..s stand above it, each as likely."""
    wanted = 0
    unwanted = 0
    for d in range(len(code)):
        if code[d] >= relevant:
            wanted += 1
        elif len(judged) == 0 or judged[d]:
            unwanted += 1
    fewer = float(min(wanted, unwanted))
    total = 0.0
    above = 0
    r = 0
    while r < depth:
        stop = end[r] if average else r + 1
        here = 0
        tied = 0
        for i in range(r, stop):
            d = rank[i]
            if code[d] >= relevant:
                here += 1
            elif len(judged) == 0 or judged[d]:
                tied += 1
        if here > 0:
            lost = 0.0
            for u in range(tied + 1):
                lost += min(above + u, wanted)
            total += here * (1.0 - (lost / (tied + 1.0) / fewer if fewer > 0.0 else 0.0))
        above += tied
        r = stop
    return total / wanted


@kernel()
def expected_reciprocal(
    stop_at: Array, code: Array, rank: Array, end: Array, cut: int, average: bool, scale: float
) -> float:
    """Expected reciprocal rank; among ties E[prod (1 - R)] over j of them is a mean of products.

    E_j, the mean of the products of j of the first i factors x, follows from
    E_j <- (i - j)/i E_j + j/i x_i E_(j-1): convex, so nothing cancels.
    """
    total = 0.0
    reach = 1.0
    r = 0
    while r < cut:
        stop = end[r] if average else r + 1
        if stop == r + 1:
            p = stop_at[code[rank[r]]] * scale
            total += reach * p / (r + 1.0)
            reach *= 1.0 - p
            r = stop
            continue
        size = stop - r
        ranks = min(stop, cut) - r
        mean = np.zeros(ranks + 1)
        mean[0] = 1.0
        for i in range(1, size + 1):
            x = 1.0 - stop_at[code[rank[r + i - 1]]] * scale
            for j in range(min(i, ranks), 0, -1):
                mean[j] = (i - j) / i * mean[j] + j / i * x * mean[j - 1]
        for j in range(ranks):
            total += reach * (mean[j] - mean[j + 1]) / (r + j + 1.0)
        reach *= mean[ranks]
        r = stop
    return total
