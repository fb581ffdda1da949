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
    return write_page(
        path,
        "demo.html",
        "Label noise, from finding it to surviving it",
        drawn=demo_charts(values),
        demo=values,
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
    made = [chart(_grades(values["grades"]), "grade-shares"), chart(_lengths(values["lengths"]), "lengths")]
    if not values["curves"]:
        return made
    first = values["curves"][0]
    by_kind = {c["profile"]: c["pnoise"] for c in values["curves"]}
    by_set = {OWN: first["overall"], **{k["dataset"]: k["pnoise"] for k in values["known"]}}
    title = f"Beside published data sets ({first['profile']} errors, overall shares)"
    curves = _pnoise(first, by_kind, "pNoise of these data, by kind of error", "Errors")
    return [chart(curves, "curves"), chart(_pnoise(first, by_set, title, "Data set"), "known"), *made]


def _grades(grades: Values) -> Panel:
    names = tuple(str(g) for g in range(len(grades["shares"])))
    shares = zip(names, grades["shares"], strict=True)
    points = tuple(Point(g, "share", s, text=f"{s:.1%}") for g, s in shares)
    named: Values = {"title": "Documents by grade", "measure": "share", "series": "Grade"}
    return Panel("bars", names, ("share",), points, **named, x_form=".0%", colours=(1,) * len(names))


def _lengths(lengths: Values) -> Panel:
    edges = tuple(float(e) for e in lengths["edges"])
    bins = tuple(
        Point("", low, n, text=f"{low:g}" if high - low <= 1 else f"{low:g} to {high - 1:g}")
        for low, high, n in zip(edges, edges[1:], lengths["queries"], strict=False)
    )
    q = lengths["quantiles"]
    said = f"Documents per query: {q['0']:g} to {q['100']:g}, half of the queries have at most {q['50']:g}."
    named: Values = {"title": "Queries by length", "measure": "queries", "x_title": "documents per query"}
    return Panel("histogram", ("",), edges, bins, **named, description=said)


def _pnoise(first: Values, lines: Mapping[str, Sequence[float | None]], title: str, series: str) -> Panel:
    """Lines over the error rate, the turning point as a rule."""
    rates = tuple(first["rates"])
    points = tuple(
        Point(name, rate, value)
        for name, along in lines.items()
        for rate, value in zip(rates, along, strict=True)
        if value is not None
    )
    return Panel(
        "traces",
        tuple(lines),
        rates,
        points,
        title=title,
        measure="pNoise",
        x_title="label error rate",
        series=series,
        rules=((first["limits"]["at"], "turning point"),),
        x_form=".0%",
        y_domain=(0, 0.5),
        colours=(INK, *(1 + i % 7 for i in range(len(lines) - 1))) if OWN in lines else (),
    )


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
    recommended = tuple(3 if name == values["recommended"] else 1 for name in names)
    pairs: Values = {"measure": "effective pairs", "x_title": "effective pairs", "colours": recommended}
    noise: Values = {"measure": "pNoise", "x_title": "pNoise", "colours": (0, 2)}
    title = "What each way is worth"
    bars = Panel("bars", names, ("",), worth, title=title, series="Way", x_form="~s", **pairs)
    title = "Where wrong pairs come from"
    stacks = Panel("bars", names, tuple(parts), wrong, title=title, series="Way", **noise)
    return [chart(bars, "worth"), chart(stacks, "wrong")]


def demo_charts(values: Values) -> list[dict[str, Any]]:
    """The quality of rankers, precision over recall of detectors, doubt against the truth."""
    shares: Values = {"x_form": ".0%", "y_form": ".0%", "x_domain": (0, 1), "y_domain": (0, 1)}
    return [
        chart(_quality(values), "quality", wide=True),
        chart(_finding(values["detectors"], shares), "finding"),
        chart(_reliability(values["detectors"][0]["name"], values["reliability"], shares), "reliability"),
    ]


def _quality(values: Values) -> Panel:
    systems, ends = values["systems"], (values["baseline"], values["ceiling"])
    means = tuple(
        Point(s["name"], "", s["mean"], s["mean_low"], s["mean_high"], text=f"{s['mean']:.4f}")
        for s in systems
    )
    names = tuple(s["name"] for s in systems)
    colours = tuple(0 if name in ends else 1 for name in names)
    title = "NDCG@10 on clean test labels, with 95 % intervals over queries"
    named: Values = {"title": title, "measure": "NDCG@10", "x_title": "NDCG@10", "series": "Trained on"}
    return Panel("dots", names, ("",), means, **named, colours=colours)


def _finding(detectors: Sequence[Values], shares: Values) -> Panel:
    lines = tuple(
        Point(d["name"], recall, precision)
        for d in detectors
        for recall, precision in zip(d["curve"]["recall"], d["curve"]["precision"], strict=True)
    )
    precisions = [f"{d['name']}: average precision {d['average_precision']:.2f}." for d in detectors]
    names, xs = tuple(d["name"] for d in detectors), tuple(sorted({p.x for p in lines}))
    return Panel(
        "traces",
        names,
        xs,
        (),
        lines=lines,
        title="Finding wrong labels: precision over recall",
        measure="share of them that are wrong",
        x_title="share of the wrong labels found",
        description=" ".join(["Precision over recall.", *precisions]),
        **shares,
    )


def _reliability(name: str, bins: Sequence[Values], shares: Values) -> Panel:
    points = tuple(
        Point(name, b["said"], b["wrong"], text=f"{b['wrong']:.1%} of {b['rows']:,}")
        for b in bins
        if b["rows"]
    )
    ideal = "doubt = share wrong"
    lines = (*points, Point(ideal, 0.0, 0.0), Point(ideal, 1.0, 1.0))
    said = "Share of wrong labels by doubt. " + " ".join(f"Doubt {p.x:.0%}: {p.text} rows." for p in points)
    xs = tuple(sorted({p.x for p in lines}))
    return Panel(
        "traces",
        (name, ideal),
        xs,
        points,
        lines=lines,
        title=f"Doubt against the truth ({name})",
        measure="share that is wrong",
        x_title="doubt",
        series="Detector",
        colours=(1, 0),
        description=said,
        **shares,
    )
