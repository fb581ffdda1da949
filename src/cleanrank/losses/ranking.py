"""Ranking losses in torch: pairs, points and whole lists, on padded lists with a mask.

Every loss is a value with settings that is called as

    loss(scores (B, L), labels (B, L), mask (B, L) or None, generator=None) -> scalar tensor

with the optional tensors ``weights`` (B, L), how many copies a document stands for, and ``gains`` (B, L),
real-valued gains that stand in for those of the labels. Scores and gradients at padding are never read and 0.
Half-precision scores are lifted to float32.
"""

import importlib.util
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from cleanrank import checks

if importlib.util.find_spec("torch") is None:
    checks.require("nn")

import torch
from torch import Tensor

from cleanrank.evaluate.measures import Measure
from cleanrank.losses import lists
from cleanrank.losses.binary import BinaryLoss, binary_loss
from cleanrank.losses.blocked import PAIRS, Pairs, elementwise, pair_sums
from cleanrank.losses.swaps import SWAPS, swap_of
from cleanrank.losses.weighting import WEIGHTINGS, clean_pair_share, coefficients, noise_matrix, pair_weight

RankingLoss: TypeAlias = Callable[..., Tensor]


@dataclass(frozen=True)
class PairwiseLoss:
    """The mean of a binary loss over the pairs of lists; see ``ranking_loss``."""

    name: str
    loss: BinaryLoss
    pairs: str = "strict"
    weighting: str = "macro"
    measure: Measure | None = None
    sigma: float = 1.0
    noise: Tensor | None = None
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
        s, y, mask, w = _prepared(scores, labels, mask, weights)
        swap = None if self.measure is None else swap_of(self.measure, s.detach(), y, mask, gains)
        found = Pairs(
            y, mask, self.pairs, self.loss, self.sigma, None if weights is None else w, swap, self.block
        )
        return (self._coefficients(y, mask, w) * pair_sums(s, found)).sum()

    def _coefficients(self, y: Tensor, mask: Tensor, w: Tensor) -> Tensor:
        share = None if self.noise is None else clean_pair_share(y, w, self.noise.to(w.device))
        found = coefficients(self.weighting, pair_weight(self.pairs, y, w), w.sum(1), share)
        return found.to(y.dtype)


@dataclass(frozen=True)
class PointwiseLoss:
    """The mean of a binary loss over documents; see ``ranking_loss``."""

    name: str
    loss: BinaryLoss
    weighting: str = "pooled"
    target: str = "binary"
    relevant: int = 1
    max_grade: int | None = None

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
        s, y, mask, w = _prepared(scores, labels, mask, weights)
        target = (y >= self.relevant).to(s.dtype) if self.max_grade is None else y / self.max_grade
        value = elementwise(s.masked_fill(~mask, 0.0), target, self.loss).masked_fill(~mask, 0.0) * w
        n = w.sum(1)
        if self.weighting == "pooled":
            return value.sum() / n.sum().clamp(min=torch.finfo(s.dtype).tiny)
        return (value.sum(1) * coefficients("macro", n, n, None)).sum()


def _prepared(
    scores: Tensor, labels: Tensor, mask: Tensor | None, weights: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scores in at least single precision, labels of their type, a mask, and weights that are 0 at padding."""
    if scores.ndim != 2 or labels.shape != scores.shape:
        checks.fail(
            "scores and labels",
            "must both be (lists, documents)",
            f"{tuple(scores.shape)}, {tuple(labels.shape)}",
        )
    s = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    mask = torch.ones_like(labels, dtype=torch.bool) if mask is None else mask
    y = labels.to(s.dtype).masked_fill(~mask, 0.0)
    w = mask.to(s.dtype) if weights is None else weights.to(s.dtype).masked_fill(~mask, 0.0)
    return s, y, mask, w


def ranking_loss(
    name: str,
    *,
    binary: str | BinaryLoss = "logistic",
    robust: Any = None,
    pairs: str = "strict",
    weighting: str | None = None,
    measure: str | Measure | None = None,
    sigma: float = 1.0,
    **options: Any,
) -> RankingLoss:
    """The loss of a name.

    >>> loss = ranking_loss("ranknet")
    >>> loss(torch.tensor([[1.0, 0.0]]), torch.tensor([[1, 0]]), torch.ones(1, 2, dtype=torch.bool))
    tensor(0.3133)
    """
    checks.known("ranking loss", name, RANKING_LOSSES)
    loss = binary_loss(binary)
    if robust is not None:
        from cleanrank.losses.robust import robust_loss

        loss = robust_loss(robust)
    if name == "pointwise":
        return PointwiseLoss(name, loss, weighting or "pooled", **options)
    delta = None
    if name == "lambdarank":
        delta = measure if isinstance(measure, Measure) else Measure.parse(measure or "ndcg@10")
    default = "sum" if name == "lambdarank" else "macro"
    return PairwiseLoss(name, loss, pairs, weighting or default, delta, sigma, **options)


RANKING_LOSSES: dict[str, str] = {
    "ranknet": "logistic loss on pairs (Burges 2005)",
    "lambdarank": "pairs weighted by the change of a measure when they swap (Burges 2006)",
    "pairwise": "any binary loss on pairs",
    "pointwise": "any binary loss on documents",
    "listnet": "cross-entropy of top-one probabilities (Cao 2007)",
    "softmax": "cross-entropy with graded targets (Bruch 2019)",
    "listmle": "likelihood of the ideal order (Xia 2008)",
    "approx_ndcg": "NDCG with smooth ranks (Qin 2010)",
}
