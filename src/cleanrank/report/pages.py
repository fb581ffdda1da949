"""Pages of one file that need no network: of a grid, of all recipes, and whatever has a template.

Templates escape whatever is not markup already. The policy of a page allows its own scripts and style by
their hashes and no request at all.
"""

import base64
import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from markupsafe import Markup

from cleanrank import __version__
from cleanrank.data.files import written_whole
from cleanrank.report import charts, grid_tables, images, panels
from cleanrank.report.collapse import AXES, SOURCES
from cleanrank.report.published import RULE, STATUSES, MatrixRow, Published, compare_published
from cleanrank.report.summaries import Summary, summarise
from cleanrank.report.table import Table, templates
from cleanrank.types import RunRecord

AT_ONCE = 12  # figures of a recipe shown before the rest is folded away
STUDIED = {measure for _, measure in SOURCES.values()}  # figures of labels, not of rankings


def write_page(
    path: str | os.PathLike[str],
    template: str,
    title: str,
    *,
    drawn: Sequence[Mapping[str, Any]] = (),
    **values: Any,
) -> Path:
    """Writes a page whole or not at all, with charts for its script to draw; same values, same bytes."""
    style = charts.asset("report.css")
    scripts = [*([images.library()] if drawn else []), charts.asset("report.js")]
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_hash, scripts))}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    frame = {"style": Markup(style), "scripts": [Markup(s) for s in scripts], "policy": policy}
    values |= {**frame, "title": title, "charts": drawn, "version": __version__}
    with written_whole(path) as part:
        part.write_bytes(templates().get_template(template).render(values).encode("utf-8"))
    return Path(path)


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def write_report(
    records: Sequence[RunRecord],
    path: str | os.PathLike[str],
    *,
    title: str,
    command: str,
    summary: Summary | None = None,
    baseline: str | None = None,
    published: Sequence[Published] = (),
    notes: Sequence[str] = (),
) -> Path:
    """Writes the page of a grid: pictures, tables, verdicts and provenance.

    Args:
        records: what ran.
        path: the file to write.
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
    return write_page(
        path,
        "report.html",
        title,
        drawn=report_charts(summary),
        summary=summary,
        command=command,
        notes=notes,
        looks=charts.looks(summary.methods, summary.baseline),
        tables=grid_tables,
        rule=RULE,
        verdicts=verdicts,
        judged=[v for v in verdicts if v.published is not None and not v.context],
        provenance=_provenance(summary, records),
    )


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
    """Specifications, data and words of every picture; data are keyed by the choice that shows them."""
    keyed: list[tuple[str, panels.Panel]] = []
    for measure in summary.measures:
        keyed += [(measure, p) for p in panels.curves(summary, measure)]
        for level in summary.levels:
            keyed += [(f"{measure} | {level.label}", p) for p in panels.bars(summary, measure, level)]
        keyed += [(measure, p) for p in panels.heat(summary, measure)]
        keyed += [(measure, p) for p in _traces(summary, measure)]
    keyed = [(key, p) for key, p in keyed if p.points]  # where nothing ran, the tables say why
    every: dict[tuple[str, str], dict[str, Any]] = {}
    for key, panel in [*keyed, *panels.history_panels(summary)]:
        name = panel.dataset if panel.kind == "bars" else panel.title
        measure, _, level_name = key.partition(" | ")
        methods = () if panel.kind in ("traces", "history") else summary.methods
        chart = every.setdefault(
            (panel.kind, name),
            {
                "id": f"chart-{len(every)}",
                "kind": panel.kind,
                "title": name,
                "only": level_name,
                "measured": panel.kind == "history" or panel.measure.startswith(measure),
                "wide": panel.kind == "heat" and len(summary.levels) > 5,
                "data": {},
                "words": {},
                "step": charts.step(panel) if methods else None,
                "spec": charts.specification(panel, summary.baseline, methods=methods),
            },
        )
        chart["data"][key] = charts.data(panel)
        chart["words"][key] = panel.words
    return list(every.values())


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


def write_matrix(rows: Sequence[MatrixRow], path: str | os.PathLike[str]) -> Path:
    """Writes the page of all recipes: commands, what was expected, what came out, and how each stands.

    Colours come with a shape and a word: ``STATUSES`` lists them.
    """

    def tables(row: MatrixRow) -> tuple[MatrixRow, Table, Table]:
        first = grid_tables.recipe_table(row.rows[:AT_ONCE], f"Figures of {row.title}")
        return row, first, grid_tables.recipe_table(row.rows[AT_ONCE:], f"More figures of {row.title}")

    groups = dict.fromkeys(r.group for r in rows)
    return write_page(
        path,
        "matrix.html",
        "Every recipe, expected and observed",
        statuses=STATUSES,
        rows=rows,
        overview=grid_tables.recipes_table(rows),
        groups=[(name, [tables(r) for r in rows if r.group == name]) for name in groups],
        rule=RULE,
    )
