"""What a worker does with a cell: load data, corrupt labels, fit and score, measure.

Test labels come in after the method has returned its scores, and nowhere else.
"""

import functools
import importlib.metadata
import json
import math
import platform
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from cleanrank.data.split import Splits
from cleanrank.errors import invalid
from cleanrank.experiments.methods import (
    BUDGET,
    METHODS,
    NOISE,
    TRUE_NOISE,
    Judge,
    MethodResult,
    MethodTask,
    Unjudged,
)
from cleanrank.experiments.noises import CLICK_NOISES, Split, add_noise, noise_profile
from cleanrank.experiments.results import Result, failure, now, pack, to_json
from cleanrank.experiments.sources import identity_of, load_splits
from cleanrank.experiments.studies import STUDIES, Measurements, StudyTask, algorithm
from cleanrank.metrics.evaluation import evaluate
from cleanrank.noise.pair_noise import composition, pnoise, pnoise_expected, pooled_pnoise
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.noise.scales import DERIVED, derive, merge_grades
from cleanrank.types import RankingData
from cleanrank.validation import one_of

PACKAGES = ("cleanrank", "numpy", "lightgbm", "numba", "torch")
SAMPLES = 5  # the papers draw five
# Threads of one process take turns: not every threading layer of numba survives two callers at once.
_TURN = threading.Lock()


def run_cell(text: str) -> bytes:
    """Computes the cell that ``text`` (JSON) describes; whatever goes wrong becomes a failed result."""
    with _TURN:
        started_at, start = now(), time.perf_counter()
        try:
            return pack(_result(json.loads(text), started_at, start))
        except Exception:
            spent = time.perf_counter() - start
            return pack(failure(traceback.format_exc(), started_at=started_at, wall_seconds=spent))


def _result(cell: Mapping[str, Any], started_at: str, start: float) -> Result:
    splits = _splits(cell["data"], cell["fold"], to_json(cell["options"]), cell["identity"])
    if "derived" in cell:
        splits = derived_splits(splits, cell["derived"], cell["seed"])
    version = algorithm(cell["algorithm"]).version
    if version != cell["version"]:
        raise invalid(
            f"method {cell['algorithm']!r}",
            f"must have version {cell['version']}, as the driver has",
            version,
            remedy="Install the same cleanrank everywhere.",
        )
    measured = (_study if cell["algorithm"] in STUDIES else _ranked)(cell, splits)
    return Result(
        status="done",
        values={m: measured.values[m] for m in cell["measures"]},
        means={m: measured.means[m] for m in cell["measures"]},
        query_ids=measured.query_ids,
        chosen=measured.chosen,
        error="",
        versions=versions(),
        wall_seconds=time.perf_counter() - start,
        started_at=started_at,
    )


def _ranked(cell: Mapping[str, Any], splits: Splits) -> Measurements:
    scored = score(cell, splits)
    evaluation = evaluate(scored.scores, splits.test, cell["measures"], n_jobs=1)
    values = {m: np.asarray(v) for m, v in evaluation.items()}
    means = {m: float(v) for m, v in evaluation.means.items()}
    return Measurements(values, means, splits.test.query_ids.tolist(), scored.chosen)


def _study(cell: Mapping[str, Any], splits: Splits) -> Measurements:
    """Runs the cell's study, which sees the clean labels too."""
    train, validation = noisy_data(cell, splits)
    return STUDIES[cell["algorithm"]].run(
        StudyTask(
            clean=splits,
            train=train,
            validation=validation,
            profile=_profile(cell, splits, train),
            params=cell["params"],
            select=cell["select"],
            seed=cell["seed"],
        )
    )


def score(cell: Mapping[str, Any], splits: Splits) -> MethodResult:
    """Runs the cell's method on what it may see: labels of train and validation, features of test.

    A method whose parameters say so gets the noise matrix, or may ask a judge for the true grades of some
    training rows; they are counted. Where the training labels are noisy, how noisy they came out is noted
    beside what the method chose.
    """
    train, validation = noisy_data(cell, splits)
    profile = _profile(cell, splits, train)
    params = cell["params"]
    judge = Judge(splits.train.y, params.get(BUDGET, 0))
    clicks = CLICK_NOISES.get(cell["noise"]) if cell["rate"] else None
    true_noise = clicks.profile(cell["rate"]) if clicks else profile
    scored = METHODS[cell["algorithm"]].run(
        MethodTask(
            train=train,
            validation=validation,
            test=Unjudged(splits.test.X, splits.test.indptr),
            params=params,
            grid=cell["grid"],
            select=cell["select"],
            seed=cell["seed"],
            judge=judge,
            profile=true_noise if params.get(NOISE) == TRUE_NOISE else None,
            users=clicks.users(cell["rate"], (splits.train, splits.validation)) if clicks else None,
        )
    )
    facts: dict[str, Any] = {"judgements": judge.n_judged} if BUDGET in params else {}
    if train is not splits.train and clicks is None:
        facts |= realised_noise(splits.train, train, profile)
    return replace(scored, chosen={**scored.chosen, **facts})


def noisy_data(cell: Mapping[str, Any], splits: Splits) -> Split:
    """Train and validation data with the noise of the cell."""
    clean = splits.train, splits.validation
    return add_noise(cell["noise"], cell["rate"], clean, cell["on"], cell["seed"])


def _profile(cell: Mapping[str, Any], splits: Splits, train: RankingData) -> NoiseProfile:
    """The noise of a cell's training labels as a matrix; the identity where there is none."""
    C = max(2, splits.train.n_grades, splits.validation.n_grades)
    return noise_profile(cell["noise"], cell["rate"], splits.train, train, C)


def realised_noise(clean: RankingData, noisy: RankingData, profile: NoiseProfile) -> dict[str, float]:
    """The figures of REALISED for the labels a ranker learns from; one that is not defined is left out."""
    counts = clean.grade_counts(profile.n_grades)
    figures = {
        "train_dnoise": float((clean.y != noisy.y).mean()),
        "train_pnoise": float(pnoise(clean.y, noisy.y, clean.indptr, n_jobs=1)),
        "expected_pnoise": pooled_pnoise(profile.matrix, *composition(counts)),
        "overall_pnoise": pnoise_expected(profile, counts.sum(axis=0)),
    }
    return {name: value for name, value in figures.items() if not math.isnan(value)}


@functools.lru_cache(maxsize=2)
def _splits(name: str, fold: int, options: str, identity: str) -> Splits:
    """Loads data once for the many cells that share them, and makes sure they are those the key speaks of."""
    values = json.loads(options)
    present = identity_of(name, fold, values)
    if present != identity:
        raise invalid(
            f"data set {name!r}, fold {fold}",
            "must be the same where cells are planned and where they are computed",
            f"contents {present[:12]} instead of {identity[:12]}",
            remedy="Put the same files there, or run again if they were just changed.",
        )
    return load_splits(name, fold, values)


def derived_splits(splits: Splits, name: str, seed: int) -> Splits:
    """Train and validation data of the derived set ``name``: grades merged or queries sampled.

    Test data stay as they are, documents and grades, so that a data set and the sets derived from it are
    judged by one yardstick. Of sets that are samples of one source (TD2003P1 and TD2003P7, say) each takes
    the queries that can serve all of them: they differ in balance, not in queries or size. Seeds that differ
    by 5 share a sample.
    """
    one_of("derived set", name, DERIVED)
    train, validation = (
        derive(_usable_queries(data, name), name, seed=seed % SAMPLES).data
        for data in (splits.train, splits.validation)
    )
    return replace(splits, train=train, validation=validation)


def needed_counts(name: str) -> tuple[int, ...] | None:
    """Documents of each grade that a query must have to serve a derived set and its siblings.

    >>> needed_counts("TD2003P1"), needed_counts("OHSUMED2G")
    ((14, 8), None)
    """
    mine = DERIVED[name]
    if mine.counts is None:
        return None
    family = [
        d.counts for d in DERIVED.values() if d.counts and (d.source, d.merge) == (mine.source, mine.merge)
    ]
    return tuple(max(counts) for counts in zip(*family, strict=True))


def _usable_queries(data: RankingData, name: str) -> RankingData:
    needed, merge = needed_counts(name), DERIVED[name].merge
    if needed is None:
        return data
    merged = data if merge is None else merge_grades(data, merge)
    counts = merged.grade_counts(max(len(needed), merged.n_grades))
    enough = (counts[:, : len(needed)] >= np.array(needed)).all(axis=1)
    if not enough.any():
        words = " + ".join(f"{n} of grade {g}" for g, n in enumerate(needed))
        raise invalid(f"{name}: queries", f"must have {words} documents somewhere", "no such query")
    return data.select(np.repeat(enough, data.lengths))


@functools.cache
def versions() -> dict[str, str]:
    """Versions of what the figures come from."""
    numbers = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            numbers[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            numbers[package] = "unknown"
    return numbers
