"""What a neural ranker's training starts from: documents on one scale, labels as tensors, a fresh network."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from cleanrank.errors import invalid
from cleanrank.evaluate.measures import Measure
from cleanrank.rankers.batches import Scaling, fit_scaling
from cleanrank.rankers.networks import Network, build_network
from cleanrank.rankers.processes import device_of
from cleanrank.rankers.scoring import Documents, documents
from cleanrank.types import IntArray, RankingData


class Settings(Protocol):
    """The parameters of a ranker that a task reads."""

    network: str
    network_options: Mapping[str, Any] | None
    scaling: str
    measure: str
    random_state: int
    device: str


class Task:
    """What every training of a ranker needs: scaled documents, a fresh network, a device.

    Args:
        ranker: its parameters.
        X: features of the training rows.
        indptr: row offsets of their queries.
        rows: what the rows are called in messages.
        names: of the features.
    """

    def __init__(
        self,
        ranker: Settings,
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
        self.docs: Documents = documents(self.scaling.apply(X, rows=rows), np.asarray(indptr), self.device)

    def held(self, data: RankingData) -> Documents:
        """Validation documents on the scale of the training rows, columns by name where both have names."""
        if not data.n_docs:
            raise invalid("validation data", "must have documents", "none", remedy="Leave them out.")
        X, known = data.X, data.feature_names
        if self.names is not None and known is not None and known != self.names:
            if set(known) != set(self.names):
                odd = sorted(set(known) ^ set(self.names))
                raise invalid("validation data", "must have the columns of the training data", repr(odd[0]))
            X = X[:, [known.index(name) for name in self.names]]
        scaled = self.scaling.apply(X, rows=data.row_ids, subject="X of validation data")
        return documents(scaled, data.indptr, self.device)


def label_columns(
    data: RankingData, device: torch.device, reads: Sequence[str]
) -> tuple[Tensor, dict[str, Tensor]]:
    """Labels, and what else a loss reads of documents, as tensors on a device.

    Args:
        data: where they come from; weights and gains are read if it has them.
        device: where they go.
        reads: "positions" for a loss that weighs by the rank at which a document was shown.
    """

    def tensor(values: Any) -> Tensor:
        return torch.from_numpy(np.array(values, dtype=np.float32)).to(device)

    given: dict[str, Any] = {"weights": data.weights, "gains": data.gains}
    if "positions" in reads:
        if data.positions is None:
            raise invalid(
                "training data", "must have positions for a loss that weighs by rank", "none",
                remedy="Give position= the rank at which each row was shown.",
            )  # fmt: skip
        given["positions"] = data.positions
    return tensor(data.y), {name: tensor(values) for name, values in given.items() if values is not None}


def checked_preferences(preferences: npt.ArrayLike, n: int) -> IntArray:
    """Pairs of rows (better, worse) of n documents, as whole numbers.

    >>> checked_preferences([[0, 1]], 2).tolist()
    [[0, 1]]
    """
    found = np.asarray(preferences)
    if found.ndim != 2 or found.shape[1] != 2 or found.dtype.kind not in "iu" or not len(found):
        raise invalid(
            "preferences", "must be rows (better document, worse document)", f"{found.dtype} {found.shape}"
        )
    outside = (found < 0) | (found >= n)
    if outside.any():
        at = f"pair {int(np.argmax(outside.any(axis=1)))}"
        raise invalid("preferences", f"must name rows from 0 to {n - 1}", int(found[outside][0]), at=at)
    same = found[:, 0] == found[:, 1]
    if same.any():
        raise invalid(
            "preferences", "must be between two documents", "one", at=f"pair {int(np.argmax(same))}"
        )
    return found.astype(np.int64)
