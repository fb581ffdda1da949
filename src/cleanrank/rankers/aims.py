"""What a neural ranker minimises: a ranking loss with its robust form, on judged lists or on preferences.

A spec of a robust form is what ``losses.robust`` takes: a name, a mapping with options, or several in turn.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cleanrank import checks
from cleanrank.losses.binary import BinaryLoss, binary_loss, margin_loss, probability
from cleanrank.losses.blocked import elementwise
from cleanrank.losses.ranking import RANKING_LOSSES, RankingLoss, ranking_loss
from cleanrank.losses.robust import SampledPeer, robust_part
from cleanrank.rankers.alpha import PeerWeight, peer_weight, pointwise_weight
from cleanrank.types import RankingData

PAIRED = ("ranknet", "lambdarank", "pairwise", "direct")
ALL_ORDERED = "all_ordered"
PEER = "peer"

# DirectRanker's (1 - tanh(m / 2))^2, which is 4 / (1 + exp(m))^2.
DIRECT = margin_loss(
    "direct",
    lambda m: 4 * probability(-m) ** 2,
    lambda m: -8 * probability(-m) ** 2 * probability(m),
    lambda m: 8 * probability(-m) ** 2 * probability(m) * (2 - 3 * probability(-m)),
    bounded=True,
)


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
    def has_peers(self) -> bool:
        """Whether peers are part of the robust form."""
        return any(step.get("name") == PEER for step in self.steps)

    @property
    def base(self) -> BinaryLoss:
        """The loss of a logit before the robust form."""
        return DIRECT if self.loss == "direct" else binary_loss(self.binary)


def list_loss(aim: Aim, data: RankingData) -> tuple[RankingLoss, PeerWeight | None]:
    """The loss on padded lists, and the weight of peers if there are any."""
    if not isinstance(aim.loss, str):
        if aim.robust is not None:
            checks.fail("robust", "must be None where the loss is a callable", repr(aim.robust))
        return aim.loss, None
    name = checks.known("loss", aim.loss, LOSSES)
    steps, weight = aim.steps, None
    if aim.has_peers:
        _check_pairs(aim, name)
        weight = _weight(aim, name, data)
        steps = [_peer(step, aim, weight, _prior(aim, name, data)) for step in steps]
    options = dict(aim.options or {})
    if name in ("pairwise", "pointwise", "direct") or aim.base.name != "logistic":
        options["binary"] = aim.base
    if steps:
        options["robust"] = steps
    if aim.pairs != "strict":
        options["pairs"] = checks.known("pairs", aim.pairs, ("strict", "strict_both", ALL_ORDERED))
    return ranking_loss("pairwise" if name == "direct" else name, **options), weight


def preference_loss(aim: Aim) -> tuple[Callable[[Tensor, torch.Generator], Tensor], PeerWeight | None]:
    """The mean loss of preferences from the score differences (better less worse), and the weight of peers.

    A preference is seen in both orders, so half of the targets are 1, and peers with alpha = 2 e undo
    preferences that are wrong with probability e, for every loss.
    """
    if not isinstance(aim.loss, str) or aim.loss not in ("ranknet", "pairwise", "direct"):
        checks.fail("loss", "must be 'ranknet', 'pairwise' or 'direct' for preferences", repr(aim.loss))
    weight, steps = None, aim.steps
    if aim.has_peers:
        weight = _weight(aim, aim.loss, None)
        steps = [_peer(step, aim, weight, 0.5) for step in steps]
    loss = robust_part(steps, aim.base)
    sigma = float((aim.options or {}).get("sigma", 1.0))

    def mean(difference: Tensor, generator: torch.Generator) -> Tensor:
        d = sigma * difference
        if isinstance(loss, SampledPeer):
            both = torch.cat((d, -d))
            target = torch.cat((torch.ones_like(d), torch.zeros_like(d)))
            found: Tensor = loss.value(both, target, generator).mean()
            return found
        return elementwise(d, torch.ones_like(d), loss).mean()

    return mean, weight


def _check_pairs(aim: Aim, name: str) -> None:
    if name not in (*PAIRED, "pointwise"):
        checks.fail("peers", f"must stand on one of {', '.join((*PAIRED, 'pointwise'))}", repr(name))
    if name == "pointwise" or aim.pairs == ALL_ORDERED:
        return
    why = {
        "strict": "all strict pairs have the same label, so that peers only shrink the loss by 1 - alpha",
        "strict_both": "which pairs are strict depends on the noise, so that no alpha undoes it",
    }[checks.known("pairs", aim.pairs, ("strict", "strict_both", ALL_ORDERED))]
    checks.fail(
        "pairs",
        f"must be {ALL_ORDERED!r} with robust='peer': {why}",
        repr(aim.pairs),
        remedy=f"Give pairs={ALL_ORDERED!r}, and compare with both bases: the change of pairs alone matters.",
    )


def _weight(aim: Aim, name: str, data: RankingData | None) -> PeerWeight:
    given = next((step["alpha"] for step in aim.steps if step.get("name") == PEER and "alpha" in step), None)
    alpha = aim.alpha if given is None else given
    if not isinstance(alpha, str):
        return PeerWeight(float(alpha), exact=False, reason="alpha was given")
    checks.known("alpha", alpha, ("auto",))
    if aim.noise is None:
        checks.fail(
            "alpha='auto'",
            "needs the noise",
            "none",
            remedy="Give noise= a matrix, a NoiseProfile or a NoiseEstimate.",
        )
    if data is None:
        return _of_preferences(aim.noise)
    if name == "pointwise":
        return pointwise_weight(aim.noise, _relevant(aim, data), symmetric=aim.base.constant is not None)
    return peer_weight(aim.noise, data.y, weighted=name == "lambdarank")


def _of_preferences(noise: Any) -> PeerWeight:
    """Of a 2 x 2 matrix of preferences (0: the second, 1: the first document is better)."""
    found = peer_weight(noise, [0, 1])
    T = np.asarray(getattr(noise, "matrix", noise))
    if T.shape != (2, 2) or abs(T[0, 1] - T[1, 0]) > 1e-9:
        checks.fail("noise of preferences", "must be [[1 - e, e], [e, 1 - e]]", T.tolist())
    return replace(found, exact=True, reason="")


def _relevant(aim: Aim, data: RankingData) -> Any:
    return data.y >= int((aim.options or {}).get("relevant", 1))


def _prior(aim: Aim, name: str, data: RankingData) -> float:
    """The share of targets 1 among documents; over pairs in both orders every prior gives the same sum."""
    return float(np.mean(_relevant(aim, data))) if name == "pointwise" else 0.5


def _peer(step: dict[str, Any], aim: Aim, weight: PeerWeight, prior: float) -> dict[str, Any]:
    if step.get("name") != PEER:
        return step
    return {"prior": prior, "mode": aim.peers, **step, "alpha": weight.alpha}


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


LOSSES: dict[str, str] = {
    **RANKING_LOSSES,
    "direct": "DirectRanker's (1 - tanh(d / 2))^2 on pairs (Koeppel 2019)",
}
