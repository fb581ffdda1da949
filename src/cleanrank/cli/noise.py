"""``cleanrank corrupt``, ``cleanrank clicks`` and ``cleanrank gold sample|read``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cleanrank.cli import screen, with_judge
from cleanrank.clicks.models import CLICK_MODELS
from cleanrank.errors import invalid
from cleanrank.noise.dependent import DEPENDENT
from cleanrank.noise.profiles import PROFILES
from cleanrank.report.table import Table
from cleanrank.types import RankingData
from cleanrank.validation import one_of

PURPOSES = ("noise", "evaluation")
FOR_NOISE = "n strategy doubt form show_given"
FOR_EVALUATION = "runs judge budget unit measure compare answers pilot mapping width level"

app = typer.Typer()
gold = typer.Typer(
    no_args_is_help=True,
    help="Measure the noise of labels: draw rows to judge again, and turn the answers into a noise matrix.",
)
app.add_typer(gold, name="gold")
JudgedFile = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help=f"Judged data: {screen.DATA_FORMATS}; or TREC qrels.",
        callback=screen.piped,
    ),
]


@app.command()
@screen.with_columns
def corrupt(
    context: typer.Context,
    file: JudgedFile,
    out: Annotated[Path, screen.out_file("OUT", "Noisy data, in the format of the suffix.")],
    profile: Annotated[
        str, typer.Option(help=f"Family of noise: {', '.join((*PROFILES, *DEPENDENT))}.")
    ] = "uniform",
    rate: Annotated[float | None, typer.Option(help="Probability that a grade changes.")] = None,
    matrix: Annotated[
        Path | None, screen.in_option("FILE", "Noise matrix in a JSON or CSV file, instead of a family.")
    ] = None,
    seed: screen.Seed = 0,
    spread: Annotated[
        float, typer.Option(help="Let the rate vary over queries: variance / (rate (1 - rate)).")
    ] = 0.0,
    option: screen.Options = None,
    n_grades: Annotated[
        int | None, typer.Option(help="Grades of the scale, if the highest does not occur.")
    ] = None,
    truth: Annotated[str, typer.Option(help="Format of the truth beside OUT: csv or parquet.")] = "csv",
    force: screen.Force = False,
    as_json: screen.Json = False,
    *,
    columns: screen.Columns,
) -> None:
    """Put label noise of a known kind into a data set (or TREC qrels), and keep the truth beside it.

    Writes OUT, OUT.noise.json (matrix, seed, counts, checksum, the command that repeats it) and OUT.truth.csv
    (true and given grade of every row).
    """
    from cleanrank.data.files import check_outputs
    from cleanrank.data.scores import read_judged
    from cleanrank.data.tables import check_data_output
    from cleanrank.noise.corrupt import corrupt as corrupt_data
    from cleanrank.noise.corrupt import side_files, write_corruption
    from cleanrank.noise.profiles import read_matrix

    check_data_output(out, file, [file, matrix], force=force)
    # The record of an earlier run may be the matrix of this one, which writes it again.
    check_outputs(*side_files(out, truth), inputs=[file], force=force)
    data = read_judged(file, columns)
    settings: dict[str, Any] = {"profile": None}
    if matrix is not None:
        screen.refuse(
            context, "profile rate spread option n_grades", "must not be given with --matrix", str(matrix)
        )
        corruption = corrupt_data(data, read_matrix(matrix), seed=seed)
    else:
        settings = {"profile": profile, "rate": rate, "spread": spread}
        settings |= {"options": screen.parse_options(option), "n_grades": n_grades}
        corruption = corrupt_data(data, seed=seed, **settings)
    settings |= {"columns": columns} if columns else {}
    record = write_corruption(corruption, out, source=file, settings=settings, truth=truth, force=force)
    lines = [{**line, "given": record["counts"][line["grade"]]} for line in record["per_grade"]]
    head = ("true grade", "documents", "changed", *(f"given {g}" for g in range(len(lines))))
    rows = [
        (str(line["grade"]), *(f"{n:,}" for n in (line["documents"], line["changed"], *line["given"])))
        for line in lines
    ]
    gains = [] if data.gains is None else ["real-valued gains do not go with changed grades: left out"]
    screen.show(
        record,
        as_json,
        repr(data),
        *gains,
        Table(head, rows),
        f"{record['name']}, seed {seed}: {record['changed']:,} of {record['documents']:,} grades changed "
        f"({record['realised_rate']:.1%})",
        *(f"wrote {path}" for path in (out, *side_files(out, truth))),
    )


@app.command()
@screen.with_columns
def clicks(
    file: screen.Data,
    out: Annotated[Path, screen.out_file("LOG", "Click log, .parquet or .csv.")],
    model: Annotated[str, typer.Option(help=f"Kind of users: {', '.join(CLICK_MODELS)}.")] = "pbm",
    sessions: Annotated[int, typer.Option(min=1, help="How often each query's list is shown.")] = 1,
    scores: Annotated[
        Path | None,
        screen.in_option("RANKING", "Scores that rank the lists; else the rows' own order."),
    ] = None,
    way: Annotated[
        str, typer.Option(help="first: only relevant documents attract; second: all do a little.")
    ] = "first",
    flip: Annotated[
        str | None,
        typer.Option(metavar="E | E_PLUS,E_MINUS", help="Turn clicks round: one rate, or lost,made-up."),
    ] = None,
    cutoff: Annotated[int | None, typer.Option(min=1, help="Ranks shown; else whole lists.")] = None,
    top_grade: Annotated[
        int | None, typer.Option(help="Highest grade of the scale, if it does not occur.")
    ] = None,
    skip_empty: Annotated[
        bool, typer.Option("--skip-empty", help="Leave lists without a click out.")
    ] = False,
    option: screen.Options = None,
    seed: screen.Seed = 0,
    force: screen.Force = False,
    as_json: screen.Json = False,
    *,
    columns: screen.Columns,
) -> None:
    """Simulate users who click, and write a log: session, query_id, row_id, position, click.

    LOG.clicks.json beside it says how the clicks were made.
    """
    from cleanrank.clicks.logs import session_record, write_sessions
    from cleanrank.clicks.simulate import click_sessions
    from cleanrank.data.files import check_outputs
    from cleanrank.data.scores import read_scores
    from cleanrank.data.tables import read_data

    check_outputs(out, inputs=[file, scores], force=force, suffixes=(".csv", ".parquet"))
    check_outputs(session_record(out), inputs=[file, scores], force=force)
    data = read_data(file, **columns)
    logs = click_sessions(
        data,
        model,
        scores=None if scores is None else read_scores(scores, data),
        sessions=sessions,
        seed=seed,
        flip=_flip(flip),
        cutoff=cutoff,
        top_grade=top_grade,
        options={"way": way, **screen.parse_options(option)},
    )
    with screen.progress("sessions") as tick:
        record = write_sessions(
            logs,
            out,
            source=file,
            scores=scores,
            sessions=sessions,
            cutoff=cutoff,
            skip_empty=skip_empty,
            progress=tick,
        )
    names = ("lists", "entries", "clicks", "empty_lists", "click_rate")
    counts = {name.replace("_", " "): record[name] for name in names}
    wrote = [f"wrote {path}" for path in (out, session_record(out))]
    screen.show(record, as_json, repr(data), screen.facts(counts, model), *wrote)


def _flip(text: str | None) -> float | tuple[float, float] | None:
    if text is None:
        return None
    try:
        rates = [float(part) for part in text.split(",")]
    except ValueError:
        rates = []
    if len(rates) not in (1, 2):
        rule = "must be one rate or two with a comma"
        raise invalid("--flip", rule, repr(text), remedy="As in --flip .5,.04.")
    return rates[0] if len(rates) == 1 else (rates[0], rates[1])


def _judged_rows(file: Path, columns: screen.Columns) -> RankingData:
    """The rows of a table, a LETOR file or TREC qrels that have a grade: negative ones of qrels are none."""
    from cleanrank.data.scores import read_judged

    data = read_judged(file, columns)
    return data if data.judged is None else data.select(data.judged)


def _evaluation_option(*names: str, metavar: str | None = None, description: str, reads: bool = False) -> Any:
    """An option of ``gold sample --for evaluation``."""
    callback = screen.piped if reads else None
    panel = "With --for evaluation"
    return typer.Option(*names, metavar=metavar, help=description, callback=callback, rich_help_panel=panel)


@gold.command()
@screen.with_columns
def sample(
    context: typer.Context,
    out: Annotated[Path, screen.out_file("SHEET", "The sheet to write, .csv, .tsv, .xlsx or LETOR.")],
    data: Annotated[
        Path | None,
        typer.Argument(
            metavar="DATA",
            help=f"Judged data: {screen.DATA_FORMATS}; or TREC qrels. Not with --for evaluation.",
            callback=screen.piped,
            show_default=False,
        ),
    ] = None,
    purpose: Annotated[
        str, typer.Option("--for", help="noise (how wrong are the labels) or evaluation (of systems).")
    ] = "noise",
    n: Annotated[int, typer.Option("--n", min=1, help="How many rows.")] = 100,
    strategy: Annotated[str, typer.Option(help="stratified, random or doubt.")] = "stratified",
    doubt: Annotated[
        Path | None,
        screen.in_option("SCORES", "For doubt: a number per row, high where the grade is doubtful."),
    ] = None,
    form: Annotated[
        str | None, typer.Option(help="csv, xlsx or letor; what the name of the sheet says unless given.")
    ] = None,
    show_given: Annotated[
        bool, typer.Option("--show-given", help="Show the given grade; it sways whoever judges.")
    ] = False,
    runs: Annotated[
        list[Path] | None,
        _evaluation_option(
            metavar="DIR|RUN", description="A folder of runs, or a run (repeatable).", reads=True
        ),
    ] = None,
    judge: Annotated[
        Path | None,
        _evaluation_option(metavar="LABELS", description="The judge's labels: qrels or a table.", reads=True),
    ] = None,
    budget: Annotated[
        int, _evaluation_option(description="Documents or queries to judge in all, those of --gold included.")
    ] = 100,
    unit: Annotated[str, _evaluation_option(description="documents or (whole) queries.")] = "documents",
    measure: Annotated[
        str, _evaluation_option("--measure", "-m", description="What is estimated.")
    ] = "dcg@10",
    compare: Annotated[
        str | None, _evaluation_option(metavar="A,B", description="For the difference of two systems.")
    ] = None,
    answers: Annotated[
        Path | None,
        _evaluation_option(
            "--gold", metavar="SHEET", description="The sheet so far, filled in, to continue.", reads=True
        ),
    ] = None,
    pilot: Annotated[
        Path | None,
        _evaluation_option(
            metavar="LABELS",
            description="True grades from elsewhere, to learn how uncertain the judge is.",
            reads=True,
        ),
    ] = None,
    mapping: Annotated[
        str | None,
        _evaluation_option(
            "--map", description="Grades of the judge's values where its scale differs, as in 0=0,1=2."
        ),
    ] = None,
    width: Annotated[
        float | None,
        _evaluation_option(description="Stop once the intervals that --gold gives are no wider than this."),
    ] = None,
    level: Annotated[
        float, _evaluation_option(description="Level of the intervals of all looks together.")
    ] = 0.95,
    seed: screen.Seed = 0,
    force: screen.Force = False,
    *,
    columns: screen.Columns,
) -> None:
    """Draw rows for a person to judge, as a sheet to fill in.

    For noise: the same number of every given grade. For evaluation: the documents or queries that decide most
    about the measured level of systems, or about the difference of two.
    """
    from cleanrank.data.files import check_outputs
    from cleanrank.data.scores import read_scores
    from cleanrank.noise.gold import sample_gold
    from cleanrank.noise.gold_sheet import write_sheet

    if one_of("purpose (--for)", purpose, PURPOSES) == "evaluation":
        if data is not None:
            raise invalid("DATA", "must be left out with --for evaluation", str(data), remedy="Name --judge.")
        screen.refuse(context, f"{FOR_NOISE} {screen.TABLES}", "goes with --for noise", "--for evaluation")
        if answers is None:
            screen.refuse(context, "width level", "goes with --gold, the sheet so far")
        settings = {"budget": budget, "unit": unit, "measure": measure, "seed": seed}
        settings |= {"width": width, "level": level, "mapping": with_judge.scale(mapping)}
        _sample_for_evaluation(out, runs, judge, answers, pilot, compare, mapping, force, settings)
        return
    screen.refuse(context, FOR_EVALUATION, "goes with --for evaluation", "--for noise")
    if strategy != "doubt":
        screen.refuse(context, "doubt", "goes with --strategy doubt", strategy)
    if data is None:
        raise invalid("gold sample --for noise", "needs DATA", "none")
    check_outputs(out, inputs=[data, doubt], force=force, suffixes=("", ".csv", ".tsv", ".xlsx"))
    judged = _judged_rows(data, columns)
    scores = None if doubt is None else read_scores(doubt, judged)
    sheet = sample_gold(judged, n, strategy, seed, doubt=scores)
    write_sheet(sheet, out, data=judged, form=form, show_given=show_given)
    screen.note(f"{sheet!r}")
    highest = max(judged.n_grades - 1, 1)
    step = screen.command("gold", "read", out, data, columns=columns)
    screen.note(f"{out}: fill in true_grade (0 to {highest}), then: {step}")


def _sample_for_evaluation(
    out: Path,
    runs: list[Path] | None,
    judge: Path | None,
    answers: Path | None,
    pilot: Path | None,
    compare: str | None,
    scale: str | None,
    force: bool,
    settings: dict[str, Any],
) -> None:
    from cleanrank.data.files import check_outputs
    from cleanrank.judges.sampling import sample_for_evaluation

    if not runs or judge is None:
        missing = "no --runs" if not runs else "no --judge"
        raise invalid("gold sample --for evaluation", "needs --runs and --judge", missing)
    check_outputs(out, inputs=[*runs, judge, answers, pilot], force=force, suffixes=(".csv", ".tsv", ".xlsx"))
    pair = None if compare is None else [name.strip() for name in compare.split(",")]
    source = runs[0] if len(runs) == 1 else runs
    drawn = sample_for_evaluation(source, judge, compare=pair, gold=answers, pilot=pilot, **settings)
    drawn.write(out)
    for text in (f"{drawn!r}", *([] if drawn.look is None else [f"{drawn.look!r}"]), *drawn.notes):
        screen.note(text)
    files = [file for run in runs for file in (sorted(run.iterdir()) if run.is_dir() else [run])]
    named = {file.name.removesuffix(".gz").rsplit(".", 1)[0]: file for file in files}
    words = ["evaluate", *runs] if pair is None else ["compare", *(f"{name}={named[name]}" for name in pair)]
    labels = ["-m", settings["measure"], "--judge", judge, "--gold", out]
    labels += [] if scale is None else ["--map", scale]
    step = screen.command(*words, *labels, columns={})
    task = "nothing is left to judge" if drawn.enough else "fill in true_grade where it is blank"
    screen.note(f"{out}: {task}, then: {step}")


@gold.command()
@screen.with_columns
def read(
    sheet: Annotated[
        Path,
        typer.Argument(
            metavar="SHEET",
            help="The sheet, filled in; or true grades by query and document (a table or TREC qrels).",
            callback=screen.piped,
        ),
    ],
    data: JudgedFile,
    out: Annotated[Path | None, screen.out_file("FILE", "Also write the estimate to this JSON file.")] = None,
    grades: Annotated[
        int | None, typer.Option(min=2, help="Grades of the scale, when the highest does not occur.")
    ] = None,
    width: Annotated[
        float, typer.Option(min=0.001, max=1.0, help="How wide the interval of pNoise may be.")
    ] = 0.1,
    level: screen.Level = 0.95,
    allow_unanswered: Annotated[
        bool, typer.Option("--allow-unanswered", help="Leave rows without an answer out.")
    ] = False,
    gold_columns: screen.GoldColumns = None,
    seed: screen.Seed = 0,
    html: screen.Html = None,
    force: screen.Force = False,
    as_json: screen.Json = False,
    *,
    columns: screen.Columns,
) -> None:
    """Turn the answers into the noise matrix P(given | true) with intervals; say if they were too few."""
    from cleanrank.data.files import check_outputs
    from cleanrank.noise.gold_sheet import read_sheet
    from cleanrank.report.estimate_tables import enough_words, estimate_tables, write_estimate_page

    check_outputs(out, inputs=[sheet, data], force=force, suffixes=(".json",))
    screen.check_page(html, [sheet, data], force)
    judged = _judged_rows(data, columns)
    headings = screen.parse_columns("--gold-columns", gold_columns)
    answers = read_sheet(sheet, judged, n_grades=grades, allow_unanswered=allow_unanswered, columns=headings)
    if answers.unanswered:
        screen.note(
            f"{len(answers.unanswered)} rows without an answer were left out; if they were the hard ones, "
            "the noise is underestimated"
        )
    estimate = answers.estimate(judged, n_grades=grades, level=level, seed=seed)
    if out is not None:
        estimate.save(out)
        screen.note(f"wrote {out}")
    record = {key: value for key, value in estimate.to_json().items() if key != "draws"}
    screen.show(record, as_json, *estimate_tables(estimate))
    if not as_json:
        typer.echo(enough_words(estimate, width))
    if html is not None:
        screen.note(f"wrote {write_estimate_page(html, estimate, name=data.name, width=width)}")
