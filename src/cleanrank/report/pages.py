"""Pages of one file that need no network: of a grid, of all recipes, of a diagnosis, a plan and the demo.

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
from cleanrank.report import charts, grid_tables, panels
from cleanrank.report.collapse import AXES, SOURCES
from cleanrank.report.images import asset, library
from cleanrank.report.published import (
    AGREES,
    DIFFERS,
    NOT_RUN,
    RULE,
    STATUSES,
    MatrixRow,
    Published,
    Verdict,
    compare_published,
)
from cleanrank.report.summaries import Summary, summarise
from cleanrank.report.table import Table, many, templates
from cleanrank.types import RunRecord

AT_ONCE = 12  # figures of a recipe shown before the rest is folded away
STUDIED = {measure for _, measure in SOURCES.values()}  # figures of labels, not of rankings
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


def write_page(
    path: str | os.PathLike[str],
    template: str,
    title: str,
    *,
    drawn: Sequence[Mapping[str, Any]] = (),
    **values: Any,
) -> Path:
    """Writes a page whole or not at all; the same values give the same bytes.

    Args:
        path: the file.
        template: the name of its template.
        title: of the page.
        drawn: the charts that its script draws.
        values: what the template shows.
    """
    style = asset("report.css")
    scripts = [*([library()] if drawn else []), asset("report.js")]
    policy = (
        f"default-src 'none'; script-src {' '.join(map(_hash, scripts))}; style-src {_hash(style)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    text = templates().get_template(template).render(
        title=title,
        style=Markup(style),
        scripts=[Markup(s) for s in scripts],
        policy=policy,
        version=__version__,
        charts=drawn,
        **values,
    )  # fmt: skip
    with written_whole(path) as part:
        part.write_bytes(text.encode("utf-8"))
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
    drawn = report_charts(summary)
    gaps = _gap_words(summary)
    sections = [
        *([("pictures", "Pictures")] if drawn else []),
        ("results", "Results"),
        *([("published", "Published figures")] if verdicts else []),
        ("details", "Details"),
        *([("gaps", "Gaps")] if gaps else []),
        ("provenance", "Provenance"),
    ]
    return write_page(
        path,
        "report.html",
        title,
        drawn=drawn,
        sections=sections,
        summary=summary,
        command=command,
        notes=notes,
        size=_size(summary),
        gap_words=gaps,
        gaps=grid_tables.gap_table(summary),
        looks=charts.looks(summary.methods, summary.baseline),
        shapes=SHAPES,
        groups=_groups(summary, drawn),
        convention=grid_tables.convention,
        results=[grid_tables.results_table(summary, m) for m in grid_tables.chunks(summary.measures)],
        rule=RULE,
        by_measure=[(m, grid_tables.measure_table(summary, m)) for m in summary.measures],
        by_fold=[
            (d, [grid_tables.fold_table(summary, d, m) for m in grid_tables.chunks(summary.measures)])
            for d in summary.datasets
        ],
        provenance=_provenance(summary, records),
        verdicts=verdicts,
        **_verdicts(verdicts),
    )


def _verdicts(verdicts: Sequence[Verdict]) -> dict[str, Any]:
    judged = [v for v in verdicts if v.published is not None and not v.context]
    context = [v for v in verdicts if v.context]
    alone = [v for v in verdicts if v.published is None]
    table = grid_tables.verdict_table
    ours, theirs = ("Ours", "Verdict"), ("Published", "Source")
    counts = [f"{w}: {sum(v.verdict == w for v in judged)}" for w in (AGREES, DIFFERS, NOT_RUN)]
    return {
        "tally": " · ".join(counts),
        "judged": table(judged, "Published figures and ours"),
        "context": table(context, "Other rankers' figures").without("Difference", "Tolerance", *ours),
        "alone": table(alone, "Figures of ours alone").without("Difference", "Tolerance", *theirs),
    }


def _size(summary: Summary) -> str:
    done = sum(c.status == "done" for c in summary.cells)
    noisy = any(not v.clean for v in summary.levels)
    parts = [
        ", ".join(summary.datasets),
        many(len(summary.methods), "method"),
        many(len(summary.levels), "noise level") if noisy else "clean labels",
        many(len({c.fold for c in summary.cells}), "fold"),
        many(len({c.seed for c in summary.cells}), "seed"),
        f"{done:,} of {many(len(summary.cells), 'cell')} done",
    ]
    return " · ".join(parts)


def _gap_words(summary: Summary) -> str:
    counts = {state: sum(c.status == state for c in summary.gaps) for state in ("failed", "missing")}
    return " and ".join(f"{many(n, 'cell')} {state}" for state, n in counts.items() if n)


def _provenance(summary: Summary, records: Sequence[RunRecord]) -> list[tuple[str, str]]:
    versions: dict[str, dict[str, None]] = {}
    for record in records:
        for name, version in record.versions.items():
            versions.setdefault(name, {})[version] = None
    started = sorted(r.started_at for r in records if r.started_at)
    return [
        ("Recipe", ", ".join(dict.fromkeys(r.recipe for r in records))),
        ("Ran", f"{started[0]} to {started[-1]}" if started else ""),
        ("Time in cells", f"{math.fsum(r.wall_seconds for r in records):,.1f} s"),
        ("Seeds", ", ".join(dict.fromkeys(c.seed for c in summary.cells if c.seed)) or "none"),
        ("Versions", ", ".join(f"{n} {' and '.join(v)}" for n, v in sorted(versions.items()))),
    ]


def report_charts(summary: Summary) -> list[dict[str, Any]]:
    """Specifications, data and words of every picture; data are keyed by the choice that shows them."""
    every: dict[tuple[str, str], dict[str, Any]] = {}

    def add(key: str, panel: panels.Panel) -> None:
        name = panel.dataset if panel.kind == "bars" else panel.title
        own = panel.kind in ("traces", "history")  # their series are no methods
        chart = every.setdefault(
            (panel.kind, name),
            {
                "id": f"chart-{len(every)}",
                "kind": panel.kind,
                "title": name,
                "only": key.partition(" | ")[2],
                "measured": panel.kind == "history" or panel.measure.startswith(key.partition(" | ")[0]),
                "wide": panel.kind == "heat" and len(summary.levels) > 5,
                "data": {},
                "words": {},
                "step": charts.step(panel) if panel.kind in ("bars", "heat") else None,
                "spec": charts.specification(panel, summary.baseline, methods=() if own else summary.methods),
            },
        )
        chart["data"][key] = charts.data(panel)
        chart["words"][key] = panel.words

    for measure in summary.measures:
        shown = [(measure, panel) for panel in panels.curves(summary, measure)]
        for level in summary.levels:
            shown += [(f"{measure} | {level.label}", p) for p in panels.bars(summary, measure, level)]
        shown += [(measure, p) for p in panels.heat(summary, measure)]
        shown += [(measure, p) for p in _traces(summary, measure)]
        for key, panel in shown:
            if panel.points:  # where nothing ran, the tables say why
                add(key, panel)
    for method, panel in panels.history_panels(summary):
        add(method, panel)
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


KINDS: dict[str, tuple[str, str]] = {
    "curves": (
        "Against noise",
        "Mean over all test queries; the band is the {confidence:.0%} bootstrap interval.{gaps}",
    ),
    "bars": ("Side by side", "Bars start at 0; the thin line is the {confidence:.0%} bootstrap interval."),
    "heat": ("Every level at once", "{what}; the stronger the colour, the larger."),
    "traces": (
        "Across data sets",
        "Lines fall together where the axis explains the loss. dNoise and pNoise are those of the training "
        "labels; of pNoise, points are counted and lines the closed form.",
    ),
    "history": (
        "Outliers as the model grows",
        "Of the documents flagged at least once, a row holds those that such a share of the models flags; in "
        "brackets, how many. A cell is the percentage of them that the models of that stretch flag, on "
        "average.",
    ),
}


def _groups(summary: Summary, drawn: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The pictures by kind, each kind with its heading, words and what can be chosen."""
    what = f"Difference from {summary.baseline}" if summary.baseline else "Mean"
    hollow = " Hollow points are incomplete." if summary.gaps else ""
    levels = list(dict.fromkeys(v.label for v in summary.levels))
    groups = []
    for kind, (heading, words) in KINDS.items():
        mine = [c for c in drawn if c["kind"] == kind]
        if mine:
            outliers = list(dict.fromkeys(name for c in mine for name in c["data"]))
            choices = {"bars": ("Noise", "level"), "history": ("Outliers", "outliers")}
            options = {"bars": levels if len(summary.levels) > 1 else [], "history": outliers}
            figures = [{**c, "words": next(iter(c["words"].values()))} for c in mine]
            words = words.format(confidence=summary.confidence, what=what, gaps=hollow)
            groups.append(
                {
                    "heading": heading,
                    "words": words,
                    "choice": choices.get(kind),
                    "options": options.get(kind),
                    "charts": figures,
                }
            )
    return groups


def write_matrix(
    rows: Sequence[MatrixRow],
    path: str | os.PathLike[str],
    *,
    title: str = "Every recipe, expected and observed",
) -> Path:
    """Writes the page of all recipes: commands, what was expected, what came out, and how each stands.

    Colours come with a shape and a word: ``STATUSES`` lists them.
    """

    def tables(row: MatrixRow) -> tuple[MatrixRow, Table, Table]:
        first = grid_tables.recipe_table(row.rows[:AT_ONCE], f"Figures of {row.title}")
        return row, first, grid_tables.recipe_table(row.rows[AT_ONCE:], f"More figures of {row.title}")

    return write_page(
        path,
        "matrix.html",
        title,
        sections=(),
        statuses=STATUSES,
        rows=rows,
        overview=grid_tables.recipes_table(rows),
        groups=[
            (name, [tables(r) for r in rows if r.group == name])
            for name in dict.fromkeys(r.group for r in rows)
        ],
        rule=RULE,
    )
