"""What classic rankers share: rows on one scale, the best step on validation rows, models as JSON."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cleanrank.errors import invalid
from cleanrank.jit import threads
from cleanrank.metrics.evaluation import evaluate_mean
from cleanrank.metrics.measure import Measure
from cleanrank.rankers.base import BaseRanker, EvalsResult, check_labels, check_rows
from cleanrank.rankers.classic.models import LinearModel, Model, StumpModel
from cleanrank.rankers.columns import Columns
from cleanrank.rankers.scaling import Scaling, fit_scaling
from cleanrank.types import FloatArray, IntArray, Progress, RankingData
from cleanrank.validation import check_integer, check_seed


@dataclass(frozen=True, eq=False)
class Rows:
    """What an algorithm learns from: documents of a query are contiguous."""

    X: FloatArray  # (N, F) in C order, scaled; a missing value is 0
    y: IntArray  # (N,), grades
    indptr: IntArray  # (Q + 1,), where queries begin
    weights: FloatArray | None = None  # (N,), of rows; None: all alike


class Watch:
    """Follows rankings of validation rows step by step: keeps the best step, says when to stop.

    Attributes:
        sets: scaled features of every set of validation rows; the first one decides.
        history: per set, the measure after every step.
        best_step: the step with the highest value, counted from 1; the last one without validation rows.
        best_value: that value; None without validation rows.
        done: there was no gain for ``patience`` steps.
    """

    def __init__(
        self, data: Sequence[RankingData], scaling: Scaling, measure: str, patience: int | None
    ) -> None:
        self._data, self._measure, self._patience = tuple(data), Measure.parse(measure), patience
        self.sets: tuple[FloatArray, ...] = tuple(
            scaling.apply(each.X, rows=each.row_ids, subject="X of validation data") for each in data
        )
        self.history: list[list[float]] = [[] for _ in data]
        self.best_step, self.best_value, self._steps = 0, -np.inf, 0

    def see(self, scores: Sequence[FloatArray]) -> bool:
        """Notes the scores of every set after one more step; whether this step is the one to keep."""
        self._steps += 1
        for values, each, data in zip(self.history, scores, self._data, strict=True):
            values.append(evaluate_mean(each, data, self._measure, n_jobs=1))
        value = float(np.nan_to_num(self.history[0][-1])) if self.history else 0.0
        if self._patience is None or not self.history or value > self.best_value:
            self.best_step, self.best_value = self._steps, value
            return True
        return False

    @property
    def done(self) -> bool:
        """Whether as many steps as may be have passed without a gain."""
        return bool(self.history and self._patience and self._steps - self.best_step >= self._patience)


class ClassicRanker(BaseRanker, ABC):
    """A ranker of which a subclass writes ``_train``; it reads numbers and grades alone.

    Attributes:
        best_iteration_: rounds, epochs or steps in use.
    """

    compares: ClassVar[bool] = True  # documents within a query, so that one query must have two that differ
    scaling: str
    measure: str
    random_state: int
    n_jobs: int

    @abstractmethod
    def _train(self, rows: Rows, watch: Watch, progress: Progress | None) -> Model:
        """How a subclass learns."""

    def _fit(
        self, train: RankingData, validation: RankingData | None = None, *, progress: Progress | None = None
    ) -> None:
        name = type(self).__name__
        check_seed(self.random_state)
        patience = self.get_params().get("early_stopping_rounds", 0)
        if patience is not None:
            check_integer("early_stopping_rounds", patience, least=0)
        if train.categories:
            column = f"categories in {next(iter(train.categories))!r}"
            remedy = "One-hot encode it first, as pandas.get_dummies does, or use trees: BoostedRanker."
            raise invalid(name, "reads numbers alone", column, remedy=remedy)
        if train.gains is not None:
            remedy = "BoostedRanker learns from gains."
            raise invalid(name, "reads grades", "rows with expected gains", remedy=remedy)
        check_rows(train, validation)
        check_labels(train, pairs=self.compares)
        scaling = fit_scaling(train.X, self.scaling, rows=train.row_ids, dtype=np.float64)
        X = scaling.apply(train.X, rows=train.row_ids)
        weights = None if train.weights is None else train.weights.astype(np.float64)
        rows = Rows(X, train.y.astype(np.int64), train.indptr.astype(np.int64), weights)
        watch = Watch(list(self._sets.values()), scaling, self.measure, patience)
        self._columns, self._scaling = Columns.of(train), scaling
        try:
            with threads(self.n_jobs):
                self.model_ = self._train(rows, watch, progress)
        finally:
            del self._columns, self._scaling

    def _linear(
        self, weights: FloatArray, watch: Watch, *, thresholds: FloatArray | None = None
    ) -> LinearModel:
        """The model of weights of the scaled features, those of the best step."""
        thresholds = np.zeros(0) if thresholds is None else thresholds
        return LinearModel(weights=weights, thresholds=thresholds, **self._shared(watch))

    def _stumps(
        self, features: IntArray, thresholds: FloatArray, weights: FloatArray, watch: Watch
    ) -> StumpModel:
        """The model of weighted thresholds, of which the first ``watch.best_step`` are kept."""
        parts = {"features": features, "thresholds": thresholds, "weights": weights}
        kept: dict[str, Any] = {name: values[: watch.best_step] for name, values in parts.items()}
        return StumpModel(**kept, **self._shared(watch))

    def _shared(self, watch: Watch) -> dict[str, Any]:
        return {
            "ranker": type(self).__name__,
            "params": self.get_params(),
            "columns": self._columns,
            "scaling": self._scaling,
            "best_iteration": watch.best_step,
            "validation_value": watch.best_value if watch.history else None,
            "history": tuple(map(tuple, watch.history)),
        }

    @property
    def best_iteration_(self) -> int:
        """Rounds, epochs or steps in use."""
        return int(self._fitted().best_iteration)

    def _evaluations(self, sets: Mapping[str, RankingData]) -> EvalsResult:
        histories = zip(sets, self._fitted().history, strict=True)
        return {name: {self._measure(): list(history)} for name, history in histories}


class LinearRanker(ClassicRanker):
    """A classic ranker that adds up weighted features.

    Attributes:
        coef_: weights of the features as they were given.
        intercept_: X @ coef_ + intercept_ are the scores, where no value is missing.
    """

    @property
    def coef_(self) -> FloatArray:
        """Weights of the features as they were given."""
        coef: FloatArray = self._fitted().coef
        return coef

    @property
    def intercept_(self) -> float:
        """What is added to X @ coef_."""
        return float(self._fitted().intercept)
