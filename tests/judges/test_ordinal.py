"""Ordinal regression: its gradient, and what it is in the cases that others can fit too."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from cleanrank.judges.ordinal import cross_fit, fit_ordinal, fit_scaling, log_loss, penalised_loss


def rows(n=400, seed=0):
    """Rows of a model with three grades, and its coefficients."""
    rng = np.random.default_rng(seed)
    X, b = rng.normal(size=(n, 3)), np.array([1.5, -0.5, 0.0])
    y = ((X @ b + rng.logistic(size=n))[:, None] > [-1.0, 1.5]).sum(axis=1)
    return X, y, b


@pytest.mark.parametrize("seed", range(5))
def test_gradient_and_hessian_are_the_numerical_ones(seed):
    X, y, _ = rows(60, seed)
    rng = np.random.default_rng(seed)
    weights, at = rng.exponential(size=60), rng.normal(size=5)
    at[:2] = np.sort(at[:2])

    def loss(v, part=0, place=()):
        return np.asarray(penalised_loss(v, X, y, 2, 0.7, weights)[part])[place]

    _, gradient, hessian = penalised_loss(at, X, y, 2, 0.7, weights)
    assert gradient == pytest.approx(approx_fprime(at, loss, 1e-7), rel=1e-4, abs=1e-4)
    numerical = np.array([approx_fprime(at, loss, 1e-7, 1, k) for k in range(5)])
    assert hessian == pytest.approx(numerical, rel=1e-4, abs=1e-3)


def test_two_grades_are_logistic_regression():
    X, y, _ = rows()
    weights = np.random.default_rng(1).exponential(size=400)
    model = fit_ordinal(X, np.minimum(y, 1), 2, 5.0, weights)
    other = LogisticRegression(C=1 / 5.0, tol=1e-8).fit(X, np.minimum(y, 1), weights)
    assert model.predict(X) == pytest.approx(other.predict_proba(X), abs=1e-3)


def test_the_coefficients_are_found_and_probabilities_are_calibrated():
    X, y, b = rows(20000)
    model = fit_ordinal(X, y, 3, 1.0)
    assert model.coefficients == pytest.approx(b, abs=0.06)
    assert model.thresholds == pytest.approx([-1.0, 1.5], abs=0.06)
    p = model.predict(X)
    assert p.sum(axis=1) == pytest.approx(np.ones(20000))
    assert p.mean(axis=0) == pytest.approx(np.bincount(y) / 20000, abs=0.005)
    exact = expit(1.5 - X @ b) - expit(-1.0 - X @ b)
    assert p[:, 1] == pytest.approx(exact, abs=0.03)


def test_grades_that_were_not_seen_get_no_probability():
    X, y, _ = rows()
    p = fit_ordinal(X, np.array([1, 3, 4])[y], 6, 1.0).predict(X)
    assert p[:, [0, 2, 5]].max() == 0
    assert p[:, [1, 3, 4]] == pytest.approx(fit_ordinal(X, y, 3, 1.0).predict(X))
    assert fit_ordinal(X, np.full(400, 2), 4, 1.0).predict(X)[:, 2].min() == 1


def test_noise_is_shrunk_and_signal_is_not():
    X, y, _ = rows(300)
    fold, even = np.arange(300) % 5, np.ones(300)
    held, penalty = cross_fit(X, y, 3, fold, even)
    rng = np.random.default_rng(0)
    noise, most = cross_fit(rng.normal(size=(300, 30)), y, 3, fold, even)
    assert most == 100.0 > penalty
    assert log_loss(held, y).mean() < log_loss(noise, y).mean()
    first = fit_ordinal(X[fold != 0], y[fold != 0], 3, penalty)
    assert held[fold == 0] == pytest.approx(first.predict(X[fold == 0]), abs=1e-3)


def test_scaling_undoes_what_was_done_to_probabilities():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(3, 0.7), 20000).clip(1e-6)
    p /= p.sum(axis=1, keepdims=True)
    y = (rng.random(20000)[:, None] > np.cumsum(p, axis=1)).sum(axis=1).clip(0, 2)
    right = fit_scaling(np.log(p), y)
    assert right.scale == pytest.approx(1, abs=0.03)
    assert right.shifts == pytest.approx(np.zeros(3), abs=0.05)
    sure = 2.5 * np.log(p) + [0.0, 0.7, 0.0]
    sure = np.log(np.exp(sure) / np.exp(sure).sum(axis=1, keepdims=True))
    model = fit_scaling(sure, y)
    assert model.scale == pytest.approx(1 / 2.5, abs=0.02)
    assert model.predict(sure) == pytest.approx(p, abs=0.03)
    few = fit_scaling(sure[:3], y[:3], penalty=1e6)
    assert few.predict(sure) == pytest.approx(np.exp(sure), abs=1e-3)
