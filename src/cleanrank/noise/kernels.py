"""Compiled counting of pairs from contingency tables of true and given grades."""

import numpy as np
from numba import prange

from cleanrank.compiled import kernel
from cleanrank.types import Array, IntArray

SMALL = 8
LARGE = 256


def pair_counts(true: Array, given: Array, indptr: IntArray) -> IntArray:
    """(Q, 3): correct, inverse and new-come pairs of every query; -1 where a grade is out of 0..255."""
    counts = np.empty((len(indptr) - 1, 3), dtype=np.int64)
    # Scales of up to eight grades are the rule: a table of 8 x 8 is cheap and needs no search for the highest
    # grade first. A query with a higher one reports itself and is counted with the large table.
    _count(true, given, indptr, counts, SMALL)
    wide = np.flatnonzero(counts[:, 0] < 0)
    if len(wide):
        _count_some(true, given, indptr, wide, counts)
    return counts


@kernel(parallel=True)
def _count(true: Array, given: Array, indptr: IntArray, counts: IntArray, size: int) -> None:
    for q in prange(len(indptr) - 1):
        start, end = indptr[q], indptr[q + 1]
        _query(true[start:end], given[start:end], counts[q], size)


@kernel()
def _count_some(true: Array, given: Array, indptr: IntArray, chosen: IntArray, counts: IntArray) -> None:
    for q in chosen:
        start, end = indptr[q], indptr[q + 1]
        _query(true[start:end], given[start:end], counts[q], LARGE)


@kernel()
def _query(true: Array, given: Array, out: IntArray, size: int) -> None:
    # Four tables side by side: neighbouring rows often share a cell, and two additions to one cell wait.
    tables = np.zeros((4, size * size), dtype=np.int32)
    lowest, highest = np.int64(0), np.int64(0)
    limit = size - 1
    n = len(true)
    whole = n - n % 4
    for i in range(0, whole, 4):
        for k in range(4):
            l, a = np.int64(true[i + k]), np.int64(given[i + k])
            lowest, highest = min(lowest, l, a), max(highest, l, a)
            tables[k, (l & limit) * size + (a & limit)] += 1
    for i in range(whole, n):
        l, a = np.int64(true[i]), np.int64(given[i])
        lowest, highest = min(lowest, l, a), max(highest, l, a)
        tables[0, (l & limit) * size + (a & limit)] += 1
    if lowest < 0 or highest > limit:
        out[:] = -1
        return
    _pairs(tables, size, int(highest) + 1, out)


@kernel()
def _pairs(tables: Array, size: int, used: int, out: IntArray) -> None:
    """Pairs (l, a), (j, b) with a > b: correct for l > j, inverse for l < j, new-come for l = j."""
    column = np.zeros(used, dtype=np.int64)  # documents of true grade l and a given grade below a
    correct, inverse, new = np.int64(0), np.int64(0), np.int64(0)
    before = np.int64(0)  # all documents of a given grade below a
    for a in range(used):
        lower = np.int64(0)  # of those, the ones of true grade below l
        here = np.int64(0)
        for l in range(used):
            cell = l * size + a
            count = np.int64(tables[0, cell] + tables[1, cell] + tables[2, cell] + tables[3, cell])
            correct += count * lower
            new += count * column[l]
            inverse += count * (before - lower - column[l])
            lower += column[l]
            column[l] += count
            here += count
        before += here
    out[0], out[1], out[2] = correct, inverse, new
