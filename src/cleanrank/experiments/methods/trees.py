"""LightGBM's rankers and the simplest baselines as methods of an experiment."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from cleanrank.experiments.methods import LAMBDARANK, MethodResult, MethodTask
from cleanrank.metrics.evaluation import evaluate
from cleanrank.rankers.base import best_of
from cleanrank.rankers.trees import LAMBDAS, TreeModel, TreeParams
from cleanrank.types import Features, FloatArray, RankingData

# From one value for every parameter to a model and facts to note beside it.
Fit: TypeAlias = Callable[[dict[str, Any]], tuple[TreeModel, Mapping[str, Any]]]

# What TreeParams has by other names; all other parameters of LAMBDARANK go to LightGBM.
OWN = ("norm", "rounds", "early_stopping_rounds")
OBJECTIVES = ("lambdarank", "gbdt")


def lambdarank(task: MethodTask) -> MethodResult:
    """LightGBM's lambdarank; validation data choose the number of trees and from the grid."""
    return tuned(task, lambda params: (fit_trees(task, params), {}))


def gbdt(task: MethodTask) -> MethodResult:
    """LightGBM's least-squares trees on the grade, chosen like those of lambdarank."""
    return tuned(task, lambda params: (fit_trees(task, params, "gbdt"), {}))


def one_feature(task: MethodTask) -> MethodResult:
    """The single feature that ranks validation data best, upwards or downwards."""
    columns = _dense(task.validation.X)
    candidates = [(sign, feature) for feature in range(columns.shape[1]) for sign in (1.0, -1.0)]
    values = [
        next(iter(evaluate(sign * columns[:, f], task.validation, [task.select]).means.values()))
        for sign, f in candidates
    ]
    sign, feature = candidates[int(np.argmax(values))]
    chosen = {"feature": feature, "sign": int(sign), "validation": float(max(values))}
    return MethodResult(sign * _dense(task.test.X)[:, feature], chosen)


def random_order(task: MethodTask) -> MethodResult:
    """Documents in random order: the floor of every measure."""
    return MethodResult(np.random.default_rng(task.seed).random(task.test.n_docs))


def tuned(task: MethodTask, fit: Fit) -> MethodResult:
    """The scores of the model that validation data choose from the grid."""
    model, chosen = best_trees(task, fit)
    return MethodResult(model.predict(task.test.X), chosen)


def best_trees(task: MethodTask, fit: Fit) -> tuple[TreeModel, dict[str, Any]]:
    """The model that validation data choose from the grid (ties: the first), and the choice."""
    fits = ((*fit({**task.params, **choice}), choice) for choice in task.choices())
    model, facts, choice = best_of(fits, lambda each: each[0].validation_value or 0.0)
    value = float(np.nan_to_num(model.validation_value or 0.0))  # 0 where no validation query counts
    return model, {**choice, **facts, "trees": model.best_iteration, "validation": value}


def fit_trees(
    task: MethodTask,
    params: Mapping[str, Any],
    objective: str = "lambdarank",
    *,
    data: RankingData | None = None,
    **options: Any,
) -> TreeModel:
    """Trains trees on ``data``, else on the task's training data."""
    validation = options.pop("validation", task.validation)
    settings = tree_params(params, objective, measure=task.select, seed=task.seed, n_jobs=task.n_jobs)
    return replace(settings, **options).train(task.train if data is None else data, validation)


def tree_params(params: Mapping[str, Any], objective: str = "lambdarank", **options: Any) -> TreeParams:
    """How the parameters of a recipe grow trees; those that are not of LAMBDARANK are left out."""
    return TreeParams(
        objective=ranking_objective(params) if objective in LAMBDAS else objective,
        implementation="builtin",
        n_estimators=params["rounds"],
        early_stopping_rounds=params["early_stopping_rounds"],
        params={key: value for key, value in params.items() if key in LAMBDARANK and key not in OWN},
        **options,
    )


def ranking_objective(params: Mapping[str, Any]) -> str:
    """Lambdarank, or without the normalisation by query lambdamart."""
    return "lambdarank" if params["norm"] else "lambdamart"


def _dense(X: Features) -> FloatArray:
    """Features as float64; a missing value counts as 0, as in sparse data."""
    dense = X if isinstance(X, np.ndarray) else X.toarray()
    return np.nan_to_num(np.asarray(dense, dtype=np.float64), nan=0.0)
