"""Studies of boosted trees: outliers (how many, when and where), and what leaves say.

The tables and figures of outliers are those of Marcuzzi et al. (2022).
"""

from typing import Any

import numpy as np

from cleanrank.experiments.methods.trees import train_ranker, tree_params
from cleanrank.experiments.results import Result
from cleanrank.experiments.studies import StudyTask
from cleanrank.issues.outliers import SOUR, Window
from cleanrank.issues.sour import outlier_history, watch_last, watch_model
from cleanrank.metrics.evaluation import evaluate_arrays
from cleanrank.metrics.measure import Measure
from cleanrank.ragged import ranks, segment_sum
from cleanrank.rankers.trees import TreeModel, TreeParams
from cleanrank.types import Array, FloatArray, RankingData

STEPS = 10
TREES = (1, 10, 20, 30, 40, 50)
LEAVES = 30


def outliers(task: StudyTask) -> Result:
    """How many training documents are outliers: of all prefixes, and after each tenth of the trees."""
    window, settings, n_trees = _base_settings(task)
    train = task.train
    detector = SOUR.of(train, window)
    model = settings.train(train, observer=detector)
    per_query = {"removed": _per_query(detector.outliers(), train)}
    per_query["ever flagged"] = _per_query(detector.counts > 0, train)
    per_query["flagged by half"] = _per_query(2 * detector.counts.astype(np.int64) >= detector.seen, train)
    percent = dict(reversed(_tenths(n_trees)))  # the first of two steps
    for trees, scores in model.staged_predict(train.X, end=n_trees):
        if trees in percent:
            single = Window(window.cutoff, trees - 1, trees, window.kind, window.rule)
            flagged = SOUR.of(train, single).watch([(trees, scores)]).outliers()
            per_query[f"flagged at {percent[trees]}%"] = _per_query(flagged, train)
    of_kind = detector.of_kind(window.kind)
    means = {name: float(counts.sum() / train.n_docs) for name, counts in per_query.items()}
    means["removed of kind"] = float(detector.outliers().sum() / max(1, of_kind.sum()))
    values = {name: counts / train.lengths for name, counts in per_query.items()}
    with np.errstate(invalid="ignore", divide="ignore"):
        values["removed of kind"] = per_query["removed"] / _per_query(of_kind, train)
    chosen = {"removed": int(detector.outliers().sum()), "history": _history(detector, model, train)}
    return Result("done", values, means, train.query_ids.tolist(), chosen)


def _history(detector: SOUR, model: TreeModel, train: RankingData) -> dict[str, Any]:
    """The table behind the heat map of outliers, for JSON; None where a band has no document."""
    window = detector.window
    shares, sizes = outlier_history(train, model, window, steps=min(STEPS, detector.seen), whole=detector)
    rows = [[None if np.isnan(v) else round(float(v), 4) for v in row] for row in shares]
    last = window.first + detector.seen - 1
    return {"shares": rows, "sizes": sizes.tolist(), "first": window.first, "last": last}


def breakdown(task: StudyTask) -> Result:
    """NDCG of a ranker over test queries with outliers of the base model, and over those without.

    With ``best_round`` the base model stops on validation data, and the one prefix that they like best says
    what is an outlier (the paper's s = e).
    """
    window, settings, _ = _base_settings(task)
    test, params = task.clean.test, task.params
    if params["best_round"]:
        flagged = watch_last(test, settings.train(task.train, task.validation), window).outliers()
    else:
        flagged = watch_model(test, settings.train(task.train), window).outliers()
    with_outliers = _per_query(flagged, test) > 0
    start = params["start"] if params["ranker_start"] < 0 else params["ranker_start"]
    model = train_ranker({**params, "start": start}, task.train, task.validation, task.select, task.seed)
    values = _measured(task, test, model.predict(test.X))
    parts = {
        "all queries": values,
        "queries with outliers": np.where(with_outliers, values, np.nan),
        "queries without outliers": np.where(with_outliers, np.nan, values),
        "share with outliers": with_outliers.astype(np.float64),
    }
    means = {name: float(np.nanmean(v)) if np.isfinite(v).any() else np.nan for name, v in parts.items()}
    return Result("done", parts, means, test.query_ids.tolist(), {"trees": model.best_iteration})


def exit_leaves(task: StudyTask) -> Result:
    """The mean value of the leaves that most documents of a kind reach, tree by tree.

    Kinds by the base model on test data: P_k relevant documents within the top k, O- its negative outliers,
    N the other non-relevant ones. Of each kind and tree the 30 leaves with most documents count, each once.
    """
    window, settings, _ = _base_settings(task)
    test = task.clean.test
    base = settings.train(task.train)
    flagged = watch_model(test, base, window).outliers()
    relevant = test.y > window.highest_negative
    in_top = ranks(base.predict(test.X), test.indptr) <= window.cutoff
    kinds = {"P_k": relevant & in_top, "O-": flagged & ~relevant, "N": ~relevant & ~flagged}
    # The first trees are the same with early stopping, which could leave too few of them.
    model = train_ranker(task.params, task.train, None, task.select, task.seed)
    most = min(max(TREES), model.booster.current_iteration())
    leaves = np.asarray(model.booster.predict(test.X, pred_leaf=True, num_iteration=most))
    leaves = leaves.reshape(test.n_docs, most)
    means: dict[str, float] = {}
    for name, rows in kinds.items():
        by_tree = [_busiest(model, tree, leaves[rows, tree]) for tree in range(most)]
        for tree in TREES:
            means[f"{name}, tree {tree}"] = by_tree[tree - 1] if tree <= most else float("nan")
        means[f"{name}, trees 1-50"] = float(np.mean(by_tree))
    values = {name: np.full(test.n_queries, value) for name, value in means.items()}
    return Result("done", values, means, test.query_ids.tolist(), {"trees": model.best_iteration})


def _busiest(model: TreeModel, tree: int, leaves: Array) -> float:
    """The mean value of the LEAVES leaves that most documents reach."""
    reached, counts = np.unique(leaves, return_counts=True)
    busiest = reached[np.argsort(-counts, kind="stable")[:LEAVES]]
    values = [model.booster.get_leaf_output(tree, int(leaf)) for leaf in busiest]
    return float(np.mean(values)) if values else float("nan")


def curve(task: StudyTask) -> Result:
    """The validation measure of a ranker after each tenth of its trees; NaN beyond the last."""
    model = train_ranker(task.params, task.train, None, task.select, task.seed)
    validation = task.validation
    percent = dict(_tenths(task.params["rounds"]))  # the last of two steps
    values = {f"validation at {p}%": np.full(validation.n_queries, np.nan) for p in percent.values()}
    for trees, scores in model.staged_predict(validation.X):
        if trees in percent:
            values[f"validation at {percent[trees]}%"] = _measured(task, validation, scores)
    means = {name: float(v.mean()) for name, v in values.items()}
    return Result("done", values, means, validation.query_ids.tolist(), {"trees": model.best_iteration})


def _base_settings(task: StudyTask) -> tuple[Window, TreeParams, int]:
    """The window, how the base model is trained, and its number of trees."""
    params = task.params
    n_trees = params["end"] or params["rounds"]
    window = Window(
        cutoff=params["cutoff"], start=params["start"], end=n_trees, kind=params["kind"], rule=params["rule"]
    )
    settings = tree_params({**params, "rounds": n_trees}, measure=task.select, seed=task.seed)
    return window, settings, n_trees


def _tenths(n_trees: int) -> list[tuple[int, int]]:
    """(trees, percent of all) in ten steps; of fewer than ten trees some stand for two steps."""
    return [(round(n_trees * step / STEPS), step * 100 // STEPS) for step in range(1, STEPS + 1)]


def _measured(task: StudyTask, data: RankingData, scores: FloatArray) -> FloatArray:
    """The measure of the choice, query by query."""
    measure = str(Measure.parse(task.select))
    return np.asarray(evaluate_arrays(data.y, scores, data.indptr, [measure], n_jobs=1)[measure])


def _per_query(rows: Array, data: RankingData) -> FloatArray:
    return segment_sum(rows.astype(np.float64), data.indptr)
