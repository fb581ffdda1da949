"""The strategies of RobustRanker, and its report on what it did."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cleanrank.noise.estimate import NoiseEstimate
from cleanrank.noise.profiles import NoiseProfile

AUTO = "auto"
AVERAGED = ("posterior", "grades")
AVERAGED_WITH_GOLD = ("posterior", "assumed", "grades")
STRATEGIES: dict[str, str] = {
    AUTO: "the average of rankers on the targets of several strategies",
    "posterior": "trained on expected gains under the noise, as far as it is known",
    "assumed": "trained on expected gains under the noise that is assumed from the data",
    "grades": "trained on grades mixed with what the features predict",
    "gains": "trained on gains mixed with what the features predict",
    "baseline": "trained on the given grades, tuned alike",
}


@dataclass(frozen=True, eq=False, repr=False)
class RobustReport:
    """What was done and why.

    Attributes:
        strategy: one of STRATEGIES.
        reasons: why, in words.
        weights: strategy -> its part in the average.
        noise: the matrix in use; None where there was none.
        estimate: what the matrix was read off; None when it was given or assumed.
        n_gold: rows of known true grade.
        doubted: the mean doubt of the training rows: the share of grades that are expected to be wrong.
        measure: what the validation values are.
        tried: strategy, objective, parameters, validation value and trees of every model.
    """

    strategy: str
    reasons: tuple[str, ...]
    weights: Mapping[str, float]
    noise: NoiseProfile | None
    estimate: NoiseEstimate | None
    n_gold: int
    doubted: float | None
    measure: str
    tried: tuple[Mapping[str, Any], ...]

    def __repr__(self) -> str:
        lines = [f"{self.strategy}: {STRATEGIES[self.strategy]}", *(f"  - {why}" for why in self.reasons)]
        if len(self.weights) > 1:
            lines.append("  weights: " + ", ".join(f"{name} {w:.2f}" for name, w in self.weights.items()))
        if self.doubted is not None:
            lines.append(f"  {self.doubted:.1%} of the training grades are expected to be wrong")
        if self.tried:
            lines.append(f"  validation: {self.measure}")
        for record in self.tried:
            params = {k: v for k, v in record.items() if k not in ("validation", "trees")}
            settings = ", ".join(f"{name} {value}" for name, value in params.items())
            lines.append(f"  {settings}: {record['validation']:.4f}, {record['trees']} trees")
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "strategy": self.strategy,
            "reasons": list(self.reasons),
            "weights": dict(self.weights),
            "matrix": None if self.noise is None else self.noise.matrix.tolist(),
            "gold": self.n_gold,
            "doubted": self.doubted,
            "measure": self.measure,
            "tried": [dict(record) for record in self.tried],
        }
