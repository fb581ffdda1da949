import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.noise.corrupt import corrupt
from cleanrank.noise.dependent import DEPENDENT
from cleanrank.noise.profiles import NoiseProfile, uniform


def test_truth_is_kept_and_the_mask_is_the_change(toy):
    before = toy.y.copy()
    noisy = corrupt(toy, profile="uniform", rate=0.4, seed=3)
    np.testing.assert_array_equal(toy.y, before)
    np.testing.assert_array_equal(noisy.true_labels, before)
    np.testing.assert_array_equal(noisy.changed, noisy.data.y != before)
    assert noisy.rate == noisy.changed.mean()
    assert repr(noisy) == f"Corruption(uniform 0.4, seed 3: {noisy.rate:.1%} of 480 changed)"
    np.testing.assert_array_equal(noisy.data.row_ids, toy.row_ids)


def test_same_seed_same_noise_other_seed_other_noise(toy):
    a, b, c = (corrupt(toy, rate=0.4, seed=s).data.y for s in (3, 3, 4))
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


def test_profiles_share_their_draws(toy):
    """One draw a row, so at a higher rate what had changed stays changed for two grades."""
    two = toy.with_labels(np.minimum(toy.y, 1))
    low, high = (corrupt(two, rate=r, seed=9).changed for r in (0.1, 0.3))
    ones = two.y == 0
    assert not (low & ~high)[ones].any()


def test_a_scale_may_be_wider_than_the_grades_at_hand(toy):
    low = toy.with_labels(np.minimum(toy.y, 1))
    assert corrupt(low, rate=0.9, n_grades=5, seed=0).data.y.max() == 4


def test_known_matrix_is_taken_as_it_is(toy):
    top = NoiseProfile(np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), "0 becomes 2")
    noisy = corrupt(toy, top)
    assert (noisy.data.y[toy.y == 0] == 2).all()
    assert (noisy.data.y[toy.y != 0] == toy.y[toy.y != 0]).all()


def test_a_generator_may_come_in_and_leaves_no_seed(toy):
    a = uniform(0.4, 3).apply(toy, np.random.default_rng(3))
    b = corrupt(toy, rate=0.4, seed=3)
    np.testing.assert_array_equal(a.data.y, b.data.y)
    assert (a.seed, b.seed) == (None, 3)


def test_row_weights_take_the_proportions_of_the_data(toy):
    noisy = corrupt(toy, rate=0.2, options={"row_weights": [1, 2, 3]})
    assert noisy.profile.rate(np.bincount(toy.y)) == pytest.approx(0.2)


def test_rates_by_query_have_the_mean_and_variance_asked_for():
    Q = 5_000
    clean = cr.from_arrays(np.zeros((Q * 4, 1)), np.tile([0, 1], Q * 2), group=np.full(Q, 4))
    noisy = corrupt(clean, rate=0.3, spread=0.25, seed=1)
    rates = noisy.query_rates
    assert rates.shape == (Q,)
    variance = 0.25 * 0.3 * 0.7
    assert abs(rates.mean() - 0.3) < 4 * np.sqrt(variance / Q)
    assert rates.var() == pytest.approx(variance, rel=0.1)
    changed = noisy.changed.reshape(Q, 4).mean(axis=1)
    calm, wild = rates < 0.1, rates > 0.6
    assert changed[calm].mean() == pytest.approx(rates[calm].mean(), abs=0.02)
    assert changed[wild].mean() == pytest.approx(rates[wild].mean(), abs=0.03)
    again = corrupt(clean, rate=0.3, spread=0.25, seed=1)
    np.testing.assert_array_equal(again.data.y, noisy.data.y)


def test_data_without_rows_stay_without_noise():
    none = cr.from_arrays(np.zeros((0, 2)), np.zeros(0, dtype=int), qid=np.zeros(0, dtype=int))
    assert corrupt(none, rate=0.2).rate == 0.0
    assert corrupt(none, rate=0.2, spread=0.1).rate == 0.0


def test_mistakes_are_named(toy):
    with pytest.raises(CleanrankError, match="Did you mean 'uniform'"):
        corrupt(toy, profile="unifrom", rate=0.1)
    with pytest.raises(CleanrankError, match="rate must be given"):
        corrupt(toy, profile="uniform")
    with pytest.raises(CleanrankError, match="not with a matrix"):
        corrupt(toy, uniform(0.1, 3), 0.1)
    with pytest.raises(CleanrankError, match="spread must lie in"):
        corrupt(toy, rate=0.1, spread=1.0)
    with pytest.raises(CleanrankError, match="strictly between 0 and 1"):
        corrupt(toy, rate=0.0, spread=0.1)
    with pytest.raises(CleanrankError, match="0 to 1; got 2"):
        corrupt(toy, rate=0.1, n_grades=2)


def test_sizes_of_queries_are_as_good_as_their_ids(toy):
    by_id = corrupt(toy.X, y=toy.y, qid=np.repeat(np.arange(toy.n_queries), toy.lengths), rate=0.3, seed=1)
    by_size = corrupt(toy.X, y=toy.y, group=toy.lengths, rate=0.3, seed=1)
    np.testing.assert_array_equal(by_size.data.y, by_id.data.y)
    np.testing.assert_array_equal(by_size.data.indptr, by_id.data.indptr)


@pytest.mark.parametrize("more", [{"spread": 0.1}, {"options": {"rho": 2}}])
def test_errors_by_document_have_no_spread_and_no_options(toy, more):
    with pytest.raises(CleanrankError, match="do not go with"):
        corrupt(toy, sorted(DEPENDENT)[0], 0.1, **more)
