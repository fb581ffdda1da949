"""``cleanrank reproduce`` and ``cleanrank runs``."""

import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from cleanrank.cli import screen
from cleanrank.errors import invalid
from cleanrank.validation import one_of

if TYPE_CHECKING:
    from cleanrank.experiments.driver import Reproduction, Tally
    from cleanrank.types import RunRecord

STORE = Path(".cleanrank") / "runs.sqlite"
PLAIN_SECONDS = 5.0
FAILURES = 10  # shown one by one

StoreOption = Annotated[Path, typer.Option("--store", help="The file of runs.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
RecipeOption = Annotated[str | None, typer.Option("--recipe", help="Only the cells of this recipe.")]


def mount(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(reproduce)
    runs = typer.Typer(help="Look at stored runs, export them, clean up.", no_args_is_help=True)
    runs.command("list")(list_runs)
    runs.command("show")(show_run)
    runs.command("export")(export_runs)
    runs.command("gc")(collect_garbage)
    app.add_typer(runs, name="runs")


def reproduce(
    recipe: Annotated[
        str | None, typer.Argument(metavar="RECIPE", help="A TOML file, or a name below recipes/.")
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
    store: StoreOption = STORE,
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
        bool, typer.Option("--matrix", help="Run nothing; write one page with the state of every recipe.")
    ] = False,
    recipes: Annotated[Path, typer.Option(help="The folder of recipes for --matrix.")] = Path("recipes"),
    as_json: Json = False,
) -> None:
    """Run a recipe: compute the cells that are not stored yet, then write the report."""
    if matrix:
        _matrix(recipes, store, report or store.parent / "reports" / "matrix.html", as_json)
        return
    if recipe is None:
        raise typer.BadParameter("name a recipe, or ask for --matrix", param_hint="RECIPE")
    from cleanrank.experiments.driver import reproduce as run_recipe

    try:
        with _progress() as watch:
            found = run_recipe(
                recipe,
                store=store,
                jobs=jobs,
                only=only or (),
                quick=quick,
                engine=engine,
                scheduler=scheduler,
                watch=watch,
            )
    except KeyboardInterrupt:
        screen.note("interrupted; finished cells are stored. The same command goes on from there.")
        raise typer.Exit(130) from None
    _say(found.tally)
    _say_failures(found, store)
    page = report or store.parent / "reports" / f"{found.recipe.name.replace('/', '-')}.html"
    _render(found, page, markdown, pictures)
    _show(found, as_json)
    screen.note(f"report: {page}")
    if found.failed:
        raise typer.Exit(1)


def list_runs(
    recipe: Annotated[
        str | None, typer.Argument(help="The cells of this recipe; all recipes unless given.")
    ] = None,
    store: StoreOption = STORE,
    as_json: Json = False,
) -> None:
    """List recipes with their cells, or the cells of one recipe."""
    with _open(store) as runs:
        if recipe is None:
            rows = [
                {"recipe": name, "cells": n, "done": done, "failed": failed}
                for name, (n, done, failed) in runs.recipes().items()
            ]
        else:
            one_of("recipe", recipe, runs.recipes())
            rows = [_line(r) for r in runs.records(recipe=recipe, values=False)]
    if as_json:
        screen.print_json(rows)
    elif rows:
        columns = list(rows[0])
        screen.table(columns, [[str(row[c]) for c in columns] for row in rows])


def show_run(
    key: Annotated[str, typer.Argument(help="The start of a cell's key, as `runs list` shows it.")],
    store: StoreOption = STORE,
    as_json: Json = False,
) -> None:
    """Show one cell: its inputs, what was chosen, its figures or its traceback."""
    with _open(store) as runs:
        found = runs.find(key)
    if len(found) != 1:
        rule = "must be the start of one stored key"
        raise invalid(
            "key", rule, f"{key!r}, which fits {len(found)}", remedy="See `cleanrank runs list RECIPE`."
        )
    (record,) = found
    shown = {
        "key": record.key,
        "recipe": record.recipe,
        "status": record.status,
        "cell": dict(record.cell),
        "chosen": dict(record.chosen),
        "means": dict(record.means),
        "queries": 0 if record.query_ids is None else len(record.query_ids),
        "versions": dict(record.versions),
        "wall_seconds": record.wall_seconds,
        "started_at": record.started_at,
        "error": record.error,
    }
    if as_json:
        screen.print_json(shown)
        return
    means = shown.pop("means")
    error = shown.pop("error")
    screen.table(("what", "value"), [(k, str(v)) for k, v in shown.items()], left=2)
    if means:
        screen.table(("measure", "mean"), [(m, f"{v:.4f}") for m, v in means.items()])
    if error:
        typer.echo(error)


def export_runs(
    path: Annotated[Path, typer.Argument(help="A .parquet or .csv file.")],
    recipe: RecipeOption = None,
    store: StoreOption = STORE,
) -> None:
    """Write one row per cell and measure."""
    from cleanrank.experiments.results import export

    with _open(store) as runs:
        if recipe is not None:
            one_of("recipe", recipe, runs.recipes())
        rows = export(runs.records(recipe=recipe), path)
    screen.note(f"{rows:,} rows in {path}")


def collect_garbage(
    failed: Annotated[bool, typer.Option("--failed", help="Also failures that nothing replaced.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    store: StoreOption = STORE,
) -> None:
    """Remove failures that were replaced and cells of old method versions."""
    from cleanrank.experiments.methods import METHODS
    from cleanrank.experiments.studies import STUDIES

    with _open(store) as runs:
        found = runs.superseded({n: m.version for n, m in (METHODS | STUDIES).items()}, failed=failed)
        reasons = [why for _, why in found]
        for why in dict.fromkeys(reasons):
            screen.note(f"{reasons.count(why):,} x {why}")
        if not found:
            screen.note("nothing to remove")
            return
        if not yes and not typer.confirm(f"Remove {len(found):,} results from {store}?", err=True):
            raise typer.Exit(1)
        runs.remove(row for row, _ in found)
    screen.note(f"removed {len(found):,} results")


def _matrix(recipes: Path, store: Path, page: Path, as_json: bool) -> None:
    from cleanrank.experiments.driver import matrix

    page.parent.mkdir(parents=True, exist_ok=True)
    rows = matrix(recipes, store, page)
    if as_json:
        screen.print_json([{"recipe": r.recipe, "status": r.status, "command": r.command} for r in rows])
    else:
        screen.table(("recipe", "status", "command"), [(r.recipe, r.status, r.command) for r in rows], left=3)
    screen.note(f"matrix: {page}")


@contextmanager
def _open(path: Path) -> Iterator[Any]:
    from cleanrank.experiments.store import Store

    with Store(path, create=False) as runs:
        yield runs


@contextmanager
def _progress() -> Iterator["Callable[[Tally], None]"]:
    """A bar with the time left on a terminal; elsewhere a line now and then."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _lines()
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[words]}"))
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("cells", total=None, words="")

        def update(tally: "Tally") -> None:
            bar.update(task, completed=tally.finished, total=tally.total, words=_words(tally))

        yield update


def _lines() -> "Callable[[Tally], None]":
    last = time.monotonic()

    def line(tally: "Tally") -> None:
        nonlocal last
        if time.monotonic() - last >= PLAIN_SECONDS:
            last = time.monotonic()
            screen.note(_words(tally))

    return line


def _words(tally: "Tally") -> str:
    words = f"{tally.finished:,} of {tally.total:,} cells"
    words += f", {tally.failed:,} failed" if tally.failed else ""
    left = tally.seconds_left
    return words + (f", about {_time(left)} left" if left else "")


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def _say(tally: "Tally") -> None:
    screen.note(
        f"{tally.total:,} cell{'s' * (tally.total != 1)}: {tally.stored:,} were stored, "
        f"{tally.done:,} computed, {tally.failed:,} failed, in {_time(tally.seconds)}"
    )


def _say_failures(found: "Reproduction", store: Path) -> None:
    """The first failures, each with the last line of its traceback."""
    where = "" if store == STORE else f" --store {shlex.quote(str(store))}"
    words = {cell.key: str(cell) for cell in found.cells}
    for record in found.failed[:FAILURES]:
        last = record.error.strip().rpartition("\n")[2]
        screen.note(f"failed: {words[record.key]}: {last} (cleanrank runs show {record.key[:12]}{where})")
    if len(found.failed) > FAILURES:
        name = found.recipe.name
        screen.note(f"and {len(found.failed) - FAILURES:,} more: see `cleanrank runs list {name}{where}`")


def _render(found: "Reproduction", page: Path, markdown: Path | None, pictures: Path | None) -> None:
    from cleanrank.data.files import written_whole
    from cleanrank.experiments.document import markdown_page
    from cleanrank.experiments.driver import write_run_report

    page.parent.mkdir(parents=True, exist_ok=True)
    write_run_report(found, page)
    if pictures is not None:
        from cleanrank.report.charts import write_pictures

        screen.note(f"{len(write_pictures(found.summary, pictures))} pictures: {pictures}")
    if markdown is not None:
        markdown.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(markdown) as draft:
            draft.write_text(markdown_page(found), encoding="utf-8")


def _show(found: "Reproduction", as_json: bool) -> None:
    rows = [
        {
            "dataset": r.dataset,
            "noise": r.level.label,
            "method": r.method,
            "measure": r.measure,
            "mean": r.mean,
            "low": r.low,
            "high": r.high,
            "seed_sd": r.seed_sd,
            "p_holm": r.p_holm,
            "mark": r.mark,
            "state": r.state,
        }
        for r in found.summary.rows
    ]
    if as_json:
        screen.print_json({"recipe": found.recipe.name, "tally": vars(found.tally), "rows": rows})
        return
    lines = [
        (
            *(str(row[c]) for c in ("dataset", "noise", "method", "measure")),
            "" if row["mean"] is None else f"{row['mean']:.4f}",
            "" if row["low"] is None else f"[{row['low']:.4f}, {row['high']:.4f}]",
            str(row["mark"] or ("" if row["state"] == "complete" else row["state"])),
        )
        for row in rows
    ]
    screen.table(("data", "noise", "method", "measure", "mean", "95% interval", ""), lines, left=4)


def _line(record: "RunRecord") -> dict[str, Any]:
    cell = record.cell
    return {
        "key": record.key[:12],
        "dataset": cell["dataset"],
        "fold": cell["fold"],
        "noise": cell["noise"] if cell["rate"] else "none",
        "rate": cell["rate"],
        "method": cell["method"],
        "seed": cell["seed"],
        "status": record.status,
        "seconds": round(record.wall_seconds, 2),
    }
