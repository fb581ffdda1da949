"""A report on annotators as tables, as a record and as a page."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cleanrank.judges.panel import LEAST_GOLD, METHODS, Panel
from cleanrank.noise.annotator_pairs import Filtered
from cleanrank.noise.annotator_report import Again, Annotator, AnnotatorReport
from cleanrank.noise.annotator_sequences import ALPHA
from cleanrank.noise.dependence import SOURCES, Dependence
from cleanrank.report.pages import Page, write_page
from cleanrank.report.sections import Section, sections_page
from cleanrank.report.table import ABSENT, Cell, Table, number

MOST_MATRICES = 30
MOST_PAIRS = 60
CLOSEST = 10
SHARED = (
    "Without gold rows errors that all annotators share cannot be seen, and hard items look like annotators "
    "that err together: the votes are an upper bound. About 100 gold rows (--gold) tell."
)
BOUND = (
    "Wrong consensus labels are expected under independent errors. Items that are hard for everybody make "
    "the true number higher: take it as a lower bound, and check some items against a careful judge."
)
PEOPLE = ("annotator", "judgements", "agrees with others", "kappa", "wrong grades", "wrong pairs", "bias", "")


def annotator_table(report: AnnotatorReport, caption: str = "", rows: int | None = None) -> Table:
    """A row per annotator, the least reliable first; the first ``rows`` of them."""
    notes = [
        "Agrees with others: with their majority. Wrong grades, wrong pairs (pNoise) and bias (grade given "
        f"minus true; above 0 is lenient) are estimated, with {report.level:.0%} intervals."
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
    if low != low:
        return Cell(f"{value:{form}}".replace("-", "−"), value)
    return Cell(f"{value:{form}} [{low:{form}}, {high:{form}}]".replace("-", "−"), value)


def pair_noise_table(
    report: AnnotatorReport, filtered: Filtered | None = None, rows: int | None = None
) -> Table:
    """A row per annotator with their pNoise against true grades or the others, in their order."""
    dropped = {} if filtered is None else filtered.dropped
    lines: list[list[str | Cell]] = [
        [
            each.name,
            number(each.queries, ","),
            number(each.pairs, ","),
            number(each.gold_items, ","),
            _span(each.pnoise, *each.pnoise_interval, ".3f"),
            number(each.floor, ".3f"),
            _span(each.corrected, *each.corrected_interval, ".3f"),
            number(each.wrong_order, ".3f"),
            *(["dropped" if each.name in dropped else "stays"] if filtered else []),
        ]
        for each in report.pair_noise[:rows]
    ]
    head = (
        "annotator",
        "queries",
        "pairs",
        "items with true grades",
        "pNoise",
        "floor",
        "corrected pNoise",
        "wrong order",
    )
    notes = [
        "Pairs of documents of a query that the annotator graded differently, against true grades or the "
        f"majority of the others; {report.level:.0%} intervals over queries, if there are 5. Floor: a "
        "perfect annotator's on as fine a scale. Corrected: 0 perfect, .5 guessing; in between a finer scale "
        "looks better. Wrong order: of the pairs of different true grades, ties one half."
    ]
    return Table(
        (*head, "") if filtered else head, lines, align="lrrrrrrr" + "l" * bool(filtered), notes=notes
    )


def odd_table(report: AnnotatorReport) -> Table:
    """Annotators with constant or fast answers."""
    lines: list[list[str | Cell]] = [
        [each.name, f"{each.kind} answers", each.reason, number(each.p_value, ".4f")] for each in report.odd
    ]
    notes = [
        f"Where nobody clicks through, each of the two tests flags anybody at all in {ALPHA:.0%} of tables."
    ]
    return Table(("annotator", "", "why", "p, of all annotators"), lines, notes=notes)


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
    judged = report.judged.judgements
    return Table(("", f"{len(judged):,} judgements of {len(judged.items):,} items"), rows)


def dependence_table(dependence: Dependence) -> Table:
    """How far judges err together, and how many votes they count for."""
    rho, votes = dependence.correlation, dependence.votes
    rows = [
        ("correlation of errors", _span(rho, *dependence.correlation_interval, ".2f")),
        ("judgements of an item", number(dependence.judgements, ".1f")),
        ("independent votes they count for", _span(votes, *dependence.votes_interval, ".1f")),
    ]
    notes = [] if dependence.source == "gold" else [SHARED]
    return Table(("do they err together?", f"from {SOURCES[dependence.source]}"), rows, notes=notes)


def closest_table(dependence: Dependence, rows: int = CLOSEST) -> Table:
    """Pairs of judges, those that err most alike first."""
    shown = [pair for pair in dependence.pairs if pair.low > 0][:rows]
    lines: list[list[str | Cell]] = [
        [
            pair.first,
            pair.second,
            number(pair.items, ","),
            _span(pair.correlation, pair.low, pair.high, ".2f"),
        ]
        for pair in shown
    ]
    caption = "Errors most alike first; intervals hold for all pairs at once"
    head = ("first", "second", "items", "correlation of errors")
    return Table(head, lines, caption=caption, align="llrr")


def panel_table(panel: Panel) -> Table:
    """What all judges together and the best one alone reach on gold rows left out; what is used first."""
    used = f"{panel.judge}, {panel.method}" if panel.judge else panel.method
    singles = [way for way in panel.tried if ", " in way]
    best = max(singles, key=lambda way: panel.tried[way], default=None)
    ways = [way for way in panel.tried if way in (used, best) or way not in singles]
    rows: list[list[str | Cell]] = [
        [way, _span(panel.accuracy, *panel.accuracy_interval, ".3f"), "used"]
        if way == used
        else [way, number(panel.tried[way], ".3f"), "the best judge" if way == best else ""]
        for way in sorted(ways, key=lambda way: (way != used, -panel.tried[way]))
    ]
    gold = f"{panel.gold_rows:,} gold rows of {panel.gold_queries:,} queries"
    notes = [f"Cross-validated on {gold}. Used: {METHODS[panel.method]}.", *panel.notes]
    return Table(("grades by", "right on gold rows left out", ""), rows, notes=notes)


def judges_table(panel: Panel, rows: int | None = None) -> Table:
    """Judges beside the gold rows, the most accurate first; those with few gold rows last."""
    order = sorted(
        panel.judges,
        key=lambda each: (each.gold_rows < LEAST_GOLD, -each.accuracy, -each.gold_rows, each.name),
    )
    lines: list[list[str | Cell]] = [
        [
            each.name,
            number(each.gold_rows, ","),
            number(each.accuracy, ".3f"),
            number(each.recalibrated, ".3f"),
        ]
        for each in order[:rows]
    ]
    head = ("judge", "gold rows", "right as answered", "right when recalibrated")
    return Table(head, lines, notes=[] if panel.best_judge else ["No judge answered half of the gold rows."])


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


def items_table(report: AnnotatorReport, rows: int) -> Table:
    """The first items to judge again, with what is known of each."""
    frame = report.to_judge_again(rows)
    forms = {"probability": ".2f", "wins": ".3f"}
    return Table(
        [str(column).replace("_", " ") for column in frame.columns],
        [
            [
                number(value, forms[name]) if name in forms else str(value)
                for name, value in zip(frame.columns, row, strict=True)
            ]
            for row in frame.itertuples(index=False)
        ],
        caption="Items to judge again, first those where a judgement wins most",
        headed=len(report.judged.keys),
        explained={
            "probability": "of the grade, by what everybody answered",
            "votes": "grade:number of people who gave it",
            "wins": "wrong labels that one more judgement is expected to put right",
        },
    )


def annotator_record(
    report: AnnotatorReport,
    cost: float = 1.0,
    panel: Panel | None = None,
    filtered: Filtered | None = None,
) -> dict[str, Any]:
    """Plain values of a report, of what annotators make together with gold rows, and of who stays."""
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
        "pair_noise": [asdict(each) | {"excess": each.excess} for each in report.pair_noise],
        "odd_sequences": [asdict(each) for each in report.odd],
        "filter": filtered and asdict(filtered),
        "pairs": [asdict(pair) for pair in report.pairs],
        "again": [asdict(each) for each in again],
        "dependence": report.dependence and report.dependence.to_json(),
        "panel": panel and panel.to_json(),
        "notes": list(report.notes),
    }


def annotators_page(
    report: AnnotatorReport,
    *,
    name: str,
    cost: float = 1.0,
    top: int = 100,
    panel: Panel | None = None,
    filtered: Filtered | None = None,
    first: Sequence[Section] = (),
) -> Page:
    """The page of a report: who is reliable, agreement, dependence, what to judge again, matrices.

    Args:
        report: what is shown.
        name: of the table.
        cost: of a judgement.
        top: how many items to judge again are listed.
        panel: what annotators make together with gold rows.
        filtered: who stays and who was dropped, where somebody asked.
        first: sections that stand before all others.
    """
    pairs = [pair for pair in report.pairs if pair.kappa == pair.kappa]
    pairs.sort(key=lambda pair: pair.kappa)
    records = [asdict(pair) for pair in pairs[:MOST_PAIRS]]
    columns = [("first", "first"), ("second", "second"), ("items", "items", ","), ("equal", "share", ".0%")]
    between = Table.of(records, [*columns, ("kappa", "kappa", ".2f")], caption="Least agreement first")
    again = again_table(report, cost)
    dependence = report.dependence if panel is None else panel.dependence
    together = [] if dependence is None else [dependence_table(dependence), closest_table(dependence)]
    together = [table for table in together if table.rows]
    combined = [] if panel is None else [panel_table(panel), judges_table(panel)]
    bad = [each for each in report.annotators if {"unreliable", "noisier than most"} & _words(each)]
    matrices = [_matrix(each, report) for each in report.annotators[:MOST_MATRICES] if each.noise]
    sections = [
        *first,
        Section("Annotators", [annotator_table(report, "The least reliable first"), *report.notes]),
        Section("Wrong pairs of each", [pair_noise_table(report, filtered)] if report.pair_noise else []),
        Section("Constant or fast answers", [odd_table(report)] if report.odd else []),
        Section("Agreement", [agreement_table(report)]),
        Section("Do they err together?", together),
        Section("Grades from all of them", combined),
        Section("What to judge again", [*([again] if again.rows else []), items_table(report, top)]),
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
    return sections_page(f"Annotators: {name}", sections, figures=figures)


def write_annotators_page(path: str | os.PathLike[str], report: AnnotatorReport, **options: Any) -> Path:
    """Writes the page of a report; ``options`` are those of ``annotators_page``."""
    return write_page(path, annotators_page(report, **options))


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
