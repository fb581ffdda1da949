"""Losses corrected by a noise matrix T[true, given] of the targets, known or estimated."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.losses.binary import LOSSES, BinaryLoss, Curve, Values, binary_loss, is_tensor, probability
from cleanrank.losses.transforms import (
    SampledPeer,
    bootstrap,
    clipped,
    gce,
    label_smoothing,
    mixed,
    needs_log_odds,
    peer,
    sce,
    symmetrize,
    taylor,
)
from cleanrank.validation import one_of

SINGULAR = 1e-9


def _matrix(noise: Any) -> npt.NDArray[np.float64]:
    """A 2 x 2 noise matrix of an array, a profile or an estimate; refuses what cannot be undone."""
    try:
        found = np.asarray(getattr(noise, "matrix", noise), dtype=np.float64)
    except (TypeError, ValueError):
        raise invalid(
            "the noise matrix", "must hold 2 x 2 numbers, rows true and columns given", repr(noise)
        ) from None
    if found.shape != (2, 2):
        raise invalid(
            "the noise matrix", "must be 2 x 2, rows true and columns given targets", f"shape {found.shape}"
        )
    if not (np.isfinite(found).all() and (found >= 0).all() and np.allclose(found.sum(axis=1), 1, atol=1e-6)):
        raise invalid(
            "the noise matrix", "must have probabilities that add to 1 in every row", found.tolist()
        )
    if abs(np.linalg.det(found)) < SINGULAR:
        raise invalid(
            "the noise matrix",
            "must not be singular: given targets that do not depend on the true ones cannot be corrected",
            found.tolist(),
        )
    return found


def grade_noise(noise: Any) -> npt.NDArray[np.float64]:
    """The matrix P(given | true) of grades that ``weighting="prevalence"`` undoes; refuses what is none.

    Args:
        noise: a matrix, an object with one, or the two probabilities (gamma0, gamma1) that a label is kept.

    >>> grade_noise((0.9, 0.75)).tolist()
    [[0.9, 0.09999999999999998], [0.25, 0.75]]
    """
    rule = "must be a matrix P(given | true) of probabilities whose rows sum to 1"
    try:
        found = np.asarray(getattr(noise, "matrix", noise), dtype=np.float64)
    except (TypeError, ValueError):
        raise invalid("noise", rule, repr(noise)) from None
    if found.shape == (2,):
        found = np.array([[found[0], 1 - found[0]], [1 - found[1], found[1]]])
    square = found.ndim == 2 and found.shape[0] == found.shape[1] > 1
    if not square or not ((found >= 0).all() and np.allclose(found.sum(axis=1), 1)):
        raise invalid("noise", rule, found.tolist())
    if abs(np.linalg.det(found)) < SINGULAR:
        raise invalid(
            "noise", "must be invertible: these labels tell nothing about the true ones", found.tolist()
        )
    return found


def forward(loss: str | BinaryLoss, matrix: Any) -> BinaryLoss:
    """Trains the true probability through the noise: l at the log-odds of P(given = 1) = sum_y p_y T[y, 1].

    >>> noise = [[0.9, 0.1], [0.2, 0.8]]
    >>> round(float(np.exp(-forward("logistic", noise).value(0.0, 1))), 4)  # .5 * .8 + .5 * .1
    0.45
    """
    base, T = binary_loss(loss), _matrix(matrix)
    needs_log_odds("forward correction", base)
    with np.errstate(divide="ignore"):
        (log00, log01), (log10, log11) = np.log(T).tolist()
    at = Curve(
        lambda a: _logaddexp(log01, a + log11) - _logaddexp(log00, a + log10),
        lambda a: probability(a + (log11 - log01)) - probability(a + (log10 - log00)),
        lambda a: _bell(a + (log11 - log01)) - _bell(a + (log10 - log00)),
    )
    return replace(
        base,
        name=f"forward({base.name})",
        one=_composed(base.one, at),
        zero=_composed(base.zero, at),
        bounded=base.bounded or bool(T[0, 1] > 0 and T[1, 0] > 0),
        log_odds=False,
    )


def _logaddexp(first: float, second: Values) -> Values:
    if is_tensor(second):
        return second.new_full((), first).logaddexp(second)
    return np.logaddexp(first, second)


def _bell(a: Values) -> Values:
    return probability(a) * probability(-a)


def _composed(outer: Curve, inner: Curve) -> Curve:
    def curvature(a: Values) -> Values:
        b, rise = inner.value(a), inner.slope(a)
        return outer.curvature(b) * rise * rise + outer.slope(b) * inner.curvature(a)

    return Curve(
        lambda a: outer.value(inner.value(a)),
        lambda a: outer.slope(inner.value(a)) * inner.slope(a),
        curvature,
    )


def backward(loss: str | BinaryLoss, matrix: Any) -> BinaryLoss:
    """The loss whose mean over the noise is the clean loss: T^-1 (l(a, 0), l(a, 1)).

    It takes any loss. It can be negative, and an unbounded loss then has no lower bound.

    >>> found = backward("hinge", [[0.9, 0.1], [0.2, 0.8]])
    >>> round(float(0.8 * found.value(0.5, 1) + 0.2 * found.value(0.5, 0)), 6)  # hinge at 0.5 if truly 1
    0.5
    """
    base, T = binary_loss(loss), _matrix(matrix)
    (zero_zero, zero_one), (one_zero, one_one) = np.linalg.inv(T).tolist()
    equal = abs((zero_zero + one_zero) - (zero_one + one_one)) < SINGULAR
    return replace(
        base,
        name=f"backward({base.name})",
        one=mixed(base, one_one, one_zero),
        zero=mixed(base, zero_one, zero_zero),
        constant=base.constant if equal else None,
    )


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
