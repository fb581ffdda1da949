"""Pictures of a diagnosis and of a plan: Vega-Lite descriptions with their data, and the same in words."""

from collections.abc import Mapping, Sequence
from typing import Any

from cleanrank.report.palette import BASELINE, LOOKS
from cleanrank.report.vega import CONFIG

MARKS = len(LOOKS)
# The colours by place, as style sheets want them: --c0 is the baseline's grey.
_LIGHT = "".join(f"--c{i}:{look.light};" for i, look in enumerate((BASELINE, *LOOKS)))
_DARK = "".join(f"--c{i}:{look.dark};" for i, look in enumerate((BASELINE, *LOOKS)))
COLOURS = (
    f":root{{{_LIGHT}}}\n@media screen{{:root[data-theme=dark]{{{_DARK}}}\n"
    f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{_DARK}}}}}}}\n"
)


def diagnosis_pictures(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The pictures of a diagnosis: curves, curves of published sets, shares of grades, lengths."""
    made = [_shares(found), _lengths(found)]
    if found["curves"]:
        made = [_curves(found), _known(found), *made]
    return made


def plan_pictures(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The pictures of a plan: what every way is worth, and how its wrong pairs come about."""
    there = [o for o in found["options"] if not o["problem"]]
    return [_worth(found, there), _wrong(found, there)] if there else []


def _curves(found: Mapping[str, Any]) -> dict[str, Any]:
    rows = [
        {"line": c["profile"], "rate": r, "pnoise": p, "left": f"{s:.0%}", "wrong": f"{p:.1%}"}
        for c in found["curves"]
        for r, p, s in zip(c["rates"], c["pnoise"], c["signal_left"], strict=True)
    ]
    lines = [c["profile"] for c in found["curves"]]
    at = found["curves"][0]["limits"]["at"]
    words = "pNoise against the label error rate. " + " ".join(
        f"{c['profile']}: {c['pnoise'][-1]:.3f} at {c['rates'][-1]:.0%}." for c in found["curves"]
    )
    return picture("curves", "pNoise of these data, by kind of error", words, _lines(rows, lines, at, 1))


def _known(found: Mapping[str, Any]) -> dict[str, Any]:
    rates = found["curves"][0]["rates"]
    mine = {"dataset": "these data", "pnoise": found["curves"][0]["overall"]}
    every = [mine, *found["known"]]
    rows = [
        {"line": k["dataset"], "rate": r, "pnoise": p, "left": f"{1 - 2 * p:.0%}", "wrong": f"{p:.1%}"}
        for k in every
        for r, p in zip(rates, k["pnoise"], strict=True)
        if p is not None
    ]
    profile = found["curves"][0]["profile"]
    words = f"pNoise of published data sets under {profile} errors. " + " ".join(
        f"{k['dataset']}: {k['pnoise'][-1]:.3f} at {rates[-1]:.0%}." for k in every
    )
    at = found["curves"][0]["limits"]["at"]
    title = f"Beside published data sets ({profile} errors, overall shares)"
    return picture("known", title, words, _lines(rows, [k["dataset"] for k in every], at, 0))


def _lines(rows: list[dict[str, Any]], lines: Sequence[str], at: float, first: int) -> dict[str, Any]:
    """Lines over the error rate, the turning point as a rule; the first line in colour ``first``."""
    looks = [(BASELINE, *LOOKS)[(first + i) % (MARKS + 1)] for i in range(len(lines))]
    colours = [f"var(--c{(first + i) % (MARKS + 1)})" for i in range(len(lines))]
    if first == 0:  # one's own data stand out: full ink, and the published ones in colours
        colours = ["var(--ink)", *(f"var(--c{1 + i % MARKS})" for i in range(len(lines) - 1))]
    dashes = [list(look.dash) or [1, 0] for look in looks]
    domain = {"domain": list(lines)}
    legend = {
        "orient": "top",
        "title": None,
        "columns": 3,
        "columnPadding": 26,
        "labelColor": "var(--ink)",
        "symbolSize": 60,
    }
    colour = {"field": "line", "type": "nominal", "scale": {**domain, "range": colours}, "legend": legend}
    shape = {
        "field": "line",
        "type": "nominal",
        "scale": {**domain, "range": [k.shape for k in looks]},
        "legend": legend,
    }
    y = {
        "field": "pnoise",
        "type": "quantitative",
        "title": "pNoise",
        "scale": {"domain": [0, 0.5]},
        "axis": {"tickCount": 5, "domain": False},
    }
    x = {
        "field": "rate",
        "type": "quantitative",
        "title": "label error rate",
        "axis": {"format": ".0%", "grid": False, "tickCount": 6},
        "scale": {"nice": False},
    }
    tooltip = [
        {"field": "line", "title": "Line"},
        {"field": "rate", "title": "Label errors", "format": ".0%"},
        {"field": "wrong", "title": "Wrong pairs"},
        {"field": "left", "title": "Signal left"},
    ]
    turning = {"data": {"values": [{"at": at, "shown": "turning point"}]}}
    place = {"y": {"field": "at", "type": "quantitative"}}
    rule = {"type": "rule", "strokeDash": [3, 3], "color": "var(--muted)", "tooltip": False}
    name = {"type": "text", "align": "left", "baseline": "bottom", "dx": 4, "dy": -3, "color": "var(--muted)"}
    named = {**place, "x": {"value": 0}, "text": {"field": "shown"}}
    return {
        "width": "container",
        "height": 270,
        "config": CONFIG,
        "layer": [
            {**turning, "mark": rule, "encoding": place},
            {**turning, "mark": {**name, "fontSize": 10.5, "tooltip": False}, "encoding": named},
            {
                "data": {"values": rows},
                "mark": {"type": "line", "strokeWidth": 2, "tooltip": False},
                "encoding": {
                    "x": x,
                    "y": y,
                    "color": colour,
                    "strokeDash": {
                        "field": "line",
                        "type": "nominal",
                        "scale": {**domain, "range": dashes},
                        "legend": legend,
                    },
                },
            },
            {
                "data": {"values": rows},
                "mark": {"type": "point", "filled": True, "size": 46, "opacity": 1},
                "encoding": {"x": x, "y": y, "color": colour, "shape": shape, "tooltip": tooltip},
            },
        ],
    }


def _shares(found: Mapping[str, Any]) -> dict[str, Any]:
    grades = found["grades"]
    rows = [
        {"grade": str(g), "share": s, "documents": f"{n:,}", "shown": f"{s:.1%}"}
        for g, (n, s) in enumerate(zip(grades["documents"], grades["shares"], strict=True))
    ]
    words = "Shares of the grades. " + " ".join(f"Grade {r['grade']}: {r['shown']}." for r in rows)
    tooltip = [{"field": "grade", "title": "Grade"}, {"field": "documents", "title": "Documents"}]
    spec = bars(rows, "grade", "share", None, tooltip=tooltip, step=30, form=".0%")
    return picture("grade-shares", "Documents by grade", words, spec)


def _lengths(found: Mapping[str, Any]) -> dict[str, Any]:
    lengths = found["lengths"]
    rows = [
        {
            "from": low,
            "to": high,
            "queries": n,
            "shown": f"{low} to {high - 1}" if high - low > 1 else str(low),
        }
        for low, high, n in zip(lengths["edges"], lengths["edges"][1:], lengths["queries"], strict=False)
    ]
    q = lengths["quantiles"]
    words = f"Documents per query: {q['0']:g} to {q['100']:g}, half of the queries have at most {q['50']:g}."
    spec = {
        "width": "container",
        "height": 170,
        "config": CONFIG,
        "data": {"values": rows},
        "mark": {"type": "bar", "color": "var(--c1)", "fillOpacity": 0.9, "binSpacing": 1},
        "encoding": {
            "x": {
                "field": "from",
                "type": "quantitative",
                "bin": {"binned": True},
                "title": "documents per query",
                "axis": {"grid": False, "tickCount": 8, "format": "d"},
            },
            "x2": {"field": "to"},
            "y": {
                "field": "queries",
                "type": "quantitative",
                "title": "queries",
                "axis": {"tickCount": 4, "domain": False, "format": "~s"},
            },
            "tooltip": [{"field": "shown", "title": "Documents"}, {"field": "queries", "title": "Queries"}],
        },
    }
    return picture("lengths", "Queries by length", words, spec)


def _worth(found: Mapping[str, Any], options: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    rows = [
        {
            "way": o["name"],
            "value": o["effective_pairs"],
            "shown": f"{o['effective_pairs']:,.0f}",
            "chosen": o["name"] == found["recommended"],
        }
        for o in options
    ]
    words = "Effective pairs. " + " ".join(f"{r['way']}: {r['shown']}." for r in rows)
    tooltip = [{"field": "way", "title": "Way"}, {"field": "shown", "title": "Effective pairs"}]
    spec = bars(rows, "way", "value", "effective pairs", tooltip=tooltip, step=24, label_limit=230)
    return picture("worth", "What each way is worth", words, spec)


def _wrong(found: Mapping[str, Any], options: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    rows = []
    for o in options:
        for part, value in (("floor of a perfect judge", o["floor"]), ("added by errors", o["excess"])):
            rows.append({"way": o["name"], "part": part, "value": max(0.0, value), "shown": f"{value:.3f}"})
    parts = ["floor of a perfect judge", "added by errors"]
    legend = {
        "orient": "top",
        "title": None,
        "columnPadding": 26,
        "labelColor": "var(--ink)",
        "symbolType": "square",
    }
    words = "pNoise. " + " ".join(f"{o['name']}: {o['pnoise']:.3f}, floor {o['floor']:.3f}." for o in options)
    spec = bars(
        rows,
        "way",
        "value",
        "pNoise",
        step=24,
        form=".1f",
        label_limit=230,
        tooltip=[
            {"field": "way", "title": "Way"},
            {"field": "part", "title": "Part"},
            {"field": "shown", "title": "pNoise"},
        ],
    )
    spec["layer"] = spec["layer"][:1]
    spec["layer"][0]["encoding"]["color"] = {
        "field": "part",
        "type": "nominal",
        "scale": {"domain": parts, "range": ["var(--c0)", "var(--c2)"]},
        "legend": legend,
    }
    spec["layer"][0]["encoding"]["order"] = {"field": "part", "type": "nominal", "sort": "descending"}
    return picture("wrong", "Where wrong pairs come from", words, spec)


def bars(
    rows: list[dict[str, Any]],
    name: str,
    value: str,
    title: str | None,
    *,
    tooltip: list[dict[str, str]],
    step: int,
    form: str = "~s",
    label_limit: int = 120,
) -> dict[str, Any]:
    """Bars from 0 with their values behind them, in the order of the rows; ``chosen`` rows stand out."""
    names = list(dict.fromkeys(r[name] for r in rows))
    axis = {"domain": False, "ticks": False, "labelLimit": label_limit, "labelColor": "var(--ink)"}
    y = {"field": name, "type": "nominal", "title": None, "sort": names, "axis": axis}
    x = {
        "field": value,
        "type": "quantitative",
        "title": title,
        "axis": {"tickCount": 4, "domain": False, "format": form},
        "scale": {"zero": True, "padding": 8},
    }
    colour = {"condition": {"test": "datum.chosen", "value": "var(--c3)"}, "value": "var(--c1)"}
    bar = {"type": "bar", "height": {"band": 0.66}, "cornerRadiusEnd": 2, "fillOpacity": 0.9}
    text = {"type": "text", "align": "left", "dx": 6, "fontSize": 11, "color": "var(--ink)"}
    return {
        "width": "container",
        "height": step * len(names),
        # Print sets text wider than it was measured: leave room on the left.
        "padding": {"left": label_limit // 6, "right": 14, "top": 4, "bottom": 4},
        "config": CONFIG,
        "data": {"values": rows},
        "encoding": {"y": y, "x": x},
        "layer": [
            {"mark": bar, "encoding": {"color": colour, "tooltip": tooltip}},
            {"mark": text, "encoding": {"text": {"field": "shown"}}},
        ],
    }


def picture(name: str, title: str, words: str, spec: dict[str, Any], *, wide: bool = False) -> dict[str, Any]:
    """What a page needs of a picture: its place, title, words for who cannot see it, description, width."""
    return {"id": name, "title": title, "words": words, "spec": spec, "wide": wide}
