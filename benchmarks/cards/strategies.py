"""How far RobustRanker's "auto" falls behind the best of its single strategies, over seeds.

A *cell* is a noise, a method and a seed; the seed makes the data, the noise and the ranker. Data and noise
are those of recipes/recovery/card.toml on the large synthetic set: training and validation labels are noisy,
but for "clean-trained", which has true ones for both. With means over seeds,

    loss = clean-trained - noisy-trained,   share = (method - noisy-trained) / loss.

"auto" is below the best single strategy of a noise by the difference of their shares. The best is the one
with the highest mean over the seeds, known afterwards: no choice could be sure of it. Intervals are 95 %
percentiles of a bootstrap over seeds, in which it stays the same.
"""

import json
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.data.split import Splits
from cleanrank.experiments.noises import SPLITS, add_noise
from cleanrank.experiments.sources import load_splits
from cleanrank.metrics.evaluation import evaluate_mean
from cleanrank.rankers.boosted import BoostedRanker
from cleanrank.report.collapse import Estimate
from cleanrank.report.table import Table
from cleanrank.robust.robust_ranker import GRID, RobustRanker
from cleanrank.types import FloatArray

NOISES = (("uniform", 0.4), ("one-way", 0.1), ("missed", 0.6))
LARGE: Mapping[str, Any] = {
    "shape": "mslr",
    "n_queries": 640,
    "n_features": 40,
    "docs_per_query": 20.0,
    "test_queries": 2000,
}
CLEAN, NOISY, AUTO = "clean-trained", "noisy-trained", "auto"
MEASURE = "ndcg@10"
LEAST_LOSS = 0.02
GOAL = 0.1
RESAMPLES = 2000


@dataclass(frozen=True)
class Cell:
    """One figure: a method under a noise, with one seed."""

    noise: str
    rate: float
    method: str
    seed: int


def cells_of(strategies: Iterable[str], seeds: Iterable[int]) -> list[Cell]:
    """All cells, seed by seed: a run that is stopped has whole seeds. "clean-trained" has no noise."""
    methods = (NOISY, *strategies)
    return [
        cell
        for seed in seeds
        for cell in (
            Cell("none", 0.0, CLEAN, seed),
            *(Cell(noise, rate, method, seed) for noise, rate in NOISES for method in methods),
        )
    ]


def run_cell(
    cell: Cell, data: Mapping[str, Any] = LARGE, settings: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The line of a cell: what it is, its mean over test queries, its seconds.

    Args:
        cell: what to run.
        data: options of the synthetic data.
        settings: of the rankers, in place of their defaults.
    """
    truth = _splits(json.dumps(dict(data)), cell.seed)
    clean = truth.train, truth.validation
    train, validation = add_noise(cell.noise, cell.rate, clean, SPLITS, cell.seed) if cell.rate else clean
    start = time.perf_counter()
    options = {"random_state": cell.seed, **(settings or {})}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if cell.method in (CLEAN, NOISY):
            tuned = {"grid": GRID, "n_estimators": 500, "early_stopping_rounds": 50, "learning_rate": 0.05}
            ranker: Any = BoostedRanker(**{**tuned, **options})
        else:
            ranker = RobustRanker(strategy=cell.method, **options)
        ranker.fit_data(train, validation)
    seconds = time.perf_counter() - start
    value = evaluate_mean(ranker.predict(truth.test.X), truth.test, MEASURE, n_jobs=1)
    return {**asdict(cell), "data": dict(data), MEASURE: value, "seconds": round(seconds, 2)}


@lru_cache(maxsize=2)
def _splits(data: str, seed: int) -> Splits:
    return load_splits("synthetic", seed, json.loads(data))


def read_store(path: Path, data: Mapping[str, Any] = LARGE) -> dict[Cell, dict[str, Any]]:
    """The lines of a store that belong to these data; a last line that was cut off counts for nothing."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    kept = {}
    for text in lines:
        try:
            line = json.loads(text)
        except json.JSONDecodeError:
            continue
        if line["data"] == dict(data):
            kept[Cell(*(line[name] for name in ("noise", "rate", "method", "seed")))] = line
    return kept


@dataclass(frozen=True)
class Setting:
    """One noise: what it costs, what every method wins back, and how far "auto" is below the best of them."""

    noise: str
    loss: Estimate
    means: Mapping[str, float]
    shares: Mapping[str, Estimate]
    best: str
    below: Estimate


@dataclass(frozen=True)
class Comparison:
    """All noises over the same seeds; ``below`` is the mean over the noises."""

    seeds: tuple[int, ...]
    settings: tuple[Setting, ...]
    below: Estimate

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def compare(values: Mapping[Cell, float], strategies: Sequence[str]) -> Comparison | None:
    """Shares and their intervals, of the seeds that have all their cells; None with fewer than two.

    Args:
        values: the mean of MEASURE of cells.
        strategies: of RobustRanker, "auto" among them.
    """
    seeds = tuple(
        s for s in sorted({c.seed for c in values}) if values.keys() >= {*cells_of(strategies, [s])}
    )
    if len(seeds) < 2:
        return None
    # The same seeds are drawn again for all noises, which share their data.
    draws = np.random.default_rng(0).integers(0, len(seeds), (RESAMPLES, len(seeds)))
    clean = np.array([values[Cell("none", 0.0, CLEAN, seed)] for seed in seeds])
    settings, belows = [], []
    for noise, rate in NOISES:
        of = {
            method: np.array([values[Cell(noise, rate, method, seed)] for seed in seeds])
            for method in (NOISY, *strategies)
        }
        loss = _drawn(clean - of[NOISY], draws)
        shares = {method: _drawn(of[method] - of[NOISY], draws) / loss for method in strategies}
        best = max((method for method in strategies if method != AUTO), key=lambda method: shares[method][0])
        belows.append(shares[best] - shares[AUTO])
        settings.append(
            Setting(
                f"{noise} {rate:g}",
                _estimate(loss),
                {CLEAN: float(clean.mean()), **{method: float(v.mean()) for method, v in of.items()}},
                {method: _estimate(v) for method, v in shares.items()},
                best,
                _estimate(belows[-1]),
            )
        )
    return Comparison(seeds, tuple(settings), _estimate(np.mean(belows, axis=0)))


def _drawn(values: FloatArray, draws: Any) -> FloatArray:
    """The mean over seeds, then that of every draw of seeds."""
    return np.concatenate(([values.mean()], values[draws].mean(axis=1)))


def _estimate(means: FloatArray) -> Estimate:
    low, high = np.quantile(means[1:], [0.025, 0.975])
    return Estimate(float(means[0]), float(low), float(high))


def comparison_table(comparison: Comparison) -> Table:
    """A row for every method, a column for every noise."""
    settings = comparison.settings
    losses = [f"{s.loss.value:.4f} [{s.loss.low:.4f}, {s.loss.high:.4f}]" for s in settings]
    rows = [
        ["loss of NDCG@10", *losses],
        *([f"share: {method}", *(str(s.shares[method]) for s in settings)] for method in settings[0].shares),
        ["best single strategy", *(s.best for s in settings)],
        ["auto below it", *(str(s.below) for s in settings)],
    ]
    return Table(["", *(s.noise for s in settings)], rows)


def verdict(comparison: Comparison) -> str:
    """What was asked for beside what was reached."""
    small = [s.noise for s in comparison.settings if s.loss.value < LEAST_LOSS]
    return (
        f"Mean over the noises, {len(comparison.seeds)} seeds: auto is {comparison.below} of the loss below "
        f"the best single strategy (goal: at most {GOAL:.2f}). Losses below {LEAST_LOSS}: "
        f"{', '.join(small) or 'none'}."
    )
