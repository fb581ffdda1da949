"""Means over queries from whole gold queries: against ppi-python, by simulation, and at the edges."""

import numpy as np
import pytest
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

from cleanrank.judges.queries import TARGETS, gold_means, powered_means


def values(rng, n, correlation=0.8, systems=3):
    common = rng.normal(size=(systems, n))
    gold = 0.5 + 0.1 * common
    judge = 0.6 + 0.1 * (correlation * common + np.sqrt(1 - correlation**2) * rng.normal(size=(systems, n)))
    return gold, judge


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("correlation", [-0.5, 0.1, 0.8, 1.0])
def test_queries_like_these_agree_with_ppi_python(seed, correlation):
    gold, judge = values(np.random.default_rng(seed), 60, correlation)
    means = powered_means(gold[:, :20], judge[:, :20], judge[:, 20:], TARGETS[1])
    for s in range(3):
        labelled = gold[s, :20], judge[s, :20], judge[s, 20:]
        assert means.mean[s] == pytest.approx(ppi_mean_pointestimate(*labelled)[0], abs=1e-9)
        # Its standard error is that of large samples: ours without the corrections for few queries.
        low, high = ppi_mean_ci(*labelled, alpha=0.05)
        residuals = gold[s, :20] - means.power[s] * judge[s, :20]
        plug_in = np.sqrt(residuals.var() / 20 + means.power[s] ** 2 * judge[s, 20:].var() / 40)
        assert (high - low)[0] / 2 / 1.959963984540054 == pytest.approx(plug_in, abs=1e-9)
        assert means.standard_error[s] >= plug_in


def test_these_queries_are_estimated_by_the_regression_of_gold_on_judge():
    gold, judge = values(np.random.default_rng(0), 30, systems=1)
    means = powered_means(gold[:, :12], judge[:, :12], judge[:, 12:], TARGETS[0])
    slope, intercept = np.polyfit(judge[0, :12], gold[0, :12], 1)
    assert means.power[0] == pytest.approx(slope)
    assert means.mean[0] == pytest.approx(intercept + slope * judge.mean())


def test_gold_on_every_query_is_the_gold_mean_of_these_queries():
    gold, judge = values(np.random.default_rng(1), 10)
    means = powered_means(gold, judge, np.empty((3, 0)), TARGETS[0])
    assert means.mean == pytest.approx(gold.mean(axis=1))
    assert (means.standard_error == 0).all()
    sample = powered_means(gold, judge, np.empty((3, 0)), TARGETS[1])
    assert sample.standard_error == pytest.approx(gold.std(axis=1, ddof=1) / np.sqrt(10))


def test_a_judge_that_says_nothing_or_the_opposite_is_not_used():
    gold, judge = values(np.random.default_rng(2), 40, correlation=-0.9)
    for given in (judge, np.ones_like(judge)):
        means = powered_means(gold[:, :20], given[:, :20], given[:, 20:], TARGETS[0])
        assert (means.power == 0).all()
        assert means.mean == pytest.approx(gold[:, :20].mean(axis=1))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("n", [10, 15])
def test_intervals_hold_the_truth(target, n):
    from scipy import stats

    rng = np.random.default_rng(3)
    repetitions, N = 4000, 40
    gold, judge = values(rng, N, systems=repetitions)
    truth = gold.mean(axis=1) if target == TARGETS[0] else 0.5
    for means in (
        powered_means(gold[:, :n], judge[:, :n], judge[:, n:], target),
        gold_means(gold[:, :n], N - n, target),
    ):
        reach = stats.t.ppf(0.975, means.df) * means.standard_error
        assert 0.935 < (np.abs(means.mean - truth) <= reach).mean() < 0.965
