import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanrank.errors import CleanrankError
from cleanrank.report.collapse import collapse, falling_r2, kept
from cleanrank.report.summaries import summarise

from .grids import record

FAST = {"resamples": 50, "permutations": 100}


def shares(by, seed=0, noise=0.02):
    """What six data sets keep when the loss follows the axis ``by``; pNoise / dNoise differs between them."""
    rng = np.random.default_rng(seed)
    records = []
    for i, factor in enumerate((0.5, 0.8, 1.1, 1.5, 2.0, 2.5)):
        for rate in (0.0, 0.05, 0.1, 0.15, 0.2):
            x = rate * factor if by == "pnoise" else rate
            values = 0.8 * (1 - x) + rng.normal(scale=noise, size=40)
            chosen = {"train_dnoise": rate, "train_pnoise": rate * factor} if rate else {}
            noise_name = "uniform" if rate else "none"
            records.append(
                record(f"d{i}", noise=noise_name, rate=rate, values={"map": values}, chosen=chosen)
            )
    return kept(summarise(records, **FAST), "map", "m")


@pytest.mark.parametrize("by", ["pnoise", "dnoise"])
def test_the_axis_that_matters_explains_the_loss(by):
    found = collapse(shares(by), resamples=200)
    right, wrong = (found.pnoise, found.dnoise) if by == "pnoise" else (found.dnoise, found.pnoise)
    assert right.r2.value > 0.95
    assert right.spearman.value > 0.95
    assert wrong.r2.value < right.r2.value - 0.1
    assert 0.9 < right.r2.low < right.r2.high <= 1
    assert (found.gain.value > 0) == (by == "pnoise")
    assert (found.points, found.datasets) == (24, 6)
    assert found.gain.value == pytest.approx(found.pnoise.r2.value - found.dnoise.r2.value)
    if by == "pnoise":
        assert found.gain.low > 0


def test_same_seed_same_interval():
    points = shares("pnoise")
    assert collapse(points, resamples=50, seed=3) == collapse(points, resamples=50, seed=3)
    assert collapse(points, resamples=50, seed=3) != collapse(points, resamples=50, seed=4)


def test_falling_r2_by_hand():
    # 3 and 5 break the fall: the best falling curve is 4, 4, 0
    x, y = np.array([1.0, 2.0, 3.0]), np.array([3.0, 5.0, 0.0])
    total = ((y - y.mean()) ** 2).sum()
    assert falling_r2(x, y) == pytest.approx(1 - 2 / total)
    # one place, two values: no curve tells them apart
    assert falling_r2(np.array([1.0, 1.0, 2.0, 2.0]), np.array([1.0, 3.0, 0.0, 2.0])) == pytest.approx(
        1 - 4 / 5
    )
    assert falling_r2(np.array([1.0, 2.0]), np.array([0.0, 1.0])) == 0.0


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=3, max_size=12))
def test_falling_r2_is_at_least_that_of_a_falling_straight_line(pairs):
    x, y = np.array(pairs).T
    if np.ptp(x) < 1e-3 or np.ptp(y) < 1e-3:
        return
    slope, at = np.polyfit(x, y, 1)
    line = 1 - ((y - slope * x - at) ** 2).sum() / ((y - y.mean()) ** 2).sum() if slope < 0 else 0.0
    found = falling_r2(x, y)
    assert line - 1e-9 <= found <= 1 + 1e-9


def test_one_data_set_is_not_enough():
    with pytest.raises(CleanrankError, match="two data sets"):
        collapse([k for k in shares("pnoise") if k.dataset == "d0"])
