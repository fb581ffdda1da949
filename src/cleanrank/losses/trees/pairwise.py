"""Pairwise objectives for boosted trees with any binary loss: what LightGBM calls for gradients.

``PairwiseObjective`` is the risk of all pairs of a query, ``RobustLambdaObjective`` LambdaRank with another
loss in the place of the logistic one. Both read the formulas of the loss itself and
differ from the torch losses of the same names by the factor Q, the number of queries: the step of a tree does
not depend on it. Hessians are those of ``_pair_kernels``, positive for every document that has a pair.

The risk of a query is a factor times the sum over its pairs. With n documents and N pairs:

    sum  1        macro  Q / (Q' N), Q' the queries with pairs        pooled  Q / (sum of N)
    micro  1 / n^2        prevalence  1 / (n^2 h), h the share of pairs there would be without noise

Kernels cannot call the Python formulas of a loss, so its slope psi'(d) is sampled once. With
u = 1 / (1 + exp(d)), the probability of the wrong order, the slopes of the logistic and sigmoid losses, their
peers, smoothings and short Taylor series are polynomials of u of degree 4 at the most; when one fits to
1e-10 the kernels use it, which needs no table and runs on whole vectors. Any other slope becomes parabolas
on bins of width 1/64 over [-64, 64], cut at the kinks, and straight lines beyond. Both follow the formulas to
about 1e-8; a kink itself takes the slope on its right. Hessians come along: max(psi'', |psi'| / STEP, LEAST).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from cleanrank.errors import invalid
from cleanrank.jit import query_chunks
from cleanrank.losses.binary import BinaryLoss, check_trainable
from cleanrank.losses.pairs import check_weighting, clean_pair_share
from cleanrank.losses.trees import _pair_kernels
from cleanrank.losses.trees._pair_kernels import BINS, LEAST, REACH, STEP, WIDTH
from cleanrank.losses.trees.lambdarank import PIECES, LambdaRankObjective, Observer
from cleanrank.ragged import query_of_row
from cleanrank.types import Array, FloatArray, IntArray, RankingData

Slope = Callable[[FloatArray], FloatArray]

DEGREE = 4
CLOSE = 1e-10
NEVER = 1e300
# Three points inside a bin: a jump at its edge belongs to neither side's parabola.
NODES = 0.5 - 0.5 * np.cos((np.arange(3) + 0.5) * np.pi / 3)


@dataclass(frozen=True)
class SlopeReading:
    """A slope as kernels read it; one of the two is empty."""

    polynomial: FloatArray  # DEGREE + 1 coefficients of powers of u
    # (rows, 4), the coefficients of a parabola of the place in the bin and the hessian of the bin; rows 0 and
    # BINS + 1 are the lines beyond the bins.
    table: FloatArray
    # (rows, 2), where in a bin another row takes over and which; empty when no kink lies in a bin.
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


class PairwiseObjective(LambdaRankObjective):
    """The gradients of a binary loss over the pairs of every query, as LightGBM's ``objective`` callable.

    Args:
        data: the rows of the LightGBM data set, in its order; a weight multiplies what a document receives.
        loss: l(logit, target) of the logit sigma (s_i - s_j).
        pair_set: one of PAIR_SETS.
        weighting: one of PAIR_WEIGHTINGS.
        noise: for "prevalence" alone, a matrix P(given | true) or the two keep probabilities.
        sigmoid: steepness sigma.
        truncation_level: one document of a pair stands at this rank or above; None for all pairs.
        observer: called for every tree.
        n_jobs: threads; the bits are the same for any number.

    >>> import cleanrank as cr
    >>> from cleanrank.losses.binary import LOSSES
    >>> data = cr.from_arrays([[0.0], [1.0]], [0, 1], qid=[1, 1])
    >>> grad, hess = PairwiseObjective(data, LOSSES["logistic"], weighting="sum")(np.zeros(2))
    >>> grad.tolist(), hess.tolist()
    ([0.5, -0.5], [0.25, 0.25])
    """

    def __init__(
        self,
        data: RankingData,
        loss: BinaryLoss,
        *,
        pair_set: str = "strict",
        weighting: str = "micro",
        noise: Any = None,
        sigmoid: float = 1.0,
        truncation_level: int | None = None,
        observer: Observer | None = None,
        n_jobs: int | None = None,
    ) -> None:
        matrix = check_weighting(weighting, pair_set, noise, data.n_grades)
        level = 1 if truncation_level is None else truncation_level
        super().__init__(
            data, norm=False, sigmoid=sigmoid, truncation_level=level, observer=observer, n_jobs=n_jobs
        )
        self.loss, self.all_pairs = check_trainable(loss), truncation_level is None
        self.slope, self.tied, self.tied_row = strict_slope(loss, both=pair_set != "strict"), NO_PAIRS, 0
        if pair_set == "all_ordered":
            if not self.all_pairs:
                raise invalid(
                    "truncation_level", "must be None for all ordered pairs, ties included", truncation_level
                )
            self._count_ties()
        self.scale = query_factors(self.gains, data, pair_set, weighting, matrix)
        self._by_gain, self._lower = falling_order(self.gains, self.ranking.indptr)
        self._bounds = pair_chunks(data.indptr)

    def _count_ties(self) -> None:
        """Reads the slope of tied pairs: two polynomials, or one table for both."""
        self.tied = tied_slope(self.loss)
        if self.slope.is_polynomial and self.tied.is_polynomial:
            return
        strict = strict_slope(self.loss, both=True, as_table=True)
        self.tied_row = len(strict.table)
        self.slope, self.tied = stacked(strict, tied_slope(self.loss, as_table=True)), NO_PAIRS

    def part(self, first: int, last: int) -> Self:
        """The objective of the queries first, ..., last - 1 alone."""
        part = super().part(first, last)
        rows = slice(self.ranking.indptr[first], self.ranking.indptr[last])
        part.scale, part._by_gain, part._lower = (
            self.scale[first:last],
            self._by_gain[rows],
            self._lower[rows],
        )
        part._bounds = pair_chunks(part.ranking.indptr)
        return part

    def _base(self, scores: FloatArray) -> None:
        if not self.all_pairs:
            _top_pairs(self, scores, self.slope, self.scale, swap=False)
            return
        ranking = self.ranking
        _pair_kernels.pair_gradients(
            scores, ranking.indptr, self._bounds, self._by_gain, self._lower, self.sigmoid, self.scale,
            self.slope.polynomial, self.tied.polynomial, self.slope.table, self.slope.cuts, self.tied_row,
            self._grad, self._hess,
        )  # fmt: skip
        if self.observer is not None:
            ranking.update(scores)


class RobustLambdaObjective(LambdaRankObjective):
    """LambdaRank with any binary loss: pairs weigh what their swap changes in NDCG.

    ``options`` as of ``LambdaRankObjective``, in its exact mode. The curvature of the logistic loss is kept
    from vanishing where a pair is very wrong (see ``_pair_kernels``), as for every other loss here.
    """

    def __init__(self, data: RankingData, loss: BinaryLoss, **options: Any) -> None:
        super().__init__(data, **options)
        if self.mode != "exact":
            raise invalid("mode", "must be 'exact' for a loss that is not LambdaRank's own", repr(self.mode))
        self.loss = check_trainable(loss)
        self.slope = strict_slope(loss, both=False)

    def _base(self, scores: FloatArray) -> None:
        _top_pairs(self, scores, self.slope, self._inverse_ideal, swap=True)


def _top_pairs(
    objective: LambdaRankObjective, scores: FloatArray, slope: SlopeReading, scale: FloatArray, *, swap: bool
) -> None:
    """Gradients of the pairs with a document above the truncation level, into the objective's arrays."""
    ranking = objective.ranking
    _pair_kernels.top_pair_gradients(
        scores, objective.gains, ranking.indptr, ranking.bounds, ranking.order, objective._discount, scale,
        objective.sigmoid, objective.norm, swap, objective.truncation_level, slope.polynomial, slope.table,
        slope.cuts, objective._grad, objective._hess,
    )  # fmt: skip


def pair_chunks(indptr: IntArray) -> IntArray:
    """Borders between runs of whole queries with about equally many pairs."""
    return query_chunks(np.concatenate(([0], np.cumsum(np.diff(indptr) ** 2))), PIECES)


def falling_order(values: FloatArray, indptr: IntArray) -> tuple[Array, Array]:
    """The documents of every query by falling value, counted from 0, and where smaller values begin.

    >>> order, lower = falling_order(np.array([0.0, 2.0, 2.0]), np.array([0, 3]))
    >>> order.tolist(), lower.tolist()
    ([1, 2, 0], [2, 2, 3])
    """
    query = query_of_row(indptr)
    rows = np.lexsort((-values, query))
    sorted_values, lengths = values[rows], np.diff(indptr)
    # Rows where a run of equal values of a query begins; the next run's start is where smaller ones begin.
    starts = np.ones(len(rows), dtype=bool)
    starts[1:] = (sorted_values[1:] != sorted_values[:-1]) | (query[1:] != query[:-1])
    run = np.cumsum(starts) - 1
    ends = np.append(np.flatnonzero(starts)[1:], len(rows))
    lower = np.minimum(ends[run] - indptr[query], lengths[query])
    return (rows - indptr[query]).astype(np.int32), lower.astype(np.int32)


def query_factors(
    values: FloatArray, data: RankingData, pair_set: str, weighting: str, matrix: FloatArray | None = None
) -> FloatArray:
    """The factor of every query, as the head of this module lists them; 0 without pairs."""
    n = data.lengths.astype(np.float64)
    query = query_of_row(data.indptr)
    _, lower = falling_order(values, data.indptr)
    strict = np.bincount(query, weights=n[query] - lower, minlength=len(n))
    counted = {"strict": strict, "strict_both": 2 * strict, "all_ordered": n * (n - 1)}[pair_set]
    some = counted > 0
    if weighting == "sum":
        factors = np.ones_like(n)
    elif weighting == "pooled":
        factors = np.full_like(n, len(n) / max(counted.sum(), 1.0))
    elif weighting == "macro":
        factors = len(n) / max(some.sum(), 1) / np.maximum(counted, 1.0)
    elif weighting == "micro":
        factors = 1.0 / np.maximum(n * n, 1.0)
    else:
        assert matrix is not None
        m = np.maximum(n, 1.0)
        share = clean_pair_share(data.grade_counts(len(matrix)) / m[:, None], m, matrix)
        factors = 1.0 / np.maximum(n * n * share, 1e-300)
    return np.where(some, factors, 0.0)
