import numpy as np
import pytest

import cleanrank as cr
from cleanrank.checks import CleanrankError
from cleanrank.noise.profiles import NoiseProfile, uniform


def test_truth_is_kept_and_the_mask_is_the_change(toy):
    before = toy.y.copy()
    noisy = cr.corrupt(toy, profile="uniform", rate=0.4, seed=3)
    np.testing.assert_array_equal(toy.y, before)
    np.testing.assert_array_equal(noisy.true_labels, before)
    np.testing.assert_array_equal(noisy.changed, noisy.data.y != before)
    assert noisy.rate == noisy.changed.mean()
    np.testing.assert_array_equal(noisy.data.row_ids, toy.row_ids)


def test_same_seed_same_noise_other_seed_other_noise(toy):
    a, b, c = (cr.corrupt(toy, rate=0.4, seed=s).data.y for s in (3, 3, 4))
    np.testing.assert_array_equal(a, b)
    assert (a != c).any()


def test_a_scale_may_be_wider_than_the_grades_at_hand(toy):
    low = toy.with_labels(np.minimum(toy.y, 1))
    assert cr.corrupt(low, rate=0.9, n_grades=5, seed=0).data.y.max() == 4


def test_known_matrix_is_taken_as_it_is(toy):
    top = NoiseProfile(np.array([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), "0 becomes 2")
    noisy = cr.corrupt(toy, top)
    assert (noisy.data.y[toy.y == 0] == 2).all()
    assert (noisy.data.y[toy.y != 0] == toy.y[toy.y != 0]).all()


def test_mistakes_are_named(toy):
    with pytest.raises(CleanrankError, match="Did you mean 'uniform'"):
        cr.corrupt(toy, profile="unifrom", rate=0.1)
    with pytest.raises(CleanrankError, match="rate must be given"):
        cr.corrupt(toy, profile="uniform")
    with pytest.raises(CleanrankError, match="must not be given with a matrix"):
        cr.corrupt(toy, uniform(0.1, 3), 0.1)
