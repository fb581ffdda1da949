from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from cleanrank.errors import CleanrankError, InvalidInputError
from cleanrank.metrics.significance import (
    bootstrap_interval,
    fisher_test,
    holm,
    mean_intervals,
    paired_differences,
    paired_t_test,
    quantiles,
)

SEVEN = np.array([1] * 7 + [0] * 3)


def all_signs(a, b, alternative):
    """The exact p-value by listing every exchange, in exact arithmetic."""
    d = [round((x - y) * 1000) for x, y in zip(a, b, strict=True)]
    seen = sum(d)
    sums = [sum(s * x for s, x in zip(signs, d, strict=True)) for signs in product((1, -1), repeat=len(d))]
    if alternative == "two-sided":
        hits = [abs(s) >= abs(seen) for s in sums]
    else:
        hits = [s >= seen if alternative == "greater" else s <= seen for s in sums]
    return float(np.mean(hits))


def test_seven_of_ten():
    assert fisher_test(SEVEN, 1 - SEVEN, permutations="exact") == 0.34375
    assert fisher_test(SEVEN, 1 - SEVEN, permutations="exact", alternative="greater") == 0.171875
    assert fisher_test(SEVEN, 1 - SEVEN) == pytest.approx(0.34375, abs=0.005)
    assert fisher_test(SEVEN, 1 - SEVEN, alternative="greater") == pytest.approx(0.171875, abs=0.005)
    assert fisher_test(1 - SEVEN, SEVEN, alternative="less") == pytest.approx(0.171875, abs=0.005)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=9))
def test_exact_is_the_list_of_all_exchanges(pairs):
    a, b = (np.array(x) / 5 for x in zip(*pairs, strict=True))
    for alternative in ("two-sided", "greater", "less"):
        expected = all_signs(a, b, alternative)
        assert fisher_test(a, b, permutations="exact", alternative=alternative) == pytest.approx(expected)


def test_values_that_differ_by_rounding_only_tie():
    a = np.array([0.3, 0.1, 0.7, 0.6])
    b = np.array([0.2, 0.0, 0.6, 0.5])  # every difference is .1 up to the last bits
    assert len(set((a - b).tolist())) > 1
    assert fisher_test(a, b, permutations="exact") == 2 / 16


def test_p_is_never_zero_unless_asked():
    a, b = np.ones(200), np.zeros(200)
    assert fisher_test(a, b, permutations=999) == 1 / 1000
    assert fisher_test(a, b, permutations=999, smoothing=False) == 0.0
    assert fisher_test(a, a) == 1.0


def test_smoothing_adds_one_to_both():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=50), rng.normal(size=50)
    share = fisher_test(a, b, permutations=5000, smoothing=False)
    assert fisher_test(a, b, permutations=5000) == pytest.approx((share * 5000 + 1) / 5001, abs=1e-15)


def test_seeds_matter_and_repeat():
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=300), rng.normal(size=300)
    seeds = [fisher_test(a, b, permutations=20_000, seed=s) for s in range(6)]
    assert len(set(seeds)) > 1
    assert np.ptp(seeds) < 0.03
    assert seeds[3] == fisher_test(a, b, permutations=20_000, seed=3)


def test_near_the_t_test_for_many_queries():
    rng = np.random.default_rng(2)
    a = rng.normal(size=1000)
    b = a + rng.normal(0.02, 0.3, size=1000)
    for alternative in ("two-sided", "greater", "less"):
        p = fisher_test(a, b, alternative=alternative)
        assert p == pytest.approx(stats.ttest_rel(a, b, alternative=alternative).pvalue, abs=0.01)


def test_the_size_of_values_does_not_matter():
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=80), rng.normal(0.2, 1, size=80)
    expected = fisher_test(a, b)
    for scale in (2.0**-60, 2.0**80):
        assert fisher_test(a * scale, b * scale) == expected


def test_skipped_queries_are_left_out():
    a, b = np.array([1.0, np.nan, 0.0, 1.0]), np.array([0.5, np.nan, 0.5, 0.0])
    assert fisher_test(a, b, permutations="exact") == fisher_test(
        a[[0, 2, 3]], b[[0, 2, 3]], permutations="exact"
    )


@pytest.mark.parametrize(
    ("a", "b", "options", "words"),
    [
        ([1.0, np.nan], [1.0, 0.0], {}, "at query 1"),
        ([1.0, np.inf], [1.0, 0.0], {}, "finite"),
        ([1.0], [1.0, 0.0], {}, "one value per query"),
        ([np.nan], [np.nan], {}, "at least one query"),
        ([1.0], [0.0], {"alternative": "bigger"}, "unknown alternative"),
        ([1.0], [0.0], {"permutations": 0}, "integer >= 1"),
        ([1.0], [0.0], {"permutations": "all"}, "'exact'"),
        (np.arange(25.0) + 1, np.zeros(25), {"permutations": "exact"}, "at most 24"),
    ],
)
def test_bad_input_is_refused(a, b, options, words):
    with pytest.raises(CleanrankError) as error:
        fisher_test(a, b, **options)
    assert words in str(error.value)


def test_paired_t_is_scipys():
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=30), rng.normal(0.3, 1, size=30)
    for alternative in ("two-sided", "greater", "less"):
        expected = stats.ttest_rel(a, b, alternative=alternative).pvalue
        assert paired_t_test(a, b, alternative) == pytest.approx(expected, rel=1e-12)
    assert paired_t_test(a, a) == 1.0
    assert paired_t_test(a + 1, a + 1 - 0.5, "greater") < 1e-12
    with pytest.raises(InvalidInputError, match="two queries"):
        paired_t_test([1.0], [0.0])


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03, 0.005]).tolist() == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.9, 0.8]).tolist() == [1.0, 1.0]
    assert holm([]).tolist() == []
    with pytest.raises(InvalidInputError, match="from 0 to 1"):
        holm([1.2])


@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_never_lowers_a_p_value_or_swaps_two(p):
    corrected = holm(p)
    assert (corrected >= np.asarray(p)).all()
    order = np.argsort(p, kind="stable")
    assert (np.diff(corrected[order]) >= 0).all()


def test_intervals_are_near_the_normal_ones():
    v = np.random.default_rng(5).normal(3, 2, size=2000)
    low, high = bootstrap_interval(v, seed=1)
    half = 1.96 * v.std() / np.sqrt(2000)
    assert low == pytest.approx(v.mean() - half, abs=0.01)
    assert high == pytest.approx(v.mean() + half, abs=0.01)
    assert bootstrap_interval(v, seed=1) == (low, high)
    assert bootstrap_interval(v, seed=2) != (low, high)
    wide = bootstrap_interval(v, level=0.99, seed=1)
    assert wide[0] < low < high < wide[1]


def test_weights_make_the_interval_of_a_ratio():
    rng = np.random.default_rng(6)
    w = rng.uniform(1, 9, 500)
    v = rng.normal(1, 1, 500)
    low, high = bootstrap_interval(v, w, seed=0)
    index = rng.integers(0, 500, (4000, 500))
    means = (v * w)[index].sum(1) / w[index].sum(1)
    assert (low, high) == pytest.approx(tuple(np.quantile(means, [0.025, 0.975])), abs=0.01)


def test_nan_values_are_left_out_of_intervals():
    v = np.array([0.1, np.nan, 0.5, 0.9])
    low, high = bootstrap_interval(v)
    assert 0.1 <= low < high <= 0.9
    assert np.isnan(bootstrap_interval([np.nan, np.nan])).all()
    both = mean_intervals(np.array([[0.5, 0.5], [np.nan, np.nan]]), np.ones((2, 2)))
    assert both[0].tolist() == pytest.approx([0.5, np.nan], nan_ok=True)


@pytest.mark.parametrize("level", [0.0, 1.0, 95])
def test_a_level_lies_between_0_and_1(level):
    with pytest.raises(InvalidInputError, match="level"):
        bootstrap_interval([1.0, 2.0], level=level)


def test_differences():
    assert paired_differences([1, 2], [0, 4]).tolist() == [1, -2]


@pytest.mark.parametrize("count", [0, -1, 1.5, None, "many", True, float("nan"), float("inf")])
def test_counts_are_whole_numbers_from_1_on(count):
    with pytest.raises(InvalidInputError, match="permutations must be an integer >= 1, or 'exact'"):
        fisher_test([1.0, 2.0], [0.0, 0.0], permutations=count)
    with pytest.raises(InvalidInputError, match="resamples must be an integer >= 1"):
        bootstrap_interval([1.0, 2.0], resamples=count)


def test_differences_that_overflow_and_negative_weights_are_refused():
    with pytest.raises(InvalidInputError, match="must both be finite"):
        fisher_test([1e308, 0.0], [-1e308, 0.0])
    with pytest.raises(InvalidInputError, match="weights must be finite and not negative"):
        bootstrap_interval([1.0, 2.0], [-1.0, 1.0])


def test_ends_of_intervals_are_the_quantiles_of_the_middle():
    means = np.random.default_rng(0).permutation(1001).astype(float)[:, None]
    low, high = quantiles(np.hstack([means, means + np.nan]), 0.9)
    assert (low[0], high[0]) == pytest.approx((50, 950))
    assert np.isnan([low[1], high[1]]).all()
