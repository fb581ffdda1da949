"""The pictures of a diagnosis, a plan and the demo, from the plain values that their ``to_dict`` gives."""

from collections.abc import Mapping, Sequence
from typing import Any

from cleanrank.report.charts import chart
from cleanrank.report.panels import Panel, Point

Values = Mapping[str, Any]
OWN = "these data"
INK = -1  # one's own data stand out: full ink, and others in colours


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
