import numpy as np
import pytest

from cleanrank.checks import CleanrankError
from cleanrank.noise.profiles import NoiseProfile, uniform


def test_uniform_is_t_11_plus_kappa_I():
    rate, C = 0.3, 5
    t, kappa = rate / (C - 1), 1 - rate * C / (C - 1)
    np.testing.assert_allclose(uniform(rate, C).matrix, t * np.ones((C, C)) + kappa * np.eye(C), atol=1e-15)


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[0.5, 0.5]], "square"),
        ([[0.9, 0.2], [0.0, 1.0]], "sum to 1; got 1.1 at row 0"),
        ([[1.2, -0.2], [0.0, 1.0]], "probabilities"),
        ([[np.nan, 1.0], [0.0, 1.0]], "probabilities"),
    ],
)
def test_a_matrix_that_is_no_profile_is_refused(matrix, words):
    with pytest.raises(CleanrankError, match=words):
        NoiseProfile(np.array(matrix))


@pytest.mark.parametrize("rate", [-0.1, 1.1, np.nan])
def test_rate_outside_the_unit_interval_is_refused(rate):
    with pytest.raises(CleanrankError, match="rate"):
        uniform(rate, 3)


def test_profile_is_frozen_and_apart_from_the_callers_array():
    mine = np.eye(2)
    profile = NoiseProfile(mine)
    mine[0, 0] = 7
    assert profile.matrix[0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        profile.matrix[0, 0] = 0


def test_a_grade_beyond_the_matrix_is_refused():
    with pytest.raises(CleanrankError, match="below 2, the size of the noise matrix; got 2"):
        uniform(0.1, 2).sample([0, 1, 2], np.random.default_rng(0))
