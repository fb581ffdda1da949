"""How compiled code reads the slope of any loss: a polynomial of the probability, or a table of parabolas.

Kernels cannot call the Python formulas of a loss, so its slope psi'(d) is sampled once. With
u = 1 / (1 + exp(d)), the probability of the wrong order, the slopes of the logistic and sigmoid losses, their
peers, smoothings and short Taylor series are polynomials of u of degree 4 at the most; when one fits to
1e-10 the kernels use it, which needs no table and runs on whole vectors. Any other slope becomes parabolas
on bins of width 1/64 over [-64, 64], cut at the kinks, and straight lines beyond. Both follow the formulas to
about 1e-8; a kink itself takes the slope on its right. Hessians come along: max(psi'', |psi'| / STEP, LEAST).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cleanrank.errors import invalid
from cleanrank.losses.binary import BinaryLoss
from cleanrank.types import FloatArray

Slope = Callable[[FloatArray], FloatArray]

REACH = 64.0
WIDTH = 1.0 / 64.0
BINS = int(2 * REACH / WIDTH)
DEGREE = 4
CLOSE = 1e-10
NEVER = 1e300
# Three points inside a bin: a jump at its edge belongs to neither side's parabola.
NODES = 0.5 - 0.5 * np.cos((np.arange(3) + 0.5) * np.pi / 3)
# A hessian is at least |slope| / STEP of its pair: no leaf moves a score by more than STEP logits.
STEP = 2.0
LEAST = 1e-6


@dataclass(frozen=True)
class SlopeReading:
    """A slope as kernels read it; one of the two is empty.

    Attributes:
        polynomial: DEGREE + 1 coefficients of powers of u.
        table: (rows, 4), the coefficients of a parabola of the place in the bin and the hessian of the bin;
            rows 0 and BINS + 1 are the lines beyond the bins.
        cuts: (rows, 2), where in a bin another row takes over and which; empty when no kink lies in a bin.
    """

    polynomial: FloatArray
    table: FloatArray
    cuts: FloatArray

    @property
    def is_polynomial(self) -> bool:
        """Whether the polynomial is in use."""
        return len(self.polynomial) > 0


def read_slope(slope: Slope, kinks: Sequence[float] = (), *, as_table: bool = False) -> SlopeReading:
    """Reads psi'(d), a function of arrays, with the places where it is not smooth.

    ``as_table`` makes a table of a polynomial too.

    >>> read_slope(lambda d: -1 / (1 + np.exp(d))).polynomial.round(9).tolist()  # the logistic loss: -u
    [0.0, -1.0, 0.0, 0.0, 0.0]
    """
    polynomial = None if kinks or as_table else _polynomial(slope)
    if polynomial is not None:
        return SlopeReading(polynomial, np.zeros((0, 4)), np.zeros((0, 2)))
    return SlopeReading(np.zeros(0), *_table(slope, kinks))


# What stands for pairs that do not count.
NO_PAIRS = SlopeReading(np.zeros(0), np.zeros((0, 4)), np.zeros((0, 2)))


def _polynomial(slope: Slope) -> FloatArray | None:
    """The coefficients when the slope is a polynomial of u, else None."""
    u = np.linspace(0.002, 0.998, 499)
    d = np.concatenate([np.log(1 / u - 1), np.linspace(-REACH, REACH, 1025)])
    u = 1 / (1 + np.exp(d))
    powers = np.vander(u, DEGREE + 1, increasing=True)
    values = slope(d)
    if not np.isfinite(values).all():
        return None
    coefficients = np.linalg.lstsq(powers, values, rcond=None)[0]
    if np.abs(powers @ coefficients - values).max() > CLOSE * (1 + np.abs(values).max()):
        return None
    coefficients[np.abs(coefficients) < CLOSE] = 0.0
    return np.asarray(coefficients)


def _table(slope: Slope, kinks: Sequence[float]) -> tuple[FloatArray, FloatArray]:
    edges = np.linspace(-REACH, REACH, BINS + 1)
    inside = sorted({float(k) for k in kinks if -REACH < k < REACH})
    off = [k for k in inside if abs(k / WIDTH - round(k / WIDTH)) > 1e-9]
    table, cuts = np.zeros((BINS + 2 + len(off), 4)), np.zeros((BINS + 2 + len(off), 2))
    cuts[:, 0] = NEVER
    table[1 : BINS + 1, :3] = _parabolas(slope, edges[:-1], 0.0, 1.0)
    for k, (place, side) in enumerate(((-REACH, -1.0), (REACH, 1.0))):
        table[k * (BINS + 1), :2] = _line(slope, place, side)
    for number, kink in enumerate(off):
        _split(slope, table, cuts, BINS + 2 + number, kink)
    table[:, 3] = _hessians(table)
    return table, cuts if off else np.zeros((0, 2))


def _parabolas(slope: Slope, left: FloatArray, start: float, end: float) -> FloatArray:
    """Parabolas of the place f of a bin that agree with the slope at three points of [start, end]."""
    f = start + (end - start) * NODES
    values = slope((left[:, None] + WIDTH * f).ravel()).reshape(-1, len(f))
    if not np.isfinite(values).all():
        raise invalid("the slope of a loss", f"must be finite for logits up to {REACH:g}", "nan or inf")
    return np.asarray(np.linalg.solve(np.vander(f, increasing=True), values.T).T)


def _line(slope: Slope, place: float, side: float) -> FloatArray:
    """Value and rise per bin of the slope beyond ``place``."""
    near, far = slope(np.array([place + side, place + 2 * side]))
    rise = (far - near) * side
    return np.array([near - side * rise, rise * WIDTH])


def _split(slope: Slope, table: FloatArray, cuts: FloatArray, row: int, kink: float) -> None:
    """Gives the part of a bin to the right of a kink a row of its own."""
    k = int(np.floor((kink + REACH) / WIDTH))
    left, f = np.array([k * WIDTH - REACH]), (kink + REACH) / WIDTH - k
    before, start = k + 1, 0.0
    while cuts[before, 0] < NEVER:
        start, before = float(cuts[before, 0]), int(cuts[before, 1])
    table[row, :3] = _parabolas(slope, left, f, 1.0)
    table[before, :3] = _parabolas(slope, left, start, f)
    cuts[before] = f, row


def _hessians(table: FloatArray) -> FloatArray:
    """max(psi'', |psi'| / STEP, LEAST) of every bin: its slope in the middle, its largest |slope|."""
    a, b, c = table[:, 0], table[:, 1], table[:, 2]
    largest = np.abs([a, a + b / 2 + c / 4, a + b + c]).max(axis=0)
    hessians: FloatArray = np.maximum(np.maximum((b + c) / WIDTH, largest / STEP), LEAST)
    return hessians


def strict_slope(loss: BinaryLoss, both: bool, *, as_table: bool = False) -> SlopeReading:
    """The slope of a pair by the winner's lead d: l(d, 1), with ``both`` orders also l(-d, 0)."""
    if not both:
        return read_slope(loss.one.slope, loss.kinks, as_table=as_table)
    kinks = (*loss.kinks, *(-k for k in loss.kinks))
    return read_slope(lambda d: loss.one.slope(d) - loss.zero.slope(-d), kinks, as_table=as_table)


def tied_slope(loss: BinaryLoss, *, as_table: bool = False) -> SlopeReading:
    """The slope of a pair of equal grades in both orders: l(d, 0) + l(-d, 0)."""
    kinks = (*loss.kinks, *(-k for k in loss.kinks))
    return read_slope(lambda d: loss.zero.slope(d) - loss.zero.slope(-d), kinks, as_table=as_table)


def stacked(first: SlopeReading, second: SlopeReading) -> SlopeReading:
    """Two tables as one: the rows of the second follow those of the first."""
    table = np.concatenate([first.table, second.table])
    if not len(first.cuts) and not len(second.cuts):
        return SlopeReading(np.zeros(0), table, np.zeros((0, 2)))
    cuts = np.zeros((len(table), 2))
    cuts[:, 0] = NEVER
    if len(first.cuts):
        cuts[: len(first.table)] = first.cuts
    if len(second.cuts):
        cuts[len(first.table) :] = second.cuts + np.array([0.0, len(first.table)])
    return SlopeReading(np.zeros(0), table, cuts)
