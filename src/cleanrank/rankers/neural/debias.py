"""Training on clicks without learning the ranks at which documents were shown.

Three known corrections weigh a pair of a clicked document i and another j, shown at ranks k_i and k_j:

    ipw          P_1 / P_k(i), P from lists shown in random order (Joachims et al. 2017)
    dla          exp(g_1 - g_k(i)), g learnt beside the ranker (Ai et al. 2018)
    pairdebias   1 / (t+_k(i) t-_k(j)), t+ and t- estimated from the losses (Hu et al. 2019)

Each is a product of weights of the two documents, so each is a rule that gives weights to documents by click
and rank, and ``Debiased`` puts it before any ranking loss: RankNet, hinge, LambdaRank, peers. With peers, all
pairs of the list count in which a document stands for as many copies as it weighs.
"""

import math
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from cleanrank.errors import invalid
from cleanrank.losses.torch import RankingLoss
from cleanrank.losses.torch.pair_loss import pair_weight

RANKS = 10  # further ranks share the parameter of the last
HEAVIEST = 100.0


# A rule: ``weights(clicks, ranks)`` (B, L), ranks being places from 0; ``learn(scores, clicks, ranks, mask)``
# takes note of a batch after its weights were given; ``ratios`` are P_k / P_1 as the rule sees them.
Weigher: TypeAlias = "InversePropensity | DualLearning | PairDebias"


class InversePropensity:
    """Fixed weights from click rates at the ranks of lists in random order.

    Args:
        rates: clicks per showing at ranks 1, 2, ...; the last stands for all further ranks.

    >>> rule = InversePropensity([0.5, 0.25])
    >>> rule.weights(torch.tensor([[1.0, 1.0, 0.0]]), torch.tensor([[0, 1, 1]])).tolist()
    [[1.0, 2.0, 1.0]]
    """

    def __init__(self, rates: npt.ArrayLike) -> None:
        p = np.asarray(rates, dtype=np.float64)
        if p.ndim != 1 or not len(p) or not (np.isfinite(p) & (p > 0)).all():
            raise invalid(
                "click rates", "must be positive at every rank", p.tolist(), remedy="Show more lists."
            )
        self._rates = p
        self._inverse = torch.from_numpy(np.minimum(p[0] / p, HEAVIEST).astype(np.float32))

    def weights(self, clicks: Tensor, ranks: Tensor) -> Tensor:
        """P_1 / P_k where clicked, else 1."""
        return torch.where(clicks > 0, self._inverse.to(clicks.device)[_cut(ranks, self._inverse)], 1.0)

    def learn(self, scores: Tensor, clicks: Tensor, ranks: Tensor, mask: Tensor) -> None:
        """Nothing: the rates are fixed."""

    @property
    def ratios(self) -> npt.NDArray[np.float64]:
        """P_k / P_1."""
        return np.asarray(self._rates / self._rates[0])


class DualLearning:
    """A logit of examination per rank, learnt from the same pairs with the ranker's scores as weights.

    Args:
        ranks: how many logits.
        learning_rate: of Adagrad on them.
    """

    def __init__(self, ranks: int = RANKS, *, learning_rate: float = 0.05) -> None:
        self.logits = torch.zeros(ranks, requires_grad=True)
        self._optimizer = torch.optim.Adagrad([self.logits], lr=learning_rate)

    def weights(self, clicks: Tensor, ranks: Tensor) -> Tensor:
        """exp(g_1 - g_k) where clicked, else 1."""
        g = self.logits.detach()
        inverse = (g[0] - g).exp().clamp(max=HEAVIEST).to(clicks.device)
        return torch.where(clicks > 0, inverse[_cut(ranks, inverse)], 1.0)

    def learn(self, scores: Tensor, clicks: Tensor, ranks: Tensor, mask: Tensor) -> None:
        """One step on the logits: clicked ranks before others, weighed by exp(f_first - f_i)."""
        s, c, k, m = (t.cpu() for t in (scores, clicks, ranks, mask))
        first = torch.where(m & (k == 0), s, 0.0).sum(1, keepdim=True)
        weight = (first - s).clamp(max=math.log(HEAVIEST)).exp()
        with torch.enable_grad():
            g = self.logits[_cut(k, self.logits)]
            pairs = ((c > 0) & m)[:, :, None] & ((c <= 0) & m)[:, None, :]
            losses = weight[:, :, None] * functional.softplus(g[:, None, :] - g[:, :, None])
            n = pairs.sum((1, 2))
            each = torch.where(pairs, losses, 0.0).sum((1, 2)) / n.clamp(min=1)
            self._optimizer.zero_grad()
            torch.autograd.backward(each.sum() / (n > 0).sum().clamp(min=1))
        torch.nn.utils.clip_grad_norm_([self.logits], 5.0)
        self._optimizer.step()

    @property
    def ratios(self) -> npt.NDArray[np.float64]:
        """P_k / P_1."""
        g = self.logits.detach().double().numpy()
        return np.asarray(np.exp(g - g[0]))


class PairDebias:
    """Ratios of clicks and of non-clicks per rank, moved after each batch towards the root of their losses.

    t+_k <- (1 - step) t+_k + step (L+_k / L+_1)^(1 / (1 + power)), L+_k the losses of pairs whose clicked
    document was shown at rank k, divided by t- of the other; t- likewise. The last ratio is that of a rank
    from ``ranks`` on: losses there are divided by the number of such ranks in a list.

    Args:
        ranks: how many ratios.
        step: how far they move.
        power: the p of the paper's regularisation.
    """

    def __init__(self, ranks: int = RANKS, *, step: float = 0.05, power: float = 1.0) -> None:
        self.plus, self.minus = torch.ones(ranks), torch.ones(ranks)
        self._step, self._root = step, 1.0 / (1.0 + power)

    def weights(self, clicks: Tensor, ranks: Tensor) -> Tensor:
        """1 / t+ where clicked, else 1 / t-."""
        at = _cut(ranks, self.plus)
        plus, minus = ((1.0 / t).clamp(max=HEAVIEST).to(clicks.device) for t in (self.plus, self.minus))
        return torch.where(clicks > 0, plus[at], minus[at])

    def learn(self, scores: Tensor, clicks: Tensor, ranks: Tensor, mask: Tensor) -> None:
        """Moves the ratios."""
        at = _cut(ranks, self.plus)
        plus, minus = self.plus.to(scores.device)[at], self.minus.to(scores.device)[at]
        pairs = ((clicks > 0) & mask)[:, :, None] & ((clicks <= 0) & mask)[:, None, :]
        losses = torch.where(pairs, functional.softplus(scores[:, None, :] - scores[:, :, None]), 0.0)
        # The last parameter stands for several ranks of a list, and for each of them alone.
        last = ((at == len(self.plus) - 1) & mask).sum(1)
        shared = (last.sum() / (last > 0).sum().clamp(min=1)).clamp(min=1).cpu()
        sums = (
            ((losses / minus[:, None, :]).sum(2), "plus"),
            ((losses / plus[:, :, None]).sum(1), "minus"),
        )
        for of_document, name in sums:
            totals = torch.zeros(len(self.plus), device=scores.device)
            totals = totals.index_add(0, at[mask], of_document[mask]).cpu()
            totals[-1] /= shared
            if totals[0] > 0:
                target = (totals / totals[0]) ** self._root
                old = getattr(self, name)
                # A rank without a pair in this batch tells nothing.
                moved = torch.where(totals > 0, (1 - self._step) * old + self._step * target, old)
                setattr(self, name, moved)

    @property
    def ratios(self) -> npt.NDArray[np.float64]:
        """t+_k / t+_1."""
        return np.asarray((self.plus / self.plus[0]).double().numpy())


class Debiased:
    """A ranking loss whose documents are weighed by click and rank; ``loss=`` of a NeuralRanker.

    The mean over lists of the mean over pairs, each pair times its weight. The number of pairs in a list is
    not weighed: a list clicked at rank 9 alone must count for more than one clicked at rank 1.

    Args:
        loss: makes the ranking loss when called with pairs= and weighting=.
        weigher: a value of one of DEBIASING.
        pairs: which pairs the loss sees.

    >>> from functools import partial
    >>> from cleanrank.losses.torch import ranking_loss
    >>> made = Debiased(partial(ranking_loss, "ranknet"), InversePropensity([0.5, 0.25]))
    >>> s, clicks, ranks = torch.zeros(1, 2), torch.tensor([[0.0, 1.0]]), torch.tensor([[1, 2]])
    >>> round(float(made(s, clicks, torch.ones(1, 2, dtype=torch.bool), positions=ranks)), 4)
    1.3863
    """

    reads = ("positions",)
    # What a rule has learnt is no part of a checkpoint.
    resumable = False

    def __init__(self, loss: Callable[..., RankingLoss], weigher: Weigher, *, pairs: str = "strict") -> None:
        self.loss, self.weigher, self.pairs = loss(pairs=pairs, weighting="sum"), weigher, pairs

    def __call__(
        self,
        scores: Tensor,
        labels: Tensor,
        mask: Tensor,
        generator: torch.Generator | None = None,
        *,
        positions: Tensor,
        weights: Tensor | None = None,
    ) -> Tensor:
        """The risk of a batch of lists."""
        inside = mask.to(scores.dtype)
        ranks = (positions.long() - 1).clamp(min=0)
        with torch.no_grad():
            w = self.weigher.weights(labels, ranks).to(scores.dtype) * inside
            w = w if weights is None else w * weights
            n = pair_weight(self.pairs, labels.to(scores.dtype).masked_fill(~mask, 0.0), inside)
            lists = (inside.sum(1) > 0).sum() / (n > 0).sum().clamp(min=1)
            # Lists without pairs keep their weights: they count as lists in the mean that ``loss`` takes.
            w = w * (torch.where(n > 0, lists / n.clamp(min=1), 1.0).sqrt())[:, None]
        risk = self.loss(scores, labels, mask, generator, weights=w)
        if torch.is_grad_enabled():
            self.weigher.learn(scores.detach().float(), labels, ranks, mask)
        return risk


def _cut(ranks: Tensor, parameters: Tensor) -> Tensor:
    return ranks.clamp(max=len(parameters) - 1)


DEBIASING: dict[str, Callable[..., Weigher]] = {
    "ipw": InversePropensity,
    "dla": DualLearning,
    "pairdebias": PairDebias,
}
