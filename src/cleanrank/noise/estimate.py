"""Noise estimates: a noise matrix, its uncertainty, and whether it can be trusted.

C is the number of grades, T[l, m] = P(given grade m | true grade l), r the proportions of the true grades.
An estimate holds S draws of (T, r) from a posterior; every interval, also that of pNoise, is read off them.
"""

import base64
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.data.files import existing_file, written_whole
from cleanrank.errors import BadFileError, invalid
from cleanrank.noise.class_conditional import ClassConditionality
from cleanrank.noise.pair_noise import expected_pair_noise, pair_shares
from cleanrank.noise.profiles import NoiseProfile, read_noise
from cleanrank.types import FloatArray, IntArray
from cleanrank.validation import one_of

# What an estimate rests on: rows judged again, repeated judgements, or cross-fitted predictions alone.
METHODS = {"gold": "answers", "repeated": "judgements", "data": "anchor rows"}
FORMAT = "cleanrank noise estimate"
VERSION = 1
WIDTH = 0.1
ANSWERS = 10


@dataclass(frozen=True)
class Shortfall:
    """Whether a sample was too small, by how much and why; true in a condition when it was.

    ``width`` is that of the interval of pNoise, ``more`` the further judgements needed for the ``target``
    width: a guide, since widths fall as 1 / sqrt(n).
    """

    width: float
    target: float
    more: int
    reasons: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.reasons)

    def __str__(self) -> str:
        if not self.reasons:
            return f"enough: the interval of pNoise is {self.width:.3f} wide ({self.target:g} was wanted)"
        return "too few: " + "; ".join(self.reasons)


@dataclass(frozen=True, eq=False, repr=False)
class NoiseEstimate:
    """An estimated noise matrix with its uncertainty; stands wherever a matrix is expected.

    Attributes:
        method: one of METHODS.
        profile: the posterior mean of the matrix; None when it could not be identified.
        draws: (S, C, C), matrices drawn from the posterior.
        proportion_draws: (S, C), the proportions of true grades that go with them.
        n: what the estimate rests on: answers, judgements or anchor rows.
        level: probability that an interval is meant to hold.
        answers: judgements per true grade (expected number where the truth is not known).
        trusted: whether the estimate passed its own checks.
        reasons: why it is not trusted, or what a reader must know, in words.
        rejected: the matrix that failed the checks, for looking at only.
        class_conditional: whether errors depend on the true grade alone, tested on the rows of known grade;
            None where there are no such rows.
        known_rows: (n, 3) row id, true grade and given grade of those rows where they were not drawn by more
            than the given grade, so that later users can test with what they know; None otherwise.
    """

    method: str
    profile: NoiseProfile | None
    draws: FloatArray
    proportion_draws: FloatArray
    n: int
    level: float = 0.95
    answers: FloatArray | None = None
    trusted: bool = True
    reasons: tuple[str, ...] = ()
    rejected: NoiseProfile | None = None
    class_conditional: ClassConditionality | None = None
    known_rows: IntArray | None = None

    def __post_init__(self) -> None:
        one_of("estimation method", self.method, METHODS)
        check_level(self.level)
        for name in ("draws", "proportion_draws", "answers"):
            if getattr(self, name) is not None:
                values = np.array(getattr(self, name), dtype=np.float64)
                values.flags.writeable = False
                object.__setattr__(self, name, values)
        S, C = self.draws.shape[0], self.draws.shape[-1]
        if self.draws.shape != (S, C, C) or self.proportion_draws.shape != (S, C):
            shapes = f"{self.draws.shape} and {self.proportion_draws.shape}"
            raise invalid("draws", "must be (S, C, C) matrices with (S, C) proportions", shapes)

    @property
    def n_grades(self) -> int:
        """C, the number of grades."""
        return int(self.draws.shape[-1])

    @property
    def matrix(self) -> FloatArray:
        """The posterior mean of T; an error with the reasons when there is none."""
        if self.profile is None:
            rule = f"is not identified ({'; '.join(self.reasons)})"
            raise invalid("noise matrix", rule, remedy="Judge about 100 rows again (cleanrank gold sample).")
        return self.profile.matrix

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.matrix, dtype=dtype)

    @property
    def interval(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends for every entry of T."""
        return shortest_interval(self.draws, self.level)

    @property
    def proportions(self) -> FloatArray:
        """The posterior mean of r, the shares of the true grades."""
        mean: FloatArray = self.proportion_draws.mean(axis=0)
        return mean

    @property
    def rate(self) -> float:
        """The expected share of wrong grades (dNoise)."""
        return float(self._rates.mean()) if len(self.draws) else float("nan")

    @property
    def rate_interval(self) -> tuple[float, float]:
        """Its interval."""
        return _ends(self._rates, self.level)

    @property
    def pnoise(self) -> float:
        """The expected share of wrong pairs, by the closed form for long lists."""
        return float(np.nanmean(self.pnoise_draws)) if len(self.draws) else float("nan")

    @property
    def pnoise_interval(self) -> tuple[float, float]:
        """Its interval."""
        return _ends(self.pnoise_draws, self.level)

    @property
    def pnoise_draws(self) -> FloatArray:
        """The pNoise of every draw."""
        return expected_pair_noise(self.draws, *pair_shares(self.proportion_draws))

    @property
    def _rates(self) -> FloatArray:
        kept = np.diagonal(self.draws, axis1=1, axis2=2)
        rates: FloatArray = (self.proportion_draws * (1 - kept)).sum(axis=1)
        return rates

    def too_few(self, width: float = WIDTH, answers: int = ANSWERS) -> Shortfall:
        """Says whether the sample was too small for an interval of pNoise no wider than ``width``.

        Args:
            width: how wide the interval of pNoise may be.
            answers: how many judgements every true grade should have.
        """
        if not len(self.draws):
            return Shortfall(float("nan"), width, 0, ("there is no estimate",))
        low, high = self.pnoise_interval
        actual, more, reasons = high - low, 0, []
        if actual > width:
            more = math.ceil(self.n * ((actual / width) ** 2 - 1))
            reasons.append(
                f"the {100 * self.level:.4g}% interval of pNoise is {actual:.3f} wide, {width:g} was wanted: "
                f"about {more:,} more judgements"
            )
        for g, n in enumerate(() if self.answers is None else self.answers.tolist()):
            if n < answers:
                rest = "so its row of the matrix rests mostly on the prior"
                reasons.append(f"answers of true grade {g}: {n:.0f}, {rest}")
        return Shortfall(actual, width, more, tuple(reasons))

    def __repr__(self) -> str:
        head = f"NoiseEstimate({self.method}, {self.n:,} {METHODS[self.method]}"
        why = "".join(f"\n  - {reason}" for reason in self.reasons)
        if self.profile is None:
            return f"{head}): no matrix, because" + why
        low, high = self.interval
        lines = [
            f"{head}{'' if self.trusted else ', not trusted'}): P(given | true), "
            f"{100 * self.level:.4g}% intervals"
        ]
        for l, row in enumerate(self.matrix):
            cells = (f"{p:.2f} [{a:.2f}, {b:.2f}]" for p, a, b in zip(row, low[l], high[l], strict=True))
            lines.append(f"  true {l}: " + "  ".join(cells))
        spans = (
            ("wrong grades", self.rate, self.rate_interval),
            ("wrong pairs (pNoise)", self.pnoise, self.pnoise_interval),
        )
        lines += [f"  {what} {value:.3f} [{a:.3f}, {b:.3f}]" for what, value, (a, b) in spans]
        if self.class_conditional is not None:
            lines.append(f"  {self.class_conditional.words}")
        return "\n".join(lines) + why

    def to_json(self) -> dict[str, Any]:
        """Plain values; ``matrix`` at the top, draws packed as base64 of little-endian float64."""
        low, high = self.interval if len(self.draws) else (self.draws, self.draws)
        return {
            "format": FORMAT,
            "version": VERSION,
            "method": self.method,
            "matrix": None if self.profile is None else self.profile.matrix.tolist(),
            "lower": low.tolist(),
            "upper": high.tolist(),
            "level": self.level,
            "n": self.n,
            "answers": None if self.answers is None else self.answers.tolist(),
            "proportions": self.proportions.tolist() if len(self.draws) else None,
            "rate": _number(self.rate),
            "rate_interval": [_number(v) for v in self.rate_interval],
            "pnoise": _number(self.pnoise),
            "pnoise_interval": [_number(v) for v in self.pnoise_interval],
            "trusted": self.trusted,
            "reasons": list(self.reasons),
            "rejected": None if self.rejected is None else self.rejected.matrix.tolist(),
            "class_conditional": self.class_conditional and self.class_conditional.to_json(),
            "known_rows": None if self.known_rows is None else self.known_rows.tolist(),
            "too_few": [str(reason) for reason in self.too_few().reasons],
            "draws": {
                "shape": list(self.draws.shape),
                "matrices": _pack(self.draws),
                "proportions": _pack(self.proportion_draws),
            },
        }

    def save(self, path: str | PathLike[str]) -> None:
        """Writes JSON, whole or not at all."""
        with written_whole(path) as part:
            part.write_text(json.dumps(self.to_json(), indent=1) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "NoiseEstimate":
        """Reads what ``save`` wrote."""
        file = existing_file(path)
        try:
            saved = json.loads(Path(file).read_text(encoding="utf-8"))
            if saved["format"] != FORMAT or saved["version"] != VERSION:
                raise KeyError("format")
            S, C, _ = (int(v) for v in saved["draws"]["shape"])
            return cls(
                method=saved["method"],
                profile=_profile(saved["matrix"], f"estimated ({saved['method']})"),
                draws=_unpack(saved["draws"]["matrices"], (S, C, C)),
                proportion_draws=_unpack(saved["draws"]["proportions"], (S, C)),
                n=int(saved["n"]),
                level=float(saved["level"]),
                answers=None if saved["answers"] is None else np.asarray(saved["answers"]),
                trusted=bool(saved["trusted"]),
                reasons=tuple(str(reason) for reason in saved["reasons"]),
                rejected=_profile(saved["rejected"], "rejected"),
                class_conditional=_tested(saved.get("class_conditional")),
                known_rows=_rows(saved.get("known_rows")),
            )
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            message = f"{file} is not a noise estimate written by cleanrank ({error!r})."
            raise BadFileError(message, str(file)) from error


def load_noise(text: str, n_grades: int) -> NoiseEstimate | NoiseProfile:
    """The noise that a text names: the file of an estimate or of a matrix, or ``family:rate``.

    >>> load_noise("uniform:0.1", 3).name
    'uniform 0.1'
    """
    file = Path(text)
    if file.is_file() and FORMAT in file.read_text(encoding="utf-8", errors="replace")[:200]:
        return NoiseEstimate.load(file)
    return read_noise(text, n_grades)


def summarise(
    method: str,
    draws: FloatArray,
    proportion_draws: FloatArray,
    n: int,
    *,
    level: float = 0.95,
    answers: npt.ArrayLike | None = None,
    trusted: bool = True,
    reasons: Sequence[str] = (),
    **known: Any,
) -> NoiseEstimate:
    """An estimate whose matrix is the mean of the draws; ``known`` is what else is known of the rows."""
    mean = draws.mean(axis=0)
    profile = NoiseProfile(mean / mean.sum(axis=1, keepdims=True), f"estimated ({method})")
    counts = None if answers is None else np.asarray(answers, dtype=np.float64)
    return NoiseEstimate(
        method, profile, draws, proportion_draws, n, level, counts, trusted, tuple(reasons),
        **known,
    )  # fmt: skip


def weak_prior(n_grades: int) -> FloatArray:
    """Dirichlet weights of the rows of T: two for a kept grade, one half shared by all errors.

    Worth two and a half answers per true grade and centred on a fifth of errors. An error's weight is below
    1, so that an error nobody saw keeps 0 within its interval.

    >>> weak_prior(3).tolist()
    [[2.0, 0.25, 0.25], [0.25, 2.0, 0.25], [0.25, 0.25, 2.0]]
    """
    prior = np.full((n_grades, n_grades), 0.5 / max(n_grades - 1, 1))
    np.fill_diagonal(prior, 2.0)
    return prior


def check_level(level: float) -> None:
    """Raises unless ``level`` lies strictly between 0 and 1."""
    if not 0 < level < 1:
        raise invalid("level", "must lie strictly between 0 and 1", level)


def shortest_interval(draws: FloatArray, level: float = 0.95) -> tuple[FloatArray, FloatArray]:
    """The shortest interval that holds ``level`` of the draws, entry by entry, for values in [0, 1].

    Where it begins at the lowest draws the density is highest at the edge, and the interval is closed at 0
    (at 1 likewise): an equal-tailed interval could never hold a probability that is 0.

    >>> low, high = shortest_interval(np.linspace(0, 1, 101)[:, None] ** 3, 0.9)
    >>> low.tolist(), high.round(3).tolist()
    ([0.0], [0.729])
    """
    ordered = np.sort(draws, axis=0)
    S = len(ordered)
    inside = min(max(math.ceil(level * S), 1), S) - 1
    starts = np.argmin(ordered[inside:] - ordered[: S - inside], axis=0)
    low = np.take_along_axis(ordered, starts[None], axis=0)[0]
    high = np.take_along_axis(ordered, starts[None] + inside, axis=0)[0]
    edge = max((S - inside) // 20, 1)
    return np.where(starts < edge, 0.0, low), np.where(starts > S - 1 - inside - edge, 1.0, high)


def _ends(draws: FloatArray, level: float) -> tuple[float, float]:
    """The middle ``level`` of the draws; from 0 where the density is highest there."""
    kept = draws[np.isfinite(draws)]
    if not len(kept):
        return float("nan"), float("nan")
    low, high = np.quantile(kept, [(1 - level) / 2, (1 + level) / 2])
    at_zero = shortest_interval(kept[:, None], level)[0][0] == 0.0
    return (0.0 if at_zero else float(low)), float(high)


def _number(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _profile(matrix: Any, name: str) -> NoiseProfile | None:
    return None if matrix is None else NoiseProfile(np.asarray(matrix, dtype=np.float64), name)


def _tested(saved: Any) -> ClassConditionality | None:
    return None if saved is None else ClassConditionality.from_json(saved)


def _rows(saved: Any) -> IntArray | None:
    return None if saved is None else np.asarray(saved, dtype=np.int64).reshape(-1, 3)


def _pack(values: FloatArray) -> str:
    return base64.b64encode(np.ascontiguousarray(values, dtype="<f8").tobytes()).decode("ascii")


def _unpack(text: str, shape: tuple[int, ...]) -> FloatArray:
    flat = np.frombuffer(base64.b64decode(text, validate=True), dtype="<f8")
    return flat.reshape(shape).astype(np.float64)
