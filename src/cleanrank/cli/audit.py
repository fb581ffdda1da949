"""``cleanrank audit``."""

import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from cleanrank.cli import screen
from cleanrank.validation import one_of

app = typer.Typer()
SHOWN = 10


@app.command()
def audit(
    context: typer.Context,
    qrels: Annotated[
        Path,
        typer.Argument(
            metavar="QRELS",
            help=f"Judgements: {screen.LABELS}; a BEIR folder with its texts; others (see convert).",
            callback=screen.piped,
        ),
    ],
    out: Annotated[Path, screen.out_file("ISSUES", "Table of doubts: .csv, .tsv, .xlsx or .parquet.")],
    more_runs: Annotated[
        list[Path] | None,
        typer.Argument(metavar="[RUN]...", help="Runs, as with --runs.", callback=screen.piped),
    ] = None,
    runs: screen.Runs = None,
    texts: Annotated[
        list[Path] | None,
        screen.in_option(
            "FILE",
            "Texts by query_id, doc_id or both: .csv, .tsv, .xlsx, .parquet, .jsonl; a BEIR folder, or its "
            "corpus.jsonl and queries.jsonl; repeatable.",
        ),
    ] = None,
    judge: Annotated[
        list[Path] | None, screen.in_option("FILE", f"Labels of another judge: {screen.LABELS}; repeatable.")
    ] = None,
    scores: Annotated[
        list[Path] | None,
        screen.in_option(
            "FILE", "Numbers by query_id and doc_id: scores of a reranker, embeddings; repeatable."
        ),
    ] = None,
    method: Annotated[str, typer.Option(help="Detector, as of find-issues.")] = "auto",
    option: screen.Options = None,
    sheet: Annotated[
        Path | None,
        typer.Option(
            metavar="SHEET",
            help="Also write a sheet to judge again: half the most doubted, half drawn from the others.",
        ),
    ] = None,
    n: Annotated[int, typer.Option("--n", min=2, help="Rows of the sheet.")] = 100,
    top: Annotated[int, typer.Option(min=1, help="Labels that are shown, the most doubted first.")] = 50,
    html: screen.Html = None,
    seed: screen.Seed = 0,
    jobs: screen.Jobs = 1,
    force: screen.Force = False,
    as_json: screen.Json = False,
) -> None:
    """Doubt the judgements of a test collection by runs, texts, scores and other judges.

    Any of these may be missing. Queries that look misread as a whole are named first.
    """
    from cleanrank.data.files import FRAMES, check_outputs
    from cleanrank.data.spreadsheet import write_frame
    from cleanrank.issues.audit import audit_of, sheet_to_judge
    from cleanrank.issues.find import DETECTORS, find_label_issues, options_of
    from cleanrank.issues.to_judge import next_to_judge
    from cleanrank.report.audit_tables import evidence_table, queries_table, suspect_words, write_audit_page
    from cleanrank.report.issue_tables import worst_table

    systems = [*(runs or []), *(more_runs or [])]
    inputs = (qrels, *systems, *(texts or []), *(judge or []), *(scores or []))
    check_outputs(out, sheet, inputs=inputs, force=force, suffixes=FRAMES)
    screen.check_page(html, (*inputs, out, sheet), force)
    if sheet is None:
        screen.refuse(context, "n", "goes with --sheet")
    known = options_of(one_of("detector", method, DETECTORS))
    options: dict[str, Any] = {"n_jobs": jobs} if "n_jobs" in known else {}
    with screen.progress("folds") as tick, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The features are not seen")
        options |= {"progress": tick} if "progress" in known else {}
        issues = find_label_issues(
            qrels=qrels,
            runs=systems or None,
            texts=texts or None,
            judges=judge or None,
            scores=scores or None,
            method=method,
            seed=seed,
            **options,
            **screen.detector_options(option),
        )
    assert issues.source is not None
    data = issues.source.data
    found = audit_of(issues, top=top)
    issues.save(out, data)
    worst = [each.to_json() for each in issues.explain(rows=issues.row_id[next_to_judge(issues, top)])]
    if sheet is not None:
        write_frame(sheet_to_judge(found, n, seed=seed), sheet)
    record: dict[str, Any] = {
        "method": method,
        "pairs": len(issues),
        "issues": issues.n_issues,
        "share_by_grade": issues.shares_by_grade(),
        "signal": None if issues.signal is None else issues.signal.to_json(),
        "queries": [asdict(each) for each in found.queries],
        "evidence": [asdict(each) for each in found.evidence],
        "worst": worst,
    }
    screen.show(
        record,
        as_json,
        repr(data),
        worst_table(worst[:SHOWN]),
        queries_table(found.queries[:SHOWN]),
        evidence_table(found),
        *suspect_words(found),
        f"{issues.n_issues:,} of {len(issues):,} labels are doubted enough to act on",
        *(f"wrote {path}" for path in (out, sheet) if path is not None),
    )
    if html is not None:
        page = write_audit_page(html, found, worst, name=qrels.name, table_file=out.name)
        screen.note(f"wrote {page}")
    if issues.caution:
        screen.note(issues.caution)
