from itertools import pairwise

import numpy as np
import pytest

from cleanrank.losses.binary import LOSSES
from cleanrank.losses.trees import _pair_kernels
from cleanrank.losses.trees.lambdarank import first_order
from cleanrank.losses.trees.pairwise import (
    LEAST,
    NO_PAIRS,
    STEP,
    SlopeReading,
    falling_order,
    read_slope,
    stacked,
)

INDPTR = np.array([0, 6, 7, 20], dtype=np.int64)
GAINS = np.random.default_rng(0).integers(0, 3, 20).astype(np.float64)
SCORES = np.random.default_rng(1).normal(0, 3, 20)


def bent(slope: object) -> SlopeReading:
    """A table of a slope that would else be a polynomial: a step far outside makes it none."""
    found = read_slope(lambda d: slope(d) + 1e-3 * (d > 60))
    assert not found.is_polynomial
    return found


def all_pairs(reading: SlopeReading, tied: SlopeReading = NO_PAIRS) -> tuple[np.ndarray, np.ndarray]:
    order, lower = falling_order(GAINS, INDPTR)
    grad, hess = np.empty(20, np.float32), np.empty(20, np.float32)
    both = reading if tied is NO_PAIRS or reading.is_polynomial else stacked(reading, tied)
    tied_row = 0 if both is reading else len(reading.table)
    _pair_kernels.pair_gradients(
        SCORES, INDPTR, np.array([0, 2, 3]), order, lower, 1.0, np.ones(3), reading.polynomial,
        tied.polynomial, both.table, both.cuts, tied_row, grad, hess,
    )  # fmt: skip
    return grad, hess


def top_pairs(reading: SlopeReading, level: int, swap: bool, norm: bool) -> tuple[np.ndarray, np.ndarray]:
    grad, hess = np.empty(20, np.float32), np.empty(20, np.float32)
    _pair_kernels.top_pair_gradients(
        SCORES, GAINS, INDPTR, np.array([0, 2, 3]), first_order(INDPTR), 1 / np.log2(np.arange(2, 22)),
        np.ones(3), 1.0, norm, swap, level, reading.polynomial, reading.table, reading.cuts, grad, hess,
    )  # fmt: skip
    return grad, hess


@pytest.mark.parametrize("name", ["logistic", "sigmoid"])
def test_polynomial_and_table_agree(name: str) -> None:
    slope = LOSSES[name].one.slope
    polynomial, table = read_slope(slope), bent(slope)
    for read in (all_pairs, lambda r: all_pairs(r, r), lambda r: top_pairs(r, 4, True, True)):
        (grad, hess), (table_grad, table_hess) = read(polynomial), read(table)
        np.testing.assert_allclose(table_grad, grad, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(table_hess, hess, rtol=0.05)  # one hessian a bin


def test_all_pairs_are_top_pairs_of_every_rank() -> None:
    reading = read_slope(LOSSES["squared"].one.slope)
    for a, b in zip(all_pairs(reading), top_pairs(reading, 20, False, False), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5)


def test_hessians_pair_by_pair() -> None:
    expected = np.zeros(20)
    for first, last in pairwise(INDPTR):
        for i in range(first, last):
            for j in range(first, last):
                if GAINS[i] > GAINS[j]:
                    d = SCORES[i] - SCORES[j]
                    loss = LOSSES["sigmoid"]
                    h = max(loss.curvature(d, 1), abs(loss.gradient(d, 1)) / STEP, LEAST)
                    expected[[i, j]] += h
    np.testing.assert_allclose(all_pairs(read_slope(LOSSES["sigmoid"].one.slope))[1], expected, rtol=1e-5)


def test_a_kink_inside_a_bin_parts_the_pairs() -> None:
    kink = float(np.sort(SCORES[:6])[-1] - np.sort(SCORES[:6])[-2]) + 1e-5
    steps = read_slope(lambda d: np.where(d < kink, -1.0, 0.0), [kink])
    assert len(steps.cuts)
    grad, _ = all_pairs(steps)
    expected = np.zeros(20)
    for first, last in pairwise(INDPTR):
        for i in range(first, last):
            for j in range(first, last):
                if GAINS[i] > GAINS[j] and SCORES[i] - SCORES[j] < kink:
                    expected[i] -= 1
                    expected[j] += 1
    np.testing.assert_allclose(grad, expected, atol=1e-6)
