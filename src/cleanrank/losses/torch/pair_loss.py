"""A binary loss on the documents, pairs or preferences of padded lists; ``ranking_loss`` makes one.

Sampled peers are drawn from the batch: the logit of one member, the target of another, drawn independently
(Wu 2022). Members (documents or pairs) are drawn with the probability that they have in the risk, so that the
mean over the draws is the risk of expected peers. There are as many draws as members. The draws of pairs are
made in blocks; sums and gradients are computed together and only the gradient (B, L) is kept.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from cleanrank.errors import invalid
from cleanrank.losses.binary import BinaryLoss, check_trainable
from cleanrank.losses.pairs import clean_pair_share
from cleanrank.losses.robust_specs import Mixture, Peers
from cleanrank.losses.torch.fused import WEIGHTINGS
from cleanrank.losses.torch.lists import Batch, BatchLoss, needs_generator, single_precision
from cleanrank.losses.torch.pair_sums import (
    Pairs,
    applied,
    can_be_fused,
    elementwise,
    fused_risk,
    pair_sums,
)
from cleanrank.losses.torch.swap_weights import Swap, swap_of
from cleanrank.metrics.measure import Measure

DRAWS = 1 << 18
OVER_PAIRS = ("macro", "pooled")  # weightings that divide by the weight of pairs


@dataclass(frozen=True)
class PairwiseLoss(BatchLoss):
    """A binary loss on the pairs of lists; see ``ranking_loss``."""

    name: str
    loss: BinaryLoss
    pairs: str = "strict"
    weighting: str = "macro"
    measure: Measure | None = None
    sigma: float = 1.0
    noise: Tensor | None = None
    peers: Peers | None = None
    mixture: Mixture | None = None
    block: int | None = None
    curve: str = "logistic"  # what ``mixture`` is made of

    @property
    def replayable(self) -> bool:
        """Whether what is launched on a GPU depends on shapes alone, so that it can be recorded once."""
        looks = self.measure is not None and self.measure.name == "err"
        return self.peers is None and self.noise is None and not looks

    def risk(self, batch: Batch, generator: torch.Generator | None) -> Tensor:
        """The risk of a batch of lists."""
        if batch.scores.requires_grad:
            check_trainable(self.loss)
        if self.measure is None:
            batch.refuse_gains(self.name)
            swap = None
        else:
            swap = swap_of(self.measure, batch.scores, batch.labels, batch.mask, batch.gains)
        # As for trees: real-valued gains also say which document of a pair is the better one.
        y = batch.labels if batch.gains is None else batch.gains
        pairs = Pairs(
            y, batch.mask, self.pairs, self.loss, self.sigma, batch.copies, swap,
            self.mixture, self.block, self.curve,
        )  # fmt: skip
        if self.peers is None and self.weighting in WEIGHTINGS and can_be_fused(batch.scores, pairs):
            return fused_risk(batch.scores, pairs, self.weighting)
        over_pairs = self.weighting in OVER_PAIRS
        size = pair_weight(self.pairs, y, batch.weights) if over_pairs else batch.weights.sum(1)
        share = None if self.noise is None else clean_share(batch.labels, batch.weights, self.noise)
        factor = list_factors(self.weighting, size, share).to(y.dtype)
        risk = (factor * pair_sums(batch.scores, pairs)).sum()
        if self.peers is None:
            return risk
        source = needs_generator("sampled peers", generator)
        draws = int(pair_weight(self.pairs, y, batch.mask.to(y.dtype)).sum())
        urn = pair_urn(self.pairs, y, batch.weights, factor)
        drawn = PairPeers(urn, y, self.peers.loss, self.sigma, draws, source, swap)
        return risk - self.peers.alpha * pair_peers(batch.scores, drawn)

    def on_preferences(
        self,
        scores: Tensor,
        preferences: Tensor,
        mask: Tensor | None = None,
        generator: torch.Generator | None = None,
        *,
        weights: Tensor | None = None,
    ) -> Tensor:
        """The risk on explicit preferences, such as those of top-k judging, instead of pairs of grades.

        Args:
            scores: (B, L).
            preferences: (P, 3) integers (list, preferred document, other document).
            mask: (B, L).
            generator: for sampled peers.
            weights: (P,), how many times a preference was stated.

        >>> from cleanrank.losses.binary import LOSSES
        >>> loss = PairwiseLoss("ranknet", LOSSES["logistic"])
        >>> loss.on_preferences(torch.tensor([[1.0, 0.0, 9.0]]), torch.tensor([[0, 1, 0]]))
        tensor(1.3133)
        """
        self._check_preferences(scores, preferences, mask)
        s = single_precision(scores)
        which, i, j = preferences.unbind(1)
        w = s.new_ones(len(which)) if weights is None else weights.to(s.dtype)
        logit = self.sigma * (s[which, i] - s[which, j])
        target = torch.ones_like(logit)
        if self.pairs == "strict_both":
            logit, which, w = torch.cat((logit, -logit)), which.repeat(2), w.repeat(2)
            target = torch.cat((target, torch.zeros_like(target)))
        n_pairs = s.new_zeros(len(s)).index_add(0, which, w)
        inside = torch.ones_like(s) if mask is None else mask.to(s.dtype)
        size = n_pairs if self.weighting in OVER_PAIRS else inside.sum(1)
        share = list_factors(self.weighting, size)[which] * w
        risk = (share * elementwise(logit, target, self.loss)).sum()
        if self.peers is None:
            return risk
        source = needs_generator("sampled peers", generator)
        return risk - self.peers.alpha * point_peers(logit, target, share, self.peers.loss, source)

    def _check_preferences(self, scores: Tensor, preferences: Tensor, mask: Tensor | None) -> None:
        if self.measure is not None or self.noise is not None:
            reader = "lambdarank" if self.measure is not None else "weighting='prevalence'"
            raise invalid("preferences", f"must not be given to {reader}, which reads grades", self.name)
        if self.pairs == "all_ordered":
            rule = "must be 'strict' or 'strict_both' for explicit preferences"
            remedy = "With peers take 'strict_both': every preference in both orders."
            raise invalid("pairs", rule, "'all_ordered'", remedy=remedy)
        if preferences.ndim != 2 or preferences.shape[1] != 3 or preferences.is_floating_point():
            rule = "must be integers (list, preferred, other), shape (P, 3)"
            raise invalid("preferences", rule, f"{preferences.dtype} of shape {tuple(preferences.shape)}")
        which, i, j = preferences.unbind(1)
        sizes = torch.tensor([*scores.shape, scores.shape[1]], device=preferences.device)
        bad = ((preferences < 0) | (preferences >= sizes)).any(1) | (i == j)
        if mask is not None and not bool(bad.any()):
            bad = ~(mask[which, i] & mask[which, j])
        if bool(bad.any()):
            row = int(bad.nonzero()[0, 0])
            rule = "must name two documents of one list"
            raise invalid("a preference", rule, preferences[row].tolist(), at=f"row {row}")


@dataclass(frozen=True)
class PointwiseLoss(BatchLoss):
    """A binary loss on documents; see ``ranking_loss``."""

    name: str
    loss: BinaryLoss
    weighting: str = "pooled"
    relevant: float = 1
    max_grade: float | None = None
    sigma: float = 1.0
    peers: Peers | None = None

    def risk(self, batch: Batch, generator: torch.Generator | None) -> Tensor:
        """The risk of a batch of lists."""
        if batch.scores.requires_grad:
            check_trainable(self.loss)
        batch.refuse_gains(self.name)
        n = batch.weights.sum(1)
        factor = list_factors(self.weighting, n).to(n.dtype)
        flat = batch.mask
        logit, target = self.sigma * batch.scores[flat], self.targets(batch.labels[flat])
        share = (factor[:, None] * batch.weights)[flat]
        return point_risk(logit, target, share, self.loss, self.peers, generator)

    def targets(self, labels: Tensor) -> Tensor:
        """Labels as targets in [0, 1]."""
        if self.max_grade is None:
            return (labels >= self.relevant).to(labels.dtype)
        return (labels / self.max_grade).clamp(max=1.0)


def point_risk(
    logit: Tensor,
    target: Tensor,
    share: Tensor,
    loss: BinaryLoss,
    peers: Peers | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """The sum of the losses of flat members times their shares, less that of their peers.

    >>> from cleanrank.losses.binary import binary_loss
    >>> logit, target, share = torch.zeros(4), torch.tensor([1.0, 0.0, 0.0, 0.0]), torch.full((4,), 0.25)
    >>> round(point_risk(logit, target, share, binary_loss("logistic")).item(), 4)
    0.6931
    """
    risk: Tensor = (share * elementwise(logit, target, loss)).sum()
    if peers is None:
        return risk
    if peers.mode == "sampled":
        source = needs_generator("sampled peers", generator)
        return risk - peers.alpha * point_peers(logit, target, share, peers.loss, source)
    # A loss is linear in its target, so the mean over peers' targets is the loss at their mean.
    total = share.sum().clamp(min=torch.finfo(share.dtype).tiny)
    prior = (share * target).sum() / total if peers.prior is None else peers.prior
    peer = elementwise(logit, torch.zeros_like(logit) + prior, peers.loss)
    return risk - peers.alpha * (share * peer).sum()


def list_factors(weighting: str, size: Tensor, clean_share: Tensor | None = None) -> Tensor:
    """The factor of every list (B,) under a weighting of PAIR_WEIGHTINGS.

    ``size`` is the weight of its pairs for weightings OVER_PAIRS (or members), else that of its documents.
    """
    if weighting == "pooled":
        return torch.ones_like(size) * _inverse(size.sum())
    lists = (size > 0).sum().clamp(min=1)
    if weighting == "macro":
        return _inverse(size) / lists
    if weighting == "sum":
        return (size > 0) / lists.to(size.dtype)
    square = size * size
    if weighting == "prevalence" and clean_share is not None:
        square = square * clean_share
    return _inverse(square) / lists


def _inverse(values: Tensor) -> Tensor:
    """1 / x, 0 where x = 0."""
    return torch.where(values > 0, values, torch.inf).reciprocal()


def clean_share(labels: Tensor, weights: Tensor, noise: Tensor) -> Tensor:
    """``clean_pair_share`` of padded lists; ``weights`` (B, L) are 0 at padding."""
    n = weights.sum(1).clamp(min=1.0)
    shares = torch.stack([(weights * (labels == grade)).sum(1) / n for grade in range(len(noise))], 1)
    if bool(((shares.sum(1) < 0.999) & (weights.sum(1) > 0)).any()):
        rule = f"must cover every label, the grades 0..{len(noise) - 1}"
        raise invalid("noise", rule, f"labels up to {labels.max():g}")
    share: Tensor = clean_pair_share(shares, n, noise.to(shares))
    return share


def pair_weight(kind: str, labels: Tensor, weights: Tensor) -> Tensor:
    """The weighted number of pairs of every list; ``weights`` (B, L) are 0 at padding."""
    total = weights.sum(1)
    if kind == "all_ordered":
        return (total * total - (weights * weights).sum(1)).clamp(min=0.0)
    ordered, by = labels.sort(dim=1)
    upto = torch.cat((torch.zeros_like(total[:, None]), weights.gather(1, by).cumsum(1)), 1)
    below = torch.searchsorted(ordered, labels.contiguous(), right=False)
    strict = (weights * upto.gather(1, below)).sum(1)
    return strict if kind == "strict" else 2.0 * strict


def uniforms(n: int, generator: torch.Generator, device: torch.device) -> Tensor:
    """Numbers in [0, 1), drawn where the generator lives."""
    return torch.rand(n, generator=generator, device=generator.device, dtype=torch.float64).to(device)


class Urn:
    """Members drawn with probabilities proportional to their weights."""

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
    """Ordered pairs of lists, drawn with probability factor w_i w_j; documents are counted through lists.

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
        length = self.list_end[i] - self.list_start[i] - gap
        point = self.list_start[i] + uniforms(n, generator, i.device) * length
        j = self.second.find(torch.where(point >= self.gap_start[i], point + gap, point))
        return self.document[i], self.document[j]


def pair_urn(kind: str, labels: Tensor, weights: Tensor, factors: Tensor) -> PairUrn:
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
    first = Urn((factors.to(torch.float64)[:, None] * w * partners).reshape(-1))
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
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None]:
        (gradient,) = ctx.saved_tensors
        return upstream * gradient, None


def pair_peers(scores: Tensor, peers: PairPeers) -> Tensor:
    """The risk of drawn peers, before it is multiplied by alpha."""
    if peers.draws == 0:
        return scores.sum() * 0.0
    return applied(_PairPeers, scores, peers)


def point_peers(
    logits: Tensor, targets: Tensor, weights: Tensor, loss: BinaryLoss, generator: torch.Generator
) -> Tensor:
    """The same for flat members of these weights in the risk; gradients flow through the logits."""
    if len(logits) == 0:
        return logits.sum()
    urn = Urn(weights)
    j, k = (urn.draw(len(logits), generator) for _ in range(2))
    risk: Tensor = loss.value(logits[j], targets[k]).mean() * urn.total.to(logits.dtype)
    return risk
