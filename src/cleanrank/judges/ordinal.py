"""Regression for ordered grades: P(grade <= g) = 1 / (1 + exp(x b - t_g)), with a ridge penalty on b.

And the recalibration of probabilities q that are there already: P(grade = g) ~ q_g^s exp(c_g), with a penalty
that holds s near 1 and c near 0 (temperature and vector scaling).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cleanrank.types import FloatArray, IntArray

PENALTIES = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3)
FLOOR = 1e-3  # the least probability that counts in a loss
STEPS = 50
ENOUGH = 1e-9  # loss a row that a further step must win
TINY = 1e-12


@dataclass(frozen=True, eq=False)
class OrdinalModel:
    """A fitted regression.

    Attributes:
        n_grades: C.
        seen: the grades of the training rows; others get the probability 0.
        thresholds: between these, ascending.
        coefficients: of the columns; above 0 raises the grade.
    """

    n_grades: int
    seen: IntArray
    thresholds: FloatArray
    coefficients: FloatArray

    def predict(self, X: FloatArray) -> FloatArray:
        """(N, C) probabilities of the grades."""
        from scipy.special import expit

        score = np.einsum("np,p->n", X, self.coefficients)
        below = expit(self.thresholds - score[:, None])
        ends = np.zeros((len(X), 1)), np.ones((len(X), 1))
        probabilities = np.zeros((len(X), self.n_grades))
        probabilities[:, self.seen] = np.diff(np.hstack([ends[0], below, ends[1]]), axis=1)
        return probabilities


def fit_ordinal(
    X: FloatArray,
    y: IntArray,
    n_grades: int,
    penalty: float,
    weights: FloatArray | None = None,
    start: OrdinalModel | None = None,
) -> OrdinalModel:
    """Fits the regression.

    Args:
        X: (N, P), columns on one scale and centred.
        y: (N,) grades.
        n_grades: C.
        penalty: of the squared coefficients, in rows.
        weights: of the rows.
        start: a model of the same rows to start from.

    >>> X = np.array([[-1.0], [-1.0], [0.0], [0.0], [1.0], [1.0]])
    >>> model = fit_ordinal(X, np.array([0, 0, 1, 1, 2, 2]), 3, 0.01)
    >>> model.predict(X).argmax(axis=1).tolist()
    [0, 0, 1, 1, 2, 2]
    """
    seen, code = np.unique(y, return_inverse=True)
    row_weights = np.ones(len(y)) if weights is None else weights
    if start is None:
        shares = np.cumsum(np.bincount(code, row_weights))[:-1] / row_weights.sum()
        shares = np.clip(shares, FLOOR, 1 - FLOOR)
        thresholds, coefficients = np.log(shares / (1 - shares)), np.zeros(X.shape[1])
    else:
        thresholds, coefficients = start.thresholds, start.coefficients
    T = len(thresholds)
    at = np.concatenate([thresholds, coefficients])
    value, gradient, curvature = penalised_loss(at, X, code, T, penalty, row_weights)
    for _ in range(STEPS if T else 0):
        step = np.linalg.solve(curvature, gradient)
        size, ahead = 1.0, (value, gradient, curvature)
        while size > TINY:
            ahead = penalised_loss(at - size * step, X, code, T, penalty, row_weights)
            if ahead[0] <= value:
                break
            size /= 2
        gain = value - ahead[0]
        at, (value, gradient, curvature) = at - size * step, ahead
        if gain <= ENOUGH * len(y):
            break
    return OrdinalModel(n_grades, seen, at[:T], at[T:])


def penalised_loss(
    parameters: FloatArray, X: FloatArray, code: IntArray, T: int, penalty: float, weights: FloatArray
) -> tuple[float, FloatArray, FloatArray]:
    """Minus the log-likelihood plus the penalty, with gradient and Hessian.

    ``parameters`` are the T thresholds and the coefficients; infinite where thresholds do not ascend.
    """
    from scipy.special import expit

    b, P = parameters[T:], X.shape[1]
    ends = np.concatenate([[-np.inf], parameters[:T], [np.inf]])
    score = np.einsum("np,p->n", X, b)  # BLAS and its threads cost more than they bring at this size
    upper, lower = expit(ends[code + 1] - score), expit(ends[code] - score)
    p = np.maximum(upper - lower, TINY)
    loss = float(-(weights * np.log(p)).sum() + penalty / 2 * (b * b).sum())
    if (np.diff(parameters[:T]) <= 0).any():
        loss = np.inf
    up, down = upper * (1 - upper) / p, lower * (1 - lower) / p
    # Second derivatives by the upper end, the lower end and both.
    above, below = weights * (up**2 - up * (1 - 2 * upper)), weights * (down**2 + down * (1 - 2 * lower))
    both = -weights * up * down
    hessian = np.zeros((T + P, T + P))
    inner = np.arange(T)
    hessian[inner, inner] = _by_end(code, above, below, T)
    between = np.bincount(code, both, T + 1)[1:T]  # rows of a grade with a threshold on either side
    hessian[inner[1:], inner[:-1]] = hessian[inner[:-1], inner[1:]] = between
    for column in range(P):
        x = X[:, column]
        hessian[T + column, :T] = -_by_end(code, x * (above + both), x * (below + both), T)
    hessian[:T, T:] = hessian[T:, :T].T
    bend = X * (above + below + 2 * both)[:, None]
    hessian[T:, T:] = np.einsum("np,nq->pq", bend, X) + penalty * np.eye(P)
    hessian[np.diag_indices(T + P)] += TINY
    slopes = -_by_end(code, weights * up, -weights * down, T)
    return (
        loss,
        np.concatenate([slopes, np.einsum("np,n->p", X, weights * (up - down)) + penalty * b]),
        hessian,
    )


def _by_end(code: IntArray, upper: FloatArray, lower: FloatArray, T: int) -> FloatArray:
    """(T,) sums over the rows whose grade ends at each threshold, and over those whose grade begins there."""
    ending, beginning = np.bincount(code, upper, T + 1), np.bincount(code, lower, T + 1)
    return np.asarray(ending[:T] + beginning[1:], dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ScaledModel:
    """Probabilities recalibrated: ``scale`` below 1 makes them less sure, ``shifts`` move them by grade."""

    scale: float
    shifts: FloatArray

    def predict(self, X: FloatArray) -> FloatArray:
        """(N, C) probabilities from logarithms of such."""
        score = self.scale * X + self.shifts
        weight = np.exp(score - score.max(axis=1, keepdims=True))
        scaled: FloatArray = weight / weight.sum(axis=1, keepdims=True)
        return scaled


def fit_scaling(
    X: FloatArray, y: IntArray, penalty: float = 1.0, weights: FloatArray | None = None
) -> ScaledModel:
    """Recalibrates probabilities by Newton's method.

    Args:
        X: (N, C) logarithms of probabilities.
        y: (N,) true grades.
        penalty: of the squared deviations of the scale from 1 and of the shifts from 0, in rows.
        weights: of the rows.

    >>> sure = np.log(np.array([[0.99, 0.01], [0.01, 0.99]] * 10))
    >>> bool(fit_scaling(sure, np.array([0, 1, 0, 1, 1] * 4)).scale < 0.5)
    True
    """
    C = X.shape[1]
    row_weights = np.ones(len(y)) if weights is None else weights
    at = np.concatenate([[1.0], np.zeros(C)])
    for _ in range(STEPS):
        p = ScaledModel(at[0], at[1:]).predict(X)
        rest = row_weights[:, None] * (p - np.eye(C)[y])
        start = np.concatenate([[1.0], np.zeros(C)])
        gradient = np.concatenate([[(rest * X).sum()], rest.sum(axis=0)]) + penalty * (at - start)
        mean = (p * X).sum(axis=1)
        w = row_weights[:, None] * p
        hessian = penalty * np.eye(C + 1)
        hessian[0, 0] += (w * X * X).sum() - (row_weights * mean * mean).sum()
        hessian[0, 1:] += (w * (X - mean[:, None])).sum(axis=0)
        hessian[1:, 0] = hessian[0, 1:]
        hessian[1:, 1:] += np.diag(w.sum(axis=0)) - np.einsum("nc,nd->cd", w, p)
        step = np.linalg.solve(hessian, gradient)
        at = at - step * min(1.0, 1.0 / max(float(np.abs(step).max()), TINY))
        if np.abs(step).max() < 1e-6:
            break
    return ScaledModel(float(at[0]), at[1:])


def cross_fit(
    X: FloatArray,
    y: IntArray,
    n_grades: int,
    fold: IntArray,
    weights: FloatArray,
    penalties: Sequence[float] = PENALTIES,
) -> tuple[FloatArray, float]:
    """(N, C) probabilities of models that did not see the row's fold, and the penalty that is best so.

    ``penalties`` go from the highest to the lowest; the best has the lowest loss on rows left out.
    """
    held = np.zeros((len(penalties), len(y), n_grades))
    for part in np.unique(fold):
        rest, out = fold != part, fold == part
        model = None
        for place, penalty in enumerate(penalties):
            model = fit_ordinal(X[rest], y[rest], n_grades, penalty, weights[rest], model)
            held[place, out] = model.predict(X[out])
    losses = [float(weights @ log_loss(each, y)) for each in held]
    best = int(np.argmin(losses))
    return held[best], penalties[best]


def log_loss(probabilities: FloatArray, y: IntArray) -> FloatArray:
    """(N,) minus the logarithm of the probability of the true grade, which counts as FLOOR at least."""
    loss: FloatArray = -np.log(np.maximum(probabilities[np.arange(len(y)), y], FLOOR))
    return loss
