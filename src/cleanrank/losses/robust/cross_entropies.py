"""Losses that stand for cross-entropy, each between it and the sigmoid loss."""

from cleanrank.errors import invalid
from cleanrank.losses.binary import (
    LOSSES,
    BinaryLoss,
    Values,
    logistic_value,
    margin_loss,
    namespace,
    probability,
)
from cleanrank.losses.robust.transforms import is_number, share
from cleanrank.validation import is_integer

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
