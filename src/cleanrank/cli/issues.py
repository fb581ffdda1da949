"""``cleanrank find-issues`` and ``cleanrank clean``."""

import warnings
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cleanrank.cli import screen
from cleanrank.errors import invalid
from cleanrank.report.table import Table
from cleanrank.types import RankingData
from cleanrank.validation import one_of

if TYPE_CHECKING:
    from cleanrank.noise.gold_sheet import GoldAnswers

NO_ISSUE = "No label is doubted enough to act on; these are the most doubted."
# Doubts of these are probabilities of a wrong label once the noise is known.
WITH_PROBABILITIES = ("auto", "posterior")

app = typer.Typer()


@app.command("find-issues")
@screen.with_columns
def find_issues(
    context: typer.Context,
    data: screen.Data,
    out: Annotated[Path, screen.out_file("ISSUES", "Table of doubts: .csv, .tsv, .xlsx or .parquet.")],
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
        screen.in_option(
            "SHEET",
            "Rows judged again (gold sample), or true grades by query and document (table, TREC qrels): "
            "they give the noise.",
        ),
    ] = None,
    gold_columns: screen.GoldColumns = None,
    clicks: Annotated[
        Path | None,
        screen.in_option("LOG", "With --method clicks: the click log, .csv or .parquet."),
    ] = None,
    kind: Annotated[str, typer.Option(help="neg: irrelevant by label; pos: relevant; all.")] = "all",
    cutoff: Annotated[int, typer.Option(min=1, help="Rank that outliers cross, k of NDCG@k.")] = 10,
    start: Annotated[
        int | None, typer.Option(min=0, help="Trees from which models are watched; half of --end.")
    ] = None,
    end: Annotated[int, typer.Option(min=1, help="Trees of the model that is watched.")] = 300,
    model: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="With sour: watch these saved trees instead of training."),
    ] = None,
    option: screen.Options = None,
    truth: Annotated[
        Path | None,
        screen.in_option(
            "TRUTH", "Truth file beside corrupted data (OUT.truth.csv): measure the detector against it."
        ),
    ] = None,
    top: Annotated[
        int,
        typer.Option(min=0, help="Labels to judge next, with reasons; judged ones are left out."),
    ] = 10,
    judge_cost: Annotated[
        float | None,
        typer.Option(min=0.0, help="Of one judgement: what judging again costs and wins."),
    ] = None,
    budget: Annotated[float | None, typer.Option(help="With --judge-cost: money there is.")] = None,
    html: screen.Html = None,
    picture: Annotated[
        Path | None,
        typer.Option(metavar="PNG|SVG", help="With --model: also draw which outliers last, tree by tree."),
    ] = None,
    seed: screen.Seed = 0,
    jobs: screen.Jobs = 1,
    scheduler: screen.Scheduler = None,
    force: screen.Force = False,
    as_json: screen.Json = False,
    *,
    columns: screen.Columns,
) -> None:
    """Find the judgements to look at again: a doubt between 0 and 1 for every label, and why.

    --option sets an argument of the detector: folds=5, rule=reference, evidence=score, ...
    """
    from cleanrank.clicks.logs import clicks_from_log
    from cleanrank.cluster.client import at_scheduler
    from cleanrank.data.files import FRAMES, check_outputs
    from cleanrank.data.tables import read_data
    from cleanrank.issues.find import DETECTORS, find_label_issues, options_of
    from cleanrank.issues.rejudging import doubts_of_judged, plan_rejudging
    from cleanrank.issues.to_judge import next_to_judge, text_columns
    from cleanrank.noise.corrupt import read_changed
    from cleanrank.noise.gold_sheet import gold_answers
    from cleanrank.rankers.configure import read_for
    from cleanrank.rankers.trees import TreeModel
    from cleanrank.report.issue_tables import (
        by_grade_table,
        rejudging_table,
        worst_table,
        write_issues_page,
    )

    known = options_of(one_of("detector", method, DETECTORS))
    inputs = (data, noise, gold, clicks, model, truth)
    check_outputs(out, inputs=inputs, force=force, suffixes=FRAMES)
    check_outputs(picture, inputs=inputs, force=force, suffixes=(".png", ".svg"))
    screen.check_page(html, (*inputs, out), force)
    if judge_cost is not None and (method not in WITH_PROBABILITIES or (noise is None and gold is None)):
        rule = "goes with doubts that are probabilities: --method auto or posterior, with --gold or --noise"
        raise invalid("--judge-cost", rule, f"--method {method}")
    if budget is not None and judge_cost is None:
        raise invalid("--budget", "goes with --judge-cost", budget)
    if picture is not None and (model is None or method != "sour"):
        raise invalid("--picture", "goes with --method sour and a saved model (--model)", str(picture))
    if model is not None and "model" not in known:
        raise invalid("--model", "goes with --method sour or last-sour", f"--method {method}")
    if noise is not None and gold is not None:
        raise invalid("--noise and --gold", "must not be given together")
    if gold is None:
        screen.refuse(context, "gold_columns", "goes with --gold")
    for name in ("kind", "cutoff", "start", "end"):
        if name not in known:
            readers = " or ".join(each for each in DETECTORS if name in options_of(each))
            screen.refuse(context, name, f"goes with --method {readers}", method)
    trees = None if model is None else TreeModel.load(model)
    judged = read_data(data, **columns) if trees is None else read_for(trees, data, **columns)
    changed = None if truth is None else read_changed(truth, judged)
    window: dict[str, Any] = {"kind": kind, "cutoff": cutoff, "start": start, "end": end, "n_jobs": jobs}
    options = {name: value for name, value in window.items() if name in known}
    headings = screen.parse_columns("--gold-columns", gold_columns)
    answers = None if gold is None else gold_answers(gold, judged, columns=headings)
    known_noise = _noise(noise, answers, judged, seed)
    options |= screen.detector_options(option)
    if answers is not None:
        options["gold"] = answers
    elif known_noise is not None:
        options["noise"] = known_noise
    if trees is not None:
        options["model"] = trees
    if clicks is not None:
        options["clicks"] = clicks_from_log(clicks, judged, unknown=options.pop("unknown", "refuse"))
    with screen.progress("folds" if "folds" in known and method != "sour" else "trees") as tick:
        if "progress" in known:
            options["progress"] = tick
        with at_scheduler(scheduler) as client, warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The features are not seen")
            issues = find_label_issues(judged, method, seed=seed, client=client, **options)
    settled = None if answers is None else answers.row_ids
    issues.save(out, judged, judged=settled)
    if picture is not None and trees is not None:
        from cleanrank.report.images import save_history

        screen.note(f"wrote {save_history(judged, trees, picture, **window)}")
    places = next_to_judge(issues, top, settled)
    worst = [each.to_json() for each in issues.explain(judged, rows=issues.row_id[places])]
    acted_on = int(issues.is_label_issue[places].sum())
    remarks = (
        [f"{acted_on:,} of these {len(worst):,} are doubted enough to act on (issues)."] if worst else []
    )
    if worst and not issues.n_issues:
        remarks = [NO_ISSUE]
    if settled is not None:
        remarks.append(f"{len(settled):,} rows that are judged already are left out.")
    plans, check = [], None
    if judge_cost is not None:
        if answers is not None:
            # Doubts are checked on the judged rows, as they are without these answers.
            untold = {name: value for name, value in options.items() if name not in ("gold", "progress")}
            unsettled = find_label_issues(judged, method, noise=known_noise, seed=seed, **untold)
            check = doubts_of_judged(unsettled, judged, answers)
        noise_of = {"noise": known_noise, "check": check, "judged": settled}
        plans = plan_rejudging(issues, judged, cost=judge_cost, budget=budget, seed=seed, **noise_of)
    record: dict[str, Any] = {
        "method": method,
        "documents": len(issues),
        "issues": issues.n_issues,
        "share": issues.share,
        "share_by_grade": issues.shares_by_grade(),
        "signal": None if issues.signal is None else issues.signal.to_json(),
        "worst": worst,
        **({"rejudging": [asdict(plan) for plan in plans]} if plans else {}),
        **({} if changed is None else {"quality": issues.quality(changed)}),
    }
    screen.show(
        record,
        as_json,
        repr(judged),
        by_grade_table(issues, record.get("quality")),
        *([worst_table(worst)] if worst else []),
        *remarks,
        *([rejudging_table(plans)] if plans else []),  # without notes on the screen
        *([] if issues.signal is None else [f"signal of the features, out of fold: {issues.signal}"]),
        f"{issues.n_issues:,} of {len(issues):,} labels are doubted ({issues.share:.2%})",
        f"wrote {out}",
    )
    if html is not None:
        quality = record.get("quality")
        page = write_issues_page(
            html,
            issues,
            worst,
            name=data.name,
            table_file=out.name,
            is_probability=method in WITH_PROBABILITIES
            and options.get("noise") is not None
            and getattr(options["noise"], "trusted", True),
            texts=text_columns(judged, issues.row_id[places]),
            remarks=remarks,
            quality=quality,
            plans=plans,
            is_checked=check is not None,
        )
        screen.note(f"wrote {page}")
    if issues.caution:
        screen.note(issues.caution)


def _noise(noise: str | None, answers: "GoldAnswers | None", judged: RankingData, seed: int) -> Any:
    """What is known about the noise: a matrix, the estimate that answers give, or None."""
    from cleanrank.noise.estimate import load_noise

    if answers is not None:
        estimate = answers.estimate(judged, seed=seed)
        screen.note(repr(estimate))
        return estimate
    return None if noise is None else load_noise(noise, max(judged.n_grades, 2))


@app.command()
@screen.with_columns
def clean(
    context: typer.Context,
    data: screen.Data,
    out: Annotated[Path, screen.out_file("OUT", "Clean data, in the format of the suffix.")],
    issues: Annotated[
        Path | None,
        typer.Argument(
            metavar="[ISSUES]", help="What find-issues wrote.", callback=screen.piped, show_default=False
        ),
    ] = None,
    review: Annotated[
        Path | None,
        screen.in_option(
            "PROJECT",
            "Instead of ISSUES: what people decided, a project of `review` or `label`, or its sheet.",
        ),
    ] = None,
    combine: Annotated[
        str, typer.Option(help="With --review, where several people judged a row: majority or median.")
    ] = "majority",
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
    n_grades: Annotated[
        int | None, typer.Option(help="With relabel: grades of the scale, when the highest does not occur.")
    ] = None,
    by: Annotated[str, typer.Option(help="Who decides, for the audit trail.")] = "cleanrank",
    force: screen.Force = False,
    as_json: screen.Json = False,
    *,
    columns: screen.Columns,
) -> None:
    """Drop, relabel or reweight doubted documents; OUT.audit.json says what was changed, why and by whom.

    With --review labels become what people decided: kept, changed or dropped; who was unsure has no vote, and
    of a tie the given label stands if it is among the tied ones, else the lowest grade.
    """
    from cleanrank.cleaning import clean as clean_data
    from cleanrank.data.files import check_outputs, written_whole
    from cleanrank.data.tables import check_data_output, names_of, read_data, write_data
    from cleanrank.issues.table import read_issues, read_words
    from cleanrank.labeling.reviewed import clean_reviewed

    if (issues is None) == (review is None):
        given = "neither" if issues is None else "both"
        raise invalid("clean", "needs ISSUES, or people's decisions (--review)", given)
    if review is not None:
        screen.refuse(context, "mode min_doubt weight n_grades by", "goes with ISSUES", "--review")
    else:
        screen.refuse(context, "combine", "goes with --review", "ISSUES")
    if mode != "relabel":
        screen.refuse(context, "n_grades", "goes with --mode relabel", mode)
    inputs = [data, issues, review]
    form = check_data_output(out, data, inputs, force=force)
    audit = out.with_name(f"{out.name}.audit.json")
    check_outputs(audit, inputs=inputs, force=force)
    judged = read_data(data, **columns)
    if review is not None:
        cleaned = clean_reviewed(judged, review, combine=combine)
    else:
        assert issues is not None
        cleaned = clean_data(
            judged, read_issues(issues), mode, min_doubt=min_doubt, weight=weight, n_grades=n_grades, by=by
        )
        cleaned = replace(cleaned, audit={"why": read_words(issues, judged.row_ids)})
    # The data go last: where they cannot be written, there is no audit of them either.
    with written_whole(audit) as part:
        cleaned.save_audit(part)
        write_data(cleaned.data, out, form=form, force=force, **names_of(columns))
    summary = cleaned.summary()
    rows = [{"grade": grade, **counts} for grade, counts in summary["by_grade"].items()]
    shown = [("grade", "grade"), ("documents", "documents", ","), (cleaned.mode, "changed", ",")]
    decided = [] if review is None else [screen.facts(summary["options"], align="ll")]
    screen.show(
        summary,
        as_json,
        Table.of(rows, shown),
        *decided,
        repr(cleaned),
        *(f"query {query!r} lost all its documents" for query in cleaned.emptied),
        f"wrote {out}",
        f"wrote {audit}",
    )
