"""The runs of recipes/niu, summed up in small files: values of queries averaged over seeds.

A study of one recipe has thousands of cells, which differ in seed only. What tables, pictures and intervals
over queries need are the values of every query, averaged over the seeds: a tenth of the size.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.errors import MissingDataError
from cleanrank.experiments.driver import collect, plan
from cleanrank.experiments.recipe import Recipe, read_recipe
from cleanrank.experiments.results import REALISED, export
from cleanrank.experiments.store import Store
from cleanrank.experiments.tracked import read_results, tracked_records
from cleanrank.report.summaries import Summary, by_cell, summarise
from cleanrank.types import RunRecord

from .whole import whole_part

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "results" / "niu"
NDCG, MAP = "ndcg@10:letor:ties=average", "map:letor:ties=average"
# Recipes of rankers, whose NDCG@10 is kept query by query, for intervals of what is made of it; of other
# measures and of studies, means and standard errors.
RANKED = (
    "uniform",
    "nonuniform",
    "adjacent",
    "stand-ins",
    "grades",
    "balance",
    "robust-ranker",
    "robust-forms",
)
STUDIES = ("newcome", "pointwise", "pnoise")


@dataclass(frozen=True)
class Part:
    """What is stored of a recipe: whole levels only."""

    cells: int  # that the recipe has for data on this machine
    records: tuple[RunRecord, ...]

    def words(self) -> dict[str, Any]:
        """What ran: data sets, rates, seeds, cells and minutes of computing on one core."""
        cells = [r.cell for r in self.records]
        noisy = [c for c in cells if c["rate"]]
        return {
            "datasets": list(dict.fromkeys(c["dataset"] for c in cells)),
            "rates": sorted({c["rate"] for c in noisy}),
            "seeds": len({c["seed"] for c in noisy or cells}),
            "done": len(self.records),
            "planned": self.cells,
            "minutes": round(sum(r.wall_seconds for r in self.records) / 60),
        }


def recipe_of(name: str) -> Recipe:
    """The recipe of a name."""
    return read_recipe(ROOT / "recipes" / "niu" / f"{name}.toml")


def whole(recipe: Recipe, records: Sequence[RunRecord]) -> tuple[RunRecord, ...]:
    """Of records those at levels that ran whole: all methods, the same folds and seeds."""
    by_method = [{r.cell["seed"] for r in records if r.cell["method"] == m.label} for m in recipe.methods]
    if shared := set.intersection(*by_method):  # a method may have run with fewer seeds than those of others
        records = [r for r in records if r.cell["seed"] in shared]
    # By data set: its queries are the same at all levels.
    kept = whole_part(records, group=lambda dataset: dataset).records if records else ()
    return () if recipe.noise and not any(r.cell["rate"] for r in kept) else kept


def stored(name: str, store: Store) -> Part:
    """What is stored of a recipe; all of it, as means, goes to results/niu."""
    recipe = recipe_of(name)
    try:
        cells = plan(recipe, store)
    except MissingDataError:
        return Part(0, ())
    done = [r for r in collect(cells, store, recipe.name) if r.status == "done"]
    if done:
        measures = (NDCG, MAP) if name in RANKED else None
        export(done, ROOT / "results" / "niu" / f"{name}.parquet", measures=measures)
    return Part(len(cells), whole(recipe, done))


def sum_up(store_path: str) -> None:
    """Writes the results that travel, a file of averages a recipe of rankers and, of all, what ran."""
    with Store(store_path) as store:
        parts = {name: stored(name, store) for name in (*RANKED, *STUDIES)}
    ran: dict[str, Any] = {}
    seen: set[str] = set()
    FOLDER.mkdir(exist_ok=True)
    for name, part in parts.items():
        if seen.issuperset(keys := {r.key for r in part.records}):
            continue  # nothing of it ran that is not part of another recipe
        seen |= keys
        ran[name] = part.words()
        if name in RANKED:
            records = part.records
            if name == "robust-ranker":
                records = beside_rivals(records, [*parts["uniform"].records, *parts["nonuniform"].records])
            export(averaged(records), FOLDER / f"{name}.parquet", measures=(NDCG, MAP), values=True)
    text = json.dumps(ran, indent=2, ensure_ascii=False)
    (FOLDER / "ran.json").write_text(f"{text}\n", encoding="utf-8")


def beside_rivals(records: Sequence[RunRecord], others: Sequence[RunRecord]) -> tuple[RunRecord, ...]:
    """Records, and those of other recipes at the same rates and seeds: all of them saw the same labels."""
    seeds, rates = {r.cell["seed"] for r in records}, {r.cell["rate"] for r in records}
    rivals = [r for r in others if r.cell["seed"] in seeds and r.cell["rate"] in rates]
    both = {r.key: r for r in (*rivals, *records)}
    return whole_part(list(both.values()), group=lambda dataset: dataset).records


def averaged(records: Sequence[RunRecord]) -> list[RunRecord]:
    """One record for all seeds of a data set, noise level, fold and method."""
    groups: dict[tuple[object, ...], list[RunRecord]] = {}
    for (*place, _), record in by_cell(records).items():
        groups.setdefault(tuple(place), []).append(record)
    return [_mean_record(group) for group in groups.values()]


def _mean_record(group: Sequence[RunRecord]) -> RunRecord:
    first = group[0]
    noted = {
        name: float(np.mean([r.chosen[name] for r in group])) for name in REALISED if name in first.chosen
    }
    values = {m: np.mean([r.values[m] for r in group], axis=0) for m in first.values}
    counted = {m: v[~np.isnan(v)] for m, v in values.items() if m != NDCG}
    return replace(
        first,
        values={m: v for m, v in values.items() if m == NDCG},
        means={m: float(np.mean([r.means[m] for r in group])) for m in first.means},
        n_queries={m: len(v) for m, v in counted.items()},
        query_se={m: float(v.std(ddof=1) / np.sqrt(len(v))) for m, v in counted.items() if len(v) > 1},
        chosen=noted,
        wall_seconds=sum(r.wall_seconds for r in group),
    )


@cache
def ran() -> Mapping[str, Mapping[str, Any]]:
    """What ``sum_up`` says of each recipe."""
    told: Mapping[str, Mapping[str, Any]] = json.loads((FOLDER / "ran.json").read_text(encoding="utf-8"))
    return told


@cache
def summary_of(name: str) -> Summary:
    """The summary of a recipe from its small file; of a study, from what results/niu holds of it."""
    if name in RANKED:
        return ordered(name, read_results(FOLDER / f"{name}.parquet"))
    return ordered(name, whole(recipe_of(name), tracked_records(f"niu/{name}", ROOT / "results")))


def ordered(name: str, records: Sequence[RunRecord]) -> Summary:
    """The summary of records; data sets, kinds of noise and methods in the order of the recipe."""
    recipe = recipe_of(name)
    orders = {
        "dataset": [each.label for each in recipe.data],
        "noise": ["none", *(each.profile for each in recipe.noise)],
        "method": [each.label for each in recipe.methods],
    }

    def place(record: RunRecord) -> tuple[float, ...]:
        cell = record.cell
        places = [
            order.index(cell[key]) if cell[key] in order else len(order) for key, order in orders.items()
        ]
        return (*places[:2], cell["rate"], places[2], cell["fold"])

    inorder = sorted(records, key=place)
    return summarise(inorder, resamples=1000, expected=[r.cell for r in inorder])
