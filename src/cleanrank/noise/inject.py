"""Corrupts labels on purpose, and remembers the truth."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.noise.profiles import BLOCK, PROFILES, Corruption, NoiseProfile, make_profile
from cleanrank.types import FloatArray, RankingData
from cleanrank.validation import one_of


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
        options: further arguments of the family, such as ``{"rho": 0.3}``; with ``row_weights`` the
            proportions are those of ``data`` unless given.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((4, 1)), [0, 1, 0, 1], qid=[1, 1, 2, 2])
    >>> corrupt(data, rate=0.0).changed.tolist()
    [False, False, False, False]
    """
    if isinstance(profile, NoiseProfile):
        if rate is not None or options or spread:
            raise invalid("rate, spread and options", "must not be given with a matrix", "both")
        return profile.apply(data, seed)
    one_of("noise profile", profile, PROFILES)
    C = max(2, data.n_grades if n_grades is None else n_grades)
    chosen = dict(options or {})
    if "row_weights" in chosen:
        chosen.setdefault("proportions", np.bincount(data.y, minlength=C).tolist())
    if spread == 0:
        return make_profile(profile, rate, C, chosen).apply(data, seed)
    return _by_query(data, profile, rate, C, spread, seed, chosen)


def _by_query(
    data: RankingData,
    name: str,
    rate: float | None,
    n_grades: int,
    spread: float,
    seed: int,
    options: Mapping[str, Any],
) -> Corruption:
    """Rates of queries ~ Beta(m s, (1 - m) s) with mean m = rate and s = 1 / spread - 1."""
    if not 0 < spread < 1:
        raise invalid("spread", "must lie in [0, 1)", spread)
    if rate is None or not 0 < rate < 1:
        raise invalid("noise rate", "must lie strictly between 0 and 1 when it varies over queries", rate)
    rng = np.random.default_rng(seed)
    size = 1 / spread - 1
    rates = rng.beta(rate * size, (1 - rate) * size, size=data.n_queries)
    mean = make_profile(name, rate, n_grades, options)
    # Every family is linear in its rate, T(rate) = I + rate D, so rows with rates of their own need no matrix
    # of their own. The highest rate is the one that could break a rule (row rates above 1).
    make_profile(name, float(rates.max(initial=0.0)), n_grades, options)
    direction = (mean.matrix - np.eye(n_grades)) / rate
    given = _sample_rows(data.y, direction, np.repeat(rates, data.lengths), rng)
    return Corruption(data.with_labels(given), data.y, given != data.y, mean, seed, rates)


def _sample_rows(
    y: npt.NDArray[np.int32], direction: FloatArray, rates: FloatArray, rng: np.random.Generator
) -> npt.NDArray[np.int32]:
    """Draws given grades from I + rates[i] * direction, row by row."""
    still, moved = np.cumsum(np.eye(len(direction)), axis=1)[:, :-1], np.cumsum(direction, axis=1)[:, :-1]
    given = np.empty(len(y), dtype=np.int32)
    for start in range(0, len(y), BLOCK):
        block = y[start : start + BLOCK]
        steps = still[block] + rates[start : start + BLOCK, None] * moved[block]
        # Rounding may leave the last step just below 1.
        steps[steps > 1 - 1e-12] = 1.0
        given[start : start + BLOCK] = (rng.random(len(block))[:, None] >= steps).sum(axis=1)
    return given
