"""Pictures over noise with a series per data set: what is kept against dNoise or pNoise, and pNoise itself.

Curves of different data sets should fall together over pNoise and apart over dNoise (Niu et al. 2015). Both
axes come from the cells: what their training labels realised, averaged over folds and seeds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cleanrank.report.grid import Cell, Level
from cleanrank.report.panels import Panel, Point
from cleanrank.report.summaries import Row, Summary
from cleanrank.validation import one_of

# Where a cell keeps a figure: a ranker's cell in what was chosen, a study of labels among its means.
SOURCES: Mapping[str, tuple[str, str]] = {
    "dnoise": ("train_dnoise", "dnoise"),
    "pnoise": ("train_pnoise", "pnoise"),
    "expected": ("expected_pnoise", "pnoise:expected"),
    "overall": ("overall_pnoise", "pnoise:overall"),
}
AXES: Mapping[str, str] = {
    "dnoise": "dNoise: share of changed training labels",
    "pnoise": "pNoise: share of wrong training pairs",
}


@dataclass(frozen=True)
class Kept:
    """What a method keeps of its clean figure at one noise level of one data set.

    ``share`` is mean / clean mean; with a floor, (mean - floor) / (clean mean - floor).
    """

    dataset: str
    level: Level
    method: str
    dnoise: float
    pnoise: float
    share: float
    row: Row
    clean: Row
    floor: Row | None


def realised(summary: Summary, what: str) -> dict[tuple[str, Level], float]:
    """The mean of a figure of SOURCES over the cells of each data set and level; clean labels have 0."""
    one_of("noise figure", what, SOURCES)
    found: dict[tuple[str, Level], list[float]] = {}
    for cell in summary.cells:
        if cell.status == "done" and (value := _noted(cell, what)) is not None:
            found.setdefault((cell.dataset, cell.level), []).append(value)
    return {place: float(np.mean(values)) for place, values in found.items()}


def _noted(cell: Cell, what: str) -> float | None:
    chosen, measure = SOURCES[what]
    if cell.level.clean:
        return 0.0
    value = cell.chosen.get(chosen, cell.means.get(measure))
    return None if value is None or np.isnan(value) else float(value)


def kept(summary: Summary, measure: str, method: str, *, floor: str | None = None) -> tuple[Kept, ...]:
    """What a method keeps at every complete level, clean ones included.

    Args:
        summary: a grid whose cells note the noise of their training labels.
        measure: of the rankings.
        method: whose.
        floor: a method that learns nothing, such as random order; None takes 0 as the floor.
    """
    one_of("measure", measure, summary.measures)
    for name in [method, *([floor] if floor else [])]:
        one_of("method", name, summary.methods)
    dnoise, pnoise = realised(summary, "dnoise"), realised(summary, "pnoise")
    found = []
    for row in _complete(summary, measure, method):
        place = row.dataset, row.level
        clean = next((r for r in _complete(summary, measure, method, row.dataset) if r.level.clean), None)
        base = None if floor is None else summary.find(row.dataset, row.level, floor, measure)
        if clean is None or place not in pnoise or (floor and (base is None or base.mean is None)):
            continue
        least = 0.0 if base is None or base.mean is None else base.mean
        if row.mean is None or clean.mean is None or clean.mean <= least:
            continue
        share = (row.mean - least) / (clean.mean - least)
        found.append(Kept(*place, method, dnoise[place], pnoise[place], share, row, clean, base))
    return tuple(found)


def _complete(summary: Summary, measure: str, method: str, dataset: str | None = None) -> Iterable[Row]:
    return [
        r
        for r in summary.rows
        if (r.measure, r.method, r.state) == (measure, method, "complete") and dataset in (None, r.dataset)
    ]


def kept_panels(
    summary: Summary, measure: str, axis: str = "pnoise", *, floor: str | None = None
) -> tuple[Panel, ...]:
    """A panel per method that loses: what it keeps against dNoise or pNoise, a line per data set."""
    one_of("axis", axis, AXES)
    panels = []
    for method in summary.methods:
        found = kept(summary, measure, method, floor=floor) if method != floor else ()
        # a method that learns nothing keeps everything, which is no picture
        if any(not k.level.clean and k.share != 1 for k in found):
            panels.append(kept_panel(found, axis, measure, method))
    return tuple(panels)


def kept_panel(found: Sequence[Kept], axis: str, measure: str, title: str) -> Panel:
    """One picture of points, at least one, of one or several grids; a clean point starts every line."""
    points = []
    kinds = {k.level.noise for k in found if not k.level.clean}
    for dataset in dict.fromkeys(k.dataset for k in found):
        mine = [k for k in found if k.dataset == dataset]
        for kind in dict.fromkeys(k.level.noise for k in mine if not k.level.clean):
            series = dataset if len(kinds) == 1 else f"{dataset}, {kind}"
            start = [k for k in mine if k.level.clean][:1]
            line = sorted(start + [k for k in mine if k.level.noise == kind and not k.level.clean], key=_rate)
            points += [_point(series, _at(k, axis), k.share) for k in line]
    what = "share of clean" if found[0].floor is None else f"share of clean above {found[0].floor.method}"
    return _panel(title, f"{measure}, {what}", AXES[axis], points)


def pair_noise_panels(summary: Summary, theory: str = "expected") -> tuple[Panel, ...]:
    """A panel per kind of noise: pNoise against the rate, counted as points and in closed form as lines.

    Args:
        summary: a grid whose cells note the noise of their training labels.
        theory: "expected" for the queries as they are, "overall" for the overall shares of grades.
    """
    counted, closed = realised(summary, "pnoise"), realised(summary, theory)
    kinds = dict.fromkeys(level.noise for _, level in counted if not level.clean)
    panels = []
    for kind in kinds:
        at = {
            place: Level(kind, place[1].rate) for place in counted if place[1].clean or place[1].noise == kind
        }
        there = {place[0] for place in at if not place[1].clean}
        order = sorted(
            (p for p in at if p[0] in there), key=lambda p: (summary.datasets.index(p[0]), p[1].rate)
        )
        points = [_point(d, level.rate, counted[d, level]) for d, level in order]
        lines = [_point(d, level.rate, closed[d, level]) for d, level in order if (d, level) in closed]
        title = f"{kind} noise"
        panels.append(_panel(title, "pNoise", f"rate of {kind} noise (dNoise)", points, lines))
    return tuple(panels)


def _panel(
    title: str, measure: str, x_title: str, points: Sequence[Point], lines: Sequence[Point] = ()
) -> Panel:
    series = tuple(dict.fromkeys(p.method for p in points))
    xs = tuple(sorted({float(p.x) for p in (*points, *lines)}))
    return Panel("traces", "", measure, title, x_title, series, xs, tuple(points), lines=tuple(lines))


def _point(series: str, x: float, value: float) -> Point:
    return Point(series, float(x), value, None, None, complete=True, mark="")


def _rate(found: Kept) -> float:
    return found.level.rate


def _at(found: Kept, axis: str) -> float:
    return found.pnoise if axis == "pnoise" else found.dnoise
