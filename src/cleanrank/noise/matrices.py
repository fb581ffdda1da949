"""Noise matrices as people write them: a file, or a family with its rate."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.errors import BadFileError, CleanrankError, error_text, invalid
from cleanrank.noise.profiles import PROFILES, NoiseProfile, make_profile
from cleanrank.validation import one_of


def read_noise(text: str, n_grades: int) -> NoiseProfile:
    """A profile from ``family:rate``, as in ``uniform:0.1``, or from a file that holds a matrix.

    >>> read_noise("adjacent:0.2", 3).name
    'adjacent 0.2'
    """
    family, colon, rate = text.partition(":")
    if not colon or Path(text).is_file():
        return read_matrix(text)
    one_of("noise profile", family, PROFILES)
    try:
        return make_profile(family, float(rate), n_grades)
    except ValueError as error:
        if isinstance(error, CleanrankError):
            raise
        raise invalid("noise rate", "must be a number", repr(rate), remedy="As in uniform:0.1.") from error


def read_matrix(path: str | Path) -> NoiseProfile:
    """The matrix of a JSON file (rows, or an object with ``matrix``) or of a CSV file without a head."""
    from cleanrank.data.files import existing_file

    file = existing_file(path)
    try:
        text = file.read_text(encoding="utf-8")
        rows: Any = json.loads(text) if text.lstrip()[:1] in ("[", "{") else _csv(text)
        rows = rows["matrix"] if isinstance(rows, dict) else rows
        matrix = np.array(rows, dtype=np.float64)
    except (ValueError, KeyError, TypeError) as error:
        raise BadFileError(
            error_text(
                f"noise file {str(file)!r}",
                "must hold a square matrix of probabilities as JSON or CSV",
                f"{type(error).__name__}: {error}",
            ),
            str(file),
        ) from None
    return NoiseProfile(matrix, file.stem)


def _csv(text: str) -> list[list[float]]:
    return [[float(cell) for cell in line.split(",")] for line in text.splitlines() if line.strip()]
