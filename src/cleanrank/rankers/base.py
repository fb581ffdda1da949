"""What all rankers share: rows in any order, queries by id or size, scores back in the order of the rows."""

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from cleanrank.data.split import split
from cleanrank.errors import InvalidInputError, error_text, invalid
from cleanrank.metrics.evaluation import evaluate_arrays
from cleanrank.metrics.measure import Measure
from cleanrank.ragged import from_arrays, row_order
from cleanrank.rankers.columns import Columns, frame_features, frame_qid, with_categories
from cleanrank.stored import StoredFeatures, as_array, blocks
from cleanrank.types import Array, FloatArray, IntArray, RankingData
from cleanrank.validation import is_frame, one_of

CHUNK = 4096
T = TypeVar("T")
# Validation rows: one set or several by name, of which the first decides.
Validation: TypeAlias = RankingData | Mapping[str, RankingData] | None
EvalsResult: TypeAlias = dict[str, dict[str, list[float]]]


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
    Columns of data frames are found by name: in any order, others ignored, missing ones refused.

    Attributes:
        n_features_in_: columns that it was fitted on.
        feature_names_in_: their names, where they had any.
        evals_result_: set of validation rows -> measure -> value after every tree or epoch; one value where
            models were averaged.
    """

    _sets: Mapping[str, RankingData] = {}  # of validation rows, while it is fitted

    _values_of_gains = False  # whether validation rows had expected gains

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
        eval_group: Any = None,
        eval_names: Sequence[str] | None = None,
        categorical_feature: Any = "auto",
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
            eval_set: (X, y) of validation rows, or a list of such pairs; stopping and choices look at the
                first, ``evals_result_`` has all.
            eval_qid: their queries; of several sets a list.
            eval_group: instead of ``eval_qid``, documents per query.
            eval_names: what ``evals_result_`` calls the sets.
            categorical_feature: names or places of features that hold categories as whole numbers; "auto":
                the category columns of a data frame.
            options: further arguments of ``fit_data``.
        """
        if y is None:
            raise invalid(type(self).__name__, "requires y to be passed, but the target y is None")
        if position is not None and not self.reads_positions:
            remedy = "For trees use BoostedRanker(implementation='builtin', position_bias=True)."
            raise invalid(f"{type(self).__name__} as it is set", "does not read position=", remedy=remedy)
        train = training_data(X, y, qid=qid, group=group, sample_weight=sample_weight, position=position)
        held = validation_data(eval_set, eval_qid, eval_group, eval_names)
        if words := unused_columns(train):
            warnings.warn(words, stacklevel=2)
        options = self._for_rows(options, train.row_ids)
        return self.fit_data(with_categories(train, categorical_feature), held, **options)

    def fit_data(self, train: RankingData, validation: Validation = None, **options: Any) -> Self:
        """Trains on a RankingData.

        Args:
            train: rows to learn from.
            validation: rows to stop and choose on; several sets by name, of which the first decides.
            options: ``progress``, called with (step, steps), and what the class lists as options of ``fit``.
        """
        for name in options:
            one_of(f"argument of {type(self).__name__}.fit", name, self._options())
        if train.n_docs and not train.n_features:
            shape = f"0 feature(s) (shape=({train.n_docs}, 0)) while a minimum of 1 is required"
            raise invalid("training data", "must have features", shape)
        sets = {"valid_0": validation} if isinstance(validation, RankingData) else dict(validation or {})
        columns = Columns.of(train)
        subject = "validation data" if len(sets) == 1 else "validation data ({})"
        sets = {name: columns.align(data, subject.format(name)) for name, data in sets.items()}
        self._sets = sets
        try:
            self._fit(train, next(iter(sets.values()), None), **options)
        finally:
            del self._sets
        self.evals_result_: EvalsResult = self._evaluations(sets)
        return self

    def predict(self, X: Any) -> FloatArray:
        """One score per row, in input order; higher ranks first."""
        self._check_width(X)
        scores: FloatArray = self._fitted().predict(X)
        return scores

    def score(
        self,
        X: Any,
        y: npt.ArrayLike,
        *,
        qid: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
        sample_weight: None = None,
    ) -> float:
        """The mean of the ranker's measure over the queries of judged rows; rows have no weights in it.

        ``sample_weight`` is there for scikit-learn's pipelines, which pass None.
        """
        refuse_weights(sample_weight)
        if qid is None and group is None:
            qid = frame_qid(X)
        return mean_over_queries(y, self.predict(X), qid, group, self._measure())

    def _check_width(self, X: Any) -> None:
        """Refuses an array of another width, in scikit-learn's words."""
        shape: tuple[int, ...] = () if is_frame(X) else np.shape(X)
        if len(shape) == 2 and shape[1] != self.n_features_in_:
            rule = f"but {type(self).__name__} is expecting {self.n_features_in_} features as input"
            raise invalid("X", f"has {shape[1]} features, {rule}")

    @property
    def n_features_in_(self) -> int:
        """Columns that it was fitted on."""
        return int(self._fitted().n_features)

    @property
    def feature_names_in_(self) -> Array:
        """Their names; there is no such attribute where they had none."""
        names = self._fitted().columns.names
        if names is None:
            raise AttributeError(f"{type(self).__name__} was fitted on columns without names")
        return np.array(names, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        tags.input_tags.sparse = tags.input_tags.allow_nan = True
        return tags

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the model to a file that ``load_ranker`` reads."""
        self._fitted().save(path)

    def _fit(self, *args: Any, **options: Any) -> None:
        """How a subclass trains: sets ``model_``."""
        raise NotImplementedError

    @property
    def reads_positions(self) -> bool:
        """Whether ``fit`` reads the positions at which rows were shown."""
        return False

    def _for_rows(self, options: dict[str, Any], row_ids: IntArray) -> dict[str, Any]:
        """Options of ``fit``, which speaks of rows of X, for ``fit_data``; ``row_ids`` are its rows in X."""
        return options

    def _options(self) -> list[str]:
        """The names of the options of ``fit``."""
        return options_of(self._fit)

    def _evaluations(self, sets: Mapping[str, RankingData]) -> EvalsResult:
        """What ``evals_result_`` says about sets of validation rows, of which ``_fit`` saw the first."""
        raise NotImplementedError

    def validation_measure(self) -> str:
        """What the validation value of a fitted ranker is; measures of expected gains have another scale."""
        return f"{self._measure()} of expected gains" if self._values_of_gains else self._measure()

    def _measure(self) -> str:
        """What ``score`` is the mean of."""
        return str(self.get_params()["measure"])

    def _fitted(self) -> Any:
        if not hasattr(self, "model_"):
            rule = "must be fitted before it predicts or is saved"
            raise NotFittedError(error_text(type(self).__name__, rule, remedy="Call fit."))
        return self.model_


def options_of(function: Callable[..., Any]) -> list[str]:
    """The names of a function's keyword-only arguments."""
    return [p.name for p in inspect.signature(function).parameters.values() if p.kind == p.KEYWORD_ONLY]


def ranking_scorer(measure: str = "ndcg@10") -> Any:
    """A scikit-learn scorer that asks for ``qid``: the mean of a measure over queries.

    Needs ``sklearn.set_config(enable_metadata_routing=True)``.
    """
    from sklearn.metrics import make_scorer

    Measure.parse(measure)  # a slip is noticed here, not when something is scored

    def mean(y_true: npt.ArrayLike, y_pred: npt.ArrayLike, qid: npt.ArrayLike) -> float:
        return mean_over_queries(y_true, y_pred, qid, None, measure)

    return make_scorer(mean).set_score_request(qid=True)


def mean_over_queries(y: npt.ArrayLike, scores: npt.ArrayLike, qid: Any, group: Any, measure: str) -> float:
    """The mean of a measure over the queries of rows in any order."""
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
    parts: dict[str, Any] = {"X": X}
    if is_frame(X):
        if qid is None and group is None:
            qid = frame_qid(X)
        parts = frame_features(X)
    return from_arrays(y=y, qid=qid, group=group, weights=sample_weight, positions=position, **parts)


def refuse_weights(sample_weight: Any) -> None:
    """Refuses weights of rows where every query counts alike."""
    if sample_weight is not None:
        raise invalid("sample_weight", "must be None in score: every query counts alike")


def unused_columns(data: RankingData) -> str:
    """Which columns of text no ranker learns from, in words; empty where there are none."""
    names = [name for name in data.extra or {} if name != "comment"]
    if not names:
        return ""
    listed = ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
    return (
        f"columns that are no features are not learnt from: {listed}. Numbers and categories are features "
        "unless others are named."
    )


def validation_data(
    eval_set: Any, eval_qid: Any = None, eval_group: Any = None, eval_names: Sequence[str] | None = None
) -> dict[str, RankingData]:
    """Sets of validation rows by name, as LightGBM takes them: one pair (X, y) or a list of pairs."""
    if eval_set is None:
        return {}
    several = isinstance(eval_set, list)
    pairs = eval_set if several else [eval_set]
    for pair in pairs:
        if not (isinstance(pair, tuple) and len(pair) == 2):
            raise invalid("eval_set", "must be a pair (X, y) or a list of pairs", type(pair).__name__)
    names = [f"valid_{place}" for place in range(len(pairs))] if eval_names is None else list(eval_names)
    if len(set(names)) != len(pairs):
        raise invalid("eval_names", f"must name each of the {len(pairs)} sets differently", names)
    qids, groups = (
        _for_each(name, values, len(pairs) if several else 0)
        for name, values in (("eval_qid", eval_qid), ("eval_group", eval_group))
    )
    rows = zip(pairs, qids, groups, strict=True)
    return {n: training_data(*p, qid=q, group=g) for n, (p, q, g) in zip(names, rows, strict=True)}


def _for_each(name: str, values: Any, sets: int) -> list[Any]:
    """The queries of each of so many sets; of one set they may come without a list around them."""
    if values is None:
        return [None] * max(sets, 1)
    nested = isinstance(values, list | tuple) and all(each is None or np.ndim(each) == 1 for each in values)
    if sets == 0 or (sets == 1 and not nested):
        return [values]
    if not nested or len(values) != sets:
        raise invalid(
            name, f"must be a list with an entry for each of the {sets} sets", type(values).__name__
        )
    return list(values)


def widened(data: RankingData, n_features: int) -> RankingData:
    """The rows with columns of zeros behind their own, which SVMlight files may leave out."""
    more = n_features - data.n_features
    if more <= 0:
        return data
    if isinstance(data.X, StoredFeatures):
        rule = f"must have the {n_features} columns of the other data where its features stay on disk"
        raise invalid("data", rule, data.n_features, remedy=f"Convert it with n_features={n_features}.")
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
        rows = "1 sample" if train.n_docs == 1 else f"{train.n_docs:,} rows"
        constant = f"{train.n_features} constant ones in {rows}"
        remedy = "Check how the features were read or joined."
        raise invalid(
            "features", "must differ between documents in at least one column", constant, remedy=remedy
        )
    if validation is None:
        return
    if not validation.n_docs:
        raise invalid("validation data", "must have at least one document", "none", remedy="Or give none.")
    Columns.of(train).align(validation, "validation data")


def check_labels(
    train: RankingData, label_gain: Sequence[float] | None = None, *, pairs: bool = True
) -> None:
    """Refuses labels that leave nothing to learn.

    Args:
        train: the rows.
        label_gain: the gain of each grade, by which labels differ or not; not read where rows have gains.
        pairs: documents are compared within their query, so that one query must have two that differ.
    """
    gains: Array = train.y if train.gains is None else train.gains
    if train.gains is None and label_gain is not None and len(label_gain) >= train.n_grades:
        gains = np.asarray(label_gain, dtype=np.float64)[train.y]
    if gains.min() == gains.max():
        rows = f"the same one in {'1 sample' if train.n_docs == 1 else f'all {train.n_docs:,} rows'}"
        remedy = "Check which column holds the labels."
        raise invalid("labels", "must differ between documents", rows, remedy=remedy)
    starts = train.indptr[:-1][train.lengths > 0]
    if pairs and (np.maximum.reduceat(gains, starts) == np.minimum.reduceat(gains, starts)).all():
        longest = int(train.lengths.max())
        shape = "one document a query" if longest == 1 else "equal labels within every query"
        rule = "must have two documents of different labels in at least one query"
        remedy = "Check the query ids; least squares (gbdt) needs no pairs within a query."
        raise invalid("training data", rule, f"{shape}, {train.n_queries:,} queries", remedy=remedy)


def varies(X: Any) -> bool:
    """Whether some column holds two values; missing ones are alike."""
    first = as_array(X[:1])
    return any(
        not ((rows == first) | (np.isnan(rows) & np.isnan(first))).all() for _, rows in blocks(X, CHUNK)
    )


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
