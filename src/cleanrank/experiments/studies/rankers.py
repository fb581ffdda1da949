"""Studies of any ranker: its order of documents of equal grade, and the grades that PRank predicts."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cleanrank.experiments.methods import METHODS, Method, MethodTask, Unjudged
from cleanrank.experiments.methods.classic import best_ranker
from cleanrank.experiments.results import Result
from cleanrank.experiments.studies import StudyTask
from cleanrank.noise.pair_noise import new_come_share
from cleanrank.ragged import query_of_row, segment_sum
from cleanrank.types import Array, FloatArray, RankingData
from cleanrank.validation import one_of

SPLITS = ("train", "validation", "test")


def tied_pairs(task: StudyTask) -> Result:
    """A ranker's order of documents of equal grade: how often the first of a random pair wins."""
    ranker = METHODS[one_of("ranker", task.params["ranker"], METHODS)]
    data: RankingData = getattr(task.clean, one_of("split", task.params["split"], SPLITS))
    result = ranker.run(_task(task, ranker, data))
    ties = _ties(result.scores, data)
    share = new_come_share(result.scores, data.y, data.indptr, pairs=task.params["pairs"], seed=task.seed)
    values = {"positive": (1 - ties) / 2, "tied scores": ties}
    means = {"positive": share, "tied scores": float(np.nanmean(ties))}
    return Result("done", values, means, data.query_ids.tolist(), result.chosen)


def pointwise_loss(task: StudyTask) -> Result:
    """How far the grades that PRank predicts for test rows lie from the true ones, of C clean grades."""
    test = task.clean.test
    ranker, chosen = best_ranker("prank", _task(task, METHODS["prank"], test))
    steps = max(part.n_grades for part in task.clean) - 1
    commonest = int(np.bincount(task.train.y).argmax())
    predicted = ranker.predict_grades(test.X)
    errors: dict[str, Array] = {
        "loss": np.abs(predicted - test.y) / steps,
        "wrong": predicted != test.y,
        "loss of a constant": np.abs(commonest - test.y) / steps,
    }
    values = {name: segment_sum(rows, test.indptr) / test.lengths for name, rows in errors.items()}
    means = {name: float(rows.mean()) for name, rows in errors.items()}
    return Result("done", values, means, test.query_ids.tolist(), chosen)


def _task(task: StudyTask, ranker: Method, scored: RankingData) -> MethodTask:
    """The task of a method whose parameters are the study's ``options``, with any rows to score."""
    options: Mapping[str, Any] = task.params["options"]
    for name in options:
        one_of("parameter in options", name, ranker.params)
    params = {**ranker.params, **options}
    rows = Unjudged(scored.X, scored.indptr)
    return MethodTask(task.train, task.validation, rows, params, select=task.select, seed=task.seed)


def _ties(scores: FloatArray, data: RankingData) -> FloatArray:
    """Each query's share of tied scores among pairs of equal grade; NaN without such a pair."""

    def pairs(*columns: Array) -> FloatArray:
        """Pairs of rows of a query that agree in all columns."""
        kinds, sizes = np.unique(np.stack([query_of_row(data.indptr), *columns]), axis=1, return_counts=True)
        return np.bincount(kinds[0], sizes * (sizes - 1) / 2, data.n_queries).astype(np.float64)

    with np.errstate(invalid="ignore"):
        shares: FloatArray = pairs(data.y, np.unique(scores, return_inverse=True)[1]) / pairs(data.y)
    return shares
