"""The whole workflow on synthetic data whose truth is known: diagnose, find issues, clean, train, compare.

Every step can be checked, since the clean labels are kept aside: a tenth of the training and validation
labels is changed at random, detectors are compared with what was changed, and rankers on clean test labels.
The ceiling has clean training and validation labels and averages models as RobustRanker does.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.cleaning import Cleaned, clean
from cleanrank.data.split import Splits, split
from cleanrank.data.synthetic import make_ranking
from cleanrank.diagnosis import diagnose
from cleanrank.diagnosis.diagnose import Diagnosis
from cleanrank.experiments.studies.labels import agreement
from cleanrank.issues.find import find_label_issues
from cleanrank.issues.table import LabelIssues
from cleanrank.metrics.comparison import Comparison, compare
from cleanrank.noise.corrupt import corrupt
from cleanrank.noise.estimate import NoiseEstimate
from cleanrank.noise.gold import from_gold, sample_gold
from cleanrank.noise.pair_noise import PairNoise, pnoise, pnoise_expected
from cleanrank.noise.profiles import Corruption
from cleanrank.rankers.boosted import BoostedRanker
from cleanrank.rankers.trees import TreeParams
from cleanrank.report.articles import write_demo
from cleanrank.robust.robust_ranker import RobustRanker
from cleanrank.robust.sour import SOURRanker
from cleanrank.types import Array, FloatArray, IntArray, Progress, RankingData, plain

RATE = 0.1
GOLD = 100
MEASURES = ("ndcg@10", "map:skip", "auc")
PARAMS: Mapping[str, Any] = {"learning_rate": 0.1, "num_leaves": 15, "min_data_in_leaf": 100}
ROUNDS, PATIENCE = 150, 25
POSTERIOR, ALONE = "posterior, 100 rows judged again", "data alone"
BASELINE, CEILING, CLEANED = "noisy labels", "clean labels", "cleaned labels"
ROBUST, ROBUST_GOLD = "RobustRanker, nothing known", "RobustRanker, 100 rows judged again"
STEPS = 16
PARTS = ("train", "validation", "test")
SHARES = (0.5, 0.2, 0.3)
WORST = 12
BINS = np.linspace(0, 1, 11)

Report = Callable[[str, int, int], None]


@dataclass(frozen=True, eq=False)
class Demo:
    """The data, models and figures of the demo.

    Attributes:
        clean: train, validation and test data before noise.
        noisy: the training data and what was changed.
        diagnosis: of the noisy training data.
        pair_noise: measured on the training data.
        estimate: the noise as 100 rows judged again show it.
        tables: detector -> its issues in the training data.
        cleaned: the training data with expected gains.
        scores: ranker -> a score per test document.
        comparison: of the rankers on clean test labels.
        seconds: step -> how long it took.
        seed: what everything random came from.
    """

    clean: Splits
    noisy: Corruption
    diagnosis: Diagnosis
    pair_noise: PairNoise
    estimate: NoiseEstimate
    tables: Mapping[str, LabelIssues]
    cleaned: Cleaned
    scores: Mapping[str, FloatArray]
    comparison: Comparison
    seconds: Mapping[str, float]
    seed: int

    @property
    def recovered(self) -> dict[str, float]:
        """Ranker -> (ranker - baseline) / (ceiling - baseline) in NDCG@10, where the noise cost anything."""
        means = {r["system"]: r["mean"] for r in self.comparison.rows() if r["measure"] == "ndcg@10"}
        lost = means[CEILING] - means[BASELINE]
        return {name: (mean - means[BASELINE]) / lost for name, mean in means.items()} if lost > 0 else {}

    def to_dict(self) -> dict[str, Any]:
        """Everything the page shows, as plain values."""
        recovered = self.recovered
        methods = {k: v for k, v in recovered.items() if k not in (BASELINE, CEILING)}
        best = max(methods, key=lambda name: methods[name], default=None)
        parts = {name: getattr(self.clean, name) for name in PARTS}
        low, high = self.estimate.rate_interval
        values: dict[str, Any] = plain(
            {
                "queries": {name: part.n_queries for name, part in parts.items()},
                "documents": {name: part.n_docs for name, part in parts.items()},
                "features": self.clean.train.n_features,
                "rate": RATE,
                "seed": self.seed,
                "changed": int(self.noisy.changed.sum()),
                "pnoise": float(self.pair_noise),
                "pnoise_expected": pnoise_expected(self.noisy.profile, np.bincount(self.noisy.true_labels)),
                "signal_left": 1 - 2 * float(self.pair_noise),
                "gold": {"rows": self.estimate.n, "rate": self.estimate.rate, "low": low, "high": high},
                "grades": _grades(self.noisy),
                "detectors": [_detector(n, t, self.noisy.changed) for n, t in self.tables.items()],
                "reliability": _reliability(next(iter(self.tables.values())), self.noisy.changed),
                "worst": _worst(self),
                "systems": _systems(self.comparison, recovered),
                "baseline": BASELINE,
                "ceiling": CEILING,
                "best": best,
                "recovered": methods[best] if best else None,
                "steps": [{"step": k, "seconds": v} for k, v in self.seconds.items()],
                "command": f"cleanrank demo --queries {sum(part.n_queries for part in parts.values())} "
                f"--seed {self.seed}",
            }
        )
        return values

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Writes everything as one page that needs no network."""
        return write_demo(self.to_dict(), path)


class _Clock:
    """Reports which step runs, and keeps how long each took."""

    def __init__(self, report: Report | None) -> None:
        self.report = report or (lambda step, done, total: None)
        self.seconds: dict[str, float] = {}

    @contextmanager
    def step(self, name: str) -> Iterator[Progress]:
        self.report(name, 0, 0)
        begun = time.perf_counter()
        yield lambda done, total: self.report(name, done, total)
        self.seconds[name] = time.perf_counter() - begun


def run_demo(n_queries: int = 400, *, seed: int = 0, n_jobs: int = 1, progress: Report | None = None) -> Demo:
    """Runs the whole workflow.

    Args:
        n_queries: queries of the synthetic set, of which half train, 20 % validate and 30 % test.
        seed: for everything random.
        n_jobs: threads.
        progress: called with (step, done, total); total is 0 where it is not known.
    """
    clock = _Clock(progress)
    with clock.step("making data"):
        learn, choose, test = split(make_ranking(n_queries, seed=seed), SHARES, seed=seed)
        truth = Splits(learn, choose, test)
        noisy = corrupt(truth.train, profile="uniform", rate=RATE, seed=seed + 1)
        validation = corrupt(truth.validation, profile="uniform", rate=RATE, seed=seed + 2).data
        train = noisy.data
    with clock.step("diagnosing"):
        diagnosis = diagnose(train, name="the noisy training data")
        pair_noise = pnoise(noisy.true_labels, train.y, train.indptr)
    with clock.step("judging rows again"):
        sheet = sample_gold(train, min(GOLD, train.n_docs), seed=seed)
        gold = sheet.row_ids, noisy.true_labels[sheet.rows]
        estimate = from_gold(train, *gold, seed=seed)
    tables = _find(train, gold, estimate, clock, seed, n_jobs)
    with clock.step("cleaning"):
        cleaned = clean(train, tables[POSTERIOR], mode="posterior", by="cleanrank demo")
    scores = _train(truth, train, cleaned.data, validation, gold, clock, seed, n_jobs)
    with clock.step("comparing"):
        comparison = compare(scores, truth.test, MEASURES, order="data", baseline=BASELINE, seed=seed)
    results = (tables, cleaned, scores, comparison)
    return Demo(truth, noisy, diagnosis, pair_noise, estimate, *results, clock.seconds, seed)


def _find(
    train: RankingData, gold: Any, estimate: NoiseEstimate, clock: _Clock, seed: int, n_jobs: int
) -> dict[str, LabelIssues]:
    """Detectors: with the rows judged again, from the data alone, and what they are compared with."""
    with clock.step("finding issues, with the rows judged again"):
        tables = {POSTERIOR: find_label_issues(train, gold=gold, seed=seed, n_jobs=n_jobs)}
    with clock.step("finding issues, from the data alone"):
        tables[ALONE] = find_label_issues(train, seed=seed, n_jobs=n_jobs)
    with clock.step("finding consistent outliers"):
        tables["SOUR"] = find_label_issues(
            train, "sour", end=ROUNDS, params=PARAMS, min_frequency=0.9, seed=seed, n_jobs=n_jobs
        )
    with clock.step("finding issues, by other means"):
        tables["isolation forest"] = find_label_issues(train, "isolation", seed=seed, n_jobs=n_jobs)
        tables["given grade alone"] = find_label_issues(train, "by-grade", noise=estimate, seed=seed)
    return tables


def _train(
    truth: Splits,
    train: RankingData,
    cleaned: RankingData,
    validation: RankingData,
    gold: tuple[IntArray, Array],
    clock: _Clock,
    seed: int,
    n_jobs: int,
) -> dict[str, FloatArray]:
    """Scores of the test documents by models of the same parameters."""
    X = truth.test.X
    shared: dict[str, Any] = {"random_state": seed, "n_jobs": n_jobs, "params": PARAMS}
    trees: dict[str, Any] = {"n_estimators": ROUNDS, "early_stopping_rounds": PATIENCE}

    def trained_on(rows: RankingData, tick: Progress) -> FloatArray:
        settings = TreeParams(params=PARAMS, seed=seed, n_jobs=n_jobs, **trees)
        return settings.train(rows, validation, progress=tick).predict(X)

    sour = SOURRanker(end=ROUNDS, start=[0, ROUNDS // 2], kind=["neg", "all"], **trees, **shared)
    peers = BoostedRanker(robust="peer", peers="expected", **trees, **shared)

    def repaired(tick: Progress, **known: Any) -> FloatArray:
        ranker = RobustRanker(**trees, **shared).fit_data(train, validation, progress=tick, **known)
        return ranker.predict(X)

    def ceiling(tick: Progress) -> FloatArray:
        ranker = RobustRanker(strategy="baseline", **trees, **shared)
        return ranker.fit_data(truth.train, truth.validation, progress=tick).predict(X)

    models: dict[str, tuple[str, Callable[[Progress], FloatArray]]] = {
        BASELINE: (f"training on {BASELINE}", lambda tick: trained_on(train, tick)),
        "SOUR": ("training SOUR", lambda tick: sour.fit_data(train, validation, progress=tick).predict(X)),
        "peers": (
            "training with peers",
            lambda tick: peers.fit_data(train, validation, progress=tick).predict(X),
        ),
        CLEANED: (f"training on {CLEANED}", lambda tick: trained_on(cleaned, tick)),
        ROBUST: ("training RobustRanker, nothing known", repaired),
        ROBUST_GOLD: (
            "training RobustRanker, with the rows judged again",
            lambda tick: repaired(tick, gold=gold),
        ),
        CEILING: (f"training on {CEILING}", ceiling),
    }
    scores: dict[str, FloatArray] = {}
    for name, (step, fit) in models.items():
        with clock.step(step) as tick:
            scores[name] = fit(tick)
    return scores


def _grades(noisy: Corruption) -> list[dict[str, Any]]:
    given, true = noisy.data.y, noisy.true_labels
    return [
        {
            "grade": g,
            "true": int((true == g).sum()),
            "given": int((given == g).sum()),
            "wrong": float(noisy.changed[given == g].mean()) if (given == g).any() else None,
        }
        for g in range(max(int(given.max()), int(true.max())) + 1)
    ]


def _detector(name: str, table: LabelIssues, wrong: Any) -> dict[str, Any]:
    figures = agreement(table, wrong)
    return {
        "name": name,
        "issues": table.n_issues,
        "precision": figures["precision"],
        "recall": figures["recall"],
        "average_precision": figures["average precision"],
        "within_grades": figures["average precision within grades"],
        "curve": _curve(table.doubt, wrong),
    }


def _curve(doubt: FloatArray, wrong: Any, points: int = 60) -> dict[str, list[float]]:
    """Precision over recall, thinned out to equal steps of recall."""
    order = np.argsort(-doubt, kind="stable")
    hits = np.cumsum(wrong[order])
    recall, precision = hits / max(1, hits[-1]), hits / np.arange(1, len(hits) + 1)
    kept = np.unique(np.searchsorted(recall, np.linspace(0.01, 1, points)).clip(0, len(hits) - 1))
    return {"recall": recall[kept].tolist(), "precision": precision[kept].tolist()}


def _reliability(table: LabelIssues, wrong: Any) -> list[dict[str, Any]]:
    """Mean doubt and share of wrong labels, by tenths of the doubt."""
    place = np.clip(np.digitize(table.doubt, BINS) - 1, 0, len(BINS) - 2)
    return [
        {"said": float(table.doubt[rows].mean()), "wrong": float(wrong[rows].mean()), "rows": int(rows.sum())}
        for rows in (place == b for b in range(len(BINS) - 1))
        if rows.any()
    ]


def _worst(demo: Demo) -> list[dict[str, Any]]:
    """The most doubted labels, with reasons in words and the truth beside them."""
    noisy = demo.noisy
    truth = dict(zip(noisy.data.row_ids.tolist(), noisy.true_labels.tolist(), strict=True))
    return [
        {
            "query": each.query_id,
            "row": each.row_id,
            "given": each.given_label,
            "truth": truth[each.row_id],
            "doubt": each.doubt,
            "why": each.why,
        }
        for each in demo.tables[ALONE].explain(noisy.data, WORST)  # rows judged again are no news
    ]


def _systems(comparison: Comparison, recovered: Mapping[str, float]) -> list[dict[str, Any]]:
    """The rows of NDCG@10, with intervals of the means; the baseline is not compared with itself."""
    systems = []
    for row in (r for r in comparison.rows() if r["measure"] == "ndcg@10"):
        name = row["system"]
        low, high = comparison.evaluations[name].intervals()["ndcg@10"]
        against = {key: row.get(key) for key in ("difference", "low", "high")}  # the baseline has none
        against |= {
            "p": row.get("p_corrected"),
            "recovered": None if row["baseline"] else recovered.get(name),
        }
        systems.append({"name": name, "mean": row["mean"], "mean_low": low, "mean_high": high, **against})
    return systems
