"""Forests that learn probabilities of grades instead of grades.

A forest that is taught what another one believes about a row, not what the row was given, does not chase
single wrong labels. Loss: -sum_l w_l log q_l for targets w and q the softmax of the scores.
"""

from collections.abc import Mapping
from typing import Any

import lightgbm
import numpy as np

from cleanrank.data.split import fold_of_query
from cleanrank.errors import invalid
from cleanrank.rankers.grades import boosted, grade_settings, softmax
from cleanrank.types import Array, FloatArray, Progress, RankingData

ROUNDS = 60
LEAST_SHARE = 1e-3


class SoftTargets:
    """Cross-entropy against targets (N, C), as LightGBM's ``objective`` callable."""

    def __init__(self, targets: FloatArray, weights: Array | None = None) -> None:
        self.targets = targets
        self.weights = None if weights is None else np.asarray(weights, dtype=np.float64)[:, None]

    def __deepcopy__(self, memo: Any) -> "SoftTargets":
        return self

    def __call__(self, scores: Array, dataset: Any = None) -> tuple[Array, Array]:
        """Gradients q - w and curvatures C / (C - 1) q (1 - q), as LightGBM's own multiclass objective."""
        q = softmax(np.ascontiguousarray(scores, dtype=np.float64).reshape(self.targets.shape))
        C = q.shape[1]
        grad, hess = q - self.targets, np.maximum(C / (C - 1) * q * (1 - q), 1e-6)
        return (grad, hess) if self.weights is None else (grad * self.weights, hess * self.weights)


def fit_soft_grades(
    train: RankingData,
    targets: FloatArray,
    rows: RankingData,
    *,
    rounds: int = ROUNDS,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    n_jobs: int = 1,
) -> FloatArray:
    """Learns targets (N, C) on the features of ``train`` and predicts them for ``rows``.

    Args:
        train: rows to learn from; their grades are not looked at.
        targets: a probability of every grade for each of them.
        rows: rows to predict.
        rounds: rounds of boosting.
        params: LightGBM parameters that replace ``rankers.grades.DEFAULTS``.
        seed: for LightGBM.
        n_jobs: threads.
    """
    w = np.ascontiguousarray(targets, dtype=np.float64)
    if w.ndim != 2 or len(w) != train.n_docs or w.shape[1] < 2:
        raise invalid("targets", f"must be (rows, grades) for {train.n_docs} rows", f"shape {w.shape}")
    share = np.maximum(np.average(w, axis=0, weights=train.weights), LEAST_SHARE)
    base = np.log(share / share.sum())
    settings = grade_settings(w.shape[1], seed, n_jobs, params)
    settings |= {"objective": SoftTargets(w, train.weights), "metric": "None"}
    learn = lightgbm.Dataset(train.X, label=train.y, init_score=np.tile(base, (len(w), 1)))
    booster = boosted(settings, learn, train, num_boost_round=rounds)
    if booster is None:
        return np.tile(softmax(base[None]), (rows.n_docs, 1))
    scores = np.asarray(booster.predict(rows.X, raw_score=True), dtype=np.float64)
    return softmax(base + scores.reshape(rows.n_docs, w.shape[1]))


def cross_fit_soft_grades(
    data: RankingData,
    targets: FloatArray,
    n_folds: int = 5,
    *,
    seed: int = 0,
    progress: Progress | None = None,
    **options: Any,
) -> FloatArray:
    """Predicts every row's targets with a forest that saw none of its query: (N, C).

    Args:
        data: rows.
        targets: (N, C) a probability of every grade for each of them.
        n_folds: parts that the queries are cut into.
        seed: decides the folds and seeds the forests.
        progress: called with (fold, folds).
        options: further arguments of ``fit_soft_grades``.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(20, 5, docs_per_query=20, seed=0)
    >>> cross_fit_soft_grades(data, np.eye(data.n_grades)[data.y], 2, rounds=5).sum(axis=1).round(6).max()
    np.float64(1.0)
    """
    row_fold = np.repeat(fold_of_query(data, n_folds, seed), data.lengths)
    found = np.empty(np.shape(targets))
    for fold in range(n_folds):
        out = row_fold == fold
        if out.any():
            found[out] = fit_soft_grades(
                data.select(~out), targets[~out], data.select(out), seed=seed, **options
            )
        if progress is not None:
            progress(fold + 1, n_folds)
    return found
