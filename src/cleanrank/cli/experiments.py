"""``cleanrank reproduce`` and ``cleanrank runs``."""

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cleanrank.cli import screen
from cleanrank.data.files import written_whole
from cleanrank.errors import invalid
from cleanrank.experiments.store import DEFAULT_STORE, Store
from cleanrank.report.table import Table
from cleanrank.validation import one_of

if TYPE_CHECKING:
    from cleanrank.experiments.driver import Reproduction, Tally

FAILURES = 10  # shown one by one
OF_RUNS = "recipe jobs only quick engine scheduler pictures recompute"
FIGURES = (
    "dataset", "noise", "method", "measure", "mean", "low", "high", "seed_sd", "p_holm", "mark", "state",
)  # fmt: skip

StoreOption = Annotated[Path, typer.Option("--store", help="The file of runs.")]

app = typer.Typer()
runs = typer.Typer(help="Look at stored runs, export them, clean up.", no_args_is_help=True)
app.add_typer(runs, name="runs")


@app.command()
def reproduce(
    context: typer.Context,
    recipe: Annotated[
        str | None,
        typer.Argument(metavar="[RECIPE]", help="A TOML file, or a name that `cleanrank recipes` lists."),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option("--jobs", "-j", min=1, help="Processes; one per core unless given.")
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(help="field=value[,value]: dataset, fold, noise, rate, method or seed; repeatable."),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="The small version that the recipe describes.")
    ] = False,
    engine: Annotated[str, typer.Option(help="local or dask.")] = "local",
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="An existing Dask cluster, as in tcp://host:8786.")
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    report: Annotated[
        Path | None, typer.Option(help="The HTML page to write; beside the store unless given.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(help="Also write the tables as a Markdown page to this file.")
    ] = None,
    pictures: Annotated[
        Path | None, typer.Option(help="Also write every picture to this folder, as PNG and SVG.")
    ] = None,
    matrix: Annotated[
        bool,
        typer.Option("--matrix", help="Run nothing; show every published figure with ours and a verdict."),
    ] = False,
    recompute: Annotated[
        bool,
        typer.Option("--recompute", help="Also compute the cells whose results come with cleanrank."),
    ] = False,
    force: screen.Force = False,
    as_json: screen.Json = False,
) -> None:
    """Run a recipe: compute the cells that are not stored yet, then write the report."""
    from cleanrank.data.files import PAGES, check_outputs
    from cleanrank.experiments import driver

    for path in (report, markdown):
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
    inputs = (store, recipe)
    check_outputs(
        report,
        inputs=inputs,
        force=force or (report is not None and screen.own_page(report)),
        suffixes=PAGES,
    )
    check_outputs(markdown, inputs=inputs, force=force, suffixes=(".md",))
    if (
        pictures is not None
        and pictures.exists()
        and not force
        and (not pictures.is_dir() or any(pictures.iterdir()))
    ):
        raise invalid(
            "--pictures",
            "must be a new or empty folder",
            repr(str(pictures)),
            remedy="Overwrite with --force.",
        )
    if matrix:
        screen.refuse(context, OF_RUNS, "must not be given with --matrix, which computes nothing")
        page = report or store.parent / "reports" / "matrix.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        _show_matrix(store, page, markdown, as_json)
        return
    if recipe is None:
        raise typer.BadParameter("name a recipe, or give --matrix", param_hint="RECIPE")
    try:
        with screen.counter("cells") as tick:
            run = driver.reproduce(
                recipe,
                store=store,
                jobs=jobs,
                only=only or (),
                quick=quick,
                engine=engine,
                scheduler=scheduler,
                watch=lambda tally: tick(tally.finished, tally.total, _progress(tally)),
                recompute=recompute,
            )
    except KeyboardInterrupt:
        screen.note("interrupted; finished cells are stored. The same command goes on from there.")
        raise typer.Exit(130) from None
    _note_outcome(run, store)
    page = report or store.parent / "reports" / f"{run.recipe.name.replace('/', '-')}.html"
    written = driver.write_outputs(run, page, markdown, pictures)
    if pictures is not None:
        screen.note(f"{len(written)} pictures: {pictures}")
    _show_figures(run, as_json)
    screen.note(f"report: {page}")
    if run.failed:
        raise typer.Exit(1)


def _show_matrix(store: Path, page: Path, markdown: Path | None, as_json: bool) -> None:
    """Writes the pages of the matrix; counts of verdicts go to the screen, all figures to JSON."""
    from cleanrank.experiments.matrix import matrix as every_figure
    from cleanrank.report.matrix import counts_table, matrix_markdown, write_matrix

    here = store if store != DEFAULT_STORE or store.is_file() else None
    lines = [line.to_dict() for line in every_figure(here)]
    write_matrix(lines, page)
    if markdown is not None:
        with written_whole(markdown) as part:
            part.write_text(matrix_markdown(lines), encoding="utf-8")
    screen.show({"figures": lines}, as_json, counts_table(lines))
    screen.note(f"matrix: {page}")


@app.command("recipes")
def show_recipes(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[FOLDER]", help="Recipes below this folder; else all known.")
    ] = None,
    as_json: screen.Json = False,
) -> None:
    """List recipes: those that come with cleanrank and those below recipes/ here."""
    from cleanrank.experiments.driver import list_recipes

    rows = list_recipes(folder)
    columns = [("name", "name"), ("cells", "cells", ","), ("--quick", "quick", ","), ("data sets", "data")]
    screen.show(rows, as_json, Table.of(rows, [*columns, ("what", "title")]))


@runs.command("list")
def list_runs(
    recipe: Annotated[
        str | None,
        typer.Argument(metavar="[RECIPE]", help="The cells of this recipe; all recipes unless given."),
    ] = None,
    store: StoreOption = DEFAULT_STORE,
    as_json: screen.Json = False,
) -> None:
    """List recipes with their cells, or the cells of one recipe."""
    from cleanrank.experiments.results import line_of

    with Store(store, create=False) as stored:
        recipes = stored.recipes()
        if recipe is None:
            names = ("cells", "done", "failed")
            rows = [{"recipe": name, **dict(zip(names, n, strict=True))} for name, n in recipes.items()]
        else:
            one_of("recipe", recipe, recipes)
            rows = [line_of(record) for record in stored.records(recipe=recipe, values=False)]
    columns = [(name, name) for name in rows[0]] if rows else []
    screen.show(rows, as_json, *([Table.of(rows, columns)] if rows else []))


@runs.command("show")
def show_run(
    key: Annotated[str, typer.Argument(help="The start of a cell's key, as `runs list` shows it.")],
    store: StoreOption = DEFAULT_STORE,
    as_json: screen.Json = False,
) -> None:
    """Show one cell: its inputs, what was chosen, its figures or its traceback."""
    with Store(store, create=False) as stored:
        run = stored.find_one(key)
    names = ("key", "recipe", "status", "cell", "chosen", "versions", "wall_seconds", "started_at")
    record: dict[str, Any] = {name: getattr(run, name) for name in names}
    record["queries"] = 0 if run.query_ids is None else len(run.query_ids)
    means = [screen.facts(run.means, "mean")] if run.means else []
    screen.show(
        {**record, "means": run.means, "error": run.error},
        as_json,
        screen.facts(record, align="ll"),
        *means,
    )
    if run.error and not as_json:
        typer.echo(run.error)


@runs.command("export")
def export_runs(
    path: Annotated[
        Path,
        typer.Argument(help="A .csv, .tsv, .xlsx or .parquet file, or a folder: a .parquet file per recipe."),
    ],
    recipe: Annotated[str | None, typer.Option("--recipe", help="Only the cells of this recipe.")] = None,
    measure: Annotated[
        list[str] | None, typer.Option("--measure", help="Only this measure; repeatable.")
    ] = None,
    values: Annotated[
        bool, typer.Option("--values", help="Also the value of every query, in single precision (.parquet).")
    ] = False,
    store: StoreOption = DEFAULT_STORE,
    force: screen.Force = False,
) -> None:
    """Write one row per cell and measure.

    A folder gets RECIPE.parquet with the cells that the recipe asks for today: with such files in results/,
    `reproduce` and the matrix have the figures on any machine. What such a file holds of these cells already
    stays where the store has nothing newer, with its measures and values of queries; with --force only what
    the store has is left.
    """
    from cleanrank.data.files import FRAMES, check_outputs
    from cleanrank.experiments.results import export
    from cleanrank.experiments.tracked import to_travel, tracked_records

    one_file = bool(path.suffix)
    if one_file:
        check_outputs(path, inputs=[store], force=force, suffixes=FRAMES)
    with Store(store, create=False) as stored:
        names = list(stored.recipes())
        if recipe is not None:
            names = [one_of("recipe", recipe, names)]
        files = {path: recipe} if one_file else {path / f"{name}.parquet": name for name in names}
        if not one_file:
            for file in files:
                file.parent.mkdir(parents=True, exist_ok=True)
            check_outputs(*files, inputs=[store], force=True, suffixes=FRAMES)
        for file, name in files.items():
            there = [] if one_file or force else tracked_records(str(name), path)
            records = stored.records(recipe=name) if one_file else to_travel(str(name), stored, there)
            known = dict.fromkeys(m for r in records for m in r.cell["measures"])
            kept = dict.fromkeys(m for r in there for m in r.means)
            wanted = [one_of("measure", m, known) for m in measure] if measure else list(kept) or None
            rows = export(records, file, measures=wanted, values=values or any(r.values for r in there))
            screen.note(f"{rows:,} rows in {file}")


@runs.command("gc")
def collect_garbage(
    failed: Annotated[bool, typer.Option("--failed", help="Also failures that nothing replaced.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    store: StoreOption = DEFAULT_STORE,
) -> None:
    """Remove failures that were replaced and cells of old method versions."""
    from cleanrank.experiments.driver import superseded

    with Store(store, create=False) as stored:
        removable = superseded(stored, failed=failed)
        reasons = [reason for _, reason in removable]
        for reason in dict.fromkeys(reasons):
            screen.note(f"{reasons.count(reason):,} x {reason}")
        if not removable:
            screen.note("nothing to remove")
            return
        if not yes and not typer.confirm(f"Remove {len(removable):,} results from {store}?", err=True):
            raise typer.Exit(1)
        stored.remove(row for row, _ in removable)
    screen.note(f"removed {len(removable):,} results")


def _progress(tally: "Tally") -> str:
    words = f"{tally.finished:,} of {tally.total:,} cells"
    words += f", {tally.failed:,} failed" if tally.failed else ""
    return words + (f", about {_time(tally.seconds_left)} left" if tally.seconds_left else "")


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _note_outcome(run: "Reproduction", store: Path) -> None:
    """What was computed, and the first failures, each with the last line of its traceback."""
    from cleanrank.experiments.driver import not_here

    tally = run.tally
    screen.note(
        f"{tally.total:,} cell{'s' * (tally.total != 1)}: {tally.stored:,} were stored, "
        f"{tally.done:,} computed, {tally.failed:,} failed, in {_time(tally.seconds)}"
    )
    for dataset, why in run.left_out.items():
        screen.note(f"{dataset} is left out: {why}")
    if elsewhere := not_here(run):
        screen.note(elsewhere)
    option = "" if store == DEFAULT_STORE else f" --store {shlex.quote(str(store))}"
    words = {cell.key: str(cell) for cell in run.cells}
    for record in run.failed[:FAILURES]:
        last = record.error.strip().rpartition("\n")[2]
        screen.note(f"failed: {words[record.key]}: {last} (cleanrank runs show {record.key[:12]}{option})")
    if len(run.failed) > FAILURES:
        more = len(run.failed) - FAILURES
        screen.note(f"and {more:,} more: see `cleanrank runs list {run.recipe.name}{option}`")


def _show_figures(run: "Reproduction", as_json: bool) -> None:
    rows = [
        {name: row.level.label if name == "noise" else getattr(row, name) for name in FIGURES}
        for row in run.summary.rows
    ]
    lines = [
        {
            **row,
            "interval": "" if row["low"] is None else f"[{row['low']:.4f}, {row['high']:.4f}]",
            "remark": row["mark"] or ("" if row["state"] == "complete" else row["state"]),
        }
        for row in rows
    ]
    columns = [
        ("data", "dataset"), ("noise", "noise"), ("method", "method"), ("measure", "measure"),
        ("mean", "mean", ".4f"), ("95% interval", "interval"), ("", "remark"),
    ]  # fmt: skip
    record = {"recipe": run.recipe.name, "tally": vars(run.tally), "rows": rows}
    screen.show(record, as_json, Table.of(lines, columns))
