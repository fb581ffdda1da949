"""Reports on judges as tables, as pictures and as a page."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from cleanrank.judges.against_gold import Coverage
from cleanrank.judges.report import JudgeReport
from cleanrank.judges.system_order import Span, SystemOrder
from cleanrank.report.pages import Page, write_page
from cleanrank.report.panels import Panel, Point
from cleanrank.report.sections import Part, Section, sections_page
from cleanrank.report.table import ABSENT, Cell, Line, Table, number

MOST_LINES = 7  # judges in one picture: more have no colours of their own
MOST_QUERIES = 60
MOST_PICTURES = 4  # of queries, one per judge
SPREAD = 30  # queries at either end where there are more
ALIKE = "no query differs from the others in leniency by more than chance."
AGREEMENT = {
    "share": "equal grades",
    "kappa": "Cohen's kappa",
    "linear": "linear weights",
    "quadratic": "quadratic weights",
    "alpha": "alpha",
}
ANSWERS = {"yes": "yes", "with care": "with care", "no": "no", "not checked": ABSENT}


def span_cell(span: Span, form: str = ".2f") -> Cell:
    """A figure with its interval.

    >>> span_cell(Span(0.5, 0.25, 0.75)).text
    '0.50 [0.25, 0.75]'
    """
    if not np.isfinite(span.value):
        return Cell(ABSENT)
    text = f"{span.value:{form}}"
    if np.isfinite(span.low):
        text += f" [{span.low:{form}}, {span.high:{form}}]"
    return Cell(text.replace("-", "−"), span.value)


def judges_table(reports: Sequence[JudgeReport]) -> Table:
    """Judges side by side: their labels, and what they are good enough for."""
    rows: list[Line] = []
    for report in reports:
        labels, tested = report.labels, report.class_conditional
        rows.append(
            [
                report.name,
                number(report.coverage.common, ","),
                number(labels.agreement["share"].value, ".0%"),
                number(labels.agreement["kappa"].value, ".2f"),
                number(labels.agreement["quadratic"].value, ".2f"),
                span_cell(labels.pnoise),
                span_cell(labels.leniency, "+.2f"),
                number(tested.p_value, ".3f") if tested.checked else ABSENT,
                *(ANSWERS[verdict.answer] for verdict in report.verdicts),
            ]
        )
    head = ["judge", "pairs", "equal", "kappa", "quadratic", "wrong pairs", "leniency", "beyond the grade"]
    head += [f"{verdict.question}?" for verdict in reports[0].verdicts]
    notes = [
        f"Intervals: {reports[0].level:.0%}, over queries. Wrong pairs: pNoise. Leniency: grade given less "
        "gold grade. Beyond the grade: p-value of errors that depend on the true grade alone."
    ]
    return Table(head, rows, align="lrrrrrrrlll", notes=notes)


def verdict_table(report: JudgeReport) -> Table:
    """What the judge is good enough for, with the evidence."""
    rows = [(f"{v.question}?", v.answer, Cell(v.evidence, kind="below")) for v in report.verdicts]
    return Table(("good enough to", "", "evidence"), rows, align="lll", caption=report.name)


def matrix_table(report: JudgeReport) -> Table:
    """P(judge's grade | gold grade) with intervals, and the leniency at every gold grade."""
    labels = report.labels
    grades = range(len(labels.matrix))
    rows: list[Line] = []
    for l in grades:
        cells = [
            span_cell(Span(labels.matrix[l, m], labels.matrix_low[l, m], labels.matrix_high[l, m]))
            for m in grades
        ]
        pairs = number(int(labels.counts[l].sum()), ",")
        rows.append([f"gold {l}", pairs, *cells, span_cell(labels.by_grade[l], "+.2f")])
    rows.append(["mean gold grade", "", *(span_cell(each) for each in labels.by_judge_grade), ""])
    head = ("P(given | gold)", "pairs", *(f"gives {m}" for m in grades), "leniency")
    return Table(head, rows, caption=f"Grades of {report.name}")


def agreement_table(reports: Sequence[JudgeReport]) -> Table:
    """Agreement, plain and corrected for chance."""
    rows: list[Line] = []
    for report in reports:
        labels = report.labels
        cells = [span_cell(labels.agreement[name]) for name in AGREEMENT]
        rows.append([report.name, *cells, span_cell(labels.pnoise), number(labels.query_spread, ".2f")])
    notes = [
        "Weights: kappa by the distance of grades or its square. Alpha: Krippendorff's, for ordered grades. "
        "Wrong pairs: pNoise. Spread: standard deviation of leniency between queries."
    ]
    head = ("judge", *AGREEMENT.values(), "wrong pairs", "spread")
    return Table(head, rows, notes=notes)


def coverage_table(reports: Sequence[JudgeReport]) -> Table:
    """Which pairs are judged by whom."""
    rows: list[Line] = []
    for report in reports:
        n: Coverage = report.coverage
        counts = (n.gold_pairs, n.judge_pairs, n.common, n.gold_queries, n.judge_queries)
        shares = (n.share, n.top_gold, n.top_judge, n.never_on_top)
        rows.append(
            [report.name, *(number(count, ",") for count in counts), *(number(s, ".0%") for s in shares)]
        )
    head = ["judge", "gold pairs", "judge's pairs", "with both", "gold queries", "judge's queries"]
    head += ["judge's with gold", "top 10 with gold", "top 10 judged", "never in a top 10"]
    notes = ["Shares: of the judge's pairs in queries with gold; of systems' first 10; of pairs with both."]
    return Table(head, rows, notes=notes)


def order_table(orders: Mapping[str, SystemOrder], heading: str = "measure") -> Table:
    """Systems under both sets of labels, by measure or (``heading``) by judge."""
    rows: list[Line] = [
        [
            name,
            span_cell(each.bias, "+.3f"),
            number(each.inside, ".0%"),
            span_cell(each.tau),
            span_cell(each.tau_ap),
            number(each.top_tau.value, ".2f"),
            number(each.significant, ","),
            number(each.kept, ","),
            number(each.reversed, ","),
            number(each.wrong, ","),
            number(each.invented, ","),
        ]
        for name, each in orders.items()
    ]
    first = next(iter(orders.values()))
    measure = "" if heading == "measure" else f"By {first.measure}. "
    notes = [
        f"{measure}{len(first.systems)} systems, {first.pairs:,} pairs of them, on documents with both "
        "labels. Bias: judge less gold. Inside: systems whose gold mean lies in the interval of the judge's "
        "labels. tau-AP: gold is the reference. Sure: pairs significant by gold labels (paired t-test, 5 %); "
        "kept: by the judge's too; turned: in the other order; wrong: significantly so; invented: "
        "significant by the judge's labels only."
    ]
    head = (heading, "bias", "inside", "tau", "tau-AP", "top-10 tau")
    return Table((*head, "sure", "kept", "turned", "wrong", "invented"), rows, notes=notes)


def systems_tables(reports: Sequence[JudgeReport]) -> list[Table]:
    """Systems under one judge by all measures, or under several by the first; none without systems."""
    ordered = [report for report in reports if report.orders]
    if not ordered:
        return []
    if len(ordered) == 1:
        return [order_table({order.measure: order for order in ordered[0].orders})]
    return [order_table({report.name: report.orders[0] for report in ordered}, "judge")]


def swaps_table(report: JudgeReport) -> Table:
    """Pairs of systems that the judge turns round against sure gold labels, by the first measure."""
    order = report.orders[0]
    records = [vars(swap) for swap in order.swaps]
    columns = [("better by gold", "better"), ("worse by gold", "worse"), ("gold", "gold", "+.4f")]
    columns += [("judge", "judge", "+.4f"), ("p, gold", "gold_p", ".3g"), ("p, judge", "judge_p", ".3g")]
    return Table.of(records, columns, caption=f"Orders that {report.name} turns round, {order.measure}")


def query_table(report: JudgeReport) -> Table:
    """Leniency query by query, the most lenient first."""
    records = [
        {**vars(each), "span": f"[{each.low:+.2f}, {each.high:+.2f}]"} for each in report.labels.by_query
    ]
    columns = [("query", "query"), ("pairs", "pairs", ","), ("judge less gold", "difference", "+.2f")]
    columns += [("leniency", "leniency", "+.2f"), ("interval", "span")]
    notes = ["Leniency: beside documents of the same gold grade in other queries, shrunk towards 0."]
    return Table.of(records, columns, caption=f"Queries of {report.name}", notes=notes)


def reliability_panel(reports: Sequence[JudgeReport]) -> Panel:
    """The mean gold grade of what a judge grades 0, 1, 2, ...: on the line where grades mean the same."""
    shown, ideal = reports[:MOST_LINES], "gold = judge"
    points = [
        Point(report.name, float(g), span.value, *_ends(span))
        for report in shown
        for g, span in enumerate(report.labels.by_judge_grade)
        if np.isfinite(span.value)
    ]
    top = float(max(len(report.labels.matrix) for report in shown) - 1)
    line = (Point(ideal, 0.0, 0.0), Point(ideal, top, top))
    words = [f"{p.method} {p.x:g}: gold {p.mean:.2f}" for p in points]
    return Panel(
        "traces",
        (*(report.name for report in shown), ideal),
        tuple(sorted({p.x for p in (*points, *line)}, key=float)),
        (*points, *line),
        title="What a grade is worth: mean gold grade by the judge's grade",
        measure="mean gold grade",
        x_title="grade of the judge",
        series="Judge",
        colours=(*range(1, len(shown) + 1), 0),
        y_domain=(0.0, top),
        x_form="d",
        description=f"Mean gold grade by the judge's grade. {'; '.join(words)}.",
    )


def order_panel(reports: Sequence[JudgeReport]) -> Panel:
    """Means of systems by the judge's labels against those by gold labels."""
    shown, ideal = [report for report in reports if report.orders][:MOST_LINES], "gold = judge"
    points = [
        Point(report.name, float(gold), float(judge))
        for report in shown
        for gold, judge in zip(report.orders[0].gold, report.orders[0].judge, strict=True)
    ]
    every = [float(v) for p in points for v in (p.x, p.mean)]
    margin = 0.04 * (max(every) - min(every)) or 0.01
    low, high = min(every) - margin, max(every) + margin
    line = (Point(ideal, low, low), Point(ideal, high, high))
    measure = shown[0].orders[0].measure
    words = [f"{report.name}: tau {report.orders[0].tau}, bias {report.orders[0].bias}" for report in shown]
    return Panel(
        "traces",
        (*(report.name for report in shown), ideal),
        tuple(sorted({p.x for p in (*points, *line)}, key=float)),
        tuple(points),
        lines=line,
        title=f"Systems by gold labels and by the judge's, {measure}",
        measure="by the judge's labels",
        x_title="by gold labels",
        series="Judge",
        colours=(*range(1, len(shown) + 1), 0),
        x_domain=(low, high),
        y_domain=(low, high),
        description=f"Means of systems, {measure}. {'; '.join(words)}.",
    )


def query_panel(report: JudgeReport) -> Panel:
    """Leniency of every query with its interval, the most lenient on top; of many, both ends."""
    queries = report.labels.by_query
    if len(queries) > MOST_QUERIES:
        queries = (*queries[:SPREAD], *queries[-SPREAD:])
    points = tuple(Point(each.query, "", each.leniency, each.low, each.high) for each in queries)
    ends = f"{queries[0].query} {queries[0].leniency:+.2f} to {queries[-1].query} {queries[-1].leniency:+.2f}"
    part = "" if queries is report.labels.by_query else f" ({SPREAD} at either end)"
    return Panel(
        "dots",
        tuple(p.method for p in points),
        ("",),
        points,
        title=f"Leniency by query{part}, {report.name}",
        measure="leniency in grades",
        x_title="grades more than elsewhere for the same gold grade",
        series="Query",
        rules=((0.0, ""),),
        colours=(1,) * len(points),
        description=f"Leniency by query, from {ends}.",
    )


def judges_page(reports: Sequence[JudgeReport], *, name: str) -> Page:
    """The page of reports: verdicts, how judges grade, systems, queries, coverage."""
    ordered = [report for report in reports if report.orders]
    systems: list[Part] = [order_panel(ordered)] if ordered else []
    systems += systems_tables(reports)
    systems += [swaps_table(report) for report in ordered if report.orders[0].swaps]
    queries: list[Part] = [
        query_panel(report) if report.labels.query_spread else f"{report.name}: {ALIKE}"
        for report in reports[:MOST_PICTURES]
    ]
    queries += [query_table(report) for report in reports[:1] if len(reports) == 1]
    verdicts = [verdict_table(report) for report in reports]
    limits = [f"{report.name}: {limit}" for report in reports for limit in report.limits]
    tests = [f"{report.name}: {report.class_conditional.words}" for report in reports]
    sections = [
        Section("Judges", [judges_table(reports)]),
        Section("What they are good enough for", [*verdicts, *limits]),
        Section("How they grade", [reliability_panel(reports), *(matrix_table(r) for r in reports)]),
        Section("Do errors depend on more than the grade?", tests),
        Section("Agreement", [agreement_table(reports)]),
        Section("Systems", systems),
        Section("Queries", queries),
        Section("Coverage", [coverage_table(reports)]),
    ]
    first = reports[0]
    figures = [(f"{len(reports):,}", "judges")] if len(reports) > 1 else []
    figures += [
        (f"{first.coverage.common:,}", f"pairs with gold labels and grades of {first.name}"),
        (f"{first.coverage.common_queries:,}", "queries"),
    ]
    if first.orders:
        figures.append((f"{len(first.orders[0].systems):,}", "systems"))
    lede = f"Intervals: {first.level:.0%}, over queries, seed {first.seed}."
    return sections_page(f"Judges: {name}", sections, lede=lede, figures=figures)


def write_judges_page(path: str | os.PathLike[str], reports: Sequence[JudgeReport], *, name: str) -> Path:
    """Writes the page of reports."""
    return write_page(path, judges_page(reports, name=name))


def _ends(span: Span) -> tuple[float | None, float | None]:
    return (span.low, span.high) if np.isfinite(span.low) else (None, None)
