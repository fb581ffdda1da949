"""A trained network with the scale of its features: predicts, and lives in one safetensors file."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from cleanrank.data.arrays import row_order
from cleanrank.errors import BadFileError, error_text, invalid
from cleanrank.rankers.batches import SCALINGS, Scaling
from cleanrank.rankers.checkpoints import read_tensors, write_tensors
from cleanrank.rankers.inputs import QID, feature_matrix, is_frame
from cleanrank.rankers.networks import Network, build_network
from cleanrank.rankers.processes import device_of, settings
from cleanrank.rankers.scoring import documents, score_all
from cleanrank.types import FloatArray
from cleanrank.validation import one_of

FORMAT = "cleanrank network"
VERSION = 1


@dataclass(frozen=True, eq=False)
class NeuralModel:
    """A trained network.

    Attributes:
        network: the module, in evaluation mode.
        kind: one of NETWORKS.
        options: what it was built with.
        scaling: the scale of the features, learnt on training rows.
        best_epoch: the epoch whose weights it has.
        validation_value: the measure on validation data there; None without validation data.
        record: how it was trained, as plain values.
        feature_names: of the columns it was trained on; a data frame is read by them. None if they had none.
    """

    network: Network
    kind: str
    options: Mapping[str, Any]
    scaling: Scaling
    best_epoch: int
    validation_value: float | None = None
    record: Mapping[str, Any] = field(default_factory=dict)
    feature_names: tuple[str, ...] | None = None

    @property
    def n_features(self) -> int:
        """Columns that the network was trained on."""
        return len(self.scaling.shift)

    @property
    def listwise(self) -> bool:
        """Whether scores depend on the other documents of the query."""
        return bool(getattr(self.network, "listwise", False))

    def predict(
        self,
        X: Any,
        *,
        qid: npt.ArrayLike | None = None,
        group: npt.ArrayLike | None = None,
        device: str = "auto",
        n_jobs: int | None = None,
    ) -> FloatArray:
        """Scores of rows, in input order.

        Args:
            X: features; a column "qid" of a data frame names the queries. Columns of a data frame may come
                in any order if the network was trained on named ones.
            qid: the query of every row; read by networks that see whole lists, which need it.
            group: instead of ``qid``, documents per query when rows are contiguous.
            device: where it runs.
            n_jobs: threads; None leaves torch's number.
        """
        if is_frame(X):
            if qid is None and group is None and QID in X.columns:
                qid = np.asarray(X[QID])
            X = feature_matrix(self._columns(X))
        scaled = self.scaling.apply(X)
        n = len(scaled)
        if not self.listwise:
            order, indptr = np.arange(n), np.array([0, n])
        elif qid is None and group is None:
            raise invalid(
                f"network {self.kind!r}",
                "sees whole lists and must know the query of every row",
                "no qid",
                remedy="Give qid= or group=.",
            )
        else:
            order, indptr, _ = row_order(n, qid, group)
        where = device_of(device)
        scores = np.empty(n)
        with settings(n_jobs=n_jobs):
            found = documents(scaled[order] if self.listwise else scaled, indptr, where)
            scores[order] = score_all(self.network.to(where), found)
        return scores

    def _columns(self, frame: Any) -> Any:
        """The columns that it was trained on, in that order."""
        if self.feature_names is None:
            return frame
        there = {str(name): name for name in frame.columns}
        absent = [name for name in self.feature_names if name not in there]
        if absent:
            more = f" and {len(absent) - 1} more" if len(absent) > 1 else ""
            raise invalid(
                "X",
                "must have the columns that the model was trained on",
                f"none named {absent[0]!r}{more}",
                remedy="An array is read by the place of its columns.",
            )
        return frame[[there[name] for name in self.feature_names]]

    def save(self, path: str | PathLike[str]) -> None:
        """Writes weights and scales as safetensors, with what rebuilds the network in its metadata."""
        tensors = {f"network/{k}": v.detach().cpu().numpy() for k, v in self.network.state_dict().items()}
        tensors |= {"scaling/shift": self.scaling.shift, "scaling/factor": self.scaling.factor}
        metadata = {
            "format": FORMAT,
            "version": VERSION,
            "network": self.kind,
            "options": dict(self.options),
            "scaling": self.scaling.kind,
            "best_epoch": self.best_epoch,
            "validation_value": self.validation_value,
            "record": dict(self.record),
            "feature_names": None if self.feature_names is None else list(self.feature_names),
        }
        write_tensors(path, tensors, metadata)


def load_network(path: str | PathLike[str]) -> NeuralModel:
    """Reads a network that ``NeuralModel.save`` wrote."""
    tensors, metadata = read_tensors(path)
    if metadata.get("format") != FORMAT or metadata.get("version") != VERSION:
        found = f"{metadata.get('format')!r} {metadata.get('version')}"
        wanted = f"must hold a {FORMAT} of version {VERSION}"
        raise BadFileError(error_text(f"model file {str(path)!r}", wanted, found), str(path))
    try:
        shift, factor = tensors["scaling/shift"], tensors["scaling/factor"]
        if shift.ndim != 1 or shift.shape != factor.shape:
            raise ValueError(f"scales have shapes {shift.shape} and {factor.shape}")
        scaling = Scaling(one_of("scaling", metadata["scaling"], SCALINGS), shift, factor)
        network = build_network(metadata["network"], len(scaling.shift), **metadata["options"])
        weights = {
            name.removeprefix("network/"): torch.from_numpy(values)
            for name, values in tensors.items()
            if name.startswith("network/")
        }
        network.load_state_dict(weights)
        names = metadata.get("feature_names")
        return NeuralModel(
            network.eval(),
            metadata["network"],
            metadata["options"],
            scaling,
            int(metadata["best_epoch"]),
            metadata["validation_value"],
            dict(metadata["record"]),
            None if names is None else tuple(names),
        )
    except (AttributeError, KeyError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        why = " ".join(str(error).split())
        raise BadFileError(f"model file {str(path)!r} must hold a whole network: {why}.", str(path)) from None
