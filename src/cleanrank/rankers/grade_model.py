"""Models of grades: P(grade | features), from small boosted trees that never saw the row.

Training grades may be noisy, so the models are small. What is learnt is a softmax q(x) over the C grades:

* ``fit_grades``: the given grade, by its log loss;
* ``fit_true_grades``: the true grade, by the likelihood of the given one, sum_i log sum_l q_l(x_i) L[i, l]
  (the forward correction of Patrini et al. 2017); its gradient is q minus the posterior q L / sum q L;
* ``fit_soft_grades``: probabilities w of grades, by their cross-entropy; its gradient is q - w. A model that
  is taught what another one believes does not chase single wrong labels.

``cross_fit_means`` predicts any number of a row, its gain say, by least squares, and keeps the models.

All but ``fit_soft_grades`` choose the number of trees on queries held out inside the training part: they stop
after ``early_stopping_rounds`` trees without gain. Shared arguments: ``train``, rows to learn from; ``rows``,
what is predicted, as (N, C), grades not looked at; ``n_estimators``, trees of each grade at the most;
``params``, LightGBM parameters that replace DEFAULTS; ``seed``, for held-out queries and LightGBM;
``n_jobs``, threads.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.special import softmax

from cleanrank.cluster.tasks import each as for_each
from cleanrank.data.split import fold_of_query
from cleanrank.errors import invalid
from cleanrank.rankers._lightgbm import (
    NoSplitError,
    TreeModel,
    boost,
    dataset,
    leaf_sum,
    resolve_aliases,
    run_settings,
    sum_of_models,
)
from cleanrank.rankers.base import held_out
from cleanrank.remember import remembered
from cleanrank.types import Array, FloatArray, IntArray, Progress, RankingData
from cleanrank.validation import check_integer, is_integer, one_of

# (train, rows) -> (N, C), or with targets (train, targets, sets of rows) -> (N, C) each.
Fit: TypeAlias = Callable[..., Any]

DEFAULTS: dict[str, Any] = {
    "learning_rate": 0.1,
    "num_leaves": 7,
    "min_data_in_leaf": 50,
    "lambda_l2": 5.0,
    "feature_fraction": 0.7,
    "max_bin": 63,
}
HELD_OUT = 0.15
FEWEST_QUERIES = 7
LEAST_SHARE = 1e-3
EM_STEPS = 200
TINY = 1e-300
PRIOR = 64.0  # a normal prior of deviation 1/8 on the slope and on every bias of a calibration


@remembered
def cross_fit(
    data: RankingData,
    fit: Fit,
    n_folds: int = 5,
    *,
    targets: FloatArray | None = None,
    seed: int = 0,
    n_grades: int | None = None,
    others: Sequence[RankingData] = (),
    calibrate: FloatArray | None = None,
    progress: Progress | None = None,
) -> tuple[FloatArray, list[FloatArray]]:
    """Predictions for every row from models that saw none of its query: (N, C).

    Args:
        data: rows with given grades.
        fit: (train, rows) -> (rows, C) such as ``fit_grades``; with targets (train, targets of its rows, sets
            of rows) -> (rows, C) each, such as ``fit_true_grades``.
        n_folds: parts that the queries are cut into.
        targets: (N, C) what is learnt, in place of the given grades.
        seed: decides the parts.
        n_grades: C without targets; the highest grade plus one when not given.
        others: further sets of rows, of queries that ``data`` does not hold.
        calibrate: (N, C) the likelihood by which the predictions are rescaled, see ``calibrated``.
        progress: called with (fold, folds).

    Returns:
        The predictions; and those for each set of other rows, with targets the mean of the models of all
        folds, else by a model of all rows.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[0.0]] * 4, [0, 1, 1, 1], qid=[1, 1, 2, 2])
    >>> shares = lambda train, rows: np.tile(np.bincount(train.y, minlength=2) / len(train), (len(rows), 1))
    >>> cross_fit(data, shares, 2)[0].tolist()
    [[0.0, 1.0], [0.0, 1.0], [0.5, 0.5], [0.5, 0.5]]
    """
    C = max(data.n_grades, 2) if n_grades is None else n_grades
    C = C if targets is None else targets.shape[1]
    predictions = np.zeros((data.n_docs, C))
    beside = [np.zeros((each.n_docs, C)) for each in others]
    n_folds = min(n_folds, data.n_queries) if is_integer(n_folds) else n_folds
    fold = fold_of_query(data, n_folds, seed)
    parts = for_each(
        _fit_fold, [fit, data, targets, list(others), fold, C], [(part,) for part in range(n_folds)], progress
    )
    for part, (predicted, *further) in enumerate(parts):
        predictions[np.repeat(fold == part, data.lengths)] = predicted
        for mean, each in zip(beside, further, strict=targets is not None):
            mean += each / n_folds
    if targets is None:
        beside = list(for_each(_given_grades, [fit, data], [(each, C) for each in others]))
    if calibrate is not None:
        predictions, scale = calibrated(predictions, calibrate)
        beside = [rescaled(each, scale) for each in beside]
    return predictions, beside


def _fit_fold(
    fit: Fit,
    data: RankingData,
    targets: FloatArray | None,
    others: Sequence[RankingData],
    fold: IntArray,
    n_grades: int,
    part: int,
) -> list[FloatArray]:
    """What a model of the other folds predicts for the rows of one, with targets also for other rows."""
    held = np.repeat(fold == part, data.lengths)
    train, rows = data.drop(held), data.select(held)
    if targets is None:
        return [_given_grades(fit, train, rows, n_grades)]
    return list(fit(train, targets[~held], [rows, *others]))


def _given_grades(fit: Fit, train: RankingData, rows: RankingData, n_grades: int) -> FloatArray:
    """What a model of given grades predicts, checked; a grade that it never saw has probability 0."""
    p = np.asarray(fit(train, rows), dtype=np.float64)
    if p.ndim != 2 or len(p) != rows.n_docs or p.shape[1] > n_grades:
        rule = f"must give a probability of each of {n_grades} grades for {rows.n_docs} rows"
        raise invalid("fit_predict", rule, f"shape {p.shape}")
    return np.pad(p, ((0, 0), (0, n_grades - p.shape[1])))


def fit_grades(
    train: RankingData,
    rows: RankingData,
    *,
    n_grades: int | None = None,
    seed: int = 0,
    params: Mapping[str, Any] | None = None,
    n_estimators: int = 200,
    early_stopping_rounds: int = 15,
    n_jobs: int = 1,
) -> FloatArray:
    """P(given grade | features), by the log loss; ``n_grades`` is C, else the highest grade plus one."""
    C = max(train.n_grades, 2) if n_grades is None else n_grades
    if train.n_grades > C:
        raise invalid("n_grades", f"must exceed every grade ({train.n_grades - 1} occurs)", C)
    settings = _settings(train, C, seed, n_jobs, params) | {
        "objective": "multiclass",
        "metric": "multi_logloss",
    }
    learn, held, _ = _stopping_part(train, seed)
    learn_set = dataset(learn, grouped=False)
    held_set = None if held is None else dataset(held, grouped=False, weighted=False, reference=learn_set)
    model = boost(settings, learn_set, n_estimators, validation_set=held_set, patience=early_stopping_rounds)
    return model.predict(rows.X, n_jobs=settings["num_threads"])


def fit_mean_grade(
    train: RankingData, rows: RankingData, *, n_estimators: int = 50, seed: int = 0, n_jobs: int = 1
) -> FloatArray:
    """The expected given grade of every row, by least squares: one tree a step, however many grades."""
    own = {"objective": "regression", "metric": "None", "min_data_in_leaf": 20}
    settings = _settings(train, 1, seed, n_jobs, None) | own
    model = boost(settings, dataset(train, grouped=False), n_estimators)
    return np.asarray(model.predict(rows.X, n_jobs=settings["num_threads"]))


@dataclass(frozen=True, eq=False)
class MeanModels:
    """Expected values of rows, each from a model that saw none of its query, and the mean of the models."""

    predictions: FloatArray  # (N,) out of fold
    model: TreeModel


@remembered
def cross_fit_means(
    data: RankingData,
    values: FloatArray,
    n_folds: int = 5,
    *,
    seed: int = 0,
    params: Mapping[str, Any] | None = None,
    n_estimators: int = 200,
    early_stopping_rounds: int = 15,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> MeanModels:
    """Models of the expected ``values`` (N,) by least squares, one for each part of the queries left out.

    Their mean scores new rows: it is a bagged model, steadier than any one of them.
    """
    predictions = np.zeros(data.n_docs)
    n_folds = min(n_folds, data.n_queries) if is_integer(n_folds) else n_folds
    settings = _settings(data, 1, seed, n_jobs, params) | {"objective": "regression", "metric": "l2"}
    fold = fold_of_query(data, n_folds, seed)
    shared = [data, values, fold, settings, n_estimators, early_stopping_rounds, seed]
    models = []
    parts = for_each(_fit_fold_means, shared, [(part,) for part in range(n_folds)], progress)
    for part, (predicted, model) in enumerate(parts):
        predictions[np.repeat(fold == part, data.lengths)] = predicted
        models.append(model)
    return MeanModels(predictions, sum_of_models(models, [1 / len(models)] * len(models)))


def _fit_fold_means(
    data: RankingData,
    values: FloatArray,
    fold: IntArray,
    settings: Mapping[str, Any],
    n_estimators: int,
    patience: int,
    seed: int,
    part: int,
) -> tuple[FloatArray, TreeModel]:
    """A model of the other folds by least squares, and what it predicts for the rows of one."""
    out = np.repeat(fold == part, data.lengths)
    learn, held, stays = _stopping_part(data.drop(out), seed)
    targets = values[~out]
    learn_set = dataset(learn, grouped=False, label=targets[stays])
    held_set = None
    if held is not None:
        options: dict[str, Any] = {"grouped": False, "weighted": False, "reference": learn_set}
        held_set = dataset(held, label=targets[~stays], **options)
    model = boost(settings, learn_set, n_estimators, validation_set=held_set, patience=patience)
    return model.predict(data.select(out).X, n_jobs=settings["num_threads"]), model


def fit_true_grades(
    train: RankingData,
    likelihood: FloatArray,
    rows: Sequence[RankingData],
    *,
    shares: npt.ArrayLike | None = None,
    seed: int = 0,
    params: Mapping[str, Any] | None = None,
    n_estimators: int = 200,
    early_stopping_rounds: int = 15,
    n_jobs: int = 1,
) -> list[FloatArray]:
    """P(true grade | features) for sets of rows, from the likelihood L[i, l] = P(given grade of i | true l).

    A row of a known grade has one entry in L. ``shares`` say about how common the true grades are, which
    decides between grades that the given ones cannot tell apart.
    """
    L = np.ascontiguousarray(likelihood, dtype=np.float64)
    base = np.log(true_shares(L, train.weights, shares))
    learn, held, stays = _stopping_part(train, seed)
    objective, outside = NoisyGrades(L[stays], learn.weights), NoisyGrades(L[~stays])
    settings = _settings(train, L.shape[1], seed, n_jobs, params)
    return _fit_softmax(
        learn, objective, base, rows, settings, n_estimators, held,
        patience=early_stopping_rounds,
        feval=lambda scores, _: ("unlikeliness", outside.loss(scores), False),
    )  # fmt: skip


def fit_soft_grades(
    train: RankingData,
    targets: FloatArray,
    rows: Sequence[RankingData],
    *,
    n_estimators: int = 60,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    n_jobs: int = 1,
) -> list[FloatArray]:
    """Probabilities of grades for sets of rows, from those of the training rows, ``targets`` (N, C)."""
    w = np.ascontiguousarray(targets, dtype=np.float64)
    if w.ndim != 2 or len(w) != train.n_docs or w.shape[1] < 2:
        raise invalid("targets", f"must be (rows, grades) for {train.n_docs} rows", f"shape {w.shape}")
    share = np.maximum(np.average(w, axis=0, weights=train.weights), LEAST_SHARE)
    settings = _settings(train, w.shape[1], seed, n_jobs, params)
    objective = SoftTargets(w, train.weights)
    return _fit_softmax(train, objective, np.log(share / share.sum()), rows, settings, n_estimators)


def calibrated(probabilities: FloatArray, likelihood: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Rescales out-of-fold probabilities so that what was observed is likeliest: q^a exp(b), per row to 1.

    Temperature and a bias per grade (vector scaling, Guo et al. 2017 with one slope) that maximise
    sum_i log sum_l q_l L[i, l] for L[i, l] = P(observation of the row | grade), one-hot where the grade
    itself is observed. Returns the rescaled probabilities and (a, b_0, ..., b_(C-1)).
    """
    from scipy.optimize import minimize

    logs = np.log(np.maximum(probabilities, 1e-9))

    def unlikeliness(scale: FloatArray) -> tuple[float, FloatArray]:
        q = softmax(scale[0] * logs + scale[1:], axis=1)
        joint = q * likelihood
        total = np.maximum(joint.sum(axis=1, keepdims=True), TINY)
        pull = q - joint / total
        # The prior keeps apart what the given grades cannot tell apart.
        rest = scale - start
        slope = np.concatenate(([(pull * logs).sum()], pull.sum(axis=0))) + PRIOR * rest
        return float(-np.log(total).sum() + PRIOR * (rest**2).sum() / 2), slope

    start = np.concatenate(([1.0], np.zeros(logs.shape[1])))
    scale: FloatArray = minimize(unlikeliness, start, jac=True, method="L-BFGS-B", options={"maxiter": 50}).x
    return rescaled(probabilities, scale), scale


def rescaled(probabilities: FloatArray, scale: FloatArray) -> FloatArray:
    """q^a exp(b), each row made to sum to 1, for scale = (a, b_0, ..., b_(C-1))."""
    return np.asarray(softmax(scale[0] * np.log(np.maximum(probabilities, 1e-9)) + scale[1:], axis=1))


class SoftTargets:
    """Cross-entropy -sum_l w_l log q_l against targets w (N, C), as LightGBM's ``objective`` callable."""

    def __init__(self, targets: FloatArray, weights: Array | None = None) -> None:
        self.targets = np.ascontiguousarray(targets)
        self.weights = None if weights is None else np.asarray(weights, dtype=np.float64)[:, None]

    def __deepcopy__(self, memo: Any) -> "SoftTargets":
        return self

    def __call__(self, scores: Array, _: Any = None) -> tuple[Array, Array]:
        """Gradients q - w and curvatures C / (C - 1) q (1 - q), a bound from above."""
        logits = np.ascontiguousarray(scores, dtype=np.float64).reshape(self.targets.shape)
        q: FloatArray = softmax(logits, axis=1)
        C = q.shape[1]
        grad, hess = q - self.target(q), np.maximum(C / (C - 1) * q * (1 - q), 1e-6)
        return (grad, hess) if self.weights is None else (grad * self.weights, hess * self.weights)

    def target(self, q: FloatArray) -> FloatArray:
        """What q is drawn to."""
        return self.targets


class NoisyGrades(SoftTargets):
    """The negative log likelihood -log sum_l q_l L_l of given grades, for targets L (N, C)."""

    def target(self, q: FloatArray) -> FloatArray:
        """The posterior q L / sum q L."""
        joint = q * self.targets
        return np.asarray(joint / np.maximum(joint.sum(axis=1, keepdims=True), TINY))

    def loss(self, scores: Array) -> float:
        """The mean of -log sum_l q_l L_l."""
        q = softmax(np.asarray(scores, dtype=np.float64), axis=1)
        return float(-np.log(np.maximum((q * self.targets).sum(axis=1), TINY)).mean())


def _fit_softmax(
    train: RankingData,
    objective: SoftTargets,
    base: FloatArray,
    rows: Sequence[RankingData],
    settings: Mapping[str, Any],
    n_estimators: int,
    held: RankingData | None = None,
    **stopping: Any,
) -> list[FloatArray]:
    """Boosts an objective of our own from the scores ``base`` of the grades on; predicts sets of rows."""
    options: dict[str, Any] = {"grouped": False, "weighted": False, "base": base}
    learn_set = dataset(train, **options)
    if held is not None:
        stopping["validation_set"] = dataset(held, reference=learn_set, **options)
    try:
        own = {"objective": objective, "metric": "None"}
        model = boost({**settings, **own}, learn_set, n_estimators, **stopping)
    except NoSplitError:
        # The shares of the grades are all there is to know.
        return [softmax(np.tile(base, (each.n_docs, 1)), axis=1) for each in rows]
    threads = settings["num_threads"]
    return [softmax(base + model.predict(each.X, n_jobs=threads, raw=True), axis=1) for each in rows]


def _settings(
    train: RankingData, n_grades: int, seed: int, n_jobs: int | None, params: Mapping[str, Any] | None
) -> dict[str, Any]:
    # With an objective of our own LightGBM refuses data of which it filtered every column.
    fixed = {"num_class": n_grades, **run_settings(seed, n_jobs), "feature_pre_filter": False}
    settings = DEFAULTS | fixed | resolve_aliases(params)
    return settings | leaf_sum(train, settings)


def _stopping_part(train: RankingData, seed: int) -> tuple[RankingData, RankingData | None, Array]:
    """Rows to learn from, rows of other queries to stop on if there are enough, and which are the first."""
    if train.n_queries < FEWEST_QUERIES:
        return train, None, np.ones(train.n_docs, dtype=np.bool_)
    learn, held = held_out(train, HELD_OUT, seed)
    return learn, held, ~np.isin(train.row_ids, held.row_ids)


def true_shares(
    likelihood: FloatArray, weights: Array | None = None, start: npt.ArrayLike | None = None
) -> FloatArray:
    """The shares r of the true grades that make sum_i log sum_l r_l L[i, l] largest, by EM; none is 0.

    ``start`` is where EM starts, and what it keeps of grades that the likelihood cannot tell apart.
    """
    rows, inverse = np.unique(likelihood, axis=0, return_inverse=True)
    counts = np.bincount(inverse.ravel(), weights=weights)
    C = likelihood.shape[1]
    r = np.full(C, 1 / C) if start is None else np.maximum(np.asarray(start, dtype=np.float64), LEAST_SHARE)
    for _ in range(EM_STEPS):
        joint = r * rows
        r = (counts[:, None] * joint / np.maximum(joint.sum(axis=1, keepdims=True), TINY)).sum(axis=0)
        r /= r.sum()
    r = np.maximum(r, LEAST_SHARE)
    return np.asarray(r / r.sum())


def watch_boosting(
    train: RankingData,
    rows: RankingData | None,
    observer: Callable[[int, Array], None],
    *,
    objective: str = "grades",
    n_grades: int | None = None,
    n_estimators: int = 50,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    n_jobs: int = 1,
) -> None:
    """Trains and shows the observer (trees so far, predictions for ``rows``) after every tree of a grade.

    Predictions are probabilities of the C grades for objective "grades", LambdaRank scores for "ranking"; the
    array may be written over later. Without ``rows`` those of ``train`` are watched.
    """
    check_integer("rounds", n_estimators, least=1)
    C = max(train.n_grades, 2) if n_grades is None else n_grades
    settings = DEFAULTS | WATCHED[one_of("objective", objective, WATCHED)](C) | {"metric": "None"}
    settings |= run_settings(seed, n_jobs) | resolve_aliases(params)
    settings |= leaf_sum(train, settings)
    grouped = objective == "ranking"
    learn = dataset(train, grouped=grouped)
    watched = learn
    if rows is not None:
        watched = dataset(rows, grouped=grouped, weighted=False, reference=learn)
    seen = 0

    def show(predictions: Array, _: Any) -> tuple[str, float, bool]:
        nonlocal seen
        seen += 1
        observer(seen, np.asarray(predictions))
        return "seen", float(seen), True

    boost(settings, learn, n_estimators, validation_set=watched, feval=show)


WATCHED: dict[str, Callable[[int], dict[str, Any]]] = {
    "grades": lambda n_grades: {"objective": "multiclass", "num_class": n_grades},
    "ranking": lambda n_grades: {
        "objective": "lambdarank",
        "label_gain": [2**g - 1 for g in range(n_grades)],
    },
}
