"""What rankers of trees share beyond BaseRanker: LightGBM's attributes and habits."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

from cleanrank.cluster.client import on_cluster
from cleanrank.errors import invalid
from cleanrank.metrics.evaluation import evaluate_mean
from cleanrank.rankers._lightgbm import LIGHTGBM_MEASURE, resolve_aliases
from cleanrank.rankers.base import BaseRanker, EvalsResult, Validation
from cleanrank.rankers.columns import with_categories
from cleanrank.types import Array, FloatArray, RankingData


class TreeRanker(BaseRanker):
    """A ranker whose ``model_`` is a TreeModel.

    Attributes:
        booster_: LightGBM's own model.
        best_iteration_: trees in use.
        feature_importances_: how often each feature is split on, in the order of the columns;
            ``booster_.feature_importance("gain")`` has what the splits gain.
    """

    params: Mapping[str, Any] | None
    n_jobs: int
    _callbacks: Sequence[Callable[..., Any]] = ()

    def fit_data(
        self,
        train: RankingData,
        validation: Validation = None,
        *,
        callbacks: Sequence[Callable[..., Any]] | None = None,
        client: Any = None,
        **options: Any,
    ) -> Self:
        """Trains on a RankingData.

        Args:
            train: rows to learn from; ``categories`` are split as such.
            validation: rows to stop and choose on; several sets by name, of which the first decides.
            callbacks: of LightGBM, called after every tree of every model that is trained; they see the first
                set of validation rows.
            client: a ``distributed.Client``, whose workers then train: one model all together, of several
                models each worker its own.
            options: ``progress``, called with (step, steps), and what the class lists as options of ``fit``.
        """
        params = resolve_aliases(self.params)
        several = isinstance(validation, Mapping) and len(validation) > 1
        if several and (self._measure().startswith(LIGHTGBM_MEASURE) or params.get("boosting") == "dart"):
            rule = "goes with one set of validation rows"
            raise invalid("a measure of LightGBM, or DART,", rule, f"{len(validation or ())} sets")
        if client is not None and callbacks:
            rule = "must be left out with client=: models are trained by its workers"
            raise invalid("callbacks", rule, f"{len(callbacks)}")
        train = with_categories(train, params.get("categorical_feature"))
        self._callbacks = tuple(callbacks or ())
        try:
            with on_cluster(client):
                return super().fit_data(train, validation, **options)
        finally:
            del self._callbacks

    def predict(self, X: Any) -> FloatArray:
        """One score per row, in input order; higher ranks first. Uses ``n_jobs`` threads."""
        self._check_width(X)
        scores: FloatArray = self._fitted().predict(X, n_jobs=self.n_jobs)
        return scores

    @property
    def booster_(self) -> Any:
        """LightGBM's own model."""
        return self._fitted().booster

    @property
    def best_iteration_(self) -> int:
        """Trees in use."""
        return int(self._fitted().best_iteration)

    @property
    def feature_importances_(self) -> Array:
        """How often each feature is split on by the trees in use, in the order of the columns."""
        model = self._fitted()
        importances: Array = model.booster.feature_importance("split", iteration=model.best_iteration)
        return importances

    def _options(self) -> list[str]:
        return [*super()._options(), "callbacks", "client"]

    def _evaluations(self, sets: Mapping[str, RankingData]) -> EvalsResult:
        model, measure = self._fitted(), self._measure()
        results: EvalsResult = {}
        for place, (name, data) in enumerate(sets.items()):
            if place == 0:
                results[name] = {self.validation_measure(): list(model.history)}
            elif len(model.history) == 1:
                results[name] = {measure: [evaluate_mean(model.predict(data.X), data, measure)]}
            else:
                staged = model.staged_predict(data.X)
                history = [evaluate_mean(scores, data, measure) for _, scores in staged]
                # A tree without a split is counted for the first set and not kept.
                history += history[-1:] * (len(model.history) - len(history))
                results[name] = {measure: history}
        return results
