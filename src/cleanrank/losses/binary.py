"""Losses of a logit and a target, written once for NumPy arrays and torch tensors.

A logit a is a score (points) or a difference of scores s_i - s_j (pairs). A target t in [0, 1] is a label or
a preference; between its ends a loss is linear, l(a, t) = t l(a, 1) + (1 - t) l(a, 0). A *margin loss* has
l(a, 1) = phi(a) and l(a, 0) = phi(-a).

A loss is *label-symmetric* when l(a, 1) + l(a, 0) = c for every a (Haddad 2022): equal flips of the labels
then change its risk by a positive factor and a constant alone. The ten losses here, with m the margin:

    zero_one       1[m < 0], 1/2 at 0 as a tie counts in AUC    c = 1
    logistic       log(1 + exp(-m)), cross-entropy of a log-odds; for pairs RankNet
    exponential    exp(-m); beyond m = -50 its tangent, so that it stays finite
    hinge          max(0, 1 - m)
    squared_hinge  max(0, 1 - m)^2
    l1             |1 - m|
    ramp           clip((1 - m) / 2, 0, 1)                      c = 1
    unhinged       1 - m                                        c = 2
    sigmoid        1 / (1 + exp(m))                             c = 1
    squared        (1 - m)^2

``sigmoid`` is also the symmetrised logistic loss and the soft zero-one loss; see ALIASES. Three families with
a parameter lie between ``logistic`` and ``sigmoid``: ``gce``, ``sce`` and ``taylor``. Where a slope jumps
(kinks) the gradient is the one that torch's automatic differentiation takes.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from cleanrank.errors import invalid
from cleanrank.validation import check_integer, check_number, one_of

# A NumPy array or a torch tensor: the formulas use what both have.
Values: TypeAlias = Any
Formula: TypeAlias = Callable[[Values], Values]

STEEPEST = 50.0
REVERSED_LOG_OF_ZERO = 4.0


@dataclass(frozen=True)
class Curve:
    """A function of the logit with its first two derivatives."""

    value: Formula
    slope: Formula
    curvature: Formula


@dataclass(frozen=True)
class BinaryLoss:
    """A loss l(a, t) of a logit a and a target t in [0, 1].

    Attributes:
        name: how messages call it.
        one: l(a, 1) as a curve.
        zero: l(a, 0) as a curve.
        constant: c with l(a, 1) + l(a, 0) = c for every a, None when there is none.
        bounded: whether its values stay within bounds.
        log_odds: whether 1 / (1 + exp(-a)) is the model's probability of target 1.
        kinks: logits where a slope is not smooth.
        trainable: whether its gradient can train a model.

    >>> hinge = LOSSES["hinge"]
    >>> float(hinge.value(0.25, 1)), float(hinge.gradient(0.25, 0)), hinge.constant
    (0.75, 1.0, None)
    """

    name: str
    one: Curve
    zero: Curve
    constant: float | None = None
    bounded: bool = False
    log_odds: bool = False
    kinks: tuple[float, ...] = ()
    trainable: bool = True

    def __reduce__(self) -> Any:
        """A loss of LOSSES is pickled by its name: formulas are no data."""
        return (_named, (self.name,)) if LOSSES.get(self.name) is self else super().__reduce__()

    def value(self, logit: Values, target: Values) -> Values:
        """l(a, t), elementwise."""
        return _between(self.one.value, self.zero.value, logit, target)

    def gradient(self, logit: Values, target: Values) -> Values:
        """The derivative of l(a, t) by a."""
        return _between(self.one.slope, self.zero.slope, logit, target)

    def curvature(self, logit: Values, target: Values) -> Values:
        """The second derivative of l(a, t) by a, which may be 0 or negative; 0 at kinks."""
        return _between(self.one.curvature, self.zero.curvature, logit, target)


def _named(name: str) -> BinaryLoss:
    return LOSSES[name]


def _between(one: Formula, zero: Formula, logit: Values, target: Values) -> Values:
    a = as_floats(logit)
    if is_tensor(a):
        t = target.to(a.dtype) if is_tensor(target) else a.new_tensor(target)
    else:
        t = np.asarray(target)
    return t * one(a) + (1 - t) * zero(a)


def margin_loss(
    name: str,
    value: Formula,
    slope: Formula,
    curvature: Formula,
    *,
    kinks: tuple[float, ...] = (),
    **traits: Any,
) -> BinaryLoss:
    """A loss phi of the margin from phi and its first two derivatives.

    ``kinks`` are margins; ``traits`` are further attributes of BinaryLoss: constant, bounded and so on.

    >>> halved = margin_loss("halved", lambda m: (1 - m) / 2, lambda m: 0 * m - 0.5, lambda m: 0 * m)
    >>> float(halved.value(-1.0, 0))
    0.0
    """
    return BinaryLoss(
        name,
        Curve(value, slope, curvature),
        Curve(lambda a: value(-a), lambda a: -slope(-a), lambda a: curvature(-a)),
        kinks=tuple(sorted({x for k in kinks for x in (k, -k)})),
        **traits,
    )


def is_tensor(values: Values) -> bool:
    """Whether the values are a torch tensor; torch is not imported to find out."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def namespace(values: Values) -> Any:
    """The module whose functions take these values: torch or NumPy."""
    return sys.modules["torch"] if is_tensor(values) else np


def as_floats(values: Values) -> Values:
    """The values with a floating type, as a tensor or an array."""
    if is_tensor(values):
        return values if values.is_floating_point() else values.double()
    array = np.asarray(values)
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def logistic_value(m: Values) -> Values:
    """log(1 + exp(-m)) without overflow."""
    if is_tensor(m):
        return -sys.modules["torch"].nn.functional.logsigmoid(m)
    return np.logaddexp(0.0, -m)


def probability(a: Values) -> Values:
    """1 / (1 + exp(-a)) without overflow."""
    if is_tensor(a):
        return a.sigmoid()
    small = np.exp(-np.abs(a))
    return np.where(a >= 0, 1.0, small) / (1.0 + small)


def _flat(m: Values) -> Values:
    return m * 0


def as_type(condition: Values, m: Values) -> Values:
    """A condition as 0 and 1 in the type of ``m``."""
    return condition.to(m.dtype) if is_tensor(m) else np.asarray(condition, m.dtype)


def _zero_one(m: Values) -> Values:
    return as_type(m < 0, m) + 0.5 * as_type(m == 0, m)


def bell(m: Values) -> Values:
    """P (1 - p) of p = 1 / (1 + exp(-m)), the slope of ``probability``."""
    return probability(m) * probability(-m)


def _exponential(m: Values) -> Values:
    # Beyond the steepest slope the tangent: finite and, in single precision too, still rising.
    near = namespace(m).clip(m, -STEEPEST, None)
    return namespace(m).exp(-near) * (1.0 + (near - m))


def _exponential_slope(m: Values) -> Values:
    return -namespace(m).exp(-namespace(m).clip(m, -STEEPEST, None))


def _shortfall(m: Values) -> Values:
    """max(0, 1 - m)."""
    return namespace(m).clip(1 - m, 0, None)


LOSSES: dict[str, BinaryLoss] = {
    "zero_one": margin_loss(
        "zero_one", _zero_one, _flat, _flat, constant=1.0, bounded=True, kinks=(0.0,), trainable=False
    ),
    "logistic": margin_loss("logistic", logistic_value, lambda m: -probability(-m), bell, log_odds=True),
    "exponential": margin_loss(
        "exponential",
        _exponential,
        _exponential_slope,
        lambda m: -_exponential_slope(m) * as_type(m >= -STEEPEST, m),
        kinks=(-STEEPEST,),
    ),
    "hinge": margin_loss("hinge", _shortfall, lambda m: -as_type(m <= 1, m), _flat, kinks=(1.0,)),
    "squared_hinge": margin_loss(
        "squared_hinge",
        lambda m: _shortfall(m) ** 2,
        lambda m: -2 * _shortfall(m),
        lambda m: 2 * as_type(m < 1, m),
        kinks=(1.0,),
    ),
    "l1": margin_loss("l1", lambda m: abs(1 - m), lambda m: namespace(m).sign(m - 1), _flat, kinks=(1.0,)),
    "ramp": margin_loss(
        "ramp",
        lambda m: namespace(m).clip((1 - m) / 2, 0, 1),
        lambda m: -0.5 * as_type(abs(m) <= 1, m),
        _flat,
        constant=1.0,
        bounded=True,
        kinks=(-1.0, 1.0),
    ),
    "unhinged": margin_loss("unhinged", lambda m: 1 - m, lambda m: m * 0 - 1, _flat, constant=2.0),
    "sigmoid": margin_loss(
        "sigmoid",
        lambda m: probability(-m),
        lambda m: -bell(m),
        lambda m: bell(m) * (2 * probability(m) - 1),
        constant=1.0,
        bounded=True,
    ),
    "squared": margin_loss("squared", lambda m: (1 - m) ** 2, lambda m: 2 * (m - 1), lambda m: m * 0 + 2),
}

ALIASES: dict[str, str] = {
    "0-1": "zero_one",
    "cross_entropy": "logistic",
    "ranknet": "logistic",
    "symmetrised_logistic": "sigmoid",
    "soft_zero_one": "sigmoid",
    "absolute": "l1",
}


def binary_loss(loss: str | BinaryLoss) -> BinaryLoss:
    """The loss of a name, of an alias, or the loss itself.

    >>> binary_loss("soft_zero_one").name
    'sigmoid'
    """
    if isinstance(loss, BinaryLoss):
        return loss
    name = ALIASES.get(loss, loss) if isinstance(loss, str) else loss
    return LOSSES[one_of("loss", name, LOSSES)]


def check_trainable(loss: BinaryLoss) -> BinaryLoss:
    """Returns a loss that has gradients; refuses the zero-one loss and what is made of it."""
    if not loss.trainable:
        rule = "must have a gradient to train on"
        remedy = "Use 'sigmoid', the smooth zero-one loss."
        raise invalid("the loss of a model", rule, repr(loss.name), remedy=remedy)
    return loss


def gce(q: float = 0.5) -> BinaryLoss:
    """Generalised cross-entropy (1 - p_t^q) / q: q -> 0 is the logistic loss, q = 1 is ``sigmoid``.

    >>> round(float(gce(0.5).value(0.0, 1)), 4)
    0.5858
    """
    check_number("q", q, above=0, most=1)

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
    check_number("a", a, least=0)
    check_number("b", b, least=0)
    if a + b == 0:
        raise invalid("a and b", "must not both be 0")
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
    check_integer("t", t, least=1)

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
