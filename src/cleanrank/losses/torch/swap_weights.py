"""What a measure gains or loses when two documents of a ranking change places, in torch.

Lists are rows of (B, L) tensors with a mask; the documents of a list are ranked by descending score, ties by
index, padding last. r >= 1 is a rank and k the cut-off: what stands beyond it counts 0. For a pair let
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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import torch
from torch import Tensor

from cleanrank.errors import invalid
from cleanrank.losses.torch import fused
from cleanrank.metrics.measure import Measure
from cleanrank.validation import one_of

Columns: TypeAlias = "Sequence[Tensor]"
GAINS = ("ndcg", "dcg")  # measures of gains and discounts


@dataclass(frozen=True)
class Swap:
    """|change| of a pair as a formula of numbers of its two documents."""

    columns: tuple[Tensor, ...]  # (B, L) tensors
    # |change| from the columns of the first document and those of the second, broadcast.
    formula: Callable[[Columns, Columns], Tensor]
    # (B, L), the documents of every list, best first; None where ranks were counted and nothing was sorted.
    order: Tensor | None

    def rows(self, start: int, stop: int) -> Tensor:
        """(B, stop - start, L): the pairs of documents start..stop-1 with every document."""
        return self.formula(
            [c[:, start:stop, None] for c in self.columns], [c[:, None, :] for c in self.columns]
        )

    def at(self, i: Tensor, j: Tensor) -> Tensor:
        """The pairs (i, j) of documents counted through all lists, i = list L + document."""
        flat = [c.reshape(-1) for c in self.columns]
        return self.formula([c[i] for c in flat], [c[j] for c in flat])


def gain_change(i: Columns, j: Columns) -> Tensor:
    """|G_i - G_j| |D_i - D_j|; the gains carry the factor 1 / Z."""
    return (i[0] - j[0]).abs_().mul_((i[1] - j[1]).abs_())


def place_change(i: Columns, j: Columns) -> Tensor:
    """|p_i - p_j| |u_upper + x_upper v_lower| of columns p, rank, u, x, v."""
    change = torch.where(i[1] < j[1], i[2] + i[3] * j[4], j[2] + j[3] * i[4]).abs_()
    return change.mul_((i[0] - j[0]).abs_())


def first_change(i: Columns, j: Columns) -> Tensor:
    """|u_upper - max(m_upper, v_lower)| of columns relevant, rank, u, m, v; 0 unless one is relevant."""
    i_upper, j_upper = i[2] - torch.maximum(i[3], j[4]), j[2] - torch.maximum(j[3], i[4])
    return torch.where(i[1] < j[1], i_upper, j_upper).abs_().mul_((i[0] - j[0]).abs_())


@dataclass(frozen=True)
class Ranked:
    """Lists in their ranking: (B, L) tensors of floats, in the order of ranks."""

    measure: Measure
    labels: Tensor
    mask: Tensor
    gains: Tensor | None
    order: Tensor

    @property
    def ranks(self) -> Tensor:
        """1..L."""
        return torch.arange(1, self.labels.shape[1] + 1, device=self.labels.device, dtype=self.labels.dtype)

    @property
    def inverse_rank(self) -> Tensor:
        """1 / r where r counts, 0 beyond the cut-off and at padding."""
        return self.counted(1.0 / self.ranks)

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
    """The documents of every list, best first, ties by index, padding last."""
    key = scores.detach().masked_fill(~mask, -torch.inf)
    # A score of -inf must not end up behind padding, so padding goes last in a sort of its own.
    order = key.argsort(dim=1, descending=True, stable=True)
    behind = (~mask).gather(1, order).to(torch.uint8).argsort(dim=1, stable=True)
    return order.gather(1, behind)


def discounts(name: str, length: int, like: Tensor) -> Tensor:
    """The discount of ranks 1..length."""
    r = torch.arange(1, length + 1, device=like.device, dtype=torch.float64)
    return (1.0 / torch.log2(r + 1.0 if name == "log2" else r.clamp(min=2.0))).to(like.dtype)


def gains_of(labels: Tensor, gain: str | None) -> Tensor:
    """2^y - 1 or y."""
    return torch.exp2(labels) - 1.0 if gain == "exp" else labels


def swap_of(
    measure: Measure, scores: Tensor, labels: Tensor, mask: Tensor, gains: Tensor | None = None
) -> Swap:
    """The changes of a measure under the ranking of these scores."""
    one_of("measure for lambdarank", measure.name, SWAPS)
    if gains is not None and measure.name not in GAINS:
        raise invalid("gains", "belong to ndcg and dcg alone", str(measure))
    y = torch.where(mask, labels.to(scores.dtype), 0.0)
    if measure.name in GAINS and fused.usable(scores):
        worth = None if gains is None else gains.to(scores.dtype)
        return _counted_gain_swap(measure, scores.detach(), y, mask, worth)
    order = ranking(scores, mask)
    lists = Ranked(
        measure,
        y.gather(1, order),
        mask.gather(1, order),
        None if gains is None else gains.to(scores.dtype).masked_fill(~mask, 0.0).gather(1, order),
        order,
    )
    return SWAPS[measure.name](lists)


def _inverse(values: Tensor) -> Tensor:
    """1 / x, 0 for 0."""
    tiny = torch.finfo(values.dtype).tiny
    return torch.where(values > 0, values.clamp(min=tiny), torch.inf).reciprocal()


def _rank(lists: Ranked) -> Tensor:
    return lists.unsorted(lists.ranks.expand_as(lists.labels).contiguous())


def _gain_swap(lists: Ranked) -> Swap:
    m = lists.measure
    gain = gains_of(lists.labels, m.gain) * lists.mask if lists.gains is None else lists.gains
    discount = lists.counted(discounts(m.discount or "log2", gain.shape[1], gain))
    if m.name == "ndcg":
        best = gain.sort(dim=1, descending=True).values
        gain = gain * _inverse((best * discount).sum(1, keepdim=True))
    return Swap((lists.unsorted(gain), lists.unsorted(discount)), gain_change, lists.order)


def _counted_gain_swap(
    measure: Measure, scores: Tensor, labels: Tensor, mask: Tensor, gains: Tensor | None
) -> Swap:
    """``_gain_swap`` of lists as they are, with ranks that are counted."""
    gain = torch.where(mask, gains_of(labels, measure.gain) if gains is None else gains, 0.0)
    name = measure.discount or "log2"
    if measure.name == "ndcg":
        best = fused.ranks(gain, mask, name, measure.cutoff)
        gain = gain * _inverse((gain * best).sum(1, keepdim=True))
    return Swap((gain, fused.ranks(scores, mask, name, measure.cutoff)), gain_change, None)


def _share_swap(lists: Ranked) -> Swap:
    relevant = lists.relevant
    counted = relevant if lists.measure.name == "recall" else lists.mask.to(relevant.dtype)
    scale = _inverse(counted.sum(1, keepdim=True))
    if lists.measure.name == "precision" and lists.measure.cutoff is not None:
        scale = torch.full_like(scale, 1.0 / lists.measure.cutoff)
    inside = lists.counted(torch.ones_like(relevant[0]))
    return Swap((lists.unsorted(relevant * scale), lists.unsorted(inside)), gain_change, lists.order)


def _map_swap(lists: Ranked) -> Swap:
    relevant, inverse = lists.relevant, lists.inverse_rank
    count = relevant.cumsum(1)
    between = (relevant * inverse).cumsum(1)
    up = (count + 1.0 - relevant) * inverse - between
    low = between - (relevant + count) * inverse
    worth = relevant * _inverse(count[:, -1:])
    up, one, low = (lists.unsorted(c) for c in (up, torch.ones_like(up), low))
    return Swap((lists.unsorted(worth), _rank(lists), up, one, low), place_change, lists.order)


def _mrr_swap(lists: Ranked) -> Swap:
    relevant, inverse = lists.relevant, lists.inverse_rank
    count = relevant.cumsum(1)
    first = (inverse * relevant * (count == 1)).sum(1, keepdim=True)
    second = (inverse * relevant * (count == 2)).sum(1, keepdim=True)
    is_first, is_before = (relevant > 0) & (count == 1), count == 0
    u = torch.where(is_first | is_before, inverse, 1.0)
    m = torch.where(is_first, second, torch.where(is_before, first, 1.0))
    places = (lists.unsorted(c) for c in (u, m, inverse))
    return Swap((lists.unsorted(relevant), _rank(lists), *places), first_change, lists.order)


def _err_swap(lists: Ranked) -> Swap:
    inverse = lists.inverse_rank
    stop = gains_of(lists.labels, "exp") * lists.mask / 2.0 ** (lists.measure.max_grade or 4)
    go = 1.0 - stop
    if bool((go <= 0).any()):
        raise invalid("labels", f"must not exceed max_grade={lists.measure.max_grade}")
    reach = torch.cat((torch.ones_like(go[:, :1]), go.cumprod(1)[:, :-1]), 1)
    term = stop * reach * inverse
    total = term.cumsum(1)
    up = reach * inverse + total / go
    low = total - term + reach * inverse
    places = (lists.unsorted(c) for c in (up, -1.0 / go, low))
    return Swap((lists.unsorted(stop), _rank(lists), *places), place_change, lists.order)


def _auc_swap(lists: Ranked) -> Swap:
    relevant, rank = lists.relevant, _rank(lists)
    n, n1 = lists.mask.to(relevant.dtype).sum(1, keepdim=True), relevant.sum(1, keepdim=True)
    scale = _inverse(n * n if lists.measure.weighting == "micro" else n1 * (n - n1))
    return Swap(
        (lists.unsorted(relevant * scale), rank, rank, -torch.ones_like(rank), rank),
        place_change,
        lists.order,
    )


SWAPS: dict[str, Callable[[Ranked], Swap]] = {
    "ndcg": _gain_swap,
    "dcg": _gain_swap,
    "map": _map_swap,
    "mrr": _mrr_swap,
    "err": _err_swap,
    "precision": _share_swap,
    "recall": _share_swap,
    "auc": _auc_swap,
}
