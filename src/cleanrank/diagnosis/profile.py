"""The shape of a judged set: lengths of queries, grades, queries without preference pairs, columns.

``counts`` is the (Q, C) table of documents per query and grade, the only thing about labels that the rest of
a diagnosis needs.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.noise.scales import check_few_grades
from cleanrank.ragged import query_of_row
from cleanrank.stored import blocks, is_dense
from cleanrank.types import Array, FloatArray, IntArray, RankingData

BINS = 24
SHOWN = 5


@dataclass(frozen=True)
class Lengths:
    """Documents per query: mean, quantiles (percent -> documents) and a histogram with whole edges."""

    mean: float
    quantiles: dict[str, float]
    edges: tuple[int, ...]
    queries: tuple[int, ...]


@dataclass(frozen=True)
class Grades:
    """How the grades are spread.

    Attributes:
        documents: how many documents have each grade.
        shares: the same as shares of all documents.
        query_shares: the mean over queries of each grade's share in the query.
        queries: how many queries have a document of each grade.
        different: how many queries hold 1, 2, ... different grades.
        effective: exp(entropy of the shares), the number of equally frequent grades that are as varied.
        relevant: quantiles (percent -> share) over queries of the share of documents above grade 0.
        unused: grades below the highest that no document has.
    """

    documents: tuple[int, ...]
    shares: tuple[float, ...]
    query_shares: tuple[float, ...]
    queries: tuple[int, ...]
    different: tuple[int, ...]
    effective: float
    relevant: dict[str, float]
    unused: tuple[int, ...]


@dataclass(frozen=True)
class Idle:
    """Queries without a pair of different grades: no ranker learns from them.

    ``documents`` counts their rows, ``one_grade`` counts, grade by grade, those with two documents or more;
    ``examples`` names some.
    """

    queries: int
    documents: int
    one_document: int
    one_grade: tuple[int, ...]
    examples: tuple[str, ...]


@dataclass(frozen=True)
class Pairs:
    """Pairs of documents within queries: all, and those of different grades, which rankers learn from."""

    all: int
    different: int


def grade_counts(data: RankingData) -> IntArray:
    """Documents per query and grade, (Q, C), of data with few grades."""
    if not data.n_docs:
        raise invalid("data", "must hold at least one document", "none")
    check_few_grades(data)
    return data.grade_counts()


def lengths_of(lengths: IntArray) -> Lengths:
    """Summarises documents per query."""
    percents = (0, 5, 25, 50, 75, 95, 100)
    quantiles = np.quantile(lengths, [p / 100 for p in percents])
    edges = _whole_edges(int(lengths.min()), int(lengths.max()))
    queries, _ = np.histogram(lengths, bins=edges)
    return Lengths(
        float(lengths.mean()),
        {str(p): float(v) for p, v in zip(percents, quantiles, strict=True)},
        tuple(int(e) for e in edges),
        tuple(int(q) for q in queries),
    )


def grades_of(counts: IntArray) -> Grades:
    """Summarises the grades of a (Q, C) table."""
    documents = counts.sum(axis=0)
    shares = documents / documents.sum()
    filled = counts[counts.sum(axis=1) > 0]
    by_query = filled / filled.sum(axis=1, keepdims=True)
    relevant = np.quantile(1 - by_query[:, 0], [0.1, 0.5, 0.9])
    used = shares[shares > 0]
    different = np.bincount((counts > 0).sum(axis=1), minlength=counts.shape[1] + 1)[1:]
    return Grades(
        tuple(int(n) for n in documents),
        tuple(float(s) for s in shares),
        tuple(float(s) for s in by_query.mean(axis=0)),
        tuple(int(n) for n in (counts > 0).sum(axis=0)),
        tuple(int(n) for n in different),
        float(np.exp(-(used * np.log(used)).sum())),
        {p: float(v) for p, v in zip(("10", "50", "90"), relevant, strict=True)},
        tuple(int(g) for g in np.flatnonzero(documents == 0)),
    )


def idle_of(data: RankingData, counts: IntArray) -> Idle:
    """The queries without a pair of different grades."""
    lengths = counts.sum(axis=1)
    idle = (counts > 0).sum(axis=1) < 2
    long_enough = idle & (lengths > 1)
    return Idle(
        int(idle.sum()),
        int(lengths[idle].sum()),
        int((idle & (lengths == 1)).sum()),
        tuple(int(n) for n in (counts[long_enough] > 0).sum(axis=0)),
        tuple(str(q) for q in data.query_ids[idle][:SHOWN]),
    )


def pairs_of(counts: IntArray) -> Pairs:
    """Counts pairs within queries without enumerating them."""
    lengths = counts.sum(axis=1)
    every = int((lengths * (lengths - 1) // 2).sum())
    same = int((counts * (counts - 1) // 2).sum())
    return Pairs(every, every - same)


def _whole_edges(lowest: int, highest: int) -> FloatArray | IntArray:
    """At most BINS bins of a width 1, 2, 5, 10, 20, ... that hold all lengths."""
    least = max(1, math.ceil((highest - lowest + 1) / (BINS - 1)))
    size = 10 ** int(math.log10(least))
    width = next(w * size for w in (1, 2, 5, 10) if w * size >= least)
    start = lowest // width * width
    return np.arange(start, highest + width + 1, width)


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
    varies, varies_in_query = (_dense if is_dense(X) else _sparse)(data)
    missing = np.zeros(data.n_features, dtype=np.int64)
    infinite = 0
    for columns, block in _stored_values(X):
        absent = np.isnan(block)
        if absent.any():
            missing += np.bincount(columns[absent], minlength=len(missing))
        infinite += int(np.isinf(block).sum())
    names = data.feature_names or [f"column {j}" for j in range(data.n_features)]
    return Columns(
        tuple(names[j] for j in np.flatnonzero(~varies)),
        tuple(names[j] for j in np.flatnonzero(varies & ~varies_in_query)),
        int(missing.sum()),
        {names[j]: int(missing[j]) for j in np.flatnonzero(missing)},
        infinite,
    )


def _stored_values(X: Any) -> Iterator[tuple[Array, Array]]:
    """(column, value) of what is stored, block by block."""
    if is_dense(X):
        for _, block in blocks(X):
            yield np.broadcast_to(np.arange(X.shape[1]), block.shape), block
        return
    for start in range(0, len(X.data), BLOCK_VALUES):
        yield X.indices[start : start + BLOCK_VALUES], X.data[start : start + BLOCK_VALUES]


Varying = tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]


def _dense(data: RankingData) -> Varying:
    """Whether each column varies at all, and within some query: differences from the row before."""
    F = data.n_features
    varies, inside = np.zeros(F, dtype=bool), np.zeros(F, dtype=bool)
    first_of_query = np.zeros(data.n_docs, dtype=bool)
    first_of_query[data.indptr[:-1][data.lengths > 0]] = True
    last: Array | None = None
    for start, block in blocks(data.X):
        before = block[:1] if last is None else last
        changed = _differ(block, np.concatenate((before, block[:-1])))
        last = block[-1:].copy()
        varies |= changed.any(axis=0)
        inside |= changed[~first_of_query[start : start + len(block)]].any(axis=0)
        if inside.all():
            break
    return varies, inside


def _sparse(data: RankingData) -> Varying:
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
        key, values = _cells(X, data, start, stop)
        again = np.concatenate((np.zeros(min(1, len(key)), dtype=bool), key[1:] == key[:-1]))
        first = np.flatnonzero(~again)
        column, sizes = key[first] % F, np.diff(np.append(first, len(key)))
        inside[column[sizes < data.lengths[start:stop][key[first] // F]]] = True
        inside[key[1:][again[1:] & _differ(values[1:], values[:-1])] % F] = True
        fresh = stored[column] == 0
        value[column[fresh]] = values[first][fresh]
        varies[column[_differ(values[first], value[column])]] = True
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
    different: npt.NDArray[np.bool_] = (a != b) & ~(np.isnan(a) & np.isnan(b))
    return different
