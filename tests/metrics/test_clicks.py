"""Measures of clicks against scikit-learn, plain loops and resampling of users."""

import numpy as np
import pytest
from sklearn.metrics import log_loss as sklearn_log_loss
from sklearn.metrics import roc_auc_score

from cleanrank.errors import InvalidInputError
from cleanrank.metrics.clicks import auc, compare_auc, ece, evaluate_clicks, gauc, log_loss


def clicks(seed, n=400, n_users=30):
    """Labels, two models' probabilities with many ties, and users whose rows go together."""
    random = np.random.default_rng(seed)
    users = random.integers(n_users, size=n)
    taste = random.normal(size=n_users)[users]
    signal = random.normal(size=n) + taste
    y = (random.random(n) < 1 / (1 + np.exp(-signal))).astype(int)
    one = np.round(1 / (1 + np.exp(-signal - random.normal(size=n))), 2)
    other = np.round(1 / (1 + np.exp(-signal - 2 * random.normal(size=n))), 2)
    return y, one, other, users


@pytest.mark.parametrize("seed", range(5))
def test_measures_equal_scikit_learn_and_loops(seed):
    y, p, _, users = clicks(seed)
    assert auc(y, p) == pytest.approx(roc_auc_score(y, p), abs=1e-12)
    assert log_loss(y, p) == pytest.approx(sklearn_log_loss(y, np.clip(p, 1e-7, 1 - 1e-7)), abs=1e-12)
    both = [u for u in np.unique(users) if len(set(y[users == u])) == 2]
    parts = [roc_auc_score(y[users == u], p[users == u]) for u in both]
    assert gauc(y, p, users) == pytest.approx(np.average(parts, weights=[np.sum(users == u) for u in both]))
    figures = evaluate_clicks(y, p, users)
    assert figures.auc == auc(y, p)
    assert (figures.gauc, figures.log_loss, figures.ece) == (gauc(y, p, users), log_loss(y, p), ece(y, p))
    assert (figures.n_rows, figures.n_users) == (400, 30)


def test_calibration_error_by_hand():
    p = np.repeat([0.1, 0.3, 0.9], 10)
    y = np.repeat([0, 1, 1], [9, 11, 10])
    # Rates of the three bins: .1, 1, 1.
    assert ece(y, p, bins=3) == pytest.approx((0 + 0.7 + 0.1) / 3)
    assert ece(y, np.full(30, 0.7)) == pytest.approx(0)
    random = np.random.default_rng(0)
    true = random.random(50_000)
    assert ece(random.random(50_000) < true, true) < 0.01


@pytest.mark.parametrize("seed", range(2))
def test_standard_errors_agree_with_resampling_of_users(seed):
    y, one, other, users = clicks(seed, n=3000, n_users=150)
    random = np.random.default_rng(1)
    rows_of = [np.flatnonzero(users == u) for u in np.unique(users)]
    areas, margins = [], []
    for _ in range(400):
        rows = np.concatenate([rows_of[u] for u in random.integers(len(rows_of), size=len(rows_of))])
        areas.append(auc(y[rows], one[rows]))
        margins.append(areas[-1] - auc(y[rows], other[rows]))
    margin = compare_auc(y, one, other, users)
    assert margin.value == pytest.approx(auc(y, one) - auc(y, other))
    assert margin.standard_error == pytest.approx(np.std(margins), rel=0.15)
    low, high = evaluate_clicks(y, one, users).auc_interval
    assert (high - low) / 2 / 1.96 == pytest.approx(np.std(areas), rel=0.15)
    # Rows taken as independent promise more than users do.
    independent = evaluate_clicks(y, one).auc_interval
    assert high - low > 1.1 * (independent[1] - independent[0])


def test_equal_scores_differ_by_nothing():
    y, one, _, users = clicks(0)
    margin = compare_auc(y, one, one, users)
    assert (margin.value, margin.standard_error, margin.interval) == (0, 0, (0, 0))


def test_wrong_rows_are_refused():
    for wrong, message in (
        (lambda: auc([1, 2], [0.1, 0.2]), "y must be 0 or 1; got 2.0 at row 1."),
        (lambda: auc([1, 1], [0.1, 0.2]), "y must have both labels; got only 1."),
        (lambda: auc([1, 0], [0.1, np.nan]), "scores must be finite; got nan at row 1."),
        (lambda: auc([1, 0], [0.1]), "scores must have one value per label (2); got shape (1,)."),
        (lambda: log_loss([1, 0], [0.1, 1.2]), "probabilities must lie between 0 and 1; got 1.2 at row 1."),
        (lambda: gauc([1, 0], [0.1, 0.2], [1]), "users must have one entry per row (2)"),
        (lambda: auc([], []), "y must have one label per row, and at least one row"),
        (lambda: ece([1, 0], [0.1, 0.2], bins=0), "bins must be an integer >= 1"),
        (lambda: evaluate_clicks([1, 0], [0.1, 0.2], level=2), "level must be a number > 0 and < 1"),
    ):
        with pytest.raises(InvalidInputError) as caught:
            wrong()
        assert message in str(caught.value)
    assert np.isnan(gauc([1, 0], [0.1, 0.2], [1, 2]))
