"""Is a difference more than chance? Paired tests and intervals over queries.

Inputs are values per query. A query that is NaN in both systems was skipped by the measure and is left out;
NaN in one of them only is refused.
"""

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.jit import has_numba, mix64, threads
from cleanrank.types import Array, FloatArray, IntArray
from cleanrank.validation import check_number, check_numbers, is_number, one_of

ALTERNATIVES: dict[str, int] = {"two-sided": 0, "greater": 1, "less": -1}
MOST_EXACT = 24
FRACTION_BITS = 40


def fisher_test(
    a: npt.ArrayLike,
    b: npt.ArrayLike,
    permutations: "int | str" = 100_000,
    alternative: str = "two-sided",
    seed: int = 0,
    smoothing: bool = True,
    n_jobs: int | None = None,
) -> float:
    """Fisher's randomisation test on the mean of a - b: the p-value (Smucker et al. 2007).

    Under the null each a_i may be exchanged with b_i. With E of B random exchanges at least as extreme as
    what was observed, p = (E + 1) / (B + 1), which is never 0.

    Args:
        a: values of one system per query.
        b: values of the other, same queries.
        permutations: how many random exchanges, or "exact" for all 2^n (n queries that differ, at most 24).
        alternative: "two-sided", "greater" (a is better) or "less".
        seed: of the exchanges.
        smoothing: False gives the plain share E / B.
        n_jobs: threads; the result does not depend on it.

    Differences are rounded to 2^-40 of the largest one and added as whole numbers; sums that differ by less
    than the rounding of their terms tie. So ties do not hang on the last bits of the values.

    Returns:
        The p-value.

    >>> a = np.array([1, 1, 1, 1, 1, 1, 1, 0, 0, 0])
    >>> fisher_test(a, 1 - a, permutations="exact")
    0.34375
    """
    side = ALTERNATIVES[one_of("alternative", alternative, ALTERNATIVES)]
    exact = permutations == "exact"
    draws = 0 if exact else checked_count("permutations", permutations, ", or 'exact'")
    steps = _whole_steps(paired_differences(a, b))
    if exact and len(steps) > MOST_EXACT:
        rule = f"must be at most {MOST_EXACT} for permutations='exact'"
        remedy = "Give a number of permutations instead."
        raise invalid("queries that differ", rule, len(steps), remedy=remedy)
    draws = 2 ** len(steps) if exact else draws
    if not len(steps):
        return 1.0
    with threads(n_jobs):
        key = None if exact else stream_key(seed)
        extreme = count_extreme(steps, draws, side, key)
    return (extreme + 1) / (draws + 1) if smoothing and not exact else extreme / draws


def paired_differences(a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    """The differences a - b where both are present."""
    left, right = check_numbers("a", a), check_numbers("b", b)
    if left.ndim != 1 or left.shape != right.shape:
        raise invalid(
            "a and b", "must be two lists of one value per query", f"{left.shape} and {right.shape}"
        )
    skipped = np.isnan(left)
    with np.errstate(over="ignore", invalid="ignore"):
        change = left - right
    bad = (skipped != np.isnan(right)) | np.isinf(left) | np.isinf(change)
    if bad.any():
        at = int(np.argmax(bad))
        rule = "must both be finite, or both NaN for a skipped query"
        remedy = "Evaluate both systems on the same queries with the same measure."
        raise invalid("a and b", rule, f"{left[at]} and {right[at]}", at=f"query {at}", remedy=remedy)
    kept: FloatArray = change[~skipped]
    if not len(kept):
        raise invalid("a and b", "must have at least one query with values")
    return kept


def _whole_steps(d: FloatArray) -> npt.NDArray[np.int64]:
    """Differences in whole multiples of a small step; those that are 0 change no sum and go."""
    largest = np.abs(d).max(initial=0.0)
    if largest == 0.0:
        return np.zeros(0, np.int64)
    most = 61 - int(np.ceil(np.log2(len(d) + 1)))
    bits = min(FRACTION_BITS, most) - int(np.frexp(largest)[1])
    whole = np.rint(np.ldexp(d, bits)).astype(np.int64)
    steps: npt.NDArray[np.int64] = whole[whole != 0]
    return steps


def paired_t_test(a: npt.ArrayLike, b: npt.ArrayLike, alternative: str = "two-sided") -> float:
    """Student's paired t-test on the mean of a - b: the p-value.

    >>> round(paired_t_test([0.5, 0.7, 0.9, 0.6], [0.4, 0.5, 0.9, 0.5]), 4)
    0.0917
    """
    side = ALTERNATIVES[one_of("alternative", alternative, ALTERNATIVES)]
    d = paired_differences(a, b)
    if len(d) < 2:
        raise invalid("the paired t-test", "needs at least two queries", len(d))
    from scipy import special

    spread = d.std(ddof=1) / np.sqrt(len(d))
    if (d == d[0]).all():
        return 1.0 if d[0] == 0.0 else float({0: 0, 1: d[0] < 0, -1: d[0] > 0}[side])
    t = d.mean() / spread
    if side == 0:
        return float(2.0 * special.stdtr(len(d) - 1, -abs(t)))
    return float(special.stdtr(len(d) - 1, -side * t))


def paired_t_tests(a: FloatArray, b: FloatArray) -> FloatArray:
    """``paired_t_test``, two-sided, of every line of two tables (pairs, queries) without NaN.

    >>> paired_t_tests(np.array([[0.5, 0.7, 0.9, 0.6]]), np.array([[0.4, 0.5, 0.9, 0.5]])).round(4).tolist()
    [0.0917]
    """
    from scipy import special

    d = np.asarray(a - b, dtype=np.float64)
    n = d.shape[1]
    if n < 2:
        raise invalid("the paired t-test", "needs at least two queries", n)
    constant = (d == d[:, :1]).all(axis=1)
    spread = np.where(constant, 1.0, d.std(axis=1, ddof=1)) / np.sqrt(n)
    p: FloatArray = 2.0 * special.stdtr(n - 1, -np.abs(d.mean(axis=1) / spread))
    return np.where(constant, np.where(d[:, 0] == 0.0, 1.0, 0.0), p)


def holm(pvalues: "Sequence[float] | npt.ArrayLike") -> FloatArray:
    """p-values corrected for their number, step-down (Holm 1979); in the given order.

    The i-th smallest of m becomes the largest of (m - j + 1) p_(j) over j <= i, at most 1.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(pvalues, dtype=np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise invalid("p-values", "must be a list of numbers from 0 to 1", p.tolist())
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    corrected = np.empty(len(p))
    corrected[order] = np.minimum(stepped, 1.0)
    return corrected


def bootstrap_interval(
    values: npt.ArrayLike,
    weights: npt.ArrayLike | None = None,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    n_jobs: int | None = None,
) -> tuple[float, float]:
    """The percentile interval of the (weighted) mean over queries (Efron and Tibshirani 1993).

    Queries are drawn with replacement; NaN values are left out. With weights the mean of a resample is
    sum(w v) / sum(w), as pooled measures need.

    >>> low, high = bootstrap_interval([0.2, 0.4, 0.6, 0.8], seed=0)
    >>> 0.2 <= low < 0.5 < high <= 0.8
    True
    """
    v = np.asarray(values, dtype=np.float64)
    w = np.ones_like(v) if weights is None else np.asarray(weights, dtype=np.float64)
    if v.ndim != 1 or w.shape != v.shape:
        raise invalid("values and weights", "must be lists of equal length", f"{v.shape} and {w.shape}")
    if not ((w >= 0) & np.isfinite(w)).all():
        raise invalid("weights", "must be finite and not negative", w.tolist()[:9])
    low, high = mean_intervals(v[None], w[None], level, resamples, seed, n_jobs)
    return float(low[0]), float(high[0])


def mean_intervals(
    values: FloatArray,
    weights: FloatArray,
    level: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    n_jobs: int | None = None,
) -> tuple[FloatArray, FloatArray]:
    """``bootstrap_interval`` of each line of values (M, Q), all from the same resamples of queries."""
    check_number("level", level, above=0, below=1)
    resamples = checked_count("resamples", resamples)
    skipped = np.isnan(values)
    w = np.where(skipped, 0.0, weights)
    columns = np.concatenate((np.where(skipped, 0.0, values) * w, w)).T
    if not len(columns):
        nothing = np.full(len(values), np.nan)
        return nothing, nothing
    with threads(n_jobs):
        sums = resampled_sums(columns, resamples, seed)
    m = len(values)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = sums[:, :m] / sums[:, m:]
    return quantiles(means, level)


def quantiles(means: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Lower and upper end of the central ``level`` of each column; draws without any value are left out."""
    ends = ((1 - level) / 2, (1 + level) / 2)
    low, high = np.full(means.shape[1], np.nan), np.full(means.shape[1], np.nan)
    for m, column in enumerate(means.T):
        kept = column[~np.isnan(column)]
        if len(kept):
            low[m], high[m] = np.quantile(kept, ends)
    return low, high


def checked_count(name: str, value: Any, also: str = "") -> int:
    """A count >= 1; whole floats such as 1e5 are taken. ``also`` words what else is allowed.

    >>> checked_count("permutations", 1e5)
    100000
    """
    if not is_number(value) or not 1 <= value < 2**63 or value != int(value):
        raise invalid(name, f"must be an integer >= 1{also}", repr(value))
    return int(value)


TESTS = {"fisher": fisher_test, "t": paired_t_test}
GOLDEN = 0x9E3779B97F4A7C15
MASK = 2**64 - 1
DRAWS = 2048


def stream_key(seed: int) -> np.uint64:
    """A well-mixed 64-bit key from a seed."""
    try:
        number = operator.index(seed)
    except TypeError:
        raise invalid("seed", "must be an integer", repr(seed)) from None
    return np.uint64(int(mix64(np.array([(number * 2 + 1) & MASK], dtype=np.uint64))[0]))


def words(key: np.uint64, first: int, count: int) -> npt.NDArray[np.uint64]:
    """Words first..first + count of the stream of a key, in NumPy."""
    counter = np.arange(first, first + count, dtype=np.uint64) + np.uint64(1)
    return mix64(counter * np.uint64(GOLDEN) + key)


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
    the count of numbers tie. ``side``: 1 greater, -1 less, 0 both; ``key`` None lists the sign vectors
    0..draws - 1 in place of random ones.
    """
    listed = key is None
    stream = np.uint64(0) if key is None else key
    tables = subset_tables(d)
    total, slack = int(d.sum()), len(d)
    if has_numba():
        from cleanrank.metrics._rank_kernels import count_extreme_blocks

        return int(count_extreme_blocks(tables, draws, total, slack, side, stream, listed).sum())
    count = 0
    for first in range(0, draws, DRAWS):
        these = min(DRAWS, draws - first)
        if listed:
            bits = np.zeros((these, len(tables)), dtype=np.uint64)
            bits[:, 0] = np.arange(first, first + these)
        else:
            bits = words(stream, first * len(tables), these * len(tables)).reshape(these, -1)
        parts = bits.view(np.uint8) if np.little_endian else bits.byteswap().view(np.uint8)
        sums = 2 * tables.reshape(-1, 256)[np.arange(parts.shape[1]), parts].sum(axis=1) - total
        count += int(_extreme(sums, total, slack, side).sum())
    return count


def _extreme(sums: Array, total: int, slack: int, side: int) -> Array:
    if side > 0:
        return sums >= total - slack
    return sums <= total + slack if side < 0 else np.abs(sums) >= abs(total) - slack


def resampled_sums(columns: FloatArray, resamples: int, seed: int) -> FloatArray:
    """Sums of the rows of ``columns`` (n, m) over ``resamples`` draws of n rows with replacement."""
    rows = np.ascontiguousarray(columns, dtype=np.float64)
    key = stream_key(seed)
    if has_numba():
        from cleanrank.metrics._rank_kernels import sum_resamples

        return sum_resamples(rows, resamples, key)
    n, per_draw = len(rows), -(-len(rows) // 2)
    out = np.empty((resamples, rows.shape[1]))
    for b in range(resamples):
        halves = words(key, b * per_draw, per_draw)
        both = np.stack((halves >> np.uint64(32), halves & np.uint64(0xFFFFFFFF)), axis=1).ravel()[:n]
        out[b] = rows[((both * np.uint64(n)) >> np.uint64(32)).astype(np.int64)].sum(axis=0)
    return out
