"""Peers drawn from a batch: the logit of one member, the target of another, both drawn apart (Wu 2022).

Members (documents or pairs) are drawn with the probability that they have in the risk, so that the mean over
the draws is the risk of expected peers. There are as many draws as members. The draws of pairs are made in
blocks; sums and gradients are computed together and only the gradient (B, L) is kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from cleanrank.errors import invalid
from cleanrank.losses.binary import BinaryLoss
from cleanrank.losses.torch.pair_sums import applied
from cleanrank.losses.torch.weights import Swap

DRAWS = 1 << 18


def needs_generator(what: str, generator: torch.Generator | None) -> torch.Generator:
    """The generator; None is refused."""
    if generator is None:
        raise invalid(
            what, "must have a source of randomness", None, remedy="Pass generator=torch.Generator()."
        )
    return generator


def uniforms(n: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """Numbers in [0, 1), drawn where the generator lives."""
    return torch.rand(n, generator=generator, device=generator.device, dtype=torch.float64).to(device)


class Urn:
    """Members drawn with probabilities proportional to their weights.

    >>> urn = Urn(torch.tensor([0.0, 2.0, 0.0]))
    >>> urn.draw(2, torch.Generator().manual_seed(0)).tolist(), float(urn.total)
    ([1, 1], 2.0)
    """

    def __init__(self, weights: Tensor) -> None:
        self.ends = weights.to(torch.float64).cumsum(0)
        self.total = self.ends[-1]

    def draw(self, n: int, generator: torch.Generator) -> Tensor:
        """The places of n members."""
        return self.find(uniforms(n, generator, self.ends.device) * self.total)

    def find(self, points: Tensor) -> Tensor:
        """The members on whose stretch of the line points lie."""
        # Rounding can put a point on the far end, which belongs to nobody.
        inside = torch.minimum(points, torch.nextafter(self.total, torch.zeros_like(self.total)))
        return torch.searchsorted(self.ends, inside, right=True)


@dataclass(frozen=True)
class PairUrn:
    """Ordered pairs of lists, drawn with probability c w_i w_j; documents are counted through all lists.

    Documents stand list by list in the order of labels, so that those a document does not pair with (itself,
    or with strict pairs its whole grade) are one stretch of the line of weights.
    """

    document: Tensor
    first: Urn
    second: Urn
    list_start: Tensor
    list_end: Tensor
    gap_start: Tensor
    gap_end: Tensor

    def draw(self, n: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """The documents (i, j) of n pairs."""
        i = self.first.draw(n, generator)
        gap = self.gap_end[i] - self.gap_start[i]
        room = self.list_end[i] - self.list_start[i] - gap
        point = self.list_start[i] + uniforms(n, generator, i.device) * room
        j = self.second.find(torch.where(point >= self.gap_start[i], point + gap, point))
        return self.document[i], self.document[j]


def pair_urn(kind: str, labels: Tensor, weights: Tensor, coefficients: Tensor) -> PairUrn:
    """The pairs of all lists; ``kind`` is all_ordered or strict_both, ``weights`` are 0 at padding."""
    length = labels.shape[1]
    w = weights.to(torch.float64)
    order = labels.masked_fill(weights == 0, torch.inf).argsort(dim=1, stable=True)
    y, w = labels.gather(1, order), w.gather(1, order)
    second = Urn(w.reshape(-1))
    ends = second.ends.reshape(w.shape)
    starts = torch.cat((ends.new_zeros(1), second.ends[:-1])).reshape(w.shape)
    gap_start, gap_end = starts, ends
    if kind == "strict_both":
        y = y.masked_fill(w == 0, torch.inf).contiguous()
        low = torch.searchsorted(y, y, right=False)
        high = torch.searchsorted(y, y, right=True) - 1
        gap_start, gap_end = starts.gather(1, low), ends.gather(1, high)
    list_start, list_end = starts[:, :1].expand_as(w), ends[:, -1:].expand_as(w)
    partners = (list_end - list_start - (gap_end - gap_start)).clamp(min=0.0)
    first = Urn((coefficients.to(torch.float64)[:, None] * w * partners).reshape(-1))
    flat = (order + length * torch.arange(len(w), device=w.device)[:, None]).reshape(-1)
    columns = (t.reshape(-1) for t in (list_start, list_end, gap_start, gap_end))
    return PairUrn(flat, first, second, *columns)


@dataclass(frozen=True)
class PairPeers:
    """Peers of the pairs of a batch: where they are drawn from, and the loss on them."""

    urn: PairUrn
    labels: Tensor
    loss: BinaryLoss
    sigma: float
    draws: int
    generator: torch.Generator
    swap: Swap | None = None

    def blocks(self) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Documents (i, j) and a target from another pair, some draws at a time."""
        y = self.labels.reshape(-1)
        for start in range(0, self.draws, DRAWS):
            n = min(DRAWS, self.draws - start)
            i, j = self.urn.draw(n, self.generator)
            a, b = self.urn.draw(n, self.generator)
            yield i, j, (y[a] > y[b]).to(y.dtype)


class _PairPeers(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: Tensor, peers: PairPeers) -> Tensor:
        s = scores.reshape(-1)
        total, gradient = s.new_zeros(()), torch.zeros_like(s)
        for i, j, target in peers.blocks():
            logit = peers.sigma * (s[i] - s[j])
            weight = 1.0 if peers.swap is None else peers.swap.at(i, j)
            total += (weight * peers.loss.value(logit, target)).sum()
            if ctx.needs_input_grad[0]:
                slope = weight * peers.loss.gradient(logit, target)
                gradient.index_add_(0, i, slope).index_add_(0, j, slope, alpha=-1)
        # Each draw stands for an equal part of the risk's total weight.
        scale = (peers.urn.first.total / max(1, peers.draws)).to(s.dtype)
        ctx.save_for_backward((gradient * (peers.sigma * scale)).reshape(scores.shape))
        return total * scale

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, given: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return given * gradient, None


def pair_peers(scores: Tensor, peers: PairPeers) -> Tensor:
    """The risk of drawn peers, before it is multiplied by alpha."""
    if peers.draws == 0:
        return scores.sum() * 0.0
    return applied(_PairPeers, scores, peers)


def point_peers(
    logits: Tensor, targets: Tensor, weights: Tensor, loss: BinaryLoss, generator: torch.Generator
) -> Tensor:
    """The same for flat members: the sum over draws of l(logit of one, target of another).

    ``weights`` (n,) are the members' weights in the risk; gradients flow through the logits.
    """
    if len(logits) == 0:
        return logits.sum()
    urn = Urn(weights)
    j, k = (urn.draw(len(logits), generator) for _ in range(2))
    found: Tensor = loss.value(logits[j], targets[k]).mean() * urn.total.to(logits.dtype)
    return found
