"""``cleanrank demo``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cleanrank.cli import screen


def mount(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(demo)


def demo(
    queries: Annotated[int, typer.Option(min=20, help="Queries of the synthetic set.")] = 400,
    seed: Annotated[int, typer.Option(help="Same seed, same figures.")] = 0,
    html: Annotated[Path, typer.Option(help="Where the report goes.")] = Path("cleanrank-demo.html"),
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 means all.")] = -1,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Show the whole job on made-up data whose truth is known.

    A tenth of the labels of a data set of web-search shape is changed at random. The demo diagnoses the
    data, finds the wrong labels (with precision and recall, since they are known), cleans them, trains
    LightGBM on noisy, cleaned and clean labels, with SOUR and with peers, compares all on clean test labels
    and writes a report. It takes one to three minutes on two cores.
    """
    from cleanrank.demo import STEPS, run_demo

    with screen.steps(STEPS) as tick:
        done = run_demo(queries, seed=seed, n_jobs=jobs, progress=tick)
        done.to_html(html)
    found = done.to_dict()
    if as_json:
        screen.print_json(found)
        return
    screen.note(f"train      {done.noisy.data!r}")
    screen.note(
        f"{found['changed']:,} of {found['documents']['train']:,} training labels were changed; that makes "
        f"{found['pnoise']:.1%} of the pairs wrong."
    )
    gold = found["gold"]
    screen.note(
        f"{gold['rows']} rows judged again put the rate at {gold['rate']:.1%} "
        f"[{gold['low']:.1%}, {gold['high']:.1%}].\n"
    )
    _show_detectors(found["detectors"])
    screen.note("")
    screen.show_comparison(done.comparison)
    if found["best"]:
        screen.note(f"Won back with {found['best']}: {found['recovered']:.0%} of the NDCG@10 lost to noise.")
    screen.note(f"Report: {html}")


def _show_detectors(detectors: list[dict[str, Any]]) -> None:
    head = ("detector", "issues", "precision", "recall", "average precision", "within grades")
    rows = [
        (
            str(d["name"]),
            f"{d['issues']:,}",
            *(
                "-" if d[k] is None else f"{d[k]:.3f}"
                for k in ("precision", "recall", "average_precision", "within_grades")
            ),
        )
        for d in detectors
    ]
    screen.table(head, rows)
