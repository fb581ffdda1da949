"""Padded lists as the losses read them, and losses on whole lists: ListNet, softmax, ListMLE, ApproxNDCG.

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
from cleanrank.losses.torch import fused
from cleanrank.losses.torch.pair_sums import applied, block_size, row_blocks
from cleanrank.losses.torch.swap_weights import discounts, gains_of
from cleanrank.metrics.measure import Measure

TIES = ("random", "index")


@dataclass(frozen=True)
class Batch:
    """B lists padded to L documents, (B, L) tensors: floats of one type, zeros at padding."""

    scores: Tensor
    labels: Tensor
    mask: Tensor
    copies: Tensor | None
    gains: Tensor | None

    @property
    def weights(self) -> Tensor:
        """How many copies a document stands for, 1 where nothing is said."""
        return self.mask.to(self.scores.dtype) if self.copies is None else self.copies

    def refuse_gains(self, loss: str) -> None:
        """Refuses gains where a loss would not read them."""
        if self.gains is not None:
            remedy = "Pass them as labels: their order counts."
            raise invalid("gains", f"have no meaning for {loss}", remedy=remedy)


class BatchLoss:
    """A loss that is called with padded lists; see ``ranking_loss``."""

    def __call__(
        self,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor | None = None,
        generator: torch.Generator | None = None,
        *,
        weights: Tensor | None = None,
        gains: Tensor | None = None,
    ) -> Tensor:
        """The risk of a batch of lists."""
        return self.risk(read_batch(scores, labels, mask, weights, gains), generator)

    def risk(self, batch: Batch, generator: torch.Generator | None) -> Tensor:
        """The risk of a batch that has been read."""
        raise NotImplementedError


def read_batch(
    scores: Tensor, labels: Tensor, mask: Tensor | None, weights: Tensor | None, gains: Tensor | None
) -> Batch:
    """Checks the shapes of a batch and fills its padding."""
    named = {"labels": labels, "mask": mask, "weights": weights, "gains": gains}
    for name, tensor in {"scores": scores, **named}.items():
        if tensor is not None and not isinstance(tensor, Tensor):
            raise invalid(
                name, "must be a torch tensor", type(tensor).__name__, remedy="torch.as_tensor makes one."
            )
    if not scores.is_floating_point():
        raise invalid("scores", "must be of a floating type", scores.dtype)
    for name, tensor in named.items():
        if scores.ndim != 2 or (tensor is not None and tensor.shape != scores.shape):
            shape = tuple(scores.shape) if scores.ndim != 2 or tensor is None else tuple(tensor.shape)
            raise invalid(f"scores and {name}", "must be of one shape (lists, documents)", shape)
    inside = torch.ones_like(labels, dtype=torch.bool) if mask is None else mask.bool()
    s = single_precision(scores)

    def filled(tensor: Tensor) -> Tensor:
        return torch.where(inside, tensor.to(s.dtype), 0.0)

    return Batch(
        filled(s),
        filled(labels),
        inside,
        None if weights is None else filled(weights),
        None if gains is None else filled(gains),
    )


def single_precision(scores: Tensor) -> Tensor:
    """Scores in half precision as single precision, others as they are."""
    return scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores


def needs_generator(subject: str, generator: torch.Generator | None) -> torch.Generator:
    """The generator; None is refused."""
    if generator is None:
        remedy = "Pass generator=torch.Generator()."
        raise invalid(subject, "must have a source of randomness", remedy=remedy)
    return generator


def listnet(scores: Tensor, labels: Tensor, mask: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """Cross-entropy of the top-one probabilities of labels and of scores (Cao 2007).

    - sum_i p_i log q_i,  p = softmax(y), q = softmax(s). Lists of one document count, with loss 0.
    """
    target = _log_softmax(labels, mask, weights).exp().masked_fill(~mask, 0.0)
    return _cross_entropy(target, scores, mask, weights), mask.any(1)


def softmax(scores: Tensor, gains: Tensor, mask: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
    """Cross-entropy with graded targets (Bruch 2019).

    - sum_i (g_i / sum g) log q_i,  q = softmax(s). Lists without any gain are left out.
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
        ctx.fused, ctx.block = block is None and fused.usable(s), block or block_size(s)
        if ctx.fused:
            return fused.smooth_ranks(s, mask)
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
        if ctx.fused:
            return fused.smooth_rank_slopes(s, mask, upstream), None, None
        gradient = torch.zeros_like(s)
        for start, stop in row_blocks(s.shape, ctx.block):
            p = torch.sigmoid(s[:, None, :] - s[:, start:stop, None])
            slope = (p * (1.0 - p)).masked_fill_(~mask[:, None, :], 0.0) * upstream[:, start:stop, None]
            gradient += slope.sum(1)
            gradient[:, start:stop] -= slope.sum(2)
        return gradient, None, None


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

    @property
    def replayable(self) -> bool:
        """Whether what is launched on a GPU depends on shapes alone, so that it can be recorded once."""
        return self.name != "listmle" or self.ties == "index"

    def risk(self, batch: Batch, generator: torch.Generator | None) -> Tensor:
        """The risk of a batch of lists."""
        value, counts = self._values(batch, generator)
        return value.sum() / counts.sum().clamp(min=1)

    def _values(self, b: Batch, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:
        s, w = self.sigma * b.scores, b.copies
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
        return gains_of(b.labels, gain) if b.gains is None else b.gains
