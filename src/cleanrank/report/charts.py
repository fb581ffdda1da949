"""Panels as Vega-Lite specifications, which ``images`` draws for pages and files.

Colours are names of CSS variables, which assets/report.css defines: a page decides between light, dark and
paper, and a picture follows without being drawn again. --c0 is the baseline's grey, --c1 to --c7 are the
colours of Okabe and Ito (2008) without the yellow and the black, which vanish on white and on dark paper.
Shapes and dashes tell the methods apart in greyscale. The same panels give the same bytes.
"""

import json
import textwrap
from collections.abc import Sequence
from importlib import resources
from typing import Any, NamedTuple

from cleanrank.report.panels import Panel, Point

Spec = dict[str, Any]


def asset(name: str) -> str:
    """The text of one of the files beside this module."""
    return resources.files("cleanrank.report").joinpath(f"assets/{name}").read_text("utf-8")


# What never changes: the configuration, marks, axes of words, and where an interval begins and ends.
STATIC: Spec = json.loads(asset("charts.json"))


class Look(NamedTuple):
    """How a method is drawn: the number of its colour, its shape and its dash."""

    colour: int
    shape: str
    dash: tuple[int, ...]


BASELINE, *LOOKS = (Look(i, shape, tuple(dash)) for i, (shape, dash) in enumerate(STATIC["looks"]))


def looks(methods: Sequence[str], baseline: str | None = None) -> dict[str, Look]:
    """A look per method, by its place in the list; past seven the colours come again with other shapes.

    >>> looks(["a", "b", "c"], baseline="b")["c"].shape
    'triangle-up'
    """
    n = len(LOOKS)

    def look(i: int) -> Look:
        other = LOOKS[(i + 3 * (i // n)) % n]
        return Look(LOOKS[i % n].colour, other.shape, other.dash)

    others = {m: look(i) for i, m in enumerate(m for m in methods if m != baseline)}
    return {m: BASELINE if m == baseline else others[m] for m in methods}


def specification(
    panel: Panel,
    baseline: str | None = None,
    *,
    width: int,
    methods: Sequence[str] = (),
    legend: bool | None = None,
) -> Spec:
    """The Vega-Lite specification of a panel with its data.

    Args:
        panel: what to draw.
        baseline: the method in grey.
        width: of the picture in pixels; legends and the names of rows are broken to fit.
        methods: all methods of a page, so that each keeps its look; those of the panel unless given.
        legend: whether lines are named in the picture; unless given, all but curves are, which a page names.
    """
    looked = looks(methods or panel.methods, baseline)
    drawn = DRAWN[panel.kind](panel, looked, panel.kind != "curves" if legend is None else legend, width)
    if panel.kind not in ("curves", "traces", "histogram"):
        row = 36 if len(panel.methods) <= 8 and panel.kind != "history" else 25
        drawn["height"] = row * max(1, len(panel.methods))
    return {"width": width, "data": {"values": data(panel)}, "config": STATIC["config"], **drawn}


def data(panel: Panel) -> list[dict[str, Any]]:
    """The rows that a specification draws."""
    gaps = [
        {"method": g.method, "x": g.x, "mean": None, "low": None, "high": None, "shown": g.state, "gap": True}
        for g in panel.gaps
    ]
    lines = [{"method": p.method, "x": p.x, "line": p.mean} for p in panel.lines]
    points = [_datum(panel, p) for p in panel.points]
    places = {x: i for i, x in enumerate(panel.xs)}
    rows = sorted(points + gaps + lines, key=lambda d: places[d["x"]])
    if panel.kind == "histogram":
        return [{**row, "end": panel.xs[i + 1]} for i, row in enumerate(rows)]
    if panel.kind == "history":  # drawn in the order of its data, and its first column names the bands
        rows.sort(key=lambda d: panel.methods.index(d["method"]))
    return rows


def _datum(panel: Panel, point: Point) -> dict[str, Any]:
    figure = point.text or (f"{100 * point.mean:.0f}" if panel.kind == "history" else f"{point.mean:.4f}")
    if panel.kind == "heat" and point.difference is not None and not point.text:
        figure = _signed(point.difference, 3)
    return {
        "method": point.method,
        "x": point.x,
        "mean": point.mean,
        "low": point.low,
        "high": point.high,
        "complete": point.complete,
        "shown": f"{figure} {point.mark}".strip(),
        "short": figure.replace("0.", ".", 1),
        "difference": point.difference,
        "strength": point.strength,
    }


def _signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def _layer(mark: str, transform: Sequence[Spec] = (), **encoding: Any) -> Spec:
    return {"mark": dict(STATIC["marks"][mark]), "transform": list(transform), "encoding": encoding}


def _figures(
    title: str | None,
    ticks: int | Sequence[Any],
    form: str = "",
    domain: tuple[float, float] | None = None,
    *,
    grid: bool = True,
    **scale: Any,
) -> Spec:
    """An axis of numbers: with a grid and no line of its own, or the other way round."""
    axis: Spec = {"grid": grid, "tickCount" if isinstance(ticks, int) else "values": ticks}
    axis |= ({"domain": False} if grid else {}) | ({"format": form} if form else {})
    scale = {"domain": list(domain), "nice": False} if domain else scale
    return {"type": "quantitative", "title": title, "axis": axis, "scale": scale}


def _by_name(names: Sequence[Any], values: Sequence[Any], legend: Spec | None, field: str = "method") -> Spec:
    scale = {"domain": list(names), "range": list(values)}
    return {"field": field, "type": "nominal", "legend": legend, "scale": scale}


def _variables(numbers: Sequence[int]) -> list[str]:
    return [f"var(--c{i})" if i >= 0 else "var(--ink)" for i in numbers]


def _legend(names: Sequence[Any], width: int, **options: Any) -> Spec:
    """A legend above the picture, with as many columns as fit."""
    each = 48 + 7 * min(30, max(len(str(n)) for n in names))
    return {"columns": max(1, width // each), "labelLimit": width - 40, **options}


def _rules(panel: Panel, axis: str, channel: Spec) -> list[Spec]:
    """A broken line and its name at each rule: at the left of horizontal lines, on top of vertical ones."""
    layers = []
    for place, name in panel.rules:
        at: Spec = {axis: {**channel, "datum": place}}
        start: Spec = {**at, "x" if axis == "y" else "y": {"value": 0}}
        layers += [_layer("rule", **at), _layer("rule name", **start, text={"value": name})]
    return [{"data": {"values": [{}]}, **layer} for layer in layers]


def _lines(panel: Panel, looked: dict[str, Look], legend: bool, width: int) -> Spec:
    """Lines with points, bands where there are intervals, hollow points where a row is incomplete."""
    names, over_rates = tuple(looked), panel.kind == "curves"
    if isinstance(panel.xs[0], str):
        axis = {"grid": False, "labelAngle": 0}
        x: Spec = {"type": "ordinal", "title": panel.x_title, "sort": list(panel.xs), "axis": axis}
    else:
        form, ticks = panel.x_form or ("~g" if over_rates else ""), list(panel.xs) if over_rates else 6
        near: Spec = {"nice": False, "zero": not over_rates, "padding": 12}
        x = _figures(panel.x_title, ticks, form, panel.x_domain, grid=False, **near)
    x["field"] = "x"
    y = _figures(panel.measure if legend else None, 5, panel.y_form, panel.y_domain, zero=False)
    grey = json.dumps([m for m in names if looked[m] is BASELINE])
    baseline = f"datum.label + (indexof({grey}, datum.label) < 0 ? '' : ' (baseline)')"
    # a shape has no dashed edge; without shapes, a piece of the line
    symbol = {"symbolStrokeWidth": 0} if panel.points else {"symbolStrokeWidth": 2, "symbolSize": 500}
    named = _legend(names, width, labelExpr=baseline, **symbol) if legend else None
    colour = _by_name(names, _variables(panel.colours or [looked[m].colour for m in names]), named)
    dash = _by_name(names, [list(looked[m].dash) or [1, 0] for m in names], named)
    shape = _by_name(names, [looked[m].shape for m in names], named)
    layers = _rules(panel, "y", y)
    if over_rates or any(p.low is not None for p in panel.points):
        ends = {"y": {**y, "field": "from"}, "y2": {"field": "to"}}
        layers.append(_layer("band", STATIC["span"], x=x, **ends, color=colour))
        layers[-1]["mark"]["opacity"] = 0.13 if len(names) <= 4 else 0.06  # many would turn to mud
    joined = "line" if panel.lines else "mean"
    drawn = [{"filter": "isValid(datum.line)"}] if panel.lines else []
    layers.append(_layer("line", drawn, x=x, y={**y, "field": joined}, color=colour, strokeDash=dash))
    if panel.points:
        fill = {"condition": {"test": "!datum.complete", "value": "var(--paper)"}, **colour}
        dots = {"x": x, "y": {**y, "field": "mean"}, "color": colour, "fill": fill, "shape": shape}
        drawn = [{"filter": "isValid(datum.mean)"}]
        layers.append(_layer("point", drawn, **dots))
        if len(panel.points) > 40 * len(panel.methods):
            layers[-1]["mark"]["size"] = 14
    return {"height": 250 if over_rates else 270, "layer": layers}


def _rows(panel: Panel, width: int) -> Spec:
    """An axis of words, broken where they would take more than about a third of a narrow picture."""
    broken = {
        name: textwrap.wrap(name, max(12, width // (18 if width < 450 else 12))) for name in panel.methods
    }
    axis: Spec = dict(STATIC["row axis"])
    if max(map(len, broken.values())) > 1:
        axis |= {"labelExpr": f"({json.dumps(broken)})[datum.label]", **STATIC["broken rows"]}
    names = {"sort": list(panel.methods), "axis": axis}
    return {"field": "method", "type": "nominal", "title": None, **names}


def _bars(panel: Panel, looked: dict[str, Look], legend: bool, width: int) -> Spec:
    """Bars from 0 with their figures behind them; several parts are stacked and named in a legend."""
    x = _figures(panel.x_title or None, 5, panel.x_form, zero=True)
    mean, y = {**x, "field": "mean"}, _rows(panel, width)
    if len(panel.xs) > 1:
        named = _legend(panel.xs, width, symbolType="square")
        colour = _by_name(panel.xs, _variables(panel.colours), named, "x")
        order = {"field": "x", "type": "nominal", "sort": "descending"}
        return _layer("bar", y=y, x=mean, color=colour, order=order)
    faint = {"condition": {"test": "!datum.complete", "value": 0.35}, "value": 0.9}
    colours = panel.colours or [looked[m].colour for m in panel.methods]
    colour = _by_name(panel.methods, _variables(colours), None)
    return {
        "padding": {"left": 8, "top": 4, "bottom": 0, "right": 78},  # paper sets text wider than a screen
        "transform": STATIC["span"],
        "encoding": {"y": y},
        "layer": [
            _layer("bar", x=mean, color=colour, fillOpacity=faint),
            _layer("whisker", x={**x, "field": "from"}, x2={"field": "to"}),
            _layer("figure", x={**x, "field": "end"}, text={"field": "shown"}),
        ],
    }


def _dots(panel: Panel, looked: dict[str, Look], legend: bool, width: int) -> Spec:
    """Means with their intervals, a row per method; several parts stand above one another."""
    x = _figures(panel.x_title, 6, panel.x_form, panel.x_domain, zero=False, padding=12)
    several = len(panel.xs) > 1
    shared: Spec = {"y": _rows(panel, width)}
    shape: Spec = {}
    if several:
        parts, named = [BASELINE, *LOOKS], _legend(panel.xs, width)
        offset = {"field": "x", "type": "nominal", "sort": list(panel.xs), "scale": {"padding": 0.6}}
        colour = _by_name(panel.xs, _variables(panel.colours), named, "x")
        shared |= {"yOffset": offset, "color": colour}
        shape = {"shape": _by_name(panel.xs, [parts[i].shape for i in panel.colours], named, "x")}
    else:
        colours = panel.colours or [looked[m].colour for m in panel.methods]
        shared["color"] = _by_name(panel.methods, _variables(colours), None)
    return {
        "transform": STATIC["span"],
        "layer": [
            *_rules(panel, "x", x),
            _layer("interval", **shared, x={**x, "field": "from"}, x2={"field": "to"}),
            _layer("dot", **shared, **shape, x={**x, "field": "mean"}),
        ],
    }


def _heat(panel: Panel, looked: dict[str, Look], legend: bool, width: int) -> Spec:
    """Cells with figures, the stronger the colour the larger.

    In a history, bands and stretches come in the order of the data: both differ from choice to choice.
    """
    history = panel.kind == "history"
    angled = history or 8 * max(len(str(x)) for x in panel.xs) * len(panel.xs) > 0.75 * width
    axis: Spec = {"domain": False, "ticks": False, "labelLimit": 240}
    axis |= {"labelAngle": -40} if angled else {"labelAngle": 0, "orient": "top"}
    x: Spec = {"field": "x", "type": "nominal", "title": panel.x_title or None, "axis": axis}
    y = {**_rows(panel, width), "title": panel.series if history else None, "scale": {"paddingInner": 0.08}}
    if history:
        x |= {"sort": None, "scale": {"paddingInner": 0.04}}
        y["sort"] = None
    else:
        x |= {"sort": list(panel.xs), "scale": {"paddingInner": 0.04, "domain": list(panel.xs)}}
    return {
        "encoding": {"x": x, "y": y},
        "layer": [
            _layer("cell", [{"filter": "!datum.gap"}], **STATIC["cell colours"]),
            _layer("cell text", **STATIC["cell words"]),
        ],
    }


def _histogram(panel: Panel, looked: dict[str, Look], legend: bool, width: int) -> Spec:
    x = {**_figures(panel.x_title, 8, "d", grid=False), "field": "x", "bin": {"binned": True}}
    y = {**_figures(panel.measure, 4, "~s"), "field": "mean"}
    return {"height": 170, **_layer("bin", x=x, x2={"field": "end"}, y=y)}


DRAWN = {
    "curves": _lines,
    "traces": _lines,
    "bars": _bars,
    "dots": _dots,
    "heat": _heat,
    "history": _heat,
    "histogram": _histogram,
}
