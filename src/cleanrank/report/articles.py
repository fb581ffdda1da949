"""The pages of a diagnosis, a plan and the demo and their texts for the terminal, from plain values alone.

``values`` is what ``to_dict`` of a Diagnosis, a Plan or a Demo gives. Templates hold words and columns,
assets/pictures.json the titles and axes of pictures; here are the figures that both show.
"""

import json
import os
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cleanrank.report.charts import asset
from cleanrank.report.images import NARROW, WIDE, inline_picture
from cleanrank.report.pages import Page, write_page
from cleanrank.report.panels import Panel, Point
from cleanrank.report.table import Cell, Line, Table, number, shares, templates

Values = Mapping[str, Any]
PICTURES: Values = json.loads(asset("pictures.json"))
REPEATED = {
    "within": "identical rows in a query",
    "blank": "rows of zeros in a query",
    "across": "identical rows across queries",
    "doc_ids": "document ids twice in a query",
}
OWN = "these data"
INK = -1  # one's own data stand out: full ink, and others in colours
SHOWN_RATES = (0.05, 0.1, 0.2, 0.3, 0.5)
WIDTH, BAR, BLOCKS = 100, 24, "▁▂▃▄▅▆▇█"  # of texts


def diagnosis_text(values: Values) -> str:
    """A diagnosis as text."""
    rates = values["curves"][0]["rates"] if values["curves"] else []
    rates = [r for r in SHOWN_RATES if r in rates] or rates
    curves = _curves_table(values, rates, differing=True)
    return _text("diagnosis.txt", d=values, curves=curves, known=_known(values, rates), **_records(values))


def diagnosis_page(values: Values) -> Page:
    """The page of a diagnosis."""
    rates = values["curves"][0]["rates"] if values["curves"] else []
    examples = [
        {"name": name, "queries": ", ".join(e["queries"][:4])}
        | {key: some(e[key], 12) for key in ("rows", "grades")}
        for kind, name in REPEATED.items()
        if kind != "across" and values["duplicates"][kind]
        for e in values["duplicates"][kind]["examples"]
    ]
    title = f"Diagnosis of {values['name']}" if values["name"] else "Diagnosis"
    shown = {
        "charts": _drawn(diagnosis_panels(values)),
        "d": values,
        "examples": examples,
        "merges": [{**m, "split": shares(m["shares"])} for m in values["merges"]],
        "missing": [f"{name} ({n:,})" for name, n in values["columns"]["missing_columns"].items()],
        "curves": _curves_table(values, rates),
        **_records(values),
    }
    return Page("diagnosis.html", title, shown)


def write_diagnosis(values: Values, path: str | os.PathLike[str]) -> Path:
    """Writes the page of a diagnosis; the same values give the same bytes."""
    return write_page(path, diagnosis_page(values))


def _records(values: Values) -> dict[str, Any]:
    """The rows of the tables of grades, with bars for a terminal, and of repeated rows."""
    keys = ("documents", "shares", "query_shares", "queries")
    columns = zip(*(values["grades"][key] for key in keys), strict=True)
    grades = [{"grade": g, **dict(zip(keys, column, strict=True))} for g, column in enumerate(columns)]
    most = max(values["grades"]["shares"])
    for row in grades:
        row["bar"] = "█" * max(round(BAR * row["shares"] / most), 1 if row["documents"] else 0)
    kinds = {name: values["duplicates"][key] for key, name in REPEATED.items()}
    repeats = [{"name": name, **kind} for name, kind in kinds.items() if kind and kind["groups"]]
    return {"grades": grades, "repeats": repeats}


def plan_text(values: Values) -> str:
    """A plan as text."""
    return _text("plan.txt", plan=values, **_ways(values))


def write_plan(values: Values, path: str | os.PathLike[str]) -> Path:
    """Writes the page of a plan; the same values give the same bytes."""
    shown = {
        "charts": _drawn(plan_panels(values)),
        "plan": values,
        "kinds": ["chosen" if o["name"] == values["recommended"] else "" for o in values["options"]],
        "best": next((o for o in values["options"] if o["name"] == values["recommended"]), None),
        "scales": sorted({o["grades"]: o["scale"] for o in values["options"] if o["grades"]}.items()),
        **_ways(values),
    }
    return write_page(path, Page("plan.html", "Which labels to buy", shown))


def _ways(values: Values) -> dict[str, Any]:
    """The rows of the tables of all ways to buy labels and of what would change the recommendation."""
    name = values["recommended"]
    best = max((o["effective_pairs"] for o in values["options"] if o["name"] == name), default=0)
    options = [
        {
            **o,
            "of_best": o["effective_pairs"] / best if best and not o["problem"] else None,
            "remark": "recommended" if o["name"] == name else o["problem"],
        }
        for o in values["options"]
    ]
    changes = {
        key: [{**c, "take": c["recommended"] if c["changed"] else "the same"} for c in values[key]]
        for key in ("changes", "by_error")
    }
    return {"options": options, **changes}


def write_demo(values: Values, path: str | os.PathLike[str]) -> Path:
    """Writes the page of a demo; the same values give the same bytes."""
    means = {s["name"]: s["mean"] for s in values["systems"]}
    shown = {
        "charts": _drawn(_demo_panels(values)),
        "demo": values,
        "lost": means[values["ceiling"]] - means[values["baseline"]],
        "wrong": ["wrong" if w["given"] != w["truth"] else "" for w in values["worst"]],
    }
    return write_page(path, Page("demo.html", "Label noise, from finding it to surviving it", shown))


def _text(template: str, **values: Any) -> str:
    text = templates(escaped=False).get_template(template)
    return text.render(values, item=_list_item, some=some, spark=spark).rstrip("\n")


def _list_item(text: str, mark: str = "-") -> str:
    """A paragraph of a list, for a terminal."""
    return textwrap.fill(text, WIDTH, initial_indent=f"{mark} ", subsequent_indent="  ")


def some(values: Sequence[object], most: int = 8) -> str:
    """The first of many.

    >>> some([3, 1, 2], 2)
    '3, 1, ...'
    """
    return ", ".join(str(v) for v in values[:most]) + (", ..." if len(values) > most else "")


def spark(values: Sequence[float]) -> str:
    """A histogram of one line.

    >>> spark([0, 1, 4, 8])
    ' ▁▄█'
    """
    most = max(values, default=0) or 1
    return "".join(" " if not v else BLOCKS[max(0, round(len(BLOCKS) * v / most) - 1)] for v in values)


def _known(values: Values, rates: Sequence[float]) -> Table | None:
    """The pNoise of published data sets beside that of these data, the most robust first."""
    if not values["curves"]:
        return None
    first = values["curves"][0]
    own = {"dataset": OWN, "shares": values["grades"]["shares"], "pnoise": first["overall"]}
    places = [first["rates"].index(r) for r in rates]
    rows: list[Line] = [
        [k["dataset"], shares(k["shares"]), *(f"{k['pnoise'][i]:.3f}" for i in places)]
        for k in (own, *values["known"])
    ]
    head = [f"pNoise, {first['profile']}, overall shares", "Shares in %", *(f"{r:.0%}" for r in rates)]
    return Table(head, sorted(rows, key=lambda row: float(str(row[2]))), headed=2)


def _curves_table(values: Values, rates: Sequence[float], *, differing: bool = False) -> Table:
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
        "Knee": "the error rate at which most of AUC's signal is gone",
    }
    return Table(head, rows, caption="pNoise by error rate", headed=2, explained=explained)


def _panel(
    name: str, methods: Sequence[str], xs: Sequence[Any], points: Sequence[Point], **options: Any
) -> dict[str, Panel]:
    """A picture whose title and axes assets/pictures.json holds, by its name."""
    options = {**PICTURES[name], **options}
    return {name: Panel(methods=tuple(methods), xs=tuple(xs), points=tuple(points), **options)}


def _drawn(panels: Mapping[str, Panel]) -> list[dict[str, Any]]:
    """Pictures side by side, but for that of the rankers' quality, which has a line for itself."""
    wide = {name: name == "quality" for name in panels}
    return [
        {**inline_picture(panel, name, (WIDE * (1 + wide[name]), NARROW)), "wide": wide[name]}
        for name, panel in panels.items()
    ]


def diagnosis_panels(values: Values) -> dict[str, Panel]:
    """Curves, curves of published sets, shares of grades, lengths."""
    by_grade = values["grades"]["shares"]
    grades = [Point(str(g), "share", s, text=f"{s:.1%}") for g, s in enumerate(by_grade)]
    names = [p.method for p in grades]
    lengths = values["lengths"]
    edges, q = [float(e) for e in lengths["edges"]], lengths["quantiles"]
    bins = [
        Point("", low, n, text=f"{low:g}" if high - low <= 1 else f"{low:g} to {high - 1:g}")
        for low, high, n in zip(edges, edges[1:], lengths["queries"], strict=False)
    ]
    words = f"Documents per query: {q['0']:g} to {q['100']:g}, half of the queries have at most {q['50']:g}."
    panels = _panel("grade-shares", names, ["share"], grades, colours=(1,) * len(names))
    panels |= _panel("lengths", [""], edges, bins, description=words)
    if not values["curves"]:
        return panels
    first = values["curves"][0]
    by_kind = {c["profile"]: c["pnoise"] for c in values["curves"]}
    by_set = {OWN: first["overall"], **{k["dataset"]: k["pnoise"] for k in values["known"]}}
    title = f"Beside published data sets ({first['profile']} errors, overall shares)"
    colours = (INK, *(1 + i % 7 for i in range(len(by_set) - 1)))
    known = _pnoise("known", first, by_set, title=title, colours=colours)
    return _pnoise("curves", first, by_kind) | known | panels


def _pnoise(name: str, first: Values, lines: Mapping[str, Sequence[Any]], **options: Any) -> dict[str, Panel]:
    """Lines over the error rate, the pNoise of the knee as a rule."""
    points = [
        Point(line, rate, value)
        for line, along in lines.items()
        for rate, value in zip(first["rates"], along, strict=True)
        if value is not None
    ]
    rules = ((first["limits"]["at"], "knee"),)
    return _panel(name, tuple(lines), first["rates"], points, rules=rules, **options)


def plan_panels(values: Values) -> dict[str, Panel]:
    """What every way is worth, and how its wrong pairs come about."""
    options = {o["name"]: o for o in values["options"] if not o["problem"]}
    if not options:
        return {}
    worth = {name: o["effective_pairs"] for name, o in options.items()}
    parts = {"floor of a perfect judge": "floor", "added by errors": "excess"}
    wrong = [
        Point(name, part, max(0.0, o[key]), text=f"{o[key]:.3f}")
        for name, o in options.items()
        for part, key in parts.items()
    ]
    bars = [Point(name, "", pairs, text=f"{pairs:,.0f}") for name, pairs in worth.items()]
    colours = tuple(3 if name == values["recommended"] else 1 for name in options)
    worth_of = _panel("worth", tuple(options), [""], bars, colours=colours)
    return worth_of | _panel("wrong", tuple(options), tuple(parts), wrong)


def _demo_panels(values: Values) -> dict[str, Panel]:
    """The quality of rankers, precision over recall of detectors, doubt against the truth."""
    systems, detectors = values["systems"], values["detectors"]
    means = [
        Point(s["name"], "", s["mean"], s["mean_low"], s["mean_high"], text=f"{s['mean']:.4f}")
        for s in systems
    ]
    ends = (values["baseline"], values["ceiling"])
    colours = tuple(0 if s["name"] in ends else 1 for s in systems)
    curves = tuple(
        Point(d["name"], recall, precision)
        for d in detectors
        for recall, precision in zip(d["curve"]["recall"], d["curve"]["precision"], strict=True)
    )
    precisions = [f"{d['name']}: average precision {d['average_precision']:.2f}." for d in detectors]
    first, ideal = detectors[0]["name"], "doubt = share wrong"
    bins = [
        Point(first, b["said"], b["wrong"], text=f"{b['wrong']:.1%} of {b['rows']:,}")
        for b in values["reliability"]
        if b["rows"]
    ]
    lines = (*bins, Point(ideal, 0.0, 0.0), Point(ideal, 1.0, 1.0))
    words = ["Share of wrong labels by doubt.", *(f"Doubt {b.x:.0%}: {b.text} rows." for b in bins)]
    return {
        **_panel("quality", [s["name"] for s in systems], [""], means, colours=colours),
        **_panel(
            "finding",
            [d["name"] for d in detectors],
            sorted({p.x for p in curves}),
            (),
            lines=curves,
            description=" ".join(["Precision over recall.", *precisions]),
        ),
        **_panel(
            "reliability",
            (first, ideal),
            sorted({p.x for p in lines}),
            bins,
            lines=lines,
            title=f"Doubt against the truth ({first})",
            description=" ".join(words),
        ),
    }
