"""What a neural ranker minimises: a ranking loss with its robust form, on judged lists or on preferences.

A spec of a robust form is what ``losses.robust`` takes: a name, a mapping with options, or several in turn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import signature
from numbers import Real
from typing import Any

from cleanrank.errors import invalid
from cleanrank.losses.binary import BinaryLoss, binary_loss, margin_loss, probability
from cleanrank.losses.torch import RANKING_LOSSES, RankingLoss, ranking_loss
from cleanrank.theory.peer import Alpha, pair_alpha, point_alpha, preference_alpha
from cleanrank.types import RankingData
from cleanrank.validation import one_of

PAIRED = ("ranknet", "lambdarank", "pairwise", "direct")
PAIRS = ("strict", "strict_both", "all_ordered")
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
class Aim:
    """What is minimised, in the words of NeuralRanker's parameters.

    Attributes:
        loss: one of LOSSES, or a callable with the arguments of ``losses.ranking``.
        binary: the loss of a logit, for "pairwise" and "pointwise".
        pairs: which pairs count.
        robust: spec of the robust form.
        alpha: weight of peers, or "auto".
        noise: what is known about the noise; for alpha="auto".
        peers: "expected" or "sampled".
        options: further arguments of ``ranking_loss``.
    """

    loss: str | RankingLoss = "ranknet"
    binary: str | BinaryLoss = "logistic"
    pairs: str = "strict"
    robust: Any = None
    alpha: float | str = 0.1
    noise: Any = None
    peers: str = "expected"
    options: Mapping[str, Any] | None = None

    @property
    def steps(self) -> list[dict[str, Any]]:
        """The robust form as a list of mappings."""
        spec = self.robust
        steps = [] if spec is None else [spec] if isinstance(spec, str | Mapping) else list(spec)
        return [{"name": step} if isinstance(step, str) else dict(step) for step in steps]

    @property
    def peer(self) -> dict[str, Any] | None:
        """The step of the robust form that has peers."""
        return next((step for step in self.steps if step.get("name") == PEER), None)

    @property
    def base(self) -> BinaryLoss:
        """The loss of a logit before the robust form."""
        return DIRECT if self.loss == "direct" else binary_loss(self.binary)


def list_loss(aim: Aim, data: RankingData) -> tuple[RankingLoss, Alpha | None]:
    """The loss on padded lists, and the weight of peers if there are any."""
    if not isinstance(aim.loss, str):
        if aim.robust is not None:
            raise invalid("robust", "must be None where the loss is a callable", repr(aim.robust))
        return aim.loss, None
    name = one_of("loss", aim.loss, LOSSES)
    alpha = None
    if aim.peer is not None:
        _check_pairs(aim, name)
        alpha = _given(aim, aim.peer)
        if alpha is None and name == "pointwise":
            relevant = data.y >= (aim.options or {}).get("relevant", 1)
            alpha = point_alpha(aim.noise, relevant, aim.base)
        elif alpha is None:
            alpha = pair_alpha(aim.noise, data.y, lambdarank=name == "lambdarank")
    return _made(aim, name, alpha, aim.pairs), alpha


def preference_loss(aim: Aim) -> tuple[Any, Alpha | None]:
    """The loss with its ``on_preferences``, and the weight of peers if there are any.

    With peers every preference is seen in both orders, so that half of the targets are 1.
    """
    if not isinstance(aim.loss, str) or aim.loss not in ("ranknet", "pairwise", "direct"):
        raise invalid("loss", "must be 'ranknet', 'pairwise' or 'direct' for preferences", repr(aim.loss))
    if aim.peer is None:
        return _made(aim, aim.loss, None, "strict"), None
    alpha = _given(aim, aim.peer)
    alpha = preference_alpha(aim.noise) if alpha is None else alpha
    return _made(aim, aim.loss, alpha, "strict_both"), alpha


def _made(aim: Aim, name: str, alpha: Alpha | None, pairs: str) -> RankingLoss:
    options = _options(aim)
    if name == "direct":
        options["binary"] = DIRECT
    elif name in ("pairwise", "pointwise") or aim.base.name != "logistic":
        options["binary"] = aim.binary
    if alpha is not None:
        options["robust"] = [
            {"mode": aim.peers, **s, "alpha": float(alpha)} if s.get("name") == PEER else s for s in aim.steps
        ]
    elif aim.robust is not None:
        options["robust"] = aim.steps
    if one_of("set of pairs", pairs, PAIRS) != "strict":
        options["pairs"] = pairs
    return ranking_loss("pairwise" if name == "direct" else name, **options)


def _options(aim: Aim) -> dict[str, Any]:
    """Further arguments of the loss, checked by name."""
    if not isinstance(aim.options or {}, Mapping):
        raise invalid("loss_options", "must map names to values", repr(aim.options))
    own = ("binary", "pairs", "robust")
    known = [option for option in signature(ranking_loss).parameters if option not in ("name", *own)]
    for option in aim.options or {}:
        if option in own:
            raise invalid("loss_options", "must not hold what is a parameter of its own", repr(option))
        one_of("option of the loss", option, known)
    return dict(aim.options or {})


def _check_pairs(aim: Aim, name: str) -> None:
    if name not in (*PAIRED, "pointwise"):
        raise invalid("peers", f"must stand on one of {', '.join((*PAIRED, 'pointwise'))}", repr(name))
    one_of("set of pairs", aim.pairs, PAIRS)
    if name == "pointwise" or aim.pairs == "all_ordered":
        return
    why = {
        "strict": "all strict pairs have the same label, so that peers only shrink the loss by 1 - alpha",
        "strict_both": "which pairs are strict depends on the noise, so that no alpha undoes it",
    }[aim.pairs]
    raise invalid(
        "pairs",
        f"must be 'all_ordered' with robust='peer': {why}",
        repr(aim.pairs),
        remedy="Give pairs='all_ordered', and compare with both bases: the change of pairs alone matters.",
    )


def _given(aim: Aim, peer: Mapping[str, Any]) -> Alpha | None:
    """The weight of peers if it is a number; None if the noise has to tell."""
    alpha = peer.get("alpha", aim.alpha)
    if isinstance(alpha, Real):
        return Alpha(float(alpha), True, "given as a number")
    if not isinstance(alpha, str):
        raise invalid("alpha", "must be a number or 'auto'", repr(alpha))
    one_of("alpha", alpha, ("auto",))
    if aim.noise is None:
        raise invalid(
            "alpha='auto'",
            "needs the noise",
            "none",
            remedy="Give noise= a matrix, a NoiseProfile or a NoiseEstimate.",
        )
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
