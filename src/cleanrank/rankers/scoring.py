"""Documents on a device and how a network scores them, in training and after it.

Documents go through a document network flat; only their scores are padded to (B, L). A list network gets its
documents padded.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from cleanrank.rankers.batches import Batch, batch_of, chunks
from cleanrank.rankers.loop import Forward, cast
from cleanrank.types import Array, FloatArray, IntArray

# Documents scored at a time outside of training: activations of the usual network then fit a cache.
CHUNK = 16_384
# Features stay on a GPU if they take at most this share of what is free.
RESIDENT = 0.6


@dataclass(frozen=True, eq=False)
class Documents:
    """Scaled features with their queries.

    Attributes:
        X: (N, F), on the device, or on the host if they are too many for it.
        indptr: row offsets of the queries.
        device: where scores are computed.
    """

    X: Tensor
    indptr: IntArray
    device: torch.device

    def rows(self, rows: Tensor) -> Tensor:
        """Features of some rows, on the device."""
        return self.X.index_select(0, rows.to(self.X.device)).to(self.device, non_blocking=True)


def documents(X: Array, indptr: IntArray, device: torch.device) -> Documents:
    """Puts features where they are used."""
    tensor = torch.from_numpy(X)
    if device.type == "cuda" and X.nbytes <= RESIDENT * torch.cuda.mem_get_info(device)[0]:
        tensor = tensor.to(device)
    return Documents(tensor, indptr, device)


@dataclass(frozen=True, eq=False)
class Padded:
    """A batch on its device: what goes where when scores are padded.

    Attributes:
        shape: (B, L).
        rows: (N,), the documents of the batch.
        places: (N,), where their scores go among B x L.
        mask: (B, L), False at padding.
    """

    shape: tuple[int, int]
    rows: Tensor
    places: Tensor
    mask: Tensor

    def pad(self, flat: Tensor) -> Tensor:
        """Values of the documents (N, ...) as (B, L, ...); 0 at padding."""
        B, L = self.shape
        found = flat.new_zeros(B * L, *flat.shape[1:]).index_copy(0, self.places, flat)
        return found.view(B, L, *flat.shape[1:])

    def unpad(self, padded: Tensor) -> Tensor:
        """The inverse of ``pad``."""
        return padded.flatten(0, 1).index_select(0, self.places)


def on_device(batch: Batch, device: torch.device) -> Padded:
    """A batch's indices as tensors."""
    B, L = batch.shape
    lengths = torch.from_numpy(batch.lengths).to(device, non_blocking=True)
    mask = torch.arange(L, device=device) < lengths[:, None]
    rows = torch.from_numpy(batch.rows).to(device, non_blocking=True)
    return Padded((B, L), rows, torch.from_numpy(batch.places).to(device, non_blocking=True), mask)


def padded_scores(forward: Forward, listwise: bool, docs: Documents, batch: Padded) -> Tensor:
    """Scores (B, L) of a batch."""
    X = docs.rows(batch.rows)
    if listwise:
        found: Tensor = forward(batch.pad(X), batch.mask)
        return found
    return batch.pad(forward(X))


def score_all(network: nn.Module, docs: Documents, *, half: bool = False, chunk: int = CHUNK) -> FloatArray:
    """Scores of all documents, in their order, with the network as it stands in evaluation mode."""
    network.eval()
    forward = cast(network, half, docs.device.type)
    n, found = docs.X.shape[0], []
    with torch.inference_mode():
        if getattr(network, "listwise", False):
            for queries in chunks(docs.indptr, chunk):
                batch = on_device(batch_of(docs.indptr, queries), docs.device)
                if batch.shape[1]:
                    found.append(batch.unpad(padded_scores(forward, True, docs, batch)))
        else:
            found = [forward(docs.X[k : k + chunk].to(docs.device)) for k in range(0, n, chunk)]
        scores = torch.cat(found) if found else torch.zeros(0)
    return scores.cpu().numpy().astype(np.float64)
