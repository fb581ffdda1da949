"""Methods that win back what noise takes: rows judged again, any detector with any cleaner, RobustRanker.

Every one is tuned alike: the same forests, the same grid, on the same noisy validation data. A method may buy
true grades of training rows (``gold``), drawn as ``strategy`` says:

* "random", "stratified", "doubt": as in ``noise/gold.py``; "doubt" notes the share that each row stands for;
* "doubtful": the rows that cross-fitted grades doubt most. They show nothing of the other rows, so that they
  may be corrected, but no noise matrix is estimated from them.
"""

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from cleanrank.cleaning import clean
from cleanrank.errors import invalid
from cleanrank.experiments.methods import LAMBDARANK, NOISE, TOLD, Scored, Task, tree_params
from cleanrank.issues.find import find_label_issues, options_of
from cleanrank.issues.table import LabelIssues
from cleanrank.noise.gold import STRATEGIES, from_gold, sample_gold
from cleanrank.rankers.trees import TreeModel
from cleanrank.robust.robust_ranker import RobustRanker
from cleanrank.types import Array, FloatArray, IntArray, RankingData
from cleanrank.validation import one_of

ORDERED = "doubtful"
DOUBTED_BY = "confident"


def corrected(task: Task) -> Scored:
    """Lambdarank on the given labels, the bought ones put right: nothing bought is the noisy baseline."""
    rows, truth, _ = _gold(task)
    return _tuned(task, _put_right(task.train, rows, truth))


def cleaned(task: Task) -> Scored:
    """A detector, a cleaner, lambdarank on what they leave."""
    detector, mode = task.params["detector"], task.params["mode"]
    options = dict(task.params["options"])
    rows, truth, shares = _gold(task)
    if noise := _noise(task, rows, truth, shares):
        options["noise"] = noise
    knows = "known" in options_of(detector)
    if knows and len(rows):
        options["known"] = _known(task.train, rows, truth)
    train = task.train if knows else _put_right(task.train, rows, truth)
    table = find_label_issues(train, detector, seed=task.seed, **options)
    done = clean(train, _judged(table.aligned(train), rows), mode, by=detector)
    return _tuned(task, done.data, {"acted": int(done.acted.sum())})


def robust(task: Task) -> Scored:
    """RobustRanker, tuned over the same grid; it knows of the noise what bought rows or the data tell."""
    params = {key: value for key, value in task.params.items() if key in LAMBDARANK and key not in task.grid}
    if task.params["gold"] and task.params["strategy"] == ORDERED:
        _refuse_ordered()
    rows, truth, shares = _gold(task)
    ranker = RobustRanker(
        noise=task.profile,
        grid=task.grid,
        n_estimators=params.pop("rounds"),
        early_stopping_rounds=params.pop("early_stopping_rounds"),
        objective="lambdarank" if params.pop("norm") else "lambdamart",
        measure=task.select,
        random_state=task.seed,
        n_jobs=task.n_jobs,
        params=params,
    )
    weights = np.ones(len(rows)) if shares is None else shares
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it falls back is noted as its strategy
        ranker.fit_data(
            task.train,
            task.validation,
            gold=(task.train.row_ids[rows], truth, weights) if len(rows) else None,
        )
    return Scored(ranker.predict(task.test.X), ranker.chosen_)


def _gold(task: Task) -> tuple[IntArray, Array, FloatArray | None]:
    """The rows that are judged again, their true grades, and the shares they were drawn from."""
    budget, strategy = task.params["gold"], task.params["strategy"]
    one_of("sampling strategy", strategy, (*STRATEGIES, ORDERED))
    if budget == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64), None
    if budget < 0 or budget >= task.train.n_docs:
        rows = np.arange(task.train.n_docs)
        return rows, task.judge(rows), None
    doubt = None
    if strategy in (ORDERED, "doubt"):
        doubt = find_label_issues(task.train, DOUBTED_BY, seed=task.seed).aligned(task.train).doubt
    if strategy == ORDERED:
        assert doubt is not None
        rows = np.argsort(-doubt, kind="stable")[:budget]
        return rows, task.judge(rows), None
    sheet = sample_gold(task.train, budget, strategy, task.seed, doubt=doubt)
    return sheet.rows, task.judge(sheet.rows), sheet.shares


def _noise(task: Task, rows: IntArray, truth: Array, shares: FloatArray | None) -> Any:
    """The noise that a detector is given: none, what the cell is told, or what gold rows say."""
    source = one_of("source of the noise", task.params[NOISE], SOURCES)
    if source == TOLD:
        return task.profile
    if source != "gold":
        return None
    if task.params["strategy"] == ORDERED:
        _refuse_ordered()
    C = max(2, task.train.n_grades, task.validation.n_grades, int(truth.max(initial=0)) + 1)
    return from_gold(task.train, task.train.row_ids[rows], truth, shares=shares, n_grades=C, seed=task.seed)


def _refuse_ordered() -> NoReturn:
    raise invalid(
        "strategy",
        "must draw rows at random for a noise matrix",
        repr(ORDERED),
        remedy="Use 'stratified', 'random' or 'doubt'.",
    )


def _known(data: RankingData, rows: IntArray, truth: Array) -> IntArray:
    known = np.full(data.n_docs, -1, dtype=np.int64)
    known[rows] = truth
    return known


def _put_right(data: RankingData, rows: IntArray, truth: Array) -> RankingData:
    if not len(rows):
        return data
    y = data.y.copy()
    y[rows] = truth
    return data.with_labels(y)


def _judged(table: LabelIssues, rows: IntArray) -> LabelIssues:
    """What was judged again is no issue."""
    issue = table.is_label_issue.copy()
    issue[rows] = False
    return replace(table, is_label_issue=issue)


def _tuned(task: Task, train: RankingData, facts: Mapping[str, Any] | None = None) -> Scored:
    """The forest that validation data choose from the grid (ties: the first)."""
    best: tuple[float, TreeModel, dict[str, Any]] | None = None
    for choice in task.choices():
        params = {key: value for key, value in {**task.params, **choice}.items() if key in LAMBDARANK}
        model = tree_params(task, params, task.params["objective"]).train(train, task.validation)
        value = float(np.nan_to_num(model.validation_value or 0.0))
        if best is None or value > best[0]:
            best = value, model, choice
    assert best is not None  # a grid has at least one combination
    value, model, choice = best
    chosen = {**choice, **(facts or {}), "trees": model.best_iteration, "validation": value}
    return Scored(model.predict(task.test.X), chosen)


SOURCES: dict[str, str] = {
    "": "the detector gets no noise",
    TOLD: "the matrix that made the noise",
    "gold": "estimated from the rows that are judged again",
}
