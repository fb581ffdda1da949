"""Trees as methods of an experiment: LightGBM's rankers, simple baselines, and methods against label noise.

SOUR, isolation and peers are those of Marcuzzi et al. (2022). The others may buy true grades of training rows
(``gold``), drawn as ``strategy`` says:

* "random", "stratified", "doubt": as in ``noise/gold.py``; "doubt" notes the share that each row stands for;
* "doubtful": the rows that cross-fitted grades doubt most. They show nothing of the other rows, so that they
  may be corrected, but no noise matrix is estimated from them.

Every method is tuned alike: the same trees, the same grid, on the same noisy validation data.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from cleanrank.cleaning import clean
from cleanrank.errors import invalid
from cleanrank.experiments.methods import (
    BUDGET,
    LAMBDARANK,
    NOISE,
    TRUE_NOISE,
    MethodResult,
    MethodTask,
)
from cleanrank.issues.find import find_label_issues, options_of
from cleanrank.issues.isolation import find_isolated
from cleanrank.losses.trees.peer import Peers
from cleanrank.metrics.evaluation import evaluate_mean
from cleanrank.noise.gold import STRATEGIES, from_gold, sample_gold
from cleanrank.rankers.base import best_of
from cleanrank.rankers.boosted import BoostedRanker
from cleanrank.rankers.trees import LAMBDAS, TreeModel, TreeParams, common_params, lambdarank_params
from cleanrank.robust.robust_ranker import RobustRanker
from cleanrank.robust.sour import SOURRanker
from cleanrank.stored import as_array
from cleanrank.types import Array, Features, FloatArray, IntArray, RankingData
from cleanrank.validation import one_of

# From one value for every parameter to a model and facts to note beside it.
Fit: TypeAlias = Callable[[dict[str, Any]], tuple[TreeModel, Mapping[str, Any]]]

# What TreeParams has by other names; all other parameters of LAMBDARANK go to LightGBM.
OWN = ("norm", "rounds", "early_stopping_rounds")
RANKERS = ("lambdarank", "sour", "isolation", "peer")
CHOSEN_INSIDE = ("start", "kind")
WINDOW = (
    "start", "end", "kind", "rule", "cutoff", "min_frequency", "variant", "patience", "folds", "objective",
)  # fmt: skip
MOST_DOUBTFUL = "doubtful"
DOUBTED_BY = "confident"
# Where a detector has the noise from: nowhere, the cell, or the rows that are judged again.
SOURCES = ("", TRUE_NOISE, "gold")


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
    values = [evaluate_mean(sign * columns[:, f], task.validation, task.select) for sign, f in candidates]
    sign, feature = candidates[int(np.argmax(values))]
    chosen = {"feature": feature, "sign": int(sign), "validation": float(max(values))}
    return MethodResult(sign * _dense(task.test.X)[:, feature], chosen)


def random(task: MethodTask) -> MethodResult:
    """Documents in random order: the floor of every measure."""
    return MethodResult(np.random.default_rng(task.seed).random(task.test.n_docs))


def constant(task: MethodTask) -> MethodResult:
    """One score for all documents: what the order of rows, or the rule for ties, gives by itself."""
    return MethodResult(np.zeros(task.test.n_docs))


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
    """How the parameters of a recipe grow trees."""
    return TreeParams(
        objective=ranking_objective(params) if objective in LAMBDAS else objective,
        implementation="builtin",
        n_estimators=params["rounds"],
        early_stopping_rounds=params["early_stopping_rounds"],
        params=_common_first(_lightgbm(params)),
        **options,
    )


def _common_first(trees: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters in the order of SOURRanker's, so that its base model is known as the lambdarank it is."""
    return common_params(trees["learning_rate"], trees["num_leaves"], trees["min_data_in_leaf"], trees)


def _lightgbm(params: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in params.items() if key in LAMBDARANK and key not in OWN}


def ranking_objective(params: Mapping[str, Any]) -> str:
    """Lambdarank, or without the normalisation by query lambdamart."""
    return "lambdarank" if params["norm"] else "lambdamart"


def _dense(X: Features) -> FloatArray:
    """Features as float64; a missing value counts as 0, as in sparse data."""
    dense = as_array(X)
    return np.nan_to_num(np.asarray(dense, dtype=np.float64), nan=0.0)


def sour(task: MethodTask) -> MethodResult:
    """SOUR and its variants; starts and kinds of plain SOUR's grid share one base model."""
    model, chosen = _best_sour(task)
    return MethodResult(model.predict(task.test.X), chosen)


def _best_sour(task: MethodTask, **options: Any) -> tuple[TreeModel, dict[str, Any]]:
    """The model of SOUR that validation data choose from the grid, and the choice."""
    validation = options.get("validation", task.validation)
    first = {**task.params, **{key: values[0] for key, values in task.grid.items()}}
    shares = (first["variant"], first["min_frequency"], first["folds"]) == ("sour", 1.0, 0)
    inside = {key: list(task.grid[key]) for key in CHOSEN_INSIDE if shares and key in task.grid}
    outside = [c for c in task.choices() if all(c[key] == values[0] for key, values in inside.items())]
    rankers = ((sour_ranker({**task.params, **choice, **inside}, task), choice) for choice in outside)
    fits = ((ranker.fit_data(task.train, validation), choice) for ranker, choice in rankers)
    ranker, choice = best_of(fits, lambda each: each[0].chosen_["validation"] or 0.0)
    return ranker.model_, {**choice, **ranker.chosen_, **_share(ranker.chosen_.get("removed"), task)}


def _share(removed: int | None, task: MethodTask) -> dict[str, float]:
    """What was left out as a share of the training documents; nothing where phases differ."""
    return {} if removed is None else {"removed_share": removed / task.train.n_docs}


def sour_ranker(params: Mapping[str, Any], task: MethodTask) -> SOURRanker:
    """SOUR as the parameters of a recipe describe it."""
    window = {key: params[key] for key in WINDOW}
    window["end"] = window["end"] or params["rounds"]
    window["implementation"] = window.pop("objective")
    return SOURRanker(
        **window,
        objective=ranking_objective(params),
        peers=params["alpha"] or None,
        n_estimators=params["rounds"],
        early_stopping_rounds=params["early_stopping_rounds"],
        random_state=task.seed,
        n_jobs=task.n_jobs,
        params=_lightgbm(params),
    )


def isolation(task: MethodTask) -> MethodResult:
    """Iso-lambda-LGBM: leaves isolated documents out, then trains."""
    return tuned(task, lambda params: _isolated(task, params))


def _isolated(
    task: MethodTask, params: Mapping[str, Any], **options: Any
) -> tuple[TreeModel, dict[str, float]]:
    contamination = params["contamination"] or "auto"
    issues = find_isolated(
        task.train, kind=params["kind"], contamination=contamination, seed=task.seed, n_jobs=task.n_jobs
    )
    left = clean(task.train, issues, by="isolation")
    removed = int(left.acted.sum())
    return fit_trees(task, params, data=left.data, **options), {"removed": removed, **_share(removed, task)}


def peer(task: MethodTask) -> MethodResult:
    """Peer-lambda-LGBM: the gradients of permuted labels are subtracted."""
    return tuned(task, lambda params: (_with_peers(task, params), {}))


def _with_peers(task: MethodTask, params: Mapping[str, Any], **options: Any) -> TreeModel:
    peers = Peers(params["alpha"], kind=params["peers"], seed=task.seed)
    return fit_trees(task, params, peers=peers, implementation=params["objective"], **options)


def train_ranker(task: MethodTask, **options: Any) -> tuple[TreeModel, dict[str, Any]]:
    """The trees of ``params["ranker"]``, one of RANKERS, that validation data choose, and the choice.

    With ``validation=None`` a model keeps all its trees, and nothing can be chosen.
    """
    name = one_of("ranker", task.params["ranker"], RANKERS)
    if name == "sour":
        return _best_sour(task, **options)
    added: dict[str, dict[str, Any]] = {
        "isolation": {"contamination": 0.0},
        "peer": {"peers": "expected", "objective": "parity"},
    }

    def fit(params: dict[str, Any]) -> tuple[TreeModel, Mapping[str, Any]]:
        if name == "isolation":
            return _isolated(task, params, **options)
        return (_with_peers if name == "peer" else fit_trees)(task, params, **options), {}

    return best_trees(replace(task, params={**task.params, **added.get(name, {})}), fit)


def corrected(task: MethodTask) -> MethodResult:
    """Lambdarank on the given labels, the bought ones put right: nothing bought is the noisy baseline."""
    rows, truth, _ = _gold(task)
    return _trained_on(_put_right(task.train, rows, truth), task)


def cleaned(task: MethodTask) -> MethodResult:
    """A detector, a cleaner, lambdarank on what they leave."""
    detector, mode = task.params["detector"], task.params["mode"]
    options = dict(task.params["options"])
    rows, truth, shares = _gold(task)
    if noise := _noise(task, rows, truth, shares):
        options["noise"] = noise
    train = task.train
    if "known" not in options_of(detector):
        train = _put_right(train, rows, truth)
    elif len(rows):
        options["known"] = np.full(train.n_docs, -1, dtype=np.int64)
        options["known"][rows] = truth
    issues = find_label_issues(train, detector, seed=task.seed, **options).aligned(train)
    is_label_issue = issues.is_label_issue.copy()
    is_label_issue[rows] = False  # what was judged again is no issue
    # Without signal nothing is cleaned, which is a result too.
    issues = replace(issues, is_label_issue=is_label_issue, signal=None)
    done = clean(train, issues, mode, by=detector)
    return _trained_on(done.data, task, acted=int(done.acted.sum()))


def _trained_on(train: RankingData, task: MethodTask, **facts: int) -> MethodResult:
    """BoostedRanker, tuned over the grid; ``objective`` is gbdt or an implementation of lambdarank."""
    params = task.params
    kind = {"objective": ranking_objective(params), "implementation": params["objective"]}
    ranker = BoostedRanker(
        **({"objective": "gbdt"} if params["objective"] == "gbdt" else kind),
        selection=params["selection"],
        **_common(task),
    ).fit_data(train, task.validation)
    return MethodResult(ranker.predict(task.test.X), {**ranker.chosen_, **facts})


def _common(task: MethodTask) -> dict[str, Any]:
    """What BoostedRanker and RobustRanker take alike."""
    trees = {key: value for key, value in _lightgbm(task.params).items() if key not in task.grid}
    if task.params["objective"] == "gbdt":
        _, trees = lambdarank_params(trees)
    return {
        "grid": task.grid,
        "n_estimators": task.params["rounds"],
        "early_stopping_rounds": task.params["early_stopping_rounds"],
        "measure": task.select,
        "random_state": task.seed,
        "n_jobs": task.n_jobs,
        "params": trees,
    }


def robust(task: MethodTask) -> MethodResult:
    """RobustRanker, tuned over the same grid; it knows of the noise what bought rows or the data tell."""
    if task.params[BUDGET]:
        _check_random(task.params["strategy"])
    rows, truth, shares = _gold(task)
    ranker = RobustRanker(
        strategy=task.params["repair"],
        noise=task.profile,
        objective=ranking_objective(task.params),
        selection=task.params["selection"],
        **_common(task),
    )
    weights = np.ones(len(rows)) if shares is None else shares
    gold = (task.train.row_ids[rows], truth, weights) if len(rows) else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it falls back is noted among its choices
        ranker.fit_data(task.train, task.validation, gold=gold)
    return MethodResult(ranker.predict(task.test.X), ranker.chosen_)


def _gold(task: MethodTask) -> tuple[IntArray, Array, FloatArray | None]:
    """The rows that are judged again, their true grades, and the shares they were drawn from."""
    budget, strategy = task.params[BUDGET], task.params["strategy"]
    one_of("sampling strategy", strategy, (*STRATEGIES, MOST_DOUBTFUL))
    if budget == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), None
    if budget < 0 or budget >= task.train.n_docs:
        rows = np.arange(task.train.n_docs)
        return rows, task.judge(rows), None
    doubt = None
    if strategy in (MOST_DOUBTFUL, "doubt"):
        doubt = find_label_issues(task.train, DOUBTED_BY, seed=task.seed).aligned(task.train).doubt
        if strategy == MOST_DOUBTFUL:
            rows = np.argsort(-doubt, kind="stable")[:budget]
            return rows, task.judge(rows), None
    sheet = sample_gold(task.train, budget, strategy, task.seed, doubt=doubt)
    return sheet.rows, task.judge(sheet.rows), sheet.shares


def _noise(task: MethodTask, rows: IntArray, truth: Array, shares: FloatArray | None) -> Any:
    """The noise that a detector gets: none, that of the cell, or what gold rows say."""
    source = one_of("source of the noise", task.params[NOISE], SOURCES)
    if source != "gold":
        return task.profile if source == TRUE_NOISE else None
    _check_random(task.params["strategy"])
    C = max(2, task.train.n_grades, task.validation.n_grades, int(truth.max(initial=0)) + 1)
    return from_gold(task.train, task.train.row_ids[rows], truth, shares=shares, n_grades=C, seed=task.seed)


def _check_random(strategy: str) -> None:
    if strategy == MOST_DOUBTFUL:
        rule, remedy = "must draw rows at random for a noise matrix", "Use 'stratified', 'random' or 'doubt'."
        raise invalid("strategy", rule, repr(strategy), remedy=remedy)


def _put_right(data: RankingData, rows: IntArray, truth: Array) -> RankingData:
    if not len(rows):
        return data
    y = data.y.copy()
    y[rows] = truth
    return data.with_labels(y)
