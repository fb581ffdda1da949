"""``cleanrank gold sample|read``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cleanrank.cli import screen
from cleanrank.errors import invalid

if TYPE_CHECKING:
    from cleanrank.noise.estimate import NoiseEstimate

DataArgument = Annotated[
    Path, typer.Argument(metavar="FILE", help="Judged data: LETOR/SVMlight, CSV or Parquet.")
]
SheetArgument = Annotated[Path, typer.Argument(metavar="SHEET", help="The sheet, filled in.")]

gold = typer.Typer(
    no_args_is_help=True,
    help="Measure the noise of labels: draw rows to judge again, and turn the answers into a noise matrix.",
)


def mount(app: typer.Typer) -> None:
    """Adds the group."""
    app.add_typer(gold, name="gold")


@gold.command()
def sample(
    data: DataArgument,
    out: Annotated[Path, typer.Option("--out", "-o", help="The sheet to write, .csv, .tsv or LETOR.")],
    n: Annotated[int, typer.Option("--n", min=1, help="How many rows.")] = 100,
    strategy: Annotated[str, typer.Option(help="stratified, random or doubt.")] = "stratified",
    doubt: Annotated[
        Path | None, typer.Option(help="For doubt: a number per row, high where the grade is doubtful.")
    ] = None,
    form: Annotated[
        str | None, typer.Option(help="csv or letor; what the name of the sheet says unless given.")
    ] = None,
    show_given: Annotated[
        bool, typer.Option("--show-given", help="Show the given grade; it sways whoever judges.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Same seed, same rows.")] = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace a sheet that is there.")] = False,
) -> None:
    """Draw rows to judge again, the same number of every given grade, as a sheet to fill in."""
    from cleanrank.data.frames import read_data
    from cleanrank.data.trec import read_scores
    from cleanrank.noise.gold import sample_gold
    from cleanrank.noise.gold_sheet import write_sheet

    if out.exists() and not force:
        raise invalid("sheet", "must not exist yet: it may hold answers", str(out), remedy="Say --force.")
    judged = read_data(data)
    scores = None if doubt is None else read_scores(doubt, judged)
    sheet = sample_gold(judged, n, strategy, seed, doubt=scores)
    write_sheet(sheet, out, data=judged, form=form, show_given=show_given)
    screen.note(f"{sheet!r}")
    screen.note(
        f"{out}: fill in true_grade (0 to {max(judged.n_grades - 1, 1)}), then: "
        f"cleanrank gold read {out} {data}"
    )


@gold.command()
def read(
    sheet: SheetArgument,
    data: DataArgument,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Also write the estimate to this JSON file.")
    ] = None,
    grades: Annotated[
        int | None, typer.Option(min=2, help="Grades of the scale, when the highest does not occur.")
    ] = None,
    width: Annotated[
        float, typer.Option(min=0.001, max=1.0, help="How wide the interval of pNoise may be.")
    ] = 0.1,
    level: Annotated[float, typer.Option(min=0.5, max=0.999, help="Level of the intervals.")] = 0.95,
    allow_unanswered: Annotated[
        bool, typer.Option("--allow-unanswered", help="Leave rows without an answer out.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Seed of the posterior draws.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Turn the answers into the noise matrix P(given | true) with intervals; say if they were too few."""
    from cleanrank.data.frames import read_data
    from cleanrank.noise.gold_sheet import read_sheet

    judged = read_data(data)
    answers = read_sheet(sheet, judged, n_grades=grades, allow_unanswered=allow_unanswered)
    if answers.unanswered:
        screen.note(
            f"{len(answers.unanswered)} rows without an answer were left out; if they were the hard ones, "
            "the noise is underestimated"
        )
    found = answers.estimate(judged, n_grades=grades, level=level, seed=seed)
    if out is not None:
        found.save(out)
        screen.note(f"wrote {out}")
    if as_json:
        screen.print_json({key: value for key, value in found.to_json().items() if key != "draws"})
        return
    show_estimate(found)
    shortfall = found.too_few(width)
    typer.echo(str(shortfall)[0].upper() + str(shortfall)[1:] + ".")


def show_estimate(found: "NoiseEstimate") -> None:
    """The matrix and what follows from it, as tables."""
    low, high = found.interval
    C = found.n_grades
    screen.table(
        ("P(given | true)", *(f"given {m}" for m in range(C))),
        [
            (
                f"true {l}",
                *(f"{found.matrix[l, m]:.2f} [{low[l, m]:.2f}, {high[l, m]:.2f}]" for m in range(C)),
            )
            for l in range(C)
        ],
    )
    kept, ends = found.pnoise, found.pnoise_interval
    rows = [
        ("true grades", ", ".join(f"{g}: {share:.1%}" for g, share in enumerate(found.proportions))),
        ("wrong grades", _span(found.rate, found.rate_interval)),
        ("wrong pairs (pNoise)", _span(kept, ends)),
        ("AUC signal left", _span(1 - 2 * kept, (1 - 2 * ends[1], 1 - 2 * ends[0]))),
    ]
    screen.table(("", f"{found.n:,} answers, {found.level:.0%} intervals"), rows, left=2)
    for reason in found.reasons:
        screen.note(f"note: {reason}")


def _span(value: float, ends: tuple[float, float]) -> str:
    return f"{value:.1%} [{ends[0]:.1%}, {ends[1]:.1%}]"
