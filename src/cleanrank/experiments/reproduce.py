"""From a recipe to its report: read, expand, run, collect, render."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from cleanrank.errors import MissingDataError, invalid
from cleanrank.experiments.cells import Cell, choose, expand
from cleanrank.experiments.recipe import Recipe, all_recipes, find_recipe, read_recipe
from cleanrank.experiments.run import Tally, Watch, run_cells
from cleanrank.experiments.sources import identity_of
from cleanrank.experiments.store import DEFAULT_STORE, Store
from cleanrank.report.published import MatrixRow, matrix_row
from cleanrank.report.summaries import Summary, summarise
from cleanrank.types import RunRecord


@dataclass(frozen=True)
class Reproduction:
    """What came of a recipe.

    Attributes:
        recipe: what was run, reduced where ``--quick`` asked for it.
        cells: its cells.
        records: their standing records, in the same order.
        tally: what this run did.
        command: what runs it again.
    """

    recipe: Recipe
    cells: tuple[Cell, ...]
    records: tuple[RunRecord, ...]
    tally: Tally
    command: str = ""

    @property
    def failed(self) -> tuple[RunRecord, ...]:
        """Records of cells without figures."""
        return tuple(r for r in self.records if r.status != "done")

    @cached_property
    def summary(self) -> Summary:
        """The figures of the measures that the recipe shows."""
        return summarise(
            self.records,
            measures=self.recipe.show,
            baseline=self.recipe.baseline,
            expected=[c.inputs for c in self.cells],
        )


def plan(recipe: Recipe, store: Store, *, only: Sequence[str] = ()) -> list[Cell]:
    """The cells to compute; files are hashed once and the hashes noted in the store."""

    def identity(name: str, fold: int, options: Mapping[str, Any]) -> str:
        return identity_of(name, fold, options, notes=store)

    cells = expand(recipe, identity)
    chosen = choose(cells, only)
    if not chosen:
        raise invalid("--only", "must leave at least one cell", "none", at=" ".join(only))
    return chosen


def reproduce(
    recipe: str | Path | Recipe,
    *,
    store: str | Path = DEFAULT_STORE,
    jobs: int | None = None,
    only: Sequence[str] = (),
    quick: bool = False,
    engine: str = "local",
    scheduler: str | None = None,
    watch: Watch | None = None,
) -> Reproduction:
    """Runs a recipe: computes the cells that are not stored yet and returns all of them.

    Args:
        recipe: a path, a name below ``recipes/``, or a recipe.
        store: the file of runs.
        jobs: processes; one per core unless given.
        only: filters such as ``dataset=mq2008``; all must hold.
        quick: the reduced grid that the recipe describes.
        engine: ``local`` or ``dask``.
        scheduler: address of a Dask cluster; a local one unless given.
        watch: called after every cell.
    """
    asked = recipe if isinstance(recipe, Recipe) else read_recipe(find_recipe(str(recipe)))
    asked = asked.quickly() if quick else asked
    with Store(store) as runs:
        cells = plan(asked, runs, only=only)
        tally = run_cells(cells, runs, asked.name, jobs=jobs, engine=engine, scheduler=scheduler, watch=watch)
        records = collect(cells, runs, asked.name)
    chosen = [f"--only {shlex.quote(text)}" for text in only]
    command = " ".join([asked.command, *(["--quick"] if quick else []), *chosen])
    return Reproduction(asked, tuple(cells), records, tally, command)


def collect(cells: Sequence[Cell], store: Store, recipe: str) -> tuple[RunRecord, ...]:
    """The standing records of cells, in their order, under the labels of this recipe."""
    by_key = {r.key: r for r in store.records(keys=[c.key for c in cells])}
    return tuple(replace(by_key[c.key], recipe=recipe, cell=c.inputs) for c in cells if c.key in by_key)


def write_run_report(found: Reproduction, path: str | Path) -> None:
    """One HTML page with the tables and curves of a recipe."""
    from cleanrank.report.pages import write_report

    recipe = found.recipe
    write_report(
        found.records,
        path,
        title=recipe.title,
        command=found.command,
        published=recipe.published,
        notes=[n for n in (recipe.about, recipe.source) if n],
        summary=found.summary,
    )


def matrix(folder: str | Path, store: str | Path, path: str | Path) -> list[MatrixRow]:
    """One page with every recipe below a folder: its command, expected and observed figures, its status."""
    from cleanrank.report.pages import write_matrix

    recipes = [read_recipe(p) for p in all_recipes(folder)]
    if not recipes:
        raise invalid("recipes", "must be found as TOML files", "none", at=repr(str(folder)))
    with Store(store) as runs:
        rows = [_row(recipe, runs) for recipe in recipes]
    write_matrix(rows, path)
    return rows


def _row(recipe: Recipe, store: Store) -> MatrixRow:
    """A recipe whose data are not on this machine has not run here."""
    try:
        cells: Sequence[Cell] = plan(recipe, store)
    except MissingDataError:
        cells = ()
    return matrix_row(
        collect(cells, store, recipe.name),
        recipe=recipe.name,
        title=recipe.title,
        command=recipe.command,
        group=recipe.name.rpartition("/")[0],
        published=recipe.published,
        expected=[c.inputs for c in cells],
        measures=recipe.show,
    )
