from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleanrank.errors import InvalidInputError
from cleanrank.noise.profiles import geometric
from cleanrank.planning.judges import judge_matrix, judgements_needed, median_matrix, threshold_matrix


def random_matrix(seed, grades):
    return np.random.default_rng(seed).dirichlet(np.ones(grades), size=grades)


@pytest.mark.parametrize("grades", [2, 3, 5])
@pytest.mark.parametrize("error", [0.0, 0.1, 0.5])
def test_steps_are_answered_one_by_one(grades, error):
    """All 2^(c-1) patterns of wrong answers, weighted."""
    expected = np.zeros((grades, grades))
    for l in range(grades):
        for wrong in product([False, True], repeat=grades - 1):
            passed = sum((step < l) != w for step, w in enumerate(wrong))
            expected[l, passed] += np.prod([error if w else 1 - error for w in wrong])
    assert threshold_matrix(error, grades) == pytest.approx(expected)


def test_two_grades_err_at_the_rate_and_more_grades_err_more():
    rates = [1 - np.diag(threshold_matrix(0.1, c)).mean() for c in (2, 3, 4, 5)]
    assert rates[0] == pytest.approx(0.1)
    assert rates == sorted(rates)
    assert rates[-1] > rates[0]


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 999), grades=st.integers(2, 4), judges=st.sampled_from([1, 3, 5]))
def test_the_median_is_that_of_all_answers(seed, grades, judges):
    T = random_matrix(seed, grades)
    expected = np.zeros_like(T)
    for answers in product(range(grades), repeat=judges):
        expected[:, sorted(answers)[judges // 2]] += np.prod(T[:, answers], axis=1)
    assert median_matrix(T, judges) == pytest.approx(expected)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 999), grades=st.integers(2, 3), judges=st.sampled_from([1, 3, 5]))
def test_judging_stops_when_the_rest_cannot_matter(seed, grades, judges):
    """Every sequence of answers; stop at the first prefix all of whose completions have one median."""
    T = random_matrix(seed, grades)
    mean = np.zeros(grades)
    for answers in product(range(grades), repeat=judges):
        for t in range(1, judges + 1):
            ends = product(range(grades), repeat=judges - t)
            if len({sorted((*answers[:t], *end))[judges // 2] for end in ends}) == 1:
                break
        mean += t * np.prod(T[:, answers], axis=1)
    assert judgements_needed(T, judges) == pytest.approx(mean)


def test_majority_of_three_by_hand():
    T = [[0.9, 0.1], [0.2, 0.8]]
    assert median_matrix(T, 3)[:, 1] == pytest.approx([3 * 0.01 * 0.9 + 0.001, 3 * 0.64 * 0.2 + 0.512])
    assert judgements_needed(T, 3) == pytest.approx([2 + 2 * 0.09, 2 + 2 * 0.16])


def test_judges_who_copy_one_another_help_nothing():
    T = random_matrix(1, 3)
    assert median_matrix(T, 5, shared=1.0) == pytest.approx(T)
    assert judgements_needed(T, 5, shared=1.0) == pytest.approx([3, 3, 3])
    half = median_matrix(T, 3, shared=0.5)
    assert half == pytest.approx((T + median_matrix(T, 3)) / 2)


def test_rates_and_matrices_by_scale():
    assert np.array_equal(judge_matrix(0.1, 3), threshold_matrix(0.1, 3))
    assert np.array_equal(judge_matrix({3: 0.2}, 3), geometric(0.2, 3).matrix)
    given_matrix = [[0.7, 0.3], [0.2, 0.8]]
    assert judge_matrix({2: given_matrix}, 2).tolist() == given_matrix
    with pytest.raises(InvalidInputError, match="a rate for every scale; got 2 grades"):
        judge_matrix({2: 0.1}, 3)
    with pytest.raises(InvalidInputError, match="matrix of 3 grades"):
        judge_matrix({3: given_matrix}, 3)


def test_bad_numbers_are_refused():
    with pytest.raises(InvalidInputError, match="odd number"):
        median_matrix(np.eye(2), 2)
    with pytest.raises(InvalidInputError, match="error rate"):
        threshold_matrix(1.5, 3)
    with pytest.raises(InvalidInputError, match="shared"):
        median_matrix(np.eye(2), 3, shared=2)
