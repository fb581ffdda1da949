from dataclasses import replace

import numpy as np
import pytest

from cleanrank.diagnosis.fragility import scale_name
from cleanrank.errors import InvalidInputError
from cleanrank.noise.pair_noise import pnoise_expected
from cleanrank.noise.profiles import uniform
from cleanrank.planning.candidates import (
    Order,
    coarsened,
    expected_draws,
    graded,
    options_of,
    pair_shares,
    pairwise,
)
from cleanrank.planning.judges import judge_matrix

WEB = (0.517, 0.325, 0.133, 0.017, 0.008)
ORDER = Order(
    budget=1000.0,
    cost=0.1,
    documents=20,
    proportions=WEB,
    error=0.1,
    scales=(2, 3, 5),
    repeats=(1, 3),
    top_k=5,
    pair_cost=0.1,
    pair_error=0.1,
    screen_cost=None,
    pool=1000,
    shared=0.0,
    profile="geometric",
    queries=None,
    seed=0,
)


def noise(shares):
    return (shares[1] + shares[2] / 2) / shares.sum()


@pytest.mark.parametrize("shares", [(0.7, 0.16, 0.14), WEB, (0.5, 0.5)])
def test_pairs_from_the_joint_shares_are_the_closed_form(shares):
    T = uniform(0.1, len(shares))
    found = pair_shares(np.array(shares)[:, None] * T.matrix)
    assert noise(found) == pytest.approx(pnoise_expected(T, shares))


def simulated(joint_of, n, queries, rng):
    """Counts pairs of drawn (true, given) labels one by one."""
    correct = inverse = new = 0
    for _ in range(queries):
        true, given = joint_of(n, rng)
        t, g = np.sign(true[:, None] - true[None, :]), np.sign(given[:, None] - given[None, :])
        upper = np.triu(g != 0, 1)
        correct += (upper & (t == g)).sum()
        inverse += (upper & (t == -g) & (t != 0)).sum()
        new += (upper & (t == 0)).sum()
    return np.array([correct, inverse, new]) / queries


def labels(true, order, grades, rng):
    T = judge_matrix(order.error, grades)[coarsened(order.proportions, grades)]
    return np.array([rng.choice(grades, p=T[l]) for l in true])


@pytest.mark.parametrize("grades", [2, 3])
def test_natural_sampling_is_what_drawing_documents_gives(grades):
    rng = np.random.default_rng(grades)

    def draw(n, rng):
        true = rng.choice(5, size=n, p=WEB)
        return true, labels(true, ORDER, grades, rng)

    counts = simulated(draw, 20, 1500, rng)
    found = graded(ORDER, grades, "natural", 1)
    assert found.pairs == pytest.approx(counts.sum(), rel=0.02)
    assert found.pnoise == pytest.approx(noise(counts), abs=0.01)
    assert found.judgements == 20
    assert found.query_cost == pytest.approx(2.0)
    assert found.queries == 500


def test_balance_by_judges_is_what_filling_quotas_gives():
    rng = np.random.default_rng(0)
    order = replace(ORDER, proportions=(0.85, 0.1, 0.05), scales=(2, 3))
    looked = []

    def draw(n, rng):
        kept, seen = {0: [], 1: []}, 0
        while min(map(len, kept.values())) < n // 2:
            true = int(rng.choice(3, p=order.proportions))
            given = int(labels([true], order, 2, rng)[0])
            seen += 1
            if len(kept[given]) < n // 2:
                kept[given].append(true)
        looked.append(seen)
        return np.array(kept[0] + kept[1]), np.repeat([0, 1], n // 2)

    counts = simulated(draw, 20, 600, rng)
    found = graded(order, 2, "balanced", 1)
    assert found.screened == pytest.approx(np.mean(looked), rel=0.03)
    assert found.judgements == pytest.approx(found.screened)
    assert found.pairs == pytest.approx(100)
    assert found.pnoise == pytest.approx(noise(counts), abs=0.01)
    # The judges' errors decide what is kept: balance by their labels repairs nothing.
    assert found.pnoise == pytest.approx(graded(order, 2, "natural", 1).pnoise)


def test_a_screener_gives_balanced_truth():
    rng = np.random.default_rng(1)
    order = replace(ORDER, proportions=(0.85, 0.1, 0.05), scales=(2, 3), screen_cost=0.01)

    def draw(n, rng):
        relevant = 1 + (rng.random(n // 2) < 1 / 3)
        true = np.concatenate((np.zeros(n // 2, int), relevant))
        return true, labels(true, order, 2, rng)

    counts = simulated(draw, 20, 1500, rng)
    found = graded(order, 2, "balanced", 1)
    assert found.pairs == pytest.approx(counts.sum(), rel=0.02)
    assert found.pnoise == pytest.approx(noise(counts), abs=0.01)
    assert found.pnoise < graded(order, 2, "natural", 1).pnoise
    assert found.screened == pytest.approx(expected_draws([0.85, 0.15], [10, 10]))
    assert found.query_cost == pytest.approx(20 * 0.1 + 0.01 * found.screened)


@pytest.mark.parametrize(
    ("shares", "quotas"), [((0.7, 0.2, 0.1), (5, 5, 5)), ((0.99, 0.01), (10, 3)), ((0.5, 0.5), (1, 1))]
)
def test_looks_until_all_quotas_are_full(shares, quotas):
    rng = np.random.default_rng(2)
    seen = []
    for _ in range(3000):
        stream = rng.choice(len(shares), size=3000, p=shares)
        seen.append(max(int(np.flatnonzero(stream == m)[k - 1]) + 1 for m, k in enumerate(quotas)))
    error = np.std(seen) / np.sqrt(len(seen))
    assert expected_draws(shares, quotas) == pytest.approx(np.mean(seen), abs=4 * error)


def test_looks_by_hand():
    assert expected_draws([1.0], [7]) == pytest.approx(7)
    assert expected_draws([0.25], [3]) == pytest.approx(12)
    assert expected_draws([0.2] * 5, [1] * 5) == pytest.approx(5 * (1 + 1 / 2 + 1 / 3 + 1 / 4 + 1 / 5))
    assert expected_draws([0.5, 0.5, 0.0], [1, 1, 1]) == float("inf")
    assert expected_draws([0.5, 0.5, 0.0], [1, 1, 0]) == pytest.approx(3)


def test_a_judge_without_error_has_no_floor_but_on_pairs():
    order = replace(ORDER, error=0.0, pair_error=0.0)
    for found in options_of(order):
        assert found.pnoise == pytest.approx(found.floor)
        assert found.floor == pytest.approx(0, abs=1e-12) if found.grades else found.floor > 0.05


def test_repeating_costs_and_helps():
    once, thrice = graded(ORDER, 3, "natural", 1), graded(ORDER, 3, "natural", 3)
    assert thrice.pnoise < once.pnoise
    assert 2 * once.query_cost < thrice.query_cost < 3 * once.query_cost
    copied = graded(replace(ORDER, shared=1.0), 3, "natural", 3)
    assert copied.pnoise == pytest.approx(once.pnoise)
    assert copied.query_cost == pytest.approx(2 * once.query_cost)
    assert pairwise(ORDER, 5, 3).error_rate == pytest.approx(0.028)


def test_the_best_come_first_and_what_cannot_be_had_last():
    found = options_of(replace(ORDER, pool=200))
    values = [o.effective_pairs for o in found if not o.problem]
    assert values == sorted(values, reverse=True)
    problems = [bool(o.problem) for o in found]
    assert problems == sorted(problems)
    assert any("are there" in o.problem for o in found)
    assert len(found) == 3 * 2 * 2 + 2
    for o in found:
        assert o.effective_pairs == pytest.approx(o.queries * o.pairs * o.signal_left**2)
        assert o.excess == pytest.approx(o.pnoise - o.floor)


def test_queries_are_limited_by_budget_and_by_their_number():
    assert graded(replace(ORDER, queries=7), 2, "natural", 1).queries == 7
    poor = graded(replace(ORDER, budget=1.0), 2, "natural", 1)
    assert poor.queries == 0
    assert "more than the budget" in poor.problem


def test_scales_merge_neighbours_evenly():
    assert scale_name(coarsened(WEB, 3)) == "0 | 1 | 2-4"
    assert scale_name(coarsened((0.1, 0.1, 0.1, 0.7), 2)) == "0-2 | 3"
    assert coarsened(WEB, 5).tolist() == [0, 1, 2, 3, 4]
    with pytest.raises(InvalidInputError, match="not have more grades than the truth"):
        coarsened((0.5, 0.5), 3)
