"""Noisy data beside the truth."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cleanrank.data.inputs import Source
from cleanrank.types import FloatArray, RankingData

if TYPE_CHECKING:
    from cleanrank.noise.profiles import NoiseProfile


@dataclass(frozen=True, eq=False)
class Corruption:
    """Noisy data beside the truth.

    Attributes:
        data: the data with given (noisy) grades; rows as in the clean data.
        changed: where they differ from ``true_labels``.
        profile: the matrix the grades were drawn from; with rates per query, their mean; counted where errors
            depend on more than the grade.
        seed: of the draws; None when they came from a Generator.
        query_rates: the rate of every query, when rates were drawn per query.
        source: what was corrupted.
        row_rates: the probability that each row's grade changes, where it depends on more than the grade.
    """

    data: RankingData
    true_labels: npt.NDArray[np.int32]
    changed: npt.NDArray[np.bool_]
    profile: "NoiseProfile"
    seed: int | None
    query_rates: FloatArray | None = None
    source: Source | None = None
    row_rates: FloatArray | None = None

    @property
    def frame(self) -> Any:
        """The frame that was passed to ``corrupt``, with the noisy grades."""
        return (self.source or Source(self.data)).frame_of(self.data)

    @property
    def rate(self) -> float:
        """The realised share of changed documents (dNoise)."""
        return float(self.changed.mean()) if len(self.changed) else 0.0

    def __repr__(self) -> str:
        share = f"{self.rate:.1%} of {len(self.changed):,} changed"
        return f"Corruption({self.profile.name}, seed {self.seed}: {share})"
