"""The classic rankers (``rankers/classic/``) as methods of a recipe: their own parameters.

In a recipe "" stands for None, and C = 0 for RankSVM's own choice of C.

C, rounds and epochs are chosen on the task's validation data, whose labels are as noisy as those of training.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from cleanrank.experiments.methods import MethodResult, MethodTask
from cleanrank.rankers import make_ranker
from cleanrank.rankers.base import best_of


def best_ranker(name: str, task: MethodTask) -> tuple[Any, dict[str, Any]]:
    """The classic ranker that validation data choose from the grid (ties: the first), and the choice."""
    fits = ((_fitted(name, task, {**task.params, **choice}), choice) for choice in task.choices())
    ranker, choice = best_of(fits, lambda each: each[0].model_.validation_value or 0.0)
    value = float(np.nan_to_num(ranker.model_.validation_value or 0.0))  # 0 where no validation query counts
    return ranker, {**choice, "steps": ranker.best_iteration_, "validation": value}


def _fitted(name: str, task: MethodTask, params: Mapping[str, Any]) -> Any:
    settings = {key: None if value == "" else value for key, value in params.items()}
    if settings.get("C") == 0:
        settings["C"] = "auto"
    settings |= {"measure": task.select, "random_state": task.seed, "n_jobs": task.n_jobs}
    return make_ranker(name, **settings).fit_data(task.train, task.validation)


def _ranked(name: str, task: MethodTask) -> MethodResult:
    ranker, chosen = best_ranker(name, task)
    return MethodResult(ranker.predict(task.test.X), chosen)


prank, rank_svm, rank_boost, list_net, ada_rank = (
    partial(_ranked, name) for name in ("prank", "rank-svm", "rank-boost", "list-net", "ada-rank")
)
