"""``cleanrank missing``."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from cleanrank.cli import screen
from cleanrank.errors import invalid
from cleanrank.report.table import Table

app = typer.Typer()
PLAN = (
    ("judgements", "rows", ","),
    ("of unjudged", "share", ".1%"),
    ("down to P", "threshold", ".3f"),
    ("relevant expected", "expected", ",.0f"),
    ("of all expected", "found", ".0%"),
    ("each judgement", "each", ".2f"),
)
LIKELIEST = (("query", "query_id"), ("document", "doc_id"), ("P(relevant)", "probability", ".3f"))
LETTERS = 80


@app.command()
def missing(
    context: typer.Context,
    judgements: Annotated[
        Path,
        typer.Argument(
            metavar="QRELS|NEGATIVES",
            help=f"Judgements: {screen.LABELS}. Or mined negatives (.jsonl): query or anchor, positive and "
            "negative; or query, pos and neg.",
            callback=screen.piped,
        ),
    ],
    out: Annotated[
        Path, screen.out_file("MISSING", "Unjudged pairs, the likeliest first: .csv, .tsv, .xlsx, .parquet.")
    ],
    runs: screen.Runs = None,
    texts: Annotated[
        list[Path] | None,
        screen.in_option(
            "FILE",
            "Texts, as of audit: a table or a BEIR folder; pairs without one are left out; repeatable.",
        ),
    ] = None,
    judge: Annotated[
        list[Path] | None,
        screen.in_option(
            "FILE", f"Labels of another judge, of unjudged pairs too: {screen.LABELS}; repeatable."
        ),
    ] = None,
    scores: Annotated[
        list[Path] | None,
        screen.in_option("FILE", "Numbers by query_id and doc_id, of unjudged pairs too; repeatable."),
    ] = None,
    gold: Annotated[
        Path | None,
        screen.in_option(
            "SHEET", "True grades of pairs that nobody had judged: SHEET filled in, a project or qrels."
        ),
    ] = None,
    relevant: Annotated[int, typer.Option(min=1, help="The lowest grade that counts as relevant.")] = 1,
    depth: Annotated[int, typer.Option(min=1, help="Ranks of the runs that are looked at.")] = 100,
    unjudged: Annotated[
        str, typer.Option(help="Unjudged pairs teach as irrelevant, or are ignored when models learn.")
    ] = "irrelevant",
    find: Annotated[
        float, typer.Option(help="The share of the relevant pairs expected that judging should find.")
    ] = 0.8,
    threshold: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="P(relevant) from which on a pair is likely relevant.")
    ] = 0.5,
    pool: Annotated[
        Path | None,
        typer.Option(metavar="QRELS", help="Also write all pairs as judgements, -1 where there is none."),
    ] = None,
    sheet: Annotated[
        Path | None,
        typer.Option(metavar="SHEET", help="Also write a sheet of the likeliest pairs, to judge them."),
    ] = None,
    n: Annotated[
        int | None, typer.Option("--n", min=1, help="Rows of the sheet; else as many as --find takes.")
    ] = None,
    kept: Annotated[
        Path | None,
        typer.Option(
            metavar="JSONL", help="Of mined negatives: those below --threshold, scored by P(relevant)."
        ),
    ] = None,
    seed: screen.Seed = 0,
    jobs: screen.Jobs = 1,
    force: screen.Force = False,
    as_json: screen.Json = False,
) -> None:
    """Find judgements that are missing: unjudged documents, or mined negatives, that look relevant.

    Models learn from the judged pairs of other queries what relevant ones look like. Judge --sheet, then add
    what was judged to the --pool (`clean QRELS --review SHEET`), or give it back as --gold.
    """
    from cleanrank.data.files import FRAMES, check_outputs
    from cleanrank.data.json_files import JSON_LINES, is_json_lines
    from cleanrank.data.negatives import read_negatives, write_negatives
    from cleanrank.data.spreadsheet import write_frame
    from cleanrank.data.trec import write_qrels
    from cleanrank.issues.missing import find_missing
    from cleanrank.noise.gold_sheet import write_sheet

    inputs = (judgements, gold, *(runs or []), *(texts or []), *(judge or []), *(scores or []))
    check_outputs(out, sheet, inputs=inputs, force=force, suffixes=FRAMES)
    check_outputs(kept, inputs=inputs, force=force, suffixes=JSON_LINES)
    check_outputs(pool, inputs=(*inputs, out, sheet, kept), force=force, suffixes=("",))
    if sheet is None:
        screen.refuse(context, "n", "goes with --sheet")
    mined = read_negatives(judgements) if is_json_lines(judgements) else None
    if kept is not None and mined is None:
        raise invalid("--kept", "goes with mined negatives (.jsonl)", str(judgements))
    with screen.progress("folds") as tick:
        found = find_missing(
            judgements if mined is None else mined.data,
            runs=runs or None,
            texts=texts or None,
            scores=scores or None,
            judges=judge or None,
            gold=gold,
            relevant=relevant,
            depth=depth,
            unjudged=unjudged,
            seed=seed,
            n_jobs=jobs,
            progress=tick,
        )
    plan = found.plan((find,), threshold=threshold)
    write_frame(found.to_frame(), out)
    if pool is not None:
        write_qrels(found.pool, pool)
    if sheet is not None:
        write_sheet(found.sheet(n or found.effort(find)), sheet, data=found.data)
    if kept is not None and mined is not None:
        p = found.by_text()
        pairs = {(line.query, text) for line in mined.lines for text in line.negatives}
        likely = {pair for pair in pairs if p.get(pair, 1.0) >= threshold}  # or nothing is known about it
        write_negatives(mined.without(likely).with_scores(p), kept, force=force)
    likeliest = found.to_frame(10).to_dict("records")
    for each in likeliest:
        each["text"] = " ".join(str(each.get("text", "")).split())[:LETTERS]
    record: dict[str, Any] = {
        "judged": int((~found.is_open).sum()),
        "unjudged": len(found),
        "left_out": found.left_out,
        "expected": found.expected,
        "calibrated_on": found.calibrated_on,
        "plan": [asdict(each) for each in plan],
    }
    shown = (*LIKELIEST, *((("text", "text"),) if any(each["text"] for each in likeliest) else ()))
    screen.show(
        record | {"likeliest": likeliest},
        as_json,
        Table.of(record["plan"], PLAN),
        Table.of(likeliest, shown),
        f"{found.expected:,.0f} of {len(found):,} unjudged pairs are expected to be relevant "
        f"(grade >= {relevant}).",
        found.statement,
        *([f"{found.left_out:,} pairs lack some of the evidence: left out."] if found.left_out else []),
        *(f"wrote {path}" for path in (out, pool, sheet, kept) if path is not None),
    )
