import numpy as np
import pytest
from benchmarks.cards.detection import detection_card

from cleanrank.errors import CleanrankError
from tests.report.grids import record

AP = "average precision"


def cells(means, **where):
    """A record per detector and seed; a mean may differ by seed."""
    found = []
    for method, by_seed in means.items():
        for seed, value in enumerate(np.atleast_1d(by_seed), start=1):
            cell = {"dataset": "A", "noise": "uniform", "rate": 0.2, "fold": 1, **where}
            one = record(**cell, method=method, seed=seed, values={AP: [value, np.nan]}, means={AP: value})
            found.append(one)
    return found


def test_every_setting_counts_once():
    records = cells({"a": [0.4, 0.6], "b": [0.1, 0.1]}) + cells(
        {"a": [0.9, 0.9], "b": [0.3, 0.3]}, dataset="B"
    )
    card = detection_card(records, [AP], reference="a", resamples=200)
    a, b = card.detectors
    assert a.means[AP].value == pytest.approx(0.7)
    assert b.means[AP].value == pytest.approx(0.2)
    assert b.ahead[AP].value == pytest.approx(0.5)
    assert a.ahead == {}
    # Draws of settings range from those of A to those of B alone.
    assert b.means[AP].low == pytest.approx(0.1)
    assert b.means[AP].high == pytest.approx(0.3)
    assert card.values[card.places[0], "a", AP] == pytest.approx(0.5)


def test_the_lead_is_paired():
    rng = np.random.default_rng(0)
    records = []
    for i in range(12):
        level = rng.random()
        records += cells({"a": [level + 0.1] * 2, "b": [level] * 2}, dataset=f"D{i}")
    ahead = detection_card(records, [AP], reference="a").detectors[1].ahead[AP]
    assert (ahead.low, ahead.high) == pytest.approx((0.1, 0.1))


def test_folds_are_averaged_and_gaps_do_not_count():
    records = cells({"a": [0.2], "b": [0.5]}, fold=1) + cells({"a": [0.4]}, fold=2)
    card = detection_card(records, [AP], resamples=50)
    a, b = card.detectors
    assert a.means[AP].value == pytest.approx(0.3)
    assert np.isnan(b.means[AP].value)
    assert (a.settings, b.settings) == (1, 0)


def test_an_unknown_reference_is_named():
    with pytest.raises(CleanrankError, match="unknown detector 'c'"):
        detection_card(cells({"a": [0.2]}), [AP], reference="c")
    with pytest.raises(CleanrankError, match="must hold cells of detection studies"):
        detection_card([], [AP])
