"""``cleanrank datasets list|show|verify|path``."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cleanrank.cli import screen
from cleanrank.report.table import Table

Root = Annotated[
    Path | None, typer.Option(help="Folder of the data sets; the one in CLEANRANK_DATA unless given.")
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A data set of `cleanrank datasets list`.")]

app = typer.Typer()
datasets = typer.Typer(
    no_args_is_help=True, help="Known data sets: what they are, where they lie, whether they are whole."
)
app.add_typer(datasets, name="datasets")


@datasets.command("list")
def list_all(root: Root = None, as_json: screen.Json = False) -> None:
    """List known data sets and which of them are here."""
    from cleanrank.data.catalogue import list_datasets

    entries = list_datasets(root)
    record = [{**asdict(e), "here": e.path is not None, "path": str(e.path or "")} for e in entries]
    rows = [
        {**vars(e), "here": "no" if e.path is None else e.form.partition(":")[0] or "yes"} for e in entries
    ]
    counts = [(name, name, ",") for name in ("folds", "queries", "documents", "features")]
    columns = [("name", "name"), ("what", "title"), ("here", "here"), *counts]
    screen.show(record, as_json, Table.of(rows, columns))


@datasets.command()
def show(name: Name, root: Root = None, as_json: screen.Json = False) -> None:
    """Show one data set: layout, published statistics, terms, how to get it."""
    from cleanrank.data.catalogue import describe

    entry = describe(name, root)
    lines = [
        ("name", ", ".join([entry["name"], *entry["aliases"]])),
        ("what", entry["title"]),
        ("form", entry["form"]),
        ("here", entry["path"] or "no"),
        ("folders", ", ".join(entry["folders"])),
        *((f"{part} files", ", ".join(names)) for part, names in entry["files"].items()),
        ("folds", ", ".join(str(fold) for fold in entry["folds"])),
        ("terms", entry["terms"]),
        ("page", entry["page"]),
        ("how to get it", entry["how_to_get"]),
        *(("note", text) for text in entry["notes"]),
    ]
    columns = [("part", "part"), ("statistic", "what"), ("published", "value", ","), ("source", "source")]
    statistics = [Table.of(entry["statistics"], columns)] if entry["statistics"] else []
    screen.show(entry, as_json, Table(("", ""), [line for line in lines if line[1]], headed=2), *statistics)


@datasets.command()
def verify(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="All that are here unless named.")
    ] = None,
    root: Root = None,
    as_json: screen.Json = False,
) -> None:
    """Count data sets and compare with the published statistics; exit code 1 where something differs."""
    from cleanrank.data.catalogue import list_datasets
    from cleanrank.data.catalogue_check import passed
    from cleanrank.data.catalogue_check import verify as verify_one

    names = names or [entry.name for entry in list_datasets(root) if entry.path is not None]
    if not names:
        screen.note("No known data set is here. Set CLEANRANK_DATA to the folder that holds them.")
        raise typer.Exit(2)
    checks = []
    with screen.progress("counting") as tick:
        for place, name in enumerate(names):
            tick(place, len(names))
            checks += verify_one(name, root)
    record = [asdict(check) for check in checks]
    columns: list[tuple[str, ...]] = [
        ("data set", "dataset"),
        ("part", "part"),
        ("statistic", "what"),
        ("verdict", "verdict"),
    ]
    columns += [("published", "published", ","), ("counted", "counted", ",")]
    forms = dict.fromkeys((check.dataset, check.form) for check in checks if check.form)
    notes = [f"{dataset}: {form}; compared with the figures of that form." for dataset, form in forms]
    screen.show(record, as_json, Table.of(record, columns, notes=notes))
    differing = sum(check.verdict == "differs" for check in checks)
    screen.note(f"{len(checks)} statistics, {differing} differ.")
    if not passed(checks):
        raise typer.Exit(1)


@datasets.command()
def path(name: Name, root: Root = None) -> None:
    """Print where a data set lies."""
    from cleanrank.data.catalogue import dataset_path

    typer.echo(dataset_path(name, root))
