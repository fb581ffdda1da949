"""Studies of forests and outliers: how many, when and where they are, and what leaves say of them.

The tables and figures are those of Marcuzzi et al. (2022).
"""

from dataclasses import replace
from typing import Any

import numpy as np

from cleanrank.experiments.denoising import forest_of
from cleanrank.experiments.studies import Inquiry, Measured
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


def outliers(asked: Inquiry) -> Measured:
    """How many training documents are outliers: of all forests, and after each tenth of the trees."""
    window, settings, rounds = _setting(asked)
    train = asked.train
    detector = SOUR.of(train, window)
    model = settings.train(train, observer=detector)
    per_query = {"removed": _per_query(detector.outliers(), train)}
    per_query["ever flagged"] = _per_query(detector.counts > 0, train)
    per_query["flagged by half"] = _per_query(2 * detector.counts.astype(np.int64) >= detector.seen, train)
    single = [round(rounds * step / STEPS) for step in range(1, STEPS + 1)]
    for trees, scores in model.staged_predict(train.X, end=rounds):
        if trees in single:
            one = SOUR.of(train, _one(window, trees)).watch([(trees, scores)])
            step = (single.index(trees) + 1) * 100 // STEPS
            per_query[f"flagged at {step}%"] = _per_query(one.outliers(), train)
    of_kind = detector.of_kind(window.kind)
    means = {name: float(counts.sum() / train.n_docs) for name, counts in per_query.items()}
    means["removed of kind"] = float(detector.outliers().sum() / max(1, of_kind.sum()))
    values = {name: counts / train.lengths for name, counts in per_query.items()}
    with np.errstate(invalid="ignore", divide="ignore"):
        values["removed of kind"] = per_query["removed"] / _per_query(of_kind, train)
    chosen = {"removed": int(detector.outliers().sum()), "history": _history(detector, model, train)}
    return Measured(values, means, train.query_ids.tolist(), chosen)


def _history(detector: SOUR, model: TreeModel, train: RankingData) -> dict[str, Any]:
    """The table behind the heat map of outliers, for JSON; None where a band has no document."""
    window = detector.window
    shares, sizes = outlier_history(train, model, window, steps=min(STEPS, detector.seen), whole=detector)
    rows = [[None if np.isnan(v) else round(float(v), 4) for v in row] for row in shares]
    last = window.first + detector.seen - 1
    return {"shares": rows, "sizes": sizes.tolist(), "first": window.first, "last": last}


def breakdown(asked: Inquiry) -> Measured:
    """NDCG of a ranker over test queries with outliers of the base forest, and over those without.

    With ``best_round`` the base forest stops on validation data, and the one round that they like best says
    what is an outlier (the paper's s = e).
    """
    window, settings, _ = _setting(asked)
    test = asked.clean.test
    params = dict(asked.params)
    filtered_from, best_round = params.pop("ranker_start"), params.pop("best_round")
    if best_round:
        stopping = replace(settings, early_stopping_rounds=params["early_stopping_rounds"])
        found = watch_last(test, stopping.train(asked.train, asked.validation), window).outliers()
    else:
        found = watch_model(test, settings.train(asked.train), window).outliers()
    with_outliers = _per_query(found, test) > 0
    params["start"] = params["start"] if filtered_from < 0 else filtered_from
    model = forest_of(params, asked.train, asked.validation, asked.select, asked.seed)
    measure = str(Measure.parse(asked.select))
    values = np.asarray(
        evaluate_arrays(test.y, model.predict(test.X), test.indptr, [measure], n_jobs=1)[measure]
    )
    parts = {
        "all queries": values,
        "queries with outliers": np.where(with_outliers, values, np.nan),
        "queries without outliers": np.where(with_outliers, np.nan, values),
        "share with outliers": with_outliers.astype(np.float64),
    }
    means = {
        name: float(np.nanmean(v)) if np.isfinite(v).any() else float("nan") for name, v in parts.items()
    }
    return Measured(parts, means, test.query_ids.tolist(), {"trees": model.best_iteration})


def exit_leaves(asked: Inquiry) -> Measured:
    """The mean value of the leaves that most documents of a kind reach, tree by tree.

    Kinds by the base forest on test data: P_k relevant documents within the top k, O- its negative outliers,
    N the other non-relevant ones. Of each kind and tree the 30 leaves with most documents count, each once.
    """
    window, settings, _ = _setting(asked)
    test = asked.clean.test
    base = settings.train(asked.train)
    found = watch_model(test, base, window).outliers()
    relevant = test.y > window.highest_negative
    within = ranks(base.predict(test.X), test.indptr) <= window.cutoff
    kinds = {"P_k": relevant & within, "O-": found & ~relevant, "N": ~relevant & ~found}
    # The first trees are the same with early stopping, which could leave too few of them.
    model = forest_of(asked.params, asked.train, None, asked.select, asked.seed)
    most = min(max(TREES), model.booster.current_iteration())
    leaves = np.asarray(model.booster.predict(test.X, pred_leaf=True, num_iteration=most)).reshape(
        test.n_docs, most
    )
    means: dict[str, float] = {}
    for name, rows in kinds.items():
        by_tree = [_busiest(model, tree, leaves[rows, tree]) for tree in range(most)]
        for tree in TREES:
            means[f"{name}, tree {tree}"] = by_tree[tree - 1] if tree <= most else float("nan")
        means[f"{name}, trees 1-50"] = float(np.mean(by_tree))
    values = {name: np.full(test.n_queries, value) for name, value in means.items()}
    return Measured(values, means, test.query_ids.tolist(), {"trees": model.best_iteration})


def _busiest(model: TreeModel, tree: int, leaves: Array) -> float:
    reached, counts = np.unique(leaves, return_counts=True)
    busiest = reached[np.argsort(-counts, kind="stable")[:LEAVES]]
    values = [model.booster.get_leaf_output(tree, int(leaf)) for leaf in busiest]
    return float(np.mean(values)) if values else float("nan")


def curve(asked: Inquiry) -> Measured:
    """The validation measure of a ranker after each tenth of its trees; NaN beyond the last."""
    rounds = asked.params["rounds"]
    model = forest_of(asked.params, asked.train, None, asked.select, asked.seed)
    validation = asked.validation
    measure = str(Measure.parse(asked.select))
    steps = {round(rounds * s / STEPS): s * 100 // STEPS for s in range(1, STEPS + 1)}
    values: dict[str, FloatArray] = {}
    for trees, scores in model.staged_predict(validation.X):
        if trees in steps:
            found = evaluate_arrays(validation.y, scores, validation.indptr, [measure], n_jobs=1)
            values[f"validation at {steps[trees]}%"] = np.asarray(found[measure])
    for step in steps.values():
        values.setdefault(f"validation at {step}%", np.full(validation.n_queries, np.nan))
    means = {name: float(v.mean()) for name, v in values.items()}
    return Measured(values, means, validation.query_ids.tolist(), {"trees": model.best_iteration})


def _setting(asked: Inquiry) -> tuple[Window, TreeParams, int]:
    """The window, how the base model is grown, and its trees."""
    params: dict[str, Any] = dict(asked.params)
    rounds = params["end"] or params["rounds"]
    window = Window(
        cutoff=params["cutoff"], start=params["start"], end=rounds, kind=params["kind"], rule=params["rule"]
    )
    trees = {k: v for k, v in params.items() if k in TREE_PARAMS}
    settings = TreeParams(
        objective="lambdarank" if params["norm"] else "lambdamart",
        implementation="builtin",
        params=trees,
        n_estimators=rounds,
        measure=asked.select,
        seed=asked.seed,
    )
    return window, settings, rounds


def _one(window: Window, trees: int) -> Window:
    return Window(window.cutoff, trees - 1, trees, window.kind, window.rule)


def _per_query(rows: Array, data: RankingData) -> FloatArray:
    return segment_sum(rows.astype(np.float64), data.indptr)


TREE_PARAMS = (
    "learning_rate", "num_leaves", "min_data_in_leaf", "min_sum_hessian_in_leaf", "feature_fraction",
    "bagging_fraction", "bagging_freq", "lambda_l2", "max_bin", "lambdarank_truncation_level",
)  # fmt: skip
