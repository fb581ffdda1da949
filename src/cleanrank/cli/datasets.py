"""``cleanrank datasets list|show|verify|path``."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cleanrank.cli import screen

Root = Annotated[
    Path | None, typer.Option(help="Where data sets lie; the folder in CLEANRANK_DATA unless given.")
]
Name = Annotated[str, typer.Argument(metavar="NAME", help="A data set of `cleanrank datasets list`.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]

datasets = typer.Typer(
    no_args_is_help=True, help="Known data sets: what they are, where they lie, whether they are whole."
)


def mount(app: typer.Typer) -> None:
    """Adds the group."""
    app.add_typer(datasets, name="datasets")


@datasets.command("list")
def list_all(root: Root = None, as_json: Json = False) -> None:
    """List known data sets and which of them are here."""
    from cleanrank.data.catalogue import list_datasets

    rows = list_datasets(root)
    if as_json:
        screen.print_json(
            [{**asdict(row), "here": row.path is not None, "path": str(row.path or "")} for row in rows]
        )
        return
    columns = ("name", "what", "here", "folds", "queries", "documents", "features")
    cells = [
        (
            row.name,
            row.title,
            "no" if row.path is None else row.form.partition(":")[0] or "yes",
            str(row.folds),
            *("–" if n is None else f"{n:,}" for n in (row.queries, row.documents, row.features)),
        )
        for row in rows
    ]
    screen.table(columns, cells, left=3)


@datasets.command()
def show(name: Name, root: Root = None, as_json: Json = False) -> None:
    """Show one data set: layout, published statistics, terms, how to get it."""
    from cleanrank.data.catalogue import describe

    known = describe(name, root)
    if as_json:
        screen.print_json(known)
        return
    lines = [
        ("name", ", ".join([known["name"], *known["aliases"]])),
        ("what", known["title"]),
        ("form", known["form"]),
        ("here", known["path"] or "no"),
        ("folders", ", ".join(known["folders"])),
        *((f"{part} files", ", ".join(names)) for part, names in known["files"].items()),
        ("folds", ", ".join(str(fold) for fold in known["folds"])),
        ("terms", known["terms"]),
        ("page", known["page"]),
        ("how to get it", known["how_to_get"]),
        *(("note", text) for text in known["notes"]),
    ]
    screen.table(("", ""), [line for line in lines if line[1]], left=2)
    if known["statistics"]:
        rows = [(s["part"], s["what"], f"{s['value']:,}", s["source"]) for s in known["statistics"]]
        screen.out().print()
        screen.table(("part", "statistic", "published", "source"), rows, left=2)


@datasets.command()
def verify(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="All that are here unless named.")
    ] = None,
    root: Root = None,
    as_json: Json = False,
) -> None:
    """Count data sets and compare with the published statistics; exit code 1 where something differs."""
    from cleanrank.data.catalogue import list_datasets
    from cleanrank.data.catalogue_check import passed
    from cleanrank.data.catalogue_check import verify as verify_one

    chosen = names or [row.name for row in list_datasets(root) if row.path is not None]
    if not chosen:
        screen.note("No known data set is here. Set CLEANRANK_DATA to the folder that holds them.")
        raise typer.Exit(2)
    rows = []
    with screen.progress("counting") as tick:
        for place, name in enumerate(chosen):
            tick(place, len(chosen))
            rows += verify_one(name, root)
    if as_json:
        screen.print_json([asdict(row) for row in rows])
    else:
        shown = [
            (
                row.dataset,
                row.part,
                row.what,
                row.verdict,
                "–" if row.published is None else f"{row.published:,}",
                "–" if row.counted is None else f"{row.counted:,}",
            )
            for row in rows
        ]
        screen.table(("data set", "part", "statistic", "verdict", "published", "counted"), shown, left=4)
        for dataset, form in dict.fromkeys((row.dataset, row.form) for row in rows if row.form):
            screen.note(f"{dataset}: {form}; compared with the figures of that form.")
    differing = sum(row.verdict == "differs" for row in rows)
    screen.note(f"{len(rows)} statistics, {differing} differ.")
    if not passed(rows):
        raise typer.Exit(1)


@datasets.command()
def path(name: Name, root: Root = None) -> None:
    """Print where a data set lies."""
    from cleanrank.data.catalogue import dataset_path

    typer.echo(dataset_path(name, root))
