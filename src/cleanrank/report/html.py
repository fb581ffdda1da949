"""The page of a grid: pictures, tables, verdicts and provenance in one file that needs no network."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cleanrank.report import details, outliers, panels, sections, traces, vega
from cleanrank.report.grid import Level
from cleanrank.report.matrix import write_matrix
from cleanrank.report.page import Safe, asset, data_block, page, tag, write_page
from cleanrank.report.palette import LOOKS, looks, many_looks
from cleanrank.report.published import Published, compare_published
from cleanrank.report.shown import convention
from cleanrank.report.summaries import Summary, summarise
from cleanrank.types import RunRecord

__all__ = ["write_matrix", "write_report"]
STUDIED = {measure for _, measure in traces.SOURCES.values()}  # figures of labels, not of rankings


def write_report(
    records: Sequence[RunRecord],
    path: str | os.PathLike[str],
    *,
    title: str,
    command: str,
    baseline: str | None = None,
    published: Sequence[Published] = (),
    noise_axis: str | None = None,
    measures: Sequence[str] | None = None,
    notes: Sequence[str] = (),
    expected: Iterable[Mapping[str, Any]] | None = None,
    summary: Summary | None = None,
) -> Path:
    """Writes the page of a grid; the same records give the same bytes.

    Args:
        records: what ran.
        path: the file to write.
        title: of the page.
        command: what reproduces it.
        baseline: the method the others are tested against.
        published: figures to set beside ours.
        noise_axis: the kind of noise whose curves are drawn; all kinds unless given.
        measures: the measures to show; all unless given.
        notes: paragraphs shown under the title.
        expected: the cells that were asked for, so that those without a record show as missing.
        summary: of the same records, where the caller has it already.
    """
    if summary is None:
        summary = summarise(records, measures=measures, baseline=baseline, expected=expected)
    verdicts = compare_published(summary, published) if published else ()
    charts = _charts(summary, noise_axis)
    body = [
        sections.header(summary, title, command, notes, pictured=bool(charts), judged=bool(verdicts)),
        tag(
            "main",
            sections.notice(summary),
            _pictures(summary, charts) if charts else None,
            sections.results(summary),
            details.against_published(verdicts, summary),
            details.details(summary),
            sections.gaps(summary),
        ),
        sections.provenance(summary, records, command),
        data_block("charts", {"charts": charts, "methods": summary.methods}),
    ]
    style = _method_colours(summary)
    text = page(title, body, scripts=[vega.library(), asset("report.js")], extra_style=style)
    return write_page(path, text)


def _charts(summary: Summary, noise_axis: str | None) -> list[dict[str, Any]]:
    """Descriptions, data and words of every picture; data are keyed by the choice that shows them."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for measure in summary.measures:
        drawn: list[tuple[str, panels.Panel]] = []
        for panel in panels.curves(summary, measure):
            if noise_axis is None or panel.x_title == f"rate of {noise_axis} noise":
                drawn.append((measure, panel))
        for level in summary.levels:
            drawn += [(f"{measure} | {level.label}", p) for p in panels.bars(summary, measure, level)]
        drawn += [(measure, p) for p in panels.heat(summary, measure)]
        drawn += [(measure, p) for p in _traces(summary, measure)]
        for key, panel in drawn:
            if panel.points:  # where nothing ran, the tables say why
                _add(found, key, panel, summary)
    for method, panel in outliers.history_panels(summary):
        _add(found, method, panel, summary)
    return list(found.values())


def _traces(summary: Summary, measure: str) -> list[panels.Panel]:
    """What methods keep over dNoise and pNoise where there are data sets to compare; pNoise over dNoise."""
    pair = traces.pair_noise_panels(summary)
    if not pair or measure in STUDIED:
        return list(pair)
    found = [
        replace(p, title=f"{p.title}, against {'pNoise' if axis == 'pnoise' else 'dNoise'}")
        for axis in traces.AXES
        for p in traces.kept_panels(summary, measure, axis)
        if len(summary.datasets) > 1
    ]
    return [*found, *(replace(p, title=f"pNoise under {p.title}") for p in pair)]


def _add(
    found: dict[tuple[str, str], dict[str, Any]], key: str, panel: panels.Panel, summary: Summary
) -> None:
    name = panel.dataset if panel.kind == "bars" else panel.title
    chart = found.setdefault(
        (panel.kind, name),
        {
            "id": f"chart-{len(found)}",
            "kind": panel.kind,
            "title": name,
            "only": key.partition(" | ")[2],
            "measured": panel.kind == "history" or panel.measure.startswith(key.partition(" | ")[0]),
            "data": {},
            "words": {},
            "step": None if panel.kind in ("curves", "traces", "history") else vega.STEP,
            "spec": vega.description(
                panel,
                many_looks(panel.methods)
                if panel.kind in ("traces", "history")
                else looks(summary.methods, summary.baseline),
            ),
        },
    )
    chart["data"][key] = vega.data(panel)
    chart["words"][key] = panel.words


KINDS: dict[str, tuple[str, str]] = {
    "curves": (
        "Against noise",
        "Mean over all test queries; the band is the {confidence:.0%} bootstrap interval.{gaps}",
    ),
    "bars": ("Side by side", "Bars start at 0; the thin line is the {confidence:.0%} bootstrap interval."),
    "heat": ("Every level at once", "{what}"),
    "traces": (
        "Across data sets",
        "Lines fall together where the axis explains the loss. dNoise and pNoise are those of the training "
        "labels; of pNoise, points are counted and lines the closed form.",
    ),
    "history": (
        "Outliers as the forest grows",
        "Of the documents flagged at least once, a row holds those that such a share of the forests flags; "
        "in brackets, how many. A cell is the percentage of them that the forests of that stretch flag, on "
        "average.",
    ),
}


def _pictures(summary: Summary, charts: Sequence[Mapping[str, Any]]) -> Safe:
    what = (
        f"Difference from {summary.baseline}; the stronger the colour, the larger."
        if summary.baseline
        else "Mean; the stronger the colour, the larger."
    )
    hollow = " Hollow points are incomplete." if summary.gaps else ""
    groups = []
    for kind, (heading, words) in KINDS.items():
        mine = [c for c in charts if c["kind"] == kind]
        if mine:
            note = words.format(confidence=summary.confidence, what=what, gaps=hollow)
            figures = [_figure(c, summary) for c in mine]
            tools = _level_choice(summary) if kind == "bars" and len(summary.levels) > 1 else None
            tools = _outlier_choice(mine) if kind == "history" else tools
            head = tag("div", tag("h3", heading), tools, class_="bar")
            drawn = tag("div", *figures, class_="figures")
            groups.append(tag("div", head, tag("p", note, class_="hint"), drawn, class_="group"))
    return tag(
        "section",
        tag("h2", "Pictures"),
        tag("div", _measure_choice(summary), _legend(summary), class_="toolbar"),
        tag("p", convention(summary.measures[0]), class_="hint", id="convention", aria_live="polite"),
        *groups,
        id="pictures",
    )


def _figure(chart: Mapping[str, Any], summary: Summary) -> Safe:
    key = next(iter(chart["data"]))
    return tag(
        "figure",
        tag("figcaption", chart["title"], tag("span", class_="measure")),
        tag("div", id=chart["id"], class_="plot", role="img", aria_label=chart["words"][key]),
        class_="wide" if chart["kind"] == "heat" and len(summary.levels) > 5 else None,
    )


def _measure_choice(summary: Summary) -> Safe:
    options = [tag("option", m, value=m, data_words=convention(m)) for m in summary.measures]
    return tag("label", "Measure ", tag("select", *options, id="measure"))


def _level_choice(summary: Summary) -> Safe:
    options = [tag("option", v.label, value=v.label) for v in _distinct(summary.levels)]
    return tag("label", "Noise ", tag("select", *options, id="level"))


def _outlier_choice(charts: Sequence[Mapping[str, Any]]) -> Safe:
    names = dict.fromkeys(name for chart in charts for name in chart["data"])
    return tag(
        "label", "Outliers ", tag("select", *(tag("option", n, value=n) for n in names), id="outliers")
    )


def _distinct(levels: Iterable[Level]) -> list[Level]:
    return list({v.label: v for v in levels}.values())


def _legend(summary: Summary) -> Safe:
    """Buttons that show and hide a method in every picture."""
    chosen = looks(summary.methods, summary.baseline)
    items = [
        tag(
            "button",
            tag("span", _swatch(i, " ".join(map(str, chosen[m].dash)), chosen[m].shape), class_="swatch"),
            m,
            tag("span", " baseline", class_="tagword") if m == summary.baseline else None,
            type="button",
            aria_pressed="true",
            data_method=m,
        )
        for i, m in enumerate(summary.methods)
    ]
    return tag("div", *items, class_="legend", role="group", aria_label="Methods shown in the pictures")


SHAPES: dict[str, str] = {
    "circle": "M17 6.5a4.5 4.5 0 1 0 .001 0z",
    "square": "M13 7h8v8h-8z",
    "triangle-up": "M17 6l5 9h-10z",
    "triangle-down": "M17 16l5-9h-10z",
    "diamond": "M17 5.5l5 5.5-5 5.5-5-5.5z",
    "cross": "M15.5 6h3v3.500h3.500v3h-3.500v3.500h-3v-3.500h-3.500v-3h3.500z",
    "triangle-right": "M13 6l9 5-9 5z",
    "triangle-left": "M21 6l-9 5 9 5z",
}


def _swatch(place: int, dash: str, shape: str) -> Safe:
    line = tag("path", d="M1 11h32", stroke_dasharray=dash or None)
    return tag(
        "svg",
        line,
        tag("path", d=SHAPES[shape], class_="dot"),
        class_=f"m{place}",
        viewBox="0 0 34 22",
        aria_hidden="true",
    )


def _method_colours(summary: Summary) -> str:
    chosen = looks(summary.methods, summary.baseline)
    light = "".join(f"--m{i}:{chosen[m].light};" for i, m in enumerate(summary.methods))
    dark = "".join(f"--m{i}:{chosen[m].dark};" for i, m in enumerate(summary.methods))
    light += "".join(f"--d{i}:{look.light};" for i, look in enumerate(LOOKS))
    dark += "".join(f"--d{i}:{look.dark};" for i, look in enumerate(LOOKS))
    swatches = "".join(f".m{i}{{color:var(--m{i})}}" for i in range(len(summary.methods)))
    return (
        f":root{{{light}}}\n@media screen{{:root[data-theme=dark]{{{dark}}}\n"
        f"@media (prefers-color-scheme:dark){{:root:not([data-theme=light]){{{dark}}}}}}}\n{swatches}\n"
    )
