"""What can be compared: each method is a function from a task to scores, with a version and its parameters.

A method never sees a test label, by construction: its task holds train and validation data with labels
(noisy where the experiment says so) and of the test data only features and queries. Rankers are imported
when a method runs, so that reading a recipe stays quick.
"""

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.types import Array, Features, FloatArray, IntArray, RankingData

if TYPE_CHECKING:
    from cleanrank.experiments.clicked import Users
    from cleanrank.noise.profiles import NoiseProfile
    from cleanrank.rankers.trees import TreeModel, TreeParams

# The parameter that says how many true grades a method may ask for; -1 stands for those of all rows.
BUDGET = "gold"
# The parameter that says where a method has the noise from, and its value for a method that is told.
NOISE, TOLD = "noise", "true"


@dataclass(frozen=True, eq=False)
class Unjudged:
    """Documents to be scored: features and queries, no labels."""

    X: Features
    indptr: IntArray

    @property
    def n_docs(self) -> int:
        """How many."""
        return int(self.X.shape[0])


class Judge:
    """Someone who is right: tells the true grades of training rows, up to a budget, and counts the rows.

    >>> judge = Judge([2, 0, 1], budget=2)
    >>> judge([0, 2]).tolist(), judge([0]).tolist(), judge.told
    ([2, 1], [2], 2)
    """

    def __init__(self, truth: npt.ArrayLike, budget: int) -> None:
        self._truth = np.asarray(truth)
        self._asked = np.zeros(len(self._truth), dtype=np.bool_)
        self.budget = len(self._truth) if budget < 0 else budget

    def __call__(self, rows: npt.ArrayLike) -> Array:
        """The true grades of rows, by their places in the training data; a row is paid for once."""
        chosen = np.asarray(rows, dtype=np.int64)
        asked = self._asked.copy()
        asked[chosen] = True
        if asked.sum() > self.budget:
            raise invalid("rows to judge", f"must be {self.budget:,} at the most", int(asked.sum()))
        self._asked = asked
        return self._truth[chosen].copy()

    @property
    def told(self) -> int:
        """How many rows were judged."""
        return int(self._asked.sum())


@dataclass(frozen=True, eq=False)
class Task:
    """What a method gets.

    Attributes:
        train: rows to learn from.
        validation: rows to choose by.
        test: rows to score.
        params: one value for every parameter of the method.
        grid: parameter -> values among which validation data choose.
        select: the measure of that choice.
        seed: for everything random.
        n_jobs: threads.
        judge: tells true grades of training rows; its budget is the parameter ``gold``.
        profile: the noise of the labels, for methods that are told it (``noise = "true"``).
        users: where labels are clicks, the people who can be shown lists in random order.
    """

    train: RankingData
    validation: RankingData
    test: Unjudged
    params: Mapping[str, Any]
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    select: str = "ndcg@10"
    seed: int = 0
    n_jobs: int = 1
    judge: Judge = field(default_factory=lambda: Judge((), 0))
    profile: "NoiseProfile | None" = None
    users: "Users | None" = None

    def choices(self) -> Iterator[dict[str, Any]]:
        """Every combination of the grid, in its order; one empty one without a grid."""
        for values in itertools.product(*self.grid.values()):
            yield dict(zip(self.grid, values, strict=True))


@dataclass(frozen=True, eq=False)
class Scored:
    """A score per test document, and what was chosen on validation data."""

    scores: FloatArray
    chosen: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """A method of the house.

    Attributes:
        version: goes up by one whenever the figures it gives may change; stored cells of older versions are
            computed anew.
        run: what it does.
        params: parameter -> default; the default's type is the parameter's.
        about: one line for people.
    """

    version: int
    run: Callable[[Task], Scored]
    params: Mapping[str, Any]
    about: str


def lambdarank(task: Task) -> Scored:
    """LightGBM's lambdarank; validation data choose the trees and from the grid (ties: the first)."""
    return _score(task, best_trees("lambdarank", task))


def gbdt(task: Task) -> Scored:
    """LightGBM's least-squares trees on the grade, chosen like those of lambdarank."""
    return _score(task, best_trees("gbdt", task))


def best_trees(name: str, task: Task) -> tuple["TreeModel", dict[str, Any]]:
    """The forest of "lambdarank" or "gbdt" that validation data choose, and the choice."""
    best = None
    for choice in task.choices():
        params = {**task.params, **choice}
        settings = tree_params(task, params, objective=None if name == "lambdarank" else name)
        model = settings.train(task.train, task.validation)
        value = float(np.nan_to_num(model.validation_value or 0.0))  # 0 where no validation query counts
        if best is None or value > best[0]:
            best = value, model, choice
    assert best is not None  # a grid has at least one combination
    value, model, choice = best
    return model, {**choice, "trees": model.best_iteration, "validation": value}


def tree_params(
    task: Task, params: dict[str, Any], implementation: str = "builtin", objective: str | None = None
) -> "TreeParams":
    """How trees are grown by the parameters of a recipe; what is left of these goes to LightGBM."""
    from cleanrank.rankers.trees import TreeParams

    return TreeParams(
        objective=objective or ("lambdarank" if params.pop("norm") else "lambdamart"),
        implementation=implementation,
        n_estimators=params.pop("rounds"),
        early_stopping_rounds=params.pop("early_stopping_rounds"),
        params=params,
        measure=task.select,
        seed=task.seed,
        n_jobs=task.n_jobs,
    )


def _score(task: Task, found: tuple["TreeModel", dict[str, Any]]) -> Scored:
    model, chosen = found
    return Scored(model.predict(task.test.X), chosen)


def linear(task: Task) -> Scored:
    """A linear scorer that minimises one loss, on validation data too."""
    from cleanrank.experiments import linear as found

    return found.linear(task)


def one_feature(task: Task) -> Scored:
    """The single feature that ranks validation data best, upwards or downwards."""
    from cleanrank.metrics.evaluation import evaluate

    columns = _dense(task.validation.X)
    tried = [
        (evaluate(sign * columns[:, f], task.validation, [task.select]).means, sign, f)
        for f in range(columns.shape[1])
        for sign in (1.0, -1.0)
    ]
    values = [next(iter(means.values())) for means, _, _ in tried]
    _, sign, feature = tried[int(np.argmax(values))]
    chosen = {"feature": feature, "sign": int(sign), "validation": float(max(values))}
    return Scored(sign * _dense(task.test.X)[:, feature], chosen)


def random_order(task: Task) -> Scored:
    """Documents in random order: the floor of every measure."""
    return Scored(np.random.default_rng(task.seed).random(task.test.n_docs))


def sour(task: Task) -> Scored:
    """SOUR and its variants."""
    from cleanrank.experiments import denoising

    return denoising.sour(task)


def isolation(task: Task) -> Scored:
    """Iso-lambda-LGBM."""
    from cleanrank.experiments import denoising

    return denoising.isolation(task)


def peer(task: Task) -> Scored:
    """Peer-lambda-LGBM."""
    from cleanrank.experiments import denoising

    return denoising.peer(task)


def corrected(task: Task) -> Scored:
    """Lambdarank with some labels put right."""
    from cleanrank.experiments import recovery_methods

    return recovery_methods.corrected(task)


def cleaned(task: Task) -> Scored:
    """Any detector, any cleaner, lambdarank."""
    from cleanrank.experiments import recovery_methods

    return recovery_methods.cleaned(task)


def robust(task: Task) -> Scored:
    """RobustRanker."""
    from cleanrank.experiments import recovery_methods

    return recovery_methods.robust(task)


def neural(task: Task) -> Scored:
    """Networks, their robust losses and their rivals."""
    from cleanrank.experiments import neural_methods

    return neural_methods.neural(task)


def _dense(X: Features) -> FloatArray:
    """Features as float64; a missing value counts as 0, as in sparse data."""
    found = X if isinstance(X, np.ndarray) else X.toarray()
    return np.nan_to_num(np.asarray(found, dtype=np.float64), nan=0.0)


TREES: dict[str, Any] = {
    "rounds": 300,
    "early_stopping_rounds": 50,
    "learning_rate": 0.05,
    "num_leaves": 31,
    "min_data_in_leaf": 20,
    "min_sum_hessian_in_leaf": 0.0,
    "feature_fraction": 1.0,
    "bagging_fraction": 1.0,
    "bagging_freq": 0,
    "lambda_l2": 0.0,
    "max_bin": 255,
}

LAMBDARANK: dict[str, Any] = {"norm": True, **TREES, "lambdarank_truncation_level": 30}

BOUGHT: dict[str, Any] = {BUDGET: 0, "strategy": "stratified", "objective": "exact"}

NEURAL: dict[str, Any] = {
    "loss": "ranknet",
    "binary": "logistic",
    "pairs": "strict",
    "weighting": "",
    "robust": "",
    "options": {},
    "alpha": 0.1,
    "peers": "expected",
    NOISE: "",
    "debias": "",
    "forget": 0.0,
    "ramp": 15,
    "bins": 0,
    "network": "mlp",
    "hidden": [512, 256, 128],
    "epochs": 50,
    "early_stopping_rounds": 10,
    "last": False,
    "optimizer": "adam",
    "learning_rate": 0.001,
    "weight_decay": 0.0,
    "batch_queries": 64,
    "scaling": "zscore",
}

METHODS: dict[str, Method] = {
    "lambdarank": Method(
        version=1,
        run=lambdarank,
        params=LAMBDARANK,
        about="LightGBM's lambdarank",
    ),
    "gbdt": Method(version=1, run=gbdt, params=TREES, about="LightGBM's least-squares trees on the grade"),
    "linear": Method(
        version=1,
        run=linear,
        params={"loss": "ranknet", "steps": 300, "max_pairs": 300, "per_query": False},
        about="linear scores by one loss; step and decay by the same loss on validation data",
    ),
    "one_feature": Method(
        version=1, run=one_feature, params={}, about="the feature that ranks validation data best"
    ),
    "random": Method(version=1, run=random_order, params={}, about="random order"),
    "sour": Method(
        version=1,
        run=sour,
        params={
            "start": 0,
            "end": 0,
            "kind": "neg",
            "rule": "paper",
            "cutoff": 10,
            "min_frequency": 1.0,
            "variant": "sour",
            "patience": 50,
            "folds": 0,
            "alpha": 0.0,
            "objective": "builtin",
            **LAMBDARANK,
        },
        about="lambdarank without the consistent outliers of a base forest (end 0: as many trees as rounds)",
    ),
    "isolation": Method(
        version=1,
        run=isolation,
        params={"kind": "all", "contamination": 0.0, **LAMBDARANK},
        about="lambdarank without documents that an isolation forest isolates (contamination 0: by score)",
    ),
    "peer": Method(
        version=1,
        run=peer,
        params={"alpha": 0.1, "peers": "expected", "objective": "parity", **LAMBDARANK},
        about="lambdarank less the gradients of permuted labels",
    ),
    "corrected": Method(
        version=1,
        run=corrected,
        params=BOUGHT | LAMBDARANK,
        about="lambdarank after true grades of some training rows were bought (gold; -1: of all)",
    ),
    "cleaned": Method(
        version=1,
        run=cleaned,
        params={"detector": "confident", "mode": "drop", "options": {}, NOISE: "", **BOUGHT, **LAMBDARANK},
        about="lambdarank on what a detector and a cleaner leave; noise: true, or gold to estimate it",
    ),
    "robust": Method(
        version=1,
        run=robust,
        params={NOISE: "", **BOUGHT, **LAMBDARANK},
        about="RobustRanker with bought true grades (gold), told the noise (noise = true), or the data alone",
    ),
    "neural": Method(
        version=1,
        run=neural,
        params=NEURAL,
        about="NeuralRanker: any loss, robust form, co-teaching (forget), reweighting (bins) or debiasing",
    ),
}
