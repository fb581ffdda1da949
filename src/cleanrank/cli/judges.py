"""``cleanrank judge``."""

from pathlib import Path
from typing import Annotated

import typer

from cleanrank.cli import screen
from cleanrank.cli.with_judge import scale
from cleanrank.errors import invalid

app = typer.Typer()


@app.command()
def judge(
    gold: Annotated[
        Path,
        typer.Argument(
            metavar="GOLD", help=f"Labels that are right: {screen.LABELS}.", callback=screen.piped
        ),
    ],
    judges: Annotated[
        list[Path],
        typer.Argument(metavar="JUDGE...", help="Labels of a judge, likewise; several stand side by side."),
    ],
    runs: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Systems: a folder of runs (TREC, or tables qid, docid, score)."),
    ] = None,
    features: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Also test whether errors depend on these: a table with qid, docid and columns of numbers.",
            callback=screen.piped,
        ),
    ] = None,
    measure: Annotated[
        list[str] | None, typer.Option("--measure", "-m", help="With --runs: a measure such as ndcg@10.")
    ] = None,
    mapping: Annotated[
        list[str] | None,
        typer.Option(
            "--map",
            metavar="VALUE=GRADE,...",
            help="Grades that values of the judges stand for, as in 0=0,1=2; of one judge: NAME:0=0,1=2.",
        ),
    ] = None,
    level: screen.Level = 0.95,
    seed: screen.Seed = 0,
    html: screen.Html = None,
    force: screen.Force = False,
    as_json: screen.Json = False,
) -> None:
    """How good is a judge? Its labels beside gold labels, and what systems are worth under both."""
    from cleanrank.judges.report import MEASURES, JudgeReports, judge_report
    from cleanrank.report.judge_tables import (
        judges_table,
        matrix_table,
        systems_tables,
        verdict_table,
        write_judges_page,
    )

    screen.check_page(html, (gold, *judges), force)
    if measure and runs is None:
        raise invalid("--measure", "goes with --runs", ", ".join(measure))
    paths = _named(judges)
    outcome = judge_report(
        gold,
        paths,
        runs,
        features=features,
        measures=measure or MEASURES,
        mapping=_mappings(mapping or [], list(paths)),
        level=level,
        seed=seed,
    )
    assert isinstance(outcome, JudgeReports)
    reports = outcome.reports
    alone = reports[0] if len(reports) == 1 else None
    screen.show(
        outcome.to_json() if alone is None else alone.to_json(),
        as_json,
        judges_table(reports),
        *([] if alone is None else [matrix_table(alone)]),
        *systems_tables(reports),
        *(verdict_table(report) for report in reports),
        *(f"{report.name}: {report.class_conditional.words}" for report in reports),
        *(f"{report.name}: {limit}" for report in reports for limit in report.limits),
    )
    if html is not None:
        screen.note(f"wrote {write_judges_page(html, reports, name=gold.name)}")


def _named(judges: list[Path]) -> dict[str, Path]:
    paths: dict[str, Path] = {}
    for path in judges:
        name = path.name.removesuffix(".gz").rsplit(".", 1)[0]
        if name in paths:
            raise invalid(
                "judges", "must have names of their own", f"{name!r} twice", remedy="Rename a file."
            )
        paths[name] = screen.piped(path)
    return paths


def _mappings(texts: list[str], names: list[str]) -> dict[str, dict[float, int]] | None:
    """VALUE=GRADE pairs, for all judges or after the name of one."""
    mappings: dict[str, dict[float, int]] = {}
    for text in texts:
        name, colon, pairs = text.rpartition(":")
        if colon and name not in names:
            raise invalid("--map", f"must name a judge ({', '.join(names)})", repr(name))
        mine = [name] if colon else [each for each in names if each not in mappings]
        mappings |= dict.fromkeys(mine, scale(pairs) or {})
    return mappings or None
