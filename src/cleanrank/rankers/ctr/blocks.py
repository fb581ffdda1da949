"""The parts that models of clicks are made of.

B rows of F fields, T behaviours, vectors of length k; d = Fi k is the width of a behaviour (its Fi fields one
after another). Behaviours are valid at the front, padding lies behind them and never changes a result.
Nothing waits for the device, and shapes depend on no value, as ``torch.compile`` likes it.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from cleanrank.validation import require

try:
    import torch
    from torch import Tensor, nn
    from torch.nn import functional
except ImportError:  # the message carries the pip command
    require("nn")
    raise

if TYPE_CHECKING:
    from cleanrank.data.behaviours import Layout

# The spread of first embeddings. Small ones let rare values stay near the unknown one, which starts at 0.
SPREAD = 0.05


class Embedded(NamedTuple):
    """Rows as vectors."""

    fields: Tensor  # (B, Fu + Fi + Fc, k): user, candidate item, context
    item: Tensor  # (B, d) the candidate item
    behaviours: Tensor  # (B, T, d)
    mask: Tensor  # (B, T) true where a behaviour is valid
    lengths: Tensor  # (B,) valid behaviours

    @property
    def profile(self) -> Tensor:
        """User, candidate item and context side by side, (B, (Fu + Fi + Fc) k)."""
        return self.fields.flatten(1)

    def pooled(self) -> Tensor:
        """(B, Fu + 2 Fi + Fc, k): the fields, then those of the behaviours, each summed over its history."""
        rows, size = len(self.fields), self.fields.shape[-1]
        return torch.cat([self.fields, sum_pool(self.behaviours, self.mask).view(rows, -1, size)], dim=1)


class Embedding(nn.Module):
    """One table for all fields, e = V[start of the field + code]; behaviours share the fields of items.

    All codes of a batch are looked up at once, so that the gradient of the table is made once as well. The
    vector of an unknown value (code 0) starts at 0 and is learnt where training rows have unknown values.
    """

    starts: Tensor

    def __init__(self, layout: "Layout", size: int) -> None:
        super().__init__()
        counts = torch.tensor([*layout.user.values(), *layout.item.values(), *layout.context.values()])
        self.users, self.items, self.size = len(layout.user), len(layout.item), size
        self.register_buffer("starts", counts.cumsum(0) - counts, persistent=False)
        self.table = nn.Embedding(int(counts.sum()), size)
        nn.init.normal_(self.table.weight, std=SPREAD)
        with torch.no_grad():
            self.table.weight[self.starts] = 0.0

    def forward(
        self, user: Tensor, item: Tensor, context: Tensor, history: Tensor, lengths: Tensor
    ) -> Embedded:
        """Vectors of codes (B, Fu), (B, Fi), (B, Fc), (B, T, Fi)."""
        if not history.shape[1]:  # recurrent layers need a place
            history = functional.pad(history, (0, 0, 0, 1))
        (B, T, Fi), first = history.shape, self.users
        codes = torch.cat([user, item, context], dim=1) + self.starts
        behaviours = history + self.starts[first : first + Fi]
        # Flat, so that both parts of what comes back are contiguous.
        vectors = self.table(torch.cat([codes.flatten(), behaviours.flatten()]))
        flat_fields, flat_behaviours = vectors.split([codes.numel(), behaviours.numel()])
        fields = flat_fields.view(B, -1, self.size)
        return Embedded(
            fields,
            fields[:, first : first + Fi].flatten(1),
            flat_behaviours.view(B, T, Fi * self.size),
            torch.arange(T, device=lengths.device) < lengths[:, None],
            lengths,
        )


class Scale(nn.Module):
    """x * g + b by column: batch norm as UBR's head has it, whose running mean and variance stay 0 and 1."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(width)), nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        """The same shape."""
        return torch.addcmul(self.bias, x, self.weight)


def dense(width: int, layers: Sequence[int], dropout: float) -> nn.Sequential:
    """Dense layers with ReLU and dropout behind each."""
    parts: list[nn.Module] = []
    for size in layers:
        parts += [nn.Linear(width, size), nn.ReLU(inplace=True), nn.Dropout(dropout)]
        width = size
    return nn.Sequential(*parts)


def head(width: int, layers: Sequence[int], dropout: float, *, scale: bool = True) -> nn.Sequential:
    """From (..., width) to logits (..., 1): scale, dense layers, one output (softmax of two is the same)."""
    first = [Scale(width)] if scale else []
    return nn.Sequential(*first, *dense(width, layers, dropout), nn.Linear(layers[-1], 1))


def sum_pool(behaviours: Tensor, mask: Tensor) -> Tensor:
    """The sum of valid behaviours, (B, d)."""
    return weighted_sum(mask.to(behaviours.dtype), behaviours)


def weighted_sum(weights: Tensor, values: Tensor) -> Tensor:
    """sum_t w_t x_t of weights (B, T) and values (B, T, d)."""
    return torch.bmm(weights.unsqueeze(1), values).squeeze(1)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Shares (B, T) over valid places that add up to 1; all 0 in a row without any."""
    return scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=1) * mask


def last_state(states: Tensor, lengths: Tensor) -> Tensor:
    """The state (B, h) at the last valid place of (B, T, h); 0 in a row without any."""
    places = (lengths - 1).clamp(min=0).view(-1, 1, 1).expand(-1, 1, states.shape[2])
    return states.gather(1, places).squeeze(1) * (lengths > 0).unsqueeze(1)


def factorisation_machine(fields: Tensor) -> Tensor:
    """sum_{i<j} <e_i, e_j> = ((sum_i e_i)^2 - sum_i e_i^2) / 2 of (B, F, k), summed over k: (B,)."""
    return (fields.sum(dim=1).square() - fields.square().sum(dim=1)).sum(dim=1) / 2


class InnerProducts(nn.Module):
    """<e_i, e_j> for all i < j: (B, F, k) to (B, F (F - 1) / 2)."""

    places: Tensor

    def __init__(self, n_fields: int) -> None:
        super().__init__()
        i, j = torch.triu_indices(n_fields, n_fields, offset=1)
        self.register_buffer("places", i * n_fields + j, persistent=False)

    def forward(self, fields: Tensor) -> Tensor:
        """The products, pair (0, 1) first, then (0, 2)."""
        return torch.bmm(fields, fields.mT).flatten(1).index_select(1, self.places)


class VectorCross(nn.Module):
    """x_{l+1} = x_0 (x_l . w_l) + b_l + x_l."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(depth, width) * width**-0.5)
        self.bias = nn.Parameter(torch.zeros(depth, width))

    def forward(self, x0: Tensor) -> Tensor:
        """The last x_l, of x_0's shape (B, width)."""
        x = x0
        for weight, bias in zip(self.weight, self.bias, strict=True):
            x = torch.addcmul(x + bias, x0, (x @ weight).unsqueeze(1))
        return x


class MatrixCross(nn.Module):
    """x_{l+1} = x_0 * (W_l x_l + b_l) + x_l."""

    def __init__(self, width: int, depth: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(depth))

    def forward(self, x0: Tensor) -> Tensor:
        """The last x_l, of x_0's shape (B, width)."""
        x = x0
        for layer in self.layers:
            x = torch.addcmul(x, x0, layer(x))
        return x


class CompressedInteraction(nn.Module):
    """X^l_h = sum_ij W^l_hij (X^{l-1}_i * X^0_j), each map summed over k: (B, F, k) to (B, sum of maps)."""

    def __init__(self, n_fields: int, maps: Sequence[int]) -> None:
        super().__init__()
        before = [n_fields, *maps[:-1]]
        self.weights = nn.ParameterList(
            nn.Parameter(torch.randn(size, previous * n_fields) * (previous * n_fields) ** -0.5)
            for size, previous in zip(maps, before, strict=True)
        )

    def forward(self, fields: Tensor) -> Tensor:
        """The sums of all layers' maps."""
        sums, maps = [], fields
        for weight in self.weights:
            products = (maps.unsqueeze(2) * fields.unsqueeze(1)).flatten(1, 2)
            maps = weight @ products
            sums.append(maps.sum(dim=2))
        return torch.cat(sums, dim=1)


class DotUnit(nn.Module):
    """The score of a behaviour x_t for the item v: <W v + b, x_t>."""

    def __init__(self, item_width: int, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(item_width, width)

    def forward(self, item: Tensor, behaviours: Tensor) -> Tensor:
        """Scores (B, T) of (B, item width) and (B, T, width)."""
        return torch.bmm(behaviours, self.query(item).unsqueeze(2)).squeeze(2)


class DenseUnit(nn.Module):
    """DIN's own unit: dense layers with sigmoids on [v, x_t, v - x_t, v * x_t], then one output.

    The first layer is linear in its four parts, W1 v + W2 x + W3 (v - x) + W4 (v * x) = (W1 + W3) v +
    (W2 - W3) x + W4 (v * x): v's part is computed once per row, and products are half as wide.
    """

    def __init__(self, width: int, layers: Sequence[int] = (80, 40)) -> None:
        super().__init__()
        self.first = nn.Linear(4 * width, layers[0])
        self.layers = nn.ModuleList(nn.Linear(size, following) for size, following in pairwise(layers))
        self.output = nn.Linear(layers[-1], 1)

    def forward(self, item: Tensor, behaviours: Tensor) -> Tensor:
        """Scores (B, T) of (B, d) and (B, T, d)."""
        of_item, of_behaviour, of_difference, of_product = self.first.weight.chunk(4, dim=1)
        rows = functional.linear(item, of_item + of_difference, self.first.bias)
        both = torch.cat([behaviours, behaviours * item.unsqueeze(1)], dim=2)
        weight = torch.cat([of_behaviour - of_difference, of_product], dim=1)
        hidden = functional.linear(both, weight) + rows.unsqueeze(1)
        for layer in self.layers:
            hidden = layer(hidden.sigmoid())
        scores: Tensor = self.output(hidden.sigmoid()).squeeze(2)
        return scores


def multi_head(
    queries: Tensor, keys: Tensor, values: Tensor, heads: int, *, scaled: bool, causal: bool, dropout: float
) -> Tensor:
    """softmax(q k') v by head, all (B, L, width of all heads).

    ``scaled`` divides q k' by the root of a head's width; ``causal`` hides later places.
    """
    B, L, width = queries.shape
    query, key, value = (x.view(B, L, heads, -1).transpose(1, 2) for x in (queries, keys, values))
    mixed = functional.scaled_dot_product_attention(
        query, key, value, is_causal=causal, dropout_p=dropout, scale=None if scaled else 1.0
    )
    return mixed.transpose(1, 2).reshape(B, L, width)


class CausalAttention(nn.Module):
    """q_t + sum_{s<=t} softmax_s(<W_q q_t, W_k x_s> / sqrt(width of a head)) W_v x_s, q = layer norm of x.

    No place looks at later ones, so that padding behind the behaviours needs no mask.
    """

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm, self.query = nn.LayerNorm(width), nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)

    def forward(self, behaviours: Tensor) -> Tensor:
        """States of the same shape (B, T, d)."""
        first = self.norm(behaviours)
        keys, values = self.key_value(behaviours).chunk(2, dim=2)
        dropout = self.dropout if self.training else 0.0
        query = self.query(first)
        mixed = multi_head(query, keys, values, self.heads, scaled=True, causal=True, dropout=dropout)
        states: Tensor = first + mixed
        return states


class FieldAttention(nn.Module):
    """relu(W_r e_m + sum_n softmax_n(<W_q e_m, W_k e_n>) W_v e_n) by head, not scaled: AutoInt's layer."""

    def __init__(self, width: int, heads: int, head_width: int) -> None:
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 4 * heads * head_width, bias=False)

    def forward(self, fields: Tensor) -> Tensor:
        """(B, F, width) to (B, F, heads * head_width)."""
        query, key, value, residual = self.project(fields).chunk(4, dim=2)
        mixed = multi_head(query, key, value, self.heads, scaled=False, causal=False, dropout=0.0)
        output: Tensor = (residual + mixed).relu()
        return output


def gated_step(of_input: Tensor, of_state: Tensor, state: Tensor, attention: Tensor) -> Tensor:
    """One step of a GRU: both (B, 3 h) are the terms of reset gate r, update gate u and new state n.

    n = tanh(a_n + r b_n), h' = (1 - u) h + u n; attention (B, 1) multiplies u.
    """
    width = state.shape[1]
    gates = (of_input[:, : 2 * width] + of_state[:, : 2 * width]).sigmoid()
    reset, update = gates.chunk(2, dim=1)
    new = torch.addcmul(of_input[:, 2 * width :], reset, of_state[:, 2 * width :]).tanh()
    # States stay in single precision where products are rounded to half of it.
    return torch.lerp(state, new.to(state.dtype), (update * attention).to(state.dtype))


class AttentionGRU(nn.Module):
    """AUGRU: a GRU whose update gate is multiplied by the attention a_t; the state stays where a_t = 0."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.of_input, self.of_state = nn.Linear(width, 3 * hidden), nn.Linear(hidden, 3 * hidden)

    def forward(self, inputs: Tensor, attention: Tensor) -> Tensor:
        """The last state (B, hidden) of inputs (B, T, width) under attention (B, T), 0 in padded places."""
        state = inputs.new_zeros(len(inputs), self.of_state.in_features)
        steps = self.of_input(inputs.transpose(0, 1)).unbind(0)
        for step, weight in zip(steps, attention.T.unsqueeze(2).unbind(0), strict=True):
            state = gated_step(step, self.of_state(state), state, weight)
        return state


class Memory(nn.Module):
    """MIMN's memory M (B, slots, d), read and written by a GRU that sees a behaviour and the last read.

    The GRU's state gives a key k, a sharpness and, for writing, what to erase and to add. Slots are addressed
    by w = softmax(beta (cos(k, M) + cos(k, K)) / 2) with learnt keys K, beta = 2 (1 + softplus). A read-out
    is w M; a write is M (1 - w erase) + w add, and w add is summed up apart from it.
    """

    start: Tensor

    def __init__(self, width: int, hidden: int, slots: int, outputs: int = 16) -> None:
        super().__init__()
        self.width, self.hidden = width, hidden
        self.of_input, self.of_read = nn.Linear(width, 3 * hidden), nn.Linear(width, 3 * hidden, bias=False)
        self.of_state = nn.Linear(hidden, 3 * hidden)
        self.control = nn.Linear(hidden, 2 * (width + 1) + 2 * width)
        self.output = nn.Linear(hidden + width, outputs)
        self.keys = nn.Parameter(torch.randn(slots, width) * 0.5)
        self.first_read = nn.Parameter(torch.zeros(width))
        # Not learnt: too small to matter beside the first write, but not 0, which has no direction.
        self.register_buffer("start", torch.randn(slots, width) * 1e-5)

    def forward(self, behaviours: Tensor, mask: Tensor, item: Tensor) -> tuple[Tensor, Tensor]:
        """What the item reads after all behaviours (B, outputs), and the summed writes (B, slots, d)."""
        B = len(behaviours)
        memory, keys = self.start.tanh().expand(B, -1, -1), functional.normalize(self.keys.tanh(), dim=1)
        state, read = behaviours.new_zeros(B, self.hidden), self.first_read.tanh().expand(B, -1)
        always, written, added = behaviours.new_ones(B, 1), [], []
        steps = self.of_input(behaviours.transpose(0, 1)).unbind(0)
        # A padded step has an update gate of 0, writes to no slot and leaves the read-out as it is.
        for step, valid in zip(steps, mask.T.unsqueeze(2).to(behaviours.dtype).unbind(0), strict=True):
            state, new_read, slots, erase, add = self.step(step, state, read, memory, keys, valid)
            read, slots = torch.lerp(read, new_read.to(read.dtype), valid), slots * valid
            memory = memory - memory * _outer(slots, erase) + _outer(slots, add)
            written.append(slots.detach())
            added.append(add)
        sums = torch.bmm(torch.stack(written, dim=2), torch.stack(added, dim=1))
        state, read, *_ = self.step(self.of_input(item), state, read, memory, keys, always)
        return self.output(torch.cat([state, read], dim=1)), sums

    def step(
        self, of_input: Tensor, state: Tensor, read: Tensor, memory: Tensor, keys: Tensor, valid: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """New state, read-out, shares of the slots to write to, what to erase and what to add."""
        state = gated_step(of_input + self.of_read(read), self.of_state(state), state, valid)
        sizes = [2 * self.width, 2, self.width, self.width]
        wanted, sharpness, erase, add = self.control(state).split(sizes, dim=1)
        wanted = functional.normalize(wanted.tanh().view(-1, 2, self.width), dim=2)
        likeness = wanted @ (functional.normalize(memory, dim=2) + keys).mT / 2
        shares = (likeness * (2 * (1 + functional.softplus(sharpness))).unsqueeze(2)).softmax(dim=2)
        reads, writes = shares.unbind(1)
        return state, weighted_sum(reads, memory), writes, erase.sigmoid(), add.tanh()


def _outer(slots: Tensor, vector: Tensor) -> Tensor:
    return slots.unsqueeze(2) * vector.unsqueeze(1)
