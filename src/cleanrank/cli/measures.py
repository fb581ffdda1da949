"""``cleanrank evaluate``, ``compare`` and ``explain-ndcg``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from cleanrank.cli import noisy, screen
from cleanrank.errors import invalid
from cleanrank.types import FloatArray, RankingData
from cleanrank.validation import one_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cleanrank.metrics.explain_ndcg import Explanation
    from cleanrank.metrics.measure import Measure

DataArgument = Annotated[
    Path, typer.Argument(metavar="DATA", help="Judged data: LETOR/SVMlight, CSV, Parquet, or TREC qrels.")
]
Measures = Annotated[
    list[str] | None,
    typer.Option("--measure", "-m", help="A measure such as ndcg@10, ndcg@10:letor, map:skip, auc:micro."),
]
Level = Annotated[float, typer.Option(min=0.5, max=0.999, help="Level of the intervals.")]
Seed = Annotated[int, typer.Option(help="Seed of bootstrap and test.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Label = Annotated[str | None, typer.Option(help="Column of grades in CSV or Parquet; else label.")]
Qid = Annotated[str | None, typer.Option(help="Column of query ids in CSV or Parquet; else qid.")]
Noise = Annotated[
    str | None,
    typer.Option(help="Labels are noisy: a matrix (JSON or CSV) or family:rate, as in uniform:0.1."),
]
FORMS = ("table", "markdown", "latex", "json")
SHOWN = 12


def mount(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(evaluate)
    app.command()(compare)
    app.command("explain-ndcg")(explain_ndcg)


def evaluate(
    data: DataArgument,
    scores: Annotated[
        Path,
        typer.Argument(metavar="SCORES", help="One score per line in row order, .npy, or a TREC run."),
    ],
    measure: Measures = None,
    noise: Noise = None,
    per_query: Annotated[
        Path | None, typer.Option(help="Also write one row per query to this .csv or .parquet file.")
    ] = None,
    label: Label = None,
    qid: Qid = None,
    level: Level = 0.95,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Measure a ranking, with intervals and the convention of every number."""
    from cleanrank.metrics.evaluation import evaluate as measure_all

    if per_query is not None and per_query.suffix not in (".csv", ".parquet"):
        raise invalid("--per-query", "must name a .csv or .parquet file", f"{str(per_query)!r}")
    judged, (found_scores,) = _read(data, [scores], label, qid)
    if noise is not None:
        seen = noisy.correct(judged, {"": found_scores}, measure, noise, level, seed)
        if per_query is not None:
            _write_per_query(seen.measures, seen.by_query[""], judged, per_query)
        noisy.show_one(seen, judged, as_json)
        return
    found = measure_all(found_scores, judged, measure or ["ndcg@10", "map", "mrr"])
    if per_query is not None:
        _write_per_query(found.measures, found.by_query, judged, per_query)
    if as_json:
        intervals = found.intervals(level, seed)
        screen.print_json(
            {
                "queries": judged.n_queries,
                "documents": judged.n_docs,
                "level": level,
                "seed": seed,
                "measures": [
                    {
                        "measure": str(m),
                        "convention": m.describe(),
                        "mean": found.means[str(m)],
                        "interval": list(intervals[str(m)]),
                    }
                    for m in found.measures
                ],
            }
        )
        return
    screen.note(repr(judged))
    screen.show_evaluation(found, level, seed)


def compare(
    data: DataArgument,
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
    noise: Noise = None,
    label: Label = None,
    qid: Qid = None,
    form: Annotated[str, typer.Option("--format", help="table, markdown, latex or json.")] = "table",
    as_json: Json = False,
    level: Level = 0.95,
    seed: Seed = 0,
) -> None:
    """Compare systems on the same queries: differences, intervals, significance.

    With --noise: measures corrected for noisy labels, and how sure the order of the systems is.
    """
    from cleanrank.metrics.comparison import compare as compare_all
    from cleanrank.report import table as tables

    form = one_of("format", "json" if as_json else form, FORMS)
    named = [_named(text) for text in systems]
    names = [name for name, _ in named]
    if len(names) < 2:
        raise invalid("systems", "must name at least two systems", len(names))
    if len(set(names)) < len(names):
        raise invalid("systems", "must have names of their own", ", ".join(names))
    judged, scores = _read(data, [path for _, path in named], label, qid)
    by_name = dict(zip(names, scores, strict=True))
    if noise is not None:
        if form not in ("table", "json"):
            raise invalid("--format", "must be table or json with --noise", form)
        noisy.show_several(
            noisy.correct(judged, by_name, measure, noise, level, seed, baseline), judged, form == "json"
        )
        return
    found = compare_all(
        by_name,
        judged,
        measure or ["ndcg@10"],
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
        screen.show_comparison(found)
    else:
        table = tables.comparison_table(found)
        typer.echo(
            {"markdown": table.markdown(), "latex": table.latex(), "json": tables.to_json(found)}[form]
        )


def explain_ndcg(
    data: Annotated[Path | None, typer.Argument(metavar="[DATA]", help="Judged data.")] = None,
    scores: Annotated[Path | None, typer.Argument(metavar="[SCORES]", help="Scores of its rows.")] = None,
    query: Annotated[str | None, typer.Option("--query", "-q", help="The query to look at.")] = None,
    grades: Annotated[
        str | None, typer.Option(help="Instead of files: grades in ranking order, as in 2,0,1,0.")
    ] = None,
    cutoff: Annotated[int, typer.Option("--cutoff", "-k", min=1, help="The k of NDCG@k.")] = 10,
    label: Label = None,
    qid: Qid = None,
    as_json: Json = False,
) -> None:
    """Show for one ranking what each convention of NDCG gives, and why two tools differ."""
    from cleanrank.metrics.explain_ndcg import explain_ndcg as explain

    ids = None
    if grades is not None:
        y, given = _typed_grades(grades)
    elif data is not None and scores is not None:
        y, given, ids = _one_query(*_read(data, [scores], label, qid), query)
    else:
        raise invalid(
            "a ranking", "must be given as DATA SCORES --query ID or as --grades", "neither",
            remedy="Try: cleanrank explain-ndcg --grades 2,0,1,0",
        )  # fmt: skip
    found = explain(y, given, cutoff, ids)
    if as_json:
        screen.print_json(found.to_dict())
        return
    _show_explanation(found)


def _show_explanation(found: "Explanation") -> None:
    from cleanrank.metrics.explain_ndcg import WORDS

    names = list(found.values)
    shown = found.documents[: max(found.k, SHOWN)]
    screen.table(
        ("rank", "grade", "score", *(f"{name}: gain x discount" for name in names)),
        [
            (
                f"{d.rank}" + ("  (tied)" if d.tied else ""),
                f"{d.grade}",
                f"{d.score:.4g}",
                *(
                    f"{d.gains[name]:g} x {d.discounts[name]:.3f}" if d.rank <= found.k else ""
                    for name in names
                ),
            )
            for d in shown
        ],
        left=0,
        title=f"The ranking, cut at {found.k}",
    )
    if len(found.documents) > len(shown):
        screen.note(f"... and {len(found.documents) - len(shown):,} documents more")
    screen.out().print()
    rows = []
    for name, value in {**found.values, **found.tools}.items():
        kind = "convention" if name in found.values else "tool"
        reading = found.readings[name]
        parts = (reading[part] for part in ("gain", "discount", "empty", "short", "ties"))
        rows.append((name, kind, "left out" if value != value else f"{value:.4f}", *parts))
    head = ("reading", "kind", f"ndcg@{found.k}", "gain", "discount", "empty", "short", "ties")
    screen.table(head, rows, left=2, title="What each makes of it")
    screen.out().print()
    reasons: dict[tuple[str, str, float], list[str]] = {}
    for name, steps in found.steps.items():
        for step in steps:
            if step.effect != 0:
                words = WORDS[step.part, step.before], WORDS[step.part, step.after]
                reasons.setdefault((*words, round(step.effect, 6)), []).append(name)
    if not reasons:
        screen.out().print("On this ranking all of them agree.")
        return
    screen.out().print("Why they differ from lightgbm here, one part at a time:", style="bold")
    for (before, after, effect), names in reasons.items():
        size = "no value" if effect != effect else f"{effect:+.4f}"
        screen.out().print(f"  {size:>8}  {after} (lightgbm: {before}):", markup=False)
        screen.out().print(f"            {', '.join(names)}", markup=False)


def _typed_grades(text: str) -> tuple[FloatArray, FloatArray]:
    try:
        y = np.array([int(grade) for grade in text.replace(" ", "").split(",")])
    except ValueError:
        raise invalid("--grades", "must be whole numbers with commas between them", repr(text)) from None
    return y, np.arange(len(y), 0, -1, dtype=np.float64)


def _one_query(
    judged: RankingData, scores: list[FloatArray], query: str | None
) -> tuple[Any, FloatArray, Any]:
    """Grades, scores and document ids (if any) of one query."""
    ids = [str(i) for i in judged.query_ids]
    if query is None:
        if len(ids) > 1:
            raise invalid(
                "--query",
                f"must name one of the {len(ids):,} queries",
                "none",
                remedy=f"Try --query {ids[0]}.",
            )
        query = ids[0]
    place = ids.index(one_of("query", query, ids))
    rows = slice(judged.indptr[place], judged.indptr[place + 1])
    return judged.y[rows], scores[0][rows], None if judged.doc_ids is None else judged.doc_ids[rows]


def _named(text: str) -> tuple[str, Path]:
    name, equals, path = text.partition("=")
    if equals and not (name and path):
        raise invalid("a system", "must read NAME=SCORES", repr(text), remedy="As in new=scores.txt.")
    return (name, Path(path)) if equals else (Path(text).stem, Path(text))


def _read(
    data: Path, scores: list[Path], label: str | None, qid: str | None
) -> tuple[RankingData, list[FloatArray]]:
    from cleanrank.data.scores import read_judged_and_scores

    columns = {role: name for role, name in (("label", label), ("qid", qid)) if name is not None}
    judged, found, remarks = read_judged_and_scores(data, scores, columns)
    for remark in remarks:
        screen.note(remark)
    return judged, found


def _write_per_query(
    measures: "Sequence[Measure]", by_query: FloatArray, judged: RankingData, path: Path
) -> None:
    import pandas as pd

    from cleanrank.data.files import written_whole

    columns = {"query_id": judged.query_ids, **dict(zip(map(str, measures), by_query, strict=True))}
    frame = pd.DataFrame(columns)
    with written_whole(path) as target:
        if path.suffix == ".parquet":
            frame.to_parquet(target, index=False)
        else:
            frame.to_csv(target, index=False)
