"""Panels as Vega-Lite specifications, for pages and for files.

Colours are names of CSS variables, which assets/report.css defines: a page decides between light, dark and
paper, and a picture follows without being drawn again. --c0 is the baseline's grey, --c1 to --c7 are the
colours of Okabe and Ito (2008) without the yellow and the black, which vanish on white and on dark paper.
Shapes and dashes tell the methods apart in greyscale.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from cleanrank.report.panels import Panel, Point

Spec = dict[str, Any]
INK, MUTED = "var(--ink)", "var(--muted)"
CONFIG: Spec = {
    "background": None,
    "font": 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif',
    "view": {"stroke": None},
    "title": {"anchor": "start", "color": INK, "fontSize": 12.5, "subtitleColor": MUTED, "offset": 8},
    "axis": {
        "labelColor": MUTED,
        "titleColor": MUTED,
        "gridColor": "var(--line)",
        "domainColor": "var(--line-strong)",
        "tickColor": "var(--line-strong)",
        "labelFontSize": 11,
        "titleFontSize": 11,
        "titleFontWeight": "normal",
        "titlePadding": 8,
        "labelPadding": 4,
        "tickSize": 4,
    },
    "legend": {
        "orient": "top",
        "title": None,
        "labelColor": INK,
        "labelFontSize": 11,
        "labelLimit": 240,
        "columnPadding": 22,
        "symbolSize": 64,
        "symbolOpacity": 1,
    },
}


POINT: Spec = {"type": "point", "size": 60, "opacity": 1, "strokeWidth": 1.75}
# Where there is no interval, it begins and ends at the mean.
SPAN = [
    {"calculate": f"isValid(datum.{end}) ? datum.{end} : datum.mean", "as": name}
    for end, name in (("low", "from"), ("high", "to"))
]


class Look(NamedTuple):
    """How a method is drawn: the number of its colour, its shape and its dash."""

    colour: int
    shape: str
    dash: tuple[int, ...]


BASELINE = Look(0, "circle", ())
LOOKS: tuple[Look, ...] = (
    Look(1, "square", ()),
    Look(2, "triangle-up", (6, 2)),
    Look(3, "diamond", (2, 2)),
    Look(4, "triangle-down", (8, 2, 2, 2)),
    Look(5, "cross", (4, 1, 1, 1)),
    Look(6, "triangle-right", (10, 3)),
    Look(7, "triangle-left", (1, 2)),
)


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


def step(panel: Panel) -> int | None:
    """The height of a row, where a picture has rows."""
    if panel.kind in ("curves", "traces", "histogram"):
        return None
    return 36 if len(panel.methods) <= 8 and panel.kind != "history" else 25


def specification(
    panel: Panel, baseline: str | None = None, *, methods: Sequence[str] = (), legend: bool | None = None
) -> Spec:
    """The Vega-Lite specification of a panel, without its data.

    Args:
        panel: what to draw.
        baseline: the method in grey.
        methods: all methods of a page, so that each keeps its look; those of the panel unless given.
        legend: whether lines are named in the picture; unless given, all but curves are, which a page names.
    """
    looked = looks(methods or panel.methods, baseline)
    drawn = DRAWN[panel.kind](panel, looked, panel.kind != "curves" if legend is None else legend)
    height = {} if (row := step(panel)) is None else {"height": row * max(1, len(panel.methods))}
    return {"width": "container", **height, "config": CONFIG, **drawn}


def chart(panel: Panel, name: str, *, wide: bool = False) -> dict[str, Any]:
    """A picture of a page whose data never change: its place, title, words and whole specification."""
    spec = {**specification(panel), "data": {"values": data(panel)}}
    return {"id": name, "title": panel.title, "words": panel.words, "spec": spec, "wide": wide}


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
    shown = point.text or (f"{100 * point.mean:.0f}" if panel.kind == "history" else f"{point.mean:.4f}")
    if panel.kind == "heat" and point.difference is not None and not point.text:
        shown = _signed(point.difference, 3)
    between = None if point.low is None or point.high is None else f"{point.low:.4f} to {point.high:.4f}"
    against = None if point.difference is None else f"{_signed(point.difference, 4)} {point.mark}".strip()
    return {
        "method": point.method,
        "x": point.x,
        "mean": point.mean,
        "low": point.low,
        "high": point.high,
        "complete": point.complete,
        "shown": f"{shown} {point.mark}".strip(),
        "short": shown.replace("0.", ".", 1),
        "difference": point.difference,
        "strength": point.strength,
        "Mean": (point.text or f"{point.mean:.4f}") + ("" if point.complete else " (incomplete)"),
        "Interval": between or "–",
        "Baseline": against or "–",
    }


def _signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def _tooltip(panel: Panel, *, place: bool = True) -> list[dict[str, str]]:
    fields = [{"field": "method", "title": panel.series}]
    if place:
        x = {"field": "x", "title": panel.x_title.partition(":")[0] or "Part"}
        form = panel.x_form or (".3~f" if panel.kind == "traces" and not isinstance(panel.xs[0], str) else "")
        fields.append({**x, "format": form} if form else x)
    fields.append({"field": "Mean", "title": panel.measure or "Value"})
    if any(p.low is not None for p in panel.points):
        fields.append({"field": "Interval", "title": "Interval"})
    if any(p.difference is not None for p in panel.points):
        fields.append({"field": "Baseline", "title": "Against baseline"})
    return fields


def _scale(domain: tuple[float, float] | None, **otherwise: Any) -> Spec:
    return {"domain": list(domain), "nice": False} if domain else otherwise


def _axis(form: str, **options: Any) -> Spec:
    return {**options, "format": form} if form else options


def _by_name(names: Sequence[Any], values: Sequence[Any], legend: Spec | None, field: str = "method") -> Spec:
    scale = {"domain": list(names), "range": list(values)}
    return {"field": field, "type": "nominal", "legend": legend, "scale": scale}


def _variables(numbers: Sequence[int]) -> list[str]:
    return [f"var(--c{i})" if i >= 0 else INK for i in numbers]


def _colours(panel: Panel, looked: dict[str, Look]) -> list[str]:
    return _variables(panel.colours or [looked[m].colour for m in panel.methods])


def _legend(names: Sequence[Any], **options: Any) -> Spec:
    return {"columns": 3 if max(len(str(n)) for n in names) <= 14 else 2, **options}


def _rules(panel: Panel, axis: str, channel: Spec) -> list[Spec]:
    """A broken line and its name at each rule: at the left of horizontal lines, on top of vertical ones."""
    layers = []
    for place, name in panel.rules:
        at = {axis: {**channel, "datum": place}}
        mark = {"type": "rule", "strokeDash": [3, 3], "color": MUTED, "tooltip": False}
        layers.append({"data": {"values": [{}]}, "mark": mark, "encoding": at})
        if name:
            mark = {"type": "text", "align": "left", "baseline": "bottom", "dx": 4, "dy": -3, "color": MUTED,
                    "fontSize": 10.5, "text": name, "tooltip": False}  # fmt: skip
            start = {"x": {"value": 0}} if axis == "y" else {"y": {"value": 0}}
            layers.append({"data": {"values": [{}]}, "mark": mark, "encoding": {**at, **start}})
    return layers


def _lines(panel: Panel, looked: dict[str, Look], legend: bool) -> Spec:
    """Lines with points, bands where there are intervals, hollow points where a row is incomplete."""
    names, over_rates = tuple(looked), panel.kind == "curves"
    x: Spec = {"field": "x", "title": panel.x_title}
    if isinstance(panel.xs[0], str):
        x |= {"type": "ordinal", "sort": list(panel.xs), "axis": {"grid": False, "labelAngle": 0}}
    else:
        ticks: Spec = {"values": list(panel.xs)} if over_rates else {"tickCount": 6}
        x |= {
            "type": "quantitative",
            "axis": _axis(panel.x_form or ("~g" if over_rates else ""), grid=False, **ticks),
            "scale": _scale(panel.x_domain, nice=False, zero=not over_rates, padding=12),
        }
    y = {
        "type": "quantitative",
        "title": panel.measure if legend else None,
        "scale": _scale(panel.y_domain, zero=False),
        "axis": _axis(panel.y_form, tickCount=5, domain=False, grid=True),
    }
    grey = json.dumps([m for m in names if looked[m] is BASELINE])
    baseline = f"datum.label + (indexof({grey}, datum.label) < 0 ? '' : ' (baseline)')"
    # a shape has no dashed edge; without shapes, a piece of the line
    symbol = {"symbolStrokeWidth": 0} if panel.points else {"symbolStrokeWidth": 2, "symbolSize": 500}
    named = _legend(names, labelExpr=baseline, **symbol) if legend else None
    colour = _by_name(names, _variables(panel.colours or [looked[m].colour for m in names]), named)
    dash = _by_name(names, [list(looked[m].dash) or [1, 0] for m in names], named)
    shape = _by_name(names, [looked[m].shape for m in names], named)
    layers = _rules(panel, "y", y)
    if over_rates or any(p.low is not None for p in panel.points):
        opacity = 0.13 if len(names) <= 4 else 0.06  # many bands would turn to mud
        band = {"x": x, "y": {**y, "field": "from"}, "y2": {"field": "to"}, "color": colour}
        mark = {"type": "area", "opacity": opacity, "tooltip": False}
        layers.append({"mark": mark, "transform": SPAN, "encoding": band})
    line = {
        "x": x,
        "y": {**y, "field": "line" if panel.lines else "mean"},
        "color": colour,
        "strokeDash": dash,
    }
    drawn = [{"filter": "isValid(datum.line)"}] if panel.lines else []
    mark = {"type": "line", "strokeWidth": 2, "tooltip": False}
    layers.append({"mark": mark, "transform": drawn, "encoding": line})
    dots = {"x": x, "y": {**y, "field": "mean"}, "color": colour, "shape": shape, "tooltip": _tooltip(panel)}
    if panel.points:
        hollow = {"test": "!datum.complete", "value": "var(--paper)"}
        dots["fill"] = {"condition": hollow, **colour}
        size = 60 if len(panel.points) < 40 * len(panel.methods) else 14
        known = [{"filter": "isValid(datum.mean)"}]
        layers.append({"mark": {**POINT, "size": size}, "transform": known, "encoding": dots})
    return {"height": 250 if over_rates else 270, "layer": layers}


def _rows(panel: Panel) -> Spec:
    axis = {"domain": False, "ticks": False, "labelLimit": 240, "labelFontSize": 11.5, "labelColor": INK}
    return {"field": "method", "type": "nominal", "title": None, "sort": list(panel.methods), "axis": axis}


def _bars(panel: Panel, looked: dict[str, Look], legend: bool) -> Spec:
    """Bars from 0 with their figures behind them; several parts are stacked and named in a legend."""
    x = {
        "type": "quantitative",
        "title": panel.x_title or None,
        "axis": _axis(panel.x_form, tickCount=5, domain=False),
        "scale": {"zero": True},
    }
    mean = {**x, "field": "mean"}
    bar = {"type": "bar", "height": {"band": 0.64}, "cornerRadiusEnd": 2}
    y = _rows(panel)
    if len(panel.xs) > 1:
        parts = _legend(panel.xs, symbolType="square")
        colour = _by_name(panel.xs, _variables(panel.colours), parts, "x")
        order = {"field": "x", "type": "nominal", "sort": "descending"}
        encoding = {"y": y, "x": mean, "color": colour, "order": order, "tooltip": _tooltip(panel)}
        return {"mark": {**bar, "fillOpacity": 0.9}, "encoding": encoding}
    faint = {"condition": {"test": "!datum.complete", "value": 0.35}, "value": 0.9}
    colour = _by_name(panel.methods, _colours(panel, looked), None)
    text = {"type": "text", "align": "left", "dx": 7, "fontSize": 11.5, "color": INK}
    end = {"calculate": "datum.gap ? 0 : datum.to", "as": "end"}
    return {
        "padding": {"left": 8, "top": 4, "bottom": 0, "right": 78},  # paper sets text wider than a screen
        "transform": SPAN,
        "encoding": {"y": y, "tooltip": _tooltip(panel, place=False)},
        "layer": [
            {"mark": bar, "encoding": {"x": mean, "color": colour, "fillOpacity": faint}},
            {
                "mark": {"type": "rule", "strokeWidth": 1.5, "color": INK},
                "encoding": {"x": {**x, "field": "from"}, "x2": {"field": "to"}},
            },
            {
                "mark": text,
                "transform": [end],
                "encoding": {"x": {**x, "field": "end"}, "text": {"field": "shown"}},
            },
        ],
    }


def _dots(panel: Panel, looked: dict[str, Look], legend: bool) -> Spec:
    """Means with their intervals, a row per method; several parts stand above one another."""
    x = {
        "type": "quantitative",
        "title": panel.x_title,
        "scale": _scale(panel.x_domain, zero=False, padding=12),
        "axis": _axis(panel.x_form, tickCount=6, domain=False, grid=True),
    }
    y: Spec = {"y": _rows(panel)}
    colour = _by_name(panel.methods, _colours(panel, looked), None)
    shape: Spec = {}
    if len(panel.xs) > 1:
        y["yOffset"] = {"field": "x", "type": "nominal", "sort": list(panel.xs), "scale": {"padding": 0.6}}
        named = _legend(panel.xs)
        parts = [BASELINE, *LOOKS]
        colour = _by_name(panel.xs, _variables(panel.colours), named, "x")
        shape = {"shape": _by_name(panel.xs, [parts[i].shape for i in panel.colours], named, "x")}
    span = {"x": {**x, "field": "from"}, "x2": {"field": "to"}, "color": colour}
    dot = {
        "x": {**x, "field": "mean"},
        "color": colour,
        **shape,
        "tooltip": _tooltip(panel, place=bool(shape)),
    }
    return {
        "transform": SPAN,
        "layer": [
            *_rules(panel, "x", x),
            {"mark": {"type": "rule", "strokeWidth": 2, "clip": True}, "encoding": {**y, **span}},
            {"mark": {**POINT, "filled": True, "clip": True}, "encoding": {**y, **dot}},
        ],
    }


def _heat(panel: Panel, looked: dict[str, Look], legend: bool) -> Spec:
    """Cells with figures, the stronger the colour the larger.

    In a history, bands and stretches come in the order of the data: both differ from choice to choice.
    """
    history = panel.kind == "history"
    angled = history or max(len(str(x)) for x in panel.xs) > 16
    label = {"domain": False, "ticks": False, "labelLimit": 240, "labelFontSize": 11}
    places = {"labelAngle": -40} if angled else {"labelAngle": 0, "orient": "top"}
    x = {
        "field": "x",
        "type": "nominal",
        "title": panel.x_title or None,
        "sort": None if history else list(panel.xs),
        "axis": {**label, **places},
        "scale": {"paddingInner": 0.04, **({} if history else {"domain": list(panel.xs)})},
    }
    y = {
        "field": "method",
        "type": "nominal",
        "title": panel.series if history else None,
        "sort": None if history else list(panel.methods),
        "axis": {**label, "labelColor": INK},
        "scale": {"paddingInner": 0.08},
    }
    worse = {"condition": {"test": "datum.difference < 0", "value": "var(--worse)"}, "value": "var(--better)"}
    strength = {
        "field": "strength",
        "type": "quantitative",
        "legend": None,
        "scale": {"domain": [0, 1], "range": [0.06, 0.7]},
    }
    text = {
        "condition": {"test": "bandwidth('x') < 76 && !datum.gap", "field": "short"},
        "field": "shown",
    }
    faint = {"condition": {"test": "datum.gap", "value": MUTED}, "value": INK}
    size = "bandwidth('x') < 20 ? 0 : bandwidth('x') < 60 ? 9.5 : 11.5"
    return {
        "encoding": {"x": x, "y": y, "tooltip": _tooltip(panel)},
        "layer": [
            {
                "mark": {"type": "rect", "cornerRadius": 3},
                "transform": [{"filter": "!datum.gap"}],
                "encoding": {"fill": worse, "fillOpacity": strength},
            },
            {
                "mark": {"type": "text", "fontSize": {"expr": size}},
                "encoding": {"text": text, "color": faint},
            },
        ],
    }


def _histogram(panel: Panel, looked: dict[str, Look], legend: bool) -> Spec:
    x = {
        "field": "x",
        "type": "quantitative",
        "bin": {"binned": True},
        "title": panel.x_title,
        "axis": {"grid": False, "tickCount": 8, "format": "d"},
    }
    y = {
        "field": "mean",
        "type": "quantitative",
        "title": panel.measure,
        "axis": {"tickCount": 4, "domain": False, "format": "~s"},
    }
    tooltip = [{"field": "shown", "title": panel.x_title}, {"field": "mean", "title": panel.measure}]
    return {
        "height": 170,
        "mark": {"type": "bar", "color": "var(--c1)", "fillOpacity": 0.9, "binSpacing": 1},
        "encoding": {"x": x, "x2": {"field": "end"}, "y": y, "tooltip": tooltip},
    }


DRAWN = {
    "curves": _lines,
    "traces": _lines,
    "bars": _bars,
    "dots": _dots,
    "heat": _heat,
    "history": _heat,
    "histogram": _histogram,
}
