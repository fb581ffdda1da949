"""``cleanrank diagnose`` and ``cleanrank plan``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cleanrank.cli import screen
from cleanrank.errors import invalid

Html = Annotated[Path | None, typer.Option("--html", help="Also write a page of one file.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def mount(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(diagnose)
    app.command()(plan)


def diagnose(
    data: Annotated[
        list[Path], typer.Argument(metavar="DATA...", help="Judged data: LETOR/SVMlight, CSV or Parquet.")
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
    html: Html = None,
    as_json: Json = False,
) -> None:
    """Report on one data set: balance, contradictions, how many label errors it bears, what to do."""
    from cleanrank.data.frames import read_data
    from cleanrank.diagnosis.diagnose import diagnose as look
    from cleanrank.diagnosis.fragility import DEFAULT_PROFILES

    found = look(
        read_data(data[0] if len(data) == 1 else data),
        profiles=profile or DEFAULT_PROFILES,
        rate=rate,
        new_weight=new_weight,
        turning_point=turning_point,
        name=", ".join(p.name for p in data),
    )
    _render(found, html, as_json)


def plan(
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
        Path | None, typer.Option(help="Take proportions and documents per query from this judged data.")
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
    seed: Annotated[int, typer.Option(help="Of the simulated top-k judging.")] = 0,
    html: Html = None,
    as_json: Json = False,
) -> None:
    """Compare ways to buy labels: grades, sampling, repeated judging, top-k pairs."""
    from cleanrank.planning.plan import plan_labels as compare

    shares: list[float] | None = None if proportions is None else _numbers("--proportions", proportions, ":")
    if like is not None:
        if proportions is not None or prevalence is not None:
            raise invalid("--like", "must not be given with --proportions or --prevalence", str(like))
        shares, length = _shape(like)
        documents = documents or length
    found = compare(
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
    _render(found, html, as_json)


def _render(found: Any, html: Path | None, as_json: bool) -> None:
    if html is not None:
        screen.note(f"wrote {found.to_html(html)}")
    typer.echo(found.to_json() if as_json else repr(found))


def _shape(path: Path) -> tuple[list[float], int]:
    """Proportions of the grades and the median number of documents per query."""
    from cleanrank.data.frames import read_data
    from cleanrank.diagnosis.profile import grade_counts, lengths_of

    data = read_data(path)
    return [float(n) for n in grade_counts(data).sum(axis=0)], max(
        2, int(lengths_of(data.lengths).quantiles["50"])
    )


def _errors(text: str) -> float | dict[int, float]:
    if "=" not in text:
        return _numbers("--error", text, ",")[0]
    found = {}
    for part in text.split(","):
        grades, _, rate = part.partition("=")
        found[int(_numbers("--error", grades, ",")[0])] = _numbers("--error", rate, ",")[0]
    return found


def _numbers(name: str, text: str, between: str) -> list[float]:
    try:
        return [float(part) for part in text.split(between)]
    except ValueError:
        raise invalid(name, f"must be numbers joined by {between!r}", repr(text)) from None
