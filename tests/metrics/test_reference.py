"""The NumPy path against textbook definitions and all orders of tied documents."""

import numpy as np
import pytest

from cleanrank.metrics import _reference
from cleanrank.metrics.measure import Measure

from .cases import brute, tie_orders

NAMES = ("ndcg", "dcg", "map", "mrr", "err", "precision", "recall", "auc", "pairacc")


def value(m, y, s, gains=None):
    found, _ = _reference.query_measures(
        (m,), np.asarray(y), np.asarray(s, float), np.array([0, len(y)]), gains
    )
    return found[0, 0]


@pytest.mark.parametrize(
    ("name", "k"),
    [(n, k) for n in NAMES for k in (None, 1, 3, 4, 9) if k is None or n not in ("auc", "pairacc")],
)
def test_ties_average_and_worst_over_all_orders(name, k):
    rng = np.random.default_rng(k or 0)
    for _ in range(12):
        n = int(rng.integers(2, 8))
        y, s = rng.integers(0, 4, n), rng.integers(0, 3, n).astype(float)
        y[0], y[1] = 0, rng.integers(1, 4)
        every = [brute(name, y, k, order) for order in tie_orders(s)]
        stable = brute(name, y, k, np.argsort(-s, kind="stable"))
        assert value(Measure(name, k, ties="average"), y, s) == pytest.approx(np.mean(every), abs=1e-12)
        assert value(Measure(name, k, ties="worst"), y, s) == pytest.approx(np.min(every), abs=1e-12)
        assert value(Measure(name, k, ties="stable"), y, s) == pytest.approx(stable, abs=1e-12)


def test_by_hand():
    y, s = [3, 2, 0, 1], [0.9, 0.7, 0.8, 0.1]  # ranked grades 3, 0, 2, 1
    dcg = 7 + 0 + 3 / 2 + 1 / np.log2(5)
    ideal = 7 + 3 / np.log2(3) + 1 / 2
    assert value(Measure("dcg"), y, s) == pytest.approx(dcg)
    assert value(Measure("ndcg"), y, s) == pytest.approx(dcg / ideal)
    assert value(Measure.parse("ndcg@4:letor"), y, s) == pytest.approx(
        (7 + 0 + 3 / np.log2(3) + 1 / 2) / (7 + 3 + 1 / np.log2(3))
    )
    assert value(Measure("map"), y, s) == pytest.approx((1 + 2 / 3 + 3 / 4) / 3)
    assert value(Measure("map", 3), y, s) == pytest.approx((1 + 2 / 3) / 3)
    assert value(Measure("err", 2, max_grade=3), y, s) == pytest.approx(7 / 8)
    assert value(Measure("precision", 5), y, s) == pytest.approx(3 / 5)
    assert value(Measure("recall", 2), y, s) == pytest.approx(1 / 3)
    assert value(Measure("auc"), y, s) == pytest.approx(1 / 3)
    assert value(Measure("auc", weighting="micro"), y, s) == pytest.approx(1 / 16)
    assert value(Measure("pairacc"), y, s) == pytest.approx(4 / 6)
    assert value(Measure("tau"), y, s) == pytest.approx((4 - 2) / 6)


def test_gains_stand_in_for_grades_in_dcg_alone():
    y, s, gains = [1, 0, 1], [3.0, 2.0, 1.0], np.array([0.5, 4.0, 0.0])
    assert value(Measure("dcg"), y, s, gains) == pytest.approx(0.5 + 4 / np.log2(3))
    assert value(Measure("mrr"), y, s, gains) == 1.0
