"""Losses corrected by a noise matrix T[true, given] of the targets, known or estimated."""

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.losses.binary import BinaryLoss, Curve, Values, binary_loss, is_tensor, probability
from cleanrank.losses.robust.transforms import mixed, needs_log_odds

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
