"""``cleanrank annotators``."""

from pathlib import Path
from typing import Annotated

import typer

from cleanrank.cli import screen

app = typer.Typer()
SHOWN = 30


@app.command()
def annotators(
    context: typer.Context,
    judgements: Annotated[
        Path,
        typer.Argument(
            metavar="JUDGEMENTS",
            help="Table (.csv, .xlsx, .parquet): item (or query and document), annotator, grade; or a "
            "column of grades per annotator.",
            callback=screen.piped,
        ),
    ],
    out: Annotated[
        Path | None,
        screen.out_file(
            "CONSENSUS",
            "Also write the consensus, with --gold the grades, with --filter or --keep the judgements of "
            "those who stay: .csv, .tsv, .xlsx or .parquet.",
        ),
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="True grades of some items (qrels or a table): the grades are then those that predict them "
            "best, from all annotators or from the best one.",
        ),
    ] = None,
    filter_above: Annotated[
        float | None,
        typer.Option(
            "--filter",
            metavar="PNOISE",
            min=0.0,
            max=0.5,
            help="Drop annotators whose pNoise, corrected for the fineness of their scale, is above this "
            "with its whole interval.",
        ),
    ] = None,
    keep: Annotated[
        int | None, typer.Option(min=1, metavar="M", help="Or keep the M annotators with the least pNoise.")
    ] = None,
    again: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the items to judge again."),
    ] = None,
    n: Annotated[int, typer.Option("--n", min=1, help="With --again: how many items.")] = 100,
    judge_cost: Annotated[float, typer.Option(min=0.0, help="Of one judgement.")] = 1.0,
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="ROLE=NAME,...",
            help="Headings that are not usual ones: item, query, doc, annotator, grade, truth, seconds, at.",
        ),
    ] = None,
    annotator_columns: Annotated[
        str | None,
        typer.Option("--annotators", metavar="NAME,...", help="Columns of grades, one per annotator."),
    ] = None,
    delimiter: Annotated[str | None, typer.Option(help="Of a text table, if it is guessed wrong.")] = None,
    level: screen.Level = 0.95,
    seed: screen.Seed = 0,
    html: screen.Html = None,
    force: screen.Force = False,
    as_json: screen.Json = False,
) -> None:
    """Look at several people's judgements: who is reliable, the consensus, what to judge again."""
    from cleanrank.data.files import FRAMES, check_outputs
    from cleanrank.data.spreadsheet import checked_delimiter, write_frame
    from cleanrank.judges.answers import item_labels, read_answers, with_true_grades
    from cleanrank.judges.labels import as_labels
    from cleanrank.judges.panel import combine_judges
    from cleanrank.noise.annotator_pairs import annotator_pairs, filter_annotators
    from cleanrank.noise.annotator_report import annotator_report
    from cleanrank.noise.judgement_table import read_judgements
    from cleanrank.report.annotator_tables import (
        again_table,
        agreement_table,
        annotator_record,
        annotator_table,
        closest_table,
        dependence_table,
        judges_table,
        odd_table,
        pair_noise_table,
        panel_table,
        write_annotators_page,
    )

    if again is None:
        screen.refuse(context, "n", "goes with --again")
    check_outputs(out, again, inputs=(judgements, gold), force=force, suffixes=FRAMES)
    screen.check_page(html, (judgements, gold, out, again), force)
    judged = read_judgements(
        judgements,
        columns=screen.parse_columns("--columns", columns),
        annotators=None if annotator_columns is None else annotator_columns.split(","),
        delimiter=None if delimiter is None else checked_delimiter(delimiter),
    )
    panel, scales = None, []
    if gold is None and (odd := read_answers(judged).odd):
        scales = [
            f"annotators seem to use different scales ({odd}): the consensus needs one; with --gold not"
        ]
    elif gold is not None:
        labels = as_labels(gold, "gold") if "query_id" in judged.keys else item_labels(gold)
        panel = combine_judges(judged, gold=labels, level=level, seed=seed)
        judged = with_true_grades(judged, labels)
    filtered, stay = None, ""
    if filter_above is not None or keep is not None:
        people = annotator_pairs(judged, level=level, seed=seed)
        filtered = filter_annotators(people, above=filter_above, keep=keep)
        unsure = sum(each.is_unsure for each in people if each.name in filtered.kept)
        stay = f"{len(filtered.kept):,} annotators stay"
        if unsure:
            stay += f", {unsure:,} of them with too few queries or pairs for an interval"
    report = annotator_report(judged, level=level, seed=seed)
    more = len(report.annotators) - SHOWN
    prices = again_table(report, judge_cost)
    dependence = report.dependence if panel is None else panel.dependence
    together = [] if dependence is None else [dependence_table(dependence), closest_table(dependence)]
    screen.show(
        annotator_record(report, judge_cost, panel, filtered),
        as_json,
        annotator_table(report, rows=SHOWN),
        *([pair_noise_table(report, filtered, rows=SHOWN)] if report.pair_noise else []),
        *([odd_table(report)] if report.odd else []),
        *([f"{more:,} more annotators are in --json and --html"] if more > 0 else []),
        agreement_table(report),
        *(table for table in together if table.rows),
        *([] if panel is None else [panel_table(panel), judges_table(panel, rows=SHOWN)]),
        *([prices] if prices.rows else []),
        *report.notes,
        *scales,
        *([] if filtered is None else [f"dropped {name}: {why}" for name, why in filtered.dropped.items()]),
        *([] if filtered is None else [stay]),
    )
    if out is not None:
        if filtered is not None:
            written = judged.of(filtered.kept)
        else:
            written = report.consensus() if panel is None else panel.grades.round(6)
        write_frame(written, out)
        screen.note(f"wrote {out}")
    if again is not None:
        write_frame(report.to_judge_again(n), again)
        screen.note(f"wrote {again}")
    if html is not None:
        page = write_annotators_page(
            html, report, name=judgements.name, cost=judge_cost, panel=panel, filtered=filtered
        )
        screen.note(f"wrote {page}")
