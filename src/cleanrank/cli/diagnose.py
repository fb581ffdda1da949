"""``cleanrank diagnose`` and ``cleanrank plan``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cleanrank.cli import screen
from cleanrank.errors import invalid

app = typer.Typer()


@app.command()
@screen.with_columns
def diagnose(
    data: Annotated[
        list[Path],
        typer.Argument(metavar="DATA...", help=f"Judged data: {screen.DATA_FORMATS}.", callback=screen.piped),
    ],
    profile: Annotated[
        list[str] | None,
        typer.Option(help="Kind of label errors: uniform, geometric, power, adjacent; the first leads."),
    ] = None,
    rate: Annotated[float, typer.Option(min=0.0, max=1.0, help="The error rate the advice speaks of.")] = 0.1,
    new_weight: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="What a pair that only errors created counts in pNoise.")
    ] = 0.5,
    turning_point: Annotated[
        float, typer.Option(min=0.01, max=0.5, help="The pNoise at which the knee is placed.")
    ] = 0.4,
    html: screen.Html = None,
    force: screen.Force = False,
    as_json: screen.Json = False,
    *,
    columns: screen.Columns,
) -> None:
    """Report on one data set: balance, contradictions, how many label errors it bears, what to do."""
    from cleanrank.data.files import PAGES, check_outputs
    from cleanrank.data.tables import read_data
    from cleanrank.diagnosis.diagnose import diagnose as diagnose_data
    from cleanrank.diagnosis.fragility import DEFAULT_PROFILES

    check_outputs(html, inputs=data, force=force, suffixes=PAGES)
    diagnosis = diagnose_data(
        read_data(data[0] if len(data) == 1 else data, **columns),
        profiles=profile or DEFAULT_PROFILES,
        rate=rate,
        new_weight=new_weight,
        turning_point=turning_point,
        name=", ".join(p.name for p in data),
    )
    _show(diagnosis, html, as_json)


@app.command()
@screen.with_columns
def plan(
    context: typer.Context,
    budget: Annotated[float, typer.Option(help="Money there is, in the unit of --cost.")],
    cost: Annotated[float, typer.Option(help="Of one judgement.")] = 1.0,
    documents: Annotated[int | None, typer.Option(help="Labels per query.  [default: 50]")] = None,
    error: Annotated[
        str,
        typer.Option(
            help="Error rate per step of a scale, as in 0.1, or by grades, as in 2=0.1,3=0.15,5=0.25."
        ),
    ] = "0.1",
    proportions: Annotated[
        str | None, typer.Option(help="Of the true grades, as in 70:16:14.  [default: web search, 5 grades]")
    ] = None,
    prevalence: Annotated[
        float | None, typer.Option(help="Share of documents above grade 0, in place of --proportions.")
    ] = None,
    like: Annotated[
        Path | None,
        screen.in_option("DATA", "Take proportions and documents per query from this judged data."),
    ] = None,
    top_k: Annotated[int, typer.Option(min=0, help="Rank the best k by pairs; 0 leaves this out.")] = 10,
    pair_cost: Annotated[float | None, typer.Option(help="Of one comparison.  [default: --cost]")] = None,
    pair_error: Annotated[
        float | None, typer.Option(help="Error rate of a comparison.  [default: that of two grades]")
    ] = None,
    screen_cost: Annotated[
        float | None,
        typer.Option(
            help="Of one look by a screener who finds documents of a wanted grade.  [default: none]"
        ),
    ] = None,
    pool: Annotated[int, typer.Option(help="Documents a query has to choose from.")] = 1000,
    shared: Annotated[float, typer.Option(help="Share of repeated judgements that repeat the first.")] = 0.0,
    queries: Annotated[int | None, typer.Option(help="The most queries there are.")] = None,
    seed: screen.Seed = 0,
    html: screen.Html = None,
    force: screen.Force = False,
    as_json: screen.Json = False,
    *,
    columns: screen.Columns,
) -> None:
    """Compare ways to buy labels: grades, sampling, repeated judging, top-k pairs."""
    from cleanrank.data.files import PAGES, check_outputs
    from cleanrank.data.tables import read_data
    from cleanrank.planning.plan import plan_labels, shape_of

    check_outputs(html, inputs=[like], force=force, suffixes=PAGES)
    if like is None:
        screen.refuse(context, screen.TABLES, "goes with --like")
    if top_k == 0:
        screen.refuse(context, "pair_cost pair_error", "goes with --top-k above 0", top_k)
    shares = None if proportions is None else screen.parse_numbers("--proportions", proportions, ":")
    if like is not None:
        if proportions is not None or prevalence is not None:
            raise invalid("--like", "must not be given with --proportions or --prevalence", str(like))
        shares, length = shape_of(read_data(like, **columns))
        documents = documents or length
    plan = plan_labels(
        budget,
        cost=cost,
        documents=documents or 50,
        proportions=shares,
        prevalence=prevalence,
        error=_errors(error),
        top_k=top_k or None,
        pair_cost=pair_cost,
        pair_error=pair_error,
        screen_cost=screen_cost,
        pool=pool,
        shared=shared,
        queries=queries,
        seed=seed,
    )
    _show(plan, html, as_json)


def _show(report: Any, html: Path | None, as_json: bool) -> None:
    if html is not None:
        screen.note(f"wrote {report.to_html(html)}")
    typer.echo(report.to_json() if as_json else repr(report))


def _errors(text: str) -> float | dict[int, float]:
    """One error rate, or a rate for each number of grades."""
    if "=" not in text:
        return screen.parse_numbers("--error", text)[0]
    pairs = [screen.parse_numbers("--error", part, "=") for part in text.split(",")]
    if any(len(pair) != 2 for pair in pairs):
        raise invalid("--error", "must be a rate, or GRADES=RATE with commas between them", repr(text))
    return {int(grades): rate for grades, rate in pairs}
