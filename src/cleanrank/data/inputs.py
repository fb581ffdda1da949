"""What a caller passes as data: a RankingData, a frame, or arrays; and scores in the order of either."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import InvalidInputError, invalid
from cleanrank.ragged import from_arrays
from cleanrank.types import Array, RankingData
from cleanrank.validation import is_frame, is_lazy_frame, one_of

RULE = "must be a RankingData, a frame with the columns label= and qid=, or X with y= and qid= or group="
ORDERS = ("input", "data")


@dataclass(frozen=True, eq=False)
class Source:
    """Ranking data, and the caller's own frame where they were made from one.

    Attributes:
        data: the rows, grouped by query.
        frame: the frame, as it was passed.
        label: its column of grades.
    """

    data: RankingData
    frame: Any = None
    label: str = ""

    @classmethod
    def of(
        cls,
        data: Any,
        y: Any = None,
        *,
        label: str | None = None,
        qid: Any = None,
        group: Any = None,
        features: Sequence[str] | None = None,
    ) -> "Source":
        """The source of what a caller passes, as ``as_data`` reads it."""
        ranking_data = as_data(data, y, label=label, qid=qid, group=group, features=features)
        return (
            cls(ranking_data, data, label or "label") if is_frame(data) and y is None else cls(ranking_data)
        )

    def frame_of(self, data: RankingData, columns: Mapping[str, Array] | None = None) -> Any:
        """The caller's frame with the rows and grades of ``data``, in its own order.

        Args:
            data: made from ``self.data``; some rows may be gone.
            columns: name -> values per row of ``data``, for columns that the frame does not have.
        """
        from cleanrank.data.frames import changed_frame

        if self.frame is None:
            remedy = "Pass the frame itself, or use cleanrank.data.frames.to_frame(result.data)."
            raise invalid("frame", "is there for results that were made from a frame", remedy=remedy)
        for name in columns or {}:
            if name in (self.data.feature_names or ()) or name in (self.data.extra or {}):
                raise invalid("the frame", "must not have the column that is to be added", repr(name))
        order = np.argsort(data.row_ids)
        values = {self.label: data.y, **(columns or {})}
        return changed_frame(self.frame, data.row_ids[order], {k: v[order] for k, v in values.items()})


def as_data(
    data: Any,
    y: Any = None,
    *,
    label: str | None = None,
    qid: Any = None,
    group: Any = None,
    features: Sequence[str] | None = None,
) -> RankingData:
    """Ranking data from whatever a caller has.

    Args:
        data: a RankingData; or a frame (pandas, polars, pyarrow, DuckDB, also a lazy one) with a column of
            grades and one of query ids; or the features X of every row.
        y: with X, the grades.
        label: with a frame, its column of grades; "label" when not given.
        qid: with a frame, its column of query ids ("qid" when not given); with X, the query of every row.
        group: with X, instead of ``qid``: documents per query, as in LightGBM.
        features: with a frame, its columns of features.

    Returns:
        The rows, grouped by query; a RankingData as it is.

    >>> as_data([[0.5], [1.0]], [0, 1], qid=["a", "a"])
    RankingData(1 queries, 2 documents, 1 features (dense), grades {0: 1, 1: 1})
    """
    settings = {"y": y, "label": label, "qid": qid, "group": group, "features": features}
    named = [name for name, value in settings.items() if value is not None]
    if isinstance(data, RankingData):
        if named:
            words = "go with a frame or X; a RankingData has its own"
            raise invalid(" and ".join(f"{name}=" for name in named), words)
        return data
    if is_frame(data) or is_lazy_frame(data):
        from cleanrank.data.frames import feature_columns, from_frame

        if y is None and group is None and (qid is None or isinstance(qid, str)):
            return from_frame(data, label=label or "label", qid=qid or "qid", features=features)
        if y is None or label is not None or isinstance(qid, str):
            rule = "must name its columns (label=, qid=) or come with arrays (y=, and qid= or group=)"
            raise invalid("a frame", rule, " and ".join(f"{name}=" for name in named))
        return from_arrays(y=y, qid=qid, group=group, **feature_columns(data, features))
    if y is None or label is not None or not _is_matrix(data):
        raise wrong_data(data)
    if features is not None:
        raise invalid("features=", "names columns of a frame", "an array", remedy="Select its columns first.")
    return from_arrays(data, y, qid=qid, group=group)


def as_judged(
    scores: Any,
    data: Any,
    order: str | None = None,
    *,
    y: Any = None,
    label: str | None = None,
    qid: Any = None,
    group: Any = None,
) -> tuple[RankingData, str | None]:
    """The judged rows that ``scores`` (or several systems' scores) belong to, and the order of the scores.

    Features are not needed: grades and queries alone will do. What a caller has not made into a RankingData
    has scores in its own order.
    """
    if isinstance(scores, RankingData) or (is_frame(scores) and isinstance(data, list | np.ndarray)):
        raise invalid("scores", "must come first, then the data", f"a {type(scores).__name__} first")
    if order is not None:
        one_of("order", order, ORDERS)
    if isinstance(data, RankingData):
        return as_data(data, y, label=label, qid=qid, group=group), order
    for each in scores.values() if isinstance(scores, Mapping) else [scores]:
        _check_index(each, data)
    if data is None and y is not None:
        data = np.zeros((len(y), 0))
    features = () if is_frame(data) else None
    return as_data(data, y, label=label, qid=qid, group=group, features=features), "input"


def _check_index(scores: Any, frame: Any) -> None:
    """Refuses scores of pandas whose index is another one than that of the frame they belong to."""
    index: Any = getattr(scores, "index", None)
    if not (hasattr(index, "equals") and hasattr(getattr(frame, "index", None), "equals")):
        return
    if not index.equals(frame.index) and type(index).__name__ != "RangeIndex":
        remedy = "Put them in its order (scores.loc[frame.index]), or pass scores.to_numpy()."
        raise invalid("scores", "must have the index of the frame", "another index", remedy=remedy)


def check_data(data: Any) -> RankingData:
    """Returns ``data`` if it is a RankingData; else raises."""
    if isinstance(data, RankingData):
        return data
    if is_frame(data):
        raise invalid("data", "must be a RankingData", "a frame", remedy="Convert it: cr.from_frame(frame).")
    raise wrong_data(data)


def wrong_data(value: Any, argument: str = "data") -> InvalidInputError:
    """The error of a value that stands where data belong, with the call that was probably meant."""
    kind = type(value).__name__
    got = "None" if value is None else f"{'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}"
    remedy = "Make one with cr.read_data, cr.from_frame or cr.from_arrays."
    if isinstance(value, str | os.PathLike):
        got = repr(os.fspath(value))
        remedy = f"Read a file first: cr.read_data({got})."
    elif isinstance(getattr(value, "data", None), RankingData):
        remedy = "Its .data are the data."
    elif hasattr(type(value), "collect"):
        remedy = "Collect it first: df.collect()."
    elif kind == "LabelIssues":
        remedy = "The data come first, as in cr.clean(data, issues)."
    elif _is_matrix(value):
        remedy = "With features alone, say the grades (y=) and the query of every row (qid=) too."
    return invalid(argument, RULE, got, remedy=remedy)


def _is_matrix(value: Any) -> bool:
    arrays = isinstance(value, list | tuple) or any(hasattr(value, name) for name in ("__array__", "tocsr"))
    return arrays and not np.isscalar(value)


def scores_by_row(scores: npt.ArrayLike, data: RankingData, order: str | None = None) -> npt.ArrayLike:
    """Scores in the order of the rows of ``data``.

    Args:
        scores: one per row.
        data: what they belong to.
        order: "data" for scores of ``data.X``, row by row; "input" for scores of the rows as they stood in
            the input, before those of a query were brought together; None where both are the same.

    >>> data = from_arrays([[0.5], [1.0], [1.5]], [0, 1, 2], qid=["b", "a", "b"])
    >>> scores_by_row([1.0, 2.0, 3.0], data, order="input").tolist()
    [1.0, 3.0, 2.0]
    """
    if order == "data" or bool((data.row_ids[1:] > data.row_ids[:-1]).all()):
        return scores
    if order is None:
        place = int(np.argmax(data.row_ids[1:] < data.row_ids[:-1])) + 1
        rows = f"row {place} of data is row {int(data.row_ids[place])} of the input"
        remedy = (
            "Say order='input' if they are in the order of the input (as predict gives them for your frame), "
            "order='data' if in that of data.X."
        )
        rule = "must say their order, because the rows of data were brought together by query"
        raise invalid("scores", f"{rule} ({rows})", remedy=remedy)
    values: Array = np.asanyarray(scores)  # a mask says which documents were not retrieved
    if values.shape[:1] != (data.n_docs,):
        return values
    return values[np.argsort(np.argsort(data.row_ids))]
