"""What a method gains over another on the same seeds and queries, and whether that is clear.

Values are tables (seeds, queries). The gain is the mean of the differences; its interval draws seeds and
queries again, both with replacement, since another seed would have given other clicks and other networks;
p is Fisher's randomisation over queries of the means over seeds, which takes the seeds that ran as given. A
method *gains* or *loses* only where both agree: the interval leaves out 0 and p, corrected by Holm for the
comparisons of a table, is below .05. With few seeds the interval is too short (by a tenth for five).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cleanrank.errors import invalid
from cleanrank.metrics.significance import fisher_test, holm
from cleanrank.report.table import mark
from cleanrank.types import FloatArray

LEVEL = 0.95
GAINS, LOSES, UNCLEAR = "gains", "loses", "no clear gain"
RULE = (
    "Gain: mean of the differences, with its 95 % interval over seeds and queries. gains, loses: the "
    "interval leaves out 0 and p < .05 (Fisher's randomisation over queries, Holm over the table). Else no "
    "clear gain."
)


@dataclass(frozen=True)
class Gain:
    """A gain with its interval.

    Attributes:
        mean: mean of the differences.
        low: lower end of the interval over seeds and queries.
        high: upper end.
        won: seeds with a gain.
        seeds: seeds that both have.
        p: two-sided, over queries.
        p_holm: corrected for the comparisons of the table; p where there is one alone.
    """

    mean: float
    low: float
    high: float
    won: int
    seeds: int
    p: float
    p_holm: float

    @property
    def verdict(self) -> str:
        """One of "gains", "loses" and "no clear gain"."""
        return verdict(self.low, self.high, self.p_holm)


def verdict(low: float, high: float, p: float) -> str:
    """The word for an interval and a corrected p: both must speak against 0.

    >>> verdict(0.001, 0.003, 0.01), verdict(-0.001, 0.003, 0.00001), verdict(0.001, 0.003, 0.05)
    ('gains', 'no clear gain', 'no clear gain')
    >>> verdict(-0.003, -0.001, 0.01)
    'loses'
    """
    if not mark(p) or not (low > 0 or high < 0):
        return UNCLEAR
    return GAINS if low > 0 else LOSES


def crossed_interval(values: FloatArray, *, resamples: int = 2000, seed: int = 0) -> tuple[float, float]:
    """The 95 % percentile interval of the mean of (seeds, queries), both drawn again.

    >>> low, high = crossed_interval(np.array([[0.1, 0.3], [0.2, 0.4]]))
    >>> 0.1 <= low < 0.25 < high <= 0.4
    True
    """
    if values.ndim != 2 or not values.size:
        raise invalid("values", "must be a table of seeds and queries", values.shape)
    rng = np.random.default_rng(seed)  # crossed: metrics.significance draws queries alone
    n, queries = values.shape
    drawn = rng.integers(0, n, (resamples, n))
    means = [values[s].mean(axis=0)[rng.integers(0, queries, queries)].mean() for s in drawn]
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def gain(a: FloatArray, b: FloatArray, *, resamples: int = 2000, seed: int = 0) -> Gain:
    """What ``a`` gains over ``b``, tables of the same seeds and queries.

    >>> rng = np.random.default_rng(0)
    >>> b = rng.random((5, 100))
    >>> gained = gain(b + rng.normal(0.1, 0.1, b.shape), b)
    >>> gained.verdict, gained.won, gained.low < 0.1 < gained.high
    ('gains', 5, True)
    """
    if a.shape != b.shape:
        raise invalid("values", "must be of the same seeds and queries", f"{a.shape} and {b.shape}")
    d = a - b
    low, high = crossed_interval(d, resamples=resamples, seed=seed)
    p = fisher_test(a.mean(axis=0), b.mean(axis=0))
    won = int((d.mean(axis=1) > 0).sum())
    return Gain(float(d.mean()), low, high, won, len(d), p, p)


def gains(
    values: Mapping[str, FloatArray], bases: Mapping[str, Sequence[str]], *, resamples: int = 2000
) -> dict[tuple[str, str], Gain]:
    """(method, base) -> Gain for every base that has values; p corrected over all of them.

    Args:
        values: method -> (seeds, queries).
        bases: method -> what it is compared with; itself is left out.
        resamples: of seeds and queries.
    """
    every = {
        (name, base): gain(values[name], values[base], resamples=resamples)
        for name in values
        for base in bases.get(name, ())
        if base in values and base != name
    }
    corrected = holm([g.p for g in every.values()]) if every else ()
    return {key: replace(g, p_holm=float(p)) for (key, g), p in zip(every.items(), corrected, strict=True)}
