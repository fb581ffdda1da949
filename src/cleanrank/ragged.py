"""Ragged queries in plain NumPy: values of shape (N,) cut into Q queries by ``indptr`` of shape (Q + 1,).

Rows may come in any order; ``group_rows`` and ``from_arrays`` bring those of a query together. A ranking is
the stable order by descending score: ties keep the order of the rows.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.stored import StoredFeatures
from cleanrank.types import Array, FloatArray, IntArray, RankingData


def from_arrays(
    X: Any,
    y: npt.ArrayLike,
    *,
    qid: npt.ArrayLike | None = None,
    group: npt.ArrayLike | None = None,
    gains: npt.ArrayLike | None = None,
    doc_ids: npt.ArrayLike | None = None,
    weights: npt.ArrayLike | None = None,
    positions: npt.ArrayLike | None = None,
    feature_names: tuple[str, ...] | None = None,
    extra: Mapping[str, npt.ArrayLike] | None = None,
    categories: Mapping[str, Sequence[Any]] | None = None,
) -> RankingData:
    """Groups rows by query and checks them.

    Args:
        X: features, (N, F) array or sparse matrix.
        y: grades, whole numbers >= 0.
        qid: the query of every row, in any order.
        group: instead of ``qid``, documents per query when rows are contiguous (as in LightGBM).
        gains: real-valued gains that stand in for 2^y - 1.
        doc_ids: a name per row.
        weights: a weight >= 0 per row.
        positions: the rank (from 1) at which a row was shown.
        feature_names: one per column.
        extra: name -> values per row, carried along but no feature.
        categories: feature name -> its categories, whose codes (0, 1, ...; NaN for missing) X holds.

    Returns:
        The rows query by query, queries in order of appearance; ``row_ids`` say where they stood.

    >>> from_arrays([[0.1], [0.2], [0.3]], [1, 0, 2], qid=[7, 8, 7])
    RankingData(2 queries, 3 documents, 1 features (dense), grades {0: 1, 1: 1, 2: 1})
    """
    if not (hasattr(X, "tocsr") or isinstance(X, StoredFeatures)):
        try:
            X = np.asarray(X)
        except ValueError:
            raise invalid("X", "must have rows of one length", "rows of several lengths") from None
    if X.ndim != 2:
        rule = "must have two dimensions (documents, features)"
        remedy = "Collect a lazy frame first." if X.ndim == 0 else "One feature is a column: X[:, None]."
        raise invalid("X", rule, f"shape {X.shape}", remedy=remedy)
    order, indptr, query_ids = row_order(X.shape[0], qid, group)
    in_order = bool((order[:-1] < order[1:]).all())
    if doc_ids is not None:
        doc_ids = np.asarray(doc_ids)
        if doc_ids.dtype.kind == "O":
            refuse_missing("doc_ids", doc_ids)
        doc_ids = doc_ids.astype(str)

    def sort(name: str, values: npt.ArrayLike | None) -> Any:
        if values is None:
            return None
        column = np.asarray(values)
        if column.shape != (len(order),):
            raise invalid(name, f"must have one value per row of X ({len(order)})", f"shape {column.shape}")
        return column if in_order else column[order]

    return RankingData(
        X=X if in_order else (X.tocsr() if hasattr(X, "tocsr") else X)[order],
        y=sort("y", y),
        indptr=indptr,
        query_ids=query_ids,
        row_ids=order,
        gains=sort("gains", gains),
        doc_ids=sort("doc_ids", doc_ids),
        weights=sort("weights", weights),
        positions=sort("positions", positions),
        feature_names=feature_names,
        extra=None if not extra else {name: sort(f"extra column {name!r}", v) for name, v in extra.items()},
        categories=None if not categories else {name: tuple(values) for name, values in categories.items()},
    )


def row_order(
    n: int, qid: npt.ArrayLike | None, group: npt.ArrayLike | None
) -> tuple[IntArray, IntArray, Array]:
    """(order, indptr, query_ids) from ``qid`` or ``group``; exactly one must be given."""
    if (qid is None) == (group is None):
        rule = "must be given either as qid (an id per row) or as group (documents per query)"
        raise invalid("queries", rule, "neither" if qid is None else "both")
    if qid is not None:
        ids = np.asarray(qid)
        if ids.shape != (n,):
            raise invalid("qid", f"must have one id per row of X ({n})", f"shape {ids.shape}")
        return group_rows(ids)
    sizes = np.asarray(group)
    if sizes.ndim != 1 or sizes.dtype.kind not in "iu":
        raise invalid("group", "must list whole numbers of documents per query", f"dtype {sizes.dtype}")
    if (sizes < 0).any():
        raise invalid("group", "must not hold negative numbers", sizes.min(), at=f"query {np.argmin(sizes)}")
    if sizes.sum() != n:
        remedy = "An id per row goes into qid=." if sizes.shape == (n,) else ""
        raise invalid("group", f"must sum to the number of rows ({n})", int(sizes.sum()), remedy=remedy)
    return np.arange(n), indptr_of(sizes), np.arange(len(sizes))


def group_rows(qid: npt.ArrayLike) -> tuple[IntArray, IntArray, Array]:
    """Brings rows of one query together.

    Returns (order, indptr, query_ids): ``order`` lists the rows query by query, queries in the order in
    which they first appear, rows of a query in their own order.

    >>> order, indptr, ids = group_rows(["b", "a", "b"])
    >>> order.tolist(), indptr.tolist(), ids.tolist()
    ([0, 2, 1], [0, 2, 3], ['b', 'a'])
    """
    ids = _plain_ids(np.asarray(qid))
    n = len(ids)
    starts = np.flatnonzero(np.concatenate(([True], ids[1:] != ids[:-1]))) if n else np.zeros(0, np.int64)
    runs = ids[starts]
    unique, first, inverse = np.unique(runs, return_index=True, return_inverse=True)
    blank = next((k for k, i in enumerate(unique.tolist()) if isinstance(i, str) and not i.strip()), None)
    if blank is not None:
        value, at = repr(str(unique[blank])), f"row {int(starts[first[blank]])}"
        raise invalid("qid", "must not be blank", value, at=at, remedy="Drop such rows first.")
    if len(unique) == len(runs):
        return np.arange(n), np.append(starts, n).astype(np.int64), runs
    rank_of_id = np.empty(len(unique), dtype=np.int64)
    by_first = np.argsort(first)
    rank_of_id[by_first] = np.arange(len(unique))
    query_of_run = rank_of_id[inverse]
    query = np.repeat(query_of_run, np.diff(np.append(starts, n)))
    order = np.argsort(query, kind="stable").astype(np.int64)
    return order, indptr_of(np.bincount(query, minlength=len(unique))), unique[by_first]


def _plain_ids(ids: Array) -> Array:
    """Ids as int64 if all are whole numbers, else as str; raises with the row of an id that is neither."""
    if ids.ndim != 1:
        raise invalid("qid", "must have one dimension", f"shape {ids.shape}")
    if ids.dtype.kind == "T":
        ids = ids.astype(object)
    kind = ids.dtype.kind
    if kind == "O":
        refuse_missing("qid", ids)
        whole = all(isinstance(i, int | np.integer) and not isinstance(i, bool) for i in ids)
        return ids.astype(np.int64 if whole and all(abs(int(i)) < 2**63 for i in ids) else str)
    if kind in "US":
        return ids.astype(str, copy=False)
    if kind not in "iufb":
        raise invalid("qid", "must be whole numbers or strings", f"dtype {ids.dtype}")
    if kind in "uf":
        # Whole floats beyond 2^53 run together, whole numbers beyond int64 would turn negative.
        broken = ids > np.iinfo(np.int64).max if kind == "u" else ~(np.abs(ids) <= 2.0**53)
        broken |= ids != np.floor(ids)
        if broken.any():
            row = int(np.argmax(broken))
            large = np.isfinite(ids[row]) and ids[row] == np.floor(ids[row])
            remedy = f"Give ids beyond {'2^63' if kind == 'u' else '2^53'} as strings." if large else ""
            raise invalid("qid", "must be whole numbers or strings", ids[row], at=f"row {row}", remedy=remedy)
    return ids.astype(np.int64, copy=False)


def refuse_missing(name: str, values: Array) -> None:
    """Refuses None, NaN and pandas' NA and NaT in a column of Python objects."""
    for row, value in enumerate(values):
        try:
            missing = value is None or bool(value != value)
        except TypeError:
            # NA does not say whether it equals itself.
            missing = True
        if missing:
            raise invalid(name, "must be present", value, at=f"row {row}", remedy="Drop such rows first.")


def indptr_of(lengths: npt.ArrayLike) -> IntArray:
    """Row offsets from documents per query.

    >>> indptr_of([2, 3]).tolist()
    [0, 2, 5]
    """
    sizes = np.asarray(lengths, dtype=np.int64)
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))


def query_of_row(indptr: IntArray) -> IntArray:
    """The query (0..Q-1) of every row."""
    return np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))


def segment_sum(values: npt.ArrayLike, indptr: IntArray) -> FloatArray:
    """The sum of ``values`` over every query; 0 for an empty one.

    >>> segment_sum([1.0, 2.0, 3.0], indptr_of([2, 0, 1])).tolist()
    [3.0, 0.0, 3.0]
    """
    weights = np.asarray(values, dtype=np.float64)
    return np.bincount(query_of_row(indptr), weights=weights, minlength=len(indptr) - 1).astype(np.float64)


def rank_order(scores: npt.ArrayLike, indptr: IntArray) -> IntArray:
    """The rows query by query in ranking order (best first, ties by row).

    >>> rank_order([1.0, 3.0, 3.0, 0.5], indptr_of([3, 1])).tolist()
    [1, 2, 0, 3]
    """
    return np.lexsort((-np.asarray(scores, dtype=np.float64), query_of_row(indptr)))


def ranks(scores: npt.ArrayLike, indptr: IntArray) -> IntArray:
    """The rank (from 1) of every row within its query.

    >>> ranks([1.0, 3.0, 3.0, 0.5], indptr_of([3, 1])).tolist()
    [3, 1, 2, 1]
    """
    order = rank_order(scores, indptr)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(1, len(order) + 1) - np.repeat(indptr[:-1], np.diff(indptr))
    return rank


def judged_rows(data: RankingData) -> npt.NDArray[np.bool_]:
    """Whether somebody judged each row, (N,); True for all where the data do not say.

    >>> judged_rows(from_arrays(np.zeros((2, 0)), [1, 0], group=[2])).tolist()
    [True, True]
    """
    return np.ones(data.n_docs, dtype=np.bool_) if data.judged is None else data.judged


def match_rows(row_ids: npt.ArrayLike, targets: npt.ArrayLike) -> IntArray:
    """The place of each target among ``row_ids`` (or other ids that are all different), -1 if it is missing.

    >>> match_rows([7, 3, 5], [5, 9, 7]).tolist()
    [2, -1, 0]
    """
    ids, sought = np.asarray(row_ids), np.asarray(targets)
    if not len(ids):
        return np.full(len(sought), -1, dtype=np.int64)
    order = np.argsort(ids, kind="stable")
    place = order[np.minimum(np.searchsorted(ids, sought, sorter=order), len(ids) - 1)]
    return np.where(ids[place] == sought, place, -1)
