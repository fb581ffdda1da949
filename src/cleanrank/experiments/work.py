"""What a worker does with a cell: load, corrupt, fit and score, measure.

Test labels come in after the method has returned its scores, and nowhere else.
"""

import functools
import importlib.metadata
import json
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
from cleanrank.experiments.clicked import CLICK_NOISES, flip_profile, users_of
from cleanrank.experiments.derived import derived_splits
from cleanrank.experiments.methods import BUDGET, METHODS, NOISE, TOLD, Judge, Scored, Task, Unjudged
from cleanrank.experiments.noises import give_labels, profile_between
from cleanrank.experiments.realised import realised
from cleanrank.experiments.results import Result, failure, now, pack, to_json
from cleanrank.experiments.sources import identity_of, load_splits
from cleanrank.experiments.studies import STUDIES, Inquiry, Measured, contender
from cleanrank.metrics.evaluation import evaluate
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.types import RankingData

PACKAGES = ("cleanrank", "numpy", "lightgbm", "numba", "torch")
# Threads of one process take turns: not every threading layer of numba survives two callers at once.
_TURN = threading.Lock()


def run_cell(text: str) -> bytes:
    """Computes the cell that ``text`` (JSON) describes; whatever goes wrong becomes a failed result."""
    with _TURN:
        started_at, start = now(), time.perf_counter()
        try:
            return pack(compute(json.loads(text), started_at, start))
        except Exception:
            spent = time.perf_counter() - start
            return pack(failure(traceback.format_exc(), started_at=started_at, wall_seconds=spent))


def compute(cell: Mapping[str, Any], started_at: str, start: float) -> Result:
    """The figures of a cell."""
    splits = _splits(cell["data"], cell["fold"], to_json(cell["options"]), cell["identity"])
    if "derived" in cell:
        splits = derived_splits(splits, cell["derived"], cell["seed"])
    _check_version(cell)
    found = inquire(cell, splits) if cell["algorithm"] in STUDIES else _ranked(cell, splits)
    return Result(
        status="done",
        values={m: found.values[m] for m in cell["measures"]},
        means={m: found.means[m] for m in cell["measures"]},
        query_ids=found.query_ids,
        chosen=found.chosen,
        error="",
        versions=versions(),
        wall_seconds=time.perf_counter() - start,
        started_at=started_at,
    )


def _check_version(cell: Mapping[str, Any]) -> None:
    found = contender(cell["algorithm"]).version
    if found != cell["version"]:
        raise invalid(
            f"method {cell['algorithm']!r}",
            f"must have version {cell['version']}, as the driver has",
            found,
            remedy="Install the same cleanrank everywhere.",
        )


def _ranked(cell: Mapping[str, Any], splits: Splits) -> Measured:
    scored = score(cell, splits)
    found = evaluate(scored.scores, splits.test, cell["measures"], n_jobs=1)
    values = {m: np.asarray(v) for m, v in found.items()}
    means = {m: float(v) for m, v in found.means.items()}
    return Measured(values, means, splits.test.query_ids.tolist(), scored.chosen)


def inquire(cell: Mapping[str, Any], splits: Splits) -> Measured:
    """Runs the cell's study, which sees the clean labels too."""
    train, validation = noisy(cell, splits.train, splits.validation)
    return STUDIES[cell["algorithm"]].run(
        Inquiry(
            clean=splits,
            train=train,
            validation=validation,
            profile=_profile(cell, splits, train),
            params=cell["params"],
            select=cell["select"],
            seed=cell["seed"],
        )
    )


def score(cell: Mapping[str, Any], splits: Splits) -> Scored:
    """Runs the cell's method on what it may see: labels of train and validation, features of test.

    A method whose parameters say so is told the noise matrix, or may ask a judge for the true grades of some
    training rows; what it asked is counted. Where the training labels are noisy, how noisy they came out is
    noted beside what the method chose.
    """
    train, validation = noisy(cell, splits.train, splits.validation)
    profile = _profile(cell, splits, train)
    params = cell["params"]
    judge = Judge(splits.train.y, params.get(BUDGET, 0))
    clicks = cell["noise"] in CLICK_NOISES
    told = flip_profile(cell["noise"], cell["rate"]) if clicks else profile
    scored = METHODS[cell["algorithm"]].run(
        Task(
            train=train,
            validation=validation,
            test=Unjudged(splits.test.X, splits.test.indptr),
            params=params,
            grid=cell["grid"],
            select=cell["select"],
            seed=cell["seed"],
            judge=judge,
            profile=told if params.get(NOISE) == TOLD else None,
            users=users_of(cell["noise"], cell["rate"], (splits.train, splits.validation)),
        )
    )
    if BUDGET in params:
        scored = replace(scored, chosen={**scored.chosen, "judgements": judge.told})
    if train is splits.train or clicks:
        return scored
    return replace(scored, chosen={**scored.chosen, **realised(splits.train, train, profile)})


def _profile(cell: Mapping[str, Any], splits: Splits, train: RankingData) -> NoiseProfile:
    """The noise of a cell's training labels as a matrix; the identity where there is none."""
    C = max(2, splits.train.n_grades, splits.validation.n_grades)
    return profile_between(cell["noise"], cell["rate"], splits.train, train, C)


def noisy(
    cell: Mapping[str, Any], train: RankingData, validation: RankingData
) -> tuple[RankingData, RankingData]:
    """Train and validation data with the noise of the cell."""
    return give_labels(cell["noise"], cell["rate"], (train, validation), cell["on"], cell["seed"])


@functools.lru_cache(maxsize=2)
def _splits(name: str, fold: int, options: str, identity: str) -> Splits:
    """Loads data once for the many cells that share them, and makes sure they are those the key speaks of."""
    given = json.loads(options)
    found = identity_of(name, fold, given)
    if found != identity:
        raise invalid(
            f"data set {name!r}, fold {fold}",
            "must be the same where cells are planned and where they are computed",
            f"contents {found[:12]} instead of {identity[:12]}",
            remedy="Put the same files there, or run again if they were just changed.",
        )
    return load_splits(name, fold, given)


@functools.cache
def versions() -> dict[str, str]:
    """Versions of what the figures come from."""
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "unknown"
    return found
