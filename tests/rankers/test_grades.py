import numpy as np
import pytest

import cleanrank as cr
from cleanrank.checks import InvalidInputError
from cleanrank.noise.crossfit import from_data
from cleanrank.noise.profiles import one_way, uniform
from cleanrank.rankers.grades import cross_fit_probabilities, fit_grades


@pytest.fixture(scope="module")
def data():
    return cr.make_ranking(60, 6, docs_per_query=40, grades=[0.6, 0.3, 0.1], seed=3)


def log_loss(p, y):
    return -np.log(np.maximum(p[np.arange(len(y)), y], 1e-12)).mean()


def test_probabilities_beat_the_shares_of_the_grades(data):
    p = cross_fit_probabilities(data, 3)
    assert p.shape == (data.n_docs, 3)
    assert p.sum(axis=1) == pytest.approx(1.0)
    shares = np.bincount(data.y) / data.n_docs
    assert log_loss(p, data.y) < 0.97 * log_loss(np.tile(shares, (data.n_docs, 1)), data.y)


def test_a_forest_never_sees_the_rows_it_predicts(data):
    """Grades of pure chance cannot be predicted; a forest that had seen them could."""
    y = np.random.default_rng(0).integers(0, 3, data.n_docs)
    p = cross_fit_probabilities(data.with_labels(y), 3)
    assert log_loss(p, y) > 0.99 * np.log(3)


def test_same_seed_same_bits_at_any_number_of_threads(data):
    one = cross_fit_probabilities(data, 2, seed=4, n_jobs=1, rounds=20)
    assert np.array_equal(one, cross_fit_probabilities(data, 2, seed=4, n_jobs=2, rounds=20))
    assert not np.array_equal(one, cross_fit_probabilities(data, 2, seed=5, n_jobs=1, rounds=20))


def test_grades_that_do_not_occur_get_a_column(data):
    p = fit_grades(data, data, n_grades=5, rounds=5)
    assert p.shape == (data.n_docs, 5)
    assert p[:, 3:].max() < 0.05
    with pytest.raises(InvalidInputError, match="n_grades"):
        fit_grades(data, data, n_grades=2)


def test_another_model_may_be_cross_fitted(data):
    p = cross_fit_probabilities(data, 2, fit_predict=lambda train, rows: np.full((len(rows), 3), 1 / 3))
    assert (p == 1 / 3).all()


def test_broken_settings_are_refused(data):
    with pytest.raises(InvalidInputError, match="bagging_by_query"):
        fit_grades(data, data, params={"bagging_by_query": True})


def test_few_queries_are_fitted_without_a_held_out_part():
    few = cr.make_ranking(4, 3, docs_per_query=30, grades=[0.6, 0.4], seed=1)
    assert fit_grades(few, few, rounds=3).shape == (few.n_docs, 2)


@pytest.mark.data
@pytest.mark.slow
def test_on_mq2008_uniform_noise_is_found_and_one_way_noise_refused(data_root):
    clean = cr.read_letor(data_root / "MQ2008" / "Fold1" / "train.txt")
    noisy = uniform(0.2, 3).apply(clean, 1).data
    found = from_data(noisy, fit_predict=fit_grades, family="uniform")
    assert found.rate == pytest.approx(0.2, abs=0.05)
    assert abs(found.matrix - uniform(0.2, 3).matrix).mean() < 0.05
    p = cross_fit_probabilities(noisy)
    assert from_data(noisy, p).profile is None  # the whole matrix cannot be known
    noisy = one_way(0.1, 3).apply(clean, 1).data
    assert from_data(noisy, fit_predict=fit_grades, family="uniform").profile is None
