"""Corrupts labels on purpose, and remembers the truth."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cleanrank import checks
from cleanrank.noise.profiles import PROFILES, NoiseProfile
from cleanrank.types import RankingData


@dataclass(frozen=True, eq=False)
class Corruption:
    """Noisy data beside the truth.

    Attributes:
        data: the data with given (noisy) grades; rows as in the clean data.
        true_labels: the grades before.
        changed: where they differ.
        profile: the matrix the grades were drawn from.
        seed: what the draws came from.
    """

    data: RankingData
    true_labels: npt.NDArray[np.int32]
    changed: npt.NDArray[np.bool_]
    profile: NoiseProfile
    seed: int

    @property
    def rate(self) -> float:
        """The realised share of changed documents (dNoise)."""
        return float(self.changed.mean()) if len(self.changed) else 0.0

    def __repr__(self) -> str:
        share = f"{self.rate:.1%} of {len(self.changed):,} changed"
        return f"Corruption({self.profile.name}, seed {self.seed}: {share})"


def corrupt(
    data: RankingData,
    profile: str | NoiseProfile = "uniform",
    rate: float | None = None,
    *,
    n_grades: int | None = None,
    seed: int = 0,
) -> Corruption:
    """Draws every document's given grade from the profile, independently.

    Args:
        data: clean data; it stays untouched.
        profile: a name (with ``rate``) or a NoiseProfile.
        rate: probability that a grade changes.
        n_grades: grades of the scale, when the highest does not occur in ``data``.
        seed: same seed, same draws.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((4, 1)), [0, 1, 0, 1], qid=[1, 1, 2, 2])
    >>> corrupt(data, rate=0.0).changed.any()
    np.False_
    """
    if isinstance(profile, str):
        if rate is None:
            checks.fail("noise rate", "must be given with a named profile", "none", remedy="Say rate=0.2.")
        make = PROFILES[checks.known("noise profile", profile, PROFILES)]
        profile = make(rate, max(2, data.n_grades if n_grades is None else n_grades))
    elif rate is not None:
        checks.fail(
            "noise rate", "must not be given with a matrix", rate, remedy="The matrix holds the rates."
        )
    given = profile.sample(data.y, np.random.default_rng(seed))
    return Corruption(data.with_labels(given), data.y, given != data.y, profile, seed)
