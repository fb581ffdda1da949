import json
from types import SimpleNamespace

import numpy as np
import pytest

from cleanrank.errors import CleanrankError
from cleanrank.noise.profiles import (
    NoiseProfile,
    adjacent,
    class_conditional,
    geometric,
    make_profile,
    one_way,
    power,
    proportions_of,
    replacement,
    uniform,
)


def test_uniform_is_t_11_plus_kappa_I():
    rate, C = 0.3, 5
    t, kappa = rate / (C - 1), 1 - rate * C / (C - 1)
    np.testing.assert_allclose(uniform(rate, C).matrix, t * np.ones((C, C)) + kappa * np.eye(C), atol=1e-15)


def test_errors_by_distance_expanded_by_hand():
    # Row 0 of four grades: distances 1, 2, 3.
    np.testing.assert_allclose(
        geometric(0.7, 4, rho=0.5).matrix[0], [0.3, 0.7 * 4 / 7, 0.7 * 2 / 7, 0.7 * 1 / 7]
    )
    np.testing.assert_allclose(
        power(0.49, 4, rho=2).matrix[0], [0.51, 0.49 * 36 / 49, 0.49 * 9 / 49, 0.49 * 4 / 49]
    )
    np.testing.assert_allclose(adjacent(0.2, 4).matrix[1], [0.1, 0.8, 0.1, 0.0])
    np.testing.assert_allclose(adjacent(0.2, 4).matrix[3], [0.0, 0.0, 0.2, 0.8])


@pytest.mark.parametrize("family", [uniform, geometric, power, adjacent])
def test_two_grades_leave_one_way_to_err(family):
    np.testing.assert_allclose(family(0.3, 2).matrix, [[0.7, 0.3], [0.3, 0.7]])


def test_geometric_with_rho_one_and_power_zero_are_uniform():
    np.testing.assert_allclose(geometric(0.3, 5, rho=1.0).matrix, uniform(0.3, 5).matrix)
    np.testing.assert_allclose(power(0.3, 5, rho=0.0).matrix, uniform(0.3, 5).matrix)


@pytest.mark.parametrize("family", [uniform, geometric, power, adjacent])
def test_row_weights_keep_the_mean_rate(family):
    r, w = np.array([0.7, 0.16, 0.14]), np.array([1.0, 2.0, 0.5])
    profile = family(0.2, 3, row_weights=w, proportions=r)
    assert profile.rate(r) == pytest.approx(0.2)
    off = 1 - np.diag(profile.matrix)
    np.testing.assert_allclose(off / off[0], w / w[0])


def test_row_weights_that_cannot_be_are_refused():
    with pytest.raises(CleanrankError, match=r"row rates must not exceed 1; got 2\.5 at grade 1"):
        uniform(0.5, 2, row_weights=[0, 1], proportions=[0.8, 0.2])
    with pytest.raises(CleanrankError, match="proportions must be given with row_weights"):
        uniform(0.5, 2, row_weights=[0, 1])
    with pytest.raises(CleanrankError, match="above 0 for a grade that occurs"):
        uniform(0.5, 2, row_weights=[0, 1], proportions=[1, 0])
    with pytest.raises(CleanrankError, match="weight >= 0 for each of 2 grades"):
        uniform(0.5, 2, row_weights=[0, 1, 2], proportions=[1, 1])


def test_class_conditional_takes_kept_probabilities_or_one_rate():
    np.testing.assert_allclose(class_conditional(gamma0=0.9, gamma1=0.6).matrix, [[0.9, 0.1], [0.4, 0.6]])
    np.testing.assert_allclose(class_conditional(0.2).matrix, uniform(0.2, 2).matrix)
    with pytest.raises(CleanrankError, match="exactly two grades; got 3"):
        class_conditional(0.2, 3)
    with pytest.raises(CleanrankError, match="rate or gamma0 and gamma1"):
        class_conditional(0.2, gamma0=0.9)
    with pytest.raises(CleanrankError, match="needs gamma0 and gamma1"):
        class_conditional(gamma0=0.9)


def test_one_way_moves_one_grade_only():
    expected = np.eye(5)
    expected[0] = [0.75, 0, 0, 0, 0.25]
    np.testing.assert_array_equal(one_way(0.25, 5).matrix, expected)
    assert one_way(0.5, 3, source=2, target=1).matrix[2].tolist() == [0, 0.5, 0.5]
    with pytest.raises(CleanrankError, match="target must differ"):
        one_way(0.5, 3, source=2)
    with pytest.raises(CleanrankError, match="source must be a grade from 0 to 2; got 3"):
        one_way(0.5, 3, source=3)


def test_replacement_may_draw_the_same_grade():
    np.testing.assert_allclose(replacement(0.2, 5).matrix[3], [0.1, 0.04, 0.03, 0.82, 0.01])
    with pytest.raises(CleanrankError, match=r"each of the 3 grades; got 5 values.*draws_from="):
        replacement(0.2, 3)


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


def test_equal_matrices_are_equal_profiles():
    assert uniform(0.2, 2) == class_conditional(0.2)
    assert hash(uniform(0.2, 2)) == hash(class_conditional(0.2))
    assert uniform(0.2, 2) != uniform(0.3, 2)


@pytest.mark.parametrize(
    ("grades", "words"),
    [
        ([0, 1, 2], "rows of the noise matrix, 0 to 1; got 2"),
        ([0, -1], "rows of the noise matrix, 0 to 1; got -1"),
        ([0.0, 1.0], "whole numbers"),
    ],
)
def test_grades_that_do_not_fit_are_refused(grades, words):
    with pytest.raises(CleanrankError, match=words):
        uniform(0.1, 2).sample(grades, np.random.default_rng(0))


class Highest:
    """A generator whose draws are the highest there is."""

    def random(self, shape):
        return np.full(shape, np.nextafter(1.0, 0.0))


def test_rounding_never_reaches_a_grade_of_probability_zero():
    tenths = NoiseProfile(np.array([[0.1] * 10 + [0.0]] + [[0.0] * 10 + [1.0]] * 10))
    assert np.cumsum(tenths.matrix[0])[-2] < 1, "the case must need the guard"
    assert tenths.sample([0], Highest()).tolist() == [9]


def test_long_columns_are_drawn_in_blocks_as_in_one_go(monkeypatch):
    true = np.random.default_rng(0).integers(0, 3, 1000)
    whole = uniform(0.4, 3).sample(true, np.random.default_rng(1))
    monkeypatch.setattr("cleanrank.noise.profiles.BLOCK", 64)
    np.testing.assert_array_equal(uniform(0.4, 3).sample(true, np.random.default_rng(1)), whole)


def test_profiles_by_name_check_their_options():
    assert make_profile("geometric", 0.3, 3, {"rho": 0.25}) == geometric(0.3, 3, rho=0.25)
    assert make_profile("class-conditional", None, 2, {"gamma0": 0.9, "gamma1": 0.8}).matrix[1, 1] == 0.8
    with pytest.raises(CleanrankError, match=r"unknown option of noise profile 'geometric' 'rh'.*'rho'"):
        make_profile("geometric", 0.3, 3, {"rh": 0.25})
    with pytest.raises(CleanrankError, match="rate must be given"):
        make_profile("geometric", None, 3)
    with pytest.raises(CleanrankError, match="rho must be a number > 0 and <= 1; got 'half'"):
        make_profile("geometric", 0.3, 3, {"rho": "half"})
    with pytest.raises(CleanrankError, match="fitting types"):
        make_profile("one-way", 0.3, 3, {"source": "lowest"})


@pytest.mark.parametrize("values", [[], [-1, 2], [0, 0], [[1, 2]], [np.nan, 1]])
def test_proportions_that_are_none_are_refused(values):
    with pytest.raises(CleanrankError, match="proportions"):
        proportions_of(values)
    np.testing.assert_allclose(proportions_of([70, 16, 14]), [0.7, 0.16, 0.14])


def test_anything_that_names_noise_becomes_a_profile(tmp_path):
    T = [[0.9, 0.1], [0.2, 0.8]]
    profile = NoiseProfile(T, "mine")
    assert NoiseProfile.of(profile) is profile
    for same in (T, np.array(T), np.array(T, dtype=np.float32), SimpleNamespace(matrix=T), (0.9, 0.8)):
        np.testing.assert_allclose(NoiseProfile.of(same, 2).matrix, T, atol=1e-7)
    (tmp_path / "T.json").write_text(json.dumps(T))
    assert NoiseProfile.of(tmp_path / "T.json") == profile
    assert NoiseProfile.of("adjacent:0.2", 3) == adjacent(0.2, 3)


@pytest.mark.parametrize(
    ("noise", "options", "message"),
    [
        (None, {}, "noise must be a square matrix .*; got None"),
        ("text", {}, "there is no file 'text'"),
        ([[1.0, 0.0]], {}, r"noise must be a square matrix .*; got shape \(1, 2\)"),
        ([[0.9, 0.2], [0.1, 0.9]], {}, "must have rows that sum to 1"),
        ([[0.9, 0.1], [0.1, 0.9]], {"n_grades": 3}, "must have a row for each of the 3 grades; got 2 rows"),
        ([[0.5, 0.5], [0.5, 0.5]], {"invertible": True}, "must keep the grades apart"),
        ("uniform:0.1", {}, "needs the number of grades"),
        ("unifrom:0.1", {"n_grades": 3}, "Did you mean 'uniform'"),
    ],
)
def test_what_is_no_noise_is_refused(noise, options, message):
    with pytest.raises(CleanrankError, match=message):
        NoiseProfile.of(noise, **options)


@pytest.mark.parametrize("n_grades", [2, 3, 5])
def test_uneven_errors_are_three_times_as_frequent_on_the_top_grade_as_on_grade_0(n_grades):
    rates = 1 - np.diag(make_profile("uneven", 0.1, n_grades).matrix)
    assert rates[-1] / rates[0] == pytest.approx(3)
    assert np.diff(rates) == pytest.approx(2 * rates[0] / (n_grades - 1))
    assert rates.mean() == pytest.approx(0.1)


def test_errors_do_not_grow_with_their_distance():
    np.testing.assert_allclose(power(0.3, 3, rho=0).matrix, uniform(0.3, 3).matrix)
    for profile, rho in ((power, -0.5), (geometric, 0.0), (geometric, 1.5)):
        with pytest.raises(CleanrankError, match="rho must"):
            profile(0.3, 3, rho=rho)
