"""A robust spec taken apart: what belongs to the loss itself, what to its peers, what can be compiled.

``robust_part`` makes one loss of a spec. A ranking loss must know more: whether peers are in it (they need
pairs of both targets), whether they are drawn from the batch, with which prior, and whether the loss is a
mixture of logistic losses, which compiled kernels compute.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from cleanrank.losses.binary import LOSSES, BinaryLoss, binary_loss
from cleanrank.losses.robust import Spec, robust_part, robust_steps
from cleanrank.losses.robust.peer_losses import SampledPeer

# ((a, b), (c, d)): l(x, 1) = a f(x) + b f(-x) and l(x, 0) = c f(x) + d f(-x), f(x) = log(1 + exp(-x)).
Mixture: TypeAlias = tuple[tuple[float, float], tuple[float, float]]
LOGISTIC: Mixture = ((1.0, 0.0), (0.0, 1.0))


@dataclass(frozen=True)
class Peers:
    """The peers of a loss: l(a, t) - alpha l(a', t').

    Attributes:
        loss: l.
        alpha: their weight.
        mode: "expected" or "sampled".
        prior: the share of targets 1 of expected peers; None for that of the batch.
    """

    loss: BinaryLoss
    alpha: float
    mode: str
    prior: float | None


@dataclass(frozen=True)
class Parts:
    """What ``read_robust`` finds.

    Attributes:
        base: the name of the binary loss at the bottom.
        loss: the whole loss with expected peers; without them when they are sampled.
        peerless: the loss without the peers that come last.
        peers: the peers that come last.
        has_peers: whether there are peers at any place.
        mixture: the loss as a mixture of logistic losses, or None.
    """

    base: str
    loss: BinaryLoss
    peerless: BinaryLoss
    peers: Peers | None
    has_peers: bool
    mixture: Mixture | None


def read_robust(robust: Spec, binary: str | BinaryLoss = "logistic") -> Parts:
    """Takes a spec apart.

    Peers of weight 0 are left out, so that they are the base loss to the last bit.

    >>> parts = read_robust({"name": "peer", "alpha": 0.2})
    >>> parts.peers.alpha, parts.mixture
    (0.2, ((0.9, -0.1), (-0.1, 0.9)))
    """
    steps = robust_steps(robust)
    # Read as a whole first, so that every complaint about a spec is worded in one place.
    robust_part(steps, binary)
    named = [{"name": step} if isinstance(step, str) else dict(step) for step in steps]
    named = [step for step in named if not (step["name"] == "peer" and _peer(step).alpha == 0)]
    before, last = (named[:-1], named[-1]) if named and named[-1]["name"] == "peer" else (named, None)
    peerless = _loss(before, binary)
    base = binary_loss(named[0].get("loss", binary) if named else binary)
    peers = None
    if last is not None:
        peerless = binary_loss(last.get("loss", peerless))
        prior: Any = last.get("prior")
        peers = Peers(peerless, _peer(last).alpha, str(last.get("mode", "expected")), prior)
    whole = peerless if peers is None or peers.mode == "sampled" else _loss([last], peerless)
    return Parts(
        base.name, whole, peerless, peers, any(s["name"] == "peer" for s in named), _mixture(base, named)
    )


def _loss(steps: list[Any], binary: str | BinaryLoss) -> BinaryLoss:
    found = robust_part(steps, binary)
    return found.loss if isinstance(found, SampledPeer) else found


def _peer(step: Mapping[str, Any]) -> SampledPeer:
    """The step's peers in their sampled form, which carries alpha with its default filled in."""
    found = robust_part({"loss": "logistic", **step, "mode": "sampled"})
    assert isinstance(found, SampledPeer)
    return found


def _mixture(base: BinaryLoss, steps: list[dict[str, Any]]) -> Mixture | None:
    """Coefficients of (f(a), f(-a)) for targets 1 and 0, through every step that only mixes the two."""
    mix = LOGISTIC if base is LOSSES["logistic"] else None
    for step in steps:
        if mix is None or ("loss" in step and step is not steps[0]):
            return None
        if step["name"] == "peer":
            prior = 0.5 if step.get("prior") is None else step["prior"]
            on, off = _peer(step).alpha * prior, _peer(step).alpha * (1 - prior)
            if step.get("mode") == "sampled":
                continue
            mix = _mixed(((1 - on, -off), (-on, 1 - off)), mix)
        elif step["name"] == "label_smoothing":
            half = step.get("eps", 0.05) / 2
            mix = _mixed(((1 - half, half), (half, 1 - half)), mix)
        else:
            return None
    return mix


def _mixed(rows: Mixture, of: Mixture) -> Mixture:
    first, second = ((r[0] * of[0][0] + r[1] * of[1][0], r[0] * of[0][1] + r[1] * of[1][1]) for r in rows)
    return first, second
