"""A report on annotators as tables, as a record and as a page."""

import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cleanrank.noise.annotator_report import Again, Annotator, AnnotatorReport
from cleanrank.report.sections import Section, write_sections
from cleanrank.report.table import ABSENT, Cell, Table, number

MOST_MATRICES = 30
MOST_PAIRS = 60
BOUND = (
    "Wrong consensus labels are expected under independent errors. Items that are hard for everybody make "
    "the true number higher: take it as a lower bound, and check some items against a careful judge."
)
PEOPLE = ("annotator", "judgements", "agrees with others", "kappa", "wrong grades", "wrong pairs", "bias", "")


def annotator_table(report: AnnotatorReport, caption: str = "", rows: int | None = None) -> Table:
    """A row per annotator, the least reliable first; the first ``rows`` of them."""
    level = next((each.noise.level for each in report.annotators if each.noise), 0.95)
    notes = [
        "Agrees with others: with their majority. Wrong grades, wrong pairs (pNoise) and bias (grade given "
        f"minus true; above 0 is lenient) are estimated, with {level:.0%} intervals."
    ]
    lines = [_annotator_row(each) for each in report.annotators[:rows]]
    return Table(PEOPLE, lines, caption=caption, align="lrrrrrrl", notes=notes if report.is_modelled else ())


def _annotator_row(each: Annotator) -> list[str | Cell]:
    noise, bias, ends = each.noise, each.bias, each.bias_interval
    estimates: list[str | Cell] = [ABSENT] * 3
    if noise is not None and bias is not None and ends is not None:
        estimates = [
            _span(noise.rate, *noise.rate_interval, ".0%"),
            _span(noise.pnoise, *noise.pnoise_interval, ".0%"),
            _span(bias, *ends, "+.2f"),
        ]
    counts = [number(each.judgements, ","), number(each.agrees, ".0%"), number(each.kappa, ".2f")]
    return [each.name, *counts, *estimates, each.verdict]


def _span(value: float, low: float, high: float, form: str) -> Cell:
    if value != value:
        return Cell(ABSENT)
    return Cell(f"{value:{form}} [{low:{form}}, {high:{form}}]".replace("-", "−"), value)


def agreement_table(report: AnnotatorReport) -> Table:
    """Agreement of all, plain and corrected for chance."""
    agreed = report.agreement
    rows = [
        ("equal pairs of judgements", number(agreed.share, ".1%")),
        ("Cohen's kappa, mean over pairs of annotators", number(agreed.cohen, ".3f")),
        ("Fleiss' kappa", number(agreed.fleiss, ".3f")),
        ("Krippendorff's alpha, ordered grades", number(agreed.alpha, ".3f")),
    ]
    checked = report.checked()
    if checked is not None:
        items = f"of {checked['items']:,} items with true grades"
        rows += [
            (f"consensus right, {items}", number(checked["consensus"], ".1%")),
            ("majority right, of these", number(checked["majority"], ".1%")),
            ("consensus right, as the model expects", number(checked["expected"], ".1%")),
        ]
    return Table(("", repr(report.judged.judgements)), rows)


def again_table(report: AnnotatorReport, cost: float = 1.0) -> Table:
    """What one more judgement of the most doubtful items costs and wins."""
    again = report.again(cost)
    rows: list[list[str | Cell]] = [
        [
            number(each.items, ","),
            number(each.cost, ",.2f"),
            number(each.wrong_before, ",.1f"),
            number(each.wrong_after, ",.1f"),
        ]
        for each in again
    ]
    head = ("items judged once more", "cost", "wrong labels now", "wrong labels after")
    return Table(head, rows, notes=[BOUND] if again else ())


def annotator_record(report: AnnotatorReport, cost: float = 1.0) -> dict[str, Any]:
    """Plain values of a report."""
    judged = report.judged.judgements
    people = [
        {
            "annotator": each.name,
            "judgements": each.judgements,
            "agrees": each.agrees,
            "kappa": each.kappa,
            "rate": each.noise and each.noise.rate,
            "rate_interval": each.noise and each.noise.rate_interval,
            "pnoise": each.noise and each.noise.pnoise,
            "pnoise_interval": each.noise and each.noise.pnoise_interval,
            "matrix": each.noise and each.noise.matrix,
            "bias": each.bias,
            "bias_interval": each.bias_interval,
            "verdict": each.verdict,
        }
        for each in report.annotators
    ]
    again: list[Again] = report.again(cost)
    return {
        "items": len(judged.items),
        "judgements": len(judged),
        "lowest_grade": report.judged.lowest,
        "agreement": asdict(report.agreement),
        "checked": report.checked(),
        "annotators": people,
        "pairs": [asdict(pair) for pair in report.pairs],
        "again": [asdict(each) for each in again],
        "notes": list(report.notes),
    }


def write_annotators_page(
    path: str | os.PathLike[str], report: AnnotatorReport, *, name: str, cost: float = 1.0, top: int = 100
) -> Path:
    """Writes the page of a report: who is reliable, agreement, what to judge again, matrices."""
    frame = report.to_judge_again(top)
    items = Table(
        [str(column) for column in frame.columns],
        [[str(value) for value in row] for row in frame.itertuples(index=False)],
        caption="Items to judge again, first those where a judgement wins most",
        headed=len(report.judged.keys),
    )
    pairs = [pair for pair in report.pairs if pair.kappa == pair.kappa]
    pairs.sort(key=lambda pair: pair.kappa)
    records = [asdict(pair) for pair in pairs[:MOST_PAIRS]]
    columns = [("first", "first"), ("second", "second"), ("items", "items", ","), ("equal", "share", ".0%")]
    between = Table.of(records, [*columns, ("kappa", "kappa", ".2f")], caption="Least agreement first")
    again = again_table(report, cost)
    bad = [each for each in report.annotators if {"unreliable", "noisier than most"} & _words(each)]
    matrices = [_matrix(each, report) for each in report.annotators[:MOST_MATRICES] if each.noise]
    sections = [
        Section("Annotators", [annotator_table(report, "The least reliable first"), *report.notes]),
        Section("Agreement", [agreement_table(report)]),
        Section("What to judge again", [*([again] if again.rows else []), items]),
        Section("Pairs of annotators", [between] if records else []),
        Section("How each one errs", matrices),
    ]
    judged = report.judged.judgements
    figures = [
        (f"{len(judged.annotators):,}", "annotators"),
        (f"{len(judged.items):,}", "items"),
        (f"{len(judged):,}", "judgements"),
        (f"{len(bad):,}", "unreliable or noisier than most"),
    ]
    return write_sections(path, f"Annotators: {name}", sections, figures=figures)


def _words(each: Annotator) -> set[str]:
    return set(each.verdict.split(", "))


def _matrix(each: Annotator, report: AnnotatorReport) -> Table:
    lowest = report.judged.lowest
    matrix = [] if each.noise is None else each.noise.matrix.tolist()
    grades = [str(grade + lowest) for grade in range(len(matrix))]
    rows: list[list[str | Cell]] = [
        [f"true {g}", *(number(p, ".2f") for p in row)] for g, row in zip(grades, matrix, strict=True)
    ]
    return Table(("P(given | true)", *(f"given {g}" for g in grades)), rows, caption=each.name)
