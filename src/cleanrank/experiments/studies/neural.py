"""The study of one training of a network: its measure on validation data after every epoch."""

import numpy as np

from cleanrank.experiments.methods import NEURAL, MethodTask, Unjudged
from cleanrank.experiments.methods.neural import make_network
from cleanrank.experiments.results import Result
from cleanrank.experiments.studies import EPOCHS, VALIDATION_LABELS, StudyTask


def epochs(task: StudyTask) -> Result:
    """The measure by true and by given validation labels during one training that nothing stops.

    ``chosen`` holds both curves whole.
    """
    params = {**NEURAL, **task.params, "early_stopping_rounds": 0}
    nothing = Unjudged(task.train.X[:0], task.train.indptr[:1])
    method = MethodTask(task.train, task.validation, nothing, params, select=task.select, seed=task.seed)
    sets = dict(zip(VALIDATION_LABELS, (task.clean.validation, task.validation), strict=True))
    ranker = make_network(method, params).fit_data(task.train, sets)
    curves = {name: ranker.evals_result_[name][task.select] for name in sets}
    means = {
        f"{name} labels, epoch {epoch}": float(curve[epoch - 1]) if epoch <= len(curve) else float("nan")
        for name, curve in curves.items()
        for epoch in EPOCHS
    }
    # The trainer notes means over queries alone.
    values = {name: np.array([value]) for name, value in means.items()}
    return Result("done", values, means, ["all queries"], {"curves": curves})
