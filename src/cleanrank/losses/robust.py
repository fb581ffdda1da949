"""Robust forms of a loss: loss -> loss, for points and pairs, NumPy, torch and trees alike.

    symmetrize       label-symmetric and bounded
    peer             minus the expected loss of shuffled targets
    bootstrap        the target mixed with the model's opinion
    label_smoothing  the target drawn towards 1/2
    clipped          cut at a value
    forward          the true probability trained through a noise matrix
    backward         unbiased under a noise matrix

T[true, given] is a 2 x 2 noise matrix of the targets. ``robust_specs`` makes these by name.
"""

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
    bell,
    binary_loss,
    is_tensor,
    namespace,
    probability,
)
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.types import FloatArray
from cleanrank.validation import check_number, is_number

ALPHA, EPS = 0.1, 0.05


def _mixed(loss: BinaryLoss, one: float, zero: float) -> Curve:
    """The curve one * l(a, 1) + zero * l(a, 0)."""

    def mix(f: Callable[[Values], Values], g: Callable[[Values], Values]) -> Callable[[Values], Values]:
        return lambda a: one * f(a) + zero * g(a)

    return Curve(
        mix(loss.one.value, loss.zero.value),
        mix(loss.one.slope, loss.zero.slope),
        mix(loss.one.curvature, loss.zero.curvature),
    )


def _needs_log_odds(form: str, loss: BinaryLoss) -> None:
    if not loss.log_odds:
        rule = "needs a loss whose logit is a log-odds, such as 'logistic'"
        remedy = "Use 'logistic', or another robust form: symmetrize, peer, backward and clipped take any."
        raise invalid(form, rule, repr(loss.name), remedy=remedy)


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
    gap = _mixed(base, -1.0, 1.0)
    return BinaryLoss(
        f"symmetrize({base.name})",
        _error_probability(gap),
        _error_probability(_mixed(base, 1.0, -1.0)),
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
        _needs_log_odds("bootstrap", base)
    own = 1 - check_number("beta", beta, least=0, most=1)
    return replace(
        base,
        name=f"bootstrap({base.name}, beta={beta:g}{', hard' if hard else ''})",
        one=_bootstrapped(base, beta, own, hard),
        zero=_bootstrapped(base, 0.0, own, hard),
        constant=base.constant if beta == 1 else None,
        kinks=tuple(sorted({*base.kinks, 0.0})) if hard else base.kinks,
    )


def _bootstrapped(base: BinaryLoss, label: float, own: float, hard: bool) -> Curve:
    """The curve of the target tau = label + own p: l0 + tau (l1 - l0)."""
    gap = _mixed(base, 1.0, -1.0)

    def target(a: Values) -> Values:
        return label + own * (as_type(a >= 0, a) if hard else probability(a))

    def value(a: Values) -> Values:
        return base.zero.value(a) + target(a) * gap.value(a)

    def slope(a: Values) -> Values:
        fixed = base.zero.slope(a) + target(a) * gap.slope(a)
        p = probability(a)
        return fixed if hard else fixed + own * p * (1 - p) * gap.value(a)

    def curvature(a: Values) -> Values:
        fixed = base.zero.curvature(a) + target(a) * gap.curvature(a)
        p = probability(a)
        bend = own * p * (1 - p) * (2 * gap.slope(a) + (1 - 2 * p) * gap.value(a))
        return fixed if hard else fixed + bend

    return Curve(value, slope, curvature)


def label_smoothing(loss: str | BinaryLoss = "logistic", eps: float = EPS) -> BinaryLoss:
    """The target drawn towards 1/2: (1 - eps) t + eps / 2. It adds what ``peer`` takes away.

    >>> round(float(label_smoothing("hinge", 0.2).value(-1.0, 1)), 4)
    1.8
    """
    base = binary_loss(loss)
    half = check_number("eps", eps, least=0, most=1) / 2
    return replace(
        base,
        name=f"label_smoothing({base.name}, eps={eps:g})",
        one=_mixed(base, 1 - half, half),
        zero=_mixed(base, half, 1 - half),
    )


def clipped(loss: str | BinaryLoss, at: float = 2.0) -> BinaryLoss:
    """A loss cut to [-at, at]: what is so wrong that it must be a wrong label no longer pulls.

    >>> float(clipped("hinge", 2.0).value(-5.0, 1)), float(clipped("hinge", 2.0).gradient(-5.0, 1))
    (2.0, 0.0)
    """
    base = binary_loss(loss)
    check_number("at", at, above=0)
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
    logits = []
    for curve in (base.one, base.zero):
        for level in (-at, at):
            above = curve.value(grid) > level
            for k in np.flatnonzero(above[1:] != above[:-1]):
                logits.append(_bisected(curve, level, grid[k], grid[k + 1]))
    return logits


def _bisected(curve: Curve, level: float, low: float, high: float) -> float:
    rising = bool(curve.value(np.array(high)) > level)
    for _ in range(60):
        middle = (low + high) / 2
        if (curve.value(np.array(middle)) > level) == rising:
            high = middle
        else:
            low = middle
    return (low + high) / 2


def peer(loss: str | BinaryLoss, alpha: float = ALPHA, prior: float = 0.5) -> BinaryLoss:
    """A loss minus ``alpha`` times that of peers, which keep their logit and take another one's target.

    On average over the peers l(a, t) - alpha (prior l(a, 1) + (1 - prior) l(a, 0)). With ``prior`` 1/2, that
    of all ordered pairs, RankNet becomes (1 - alpha) logistic - alpha d / 2, and alpha = e+ + e- undoes flips
    at these rates, whatever the loss. alpha = 1 leaves the antisymmetric part alone, which has no lower bound
    for an unbounded loss; beyond it the loss rewards what it should punish, so it is refused.

    Args:
        loss: any loss.
        alpha: weight of the peers in [0, 1].
        prior: the share of targets 1, for points that of the batch.

    >>> round(float(peer("logistic", 1.0).value(3.0, 1)), 6)
    -1.5
    """
    base = binary_loss(loss)
    if not (is_number(alpha) and 0 <= alpha <= 1):
        rule = "must lie in [0, 1]: beyond 1 a model that ranks backwards has less loss"
        remedy = "For pairs the sum of the two flip rates is exact; the papers use .05 to .1."
        raise invalid("alpha", rule, repr(alpha), remedy=remedy)
    check_number("prior", prior, least=0, most=1)
    on, off = alpha * prior, alpha * (1 - prior)
    one, zero = _mixed(base, 1 - on, -off), _mixed(base, -on, 1 - off)
    return replace(
        base,
        name=f"peer({base.name}, alpha={alpha:g})",
        one=one,
        zero=zero,
        bounded=base.bounded or (_levels_off(one) and _levels_off(zero)),
        constant=_peer_constant(base, alpha, prior),
    )


def _levels_off(curve: Curve) -> bool:
    """Whether a curve is constant far from 0, as l1 minus its mirror image."""
    far = np.array([-1e4, -1e3, 1e3, 1e4])
    value = curve.value(far)
    return bool(np.allclose(value[[0, 3]], value[[1, 2]], rtol=0, atol=1e-6))


def _peer_constant(base: BinaryLoss, alpha: float, prior: float) -> float | None:
    if alpha == 0:
        return base.constant
    if prior != 0.5:
        return None
    return 0.0 if alpha == 1 else base.constant and (1 - alpha) * base.constant


def _matrix(noise: Any) -> FloatArray:
    """The 2 x 2 matrix of a noise that can be undone."""
    T = NoiseProfile.of(noise, 2, invertible=True).matrix
    if len(T) != 2:
        raise invalid(
            "noise matrix", "must be 2 x 2, rows true and columns given targets", f"shape {T.shape}"
        )
    return T


def forward(loss: str | BinaryLoss, matrix: Any) -> BinaryLoss:
    """Trains the true probability through the noise: l at the log-odds of P(given = 1) = sum_y p_y T[y, 1].

    >>> noise = [[0.9, 0.1], [0.2, 0.8]]
    >>> round(float(np.exp(-forward("logistic", noise).value(0.0, 1))), 4)  # .5 * .8 + .5 * .1
    0.45
    """
    base, T = binary_loss(loss), _matrix(matrix)
    _needs_log_odds("forward correction", base)
    with np.errstate(divide="ignore"):
        (log00, log01), (log10, log11) = np.log(T).tolist()
    at = Curve(
        lambda a: _logaddexp(log01, a + log11) - _logaddexp(log00, a + log10),
        lambda a: probability(a + (log11 - log01)) - probability(a + (log10 - log00)),
        lambda a: bell(a + (log11 - log01)) - bell(a + (log10 - log00)),
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

    >>> loss = backward("hinge", [[0.9, 0.1], [0.2, 0.8]])
    >>> round(float(0.8 * loss.value(0.5, 1) + 0.2 * loss.value(0.5, 0)), 6)  # hinge at 0.5 if truly 1
    0.5
    """
    base, T = binary_loss(loss), _matrix(matrix)
    (zero_zero, zero_one), (one_zero, one_one) = np.linalg.inv(T).tolist()
    equal = abs((zero_zero + one_zero) - (zero_one + one_one)) < 1e-9
    return replace(
        base,
        name=f"backward({base.name})",
        one=_mixed(base, one_one, one_zero),
        zero=_mixed(base, zero_one, zero_zero),
        constant=base.constant if equal else None,
    )
