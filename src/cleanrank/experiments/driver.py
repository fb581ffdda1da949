"""From a recipe to its report: read, expand, compute what is not stored yet, collect, render."""

import shlex
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias, cast

from cleanrank.data.catalogue import find
from cleanrank.data.files import written_whole
from cleanrank.errors import MissingDataError, invalid
from cleanrank.experiments.cells import CellSpec, expand, filter_cells
from cleanrank.experiments.engines import CELL, ENGINES, cores
from cleanrank.experiments.methods import METHODS
from cleanrank.experiments.recipe import Recipe, all_recipes, find_recipe, known_recipes, read_recipe
from cleanrank.experiments.results import split, to_json
from cleanrank.experiments.sources import GENERATORS, identity_of
from cleanrank.experiments.store import DEFAULT_STORE, Store
from cleanrank.experiments.studies import STUDIES
from cleanrank.experiments.tracked import aligned, tracked_records
from cleanrank.report.summaries import Summary, summarise
from cleanrank.types import RunRecord
from cleanrank.validation import check_integer, one_of


@dataclass(frozen=True)
class Tally:
    """How far a run is, in cells."""

    total: int
    stored: int = 0  # before this run, or by another meanwhile
    done: int = 0
    failed: int = 0
    seconds: float = 0.0  # since the start
    latest: str = ""  # the cell that came last, in words

    @property
    def finished(self) -> int:
        """Cells that need nothing more in this run."""
        return self.stored + self.done + self.failed

    @property
    def seconds_left(self) -> float | None:
        """An estimate of the time left, from the pace so far; None before the first cell."""
        computed = self.done + self.failed
        return (self.total - self.finished) * self.seconds / computed if computed else None


Watch: TypeAlias = Callable[[Tally], None]


@dataclass(frozen=True)
class Reproduction:
    """What came of a recipe (with ``--quick`` the reduced one), and the command that runs it again."""

    recipe: Recipe
    cells: tuple[CellSpec, ...]
    records: tuple[RunRecord, ...]  # the standing records of the cells that have one, in the same order
    tally: Tally
    command: str = ""
    absent: Mapping[str, str] = field(default_factory=dict)  # data sets not here -> how to get them

    @property
    def failed(self) -> tuple[RunRecord, ...]:
        """Records of cells without figures."""
        return tuple(r for r in self.records if r.status != "done")

    @property
    def left_out(self) -> dict[str, str]:
        """The absent data sets without any result -> how to get them."""
        shown = {cell.inputs["dataset"] for cell in self.cells}
        return {name: how for name, how in self.absent.items() if name not in shown}

    @cached_property
    def summary(self) -> Summary:
        """The figures of the measures that the recipe shows."""
        return self.summarise(self.recipe.show)

    def summarise(self, measures: Sequence[str]) -> Summary:
        """The figures of measures, without those that did not travel with any result."""
        cells = [c.inputs for c in self.cells]
        known = {measure for record in self.records for measure in record.means}
        measures = [measure for measure in measures if measure in known] or measures
        return summarise(self.records, measures=measures, baseline=self.recipe.baseline, expected=cells)


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
    recompute: bool = False,
) -> Reproduction:
    """Runs a recipe: computes the cells that are not known yet and returns all of them.

    Of data sets that are not on this machine, the results that come with cleanrank are returned.

    Args:
        recipe: a path, a name that ``cleanrank recipes`` lists, or a recipe.
        store: the file of runs.
        jobs: processes; one per core unless given.
        only: filters such as ``dataset=mq2008``; all must hold.
        quick: the reduced grid that the recipe describes.
        engine: ``local`` or ``dask``.
        scheduler: address of a Dask cluster; a local one unless given.
        watch: called after every cell.
        recompute: whether to compute the cells whose results come with cleanrank too.

    Returns:
        A Reproduction: all cells with their results, the failed ones, and their summary.
    """
    recipe = recipe if isinstance(recipe, Recipe) else read_recipe(find_recipe(str(recipe)))
    recipe = recipe.reduced() if quick else recipe
    tracked = {} if recompute else {r.key: r for r in tracked_records(recipe.name) if r.status == "done"}
    with Store(store) as runs:
        cells, absent = plan(recipe, runs, only=only, known=tracked), absent_data(recipe)
        possible = [c for c in cells if c.inputs["dataset"] not in absent or c.key in tracked]
        options: dict[str, Any] = {"jobs": jobs, "engine": engine, "scheduler": scheduler, "watch": watch}
        tally = run_cells(possible, runs, recipe.name, known=tracked, **options)
        records = collect(cells, runs, recipe.name, tracked)
    filters = [f"--only {shlex.quote(text)}" for text in only]
    command = " ".join([recipe.command, *(["--quick"] if quick else []), *filters])
    return Reproduction(recipe, tuple(cells), records, tally, command, absent)


def plan(
    recipe: Recipe, store: Store, *, only: Sequence[str] = (), known: Mapping[str, RunRecord] | None = None
) -> list[CellSpec]:
    """The cells of a recipe; files are hashed once and the hashes noted in the store.

    Data sets that are not on this machine are left out unless some of their cells are ``known``: results from
    elsewhere, by key. Where all that is asked for is left out, an error says how to get the first.
    """
    known = known or {}
    absent = absent_data(recipe)
    names = {data.name for data in recipe.data if data.label in absent}
    elsewhere = {_source(**r.cell): r.cell["identity"] for r in known.values()}

    def identity(name: str, fold: int, options: Mapping[str, Any]) -> str:
        if name in names:
            return str(elsewhere.get(_source(name, fold, options), "absent"))
        return identity_of(name, fold, options, hashes=store)

    cells = filter_cells(expand(recipe, identity), only)
    if not cells:
        raise invalid("--only", "must leave at least one cell", "none", at=" ".join(only))
    known_of = {cell.inputs["dataset"] for cell in cells if cell.key in known}
    shown = [c for c in cells if c.inputs["dataset"] not in absent or c.inputs["dataset"] in known_of]
    if not shown:
        raise MissingDataError(absent[cells[0].inputs["dataset"]])
    return shown


def _source(data: str, fold: int, options: Mapping[str, Any], **_: Any) -> tuple[str, int, str]:
    """What names the data of a cell, whatever its files hold."""
    return data, fold, to_json(options)


def absent_data(recipe: Recipe) -> dict[str, str]:
    """The labels of data sets that are not on this machine -> what was looked for and how to get them."""
    absent = {}
    for data in recipe.data:
        if data.name not in GENERATORS:
            try:
                find(data.name)
            except MissingDataError as error:
                absent[data.label] = str(error)
    return absent


def run_cells(
    cells: Sequence[CellSpec],
    store: Store,
    recipe: str,
    *,
    jobs: int | None = None,
    engine: str = "local",
    scheduler: str | None = None,
    watch: Watch | None = None,
    target: str = CELL,
    known: Collection[str] = (),
) -> Tally:
    """Computes the cells that have no figures yet; cells that failed before are tried again.

    Interrupted or killed at any moment, it leaves whole cells only, and the next call goes on from there.
    ``recipe`` is the name under which the store notes the cells, ``target`` (``module:function``) computes
    one, ``known`` are keys whose figures lie elsewhere, and the other options are those of ``reproduce``.
    """
    compute = ENGINES[one_of("engine", engine, ENGINES)]
    processes = cores() if jobs is None else check_integer("jobs", jobs, least=1)
    by_key = {c.key: c for c in cells}
    store.add_recipe(recipe, {c.key: c.inputs for c in cells})
    stored = store.done_keys().union(known) & set(by_key)
    pending = [c for c in by_key.values() if c.key not in stored]
    start = time.monotonic()
    tally = Tally(len(by_key), len(stored))

    def count(latest: str = "", **counts: int) -> None:
        nonlocal tally
        sums = {name: getattr(tally, name) + n for name, n in counts.items()}
        tally = replace(tally, **sums, seconds=time.monotonic() - start, latest=latest)

    def items() -> Iterator[tuple[str, str]]:
        for cell in pending:
            # Another run may have stored it since this one began.
            if store.is_done(cell.key):
                count(stored=1)
            else:
                yield cell.key, cell.text

    watch = watch or (lambda _: None)
    watch(tally)
    results = compute(items(), jobs=min(processes, max(1, len(pending))), scheduler=scheduler, target=target)
    with closing(cast(Any, results)):
        for key, packed in results:
            cell = by_key[key]
            is_new = store.add(key, recipe, cell.inputs, packed)
            count(str(cell), **{split(packed)[0]["status"] if is_new else "stored": 1})
            watch(tally)
    count()
    return tally


def collect(
    cells: Sequence[CellSpec], store: Store, recipe: str, tracked: Mapping[str, RunRecord] | None = None
) -> tuple[RunRecord, ...]:
    """The standing records of cells, in their order, under the labels of this recipe.

    ``tracked`` are results from elsewhere, by key, for cells that the store does not have.
    """
    by_key = {r.key: r for r in store.records(keys=[c.key for c in cells])}
    elsewhere = {key: r for key, r in (tracked or {}).items() if key not in by_key}
    by_key |= elsewhere
    records = [replace(by_key[c.key], recipe=recipe, cell=c.inputs) for c in cells if c.key in by_key]
    return aligned(records, elsewhere)


def superseded(store: Store, *, failed: bool = False) -> list[tuple[int, str]]:
    """What a clean-up would remove, (row, why), by the present versions of methods and studies."""
    versions = {name: each.version for name, each in (METHODS | STUDIES).items()}
    return store.superseded(versions, failed=failed)


def write_outputs(
    run: Reproduction, page: Path, markdown: Path | None = None, pictures: Path | None = None
) -> list[Path]:
    """Writes the HTML page of a run and, where named, a Markdown page and pictures; returns the pictures."""
    from cleanrank.experiments.document import markdown_page
    from cleanrank.report.images import write_pictures

    page.parent.mkdir(parents=True, exist_ok=True)
    write_run_report(run, page)
    if markdown is not None:
        markdown.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(markdown) as part:
            part.write_text(markdown_page(run), encoding="utf-8")
    return [] if pictures is None else write_pictures(run.summary, pictures)


def write_run_report(run: Reproduction, path: str | Path) -> None:
    """One HTML page with the tables and curves of a recipe."""
    from cleanrank.report.pages import write_report

    recipe = run.recipe
    write_report(
        run.records,
        path,
        title=recipe.title,
        command=run.command,
        published=recipe.published,
        notes=[n for n in (recipe.about, recipe.source, left_out(run)) if n],
        summary=run.summary,
    )


def left_out(run: Reproduction) -> str:
    """Which data sets of a recipe did not run here, in words; empty where all did."""
    names = ", ".join(run.left_out)
    sentence = f"Left out, because not on the machine that ran this: {names}." if names else ""
    return f"{sentence} {not_here(run)}".strip()


def not_here(run: Reproduction) -> str:
    """Of which absent data sets the results of cleanrank are shown, in words; empty where of none."""
    names = []
    for name in run.absent:
        cells = sum(cell.inputs["dataset"] == name for cell in run.cells)
        known = sum(record.cell["dataset"] == name for record in run.records)
        names += [name if known == cells else f"{name} ({known:,} of {cells:,} cells)"] * (cells > 0)
    return f"Not on this machine, so shown as computed elsewhere: {', '.join(names)}." if names else ""


def list_recipes(folder: str | Path | None = None) -> list[dict[str, Any]]:
    """Of every recipe below a folder, or of all that are known: name, title, data sets, numbers of cells.

    >>> next(row["data"] for row in list_recipes() if row["name"] == "noise/quick")
    'mq2008, ohsumed'
    """

    def row(recipe: Recipe) -> dict[str, Any]:
        cells = [len(expand(each, lambda *data: str(data))) for each in (recipe, recipe.reduced())]
        names = ", ".join(dict.fromkeys(data.name for data in recipe.data))
        return {
            "name": recipe.name,
            "title": recipe.title,
            "data": names,
            "cells": cells[0],
            "quick": cells[1],
        }

    return [row(recipe) for recipe in _recipes(folder)]


def _recipes(folder: str | Path | None) -> list[Recipe]:
    return [read_recipe(p) for p in (known_recipes().values() if folder is None else all_recipes(folder))]
