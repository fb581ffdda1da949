"""Losses on whole lists, in torch: ListNet, softmax, ListMLE and approximate NDCG.

Scores s and labels y are (B, L) tensors with a mask. Each function gives the loss of every list (B,) and
which lists count (B,); the others are 0. A document of weight w stands for w copies of itself where that has
a meaning.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from cleanrank.errors import invalid
from cleanrank.losses.torch.batch import Batch, BatchLoss, needs_generator
from cleanrank.losses.torch.pair_sums import applied, block_size, row_blocks
from cleanrank.losses.torch.swap_weights import discounts, gains_of
from cleanrank.metrics.measure import Measure

TIES = ("random", "index")


def listnet(scores: Tensor, labels: Tensor, mask: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """Cross-entropy of the top-one probabilities of labels and of scores (Cao 2007).

    - sum_i p_i log q_i,  p = softmax(y), q = softmax(s). Lists of one document count, with loss 0.

    >>> listnet(torch.zeros(1, 2), torch.tensor([[0.0, 3.0]]), torch.ones(1, 2, dtype=torch.bool), None)[0]
    tensor([0.6931])
    """
    target = _log_softmax(labels, mask, weights).exp().masked_fill(~mask, 0.0)
    return _cross_entropy(target, scores, mask, weights), mask.any(1)


def softmax(scores: Tensor, gains: Tensor, mask: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """Cross-entropy with graded targets (Bruch 2019).

    - sum_i (g_i / sum g) log q_i,  q = softmax(s). Lists without any gain are left out.

    >>> softmax(torch.zeros(1, 2), torch.tensor([[0.0, 3.0]]), torch.ones(1, 2, dtype=torch.bool), None)[0]
    tensor([0.6931])
    """
    g = gains.masked_fill(~mask, 0.0)
    g = g if weights is None else g * weights
    total = g.sum(1, keepdim=True)
    counts = total[:, 0] > 0
    target = g / torch.where(total > 0, total, 1.0)
    return _cross_entropy(target, scores, mask, weights).masked_fill(~counts, 0.0), counts


def _log_softmax(values: Tensor, mask: Tensor, weights: Tensor | None) -> Tensor:
    lowest = torch.finfo(values.dtype).min
    v = values if weights is None else values + weights.clamp(min=torch.finfo(values.dtype).tiny).log()
    inside = mask if weights is None else mask & (weights > 0)
    # Not -inf: a list of padding alone would turn into NaN, and NaN survives a later mask in the gradient.
    return torch.log_softmax(v.masked_fill(~inside, lowest), 1)


def _cross_entropy(target: Tensor, scores: Tensor, mask: Tensor, weights: Tensor | None) -> Tensor:
    log_q = _log_softmax(scores, mask, weights)
    if weights is not None:
        # Each of w copies has the probability of one copy.
        log_q = log_q - weights.clamp(min=torch.finfo(scores.dtype).tiny).log()
    return -(target * log_q.masked_fill(target == 0, 0.0)).sum(1)


def listmle(
    scores: Tensor, labels: Tensor, mask: Tensor, ties: str, generator: torch.Generator | None
) -> tuple[Tensor, Tensor]:
    """Minus the log-probability of the ideal order in the Plackett-Luce model (Xia 2008).

    sum_r [log sum_{m >= r} exp(s_m) - s_r] over the ranks r of the order by descending label; documents of
    one label stand in random order, drawn anew in each call, or by index.

    >>> y, mask = torch.tensor([[0.0, 3.0]]), torch.ones(1, 2, dtype=torch.bool)
    >>> listmle(torch.zeros(1, 2), y, mask, "index", None)[0]
    tensor([0.6931])
    """
    order = _ideal_order(labels, mask, ties, generator)
    s = scores.gather(1, order)
    inside = mask.gather(1, order)
    lowest = torch.finfo(s.dtype).min
    rest = s.masked_fill(~inside, lowest).flip(1).logcumsumexp(1).flip(1)
    return (rest - s).masked_fill(~inside, 0.0).sum(1), mask.any(1)


def _ideal_order(labels: Tensor, mask: Tensor, ties: str, generator: torch.Generator | None) -> Tensor:
    y = labels.masked_fill(~mask, -torch.inf)
    if ties == "index":
        return y.argsort(dim=1, descending=True, stable=True)
    # Drawn where the generator lives, so that a seed gives the same order on every device.
    place = generator.device if generator is not None else torch.device("cpu")
    shuffled = torch.rand(labels.shape, generator=generator, device=place).argsort(1).to(labels.device)
    return shuffled.gather(1, y.gather(1, shuffled).argsort(dim=1, descending=True, stable=True))


def approx_ndcg(
    scores: Tensor, gains: Tensor, mask: Tensor, measure: Measure, temperature: float, block: int | None
) -> tuple[Tensor, Tensor]:
    """1 - NDCG with smooth ranks r_i = 1 + sum_{j != i} sigmoid((s_j - s_i) / T) (Qin 2010).

    Ranks and their gradient are computed in blocks, so memory is linear in the length of lists. Lists without
    any gain are left out.
    """
    g = gains.masked_fill(~mask, 0.0)
    best = g.sort(dim=1, descending=True).values
    ideal = (best * discounts(measure.discount or "log2", g.shape[1], g)).sum(1)
    counts = ideal > 0
    g = g / torch.where(counts, ideal, 1.0)[:, None]
    rank = applied(_SmoothRanks, scores / temperature, mask, block)
    if measure.discount == "letor":
        worth = 1.0 / torch.log2(rank.clamp(min=2.0))
    else:
        worth = 1.0 / torch.log2(1.0 + rank)
    return (1.0 - (g * worth).sum(1)).masked_fill(~counts, 0.0), counts


class _SmoothRanks(torch.autograd.Function):
    """1 + sum over j != i of sigmoid(s_j - s_i), recomputed in blocks for the backward pass."""

    @staticmethod
    def forward(ctx: Any, scores: Tensor, mask: Tensor, block: int | None) -> Tensor:
        s = scores.masked_fill(~mask, 0.0)
        ctx.save_for_backward(s, mask)
        ctx.block = block or block_size(s)
        rank = torch.empty_like(s)
        for start, stop in row_blocks(s.shape, ctx.block):
            above = torch.sigmoid(s[:, None, :] - s[:, start:stop, None])
            # The document itself adds sigmoid(0) = 1/2.
            rank[:, start:stop] = 0.5 + above.masked_fill_(~mask[:, None, :], 0.0).sum(2)
        return rank

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None]:
        s, mask = ctx.saved_tensors
        upstream = upstream.masked_fill(~mask, 0.0)
        gradient = torch.zeros_like(s)
        for start, stop in row_blocks(s.shape, ctx.block):
            p = torch.sigmoid(s[:, None, :] - s[:, start:stop, None])
            slope = (p * (1.0 - p)).masked_fill_(~mask[:, None, :], 0.0) * upstream[:, start:stop, None]
            gradient += slope.sum(1)
            gradient[:, start:stop] -= slope.sum(2)
        return gradient, None, None


def list_gains(labels: Tensor, mask: Tensor, gain: str | None, gains: Tensor | None, like: Tensor) -> Tensor:
    """``gains``, else those of the labels; 0 at padding.

    >>> list_gains(torch.tensor([[2]]), torch.tensor([[True]]), "exp", None, torch.zeros(1)).tolist()
    [[3.0]]
    """
    if gains is None:
        gains = gains_of(labels.to(like.dtype).masked_fill(~mask, 0.0), gain)
    return gains.to(like.dtype).masked_fill(~mask, 0.0)


@dataclass(frozen=True)
class ListLoss(BatchLoss):
    """A loss on whole lists, averaged over the lists that have one; see ``ranking_loss``."""

    name: str
    gain: str = "linear"
    ties: str = "random"
    measure: Measure | None = None
    temperature: float = 0.1
    sigma: float = 1.0
    block: int | None = None

    def risk(self, batch: Batch, generator: torch.Generator | None) -> Tensor:
        """The risk of a batch of lists."""
        value, counts = self._values(batch, generator)
        return value.sum() / counts.sum().clamp(min=1)

    def _values(self, b: Batch, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        s, w = self.sigma * b.scores, b.weights if b.weighted else None
        if self.name in ("listnet", "listmle"):
            b.refuse_gains(self.name)
        if self.name == "listnet":
            return listnet(s, b.labels, b.mask, w)
        if self.name == "softmax":
            return softmax(s, self._gains(b, self.gain), b.mask, w)
        if w is not None:
            remedy = "Use softmax or a pairwise loss."
            raise invalid("weights", f"have no meaning for {self.name}", remedy=remedy)
        if self.name == "listmle":
            if self.ties == "random":
                needs_generator("random ties", generator)
            return listmle(s, b.labels, b.mask, self.ties, generator)
        measure = self.measure or Measure("ndcg")
        return approx_ndcg(s, self._gains(b, measure.gain), b.mask, measure, self.temperature, self.block)

    def _gains(self, b: Batch, gain: str | None) -> Tensor:
        return list_gains(b.labels, b.mask, gain, b.gains, b.scores)
