"""Transforms of a loss: symmetrised, bootstrapped, smoothed, clipped; ``robust`` says which is which."""

import math
import numbers
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, overload

import numpy as np

from cleanrank.errors import invalid
from cleanrank.losses.binary import (
    LOSSES,
    BinaryLoss,
    Curve,
    Values,
    as_floats,
    as_type,
    binary_loss,
    is_tensor,
    logistic_value,
    margin_loss,
    namespace,
    probability,
)
from cleanrank.validation import is_integer, one_of


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


REVERSED_LOG_OF_ZERO = 4.0


def gce(q: float = 0.5) -> BinaryLoss:
    """Generalised cross-entropy (1 - p_t^q) / q: q -> 0 is the logistic loss, q = 1 is ``sigmoid``.

    >>> round(float(gce(0.5).value(0.0, 1)), 4)
    0.5858
    """
    share("q", q, above=0.0)

    def value(m: Values) -> Values:
        return -namespace(m).expm1(-q * logistic_value(m)) / q

    def power(m: Values) -> Values:
        return namespace(m).exp(-q * logistic_value(m))

    def curvature(m: Values) -> Values:
        p, wrong = probability(m), probability(-m)
        return power(m) * wrong * (p - q * wrong)

    return margin_loss(
        f"gce(q={q:g})",
        value,
        lambda m: -power(m) * probability(-m),
        curvature,
        constant=1.0 if q == 1 else None,
        bounded=True,
    )


def sce(a: float = 0.1, b: float = 1.0) -> BinaryLoss:
    """Symmetric cross-entropy a CE + b RCE, with RCE = 4 (1 - p_t) as log 0 is set to -4.

    >>> round(float(sce(1.0, 0.25).value(0.0, 1)), 4)
    1.1931
    """
    for name, weight in (("a", a), ("b", b)):
        if not (is_number(weight) and weight >= 0):
            raise invalid(name, "must be a finite number >= 0", repr(weight))
    if a + b == 0:
        raise invalid("a and b", "must not both be 0", 0)
    ce, wrong, b4 = LOSSES["logistic"].one, LOSSES["sigmoid"].one, REVERSED_LOG_OF_ZERO * b
    return margin_loss(
        f"sce(a={a:g}, b={b:g})",
        lambda m: a * ce.value(m) + b4 * wrong.value(m),
        lambda m: a * ce.slope(m) + b4 * wrong.slope(m),
        lambda m: a * ce.curvature(m) + b4 * wrong.curvature(m),
        constant=b4 if a == 0 else None,
        bounded=a == 0,
    )


def taylor(t: int = 2) -> BinaryLoss:
    """Taylor cross-entropy sum_{i = 1..t} (1 - p_t)^i / i: t = 1 is ``sigmoid``, t -> inf the logistic loss.

    >>> round(float(taylor(2).value(0.0, 1)), 4)
    0.625
    """
    if not is_integer(t) or t < 1:
        raise invalid("t", "must be a whole number from 1 on", t)

    def value(m: Values) -> Values:
        wrong = probability(-m)
        total = wrong / t
        for i in range(t - 1, 0, -1):
            total = wrong * (1.0 / i + total)
        return total

    def slope(m: Values) -> Values:
        wrong = probability(-m)
        return -wrong * (1 - wrong**t)

    def curvature(m: Values) -> Values:
        wrong = probability(-m)
        return wrong * probability(m) * (1 - (t + 1) * wrong**t)

    constant = 1.0 if t == 1 else None
    return margin_loss(f"taylor(t={t})", value, slope, curvature, constant=constant, bounded=True)


MODES: dict[str, str] = {
    "expected": "the mean over all draws of peers; no further variance",
    "sampled": "peers drawn from the batch, as published",
}


@dataclass(frozen=True)
class SampledPeer:
    """Peers drawn from the batch: w_i l(a_i, t_i) - alpha w_j l(a_j, t_k), j and k uniform and independent.

    The mean over the draws of the batch's mean is that of the expected form with the batch's share of
    positive targets as ``prior``. Gradients flow through both terms.

    >>> logits, targets = np.array([0.5, -1.0]), np.array([1, 0])
    >>> SampledPeer(binary_loss("logistic"), 0.1).value(logits, targets, np.random.default_rng(0)).shape
    (2,)
    """

    loss: BinaryLoss
    alpha: float

    @property
    def name(self) -> str:
        """As messages call it."""
        return f"peer({self.loss.name}, alpha={self.alpha:g}, mode=sampled)"

    def expected(self, prior: float = 0.5) -> BinaryLoss:
        """The mean over all draws."""
        return peer(self.loss, self.alpha, prior=prior)

    def value(self, logit: Values, target: Values, generator: Any, weight: Values = 1.0) -> Values:
        """One value per element of a flat batch; ``generator`` is NumPy's or torch's, as the arrays are."""
        a, t = as_floats(logit), target
        j, k = _draw_peers(a, generator)
        w = weight if np.ndim(weight) == 0 else weight[j]
        return weight * self.loss.value(a, t) - self.alpha * w * self.loss.value(a[j], t[k])

    def gradient(self, logit: Values, target: Values, generator: Any, weight: Values = 1.0) -> Values:
        """The derivative of the sum of ``value`` by every logit, for the same state of the generator."""
        a, t = as_floats(logit), target
        j, k = _draw_peers(a, generator)
        w = weight if np.ndim(weight) == 0 else weight[j]
        found = weight * self.loss.gradient(a, t)
        drawn = self.alpha * w * self.loss.gradient(a[j], t[k])
        if is_tensor(a):
            return found.index_add(0, j, -drawn)
        np.subtract.at(found, j, drawn)
        return found


def _draw_peers(a: Values, generator: Any) -> Values:
    n = len(a)
    if is_tensor(a):
        return namespace(a).randint(n, (2, n), generator=generator, device=a.device)
    return generator.integers(n, size=(2, n))


@overload
def peer(
    loss: str | BinaryLoss, alpha: float = ..., mode: Literal["expected"] = ..., prior: float = ...
) -> BinaryLoss: ...
@overload
def peer(
    loss: str | BinaryLoss, alpha: float, mode: Literal["sampled"], prior: float = ...
) -> SampledPeer: ...
def peer(
    loss: str | BinaryLoss, alpha: float = 0.1, mode: str = "expected", prior: float = 0.5
) -> BinaryLoss | SampledPeer:
    """A loss less ``alpha`` times that of peers, which keep their logit and take another one's target.

    Expected: l(a, t) - alpha (prior l(a, 1) + (1 - prior) l(a, 0)). With ``prior`` 1/2, that of all ordered
    pairs, RankNet becomes (1 - alpha) logistic - alpha d / 2, and alpha = e+ + e- undoes clicks that are
    flipped at these rates, whatever the loss. alpha = 1 leaves the antisymmetric part alone, which has no
    lower bound for an unbounded loss; beyond it the loss rewards what it should punish, so it is refused.

    Args:
        loss: any loss.
        alpha: weight of the peers in [0, 1].
        mode: one of MODES.
        prior: the share of targets 1, for points that of the batch; not read by sampled peers.

    >>> round(float(peer("logistic", 1.0).value(3.0, 1)), 6)
    -1.5
    """
    base = binary_loss(loss)
    one_of("mode of peers", mode, MODES)
    if not (is_number(alpha) and 0 <= alpha <= 1):
        raise invalid(
            "alpha",
            "must lie in [0, 1]: beyond 1 a model that ranks backwards has less loss",
            repr(alpha),
            remedy="For pairs the sum of the two flip rates is exact; the papers use .05 to .1.",
        )
    share("prior", prior)
    if mode == "sampled":
        return SampledPeer(base, float(alpha))
    on, off = alpha * prior, alpha * (1 - prior)
    one, zero = mixed(base, 1 - on, -off), mixed(base, -on, 1 - off)
    return replace(
        base,
        name=f"peer({base.name}, alpha={alpha:g})",
        one=one,
        zero=zero,
        bounded=base.bounded or (levels_off(one) and levels_off(zero)),
        constant=_peer_constant(base, alpha, prior),
    )


def _peer_constant(base: BinaryLoss, alpha: float, prior: float) -> float | None:
    if alpha == 0:
        return base.constant
    if prior != 0.5:
        return None
    return 0.0 if alpha == 1 else base.constant and (1 - alpha) * base.constant
