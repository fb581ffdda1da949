"""What classic rankers learn: weights of features, or weights of thresholds; saved as JSON."""

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from cleanrank.data.files import existing_file, written_whole
from cleanrank.errors import BadFileError, error_text
from cleanrank.rankers.columns import Columns
from cleanrank.rankers.scaling import SCALINGS, Scaling
from cleanrank.types import FloatArray, IntArray
from cleanrank.validation import one_of

VERSION = 1


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassicModel(ABC):
    """What all models have."""

    ranker: str  # the class of the ranker
    params: Mapping[str, Any]  # its parameters
    columns: Columns
    scaling: Scaling  # of the features, learnt on training rows
    best_iteration: int  # rounds, epochs or steps in use
    validation_value: float | None = None  # the measure on validation data at that point
    history: Sequence[Sequence[float]] = ()  # the same after every step, per set of validation rows

    @property
    def n_features(self) -> int:
        """Columns that the model was trained on."""
        return self.columns.count

    def predict(self, X: Any, *, n_jobs: int = 1) -> FloatArray:
        """Scores of rows, in input order; they must have the columns that the model was trained on."""
        return self.scores(self.scaling.apply(self.columns.matrix(X)))

    @abstractmethod
    def scores(self, scaled: FloatArray) -> FloatArray:
        """Scores of rows whose features are scaled."""

    def save(self, path: str | PathLike[str]) -> None:
        """Writes JSON, whose numbers keep all digits."""
        names = self.columns.names
        record: dict[str, Any] = {
            "cleanrank": "ranker",
            "version": VERSION,
            "class": self.ranker,
            "params": dict(self.params),
            "n_features": self.n_features,
            "feature_names": None if names is None else list(names),
            "scaling": self.scaling.kind,
            "shift": self.scaling.shift.tolist(),
            "factor": self.scaling.factor.tolist(),
            "best_iteration": self.best_iteration,
            "validation_value": self.validation_value,
        }
        own = [each.name for each in fields(self) if each.name not in SHARED]
        record["model"] = {name: getattr(self, name).tolist() for name in own}
        with written_whole(path) as part:
            part.write_text(json.dumps(record, default=lambda value: value.tolist()), encoding="utf-8")


SHARED = frozenset(each.name for each in fields(ClassicModel))


@dataclass(frozen=True, eq=False, kw_only=True)
class LinearModel(ClassicModel):
    """A weight for every scaled feature."""

    weights: FloatArray  # (F,), of the scaled features
    thresholds: FloatArray  # (C - 1,), where scores pass from one grade to the next; most rankers have none

    def scores(self, scaled: FloatArray) -> FloatArray:
        """The weighted sum of the features."""
        # Row by row the same bits, whichever rows come together: a matrix product may add in other orders.
        scores: FloatArray = np.einsum("nf,f->n", scaled, self.weights)
        return scores

    @property
    def coef(self) -> FloatArray:
        """(F,), weights of the features as they were given."""
        coef: FloatArray = self.weights * self.scaling.factor
        return coef

    @property
    def intercept(self) -> float:
        """What is added to X @ coef."""
        return -float(self.scaling.shift @ self.coef)


@dataclass(frozen=True, eq=False, kw_only=True)
class StumpModel(ClassicModel):
    """A sum over rounds of weight x [feature > threshold]."""

    features: IntArray  # (T,)
    thresholds: FloatArray  # (T,), of the scaled features
    weights: FloatArray  # (T,)

    def scores(self, scaled: FloatArray) -> FloatArray:
        """Feature by feature, the weights of the thresholds that a value exceeds."""
        total = np.zeros(len(scaled))
        for feature in np.unique(self.features):
            mine = np.flatnonzero(self.features == feature)
            mine = mine[np.argsort(self.thresholds[mine], kind="stable")]
            sums = np.concatenate(([0.0], np.cumsum(self.weights[mine])))
            total += sums[np.searchsorted(self.thresholds[mine], scaled[:, feature], side="left")]
        return total

    @property
    def importances(self) -> FloatArray:
        """(F,), the absolute weights of each feature's thresholds, as shares of their sum."""
        sums = np.bincount(self.features, np.abs(self.weights), self.n_features).astype(np.float64)
        shares: FloatArray = sums / max(float(sums.sum()), np.finfo(float).tiny)
        return shares


Model: TypeAlias = LinearModel | StumpModel


def load_model(path: str | PathLike[str]) -> Model:
    """Reads a model that ``ClassicModel.save`` wrote."""
    file = existing_file(path)
    try:
        return _read(json.loads(Path(file).read_text(encoding="utf-8")))
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError, RecursionError) as error:
        raise damaged(file, error) from None


def damaged(path: str | PathLike[str], error: Exception) -> BadFileError:
    """The error that names the file and says what is wrong in it."""
    why = " ".join(str(error).split())[:200] or type(error).__name__
    rule = "must be a whole ranker as JSON, as save writes it"
    return BadFileError(error_text(f"model file {str(path)!r}", rule, why), str(path))


def _read(record: Mapping[str, Any]) -> Model:
    if record["version"] != VERSION:
        raise ValueError(f"version {record['version']}")
    n, names = int(record["n_features"]), record["feature_names"]
    shift, factor = (_numbers(record, name, n) for name in ("shift", "factor"))
    scaling = Scaling(one_of("scaling", record["scaling"], SCALINGS), shift, factor)
    if names is not None and len(names) != n:
        raise ValueError(f"{len(names)} feature_names for {n} features")
    own: Mapping[str, Any] = record["model"]
    shared: dict[str, Any] = {
        "ranker": str(record["class"]),
        "params": dict(record["params"]),
        "columns": Columns(n, None if names is None else tuple(map(str, names))),
        "scaling": scaling,
        "best_iteration": int(record["best_iteration"]),
        "validation_value": record["validation_value"],
    }
    if "features" not in own:
        thresholds = _numbers(own, "thresholds")
        return LinearModel(**shared, weights=_numbers(own, "weights", n), thresholds=thresholds)
    features = np.asarray(own["features"], dtype=np.int64).reshape(-1)
    if len(features) and not 0 <= features.min() <= features.max() < n:
        raise ValueError(f"features must lie in 0..{n - 1}")
    thresholds, weights = (_numbers(own, name, len(features)) for name in ("thresholds", "weights"))
    return StumpModel(**shared, features=features, thresholds=thresholds, weights=weights)


def _numbers(record: Mapping[str, Any], name: str, length: int | None = None) -> FloatArray:
    values = np.asarray(record[name], dtype=np.float64)
    if values.ndim != 1 or (length is not None and len(values) != length) or not np.isfinite(values).all():
        raise ValueError(f"{name} must hold {'' if length is None else f'{length} '}finite numbers")
    return values
