"""Studies of boosted trees: outliers (how many, when and where), and what rankers make of them.

The tables and figures are those of Marcuzzi et al. (2022). All studies of a process share their forests:
training is remembered by content (``remember.py``), and a base model serves every window.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from cleanrank.experiments.methods import MethodTask, Unjudged
from cleanrank.experiments.methods.trees import sour_ranker, train_ranker
from cleanrank.experiments.results import Result
from cleanrank.experiments.studies import StudyTask
from cleanrank.issues.outliers import SOUR, Window
from cleanrank.issues.sour import outlier_history, watch_last, watch_model
from cleanrank.metrics.evaluation import evaluate_arrays
from cleanrank.metrics.measure import Measure
from cleanrank.ragged import ranks, segment_sum
from cleanrank.rankers.trees import TreeModel
from cleanrank.types import Array, FloatArray, RankingData
from cleanrank.validation import one_of

STEPS = 10
POINTS = 100  # of a curve
TREES = (1, 10, 20, 30, 40, 50)
LEAVES = 30


def outliers(task: StudyTask) -> Result:
    """How many training documents are outliers: of all prefixes, and after each tenth of the trees."""
    window, model = _window(task), _base_model(task)
    train, n_trees = task.train, window.end
    detector = watch_model(train, model, window, n_jobs=task.n_jobs)
    per_query = {"removed": _per_query(detector.outliers(), train)}
    per_query["ever flagged"] = _per_query(detector.counts > 0, train)
    per_query["flagged by half"] = _per_query(2 * detector.counts.astype(np.int64) >= detector.seen, train)
    percent = dict(reversed(_steps(n_trees, STEPS)))  # the first of two steps
    for trees, scores in model.staged_predict(train.X, end=n_trees, n_jobs=task.n_jobs):
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
    window, test, params = _window(task), task.clean.test, task.params
    if params["best_round"]:
        stopped = sour_ranker(params, _method_task(task)).tree_params().train(task.train, task.validation)
        flagged = watch_last(test, stopped, window).outliers()
    else:
        flagged = watch_model(test, _base_model(task), window, n_jobs=task.n_jobs).outliers()
    with_outliers = _per_query(flagged, test) > 0
    start = params["start"] if params["ranker_start"] < 0 else params["ranker_start"]
    model, chosen = train_ranker(_method_task(task, start=start))
    values = _measured(task, test, model.predict(test.X))
    parts = {
        "all queries": values,
        "queries with outliers": np.where(with_outliers, values, np.nan),
        "queries without outliers": np.where(with_outliers, np.nan, values),
        "share with outliers": with_outliers.astype(np.float64),
    }
    means = {name: _mean(v) for name, v in parts.items()}
    return Result("done", parts, means, test.query_ids.tolist(), chosen)


def exit_leaves(task: StudyTask) -> Result:
    """The mean score of the leaves that most documents of a kind reach, tree by tree.

    Kinds by the base model on test data: P_k relevant documents within the top k, O- its negative outliers,
    N the other non-relevant ones. Of each kind and tree the 30 leaves with most documents count, each once,
    with the mean score of the kind's documents in it. A score is the sum over the trees up to that one;
    with ``single`` it is that tree's own output. These are no means over queries and have no interval.
    """
    window, base, test = _window(task), _base_model(task), task.clean.test
    flagged = watch_model(test, base, window, n_jobs=task.n_jobs).outliers()
    relevant = test.y > window.highest_negative
    in_top = ranks(base.predict(test.X), test.indptr) <= window.cutoff
    kinds = {"P_k": relevant & in_top, "O-": flagged & ~relevant, "N": ~relevant & ~flagged}
    # The first trees are the same with early stopping, which could leave too few of them.
    model, chosen = train_ranker(_method_task(task), validation=None)
    chosen.pop("validation")
    most = min(max(TREES), model.booster.current_iteration())
    leaves = np.asarray(model.booster.predict(test.X, pred_leaf=True, num_iteration=most))
    leaves = leaves.reshape(test.n_docs, most)
    by_tree: dict[str, list[float]] = {name: [] for name in kinds}
    before = np.zeros(test.n_docs)
    for trees, scores in model.staged_predict(test.X, end=most):
        added = scores - before if task.params["single"] else scores
        for name, rows in kinds.items():
            by_tree[name].append(_busiest(added[rows], leaves[rows, trees - 1]))
        before = scores.copy()
    means = {f"{name}, trees 1-50": float(np.mean(values)) for name, values in by_tree.items()}
    for name, values in by_tree.items():
        means |= {f"{name}, tree {t}": values[t - 1] if t <= most else np.nan for t in TREES}
    nothing = {name: np.full(test.n_queries, np.nan) for name in means}
    return Result("done", nothing, means, test.query_ids.tolist(), chosen)


def _busiest(scores: FloatArray, leaves: Array) -> float:
    """The mean over the LEAVES leaves with most documents of the mean score in each."""
    _, places, counts = np.unique(leaves, return_inverse=True, return_counts=True)
    by_leaf = np.bincount(places, weights=scores) / counts
    busiest = by_leaf[np.argsort(-counts, kind="stable")[:LEAVES]]
    return float(busiest.mean()) if len(busiest) else float("nan")


def curve(task: StudyTask) -> Result:
    """The measure of a ranker on validation or test data as its trees grow.

    ``best`` is the measure with the trees that validation data choose. The curve ends there, with NaN beyond,
    unless ``early_stopping_rounds`` is 0: then it goes on to the last tree. How many trees are best and how
    many documents were left out are no means over queries. What is noted beside holds the whole curve.
    """
    split = one_of("split", task.params["split"], ("validation", "test"))
    data = task.validation if split == "validation" else task.clean.test
    model, chosen = train_ranker(_method_task(task))
    rounds = task.params["rounds"]
    tenths = dict(_steps(rounds, STEPS))  # the last of two steps
    points = {trees for trees, _ in _steps(rounds, POINTS)}
    values = {f"at {p}%": np.full(data.n_queries, np.nan) for p in tenths.values()}
    values["best"] = _measured(task, data, model.predict(data.X))
    shown: dict[str, list[float]] = {"trees": [], "mean": []}
    grown = model
    if not task.params["early_stopping_rounds"]:
        choice = {name: chosen[name] for name in task.grid}
        grown, _ = train_ranker(replace(_method_task(task, **choice), grid={}), validation=None)
    for trees, scores in grown.staged_predict(data.X, n_jobs=task.n_jobs):
        if trees not in points:
            continue
        measured = _measured(task, data, scores)
        shown["trees"].append(trees)
        shown["mean"].append(round(_mean(measured), 5))
        if trees in tenths:
            values[f"at {tenths[trees]}%"] = measured
    means = {name: _mean(v) for name, v in values.items()}
    removed = float(chosen.get("removed", 0))
    means |= {"trees": float(model.best_iteration), "documents removed": removed}
    values |= dict.fromkeys(("trees", "documents removed"), np.full(data.n_queries, np.nan))
    return Result("done", values, means, data.query_ids.tolist(), {**chosen, "curve": shown})


def _mean(values: FloatArray) -> float:
    """The mean over the queries that count; NaN where none does."""
    return float(np.nanmean(values)) if np.isfinite(values).any() else float("nan")


def _window(task: StudyTask) -> Window:
    """The outliers that a study looks for."""
    params = task.params
    end = params["end"] or params["rounds"]
    return Window(params["cutoff"], params["start"], end, params["kind"], params["rule"])


def _base_model(task: StudyTask) -> TreeModel:
    """The base model of SOUR, which serves windows of any end."""
    settings = sour_ranker(task.params, _method_task(task)).tree_params()
    most = max(settings.n_estimators, task.params["end"])
    model = replace(settings, n_estimators=most).train(task.train)
    return replace(model, best_iteration=min(task.params["end"] or most, model.best_iteration))


def _method_task(task: StudyTask, **changes: Any) -> MethodTask:
    """What a method would get, with other parameters; no rows to score."""
    return MethodTask(
        train=task.train,
        validation=task.validation,
        test=Unjudged(task.train.X[:0], task.train.indptr[:1]),
        params={**task.params, **changes},
        grid=task.grid,
        select=task.select,
        seed=task.seed,
        n_jobs=task.n_jobs,
    )


def _steps(n_trees: int, steps: int) -> list[tuple[int, int]]:
    """(trees, percent of all) in equal steps; of fewer trees some stand for two steps."""
    return [(round(n_trees * step / steps), step * 100 // steps) for step in range(1, steps + 1)]


def _measured(task: StudyTask, data: RankingData, scores: FloatArray) -> FloatArray:
    """The measure of the choice, query by query."""
    measure = str(Measure.parse(task.select))
    return np.asarray(evaluate_arrays(data.y, scores, data.indptr, [measure], n_jobs=1)[measure])


def _per_query(rows: Array, data: RankingData) -> FloatArray:
    return segment_sum(rows.astype(np.float64), data.indptr)
