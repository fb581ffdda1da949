"""Robust losses: functions from loss to loss, and three that stand for cross-entropy.

With l a loss of a logit a and a target t, p = 1 / (1 + exp(-a)), p_t the probability of the target:

    symmetrize       1 - e^-l(a, t) / (e^-l(a, 1) + e^-l(a, 0)); of logistic it is sigmoid (Haddad 2022)
    peer             l(a, t) - alpha l(a', t'), a' and t' drawn apart (Wu et al. 2022; Liu and Guo 2020)
    bootstrap        target beta t + (1 - beta) p; hard: 1[p >= 1/2] for p (Reed et al. 2015)
    label_smoothing  target (1 - eps) t + eps / 2 (Szegedy et al. 2016)
    gce              (1 - p_t^q) / q (Zhang and Sabuncu 2018)
    sce              a CE + b A (1 - p_t), A = 4 (Wang et al. 2019)
    taylor           sum_{i = 1..t} (1 - p_t)^i / i (Feng et al. 2020)
    forward          cross-entropy of the probability that the noise makes of p (Patrini et al. 2017)
    backward         T^-1 (l(a, 0), l(a, 1)): its mean over the noise is l (Natarajan et al. 2013)
    clipped          l cut to [-at, at]

Matrices are T[true, given], as everywhere. For pairs the target is the preference: a matrix is then that of
preferences, not of grades. ROBUST lists the names, ``robust_loss`` makes a loss of a name or a mapping.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from cleanrank.errors import invalid
from cleanrank.losses.binary import BinaryLoss, binary_loss
from cleanrank.losses.robust.corrections import backward, forward
from cleanrank.losses.robust.cross_entropies import gce, sce, taylor
from cleanrank.losses.robust.peer_losses import SampledPeer, peer
from cleanrank.losses.robust.transforms import bootstrap, clipped, label_smoothing, symmetrize
from cleanrank.validation import one_of

__all__ = [
    "ROBUST",
    "Robust",
    "SampledPeer",
    "Spec",
    "backward",
    "bootstrap",
    "clipped",
    "forward",
    "gce",
    "label_smoothing",
    "peer",
    "robust_loss",
    "robust_part",
    "robust_steps",
    "sce",
    "symmetrize",
    "taylor",
]

Spec: TypeAlias = "str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None"


@dataclass(frozen=True)
class Robust:
    """An entry of ROBUST: how it is made, what it does, and whether it ``replaces`` cross-entropy."""

    make: Callable[..., Any]
    summary: str
    replaces: bool = False


ROBUST: dict[str, Robust] = {
    "symmetrize": Robust(symmetrize, "label-symmetric and bounded"),
    "peer": Robust(peer, "less the loss of shuffled targets"),
    "bootstrap": Robust(bootstrap, "target mixed with the model's opinion"),
    "label_smoothing": Robust(label_smoothing, "target drawn towards 1/2"),
    "gce": Robust(gce, "between cross-entropy and sigmoid", replaces=True),
    "sce": Robust(sce, "cross-entropy plus sigmoid", replaces=True),
    "taylor": Robust(taylor, "cross-entropy's series cut short", replaces=True),
    "forward": Robust(forward, "cross-entropy seen through a known noise matrix"),
    "backward": Robust(backward, "unbiased under a known noise matrix"),
    "clipped": Robust(clipped, "cut at a value"),
}


def robust_steps(spec: Spec) -> list[str | Mapping[str, Any]]:
    """A spec as the list of its steps; refuses what is none.

    >>> robust_steps(None), robust_steps("gce"), robust_steps(["label_smoothing", {"name": "clipped"}])
    ([], ['gce'], ['label_smoothing', {'name': 'clipped'}])
    """
    steps: list[Any] = [] if spec is None else list(spec) if isinstance(spec, list | tuple) else [spec]
    for step in steps:
        if not isinstance(step, str | Mapping):
            raise invalid(
                "robust",
                "must be a name, a mapping with a name, or a list of these",
                repr(step),
                remedy=f"Known: {', '.join(ROBUST)}.",
            )
    return steps


def robust_part(spec: Spec, loss: str | BinaryLoss = "logistic") -> BinaryLoss | SampledPeer:
    """The loss of a spec: None, a name of ROBUST, a mapping with its options, or several applied in turn.

    Args:
        spec: such as "symmetrize", {"name": "peer", "alpha": 0.1, "mode": "sampled"} or
            ["label_smoothing", {"name": "clipped", "at": 2}]; a mapping's "loss" replaces ``loss``.
        loss: what it is applied to.
    """
    steps = robust_steps(spec)
    found: BinaryLoss | SampledPeer = binary_loss(loss)
    for step in steps:
        if isinstance(found, SampledPeer):
            raise invalid("sampled peers", "must come last", repr(step), remedy="Or use mode='expected'.")
        found = _applied(step, found)
    return found


def _applied(step: str | Mapping[str, Any], loss: BinaryLoss) -> BinaryLoss | SampledPeer:
    options = {"name": step} if isinstance(step, str) else dict(step)
    if "name" not in options:
        raise invalid(
            "a robust loss", "must have a name", dict(options), remedy=f"Known: {', '.join(ROBUST)}."
        )
    name = one_of("robust loss", options.pop("name"), ROBUST)
    base = binary_loss(options.pop("loss", loss))
    entry = ROBUST[name]
    allowed = [p for p in inspect.signature(entry.make).parameters if p != "loss"]
    for option in options:
        one_of(f"option of {name}", option, allowed)
    if name in ("forward", "backward") and "matrix" not in options:
        raise invalid(
            name, "needs the matrix of the noise", "none", remedy=f"Give {{'name': {name!r}, 'matrix': ...}}."
        )
    if not entry.replaces:
        made: BinaryLoss | SampledPeer = entry.make(base, **options)
        return made
    # By name: scikit-learn clones an estimator by copying its loss.
    if base.name != "logistic":
        raise invalid(
            name,
            "is made of probabilities and stands for the logistic loss alone",
            f"loss {base.name!r}",
            remedy="Use loss='logistic', or a robust form that takes any loss: symmetrize, peer, clipped.",
        )
    replacement: BinaryLoss = entry.make(**options)
    return replacement


def robust_loss(spec: Spec, loss: str | BinaryLoss = "logistic") -> BinaryLoss:
    """The loss of a spec, as ``robust_part``; sampled peers need a batch and are refused.

    >>> robust_loss({"name": "gce", "q": 0.5}).name, robust_loss("symmetrize", "hinge").constant
    ('gce(q=0.5)', 1.0)
    """
    found = robust_part(spec, loss)
    if isinstance(found, SampledPeer):
        raise invalid("peers", "must be expected where there is no batch to draw from", "mode='sampled'")
    return found
