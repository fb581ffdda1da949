"""Transforms of a loss: symmetrised, bootstrapped, smoothed, clipped; ``robust`` says which is which."""

import math
import numbers
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from cleanrank.errors import invalid
from cleanrank.losses.binary import (
    BinaryLoss,
    Curve,
    Values,
    as_type,
    binary_loss,
    namespace,
    probability,
)


def mixed(loss: BinaryLoss, one: float, zero: float) -> Curve:
    """The curve one * l(a, 1) + zero * l(a, 0)."""

    def mix(f: Callable[[Values], Values], g: Callable[[Values], Values]) -> Callable[[Values], Values]:
        return lambda a: one * f(a) + zero * g(a)

    return Curve(
        mix(loss.one.value, loss.zero.value),
        mix(loss.one.slope, loss.zero.slope),
        mix(loss.one.curvature, loss.zero.curvature),
    )


def levels_off(curve: Curve) -> bool:
    """Whether a curve stands still far from 0, as of l1 less its mirror image."""
    far = np.array([-1e4, -1e3, 1e3, 1e4])
    value = curve.value(far)
    return bool(np.allclose(value[[0, 3]], value[[1, 2]], rtol=0, atol=1e-6))


def needs_log_odds(what: str, loss: BinaryLoss) -> None:
    """Refuses a loss whose logit is no log-odds."""
    if not loss.log_odds:
        raise invalid(
            what,
            "needs a loss whose logit is a log-odds, such as 'logistic'",
            repr(loss.name),
            remedy="Use 'logistic', or another robust form: symmetrize, peer, backward and clipped take any.",
        )


def is_number(value: Any) -> bool:
    """Whether a value is a finite number; True and False are none."""
    return not isinstance(value, bool) and isinstance(value, numbers.Real) and math.isfinite(value)


def share(name: str, value: float, *, above: float = -1.0) -> float:
    """Returns a share in [0, 1]; refuses what is none."""
    if not (is_number(value) and 0 <= value <= 1 and value > above):
        raise invalid(name, f"must lie in {'(0' if above == 0 else '[0'}, 1]", repr(value))
    return float(value)


def symmetrize(loss: str | BinaryLoss) -> BinaryLoss:
    """The probability that a loss, read as an energy, gives to the wrong target: 1 / (1 + exp(l0 - l1)).

    Label-symmetric with c = 1 and bounded for every loss. The logistic loss becomes ``sigmoid``, the
    symmetrised loss of Haddad (2022). A loss that is label-symmetric already comes back as it is.

    >>> float(symmetrize("logistic").value(1.0, 1).round(4)), symmetrize("hinge").constant
    (0.2689, 1.0)
    """
    base = binary_loss(loss)
    if base.constant is not None:
        return base
    gap = mixed(base, -1.0, 1.0)
    return BinaryLoss(
        f"symmetrize({base.name})",
        _error_probability(gap),
        _error_probability(mixed(base, 1.0, -1.0)),
        1.0,
        True,
        kinks=base.kinks,
        trainable=base.trainable,
    )


def _error_probability(gap: Curve) -> Curve:
    """1 - 1 / (1 + exp(-u)) of a curve u."""

    def slope(a: Values) -> Values:
        p = probability(gap.value(a))
        return -p * (1 - p) * gap.slope(a)

    def curvature(a: Values) -> Values:
        p = probability(gap.value(a))
        bell, rise = p * (1 - p), gap.slope(a)
        # The bell first: it is 0 where the rise squared would overflow.
        return bell * rise * (2 * p - 1) * rise - bell * gap.curvature(a)

    return Curve(lambda a: probability(-gap.value(a)), slope, curvature)


def bootstrap(loss: str | BinaryLoss = "logistic", beta: float = 0.95, hard: bool = False) -> BinaryLoss:
    """The target mixed with the model's own opinion: beta t + (1 - beta) p, or 1[p >= 1/2] when ``hard``.

    The opinion is part of the loss and is differentiated, as published. Hard takes any loss, soft one whose
    logit is a log-odds.

    >>> round(float(bootstrap("logistic", 0.8, hard=True).value(-2.0, 1)), 4)
    1.7269
    """
    base = binary_loss(loss)
    if not isinstance(hard, bool | np.bool_):
        raise invalid("hard", "must be True or False", repr(hard))
    if not hard:
        needs_log_odds("bootstrap", base)
    own = 1 - share("beta", beta)
    return replace(
        base,
        name=f"bootstrap({base.name}, beta={beta:g}{', hard' if hard else ''})",
        one=_bootstrapped(base, beta, own, hard),
        zero=_bootstrapped(base, 0.0, own, hard),
        constant=base.constant if beta == 1 else None,
        kinks=tuple(sorted({*base.kinks, 0.0})) if hard else base.kinks,
    )


def _bootstrapped(base: BinaryLoss, given: float, own: float, hard: bool) -> Curve:
    """The curve of the target tau = given + own p: l0 + tau (l1 - l0)."""
    gap = mixed(base, 1.0, -1.0)

    def target(a: Values) -> Values:
        return given + own * (as_type(a >= 0, a) if hard else probability(a))

    def value(a: Values) -> Values:
        return base.zero.value(a) + target(a) * gap.value(a)

    def slope(a: Values) -> Values:
        found = base.zero.slope(a) + target(a) * gap.slope(a)
        p = probability(a)
        return found if hard else found + own * p * (1 - p) * gap.value(a)

    def curvature(a: Values) -> Values:
        found = base.zero.curvature(a) + target(a) * gap.curvature(a)
        p = probability(a)
        bend = own * p * (1 - p) * (2 * gap.slope(a) + (1 - 2 * p) * gap.value(a))
        return found if hard else found + bend

    return Curve(value, slope, curvature)


def label_smoothing(loss: str | BinaryLoss = "logistic", eps: float = 0.05) -> BinaryLoss:
    """The target drawn towards 1/2: (1 - eps) t + eps / 2. It adds what ``peer`` takes away.

    >>> round(float(label_smoothing("hinge", 0.2).value(-1.0, 1)), 4)
    1.8
    """
    base = binary_loss(loss)
    half = share("eps", eps) / 2
    return replace(
        base,
        name=f"label_smoothing({base.name}, eps={eps:g})",
        one=mixed(base, 1 - half, half),
        zero=mixed(base, half, 1 - half),
    )


def clipped(loss: str | BinaryLoss, at: float = 2.0) -> BinaryLoss:
    """A loss cut to [-at, at]: what is so wrong that it must be a wrong label no longer pulls.

    >>> float(clipped("hinge", 2.0).value(-5.0, 1)), float(clipped("hinge", 2.0).gradient(-5.0, 1))
    (2.0, 0.0)
    """
    base = binary_loss(loss)
    if not (is_number(at) and at > 0):
        raise invalid("at", "must be a positive number", repr(at))
    return replace(
        base,
        name=f"clipped({base.name}, at={at:g})",
        one=_cut(base.one, at),
        zero=_cut(base.zero, at),
        constant=_clipped_constant(base, at),
        bounded=True,
        log_odds=False,
        kinks=tuple(sorted({*base.kinks, *_crossings(base, at)})),
    )


def _cut(curve: Curve, at: float) -> Curve:
    def inside(a: Values) -> Values:
        return as_type(abs(curve.value(a)) <= at, a)

    return Curve(
        lambda a: namespace(a).clip(curve.value(a), -at, at),
        lambda a: curve.slope(a) * inside(a),
        lambda a: curve.curvature(a) * inside(a),
    )


def _clipped_constant(base: BinaryLoss, at: float) -> float | None:
    """0 survives a cut at both ends; another constant does where nothing is cut."""
    ends = np.array([-1e6, 0.0, 1e6])
    whole = base.bounded and max(abs(c.value(ends)).max() for c in (base.one, base.zero)) <= at
    return base.constant if base.constant == 0 or whole else None


def _crossings(base: BinaryLoss, at: float) -> list[float]:
    """Logits within reach of scores where a curve passes -at or at."""
    grid = np.linspace(-64.0, 64.0, 8193)
    found = []
    for curve in (base.one, base.zero):
        for level in (-at, at):
            above = curve.value(grid) > level
            for k in np.flatnonzero(above[1:] != above[:-1]):
                found.append(_bisected(curve, level, grid[k], grid[k + 1]))
    return found


def _bisected(curve: Curve, level: float, low: float, high: float) -> float:
    rising = bool(curve.value(np.array(high)) > level)
    for _ in range(60):
        middle = (low + high) / 2
        if (curve.value(np.array(middle)) > level) == rising:
            high = middle
        else:
            low = middle
    return (low + high) / 2
