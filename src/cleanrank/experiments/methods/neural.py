"""Neural rankers as methods of a recipe: any loss, robust form, rival or debiasing on one training loop.

Whatever is chosen (epoch, learning rate, alpha) is chosen on the validation data of the task, whose labels
are as noisy as those of training. With ``noise = "true"`` a method knows the flips of clicks or the matrix of
the noise: peers then take alpha = "auto", and forward and backward correction that matrix. ``last`` keeps the
last epoch instead of the best.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cleanrank.errors import invalid
from cleanrank.experiments.methods import NOISE, TRUE_NOISE, MethodResult, MethodTask
from cleanrank.rankers.base import best_of
from cleanrank.rankers.neural.denoising import agreement_weights, coteach
from cleanrank.rankers.neural.ranker import NeuralRanker
from cleanrank.types import FloatArray

# Sessions of lists in random order that inverse propensities are estimated from.
RANDOMISED = 20
# Parameters that NeuralRanker takes under the same name.
PLAIN = (
    "loss", "binary", "pairs", "alpha", "peers", "network", "epochs", "early_stopping_rounds",
    "optimizer", "learning_rate", "weight_decay", "batch_queries", "scaling",
)  # fmt: skip


def neural(task: MethodTask) -> MethodResult:
    """The network that validation data choose from the grid (ties: the first)."""
    fits = ((_fitted(task, {**task.params, **choice}), choice) for choice in task.choices())
    ranker, choice = best_of(fits, lambda each: each[0].model_.validation_value or 0.0)
    value = float(np.nan_to_num(ranker.model_.validation_value or 0.0))
    chosen = {**choice, "epochs": ranker.model_.best_epoch, "validation": value}
    if ranker.alpha_ is not None:
        chosen["alpha"] = float(ranker.alpha_)
    if set(np.unique(task.train.y)) <= {0, 1}:
        chosen["positives"] = float(task.train.y.mean())
    return MethodResult(ranker.predict(task.test.X, group=np.diff(task.test.indptr)), chosen)


def _fitted(task: MethodTask, params: Mapping[str, Any]) -> NeuralRanker:
    ranker = make_network(task, params)
    train, validation = task.train, None if params["last"] else task.validation
    if params["bins"]:
        train = replace(train, weights=agreement_weights(train, bins=params["bins"]).astype(np.float32))
    if params["forget"]:
        return coteach(ranker, train, validation, forget=params["forget"], ramp=params["ramp"])
    if params["debias"] == "ipw":
        if task.users is None:
            raise invalid("debias = 'ipw'", "needs users who can be shown lists in random order", "none")
        ranker.set_params(click_rates=task.users.click_rates(sessions=RANDOMISED, seed=task.seed))
    return ranker.set_params(debias=params["debias"] or None).fit_data(train, validation)


def make_network(task: MethodTask, params: Mapping[str, Any]) -> NeuralRanker:
    """The ranker of a recipe's parameters, not fitted yet, without what debiases, teaches or weighs rows."""
    settings: dict[str, Any] = {name: params[name] for name in PLAIN}
    robust = {"name": params["robust"], **params["options"]} if params["robust"] else None
    if params["network"] != "linear":
        settings["network_options"] = {"hidden": tuple(params["hidden"])}
    if params["weighting"]:
        settings["loss_options"] = {"weighting": params["weighting"]}
    if robust is not None and params[NOISE] == TRUE_NOISE:
        if params["robust"] in ("forward", "backward"):
            robust["matrix"] = _true_matrix(task).tolist()
        if params["robust"] == "peer":
            settings |= {"alpha": "auto", "noise": _true_matrix(task)}
    return NeuralRanker(
        **settings, robust=robust, measure=task.select, random_state=task.seed, n_jobs=task.n_jobs
    )


def _true_matrix(task: MethodTask) -> FloatArray:
    if task.profile is None:
        remedy = "Flips of clicks do; attraction of irrelevant documents does not."
        raise invalid("noise = 'true'", "needs noise that a matrix describes", "none", remedy=remedy)
    return task.profile.matrix
