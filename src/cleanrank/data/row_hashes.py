"""Compiled parts of the search for identical rows: one 64-bit hash a row, and the first row of each hash.

The hash of a row is the sum over its non-zero values of a mix of column and bits, so dense and sparse rows of
the same values hash alike; every NaN counts as the same value and -0 as 0.
"""

from typing import Any

import numpy as np

from cleanrank.compiled import kernel
from cleanrank.types import Array, IntArray

SIGN = np.uint32(0x80000000)
MAGNITUDE = np.uint32(0x7FFFFFFF)
INFINITE = np.uint32(0x7F800000)
NAN = np.uint32(0x7FC00000)


@kernel(inline=True)
def _mixed(column: Any, bits: Any) -> Any:
    # The finaliser of splitmix64: neighbouring columns and values come out unrelated.
    z = (np.uint64(column) << np.uint64(32) | np.uint64(bits)) + np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


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
