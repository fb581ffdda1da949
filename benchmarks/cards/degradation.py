"""What noise leaves of rankers: shares kept, what explains them, knees, and which ranker keeps most.

The share that a ranker keeps at a noise level is (noisy - floor) / (clean - floor), floor the figure of
random order: 1 is all that it had learnt, 0 nothing. A point is a data set, a kind of noise, a rate and a
ranker.

Intervals are percentiles of a bootstrap. Test queries are drawn anew within each data set, the same for all
its points. What explains the loss is a question about other data, rankers and kinds of noise too, so there
data sets, rankers and kinds are drawn anew as well, each on its own, and a point counts as often as all three
of its own were drawn (the pigeonhole bootstrap, Owen 2007).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import isotonic_regression

from cleanrank.issues.table import BoolArray
from cleanrank.report.collapse import Estimate, realised
from cleanrank.report.summaries import Level, Summary
from cleanrank.types import Array, FloatArray

DRAWS = 1000
FLOOR = "random"


@dataclass(frozen=True, eq=False)
class Points:
    """Shares kept at the noisy levels of some grids; row 0 of ``shares`` is as measured, others redrawn."""

    dataset: Array  # (P,), text
    noise: Array  # (P,), text
    method: Array  # (P,), text
    rate: FloatArray  # (P,)
    dnoise: FloatArray  # (P,), realised in the training labels
    pnoise: FloatArray  # (P,)
    shares: FloatArray  # (1 + draws, P)
    means: FloatArray  # (1 + draws, P), the measure itself

    def where(self, kept: BoolArray) -> "Points":
        """Some of the points."""
        columns = (self.dataset, self.noise, self.method, self.rate, self.dnoise, self.pnoise)
        return Points(*(c[kept] for c in columns), self.shares[:, kept], self.means[:, kept])

    def of(self, **wanted: str | float) -> "Points":
        """The points of a data set, kind of noise, rate or method."""
        return self.where(np.logical_and.reduce([getattr(self, k) == v for k, v in wanted.items()]))

    @property
    def datasets(self) -> list[str]:
        """In their order."""
        return list(dict.fromkeys(self.dataset.tolist()))

    @property
    def methods(self) -> list[str]:
        """In their order."""
        return list(dict.fromkeys(self.method.tolist()))


def points_of(summary: Summary, measure: str, *, draws: int = DRAWS, seed: int = 0) -> Points:
    """The points of a grid; methods without a figure at a level have none there."""
    dnoise, pnoise = realised(summary, "dnoise"), realised(summary, "pnoise")
    rng = np.random.default_rng(seed)
    columns: list[tuple[str, str, str, float, float, float]] = []
    shares, means = [], []
    for dataset in summary.datasets:
        rows = {
            (r.level, r.method): r
            for r in summary.rows
            if r.dataset == dataset and r.measure == measure and r.values is not None
        }
        clean = next(level for level, _ in rows if level.clean)
        values = np.array([r.values for r in rows.values()])
        queries = values.shape[1]
        counts = rng.multinomial(queries, np.full(queries, 1 / queries), size=draws)
        redrawn = np.vstack([np.ones(queries), counts]) @ values.T / queries
        column = {place: redrawn[:, i] for i, place in enumerate(rows)}
        for level, method in rows:
            if level.clean or method == FLOOR or (dataset, level) not in pnoise:
                continue
            floor, whole = column[clean, FLOOR], column[clean, method]
            place = dataset, level
            columns.append((dataset, level.noise, method, level.rate, dnoise[place], pnoise[place]))
            means.append(column[level, method])
            with np.errstate(divide="ignore", invalid="ignore"):
                shares.append((column[level, method] - floor) / (whole - floor))
    names = [np.array(column) for column in zip(*columns, strict=True)]
    return Points(*names, np.array(shares).T, np.array(means).T)


def joined(parts: Sequence[Points]) -> Points:
    """Points of several grids, a point that two grids share once."""
    fields = ("dataset", "noise", "method", "rate", "dnoise", "pnoise")
    columns = [np.concatenate([getattr(part, name) for part in parts]) for name in fields]
    keys = list(zip(*(column.tolist() for column in columns[:4]), strict=True))
    first = np.array([keys.index(key) == place for place, key in enumerate(keys)])
    tables = (np.hstack([getattr(part, name) for part in parts]) for name in ("shares", "means"))
    return Points(*columns, *tables).where(first)


def estimate(draws: FloatArray, confidence: float = 0.95) -> Estimate:
    """The first value, and percentiles of the others."""
    tail = 50 * (1 - confidence)
    low, high = np.nanpercentile(draws[1:], [tail, 100 - tail]) if len(draws) > 1 else (np.nan, np.nan)
    return Estimate(float(draws[0]), float(low), float(high))


@dataclass(frozen=True)
class Explained:
    """The share of the variance that falling curves explain, over each axis and more over pNoise."""

    points: int
    dnoise: Estimate
    pnoise: Estimate
    gain: Estimate


# What has a curve of its own -> the names of the points that share it.
SCOPES: Mapping[str, Callable[[Points], Array]] = {
    "one curve for everything": lambda p: np.zeros(len(p.rate), dtype=np.int64),
    "a curve for each ranker": lambda p: p.method,
    "a curve for each ranker and data set": lambda p: np.char.add(np.char.add(p.dataset, "|"), p.method),
}


def explained(points: Points, scope: str, *, seed: int = 0) -> Explained:
    """How much of the variance of shares within groups falling curves of these groups explain.

    With a curve for each ranker and data set only rates and kinds of noise differ within a group: nothing
    else of the data is mixed in.
    """
    _, group = np.unique(SCOPES[scope](points), return_inverse=True)
    weights = drawn_weights(points, np.random.default_rng(seed))
    r2 = []
    for x in (points.dnoise, points.pnoise):
        curves = Curves.of(x, group)
        r2.append(np.array([curves.r2(y, w) for y, w in zip(points.shares, weights, strict=True)]))
    return Explained(len(group), *(estimate(each) for each in (*r2, r2[1] - r2[0])))


def drawn_weights(points: Points, rng: np.random.Generator) -> FloatArray:
    """(1 + draws, P): how often a point counts; the first row has ones."""
    weights = np.ones_like(points.shares)
    for names in (points.dataset, points.method, points.noise):
        kinds, place = np.unique(names, return_inverse=True)
        counts = rng.multinomial(len(kinds), np.full(len(kinds), 1 / len(kinds)), size=len(weights) - 1)
        weights[1:] *= counts[:, place]
    return weights


@dataclass(frozen=True, eq=False)
class Curves:
    """Falling curves over an axis, one a group of points; prepared once for many draws."""

    parts: tuple[tuple[Array, Array], ...]  # of each group: its points, and their places among different x

    @classmethod
    def of(cls, x: FloatArray, group: Array) -> "Curves":
        """The groups of points."""
        members = [np.flatnonzero(group == each) for each in np.unique(group)]
        return cls(tuple((mine, np.unique(x[mine], return_inverse=True)[1]) for mine in members))

    def r2(self, y: FloatArray, weights: FloatArray) -> float:
        """1 - SSE / SST of the best falling curves; SST is about the groups' means.

        >>> x, group = np.array([0.1, 0.2, 0.1, 0.2]), np.array([0, 0, 1, 1])
        >>> Curves.of(x, group).r2(np.array([0.9, 0.5, 0.4, 0.0]), np.ones(4))
        1.0
        """
        wrong = total = 0.0
        for mine, place in self.parts:
            w = weights[mine]
            if not w.any():
                continue
            sums = np.bincount(place, w)
            there = sums > 0
            means = np.bincount(place, w * y[mine])[there] / sums[there]
            fit = np.zeros(len(sums))
            fit[there] = isotonic_regression(means, weights=sums[there], increasing=False).x
            with np.errstate(invalid="ignore"):  # infinite shares, of a draw without a gain over random
                wrong += float((w * (y[mine] - fit[place]) ** 2).sum())
                total += float((w * (y[mine] - np.average(y[mine], weights=w)) ** 2).sum())
        return 1 - wrong / total if total > 1e-12 else float("nan")


def knee(x: FloatArray, share: FloatArray, threshold: float) -> float:
    """Where a falling curve through (0, 1) and the points passes a threshold; infinite if it does not.

    >>> round(knee(np.array([0.1, 0.2]), np.array([0.9, 0.5]), 0.7), 3)
    0.15
    """
    order = np.argsort(x)
    places = np.concatenate(([0.0], x[order]))
    curve = isotonic_regression(np.concatenate(([1.0], share[order])), increasing=False).x
    if curve[-1] > threshold:
        return float("inf")
    after = int(np.argmax(curve <= threshold))
    if after == 0:
        return 0.0
    low, high = places[after - 1], places[after]
    fall = (curve[after - 1] - threshold) / (curve[after - 1] - curve[after])
    return float(low + fall * (high - low))


@dataclass(frozen=True)
class Robustness:
    """The mean share that a ranker keeps over all rates, and how much more than another ranker."""

    method: str
    noise: str
    kept: Estimate
    more: Estimate | None


def robustness(points: Points, noise: str, baseline: str) -> list[Robustness]:
    """Rankers under one kind of noise, the best first; each data set weighs the same."""
    mine = points.of(noise=noise)

    def mean(method: str) -> FloatArray:
        by_set = [mine.of(method=method, dataset=d).shares.mean(axis=1) for d in mine.datasets]
        return np.mean(by_set, axis=0)

    base = mean(baseline) if baseline in mine.methods else None
    rows = [
        Robustness(
            m,
            noise,
            estimate(mean(m)),
            None if base is None or m == baseline else estimate(mean(m) - base),
        )
        for m in mine.methods
    ]
    return sorted(rows, key=lambda row: -row.kept.value)


def levels_of(summary: Summary, rates: Sequence[float]) -> list[Level]:
    """The clean level and those of some rates, by kind of noise."""
    clean = [level for level in summary.levels if level.clean][:1]
    noisy = [level for level in summary.levels if not level.clean and level.rate in rates]
    return [*clean, *sorted(noisy)]
