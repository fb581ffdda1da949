"""A trained network with the scale of its features: predicts, and lives in one safetensors file."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from cleanrank.errors import BadFileError, invalid
from cleanrank.metrics.evaluation import evaluate_mean
from cleanrank.metrics.measure import Measure
from cleanrank.ragged import row_order
from cleanrank.rankers.columns import Columns, frame_qid
from cleanrank.rankers.neural.checkpoint import read_tensors, weights_of, write_tensors
from cleanrank.rankers.neural.device import device_of, settings
from cleanrank.rankers.neural.documents import Documents, documents, score_all
from cleanrank.rankers.neural.networks import Network, build_network
from cleanrank.rankers.scaling import SCALINGS, Scaling, fit_scaling
from cleanrank.types import FloatArray, IntArray, RankingData
from cleanrank.validation import one_of

if TYPE_CHECKING:
    from cleanrank.rankers.neural.ranker import NeuralRanker

FORMAT = "cleanrank network"
VERSION = 1


@dataclass(frozen=True, eq=False)
class NeuralModel:
    """A trained network."""

    network: Network  # the module, in evaluation mode
    kind: str  # one of NETWORKS
    options: Mapping[str, Any]  # what it was built with
    scaling: Scaling  # the scale of the features, learnt on training rows
    best_epoch: int  # the epoch whose weights it has
    # The measure on validation data there; None without validation data.
    validation_value: float | None = None
    record: Mapping[str, Any] = field(default_factory=dict)  # how it was trained, as plain values
    # Of the columns it was trained on; a data frame is read by them. None if they had none.
    feature_names: tuple[str, ...] | None = None

    @property
    def n_features(self) -> int:
        """Columns that the network was trained on."""
        return len(self.scaling.shift)

    @property
    def columns(self) -> Columns:
        """Their names; all of them hold numbers."""
        return Columns(self.n_features, self.feature_names)

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
        if qid is None and group is None:
            qid = frame_qid(X)
        matrix = self.columns.matrix(X)
        n = matrix.shape[0]
        if not self.listwise:
            order, indptr = np.arange(n), np.array([0, n])
        elif qid is None and group is None:
            rule = "sees whole lists and must know the query of every row"
            raise invalid(f"network {self.kind!r}", rule, remedy="Give qid= or group=.")
        else:
            order, indptr, _ = row_order(n, qid, group)
        where = device_of(device)
        scores = np.empty(n)
        with settings(n_jobs=n_jobs):
            rows = matrix[order] if self.listwise else matrix
            docs = documents(rows, self.scaling, indptr, where, rows=order)
            scores[order] = score_all(self.network.to(where), docs)
        return scores

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
    tensors, metadata = read_tensors(path, "model file", FORMAT, VERSION)
    try:
        shift, factor = tensors["scaling/shift"], tensors["scaling/factor"]
        if shift.ndim != 1 or shift.shape != factor.shape:
            raise ValueError(f"scales have shapes {shift.shape} and {factor.shape}")
        scaling = Scaling(one_of("scaling", metadata["scaling"], SCALINGS), shift, factor)
        network = build_network(metadata["network"], len(scaling.shift), **metadata["options"])
        network.load_state_dict(weights_of(tensors, "network/"))
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


class Task:
    """What every training of a ranker needs: scaled documents, a fresh network, a device.

    ``rows`` are what messages call the rows of X, ``names`` those of its columns.
    """

    def __init__(
        self,
        ranker: "NeuralRanker",
        X: Any,
        indptr: IntArray,
        rows: IntArray | None = None,
        names: tuple[str, ...] | None = None,
    ) -> None:
        Measure.parse(ranker.measure)
        options = ranker.network_options or {}
        if not isinstance(options, Mapping):
            raise invalid("network_options", "must map names to values", repr(options))
        self.device, self.names = device_of(ranker.device), names
        self.scaling: Scaling = fit_scaling(X, ranker.scaling, rows=rows)
        self.network: Network = build_network(ranker.network, X.shape[1], seed=ranker.random_state, **options)
        self.listwise = bool(getattr(self.network, "listwise", False))
        self.docs: Documents = documents(X, self.scaling, np.asarray(indptr), self.device, rows=rows)

    def validator(
        self, data: RankingData, measure: str, *, half: bool = False
    ) -> Callable[[nn.Module], float]:
        """The mean of a measure on validation data as a function of the network."""
        held = self.validation_documents(data)
        return lambda network: evaluate_mean(score_all(network, held, half=half), data, measure)

    def validation_documents(self, data: RankingData) -> Documents:
        """Validation documents on the scale of the training rows, columns by name where both have names."""
        if not data.n_docs:
            raise invalid("validation data", "must have documents", remedy="Leave them out.")
        data = Columns(len(self.scaling.shift), self.names).align(data, "validation data")
        subject = "X of validation data"
        return documents(data.X, self.scaling, data.indptr, self.device, rows=data.row_ids, subject=subject)


def label_columns(
    data: RankingData, device: torch.device, reads: Sequence[str]
) -> tuple[Tensor, dict[str, Tensor]]:
    """Labels, and what else a loss reads of documents, as tensors on a device.

    Weights and gains are read if the data have them, positions if they are among what the loss ``reads``.
    """

    def tensor(values: Any) -> Tensor:
        return torch.from_numpy(np.array(values, dtype=np.float32)).to(device)

    columns: dict[str, Any] = {"weights": data.weights, "gains": data.gains}
    if "positions" in reads:
        if data.positions is None:
            rule = "must have positions for a loss that weighs by rank"
            remedy = "Give position= the rank at which each row was shown."
            raise invalid("training data", rule, remedy=remedy)
        columns["positions"] = data.positions
    return tensor(data.y), {name: tensor(values) for name, values in columns.items() if values is not None}


def checked_preferences(preferences: npt.ArrayLike, n: int) -> IntArray:
    """Pairs of rows (better, worse) of n documents, as integers."""
    pairs = np.asarray(preferences)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu" or not len(pairs):
        raise invalid(
            "preferences", "must be rows (better document, worse document)", f"{pairs.dtype} {pairs.shape}"
        )
    outside = (pairs < 0) | (pairs >= n)
    if outside.any():
        at = f"pair {int(np.argmax(outside.any(axis=1)))}"
        raise invalid("preferences", f"must name rows from 0 to {n - 1}", int(pairs[outside][0]), at=at)
    same = pairs[:, 0] == pairs[:, 1]
    if same.any():
        raise invalid("preferences", "must name two different rows", at=f"pair {int(np.argmax(same))}")
    return pairs.astype(np.int64)
