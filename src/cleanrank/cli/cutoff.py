"""``cleanrank cutoff``."""

import math
from pathlib import Path
from typing import Annotated

import typer

from cleanrank.cli import screen

app = typer.Typer()


@app.command()
@screen.with_columns
def cutoff(
    context: typer.Context,
    data: Annotated[
        Path,
        typer.Argument(
            metavar="CLEAN",
            help=f"Queries with clean labels that took no part in training: {screen.DATA_FORMATS}.",
            callback=screen.piped,
        ),
    ],
    scores: Annotated[
        Path,
        typer.Argument(
            metavar="SCORES", help="One score per line in row order, or .npy.", callback=screen.piped
        ),
    ],
    risk: Annotated[
        str, typer.Option(help="What to keep low: false_negatives, false_positives or false_discovery.")
    ] = "false_negatives",
    alpha: Annotated[float, typer.Option(help="The limit of the mean risk over queries.")] = 0.1,
    delta: Annotated[float, typer.Option(help="The probability that the limit may be broken.")] = 0.05,
    cut: Annotated[
        str, typer.Option(help="score (one threshold) or rank (one number of documents a query).")
    ] = "score",
    method: Annotated[
        str, typer.Option(help="ltt (Learn then Test, any risk) or rcps (risks monotone in the cut).")
    ] = "ltt",
    bound: Annotated[
        str, typer.Option(help="What p-values come from: hoeffding_bentkus, hoeffding or bentkus.")
    ] = "hoeffding_bentkus",
    grid: Annotated[
        str | None,
        typer.Option(
            metavar="CUT,CUT,...",
            help="Cuts to try, fixed without a look at these data; needed for false_discovery at a score.",
        ),
    ] = None,
    relevant: Annotated[int, typer.Option(help="The lowest grade that counts as relevant.")] = 1,
    as_json: screen.Json = False,
    *,
    columns: screen.Columns,
) -> None:
    """Find where to cut rankings so that a risk stays below a limit, with a guarantee.

    The boldest cut whose mean risk over queries is at most --alpha with probability 1 - DELTA, whatever the
    ranker and however noisy the labels it was trained on; the queries given here must have clean labels.
    """
    from cleanrank.data.scores import read_judged, read_scores
    from cleanrank.metrics.risk_control import calibrate_cutoff

    judged = read_judged(data, columns)
    found = calibrate_cutoff(
        read_scores(scores, judged),
        judged,
        risk,
        alpha,
        delta,
        order="data",
        cut=cut,
        method=method,
        bound=bound,
        grid=None if grid is None else screen.parse_numbers("--grid", grid),
        relevant=relevant,
    )
    record = vars(found) | {"at": found.at if math.isfinite(found.at) else None, "statement": found.statement}
    facts = {
        "show scores of at least" if cut == "score" else "show documents up to rank": f"{found.at:.6g}",
        "mean risk of these queries": f"{found.empirical:.4f}",
        f"upper bound at {1 - delta:g}": f"{found.upper:.4f}",
        "calibration queries": f"{found.n_queries:,}",
    }
    screen.show(record, as_json, repr(judged), screen.facts(facts), found.statement)
