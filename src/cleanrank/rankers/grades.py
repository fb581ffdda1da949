"""Probabilities of grades from forests that never saw the row: what estimates of noise are read off.

Training grades may be noisy, so the forests are small, and rounds are chosen on queries held out inside the
training part.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt

from cleanrank.data.split import fold_of_query, split
from cleanrank.errors import invalid
from cleanrank.noise.anchors import cross_fit
from cleanrank.rankers.settings import by_main_name, in_our_words, refuse_broken, run_settings
from cleanrank.types import Array, FloatArray, Progress, RankingData

DEFAULTS: dict[str, Any] = {
    "learning_rate": 0.1,
    "num_leaves": 7,
    "min_data_in_leaf": 50,
    "lambda_l2": 5.0,
    "feature_fraction": 0.7,
    "max_bin": 63,
}
HELD_OUT = 0.15
TINY = 1e-300
HOLD = 64.0  # a normal prior of deviation 1/8 on the slope and on every bias


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
    C = max(train.n_grades, 2) if n_grades is None else n_grades
    if train.n_grades > C:
        raise invalid("n_grades", f"must exceed every grade ({train.n_grades - 1} occurs)", C)
    settings = grade_settings(C, seed, n_jobs, params)
    settings |= {"objective": "multiclass", "metric": "multi_logloss"}
    learn, held = split(train, (1 - HELD_OUT, HELD_OUT), seed=seed) if train.n_queries > 6 else (train, None)
    learn_set = lightgbm.Dataset(learn.X, label=learn.y, weight=learn.weights)
    watched = [] if held is None else [lightgbm.Dataset(held.X, label=held.y, reference=learn_set)]
    stop: list[Callable[..., Any]] = (
        [lightgbm.early_stopping(early_stopping_rounds, verbose=False)] if watched else []
    )
    with in_our_words(settings, learn):
        booster = lightgbm.train(
            settings, learn_set, num_boost_round=rounds, valid_sets=watched, callbacks=stop
        )
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


def fit_true_grades(
    train: RankingData,
    likelihood: FloatArray,
    rows: Sequence[RankingData],
    *,
    shares: npt.ArrayLike | None = None,
    seed: int = 0,
    params: Mapping[str, Any] | None = None,
    rounds: int = 200,
    early_stopping_rounds: int = 15,
    n_jobs: int = 1,
) -> list[FloatArray]:
    """Learns P(true grade | features) from noisy grades and predicts it for ``rows``: (N, C) each.

    Maximises sum_i log sum_l q_l(x_i) L[i, l], the likelihood of the given grades (the forward correction of
    Patrini et al. 2017). Its gradient in the scores is q less the posterior, q L / sum q L.

    Args:
        train: rows to learn from.
        likelihood: (N, C) L[i, l] = P(given grade of row i | true grade l); a row of a known grade has one
            entry.
        rows: sets of rows to predict; their grades are not looked at.
        shares: about how common the true grades are; it decides between grades that the given ones cannot
            tell apart.
        seed: for the held-out queries and LightGBM.
        params: LightGBM parameters that replace DEFAULTS.
        rounds: rounds at the most.
        early_stopping_rounds: rounds without gain in held-out likelihood before it stops.
        n_jobs: threads.
    """
    L = np.ascontiguousarray(likelihood, dtype=np.float64)
    C = L.shape[1]
    base = np.log(true_shares(L, train.weights, shares))
    held = _held_out(train, seed)
    learn_set = _start(train, ~held, base)
    weights = None if train.weights is None else train.weights[~held]
    objective = NoisyGrades(L[~held], weights, n_jobs)
    watched = [_start(train, held, base, learn_set)] if held.any() else []
    settings = grade_settings(C, seed, n_jobs, params) | {"objective": objective, "metric": "None"}
    stop: list[Callable[..., Any]] = (
        [lightgbm.early_stopping(early_stopping_rounds, verbose=False)] if watched else []
    )
    outside = NoisyGrades(L[held], None, n_jobs)
    booster = boosted(
        settings,
        learn_set,
        train,
        num_boost_round=rounds,
        valid_sets=watched,
        feval=lambda scores, _: ("unlikeliness", outside.loss(scores), False),
        callbacks=stop,
    )
    if booster is None:
        return [softmax(np.tile(base, (each.n_docs, 1))) for each in rows]
    best = booster.best_iteration if booster.best_iteration > 0 else None
    return [
        softmax(base + np.asarray(booster.predict(each.X, num_iteration=best, raw_score=True)))
        for each in rows
    ]


def cross_fit_true_grades(
    data: RankingData,
    likelihood: FloatArray,
    n_folds: int = 5,
    *,
    seed: int = 0,
    others: Sequence[RankingData] = (),
    progress: Progress | None = None,
    **options: Any,
) -> tuple[FloatArray, list[FloatArray]]:
    """P(true grade | features) from forests that saw none of a row's query: (N, C).

    Also for other rows, as the mean of the forests of all folds.

    Args:
        data: rows with given grades.
        likelihood: (N, C) P(given grade of the row | true grade).
        n_folds: parts that the queries are cut into.
        seed: decides the folds and seeds the forests.
        others: further sets of rows, of queries that ``data`` does not hold.
        progress: called with (fold, folds).
        options: further arguments of ``fit_true_grades``.
    """
    row_fold = np.repeat(fold_of_query(data, n_folds, seed), data.lengths)
    found = np.empty(likelihood.shape)
    beside = [np.zeros((each.n_docs, likelihood.shape[1])) for each in others]
    for fold in range(n_folds):
        out = row_fold == fold
        predicted = fit_true_grades(
            data.select(~out), likelihood[~out], [data.select(out), *others], seed=seed, **options
        )
        found[out] = predicted[0]
        for total, each in zip(beside, predicted[1:], strict=True):
            total += each / n_folds
        if progress is not None:
            progress(fold + 1, n_folds)
    return found, beside


class NoisyGrades:
    """The likelihood of given grades as LightGBM's ``objective`` callable."""

    def __init__(self, likelihood: FloatArray, weights: Array | None, n_jobs: int) -> None:
        self.likelihood = np.ascontiguousarray(likelihood)
        self.weights = None if weights is None else np.asarray(weights, dtype=np.float64)[:, None]
        self.n_jobs = n_jobs

    def __deepcopy__(self, memo: Any) -> "NoisyGrades":
        return self

    def __call__(self, scores: Array, dataset: Any = None) -> tuple[Array, Array]:
        """Gradients and curvatures (N, C): q - posterior, and C / (C - 1) q (1 - q), a bound from above."""
        q = softmax(np.ascontiguousarray(scores, dtype=np.float64))
        C = q.shape[1]
        joint = q * self.likelihood
        grad = q - joint / np.maximum(joint.sum(axis=1, keepdims=True), TINY)
        hess = np.maximum(C / (C - 1) * q * (1 - q), 1e-6)
        return (grad, hess) if self.weights is None else (grad * self.weights, hess * self.weights)

    def loss(self, scores: Array) -> float:
        """The mean of -log sum_l q_l L_l."""
        q = softmax(np.asarray(scores, dtype=np.float64))
        return float(-np.log(np.maximum((q * self.likelihood).sum(axis=1), TINY)).mean())


def calibrated(probabilities: FloatArray, likelihood: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rescales out-of-fold probabilities so that what was observed is likeliest: q^a exp(b), per row to 1.

    Temperature and a bias per grade (vector scaling, Guo et al. 2017 with one slope) that maximise
    sum_i log sum_l q_l L[i, l]. Returns the rescaled probabilities and (a, b_0, ..., b_(C-1)).

    Args:
        probabilities: (N, C) of grades.
        likelihood: (N, C) P(observation of the row | grade); one-hot where the grade itself is observed.
    """
    from scipy.optimize import minimize

    logs = np.log(np.maximum(probabilities, 1e-9))
    C = logs.shape[1]

    def unlikeliness(scale: FloatArray) -> tuple[float, FloatArray]:
        q = softmax(scale[0] * logs + scale[1:])
        joint = q * likelihood
        total = np.maximum(joint.sum(axis=1, keepdims=True), TINY)
        pull = q - joint / total
        # A hold at the identity keeps apart what the given grades cannot tell apart.
        rest = scale - start
        slope = np.concatenate(([(pull * logs).sum()], pull.sum(axis=0))) + HOLD * rest
        return float(-np.log(total).sum() + HOLD * (rest**2).sum() / 2), slope

    start = np.concatenate(([1.0], np.zeros(C)))
    scale: FloatArray = minimize(unlikeliness, start, jac=True, method="L-BFGS-B", options={"maxiter": 50}).x
    return rescaled(probabilities, scale), scale


def rescaled(probabilities: FloatArray, scale: FloatArray) -> FloatArray:
    """q^a exp(b), each row made to sum to 1, for scale = (a, b_0, ..., b_(C-1))."""
    return softmax(scale[0] * np.log(np.maximum(probabilities, 1e-9)) + scale[1:])


def true_shares(
    likelihood: FloatArray, weights: Array | None = None, start: npt.ArrayLike | None = None
) -> FloatArray:
    """The shares r of the true grades that make sum_i log sum_l r_l L[i, l] largest, by EM; none is 0.

    Args:
        likelihood: (N, C) L[i, l] = P(given grade of row i | true grade l).
        weights: of the rows.
        start: where EM starts, and what it keeps of grades that the likelihood cannot tell apart.

    >>> true_shares(np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])).round(2).tolist()
    [0.75, 0.25]
    """
    rows, inverse = np.unique(likelihood, axis=0, return_inverse=True)
    counts = np.bincount(inverse.ravel(), weights=weights)
    C = likelihood.shape[1]
    r = np.full(C, 1 / C) if start is None else np.maximum(np.asarray(start, dtype=np.float64), 1e-3)
    for _ in range(200):
        joint = r * rows
        r = (counts[:, None] * joint / np.maximum(joint.sum(axis=1, keepdims=True), TINY)).sum(axis=0)
        r /= r.sum()
    r = np.maximum(r, 1e-3)
    found: FloatArray = r / r.sum()
    return found


def softmax(scores: FloatArray) -> FloatArray:
    """exp(s_c) / sum_k exp(s_k), row by row."""
    found: FloatArray = np.exp(scores - scores.max(axis=1, keepdims=True))
    found /= found.sum(axis=1, keepdims=True)
    return found


def _held_out(train: RankingData, seed: int) -> npt.NDArray[np.bool_]:
    if train.n_queries <= 6:
        return np.zeros(train.n_docs, dtype=np.bool_)
    _, held = split(train, (1 - HELD_OUT, HELD_OUT), seed=seed)
    return np.isin(train.row_ids, held.row_ids)


def _start(
    data: RankingData, chosen: npt.NDArray[np.bool_], base: FloatArray, reference: Any = None
) -> lightgbm.Dataset:
    rows = np.flatnonzero(chosen)
    scores = np.tile(base, (len(rows), 1))
    return lightgbm.Dataset(data.X[rows], label=data.y[rows], init_score=scores, reference=reference)


def grade_settings(
    n_grades: int, seed: int, n_jobs: int | None, params: Mapping[str, Any] | None
) -> dict[str, Any]:
    """What LightGBM is told about a model of grades; ``params`` by any of their names replace DEFAULTS."""
    given = by_main_name(params)
    refuse_broken(given)
    return DEFAULTS | {
        "num_class": n_grades,
        **run_settings(seed, n_jobs),
        # With a custom objective LightGBM refuses data of which it filtered every column.
        "feature_pre_filter": False,
        **given,
    }


def boosted(
    settings: Mapping[str, Any], learn_set: lightgbm.Dataset, train: RankingData, **options: Any
) -> lightgbm.Booster | None:
    """A forest of an objective of our own; None where no column tells any two rows apart.

    The shares of the grades are then all there is to know.
    """
    with in_our_words(settings, train):
        try:
            return lightgbm.train(dict(settings), learn_set, **options)
        except lightgbm.basic.LightGBMError as error:
            if "num_features" not in str(error):
                raise
    return None
