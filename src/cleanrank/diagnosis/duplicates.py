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

import numpy as np

from cleanrank.data.duplicate_rows import (
    across_queries,
    changes,
    first_rows,
    same_ids,
    shared_rows,
    starts_of,
    within_queries,
)
from cleanrank.ragged import query_of_row
from cleanrank.types import IntArray, RankingData

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
        implied_interval: its 95 % interval, by Wilson's for the share of disagreeing pairs; a group counts
            once, because its pairs share rows.
        guessing: the rate of judges who guess, the highest that can be implied.
    """

    within: Repeats
    blank: Repeats
    across: Repeats
    doc_ids: Repeats | None
    lower_bound: float
    implied_rate: float | None
    implied_interval: tuple[float, float]
    guessing: float


def duplicates_of(data: RankingData) -> Duplicates:
    """Finds identical rows in linear time; a hash only proposes, equality of the features decides.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[1, 2], [1, 2], [3, 4]], [0, 1, 0], qid=[1, 1, 1])
    >>> duplicates = duplicates_of(data)
    >>> duplicates.within.least_wrong, round(duplicates.lower_bound, 3), duplicates.within.examples[0].rows
    (1, 0.333, (0, 1))
    """
    first, blank = first_rows(data)
    query = query_of_row(data.indptr)
    shared = shared_rows(first)
    within = within_queries(first, query, shared)
    empty = blank & (within >= 0)
    filled = repeats(np.where(empty, -1, within), data)
    C = max(int((np.bincount(data.y) > 0).sum()), 2)
    disagreeing = filled.disagreeing_pairs / filled.pairs if filled.pairs else None
    low, high = _wilson(disagreeing or 0.0, filled.groups)
    return Duplicates(
        filled,
        repeats(np.where(empty, within, -1), data),
        repeats(across_queries(first, query, shared), data),
        None if data.doc_ids is None else repeats(same_ids(data.doc_ids, query), data),
        filled.least_wrong / data.n_docs,
        None if disagreeing is None else implied_rate(disagreeing, C),
        (implied_rate(low, C), implied_rate(high, C)),
        (C - 1) / C,
    )


def _wilson(share: float, n: int, z: float = 1.96) -> tuple[float, float]:
    """Wilson's interval for a share of n; [0, 1] without any."""
    if not n:
        return 0.0, 1.0
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z * math.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    return max(centre - reach, 0.0), min(centre + reach, 1.0)


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
    starts = starts_of(g)
    sizes = np.diff(np.append(starts, len(g)))
    cells = np.flatnonzero(changes(g) | changes(y))
    cell_sizes = np.diff(np.append(cells, len(g)))
    cell_group = np.searchsorted(starts, cells, side="right") - 1
    largest = np.zeros(len(starts), dtype=np.int64)
    np.maximum.at(largest, cell_group, cell_sizes)
    wrong = sizes - largest
    worst = [g for g in np.argsort(-wrong, kind="stable")[:SHOWN] if wrong[g]]
    pairs = int((sizes * (sizes - 1) // 2).sum())
    return Repeats(
        len(starts),
        len(rows),
        int((wrong > 0).sum()),
        int(sizes[wrong > 0].sum()),
        int(wrong.sum()),
        pairs,
        pairs - int((cell_sizes * (cell_sizes - 1) // 2).sum()),
        tuple(_example(np.sort(order[starts[g] : starts[g] + sizes[g]])[:20], data) for g in worst),
    )


def _example(rows: IntArray, data: RankingData) -> Example:
    queries = data.query_ids[np.searchsorted(data.indptr, rows, side="right") - 1]
    return Example(
        tuple(int(r) for r in data.row_ids[rows]),
        tuple(dict.fromkeys(str(q) for q in queries)),
        tuple(int(v) for v in data.y[rows]),
    )
