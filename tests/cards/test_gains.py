import numpy as np
import pytest
from benchmarks.cards.gains import Gain, crossed_interval, gain, gains, verdict

from cleanrank.errors import CleanrankError


@pytest.fixture
def base():
    return np.random.default_rng(1).random((5, 200))


@pytest.mark.parametrize(
    ("low", "high", "p", "word"),
    [
        (0.01, 0.02, 0.04, "gains"),
        (-0.02, -0.01, 0.04, "loses"),
        (0.01, 0.02, 0.05, "no clear gain"),
        (-0.01, 0.02, 1e-5, "no clear gain"),
        (0.0, 0.02, 1e-5, "no clear gain"),
        (-0.02, 0.0, 1e-5, "no clear gain"),
        (float("nan"), float("nan"), 1e-5, "no clear gain"),
        (0.01, 0.02, float("nan"), "no clear gain"),
    ],
)
def test_interval_and_p_must_agree(low, high, p, word):
    assert verdict(low, high, p) == word


def test_seeds_that_disagree_are_no_clear_gain(base):
    # Every query gains with three seeds and loses with two: sure over queries, not over seeds.
    by_seed = np.array([0.1, 0.1, 0.1, -0.05, -0.05])
    found = gain(base + by_seed[:, None], base)
    assert found.p < 0.001
    assert (found.mean, found.won, found.seeds) == (pytest.approx(0.04), 3, 5)
    assert found.low < 0 < found.high
    assert found.verdict == "no clear gain"


def test_the_same_gain_with_every_seed_is_clear(base):
    found = gain(base + 0.04, base)
    assert (found.low, found.high) == (pytest.approx(0.04), pytest.approx(0.04))
    assert found.verdict == "gains"
    assert gain(base, base + 0.04).verdict == "loses"


def test_nothing_gained_over_itself(base):
    found = gain(base, base)
    assert (found.mean, found.low, found.high, found.p) == (0.0, 0.0, 0.0, 1.0)
    assert found.verdict == "no clear gain"


def test_interval_knows_both_variances():
    # Of rows r and columns c, independent: the variance of the mean is var(r) / n + var(c) / m.
    rng = np.random.default_rng(3)
    rows, columns = rng.normal(0, 0.3, 40), rng.normal(0, 1.0, 300)
    low, high = crossed_interval(rows[:, None] + columns, resamples=4000)
    expected = np.sqrt(rows.var() / 40 + columns.var() / 300)
    assert (high - low) / 3.92 == pytest.approx(expected, rel=0.06)


def test_p_is_corrected_over_the_table(base):
    rng = np.random.default_rng(5)
    values = {"a": base} | {n: base + rng.normal(0.002, 0.02, base.shape) for n in "bcd"}
    found = gains(values, {n: ("a", n, "missing") for n in values})
    assert set(found) == {("b", "a"), ("c", "a"), ("d", "a")}
    smallest = min(found.values(), key=lambda g: g.p)
    assert smallest.p_holm == pytest.approx(min(1.0, 3 * smallest.p))
    assert all(g.p_holm >= g.p for g in found.values())


def test_no_comparison_at_all(base):
    assert gains({"a": base}, {"a": ("a",)}) == {}


def test_tables_of_other_shapes_are_refused(base):
    with pytest.raises(CleanrankError, match="same seeds"):
        gain(base, base[:4])
    with pytest.raises(CleanrankError, match="seeds and queries"):
        crossed_interval(base[0])


def test_the_verdict_reads_the_corrected_p():
    assert Gain(0.1, 0.05, 0.15, 5, 5, 0.01, 0.2).verdict == "no clear gain"
