"""A trained model of clicks: predicts, and lives in one safetensors file or a folder with it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from cleanrank.data.behaviours import ClickRows, Layout
from cleanrank.data.vocabulary import Vocabulary
from cleanrank.errors import BadFileError, invalid
from cleanrank.metrics.calibration import Calibration
from cleanrank.rankers import CLICK_MODEL, MODEL_FILE
from cleanrank.rankers.ctr import MODELS
from cleanrank.rankers.ctr.resident import check_layout, logits, resident
from cleanrank.rankers.neural.checkpoint import read_tensors, weights_of, write_tensors
from cleanrank.rankers.neural.device import device_of, settings
from cleanrank.types import Array, FloatArray
from cleanrank.validation import check_integer, check_path, one_of

VERSION = 2
NETWORK, TABLES = "network/", "vocabulary/"


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A trained network with the fields that it reads."""

    network: nn.Module  # in evaluation mode
    kind: str  # one of MODELS
    options: Mapping[str, Any]  # what it was built with
    layout: Layout  # fields and their sizes
    best_epoch: int  # the epoch whose weights it has
    validation_value: float | None = None  # the AUC on validation rows there; None without
    record: Mapping[str, Any] = field(default_factory=dict)  # how it was trained, as plain values
    calibration: Calibration | None = None  # from its probabilities to true ones
    vocabulary: Vocabulary | None = None  # which ids its codes stand for; None if that is not known

    @property
    def history(self) -> int:
        """Behaviours of a history at the most."""
        return int(self.options["history"])

    def predict(self, rows: ClickRows, *, device: str = "auto", n_jobs: int | None = None) -> FloatArray:
        """Logits of rows, in their order."""
        check_layout(rows, self.layout, self.vocabulary, self.history)
        where = device_of(device)
        with settings(n_jobs=n_jobs):
            return logits(self.network.to(where), resident(rows, where, self.history))

    def save(self, path: str | PathLike[str]) -> None:
        """Writes weights and tables of ids as safetensors, with what rebuilds the network in the metadata.

        Args:
            path: a file that ends in .safetensors, else a folder, which gets a file model.safetensors.
        """
        file = model_file(path)
        file.parent.mkdir(parents=True, exist_ok=True)
        weights = self.network.state_dict().items()
        tensors = {f"{NETWORK}{name}": value.detach().cpu().numpy() for name, value in weights}
        if self.vocabulary is not None:
            tensors |= {f"{TABLES}{name}": ids for name, ids in self.vocabulary.arrays().items()}
        metadata = {
            "format": CLICK_MODEL,
            "version": VERSION,
            "model": self.kind,
            "options": dict(self.options),
            "layout": asdict(self.layout),
            "best_epoch": self.best_epoch,
            "validation_value": self.validation_value,
            "record": dict(self.record),
            "calibration": None if self.calibration is None else self.calibration.to_dict(),
            "vocabulary": None if self.vocabulary is None else self.vocabulary.fingerprint,
        }
        write_tensors(file, tensors, metadata)


def model_file(path: str | PathLike[str]) -> Path:
    """The file that a model is saved in: the path if it ends in .safetensors, else one in that folder."""
    file = check_path(path)
    if file.suffix == ".safetensors":
        return file
    if file.exists() and not file.is_dir():
        remedy = "Remove the file, or name a folder or a file that ends in .safetensors."
        raise invalid("the folder of a model", "must not be a file", repr(str(file)), remedy=remedy)
    return file / MODEL_FILE


def load_click_model(path: str | PathLike[str]) -> TrainedModel:
    """Reads what ``TrainedModel.save`` wrote, from the file or its folder."""
    file = Path(path) / MODEL_FILE if Path(path).is_dir() else Path(path)
    tensors, metadata = read_tensors(file, "model file", CLICK_MODEL, VERSION)
    try:
        check_integer("history", metadata["options"]["history"], least=1)
        layout, curve = Layout(**metadata["layout"]), metadata["calibration"]
        network = MODELS[one_of("model", metadata["model"], MODELS)](layout, **metadata["options"])
        weights = weights_of(tensors, NETWORK)
        for name, values in weights.items():
            if values.is_floating_point() and not values.isfinite().all():
                raise ValueError(f"weights {name} are not all finite")
        network.load_state_dict(weights)
        return TrainedModel(
            network.eval(),
            metadata["model"],
            metadata["options"],
            layout,
            int(metadata["best_epoch"]),
            metadata["validation_value"],
            dict(metadata["record"]),
            None if curve is None else Calibration.from_dict(curve),
            _vocabulary(tensors, layout, metadata["vocabulary"]),
        )
    except (AttributeError, KeyError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        why = " ".join(str(error).split())
        raise BadFileError(f"model file {str(file)!r} must hold a whole model: {why}.", str(file)) from None


def _vocabulary(tensors: Mapping[str, Array], layout: Layout, fingerprint: str | None) -> Vocabulary | None:
    """The tables of ids; raises ValueError or KeyError unless they are those that were saved."""
    if fingerprint is None:
        return None
    arrays = {n.removeprefix(TABLES): ids for n, ids in tensors.items() if n.startswith(TABLES)}
    vocabulary = Vocabulary.of_arrays(arrays, asdict(layout))
    if vocabulary.fingerprint != fingerprint:
        raise ValueError(
            f"its tables of ids have the fingerprint {vocabulary.fingerprint[:12]}, not {fingerprint[:12]}"
        )
    if any(vocabulary.sizes(kind) != getattr(layout, kind) for kind in ("user", "item")):
        raise ValueError("its tables of ids have other sizes than its network")
    return vocabulary


def probabilities(scores: FloatArray) -> FloatArray:
    """Logits as probabilities.

    >>> probabilities(np.array([-800.0, 0.0, 800.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    small = np.exp(-np.abs(scores))
    return np.where(scores >= 0, 1 / (1 + small), small / (1 + small))
