"""Noise profiles: row-stochastic matrices T with T[l, m] = P(given grade m | true grade l).

C is the number of grades; ``rate`` is the probability gamma that a document's grade changes.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cleanrank import checks
from cleanrank.types import FloatArray


@dataclass(frozen=True, eq=False)
class NoiseProfile:
    """A C x C row-stochastic matrix and its name; rows are true grades, columns given ones."""

    matrix: FloatArray
    name: str = "custom"

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] < 1:
            checks.fail("noise matrix", "must be square, one row per true grade", f"shape {matrix.shape}")
        if not np.isfinite(matrix).all() or (matrix < 0).any():
            checks.fail("noise matrix", "must hold probabilities", matrix.min())
        sums = matrix.sum(axis=1)
        if (abs(sums - 1) > 1e-9).any():
            row = int(np.argmax(abs(sums - 1)))
            checks.fail(
                "noise matrix",
                "must have rows that sum to 1",
                sums[row],
                at=f"row {row}",
                remedy="Normalise it.",
            )
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)

    @property
    def n_grades(self) -> int:
        """C, the number of grades."""
        return len(self.matrix)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoiseProfile) and np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash(self.matrix.tobytes())

    def __repr__(self) -> str:
        rows = "; ".join(" ".join(f"{p:.3g}" for p in row) for row in self.matrix)
        return f"NoiseProfile({self.name}: [{rows}])"

    def sample(self, y: npt.ArrayLike, rng: np.random.Generator) -> npt.NDArray[np.int32]:
        """Draws a given grade for every true grade in ``y``."""
        grades = np.asarray(y)
        if grades.size and grades.max() >= self.n_grades:
            checks.fail(
                "grades", f"must be below {self.n_grades}, the size of the noise matrix", int(grades.max())
            )
        # Inverse transform: one draw per row whatever the matrix, so that profiles share their draws.
        steps = np.cumsum(self.matrix, axis=1)[:, :-1]
        draws = rng.random(grades.shape)
        return np.asarray((draws[:, None] >= steps[grades]).sum(axis=1), dtype=np.int32)


def uniform(rate: float, n_grades: int) -> NoiseProfile:
    """Keeps a grade with probability 1 - rate, else moves to any other grade with equal probability.

    T = t 11' + kappa I with t = rate / (C - 1), kappa = 1 - rate C / (C - 1) (Niu et al. 2015).

    >>> uniform(0.2, 3).matrix.tolist()
    [[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]]
    """
    if not 0 <= rate <= 1:
        checks.fail("noise rate", "must lie in [0, 1]", rate)
    if n_grades < 2:
        checks.fail("uniform noise", "needs at least two grades", n_grades)
    matrix = np.full((n_grades, n_grades), rate / (n_grades - 1))
    np.fill_diagonal(matrix, 1 - rate)
    return NoiseProfile(matrix, f"uniform {rate:g}")


PROFILES: dict[str, Callable[[float, int], NoiseProfile]] = {"uniform": uniform}
