"""Rows with identical features, and what their labels say about noise.

Identical rows of one query cannot be told apart by any ranker. If they hold different grades, at most the
most frequent grade of such a group can be right, so with n_g rows and n_gl of grade l in group g

    share of wrong labels >= sum_g (n_g - max_l n_gl) / N,

provided that identical features mean equal relevance. Two judgements of one document at error rate e (uniform
profile, C grades) disagree with probability d = (1 - k^2)(C - 1)/C, k = 1 - e C/(C - 1); read backwards, the
share of disagreeing duplicates estimates e.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cleanrank.groups import query_of_row
from cleanrank.types import Array, IntArray, RankingData

BLOCK_VALUES = 1 << 22
SHOWN = 5


@dataclass(frozen=True)
class Example:
    """One group of rows that should agree and does not: their places in the input, queries and grades."""

    rows: tuple[int, ...]
    queries: tuple[str, ...]
    grades: tuple[int, ...]


@dataclass(frozen=True)
class Repeats:
    """Rows that repeat one another, and how far their labels agree.

    Attributes:
        groups: groups of two rows or more.
        rows: rows in them.
        contradicting_groups: groups with more than one grade.
        contradicting_rows: rows in those.
        least_wrong: the smallest number of labels to change until every group agrees.
        pairs: pairs of rows of one group.
        disagreeing_pairs: those with different grades.
        examples: some contradicting groups, largest first.
    """

    groups: int
    rows: int
    contradicting_groups: int
    contradicting_rows: int
    least_wrong: int
    pairs: int
    disagreeing_pairs: int
    examples: tuple[Example, ...]


@dataclass(frozen=True)
class Duplicates:
    """All kinds of repeated rows.

    Attributes:
        within: identical features within a query; rows with a feature other than 0.
        blank: the same for rows whose features are all 0, which say nothing about the document.
        across: identical features in two or more queries; their relevance may truly differ.
        doc_ids: the same document id twice in a query; None where there are no ids.
        lower_bound: ``within.least_wrong`` as a share of all documents.
        implied_rate: the error rate at which independent judgements disagree as often as ``within`` does;
            None without pairs.
    """

    within: Repeats
    blank: Repeats
    across: Repeats
    doc_ids: Repeats | None
    lower_bound: float
    implied_rate: float | None


def duplicates_of(data: RankingData) -> Duplicates:
    """Finds identical rows in linear time; a hash only proposes, equality of the features decides.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[1, 2], [1, 2], [3, 4]], [0, 1, 0], qid=[1, 1, 1])
    >>> found = duplicates_of(data)
    >>> found.within.least_wrong, round(found.lower_bound, 3), found.within.examples[0].rows
    (1, 0.333, (0, 1))
    """
    first, blank = first_rows(data)
    query = query_of_row(data.indptr)
    shared = _shared(first)
    within = _within(first, query, shared)
    empty = blank & (within >= 0)
    filled = repeats(np.where(empty, -1, within), data)
    used = int((np.bincount(data.y) > 0).sum())
    disagreeing = filled.disagreeing_pairs / filled.pairs if filled.pairs else None
    return Duplicates(
        filled,
        repeats(np.where(empty, within, -1), data),
        repeats(_across(first, query, shared), data),
        None if data.doc_ids is None else repeats(_same_ids(data.doc_ids, query), data),
        filled.least_wrong / data.n_docs,
        None if disagreeing is None else implied_rate(disagreeing, max(used, 2)),
    )


def implied_rate(disagreeing: float, n_grades: int) -> float:
    """The rate e at which two independent judgements (uniform profile) disagree with this probability.

    >>> round(implied_rate(2 * 0.1 * 0.9, 2), 12)
    0.1
    """
    most = (n_grades - 1) / n_grades
    return most * (1 - math.sqrt(max(0.0, 1 - disagreeing / most)))


def repeats(group: IntArray, data: RankingData) -> Repeats:
    """Counts agreement within groups of rows; ``group`` holds a code per row, -1 for a row on its own."""
    rows = np.flatnonzero(group >= 0)
    order = rows[np.lexsort((data.y[rows], group[rows]))]
    g, y = group[order], data.y[order]
    starts = _starts(g)
    sizes = np.diff(np.append(starts, len(g)))
    cells = np.flatnonzero(_new(g) | _new(y))
    cell_sizes = np.diff(np.append(cells, len(g)))
    cell_group = np.searchsorted(starts, cells, side="right") - 1
    largest = np.zeros(len(starts), dtype=np.int64)
    np.maximum.at(largest, cell_group, cell_sizes)
    wrong = sizes - largest
    pairs = int((sizes * (sizes - 1) // 2).sum())
    return Repeats(
        len(starts),
        len(rows),
        int((wrong > 0).sum()),
        int(sizes[wrong > 0].sum()),
        int(wrong.sum()),
        pairs,
        pairs - int((cell_sizes * (cell_sizes - 1) // 2).sum()),
        _examples(order, starts, sizes, wrong, data),
    )


def first_rows(data: RankingData) -> tuple[IntArray, Array]:
    """For every row the first row with the same features, and whether its features are all 0."""
    from cleanrank.diagnose.kernels import first_of_hash, hash_dense, hash_sparse

    X: Any = data.X
    dense = isinstance(X, np.ndarray)
    hashes = np.empty(data.n_docs, dtype=np.uint64)
    rows = max(1, BLOCK_VALUES // max(1, data.n_features if dense else X.nnz // max(1, data.n_docs)))
    for start in range(0, data.n_docs, rows):
        part = X[start : start + rows]
        out = hashes[start : start + rows]
        if dense:
            hash_dense(np.ascontiguousarray(part).view(np.uint32), out)
        else:
            hash_sparse(part.data.view(np.uint32), part.indices, part.indptr, out)
    first = np.empty(data.n_docs, dtype=np.int64)
    first_of_hash(hashes, first)
    again = np.flatnonzero(first != np.arange(data.n_docs))
    for start in range(0, len(again), rows):
        here = again[start : start + rows]
        same = (_same_dense if dense else _same_sparse)(X[here], X[first[here]])
        first[here[~same]] = here[~same]
    return first, hashes == 0


def _same_dense(a: Array, b: Array) -> Array:
    same: Array = ((a == b) | (np.isnan(a) & np.isnan(b))).all(axis=1)
    return same


def _same_sparse(a: Any, b: Any) -> Array:
    for part in (a, b):  # copies: the caller's data stay as they are
        part.eliminate_zeros()
    same: Array = np.diff(a.indptr) == np.diff(b.indptr)
    a, b = a[same], b[same]
    differs = (a.indices != b.indices) | ((a.data != b.data) & ~(np.isnan(a.data) & np.isnan(b.data)))
    before = np.concatenate(([0], np.cumsum(differs)))
    same[same] = before[a.indptr[1:]] == before[a.indptr[:-1]]
    return same


def _shared(first: IntArray) -> Array:
    """Rows whose features occur twice or more."""
    found: Array = np.bincount(first, minlength=len(first))[first] > 1
    return found


def _within(first: IntArray, query: IntArray, shared: Array) -> IntArray:
    """A code per group of identical rows of one query."""
    rows = np.flatnonzero(shared)
    return _placed(rows, query, first[rows])


def _across(first: IntArray, query: IntArray, shared: Array) -> IntArray:
    """A code per group of identical rows that spans queries."""
    group = np.full(len(first), -1, dtype=np.int64)
    rows = np.flatnonzero(shared)
    elsewhere = np.zeros(len(first), dtype=bool)
    elsewhere[first[rows[query[rows] != query[first[rows]]]]] = True
    chosen = rows[elsewhere[first[rows]]]
    group[chosen] = first[chosen]
    return group


def _same_ids(doc_ids: Array, query: IntArray) -> IntArray:
    """A code per document id that a query holds twice; rows without an id stand alone."""
    rows = np.flatnonzero(doc_ids.astype(str) != "")
    _, ids = np.unique(doc_ids[rows], return_inverse=True)
    return _placed(rows, query, ids)


def _placed(rows: IntArray, query: IntArray, ids: IntArray) -> IntArray:
    """A code per group of ``rows`` that share query and id; -1 for rows on their own and all others."""
    group = np.full(len(query), -1, dtype=np.int64)
    order = np.lexsort((ids, query[rows]))
    codes = np.cumsum(_new(query[rows[order]]) | _new(ids[order])) - 1
    many = np.bincount(codes)[codes] > 1 if len(codes) else np.zeros(0, dtype=bool)
    group[rows[order[many]]] = codes[many]
    return group


def _examples(
    order: IntArray, starts: IntArray, sizes: IntArray, wrong: IntArray, data: RankingData
) -> tuple[Example, ...]:
    found = []
    for g in np.argsort(-wrong, kind="stable")[:SHOWN]:
        if not wrong[g]:
            break
        rows = np.sort(order[starts[g] : starts[g] + sizes[g]])[:20]
        queries = np.searchsorted(data.indptr, rows, side="right") - 1
        found.append(
            Example(
                tuple(int(r) for r in data.row_ids[rows]),
                tuple(dict.fromkeys(str(data.query_ids[q]) for q in queries)),
                tuple(int(v) for v in data.y[rows]),
            )
        )
    return tuple(found)


def _new(values: Array) -> Array:
    """Where a value differs from the one before."""
    found: Array = (
        np.concatenate(([True], values[1:] != values[:-1])) if len(values) else np.zeros(0, dtype=bool)
    )
    return found


def _starts(values: Array) -> IntArray:
    return np.flatnonzero(_new(values))
