"""What is wrong with feature columns: constant ones, missing and infinite values.

Rows are read in blocks, so memory stays small whatever the size of the data.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.groups import query_of_row
from cleanrank.types import Array, RankingData

BLOCK_VALUES = 1 << 22


@dataclass(frozen=True)
class Columns:
    """Feature columns that cannot rank, and values that are not there.

    Attributes:
        constant: columns with one value (or none) in all rows.
        constant_in_queries: further columns that never vary within a query: they tell queries apart, not
            documents.
        missing: how many values are NaN.
        missing_columns: how many values are NaN, by column; columns without any are left out.
        infinite: how many values are infinite.
    """

    constant: tuple[str, ...]
    constant_in_queries: tuple[str, ...]
    missing: int
    missing_columns: dict[str, int]
    infinite: int


def columns_of(data: RankingData) -> Columns:
    """Looks through all columns.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[1, 5, 0], [1, 5, np.nan], [1, 6, 2]], [0, 1, 1], qid=[1, 1, 2])
    >>> columns_of(data)
    Columns(constant=('column 0',), constant_in_queries=('column 1',), missing=1, ...)
    """
    X: Any = data.X
    dense = isinstance(X, np.ndarray)
    varies, varies_in_query = (_dense if dense else _sparse)(data)
    stored = X if dense else X.data
    where = None if dense else X.indices
    missing = np.zeros(data.n_features, dtype=np.int64)
    infinite = 0
    for block, columns in _blocks(stored, where):
        absent = np.isnan(block)
        if absent.any():
            missing += absent.sum(axis=0) if dense else np.bincount(columns[absent], minlength=len(missing))
        infinite += int(np.isinf(block).sum())
    names = data.feature_names or [f"column {j}" for j in range(data.n_features)]
    return Columns(
        tuple(names[j] for j in np.flatnonzero(~varies)),
        tuple(names[j] for j in np.flatnonzero(varies & ~varies_in_query)),
        int(missing.sum()),
        {names[j]: int(missing[j]) for j in np.flatnonzero(missing)},
        infinite,
    )


Found = tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]


def _dense(data: RankingData) -> Found:
    """Whether each column varies at all, and within some query: differences from the row before."""
    X = np.asarray(data.X)
    varies, inside = np.zeros(X.shape[1], dtype=bool), np.zeros(X.shape[1], dtype=bool)
    query = query_of_row(data.indptr)
    rows = max(1, BLOCK_VALUES // max(1, X.shape[1]))
    for start in range(1, len(X), rows):
        here = slice(start, min(len(X), start + rows))
        before = slice(here.start - 1, here.stop - 1)
        changed = _differ(X[here], X[before])
        varies |= changed.any(axis=0)
        inside |= changed[query[here] == query[before]].any(axis=0)
        if inside.all():
            break
    return varies, inside


def _sparse(data: RankingData) -> Found:
    """The same from the stored values of each (query, column): implicit zeros are values too."""
    X: Any = data.X
    F = X.shape[1]
    stored = np.zeros(F, dtype=np.int64)
    value = np.zeros(F, dtype=np.float32)
    varies, inside = np.zeros(F, dtype=bool), np.zeros(F, dtype=bool)
    offsets = X.indptr[data.indptr].astype(np.int64)
    start = 0
    while start < data.n_queries:
        stop = max(start + 1, int(np.searchsorted(offsets, offsets[start] + BLOCK_VALUES, side="right")) - 1)
        stop = min(stop, data.n_queries)
        key, found = _cells(X, data, start, stop)
        again = np.concatenate((np.zeros(min(1, len(key)), dtype=bool), key[1:] == key[:-1]))
        first = np.flatnonzero(~again)
        column, sizes = key[first] % F, np.diff(np.append(first, len(key)))
        inside[column[sizes < data.lengths[start:stop][key[first] // F]]] = True
        inside[key[1:][again[1:] & _differ(found[1:], found[:-1])] % F] = True
        fresh = stored[column] == 0
        value[column[fresh]] = found[first][fresh]
        varies[column[_differ(found[first], value[column])]] = True
        stored += np.bincount(column, weights=sizes, minlength=F).astype(np.int64)
        start = stop
    varies |= inside | ((stored > 0) & (stored < data.n_docs))
    return varies, inside


def _cells(X: Any, data: RankingData, start: int, stop: int) -> tuple[Array, Array]:
    """The stored values of some queries, other than 0, ordered by query x F + column, and those keys."""
    part = X[data.indptr[start] : data.indptr[stop]]
    query = np.repeat(query_of_row(data.indptr[start : stop + 1]), np.diff(part.indptr))
    keep = part.data != 0  # NaN differs from 0 and stays
    key = query[keep] * X.shape[1] + part.indices[keep].astype(np.int64)
    order = np.argsort(key, kind="stable")
    return key[order], part.data[keep][order]


def _differ(a: Array, b: Array) -> npt.NDArray[np.bool_]:
    """Where two arrays differ; NaN equals NaN."""
    found: npt.NDArray[np.bool_] = (a != b) & ~(np.isnan(a) & np.isnan(b))
    return found


def _blocks(values: Array, columns: Array | None) -> Iterator[tuple[Array, Array]]:
    rows = max(1, BLOCK_VALUES // max(1, values.shape[1] if values.ndim == 2 else 1))
    for start in range(0, len(values), rows):
        here = slice(start, start + rows)
        yield values[here], np.zeros(0) if columns is None else columns[here]
