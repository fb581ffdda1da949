"""What holds for every noise profile."""

import numpy as np
import pytest
from scipy import stats

import cleanrank as cr
from cleanrank.noise.corrupt import corrupt
from cleanrank.noise.profiles import PROFILES, make_profile, proportions_of

SCALES = (2, 3, 5, 7)
CASES = [
    pytest.param(name, C, id=f"{name}-{C}")
    for name in PROFILES
    for C in SCALES
    if name != "class-conditional" or C == 2
]


def options(name, n_grades):
    return {"draws_from": list(range(1, n_grades + 1))} if name == "replacement" else {}


def make(name, rate, n_grades):
    return make_profile(name, rate, n_grades, options(name, n_grades))


@pytest.fixture(scope="module")
def graded():
    rng = np.random.default_rng(2)
    return {
        C: cr.from_arrays(np.zeros((600, 1)), rng.integers(0, C, 600), qid=np.repeat(np.arange(30), 20))
        for C in SCALES
    }


@pytest.mark.parametrize(("name", "n_grades"), CASES)
def test_rate_zero_is_the_identity(name, n_grades, graded):
    np.testing.assert_array_equal(make(name, 0.0, n_grades).matrix, np.eye(n_grades))
    clean = graded[n_grades]
    assert not corrupt(clean, name, 0.0, options=options(name, n_grades)).changed.any()


@pytest.mark.parametrize(("name", "n_grades"), CASES)
def test_every_family_is_linear_in_its_rate(name, n_grades):
    moved = make(name, 0.4, n_grades).matrix - np.eye(n_grades)
    np.testing.assert_allclose(make(name, 0.1, n_grades).matrix, np.eye(n_grades) + moved / 4, atol=1e-14)


@pytest.mark.parametrize(("name", "n_grades"), CASES)
def test_truth_mask_scale_and_input(name, n_grades, graded):
    clean = graded[n_grades]
    before = clean.y.copy()
    noisy = corrupt(clean, name, 0.4, seed=5, options=options(name, n_grades))
    np.testing.assert_array_equal(clean.y, before)
    np.testing.assert_array_equal(noisy.true_labels, before)
    np.testing.assert_array_equal(noisy.changed, noisy.data.y != before)
    assert noisy.changed.any()
    assert 0 <= noisy.data.y.min() <= noisy.data.y.max() < n_grades


@pytest.mark.parametrize(("name", "n_grades"), CASES)
def test_the_empirical_matrix_matches(name, n_grades):
    profile = make(name, 0.3, n_grades)
    true = np.repeat(np.arange(n_grades), 20_000)
    given = profile.sample(true, np.random.default_rng(11))
    counts = np.zeros((n_grades, n_grades))
    np.add.at(counts, (true, given), 1)
    for row, expected in zip(counts, profile.matrix * 20_000, strict=True):
        seen = expected > 0
        assert not row[~seen].any()
        if seen.sum() > 1:
            assert stats.chisquare(row[seen], expected[seen]).pvalue > 1e-4


@pytest.mark.parametrize(("name", "n_grades"), CASES)
def test_the_announced_rate_is_the_realised_one(name, n_grades):
    shares = proportions_of(np.arange(n_grades, 0, -1))
    true = np.random.default_rng(1).choice(n_grades, 40_000, p=shares)
    profile = make(name, 0.25, n_grades)
    expected = profile.rate(shares)
    found = (profile.sample(true, np.random.default_rng(2)) != true).mean()
    assert abs(found - expected) < 4 * np.sqrt(expected * (1 - expected) / len(true)) + 0.002


@pytest.mark.parametrize(("name", "n_grades"), CASES)
def test_rates_by_query_give_the_same_mean_matrix(name, n_grades):
    Q, n = 4_000, 5 * n_grades
    y = np.tile(np.arange(n_grades), Q * 5)
    clean = cr.from_arrays(np.zeros((len(y), 1)), y, group=np.full(Q, n))
    rate, spread = (0.1, 0.02) if name == "uneven" else (0.3, 0.2)  # the top grade errs most, at most always
    noisy = corrupt(clean, name, rate, seed=3, spread=spread, options=options(name, n_grades))
    counts = np.zeros((n_grades, n_grades))
    np.add.at(counts, (y, noisy.data.y), 1)
    found = counts / counts.sum(axis=1, keepdims=True)
    assert not found[noisy.profile.matrix == 0].any()
    # Documents of a query share its rate, so the error is that of Q rates, not of Q * n documents.
    np.testing.assert_allclose(found, noisy.profile.matrix, atol=5 * np.sqrt(0.3 * 0.7 * (0.2 + 1 / 5) / Q))
