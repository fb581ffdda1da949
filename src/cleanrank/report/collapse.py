"""Do the curves of several data sets fall together? How much of the loss one falling curve explains.

Over an axis x (dNoise or pNoise), R^2 = 1 - SSE / SST of the best falling curve (isotonic regression) through
the shares kept at all noisy levels of all data sets: 1 when the data sets share a curve, less the more they
part. Intervals are percentiles of a bootstrap over data sets and, within each, over its test queries; redrawn
queries add noise of their own, so that an R^2 near 1 may lie above its interval.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cleanrank.errors import invalid
from cleanrank.report.traces import Kept
from cleanrank.types import FloatArray


@dataclass(frozen=True)
class Explained:
    """R^2 of a falling curve and the rank correlation with the loss, with intervals."""

    r2: float
    r2_low: float
    r2_high: float
    spearman: float
    spearman_low: float
    spearman_high: float


@dataclass(frozen=True)
class Collapse:
    """How well each axis explains the loss; ``gain`` is R^2 over pNoise minus R^2 over dNoise."""

    points: int
    datasets: int
    dnoise: Explained
    pnoise: Explained
    gain: float
    gain_low: float
    gain_high: float


def collapse(
    found: Sequence[Kept], *, resamples: int = 1000, confidence: float = 0.95, seed: int = 0
) -> Collapse:
    """Compares the two axes on the noisy levels among ``found``, which may come from several grids."""
    noisy = [k for k in found if not k.level.clean]
    sets = list(dict.fromkeys(k.dataset for k in noisy))
    if len(noisy) < 3 or len(sets) < 2:
        raise invalid(
            "collapse", "needs three noisy levels and two data sets", f"{len(noisy)} and {len(sets)}"
        )
    groups = [[k for k in noisy if k.dataset == name] for name in sets]
    axes = [(np.array([k.dnoise for k in g]), np.array([k.pnoise for k in g])) for g in groups]
    shares = [np.array([k.share for k in g]) for g in groups]
    rng = np.random.default_rng(seed)
    draws = []
    for _ in range(resamples):
        chosen = rng.integers(len(groups), size=len(groups))
        y = [_redrawn(groups[i], rng) for i in chosen]
        draws.append(_figures([axes[i] for i in chosen], y))
    point = _figures(axes, shares)
    tail = 50 * (1 - confidence)
    low, high = np.nanpercentile(draws, [tail, 100 - tail], axis=0).tolist()
    d, p = (Explained(point[i], low[i], high[i], point[i + 1], low[i + 1], high[i + 1]) for i in (0, 2))
    return Collapse(len(noisy), len(sets), d, p, point[4], low[4], high[4])


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
    found: list[float] = []
    for axis in (0, 1):
        x = np.concatenate([a[axis] for a in axes])
        varies = np.ptp(x) > 0 and np.ptp(y) > 0
        found += [falling_r2(x, y), float(spearmanr(x, -y).statistic) if varies else float("nan")]
    return [*found, found[2] - found[0]]


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
