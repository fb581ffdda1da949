"""What a measure gains or loses when two documents of a ranking change places, in torch.

Lists are rows of (B, L) tensors with a mask; the documents of a list are ranked by descending score, ties by
index, padding last. r is a rank from 1 on and k the cut-off: what stands beyond it counts 0. For a pair let
*upper* be the document that stands higher and *lower* the other one. Every change is a formula of a few
numbers per document, so that a block of pairs needs no more memory than the block:

    dcg, ndcg          |G_i - G_j| |D(r_i) - D(r_j)| / Z, Z = 1 or the ideal DCG
    precision, recall  the same with G = relevant or not, D = 1, Z = k or the number R of relevant documents
    map                (c(r_upper) / r_upper + H(between) - c(r_lower) / r_lower) / R, where c counts the
                       relevant documents down to a rank, the moved one included, and H sums 1 / r over those
                       that stand between
    mrr                the difference of 1 / (rank of the first relevant document)
    err                |p_i - p_j| |A_upper - B_lower / (1 - p_upper)|, p the probability to stop
    auc                |r_i - r_j| / (n1 n0), with micro weighting / n^2

The change is 0 for padding and, in binary measures, when both documents are relevant or both are not. A list
shorter than the cut-off is ranked as it is, whatever the measure's convention says of short lists.
"""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from cleanrank import checks
from cleanrank.evaluate.measures import Measure

SWAPS = ("ndcg", "dcg", "map", "mrr", "err", "precision", "recall", "auc")


class Swap(Protocol):
    """The changes of some documents' pairs with all documents of their list."""

    def rows(self, start: int, stop: int) -> Tensor:
        """|change| (B, stop - start, L) of the pairs of documents start..stop-1 with every document."""
        ...


@dataclass(frozen=True)
class GainSwap:
    """|G_i - G_j| |D_i - D_j|; the gains carry the factor 1 / Z."""

    gain: Tensor
    discount: Tensor

    def rows(self, start: int, stop: int) -> Tensor:  # noqa: D102 (see Swap)
        change = (self.gain[:, start:stop, None] - self.gain[:, None, :]).abs_()
        return change.mul_((self.discount[:, start:stop, None] - self.discount[:, None, :]).abs_())


@dataclass(frozen=True)
class PlaceSwap:
    """|p_i - p_j| |u_upper + x_upper v_lower|."""

    worth: Tensor
    rank: Tensor
    u: Tensor
    x: Tensor
    v: Tensor

    def rows(self, start: int, stop: int) -> Tensor:  # noqa: D102 (see Swap)
        cut = slice(start, stop)
        above = self.rank[:, cut, None] < self.rank[:, None, :]
        here = self.u[:, cut, None] + self.x[:, cut, None] * self.v[:, None, :]
        there = self.u[:, None, :] + self.x[:, None, :] * self.v[:, cut, None]
        change = torch.where(above, here, there).abs_()
        return change.mul_((self.worth[:, cut, None] - self.worth[:, None, :]).abs_())


@dataclass(frozen=True)
class FirstSwap:
    """|u_upper - max(m_upper, v_lower)| on pairs of one relevant and one other document."""

    relevant: Tensor
    rank: Tensor
    u: Tensor
    m: Tensor
    v: Tensor

    def rows(self, start: int, stop: int) -> Tensor:  # noqa: D102 (see Swap)
        cut = slice(start, stop)
        above = self.rank[:, cut, None] < self.rank[:, None, :]
        here = self.u[:, cut, None] - torch.maximum(self.m[:, cut, None], self.v[:, None, :])
        there = self.u[:, None, :] - torch.maximum(self.m[:, None, :], self.v[:, cut, None])
        change = torch.where(above, here, there).abs_()
        return change.masked_fill_(self.relevant[:, cut, None] == self.relevant[:, None, :], 0.0)


@dataclass(frozen=True)
class Ranked:
    """Lists in their ranking: (B, L) tensors of floats, in the order of ranks."""

    measure: Measure
    labels: Tensor
    mask: Tensor
    gains: Tensor | None
    order: Tensor

    @property
    def inverse_rank(self) -> Tensor:
        """1 / r where r counts, 0 beyond the cut-off and at padding."""
        r = torch.arange(1, self.labels.shape[1] + 1, device=self.labels.device, dtype=self.labels.dtype)
        return self.counted(1.0 / r)

    @property
    def relevant(self) -> Tensor:
        """1 for a relevant document, else 0."""
        return ((self.labels >= (self.measure.relevant or 1)) & self.mask).to(self.labels.dtype)

    def counted(self, values: Tensor) -> Tensor:
        """Values by rank (L,) for every list, 0 beyond the cut-off and at padding."""
        if self.measure.cutoff is not None:
            values = values.clone()
            values[self.measure.cutoff :] = 0.0
        return values * self.mask

    def unsorted(self, values: Tensor) -> Tensor:
        """Values by rank as values by document."""
        return torch.empty_like(values).scatter_(1, self.order, values)


def ranking(scores: Tensor, mask: Tensor) -> Tensor:
    """The documents of every list, best first, ties by index, padding last.

    >>> ranking(torch.tensor([[1.0, 3.0, 9.0]]), torch.tensor([[True, True, False]])).tolist()
    [[1, 0, 2]]
    """
    key = scores.detach().masked_fill(~mask, -torch.inf)
    # A score of -inf must not end up behind padding, so padding goes last in a sort of its own.
    order = key.argsort(dim=1, descending=True, stable=True)
    behind = (~mask).gather(1, order).to(torch.uint8).argsort(dim=1, stable=True)
    return order.gather(1, behind)


def discounts(name: str, length: int, like: Tensor) -> Tensor:
    """The discount of ranks 1..length.

    >>> discounts("log2", 3, torch.ones(1)).tolist()
    [1.0, 0.630..., 0.5]
    """
    r = torch.arange(1, length + 1, device=like.device, dtype=torch.float64)
    found = 1.0 / torch.log2(r + 1.0) if name == "log2" else 1.0 / torch.log2(r.clamp(min=2.0))
    return found.to(like.dtype)


def gains_of(labels: Tensor, gain: str | None) -> Tensor:
    """2^y - 1 or y.

    >>> gains_of(torch.tensor([0.0, 2.0]), "exp").tolist()
    [0.0, 3.0]
    """
    return torch.exp2(labels) - 1.0 if gain == "exp" else labels


def swap_of(
    measure: Measure, scores: Tensor, labels: Tensor, mask: Tensor, gains: Tensor | None = None
) -> Swap:
    """The changes of a measure under the ranking of these scores.

    >>> s, y = torch.tensor([[2.0, 1.0]]), torch.tensor([[0.0, 1.0]])
    >>> swap_of(Measure("ndcg"), s, y, torch.ones(1, 2, dtype=torch.bool)).rows(0, 2)[0, 0].tolist()
    [0.0, 0.369...]
    """
    if measure.name not in SWAPS:
        checks.fail("the measure of lambdarank", f"must be one of {', '.join(SWAPS)}", str(measure))
    if gains is not None and measure.name not in ("ndcg", "dcg"):
        checks.fail("gains", "belong to ndcg and dcg alone", str(measure))
    order = ranking(scores, mask)
    y = labels.to(scores.dtype).masked_fill(~mask, 0.0)
    lists = Ranked(
        measure,
        y.gather(1, order),
        mask.gather(1, order),
        None if gains is None else gains.to(scores.dtype).masked_fill(~mask, 0.0).gather(1, order),
        order,
    )
    return _FORMULAS[measure.name](lists)


def _inverse(values: Tensor) -> Tensor:
    """1 / x, 0 for 0."""
    return torch.where(values > 0, 1.0 / values.clamp(min=torch.finfo(values.dtype).tiny), 0.0)


def _rank(lists: Ranked) -> Tensor:
    r = torch.arange(1, lists.labels.shape[1] + 1, device=lists.labels.device, dtype=lists.labels.dtype)
    return lists.unsorted(r.expand_as(lists.labels).contiguous())


def _gain_swap(lists: Ranked) -> Swap:
    m = lists.measure
    gain = gains_of(lists.labels, m.gain) * lists.mask if lists.gains is None else lists.gains
    discount = lists.counted(discounts(m.discount or "log2", gain.shape[1], gain))
    if m.name == "ndcg":
        best = gain.sort(dim=1, descending=True).values
        gain = gain * _inverse((best * discount).sum(1, keepdim=True))
    return GainSwap(lists.unsorted(gain), lists.unsorted(discount))


def _share_swap(lists: Ranked) -> Swap:
    relevant = lists.relevant
    if lists.measure.name == "recall":
        scale = _inverse(relevant.sum(1, keepdim=True))
    else:
        k = lists.measure.cutoff
        scale = 1.0 / k if k is not None else _inverse(lists.mask.to(relevant.dtype).sum(1, keepdim=True))
    inside = lists.counted(torch.ones_like(relevant[0]))
    return GainSwap(lists.unsorted(relevant * scale), lists.unsorted(inside))


def _map_swap(lists: Ranked) -> Swap:
    relevant, inverse = lists.relevant, lists.inverse_rank
    count = relevant.cumsum(1)
    between = (relevant * inverse).cumsum(1)
    up = (count + 1.0 - relevant) * inverse - between
    low = between - (relevant + count) * inverse
    worth = relevant * _inverse(count[:, -1:])
    return PlaceSwap(
        lists.unsorted(worth), _rank(lists), lists.unsorted(up), torch.ones_like(up), lists.unsorted(low)
    )


def _mrr_swap(lists: Ranked) -> Swap:
    relevant, inverse = lists.relevant, lists.inverse_rank
    count = relevant.cumsum(1)
    first = (inverse * relevant * (count == 1)).sum(1, keepdim=True)
    second = (inverse * relevant * (count == 2)).sum(1, keepdim=True)
    is_first, is_before = (relevant > 0) & (count == 1), count == 0
    u = torch.where(is_first | is_before, inverse, 1.0)
    m = torch.where(is_first, second, torch.where(is_before, first, 1.0))
    return FirstSwap(lists.unsorted(relevant), _rank(lists), *map(lists.unsorted, (u, m, inverse)))


def _err_swap(lists: Ranked) -> Swap:
    inverse = lists.inverse_rank
    stop = gains_of(lists.labels, "exp") * lists.mask / 2.0 ** (lists.measure.max_grade or 4)
    go = 1.0 - stop
    if bool((go <= 0).any()):
        checks.fail("labels", f"must not exceed max_grade={lists.measure.max_grade}", "a higher grade")
    reach = torch.cat((torch.ones_like(go[:, :1]), go.cumprod(1)[:, :-1]), 1)
    term = stop * reach * inverse
    total = term.cumsum(1)
    up = reach * inverse + total / go
    low = total - term + reach * inverse
    return PlaceSwap(lists.unsorted(stop), _rank(lists), *map(lists.unsorted, (up, -1.0 / go, low)))


def _auc_swap(lists: Ranked) -> Swap:
    relevant, rank = lists.relevant, _rank(lists)
    n, n1 = lists.mask.to(relevant.dtype).sum(1, keepdim=True), relevant.sum(1, keepdim=True)
    scale = _inverse(n * n if lists.measure.weighting == "micro" else n1 * (n - n1))
    return PlaceSwap(lists.unsorted(relevant * scale), rank, rank, -torch.ones_like(rank), rank)


_FORMULAS = {
    "ndcg": _gain_swap,
    "dcg": _gain_swap,
    "map": _map_swap,
    "mrr": _mrr_swap,
    "err": _err_swap,
    "precision": _share_swap,
    "recall": _share_swap,
    "auc": _auc_swap,
}
