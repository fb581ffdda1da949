"""Which documents are seen together: batches of queries of like length, features on one scale.

Queries are drawn in a new order in every epoch and cut into batches of queries of about the same length, so
that padding scores to the longest of a batch wastes little; documents themselves are never padded.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cleanrank.errors import invalid
from cleanrank.types import Array, IntArray
from cleanrank.validation import check_integer, one_of

CPU = torch.device("cpu")
# Lengths are compared after a random change of up to this share, so that batches differ between epochs.
JITTER = 0.1
# Pairs of documents (B x L x L) that a batch may hold: what pairwise losses allocate, 64 MiB an array.
MOST_PAIRS = 1 << 24


@dataclass(frozen=True, eq=False)
class Batch:
    """B queries that are seen together, the longest of L documents."""

    shape: tuple[int, int]  # (B, L)
    rows: Tensor  # (N,), the documents of the batch
    places: Tensor  # (N,), where their scores go among the B x L places of the padded batch
    mask: Tensor  # (B, L), False at padding

    def pad(self, flat: Tensor) -> Tensor:
        """Values of the documents (N, ...) as (B, L, ...); 0 at padding."""
        B, L = self.shape
        padded = flat.new_zeros(B * L, *flat.shape[1:]).index_copy(0, self.places, flat)
        return padded.view(B, L, *flat.shape[1:])

    def unpad(self, padded: Tensor) -> Tensor:
        """The inverse of ``pad``."""
        return padded.flatten(0, 1).index_select(0, self.places)


def batch_of(indptr: IntArray, queries: IntArray, device: torch.device = CPU) -> Batch:
    """The batch of some queries, its indices on a device.

    >>> batch = batch_of(np.array([0, 2, 5]), np.array([1, 0]))
    >>> batch.rows.tolist(), batch.places.tolist(), batch.shape
    ([2, 3, 4, 0, 1], [0, 1, 2, 3, 4], (2, 3))
    """

    def tensor(values: IntArray) -> Tensor:
        return torch.from_numpy(values).to(device, non_blocking=True)

    starts, lengths = indptr[queries], indptr[queries + 1] - indptr[queries]
    place = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    longest = int(lengths.max(initial=0))
    places = np.repeat(np.arange(len(queries)) * longest, lengths) + place
    mask = torch.arange(longest, device=device) < tensor(lengths)[:, None]
    return Batch((len(queries), longest), tensor(np.repeat(starts, lengths) + place), tensor(places), mask)


def bucketed(
    lengths: IntArray, batch_queries: int, rng: np.random.Generator, *, most_pairs: int = MOST_PAIRS
) -> list[IntArray]:
    """All queries with documents, cut into batches of about one length, batches in random order.

    A batch has at most ``batch_queries`` queries and ``most_pairs`` B x L x L, which one query may exceed.
    """
    check_integer("batch_queries", batch_queries, least=1)
    present = rng.permutation(np.flatnonzero(lengths > 0))
    shaken = lengths[present] * rng.uniform(1 - JITTER, 1 + JITTER, len(present))
    present = present[np.argsort(shaken, kind="stable")]
    cut = list(_cut(lengths[present], batch_queries, most_pairs))
    return [present[cut[k][0] : cut[k][1]] for k in rng.permutation(len(cut))]


def _cut(lengths: IntArray, batch_queries: int, most_pairs: int) -> Iterator[tuple[int, int]]:
    start, longest = 0, 0
    for at, length in enumerate(lengths.tolist()):
        longest = max(longest, length)
        full = at - start == batch_queries
        if at > start and (full or (at - start + 1) * longest**2 > most_pairs):
            yield start, at
            start, longest = at, length
    if start < len(lengths):
        yield start, len(lengths)


def chunks(indptr: IntArray, documents: int) -> Iterator[IntArray]:
    """Queries in their order, as many at a time as have about ``documents`` documents; for scoring."""
    start, total = 0, len(indptr) - 1
    while start < total:
        stop = int(np.searchsorted(indptr, indptr[start] + documents, side="right")) - 1
        stop = min(max(stop, start + 1), total)
        yield np.arange(start, stop)
        start = stop


@dataclass(frozen=True, eq=False)
class Scaling:
    """A scale for each feature, learnt on training rows: (x - shift) x factor; a missing value becomes 0."""

    kind: str  # one of SCALINGS
    shift: Array  # (F,) float32
    factor: Array  # (F,) float32; 0 for a column that never changed in training

    def apply(self, X: Any, *, rows: IntArray | None = None, subject: str = "X") -> Array:
        """Scaled features, dense float32; a new array. Infinite ones are refused; see ``fit_scaling``."""
        dense = _dense(X, rows, subject)
        if dense.shape[1] != len(self.shift):
            rule = f"must have the {len(self.shift)} columns that the model was trained on"
            raise invalid(subject, rule, f"shape {dense.shape}")
        # Frames store columns together; rows are what is gathered and multiplied.
        scaled = np.array(dense, dtype=np.float32, order="C")
        if self.kind != "none":
            with np.errstate(over="ignore"):
                scaled -= self.shift
                scaled *= self.factor
            _refuse_infinite(scaled, rows, subject, "must be finite on the scale of the training rows")
        scaled[np.isnan(scaled)] = 0.0
        return scaled


def fit_scaling(X: Any, kind: str = "zscore", *, rows: IntArray | None = None, subject: str = "X") -> Scaling:
    """Learns the scale of every column; missing values are passed over, infinite ones refused.

    ``kind``: "zscore" (mean 0, deviation 1), "minmax" (the range becomes [-1, 1], as in ULTRA) or "none".
    ``rows`` and ``subject`` are what messages call the rows (their numbers if None) and the features.
    """
    one_of("scaling", kind, SCALINGS)
    dense = _dense(X, rows, subject)
    n_features = dense.shape[1]
    if kind == "none" or not len(dense):
        return Scaling(kind, np.zeros(n_features, np.float32), np.ones(n_features, np.float32))
    columns = [SCALINGS[kind](dense[:, f].astype(np.float64)) for f in range(n_features)]
    shift, spread = np.array(columns).reshape(-1, 2).T
    factor = np.divide(1.0, spread, out=np.zeros(n_features), where=spread > 0)
    return Scaling(kind, shift.astype(np.float32), factor.astype(np.float32))


def _dense(X: Any, rows: IntArray | None, subject: str) -> Array:
    """Features as a table of numbers in single precision's range."""
    try:
        dense = np.asarray(X.toarray() if hasattr(X, "toarray") else X)
        if dense.dtype != np.float32:
            with np.errstate(over="ignore"):
                dense = dense.astype(np.float32)
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
