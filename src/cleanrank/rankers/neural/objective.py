"""What a neural ranker minimises: a ranking loss with its robust form, on judged lists or on preferences.

A spec of a robust form is what ``losses.robust_specs`` reads: a name, a mapping with options, or several.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

from cleanrank.errors import invalid
from cleanrank.losses.binary import BinaryLoss, binary_loss, margin_loss, probability
from cleanrank.losses.pairs import PAIR_SETS, check_peer_pairs
from cleanrank.losses.robust_specs import robust_steps
from cleanrank.losses.torch import RANKING_LOSSES, RankingLoss, ranking_loss
from cleanrank.theory.peer import Alpha, pair_alpha, point_alpha, preference_alpha
from cleanrank.types import RankingData
from cleanrank.validation import is_number, one_of

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
        if config.robust is not None:
            raise invalid("robust", "must be None where the loss is a callable", repr(config.robust))
        return config.loss, None
    name = one_of("loss", config.loss, LOSSES)
    alpha = None
    if config.peer is not None:
        if name not in (*PAIRED, "pointwise"):
            raise invalid("peers", f"need one of the losses {', '.join((*PAIRED, 'pointwise'))}", repr(name))
        if name != "pointwise":
            check_peer_pairs(config.pairs, both_orders=False)
        alpha = _stated_alpha(config, config.peer)
        if alpha is None and name == "pointwise":
            relevant = data.y >= (config.options or {}).get("relevant", 1)
            alpha = point_alpha(config.noise, relevant, config.base)
        elif alpha is None:
            alpha = pair_alpha(config.noise, data.y, lambdarank=name == "lambdarank")
    return _made(config, name, alpha, config.pairs), alpha


def preference_loss(config: LossConfig) -> tuple[Any, Alpha | None]:
    """The loss with its ``on_preferences``, and the weight of peers if there are any.

    With peers every preference is seen in both orders, so that half of the targets are 1.
    """
    if not isinstance(config.loss, str) or config.loss not in ("ranknet", "pairwise", "direct"):
        raise invalid("loss", "must be 'ranknet', 'pairwise' or 'direct' for preferences", repr(config.loss))
    if config.peer is None:
        return _made(config, config.loss, None, "strict"), None
    alpha = _stated_alpha(config, config.peer)
    alpha = preference_alpha(config.noise) if alpha is None else alpha
    return _made(config, config.loss, alpha, "strict_both"), alpha


def _made(config: LossConfig, name: str, alpha: Alpha | None, pairs: str) -> RankingLoss:
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
    if one_of("set of pairs", pairs, PAIR_SETS) != "strict":
        options["pairs"] = pairs
    return ranking_loss("pairwise" if name == "direct" else name, **options)


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


def _stated_alpha(config: LossConfig, peer: Mapping[str, Any]) -> Alpha | None:
    """The weight of peers if it is a number; None if it follows from the noise."""
    alpha = peer.get("alpha", config.alpha)
    if is_number(alpha):
        return Alpha(float(alpha), True, "given as a number")
    if not isinstance(alpha, str):
        raise invalid("alpha", "must be a number or 'auto'", repr(alpha))
    one_of("alpha", alpha, ("auto",))
    if config.noise is None:
        remedy = "Give noise= a matrix, a NoiseProfile or a NoiseEstimate."
        raise invalid("alpha='auto'", "needs the noise", remedy=remedy)
    return None


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
