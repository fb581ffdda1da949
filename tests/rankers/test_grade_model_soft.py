from functools import partial

import numpy as np
import pytest
from scipy.special import softmax

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.rankers.grade_model import SoftTargets, cross_fit, fit_soft_grades, watch_boosting


@pytest.fixture(scope="module")
def data():
    return cr.make_ranking(40, 5, docs_per_query=20, seed=0)


def test_the_gradient_is_that_of_the_cross_entropy():
    rng = np.random.default_rng(0)
    scores, targets = rng.normal(size=(6, 3)), rng.dirichlet(np.ones(3), size=6)
    grad, hess = SoftTargets(targets)(scores)

    def loss(s):
        return -(targets * np.log(softmax(s, axis=1))).sum()

    for i in range(6):
        for c in range(3):
            step = np.zeros_like(scores)
            step[i, c] = 1e-6
            slope = (loss(scores + step) - loss(scores - step)) / 2e-6
            assert grad[i, c] == pytest.approx(slope, abs=1e-6)
    q = softmax(scores, axis=1)
    np.testing.assert_allclose(hess, 1.5 * q * (1 - q))


def test_weight_2_is_twice_the_row():
    rng = np.random.default_rng(0)
    scores, targets = rng.normal(size=(4, 3)), rng.dirichlet(np.ones(3), size=4)
    one, two = SoftTargets(targets)(scores), SoftTargets(targets, np.full(4, 2.0))(scores)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_allclose(2 * a, b)


def test_hard_targets_give_lightgbms_own_multiclass_model(data):
    C = data.n_grades
    same = {"n_estimators": 20, "params": {"feature_fraction": 1.0}}
    (found,) = fit_soft_grades(data, np.eye(C)[data.y], [data], **same)
    seen = {}
    watch_boosting(data, None, lambda i, p: seen.__setitem__(i, p.copy()), **same)
    np.testing.assert_allclose(found, seen[20], atol=0.01)


def test_features_that_say_nothing_leave_the_shares(data):
    flat = cr.from_arrays(np.ones((4, 2)), [0, 1, 0, 0], group=[4])
    (found,) = fit_soft_grades(flat, np.eye(2)[flat.y], [flat])
    np.testing.assert_allclose(found, [[0.75, 0.25]] * 4)


def test_a_row_is_predicted_by_models_that_never_saw_its_query(data):
    rng = np.random.default_rng(0)
    noise = np.eye(3)[rng.integers(0, 3, data.n_docs)]
    options = {"n_estimators": 100, "params": {"num_leaves": 63, "min_data_in_leaf": 2, "lambda_l2": 0.0}}
    (inside,) = fit_soft_grades(data, noise, [data], **options)
    outside, _ = cross_fit(data, partial(fit_soft_grades, **options), 4, targets=noise)
    assert (inside * noise).sum(axis=1).mean() > 0.8
    assert (outside * noise).sum(axis=1).mean() < 0.45
    np.testing.assert_allclose(outside.sum(axis=1), 1)


def test_mistakes_are_named(data):
    with pytest.raises(CleanrankError, match="targets must be"):
        fit_soft_grades(data, np.ones((3, 2)), [data])
