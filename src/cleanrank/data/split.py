"""Splits and folds by query: a query's rows stay together, and the choice depends on ids and seed alone.

Queries are sorted by id before they are drawn, so the order of rows in the input changes nothing.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.data.inputs import as_data
from cleanrank.errors import invalid
from cleanrank.types import IntArray, RankingData
from cleanrank.validation import check_numbers, is_integer


@dataclass(frozen=True)
class Splits:
    """Training, validation and test data; unpacks as ``train, validation, test = splits``.

    ``made_validation`` says whether the validation queries were taken out of the shipped training part.
    """

    train: RankingData
    validation: RankingData
    test: RankingData
    made_validation: bool = False

    def __iter__(self) -> Iterator[RankingData]:
        return iter((self.train, self.validation, self.test))


def split(
    data: Any,
    shares: Sequence[float] = (0.6, 0.2, 0.2),
    seed: int | np.random.Generator = 0,
    *,
    label: str | None = None,
    qid: str | None = None,
) -> tuple[RankingData, ...]:
    """Splits the queries at random into parts of given shares.

    Args:
        data: a RankingData, or a frame with the columns ``label`` and ``qid``.
        shares: of the parts; if they sum to less than 1, queries are left out.
        seed: same seed, same parts.
        label: with a frame, its column of grades; "label" when not given.
        qid: with a frame, its column of query ids; "qid" when not given.

    Returns:
        One RankingData per share.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[0.0]] * 10, [0] * 10, qid=range(10))
    >>> [part.n_queries for part in split(data, (0.6, 0.2, 0.2), seed=1)]
    [6, 2, 2]
    """
    data = as_data(data, label=label, qid=qid)
    parts = check_numbers("shares", shares)
    if parts.ndim != 1 or not len(parts) or not (parts > 0).all() or parts.sum() > 1 + 1e-9:
        raise invalid("shares", "must be positive and sum to at most 1", parts.tolist())
    ends = np.rint(np.cumsum(parts) * data.n_queries).astype(np.int64)
    if (np.diff(ends, prepend=0) < 1).any():
        rule = f"must give every part at least one of the {data.n_queries} queries"
        raise invalid("shares", rule, parts.tolist(), remedy="Ask for fewer or larger parts.")
    order = _drawn_queries(data, seed)
    starts = itertools.pairwise([0, *ends.tolist()])
    return tuple(data.select_queries(order[start:end]) for start, end in starts)


def fold_of_query(data: RankingData, n: int = 5, seed: int | np.random.Generator = 0) -> IntArray:
    """The fold (0..n-1) of every query, sizes differing by one at most."""
    if not is_integer(n) or not 2 <= n <= data.n_queries:
        rule = f"must be a whole number between 2 and the number of queries ({data.n_queries})"
        remedy = f"Say folds={min(data.n_queries, 5)}."
        if data.n_queries < 2:
            remedy = "Models that never saw a query need at least two queries."
        raise invalid("folds", rule, repr(n), remedy=remedy)
    fold = np.empty(data.n_queries, dtype=np.int64)
    fold[_drawn_queries(data, seed)] = np.arange(data.n_queries) % n
    return fold


def folds(
    data: Any,
    n: int = 5,
    seed: int | np.random.Generator = 0,
    *,
    validation: bool = False,
    label: str | None = None,
    qid: str | None = None,
) -> list[tuple[RankingData, ...]]:
    """The parts of a cross-validation over queries; every query is tested once.

    Args:
        data: a RankingData, or a frame with the columns ``label`` and ``qid``.
        n: number of folds.
        seed: same seed, same folds.
        validation: whether the fold before the tested one serves as validation, as in LETOR's fold table.
        label: with a frame, its column of grades; "label" when not given.
        qid: with a frame, its column of query ids; "qid" when not given.

    Returns:
        (train, test) of each fold, or (train, validation, test).

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[0.0]] * 10, [0] * 10, qid=range(10))
    >>> [tuple(p.n_queries for p in parts) for parts in folds(data, 5, validation=True)][0]
    (6, 2, 2)
    """
    data = as_data(data, label=label, qid=qid)
    if validation and n < 3:
        raise invalid("n", "must be at least 3 when one fold serves as validation", n)
    fold = fold_of_query(data, n, seed)
    splits = []
    for tested in range(n):
        test = fold == tested
        before = fold == (tested - 1) % n
        parts = (~test & ~before, before, test) if validation else (~test, test)
        splits.append(tuple(data.select_queries(part) for part in parts))
    return splits


def query_folds(
    data: RankingData, n: int = 5, seed: int | np.random.Generator = 0
) -> Iterator[tuple[RankingData, npt.NDArray[np.bool_]]]:
    """For each fold, the data of the other folds and the mask of the rows that are held out.

    There are ``n`` folds, or one for every query where there are fewer queries than that.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[0.0]] * 4, [0] * 4, qid=[1, 1, 2, 2])
    >>> [(train.n_docs, int(held.sum())) for train, held in query_folds(data, 2)]
    [(2, 2), (2, 2)]
    """
    if is_integer(n):
        n = min(n, max(data.n_queries, 2))
    fold = fold_of_query(data, n, seed)
    for part in range(n):
        held = np.repeat(fold == part, data.lengths)
        yield data.drop(held), held


def _drawn_queries(data: RankingData, seed: int | np.random.Generator) -> IntArray:
    by_id = np.argsort(data.query_ids, kind="stable")
    return by_id[np.random.default_rng(seed).permutation(len(by_id))]
