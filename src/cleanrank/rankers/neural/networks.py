"""Networks that score documents.

N documents of F features in B queries, the longest of L documents. A *document* network maps flat documents
(N, F) to scores (N,), so that no padding goes through it. A *list* network (``listwise`` is true) sees the
documents of a query together: padded (B, L, F) and the mask of real entries (B, L) give scores (B, L); what
stands in padded places changes nothing, and the order of the documents does not matter.
"""

from collections.abc import Callable, Iterable, Sequence
from inspect import signature
from typing import Any, TypeAlias

from cleanrank.errors import invalid
from cleanrank.validation import check_integer, check_number, one_of, require

try:
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

    from cleanrank.rankers.neural.device import first_weights
except ImportError:  # the message carries the pip command
    require("nn")
    raise

Network: TypeAlias = nn.Module

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "elu": nn.ELU,
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "tanh": nn.Tanh,
    "silu": nn.SiLU,
}
HIDDEN = (512, 256, 128)


class DocumentNetwork(nn.Module):
    """Scores each document by itself: s(x) = w . u(x) + b, u from (N, F) to (N, width); b may be left out."""

    listwise = False

    def __init__(self, features: nn.Module, width: int, *, bias: bool = True) -> None:
        super().__init__()
        self.features = features
        self.output = nn.Linear(width, 1, bias=bias)

    def forward(self, X: Tensor) -> Tensor:
        """Scores (N,) of flat documents (N, F)."""
        scores: Tensor = self.output(self.features(X)).squeeze(-1)
        return scores


class DirectRanker(DocumentNetwork):
    """DirectRanker: one feature network u for both documents and an output that is odd in their difference.

    o(x1, x2) = tanh(w . (u(x1) - u(x2)) / 2), without bias, so that o(x1, x2) = -o(x2, x1). The loss of its
    authors is (1 - y o)^2 with y = +-1 (``loss="direct"`` of NeuralRanker); a logistic loss on the same
    difference is RankNet.
    """

    def preference(self, X1: Tensor, X2: Tensor) -> Tensor:
        """o(x1, x2) in (-1, 1): how surely the first document comes before the second."""
        return torch.tanh((self(X1) - self(X2)) / 2)


class AttentionNetwork(nn.Module):
    """Self-attention over the documents of a query, as in SetRank and allRank (Pang 2020, Pobrotyn 2020).

    An input layer, then blocks of x + attention(norm(x)) and x + dense(norm(x)), then one linear output.
    Nothing tells the place of a document, so permuting documents permutes scores.

    Args:
        n_features: F.
        width: of the vectors that attend to each other.
        heads: attention heads; they share the width.
        blocks: how many.
        dropout: share of values dropped in training.
        activation: one of ACTIVATIONS.
    """

    listwise = True

    def __init__(
        self,
        n_features: int,
        *,
        width: int = 128,
        heads: int = 2,
        blocks: int = 2,
        dropout: float = 0.0,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        for name, value in (("width", width), ("heads", heads), ("blocks", blocks)):
            check_integer(name, value, least=1)
        if width % heads:
            raise invalid("width", f"must be a multiple of the {heads} heads", width)
        check_number("dropout", dropout, least=0, below=1)
        one_of("activation", activation, ACTIVATIONS)
        self.input = nn.Linear(n_features, width)
        self.blocks = nn.ModuleList(_Block(width, heads, dropout, activation) for _ in range(blocks))
        self.norm = nn.LayerNorm(width)
        self.output = nn.Linear(width, 1)

    def forward(self, X: Tensor, mask: Tensor) -> Tensor:
        """Scores (B, L) of padded documents (B, L, F); 0 in padded places."""
        hidden = self.input(X)
        # A query without documents would divide by zero; its padded places may look at each other.
        seen = (mask | ~mask.any(dim=1, keepdim=True))[:, None, None, :]
        for block in self.blocks:
            hidden = block(hidden, seen)
        scores: Tensor = self.output(self.norm(hidden)).squeeze(-1)
        return scores.masked_fill(~mask, 0.0)


class _Block(nn.Module):
    def __init__(self, width: int, heads: int, dropout: float, activation: str) -> None:
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.norm_attention, self.norm_dense = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.dense = nn.Sequential(
            nn.Linear(width, 2 * width),
            ACTIVATIONS[activation](),
            nn.Dropout(dropout),
            nn.Linear(2 * width, width),
        )

    def forward(self, hidden: Tensor, seen: Tensor) -> Tensor:
        B, L, width = hidden.shape
        parts = self.project(self.norm_attention(hidden)).view(B, L, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=seen, dropout_p=self.dropout if self.training else 0.0
        )
        hidden = hidden + self.merge(mixed.transpose(1, 2).reshape(B, L, width))
        output: Tensor = hidden + self.dense(self.norm_dense(hidden))
        return output


def build_linear(n_features: int) -> DocumentNetwork:
    """A linear scorer; with the hinge loss on pairs it is SVMRank (Herbrich 2000, Joachims 2002)."""
    return DocumentNetwork(nn.Identity(), n_features)


def build_mlp(
    n_features: int,
    *,
    hidden: Sequence[int] = HIDDEN,
    activation: str = "elu",
    dropout: float = 0.0,
    norm: bool = True,
) -> DocumentNetwork:
    """Dense layers, by default 512-256-128-1 with ELU and layer norm before each (as in ULTRA).

    Args:
        n_features: F.
        hidden: widths of the hidden layers.
        activation: one of ACTIVATIONS.
        dropout: share of values dropped in training.
        norm: layer norm of what goes into each dense layer.
    """
    features, width = _dense(n_features, hidden, activation, dropout, norm)
    return DocumentNetwork(features, width)


def build_direct(
    n_features: int, *, hidden: Sequence[int] = (64, 20), activation: str = "tanh", dropout: float = 0.0
) -> DirectRanker:
    """DirectRanker (Koeppel 2019); the arguments are those of ``build_mlp``."""
    features, width = _dense(n_features, hidden, activation, dropout, norm=False)
    return DirectRanker(features, width, bias=False)


def network_options(name: str) -> list[str]:
    """The options of a network of NETWORKS."""
    return list(signature(NETWORKS[name]).parameters)[1:]


def build_network(name: str, n_features: int, *, seed: int = 0, **options: Any) -> Network:
    """A network of NETWORKS with its first weights drawn from ``seed``; torch's own stream is untouched."""
    build = NETWORKS[one_of("network", name, NETWORKS)]
    if n_features < 1:
        raise invalid("X", "must have features", "no columns")
    takes = network_options(name)
    for option in options:
        if option not in takes:
            rule = f"takes {', '.join(takes)}" if takes else "takes no options"
            raise invalid(f"network {name!r}", rule, repr(option))
    with first_weights(seed):
        return build(n_features, **options)


def _dense(
    n_features: int, hidden: Sequence[int], activation: str, dropout: float, norm: bool
) -> tuple[nn.Sequential, int]:
    one_of("activation", activation, ACTIVATIONS)
    check_number("dropout", dropout, least=0, below=1)
    widths: Any = hidden
    if not isinstance(widths, Iterable):
        raise invalid(
            "hidden", "must list the widths of hidden layers", repr(hidden), remedy="As in (64, 32)."
        )
    layers: list[nn.Module] = []
    width = n_features
    for size in hidden:
        check_integer("hidden", size, least=1)
        layers += [nn.LayerNorm(width)] if norm else []
        layers += [nn.Linear(width, size), ACTIVATIONS[activation]()]
        layers += [nn.Dropout(dropout)] if dropout else []
        width = size
    layers += [nn.LayerNorm(width)] if norm else []
    return nn.Sequential(*layers), width


NETWORKS: dict[str, Callable[..., Network]] = {
    "linear": build_linear,
    "mlp": build_mlp,
    "direct": build_direct,
    "attention": AttentionNetwork,
}
