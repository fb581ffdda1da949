"""Robust losses by name: specs as estimators and recipes give them, and what torch's losses read in them.

A spec is None, a name of ROBUST, a mapping with its options, or several applied in turn.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from cleanrank.errors import invalid
from cleanrank.losses import robust
from cleanrank.losses.binary import LOSSES, BinaryLoss, binary_loss, gce, sce, taylor
from cleanrank.losses.robust import ALPHA, EPS
from cleanrank.validation import one_of

Spec: TypeAlias = "str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None"


# Those without an argument ``loss`` replace the logistic loss.
ROBUST: dict[str, Callable[..., BinaryLoss]] = {
    "symmetrize": robust.symmetrize,
    "peer": robust.peer,
    "bootstrap": robust.bootstrap,
    "label_smoothing": robust.label_smoothing,
    "gce": gce,
    "sce": sce,
    "taylor": taylor,
    "forward": robust.forward,
    "backward": robust.backward,
    "clipped": robust.clipped,
}


def robust_steps(spec: Spec) -> list[dict[str, Any]]:
    """A spec as a list of mappings, one for each step.

    >>> robust_steps(None), robust_steps("gce"), robust_steps(["label_smoothing", {"name": "clipped"}])
    ([], [{'name': 'gce'}], [{'name': 'label_smoothing'}, {'name': 'clipped'}])
    """
    steps: list[Any] = [] if spec is None else list(spec) if isinstance(spec, list | tuple) else [spec]
    for step in steps:
        if not isinstance(step, str | Mapping):
            rule = "must be a name, a mapping with a name, or a list of these"
            raise invalid("robust", rule, repr(step), remedy=f"Known: {', '.join(ROBUST)}.")
    return [{"name": step} if isinstance(step, str) else dict(step) for step in steps]


def robust_loss(spec: Spec, loss: str | BinaryLoss = "logistic") -> BinaryLoss:
    """The loss of a spec; sampled peers need a batch and are refused.

    Args:
        spec: such as "symmetrize", {"name": "peer", "alpha": 0.1} or
            ["label_smoothing", {"name": "clipped", "at": 2}]; a mapping's "loss" replaces ``loss``.
        loss: what it is applied to.

    >>> robust_loss({"name": "gce", "q": 0.5}).name, robust_loss("symmetrize", "hinge").constant
    ('gce(q=0.5)', 1.0)
    """
    if any(map(_is_sampled, robust_steps(spec))):
        raise invalid("peers", "must be expected where there is no batch to draw from", "mode='sampled'")
    return _expected_loss(spec, loss)


def _is_sampled(step: Mapping[str, Any]) -> bool:
    modes = ("expected", "sampled")
    return (
        step.get("name") == "peer" and one_of("mode of peers", step.get("mode", modes[0]), modes) == modes[1]
    )


def _expected_loss(spec: Spec, loss: str | BinaryLoss) -> BinaryLoss:
    """The loss of a spec with expected peers, whatever their mode."""
    made = binary_loss(loss)
    for step in robust_steps(spec):
        made = _applied(step, made)
    return made


def _applied(step: Mapping[str, Any], loss: BinaryLoss) -> BinaryLoss:
    options = dict(step)
    if "name" not in options:
        raise invalid("a robust loss", "must have a name", options, remedy=f"Known: {', '.join(ROBUST)}.")
    name = one_of("robust loss", options.pop("name"), ROBUST)
    base = binary_loss(options.pop("loss", loss))
    parameters = list(inspect.signature(ROBUST[name]).parameters)
    if name == "peer":
        options.pop("mode", None)
    for option in options:
        one_of(f"option of {name}", option, [p for p in parameters if p != "loss"])
    if "matrix" in parameters and "matrix" not in options:
        raise invalid(
            name, "needs the matrix of the noise", remedy=f"Give {{'name': {name!r}, 'matrix': ...}}."
        )
    # By name: scikit-learn clones an estimator by copying its loss.
    if "loss" not in parameters and base.name != "logistic":
        rule = "is made of probabilities and stands for the logistic loss alone"
        remedy = "Use loss='logistic', or a robust form that takes any loss: symmetrize, peer, clipped."
        raise invalid(name, rule, f"loss {base.name!r}", remedy=remedy)
    if "loss" in parameters:
        options["loss"] = base
    return ROBUST[name](**options)


# ((a, b), (c, d)): l(x, 1) = a f(x) + b f(-x) and l(x, 0) = c f(x) + d f(-x), f the base loss of a margin.
Mixture: TypeAlias = tuple[tuple[float, float], tuple[float, float]]
UNMIXED: Mixture = ((1.0, 0.0), (0.0, 1.0))


@dataclass(frozen=True)
class Peers:
    """The peers of a loss: l(a, t) - alpha l(a', t')."""

    loss: BinaryLoss  # l
    alpha: float  # their weight
    mode: str  # "expected" or "sampled"
    prior: float | None  # the share of targets 1 of expected peers; None for that of the batch


@dataclass(frozen=True)
class LossParts:
    """A spec taken apart."""

    base: str  # the name of the binary loss at the bottom
    loss: BinaryLoss  # the whole loss with expected peers; without them when they are sampled
    peerless: BinaryLoss  # the loss without the peers that come last
    peers: Peers | None  # the peers that come last
    has_peers: bool  # whether there are peers at any place
    mixture: Mixture | None  # the loss as a mixture of its base with itself turned round, or None


def read_spec(spec: Spec, binary: str | BinaryLoss = "logistic") -> LossParts:
    """Takes a spec apart; peers of weight 0 are left out, so that they are the base loss to the last bit."""
    steps = robust_steps(spec)
    if any(map(_is_sampled, steps[:-1])):
        raise invalid("sampled peers", "must come last", remedy="Or use mode='expected'.")
    # Read as a whole first, so that every complaint about a spec is worded in one place.
    _expected_loss(spec, binary)
    steps = [step for step in steps if step["name"] != "peer" or _alpha(step) != 0]
    base = binary_loss(steps[0].get("loss", binary) if steps else binary)
    peers = None
    if steps and steps[-1]["name"] == "peer":
        last = steps[-1]
        peerless = binary_loss(last.get("loss", robust_loss(steps[:-1], binary)))
        peers = Peers(peerless, _alpha(last), str(last.get("mode", "expected")), last.get("prior"))
        whole = peerless if peers.mode == "sampled" else robust_loss([last], peerless)
    else:
        whole = peerless = robust_loss(steps, binary)
    has_peers = any(step["name"] == "peer" for step in steps)
    return LossParts(base.name, whole, peerless, peers, has_peers, _mixture(base, steps))


def _alpha(peer_step: Mapping[str, Any]) -> float:
    return float(peer_step.get("alpha", ALPHA))


def _mixture(base: BinaryLoss, steps: list[dict[str, Any]]) -> Mixture | None:
    """Coefficients of (f(a), f(-a)) for targets 1 and 0, through every step that only mixes the two."""
    mix = UNMIXED if LOSSES.get(base.name) is base else None
    for step in steps:
        if mix is None or ("loss" in step and step is not steps[0]):
            return None
        if step["name"] == "peer":
            if step.get("mode") == "sampled":
                continue
            prior = 0.5 if step.get("prior") is None else step["prior"]
            on, off = _alpha(step) * prior, _alpha(step) * (1 - prior)
            mix = _mixed(((1 - on, -off), (-on, 1 - off)), mix)
        elif step["name"] == "label_smoothing":
            half = step.get("eps", EPS) / 2
            mix = _mixed(((1 - half, half), (half, 1 - half)), mix)
        else:
            return None
    return mix


def _mixed(rows: Mixture, of: Mixture) -> Mixture:
    first, second = ((r[0] * of[0][0] + r[1] * of[1][0], r[0] * of[0][1] + r[1] * of[1][1]) for r in rows)
    return first, second
