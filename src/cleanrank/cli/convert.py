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
    place: Annotated[  # as text: a Path forgets the slash at its end
        str | None, typer.Argument(metavar="[OUT]", help="As --out.", show_default=False)
    ] = None,
    out: Annotated[
        str | None,
        typer.Option(
            "--out",
            "-o",
            metavar="OUT",
            help="The file; with a slash at its end a folder of shards, or of BEIR without features.",
        ),
    ] = None,
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
    dtype: Annotated[
        str | None,
        typer.Option(help="Of features in shards: float32, float16 or uint8 (codes)."),
    ] = None,
    n_features: Annotated[
        int | None, typer.Option(min=1, help="Columns of a LETOR file; else the highest index in it.")
    ] = None,
    judgements: Annotated[
        Path | None, screen.in_option("FILE", "Grades for a log of features, by query and document.")
    ] = None,
    force: screen.Force = False,
    as_json: screen.Json = False,
    *,
    columns: screen.Columns,
) -> None:
    """Read data in one format and write them in another.

    Formats: csv, parquet, letor, shards, qrels, beir, quepid-csv, opensearch, quepid-book, rre, label-studio,
    ltr-log.
    What a format cannot hold is left out: judgements have no features, tools no weights.

    Shards are for data larger than memory: LETOR, CSV and Parquet become a folder of them in one pass of
    bounded memory. The same command goes on where it was broken off.
    """
    from cleanrank.data.files import check_outputs
    from cleanrank.data.shards import check_folder
    from cleanrank.data.shards import convert as convert_to_shards
    from cleanrank.data.tables import form_of_output, names_of, read_data, source_of_shards, write_data

    if (place is None) == (out is None):
        raise invalid("convert", "needs one output, as OUT or as --out", "none" if out is None else "two")
    out = out or str(place)
    named = {"combine": combine, "split": split, "judgements": judgements, "n_features": n_features}
    options: dict[str, Any] = {name: value for name, value in named.items() if value is not None} | columns
    form = target or form_of_output(out, data, source, options)
    if dtype is not None and form != "shards":
        raise invalid("--dtype", "goes with a folder of shards (--out FOLDER/)", repr(dtype))
    if form == "beir" and force:
        rule = "does not go with a folder of BEIR, which must be new"
        raise invalid("--force", rule, repr(out), remedy="Name another folder.")
    if form == "shards":
        check_folder(Path(out), force=force)
        pieces = source_of_shards(data, source, options)
        with screen.progress("converting") as tick:
            convert_to_shards(pieces, out, dtype=dtype, force=force, progress=tick)
        read = read_data(out)
    else:
        if form != "beir":
            check_outputs(Path(out), inputs=[data, judgements], force=force)
        read = read_data(data, form=source, **options)
        write_data(read, out, form=form, force=force, **names_of(columns))
    record = {"out": out, "format": form, "rows": read.n_docs, "queries": read.n_queries}
    screen.show(record, as_json, f"{read!r} is written to {out} ({form}).")
