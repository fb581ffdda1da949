"""Neural rankers as methods of a recipe: any loss, robust form, rival or debiasing on one training loop.

Whatever is chosen (epoch, learning rate, alpha) is chosen on the validation data of the task, whose labels
are as noisy as those of training. ``noise = "true"`` tells a method the flips of clicks or the matrix of the
noise: peers then take alpha = "auto", and forward and backward correction that matrix. ``last`` keeps the
last epoch instead of the best.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from cleanrank.errors import invalid
from cleanrank.experiments.methods import NOISE, TOLD, Scored, Task
from cleanrank.types import RankingData
from cleanrank.validation import one_of

if TYPE_CHECKING:
    from cleanrank.rankers.neural.ranker import NeuralRanker

# Sessions of lists in random order that inverse propensities are estimated from.
RANDOMISED = 20
# Parameters that NeuralRanker takes under the same name.
PLAIN = (
    "loss", "pairs", "alpha", "peers", "network", "epochs", "early_stopping_rounds", "optimizer",
    "learning_rate", "weight_decay", "batch_queries", "scaling",
)  # fmt: skip


def neural(task: Task) -> Scored:
    """The network that validation data choose from the grid (ties: the first)."""
    best: tuple[float, NeuralRanker, dict[str, Any]] | None = None
    for choice in task.choices():
        ranker = _fitted(task, {**task.params, **choice})
        value = float(np.nan_to_num(ranker.model_.validation_value or 0.0))
        if best is None or value > best[0]:
            best = value, ranker, choice
    assert best is not None  # a grid has at least one combination
    value, ranker, choice = best
    chosen = {**choice, "epochs": ranker.model_.best_epoch, "validation": value}
    if ranker.alpha_ is not None:
        chosen["alpha"] = float(ranker.alpha_)
    if set(np.unique(task.train.y)) <= {0, 1}:
        chosen["positives"] = float(task.train.y.mean())
    scores = ranker.predict(task.test.X, group=np.diff(task.test.indptr))
    return Scored(scores, chosen)


def _fitted(task: Task, params: Mapping[str, Any]) -> "NeuralRanker":
    from cleanrank.rankers.neural.denoising import agreement_weights, coteach

    ranker = _ranker(task, params)
    train, held = task.train, None if params["last"] else task.validation
    if params["bins"]:
        train = replace(train, weights=agreement_weights(train, bins=params["bins"]).astype(np.float32))
    if params["forget"]:
        return coteach(ranker, train, held, forget=params["forget"], ramp=params["ramp"])
    if not params["debias"]:
        return ranker.fit_data(train, held)
    return _debiased(task, params, ranker, train)


def _ranker(task: Task, params: Mapping[str, Any]) -> "NeuralRanker":
    from cleanrank.rankers.neural.ranker import NeuralRanker

    given = {name: params[name] for name in PLAIN}
    told = params[NOISE] == TOLD
    options: dict[str, Any] = {}
    if params["network"] != "linear":
        options["hidden"] = tuple(params["hidden"])
    if params["weighting"]:
        given["loss_options"] = {"weighting": params["weighting"]}
    robust = {"name": params["robust"], **params["options"]} if params["robust"] else None
    if robust is not None and told and params["robust"] in ("forward", "backward"):
        robust["matrix"] = _told(task).tolist()
    if told and params["robust"] == "peer":
        given |= {"alpha": "auto", "noise": _told(task)}
    return NeuralRanker(
        **given,
        binary=params["binary"],
        robust=robust,
        network_options=options,
        measure=task.select,
        random_state=task.seed,
        n_jobs=task.n_jobs,
    )


def _told(task: Task) -> Any:
    if task.profile is None:
        raise invalid(
            "noise = 'true'", "needs noise that a matrix describes", "none",
            remedy="Flips of clicks do; attraction of irrelevant documents does not.",
        )  # fmt: skip
    return task.profile.matrix


def _debiased(
    task: Task, params: Mapping[str, Any], ranker: "NeuralRanker", train: RankingData
) -> "NeuralRanker":
    from cleanrank.losses.torch import ranking_loss
    from cleanrank.rankers.neural.debias import DEBIASING, debiased
    from cleanrank.rankers.neural.objective import list_loss

    name = one_of("debiasing", params["debias"], DEBIASING)
    _, alpha = list_loss(ranker.loss_config(), train)  # says what is wrong with the settings, and finds alpha
    robust = ranker.loss_config().steps
    if alpha is not None:
        robust = [{"mode": params["peers"], **step, "alpha": float(alpha)} for step in robust]
    if name == "ipw":
        if task.users is None:
            raise invalid("debias = 'ipw'", "needs users who can be shown lists in random order", "none")
        rule = DEBIASING[name](task.users.click_rates(sessions=RANDOMISED, seed=task.seed))
    else:
        rule = DEBIASING[name]()
    binary = {"binary": params["binary"]} if params["binary"] != "logistic" else {}
    made = partial(ranking_loss, params["loss"], robust=robust or None, **binary)
    ranker.set_params(loss=debiased(made, rule, pairs=params["pairs"]), robust=None)
    fitted = ranker.fit_data(train, None if params["last"] else task.validation)
    fitted.alpha_ = alpha
    return fitted
