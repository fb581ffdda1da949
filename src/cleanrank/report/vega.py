"""Vega-Lite descriptions of panels, and the library that draws them, for pages that reach no network.

Colours are names of CSS variables: the page decides between light, dark and paper, and a picture follows
without being drawn again. The library comes out of the package vl-convert-python.
"""

from functools import cache
from importlib import resources
from typing import Any

from cleanrank.errors import MissingExtraError
from cleanrank.report.palette import LOOKS, Look, band_opacity
from cleanrank.report.panels import Panel, Point

FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif'
SERIES = len(LOOKS)  # colours of data sets, --d0 and on
BAND = 25  # height of a band in the history of outliers
STEP = 36  # height of a method's row in bars and heat maps
FITTING = "bandwidth('x') < 30 ? 0 : bandwidth('x') < 60 ? 9 : 11.5"  # size of a heat map's words
CONFIG: dict[str, Any] = {
    "background": None,
    "font": FONT,
    "view": {"stroke": None},
    "axis": {
        "labelColor": "var(--muted)",
        "titleColor": "var(--muted)",
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
}


@cache
def library() -> str:
    """The JavaScript of Vega-Embed, Vega-Lite and Vega, 0.9 MB with its licence; sets window.vegaEmbed."""
    try:
        import vl_convert
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "pages with pictures need vl_convert, which is not installed. "
            "Install it with: pip install vl-convert-python"
        ) from error
    licence = resources.files("cleanrank.report").joinpath("assets/vega-license.txt").read_text("utf-8")
    code = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return f"/*\n{licence}*/\n(function () {{\n{code}\n}})();"


def description(panel: Panel, looks: dict[str, Look]) -> dict[str, Any]:
    """The Vega-Lite description of a panel, without its data."""
    drawing = {"curves": _curves, "bars": _bars, "heat": _heat, "traces": _traces, "history": _history}
    return drawing[panel.kind](panel, looks)


def data(panel: Panel) -> list[dict[str, Any]]:
    """The rows a description draws."""
    gaps = [
        {"method": g.method, "x": g.x, "mean": None, "low": None, "high": None, "shown": g.state, "gap": True}
        for g in panel.gaps
    ]
    lines = [{"method": p.method, "x": p.x, "line": p.mean} for p in panel.lines]
    points = [_datum(panel, p) for p in panel.points]
    ordered = sorted(points + gaps + lines, key=lambda d: panel.xs.index(d["x"]))
    # A history is drawn in the order of its data, and its first column names the bands.
    return (
        sorted(ordered, key=lambda d: panel.methods.index(d["method"]))
        if panel.kind == "history"
        else ordered
    )


def _datum(panel: Panel, point: Point) -> dict[str, Any]:
    shown = f"{100 * point.mean:.0f}" if panel.kind == "history" else f"{point.mean:.4f}"
    if panel.kind == "heat" and point.difference is not None:
        shown = _signed(point.difference, 3)
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
        "Mean": f"{point.mean:.4f}" + ("" if point.complete else " (incomplete)"),
        "Interval": "–"
        if point.low is None or point.high is None
        else f"{point.low:.4f} to {point.high:.4f}",
        "Baseline": "–"
        if point.difference is None
        else f"{_signed(point.difference, 4)} {point.mark}".strip(),
    }


def _signed(value: float, digits: int) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def _tooltip(place: str, *, with_place: bool = True) -> list[dict[str, str]]:
    fields = [{"field": "method", "title": "Method"}]
    if with_place:
        fields.append({"field": "x", "title": place})
    return [
        *fields,
        {"field": "Mean", "title": "Mean"},
        {"field": "Interval", "title": "Interval"},
        {"field": "Baseline", "title": "Against baseline"},
    ]


def _colour(panel: Panel) -> dict[str, Any]:
    return {
        "field": "method",
        "type": "nominal",
        "legend": None,
        "scale": {
            "domain": list(panel.methods),
            "range": [f"var(--m{i})" for i in range(len(panel.methods))],
        },
    }


def _styled(panel: Panel, looks: dict[str, Look], what: str) -> dict[str, Any]:
    values: list[Any] = [
        list(looks[m].dash) or [1, 0] if what == "dash" else looks[m].shape for m in panel.methods
    ]
    return {
        "field": "method",
        "type": "nominal",
        "legend": None,
        "scale": {"domain": list(panel.methods), "range": values},
    }


def _curves(panel: Panel, looks: dict[str, Look]) -> dict[str, Any]:
    x = {
        "field": "x",
        "type": "quantitative",
        "title": panel.x_title,
        "axis": {"values": list(panel.xs), "grid": False, "format": "~g"},
        "scale": {"nice": False, "zero": False, "padding": 12},
    }
    y = {
        "type": "quantitative",
        "title": None,
        "scale": {"zero": False},
        "axis": {"tickCount": 5, "domain": False},
    }
    colour = _colour(panel)
    hollow = {"condition": {"test": "!datum.complete", "value": "var(--paper)"}, **colour}
    return {
        "width": "container",
        "height": 250,
        "config": CONFIG,
        "encoding": {"x": x},
        "layer": [
            {
                "mark": {"type": "area", "opacity": band_opacity(len(panel.methods)), "tooltip": False},
                "encoding": {"y": {**y, "field": "low"}, "y2": {"field": "high"}, "color": colour},
            },
            {
                "mark": {"type": "line", "strokeWidth": 2, "tooltip": False},
                "encoding": {
                    "y": {**y, "field": "mean"},
                    "color": colour,
                    "strokeDash": _styled(panel, looks, "dash"),
                },
            },
            {
                "mark": {"type": "point", "size": 64, "opacity": 1, "strokeWidth": 1.75},
                "transform": [{"filter": "!datum.gap"}],
                "encoding": {
                    "y": {**y, "field": "mean"},
                    "stroke": colour,
                    "fill": hollow,
                    "shape": _styled(panel, looks, "shape"),
                    "tooltip": _tooltip("Rate"),
                },
            },
        ],
    }


def _traces(panel: Panel, looks: dict[str, Look]) -> dict[str, Any]:
    """Series are data sets, which the page's legend of methods does not know: the picture has its own."""
    x = {
        "field": "x",
        "type": "quantitative",
        "title": panel.x_title,
        "axis": {"grid": False, "tickCount": 6},
        "scale": {"nice": False, "zero": True, "padding": 12},
    }
    y = {
        "type": "quantitative",
        "title": panel.measure,
        "scale": {"zero": False},
        "axis": {"tickCount": 5, "domain": False},
    }
    legend = {"orient": "top", "title": None, "columns": 2, "labelColor": "var(--ink)", "labelLimit": 220}
    series = list(panel.methods)
    look = {
        "field": "method",
        "type": "nominal",
        "legend": legend,
        "scale": {"domain": series, "range": [f"var(--d{i % SERIES})" for i in range(len(series))]},
    }
    shapes = {**_styled(panel, looks, "shape"), "legend": legend}
    tooltip = [
        {"field": "method", "title": "Data set"},
        {"field": "x", "title": panel.x_title.partition(":")[0], "format": ".3f"},
        {"field": "Mean", "title": panel.measure},
    ]
    line = "line" if panel.lines else "mean"
    return {
        "width": "container",
        "height": 270,
        "config": CONFIG,
        "encoding": {"x": x},
        "layer": [
            {
                "mark": {"type": "line", "strokeWidth": 1.75, "tooltip": False},
                "transform": [{"filter": f"isValid(datum.{line})"}],
                "encoding": {
                    "y": {**y, "field": line},
                    "color": look,
                    "strokeDash": {**_styled(panel, looks, "dash"), "legend": legend},
                    "order": {"field": "x"},
                },
            },
            {
                "mark": {"type": "point", "filled": True, "size": 52, "opacity": 1},
                "transform": [{"filter": "isValid(datum.mean)"}],
                "encoding": {"y": {**y, "field": "mean"}, "color": look, "shape": shapes, "tooltip": tooltip},
            },
        ],
    }


def _bars(panel: Panel, looks: dict[str, Look]) -> dict[str, Any]:
    y = {"field": "method", "type": "nominal", "title": None, "sort": list(panel.methods)}
    axis = {
        "domain": False,
        "ticks": False,
        "labelLimit": 180,
        "labelFontSize": 12,
        "labelColor": "var(--ink)",
    }
    x = {"type": "quantitative", "title": panel.x_title, "axis": {"tickCount": 5, "domain": False}}
    return {
        "width": "container",
        "height": STEP * len(panel.methods),
        "padding": {"left": 0, "top": 4, "bottom": 0, "right": 78},
        "config": CONFIG,
        "encoding": {"y": {**y, "axis": axis}, "tooltip": _tooltip("", with_place=False)},
        "layer": [
            {
                "mark": {"type": "bar", "height": {"band": 0.62}, "cornerRadiusEnd": 2},
                "encoding": {
                    "x": {**x, "field": "mean", "scale": {"zero": True}},
                    "color": _colour(panel),
                    "fillOpacity": {"condition": {"test": "!datum.complete", "value": 0.35}, "value": 0.9},
                },
            },
            {
                "mark": {"type": "rule", "strokeWidth": 1.5, "color": "var(--ink)"},
                "encoding": {"x": {**x, "field": "low"}, "x2": {"field": "high"}},
            },
            {
                "mark": {"type": "text", "align": "left", "dx": 8, "fontSize": 11.5, "color": "var(--ink)"},
                "transform": [
                    {
                        "calculate": "datum.gap ? 0 : datum.high === null ? datum.mean : datum.high",
                        "as": "end",
                    }
                ],
                "encoding": {"x": {**x, "field": "end"}, "text": {"field": "shown"}},
            },
        ],
    }


def _heat(panel: Panel, looks: dict[str, Look]) -> dict[str, Any]:
    label = {"domain": False, "ticks": False, "labelAngle": 0, "labelLimit": 180, "labelFontSize": 11.5}
    return {
        "width": "container",
        "height": STEP * len(panel.methods),
        "config": CONFIG,
        "encoding": {
            "x": {
                "field": "x",
                "type": "nominal",
                "title": panel.x_title,
                "sort": list(panel.xs),
                "axis": {**label, "orient": "top"},
                "scale": {"domain": list(panel.xs), "paddingInner": 0.04},
            },
            "y": {
                "field": "method",
                "type": "nominal",
                "title": None,
                "sort": list(panel.methods),
                "axis": {**label, "labelColor": "var(--ink)"},
                "scale": {"paddingInner": 0.08},
            },
            "tooltip": _tooltip("Noise"),
        },
        "layer": [
            {
                "mark": {"type": "rect", "cornerRadius": 3},
                "transform": [{"filter": "!datum.gap"}],
                "encoding": {
                    "fill": {
                        "condition": {"test": "datum.difference < 0", "value": "var(--worse)"},
                        "value": "var(--better)",
                    },
                    "fillOpacity": {
                        "field": "strength",
                        "type": "quantitative",
                        "legend": None,
                        "scale": {"domain": [0, 1], "range": [0.06, 0.75]},
                    },
                },
            },
            {
                "mark": {"type": "text", "fontSize": {"expr": FITTING}, "color": "var(--ink)"},
                "encoding": {
                    "text": {
                        "condition": {"test": "bandwidth('x') < 76 && !datum.gap", "field": "short"},
                        "field": "shown",
                    }
                },
            },
        ],
    }


def _history(panel: Panel, looks: dict[str, Look]) -> dict[str, Any]:
    """Bands and stretches come in the order of the data, because both differ from choice to choice."""
    label = {"domain": False, "ticks": False, "labelFontSize": 11, "labelLimit": 180}
    tooltip = [
        {"field": "method", "title": "Flagged by (documents)"},
        {"field": "x", "title": "Trees"},
        {"field": "mean", "title": "Share flagged", "format": ".1%"},
    ]
    return {
        "width": "container",
        "height": BAND * len(panel.methods),
        "config": CONFIG,
        "encoding": {
            "x": {
                "field": "x",
                "type": "nominal",
                "title": panel.x_title,
                "sort": None,
                "axis": {**label, "labelAngle": -35},
                "scale": {"paddingInner": 0.03},
            },
            "y": {
                "field": "method",
                "type": "nominal",
                "title": None,
                "sort": None,
                "axis": {**label, "labelColor": "var(--ink)"},
                "scale": {"paddingInner": 0.06},
            },
            "tooltip": tooltip,
        },
        "layer": [
            {
                "mark": {"type": "rect", "cornerRadius": 2},
                "encoding": {
                    "fill": {
                        "condition": {"test": "datum.gap", "value": "var(--none-bg)"},
                        "value": "var(--better)",
                    },
                    "fillOpacity": {
                        "condition": {"test": "datum.gap", "value": 0.5},
                        "field": "mean",
                        "type": "quantitative",
                        "legend": None,
                        "scale": {"domain": [0, 1], "range": [0.05, 0.6]},
                    },
                },
            },
            {
                "mark": {
                    "type": "text",
                    "fontSize": {"expr": "bandwidth('x') < 24 ? 0 : 10"},
                    "color": "var(--ink)",
                },
                "encoding": {"text": {"field": "shown"}},
            },
        ],
    }
