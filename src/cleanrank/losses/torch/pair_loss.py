"""A binary loss on the documents, pairs or preferences of padded lists; ``ranking_loss`` makes one."""

from dataclasses import dataclass

import torch
from torch import Tensor

from cleanrank.errors import invalid
from cleanrank.losses.binary import BinaryLoss, check_trainable
from cleanrank.losses.robust import Mixture, Peers
from cleanrank.losses.torch.pair_sums import Pairs, elementwise, pair_sums
from cleanrank.losses.torch.peers import PairPeers, needs_generator, pair_peers, pair_urn, point_peers
from cleanrank.losses.torch.weights import (
    clean_pair_share,
    coefficients,
    pair_weight,
    read_batch,
    refuse_gains,
    swap_of,
)
from cleanrank.metrics.measure import Measure


@dataclass(frozen=True)
class PairwiseLoss:
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
        batch = read_batch(scores, labels, mask, weights, gains)
        if scores.requires_grad:
            check_trainable(self.loss)
        if self.measure is None:
            refuse_gains(self.name, batch)
            swap = None
        else:
            swap = swap_of(self.measure, batch.scores, batch.labels, batch.mask, batch.gains)
        # As for trees: real-valued gains also say which document of a pair is the better one.
        y = batch.labels if batch.gains is None else batch.gains
        pairs = Pairs(
            y, batch.mask, self.pairs, self.loss, self.sigma, batch.weights if batch.weighted else None, swap,
            self.mixture, self.block,
        )  # fmt: skip
        n_pairs = pair_weight(self.pairs, y, batch.weights)
        c = self.coefficients(batch.labels, batch.weights, n_pairs)
        risk = (c * pair_sums(batch.scores, pairs)).sum()
        if self.peers is None:
            return risk
        source = needs_generator("sampled peers", generator)
        draws = int(pair_weight(self.pairs, y, batch.mask.to(y.dtype)).sum())
        urn = pair_urn(self.pairs, y, batch.weights, c)
        drawn = PairPeers(urn, y, self.peers.loss, self.sigma, draws, source, swap)
        return risk - self.peers.alpha * pair_peers(batch.scores, drawn)

    def coefficients(self, labels: Tensor, weights: Tensor, n_pairs: Tensor) -> Tensor:
        """The factor of every list's pair sum."""
        share = None
        if self.noise is not None:
            share = clean_pair_share(labels, weights, self.noise.to(labels.device))
        return coefficients(self.weighting, n_pairs, weights.sum(1), share).to(labels.dtype)

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
            preferences: (P, 3) whole numbers (list, preferred document, other document).
            mask: (B, L).
            generator: for sampled peers.
            weights: (P,), how many times a preference was stated.

        >>> from cleanrank.losses.binary import LOSSES
        >>> loss = PairwiseLoss("ranknet", LOSSES["logistic"])
        >>> loss.on_preferences(torch.tensor([[1.0, 0.0, 9.0]]), torch.tensor([[0, 1, 0]]))
        tensor(1.3133)
        """
        self._check_preferences(scores, preferences, mask)
        s = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
        which, i, j = preferences.unbind(1)
        w = s.new_ones(len(which)) if weights is None else weights.to(s.dtype)
        logit = self.sigma * (s[which, i] - s[which, j])
        target = torch.ones_like(logit)
        if self.pairs == "strict_both":
            logit, which, w = torch.cat((logit, -logit)), which.repeat(2), w.repeat(2)
            target = torch.cat((target, torch.zeros_like(target)))
        n_pairs = s.new_zeros(len(s)).index_add(0, which, w)
        inside = torch.ones_like(s) if mask is None else mask.to(s.dtype)
        share = coefficients(self.weighting, n_pairs, inside.sum(1), None)[which] * w
        risk = (share * elementwise(logit, target, self.loss)).sum()
        if self.peers is None:
            return risk
        source = needs_generator("sampled peers", generator)
        return risk - self.peers.alpha * point_peers(logit, target, share, self.peers.loss, source)

    def _check_preferences(self, scores: Tensor, preferences: Tensor, mask: Tensor | None) -> None:
        if self.measure is not None or self.noise is not None:
            what = "lambdarank" if self.measure is not None else "weighting='prevalence'"
            raise invalid("preferences", f"must not be given to {what}, which reads grades", self.name)
        if self.pairs == "all_ordered":
            raise invalid(
                "pairs", "must be 'strict' or 'strict_both' for explicit preferences", "'all_ordered'",
                remedy="With peers take 'strict_both': every preference in both orders.",
            )  # fmt: skip
        if preferences.ndim != 2 or preferences.shape[1] != 3 or preferences.is_floating_point():
            raise invalid(
                "preferences", "must be whole numbers (list, preferred, other), shape (P, 3)",
                f"{preferences.dtype} of shape {tuple(preferences.shape)}",
            )  # fmt: skip
        which, i, j = preferences.unbind(1)
        sizes = torch.tensor([*scores.shape, scores.shape[1]], device=preferences.device)
        bad = ((preferences < 0) | (preferences >= sizes)).any(1) | (i == j)
        if mask is not None and not bool(bad.any()):
            bad = ~(mask[which, i] & mask[which, j])
        if bool(bad.any()):
            row = int(bad.nonzero()[0, 0])
            raise invalid(
                "a preference",
                "must name two documents of one list",
                preferences[row].tolist(),
                at=f"row {row}",
            )


@dataclass(frozen=True)
class PointwiseLoss:
    """A binary loss on documents; see ``ranking_loss``."""

    name: str
    loss: BinaryLoss
    weighting: str = "pooled"
    target: str = "binary"
    relevant: float = 1
    max_grade: float | None = None
    sigma: float = 1.0
    peers: Peers | None = None

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
        batch = read_batch(scores, labels, mask, weights, gains)
        if scores.requires_grad:
            check_trainable(self.loss)
        refuse_gains(self.name, batch)
        n = batch.weights.sum(1)
        c = coefficients(self.weighting, n, n, None).to(n.dtype)
        flat = batch.mask
        logit, target = self.sigma * batch.scores[flat], self.targets(batch.labels[flat])
        share = (c[:, None] * batch.weights)[flat]
        risk = (share * elementwise(logit, target, self.loss)).sum()
        if self.peers is None:
            return risk
        if self.peers.mode == "sampled":
            source = needs_generator("sampled peers", generator)
            return risk - self.peers.alpha * point_peers(logit, target, share, self.peers.loss, source)
        # A loss is linear in its target, so the mean over peers' targets is the loss at their mean.
        total = share.sum().clamp(min=torch.finfo(share.dtype).tiny)
        prior = (share * target).sum() / total if self.peers.prior is None else self.peers.prior
        peer = elementwise(logit, torch.zeros_like(logit) + prior, self.peers.loss)
        return risk - self.peers.alpha * (share * peer).sum()

    def targets(self, labels: Tensor) -> Tensor:
        """Labels as targets in [0, 1]."""
        if self.max_grade is None:
            return (labels >= self.relevant).to(labels.dtype)
        return (labels / self.max_grade).clamp(max=1.0)
