"""Probabilities of grades from forests that never saw the row: what estimates of noise are read off.

Training grades may be noisy, so the forests are small, and rounds are chosen on queries held out inside the
training part.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import lightgbm
import numpy as np

from cleanrank import checks
from cleanrank.data.split import split
from cleanrank.noise.crossfit import cross_fit
from cleanrank.rankers.trees import refuse_broken
from cleanrank.types import FloatArray, RankingData

DEFAULTS: dict[str, Any] = {
    "learning_rate": 0.1,
    "num_leaves": 7,
    "min_data_in_leaf": 50,
    "lambda_l2": 5.0,
    "feature_fraction": 0.7,
    "max_bin": 63,
}
HELD_OUT = 0.15


def fit_grades(
    train: RankingData,
    rows: RankingData,
    *,
    n_grades: int | None = None,
    seed: int = 0,
    params: Mapping[str, Any] | None = None,
    rounds: int = 200,
    early_stopping_rounds: int = 15,
    n_jobs: int = 1,
) -> FloatArray:
    """Learns P(given grade | features) on ``train`` and predicts it for ``rows``: (N, C).

    Args:
        train: rows with given grades.
        rows: rows to predict; their grades are not looked at.
        n_grades: C; the highest grade of ``train`` plus one when not given.
        seed: for the held-out queries and LightGBM.
        params: LightGBM parameters that replace DEFAULTS.
        rounds: rounds at the most.
        early_stopping_rounds: rounds without gain in log loss on held-out queries before it stops.
        n_jobs: threads.
    """
    refuse_broken(params or {})
    C = max(train.n_grades, 2) if n_grades is None else n_grades
    if train.n_grades > C:
        checks.fail("n_grades", f"must exceed every grade ({train.n_grades - 1} occurs)", C)
    settings = DEFAULTS | {
        "objective": "multiclass",
        "num_class": C,
        "metric": "multi_logloss",
        "seed": seed,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": n_jobs,
        "verbosity": -1,
        **(params or {}),
    }
    learn, held = split(train, (1 - HELD_OUT, HELD_OUT), seed=seed) if train.n_queries > 6 else (train, None)
    learn_set = lightgbm.Dataset(learn.X, label=learn.y, weight=learn.weights)
    watched = [] if held is None else [lightgbm.Dataset(held.X, label=held.y, reference=learn_set)]
    stop: list[Callable[..., Any]] = (
        [lightgbm.early_stopping(early_stopping_rounds, verbose=False)] if watched else []
    )
    booster = lightgbm.train(settings, learn_set, num_boost_round=rounds, valid_sets=watched, callbacks=stop)
    best = booster.best_iteration if booster.best_iteration > 0 else None
    found: FloatArray = np.asarray(booster.predict(rows.X, num_iteration=best), dtype=np.float64)
    return found


def cross_fit_probabilities(
    data: RankingData,
    n_folds: int = 5,
    *,
    seed: int = 0,
    n_grades: int | None = None,
    fit_predict: Callable[[RankingData, RankingData], FloatArray] | None = None,
    **options: Any,
) -> FloatArray:
    """P(given grade | features) of every row, from forests that saw none of its query: (N, C).

    Args:
        data: rows with given grades.
        n_folds: parts that the queries are cut into.
        seed: decides the folds and seeds the forests.
        n_grades: C; the highest grade plus one when not given.
        fit_predict: (train, rows) -> (N, C) in place of ``fit_grades``.
        options: further arguments of ``fit_grades``.

    >>> import cleanrank as cr
    >>> cross_fit_probabilities(cr.make_ranking(20, 5, docs_per_query=20, seed=0), 2, rounds=5).shape[1]
    5
    """
    C = max(data.n_grades, 2) if n_grades is None else n_grades
    model = fit_predict or partial(fit_grades, n_grades=C, seed=seed, **options)
    return cross_fit(data, model, n_folds, seed=seed, n_grades=C)
