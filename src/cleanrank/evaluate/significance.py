"""Is a difference more than chance? Paired tests and intervals over queries.

Inputs are values per query. A query that is NaN in both systems was skipped by the measure and is left out;
NaN in one of them only is refused.
"""

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.evaluate import resampling
from cleanrank.types import FloatArray
from cleanrank.validation import one_of

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

    >>> a = np.array([1, 1, 1, 1, 1, 1, 1, 0, 0, 0])
    >>> fisher_test(a, 1 - a, permutations="exact")
    0.34375
    """
    side = ALTERNATIVES[one_of("alternative", alternative, ALTERNATIVES)]
    exact = permutations == "exact"
    wanted = 0 if exact else checked_count("permutations", permutations, ", or 'exact'")
    steps = _whole_steps(paired_differences(a, b))
    if exact and len(steps) > MOST_EXACT:
        raise invalid(
            "queries that differ",
            f"must be at most {MOST_EXACT} for permutations='exact'",
            len(steps),
            remedy="Give a number of permutations instead.",
        )
    draws = 2 ** len(steps) if exact else wanted
    if not len(steps):
        return 1.0
    with _threads(n_jobs):
        key = None if exact else resampling.stream_key(seed)
        extreme = resampling.count_extreme(steps, draws, side, key)
    return (extreme + 1) / (draws + 1) if smoothing and not exact else extreme / draws


def paired_differences(a: npt.ArrayLike, b: npt.ArrayLike) -> FloatArray:
    """The differences a - b where both are present.

    >>> paired_differences([1.0, np.nan, 0.5], [0.5, np.nan, 0.5]).tolist()
    [0.5, 0.0]
    """
    left, right = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if left.ndim != 1 or left.shape != right.shape:
        raise invalid(
            "a and b", "must be two lists of one value per query", f"{left.shape} and {right.shape}"
        )
    gone = np.isnan(left)
    with np.errstate(over="ignore", invalid="ignore"):
        change = left - right
    bad = (gone != np.isnan(right)) | np.isinf(left) | np.isinf(change)
    if bad.any():
        at = int(np.argmax(bad))
        raise invalid(
            "a and b",
            "must both be finite, or both NaN for a skipped query",
            f"{left[at]} and {right[at]}",
            at=f"query {at}",
            remedy="Evaluate both systems on the same queries with the same measure.",
        )
    kept: FloatArray = change[~gone]
    if not len(kept):
        raise invalid("a and b", "must have at least one query with values", "none")
    return kept


def _whole_steps(d: FloatArray) -> npt.NDArray[np.int64]:
    """Differences in whole multiples of a small step; those that are 0 change no sum and go."""
    largest = np.abs(d).max(initial=0.0)
    if largest == 0.0:
        return np.zeros(0, np.int64)
    room = 61 - int(np.ceil(np.log2(len(d) + 1)))
    bits = min(FRACTION_BITS, room) - int(np.frexp(largest)[1])
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
    check_level(level)
    resamples = checked_count("resamples", resamples)
    gone = np.isnan(values)
    w = np.where(gone, 0.0, weights)
    columns = np.concatenate((np.where(gone, 0.0, values) * w, w)).T
    if not len(columns):
        nothing = np.full(len(values), np.nan)
        return nothing, nothing
    with _threads(n_jobs):
        sums = resampling.resampled_sums(columns, resamples, seed)
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


def check_level(level: float) -> None:
    """Refuses a level of confidence outside (0, 1)."""
    if not 0.0 < level < 1.0:
        raise invalid("level", "must lie between 0 and 1, both excluded", level, remedy="Try 0.95.")


def checked_count(name: str, value: Any, also: str = "") -> int:
    """A count from 1 on; whole floats such as 1e5 are taken. ``also`` words what else is allowed.

    >>> checked_count("permutations", 1e5)
    100000
    """
    number = isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, bool)
    if not number or not 1 <= value < 2**63 or value != int(value):
        raise invalid(name, f"must be a whole number from 1 on{also}", repr(value))
    return int(value)


def _threads(n_jobs: int | None) -> AbstractContextManager[None]:
    if not resampling.have_numba():
        return nullcontext()
    from cleanrank.compiled import threads

    return threads(n_jobs)


TESTS = {"fisher": fisher_test, "t": paired_t_test}
