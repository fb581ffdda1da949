"""Probabilities of a click made true after training: Platt's sigmoid or an isotonic curve.

A peer loss, a reweighting or one sampled negative per click leaves the order of scores useful and their
values wrong. A curve from probability to probability, fitted on validation rows, mends the values; AUC stays
as it is (Platt, where the slope is positive) or changes by ties alone (isotonic).

Fitted on noisy labels, the curve predicts noisy labels. Where the rates e+ = P(noisy 0 | true 1) and
e- = P(noisy 1 | true 0) are known, P(true 1) = (P(noisy 1) - e-) / (1 - e+ - e-), cut to [0, 1]; that is
exact when errors depend on the true label alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.metrics.clicks import LEAST, checked_probabilities, checked_rows
from cleanrank.types import FloatArray
from cleanrank.validation import check_number, one_of

STEPS = 100


@dataclass(frozen=True, eq=False)
class Calibration:
    """A fitted curve from probability to probability.

    Attributes:
        method: "platt" or "isotonic".
        x: Platt: the slope; isotonic: where the curve has its corners (probabilities).
        y: Platt: the intercept; isotonic: its values there.
        noise: the rates (e+, e-) that were taken out; (0, 0) for none.
    """

    method: str
    x: FloatArray
    y: FloatArray
    noise: tuple[float, float] = (0.0, 0.0)

    def apply(self, probabilities: npt.ArrayLike) -> FloatArray:
        """Calibrated probabilities.

        Args:
            probabilities: of a click, as the model gives them.

        Returns:
            One value in [0, 1] for each.
        """
        p = checked_probabilities(probabilities)
        if self.method == "platt":
            noisy = _sigmoid(self.x[0] * _logit(p) + self.y[0])
        else:
            noisy = np.interp(p, self.x, self.y)
        up, down = self.noise
        return np.clip((noisy - down) / (1 - up - down), 0, 1)

    def to_dict(self) -> dict[str, Any]:
        """JSON-like; ``from_dict`` takes it back."""
        return {"method": self.method, "x": self.x.tolist(), "y": self.y.tolist(), "noise": list(self.noise)}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Calibration":
        """The curve that ``to_dict`` wrote."""
        x, y = (np.asarray(fields[name], dtype=np.float64) for name in ("x", "y"))
        up, down = fields["noise"]
        return cls(one_of("method", fields["method"], METHODS), x, y, (up, down))


def fit_calibration(
    y: npt.ArrayLike,
    probabilities: npt.ArrayLike,
    method: str = "platt",
    *,
    noise: tuple[float, float] | None = None,
) -> Calibration:
    """Fits a curve on rows that the model was not trained on.

    Args:
        y: their labels, 1 clicked, 0 not.
        probabilities: of a click, as the model gives them.
        method: "platt" (two numbers; for few rows) or "isotonic" (any rising curve; some thousand rows).
        noise: the rates (e+, e-) of wrong labels among ``y``; None takes the labels as they are.

    Returns:
        The curve; ``apply`` calibrates.

    >>> random = np.random.default_rng(0)
    >>> p = random.random(2000)
    >>> clicked = random.random(2000) < p**2
    >>> curve = fit_calibration(clicked, p, "isotonic")
    >>> bool(abs(curve.apply([0.5])[0] - 0.25) < 0.05)
    True
    """
    labels, p = checked_rows(y, probabilities, "probabilities")
    checked_probabilities(p)
    up, down = (0.0, 0.0) if noise is None else noise
    for name, rate in (("e+", up), ("e-", down)):
        check_number(f"the rate {name} of noise", rate, least=0, below=1)
    if up + down >= 1:
        raise invalid("noise", "must have rates that add up to less than 1", (up, down))
    one_of("method", method, METHODS)
    if labels.min() == labels.max():
        rule, remedy = "must have both labels", "Calibrate on more rows."
        raise invalid("y", rule, f"only {int(labels[0])}", remedy=remedy)
    fitted_x, fitted_y = (_platt if method == "platt" else _isotonic)(labels, p)
    return Calibration(method, fitted_x, fitted_y, (float(up), float(down)))


def _platt(labels: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Slope and intercept on the logit, by Newton steps; targets are drawn in as in Platt 1999.

    (n1 + 1) / (n1 + 2) stands for 1 and 1 / (n0 + 2) for 0, so that separable rows have a finite answer.
    """
    n1 = labels.sum()
    targets = np.where(labels == 1, (n1 + 1) / (n1 + 2), 1 / (len(labels) - n1 + 2))
    design = np.stack([_logit(p), np.ones(len(p))], axis=1)
    coefficients = np.array([1.0, 0.0])
    value = _cross_entropy(design @ coefficients, targets)
    for _ in range(STEPS):
        q = _sigmoid(design @ coefficients)
        gradient = design.T @ (q - targets)
        curvature = (design * (q * (1 - q))[:, None]).T @ design + 1e-9 * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        size = 1.0
        while (new := _cross_entropy(design @ (coefficients - size * step), targets)) > value and size > 1e-9:
            size /= 2
        done = abs(value - new) <= 1e-12 * (1 + abs(value))
        coefficients, value = coefficients - size * step, new
        if done:
            break
    return coefficients[:1], coefficients[1:]


def _isotonic(labels: FloatArray, p: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The best rising step function, as its corners; in between, values are on the line."""
    from scipy.optimize import isotonic_regression

    values, place = np.unique(p, return_inverse=True)
    weights = np.bincount(place).astype(np.float64)
    means = np.bincount(place, weights=labels) / weights
    curve = np.asarray(isotonic_regression(means, weights=weights).x)
    inner = np.append(False, curve[1:] == curve[:-1]) & np.append(curve[:-1] == curve[1:], False)
    return values[~inner], curve[~inner]


def _cross_entropy(logits: FloatArray, targets: FloatArray) -> float:
    return float(np.sum(np.logaddexp(0, logits) - targets * logits))


def _sigmoid(logits: FloatArray) -> FloatArray:
    return np.exp(-np.logaddexp(0, -logits))


def _logit(p: FloatArray) -> FloatArray:
    cut = np.clip(p, LEAST, 1 - LEAST)
    return np.asarray(np.log(cut) - np.log1p(-cut))


METHODS = ("platt", "isotonic")
