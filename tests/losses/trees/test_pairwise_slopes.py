import numpy as np
import pytest

from cleanrank.errors import InvalidInputError
from cleanrank.losses.binary import LOSSES, gce, sce, taylor
from cleanrank.losses.robust import clipped, label_smoothing, peer, symmetrize
from cleanrank.losses.trees.pairwise import (
    BINS,
    LEAST,
    REACH,
    STEP,
    WIDTH,
    SlopeReading,
    read_slope,
    stacked,
    strict_slope,
    tied_slope,
)


def read_at(reading: SlopeReading, d: float) -> float:
    """The slope at d, read as the module describes it."""
    if reading.is_polynomial:
        return float(np.polynomial.polynomial.polyval(1 / (1 + np.exp(d)), reading.polynomial))
    place = (d + REACH) / WIDTH
    k = int(np.clip(np.floor(place), -1, BINS))
    row, f = k + 1, place - max(k, 0)
    while len(reading.cuts) and f >= reading.cuts[row, 0]:
        row = int(reading.cuts[row, 1])
    a, b, c, _ = reading.table[row]
    return float(a + f * (b + f * c))


@pytest.mark.parametrize(
    ("loss", "coefficients"),
    [
        (LOSSES["logistic"], [0, -1, 0, 0, 0]),
        (LOSSES["sigmoid"], [0, -1, 1, 0, 0]),
        (LOSSES["unhinged"], [-1, 0, 0, 0, 0]),
        (peer("logistic", 0.2), [-0.1, -0.8, 0, 0, 0]),
        (label_smoothing("logistic", 0.2), [0.1, -1, 0, 0, 0]),
        (taylor(2), [0, -1, 0, 1, 0]),
        (sce(1.0, 0.25), [0, -2, 1, 0, 0]),
    ],
)
def test_slopes_that_are_polynomials_of_a_probability(loss: object, coefficients: list[float]) -> None:
    found = strict_slope(loss, both=False)
    assert found.is_polynomial
    np.testing.assert_allclose(found.polynomial, coefficients, atol=1e-9)


@pytest.mark.parametrize(
    "loss",
    [LOSSES[n] for n in ("hinge", "squared_hinge", "l1", "ramp", "squared", "exponential")]
    + [gce(0.5), taylor(6), symmetrize("hinge"), clipped("logistic", 2.0), clipped(peer("hinge", 0.2), 1.7)],
    ids=lambda loss: loss.name,
)
def test_tables_follow_the_formulas(loss: object) -> None:
    found = strict_slope(loss, both=False)
    assert not found.is_polynomial
    kinks = np.array([*loss.kinks, 0.0])
    near = np.concatenate([kinks - 1e-4, kinks + 1e-4])
    for d in np.concatenate([np.random.default_rng(0).uniform(-20, 20, 400), near, [-300.0, 300.0]]):
        expected = float(loss.one.slope(np.array(d)))
        assert read_at(found, d) == pytest.approx(expected, rel=1e-6, abs=1e-7), d


def test_two_kinks_in_one_bin() -> None:
    found = read_slope(lambda d: 1.0 * (d > 0.301) + 2.0 * (d > 0.305), [0.301, 0.305])
    assert [round(read_at(found, d), 9) for d in (0.3005, 0.303, 0.306)] == [0.0, 1.0, 3.0]


def test_hessians_of_a_table_are_positive_and_bound_the_step() -> None:
    for name in ("hinge", "ramp", "exponential", "squared"):
        table = strict_slope(LOSSES[name], both=False).table[1 : BINS + 1]
        assert (table[:, 3] >= LEAST).all()
        for f in (0.0, 0.3, 0.99):
            slope = table[:, 0] + f * (table[:, 1] + f * table[:, 2])
            assert (np.abs(slope) <= STEP * table[:, 3] * (1 + 1e-9)).all()
    squared = strict_slope(LOSSES["squared"], both=False).table[int((1 + REACH) / WIDTH) + 1]
    assert squared[3] == pytest.approx(2.0)  # the curvature itself where it is the largest


def test_both_orders_and_ties() -> None:
    loss = peer("exponential", 0.3, prior=0.2)
    both, tied = strict_slope(loss, both=True), tied_slope(loss)
    for d in (-2.3, 0.4, 1.9):
        one, zero = loss.gradient(d, 1), loss.gradient(d, 0)
        assert read_at(both, d) == pytest.approx(float(one - loss.gradient(-d, 0)), rel=1e-6)
        assert read_at(tied, d) == pytest.approx(float(zero - loss.gradient(-d, 0)), rel=1e-6)
        assert read_at(tied, -d) == pytest.approx(-read_at(tied, d), rel=1e-6)


def test_a_slope_that_is_not_finite_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="slope of a loss must be finite for logits up to 64"):
        read_slope(lambda d: np.where(d > 50, np.nan, d))


def test_stacked_tables_keep_their_kinks() -> None:
    first, second = (
        strict_slope(LOSSES["hinge"], both=False),
        strict_slope(clipped("logistic", 2.0), both=False),
    )
    both = stacked(first, second)
    shift = len(first.table)
    np.testing.assert_array_equal(both.table[:shift], first.table)
    cut = int(np.flatnonzero(second.cuts[:, 0] < 1)[0])
    assert both.cuts[shift + cut].tolist() == [second.cuts[cut, 0], second.cuts[cut, 1] + shift]
    assert (both.cuts[:shift, 0] > 1).all()
    assert not len(stacked(first, first).cuts)
