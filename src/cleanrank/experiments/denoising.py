"""SOUR, its variants and its rivals as methods of an experiment (Marcuzzi et al. 2022)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cleanrank.cleaning import clean
from cleanrank.experiments.methods import Scored, Task, Unjudged, tree_params
from cleanrank.issues.isolation import find_isolated
from cleanrank.losses.trees.peer import Peers
from cleanrank.rankers.trees import TreeModel
from cleanrank.robust.sour import SOURRanker
from cleanrank.types import RankingData
from cleanrank.validation import one_of

CHOSEN_INSIDE = ("start", "kind")
OWN = (
    "start", "end", "kind", "rule", "cutoff", "min_frequency", "variant", "patience", "folds", "objective",
)  # fmt: skip


def sour(task: Task) -> Scored:
    """SOUR and its variants; starts and kinds of plain SOUR's grid share one base forest."""
    given = {**task.params, **{key: values[0] for key, values in task.grid.items()}}
    shares = (given["variant"], given["min_frequency"], given["folds"]) == ("sour", 1.0, 0)
    inside = {key: list(task.grid[key]) for key in CHOSEN_INSIDE if shares and key in task.grid}
    outside = [c for c in task.choices() if all(c[key] == values[0] for key, values in inside.items())]
    best: tuple[float, SOURRanker, dict[str, Any]] | None = None
    for choice in outside:
        model = _ranker({**task.params, **choice, **inside}, task)
        model.fit_data(task.train, task.validation)
        value = float(np.nan_to_num(model.chosen_["validation"] or 0.0))
        if best is None or value > best[0]:
            best = value, model, {**choice, **model.chosen_}
    assert best is not None  # a grid has at least one combination
    _, model, chosen = best
    return Scored(model.predict(task.test.X), chosen)


def _ranker(params: dict[str, Any], task: Task) -> SOURRanker:
    own = {key: params.pop(key) for key in list(params) if key in OWN}
    own["implementation"] = own.pop("objective")
    alpha, rounds = params.pop("alpha"), params.pop("rounds")
    own["end"] = own["end"] or rounds
    return SOURRanker(
        **own,
        peers=alpha or None,
        n_estimators=rounds,
        early_stopping_rounds=params.pop("early_stopping_rounds"),
        objective="lambdarank" if params.pop("norm") else "lambdamart",
        random_state=task.seed,
        n_jobs=task.n_jobs,
        params=params,
    )


def isolation(task: Task) -> Scored:
    """Iso-lambda-LGBM: leaves isolated documents out, then trains."""
    return _best(task, _isolated)


def _isolated(task: Task, params: dict[str, Any], **options: Any) -> tuple[TreeModel, dict[str, Any]]:
    share = params.pop("contamination")
    issues = find_isolated(
        task.train, kind=params.pop("kind"), contamination=share or "auto", seed=task.seed, n_jobs=task.n_jobs
    )
    cleaned = clean(task.train, issues, by="isolation")
    return _trees(task, cleaned.data, params, **options), {"removed": int(cleaned.acted.sum())}


def peer(task: Task) -> Scored:
    """Peer-lambda-LGBM: the gradients of permuted labels are subtracted."""
    return _best(task, _with_peers)


def _with_peers(task: Task, params: dict[str, Any], **options: Any) -> tuple[TreeModel, dict[str, Any]]:
    peers = Peers(params.pop("alpha"), kind=params.pop("peers"), seed=task.seed)
    options |= {"peers": peers, "implementation": params.pop("objective")}
    return _trees(task, task.train, params, **options), {}


def _trees(task: Task, train: RankingData, params: dict[str, Any], **options: Any) -> TreeModel:
    validation = options.pop("validation", task.validation)
    return replace(tree_params(task, params), **options).train(train, validation)


def _best(task: Task, fit: Any) -> Scored:
    """The choice of the grid that validation data like best (ties: the first)."""
    best: tuple[float, TreeModel, dict[str, Any]] | None = None
    for choice in task.choices():
        model, facts = fit(task, {**task.params, **choice})
        value = float(np.nan_to_num(model.validation_value or 0.0))
        if best is None or value > best[0]:
            best = value, model, {**choice, **facts, "trees": model.best_iteration, "validation": value}
    assert best is not None  # a grid has at least one combination
    return Scored(best[1].predict(task.test.X), best[2])


def forest_of(
    params: Mapping[str, Any], train: RankingData, validation: RankingData | None, select: str, seed: int
) -> TreeModel:
    """The forest of one contender, ``params["ranker"]``; without validation data it keeps all trees."""
    given = dict(params)
    name = one_of("ranker", given.pop("ranker"), RANKERS)
    nothing = Unjudged(train.X[:0], train.indptr[:1])
    task = Task(train, validation or train, nothing, {}, select=select, seed=seed)
    if name == "sour":
        model: TreeModel = _ranker(given, task).fit_data(train, validation).model_
        return model
    alpha, kind = given["alpha"], given["kind"]
    trees = {key: value for key, value in given.items() if key not in (*OWN, "alpha")}
    if name == "isolation":
        return _isolated(task, {**trees, "kind": kind, "contamination": 0.0}, validation=validation)[0]
    if name == "peer":
        given = {**trees, "alpha": alpha, "peers": "expected", "objective": "parity"}
        return _with_peers(task, given, validation=validation)[0]
    return _trees(task, train, trees, validation=validation)


RANKERS = ("lambdarank", "sour", "isolation", "peer")
