"""The one module that talks to LightGBM: parameters, training, errors, early stopping, staged scores, files.

Parameters are kept under LightGBM's main names. A run gives the same bits for a seed and any number of
threads.
"""

import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from os import PathLike
from typing import Any
from urllib.parse import quote, unquote

import lightgbm
import numpy as np

from cleanrank.cluster.client import ConnectionLostError
from cleanrank.cluster.together import Network
from cleanrank.data.files import existing_file, written_whole
from cleanrank.errors import BadFileError, InvalidInputError, error_text, invalid
from cleanrank.jit import kernel
from cleanrank.metrics.evaluation import evaluate_mean
from cleanrank.metrics.measure import Measure
from cleanrank.rankers._model_text import check_text, weighted_sum
from cleanrank.rankers.columns import Columns, own_codes
from cleanrank.stored import StoredFeatures, as_array, blocks
from cleanrank.types import Array, FloatArray, RankingData
from cleanrank.validation import check_number, one_of

# Parameters that would get round an argument, and that argument.
ARGUMENTS: dict[str, str] = {
    "objective": "objective",
    "num_iterations": "n_estimators",
    "early_stopping_round": "early_stopping_rounds",
    "metric": "measure",
}
LIGHTGBM_MEASURE = "lightgbm:"
# LightGBM's measures -> whether they have a cut-off.
LIGHTGBM_MEASURES: dict[str, bool] = {
    "ndcg": True,
    "map": True,
    "auc": False,
    "average_precision": False,
    "rmse": False,
    "l1": False,
    "l2": False,
}
COMPARISONS = {">=": "at least", "<=": "at most", ">": "more than", "<": "less than"}
LEAF_SUM = "min_sum_hessian_in_leaf"
LEAST_LEAF_SUM = 1e-3  # LightGBM's default
ROUNDING = 1e-9  # of the sum of weights; sums of Hessians round to about 1e-15 of themselves
TINY_SUM = 1e-12  # LightGBM adds 1e-15 to every sum
# LightGBM reads a row once per call, whatever the number of trees; more trees a call cost memory.
BLOCK = 16
STORED_ROWS = 1 << 17  # rows that stay on disk are scored so many at a time
LEAVES_BYTES = 1 << 31  # what their leaves may take, so that they are read few times
# What LightGBM refuses or alters in the name of a feature; "%" marks what was replaced.
RESERVED = re.compile(r'[\s%",:\[\]{}\0-\x1f]')
NO_NAME = "%00"
# Parameters of training on several machines -> what a model's text says of one.
ONE_MACHINE: dict[str, str] = {
    "tree_learner": "serial",
    "num_machines": "1",
    "machines": "",
    "local_listen_port": "12400",
    "time_out": "120",
    "pre_partition": "0",
}
LEARNERS = ("data", "voting")
WAIT_MINUTES = 2  # for the others to listen
LOST = re.compile(r"Socket|[Cc]onnect|Binding port|rank \d")


class NoSplitError(InvalidInputError):
    """No column of the features can be split."""


# Parameters


def resolve_aliases(params: Mapping[str, Any] | None) -> dict[str, Any]:
    """Parameters under their main names; unknown ones, over which LightGBM would pass silently, are refused.

    >>> resolve_aliases({"eta": 0.1, "min_child_samples": 5})
    {'learning_rate': 0.1, 'min_data_in_leaf': 5}
    """
    if params is not None and not isinstance(params, Mapping):
        raise invalid("params", "must be a mapping from LightGBM's parameters to values", repr(params))
    names = _main_names()
    resolved: dict[str, Any] = {}
    for name, value in (params or {}).items():
        main = names[one_of("parameter of LightGBM", name, names)] if names else name
        if main in ARGUMENTS:
            remedy = f"Set {ARGUMENTS[main]} instead."
            raise invalid("params", f"must leave {name!r} to the argument", repr(value), remedy=remedy)
        if main in resolved and resolved[main] != value:
            values = f"{resolved[main]!r} and {value!r} (as {name!r})"
            raise invalid("params", f"must give {main!r} once", values)
        resolved[main] = value
    if resolved.get("bagging_by_query"):
        rule = "must be off: LightGBM 4.7 gives the score updates of rows out of the bag to row 0"
        raise invalid("bagging_by_query", rule, True, remedy="Use bagging_fraction without it.")
    return resolved


@cache
def _main_names() -> dict[str, str]:
    """Every name of every parameter -> its main name; empty where this LightGBM does not list them."""
    try:
        aliases: dict[str, list[str]] = lightgbm.basic._ConfigAliases._get_all_param_aliases()
        names = {str(name): str(main) for main, others in aliases.items() for name in (main, *others)}
    except (AttributeError, TypeError, ValueError):
        names = {}
    if names.get("eta") == "learning_rate":
        return names
    warnings.warn(
        f"LightGBM {lightgbm.__version__} does not list the names of its parameters: aliases are not "
        "resolved and unknown names not noticed. Use main names (learning_rate, min_data_in_leaf).",
        stacklevel=2,
    )
    return {}


def run_settings(seed: int, n_jobs: int | None, deterministic: bool = True) -> dict[str, Any]:
    """Seed, threads and silence; LightGBM takes the seed modulo 2^31."""
    return {
        "seed": seed % 2**31,
        "deterministic": deterministic,
        "force_row_wise": True,
        "num_threads": 0 if n_jobs in (None, -1) else n_jobs,
        "verbosity": -1,
    }


def leaf_sum(data: RankingData, params: Mapping[str, Any]) -> dict[str, Any]:
    """The least sum of Hessians in a leaf: the one in ``params``, but never as little as rounding errors.

    LightGBM estimates the documents of a leaf from Hessians, rounded bin by bin, so that some are left over,
    and counts these for an empty side when its sum of Hessians, a rounding error, is large enough. Then it
    finds no document there and ends the training ("left_count > 0"). The sum of all Hessians is of the order
    of the sum of the weights.
    """
    least = check_number(LEAF_SUM, params.get(LEAF_SUM, LEAST_LEAF_SUM), least=0)
    total = data.n_docs if data.weights is None else float(data.weights.sum())
    return {LEAF_SUM: max(least, ROUNDING * total, TINY_SUM)}


def refuse_dart(params: Mapping[str, Any]) -> None:
    """Refuses DART, which rescales earlier trees, so that the first trees of a model are not what it was."""
    for name in ("boosting", "boosting_type", "boost"):
        if params.get(name) == "dart":
            rule = "must not be 'dart' where staged scores are read: it rescales earlier trees"
            raise invalid(name, rule, "dart", remedy="Use 'gbdt'.")


# Training


def dataset(
    data: RankingData,
    *,
    grouped: bool = True,
    weighted: bool = True,
    positions: bool = False,
    label: FloatArray | None = None,
    base: FloatArray | None = None,
    reference: Any = None,
) -> Any:
    """LightGBM's data set of rows; ``base`` (C,) are the scores of the classes at which training starts.

    ``label`` takes the place of the grades.
    """
    if not data.n_features:
        remedy = "Judgements without features go into cleanrank audit, with runs or texts."
        raise invalid("data", "must have features to learn from", "none", remedy=remedy)
    columns = Columns.of(data)
    names = columns.names or ()
    rows = lightgbm.Dataset(
        _RowsOnDisk(data.X) if isinstance(data.X, StoredFeatures) else data.X,
        label=data.y if label is None else label,
        group=data.lengths if grouped else None,
        weight=data.weights if weighted else None,
        position=data.positions if positions else None,
        init_score=None if base is None else np.tile(base, (data.n_docs, 1)),
        reference=reference,
        feature_name=[encode_name(name) for name in names] or "auto",
        categorical_feature=[names.index(name) for name in names if name in columns.categories] or "auto",
        free_raw_data=True,
    )
    # Numbers that are their own codes need no list; LightGBM keeps that of the others in its text.
    values = [list(columns.categories[name]) for name in names if name in columns.categories]
    if not all(own_codes(each) for each in values):
        rows.pandas_categorical = values
    return rows


class _RowsOnDisk(lightgbm.Sequence):
    """Rows that stay on disk, as LightGBM asks for them: a sample to cut the bins by, then all, by blocks."""

    def __init__(self, X: StoredFeatures) -> None:
        self.X = X
        self.batch_size = STORED_ROWS

    def __len__(self) -> int:
        return self.X.shape[0]

    def __getitem__(self, rows: Any) -> Array:
        if isinstance(rows, slice):
            return np.ascontiguousarray(self.X.read(rows.start, rows.stop))
        row: Array = self.X.read(rows, rows + 1)[0].astype(np.float64)
        return row


def encode_name(name: str) -> str:
    """A feature's name as LightGBM takes it: without blanks and JSON's special characters.

    >>> encode_name("price [EUR]"), decode_name("price%20%5BEUR%5D")
    ('price%20%5BEUR%5D', 'price [EUR]')
    """
    return RESERVED.sub(lambda match: quote(match[0], safe=""), name) or NO_NAME


def decode_name(name: str) -> str:
    """The inverse of ``encode_name``."""
    return "" if name == NO_NAME else unquote(name)


def boost(
    settings: Mapping[str, Any],
    train_set: Any,
    n_estimators: int,
    *,
    validation_set: Any = None,
    patience: int | None = None,
    smoothing: int = 0,
    feval: Callable[..., Any] | None = None,
    callbacks: Sequence[Callable[..., Any]] = (),
    init_model: "TreeModel | None" = None,
    keep: bool = False,
) -> "TreeModel":
    """Trains, and keeps the number of trees that is best on the validation set; its errors in our words.

    ``patience`` are trees without gain before it stops, None keeps all trees; ``smoothing``, for values of
    which higher ones are better, averages them over so many trees before and after; ``feval`` is (scores,
    data set) -> (name, value, whether higher is better); ``keep`` keeps scores for ``training_scores``.
    """
    watched = [] if validation_set is None else [validation_set]
    values: dict[str, Any] = {}
    stopping = [lightgbm.record_evaluation(values)] if watched else []
    if watched and patience is not None:
        stopping = [lightgbm.early_stopping(patience, verbose=False), *stopping]
    with _errors_in_our_words(settings, train_set):
        booster = lightgbm.train(
            dict(settings),
            train_set,
            num_boost_round=n_estimators,
            valid_sets=watched,
            valid_names=["validation"] if watched else None,
            feval=feval if watched else None,
            init_model=None if init_model is None else init_model.booster,
            callbacks=[*callbacks, *stopping],
            keep_training_booster=keep,
        )
    if "validation" not in values:
        return TreeModel(booster, booster.current_iteration())
    best = booster.best_iteration if booster.best_iteration > 0 else booster.current_iteration()
    first = 0 if init_model is None else init_model.booster.current_iteration()
    history, *_ = values["validation"].values()
    curve = smoothed(history, smoothing)
    if smoothing and patience is not None:
        best = first + int(np.argmax(curve)) + 1
    return TreeModel(booster, best, float(curve[best - first - 1]), tuple(history))


def smoothed(values: Sequence[float], width: int) -> FloatArray:
    """Means over ``width`` values before and after each; beyond its ends a curve goes on as it ends.

    >>> smoothed([0.0, 3.0, 0.0, 3.0], 1).tolist()
    [1.0, 1.0, 2.0, 2.0]
    """
    padded = np.pad(np.asarray(values, dtype=np.float64), width, mode="edge")
    return np.convolve(padded, np.full(2 * width + 1, 1 / (2 * width + 1)), "valid")


def training_scores(booster: Any) -> FloatArray:
    """The scores of the training rows that a booster in training keeps; LightGBM's buffer, not a copy."""
    seen: list[FloatArray] = []

    def read(scores: FloatArray, _: Any) -> tuple[str, float, bool]:
        seen.append(scores)
        return "seen", 0.0, True

    booster.eval_train(read)
    return seen[0]


@contextmanager
def _errors_in_our_words(settings: Mapping[str, Any], train_set: Any) -> Iterator[None]:
    """Words what LightGBM complains about: the parameter, its rule and its value where it says so."""
    try:
        yield
    except lightgbm.basic.LightGBMError as error:
        text = re.sub(r" at \S+, line \d+ ?\.?", "", str(error)).strip()
        if "num_machines" in settings and LOST.search(text):
            raise ConnectionLostError(f"LightGBM: {text}") from error
        if "num_features" in text:
            rows = f"{len(train_set.get_label()):,} rows, {settings['min_data_in_leaf']} a leaf at the least"
            remedy = "Lower min_child_samples (min_data_in_leaf) or give more rows."
            rule = "must have a column that can be split"
            raise NoSplitError(error_text("features", rule, rows, remedy=remedy)) from error
        limit = re.fullmatch(r"Check failed: \((\w+)\) (>=|<=|>|<) \((\S+)\)", text)
        if limit and limit[1] in settings:
            rule = f"must be {COMPARISONS[limit[2]]} {float(limit[3]):g} (LightGBM)"
            raise invalid(limit[1], rule, repr(settings[limit[1]])) from error
        kind = re.fullmatch(r'Parameter (\w+) should be of type (\w+), got "(.*)"', text)
        if kind:
            raise invalid(kind[1], f"must be of type {kind[2]} (LightGBM)", repr(kind[3])) from error
        raise InvalidInputError(
            f"LightGBM must be able to train; it said: {text.rstrip('.')}. Check its parameters and the data."
        ) from error


# Several machines


def refuse_machines(params: Mapping[str, Any]) -> None:
    """Refuses parameters of a network of the caller's own, or a learner that does not cut the rows."""
    for name in ONE_MACHINE.keys() & params.keys() - {"tree_learner"}:
        raise invalid("params", f"must leave {name!r} to the cluster", repr(params[name]))
    one_of("tree_learner on a cluster", params.get("tree_learner", LEARNERS[0]), LEARNERS)


@contextmanager
def on_network(network: Network) -> Iterator[dict[str, Any]]:
    """The parameters with which LightGBM trains together with other machines, which each have a part."""
    if len(network.machines) == 1:
        yield {}
        return
    # Silences this thread: LightGBM speaks of its connections before it reads the parameters.
    lightgbm.Dataset(np.zeros((1, 1)), params={"verbosity": -1}).construct()
    try:
        yield {
            "num_machines": len(network.machines),
            "machines": ",".join(f"{host}:{port}" for host, port in network.machines),
            "local_listen_port": network.machines[network.place][1],
            "time_out": WAIT_MINUTES,
            "pre_partition": True,
        }
    finally:
        library: Any = lightgbm.basic
        library._LIB.LGBM_NetworkFree()


def without_machines(model: "TreeModel") -> "TreeModel":
    """A model whose text says nothing about the machines it was trained on."""
    text = model.booster.model_to_string(num_iteration=-1)
    for name, value in ONE_MACHINE.items():
        text = re.sub(rf"^\[{name}: .*\]$", f"[{name}: {value}]", text, count=1, flags=re.MULTILINE)
    return TreeModel(
        lightgbm.Booster(model_str=text), model.best_iteration, model.validation_value, model.history
    )


# Early stopping


def stopping_measure(
    measure: str | Measure, validation: RankingData | None, n_jobs: int | None
) -> tuple[dict[str, Any], Callable[..., Any] | None]:
    """The parameters and the ``feval`` that make LightGBM stop on one of our measures, or on its own."""
    if isinstance(measure, str) and measure.startswith(LIGHTGBM_MEASURE):
        return lightgbm_measure(measure.removeprefix(LIGHTGBM_MEASURE)), None
    if not isinstance(measure, str | Measure):
        raise invalid("measure", "must be text or a Measure", repr(measure), remedy="Try 'ndcg@10'.")

    def value(scores: FloatArray, _: Any) -> tuple[str, float, bool]:
        assert validation is not None
        return "measure", evaluate_mean(scores, validation, measure, n_jobs=n_jobs), True

    return {"metric": "None"}, value


def lightgbm_measure(name: str) -> dict[str, Any]:
    """The parameters that make LightGBM compute its own measure."""
    metric, _, cutoff = name.partition("@")
    cut = LIGHTGBM_MEASURES[one_of("measure of LightGBM", metric, LIGHTGBM_MEASURES)]
    if cut != bool(cutoff) or (cutoff and not (cutoff.isdecimal() and int(cutoff) > 0)):
        rule = "needs a cut-off >= 1" if cut else "has no cut-off"
        remedy = "As in 'lightgbm:ndcg@10'." if cut else ""
        raise invalid(f"LightGBM's {metric}", rule, repr(name), remedy=remedy)
    return {"metric": metric} | ({"eval_at": [int(cutoff)]} if cut else {})


# Models


@dataclass(frozen=True)
class TreeModel:
    """Trained trees: LightGBM's own model and how it is used."""

    booster: Any
    best_iteration: int  # trees that are used to score
    validation_value: float | None = None  # the measure on validation data at that point
    history: tuple[float, ...] = ()  # the same after every tree

    @property
    def n_features(self) -> int:
        """Columns that the model was trained on."""
        return int(self.booster.num_feature())

    @cached_property
    def columns(self) -> Columns:
        """Their names and categories, which LightGBM's text holds."""
        names = tuple(decode_name(name) for name in self.booster.feature_name())
        if names == tuple(f"Column_{place}" for place in range(len(names))):
            return Columns(self.n_features)
        values = self.booster.pandas_categorical or []
        text = self.booster.model_to_string(num_iteration=1)
        listed = re.search(r"^\[categorical_feature: ([\d,]+)\]$", text, re.MULTILINE)
        places = [int(place) for place in listed[1].split(",")] if listed else []
        if len(places) != len(values):
            return Columns(self.n_features, names)
        categories = {names[place]: tuple(each) for place, each in zip(places, values, strict=True)}
        return Columns(self.n_features, names, categories)

    def predict(self, X: Any, *, n_jobs: int | None = 1, raw: bool = False) -> FloatArray:
        """Scores of rows, in input order; they must have the columns that the model was trained on.

        ``n_jobs`` are threads, None or -1 all of them; scores are the same for any number.
        """
        threads = 0 if n_jobs in (None, -1) else n_jobs
        options = {"num_iteration": self.best_iteration, "num_threads": threads, "raw_score": raw}
        return np.asarray(self._by_blocks(self.columns.matrix(X), options), dtype=np.float64)

    def _by_blocks(self, X: Any, options: Mapping[str, Any], dtype: Any = None) -> Any:
        """What LightGBM predicts for rows; for those that stay on disk block by block."""
        if not isinstance(X, StoredFeatures) or not X.shape[0]:
            return self.booster.predict(as_array(X) if isinstance(X, StoredFeatures) else X, **options)
        values: Any = None
        for start, block in blocks(X, STORED_ROWS):
            part = self.booster.predict(block, **options)
            if values is None:
                values = np.empty((X.shape[0], *part.shape[1:]), dtype=part.dtype if dtype is None else dtype)
            values[start : start + len(block)] = part
        return values

    def staged_predict(
        self, X: Any, *, end: int | None = None, n_jobs: int = 1, block: int = BLOCK
    ) -> Iterator[tuple[int, FloatArray]]:
        """Yields (i, scores of the first i trees) for i = 1, ..., ``end``; the array is the same each time.

        They equal the scores that LightGBM keeps while it trains bit for bit, because both add the same leaf
        values in the same order. ``block`` trees are looked up in one go, 8 bytes a row each; of rows that
        stay on disk as many as LEAVES_BYTES hold, so that they are read few times.
        """
        booster, X = self.booster, self.columns.matrix(X)
        text = booster.model_to_string(num_iteration=-1)
        if "\n[boosting: dart]" in text:
            raise invalid("model", "must not be trained by DART, which rescales earlier trees")
        last = booster.current_iteration() if end is None else min(end, booster.current_iteration())
        stored = isinstance(X, StoredFeatures)
        scores = np.zeros(X.shape[0])
        if "\nis_linear=1" in text:
            # Leaves of linear trees hold models, not values.
            for i in range(last):
                tree = {"start_iteration": i, "num_iteration": 1, "raw_score": True, "num_threads": n_jobs}
                scores += self._by_blocks(X, tree)
                yield i + 1, scores
            return
        # LightGBM's text format keeps all digits.
        values = [np.array(line.split(), dtype=np.float64) for line in re.findall("\nleaf_value=(.*)", text)]
        kind = np.min_scalar_type(max(map(len, values), default=1) - 1) if stored else None
        if kind is not None:
            block = max(block, LEAVES_BYTES // max(1, kind.itemsize * len(scores)))
        for first in range(0, last, block):
            size = min(block, last - first)
            trees = {
                "start_iteration": first,
                "num_iteration": size,
                "pred_leaf": True,
                "num_threads": n_jobs,
            }
            leaves = np.asarray(self._by_blocks(X, trees, kind)).reshape(len(scores), size)
            for t in range(size):
                _add_leaves(leaves, t, values[first + t], scores)
                yield first + t + 1, scores

    def save(self, path: str | PathLike[str]) -> None:
        """Writes LightGBM's text format, the trees in use alone."""
        # LightGBM's own writer does not say why it fails.
        text = self.booster.model_to_string(num_iteration=self.best_iteration)
        with written_whole(path) as part:
            part.write_bytes(text.encode())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "TreeModel":
        """Reads a model in LightGBM's text format."""
        file = existing_file(path)
        check_text(file.read_bytes(), str(file))
        try:
            booster = lightgbm.Booster(model_file=str(file))
        except lightgbm.basic.LightGBMError as error:
            raise BadFileError(f"model file {str(file)!r} must be whole: {error}.", str(file)) from None
        return cls(booster, booster.current_iteration())


def sum_of_models(models: Sequence[TreeModel], weights: Sequence[float]) -> TreeModel:
    """One model whose score is the weighted sum of the scores of several, made of their trees in use."""
    texts = [each.booster.model_to_string(num_iteration=each.best_iteration) for each in models]
    booster = lightgbm.Booster(model_str=weighted_sum(texts, weights))
    return TreeModel(booster, booster.current_iteration())


@kernel()
def _add_leaves(leaves: Array, tree: int, values: Array, scores: Array) -> None:
    for row in range(len(scores)):
        scores[row] += values[leaves[row, tree]]
