"""Scaled features with their queries: on the device, on the host, or on disk, where only batches are read."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn

from cleanrank.rankers.neural.inputs import Batch, batch_of, chunks
from cleanrank.rankers.neural.steps import Forward, cast
from cleanrank.rankers.scaling import Scaling
from cleanrank.stored import StoredFeatures
from cleanrank.types import Array, FloatArray, IntArray

# Documents scored at a time outside of training: activations of the usual network then fit a cache.
CHUNK = 16_384
# Features stay on a GPU if they take at most this share of what is free.
RESIDENT = 0.6


@dataclass(frozen=True, eq=False)
class ResidentDocuments:
    """Scaled features in memory."""

    X: Tensor  # (N, F), on the device, or on the host if they are too many for it
    indptr: IntArray  # row offsets of the queries
    device: torch.device  # where scores are computed

    def rows(self, rows: Tensor) -> Tensor:
        """Features of some rows, on the device."""
        return self.X.index_select(0, rows.to(self.X.device)).to(self.device, non_blocking=True)

    def span(self, start: int, stop: int) -> Tensor:
        """Features of rows in a row, on the device."""
        return self.X[start:stop].to(self.device)

    def blocks(self) -> Iterator[Array]:
        """All of them as arrays, some at a time."""
        yield self.X.cpu().numpy()


@dataclass(frozen=True, eq=False)
class StoredDocuments:
    """Features that stay on disk; rows are read and scaled when they are asked for."""

    X: StoredFeatures
    indptr: IntArray
    device: torch.device
    scaling: Scaling
    names: IntArray | None = None  # what messages call the rows
    subject: str = "X"

    def rows(self, rows: Tensor) -> Tensor:
        """Features of some rows, on the device."""
        places = rows.cpu().numpy()
        names = places if self.names is None else self.names[places]
        return self._scaled(self.X[places].toarray(), names)

    def span(self, start: int, stop: int) -> Tensor:
        """Features of rows in a row, on the device."""
        rows = np.arange(start, min(stop, self.X.shape[0]))
        return self._scaled(self.X.read(start, stop), rows if self.names is None else self.names[rows])

    def blocks(self) -> Iterator[Array]:
        """All of them as arrays, some at a time."""
        for start in range(0, self.X.shape[0], CHUNK):
            yield self.span(start, start + CHUNK).cpu().numpy()

    def _scaled(self, values: Array, names: IntArray) -> Tensor:
        scaled = self.scaling.apply(values, rows=names, subject=self.subject)
        return torch.from_numpy(scaled).to(self.device, non_blocking=True)


Documents: TypeAlias = ResidentDocuments | StoredDocuments


def documents(
    X: Any,
    scaling: Scaling,
    indptr: IntArray,
    device: torch.device,
    *,
    rows: IntArray | None = None,
    subject: str = "X",
) -> Documents:
    """Puts features on one scale and where they are used; ``rows`` is what messages call them."""
    if isinstance(X, StoredFeatures):
        return StoredDocuments(X, indptr, device, scaling, rows, subject)
    tensor = torch.from_numpy(scaling.apply(X, rows=rows, subject=subject))
    if device.type == "cuda" and tensor.nbytes <= RESIDENT * torch.cuda.mem_get_info(device)[0]:
        tensor = tensor.to(device)
    return ResidentDocuments(tensor, indptr, device)


def batch_scores(forward: Forward, listwise: bool, docs: Documents, batch: Batch) -> Tensor:
    """Scores (N,) of the documents of a batch."""
    X = docs.rows(batch.rows)
    scores: Tensor = batch.unpad(forward(batch.pad(X), batch.mask)) if listwise else forward(X)
    return scores


def score_all(network: nn.Module, docs: Documents, *, half: bool = False, chunk: int = CHUNK) -> FloatArray:
    """Scores of all documents, in their order, with the network as it stands in evaluation mode."""
    network.eval()
    forward = cast(network, half, docs.device.type)
    n, parts = docs.X.shape[0], []
    with torch.inference_mode():
        if getattr(network, "listwise", False):
            for queries in chunks(docs.indptr, chunk):
                batch = batch_of(docs.indptr, queries, docs.device)
                if batch.shape[1]:
                    parts.append(batch_scores(forward, True, docs, batch))
        else:
            parts = [forward(docs.span(k, k + chunk)) for k in range(0, n, chunk)]
        scores = torch.cat(parts) if parts else torch.zeros(0)
    return scores.cpu().numpy().astype(np.float64)
