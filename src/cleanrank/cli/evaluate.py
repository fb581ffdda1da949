"""``cleanrank evaluate``, ``compare`` and ``explain-ndcg``."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cleanrank.cli import screen, with_judge, with_noise
from cleanrank.errors import invalid
from cleanrank.report import table as tables
from cleanrank.report.table import Table
from cleanrank.validation import one_of

if TYPE_CHECKING:
    from cleanrank.data.scores import Judged
    from cleanrank.metrics.explain_ndcg import Explanation

JudgedData = Annotated[
    Path,
    typer.Argument(
        metavar="DATA", help=f"Judged data or TREC qrels: {screen.DATA_FORMATS}.", callback=screen.piped
    ),
]
Measures = Annotated[
    list[str] | None,
    typer.Option("--measure", "-m", help="A measure such as ndcg@10, ndcg@10:letor, map:skip, auc:micro."),
]
Topics = Annotated[
    str,
    typer.Option(
        help="Of TREC runs: judged (all judged topics, 0 where one is missing) or shared (those of all runs)."
    ),
]
FORMATS = ("table", "markdown", "latex", "json")
DEFAULT = ("ndcg@10", "map", "mrr")
OWN_GAINS = "Gains are those of the data, in place of what is made of grades (dcg and ndcg)."
CORRECTABLE = {"lightgbm": ("dcg@10", "auc:micro"), "trec": ("dcg@10", "precision@10")}
DOCUMENTS = 12
TESTS = "test alternative permutations correction"

app = typer.Typer()


@app.command()
@screen.with_columns
def evaluate(
    context: typer.Context,
    data: JudgedData,
    scores: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="SCORES",
            help="One score per line in row order, .npy, or a TREC run. With --judge, runs alone are given.",
            callback=screen.piped,
        ),
    ] = None,
    measure: Measures = None,
    noise: with_noise.Noise = None,
    judge: with_judge.Judge = None,
    gold: with_judge.Gold = None,
    target: with_judge.Target = "these queries",
    design: with_judge.Design = "auto",
    interval: with_judge.Interval = "t",
    unjudged: with_judge.Unjudged = "zero",
    mapping: with_judge.Scale = None,
    allow_dependent: with_noise.AllowDependent = False,
    per_query: Annotated[
        Path | None,
        typer.Option(help="Also write one row per query to this .csv, .tsv, .xlsx or .parquet file."),
    ] = None,
    topics: Topics = "judged",
    level: screen.Level = 0.95,
    seed: screen.Seed = 0,
    force: screen.Force = False,
    as_json: screen.Json = False,
    *,
    columns: screen.Columns,
) -> None:
    """Measure a ranking, with intervals and the convention of every number.

    With --judge and --gold (evaluate RUN... --judge LABELS --gold LABELS): what systems are worth under gold
    labels, from a judge's labels on everything and gold labels on some queries or documents.
    """
    from cleanrank.data.files import FRAMES, check_outputs
    from cleanrank.data.spreadsheet import write_frame
    from cleanrank.metrics.evaluation import evaluate as evaluate_scores
    from cleanrank.metrics.measure import as_measures
    from cleanrank.metrics.noisy_labels import corrected

    with_judge.check_options(judge, gold, noise)
    if judge is not None:
        from cleanrank.judges.evaluation import evaluate_with_judge

        screen.refuse(context, f"allow_dependent per_query topics {screen.TABLES}", "goes without --judge")
        runs = [data, *(scores or ())] if scores else data
        settings: dict[str, Any] = {"judge": judge, "gold": gold, "target": target, "design": design}
        settings |= {"interval": interval, "unjudged": unjudged, "mapping": with_judge.scale(mapping)}
        settings |= {"level": level, "seed": seed}
        with_judge.show_judged(evaluate_with_judge, runs, measure, settings, as_json)
        return
    if scores is None or len(scores) != 1:
        count = 0 if scores is None else len(scores)
        remedy = "Several systems: cleanrank compare. Without gold labels on everything: --judge and --gold."
        raise invalid("evaluate", "takes DATA and one file of SCORES", f"{count} files", remedy=remedy)
    _check_judged(context, noise)
    check_outputs(per_query, inputs=[data, *scores, noise], force=force, suffixes=FRAMES)
    read = _read(data, scores, columns, topics)
    _check_topics(context, read)
    judged, (values,) = read.data, read.scores
    if noise is not None:
        known = with_noise.load_noise(noise, judged)
        measures = as_measures(measure or CORRECTABLE[read.convention], read.convention)
        correction = corrected(
            values, judged, measures, known, level, seed, order="data", allow_dependent=allow_dependent
        )
        if per_query is not None:
            write_frame(correction.to_frame(judged.query_ids).reset_index(), per_query)
        rows = correction.rows()
        text = (
            f"Corrected for {with_noise.noise_words(known)} Intervals: bootstrap over queries, seed {seed}."
        )
        if correction.n_singular:
            text += (
                f" {correction.n_singular:,} of {correction.n_draws:,} drawn matrices cannot be inverted; "
                "the intervals count them as beyond both ends."
            )
        text += f" {correction.assumption}"
        record: dict[str, Any] = {"noise": known.matrix, "draws": correction.n_draws}
        record["assumption"] = correction.assumption
        record |= {"level": level, "seed": seed, "measures": rows}
        screen.show(record, as_json, repr(judged), with_noise.corrected_table(rows, level, text))
        return
    measures = as_measures(measure or DEFAULT, read.convention)
    evaluation = evaluate_scores(values, judged, measures, order="data")
    if per_query is not None:
        write_frame(evaluation.to_frame().reset_index(), per_query)
    intervals, means = evaluation.intervals(level, seed), evaluation.means
    record = {
        "queries": judged.n_queries,
        "documents": judged.n_docs,
        "level": level,
        "seed": seed,
        "measures": [
            {
                "measure": str(m),
                "convention": m.describe(),
                "mean": means[str(m)],
                "interval": intervals[str(m)],
            }
            for m in evaluation.measures
        ],
    }
    screen.show(
        record,
        as_json,
        repr(judged),
        tables.evaluation_table(evaluation, level=level, seed=seed),
        *([OWN_GAINS] if judged.gains is not None else []),
        f"Intervals: bootstrap over queries, 10,000 resamples, seed {seed}.",
    )


@app.command()
@screen.with_columns
def compare(
    context: typer.Context,
    data: JudgedData,
    systems: Annotated[
        list[str],
        typer.Argument(metavar="NAME=SCORES...", help="Two or more systems; the first is the baseline."),
    ],
    measure: Measures = None,
    baseline: Annotated[str | None, typer.Option(help="The system that others are compared with.")] = None,
    test: Annotated[str, typer.Option(help="fisher (randomisation) or t (paired).")] = "fisher",
    alternative: Annotated[str, typer.Option(help="two-sided, greater or less.")] = "two-sided",
    permutations: Annotated[
        int, typer.Option(min=1, help="Permutations of the randomisation test.")
    ] = 100_000,
    correction: Annotated[str, typer.Option(help="holm or none.")] = "holm",
    noise: with_noise.Noise = None,
    judge: with_judge.Judge = None,
    gold: with_judge.Gold = None,
    target: with_judge.Target = "these queries",
    design: with_judge.Design = "auto",
    interval: with_judge.Interval = "t",
    unjudged: with_judge.Unjudged = "zero",
    mapping: with_judge.Scale = None,
    allow_dependent: with_noise.AllowDependent = False,
    topics: Topics = "judged",
    form: Annotated[str, typer.Option("--format", help="table, markdown, latex or json.")] = "table",
    as_json: screen.Json = False,
    level: screen.Level = 0.95,
    seed: screen.Seed = 0,
    html: screen.Html = None,
    force: screen.Force = False,
    *,
    columns: screen.Columns,
) -> None:
    """Compare systems on the same queries: differences, intervals, significance.

    With --noise: measures corrected for noisy labels, and how sure the order of the systems is. With --judge
    and --gold (compare NAME=RUN... --judge LABELS --gold LABELS): differences under gold labels, from a
    judge's labels on everything and gold labels on some.
    """
    from cleanrank.metrics.comparison import compare as compare_systems
    from cleanrank.metrics.measure import as_measures
    from cleanrank.metrics.noisy_labels import check_assumption
    from cleanrank.metrics.noisy_order import compare_corrected

    form = one_of("format", "json" if as_json else form, FORMATS)
    with_judge.check_options(judge, gold, noise)
    if judge is not None:
        from cleanrank.judges.evaluation import compare_with_judge

        if form not in ("table", "json"):
            raise invalid("--format", "must be table or json with --judge", form)
        screen.refuse(context, f"{TESTS} allow_dependent topics {screen.TABLES}", "goes without --judge")
        runs = _named([str(data), *systems])
        screen.check_page(html, (judge, *runs.values()), force)
        settings: dict[str, Any] = {"judge": judge, "gold": gold, "target": target, "design": design}
        settings |= {"interval": interval, "unjudged": unjudged, "mapping": with_judge.scale(mapping)}
        settings |= {"level": level, "seed": seed, "baseline": baseline}
        table = with_judge.show_judged(compare_with_judge, runs, measure, settings, form == "json")
        _write_page(html, judge, table)
        return
    _check_judged(context, noise)
    screen.check_page(html, (data, *_named(systems).values()), force)
    paths = _named(systems)
    read = _read(data, list(paths.values()), columns, topics)
    _check_topics(context, read)
    judged, scores = read.data, dict(zip(paths, read.scores, strict=True))
    if noise is not None:
        if form not in ("table", "json"):
            raise invalid("--format", "must be table or json with --noise", form)
        screen.refuse(context, TESTS, "goes without --noise, which has probabilities of the order")
        known = with_noise.load_noise(noise, judged)
        first = next(iter(scores)) if baseline is None else baseline
        measures = as_measures(measure or CORRECTABLE[read.convention], read.convention)
        rows = compare_corrected(
            scores,
            judged,
            measures,
            noise=known,
            baseline=first,
            level=level,
            seed=seed,
            order="data",
            allow_dependent=allow_dependent,
        )
        assumption = check_assumption(known, judged, list(scores.values()), allow_dependent)
        record = {"noise": known.matrix, "assumption": assumption, "level": level, "seed": seed}
        record |= {"baseline": first, "rows": rows}
        text = (
            f"Corrected for {with_noise.noise_words(known)} The order is that of the corrected figures, "
            f"{first} against each. "
            f"Intervals and probabilities: bootstrap over queries, seed {seed}. {assumption}"
        )
        screen.show(record, form == "json", repr(judged), with_noise.corrected_table(rows, level, text))
        _write_page(html, data, with_noise.corrected_table(rows, level, text))
        return
    if test != "fisher":
        screen.refuse(context, "permutations", "goes with --test fisher", test)
    comparison = compare_systems(
        scores,
        judged,
        as_measures(measure or DEFAULT[:1], read.convention),
        order="data",
        baseline=baseline,
        test=test,
        alternative=alternative,
        permutations=permutations,
        correction=None if correction == "none" else correction,
        level=level,
        seed=seed,
    )
    if form == "table":
        screen.note(repr(judged))
        screen.show_table(tables.comparison_table(comparison, long=True))
        if judged.gains is not None:
            screen.note(OWN_GAINS)
        screen.note("Intervals: bootstrap over queries.")
    else:
        table = tables.comparison_table(comparison)
        typer.echo(
            {"markdown": table.markdown(), "latex": table.latex(), "json": tables.to_json(comparison)}[form]
        )
    _write_page(html, data, tables.comparison_table(comparison, long=True))


def _check_judged(context: typer.Context, noise: str | None) -> None:
    """Refuses what only goes with --judge or --noise."""
    screen.refuse(context, "target design interval unjudged mapping", "goes with --judge and --gold")
    if noise is None:
        screen.refuse(context, "allow_dependent", "goes with --noise")


def _check_topics(context: typer.Context, read: "Judged") -> None:
    if read.convention != "trec":
        screen.refuse(context, "topics", "goes with TREC runs", "scores of rows")


def _write_page(html: Path | None, data: Path, table: Table) -> None:
    """The page of a comparison, where one is wanted."""
    from cleanrank.report.sections import Section, write_sections

    if html is not None:
        words = "Intervals: bootstrap over queries."
        page = write_sections(html, f"Systems compared: {data.name}", [Section("Systems", [table, words])])
        screen.note(f"wrote {page}")


@app.command("explain-ndcg")
@screen.with_columns
def explain_ndcg(
    context: typer.Context,
    data: Annotated[
        Path | None, typer.Argument(metavar="[DATA]", help="Judged data.", callback=screen.piped)
    ] = None,
    scores: Annotated[
        Path | None, typer.Argument(metavar="[SCORES]", help="Scores of its rows.", callback=screen.piped)
    ] = None,
    query: Annotated[str | None, typer.Option("--query", "-q", help="The query to look at.")] = None,
    grades: Annotated[
        str | None, typer.Option(help="Instead of files: grades in ranking order, as in 2,0,1,0.")
    ] = None,
    cutoff: Annotated[int, typer.Option("--cutoff", "-k", min=1, help="The k of NDCG@k.")] = 10,
    as_json: screen.Json = False,
    *,
    columns: screen.Columns,
) -> None:
    """Show for one ranking what each convention of NDCG gives, and why two tools differ."""
    from cleanrank.metrics.explain_ndcg import explain_ndcg as explain_ranking
    from cleanrank.metrics.explain_ndcg import explain_query

    screen.refuse(context, "gains distribution", "has no part here: tools differ in what they make of grades")
    if grades is not None:
        screen.refuse(
            context, f"query {screen.TABLES}", "goes with DATA and SCORES, not with --grades", grades
        )
        y = _typed_grades(grades)
        explanation = explain_ranking(y, range(len(y), 0, -1), cutoff)
    elif data is not None and scores is not None:
        read = _read(data, [scores], columns)
        explanation = explain_query(read.data, read.scores[0], query, cutoff, order="data")
    else:
        raise invalid(
            "a ranking",
            "must be given as DATA SCORES --query ID or as --grades",
            "neither",
            remedy="Try: cleanrank explain-ndcg --grades 2,0,1,0",
        )
    screen.show(explanation.to_dict(), as_json, *_explanation_tables(explanation))
    if not as_json:
        typer.echo(f"\n{_differences(explanation)}")


def _explanation_tables(explanation: "Explanation") -> tuple[Table, Table]:
    """The ranked documents, and what each convention and tool makes of them."""
    k, names = explanation.k, list(explanation.values)
    documents = explanation.documents[: max(k, DOCUMENTS)]
    left_out = len(explanation.documents) - len(documents)
    ranking = [
        (
            f"{d.rank}" + ("  (tied)" if d.tied else ""),
            f"{d.grade}",
            f"{d.score:.4g}",
            *(f"{d.gains[name]:g} x {d.discounts[name]:.3f}" if d.rank <= k else "" for name in names),
        )
        for d in documents
    ]
    parts = ("gain", "discount", "empty", "short", "ties")
    readings = [
        {
            "name": name,
            "kind": "convention" if name in explanation.values else "tool",
            "value": value,
            **explanation.readings[name],
        }
        for name, value in {**explanation.values, **explanation.tools}.items()
    ]
    columns = [("reading", "name"), ("kind", "kind"), (f"ndcg@{k}", "value", ".4f", "", "left out")]
    return (
        Table(
            ("rank", "grade", "score", *(f"{name}: gain x discount" for name in names)),
            ranking,
            headed=0,
            caption=f"The ranking, cut at {k}",
            notes=[f"... and {left_out:,} documents more"] if left_out else [],
        ),
        Table.of(readings, [*columns, *((part, part) for part in parts)], caption="What each makes of it"),
    )


def _differences(explanation: "Explanation") -> str:
    differences = explanation.differences()
    if not differences:
        return "On this ranking all of them agree."
    lines = ["Why they differ from lightgbm here, one part at a time:"]
    for (before, after, effect), names in differences.items():
        size = "no value" if effect != effect else f"{effect:+.4f}"
        lines += [f"  {size:>8}  {after} (lightgbm: {before}):", f"            {', '.join(names)}"]
    return "\n".join(lines)


def _typed_grades(text: str) -> list[int]:
    try:
        return [int(grade) for grade in text.split(",")]
    except ValueError:
        raise invalid("--grades", "must be whole numbers with commas between them", repr(text)) from None


def _named(systems: Sequence[str]) -> dict[str, Path]:
    """NAME=SCORES, or SCORES alone, whose stem is then the name."""
    paths: dict[str, Path] = {}
    for text in systems:
        name, equals, file = text.partition("=")
        if equals and not (name and file):
            raise invalid("a system", "must read NAME=SCORES", repr(text), remedy="As in new=scores.txt.")
        name, path = (name, screen.piped(file)) if equals else (Path(text).stem, screen.piped(text))
        if name in paths:
            raise invalid("systems", "must have names of their own", f"{name!r} twice")
        paths[name] = path
    if len(paths) < 2:
        raise invalid("systems", "must name at least two systems", len(paths))
    return paths


def _read(data: Path, scores: list[Path], columns: screen.Columns, topics: str = "judged") -> "Judged":
    from cleanrank.data.scores import read_judged_and_scores

    judged = read_judged_and_scores(data, scores, columns, topics)
    for remark in judged.remarks:
        screen.note(remark)
    return judged
