"""Pages of one file that need no network: of a grid, whatever has a template.

Templates escape whatever is not markup already. The policy of a page allows its own style by its hash, a
script only where the page brings one (by its hash too), and no request at all; pictures are drawn into it.
"""

import base64
import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from markupsafe import Markup

from cleanrank import __version__
from cleanrank.data.files import written_whole
from cleanrank.report import grid_tables, panels
from cleanrank.report.charts import asset, looks
from cleanrank.report.collapse import AXES, SOURCES
from cleanrank.report.images import NARROW, WIDE, inline_picture
from cleanrank.report.published import RULE, Published, compare_published
from cleanrank.report.summaries import Summary, summarise
from cleanrank.report.table import templates
from cleanrank.types import RunRecord

PICTURED = 3  # measures with pictures; the tables have all of them
STUDIED = {measure for _, measure in SOURCES.values()}  # figures of labels, not of rankings


class Page(NamedTuple):
    """A page before it is drawn: its template, its title and what the template shows.

    A file brings style and script along; the web app shows the same template within its own frame.
    """

    template: str
    title: str
    values: Mapping[str, Any]


def write_page(path: str | os.PathLike[str], page: Page, *, script: str = "") -> Path:
    """Writes a page whole or not at all; same values, same bytes."""
    style = asset("report.css")
    policy = f"default-src 'none'; style-src {_digest(style)}; base-uri 'none'; form-action 'none'"
    policy += f"; script-src {_digest(script)}" if script else ""
    frame = {"style": Markup(style), "script": Markup(script), "policy": policy, "title": page.title}
    text = templates().get_template(page.template).render({**page.values, **frame, "version": __version__})
    with written_whole(path) as part:
        part.write_bytes(text.encode("utf-8"))
    return Path(path)


def _digest(text: str) -> str:
    """A text as a policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"


def report_page(
    records: Sequence[RunRecord],
    *,
    title: str,
    command: str,
    summary: Summary | None = None,
    baseline: str | None = None,
    published: Sequence[Published] = (),
    notes: Sequence[str] = (),
) -> Page:
    """The page of a grid: pictures, tables, verdicts and provenance.

    Args:
        records: what ran.
        title: of the page.
        command: what reproduces it.
        summary: of the records; made here unless given.
        baseline: the method that a summary made here tests the others against.
        published: figures to set beside ours.
        notes: paragraphs shown under the title.
    """
    if summary is None:
        summary = summarise(records, baseline=baseline)
    verdicts = compare_published(summary, published) if published else ()
    values = {
        "charts": report_charts(summary),
        "summary": summary,
        "command": command,
        "notes": notes,
        "looks": looks(summary.methods, summary.baseline),
        "tables": grid_tables,
        "rule": RULE,
        "verdicts": verdicts,
        "judged": [v for v in verdicts if v.published is not None and not v.context],
        "provenance": _provenance(summary, records),
    }
    return Page("report.html", title, values)


def write_report(records: Sequence[RunRecord], path: str | os.PathLike[str], **options: Any) -> Path:
    """Writes the page of a grid; ``options`` are those of ``report_page``."""
    return write_page(path, report_page(records, **options))


def _provenance(summary: Summary, records: Sequence[RunRecord]) -> dict[str, str]:
    versions: dict[str, dict[str, None]] = {}
    for record in records:
        for name, version in record.versions.items():
            versions.setdefault(name, {})[version] = None
    started = sorted(r.started_at for r in records if r.started_at)
    return {
        "Recipe": ", ".join(dict.fromkeys(r.recipe for r in records)),
        "Ran": f"{started[0]} to {started[-1]}" if started else "",
        "Time in cells": f"{math.fsum(r.wall_seconds for r in records):,.1f} s",
        "Seeds": ", ".join(dict.fromkeys(c.seed for c in summary.cells if c.seed)) or "none",
        "Versions": ", ".join(f"{n} {' and '.join(v)}" for n, v in sorted(versions.items())),
    }


def report_charts(summary: Summary) -> list[dict[str, Any]]:
    """The pictures of the first measures, and those of outliers, which belong to none."""
    several: list[tuple[str, panels.Panel]] = []
    for measure in summary.measures[:PICTURED]:
        alone = summary.levels if len(summary.levels) == 1 else ()  # else curves and heat maps show them
        bars = [p for level in alone for p in panels.bars(summary, measure, level)]
        shown = [*panels.curves(summary, measure), *bars, *panels.heat(summary, measure)]
        several += [(measure, p) for p in (*shown, *_traces(summary, measure)) if p.points]
    several += [("", replace(p, title=f"{p.title}, {m}")) for m, p in panels.history_panels(summary)]
    charts = []
    for i, (measure, panel) in enumerate(several):
        wide = panel.kind == "history" or (panel.kind == "heat" and len(summary.levels) > 5)
        methods = () if panel.kind in ("traces", "history") else summary.methods
        options = {"baseline": summary.baseline, "methods": methods}
        chart = inline_picture(panel, f"chart-{i}", (2 * WIDE, NARROW) if wide else (NARROW,), **options)
        charts.append({**chart, "measure": measure, "wide": wide})
    return charts


def _traces(summary: Summary, measure: str) -> list[panels.Panel]:
    """What methods keep over dNoise and pNoise where there are data sets to compare; pNoise over dNoise."""
    pair = panels.pair_noise_panels(summary)
    if not pair or measure in STUDIED:
        return list(pair)
    kept = [
        replace(p, title=f"{p.title}, against {'pNoise' if axis == 'pnoise' else 'dNoise'}")
        for axis in AXES
        for p in panels.kept_panels(summary, measure, axis)
        if len(summary.datasets) > 1
    ]
    return [*kept, *(replace(p, title=f"pNoise under {p.title}") for p in pair)]
