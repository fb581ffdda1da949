"""The methods that recipes compare: each maps a task to scores, and has a version and parameters.

A method never sees a test label, by construction: its task holds training and validation data with labels
(noisy where the experiment says so), and of the test data only features and queries. The registry names
functions as text and imports them when they run, so that reading a recipe stays fast.
"""

import itertools
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.types import Array, Features, FloatArray, IntArray, RankingData

if TYPE_CHECKING:
    from cleanrank.experiments.noises import Users
    from cleanrank.noise.profiles import NoiseProfile

# The parameter that says how many true grades a method may ask for; -1 stands for those of all rows.
BUDGET = "gold"
# The parameter that says whether validation data have their true grades, as only a ceiling may.
CLEAN_VALIDATION = "clean_validation"
# The parameter that says where a method has the noise from, and its value for a method that gets the truth.
NOISE, TRUE_NOISE = "noise", "true"


@dataclass(frozen=True, eq=False)
class Unjudged:
    """Documents to be scored: features and queries, no labels."""

    X: Features
    indptr: IntArray

    @property
    def n_docs(self) -> int:
        """The number of documents."""
        return int(self.X.shape[0])


class Judge:
    """A perfect judge: gives the true grades of training rows, up to a budget, and counts the rows.

    >>> judge = Judge([2, 0, 1], budget=2)
    >>> judge([0, 2]).tolist(), judge([0]).tolist(), judge.n_judged
    ([2, 1], [2], 2)
    """

    def __init__(self, truth: npt.ArrayLike, budget: int) -> None:
        self._truth = np.asarray(truth)
        self._judged = np.zeros(len(self._truth), dtype=np.bool_)
        self.budget = len(self._truth) if budget < 0 else budget

    def __call__(self, rows: npt.ArrayLike) -> Array:
        """The true grades of rows, by their places in the training data; a row is paid for once."""
        places = np.asarray(rows, dtype=np.int64)
        judged = self._judged.copy()
        judged[places] = True
        if judged.sum() > self.budget:
            raise invalid("rows to judge", f"must be {self.budget:,} at the most", int(judged.sum()))
        self._judged = judged
        return self._truth[places].copy()

    @property
    def n_judged(self) -> int:
        """The number of rows that were judged."""
        return int(self._judged.sum())


def choices_of(grid: Mapping[str, Sequence[Any]]) -> Iterator[dict[str, Any]]:
    """Every combination of a grid, in its order; one empty one without a grid."""
    for values in itertools.product(*grid.values()):
        yield dict(zip(grid, values, strict=True))


@dataclass(frozen=True, eq=False)
class MethodTask:
    """What a method gets: rows to learn from, rows to choose by, rows to score, and how."""

    train: RankingData
    validation: RankingData
    test: Unjudged
    params: Mapping[str, Any]  # one value for every parameter of the method
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)  # values that validation data choose from
    select: str = "ndcg@10"  # the measure of that choice
    seed: int = 0
    n_jobs: int = 1
    judge: Judge = field(default_factory=lambda: Judge((), 0))  # its budget is the parameter ``gold``
    profile: "NoiseProfile | None" = None  # the noise of the labels, where ``noise = "true"``
    users: "Users | None" = None  # where labels are clicks: who can be shown lists in random order

    def choices(self) -> Iterator[dict[str, Any]]:
        """Every combination of the grid, in its order; one empty one without a grid."""
        return choices_of(self.grid)


@dataclass(frozen=True, eq=False)
class MethodResult:
    """A score per test document, and what was chosen on validation data."""

    scores: FloatArray
    chosen: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """A method of the registry, or a study, with the function from its task to its result."""

    version: int  # goes up whenever figures may change; stored cells of older versions are computed anew
    function: str  # ``module:function`` below ``cleanrank.experiments``
    params: Mapping[str, Any]  # parameter -> default, whose type is the parameter's
    measures: Mapping[str, str] = field(default_factory=dict)  # what a study measures -> in words

    def run(self, task: Any) -> Any:
        """Imports the function and calls it."""
        return pkgutil.resolve_name(f"cleanrank.experiments.{self.function}")(task)


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

SOUR: dict[str, Any] = {
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
}

PEER: dict[str, Any] = {"alpha": 0.1, "peers": "expected", "objective": "parity", **LAMBDARANK}
BOUGHT: dict[str, Any] = {BUDGET: 0, "strategy": "stratified", "objective": "exact", "selection": "average"}
CLEANED: dict[str, Any] = {"detector": "confident", "mode": "drop", "options": {}, NOISE: "", **BOUGHT}
CLEANED |= LAMBDARANK
LINEAR: dict[str, Any] = {
    "loss": "ranknet",
    "solver": "adam",
    "tol": 1e-4,
    "max_steps": 2000,
    "starts": 1,
    "max_pairs": 10_000,
    "per_query": False,
}

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

# Of classic rankers: what their classes take, with "" for None and a C of 0 for "auto".
PRANK: dict[str, Any] = {
    "epochs": 100,
    "robust": "",
    "margin": 1.0,
    "scaling": "zscore",
    "early_stopping_rounds": 0,
}
RANK_SVM: dict[str, Any] = {
    "C": 0.0,
    "loss": "hinge",
    "tol": 1e-6,
    "max_iter": 1000,
    "scaling": "minmax",
}
LIST_NET: dict[str, Any] = {"max_iter": 200, "tol": 1e-6, "scaling": "zscore", "early_stopping_rounds": 50}
RANK_BOOST: dict[str, Any] = {
    "n_estimators": 300,
    "directions": "both",
    "max_bins": 255,
    "bins": "quantile",
    "margin": "none",
    "early_stopping_rounds": 0,
    "scaling": "none",
}
ADA_RANK: dict[str, Any] = {
    "n_estimators": 500,
    "target": "map",
    "update": "cumulative",
    "directions": "up",
    "repeats": "set_aside",
    "tolerance": 0.002,
    "early_stopping_rounds": 100,
    "scaling": "none",
}

METHODS: dict[str, Method] = {
    "lambdarank": Method(1, "methods.trees:lambdarank", LAMBDARANK),
    "gbdt": Method(1, "methods.trees:gbdt", TREES),
    "prank": Method(1, "methods.classic:prank", PRANK),
    "rank_svm": Method(1, "methods.classic:rank_svm", RANK_SVM),
    "rank_boost": Method(1, "methods.classic:rank_boost", RANK_BOOST),
    "list_net": Method(1, "methods.classic:list_net", LIST_NET),
    "ada_rank": Method(1, "methods.classic:ada_rank", ADA_RANK),
    "linear": Method(2, "methods.linear:linear", LINEAR),
    "one_feature": Method(1, "methods.trees:one_feature", {}),
    "random": Method(1, "methods.trees:random", {}),
    "constant": Method(1, "methods.trees:constant", {}),
    # end 0: as many trees as rounds
    "sour": Method(1, "methods.trees:sour", SOUR),
    # contamination 0: by score
    "isolation": Method(1, "methods.trees:isolation", {"kind": "all", "contamination": 0.0, **LAMBDARANK}),
    "peer": Method(1, "methods.trees:peer", PEER),
    "corrected": Method(2, "methods.trees:corrected", {CLEAN_VALIDATION: False, **BOUGHT, **LAMBDARANK}),
    "cleaned": Method(2, "methods.trees:cleaned", CLEANED),
    # repair: the strategy of RobustRanker
    "robust": Method(3, "methods.trees:robust", {"repair": "auto", NOISE: "", **BOUGHT, **LAMBDARANK}),
    "neural": Method(1, "methods.neural:neural", NEURAL),
}
