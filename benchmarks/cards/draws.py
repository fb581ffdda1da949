"""Cells of one setting side by side, and the bootstrap over test queries and seeds that all cards share.

Queries and seeds are drawn again once for every group of settings that share test queries, and all settings
and methods of the group see the same draw, so that differences are paired and averages over settings know
what they share. (``metrics.significance`` draws queries alone, so this is a bootstrap of its own.)
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cleanrank.report.collapse import Estimate
from cleanrank.report.summaries import CellId, Level
from cleanrank.types import FloatArray, RunRecord

Place = tuple[str, Level]
JUDGEMENTS = "judgements"


@dataclass(frozen=True, eq=False)
class Ran:
    """What ran in a setting: (seeds, queries) of every fold and method that is whole, rows paid for, gaps."""

    folds: tuple[str, ...]
    seeds: tuple[str, ...]
    values: Mapping[str, Mapping[str, FloatArray]]
    paid: Mapping[str, float]
    gaps: tuple[str, ...]


def ran_in(done: Mapping[CellId, RunRecord], place: Place, methods: Sequence[str], measure: str) -> Ran:
    """The cells of a setting; a method that lacks one has no values and is named among the gaps."""
    here = {c[2:]: r for c, r in done.items() if (c[0], c[1]) == place}
    folds, seeds = tuple(sorted({c[0] for c in here})), tuple(sorted({c[2] for c in here}))
    values: dict[str, dict[str, FloatArray]] = {}
    paid: dict[str, float] = {}
    gaps: list[str] = []
    for method in methods:
        cells = [(fold, method, seed) for fold in folds for seed in seeds]
        present = [here[c] for c in cells if c in here]
        if len(present) < len(cells):
            lacks = f"{len(cells) - len(present)} of {len(cells)} cells"
            gaps.append(f"{place[0]}, {place[1].label}, {method}: {lacks}")
            continue
        values[method] = {
            fold: np.array([here[fold, method, s].values[measure] for s in seeds], dtype=np.float64)
            for fold in folds
        }
        paid[method] = float(np.mean([r.chosen.get(JUDGEMENTS, 0) for r in present]))
    return Ran(folds, seeds, values, paid, tuple(gaps))


def drawn_means(
    ran: Mapping[Place, Ran], resamples: int, rng: np.random.Generator
) -> dict[tuple[Place, str], FloatArray]:
    """Means of every method in settings that share test queries: that of the data first, then the draws'."""
    sizes = {
        fold: by_fold[fold].shape[1]
        for each in ran.values()
        for by_fold in each.values.values()
        for fold in by_fold
    }
    seeds = tuple(dict.fromkeys(s for each in ran.values() for s in each.seeds))
    times = dict(zip(seeds, _times(len(seeds), resamples, rng).T, strict=True))
    by_query = {fold: _times(sizes[fold], resamples, rng) for fold in sorted(sizes)}
    means: dict[tuple[Place, str], FloatArray] = {}
    for place, each in ran.items():
        weight = np.array([times[s] for s in each.seeds]).T
        weight[weight.sum(axis=1) == 0] = 1.0  # none of the seeds of a setting that has not run to its end
        for method, by_fold in each.values.items():
            sums = sum(by_query[fold] @ np.nan_to_num(v).T for fold, v in by_fold.items())
            counts = sum(by_query[fold] @ (~np.isnan(v)).astype(np.float64).T for fold, v in by_fold.items())
            means[place, method] = (weight * sums).sum(axis=1) / (weight * counts).sum(axis=1)
    return means


def _times(n: int, resamples: int, rng: np.random.Generator) -> FloatArray:
    """How often each of n is drawn, by draw; before them a row of ones."""
    return np.vstack([np.ones(n), rng.multinomial(n, np.full(n, 1 / n), size=resamples)])


def of_draws(draws: FloatArray, confidence: float) -> Estimate:
    """The first entry is the figure of the data, the others are the bootstrap's."""
    return estimate(draws[0], draws[1:], confidence)


def estimate(value: float, draws: FloatArray, confidence: float) -> Estimate:
    """A figure with the percentile interval of its draws."""
    low, high = np.quantile(draws, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Estimate(float(value), float(low), float(high))
