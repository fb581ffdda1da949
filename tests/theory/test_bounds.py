import itertools
import math

import numpy as np
import pytest

from cleanrank.errors import CleanrankError
from cleanrank.theory import deviation_bound, excess_probability, excess_risk_bound, samples_needed
from cleanrank.theory.bounds import log_shatter


@pytest.mark.parametrize(("gamma", "bound"), [(1.0, 2.77), (0.9, 3.47), (0.6, 13.9)])
def test_bounds_of_500_documents_and_5_features_say_nothing(gamma, bound):
    found = excess_risk_bound(n=500, dim=5, gamma=gamma)
    assert float(found) == pytest.approx(bound, rel=0.005)
    assert found.vacuous
    assert "says nothing" in found.statement


@pytest.mark.parametrize(("gamma", "n"), [(1.0, 8.62e5), (0.9, 1.40e6), (0.6, 2.71e7), (0.51, 3.5e9)])
def test_documents_needed_for_a_tenth(gamma, n):
    found = samples_needed(excess=0.1, dim=5, gamma=gamma)
    assert float(found) == pytest.approx(n, rel=0.006)
    assert (
        float(excess_risk_bound(int(found), 5, gamma))
        <= 0.1
        < float(excess_risk_bound(int(found) - 1, 5, gamma))
    )
    assert not excess_risk_bound(int(found), 5, gamma).vacuous


def test_auc_has_half_as_many_independent_pairs():
    assert float(excess_risk_bound(501, 5, 0.9, loss="auc")) == float(excess_risk_bound(250, 5, 0.9))
    assert int(samples_needed(0.1, 5, 0.9, loss="auc")) == 2 * int(samples_needed(0.1, 5, 0.9))


def halves(points):
    """Ways in which lines through none of the points cut them, by brute force over directions and offsets."""
    found = set()
    for angle in np.linspace(0, 2 * np.pi, 2000, endpoint=False) + 1e-4:
        along = points @ [np.cos(angle), np.sin(angle)]
        for offset in np.concatenate(([-9.0], np.sort(along) + 1e-9)):
            found.add(tuple(along > offset))
    return len(found)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 6])
def test_shatter_coefficient_in_the_plane_by_brute_force(n):
    points = np.random.default_rng(2).normal(size=(n, 2))
    assert round(math.exp(log_shatter(n, 2))) == halves(points)


def test_shatter_coefficient_in_closed_form():
    exact = 2 * sum(math.comb(499, i) for i in range(6))
    assert log_shatter(500, 5) == pytest.approx(math.log(exact))
    assert log_shatter(500, 5, origin=True) == pytest.approx(
        math.log(2 * sum(math.comb(499, i) for i in range(5)))
    )
    # Sauer's bound is coarser.
    assert log_shatter(500, 5) < math.log(sum(math.comb(500, i) for i in range(7)))


def test_deviations():
    n, eps, gamma = 2_000_000, 0.1, 0.9
    log_bound = math.log(8) + log_shatter(n, 5) - n * (eps * 0.8) ** 2 / 128
    assert float(deviation_bound(eps, n, 5, gamma)) == pytest.approx(math.exp(log_bound))
    with_slack = deviation_bound(eps, n, 5, gamma, slack=0.01, slack_probability=0.2)
    slower = math.log(8) + log_shatter(n, 5) - n * (eps * 0.8 - 0.01) ** 2 / 128
    assert float(with_slack) == pytest.approx(0.2 + math.exp(slower))
    assert deviation_bound(eps, n, 5, gamma, slack=0.09).vacuous
    assert deviation_bound(0.1, 500, 5, 0.9).value == 1.0


def test_any_deviation_by_hand():
    """Theorem 4.11: delta_n + P(2 sup > eps (2 gamma - 1) - eps_n)."""
    asked = []

    def tail(t):
        asked.append(t)
        return 0.25

    bound = excess_probability(0.5, 0.8, tail, slack=0.1, slack_probability=0.3)
    assert asked == [pytest.approx((0.5 * 0.6 - 0.1) / 2)]
    assert float(bound) == pytest.approx(0.55)
    assert not bound.vacuous
    # No deviation can be told where the slack eats up what noise leaves of the excess.
    assert excess_probability(0.5, 0.8, tail, slack=0.31).value == 1.0
    assert len(asked) == 1
    assert excess_probability(0.5, 0.8, lambda t: 7.0).vacuous


def test_the_theorem_of_the_0_1_loss_follows_from_that_of_any_deviation():
    n, dim, eps, gamma = 4_000_000, 5, 0.1, 0.9
    shatter = 2 * sum(math.comb(n - 1, i) for i in range(dim + 1))

    def vapnik(t):
        return 8 * shatter * math.exp(-n * t**2 / 32)

    for slack, probability in ((0.0, 0.0), (0.01, 0.2)):
        by_hand = excess_probability(eps, gamma, vapnik, slack=slack, slack_probability=probability)
        theorem = deviation_bound(eps, n, dim, gamma, slack=slack, slack_probability=probability)
        assert float(by_hand) == pytest.approx(float(theorem), rel=1e-9)
        assert 0 < float(theorem) < 1


def test_almost_minimisers_of_a_finite_class_keep_the_bound():
    """Scorers that err on fixed shares of documents; of those near the minimum the worst is taken."""
    rng, n, gamma, slack, eps = np.random.default_rng(0), 400, 0.8, 0.02, 0.25
    errors = np.linspace(0.1, 0.9, 9)
    noisy = gamma * errors + (1 - gamma) * (1 - errors)
    far = 0
    for _ in range(500):
        empirical = rng.binomial(n, noisy) / n
        near = np.flatnonzero(empirical <= empirical.min() + slack)
        far += errors[near.max()] - errors.min() > eps
    bound = excess_probability(eps, gamma, lambda t: 2 * 9 * math.exp(-2 * n * t**2), slack=slack)
    assert far / 500 <= float(bound) < 1


def test_bounds_fall_with_data_and_rise_with_noise_and_features():
    values = [float(excess_risk_bound(n, 5, 0.9)) for n in (100, 1000, 10**6, 10**9)]
    assert all(a > b for a, b in itertools.pairwise(values))
    assert float(excess_risk_bound(500, 5, 0.8)) > float(excess_risk_bound(500, 5, 0.9))
    assert float(excess_risk_bound(500, 6, 0.9)) > float(excess_risk_bound(500, 5, 0.9))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: excess_risk_bound(500, 5, 0.5), "gamma must be a number > 0.5 and <= 1"),
        (lambda: excess_risk_bound(0, 5, 0.9), "n must be an integer >= 1"),
        (lambda: excess_risk_bound(1, 5, 0.9, loss="auc"), "n must be an integer >= 2"),
        (lambda: excess_risk_bound(500, 0, 0.9), "dim must be"),
        (lambda: excess_risk_bound(500, 5, 0.9, loss="acu"), "Did you mean 'auc'"),
        (lambda: samples_needed(0.0, 5, 0.9), "excess must be a number > 0"),
        (lambda: deviation_bound(-1, 500, 5, 0.9), "excess must be a number > 0"),
        (lambda: deviation_bound(0.1, 500, 5, 0.9, slack=-1), "slack must be a number >= 0"),
        (lambda: excess_probability(0.1, 0.5, lambda t: 0.1), "gamma must be a number > 0.5"),
        (lambda: excess_probability(0.1, 0.9, lambda t: -1.0), "deviation must be a number >= 0; got -1"),
        (lambda: samples_needed("x", 5, 0.9), "excess must be a number > 0; got 'x'"),
        (lambda: excess_risk_bound(500, 5, "x"), "gamma must be a number > 0.5 and <= 1; got 'x'"),
    ],
)
def test_complaints(call, message):
    with pytest.raises(CleanrankError, match=message):
        call()


@pytest.mark.parametrize("n", [40, 10**6, 10**15, 10**20])
def test_shatter_coefficients_against_whole_numbers(n):
    """Python's own integers lose no digit, however many points there are."""
    exact = 2 * sum(math.comb(n - 1, i) for i in range(6))
    assert log_shatter(n, 5) == pytest.approx(math.log(exact), rel=1e-12)


def test_labels_hardly_better_than_chance_need_astronomic_samples():
    gamma = 0.5 + 1e-9
    n = int(samples_needed(excess=0.1, dim=5, gamma=gamma))
    shatter = 2 * sum(math.comb(n - 1, i) for i in range(6))
    bound = 16 * math.sqrt((math.log(8 * math.e) + math.log(shatter)) / (2 * n)) / (2 * gamma - 1)
    assert bound == pytest.approx(0.1, rel=1e-9)
    assert n > 1e23
