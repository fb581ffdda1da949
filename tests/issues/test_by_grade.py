import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.issues.by_grade import expected_wrong, find_by_grade
from cleanrank.noise.profiles import uniform


@pytest.fixture(scope="module")
def noisy():
    return cr.corrupt(cr.make_ranking(200, 4, docs_per_query=50, seed=0), rate=0.2, seed=1)


def test_shares_of_a_known_corruption_are_counted(noisy):
    found = find_by_grade(noisy.data, noise=noisy)
    for grade in range(5):
        rows = noisy.data.y == grade
        assert found.doubt[rows] == pytest.approx(noisy.changed[rows].mean())
    # One value per grade: within a grade nothing is known beyond the base rate.
    for name, line in found.quality(noisy).items():
        if name != "all":
            assert line["average_precision"] == pytest.approx(line["base_rate"])
    assert found.average_precision(noisy) > 2 * noisy.rate


def test_a_matrix_gives_the_shares_without_the_truth(noisy):
    found = expected_wrong(noisy.data, noisy.profile)
    counted = [noisy.changed[noisy.data.y == grade].mean() for grade in range(5)]
    np.testing.assert_allclose(found, counted, atol=0.05)
    np.testing.assert_array_equal(found, expected_wrong(noisy.data, noisy.profile.matrix))


def test_the_formula_by_hand():
    # r = (.6, .4), T = [[.9, .1], [.2, .8]]: w = (.62, .38); P(wrong | 0) = .08/.62, P(wrong | 1) = .06/.38.
    data = cr.from_arrays(np.zeros((50, 1)), [0] * 31 + [1] * 19, group=[50])
    found = expected_wrong(data, [[0.9, 0.1], [0.2, 0.8]])
    np.testing.assert_allclose(found, [0.08 / 0.62, 0.06 / 0.38], atol=1e-6)


def test_no_noise_no_doubt(noisy):
    assert not find_by_grade(noisy.data, noise=np.eye(5)).doubt.round(9).any()


def test_mistakes_are_named(noisy):
    with pytest.raises(CleanrankError, match="a row for each of the 5 grades"):
        find_by_grade(noisy.data, noise=uniform(0.1, 3))


def test_noise_of_other_data_or_none_is_refused(noisy):
    with pytest.raises(CleanrankError, match="noise must be a square matrix"):
        find_by_grade(noisy.data, noise={"uniform": 0.2})
    binary = cr.corrupt(noisy.data.with_labels(np.minimum(noisy.data.y, 1)), rate=0.2, seed=1)
    with pytest.raises(CleanrankError, match="must be the corruption of these data"):
        find_by_grade(noisy.data, noise=binary)
