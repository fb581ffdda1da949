"""``cleanrank demo``."""

from typing import Annotated

import typer

from cleanrank.cli import screen


def mount(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(demo)


def demo(
    queries: Annotated[int, typer.Option(min=10, help="Queries of the synthetic set.")] = 600,
    seed: Annotated[int, typer.Option(help="Same seed, same figures.")] = 0,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 means all.")] = -1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Run the main job on a synthetic data set of web-search shape: train, evaluate, compare."""
    from cleanrank.demo import LAMBDARANK, ONE_FEATURE, run_demo
    from cleanrank.report.tables import to_json

    with screen.progress("training lambdarank") as tick:
        done = run_demo(queries, seed=seed, n_jobs=jobs, progress=tick)
    if as_json:
        typer.echo(to_json(done.comparison))
        return
    for name, part in (("train", done.train), ("validation", done.validation), ("test", done.test)):
        screen.note(f"{name:<11}{part!r}")
    screen.note(
        f"{LAMBDARANK} keeps {done.trees} trees (best NDCG@10 on validation); "
        f"'{ONE_FEATURE}' ranks by column {done.feature} alone."
    )
    screen.show_comparison(done.comparison)
