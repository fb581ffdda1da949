"""RankingData from arrays whose rows come in any order."""

from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.ragged import group_rows, indptr_of, refuse_missing
from cleanrank.types import Array, IntArray, RankingData


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

    Returns:
        The rows query by query, queries in order of appearance; ``row_ids`` say where they stood.

    >>> from_arrays([[0.1], [0.2], [0.3]], [1, 0, 2], qid=[7, 8, 7])
    RankingData(2 queries, 3 documents, 1 features (dense), grades {0: 1, 1: 1, 2: 1})
    """
    X = _two_dimensions(X)
    order, indptr, query_ids = row_order(X.shape[0], qid, group)
    in_order = bool((order[:-1] < order[1:]).all())

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
        doc_ids=None if doc_ids is None else sort("doc_ids", _names(doc_ids)),
        weights=sort("weights", weights),
        positions=sort("positions", positions),
        feature_names=feature_names,
    )


def _two_dimensions(X: Any) -> Any:
    if not hasattr(X, "tocsr"):
        try:
            X = np.asarray(X)
        except ValueError:
            raise invalid("X", "must have rows of one length", "rows of several lengths") from None
    if X.ndim != 2:
        rule = "must have two dimensions (documents, features)"
        remedy = "Collect a lazy frame first." if X.ndim == 0 else "One feature is a column: X[:, None]."
        raise invalid("X", rule, f"shape {X.shape}", remedy=remedy)
    return X


def _names(doc_ids: npt.ArrayLike) -> Array:
    names = np.asarray(doc_ids)
    if names.dtype.kind == "O":
        refuse_missing("doc_ids", names)
    return names.astype(str)


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
