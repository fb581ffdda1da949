"""``evaluate`` and ``compare`` with ``--judge`` and ``--gold``: options that both take, and their table."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cleanrank.cli import screen
from cleanrank.errors import invalid
from cleanrank.report.table import Table

if TYPE_CHECKING:
    from cleanrank.judges.evaluation import JudgedEvaluation

Judge = Annotated[
    Path | None,
    typer.Option(
        help="Labels of a judge (a language model, say) for all pairs: qrels or a table.",
        callback=screen.piped,
    ),
]
Gold = Annotated[
    Path | None,
    typer.Option(
        help="With --judge: labels of some pairs by somebody who is right: qrels, table or sheet.",
        callback=screen.piped,
    ),
]
Target = Annotated[
    str, typer.Option(help="With --judge: what the interval is for, 'these queries' or 'queries like these'.")
]
Design = Annotated[
    str, typer.Option(help="With --judge: how gold labels were chosen: auto, queries, documents, stratified.")
]
Interval = Annotated[
    str, typer.Option(help="With --judge: t (Student) or bootstrap-t, which allows for skewed values.")
]
Unjudged = Annotated[
    str, typer.Option(help="With --judge: documents that nobody judged: zero (not relevant) or drop.")
]
Scale = Annotated[
    str | None,
    typer.Option("--map", help="With --judge: grades of its values where its scale differs, as in 0=0,1=2."),
]
DEFAULT = ("ndcg@10",)


def check_options(judge: Path | None, gold: Path | None, noise: str | None) -> None:
    """Raises where options are missing or exclude each other."""
    if (judge is None) != (gold is None):
        got = "--gold alone" if judge is None else "--judge alone"
        remedy = "The judge labels everything, the gold labels say how far to trust it."
        raise invalid("--judge and --gold", "must be given together", got, remedy=remedy)
    if judge is not None and noise is not None:
        raise invalid("--judge", "stands in for --noise", "both", remedy="Give one of them.")


def scale(text: str | None) -> dict[float, int] | None:
    """The mapping of a judge's values to grades, from text such as 0=0,1=2.

    >>> scale("0=0,1=2")
    {0.0: 0, 1.0: 2}
    """
    if text is None:
        return None
    try:
        pairs = [part.split("=") for part in text.split(",")]
        return {float(value): int(grade) for value, grade in pairs}
    except ValueError:
        rule = "must read VALUE=GRADE,VALUE=GRADE,..."
        raise invalid("--map", rule, repr(text), remedy="As in 0=0,1=2.") from None


def show_judged(
    estimate: Callable[..., Any],
    runs: Any,
    measures: Sequence[str] | None,
    settings: Mapping[str, Any],
    as_json: bool,
) -> Table:
    """Estimates one or several systems by each of some measures and shows them; returns their table."""
    rows: list[JudgedEvaluation] = []
    for measure in measures or DEFAULT:
        each = estimate(runs, measure=measure, **settings)
        rows += each.values() if isinstance(each, Mapping) else [each]
    table = judged_table(rows)
    screen.show([each.to_json() for each in rows], as_json, table)
    return table


def judged_table(rows: "Sequence[JudgedEvaluation]") -> Table:
    """Systems with their intervals, beside what gold labels or the judge say alone."""
    first = rows[0]
    unit = "queries" if first.design == "queries" else "documents"
    columns: list[tuple[str, ...]] = [
        ("system", "system"),
        ("measure", "measure"),
        ("mean", "mean", ".4f"),
        (f"{100 * first.level:g}% interval", "interval"),
        ("gold alone", "gold", ".4f"),
        ("interval", "gold_interval"),
        ("judge alone", "judge", ".4f"),
        (f"{unit} count as", "effective", ".0f"),
    ]
    if first.p_value is not None:
        columns.append(("p", "p", ".4f"))
    records: list[dict[str, Any]] = [
        {
            "system": each.system,
            "measure": each.measure,
            "mean": each.mean,
            "interval": f"[{each.low:.4f}, {each.high:.4f}]",
            "gold": each.gold_only.mean,
            "gold_interval": f"[{each.gold_only.low:.4f}, {each.gold_only.high:.4f}]",
            "judge": each.judge_only,
            "effective": each.effective_gold,
            "p": each.p_value,
        }
        for each in rows
    ]
    chosen = {
        "queries": f"{first.n_gold:,} of {first.n_queries:,} queries have gold labels",
        "documents": f"{first.n_gold:,} documents have gold labels, drawn with stated probabilities",
        "stratified": f"{first.n_gold:,} documents have gold labels, taken as drawn at random within the "
        "judge's grades",
    }[first.design]
    notes = [f"{chosen}; intervals are for {first.target}.", *(f"{note}." for note in first.notes)]
    return Table.of(records, columns, notes=notes)
