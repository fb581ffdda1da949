"""Boosted trees: the only place that talks to LightGBM.

lambda-LGBM is LightGBM's lambdarank with ``norm`` on, lambda-MART the same with ``norm`` off. GBDT is
least-squares boosting on the grade (Friedman 2001), which knows no queries.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np

from cleanrank import checks
from cleanrank.evaluate.compare import evaluate_arrays
from cleanrank.evaluate.measures import Measure
from cleanrank.types import FloatArray, Progress, RankingData

DEFAULTS: dict[str, Any] = {
    "learning_rate": 0.05,
    "num_leaves": 31,
    "min_data_in_leaf": 20,
    "min_sum_hessian_in_leaf": 0.0,
    "max_bin": 255,
}


@dataclass(frozen=True)
class TreeRanker:
    """A trained forest.

    Attributes:
        booster: LightGBM's own model.
        best_iteration: trees that are used to score.
        validation_value: the measure on validation data at that point; None without validation data.
    """

    booster: lightgbm.Booster
    best_iteration: int
    validation_value: float | None = None

    def predict(self, X: Any) -> FloatArray:
        """Scores of rows, in input order."""
        found: FloatArray = np.asarray(
            self.booster.predict(X, num_iteration=self.best_iteration), dtype=np.float64
        )
        return found

    def save(self, path: str | Path) -> None:
        """Writes LightGBM's text format."""
        self.booster.save_model(str(path), num_iteration=self.best_iteration)


def train_lambdarank(
    train: RankingData,
    validation: RankingData | None = None,
    *,
    norm: bool = True,
    params: Mapping[str, Any] | None = None,
    measure: str | Measure = "ndcg@10",
    rounds: int = 500,
    early_stopping_rounds: int = 50,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> TreeRanker:
    """Trains LightGBM's lambdarank and keeps the round that is best on validation data.

    Args:
        train: rows to learn from.
        validation: rows to stop on; without them all rounds are kept.
        norm: LightGBM's normalisation of lambdas by query.
        params: LightGBM parameters that replace DEFAULTS.
        measure: what early stopping looks at, any cleanrank measure.
        rounds: trees at the most.
        early_stopping_rounds: rounds without gain before it stops.
        seed: for everything random inside LightGBM; one thread or many, the same trees.
        n_jobs: threads.
        progress: called with (round, rounds).
    """
    objective = {
        "objective": "lambdarank",
        "lambdarank_norm": norm,
        "label_gain": [2.0**grade - 1 for grade in range(max(train.n_grades, 2))],
    }
    return _boost(
        train,
        validation,
        objective,
        params=params,
        measure=measure,
        rounds=rounds,
        early_stopping_rounds=early_stopping_rounds,
        seed=seed,
        n_jobs=n_jobs,
        progress=progress,
    )


def train_gbdt(
    train: RankingData,
    validation: RankingData | None = None,
    *,
    params: Mapping[str, Any] | None = None,
    measure: str | Measure = "ndcg@10",
    rounds: int = 500,
    early_stopping_rounds: int = 50,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> TreeRanker:
    """Fits the grade by least squares, min sum_i (y_i - f(x_i))^2 (Friedman 2001), to rank by the fit.

    The arguments are those of ``train_lambdarank``; early stopping looks at a measure of the ranking all
    the same.
    """
    return _boost(
        train,
        validation,
        {"objective": "regression"},
        params=params,
        measure=measure,
        rounds=rounds,
        early_stopping_rounds=early_stopping_rounds,
        seed=seed,
        n_jobs=n_jobs,
        progress=progress,
    )


def _boost(
    train: RankingData,
    validation: RankingData | None,
    objective: Mapping[str, Any],
    *,
    params: Mapping[str, Any] | None,
    measure: str | Measure,
    rounds: int,
    early_stopping_rounds: int,
    seed: int,
    n_jobs: int,
    progress: Progress | None,
) -> TreeRanker:
    """Boosts one of LightGBM's own objectives; ``params`` have the last word."""
    refuse_broken(params or {})
    if train.gains is not None:
        checks.fail("train", "must have grades only for LightGBM's own objectives", "real-valued gains")
    measure = Measure.parse(measure) if isinstance(measure, str) else measure
    settings = {
        **DEFAULTS,
        **objective,
        "metric": "None",
        "seed": seed,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": n_jobs,
        "verbosity": -1,
        **(params or {}),
    }
    callbacks = []
    if progress is not None:
        callbacks.append(lambda env: progress(env.iteration + 1, rounds))
    history: dict[str, Any] = {}
    watched: list[lightgbm.Dataset] = []
    train_set = _dataset(train)
    if validation is not None:
        watched = [_dataset(validation, train_set)]
        callbacks += [
            lightgbm.early_stopping(early_stopping_rounds, verbose=False),
            lightgbm.record_evaluation(history),
        ]

    def watch(scores: FloatArray, _: lightgbm.Dataset) -> tuple[str, float, bool]:
        assert validation is not None
        value = evaluate_arrays(validation.y, scores, validation.indptr, [measure], n_jobs=n_jobs)
        return str(measure), float(value.means[str(measure)]), True

    booster = lightgbm.train(
        settings,
        train_set,
        num_boost_round=rounds,
        valid_sets=watched,
        valid_names=["validation"] if watched else None,
        feval=watch if watched else None,
        callbacks=callbacks,
    )
    best = booster.best_iteration if watched and booster.best_iteration > 0 else booster.current_iteration()
    value = history["validation"][str(measure)][best - 1] if watched else None
    return TreeRanker(booster, best, value)


def refuse_broken(params: Mapping[str, Any]) -> None:
    """Refuses LightGBM settings that are known to compute something else than they say."""
    if params.get("bagging_by_query"):
        checks.fail(
            "bagging_by_query",
            "must be off: LightGBM 4.7 gives the score updates of rows out of the bag to row 0",
            True,
            remedy="Use bagging_fraction without it.",
        )


def _dataset(data: RankingData, reference: lightgbm.Dataset | None = None) -> lightgbm.Dataset:
    return lightgbm.Dataset(
        data.X,
        label=data.y,
        group=data.lengths,
        weight=data.weights,
        reference=reference,
        free_raw_data=True,
    )
