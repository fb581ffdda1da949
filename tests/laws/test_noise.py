"""What holds for every noise profile."""

import numpy as np
import pytest
from scipy import stats

from cleanrank.noise.profiles import PROFILES


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("n_grades", [2, 3, 5])
def test_rate_zero_is_the_identity(name, n_grades):
    np.testing.assert_array_equal(PROFILES[name](0.0, n_grades).matrix, np.eye(n_grades))


@pytest.mark.parametrize("name", PROFILES)
@pytest.mark.parametrize("n_grades", [2, 3, 5])
def test_the_empirical_matrix_matches(name, n_grades):
    profile = PROFILES[name](0.3, n_grades)
    true = np.repeat(np.arange(n_grades), 20_000)
    given = profile.sample(true, np.random.default_rng(11))
    assert given.min() >= 0
    assert given.max() < n_grades
    counts = np.zeros((n_grades, n_grades))
    np.add.at(counts, (true, given), 1)
    for row, expected in zip(counts, profile.matrix * 20_000, strict=True):
        seen = expected > 0
        assert not row[~seen].any()
        assert stats.chisquare(row[seen], expected[seen]).pvalue > 1e-4
