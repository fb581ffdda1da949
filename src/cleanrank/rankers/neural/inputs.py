"""Which documents are seen together: batches of queries of like length.

Queries are drawn in a new order in every epoch and cut into batches of queries of about the same length, so
that padding scores to the longest of a batch wastes little; documents themselves are never padded.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from cleanrank.types import IntArray
from cleanrank.validation import check_integer

CPU = torch.device("cpu")
# Lengths are compared after a random change of up to this share, so that batches differ between epochs.
JITTER = 0.1
# Pairs of documents (B x L x L) that a batch may hold: what pairwise losses allocate, 64 MiB an array.
MOST_PAIRS = 1 << 24


@dataclass(frozen=True, eq=False)
class Batch:
    """B queries that are seen together, the longest of L documents."""

    shape: tuple[int, int]  # (B, L)
    rows: Tensor  # (N,), the documents of the batch
    places: Tensor  # (N,), where their scores go among the B x L places of the padded batch
    mask: Tensor  # (B, L), False at padding
    spare: int = 0  # places behind the others, for documents that are there to fill the batch up

    def pad(self, flat: Tensor) -> Tensor:
        """Values of the documents (N, ...) as (B, L, ...); 0 at padding."""
        B, L = self.shape
        padded = flat.new_zeros(B * L + self.spare, *flat.shape[1:]).index_copy(0, self.places, flat)
        return padded[: B * L].view(B, L, *flat.shape[1:])

    def unpad(self, padded: Tensor) -> Tensor:
        """The inverse of ``pad``."""
        return padded.flatten(0, 1).index_select(0, self.places)


def batch_of(indptr: IntArray, queries: IntArray, device: torch.device = CPU) -> Batch:
    """The batch of some queries, its indices on a device.

    >>> batch = batch_of(np.array([0, 2, 5]), np.array([1, 0]))
    >>> batch.rows.tolist(), batch.places.tolist(), batch.shape
    ([2, 3, 4, 0, 1], [0, 1, 2, 3, 4], (2, 3))
    """

    def tensor(values: IntArray) -> Tensor:
        return torch.from_numpy(values).to(device, non_blocking=True)

    starts, lengths = indptr[queries], indptr[queries + 1] - indptr[queries]
    place = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    longest = int(lengths.max(initial=0))
    places = np.repeat(np.arange(len(queries)) * longest, lengths) + place
    mask = torch.arange(longest, device=device) < tensor(lengths)[:, None]
    return Batch((len(queries), longest), tensor(np.repeat(starts, lengths) + place), tensor(places), mask)


class Bucket(NamedTuple):
    """What batches of like shape are filled up to, so that all of them launch the same work."""

    lists: int
    longest: int
    documents: int


def bucket_of(lengths: IntArray) -> Bucket:
    """The bucket of a batch of lists of these lengths.

    Lists and their length, which are padded for the loss alone, go up to the next power of 2; documents, all
    of which pass through the network, to the next of 8 steps between two powers.

    >>> bucket_of(np.array([70, 40]))
    Bucket(lists=2, longest=128, documents=112)
    """
    documents = int(lengths.sum())
    step = max(1, _power(documents) // 16)
    return Bucket(_power(len(lengths)), _power(int(lengths.max(initial=1))), -(-documents // step) * step)


def _power(n: int) -> int:
    """The lowest power of 2 that is at least n."""
    return 1 << max(0, n - 1).bit_length()


def offsets_of(indptr: IntArray, queries: IntArray, bucket: Bucket) -> IntArray:
    """What ``filled_batch`` reads of some queries, (4, lists + 1).

    For every list: where it ends in the batch, what leads from a place there to a row and to a place among
    padded lists, and its length. The last list takes the documents that fill the batch up.
    """
    lists, n = bucket.lists, len(queries)
    found = np.zeros((4, lists + 1), dtype=np.int64)
    ends, to_row, to_place, lengths = found
    starts = indptr[queries]
    lengths[:n] = indptr[queries + 1] - starts
    ends[:] = lengths.cumsum()
    begins = ends - lengths
    to_row[:n] = starts - begins[:n]
    to_place[:] = np.arange(lists + 1) * bucket.longest - begins
    to_row[n:] = -begins[n:]
    ends[-1] = np.iinfo(np.int64).max
    return found


def filled_batch(offsets: Tensor, bucket: Bucket, n_documents: int) -> Batch:
    """The batch of some queries, filled up; computed where the offsets are, without waiting for any value.

    >>> bucket = Bucket(2, 4, 4)
    >>> offsets = offsets_of(np.array([0, 2, 5]), np.array([1]), bucket)
    >>> batch = filled_batch(torch.from_numpy(offsets), bucket, 5)
    >>> batch.rows.tolist(), batch.pad(torch.arange(1.0, 5.0)).tolist()
    ([2, 3, 4, 0], [[1.0, 2.0, 3.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    """
    lists, longest, documents = bucket
    ends, to_row, to_place, lengths = offsets
    place = torch.arange(documents, device=offsets.device)
    which = torch.searchsorted(ends, place, right=True)
    rows = (to_row[which] + place).clamp_(max=n_documents - 1)
    mask = torch.arange(longest, device=offsets.device) < lengths[:lists, None]
    places = (to_place[which] + place).clamp_(max=lists * longest)
    return Batch((lists, longest), rows, places, mask, spare=1)


def bucketed(
    lengths: IntArray, batch_queries: int, rng: np.random.Generator, *, most_pairs: int = MOST_PAIRS
) -> list[IntArray]:
    """All queries with documents, cut into batches of about one length, batches in random order.

    A batch has at most ``batch_queries`` queries and ``most_pairs`` B x L x L, which one query may exceed.
    """
    check_integer("batch_queries", batch_queries, least=1)
    present = rng.permutation(np.flatnonzero(lengths > 0))
    shaken = lengths[present] * rng.uniform(1 - JITTER, 1 + JITTER, len(present))
    present = present[np.argsort(shaken, kind="stable")]
    cut = list(_cut(lengths[present], batch_queries, most_pairs))
    return [present[cut[k][0] : cut[k][1]] for k in rng.permutation(len(cut))]


def _cut(lengths: IntArray, batch_queries: int, most_pairs: int) -> Iterator[tuple[int, int]]:
    start = 0
    while start < len(lengths):
        longest = np.maximum.accumulate(lengths[start : start + batch_queries])
        fits = np.arange(1, len(longest) + 1) * longest**2 <= most_pairs
        size = len(fits) if fits.all() else max(1, int(np.argmin(fits)))
        yield start, start + size
        start += size


def chunks(indptr: IntArray, documents: int) -> Iterator[IntArray]:
    """Queries in their order, as many at a time as have about ``documents`` documents; for scoring."""
    start, total = 0, len(indptr) - 1
    while start < total:
        stop = int(np.searchsorted(indptr, indptr[start] + documents, side="right")) - 1
        stop = min(max(stop, start + 1), total)
        yield np.arange(start, stop)
        start = stop
