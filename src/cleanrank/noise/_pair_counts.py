"""Compiled counting of pairs from contingency tables of true and given grades.

A query's table M[a, l] counts its documents of given grade a and true grade l. Scales of up to eight grades
are the rule, so the table is 8 x 8 and its size is fixed when compiled; a query with a higher grade reports
itself and is counted by sorting instead.
"""

import numpy as np

from cleanrank.jit import kernel, prange
from cleanrank.types import Array, IntArray

SIDE = 8
CELLS = SIDE * SIDE
LANES = 4
# A cell of a lane is one byte: this many documents can never overflow it.
PART = 255 * LANES
BLOCK = 64
# Below this, starting threads costs more than it gains.
SERIAL = 1 << 22
WIDE, NEGATIVE = -1, -2


def pair_counts(true: Array, given: Array, indptr: IntArray) -> IntArray:
    """(3, Q): correct, inverse and new-come pairs of every query; -2 for a query with a negative grade."""
    counts = np.empty((3, len(indptr) - 1), dtype=np.int64)
    if len(true) < SERIAL:
        _count_block(true, given, indptr, 0, len(indptr) - 1, counts)
    else:
        _count_blocks(true, given, indptr, counts)
    wide = np.flatnonzero(counts[0] == WIDE)
    if len(wide):
        # Rare scales are counted with one type, so that one kernel is compiled for them.
        _count_sorted(true.astype(np.int64), given.astype(np.int64), indptr, wide, counts)
    return counts


@kernel(parallel=True)
def _count_blocks(true: Array, given: Array, indptr: IntArray, out: IntArray) -> None:
    queries = len(indptr) - 1
    for b in prange((queries + BLOCK - 1) // BLOCK):
        _count_block(true, given, indptr, b * BLOCK, min(queries, (b + 1) * BLOCK), out)


@kernel()
def _count_block(true: Array, given: Array, indptr: IntArray, first: int, last: int, out: IntArray) -> None:
    keys = np.zeros(PART + 4, dtype=np.uint8)
    words = keys.view(np.uint64)
    lanes = np.zeros(LANES * CELLS, dtype=np.uint8)
    table = np.zeros(CELLS, dtype=np.int32)
    below = np.zeros(SIDE, dtype=np.int64)
    for q in range(first, last):
        table[:] = 0
        high_true, high_given = np.uint64(0), np.uint64(0)
        for start in range(indptr[q], indptr[q + 1], PART):
            n = min(indptr[q + 1] - start, PART)
            if max(true.itemsize, given.itemsize) > 4:
                l, a = _pack_long(true, given, np.uint64(start), n, keys)
            else:
                l, a = _pack(true, given, np.uint64(start), n, keys)
            high_true, high_given = max(high_true, l), max(high_given, a)
            _tally(words, n, lanes)
            _fold(lanes, table)
        if max(high_true, high_given) >= SIDE:
            out[0, q] = WIDE
        else:
            _pairs(table, below, np.int64(high_true) + 1, np.int64(high_given) + 1, out, q)


@kernel()
def _pack(true: Array, given: Array, start: np.uint64, n: int, keys: Array) -> tuple[np.uint64, np.uint64]:
    """Writes the cells of n documents as bytes; returns the highest grades (a negative one is huge)."""
    # A loop of its own, with an offset that cannot be negative, because then it vectorises.
    high_true, high_given = np.uint32(0), np.uint32(0)
    for i in range(n):
        l, a = np.uint32(true[start + np.uint64(i)]), np.uint32(given[start + np.uint64(i)])
        high_true, high_given = max(high_true, l), max(high_given, a)
        keys[i] = np.uint8((a << np.uint32(3)) | l)
    return np.uint64(high_true), np.uint64(high_given)


@kernel()
def _pack_long(
    true: Array, given: Array, start: np.uint64, n: int, keys: Array
) -> tuple[np.uint64, np.uint64]:
    """``_pack`` for grades of 64 bits."""
    high_true, high_given = np.uint64(0), np.uint64(0)
    for i in range(n):
        l, a = np.uint64(true[start + np.uint64(i)]), np.uint64(given[start + np.uint64(i)])
        high_true, high_given = max(high_true, l), max(high_given, a)
        keys[i] = np.uint8((a << np.uint64(3)) | l)
    return high_true, high_given


@kernel()
def _tally(words: Array, n: int, lanes: Array) -> None:
    """Counts n keys, eight to a word."""
    # Four tables side by side: neighbouring documents often share a cell, and two additions to one cell wait.
    # The mask keeps a grade beyond the table inside memory; its query is counted again elsewhere.
    mask, one = np.uint64(CELLS - 1), np.uint8(1)
    for i in range(n // 8):
        word = words[i]
        lanes[word & mask] += one
        lanes[np.uint64(64) + ((word >> np.uint64(8)) & mask)] += one
        lanes[np.uint64(128) + ((word >> np.uint64(16)) & mask)] += one
        lanes[np.uint64(192) + ((word >> np.uint64(24)) & mask)] += one
        lanes[(word >> np.uint64(32)) & mask] += one
        lanes[np.uint64(64) + ((word >> np.uint64(40)) & mask)] += one
        lanes[np.uint64(128) + ((word >> np.uint64(48)) & mask)] += one
        lanes[np.uint64(192) + ((word >> np.uint64(56)) & mask)] += one
    word = words[n // 8]
    for i in range(n % 8):
        lanes[np.uint64(CELLS * (i % LANES)) + (word & mask)] += one
        word >>= np.uint64(8)


@kernel()
def _fold(lanes: Array, table: Array) -> None:
    """Adds the lanes to the table and empties them."""
    for cell in range(CELLS):
        first = np.int32(lanes[cell]) + np.int32(lanes[cell + CELLS])
        second = np.int32(lanes[cell + 2 * CELLS]) + np.int32(lanes[cell + 3 * CELLS])
        table[cell] += first + second
    lanes[:] = 0


@kernel()
def _pairs(
    table: Array, below: IntArray, used_true: np.int64, used_given: np.int64, out: IntArray, q: int
) -> None:
    """Pairs (l, a), (j, b) with a > b: correct for l > j, new-come for l = j, else inverse."""
    correct, new, total = np.int64(0), np.int64(0), np.int64(0)
    before = np.int64(0)  # documents of a given grade below a; below[l]: those of true grade l
    below[:] = 0
    for a in range(used_given):
        lower, here = np.int64(0), np.int64(0)
        for l in range(used_true):
            count, same = np.int64(table[SIDE * a + l]), below[l]
            correct += count * lower
            new += count * same
            lower += same
            here += count
            below[l] = same + count
        total += here * before
        before += here
    out[0, q], out[1, q], out[2, q] = correct, total - correct - new, new


@kernel()
def _count_sorted(true: Array, given: Array, indptr: IntArray, chosen: IntArray, out: IntArray) -> None:
    for q in chosen:
        start, end = indptr[q], indptr[q + 1]
        _sorted_query(true[start:end], given[start:end], out, q)


@kernel()
def _sorted_query(true: Array, given: Array, out: IntArray, q: int) -> None:
    """Counts pairs on any scale in O(n log n), with a Fenwick tree over the true grades."""
    scale = np.unique(true)
    place = np.searchsorted(scale, true)
    order = np.argsort(given)
    if scale[0] < 0 or given[order[0]] < 0:
        out[0, q] = NEGATIVE
        return
    tree = np.zeros(len(scale) + 1, dtype=np.int64)
    equal = np.zeros(len(scale), dtype=np.int64)
    correct, new, total = np.int64(0), np.int64(0), np.int64(0)
    n, first = len(order), 0
    while first < n:
        last = first
        while last < n and given[order[last]] == given[order[first]]:
            at = place[order[last]]
            new += equal[at]
            while at > 0:
                correct += tree[at]
                at -= at & -at
            last += 1
        for i in range(first, last):
            at = place[order[i]]
            equal[at] += 1
            at += 1
            while at < len(tree):
                tree[at] += 1
                at += at & -at
        total += (last - first) * first
        first = last
    out[0, q], out[1, q], out[2, q] = correct, total - correct - new, new
