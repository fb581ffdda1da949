"""What holds for every test of significance."""

import numpy as np
import pytest

from cleanrank.metrics.significance import ALTERNATIVES, TESTS, bootstrap_interval, fisher_test


def run(name, a, b, alternative, seed=0):
    return TESTS[name](
        a, b, alternative=alternative, **({"permutations": 999, "seed": seed} if name == "fisher" else {})
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_false_positives_are_as_rare_as_promised(name, alternative):
    """Under the null 5 % of the p-values lie below .05; 2,000 draws leave a standard error of .5 %."""
    rng = np.random.default_rng(1)
    trials = 2000
    below = 0
    for trial in range(trials):
        a, b = rng.beta(2, 1, 60), rng.beta(2, 1, 60)
        below += run(name, a, b, alternative, seed=trial) <= 0.05
    assert below / trials == pytest.approx(0.05, abs=0.02)


@pytest.mark.parametrize("name", TESTS)
def test_a_clear_difference_is_found(name):
    rng = np.random.default_rng(2)
    a = rng.uniform(size=200)
    b = a - 0.1 + 0.05 * rng.normal(size=200)
    assert run(name, a, b, "two-sided") <= 0.001
    assert run(name, a, b, "greater") <= 0.001
    assert run(name, a, b, "less") > 0.99


@pytest.mark.parametrize("name", TESTS)
def test_exchanging_the_systems_mirrors_the_sides(name):
    rng = np.random.default_rng(3)
    a, b = rng.uniform(size=50), rng.uniform(size=50)
    assert run(name, a, b, "two-sided") == pytest.approx(run(name, b, a, "two-sided"), abs=1e-12)
    assert run(name, a, b, "greater") == pytest.approx(run(name, b, a, "less"), abs=1e-12)


@pytest.mark.parametrize("alternative", ALTERNATIVES)
def test_the_number_of_threads_changes_no_bit(alternative):
    rng = np.random.default_rng(4)
    a, b = rng.uniform(size=700), rng.uniform(size=700)
    found = {fisher_test(a, b, 30_000, alternative, seed=5, n_jobs=jobs) for jobs in (1, 2, None)}
    assert len(found) == 1
    assert len({bootstrap_interval(a, seed=6, n_jobs=jobs) for jobs in (1, 2, None)}) == 1


@pytest.mark.parametrize("permutations", [1, 9, 100])
def test_p_is_at_least_one_over_permutations_plus_one(permutations):
    rng = np.random.default_rng(5)
    for seed in range(20):
        p = fisher_test(rng.uniform(size=30) + 1, rng.uniform(size=30), permutations, seed=seed)
        assert 1 / (permutations + 1) <= p <= 1


@pytest.mark.slow
def test_intervals_hold_the_mean_as_often_as_promised():
    rng = np.random.default_rng(6)
    held = 0
    for trial in range(1000):
        low, high = bootstrap_interval(rng.beta(2, 1, 120), seed=trial, resamples=1000)
        held += low <= 2 / 3 <= high
    assert held / 1000 == pytest.approx(0.95, abs=0.025)
