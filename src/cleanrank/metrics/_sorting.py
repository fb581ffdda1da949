"""The ranking of one query, compiled: whole, or only its top.

Sort keys are 64-bit integers: the upper bits of the score in an order-preserving form, the row in the lower
bits, so that ties keep the order of the rows; scores that differ only in the bits given to the row are put
right afterwards. Symbols: n documents; ``rank[r]`` the document at rank r (from 0); ``end[r]`` one past the
last rank tied with r.
"""

import numpy as np

from cleanrank.jit import kernel
from cleanrank.types import Array

INSERTION = 12


@kernel()
def sort_keys(keys: Array, spare: Array, n: int) -> None:
    """Sorts keys[:n] in ascending order; runs of a few by insertion, then merges without branches."""
    for start in range(0, n, INSERTION):
        stop = min(start + INSERTION, n)
        for i in range(start + 1, stop):
            key = keys[i]
            j = i
            while j > start and keys[j - 1] > key:
                keys[j] = keys[j - 1]
                j -= 1
            keys[j] = key
    width = INSERTION
    flipped = False
    while width < n:
        source, target = (spare, keys) if flipped else (keys, spare)
        for start in range(0, n, 2 * width):
            middle = min(start + width, n)
            _merge(source, target, start, middle, min(start + 2 * width, n))
        flipped = not flipped
        width *= 2
    if flipped:
        for i in range(n):
            keys[i] = spare[i]


@kernel()
def _merge(source: Array, target: Array, start: int, middle: int, stop: int) -> None:
    i, j, to = start, middle, start
    while i < middle and j < stop:
        left, right = source[i], source[j]
        first = left < right
        target[to] = left if first else right
        i += first
        j += not first
        to += 1
    while i < middle:
        target[to] = source[i]
        i += 1
        to += 1
    while j < stop:
        target[to] = source[j]
        j += 1
        to += 1


@kernel()
def _sort_rows(rows: Array, worth: Array, descending: bool) -> None:
    """Sorts rows by their worth; equal ones keep their order."""
    n = len(rows)
    sign = -1.0 if descending else 1.0
    source, target = rows.copy(), rows.copy()
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            i, middle = start, min(start + width, n)
            j, stop = middle, min(start + 2 * width, n)
            for to in range(start, stop):
                right = i >= middle or (j < stop and sign * worth[source[j]] < sign * worth[source[i]])
                target[to] = source[j] if right else source[i]
                j += right
                i += not right
        source, target = target, source
        width *= 2
    for i in range(n):
        rows[i] = source[i]


@kernel()
def rank_all(score: Array, bits: Array, keys: Array, spare: Array, rank: Array, n: int) -> None:
    """Ranks all documents: descending score, ties by row. ``bits`` are those of ``score``."""
    row_bits = np.uint64(1)
    while (np.int64(1) << np.int64(row_bits)) < n:
        row_bits += np.uint64(1)
    low = (np.uint64(1) << row_bits) - np.uint64(1)
    sign = np.uint64(1) << np.uint64(63)
    for d in range(n):
        b = bits[d]
        # Ascending keys are descending scores: negative numbers keep their bits, positive ones are inverted.
        key = b if b & sign else ~b & ~sign
        keys[d] = (key & ~low) | np.uint64(d)
    sort_keys(keys, spare, n)
    for r in range(n):
        rank[r] = np.int64(keys[r] & low)
    start = 0
    while start < n:
        stop = start + 1
        mixed = False
        while stop < n and (keys[stop] & ~low) == (keys[start] & ~low):
            mixed |= score[rank[stop]] != score[rank[start]]
            stop += 1
        if mixed:
            _sort_rows(rank[start:stop], score, True)
        start = stop


@kernel()
def rank_top(score: Array, best: Array, rank: Array, n: int, k: int) -> None:
    """Ranks the k best documents of n >= k; ``best`` keeps their scores."""
    held = 0
    for d in range(n):
        s = score[d]
        if held == k and s <= best[k - 1]:
            continue
        r = held if held < k else k - 1
        while r > 0 and best[r - 1] < s:
            best[r] = best[r - 1]
            rank[r] = rank[r - 1]
            r -= 1
        best[r] = s
        rank[r] = d
        held = min(held + 1, k)


@kernel()
def tie_ends(score: Array, rank: Array, end: Array, n: int) -> bool:
    """Fills ``end``; returns whether any scores tie."""
    tied = False
    stop = n
    for r in range(n - 1, -1, -1):
        if r + 1 < n and score[rank[r]] != score[rank[r + 1]]:
            stop = r + 1
        tied |= r + 1 < stop
        end[r] = stop
    return tied


@kernel()
def worst_order(rank: Array, end: Array, worth: Array, out: Array, n: int) -> None:
    """The ranking in which tied documents stand with the least worth first."""
    r = 0
    while r < n:
        stop = end[r]
        for i in range(r, stop):
            out[i] = rank[i]
        if stop > r + 1:
            _sort_rows(out[r:stop], worth, False)
        r = stop
