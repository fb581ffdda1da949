"""The shape of a judged set: how long its queries are, which grades they hold, which of them teach nothing.

``counts`` is the (Q, C) table of documents per query and grade, the only thing about labels that the rest of
a diagnosis needs.
"""

import math
from dataclasses import dataclass

import numpy as np

from cleanrank.errors import invalid
from cleanrank.groups import query_of_row
from cleanrank.types import FloatArray, IntArray, RankingData

MOST_GRADES = 256
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
    """Documents per query and grade, (Q, C).

    >>> import cleanrank as cr
    >>> grade_counts(cr.from_arrays([[1.0], [2.0], [3.0]], [0, 2, 1], qid=[1, 1, 2])).tolist()
    [[1, 0, 1], [0, 1, 0]]
    """
    if not data.n_docs:
        raise invalid("data", "must hold at least one document", "none")
    C = data.n_grades
    if C > MOST_GRADES:
        raise invalid(
            "labels",
            f"must be grades below {MOST_GRADES}",
            C - 1,
            at=data.place(int(data.y.argmax())),
            remedy="Give real-valued relevance as gains= and few grades as labels.",
        )
    cells = query_of_row(data.indptr) * C + data.y
    return np.bincount(cells, minlength=data.n_queries * C).reshape(data.n_queries, C)


def lengths_of(lengths: IntArray) -> Lengths:
    """Summarises documents per query."""
    percents = (0, 5, 25, 50, 75, 95, 100)
    found = np.quantile(lengths, [p / 100 for p in percents])
    edges = _whole_edges(int(lengths.min()), int(lengths.max()))
    queries, _ = np.histogram(lengths, bins=edges)
    return Lengths(
        float(lengths.mean()),
        {str(p): float(v) for p, v in zip(percents, found, strict=True)},
        tuple(int(e) for e in edges),
        tuple(int(q) for q in queries),
    )


def grades_of(counts: IntArray) -> Grades:
    """Summarises the grades of a (Q, C) table."""
    documents = counts.sum(axis=0)
    shares = documents / documents.sum()
    there = counts[counts.sum(axis=1) > 0]
    by_query = there / there.sum(axis=1, keepdims=True)
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
    """Finds the queries that teach nothing."""
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
