"""Ragged queries in plain NumPy: values of shape (N,) cut into Q queries by ``indptr`` of shape (Q + 1,).

A ranking is the stable order by descending score: ties keep the order of the rows.
"""

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.types import Array, FloatArray, IntArray


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
