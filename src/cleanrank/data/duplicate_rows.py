"""Identical rows: which rows share their features, within a query and across queries.

A hash only proposes; equality of the features decides. NaN equals NaN, and -0 equals 0. A group is a code per
row, -1 for a row on its own.
"""

from typing import Any

import numpy as np

from cleanrank.jit import kernel, mix64
from cleanrank.stored import as_array, is_dense
from cleanrank.types import Array, IntArray, RankingData

BLOCK_VALUES = 1 << 22


def first_rows(data: RankingData) -> tuple[IntArray, Array]:
    """For every row the first row with the same features, and whether its features are all 0."""
    X: Any = data.X
    dense = is_dense(X)
    hashes = np.empty(data.n_docs, dtype=np.uint64)
    rows = max(1, BLOCK_VALUES // max(1, data.n_features if dense else X.nnz // max(1, data.n_docs)))
    for start in range(0, data.n_docs, rows):
        part = X[start : start + rows]
        out = hashes[start : start + rows]
        if dense:
            hash_dense(np.ascontiguousarray(as_array(part)).view(np.uint32), out)
        else:
            hash_sparse(part.data.view(np.uint32), part.indices, part.indptr, out)
    first = np.empty(data.n_docs, dtype=np.int64)
    first_of_hash(hashes, first)
    again = np.flatnonzero(first != np.arange(data.n_docs))
    for start in range(0, len(again), rows):
        here = again[start : start + rows]
        same = (_same_dense if dense else _same_sparse)(X[here], X[first[here]])
        first[here[~same]] = here[~same]
    return first, hashes == 0


def _same_dense(a: Any, b: Any) -> Array:
    a, b = as_array(a), as_array(b)
    same: Array = ((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1)
    return same


def _same_sparse(a: Any, b: Any) -> Array:
    for part in (a, b):  # copies: the caller's data stay as they are
        part.eliminate_zeros()
    same: Array = np.diff(a.indptr) == np.diff(b.indptr)
    a, b = a[same], b[same]
    differs = (a.indices != b.indices) | ((a.data != b.data) & ~(np.isnan(a.data) & np.isnan(b.data)))
    before = np.concatenate(([0], np.cumsum(differs)))
    same[same] = before[a.indptr[1:]] == before[a.indptr[:-1]]
    return same


def shared_rows(first: IntArray) -> Array:
    """Rows whose features occur twice or more."""
    return np.asarray(np.bincount(first, minlength=len(first))[first] > 1)


def within_queries(first: IntArray, query: IntArray, shared: Array) -> IntArray:
    """A code per group of identical rows of one query."""
    rows = np.flatnonzero(shared)
    return _placed(rows, query, first[rows])


def across_queries(first: IntArray, query: IntArray, shared: Array) -> IntArray:
    """A code per group of identical rows that spans queries."""
    group = np.full(len(first), -1, dtype=np.int64)
    rows = np.flatnonzero(shared)
    elsewhere = np.zeros(len(first), dtype=bool)
    elsewhere[first[rows[query[rows] != query[first[rows]]]]] = True
    spanning = rows[elsewhere[first[rows]]]
    group[spanning] = first[spanning]
    return group


def same_ids(doc_ids: Array, query: IntArray) -> IntArray:
    """A code per document id that a query holds twice; rows without an id stand alone."""
    rows = np.flatnonzero(doc_ids.astype(str) != "")
    _, ids = np.unique(doc_ids[rows], return_inverse=True)
    return _placed(rows, query, ids)


def _placed(rows: IntArray, query: IntArray, ids: IntArray) -> IntArray:
    """A code per group of ``rows`` that share query and id; -1 for rows on their own and all others."""
    group = np.full(len(query), -1, dtype=np.int64)
    order = np.lexsort((ids, query[rows]))
    codes = np.cumsum(changes(query[rows[order]]) | changes(ids[order])) - 1
    many = np.bincount(codes)[codes] > 1 if len(codes) else np.zeros(0, dtype=bool)
    group[rows[order[many]]] = codes[many]
    return group


def changes(values: Array) -> Array:
    """Where a value differs from the one before."""
    return np.concatenate(([True], values[1:] != values[:-1])) if len(values) else np.zeros(0, dtype=bool)


def starts_of(values: Array) -> IntArray:
    """The places where a new value starts."""
    return np.flatnonzero(changes(values))


SIGN = np.uint32(0x80000000)
MAGNITUDE = np.uint32(0x7FFFFFFF)
INFINITE = np.uint32(0x7F800000)
NAN = np.uint32(0x7FC00000)


_mix = kernel(inline=True)(mix64)


@kernel(inline=True)
def _mixed(column: Any, bits: Any) -> Any:
    # The finaliser of splitmix64: neighbouring columns and values come out unrelated.
    return _mix((np.uint64(column) << np.uint64(32) | np.uint64(bits)) + np.uint64(0x9E3779B97F4A7C15))


@kernel()
def hash_dense(bits: Array, out: Array) -> None:
    """Hashes rows of float32 seen as uint32 (rows, F) into ``out``."""
    for i in range(bits.shape[0]):
        total = np.uint64(0)
        for j in range(bits.shape[1]):
            value = bits[i, j]
            if value == 0 or value == SIGN:
                continue
            total += _mixed(j, NAN if (value & MAGNITUDE) > INFINITE else value)
        out[i] = total


@kernel()
def hash_sparse(bits: Array, columns: Array, indptr: Array, out: Array) -> None:
    """The same for CSR rows: the bits of the stored values, their columns and the row offsets."""
    for i in range(len(indptr) - 1):
        total = np.uint64(0)
        for k in range(indptr[i], indptr[i + 1]):
            value = bits[k]
            if value == 0 or value == SIGN:
                continue
            total += _mixed(columns[k], NAN if (value & MAGNITUDE) > INFINITE else value)
        out[i] = total


@kernel()
def first_of_hash(hashes: Array, first: IntArray) -> None:
    """Writes to ``first`` the first row with the same hash; linear, by open addressing at most half full."""
    size = 4
    while size < 2 * len(hashes):
        size *= 2
    mask = np.uint64(size - 1)
    slots = np.full(size, -1, dtype=np.int64)
    for i in range(len(hashes)):
        place = hashes[i] & mask
        while slots[place] >= 0 and hashes[slots[place]] != hashes[i]:
            place = (place + np.uint64(1)) & mask
        if slots[place] < 0:
            slots[place] = i
        first[i] = slots[place]
