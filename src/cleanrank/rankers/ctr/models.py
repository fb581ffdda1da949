"""Thirteen models of clicks, each a few blocks.

``forward(user, item, context, history, lengths)`` takes codes (B, Fu), (B, Fi), (B, Fc), (B, T, Fi) and the
numbers of valid behaviours (B,) and returns logits (B,). With ``auxiliary=True`` it returns logits and a
scalar to be added to the mean loss of the batch: SASRec's next-behaviour losses, HPMN's penalty, 0 for all
others (``has_auxiliary`` says which). It is an output and not a state of the module, so that compiled and
distributed networks have it as well.

Notation: e_t is a behaviour (its fields' vectors one after another), v the candidate item, u user and
context, [a, b] a concatenation, f the dense layers at the end (200-80-1 by default). Sizes are those of the
PeerRank paper and of UBR's baselines. Every model sees u; what has no place for behaviours gets the sum of
each of their fields as further fields.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from cleanrank.errors import invalid
from cleanrank.rankers.ctr import Sizes
from cleanrank.rankers.ctr.blocks import (
    AttentionGRU,
    CausalAttention,
    CompressedInteraction,
    DenseUnit,
    DotUnit,
    Embedded,
    Embedding,
    FieldAttention,
    InnerProducts,
    MatrixCross,
    Memory,
    VectorCross,
    dense,
    factorisation_machine,
    head,
    last_state,
    masked_softmax,
    sum_pool,
    weighted_sum,
)
from cleanrank.validation import check_integer, check_number, one_of, require

try:
    import torch
    from torch import Tensor, nn
    from torch.nn import functional
except ImportError:  # the message carries the pip command
    require("nn")
    raise

if TYPE_CHECKING:
    from cleanrank.data.behaviours import Layout

UNITS = ("dot", "dense")


class ClickNetwork(nn.Module, ABC):
    """What all models share: embeddings in, logits out."""

    has_auxiliary = False

    def __init__(self, layout: "Layout", sizes: Sizes, *, first_order: bool = False) -> None:
        super().__init__()
        self.embed = Embedding(layout, sizes.embedding + first_order)
        self.item_width = len(layout.item) * sizes.embedding  # of v and e_t
        self.user_width = (len(layout.user) + len(layout.context)) * sizes.embedding
        self.n_fields = len(layout.user) + 2 * len(layout.item) + len(layout.context)  # behaviours included
        self.sizes = sizes

    def forward(
        self,
        user: Tensor,
        item: Tensor,
        context: Tensor,
        history: Tensor,
        lengths: Tensor,
        *,
        auxiliary: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Logits (B,); with ``auxiliary`` also a scalar that belongs to the mean loss."""
        rows: Embedded = self.embed(user, item, context, history, lengths)
        return self.with_auxiliary(rows) if auxiliary else self.score(rows)

    @abstractmethod
    def score(self, rows: Embedded) -> Tensor:
        """Logits (B,)."""

    def with_auxiliary(self, rows: Embedded) -> tuple[Tensor, Tensor]:
        """Logits (B,) and the further loss."""
        logits = self.score(rows)
        return logits, logits.new_zeros(())


class SequenceNetwork(ClickNetwork):
    """f([s, u, v]) with a summary s of the behaviours."""

    def set_head(self, width: int, *, scale: bool = True) -> None:
        """Dense layers for a summary of the given width."""
        width += self.user_width + self.item_width
        self.head = head(width, self.sizes.layers, self.sizes.dropout, scale=scale)

    @abstractmethod
    def summary(self, rows: Embedded) -> Tensor:
        """s, (B, width)."""

    def score(self, rows: Embedded) -> Tensor:
        """Logits (B,)."""
        return self.logits(self.summary(rows), rows)

    def logits(self, summary: Tensor, rows: Embedded) -> Tensor:
        """Logits (B,) of a summary."""
        logits: Tensor = self.head(torch.cat([summary, rows.profile], dim=1)).squeeze(1)
        return logits


class GRU4Rec(SequenceNetwork):
    """GRU4Rec (Hidasi 2016) as a model of clicks: s = h_T, h_t = GRU(e_t, h_{t-1})."""

    def __init__(self, layout: "Layout", sizes: Sizes) -> None:
        super().__init__(layout, sizes)
        self.gru = nn.GRU(self.item_width, sizes.hidden, batch_first=True)
        self.set_head(sizes.hidden)

    def summary(self, rows: Embedded) -> Tensor:
        """The state after the last behaviour."""
        return last_state(self.gru(rows.behaviours)[0], rows.lengths)


class Caser(SequenceNetwork):
    """Caser (Tang 2018): s = [o, o~], o_n = max_t <F_n, E_{t:t+height}>, o~ = sum_n c_n sum_r G_nr e_{T-r}.

    Horizontal filters F run over windows of the valid behaviours; a history shorter than a window is filled
    with zeros behind. Vertical filters G weigh behaviours by how recent they are, as in the paper, where
    padding lies in front; those beyond ``sizes.history`` weigh nothing. No activation, as in UBR.
    """

    def __init__(self, layout: "Layout", sizes: Sizes, filters: int = 4, height: int = 5) -> None:
        super().__init__(layout, sizes)
        check_integer("filters", filters, least=1)
        self.height = check_integer("height", height, least=1)
        self.horizontal = nn.Conv1d(self.item_width, filters, height)
        self.vertical = nn.Parameter(torch.randn(filters, sizes.history) * sizes.history**-0.5)
        self.mix = nn.Linear(filters, 1)
        self.set_head(filters + self.item_width)

    def summary(self, rows: Embedded) -> Tensor:
        """The highest value of each window filter, and one mixture of the behaviours."""
        behaviours, lengths, history = rows.behaviours, rows.lengths.unsqueeze(1), self.vertical.shape[1]
        places = torch.arange(behaviours.shape[1], device=lengths.device)
        valid = functional.pad(behaviours * rows.mask.unsqueeze(2), (0, 0, 0, self.height - 1))
        windows = self.horizontal(valid.mT)
        inside = (places + self.height <= lengths) | (places == 0)
        highest = windows.masked_fill(~inside.unsqueeze(1), torch.finfo(windows.dtype).min).amax(dim=2)
        age = lengths - 1 - places
        weights = (self.mix.weight @ self.vertical).squeeze(0)[age.clamp(0, history - 1)]
        mixture = weighted_sum(weights * (rows.mask & (age < history)), behaviours) + self.mix.bias
        return torch.cat([highest, mixture], dim=1)


class SASRec(SequenceNetwork):
    """SASRec (Kang 2018): s = z_T, z = q + softmax(Q K' / sqrt(d / heads)) V with q = layer norm of e.

    Q = W_q q, K = W_k e, V = W_v e; no place sees later ones. Places have no vectors of their own, as in UBR.

    Further losses: log(1 + exp(-f([z_t, u, e_{t+1}]))) for the next behaviour and log(1 + exp(f([z_t, u,
    e'_{t+1}]))) for the one that another row of the batch has in that place, each a mean over the places
    where both exist and differ.
    """

    has_auxiliary = True

    def __init__(self, layout: "Layout", sizes: Sizes, heads: int = 2) -> None:
        super().__init__(layout, sizes)
        if self.item_width % check_integer("heads", heads, least=1):
            rule = f"must divide the width of a behaviour ({self.item_width})"
            raise invalid("heads", rule, heads, remedy="Choose another embedding or other heads.")
        self.attention = CausalAttention(self.item_width, heads, sizes.dropout)
        self.n_users = len(layout.user)
        self.set_head(self.item_width, scale=False)

    def summary(self, rows: Embedded) -> Tensor:
        """The state at the last behaviour."""
        return last_state(self.attention(rows.behaviours), rows.lengths)

    def with_auxiliary(self, rows: Embedded) -> tuple[Tensor, Tensor]:
        """Logits, and the losses of next behaviours."""
        states, following = self.attention(rows.behaviours), rows.behaviours[:, 1:]
        logits = self.logits(last_state(states, rows.lengths), rows)
        others, mask = following.roll(1, dims=0), rows.mask[:, 1:]
        counted = mask & mask.roll(1, dims=0) & (following != others).any(dim=2)
        right = self._of_next(states[:, :-1], following, rows)
        wrong = self._of_next(states[:, :-1], others, rows)
        losses = (functional.softplus(-right) + functional.softplus(wrong)) * counted
        return logits, losses.sum() / counted.sum().clamp(min=1)

    def _of_next(self, states: Tensor, items: Tensor, rows: Embedded) -> Tensor:
        """Logits (B, T - 1) of items in the place of the candidate."""
        first, last = self.n_users, self.n_users + self.item_width // self.sizes.embedding
        user = rows.fields[:, :first].flatten(1).unsqueeze(1).expand(-1, items.shape[1], -1)
        context = rows.fields[:, last:].flatten(1).unsqueeze(1).expand(-1, items.shape[1], -1)
        logits: Tensor = self.head(torch.cat([states, user, items, context], dim=2)).squeeze(2)
        return logits


class HPMN(SequenceNetwork):
    """HPMN (Ren 2019): s = sum_l softmax_l(<W v, m_l>) m_l with the last state m_l of GRU l.

    Every second state of a GRU goes into the next one, which so runs at half the pace.

    Further loss: ``penalty`` times the mean over rows of the Frobenius norm of the covariances between the
    m_l (of two different ones), so that they remember different things.
    """

    has_auxiliary = True

    def __init__(self, layout: "Layout", sizes: Sizes, depth: int = 3, penalty: float = 0.01) -> None:
        super().__init__(layout, sizes)
        check_integer("depth", depth, least=1)
        self.penalty = check_number("penalty", penalty, least=0)
        widths = [self.item_width] + [sizes.hidden] * (depth - 1)
        self.layers = nn.ModuleList(nn.GRU(width, sizes.hidden, batch_first=True) for width in widths)
        self.unit = DotUnit(self.item_width, sizes.hidden)
        self.set_head(sizes.hidden)

    def memory(self, rows: Embedded) -> Tensor:
        """The last state of each layer, (B, depth, hidden)."""
        # The topmost layer needs a place as well.
        missing = max(0, 2 ** (len(self.layers) - 1) - rows.behaviours.shape[1])
        states, lengths, memory = functional.pad(rows.behaviours, (0, 0, 0, missing)), rows.lengths, []
        for layer in self.layers:
            states = layer(states)[0]
            memory.append(last_state(states, lengths))
            states, lengths = states[:, 1::2], lengths // 2
        return torch.stack(memory, dim=1)

    def summary(self, rows: Embedded) -> Tensor:
        """The memory, read by the item."""
        return self.read(self.memory(rows), rows.item)

    def read(self, memory: Tensor, item: Tensor) -> Tensor:
        """Last states, weighted by the item."""
        return weighted_sum(self.unit(item, memory).softmax(dim=1), memory)

    def with_auxiliary(self, rows: Embedded) -> tuple[Tensor, Tensor]:
        """Logits, and the penalty on memories that vary together."""
        memory = self.memory(rows)
        centred = memory - memory.mean(dim=2, keepdim=True)
        covariance = (centred @ centred.mT / memory.shape[2]).triu(1)
        norms = torch.linalg.vector_norm(covariance.flatten(1), dim=1) * 2**0.5
        return self.logits(self.read(memory, rows.item), rows), self.penalty * norms.mean()


class MIMN(SequenceNetwork):
    """MIMN (Pi 2019): s = [sum_t e_t, r, mean_i S_i * v].

    r is what v reads from the memory, S_i the sum of the writes to slot i (see ``Memory``). UBR's
    version has no user in f; this one has, as all others do.
    """

    def __init__(self, layout: "Layout", sizes: Sizes, slots: int = 4, read: int = 16) -> None:
        super().__init__(layout, sizes)
        check_integer("slots", slots, least=1)
        check_integer("read", read, least=1)
        self.memory = Memory(self.item_width, sizes.hidden, slots, read)
        self.set_head(2 * self.item_width + read)

    def summary(self, rows: Embedded) -> Tensor:
        """Summed behaviours, the read-out, and summed writes times the item."""
        read, sums = self.memory(rows.behaviours, rows.mask, rows.item)
        pooled = sum_pool(rows.behaviours, rows.mask)
        return torch.cat([pooled, read, sums.mean(dim=1) * rows.item], dim=1)


class DIN(SequenceNetwork):
    """DIN (Zhou 2018): s = sum_t a_t e_t, a = softmax over valid t of <W v, e_t>.

    ``unit="dense"`` takes DIN's own unit, dense layers on [v, e_t, v - e_t, v * e_t], for the dot product.
    """

    def __init__(self, layout: "Layout", sizes: Sizes, unit: str = "dot") -> None:
        super().__init__(layout, sizes)
        width = self.item_width
        self.unit: nn.Module = (
            DotUnit(width, width) if one_of("unit", unit, UNITS) == "dot" else DenseUnit(width)
        )
        self.set_head(width)

    def summary(self, rows: Embedded) -> Tensor:
        """Behaviours, weighted by the item."""
        weights = masked_softmax(self.unit(rows.item, rows.behaviours), rows.mask)
        return weighted_sum(weights, rows.behaviours)


class DIEN(SequenceNetwork):
    """DIEN (Zhou 2019): h = GRU(e), a = softmax over valid t of <W v, h_t>, s = AUGRU(h, a)'s last state.

    AUGRU: s_t = (1 - a_t u_t) * s_{t-1} + a_t u_t * n_t with a GRU's update gate u_t and new state n_t.
    Without the paper's auxiliary loss, as in UBR.
    """

    def __init__(self, layout: "Layout", sizes: Sizes) -> None:
        super().__init__(layout, sizes)
        self.interests = nn.GRU(self.item_width, sizes.hidden, batch_first=True)
        self.unit = DotUnit(self.item_width, sizes.hidden)
        self.evolution = AttentionGRU(sizes.hidden, sizes.hidden)
        self.set_head(sizes.hidden)

    def summary(self, rows: Embedded) -> Tensor:
        """The last state of interests as they bear on the item."""
        interests = self.interests(rows.behaviours)[0]
        weights = masked_softmax(self.unit(rows.item, interests), rows.mask)
        state: Tensor = self.evolution(interests, weights)
        return state


class DeepFM(ClickNetwork):
    """DeepFM (Guo 2017): sum_i w_i + sum_{i<j} <e_i, e_j> + f([e_1, ..., e_F]).

    w_i is the last column of the table of embeddings.
    """

    def __init__(self, layout: "Layout", sizes: Sizes) -> None:
        super().__init__(layout, sizes, first_order=True)
        self.head = head(self.n_fields * sizes.embedding, sizes.layers, sizes.dropout)

    def score(self, rows: Embedded) -> Tensor:
        """First order, second order, dense layers."""
        vectors, first = torch.split(rows.pooled(), [self.sizes.embedding, 1], dim=2)
        logits: Tensor = self.head(vectors.flatten(1)).squeeze(1)
        return logits + first.sum(dim=(1, 2)) + factorisation_machine(vectors)


class IPNN(ClickNetwork):
    """IPNN (Qu 2016): f([e_1, ..., e_F, <e_1, e_2>, ..., <e_{F-1}, e_F>])."""

    def __init__(self, layout: "Layout", sizes: Sizes) -> None:
        super().__init__(layout, sizes)
        self.products = InnerProducts(self.n_fields)
        width = self.n_fields * sizes.embedding + len(self.products.places)
        self.head = head(width, sizes.layers, sizes.dropout)

    def score(self, rows: Embedded) -> Tensor:
        """Fields and their products."""
        fields = rows.pooled()
        logits: Tensor = self.head(torch.cat([fields.flatten(1), self.products(fields)], dim=1)).squeeze(1)
        return logits


class DCN(ClickNetwork):
    """DCN (Wang 2017): w . [x_L, g(x_0)] + b, x_{l+1} = x_0 (x_l . w_l) + b_l + x_l, g dense layers."""

    def __init__(self, layout: "Layout", sizes: Sizes, depth: int = 2) -> None:
        super().__init__(layout, sizes)
        width = self.n_fields * sizes.embedding
        self.cross = VectorCross(width, check_integer("depth", depth, least=1))
        self.dense = dense(width, sizes.layers, sizes.dropout)
        self.output = nn.Linear(width + sizes.layers[-1], 1)

    def score(self, rows: Embedded) -> Tensor:
        """Crosses and dense layers side by side."""
        x = rows.pooled().flatten(1)
        logits: Tensor = self.output(torch.cat([self.cross(x), self.dense(x)], dim=1)).squeeze(1)
        return logits


class DCNM(ClickNetwork):
    """DCN-M, also DCN-v2 (Wang 2021): f(x_L), x_{l+1} = x_0 * (W_l x_l + b_l) + x_l."""

    def __init__(self, layout: "Layout", sizes: Sizes, depth: int = 2) -> None:
        super().__init__(layout, sizes)
        width = self.n_fields * sizes.embedding
        self.cross = MatrixCross(width, check_integer("depth", depth, least=1))
        self.head = head(width, sizes.layers, sizes.dropout)

    def score(self, rows: Embedded) -> Tensor:
        """Crosses, then dense layers."""
        logits: Tensor = self.head(self.cross(rows.pooled().flatten(1))).squeeze(1)
        return logits


class XDeepFM(ClickNetwork):
    """xDeepFM (Lian 2018): sum_i w_i + w . [p^1, ..., p^L] + f([e_1, ..., e_F]).

    X^l_h = sum_ij W^l_hij (X^{l-1}_i * X^0_j), X^0 the fields; p^l_h sums X^l_h.
    """

    def __init__(self, layout: "Layout", sizes: Sizes, depth: int = 3, maps: int = 7) -> None:
        super().__init__(layout, sizes, first_order=True)
        check_integer("depth", depth, least=1)
        check_integer("maps", maps, least=1)
        self.interactions = CompressedInteraction(self.n_fields, [maps] * depth)
        self.output = nn.Linear(maps * depth, 1, bias=False)
        self.head = head(self.n_fields * sizes.embedding, sizes.layers, sizes.dropout)

    def score(self, rows: Embedded) -> Tensor:
        """First order, compressed interactions, dense layers."""
        vectors, first = torch.split(rows.pooled(), [self.sizes.embedding, 1], dim=2)
        logits: Tensor = self.head(vectors.flatten(1)) + self.output(self.interactions(vectors))
        return logits.squeeze(1) + first.sum(dim=(1, 2))


class AutoInt(ClickNetwork):
    """AutoInt (Song 2019): w . [e_1^L, ..., e_F^L] + b; by head e_m' = relu(W_r e_m + sum_n a_mn W_v e_n).

    a_mn = softmax_n(<W_q e_m, W_k e_n>), not scaled; heads are put side by side.
    """

    def __init__(
        self, layout: "Layout", sizes: Sizes, depth: int = 3, heads: int = 2, head_width: int = 6
    ) -> None:
        super().__init__(layout, sizes)
        for name, value in (("depth", depth), ("heads", heads), ("head_width", head_width)):
            check_integer(name, value, least=1)
        widths = [sizes.embedding] + [heads * head_width] * (depth - 1)
        self.layers = nn.Sequential(*(FieldAttention(width, heads, head_width) for width in widths))
        self.output = nn.Linear(self.n_fields * heads * head_width, 1)

    def score(self, rows: Embedded) -> Tensor:
        """Fields that have looked at each other, and one output."""
        logits: Tensor = self.output(self.layers(rows.pooled()).flatten(1)).squeeze(1)
        return logits
