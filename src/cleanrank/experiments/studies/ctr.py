"""Models of clicks on logs: every model, plain or robust, under one trainer and one choice of settings.

Settings of the grid are chosen by the AUC on validation rows, whose labels are as noisy as those of training;
test rows keep theirs. ``gain`` compares with the plain model of the same settings, which gets as many tries:
where the grid tries several weights of peers at one learning rate, the plain model tries as many seeds at it
(erratum B6: bases are tuned like what is compared with them).

Rows of a user are not independent, so users are put into at most BLOCKS blocks, and the values of a measure m
are its jackknife pseudo-values, B m - (B - 1) m(all rows but those of block b), shifted to the mean m.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from cleanrank.data.behaviours import ClickRows
from cleanrank.data.popularity import ItemPopularity
from cleanrank.experiments.methods import NOISE, TRUE_NOISE
from cleanrank.experiments.results import Result
from cleanrank.experiments.studies import ClickTask
from cleanrank.metrics.calibration import fit_calibration
from cleanrank.metrics.clicks import auc, ece, gauc, log_loss
from cleanrank.rankers.base import best_of
from cleanrank.rankers.ctr.ranker import CTRModel
from cleanrank.types import Array, FloatArray

BLOCKS = 200
SEEDS_APART = 1000
POPULARITY = "popularity"
# Parameters that CTRModel takes under the same name.
PLAIN = (
    "model", "peers", "epochs", "early_stopping_rounds", "learning_rate", "weight_decay",
)  # fmt: skip
# Parameters that a plain model does not have.
ROBUST = ("robust", "options", "alpha", NOISE)


def ctr(task: ClickTask) -> Result:
    """Trains a model of clicks and measures it on the test rows."""
    test, params = task.clean.test, task.params
    choices = [{**params, **choice} for choice in task.choices()]
    probability, chosen = _scored(task, choices)
    block = np.unique(test.users, return_inverse=True)[1] % BLOCKS

    def measured(measure: Callable[..., float], *columns: Array) -> tuple[float, FloatArray]:
        return jackknife(lambda rows: measure(*(column[rows] for column in (test.y, *columns))), block)

    figures = {
        "auc": measured(auc, probability),
        "gauc": measured(gauc, probability, test.users),
        "log loss": measured(log_loss, probability),
        "calibration error": measured(ece, probability),
    }
    if params["base"]:
        base, of_base = _scored(task, list(plain_tries(choices)))
        chosen |= {f"base {name}": value for name, value in of_base.items()}
        figures["base auc"] = measured(auc, base)
        figures["gain"] = measured(lambda y, p, q: auc(y, p) - auc(y, q), probability, base)
    else:
        nothing = float("nan"), np.full(int(block.max()) + 1, np.nan)
        figures |= {"base auc": nothing, "gain": nothing}
    means = {name: mean for name, (mean, _) in figures.items()}
    values = {name: each for name, (_, each) in figures.items()}
    blocks = [f"users {number}" for number in range(int(block.max()) + 1)]
    return Result("done", values, means, blocks, chosen)


def jackknife(measure: Callable[[Array], float], block: Array) -> tuple[float, FloatArray]:
    """A measure of all rows, and its pseudo-values by block of rows.

    >>> mean, values = jackknife(lambda rows: float(np.arange(4.0)[rows].mean()), np.array([0, 0, 1, 1]))
    >>> mean, values.tolist()  # of a mean, the means of equal blocks
    (1.5, [0.5, 2.5])
    """
    B = int(block.max()) + 1
    mean = measure(np.ones(len(block), dtype=np.bool_))
    if B == 1:
        return mean, np.array([mean])
    values = np.array([B * mean - (B - 1) * measure(block != b) for b in range(B)])
    return mean, values + (mean - values.mean())


def plain_tries(choices: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """As many tries of the plain model as there are choices: equal settings differ in their seeds.

    >>> tries = plain_tries([{"learning_rate": 1, "alpha": 0.1}, {"learning_rate": 1, "alpha": 0.3}])
    >>> [(each["learning_rate"], each["restart"]) for each in tries]
    [(1, 0), (1, 1)]
    """
    seen: Counter[str] = Counter()
    for choice in choices:
        settings = {name: value for name, value in choice.items() if name not in (*ROBUST, "restart")}
        restart = seen[repr(settings)]
        seen[repr(settings)] += 1
        yield {**choice, **settings, "robust": "", "options": {}, NOISE: "", "restart": restart}


def _scored(task: ClickTask, choices: list[dict[str, Any]]) -> tuple[FloatArray, dict[str, Any]]:
    """Probabilities of the test rows by the try that is best on validation rows, and what it was."""
    if task.params["model"] == POPULARITY:
        return _popularity(task.train, task.validation, task.clean.test), {}
    tries = [(choice, _fitted(task, choice)) for choice in choices]
    choice, model = best_of(tries, lambda each: each[1].model_.validation_value or 0.0)
    varied = [name for name in choice if any(other[name] != choice[name] for other in choices)]
    chosen = {name: choice[name] for name in varied}
    chosen |= {"epochs": model.model_.best_epoch, "validation": model.model_.validation_value}
    if model.alpha_ is not None:
        chosen["alpha"] = float(model.alpha_)
    if model.removed_ is not None:
        chosen["removed"] = float(model.removed_.mean())
    return model.predict_proba(task.clean.test)[:, 1], chosen


def _fitted(task: ClickTask, params: Mapping[str, Any]) -> CTRModel:
    settings: dict[str, Any] = {name: params[name] for name in PLAIN}
    if params["robust"]:
        settings["robust"] = {"name": params["robust"], **params["options"]}
        settings["alpha"] = params["alpha"]
    if params[NOISE] == TRUE_NOISE:
        settings["noise"] = task.noise
        if params["robust"] == "peer":
            settings["alpha"] = "auto"
    if params["calibration"]:
        settings["calibration"] = params["calibration"]
    # Few rows in large batches would leave few steps.
    settings["batch_size"] = max(1, min(params["batch_size"], len(task.train) // params["least_steps"]))
    seed = task.seed + SEEDS_APART * params["restart"]
    return CTRModel(**settings, random_state=seed, n_jobs=1).fit(task.train, task.validation)


def _popularity(train: ClickRows, validation: ClickRows, test: ClickRows) -> FloatArray:
    """The clicks of an item, made a probability on validation rows; Platt's curve keeps the order."""
    popularity = ItemPopularity.fit(train)
    most = max(float(popularity.counts.max()), 1.0)
    curve = fit_calibration(validation.y, popularity.predict(validation) / most)
    return curve.apply(popularity.predict(test) / most)
