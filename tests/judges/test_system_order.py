"""Rank correlations against slow versions and scipy; swaps, bias and intervals."""

import itertools
import json

import numpy as np
import pytest
from scipy import stats

from cleanrank.errors import InvalidInputError
from cleanrank.judges.system_order import jackknife, kendall_tau, system_order, t_interval, tau_ap
from cleanrank.metrics.significance import paired_t_test, paired_t_tests

RNG = np.random.default_rng(15)


def slow_tau_ap(gold, judge):
    """Yilmaz et al. 2008, one system after the other in the order of the judge; no ties."""
    order = np.argsort(-judge)
    shares = [np.mean([gold[above] > gold[order[i]] for above in order[:i]]) for i in range(1, len(order))]
    return 2 * np.mean(shares) - 1


@pytest.mark.parametrize("size", [3, 5, 12])
def test_tau_ap_is_the_mean_share_of_systems_rightly_above(size):
    gold, judge = RNG.normal(size=(2, 20, size))
    expected = [slow_tau_ap(a, b) for a, b in zip(gold, judge, strict=True)]
    assert tau_ap(gold, judge) == pytest.approx(expected)
    assert tau_ap(gold, gold) == pytest.approx(1)
    assert tau_ap(gold, -gold) == pytest.approx(-1)


def test_tau_ap_minds_the_top():
    gold = np.array([[6.0, 5.0, 4.0, 3.0, 2.0, 1.0]])
    top, bottom = gold[:, [1, 0, 2, 3, 4, 5]], gold[:, [0, 1, 2, 3, 5, 4]]
    assert kendall_tau(gold, top) == pytest.approx(kendall_tau(gold, bottom))
    assert tau_ap(gold, top) < tau_ap(gold, bottom)


def test_systems_that_all_tie_have_no_order():
    same = np.ones((1, 4))
    assert tau_ap(RNG.normal(size=(1, 4)), same) == pytest.approx(0)
    assert np.isnan(kendall_tau(same, RNG.normal(size=(1, 4)))).all()


def test_kendalls_tau_is_that_of_scipy_with_ties():
    gold, judge = RNG.integers(0, 4, (2, 50, 8)).astype(float)
    expected = [stats.kendalltau(a, b).statistic for a, b in zip(gold, judge, strict=True)]
    assert kendall_tau(gold, judge) == pytest.approx(expected, nan_ok=True)


def test_t_tests_of_many_pairs_are_those_of_one():
    a, b = RNG.normal(size=(2, 30, 12))
    b[0], b[1] = a[0], a[1] - 0.5
    assert paired_t_tests(a, b) == pytest.approx(
        [paired_t_test(x, y) for x, y in zip(a, b, strict=True)], abs=1e-12
    )
    with pytest.raises(InvalidInputError, match="at least two queries"):
        paired_t_tests(a[:, :1], b[:, :1])


def test_swaps_are_counted_as_one_by_one():
    truth = np.linspace(0, 1, 8)[:, None]
    gold = truth + 0.3 * RNG.normal(size=(8, 25))
    judge = gold + 0.3 * RNG.normal(size=(8, 1)) + 0.3 * RNG.normal(size=(8, 25))
    names = [f"s{i}" for i in range(8)]
    order = system_order(gold, judge, names)
    expected = dict.fromkeys(("significant", "kept", "reversed", "wrong", "invented"), 0)
    for i, j in itertools.combinations(range(8), 2):
        by_gold, by_judge = gold[i].mean() - gold[j].mean(), judge[i].mean() - judge[j].mean()
        sure, sure_too = paired_t_test(gold[i], gold[j]) < 0.05, paired_t_test(judge[i], judge[j]) < 0.05
        same = by_gold * by_judge > 0
        expected["significant"] += sure
        expected["kept"] += sure and sure_too and same
        expected["reversed"] += sure and not same
        expected["wrong"] += sure and sure_too and not same
        expected["invented"] += sure_too and not sure
    assert {name: getattr(order, name) for name in expected} == expected
    assert expected["reversed"] == len(order.swaps) > 0
    for swap in order.swaps:
        i, j = names.index(swap.better), names.index(swap.worse)
        assert swap.gold == pytest.approx(gold[i].mean() - gold[j].mean())
        assert swap.gold > 0 > swap.judge
    assert [s.gold for s in order.swaps] == sorted((s.gold for s in order.swaps), reverse=True)


def test_a_lenient_judge_keeps_the_order_and_shifts_the_levels():
    gold = RNG.random((12, 1)) + 0.1 * RNG.normal(size=(12, 40))
    order = system_order(gold, gold + 0.2, [f"s{i}" for i in range(12)])
    assert (order.tau.value, order.tau_ap.value, order.top_tau.value) == (1, 1, 1)
    assert order.bias.value == pytest.approx(0.2)
    assert order.biases == pytest.approx(0.2)
    assert (order.reversed, order.inside) == (0, 0)
    assert order.significant == order.kept > 0
    json.dumps(order.to_json(), allow_nan=False)


def test_queries_that_one_side_leaves_out_count_for_neither():
    gold, judge = RNG.random((2, 5, 9))
    holes = judge.copy()
    holes[2, 4] = np.nan
    kept = np.arange(9) != 4
    with_holes = system_order(gold, holes, "abcde")
    without = system_order(gold[:, kept], judge[:, kept], "abcde")
    assert json.dumps(with_holes.to_json()) == json.dumps(without.to_json())


def test_intervals_need_queries():
    gold, judge = RNG.random((2, 5, 1))
    order = system_order(gold, judge, "abcde")
    assert np.isnan([order.bias.low, order.tau.low, order.inside]).all()
    assert order.significant == 0
    assert np.isfinite(order.tau.value)
    assert np.isnan(jackknife(kendall_tau, gold[:2], judge[:2]).value)
    with pytest.raises(InvalidInputError, match="a query that both"):
        system_order(np.full((2, 1), np.nan), np.ones((2, 1)), "ab")
    with pytest.raises(InvalidInputError, match=r"\(systems, queries\)"):
        system_order(gold, judge, "ab")


def test_the_interval_of_a_mean_is_students():
    values = RNG.normal(size=7)
    span = t_interval(values, 0.9)
    assert (span.low, span.high) == pytest.approx(stats.t.interval(0.9, 6, values.mean(), stats.sem(values)))


def test_intervals_of_tau_hold_the_tau_of_the_population():
    """Systems apart enough for a stable order; 60 populations of 400 queries, samples of 40."""
    held = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        quality = rng.normal(size=(20, 1))
        gold = quality + rng.normal(size=(20, 400))
        judge = gold + 0.7 * rng.normal(size=(20, 1)) + rng.normal(size=(20, 400))
        truth = kendall_tau(gold.mean(axis=1)[None], judge.mean(axis=1)[None])[0]
        sample = rng.choice(400, 40, replace=False)
        span = jackknife(kendall_tau, gold[:, sample], judge[:, sample])
        held.append(span.low <= truth <= span.high)
    assert np.mean(held) >= 0.85
