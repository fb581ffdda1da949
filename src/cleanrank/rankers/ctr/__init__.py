"""Models of clicks: a user, a candidate item, a context and the behaviours before them give a logit.

``MODELS`` is the one list of them. It names networks without importing torch, which is loaded when one is
built.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from inspect import signature
from typing import TYPE_CHECKING, Any

from cleanrank.errors import invalid
from cleanrank.validation import check_integer, check_number

if TYPE_CHECKING:
    from cleanrank.data.behaviours import Layout
    from cleanrank.rankers.ctr.models import ClickNetwork


@dataclass(frozen=True)
class Sizes:
    """What every model of clicks is built with.

    Attributes:
        embedding: length of a field's vector.
        hidden: units of a recurrent layer; models without one do not read it.
        dropout: share of the values dropped in training.
        history: the most behaviours of a row; only Caser, which has a weight for each place, reads it.
        layers: widths of the dense layers at the end.
    """

    embedding: int = 16
    hidden: int = 32
    dropout: float = 0.2
    history: int = 20
    layers: tuple[int, ...] = (200, 80)

    def __post_init__(self) -> None:
        for name in ("embedding", "hidden", "history"):
            check_integer(name, getattr(self, name), least=1)
        check_number("dropout", self.dropout, least=0, below=1)
        layers: Any = self.layers
        if not isinstance(layers, (list, tuple)) or not layers:
            rule = "must list the widths of dense layers"
            raise invalid("layers", rule, repr(layers), remedy="As in (200, 80).")
        object.__setattr__(self, "layers", tuple(check_integer("layers", width, least=1) for width in layers))


@dataclass(frozen=True)
class Builder:
    """Builds one model of clicks: its class in ``rankers.ctr.models`` and a line about it."""

    target: str
    about: str

    def load(self) -> type[Any]:
        """The class."""
        network: type[Any] = getattr(importlib.import_module("cleanrank.rankers.ctr.models"), self.target)
        return network

    def own_options(self) -> Mapping[str, Any]:
        """Options of this model alone with their defaults."""
        parameters = list(signature(self.load()).parameters.values())[2:]
        return {parameter.name: parameter.default for parameter in parameters}

    def options(self) -> dict[str, Any]:
        """All options with their defaults: those of ``Sizes``, then the model's own."""
        return {size.name: size.default for size in fields(Sizes)} | dict(self.own_options())

    def __call__(self, layout: "Layout", *, seed: int = 0, **options: Any) -> "ClickNetwork":
        """The network with its first weights drawn from ``seed``; torch's own stream is untouched.

        Args:
            layout: the fields of the rows and how many codes each has.
            seed: of the first weights.
            options: attributes of ``Sizes`` and what the model takes beside them.

        Returns:
            A module: user (B, Fu), item (B, Fi), context (B, Fc), history (B, T, Fi) and lengths (B,) give
            logits (B,).

        >>> from cleanrank.data.behaviours import Layout
        >>> network = MODELS["din"](Layout(user={"user": 9}, item={"item": 7, "category": 3}), embedding=8)
        >>> network.embed.table.weight.shape
        torch.Size([19, 8])
        """
        takes = self.options()
        for option in options:
            if option not in takes:
                raise invalid(f"model {self.target}", f"takes {', '.join(takes)}", repr(option))
        network_class = self.load()
        from cleanrank.rankers.neural.device import first_weights

        sizes = Sizes(**{name: options.pop(name) for name in list(options) if name in Sizes.__annotations__})
        with first_weights(seed):
            network: ClickNetwork = network_class(layout, sizes, **options)
        return network


MODELS: dict[str, Builder] = {
    "gru4rec": Builder("GRU4Rec", "a recurrent network over behaviours"),
    "caser": Builder("Caser", "convolutions over behaviours and over places"),
    "sasrec": Builder("SASRec", "self-attention over behaviours, which also learns the next one"),
    "hpmn": Builder("HPMN", "recurrent layers of halving pace, their last states a memory"),
    "mimn": Builder("MIMN", "a memory that behaviours write to and the item reads"),
    "deepfm": Builder("DeepFM", "factorisation machine beside dense layers"),
    "ipnn": Builder("IPNN", "inner products of fields into dense layers"),
    "dcn": Builder("DCN", "crosses with a vector beside dense layers"),
    "xdeepfm": Builder("XDeepFM", "compressed interactions beside dense layers"),
    "dcn-m": Builder("DCNM", "crosses with a matrix, then dense layers (DCN-v2)"),
    "din": Builder("DIN", "behaviours weighted by the item"),
    "dien": Builder("DIEN", "interests from a recurrent network, followed by an attention-gated one"),
    "autoint": Builder("AutoInt", "self-attention between fields"),
}
