"""What all rankers share: rows in any order, queries by id or size, scores back in the order of the rows."""

import inspect
from collections.abc import Callable, Iterable
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from cleanrank.data.split import split
from cleanrank.errors import InvalidInputError, error_text, invalid
from cleanrank.metrics.evaluation import evaluate_arrays
from cleanrank.ragged import from_arrays, row_order
from cleanrank.types import FloatArray, RankingData
from cleanrank.validation import one_of

QID = "qid"
CHUNK = 4096
T = TypeVar("T")


class Parameters:
    """Reads and sets what ``__init__`` takes; in place of scikit-learn's class on a bare GPU machine."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameter -> value."""
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        """Sets parameters; returns itself."""
        names = inspect.signature(type(self)).parameters
        for name, value in params.items():
            setattr(self, one_of("parameter", name, names), value)
        return self

    def __repr__(self) -> str:
        parameters = inspect.signature(type(self)).parameters
        changed = (f"{n}={v!r}" for n, v in self.get_params().items() if v is not parameters[n].default)
        return f"{type(self).__name__}({', '.join(changed)})"


if TYPE_CHECKING:
    Estimator = Parameters  # scikit-learn has no types; its class has these methods
    _NotFitted = AttributeError
else:
    try:
        from sklearn.base import BaseEstimator as Estimator
        from sklearn.exceptions import NotFittedError as _NotFitted
    except ImportError:
        Estimator, _NotFitted = Parameters, AttributeError


class NotFittedError(InvalidInputError, _NotFitted):
    """A ranker is asked for scores before it was fitted; also scikit-learn's error of that name."""


class BaseRanker(Estimator):
    """Fits on judged rows in any order and scores rows in input order; subclasses say how they train.

    A subclass has a parameter ``measure`` and ``_fit(train, validation, **options)``, which sets ``model_``.
    """

    def fit(
        self,
        X: Any,
        y: npt.ArrayLike,
        *,
        qid: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
        sample_weight: npt.ArrayLike | None = None,
        position: npt.ArrayLike | None = None,
        eval_set: Any = None,
        eval_qid: Any = None,
        **options: Any,
    ) -> Self:
        """Trains on rows in any order.

        Args:
            X: features; a column "qid" of a data frame names the queries.
            y: grades.
            qid: the query of every row.
            group: instead of ``qid``, documents per query when rows are contiguous.
            sample_weight: multiplies a row's gradients.
            position: the rank at which a row was shown, for rankers that correct position bias.
            eval_set: (X, y) of validation rows, or a list with that one pair.
            eval_qid: their queries.
            options: further arguments of ``fit_data``.
        """
        train = training_data(X, y, qid=qid, group=group, sample_weight=sample_weight, position=position)
        return self.fit_data(train, validation_data(eval_set, eval_qid), **options)

    def fit_data(self, train: RankingData, validation: RankingData | None = None, **options: Any) -> Self:
        """Trains on a RankingData.

        Args:
            train: rows to learn from.
            validation: rows to stop and choose on.
            options: ``progress``, called with (step, steps), and what the class lists as options of ``fit``.
        """
        self._fit(train, validation, **options)
        self.n_features_in_ = train.n_features
        if train.feature_names is not None:
            self.feature_names_in_ = np.array(train.feature_names, dtype=object)
        return self

    def predict(self, X: Any) -> FloatArray:
        """One score per row, in input order; higher ranks first."""
        scores: FloatArray = self._fitted().predict(feature_matrix(X))
        return scores

    def score(
        self,
        X: Any,
        y: npt.ArrayLike,
        *,
        qid: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
    ) -> float:
        """The mean of the ranker's measure over the queries of judged rows."""
        if qid is None and group is None and is_frame(X) and QID in X.columns:
            qid = np.asarray(X[QID])
        return _mean(y, self.predict(X), qid, group, self._measure())

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the model to a file that ``load_ranker`` reads."""
        self._fitted().save(path)

    def _fit(self, *args: Any, **options: Any) -> None:
        """How a subclass trains: sets ``model_``."""
        raise NotImplementedError

    def _measure(self) -> str:
        """What ``score`` is the mean of."""
        return str(self.get_params()["measure"])

    def _fitted(self) -> Any:
        if not hasattr(self, "model_"):
            rule = "must be fitted before it predicts or is saved"
            raise NotFittedError(error_text(type(self).__name__, rule, remedy="Call fit."))
        return self.model_


def ranking_scorer(measure: str = "ndcg@10") -> Any:
    """A scikit-learn scorer that asks for ``qid``: the mean of a measure over queries.

    Needs ``sklearn.set_config(enable_metadata_routing=True)``.
    """
    from sklearn.metrics import make_scorer

    def mean(y_true: npt.ArrayLike, y_pred: npt.ArrayLike, qid: npt.ArrayLike) -> float:
        return _mean(y_true, y_pred, qid, None, measure)

    return make_scorer(mean).set_score_request(qid=True)


def _mean(y: npt.ArrayLike, scores: npt.ArrayLike, qid: Any, group: Any, measure: str) -> float:
    grades, predicted = np.asarray(y), np.asarray(scores)
    order, indptr, _ = row_order(len(grades), qid, group)
    return float(next(iter(evaluate_arrays(grades[order], predicted[order], indptr, measure).means.values())))


def training_data(
    X: Any,
    y: npt.ArrayLike,
    *,
    qid: npt.ArrayLike | None = None,
    group: npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    position: npt.ArrayLike | None = None,
) -> RankingData:
    """Rows grouped by query; a column "qid" of a data frame names the queries when nothing else does."""
    names, features = None, X
    if is_frame(X):
        names = tuple(str(name) for name in X.columns if name != QID)
        if qid is None and group is None and QID in X.columns:
            qid = np.asarray(X[QID])
        features = feature_matrix(X)
    return from_arrays(
        features, y, qid=qid, group=group, weights=sample_weight, positions=position, feature_names=names
    )


def validation_data(eval_set: Any, eval_qid: Any) -> RankingData | None:
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
    return training_data(*eval_set, qid=eval_qid)


def feature_matrix(X: Any) -> Any:
    """Features alone: a frame loses its column "qid" and becomes float32."""
    if not is_frame(X):
        return X
    names = [name for name in X.columns if name != QID]
    return np.asarray(X[names].to_numpy(), dtype=np.float32)


def is_frame(X: Any) -> bool:
    """Whether X is a pandas or polars data frame."""
    return hasattr(X, "columns") and hasattr(X, "to_numpy")


def widened(data: RankingData, n_features: int) -> RankingData:
    """The rows with columns of zeros behind their own, which SVMlight files may leave out."""
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


def check_rows(train: RankingData, validation: RankingData | None) -> None:
    """Refuses rows that no model can learn from or be judged by."""
    if not train.n_docs:
        raise invalid("training data", "must have at least one document", "none")
    if not varies(train.X):
        constant = f"{train.n_features} constant ones in {train.n_docs:,} rows"
        remedy = "Check how the features were read or joined."
        raise invalid(
            "features", "must differ between documents in at least one column", constant, remedy=remedy
        )
    if validation is None:
        return
    if not validation.n_docs:
        raise invalid("validation data", "must have at least one document", "none", remedy="Or give none.")
    if validation.n_features != train.n_features:
        rule = f"must have the {train.n_features} features of the training data"
        raise invalid("validation data", rule, validation.n_features)


def varies(X: Any) -> bool:
    """Whether some column holds two values; missing ones are alike."""
    first = X[:1] if isinstance(X, np.ndarray) else X[:1].toarray()
    for start in range(0, X.shape[0], CHUNK):
        rows = X[start : start + CHUNK]
        rows = rows if isinstance(rows, np.ndarray) else rows.toarray()
        if not ((rows == first) | (np.isnan(rows) & np.isnan(first))).all():
            return True
    return False


def held_out(data: RankingData, share: float, seed: int) -> tuple[RankingData, RankingData]:
    """(rows to learn from, rows to stop and choose on): a share of the queries is held out."""
    learn, held = split(data, (1 - share, share), seed=seed)
    return learn, held


def best_of(candidates: Iterable[T], value: Callable[[T], float]) -> T:
    """The candidate of the highest value, the first of equals; a value of NaN counts as 0.

    >>> best_of([3, -4, 4], lambda x: x * x)
    -4
    """
    return max(candidates, key=lambda candidate: float(np.nan_to_num(value(candidate))))
