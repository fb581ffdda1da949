"""The pages of a diagnosis, a plan and the demo and their texts for the terminal, from plain values alone.

``values`` is what ``to_dict`` of a Diagnosis, a Plan or a Demo gives; templates hold the words.
"""

import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cleanrank.report.article_charts import OWN, demo_charts, diagnosis_charts, plan_charts
from cleanrank.report.pages import write_page
from cleanrank.report.table import Cell, Line, Table, number, templates

Values = Mapping[str, Any]
REPEATED = {
    "within": "identical rows in a query",
    "blank": "rows of zeros in a query",
    "across": "identical rows across queries",
    "doc_ids": "document ids twice in a query",
}
SHOWN_RATES = (0.05, 0.1, 0.2, 0.3, 0.5)
WIDTH, BAR, BLOCKS = 100, 24, "▁▂▃▄▅▆▇█"  # of texts


def diagnosis_text(values: Values) -> str:
    """A diagnosis as text."""
    rates = values["curves"][0]["rates"] if values["curves"] else []
    shown = [r for r in SHOWN_RATES if r in rates] or rates
    return _text(
        "diagnosis.txt", d=values, known=known_table(values, shown), **_diagnosis(values, shown, bars=True)
    )


def write_diagnosis(values: Values, path: str | os.PathLike[str]) -> Path:
    """Writes the page of a diagnosis; the same values give the same bytes."""
    title = f"Diagnosis of {values['name']}" if values["name"] else "Diagnosis"
    rates = values["curves"][0]["rates"] if values["curves"] else []
    return write_page(
        path,
        "diagnosis.html",
        title,
        drawn=diagnosis_charts(values),
        d=values,
        examples=_examples(values),
        merges=merges_table(values),
        missing=[f"{name} ({n:,})" for name, n in values["columns"]["missing_columns"].items()],
        **_diagnosis(values, rates),
    )


def _diagnosis(values: Values, rates: Sequence[float], *, bars: bool = False) -> dict[str, Table]:
    return {
        "grades": grades_table(values, bars=bars),
        "curves": curves_table(values, rates, differing=bars),
        "repeats": repeats_table(values),
    }


def plan_text(values: Values) -> str:
    """A plan as text."""
    return _text("plan.txt", plan=values, **_plan(values))


def write_plan(values: Values, path: str | os.PathLike[str]) -> Path:
    """Writes the page of a plan; the same values give the same bytes."""
    return write_page(
        path,
        "plan.html",
        "Which labels to buy",
        drawn=plan_charts(values),
        plan=values,
        best=next((o for o in values["options"] if o["name"] == values["recommended"]), None),
        scales=sorted({o["grades"]: o["scale"] for o in values["options"] if o["grades"]}.items()),
        **_plan(values),
    )


def _plan(values: Values) -> dict[str, Table]:
    return {
        "options": options_table(values),
        "changes": changes_table(values["changes"], "If", "One thing otherwise"),
        "by_error": changes_table(values["by_error"], "Error per step", "Along the judges' error rate"),
    }


def write_demo(values: Values, path: str | os.PathLike[str]) -> Path:
    """Writes the page of a demo; the same values give the same bytes."""
    means = {s["name"]: s["mean"] for s in values["systems"]}
    return write_page(
        path,
        "demo.html",
        "Label noise, from finding it to surviving it",
        drawn=demo_charts(values),
        demo=values,
        lost=means[values["ceiling"]] - means[values["baseline"]],
        wrong=["wrong" if w["given"] != w["truth"] else "" for w in values["worst"]],
    )


def _text(template: str, **values: Any) -> str:
    text = templates(escaped=False).get_template(template)
    return text.render(values, item=item, some=some, spark=spark).rstrip("\n")


def item(text: str, mark: str = "-") -> str:
    """A paragraph of a list, for a terminal."""
    return textwrap.fill(text, WIDTH, initial_indent=f"{mark} ", subsequent_indent="  ")


def some(values: Sequence[object], most: int = 8) -> str:
    """The first of many.

    >>> some([3, 1, 2], 2)
    '3, 1, ...'
    """
    return ", ".join(str(v) for v in values[:most]) + (", ..." if len(values) > most else "")


def split(shares: Sequence[float]) -> str:
    """Shares in percent.

    >>> split([0.517, 0.483])
    '51.7 : 48.3'
    """
    return " : ".join(f"{100 * s:.3g}" for s in shares)


def spark(values: Sequence[float]) -> str:
    """A histogram of one line.

    >>> spark([0, 1, 4, 8])
    ' ▁▄█'
    """
    most = max(values, default=0) or 1
    return "".join(" " if not v else BLOCKS[max(0, round(len(BLOCKS) * v / most) - 1)] for v in values)


def grades_table(values: Values, *, bars: bool = False) -> Table:
    """How the grades are spread, with bars for a terminal."""
    grades = values["grades"]
    keys = ("documents", "shares", "query_shares", "queries")
    columns = list(zip(*(grades[k] for k in keys), strict=True))
    rows: list[Line] = [
        [str(g), number(n, ",.0f"), number(s, ".1%"), number(m, ".1%"), number(q, ",.0f")]
        for g, (n, s, m, q) in enumerate(columns)
    ]
    head = ["Grade", "Documents", "Share", "Mean share in a query", "Queries with it"]
    if not bars:
        return Table(head, rows, caption="Grades")
    most = max(grades["shares"])
    for row, (n, s, _, _) in zip(rows, columns, strict=True):
        row.append("█" * max(round(BAR * s / most), 1 if n else 0))
    return Table([*head, ""], rows, align="lrrrrl")


def known_table(values: Values, rates: Sequence[float]) -> Table | None:
    """The pNoise of published data sets beside that of these data, the most robust first."""
    if not values["curves"]:
        return None
    first = values["curves"][0]
    own = {"dataset": OWN, "shares": values["grades"]["shares"], "pnoise": first["overall"]}
    places = [first["rates"].index(r) for r in rates]
    rows: list[Line] = [
        [
            k["dataset"],
            " : ".join(f"{100 * s:.3g}" for s in k["shares"]),
            *(f"{k['pnoise'][i]:.3f}" for i in places),
        ]
        for k in (own, *values["known"])
    ]
    head = [f"pNoise, {first['profile']}, overall shares", "Shares in %", *(f"{r:.0%}" for r in rates)]
    return Table(head, sorted(rows, key=lambda row: float(str(row[2]))), headed=2)


def curves_table(values: Values, rates: Sequence[float], *, differing: bool = False) -> Table:
    """The pNoise and what follows from it at some rates, by kind of error.

    ``differing`` leaves the overall shares out where they give the same figures.
    """
    curves = values["curves"]
    same = all(abs(a - b) < 0.001 for c in curves for a, b in zip(c["pnoise"], c["overall"], strict=True))
    figures = {
        "pnoise": ("pNoise", ".3f"),
        "overall": ("by overall shares", ".3f"),
        "worst_tenth": ("worst tenth of queries", ".3f"),
        "signal_left": ("AUC signal left", ".0%"),
    }
    if differing and same:
        del figures["overall"]
    rows: list[Line] = []
    for curve in curves:
        places = [curve["rates"].index(r) for r in rates]
        for key, (name, form) in figures.items():
            first = key == "pnoise"
            knee = number(curve["limits"]["turning_point"], ".1%", absent="never") if first else ""
            kind = Cell(curve["profile"] if first else "", curve["profile"])
            rows.append([kind, name, *(number(curve[key][i], form) for i in places), knee])
    head = ["Errors", "Label error rate", *(f"{r:.0%}" for r in rates), "Knee"]
    explained = {
        "Errors": "family of the noise",
        "Label error rate": "pNoise over the real queries and from overall shares alone; the worst tenth is "
        "what a tenth of the queries with two grades reach",
        "Knee": "the error rate at which pNoise reaches the turning point",
    }
    return Table(head, rows, caption="pNoise by error rate", headed=2, explained=explained)


def repeats_table(values: Values) -> Table:
    """Rows that repeat one another, by kind."""
    kinds = {name: values["duplicates"][key] for key, name in REPEATED.items()}
    columns = [
        ("Repeated", "name"),
        ("Groups", "groups", ",.0f"),
        ("Rows", "rows", ",.0f"),
        ("Contradicting", "contradicting_groups", ",.0f", "groups with more than one grade"),
        ("Rows in them", "contradicting_rows", ",.0f"),
        ("Least wrong", "least_wrong", ",.0f", "the fewest labels to change until all groups agree"),
    ]
    records = [{"name": name, **kind} for name, kind in kinds.items() if kind and kind["groups"]]
    return Table.of(records, columns, caption="Rows that repeat one another")


def _examples(values: Values) -> Table:
    rows = [
        [name, ", ".join(e["queries"][:4]), some(e["rows"], 12), some(e["grades"], 12)]
        for key, name in REPEATED.items()
        if key != "across" and values["duplicates"][key]
        for e in values["duplicates"][key]["examples"]
    ]
    head = ["Repeated", "Query", "Rows (from 0)", "Grades"]
    return Table(head, rows, caption="Contradicting groups, largest first", align="llll")


def merges_table(values: Values) -> Table | None:
    """The pNoise of coarser scales."""
    if not values["merges"]:
        return None
    records = [{**m, "split": split(m["shares"])} for m in values["merges"]]
    columns = [
        ("Scale", "name", "", "grades that go together"),
        ("Shares", "split"),
        ("Asked anew", "asked_anew", ".3f", "pNoise when judges err at the same rate on this scale"),
        ("Merged", "merged", ".3f", "pNoise when the labels at hand are merged"),
        ("Pairs kept", "pairs_kept", ".0%", "pairs of different grades, of those on the full scale"),
    ]
    first = values["curves"][0]
    full = first["pnoise"][first["rates"].index(values["rate"])]
    caption = f"pNoise of coarser scales at an error rate of {values['rate']:.0%}; all grades: {full:.3f}"
    return Table.of(records, columns, caption=caption)


def options_table(values: Values) -> Table:
    """All ways to buy labels, the best first."""
    best = max(
        (o["effective_pairs"] for o in values["options"] if o["name"] == values["recommended"]), default=0
    )
    records = [
        {
            **o,
            "of_best": o["effective_pairs"] / best if best and not o["problem"] else None,
            "remark": "recommended" if o["name"] == values["recommended"] else o["problem"],
        }
        for o in values["options"]
    ]
    columns = [
        ("Way to judge", "name"),
        ("Judgements", "judgements", ",.0f", "per query"),
        ("Cost", "query_cost", ",.2f", "per query"),
        ("Queries", "queries", ",.0f", "that the budget covers"),
        ("Pairs", "pairs", ",.0f", "with different labels, per query"),
        ("pNoise", "pnoise", ".3f", "against the common truth"),
        ("Floor", "floor", ".3f", "pNoise of a judge without error"),
        ("Signal left", "signal_left", ".0%", "1 - 2 pNoise"),
        ("Effective pairs", "effective_pairs", ",.0f", "all pairs x signal left squared"),
        ("Of best", "of_best", ".2f", "effective pairs in relation to the recommended way", ""),
        ("Remark", "remark"),
    ]
    kinds = ["chosen" if r["remark"] == "recommended" else "" for r in records]
    return Table.of(records, columns, caption="Ways to buy labels, the best first", row_kinds=kinds)


def changes_table(changes: Sequence[Values], first: str, caption: str) -> Table:
    """What would be recommended otherwise."""
    records = [{**c, "take": c["recommended"] if c["changed"] else "the same"} for c in changes]
    columns = [
        (first, "what"),
        ("Then take", "take"),
        ("Signal left", "signal_left", ".0%"),
        ("Effective pairs", "effective_pairs", ",.0f"),
    ]
    return Table.of(records, columns, caption=caption)
