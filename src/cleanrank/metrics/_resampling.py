"""The compiled loops of ``cleanrank.metrics.significance``."""

import numpy as np

from cleanrank.jit import kernel, mix64, prange
from cleanrank.types import Array

BLOCK = 2048


_mix = kernel(inline=True)(mix64)


@kernel(inline=True)
def _word(key: np.uint64, counter: int) -> np.uint64:
    return _mix(key + (np.uint64(counter) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))


@kernel()
def _add_word(
    table: Array, sums: Array, key: np.uint64, first: int, w: int, per_draw: int, listed: bool
) -> None:
    """Adds what 64 numbers contribute to each sum: eight look-ups in tables that stay in cache."""
    low = np.uint64(255)
    for i in range(len(sums)):
        if listed:
            bits = np.uint64(first + i) if w == 0 else np.uint64(0)
        else:
            bits = _word(key, (first + i) * per_draw + w)
        sums[i] += (
            table[0, bits & low]
            + table[1, (bits >> np.uint64(8)) & low]
            + table[2, (bits >> np.uint64(16)) & low]
            + table[3, (bits >> np.uint64(24)) & low]
            + table[4, (bits >> np.uint64(32)) & low]
            + table[5, (bits >> np.uint64(40)) & low]
            + table[6, (bits >> np.uint64(48)) & low]
            + table[7, bits >> np.uint64(56)]
        )


@kernel(parallel=True)
def count_extreme_blocks(
    tables: Array, draws: int, total: int, slack: int, side: int, key: np.uint64, listed: bool
) -> Array:
    """Extreme draws in each block of draws; whole numbers, so any order of summing gives the same."""
    blocks = (draws + BLOCK - 1) // BLOCK
    counts = np.zeros(blocks, np.int64)
    for b in prange(blocks):
        first = b * BLOCK
        sums = np.zeros(min(BLOCK, draws - first), np.int64)
        for w in range(len(tables)):
            _add_word(tables[w], sums, key, first, w, len(tables), listed)
        extreme = 0
        for i in range(len(sums)):
            s = 2 * sums[i] - total
            if side > 0:
                extreme += s >= total - slack
            elif side < 0:
                extreme += s <= total + slack
            else:
                extreme += abs(s) >= abs(total) - slack
        counts[b] = extreme
    return counts


@kernel()
def _resample(rows: Array, out: Array, key: np.uint64, counter: int) -> None:
    n, m = rows.shape
    size = np.uint64(n)
    for i in range(0, n, 2):
        bits = _word(key, counter + i // 2)
        one = np.int64(((bits >> np.uint64(32)) * size) >> np.uint64(32))
        for c in range(m):
            out[c] += rows[one, c]
        if i + 1 < n:
            two = np.int64(((bits & np.uint64(0xFFFFFFFF)) * size) >> np.uint64(32))
            for c in range(m):
                out[c] += rows[two, c]


@kernel(parallel=True)
def sum_resamples(rows: Array, resamples: int, key: np.uint64) -> Array:
    """Sums over rows drawn with replacement, one line per resample."""
    out = np.zeros((resamples, rows.shape[1]), np.float64)
    per_draw = (len(rows) + 1) // 2
    for b in prange(resamples):
        _resample(rows, out[b], key, b * per_draw)
    return out
