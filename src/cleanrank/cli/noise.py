"""``cleanrank corrupt`` and ``cleanrank clicks``."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from cleanrank.cli import screen
from cleanrank.clicks.models import CLICK_MODELS
from cleanrank.errors import invalid
from cleanrank.noise.profiles import PROFILES

Source = Annotated[Path, typer.Argument(metavar="FILE", help="Judged data: LETOR/SVMlight, Parquet or CSV.")]
Seed = Annotated[int, typer.Option(min=0, help="Same seed, same draws.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")]
Json = Annotated[bool, typer.Option("--json", help="Print the record as JSON.")]
Options = Annotated[
    list[str] | None,
    typer.Option(
        "--option", metavar="NAME=VALUE", help="Further setting of the family, such as rho=.3; repeatable."
    ),
]


def mount(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(corrupt)
    app.command()(clicks)


def corrupt(
    file: Source,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="OUT", help="Noisy data, in the format of the suffix.")
    ],
    profile: Annotated[str, typer.Option(help=f"Family of noise: {', '.join(PROFILES)}.")] = "uniform",
    rate: Annotated[float | None, typer.Option(help="Probability that a grade changes.")] = None,
    matrix: Annotated[
        Path | None, typer.Option(help="Noise matrix in a JSON or CSV file, instead of a family.")
    ] = None,
    seed: Seed = 0,
    spread: Annotated[
        float, typer.Option(help="Let the rate vary over queries: variance / (rate (1 - rate)).")
    ] = 0.0,
    option: Options = None,
    n_grades: Annotated[
        int | None, typer.Option(help="Grades of the scale, if the highest does not occur.")
    ] = None,
    truth: Annotated[str, typer.Option(help="Format of the truth beside OUT: csv or parquet.")] = "csv",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Put label noise of a known kind into a data set, and keep the truth beside it.

    Writes OUT, OUT.noise.json (matrix, seed, counts, checksum, the command that repeats it) and OUT.truth.csv
    (true and given grade of every row).
    """
    from cleanrank.data.files import refuse_overwriting
    from cleanrank.data.frames import read_data
    from cleanrank.noise import corrupt
    from cleanrank.noise.corrupt import side_files, write_corruption
    from cleanrank.noise.profiles import read_matrix

    refuse_overwriting(out, *side_files(out, truth), force=force)
    data = read_data(file)
    settings: dict[str, Any] = {"profile": None}
    if matrix is not None:
        if rate is not None or option or spread:
            raise invalid("--rate, --spread and --option", "must not be given with --matrix", "both")
        found = corrupt.corrupt(data, read_matrix(matrix), seed=seed)
    else:
        options = parse_options(option)
        settings = {
            "profile": profile,
            "rate": rate,
            "spread": spread,
            "options": options,
            "n_grades": n_grades,
        }
        found = corrupt.corrupt(
            data, profile, rate, seed=seed, n_grades=n_grades, spread=spread, options=options
        )
    record = write_corruption(found, out, source=file, settings=settings, truth=truth, force=force)
    if as_json:
        screen.print_json(record)
        return
    screen.note(repr(data))
    if data.gains is not None:
        screen.note("real-valued gains do not go with changed grades and were left out")
    _show_corruption(record)
    for path in (out, *side_files(out, truth)):
        screen.note(f"wrote {path}")


def clicks(
    file: Source,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="LOG", help="Click log, .parquet or .csv.")],
    model: Annotated[str, typer.Option(help=f"Kind of users: {', '.join(CLICK_MODELS)}.")] = "pbm",
    sessions: Annotated[int, typer.Option(min=1, help="How often each query's list is shown.")] = 1,
    scores: Annotated[
        Path | None,
        typer.Option(metavar="RANKING", help="Scores that rank the lists; else the rows' own order."),
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
    option: Options = None,
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Simulate users who click, and write a log: session, query_id, row_id, position, click.

    LOG.clicks.json beside it says how the clicks were made.
    """
    from cleanrank.clicks.logs import write_click_log
    from cleanrank.clicks.simulate import click_sessions
    from cleanrank.data.files import refuse_overwriting, written_whole
    from cleanrank.data.frames import read_data
    from cleanrank.data.trec import read_scores

    beside = out.with_name(f"{out.name}.clicks.json")
    refuse_overwriting(out, beside, force=force)
    data = read_data(file)
    ranking = None if scores is None else read_scores(scores, data)
    logs = click_sessions(
        data, model, scores=ranking, sessions=sessions, seed=seed, flip=_flip(flip), cutoff=cutoff,
        top_grade=top_grade, options={"way": way, **parse_options(option)},
    )  # fmt: skip
    tally = _Tally(skip_empty)
    with written_whole(beside) as part, screen.progress("sessions") as tick:
        write_click_log(tally.watch(logs, lambda done: tick(done, sessions)), out)
        record = _click_record(file, scores, sessions, cutoff, tally)
        part.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    if as_json:
        screen.print_json(record)
        return
    screen.note(repr(data))
    shown = ((name, f"{record[name]:,}") for name in ("lists", "entries", "clicks", "empty_lists"))
    screen.table(("", model), [*shown, ("click rate", f"{record['click_rate']:.4f}")])
    screen.note(f"wrote {out}")
    screen.note(f"wrote {beside}")


class _Tally:
    """Counts what passes by on its way to the file."""

    def __init__(self, skip_empty: bool) -> None:
        self.skip_empty = skip_empty
        self.lists = self.entries = self.clicks = self.empty = 0
        self.settings: dict[str, Any] = {}

    def watch(self, logs: Any, tick: Any) -> Any:
        for done, log in enumerate(logs, start=1):
            self.settings = dict(log.settings)
            empty = log.clicks_per_list == 0
            self.empty += int(empty.sum())
            log = log.select_lists(~empty) if self.skip_empty else log
            self.lists += log.n_lists
            self.entries += len(log)
            self.clicks += int(log.click.sum())
            tick(done)
            yield log


def _click_record(
    file: Path, scores: Path | None, sessions: int, cutoff: int | None, tally: _Tally
) -> dict[str, Any]:
    import cleanrank
    from cleanrank.data.files import file_sha256

    return {
        "cleanrank": cleanrank.__version__,
        "input": file.name,
        "input_sha256": file_sha256(file),
        "scores": None if scores is None else scores.name,
        "scores_sha256": None if scores is None else file_sha256(scores),
        **tally.settings,
        "sessions": sessions,
        "cutoff": cutoff,
        "skip_empty": tally.skip_empty,
        "lists": tally.lists,
        "entries": tally.entries,
        "clicks": tally.clicks,
        "empty_lists": tally.empty,
        "click_rate": tally.clicks / tally.entries if tally.entries else None,
    }


def _show_corruption(record: dict[str, Any]) -> None:
    grades = range(len(record["matrix"]))
    rows = [
        (
            str(line["grade"]),
            f"{line['documents']:,}",
            f"{line['changed']:,}",
            *(f"{n:,}" for n in record["counts"][line["grade"]]),
        )
        for line in record["per_grade"]
    ]
    screen.table(("true grade", "documents", "changed", *(f"given {g}" for g in grades)), rows)
    share = f"{record['changed']:,} of {record['documents']:,} grades changed ({record['realised_rate']:.1%})"
    screen.note(f"{record['name']}, seed {record['seed']}: {share}")


def parse_options(given: list[str] | None) -> dict[str, Any]:
    """NAME=VALUE pairs; values are numbers, lists (1,2,3 or [1, 2, 3]) or words.

    >>> parse_options(["rho=.3", "row_weights=1,2,2", "way=second"])
    {'rho': 0.3, 'row_weights': [1.0, 2.0, 2.0], 'way': 'second'}
    """
    found = {}
    for text in given or []:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise invalid("--option", "must read NAME=VALUE", repr(text), remedy="As in --option rho=.3.")
        found[name.strip().replace("-", "_")] = _value(value.strip())
    return found


def _value(text: str) -> Any:
    for parse in (int, float, json.loads, lambda t: [float(part) for part in t.split(",")]):
        try:
            return parse(text)
        except ValueError:
            continue
    return text


def _flip(text: str | None) -> float | tuple[float, float] | None:
    if text is None:
        return None
    try:
        rates = [float(part) for part in text.split(",")]
    except ValueError:
        rates = []
    if len(rates) not in (1, 2):
        raise invalid(
            "--flip", "must be one rate or two with a comma", repr(text), remedy="As in --flip .5,.04."
        )
    return rates[0] if len(rates) == 1 else (rates[0], rates[1])
