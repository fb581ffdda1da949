"""Minimises |w|^2 / 2 + C x the losses of all pairs: Newton steps, each solved by conjugate gradients.

The objective is strongly convex, so that half the squared gradient bounds what is left to gain. Rounding the
corner of the hinge over a width h adds at most h / 8 a pair on the round part to that bound (the gap to the
dual objective at the slopes of the rounded loss), so that the hinge's own objective is known to a tolerance.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from cleanrank.jit import query_chunks
from cleanrank.rankers.classic import _rank_svm as kernels
from cleanrank.types import FloatArray, IntArray

CHUNKS = 64
MOST_AXES = 512  # features beyond this are scaled one by one in place of along their principal axes
# The first width of the round corner, that of a warm start, the largest factor between two widths.
WIDE, WARM, NARROWER = 1.0, 0.05, 16.0
NARROWEST = 1e-12
FLOATS = 1e-14  # what rounding may hide of a gain
CG_STEPS = 250
LINE_STEPS = 25


@dataclass(frozen=True)
class Shape:
    """A loss of pairs that is curved between two bounds and straight below, as ``_rank_svm`` explains it."""

    lower: float
    upper: float
    curvature: float
    slope: float

    @staticmethod
    def squared() -> "Shape":
        """max(0, 1 - d)^2."""
        return Shape(-np.inf, 1.0, 1.0, 0.0)

    @staticmethod
    def hinge(width: float = 0.0, at: float = 1.0) -> "Shape":
        """max(0, at - d), whose corner is rounded over ``width`` on both sides."""
        return Shape(at - width, at + width, 0.25 / width if width else 0.0, 1.0)

    def array(self) -> FloatArray:
        """As the kernels take it."""
        middle = (self.lower + self.upper) / 2 if self.slope else 0.0
        return np.array([self.lower, self.upper, self.curvature, self.slope, middle])


@dataclass(frozen=True)
class Losses:
    """Sums over pairs at one point."""

    loss: float
    slopes: float  # sum of -d loss / d lead
    curved: float  # weight of the pairs on the curved part
    by_row: FloatArray  # (N,), derivatives by score; overwritten by the next call


@dataclass(frozen=True)
class Tilt:
    """The linear function slope . w + offset."""

    slope: FloatArray
    offset: float


@dataclass(frozen=True)
class Point:
    """Weights and the scores of the training rows."""

    w: FloatArray
    scores: FloatArray

    def value(self, C: float, losses: Losses, tilt: Tilt) -> float:
        """The objective."""
        return 0.5 * float(self.w @ self.w) + C * losses.loss + float(tilt.slope @ self.w) + tilt.offset


@dataclass(frozen=True)
class Solution:
    """Where the solver stopped."""

    w: FloatArray
    scores: FloatArray  # of the training rows
    objective: float
    gap: float  # the objective is at most this far above the least one
    steps: int  # of Newton


class PairProblem:
    """The pairs of some rows; keeps the order of documents from call to call."""

    def __init__(self, X: FloatArray, y: IntArray, indptr: IntArray, weights: FloatArray | None) -> None:
        self.X = X
        _, grade = np.unique(y, return_inverse=True)
        self.grade = grade.reshape(-1).astype(np.int64)
        self.grades = int(self.grade.max(initial=0)) + 1
        self.weight = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
        self.indptr = np.asarray(indptr, dtype=np.int64)
        self.chunks = query_chunks(self.indptr, CHUNKS)
        self.borders = self.indptr[self.chunks]
        lengths = np.diff(self.indptr)
        self._sizes = self.grades, int(lengths.max(initial=0))
        self._order = np.arange(len(y)) - np.repeat(self.indptr[:-1], lengths)
        self._windows = np.zeros((len(y), 4), dtype=np.int64)
        self._gradient, self._degree = np.zeros(len(y)), np.zeros(len(y))
        self._curvature = 0.0
        self.pairs, self._axes, self._spread = self._covariance()

    def scores(self, w: FloatArray) -> FloatArray:
        """X @ w."""
        return kernels.linear_scores(self.X, w)

    def losses(self, scores: FloatArray, shape: Shape) -> Losses:
        """Sums over pairs at these scores; ``product`` then multiplies by the Hessian there."""
        self._curvature = shape.curvature
        loss, slopes, curved = kernels.pair_losses(
            scores, self.grade, self.weight, self.indptr, self.chunks, *self._sizes, shape.array(),
            self._order, self._windows, self._gradient, self._degree,
        )  # fmt: skip
        return Losses(float(loss), float(slopes), float(curved), self._gradient)

    def by_feature(self, by_row: FloatArray) -> FloatArray:
        """X.T @ by_row."""
        return kernels.row_sums(self.X, by_row, self.borders)

    def product(self, v: FloatArray) -> FloatArray:
        """The Hessian of the losses, where ``losses`` was called last, times v."""
        return kernels.curved_product(
            self.X, v, self.grade, self.weight, self.indptr, self.chunks, *self._sizes, self._curvature,
            self._order, self._windows, self._degree,
        )  # fmt: skip

    def _covariance(self) -> tuple[float, FloatArray | None, FloatArray]:
        """(weight of all pairs, axes, sums of squared differences along them) over all pairs."""
        query = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        cell = query * self.grades + self.grade
        cells = (len(self.indptr) - 1) * self.grades
        count = np.bincount(cell, self.weight, cells).reshape(-1, self.grades)
        others = count.sum(axis=1, keepdims=True) - count
        degree = self.weight * others.reshape(-1)[cell]
        pairs = float((count * others).sum()) / 2
        order = np.argsort(cell, kind="stable")
        used, starts = np.unique(cell[order], return_index=True)
        weighted = self.X * self.weight[:, None]
        sums = np.add.reduceat(weighted[order], starts) if len(order) else weighted
        starts = np.unique(used // self.grades, return_index=True)[1]
        totals = np.add.reduceat(sums, starts) if len(order) else sums
        if self.X.shape[1] > MOST_AXES:
            spread = (degree[:, None] * self.X**2).sum(0) + (sums**2).sum(0) - (totals**2).sum(0)
            return pairs, None, np.maximum(spread, 0.0)
        matrix = self.X.T @ (degree[:, None] * self.X) + sums.T @ sums - totals.T @ totals
        spread, axes = np.linalg.eigh(matrix)
        return pairs, axes, np.maximum(spread, 0.0)

    def preconditioner(self, C: float, curved: float) -> Callable[[FloatArray], FloatArray]:
        """Divides by the Hessian as it were if the pairs on the curved part were drawn from all pairs."""
        share = curved / self.pairs if self.pairs else 0.0
        scale = 1.0 / (1.0 + 2.0 * C * self._curvature * share * self._spread)
        axes = self._axes
        if axes is None:
            return lambda r: scale * r
        return lambda r: axes @ (scale * (axes.T @ r))


def minimise(
    problem: PairProblem,
    C: float,
    loss: str,
    *,
    start: FloatArray | None = None,
    tilt: Tilt | None = None,
    tol: float = 1e-6,
    max_iter: int = 1000,
) -> Solution:
    """The w of the least objective, to ``tol`` of its value.

    Args:
        problem: the pairs.
        C: weight of the losses.
        loss: "hinge" or "squared_hinge".
        start: where to begin; 0 when not given.
        tilt: a linear function that is added to the objective.
        tol: largest gap to the least objective, relative to it.
        max_iter: Newton steps at the most.
    """
    w = np.zeros(problem.X.shape[1]) if start is None else start
    tilt = Tilt(np.zeros_like(w), 0.0) if tilt is None else tilt
    point = Point(w, problem.scores(w))
    if loss == "squared_hinge":
        point, value, gap, steps = _newton(problem, C, Shape.squared(), point, tilt, 0.0, tol, max_iter)
        return Solution(point.w, point.scores, value, gap, steps)
    width = WIDE if start is None else WARM
    best, dual, steps = Solution(point.w, point.scores, np.inf, np.inf, 0), -np.inf, 0
    while True:
        point, _, gap, more = _newton(
            problem, C, Shape.hinge(width), point, tilt, C * width / 8, tol, max_iter - steps
        )
        steps += more
        value = point.value(C, problem.losses(point.scores, Shape.hinge()), tilt)
        dual = max(dual, value - gap)
        if value < best.objective:
            best = Solution(point.w, point.scores, value, gap, steps)
        best = replace(best, gap=max(best.objective - dual, 0.0), steps=steps)
        enough = tol * abs(best.objective)
        if best.gap <= enough or steps >= max_iter or width < NARROWEST:
            return best
        # The gap falls with the square of the width where pairs are many.
        width *= min(max(0.9 * np.sqrt(enough / gap), 1 / NARROWER), 0.5)


def _newton(
    problem: PairProblem,
    C: float,
    shape: Shape,
    point: Point,
    tilt: Tilt,
    rounding: float,
    tol: float,
    max_iter: int,
) -> tuple[Point, float, float, int]:
    """(point, objective, bound of the gap, steps) for one shape of the loss.

    ``rounding`` is what a pair on the curved part adds to the gap.
    """
    losses = problem.losses(point.scores, shape)
    last, last_left = np.inf, np.inf
    for steps in range(max_iter + 1):
        gradient = point.w + C * problem.by_feature(losses.by_row) + tilt.slope
        value = point.value(C, losses, tilt)
        round_gap = rounding * losses.curved
        left = 0.5 * float(gradient @ gradient)
        enough = left <= 0.3 * max(round_gap, tol * abs(value))
        if enough or steps == max_iter or not (value < last or left < 0.5 * last_left):
            break  # or floats show no more gain
        last, last_left = value, left
        direction = _conjugate_gradients(problem, C, gradient, losses.curved)
        point, losses = _line_search(problem, C, shape, point, tilt, direction, gradient, value)
    return point, value, left + round_gap, steps


def _conjugate_gradients(problem: PairProblem, C: float, gradient: FloatArray, curved: float) -> FloatArray:
    """Minus the gradient divided by the Hessian, to a tenth of its size."""
    divide = problem.preconditioner(C, curved)
    direction = np.zeros_like(gradient)
    rest = -gradient
    scaled = divide(rest)
    along = scaled
    size = float(rest @ scaled)
    enough = 0.01 * size
    for _ in range(CG_STEPS):
        image = along + C * problem.product(along)
        step = size / float(along @ image)
        direction += step * along
        rest = rest - step * image
        scaled = divide(rest)
        size, before = float(rest @ scaled), size
        if not size > enough:
            break
        along = scaled + (size / before) * along
    return direction


def _line_search(
    problem: PairProblem,
    C: float,
    shape: Shape,
    start: Point,
    tilt: Tilt,
    direction: FloatArray,
    gradient: FloatArray,
    value: float,
) -> tuple[Point, Losses]:
    """A lower point along a direction, where the slope is small; needs no pass over the features."""
    change = problem.scores(direction)
    slope = float(gradient @ direction)
    low, high, low_slope, high_slope = 0.0, np.inf, slope, np.inf
    step = 1.0
    for _ in range(LINE_STEPS):
        point = Point(start.w + step * direction, start.scores + step * change)
        losses = problem.losses(point.scores, shape)
        there = float((point.w + tilt.slope) @ direction) + C * float((losses.by_row * change).sum())
        if abs(there) <= 0.3 * abs(slope) and point.value(C, losses, tilt) <= value + FLOATS * abs(value):
            break
        if there < 0:
            low, low_slope = step, there
        else:
            high, high_slope = step, there
        if np.isinf(high):
            step *= 3.0
        else:  # where the slope would be 0 if it grew evenly
            step = low + (high - low) * min(max(low_slope / (low_slope - high_slope), 0.1), 0.9)
    return point, losses
