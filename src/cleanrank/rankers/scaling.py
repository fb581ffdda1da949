"""Features on one scale, learnt on training rows: for rankers that add them up."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.stored import StoredFeatures
from cleanrank.types import Array, FloatArray, IntArray
from cleanrank.validation import one_of


@dataclass(frozen=True, eq=False)
class Scaling:
    """A scale for each feature, learnt on training rows: (x - shift) x factor; a missing value becomes 0."""

    kind: str  # one of SCALINGS
    shift: Array  # (F,), of the precision that features are scaled in
    factor: Array  # (F,); 0 for a column that never changed in training

    def apply(self, X: Any, *, rows: IntArray | None = None, subject: str = "X") -> Array:
        """Scaled features, dense; a new array. Infinite ones are refused; see ``fit_scaling``."""
        dense = _dense(X, rows, subject, self.shift.dtype)
        if dense.shape[1] != len(self.shift):
            rule = f"must have the {len(self.shift)} columns that the model was trained on"
            raise invalid(subject, rule, f"shape {dense.shape}")
        # Frames store columns together; rows are what is gathered and multiplied.
        scaled = np.array(dense, order="C")
        if self.kind != "none":
            with np.errstate(over="ignore"):
                scaled -= self.shift
                scaled *= self.factor
            _refuse_infinite(scaled, rows, subject, "must be finite on the scale of the training rows")
        scaled[np.isnan(scaled)] = 0.0
        return scaled


def fit_scaling(
    X: Any,
    kind: str = "zscore",
    *,
    rows: IntArray | None = None,
    subject: str = "X",
    dtype: npt.DTypeLike = np.float32,
) -> Scaling:
    """Learns the scale of every column; missing values are passed over, infinite ones refused.

    ``kind``: "zscore" (mean 0, deviation 1), "minmax" (the range becomes [-1, 1], as in ULTRA) or "none".
    ``rows`` and ``subject`` are what messages call the rows (their numbers if None) and the features;
    features are scaled in the precision ``dtype``.
    """
    one_of("scaling", kind, SCALINGS)
    if isinstance(X, StoredFeatures):
        return _fit_by_blocks(X, kind, rows, subject, dtype)
    dense = _dense(X, rows, subject, dtype)
    n_features = dense.shape[1]
    if kind == "none" or not len(dense):
        return Scaling(kind, np.zeros(n_features, dtype), np.ones(n_features, dtype))
    columns = [SCALINGS[kind](dense[:, f].astype(np.float64)) for f in range(n_features)]
    shift, spread = np.array(columns).reshape(-1, 2).T
    return _scaling(kind, shift, spread, dtype)


def _scaling(kind: str, shift: FloatArray, spread: FloatArray, dtype: npt.DTypeLike) -> Scaling:
    factor = np.divide(1.0, spread, out=np.zeros(len(spread)), where=spread > 0)
    return Scaling(kind, shift.astype(dtype), factor.astype(dtype))


def _fit_by_blocks(
    X: StoredFeatures, kind: str, rows: IntArray | None, subject: str, dtype: npt.DTypeLike
) -> Scaling:
    """The same scale from features that stay on disk, in one pass and in double precision.

    The mean and the sum of squares about it of two parts together are those of Chan, Golub, LeVeque (1979).
    """
    F = X.shape[1]
    if kind == "none" or not X.shape[0]:
        return Scaling(kind, np.zeros(F, dtype), np.ones(F, dtype))
    n, mean, squares = np.zeros(F), np.zeros(F), np.zeros(F)
    low, high = np.full(F, np.inf), np.full(F, -np.inf)
    for start, values in X.blocks():
        names = np.arange(start, start + len(values)) if rows is None else rows[start : start + len(values)]
        block = _dense(values, names, subject, dtype).astype(np.float64)
        missing = np.isnan(block)
        count = (~missing).sum(axis=0)
        if kind == "minmax":
            low = np.minimum(low, np.where(missing, np.inf, block).min(axis=0))
            high = np.maximum(high, np.where(missing, -np.inf, block).max(axis=0))
        else:
            own = np.where(missing, 0.0, block).sum(axis=0) / np.maximum(count, 1)
            about = np.where(missing, 0.0, block - own)
            gap, total = own - mean, np.maximum(n + count, 1)
            squares += (about * about).sum(axis=0) + gap * gap * n * count / total
            mean += gap * count / total
        n += count
    if kind == "minmax":
        low, high = (np.where(n > 0, values, 0.0) for values in (low, high))
        return _scaling(kind, (low + high) / 2, (high - low) / 2, dtype)
    return _scaling(kind, mean, np.sqrt(squares / np.maximum(n, 1)), dtype)


def _dense(X: Any, rows: IntArray | None, subject: str, dtype: npt.DTypeLike) -> Array:
    """Features as a table of numbers in the range of a precision."""
    try:
        dense = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
        if dense.dtype != dtype:
            with np.errstate(over="ignore"):
                dense = dense.astype(dtype)
    except (TypeError, ValueError) as error:
        raise invalid(subject, "must hold numbers in rows of one length", str(error)) from error
    if dense.ndim != 2:
        remedy = "One row is X[None, :]." if dense.ndim == 1 else ""
        raise invalid(
            subject, "must have two dimensions (documents, features)", f"shape {dense.shape}", remedy=remedy
        )
    _refuse_infinite(dense, rows, subject, "must be finite, or nan where a value is missing")
    return dense


def _refuse_infinite(X: Array, rows: IntArray | None, subject: str, rule: str) -> None:
    infinite = np.isinf(X)
    if infinite.any():
        row, column = np.unravel_index(int(np.argmax(infinite)), X.shape)
        name = int(row) if rows is None else int(rows[row])
        remedy = "Replace or clip it, or make it nan."
        raise invalid(subject, rule, X[row, column], at=f"row {name}, column {int(column)}", remedy=remedy)


def _zscore(column: Array) -> tuple[float, float]:
    present = column[~np.isnan(column)]
    return (float(present.mean()), float(present.std())) if len(present) else (0.0, 0.0)


def _minmax(column: Array) -> tuple[float, float]:
    present = column[~np.isnan(column)]
    if not len(present):
        return 0.0, 0.0
    low, high = float(present.min()), float(present.max())
    return (low + high) / 2, (high - low) / 2


SCALINGS: dict[str, Callable[[Array], tuple[float, float]]] = {
    "zscore": _zscore,
    "minmax": _minmax,
    "none": lambda column: (0.0, 1.0),
}
