"""The command convert: data from one format into another."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cleanrank.cli import screen
from cleanrank.errors import invalid

app = typer.Typer()


@app.command()
@screen.with_columns
def convert(
    data: Annotated[
        Path,
        typer.Argument(
            metavar="DATA",
            help="A file or folder in any format, or an id of ir_datasets; - reads stdin.",
            callback=screen.piped,
        ),
    ],
    out: Annotated[
        str,  # a Path forgets the slash at its end
        typer.Argument(metavar="OUT", help="The file; with a slash at its end a folder of BEIR."),
    ],
    source: Annotated[
        str | None, typer.Option("--from", metavar="FORMAT", help="Of DATA, where it should not be guessed.")
    ] = None,
    target: Annotated[
        str | None, typer.Option("--to", metavar="FORMAT", help="Of OUT; else what its name says.")
    ] = None,
    combine: Annotated[
        str | None,
        typer.Option(help="How opinions of several people become one: majority, median or expected (gains)."),
    ] = None,
    split: Annotated[str | None, typer.Option(help="Of a folder: its part, such as test.")] = None,
    judgements: Annotated[
        Path | None, screen.in_option("FILE", "Grades for a log of features, by query and document.")
    ] = None,
    force: screen.Force = False,
    as_json: screen.Json = False,
    *,
    columns: screen.Columns,
) -> None:
    """Read data in one format and write them in another.

    Formats: csv, parquet, letor, qrels, beir, quepid-csv, opensearch, quepid-book, rre, label-studio,
    ltr-log.
    What a format cannot hold is left out: judgements have no features, tools no weights.
    """
    from cleanrank.data.files import check_outputs
    from cleanrank.data.tables import form_of_name, names_of, read_data, write_data

    named = {"combine": combine, "split": split, "judgements": judgements}
    options: dict[str, Any] = {name: value for name, value in named.items() if value is not None}
    form = target or form_of_name(out)
    if form == "beir" and force:
        rule = "does not go with a folder of BEIR, which must be new"
        raise invalid("--force", rule, repr(out), remedy="Name another folder.")
    if form != "beir":
        check_outputs(Path(out), inputs=[data, judgements], force=force)
    read = read_data(data, form=source, **options, **columns)
    write_data(read, out, form=form, **names_of(columns))
    record = {"out": out, "format": form, "rows": read.n_docs, "queries": read.n_queries}
    screen.show(record, as_json, f"{read!r} is written to {out} ({form}).")
