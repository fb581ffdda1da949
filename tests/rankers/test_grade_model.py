from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.data.split import fold_of_query
from cleanrank.errors import CleanrankError, InvalidInputError
from cleanrank.noise.anchors import from_data
from cleanrank.noise.profiles import one_way, uniform
from cleanrank.rankers.grade_model import (
    NoisyGrades,
    _stopping_part,
    calibrated,
    cross_fit,
    fit_grades,
    fit_soft_grades,
    fit_true_grades,
    rescaled,
    true_shares,
    watch_boosting,
)


@pytest.fixture(scope="module")
def data():
    return cr.make_ranking(60, 6, docs_per_query=40, grades=[0.6, 0.3, 0.1], seed=3)


def log_loss(p, y):
    return -np.log(np.maximum(p[np.arange(len(y)), y], 1e-12)).mean()


def test_probabilities_beat_the_shares_of_the_grades(data):
    p = cross_fit(data, fit_grades, 3)[0]
    assert p.shape == (data.n_docs, 3)
    assert p.sum(axis=1) == pytest.approx(1.0)
    shares = np.bincount(data.y) / data.n_docs
    assert log_loss(p, data.y) < 0.97 * log_loss(np.tile(shares, (data.n_docs, 1)), data.y)


def test_a_model_never_sees_the_rows_it_predicts(data):
    """Grades of pure chance cannot be predicted; a model that had seen them could."""
    y = np.random.default_rng(0).integers(0, 3, data.n_docs)
    p = cross_fit(data.with_labels(y), fit_grades, 3)[0]
    assert log_loss(p, y) > 0.99 * np.log(3)


def test_same_seed_same_bits_at_any_number_of_threads(data):
    def predicted(seed, n_jobs):
        fit = partial(fit_grades, seed=seed, n_jobs=n_jobs, n_estimators=20)
        return cross_fit(data, fit, 2, seed=seed)[0]

    one = predicted(4, 1)
    assert np.array_equal(one, predicted(4, 2))
    assert not np.array_equal(one, predicted(5, 1))


def test_grades_that_do_not_occur_get_a_column(data):
    p = fit_grades(data, data, n_grades=5, n_estimators=5)
    assert p.shape == (data.n_docs, 5)
    assert p[:, 3:].max() < 0.05
    with pytest.raises(InvalidInputError, match="n_grades"):
        fit_grades(data, data, n_grades=2)


def test_another_model_may_be_cross_fitted(data):
    p = cross_fit(data, lambda train, rows: np.full((len(rows), 3), 1 / 3), 2)[0]
    assert (p == 1 / 3).all()


def test_broken_settings_are_refused(data):
    with pytest.raises(InvalidInputError, match="bagging_by_query"):
        fit_grades(data, data, params={"bagging_by_query": True})


def test_few_queries_are_fitted_without_a_held_out_part():
    few = cr.make_ranking(4, 3, docs_per_query=30, grades=[0.6, 0.4], seed=1)
    assert fit_grades(few, few, n_estimators=3).shape == (few.n_docs, 2)


@pytest.mark.data
@pytest.mark.slow
def test_on_mq2008_uniform_noise_is_found_and_one_way_noise_refused(data_root):
    clean = cr.read_letor(data_root / "MQ2008" / "Fold1" / "train.txt")
    noisy = uniform(0.2, 3).apply(clean, 1).data
    found = from_data(noisy, fit_predict=fit_grades, family="uniform")
    assert found.rate == pytest.approx(0.2, abs=0.05)
    assert abs(found.matrix - uniform(0.2, 3).matrix).mean() < 0.05
    p, _ = cross_fit(noisy, fit_grades)
    assert from_data(noisy, p).profile is None  # the whole matrix cannot be known
    noisy = one_way(0.1, 3).apply(clean, 1).data
    assert from_data(noisy, fit_predict=fit_grades, family="uniform").profile is None


def numerical(function, scores, step=1e-5):
    found = np.zeros_like(scores)
    for place in np.ndindex(scores.shape):
        up, down = scores.copy(), scores.copy()
        up[place] += step
        down[place] -= step
        found[place] = (function(up) - function(down)) / (2 * step)
    return found


def test_the_gradient_of_the_noisy_likelihood_is_its_slope_and_the_curvature_a_bound():
    rng = np.random.default_rng(0)
    L = rng.random((6, 4))
    L[0] = [0, 0, 1, 0]
    scores = rng.normal(size=(6, 4))
    objective = NoisyGrades(L)

    def total(s):
        return 6 * objective.loss(s)

    grad, hess = objective(scores)
    assert grad == pytest.approx(numerical(total, scores), abs=1e-6)
    for place in np.ndindex(scores.shape):
        up, down = scores.copy(), scores.copy()
        up[place] += 1e-3
        down[place] -= 1e-3
        bend = (total(up) - 2 * total(scores) + total(down)) / 1e-6
        assert bend <= hess[place] + 1e-4


def test_a_weight_of_two_counts_twice():
    L, scores = np.random.default_rng(1).random((3, 3)), np.zeros((3, 3))
    grad, hess = NoisyGrades(L)(scores)
    twice = NoisyGrades(L, np.full(3, 2.0))(scores)
    assert twice[0] == pytest.approx(2 * grad)
    assert twice[1] == pytest.approx(2 * hess)


def test_without_noise_true_grades_are_learnt_as_given_ones_are():
    data = cr.make_ranking(60, 5, docs_per_query=20, seed=3)
    rest = cr.make_ranking(20, 5, docs_per_query=20, seed=4)
    ours = fit_true_grades(data, np.eye(5)[data.y], [rest])[0]
    theirs = fit_grades(data, rest, n_grades=5)
    assert ours.sum(axis=1) == pytest.approx(1)
    assert np.corrcoef(ours[:, 0], theirs[:, 0])[0, 1] > 0.95


def test_under_noise_true_grades_are_better_than_given_ones():
    data = cr.make_ranking(150, 5, docs_per_query=20, seed=3)
    noisy = cr.corrupt(data, rate=0.4, seed=5)
    rest = cr.make_ranking(60, 5, docs_per_query=20, seed=4)
    ours = fit_true_grades(noisy.data, noisy.profile.matrix.T[noisy.data.y], [rest])[0]
    theirs = fit_grades(noisy.data, rest, n_grades=5)
    loss = [-np.log(p[np.arange(rest.n_docs), rest.y]).mean() for p in (ours, theirs)]
    assert loss[0] < loss[1] - 0.05


def test_shares_of_true_grades_solve_the_mixture():
    T = np.array([[0.8, 0.2], [0.3, 0.7]])
    y = np.repeat([0, 1], [650, 350])  # r = (.7, .3) gives .65 and .35
    assert true_shares(T.T[y]) == pytest.approx([0.7, 0.3], abs=1e-3)
    alike = np.full((10, 2), 0.5)
    assert true_shares(alike, start=[0.9, 0.1]) == pytest.approx([0.9, 0.1])


def test_calibration_undoes_a_distortion():
    rng = np.random.default_rng(0)
    q = rng.dirichlet([1.0, 1.0, 1.0], size=40_000)
    y = (rng.random(len(q))[:, None] > np.cumsum(q, axis=1)).sum(axis=1)
    bent = q**2 / (q**2).sum(axis=1, keepdims=True)
    found, scale = calibrated(bent, np.eye(3)[y])
    assert scale[0] == pytest.approx(0.5, abs=0.03)
    assert found == pytest.approx(q, abs=0.03)


def test_true_grades_are_predicted_out_of_fold():
    data = cr.make_ranking(40, 3, docs_per_query=20, seed=3)
    L = np.eye(5)[data.y]
    row_fold = np.repeat(fold_of_query(data, 2, 0), data.lengths)
    turned = L.copy()
    turned[row_fold == 0] = turned[row_fold == 0][:, ::-1]
    few = partial(fit_true_grades, n_estimators=5)
    a, (other,) = cross_fit(data, few, 2, targets=L, others=[data])
    b, _ = cross_fit(data, few, 2, targets=turned)
    assert a[row_fold == 0] == pytest.approx(b[row_fold == 0])
    assert a[row_fold == 1] != pytest.approx(b[row_fold == 1])
    assert other.shape == L.shape


def test_columns_that_tell_nothing_leave_the_shares():
    data = cr.from_arrays(np.zeros((80, 2)), [0, 0, 0, 1] * 20, qid=np.repeat(np.arange(8), 10))
    found = fit_true_grades(data, np.eye(2)[data.y], [data])[0]
    assert found == pytest.approx(np.tile([0.75, 0.25], (80, 1)), abs=1e-6)


@pytest.mark.parametrize("learn", ["given", "true", "soft", "rounds"])
def test_parameters_are_read_by_any_name_and_slips_are_named(data, learn):
    def fit(params):
        if learn == "given":
            return fit_grades(data, data, n_estimators=3, params=params)
        if learn == "true":
            return fit_true_grades(data, np.eye(3)[data.y], [data], n_estimators=3, params=params)[0]
        if learn == "soft":
            return fit_soft_grades(data, np.eye(3)[data.y], [data], n_estimators=3, params=params)[0]
        seen = []
        watch_boosting(data, None, lambda _, p: seen.append(p.copy()), n_estimators=3, params=params)
        return seen[-1]

    plain, by_name = fit(None), fit({"learning_rate": 0.5})
    assert not np.array_equal(plain, by_name)
    np.testing.assert_array_equal(fit({"eta": 0.5}), by_name)
    with pytest.raises(CleanrankError, match="unknown parameter of LightGBM 'num_leafs'"):
        fit({"num_leafs": 3})
    with pytest.raises(CleanrankError, match="num_leaves must be more than 1"):
        fit({"num_leaves": 1})
    with pytest.raises(CleanrankError, match="bagging_by_query"):
        fit({"bagging_by_query": True})


def test_a_column_of_hardly_any_values_leaves_the_shares():
    """LightGBM bins such a column away; the two classes of model must not break on it."""
    X = np.zeros((40, 1), dtype=np.float32)
    X[0] = 1
    data = cr.from_arrays(X, [0, 1] * 20, qid=np.repeat(np.arange(4), 10))
    (soft,) = fit_soft_grades(data, np.eye(2)[data.y], [data], n_estimators=3)
    (true,) = fit_true_grades(data, np.eye(2)[data.y], [data], n_estimators=3)
    np.testing.assert_allclose(soft, 0.5)
    np.testing.assert_allclose(true, 0.5)


def test_rows_of_weight_two_count_twice_in_the_shares_of_true_grades():
    L = np.array([[0.8, 0.3], [0.2, 0.7], [0.2, 0.7]])
    assert true_shares(L, np.array([4.0, 1.0, 1.0])) == pytest.approx(
        true_shares(L[[0, 0, 0, 0, 1, 2]]), abs=1e-9
    )
    assert true_shares(L, np.array([4.0, 1.0, 1.0]))[0] > true_shares(L)[0] + 0.1


def test_further_rows_are_rescaled_as_the_data_are(data):
    """Further rows that are the data themselves get what a calibrated mean of the folds' models says."""
    L = np.eye(3)[data.y]
    few = partial(fit_true_grades, n_estimators=8)
    _, (plain,) = cross_fit(data, few, 2, targets=L, others=[data])
    out_of_fold, _ = cross_fit(data, few, 2, targets=L)
    found, (beside,) = cross_fit(data, few, 2, targets=L, others=[data], calibrate=L)
    wanted, scale = calibrated(out_of_fold, L)
    np.testing.assert_allclose(found, wanted)
    np.testing.assert_allclose(beside, rescaled(plain, scale))
    assert abs(beside - plain).max() > 0.01


def test_models_of_true_grades_never_see_their_rows(data):
    """A feature that is the row's own number foretells nothing outside of the rows learnt from."""
    rng = np.random.default_rng(0)
    lots = data.with_labels(rng.integers(0, 3, size=data.n_docs))
    own = replace(lots, X=rng.normal(size=(data.n_docs, 4)).astype(np.float32))
    deep = {"num_leaves": 200, "min_data_in_leaf": 1}
    q, _ = cross_fit(own, partial(fit_true_grades, n_estimators=10, params=deep), 2, targets=np.eye(3)[own.y])
    right = (q.argmax(axis=1) == own.y).mean()
    assert right < 0.42


def test_seven_queries_are_enough_to_hold_some_out():
    for queries in (6, 7):
        data = cr.make_ranking(queries, 3, docs_per_query=5, seed=1)
        learn, held, is_first = _stopping_part(data, seed=0)
        assert (held is not None) == (queries == 7)
        assert is_first.sum() == learn.n_docs == data.n_docs - (0 if held is None else held.n_docs)


@pytest.mark.parametrize("rounds", [0, -3])
def test_boosting_is_watched_for_a_round_at_least(rounds):
    with pytest.raises(CleanrankError, match="rounds must be"):
        watch_boosting(cr.make_ranking(10, 3, seed=1), None, lambda *seen: None, n_estimators=rounds)
