"""What rankers accept: arrays, sparse matrices and data frames, rows in any order, queries by id or size."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from cleanrank.data.arrays import from_arrays
from cleanrank.errors import invalid
from cleanrank.types import RankingData
from cleanrank.validation import one_of

QID = "qid"
T = TypeVar("T")


def training_data(
    X: Any,
    y: npt.ArrayLike,
    *,
    qid: npt.ArrayLike | None = None,
    group: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    position: npt.ArrayLike | None = None,
) -> RankingData:
    """Rows grouped by query; a column "qid" of a data frame names the queries when nothing else does.

    >>> import pandas as pd
    >>> training_data(pd.DataFrame({"qid": [7, 8, 7], "bm25": [0.1, 0.2, 0.3]}), [1, 0, 2])
    RankingData(2 queries, 3 documents, 1 features (dense), grades {0: 1, 1: 1, 2: 1})
    """
    names, features = None, X
    if is_frame(X):
        names = tuple(str(name) for name in X.columns if name != QID)
        if qid is None and group is None and QID in X.columns:
            qid = np.asarray(X[QID])
        features = feature_matrix(X)
    return from_arrays(
        features, y, qid=qid, group=group, weights=sample_weight, positions=position, feature_names=names
    )


def validation_data(eval_set: Any, eval_qid: Any, eval_group: Any = None) -> RankingData | None:
    """The pair (X, y) of validation rows, alone or as the only one of a list, as LightGBM takes it."""
    if eval_set is None:
        return None
    if isinstance(eval_set, list):
        if len(eval_set) != 1:
            raise invalid("eval_set", "must be one pair (X, y)", f"{len(eval_set)} of them")
        eval_set = eval_set[0]
        eval_qid = eval_qid[0] if isinstance(eval_qid, list) and np.ndim(eval_qid[0]) == 1 else eval_qid
    if not (isinstance(eval_set, tuple) and len(eval_set) == 2):
        raise invalid("eval_set", "must be a pair (X, y)", type(eval_set).__name__)
    return training_data(*eval_set, qid=eval_qid, group=eval_group)


def feature_matrix(X: Any) -> Any:
    """Features alone: a frame loses its column "qid" and becomes float32."""
    if not is_frame(X):
        return X
    names = [name for name in X.columns if name != QID]
    return np.asarray(X[names].to_numpy(), dtype=np.float32)


def is_frame(X: Any) -> bool:
    """Whether X is a pandas or polars data frame."""
    return hasattr(X, "columns") and hasattr(X, "to_numpy")


def rows_to_score(X: Any, n_features: int) -> Any:
    """Rows as LightGBM takes them, checked: numbers in ``n_features`` columns.

    >>> rows_to_score([[1, 2]], 2).shape
    (1, 2)
    """
    rows = feature_matrix(X)
    if not hasattr(rows, "tocsr"):
        rows = np.asarray(rows)
        if rows.dtype.kind not in "iufb":
            try:
                rows = rows.astype(np.float64)
            except (TypeError, ValueError) as error:
                raise invalid("X", "must hold numbers", f"dtype {rows.dtype} ({error})") from error
        if rows.ndim != 2:
            raise invalid("X", "must have two dimensions (documents, features)", f"shape {rows.shape}")
    if rows.shape[1] != n_features:
        raise invalid(
            "X", f"must have the {n_features} columns that the forest was trained on", rows.shape[1]
        )
    return rows


def widened(data: RankingData, n_features: int) -> RankingData:
    """The same rows with columns of zeros behind their own, ``n_features`` in all.

    SVMlight files leave zeros out, so that the last columns of a set may occur in one of its files alone.

    >>> widened(training_data([[1.0], [2.0]], [0, 1], group=[2]), 3).X.tolist()
    [[1.0, 0.0, 0.0], [2.0, 0.0, 0.0]]
    """
    more = n_features - data.n_features
    if more <= 0:
        return data
    if isinstance(data.X, np.ndarray):
        X: Any = np.pad(data.X, ((0, 0), (0, more)))
    else:
        X = type(data.X)((data.X.data, data.X.indices, data.X.indptr), shape=(data.n_docs, n_features))
    names = data.feature_names
    if names is not None:
        names = (*names, *(f"f{place + 1}" for place in range(data.n_features, n_features)))
    return replace(data, X=X, feature_names=names)


def best_of(candidates: Iterable[T], value: Callable[[T], float]) -> T:
    """The candidate of the highest value, the first of equals; a value of NaN counts as 0.

    >>> best_of([3, -4, 4], lambda x: x * x)
    -4
    """
    return max(candidates, key=lambda candidate: float(np.nan_to_num(value(candidate))))


class Parameters:
    """Reads and sets what ``__init__`` takes.

    >>> class Half(Parameters):
    ...     def __init__(self, rate=0.5):
    ...         self.rate = rate
    >>> Half().set_params(rate=0.25).get_params()
    {'rate': 0.25}
    """

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameter -> value."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Sets parameters; returns itself."""
        known = inspect.signature(type(self)).parameters
        for name, value in params.items():
            setattr(self, one_of("parameter", name, known), value)
        return self

    def __repr__(self) -> str:
        usual = inspect.signature(type(self)).parameters
        told = (f"{n}={v!r}" for n, v in self.get_params().items() if v is not usual[n].default)
        return f"{type(self).__name__}({', '.join(told)})"


if TYPE_CHECKING:
    Estimator = Parameters  # scikit-learn has no types; its class has these methods
else:
    try:
        from sklearn.base import BaseEstimator as Estimator
    except ImportError:
        Estimator = Parameters
