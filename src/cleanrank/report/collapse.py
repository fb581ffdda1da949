"""Does dNoise or pNoise explain the loss? What is kept at each noise level, and how much one curve explains.

Curves of different data sets should fall together over pNoise and apart over dNoise (Niu et al. 2015). Both
axes come from the cells: what their training labels realised, averaged over folds and seeds.

Over an axis x (dNoise or pNoise), R^2 = 1 - SSE / SST of the best falling curve (isotonic regression) through
the shares kept at all noisy levels of all data sets: 1 when the data sets share a curve, less the more they
part. Intervals are percentiles of a bootstrap over data sets and, within each, over its test queries; redrawn
queries add noise of their own, so that an R^2 near 1 may lie above its interval.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cleanrank.errors import invalid
from cleanrank.report.summaries import Level, Row, Summary
from cleanrank.types import FloatArray
from cleanrank.validation import one_of

# Where a cell keeps a figure: a ranker's cell in what was chosen, a study of labels among its means.
SOURCES: Mapping[str, tuple[str, str]] = {
    "dnoise": ("train_dnoise", "dnoise"),
    "pnoise": ("train_pnoise", "pnoise"),
    "expected": ("expected_pnoise", "pnoise:expected"),
    "overall": ("overall_pnoise", "pnoise:overall"),
}
AXES: Mapping[str, str] = {
    "dnoise": "dNoise: share of changed training labels",
    "pnoise": "pNoise: share of wrong training pairs",
}


@dataclass(frozen=True)
class Kept:
    """What a method keeps of its clean figure at one noise level of one data set.

    ``share`` is mean / clean mean; with a floor, (mean - floor) / (clean mean - floor).
    """

    dataset: str
    level: Level
    method: str
    dnoise: float
    pnoise: float
    share: float
    row: Row
    clean: Row
    floor: Row | None


def realised(summary: Summary, what: str) -> dict[tuple[str, Level], float]:
    """The mean of a figure of SOURCES over the cells of each data set and level; clean labels have 0."""
    one_of("noise figure", what, SOURCES)
    chosen, measure = SOURCES[what]
    noted: dict[tuple[str, Level], list[float]] = {}
    for cell in summary.cells:
        value = 0.0 if cell.level.clean else cell.chosen.get(chosen, cell.means.get(measure))
        if cell.status == "done" and value is not None and not np.isnan(value):
            noted.setdefault((cell.dataset, cell.level), []).append(float(value))
    return {place: float(np.mean(values)) for place, values in noted.items()}


def kept(summary: Summary, measure: str, method: str, *, floor: str | None = None) -> tuple[Kept, ...]:
    """What a method keeps at every complete level, clean ones included.

    The cells must note the noise of their training labels. ``floor`` is a method that learns nothing, such as
    random order; None takes 0 as the floor.
    """
    one_of("measure", measure, summary.measures)
    for name in [method, *([floor] if floor else [])]:
        one_of("method", name, summary.methods)
    dnoise, pnoise = realised(summary, "dnoise"), realised(summary, "pnoise")
    rows = [r for r in summary.rows if (r.measure, r.method, r.state) == (measure, method, "complete")]
    shares = []
    for row in rows:
        place = row.dataset, row.level
        clean = next((r for r in rows if r.dataset == row.dataset and r.level.clean), None)
        base = None if floor is None else summary.find(row.dataset, row.level, floor, measure)
        if clean is None or place not in pnoise or (floor and (base is None or base.mean is None)):
            continue
        least = 0.0 if base is None or base.mean is None else base.mean
        if row.mean is None or clean.mean is None or clean.mean <= least:
            continue
        share = (row.mean - least) / (clean.mean - least)
        shares.append(Kept(*place, method, dnoise[place], pnoise[place], share, row, clean, base))
    return tuple(shares)


@dataclass(frozen=True)
class Estimate:
    """A figure and its interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True)
class Explained:
    """R^2 of a falling curve and the rank correlation with the loss."""

    r2: Estimate
    spearman: Estimate


@dataclass(frozen=True)
class Collapse:
    """How well each axis explains the loss; ``gain`` is R^2 over pNoise minus R^2 over dNoise."""

    points: int
    datasets: int
    dnoise: Explained
    pnoise: Explained
    gain: Estimate


def collapse(
    shares: Sequence[Kept], *, resamples: int = 1000, confidence: float = 0.95, seed: int = 0
) -> Collapse:
    """Compares the two axes on the noisy levels among ``shares``, which may come from several grids."""
    noisy = [k for k in shares if not k.level.clean]
    sets = list(dict.fromkeys(k.dataset for k in noisy))
    if len(noisy) < 3 or len(sets) < 2:
        raise invalid(
            "collapse", "needs three noisy levels and two data sets", f"{len(noisy)} and {len(sets)}"
        )
    groups = [[k for k in noisy if k.dataset == name] for name in sets]
    axes = [(np.array([k.dnoise for k in g]), np.array([k.pnoise for k in g])) for g in groups]
    rng = np.random.default_rng(seed)  # of its own: two stages, which metrics.significance does not draw
    draws = []
    for _ in range(resamples):
        redrawn = rng.integers(len(groups), size=len(groups))
        y = [_redrawn(groups[i], rng) for i in redrawn]
        draws.append(_figures([axes[i] for i in redrawn], y))
    point = _figures(axes, [np.array([k.share for k in g]) for g in groups])
    tail = 50 * (1 - confidence)
    ends = np.nanpercentile(draws, [tail, 100 - tail], axis=0)
    figures = [Estimate(*three) for three in zip(point, *ends.tolist(), strict=True)]
    return Collapse(len(noisy), len(sets), Explained(*figures[:2]), Explained(*figures[2:4]), figures[4])


def falling_r2(x: FloatArray, y: FloatArray) -> float:
    """R^2 of the best falling curve of y over x; points of equal x share one value of it.

    >>> falling_r2(np.array([1.0, 2.0, 3.0]), np.array([0.9, 0.5, 0.1]))
    1.0
    """
    from scipy.optimize import isotonic_regression

    _, inverse, sizes = np.unique(x, return_inverse=True, return_counts=True)
    means = np.bincount(inverse, weights=y) / sizes
    fit = isotonic_regression(means, weights=sizes.astype(np.float64), increasing=False).x
    total = ((y - y.mean()) ** 2).sum()
    return float(1 - ((y - fit[inverse]) ** 2).sum() / total) if total > 0 else float("nan")


def _figures(axes: Sequence[tuple[FloatArray, FloatArray]], shares: Sequence[FloatArray]) -> list[float]:
    """R^2 and rank correlation with the loss over dNoise, the same over pNoise, and the gain in R^2."""
    from scipy.stats import spearmanr

    y = np.concatenate(shares)
    figures: list[float] = []
    for axis in (0, 1):
        x = np.concatenate([a[axis] for a in axes])
        varies = np.ptp(x) > 0 and np.ptp(y) > 0
        figures += [falling_r2(x, y), float(spearmanr(x, -y).statistic) if varies else float("nan")]
    return [*figures, figures[2] - figures[0]]


def _redrawn(group: Sequence[Kept], rng: np.random.Generator) -> FloatArray:
    """The shares of a data set after its test queries are drawn anew, the same for all its levels."""
    first = group[0].row.values
    assert first is not None  # a complete row has values
    queries = rng.integers(len(first), size=len(first))

    def mean(values: FloatArray | None) -> float:
        return 0.0 if values is None else float(np.nanmean(values[queries]))

    shares = []
    for k in group:
        least = 0.0 if k.floor is None else mean(k.floor.values)
        clean = mean(k.clean.values) - least
        shares.append((mean(k.row.values) - least) / clean if clean > 0 else k.share)
    return np.array(shares)
