"""``cleanrank export``."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from cleanrank.cli import screen

app = typer.Typer()


@app.command()
def export(
    project: Annotated[
        Path, typer.Argument(metavar="PROJECT", help="A project of `cleanrank label` or `cleanrank review`.")
    ],
    out: Annotated[Path, screen.out_file("FILE", "Where to; its ending says the format.")],
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            help="letor, qrels, labels (one grade per document, .csv or .parquet), judgements (everybody's), "
            "preferences or label-studio; else by the ending: .qrels, .json, tables of judgements, LETOR.",
        ),
    ] = None,
    combine: Annotated[
        str | None,
        typer.Option(help="Where several people graded a document: majority (unless given) or median."),
    ] = None,
    annotator: Annotated[
        str | None, typer.Option(metavar="NAME", help="The answers of this person alone.")
    ] = None,
    force: screen.Force = False,
    as_json: screen.Json = False,
) -> None:
    """Write what was judged in a project: data sets, TREC qrels, tables, Label Studio tasks.

    One grade per document is that of most people; of a tie the given label if it is among them, else the
    lowest. Rows that were dropped, and rows of which nobody was sure, are left out, and that is said.
    """
    from cleanrank.data.files import check_outputs
    from cleanrank.labeling.export import ONE_GRADE, export_judgements
    from cleanrank.labeling.store import open_project

    check_outputs(out, inputs=[project], force=force)
    with open_project(project) as opened:
        done = export_judgements(opened, out, form=form, combine=combine, annotator=annotator)
    record = {**asdict(done), "path": str(done.path)}
    rows = "documents" if done.form in ONE_GRADE else "rows"
    screen.show(record, as_json, *done.notes, f"wrote {out} ({done.form}, {done.rows:,} {rows})")
