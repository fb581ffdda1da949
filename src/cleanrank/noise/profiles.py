"""Noise profiles: row-stochastic matrices T with T[l, m] = P(given grade m | true grade l).

C is the number of grades. ``rate`` (gamma in the papers) is the probability that a document's grade changes;
where a family lets it differ between grades, it is the mean over the documents. Families whose errors depend
on the distance of the grades take ``row_weights``, how much more often judges err on each grade, and with
them ``proportions``, the shares of the grades, so that the mean over documents stays ``rate``.
"""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cleanrank.errors import BadFileError, InvalidInputError, error_text, invalid, warn_untrusted
from cleanrank.noise.corruption import Corruption as Corruption
from cleanrank.types import FloatArray, RankingData
from cleanrank.validation import check_number, check_numbers, one_of

SHARED = ("rate", "n_grades")
REPLACEMENT = (0.5, 0.2, 0.15, 0.1, 0.05)
BLOCK = 1 << 20
ROUNDING = 1e-6
MAX_CONDITION = 1e4
Weights: TypeAlias = Sequence[float] | None


@dataclass(frozen=True, eq=False)
class NoiseProfile:
    """A C x C row-stochastic matrix and its name; rows are true grades, columns given ones."""

    matrix: FloatArray
    name: str = "custom"

    def __post_init__(self) -> None:
        matrix = np.array(self.matrix, dtype=np.float64)
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or matrix.shape[0] < 1:
            raise invalid("noise matrix", "must be square, one row per true grade", f"shape {matrix.shape}")
        if not np.isfinite(matrix).all() or (matrix < 0).any():
            raise invalid("noise matrix", "must hold probabilities", matrix.min())
        sums = matrix.sum(axis=1)
        if (abs(sums - 1) > ROUNDING).any():
            row = int(np.argmax(abs(sums - 1)))
            rule, remedy = "must have rows that sum to 1", "Normalise it."
            raise invalid("noise matrix", rule, f"{sums[row]:g}", at=f"row {row}", remedy=remedy)
        matrix.flags.writeable = False
        object.__setattr__(self, "matrix", matrix)

    @classmethod
    def of(cls, noise: Any, n_grades: int | None = None, *, invertible: bool = False) -> "NoiseProfile":
        """The profile of anything that names one: the only coercion of noise.

        Args:
            noise: a NoiseProfile, an estimate or another object with a ``matrix``, a matrix, the
                probabilities (gamma0, gamma1) that grades 0 and 1 are kept, ``family:rate`` (uniform:0.1) or
                the path of a matrix file.
            n_grades: the least number of grades that it must cover; the scale of ``family:rate``.
            invertible: refuse matrices under which given grades say too little about true ones.

        >>> NoiseProfile.of((0.9, 0.75)).matrix.round(2).tolist()
        [[0.9, 0.1], [0.25, 0.75]]
        >>> NoiseProfile.of("uniform:0.2", 3).matrix[0].tolist()
        [0.8, 0.1, 0.1]
        """
        if isinstance(noise, str | Path):
            profile = read_noise(str(noise), n_grades)
        elif isinstance(noise, NoiseProfile):
            profile = noise
        else:
            profile = cls(_matrix_of(noise))
        warn_untrusted(getattr(noise, "trusted", True), getattr(noise, "reasons", ()))
        if n_grades is not None and profile.n_grades < n_grades:
            rule = f"must have a row for each of the {n_grades} grades"
            raise invalid("noise", rule, f"{profile.n_grades} rows")
        if invertible and not (condition := float(np.linalg.cond(profile.matrix))) < MAX_CONDITION:
            rule = f"must keep the grades apart (condition number below {MAX_CONDITION:g})"
            remedy = "Merge grades that the labels hardly tell apart."
            raise invalid("noise", rule, f"condition number {condition:.3g}", remedy=remedy)
        return profile

    @property
    def n_grades(self) -> int:
        """C, the number of grades."""
        return len(self.matrix)

    def rate(self, proportions: npt.ArrayLike) -> float:
        """The share of documents that change when grades come in these proportions."""
        shares = proportions_of(proportions, self.n_grades)
        return float(shares @ (1 - np.diag(self.matrix)))

    def apply(self, data: RankingData, rng: int | np.random.Generator = 0) -> "Corruption":
        """Draws every document's given grade, independently; ``data`` stays untouched."""
        seed = None if isinstance(rng, np.random.Generator) else int(rng)
        given = self.sample(data.y, np.random.default_rng(rng))
        given = given if data.judged is None else np.where(data.judged, given, data.y)
        return Corruption(data.with_labels(given), data.y, given != data.y, self, seed)

    def sample(self, y: npt.ArrayLike, rng: np.random.Generator) -> npt.NDArray[np.int32]:
        """Draws a given grade for every true grade in ``y``."""
        grades = np.asarray(y)
        if grades.ndim != 1 or grades.dtype.kind not in "iub":
            raise invalid("grades", "must be whole numbers", f"{grades.dtype}, shape {grades.shape}")
        if grades.size and not 0 <= grades.min() <= grades.max() < self.n_grades:
            wrong = grades.min() if grades.min() < 0 else grades.max()
            raise invalid("grades", f"must be rows of the noise matrix, 0 to {self.n_grades - 1}", int(wrong))
        steps = _steps(self.matrix)
        return draw_grades(lambda rows: steps[grades[rows]], len(grades), rng)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NoiseProfile) and np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash(self.matrix.tobytes())

    def __repr__(self) -> str:
        rows = "; ".join(" ".join(f"{p:.3g}" for p in row) for row in self.matrix)
        return f"NoiseProfile({self.name}: [{rows}])"


def uniform(
    rate: float, n_grades: int, *, row_weights: Weights = None, proportions: Weights = None
) -> NoiseProfile:
    """Keeps a grade with probability 1 - rate, else moves to any other grade with equal probability.

    T = t 11' + kappa I with t = rate / (C - 1), kappa = 1 - rate C / (C - 1) (Niu et al. 2015).

    >>> uniform(0.1, 2, row_weights=[1, 3], proportions=[0.75, 0.25]).matrix[1].round(3).tolist()
    [0.2, 0.8]
    """
    return _by_distance("uniform", rate, n_grades, np.ones_like, row_weights, proportions)


def geometric(
    rate: float, n_grades: int, *, rho: float = 0.5, row_weights: Weights = None, proportions: Weights = None
) -> NoiseProfile:
    """Errors fall off with the distance d of the grades: P(m | l, error) proportional to rho^d.

    >>> geometric(0.3, 3).matrix[0].round(3).tolist()
    [0.7, 0.2, 0.1]
    """
    check_number("rho", rho, above=0, most=1)
    return _by_distance(f"geometric({rho:g})", rate, n_grades, lambda d: rho**d, row_weights, proportions)


def power(
    rate: float, n_grades: int, *, rho: float = 1.0, row_weights: Weights = None, proportions: Weights = None
) -> NoiseProfile:
    """Errors fall off with the distance d of the grades: P(m | l, error) proportional to d^-rho.

    >>> power(0.3, 3).matrix[0].round(3).tolist()
    [0.7, 0.2, 0.1]
    """
    check_number("rho", rho, least=0)
    return _by_distance(f"power({rho:g})", rate, n_grades, lambda d: d**-rho, row_weights, proportions)


def adjacent(
    rate: float, n_grades: int, *, row_weights: Weights = None, proportions: Weights = None
) -> NoiseProfile:
    """Errors go to a neighbouring grade only, up or down alike.

    >>> adjacent(0.2, 3).matrix.tolist()
    [[0.8, 0.2, 0.0], [0.1, 0.8, 0.1], [0.0, 0.2, 0.8]]
    """
    return _by_distance("adjacent", rate, n_grades, lambda d: 1.0 * (d == 1), row_weights, proportions)


def class_conditional(
    rate: float | None = None, n_grades: int = 2, *, gamma0: float | None = None, gamma1: float | None = None
) -> NoiseProfile:
    """Two grades with their own probabilities of being kept, gamma0 and gamma1 (Haddad 2022).

    With ``rate`` alone both are 1 - rate.

    >>> class_conditional(gamma0=0.9, gamma1=0.6).matrix.tolist()
    [[0.9, 0.1], [0.4, 0.6]]
    """
    subject = "class-conditional noise"
    if n_grades != 2:
        raise invalid(subject, "needs exactly two grades", n_grades, remedy="Merge grades first.")
    if rate is not None and (gamma0 is not None or gamma1 is not None):
        raise invalid(subject, "takes either rate or gamma0 and gamma1, not both")
    if rate is not None:
        gamma0 = gamma1 = 1 - _unit("noise rate", rate)
    if gamma0 is None or gamma1 is None:
        raise invalid(subject, "needs gamma0 and gamma1", f"{gamma0} and {gamma1}")
    g0, g1 = _unit("gamma0", gamma0), _unit("gamma1", gamma1)
    matrix = [[g0, round(1 - g0, 15)], [round(1 - g1, 15), g1]]
    return NoiseProfile(np.array(matrix), f"class-conditional({g0:g}, {g1:g})")


def one_way(rate: float, n_grades: int, *, source: int = 0, target: int | None = None) -> NoiseProfile:
    """Grade ``source`` becomes ``target`` (the top grade by default) with probability ``rate``; others stay.

    The robustness test of Marcuzzi et al. (2022) is ``one_way(rate, 5)``: 0 becomes 4. ``rate`` is that of
    the documents of grade ``source``.

    >>> one_way(0.1, 3).matrix.tolist()
    [[0.9, 0.0, 0.1], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    target = n_grades - 1 if target is None else target
    for name, grade in (("source", source), ("target", target)):
        if not 0 <= grade < n_grades:
            raise invalid(name, f"must be a grade from 0 to {n_grades - 1}", grade)
    if source == target:
        raise invalid("target", "must differ from source", target)
    matrix = np.eye(n_grades)
    matrix[source, source] = 1 - _unit("noise rate", rate)
    matrix[source, target] = rate
    return NoiseProfile(matrix, f"one-way {source} to {target}, {rate:g}")


def replacement(rate: float, n_grades: int, *, draws_from: Sequence[float] = REPLACEMENT) -> NoiseProfile:
    """Replaces a label with probability ``rate`` by a draw from a fixed distribution; it may be the same.

    Bruch (2021) replaces over grades 0..4 and draws from the default; for other scales give ``draws_from``.
    A document changes with a probability below ``rate``.

    >>> replacement(0.2, 5).matrix[0].round(3).tolist()
    [0.9, 0.04, 0.03, 0.02, 0.01]
    """
    if len(draws_from) != n_grades:
        rule = f"must hold a probability for each of the {n_grades} grades"
        remedy = "As in draws_from=[0.7, 0.2, 0.1] for three grades."
        raise invalid("draws_from", rule, f"{len(draws_from)} values", remedy=remedy)
    shares = proportions_of(draws_from, n_grades)
    matrix = (1 - _unit("noise rate", rate)) * np.eye(n_grades) + rate * shares
    return NoiseProfile(matrix, f"replacement {rate:g}")


def uneven(rate: float, n_grades: int, *, proportions: Weights = None) -> NoiseProfile:
    """Errors go to near grades (geometric, rho = .5), three times as often on the top grade as on grade 0.

    The rate of grade l is proportional to 1 + 2 l / (C - 1); the mean over ``proportions`` is ``rate``.

    >>> uneven(0.2, 3, proportions=[60, 30, 10]).matrix.round(3).tolist()
    [[0.867, 0.089, 0.044], [0.133, 0.733, 0.133], [0.133, 0.267, 0.6]]
    """
    weights = (1 + 2 * np.arange(n_grades) / (n_grades - 1)).tolist()
    shares = [1.0] * n_grades if proportions is None else proportions
    return geometric(rate, n_grades, row_weights=weights, proportions=shares)


def missed(rate: float, n_grades: int) -> NoiseProfile:
    """Relevant documents, of any grade above 0, are given grade 0 with probability ``rate``.

    >>> missed(0.3, 3).matrix.tolist()
    [[1.0, 0.0, 0.0], [0.3, 0.7, 0.0], [0.3, 0.0, 0.7]]
    """
    matrix = np.eye(n_grades)
    matrix[1:] *= 1 - _unit("noise rate", rate)
    matrix[1:, 0] = rate
    return NoiseProfile(matrix, f"missed {rate:g}")


def proportions_of(values: npt.ArrayLike, n_grades: int | None = None) -> FloatArray:
    """Shares of the grades that sum to 1, from counts or shares in any unit."""
    shares = check_numbers("proportions", values)
    if shares.ndim != 1 or not len(shares) or (n_grades is not None and len(shares) != n_grades):
        rule = f"must be one share for each of {n_grades} grades" if n_grades else "must be a list of shares"
        raise invalid("proportions", rule, f"shape {shares.shape}")
    if not np.isfinite(shares).all() or (shares < 0).any() or shares.sum() <= 0:
        raise invalid("proportions", "must be shares >= 0, not all 0", shares.tolist())
    normalised: FloatArray = shares / shares.sum()
    return normalised


def make_profile(
    name: str, rate: float | None, n_grades: int, options: Mapping[str, Any] | None = None
) -> NoiseProfile:
    """The profile of a family by its name.

    >>> make_profile("one-way", 0.1, 5).name
    'one-way 0 to 4, 0.1'
    """
    family = PROFILES[_with_matrix(name)]
    takes = inspect.signature(family).parameters
    for option in options or {}:
        one_of(f"option of noise profile {name!r}", option, [o for o in takes if o not in SHARED])
    if rate is None and takes["rate"].default is inspect.Parameter.empty:
        raise missing_rate()
    try:
        return family(rate, n_grades, **(options or {}))
    except TypeError as error:
        subject = f"options of noise profile {name!r}"
        raise invalid(subject, "must have fitting types", options, remedy=f"({error})") from error


def missing_rate() -> InvalidInputError:
    """The error of a named profile without its rate."""
    return invalid("noise rate", "must be given with a named profile", remedy="Say rate=0.2.")


def _with_matrix(name: str) -> str:
    from cleanrank.noise.dependent import DEPENDENT

    if name in DEPENDENT:
        remedy = "corrupt and recipes take it by name and rate."
        raise invalid("noise profile", "must have a matrix", f"{name!r}, which has none", remedy=remedy)
    return one_of("noise profile", name, PROFILES)


def draw_grades(
    steps_of: Callable[[slice], FloatArray], n: int, rng: np.random.Generator
) -> npt.NDArray[np.int32]:
    """Given grades of n rows by inverse transform; ``steps_of`` has the steps of ``_steps`` for some rows."""
    # One draw per row whatever the matrix, so that profiles share their draws.
    grades = np.empty(n, dtype=np.int32)
    for start in range(0, n, BLOCK):
        rows = slice(start, min(start + BLOCK, n))
        grades[rows] = (rng.random(rows.stop - start)[:, None] >= steps_of(rows)).sum(axis=1)
    return grades


def _steps(matrix: FloatArray) -> FloatArray:
    """Where a draw from [0, 1) passes from one given grade to the next, for every true grade."""
    steps: FloatArray = np.cumsum(matrix, axis=1)[:, :-1]
    # Rounding may leave the sum just below 1: grades of probability 0 at the end must stay out of reach.
    last = matrix.shape[1] - 1 - np.argmax(matrix[:, ::-1] > 0, axis=1)
    steps[np.arange(matrix.shape[1] - 1) >= last[:, None]] = 1.0
    return steps


def _by_distance(
    name: str,
    rate: float,
    n_grades: int,
    fall: Callable[[FloatArray], FloatArray],
    row_weights: Weights,
    proportions: Weights,
) -> NoiseProfile:
    """P(m | l, error) proportional to fall(|l - m|); rates by row gamma_l = gamma w_l / sum_m r_m w_m."""
    _unit("noise rate", rate)
    if n_grades < 2:
        raise invalid(f"{name} noise", "needs at least two grades", n_grades)
    rates = np.full(n_grades, rate)
    if row_weights is not None:
        rates = _row_rates(rate, n_grades, row_weights, proportions)
    grades = np.arange(n_grades, dtype=np.float64)
    distance = abs(grades[:, None] - grades)
    moves = np.zeros((n_grades, n_grades))
    moves[distance > 0] = fall(distance[distance > 0])
    moves /= moves.sum(axis=1, keepdims=True)
    matrix = rates[:, None] * moves
    np.fill_diagonal(matrix, 1 - rates)
    return NoiseProfile(matrix, f"{name} {rate:g}")


def _row_rates(rate: float, n_grades: int, row_weights: Sequence[float], proportions: Weights) -> FloatArray:
    if proportions is None:
        raise invalid("proportions", "must be given with row_weights, so that the mean rate is kept")
    weights = np.asarray(row_weights, dtype=np.float64)
    if weights.shape != (n_grades,) or not (np.isfinite(weights) & (weights >= 0)).all():
        rule = f"must hold a weight >= 0 for each of {n_grades} grades"
        raise invalid("row_weights", rule, weights.tolist())
    mean = float(proportions_of(proportions, n_grades) @ weights)
    if mean <= 0:
        raise invalid("row_weights", "must be above 0 for a grade that occurs", weights.tolist())
    rates: FloatArray = rate * weights / mean
    if (rates > 1).any():
        at, remedy = f"grade {int(rates.argmax())}", "Lower the rate or even out row_weights."
        raise invalid("row rates", "must not exceed 1", f"{rates.max():.3g}", at=at, remedy=remedy)
    return rates


def _unit(name: str, value: float) -> float:
    return check_number(name, value, least=0, most=1)


def _matrix_of(noise: Any) -> FloatArray:
    try:
        matrix = np.asarray(getattr(noise, "matrix", noise), dtype=np.float64)
    except (TypeError, ValueError):
        matrix = np.zeros(0)
    if matrix.shape == (2,):
        kept0, kept1 = matrix
        return np.array([[kept0, 1 - kept0], [1 - kept1, kept1]])
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or len(matrix) < 2:
        value = f"shape {matrix.shape}" if matrix.ndim == 2 else repr(noise)[:80]
        remedy = "A NoiseProfile, a NoiseEstimate or a text such as 'uniform:0.1' will do."
        raise invalid("noise", "must be a square matrix P(given grade | true grade)", value, remedy=remedy)
    return matrix


def read_noise(text: str, n_grades: int | None) -> NoiseProfile:
    """A profile from ``family:rate``, as in ``uniform:0.1``, or from a file that holds a matrix.

    >>> read_noise("adjacent:0.2", 3).name
    'adjacent 0.2'
    """
    family, colon, rate = text.partition(":")
    if not colon or Path(text).is_file():
        return read_matrix(text)
    _with_matrix(family)
    if n_grades is None:
        raise invalid("noise", "needs the number of grades with family:rate", repr(text))
    try:
        number = float(rate)
    except ValueError:
        raise invalid("noise rate", "must be a number", repr(rate), remedy="As in uniform:0.1.") from None
    return make_profile(family, number, n_grades)


def read_matrix(path: str | Path) -> NoiseProfile:
    """The matrix of a JSON file (rows, or an object with ``matrix``) or of a CSV file without a head."""
    from cleanrank.data.files import existing_file
    from cleanrank.data.spreadsheet import read_text, records_of

    file = existing_file(path)
    text = read_text(file)
    try:
        rows: Any
        if text.lstrip()[:1] in ("[", "{"):
            rows = json.loads(text)
        else:
            records = records_of(text, str(file), ";" if ";" in text else None)
            rows = [[cell.replace(",", ".") for cell in cells] for _, cells in records]
        saved = rows if isinstance(rows, dict) else {"matrix": rows}
        rows = saved["matrix"]
        matrix = np.array(rows, dtype=np.float64)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        rule = "must hold a square matrix of probabilities as JSON or CSV"
        deep = isinstance(error, RecursionError)
        value = "lists that are nested too deeply" if deep else f"{type(error).__name__}: {error}"
        message = error_text(f"noise file {str(file)!r}", rule, value)
        raise BadFileError(message, str(file)) from None
    warn_untrusted(saved.get("trusted", True), saved.get("reasons", ()))
    return NoiseProfile(matrix, file.stem)


PROFILES: dict[str, Callable[..., NoiseProfile]] = {
    "uniform": uniform,
    "geometric": geometric,
    "power": power,
    "adjacent": adjacent,
    "class-conditional": class_conditional,
    "one-way": one_way,
    "replacement": replacement,
    "uneven": uneven,
    "missed": missed,
}
