"""Cells: the points of a recipe's grid, each with a key that hashes everything its figures depend on.

The key covers the data (by the SHA-256 of their files), fold, noise, method, the method's version, all
parameters, grid, measures and seed, and PROTOCOL. It leaves out labels, the recipe and the versions of
libraries: the first two do not change figures, and the last are recorded beside the result instead, so that
an upgrade of a library does not throw away what was computed. Where it must, a method's version goes up.

A worker computes a cell with ``run_cell``: load data, corrupt labels, fit and score, measure. Test labels
come in after the method has returned its scores, and nowhere else.
"""

import functools
import hashlib
import importlib.metadata
import json
import math
import os
import platform
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from cleanrank.data.behaviours import ClickSplits
from cleanrank.data.split import Splits
from cleanrank.errors import invalid
from cleanrank.experiments.engines import THREADS
from cleanrank.experiments.methods import (
    BUDGET,
    CLEAN_VALIDATION,
    METHODS,
    NOISE,
    TRUE_NOISE,
    Judge,
    MethodResult,
    MethodTask,
    Unjudged,
)
from cleanrank.experiments.noises import (
    CLICK_FLIPS,
    CLICK_NOISES,
    Split,
    add_noise,
    flip_clicks,
    noise_profile,
    unflipped_clicks,
)
from cleanrank.experiments.recipe import Noise, Recipe
from cleanrank.experiments.results import Result, now, pack, to_json
from cleanrank.experiments.sources import GENERATORS, identity_of, load_splits
from cleanrank.experiments.studies import CTR, STUDIES, ClickTask, StudyTask, algorithm
from cleanrank.metrics.evaluation import evaluate
from cleanrank.noise.pair_noise import composition, pnoise, pnoise_expected, pooled_pnoise
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.noise.scales import DERIVED, derive, merge_grades
from cleanrank.remember import Memory, remembering
from cleanrank.types import RankingData
from cleanrank.validation import one_of

# Goes up when reading data, corrupting labels or measuring changes figures for reasons outside a method.
PROTOCOL = 1
CLEAN = Noise("none", (0.0,))
SHOWN_ONLY = ("dataset", "method")
FILTERS = ("dataset", "fold", "noise", "rate", "method", "seed")
PACKAGES = ("cleanrank", "numpy", "lightgbm", "numba", "torch")
SAMPLES = 5  # the papers draw five
# Below so many documents further threads of trees wait for each other more than they help.
MANY_DOCUMENTS = 50_000
# Threads of one process take turns: not every threading layer of numba survives two callers at once.
_TURN = threading.Lock()
# Of a process: methods of one setting share predictions, forests and noisy labels.
_MEMORY = Memory()

Inputs: TypeAlias = Mapping[str, Any]
Fingerprint: TypeAlias = Callable[[str, int, Mapping[str, Any]], str]


@dataclass(frozen=True)
class CellSpec:
    """One point of the grid: the hash of all inputs, and the inputs themselves, which are JSON-like."""

    key: str
    inputs: Inputs

    @property
    def text(self) -> str:
        """The inputs as canonical JSON."""
        return to_json(self.inputs)

    def __str__(self) -> str:
        i = self.inputs
        noise = f" {i['noise']} {i['rate']:g}" if i["rate"] else ""
        return f"{i['dataset']} fold {i['fold']}{noise}, {i['method']}, seed {i['seed']}"


def key_of(inputs: Inputs) -> str:
    """The SHA-256 of what the figures depend on; a noise rate of 0 is no noise, whatever its profile."""
    return hashlib.sha256(_counted(inputs).encode()).hexdigest()


def setting_of(inputs: Inputs) -> str:
    """What the figures depend on, but for the contents of files, which only a machine that has them knows."""
    return _counted(inputs if inputs["data"] in GENERATORS else {**inputs, "identity": ""})


def _counted(inputs: Inputs) -> str:
    counted = {k: v for k, v in inputs.items() if k not in SHOWN_ONLY}
    if counted["rate"] == 0:
        counted |= {"noise": "none", "on": []}
    # Neither the order of measures nor where a data set is mentioned twice changes a figure.
    counted["measures"] = sorted(counted["measures"])
    return to_json({"protocol": PROTOCOL, **counted})


def expand(recipe: Recipe, fingerprint: Fingerprint) -> list[CellSpec]:
    """All cells of a recipe; those that share data and noise stand together, so that workers reuse them.

    ``fingerprint`` maps data set, fold and options to the identity of the data.
    """
    cells: dict[str, CellSpec] = {}
    for data, fold in ((d, fold) for d in recipe.data for fold in d.folds):
        identity = fingerprint(data.name, fold, data.options)
        for (noise, rate), seed, method in product(_levels(recipe), recipe.seeds, recipe.methods):
            inputs = {
                "dataset": data.label,
                "method": method.label,
                "data": data.name,
                "options": dict(data.options),
                "identity": identity,
                "fold": fold,
                "noise": noise.profile,
                "rate": rate,
                "on": list(noise.on),
                "algorithm": method.method,
                "version": algorithm(method.method).version,
                "params": dict(method.params),
                "grid": {k: list(v) for k, v in method.grid.items()},
                "select": recipe.select,
                "seed": seed,
                "measures": list(recipe.measures),
            }
            if data.derived:  # left out otherwise, so that cells of plain data keep their keys
                inputs["derived"] = data.derived
            # Through JSON and back, so that a cell is the same before and after a visit to the store.
            cell = CellSpec(key_of(inputs), json.loads(to_json(inputs)))
            if (other := cells.setdefault(cell.key, cell)) is not cell:
                both = f"{str(cell)!r} and {str(other)!r}"
                raise invalid("cells", "must differ in more than their labels", both)
    return list(cells.values())


def _levels(recipe: Recipe) -> Iterable[tuple[Noise, float]]:
    """The noise levels; rate 0 comes once, as no noise, and starts the curve of every profile."""
    levels = ((noise if rate else CLEAN, rate) for noise in recipe.noise or (CLEAN,) for rate in noise.rates)
    return dict.fromkeys(levels)


def filter_cells(cells: Sequence[CellSpec], only: Sequence[str]) -> list[CellSpec]:
    """Keeps the cells that every ``field=value[,value...]`` lets through; case does not matter.

    >>> filter_cells([], ["color=red"])
    Traceback (most recent call last):
    cleanrank.errors.UnknownNameError: unknown filter 'color'. Known: dataset, fold, noise, ...
    """
    kept = list(cells)
    for text in only:
        field, equals, values = text.partition("=")
        if not equals:
            remedy = "As in --only dataset=mq2008."
            raise invalid("--only", "must read field=value", repr(text), remedy=remedy)
        one_of("filter", field, FILTERS)
        present = [_filter_text(c.inputs[field]) for c in cells]
        allowed = {one_of(field, _filter_text(v.strip()), dict.fromkeys(present)) for v in values.split(",")}
        kept = [c for c in kept if _filter_text(c.inputs[field]) in allowed]
    return kept


def _filter_text(value: str | float) -> str:
    """Numbers and texts alike as filters compare them: 0.30 as 0.3, MQ2008 as mq2008."""
    try:
        return f"{float(value):g}"
    except ValueError:
        return str(value).lower()


def run_cell(text: str) -> bytes:
    """Computes the cell that ``text`` (JSON) describes; whatever goes wrong becomes a failed result."""
    with _TURN:
        started_at, start = now(), time.perf_counter()

        def timed(result: Result) -> bytes:
            return pack(replace(result, started_at=started_at, wall_seconds=time.perf_counter() - start))

        try:
            with remembering(_MEMORY):
                return timed(_computed(json.loads(text)))
        except Exception:  # of a method: the grid goes on, and the record holds the traceback
            return timed(Result("failed", error=traceback.format_exc()))


def _computed(cell: Inputs) -> Result:
    splits = _splits(cell["data"], cell["fold"], to_json(cell["options"]), cell["identity"])
    if "derived" in cell:
        splits = derived_splits(splits, cell["derived"], cell["seed"])
    version = algorithm(cell["algorithm"]).version
    if version != cell["version"]:
        rule = f"must have version {cell['version']}, as the driver has"
        remedy = "Install the same cleanrank everywhere."
        raise invalid(f"method {cell['algorithm']!r}", rule, version, remedy=remedy)
    run = _clicked if cell["algorithm"] == CTR else _study if cell["algorithm"] in STUDIES else _ranked
    result = run(cell, splits)
    values = {m: result.values[m] for m in cell["measures"]}
    means = {m: result.means[m] for m in cell["measures"]}
    return replace(result, values=values, means=means, versions=_versions())


def _ranked(cell: Inputs, splits: Splits) -> Result:
    scored = score(cell, splits)
    evaluation = evaluate(scored.scores, splits.test, cell["measures"], order="data", n_jobs=1)
    values = {m: np.asarray(v) for m, v in evaluation.items()}
    means = {m: float(v) for m, v in evaluation.means.items()}
    return Result("done", values, means, splits.test.query_ids.tolist(), scored.chosen)


def _study(cell: Inputs, splits: Splits) -> Result:
    """Runs the cell's study, which sees the clean labels too."""
    train, validation = noisy_data(cell, splits)
    profile = _profile(cell, splits, train)
    task = StudyTask(
        clean=splits,
        train=train,
        validation=validation,
        profile=profile,
        params=cell["params"],
        select=cell["select"],
        seed=cell["seed"],
        unflipped=_unflipped(cell, splits),
        grid=cell["grid"],
        n_jobs=_threads(train),
    )
    result: Result = STUDIES[cell["algorithm"]].run(task)
    return replace(result, chosen={**result.chosen, **_noise_facts(cell, splits, train, profile)})


def _unflipped(cell: Inputs, splits: Splits) -> Callable[[], RankingData] | None:
    if not cell["rate"] or cell["noise"] not in CLICK_NOISES:
        return None
    clean = splits.train, splits.validation
    return lambda: unflipped_clicks(cell["noise"], cell["rate"], clean, cell["seed"])


def _clicked(cell: Inputs, splits: ClickSplits) -> Result:
    """Runs the study of a log of clicks on flipped labels."""
    name = cell["noise"] if cell["rate"] else next(iter(CLICK_FLIPS))
    clean = splits.train, splits.validation
    train, validation, profile = flip_clicks(name, cell["rate"], clean, cell["on"], cell["seed"])
    task = ClickTask(splits, train, validation, profile, cell["params"], cell["grid"], cell["seed"])
    result: Result = STUDIES[CTR].run(task)
    return replace(result, chosen={**result.chosen, "flipped": float((train.y != splits.train.y).mean())})


def score(cell: Inputs, splits: Splits) -> MethodResult:
    """Runs the cell's method on what it may see: labels of train and validation, features of test.

    A method whose parameters say so gets the noise matrix, or may ask a judge for the true grades of some
    training rows, which are counted; a ceiling gets the true grades of validation data. Realised noise is
    noted beside what the method chose.
    """
    train, validation = noisy_data(cell, splits)
    profile = _profile(cell, splits, train)
    params = cell["params"]
    judge = Judge(splits.train.y, params.get(BUDGET, 0))
    clicks = CLICK_NOISES.get(cell["noise"]) if cell["rate"] else None
    true_noise = clicks.profile(cell["rate"]) if clicks else profile
    task = MethodTask(
        train=train,
        validation=splits.validation if params.get(CLEAN_VALIDATION) else validation,
        test=Unjudged(splits.test.X, splits.test.indptr),
        params=params,
        grid=cell["grid"],
        select=cell["select"],
        seed=cell["seed"],
        n_jobs=_threads(train),
        judge=judge,
        profile=true_noise if params.get(NOISE) == TRUE_NOISE else None,
        users=clicks.users(cell["rate"], (splits.train, splits.validation)) if clicks else None,
    )
    scored: MethodResult = METHODS[cell["algorithm"]].run(task)
    facts: dict[str, Any] = {"judgements": judge.n_judged} if BUDGET in params else {}
    facts |= _noise_facts(cell, splits, train, profile)
    return replace(scored, chosen={**scored.chosen, **facts})


def _noise_facts(
    cell: Inputs, splits: Splits, train: RankingData, profile: NoiseProfile
) -> Mapping[str, float]:
    """What is noted of the noise of a cell; nothing where there is none, or where clicks are the labels."""
    labels_as_they_are = not cell["rate"] or cell["noise"] in CLICK_NOISES or train is splits.train
    return {} if labels_as_they_are else realised_noise(splits.train, train, profile)


def _threads(train: RankingData) -> int:
    """Threads of a cell, on which no figure depends: those that the engine gives, one for few documents."""
    return int(os.environ.get(THREADS, "1")) if train.n_docs >= MANY_DOCUMENTS else 1


def noisy_data(cell: Inputs, splits: Splits) -> Split:
    """Train and validation data with the noise of the cell."""
    clean = splits.train, splits.validation
    return add_noise(cell["noise"], cell["rate"], clean, cell["on"], cell["seed"])


def _profile(cell: Inputs, splits: Splits, train: RankingData) -> NoiseProfile:
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
def _splits(name: str, fold: int, options: str, identity: str) -> Any:
    """Loads data once for the many cells that share them, and makes sure they are those the key speaks of."""
    values = json.loads(options)
    present = identity_of(name, fold, values)
    if present != identity:
        rule = "must be the same where cells are planned and where they are computed"
        contents = f"contents {present[:12]} instead of {identity[:12]}"
        remedy = "Put the same files there, or run again if they were just changed."
        raise invalid(f"data set {name!r}, fold {fold}", rule, contents, remedy=remedy)
    return load_splits(name, fold, values)


def derived_splits(splits: Splits, name: str, seed: int) -> Splits:
    """Train and validation data of the derived set ``name``: grades merged or queries sampled.

    Test data stay as they are, so that a data set and the sets derived from it are judged alike. Sets that
    are samples of one source (TD2003P1 and TD2003P7, say) take the queries that can serve all of them: they
    differ in balance, not in queries or size. Seeds that differ by 5 share a sample.
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
    siblings = [d for d in DERIVED.values() if (d.source, d.merge) == (mine.source, mine.merge)]
    counts = [d.counts for d in siblings if d.counts]
    return tuple(max(n) for n in zip(*counts, strict=True)) if mine.counts else None


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
def _versions() -> dict[str, str]:
    numbers = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            numbers[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            numbers[package] = "unknown"
    return numbers
