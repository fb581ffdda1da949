"""A binary loss on the documents of padded lists; ``ranking`` makes one."""

from dataclasses import dataclass

import torch
from torch import Tensor

from cleanrank.losses.binary import BinaryLoss, check_trainable
from cleanrank.losses.ranking.blocked import elementwise
from cleanrank.losses.ranking.drawn_peers import needs_generator, point_peers
from cleanrank.losses.ranking.padded import read_batch, refuse_gains
from cleanrank.losses.ranking.weighting import coefficients
from cleanrank.losses.robust.specs import Peers


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
