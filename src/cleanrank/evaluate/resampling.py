"""Random signs and resamples from counters, compiled; the same numbers in plain NumPy.

Word w of draw p is splitmix64 (Steele et al. 2014) of (key, p x words + w): any thread can make it, so
results do not depend on how the work is divided.
"""

import importlib.util
import operator
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.types import Array, FloatArray, IntArray

GOLDEN = 0x9E3779B97F4A7C15
MASK = 2**64 - 1
DRAWS = 2048


def stream_key(seed: int) -> np.uint64:
    """A well-mixed 64-bit key from a seed.

    >>> bool(stream_key(0) != stream_key(1))
    True
    """
    try:
        number = operator.index(seed)
    except TypeError:
        raise invalid("seed", "must be a whole number", repr(seed)) from None
    return np.uint64(int(_mix(np.array([(number * 2 + 1) & MASK], dtype=np.uint64))[0]))


def words(key: np.uint64, first: int, count: int) -> npt.NDArray[np.uint64]:
    """Words first..first + count of the stream of a key, in NumPy."""
    counter = np.arange(first, first + count, dtype=np.uint64) + np.uint64(1)
    return _mix(counter * np.uint64(GOLDEN) + key)


def _mix(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def have_numba() -> bool:
    """Whether compiled kernels can be used."""
    return importlib.util.find_spec("numba") is not None


def _draw_kernels() -> Any:
    from cleanrank.evaluate import draws

    return draws


def subset_tables(d: IntArray) -> IntArray:
    """Sums of all subsets of each eight numbers in a row: (words, 8, 256)."""
    padded = np.zeros(-(-len(d) // 64) * 64, dtype=np.int64)
    padded[: len(d)] = d
    eights = padded.reshape(-1, 8)
    tables = np.zeros((len(eights), 256), dtype=np.int64)
    for bit in range(8):
        tables[:, 1 << bit : 2 << bit] = tables[:, : 1 << bit] + eights[:, bit : bit + 1]
    return tables.reshape(-1, 8, 256)


def count_extreme(d: IntArray, draws: int, side: int, key: np.uint64 | None) -> int:
    """Draws whose sum of randomly signed d is at least as extreme as the sum of d itself.

    Each number may be off by half from the rounding that made it whole, so sums that differ by no more than
    the count of numbers tie.

    Args:
        d: whole numbers whose absolute sum is below 2^61.
        draws: how many sign vectors.
        side: 1 greater, -1 less, 0 both.
        key: of the random stream; None lists the sign vectors 0..draws - 1 instead.
    """
    listed = key is None
    used = np.uint64(0) if key is None else key
    tables = subset_tables(d)
    total, slack = int(d.sum()), len(d)
    if have_numba():
        return int(_draw_kernels().count_extreme(tables, draws, total, slack, side, used, listed).sum())
    count = 0
    for first in range(0, draws, DRAWS):
        these = min(DRAWS, draws - first)
        if listed:
            bits = np.zeros((these, len(tables)), dtype=np.uint64)
            bits[:, 0] = np.arange(first, first + these)
        else:
            bits = words(used, first * len(tables), these * len(tables)).reshape(these, -1)
        parts = bits.view(np.uint8) if np.little_endian else bits.byteswap().view(np.uint8)
        sums = 2 * tables.reshape(-1, 256)[np.arange(parts.shape[1]), parts].sum(axis=1) - total
        count += int(_extreme(sums, total, slack, side).sum())
    return count


def _extreme(sums: Array, total: int, slack: int, side: int) -> Array:
    if side > 0:
        return sums >= total - slack
    return sums <= total + slack if side < 0 else np.abs(sums) >= abs(total) - slack


def resampled_sums(columns: FloatArray, resamples: int, seed: int) -> FloatArray:
    """Sums of the rows of ``columns`` (n, m) over ``resamples`` draws of n rows with replacement.

    >>> resampled_sums(np.ones((3, 1)), 2, seed=0).tolist()
    [[3.0], [3.0]]
    """
    rows = np.ascontiguousarray(columns, dtype=np.float64)
    key = stream_key(seed)
    if have_numba():
        sums: FloatArray = _draw_kernels().resampled_sums(rows, resamples, key)
        return sums
    n, per_draw = len(rows), -(-len(rows) // 2)
    out = np.empty((resamples, rows.shape[1]))
    for b in range(resamples):
        halves = words(key, b * per_draw, per_draw)
        both = np.stack((halves >> np.uint64(32), halves & np.uint64(0xFFFFFFFF)), axis=1).ravel()[:n]
        out[b] = rows[((both * np.uint64(n)) >> np.uint64(32)).astype(np.int64)].sum(axis=0)
    return out
