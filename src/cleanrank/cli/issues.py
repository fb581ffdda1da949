"""``cleanrank find-issues`` and ``cleanrank clean``."""

from pathlib import Path
from typing import Annotated, Any

import typer

from cleanrank.cli import screen
from cleanrank.cli.noise import parse_options
from cleanrank.errors import BadFileError, invalid
from cleanrank.types import RankingData
from cleanrank.validation import one_of

Source = Annotated[Path, typer.Argument(metavar="DATA", help="Judged data: LETOR/SVMlight, Parquet or CSV.")]
Force = Annotated[bool, typer.Option("--force", help="Overwrite files that are there.")]
Json = Annotated[bool, typer.Option("--json", help="Print the summary as JSON.")]


def mount(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command("find-issues")(find_issues)
    app.command()(clean)


def find_issues(
    data: Source,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="ISSUES", help="Table of doubts, .csv or .parquet.")
    ],
    method: Annotated[
        str,
        typer.Option(
            help="Detector: auto, posterior, confident, loss, forgetting, contradictions, clicks, sour, "
            "last-sour, isolation or by-grade."
        ),
    ] = "auto",
    noise: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|FAMILY:RATE", help="Known noise: a matrix, an estimate (gold read), or uniform:.2."
        ),
    ] = None,
    gold: Annotated[
        Path | None,
        typer.Option(metavar="SHEET", help="Rows judged again (gold sample): the noise is read off them."),
    ] = None,
    clicks: Annotated[
        Path | None,
        typer.Option(metavar="LOG", help="With --method clicks: the click log, .csv or .parquet."),
    ] = None,
    kind: Annotated[str, typer.Option(help="neg: irrelevant by label; pos: relevant; all.")] = "all",
    cutoff: Annotated[int, typer.Option(min=1, help="Rank that outliers cross, k of NDCG@k.")] = 10,
    start: Annotated[
        int | None, typer.Option(min=0, help="Trees from which forests are watched; half of --end.")
    ] = None,
    end: Annotated[int, typer.Option(min=1, help="Trees of the forest that is watched.")] = 300,
    model: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="With sour: watch this saved forest instead of training one."),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            help="Further setting of the detector: folds=5, rule=reference, evidence=score, ...; repeatable.",
        ),
    ] = None,
    truth: Annotated[
        Path | None,
        typer.Option(
            help="Truth file beside corrupted data (OUT.truth.csv): measure the detector against it."
        ),
    ] = None,
    top: Annotated[int, typer.Option(min=0, help="Worst labels to show, with the reasons in words.")] = 10,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="PNG|SVG", help="With --model: also draw which outliers last, tree by tree."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Same seed, same forest.")] = 0,
    jobs: Annotated[int, typer.Option(min=1, help="Threads.")] = 1,
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Find the judgements to look at again: a doubt between 0 and 1 for every label, and why."""
    from cleanrank.cli.train import read_rows
    from cleanrank.data.files import refuse_overwriting
    from cleanrank.data.frames import read_data
    from cleanrank.issues.find import DETECTORS, find_label_issues, options_of
    from cleanrank.rankers.trees import TreeModel

    one_of("detector", method, DETECTORS)
    refuse_overwriting(out, *([] if picture is None else [picture]), force=force)
    if picture is not None and (model is None or method != "sour"):
        raise invalid("--picture", "goes with --method sour and a saved forest (--model)", str(picture))
    if model is not None and "model" not in options_of(method):
        raise invalid("--model", "goes with --method sour or last-sour", f"--method {method}")
    if noise is not None and gold is not None:
        raise invalid("--noise and --gold", "must not be given both", "both")
    forest = None if model is None else TreeModel.load(model)
    judged = read_data(data) if forest is None else read_rows(data, forest.n_features, Path(str(model)))
    wrong = None if truth is None else _wrong(truth, judged.row_ids)
    given: dict[str, Any] = {"kind": kind, "cutoff": cutoff, "start": start, "end": end, "n_jobs": jobs}
    given |= {"model": forest} if forest is not None else {}
    known = options_of(method)
    options = {name: value for name, value in given.items() if name in known} | parse_options(option)
    if clicks is not None:
        from cleanrank.clicks.logs import clicks_from_log

        options["clicks"] = clicks_from_log(clicks, judged)
    options |= _known_noise(noise, gold, judged, method, seed)
    with screen.progress("folds" if "folds" in known and method != "sour" else "trees") as tick:
        if "progress" in known:
            options["progress"] = tick
        found = find_label_issues(judged, method, seed=seed, **options)
    found.save(out)
    if picture is not None and forest is not None:
        _draw_history(judged, forest, picture, kind, cutoff, start, end, jobs)
    worst = found.explain(judged, top)
    record: dict[str, Any] = {
        "method": method,
        "documents": len(found),
        "issues": found.n_issues,
        "share": found.share,
        "share_by_grade": {str(g): share for g, share in found.shares_by_grade().items()},
        "worst": [each.to_json() for each in worst],
    }
    if wrong is not None:
        record["quality"] = found.quality(wrong)
    if as_json:
        screen.print_json(record)
        return
    screen.note(repr(judged))
    _show_issues(found, record)
    _show_worst(worst)
    screen.note(f"{found.n_issues:,} of {len(found):,} labels are doubted ({found.share:.2%})")
    screen.note(f"wrote {out}")


def _known_noise(
    noise: str | None, gold: Path | None, judged: RankingData, method: str, seed: int
) -> dict[str, Any]:
    """The options that say what is known about the noise: a matrix, or answers and what follows from them."""
    import numpy as np

    from cleanrank.issues.find import options_of
    from cleanrank.noise.estimate import FORMAT, NoiseEstimate
    from cleanrank.noise.gold_sheet import read_sheet
    from cleanrank.noise.profiles import read_noise

    if gold is not None:
        answers = read_sheet(gold, judged, allow_unanswered=True)
        estimate = answers.estimate(judged, seed=seed)
        screen.note(repr(estimate))
        by_row = dict(zip(answers.row_ids.tolist(), answers.true_grades.tolist(), strict=True))
        truth = np.array([by_row.get(row, -1) for row in judged.row_ids.tolist()], dtype=np.int64)
        return {"noise": estimate} | ({"known": truth} if "known" in options_of(method) else {})
    if noise is None:
        return {}
    file = Path(noise)
    if file.is_file() and FORMAT in file.read_text(encoding="utf-8", errors="replace")[:200]:
        return {"noise": NoiseEstimate.load(file)}
    return {"noise": read_noise(noise, max(judged.n_grades, 2))}


def _show_worst(worst: list[Any]) -> None:
    rows = [
        (str(e.row_id), str(e.query_id), str(e.given_label), str(e.suggested_label), f"{e.doubt:.3f}", e.why)
        for e in worst
    ]
    if rows:
        screen.table(("row", "query", "given", "suggested", "doubt", "why"), rows, left=6)


def _draw_history(
    judged: RankingData,
    forest: Any,
    picture: Path,
    kind: str,
    cutoff: int,
    start: int | None,
    end: int,
    jobs: int,
) -> None:
    from cleanrank.issues.outliers import Window
    from cleanrank.issues.sour import outlier_history
    from cleanrank.report.charts import save_picture
    from cleanrank.report.panels import history_panel

    last = min(end, forest.best_iteration)
    first = min(last // 2 if start is None else start, last - 1)
    window = Window(cutoff=cutoff, kind=kind, start=first, end=last)
    shares, sizes = outlier_history(judged, forest, window, n_jobs=jobs)
    title = f"{kind} outliers of the top {cutoff}"
    save_picture([history_panel(shares, sizes, first=first + 1, last=last, title=title)], picture)
    screen.note(f"wrote {picture}")


def clean(
    data: Source,
    issues: Annotated[Path, typer.Argument(metavar="ISSUES", help="What find-issues wrote.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="OUT", help="Clean data, in the format of the suffix.")
    ],
    mode: Annotated[
        str,
        typer.Option(help="drop, relabel, reweight or posterior (expected gains, into .parquet or .csv)."),
    ] = "drop",
    min_doubt: Annotated[
        float | None, typer.Option(help="Act on labels doubted at least so much, not on the table's issues.")
    ] = None,
    weight: Annotated[
        float | None, typer.Option(help="With reweight: the factor of every issue, not 1 - doubt.")
    ] = None,
    by: Annotated[str, typer.Option(help="Who decides, for the audit trail.")] = "cleanrank",
    force: Force = False,
    as_json: Json = False,
) -> None:
    """Drop, relabel or reweight doubted documents; OUT.audit.json says what was changed, why and by whom."""
    from cleanrank.cleaning import clean as clean_data
    from cleanrank.data.files import refuse_overwriting, written_whole
    from cleanrank.data.frames import read_data, write_data
    from cleanrank.issues.table import read_issues

    audit = out.with_name(f"{out.name}.audit.json")
    refuse_overwriting(out, audit, force=force)
    if out.resolve() == data.resolve():
        raise invalid("output", "must differ from the data", repr(str(out)))
    judged = read_data(data)
    found = clean_data(judged, read_issues(issues), mode, min_doubt=min_doubt, weight=weight, by=by)
    # The data go last: where they cannot be written, there is no audit of them either.
    with written_whole(audit) as part:
        found.save_audit(part)
        write_data(found.data, out)
    if as_json:
        screen.print_json(found.summary())
        return
    summary = found.summary()
    rows = [
        (grade, f"{line['documents']:,}", f"{line['changed']:,}")
        for grade, line in summary["by_grade"].items()
    ]
    screen.table(("grade", "documents", mode), rows)
    screen.note(repr(found))
    for query in found.emptied:
        screen.note(f"query {query!r} lost all its documents")
    screen.note(f"wrote {out}")
    screen.note(f"wrote {audit}")


def _wrong(truth: Path, row_id: Any) -> Any:
    """Which of the rows are wrong by a truth file."""
    import pandas as pd

    from cleanrank.data.files import existing_file

    file = existing_file(truth)
    try:
        frame = pd.read_parquet(file) if file.suffix == ".parquet" else pd.read_csv(file)
    except (ValueError, OSError) as error:
        rule = f"{truth.name} must be a table; got {str(error).strip().rstrip('.')}."
        raise BadFileError(rule, str(file)) from error
    for name in ("row_id", "true_grade", "given_grade"):
        one_of(f"column of {truth.name}", name, frame.columns)
    frame = frame.set_index("row_id").reindex(row_id)
    missing = frame.true_grade.isna().to_numpy()
    if missing.any():
        # A row that is not there would differ from itself and pass for a wrong label.
        raise invalid(truth.name, "must have every row of the data", f"no row {row_id[missing.argmax()]}")
    return (frame.true_grade != frame.given_grade).to_numpy()


def _show_issues(found: Any, record: dict[str, Any]) -> None:
    import numpy as np

    head = ["given grade", "documents", "issues", "share"]
    quality = record.get("quality", {})
    head += ["wrong labels", "precision", "recall", "average precision"] if quality else []
    rows = []
    for grade, share in found.shares_by_grade().items():
        of_grade = found.given_label == grade
        row = [
            str(grade),
            f"{of_grade.sum():,}",
            f"{(found.is_label_issue & of_grade).sum():,}",
            f"{share:.2%}",
        ]
        if quality:
            line = quality[f"grade {grade}"]
            row += [f"{line['base_rate']:.2%}"]
            row += [
                "-" if np.isnan(line[k]) else f"{line[k]:.3f}"
                for k in ("precision", "recall", "average_precision")
            ]
        rows.append(row)
    screen.table(head, rows)
