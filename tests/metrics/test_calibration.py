"""Calibration against scikit-learn, and against probabilities that are known."""

import json

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.metrics.calibration import Calibration, fit_calibration
from cleanrank.metrics.clicks import auc, ece, log_loss


def crooked(seed=0, n=20_000):
    """True probabilities, labels, and a model that has the order right and the values wrong."""
    random = np.random.default_rng(seed)
    logits = random.normal(size=n) * 1.5 - 1
    true = 1 / (1 + np.exp(-logits))
    return true, (random.random(n) < true).astype(int), 1 / (1 + np.exp(-3 * logits - 2))


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_values_become_true_and_the_order_stays(method):
    _, y, p = crooked()
    fresh_true, fresh_y, fresh_p = crooked(1)
    curve = fit_calibration(y, p, method)
    better = curve.apply(fresh_p)
    assert ece(fresh_y, fresh_p) > 0.1
    assert ece(fresh_y, better) < 0.015
    assert log_loss(fresh_y, better) < log_loss(fresh_y, fresh_p) - 0.1
    assert np.abs(better - fresh_true).mean() < 0.02
    assert auc(fresh_y, better) == pytest.approx(auc(fresh_y, fresh_p), abs=0.002)
    again = Calibration.from_dict(json.loads(json.dumps(curve.to_dict())))
    assert (again.apply(fresh_p) == better).all()


def test_platt_equals_logistic_regression_and_isotonic_scikit_learn():
    _, y, p = crooked(n=3000)
    logits = np.log(p / (1 - p))[:, None]
    model = LogisticRegression(C=np.inf, tol=1e-10, max_iter=1000).fit(logits, y)
    curve = fit_calibration(y, p)
    assert curve.x[0] == pytest.approx(model.coef_[0, 0], rel=0.01)
    assert curve.y[0] == pytest.approx(model.intercept_[0], abs=0.01)
    grid = np.linspace(0.001, 0.999, 500)
    isotonic = IsotonicRegression(out_of_bounds="clip").fit(p, y)
    assert fit_calibration(y, p, "isotonic").apply(grid) == pytest.approx(isotonic.predict(grid), abs=1e-9)


@pytest.mark.parametrize("method", ["platt", "isotonic"])
def test_known_noise_is_taken_out(method):
    true, y, p = crooked(n=50_000)
    random = np.random.default_rng(2)
    up, down = 0.3, 0.1
    noisy = np.where(random.random(len(y)) < np.where(y == 1, up, down), 1 - y, y)
    plain = np.abs(fit_calibration(noisy, p, method).apply(p) - true).mean()
    taken_out = np.abs(fit_calibration(noisy, p, method, noise=(up, down)).apply(p) - true).mean()
    assert taken_out < 0.025 < 0.05 < plain


def test_separable_rows_have_a_finite_curve():
    curve = fit_calibration([0] * 20 + [1] * 20, np.linspace(0, 1, 40))
    assert np.isfinite([*curve.x, *curve.y]).all()
    assert curve.apply([0.0])[0] < 0.1 < 0.9 < curve.apply([1.0])[0]


def test_wrong_calls_are_refused():
    for wrong, kind, message in (
        (lambda: fit_calibration([1, 1], [0.1, 0.2]), InvalidInputError, "y must have both labels"),
        (lambda: fit_calibration([1, 0], [0.1, 0.2], "plat"), UnknownNameError, "Did you mean 'platt'?"),
        (
            lambda: fit_calibration([1, 0], [0.1, 2]),
            InvalidInputError,
            "probabilities must lie between 0 and 1",
        ),
        (lambda: fit_calibration([1, 0], [0.1, 0.2], noise=(0.6, 0.5)), InvalidInputError, "less than 1"),
        (
            lambda: fit_calibration([1, 0], [0.1, 0.2], noise=(-0.1, 0)),
            InvalidInputError,
            "the rate e+ of noise",
        ),
    ):
        with pytest.raises(kind) as caught:
            wrong()
        assert message in str(caught.value)
