"""The pages of a diagnosis, a plan and the demo, and their tables and pictures, from plain values alone.

``values`` is what ``to_dict`` of a Diagnosis, a Plan or a Demo gives; templates hold the words.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cleanrank.report.charts import chart
from cleanrank.report.pages import write_page
from cleanrank.report.panels import Panel, Point
from cleanrank.report.table import Cell, Line, Table, number

Values = Mapping[str, Any]
REPEATED = {
    "within": "identical rows in a query",
    "blank": "rows of zeros in a query",
    "across": "identical rows across queries",
    "doc_ids": "document ids twice in a query",
}
OWN = "these data"
INK = -1  # one's own data stand out: full ink, and others in colours


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
        grades=grades_table(values),
        curves=curves_table(values, rates),
        repeats=repeats_table(values),
        examples=_examples(values),
        merges=merges_table(values),
        missing=[f"{name} ({n:,})" for name, n in values["columns"]["missing_columns"].items()],
    )


def write_plan(values: Values, path: str | os.PathLike[str]) -> Path:
    """Writes the page of a plan; the same values give the same bytes."""
    return write_page(
        path,
        "plan.html",
        "Which labels to buy",
        drawn=plan_charts(values),
        plan=values,
        best=next((o for o in values["options"] if o["name"] == values["recommended"]), None),
        options=options_table(values).without("Of best"),
        changes=changes_table(values["changes"], "If", "One thing otherwise"),
        by_error=changes_table(values["by_error"], "Error per step", "Along the judges' error rate"),
        scales=sorted({o["grades"]: o["scale"] for o in values["options"] if o["grades"]}.items()),
    )


def write_demo(values: Values, path: str | os.PathLike[str]) -> Path:
    """Writes the page of a demo; the same values give the same bytes."""
    means = {s["name"]: s["mean"] for s in values["systems"]}
    systems = [
        {
            **s,
            "interval": None
            if s["low"] is None
            else f"{s['low']:+.4f} to {s['high']:+.4f}".replace("-", "−"),
        }
        for s in values["systems"]
    ]
    return write_page(
        path,
        "demo.html",
        "Label noise, from finding it to surviving it",
        drawn=demo_charts(values),
        demo=values,
        systems=systems,
        lost=means[values["ceiling"]] - means[values["baseline"]],
        wrong=["wrong" if w["given"] != w["truth"] else "" for w in values["worst"]],
    )


def grades_table(values: Values) -> Table:
    """How the grades are spread."""
    grades = values["grades"]
    keys = ("documents", "shares", "query_shares", "queries")
    every = zip(*(grades[k] for k in keys), strict=True)
    rows: list[Line] = [
        [str(g), number(n, ",.0f"), number(s, ".1%"), number(m, ".1%"), number(q, ",.0f")]
        for g, (n, s, m, q) in enumerate(every)
    ]
    head = ["Grade", "Documents", "Share", "Mean share in a query", "Queries with it"]
    return Table(head, rows, caption="Grades")


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
    def some(numbers: Sequence[int]) -> str:
        return ", ".join(str(n) for n in numbers[:12]) + (", …" if len(numbers) > 12 else "")

    rows = [
        [name, ", ".join(e["queries"][:4]), some(e["rows"]), some(e["grades"])]
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
    records = [{**m, "split": " : ".join(f"{100 * s:.3g}" for s in m["shares"])} for m in values["merges"]]
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


def diagnosis_charts(values: Values) -> list[dict[str, Any]]:
    """Curves, curves of published sets, shares of grades, lengths."""
    grades, lengths = values["grades"], values["lengths"]
    names = tuple(str(g) for g in range(len(grades["shares"])))
    shares = tuple(
        Point(g, "share", s, text=f"{s:.1%}") for g, s in zip(names, grades["shares"], strict=True)
    )
    edges = tuple(float(e) for e in lengths["edges"])
    bins = tuple(
        Point("", low, n, text=f"{low:g}" if high - low <= 1 else f"{low:g} to {high - 1:g}")
        for low, high, n in zip(edges, edges[1:], lengths["queries"], strict=False)
    )
    q = lengths["quantiles"]
    said = f"Documents per query: {q['0']:g} to {q['100']:g}, half of the queries have at most {q['50']:g}."
    bars = Panel("bars", "", "share", "Documents by grade", "", names, ("share",), shares, series="Grade",
                 x_form=".0%", colours=(1,) * len(names))  # fmt: skip
    histogram = Panel("histogram", "", "queries", "Queries by length", "documents per query", ("",), edges,
                      bins, description=said)  # fmt: skip
    made = [chart(bars, "grade-shares"), chart(histogram, "lengths")]
    if not values["curves"]:
        return made
    first = values["curves"][0]
    own = {"dataset": OWN, "pnoise": first["overall"]}
    by_kind = {c["profile"]: c["pnoise"] for c in values["curves"]}
    by_set = {k["dataset"]: k["pnoise"] for k in (own, *values["known"])}
    title = f"Beside published data sets ({first['profile']} errors, overall shares)"
    return [
        chart(_pnoise(first, by_kind, "pNoise of these data, by kind of error", "Errors"), "curves"),
        chart(_pnoise(first, by_set, title, "Data set"), "known"),
        *made,
    ]


def _pnoise(first: Values, lines: Mapping[str, Sequence[float | None]], title: str, series: str) -> Panel:
    """Lines over the error rate, the turning point as a rule."""
    points = tuple(
        Point(name, rate, value)
        for name, values in lines.items()
        for rate, value in zip(first["rates"], values, strict=True)
        if value is not None
    )
    own = OWN in lines
    return Panel(
        "traces", "", "pNoise", title, "label error rate", tuple(lines), tuple(first["rates"]), points,
        rules=((first["limits"]["at"], "turning point"),), series=series, x_form=".0%", y_domain=(0, 0.5),
        colours=(INK, *(1 + i % 7 for i in range(len(lines) - 1))) if own else (),
    )  # fmt: skip


def plan_charts(values: Values) -> list[dict[str, Any]]:
    """What every way is worth, and how its wrong pairs come about."""
    options = [o for o in values["options"] if not o["problem"]]
    if not options:
        return []
    names = tuple(o["name"] for o in options)
    worth = tuple(
        Point(o["name"], "", o["effective_pairs"], text=f"{o['effective_pairs']:,.0f}") for o in options
    )
    parts = {"floor of a perfect judge": "floor", "added by errors": "excess"}
    wrong = tuple(
        Point(o["name"], part, max(0.0, o[key]), text=f"{o[key]:.3f}")
        for o in options
        for part, key in parts.items()
    )
    return [
        chart(
            Panel(
                "bars", "", "effective pairs", "What each way is worth", "effective pairs", names, ("",),
                worth, series="Way", x_form="~s",
                colours=tuple(3 if n == values["recommended"] else 1 for n in names),
            ),
            "worth",
        ),
        chart(
            Panel(
                "bars", "", "pNoise", "Where wrong pairs come from", "pNoise", names, tuple(parts), wrong,
                series="Way", colours=(0, 2),
            ),
            "wrong",
        ),
    ]  # fmt: skip


def demo_charts(values: Values) -> list[dict[str, Any]]:
    """The quality of rankers, precision over recall of detectors, doubt against the truth."""
    systems, detectors = values["systems"], values["detectors"]
    ends = (values["baseline"], values["ceiling"])
    means = tuple(
        Point(s["name"], "", s["mean"], s["mean_low"], s["mean_high"], text=f"{s['mean']:.4f}")
        for s in systems
    )
    quality = Panel(
        "dots", "", "NDCG@10", "NDCG@10 on clean test labels, with 95 % intervals over queries", "NDCG@10",
        tuple(s["name"] for s in systems), ("",), means, series="Trained on",
        colours=tuple(0 if s["name"] in ends else 1 for s in systems),
    )  # fmt: skip
    lines = tuple(
        Point(d["name"], recall, precision)
        for d in detectors
        for recall, precision in zip(d["curve"]["recall"], d["curve"]["precision"], strict=True)
    )
    said = "Precision over recall. " + " ".join(
        f"{d['name']}: average precision {d['average_precision']:.2f}." for d in detectors
    )
    finding = Panel(
        "traces", "", "share of them that are wrong", "Finding wrong labels: precision over recall",
        "share of the wrong labels found", tuple(d["name"] for d in detectors),
        tuple(sorted({p.x for p in lines})), (), lines=lines, x_form=".0%", y_form=".0%", x_domain=(0, 1),
        y_domain=(0, 1), description=said,
    )  # fmt: skip
    name, ideal = detectors[0]["name"], "doubt = share wrong"
    bins = tuple(Point(name, b["said"], b["wrong"], text=f"{b['wrong']:.1%} of {b['rows']:,}")
                 for b in values["reliability"] if b["rows"])  # fmt: skip
    diagonal = (Point(ideal, 0.0, 0.0), Point(ideal, 1.0, 1.0))
    said = "Share of wrong labels by doubt. " + " ".join(f"Doubt {p.x:.0%}: {p.text} rows." for p in bins)
    reliability = Panel(
        "traces", "", "share that is wrong", f"Doubt against the truth ({name})", "doubt", (name, ideal),
        tuple(sorted({p.x for p in (*bins, *diagonal)})), bins, lines=(*bins, *diagonal), series="Detector",
        x_form=".0%", y_form=".0%", x_domain=(0, 1), y_domain=(0, 1), colours=(1, 0), description=said,
    )  # fmt: skip
    return [
        chart(quality, "quality", wide=True),
        chart(finding, "finding"),
        chart(reliability, "reliability"),
    ]
