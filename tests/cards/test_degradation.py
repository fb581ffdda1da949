import numpy as np
import pytest
from benchmarks.cards.degradation import (
    SCOPES,
    Curves,
    drawn_weights,
    explained,
    joined,
    knee,
    points_of,
    robustness,
)

from cleanrank.report.collapse import falling_r2
from cleanrank.report.summaries import summarise
from tests.report.grids import record

RATES = (0.1, 0.2, 0.3, 0.4, 0.5)
# Of a data set: how many wrong pairs a rate of each kind of noise makes.
PAIRS = {"a": {"uniform": 1.0, "near": 0.5}, "b": {"uniform": 1.6, "near": 0.8}}


def made(datasets=("a", "b"), kinds=("uniform", "near"), loss="pnoise", queries=40):
    """Two rankers and random order; what is lost follows one of the axes exactly, up to query noise."""
    records = []
    for place, dataset in enumerate(datasets):
        hard = np.random.default_rng(place).uniform(-0.1, 0.1, queries)
        for method, clean, slope in (("good", 0.7, 1.0), ("weak", 0.5, 1.5), ("random", 0.2, 0.0)):
            levels = [("none", 0.0), *((kind, rate) for kind in kinds for rate in RATES)]
            for noise, rate in levels:
                pnoise = PAIRS[dataset][noise] * rate if rate else 0.0
                x = pnoise if loss == "pnoise" else rate
                values = 0.2 + (clean - 0.2) * (1 - slope * min(x, 0.6)) + hard
                chosen = {"train_dnoise": rate, "train_pnoise": pnoise} if rate else {}
                records.append(record(dataset, 1, noise, rate, method, 1, {"map": values}, chosen=chosen))
    return records


def points(draws=50, **options):
    return points_of(summarise(made(**options), measures=["map"]), "map", draws=draws)


def test_shares_are_of_the_gain_over_random():
    found = points(draws=3)
    assert found.datasets == ["a", "b"]
    assert found.methods == ["good", "weak"]
    one = found.of(dataset="b", method="weak", noise="near", rate=0.3)
    assert one.shares[0].tolist() == pytest.approx([1 - 1.5 * 0.24])
    assert (one.dnoise.tolist(), one.pnoise.tolist()) == ([0.3], [pytest.approx(0.24)])
    # every query has lost as much: whichever are drawn
    np.testing.assert_allclose(found.shares, np.tile(found.shares[0], (4, 1)))
    assert (found.means[1:] != found.means[0]).any()


@pytest.mark.parametrize("axis", ["dnoise", "pnoise"])
def test_the_axis_that_the_loss_follows_explains_all_of_it(axis):
    for scope in list(SCOPES)[1:]:
        found = explained(points(loss=axis), scope)
        best, other = (found.pnoise, found.dnoise) if axis == "pnoise" else (found.dnoise, found.pnoise)
        assert best.value == pytest.approx(1, abs=1e-9)
        assert other.value < 0.98
        assert (found.gain.value > 0) == (axis == "pnoise")
        assert found.gain.low <= found.gain.value <= found.gain.high or scope == list(SCOPES)[2]
    everything = explained(points(loss=axis), next(iter(SCOPES)))
    assert everything.pnoise.value < 0.98  # the rankers fall apart


def test_one_curve_is_the_plain_r2_and_whole_weights_are_copies():
    rng = np.random.default_rng(0)
    x, y, group = rng.random(40).round(1), rng.random(40), np.zeros(40, dtype=int)
    curves = Curves.of(x, group)
    assert curves.r2(y, np.ones(40)) == pytest.approx(falling_r2(x, y))
    counts = rng.integers(0, 4, 40)
    copies = falling_r2(np.repeat(x, counts), np.repeat(y, counts))
    assert curves.r2(y, counts.astype(float)) == pytest.approx(copies)


def test_weights_are_products_of_draws():
    found = points(draws=400)
    weights = drawn_weights(found, np.random.default_rng(1))
    assert (weights[0] == 1).all()
    np.testing.assert_allclose(weights[1:].mean(axis=0), 1, atol=0.35)
    a, b = ((found.dataset == name) & (found.method == "good") for name in ("a", "b"))
    np.testing.assert_array_equal(weights[1:, a].sum(axis=1) > 0, weights[1:, a].max(axis=1) > 0)
    both_sets = weights[1:, found.method == "good"].sum(axis=1)
    assert set(np.unique(both_sets)) <= {0, 20, 40}  # as often as the ranker was drawn
    assert not (weights[:, a] == weights[:, b]).all()


def test_knees_are_where_the_falling_curve_passes():
    x = np.array([0.3, 0.1, 0.2])
    assert knee(x, np.array([0.4, 0.9, 0.8]), 0.9) == pytest.approx(0.1)
    assert knee(x, np.array([0.4, 0.9, 0.8]), 0.5) == pytest.approx(0.275)
    assert knee(x, np.array([0.8, 0.9, 0.85]), 0.5) == float("inf")
    assert knee(x, np.array([0.4, 1.3, 0.8]), 0.9) < 0.2  # a rise is evened out


def test_the_most_robust_ranker_comes_first_with_its_lead():
    rows = robustness(points(), "uniform", "weak")
    assert [row.method for row in rows] == ["good", "weak"]
    kept = [np.mean([1 - min(PAIRS[d]["uniform"] * r, 0.6) for r in RATES]) for d in ("a", "b")]
    assert rows[0].kept.value == pytest.approx(np.mean(kept))
    assert rows[0].more is not None
    assert rows[0].more.value == pytest.approx(rows[0].kept.value - rows[1].kept.value)
    assert rows[1].more is None


def test_points_of_two_grids_are_joined_once():
    both = joined([points(kinds=("uniform",)), points(kinds=("uniform", "near"))])
    assert len(both.rate) == len(points().rate)
    again = joined([points()])
    np.testing.assert_array_equal(again.shares, points().shares)
