"""What a neural ranker minimises: a ranking loss with its robust form, on judged lists or on preferences.

A spec of a robust form is what ``losses.robust_specs`` reads: a name, a mapping with options, or several.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from typing import Any

import numpy as np

from cleanrank.errors import invalid
from cleanrank.losses.binary import BinaryLoss, binary_loss, margin_loss, probability
from cleanrank.losses.pairs import PAIR_SETS, check_peer_pairs
from cleanrank.losses.robust_specs import robust_steps
from cleanrank.losses.torch import RANKING_LOSSES, RankingLoss, ranking_loss
from cleanrank.rankers.neural.debias import DEBIASING, Debiased
from cleanrank.theory.peer import Alpha, pair_alpha, point_alpha, preference_alpha, stated_alpha
from cleanrank.types import RankingData
from cleanrank.validation import one_of

PAIRED = ("ranknet", "lambdarank", "pairwise", "direct")
PEER = "peer"

# DirectRanker's (1 - tanh(m / 2))^2, which is 4 / (1 + exp(m))^2.
DIRECT = margin_loss(
    "direct",
    lambda m: 4 * probability(-m) ** 2,
    lambda m: -8 * probability(-m) ** 2 * probability(m),
    lambda m: 8 * probability(-m) ** 2 * probability(m) * (2 - 3 * probability(-m)),
    bounded=True,
)

LOSSES: dict[str, str] = {
    **RANKING_LOSSES,
    "direct": "DirectRanker's (1 - tanh(d / 2))^2 on pairs (Koeppel 2019)",
}


@dataclass(frozen=True)
class LossConfig:
    """The loss, in NeuralRanker's parameters."""

    # One of LOSSES, or a callable with the arguments of a loss of ``losses.torch``.
    loss: str | RankingLoss = "ranknet"
    binary: str | BinaryLoss = "logistic"  # the loss of a logit, for "pairwise" and "pointwise"
    pairs: str = "strict"  # which pairs count
    robust: Any = None  # spec of the robust form
    alpha: float | str = 0.1  # weight of peers, or "auto"
    noise: Any = None  # a noise matrix, for alpha="auto"
    peers: str = "expected"  # "expected" or "sampled"
    debias: str | None = None  # one of DEBIASING
    click_rates: Any = None  # of ranks 1, 2, ... in lists in random order, for "ipw"
    options: Mapping[str, Any] | None = None  # further arguments of ``ranking_loss``

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The robust form as a list of mappings."""
        return robust_steps(self.robust)

    @property
    def peer(self) -> dict[str, Any] | None:
        """The step of the robust form that has peers."""
        return next((step for step in self.steps if step.get("name") == PEER), None)

    @property
    def base(self) -> BinaryLoss:
        """The loss of a logit before the robust form."""
        return DIRECT if self.loss == "direct" else binary_loss(self.binary)


def list_loss(config: LossConfig, data: RankingData) -> tuple[RankingLoss, Alpha | None]:
    """The loss on padded lists, and the weight of peers if there are any."""
    if not isinstance(config.loss, str):
        for option in ("robust", "debias"):
            if getattr(config, option) is not None:
                rule = "must be None where the loss is a callable"
                raise invalid(option, rule, repr(getattr(config, option)))
        return config.loss, None
    name = one_of("loss", config.loss, LOSSES)
    alpha = None
    if config.peer is not None:
        if name not in (*PAIRED, "pointwise"):
            raise invalid("peers", f"need one of the losses {', '.join((*PAIRED, 'pointwise'))}", repr(name))
        if name != "pointwise":
            check_peer_pairs(config.pairs, both_orders=False)
        alpha = stated_alpha(config.peer.get("alpha", config.alpha), config.noise)
        if alpha is None and name == "pointwise":
            relevant = data.y >= (config.options or {}).get("relevant", 1)
            alpha = point_alpha(config.noise, relevant, config.base)
        elif alpha is None:
            alpha = pair_alpha(config.noise, data.y, lambdarank=name == "lambdarank")
    if config.debias is None and config.click_rates is not None:
        raise invalid("click_rates", "go with debias='ipw'", "debias=None")
    if config.debias is not None:
        return _debiased(config, name, alpha, data), alpha
    strict = one_of("set of pairs", config.pairs, PAIR_SETS) == "strict"  # which all losses have
    return _made(config, name, alpha)(pairs=None if strict else config.pairs), alpha


def _debiased(config: LossConfig, name: str, alpha: Alpha | None, data: RankingData) -> RankingLoss:
    """The loss on clicks, each weighed by the rank at which its document was shown."""
    rule = one_of("debiasing", str(config.debias), DEBIASING)
    if name not in PAIRED:
        raise invalid("debias", f"needs one of the losses {', '.join(PAIRED)}", repr(name))
    if "weighting" in (config.options or {}):
        raise invalid("loss_options", "must leave the weighting to debias", repr("weighting"))
    if not set(np.unique(data.y)) <= {0, 1}:
        remedy = "Give y = 1 where a document was clicked, else 0."
        raise invalid("labels", f"must be clicks, 0 or 1, for debias={rule!r}", data.y.max(), remedy=remedy)
    if (rule == "ipw") != (config.click_rates is not None):
        remedy = "They are clicks per showing at ranks 1, 2, ... of lists that were shown in random order."
        words = "must be given for debias='ipw', and for it alone"
        raise invalid("click_rates", words, f"debias={rule!r}", remedy=remedy)
    weigher = DEBIASING[rule](*([] if config.click_rates is None else [config.click_rates]))
    return Debiased(_made(config, name, alpha), weigher, pairs=config.pairs)


def preference_loss(config: LossConfig) -> tuple[Any, Alpha | None]:
    """The loss with its ``on_preferences``, and the weight of peers if there are any.

    With peers every preference is seen in both orders, so that half of the targets are 1.
    """
    if not isinstance(config.loss, str) or config.loss not in ("ranknet", "pairwise", "direct"):
        raise invalid("loss", "must be 'ranknet', 'pairwise' or 'direct' for preferences", repr(config.loss))
    if config.debias is not None:
        raise invalid("debias", "must be None for preferences, which have no ranks", repr(config.debias))
    if config.peer is None:
        return _made(config, config.loss, None)(pairs="strict"), None
    alpha = stated_alpha(config.peer.get("alpha", config.alpha), config.noise)
    alpha = preference_alpha(config.noise) if alpha is None else alpha
    return _made(config, config.loss, alpha)(pairs="strict_both"), alpha


def _made(config: LossConfig, name: str, alpha: Alpha | None) -> Callable[..., RankingLoss]:
    """Makes the loss when called with pairs=."""
    options = _options(config)
    if name == "direct":
        options["binary"] = DIRECT
    elif name in ("pairwise", "pointwise") or config.base.name != "logistic":
        options["binary"] = config.binary
    if alpha is not None:
        options["robust"] = [
            {"mode": config.peers, **s, "alpha": float(alpha)} if s.get("name") == PEER else s
            for s in config.steps
        ]
    elif config.robust is not None:
        options["robust"] = config.steps
    return partial(ranking_loss, "pairwise" if name == "direct" else name, **options)


def _options(config: LossConfig) -> dict[str, Any]:
    """Further arguments of the loss, checked by name."""
    if not isinstance(config.options or {}, Mapping):
        raise invalid("loss_options", "must map names to values", repr(config.options))
    own = ("binary", "pairs", "robust")
    allowed = [option for option in signature(ranking_loss).parameters if option not in ("name", *own)]
    for option in config.options or {}:
        if option in own:
            raise invalid("loss_options", "must not hold what is a parameter of its own", repr(option))
        one_of("option of the loss", option, allowed)
    return dict(config.options or {})


def robust_words(steps: Sequence[Mapping[str, Any]]) -> str:
    """The robust form in words, for a record.

    >>> robust_words([{"name": "gce", "q": 0.5}, {"name": "clipped"}])
    'gce(q=0.5), clipped'
    """
    words = []
    for step in steps:
        options = ", ".join(f"{k}={v}" for k, v in step.items() if k != "name")
        words.append(f"{step['name']}({options})" if options else str(step["name"]))
    return ", ".join(words)
