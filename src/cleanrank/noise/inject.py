"""Corrupts labels on purpose, and remembers the truth."""

import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np

from cleanrank import checks
from cleanrank.noise.profiles import Corruption, NoiseProfile, make_profile
from cleanrank.types import RankingData


def corrupt(
    data: RankingData,
    profile: str | NoiseProfile = "uniform",
    rate: float | None = None,
    *,
    seed: int = 0,
    n_grades: int | None = None,
    spread: float = 0.0,
    options: Mapping[str, Any] | None = None,
) -> Corruption:
    """Draws every document's given grade from the profile, independently.

    Args:
        data: clean data; it stays untouched.
        profile: the name of a family (with ``rate``) or a NoiseProfile.
        rate: probability that a grade changes.
        seed: same seed, same draws.
        n_grades: grades of the scale, when the highest does not occur in ``data``.
        spread: with a named profile, draws a rate for every query from a Beta distribution with mean ``rate``
            and variance ``spread`` * rate * (1 - rate); 0 gives all queries the same rate.
        options: further arguments of the family, such as ``{"rho": 0.3}``.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((4, 1)), [0, 1, 0, 1], qid=[1, 1, 2, 2])
    >>> corrupt(data, rate=0.0).changed.tolist()
    [False, False, False, False]
    """
    if isinstance(profile, NoiseProfile):
        if rate is not None or options or spread:
            checks.fail("rate, spread and options", "go with a named profile", "a matrix as well")
        return profile.apply(data, seed)
    if rate is None:
        checks.fail("noise rate", "must be given with a named profile", "none", remedy="Say rate=0.2.")
    C = max(2, data.n_grades if n_grades is None else n_grades)
    if spread == 0:
        return make_profile(profile, rate, C, options).apply(data, seed)
    return _by_query(data, profile, rate, C, spread, seed, options)


def _by_query(
    data: RankingData,
    name: str,
    rate: float,
    n_grades: int,
    spread: float,
    seed: int,
    options: Mapping[str, Any] | None,
) -> Corruption:
    """Rates of queries ~ Beta(m s, (1 - m) s) with mean m = rate and s = 1 / spread - 1."""
    if not 0 < spread < 1:
        checks.fail("spread", "must lie in [0, 1)", spread)
    if not 0 < rate < 1:
        checks.fail("noise rate", "must lie strictly between 0 and 1 when it varies over queries", rate)
    rng = np.random.default_rng(seed)
    size = 1 / spread - 1
    rates = rng.beta(rate * size, (1 - rate) * size, size=data.n_queries)
    given = np.empty(data.n_docs, dtype=np.int32)
    for q, (start, end) in enumerate(itertools.pairwise(data.indptr)):
        given[start:end] = make_profile(name, rates[q], n_grades, options).sample(data.y[start:end], rng)
    mean = make_profile(name, rate, n_grades, options)
    return Corruption(data.with_labels(given), data.y, given != data.y, mean, seed, rates)
