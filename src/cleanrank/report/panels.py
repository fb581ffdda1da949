"""What each picture shows, as plain data, for ``charts`` to draw.

Points keep the state of their row, so that an incomplete one is drawn hollow; a row without a mean gives no
point but a gap. Every panel can say in words what it shows.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.report.collapse import AXES, kept, realised
from cleanrank.report.summaries import Level, Row, Summary
from cleanrank.types import FloatArray, IntArray
from cleanrank.validation import one_of


@dataclass(frozen=True)
class Point:
    """One method's mean at one place of the x axis.

    ``strength`` in [0, 1] is the colour in a heat map, ``text`` replaces the figure that is shown.
    """

    method: str
    x: float | str
    mean: float
    low: float | None = None
    high: float | None = None
    complete: bool = True
    mark: str = ""
    difference: float | None = None
    strength: float = 0.0
    text: str = ""


@dataclass(frozen=True)
class Gap:
    """A place without a number, and why: "incomplete", "failed" or "not run"."""

    method: str
    x: float | str
    state: str


@dataclass(frozen=True)
class Panel:
    """One picture.

    Attributes:
        kind: "curves" (over rates, one line per method), "traces" (lines over any axis with a legend of their
            own), "bars", "dots" (means with intervals), "heat", "history" (of outliers) or "histogram".
        methods: the series or rows.
        xs: places of the horizontal axis; of bars and dots, their parts; of a histogram, its edges.
        points: the figures.
        gaps: places without one.
        lines: of traces, what is drawn instead of joining the points.
        title: above the picture.
        measure: what the figures are.
        x_title: of the horizontal axis.
        dataset: whose.
        series: what one of the methods is called.
        rules: (place, name) of lines across a picture with lines, or down one with dots.
        x_form, y_form: how figures of an axis are written, in the notation of d3.
        x_domain, y_domain: where an axis begins and ends.
        colours: numbers of the palette in place of the usual ones, for each method or part.
        description: the picture in words where those made from the points would not do.
    """

    kind: str
    methods: tuple[str, ...]
    xs: tuple[float | str, ...]
    points: tuple[Point, ...]
    gaps: tuple[Gap, ...] = ()
    lines: tuple[Point, ...] = ()
    title: str = ""
    measure: str = ""
    x_title: str = ""
    dataset: str = ""
    series: str = "Method"
    rules: tuple[tuple[float, str], ...] = ()
    x_form: str = ""
    y_form: str = ""
    x_domain: tuple[float, float] | None = None
    y_domain: tuple[float, float] | None = None
    colours: tuple[int, ...] = ()
    description: str = ""

    @property
    def words(self) -> str:
        """The picture in words, for readers who do not see it."""
        if self.description:
            return self.description
        lines = [f"{self.title}, {self.measure}."]
        for method in self.methods:
            mine = [p for p in self.points if p.method == method]
            if not mine:
                lines.append(f"{method}: {'no documents' if self.kind == 'history' else 'nothing ran'}.")
            elif self.kind == "history":
                ends = f"{mine[0].mean:.0%} at {mine[0].x}, {mine[-1].mean:.0%} at {mine[-1].x} trees"
                lines.append(f"{method}: {ends}.")
            elif self.kind in ("curves", "traces") and len(mine) > 1:
                first, last = mine[0], mine[-1]
                lines.append(f"{method}: {first.mean:.3f} at {first.x:.3g}, {last.mean:.3f} at {last.x:.3g}.")
            else:
                lines.append(f"{method}: " + ", ".join(_place(p) for p in mine) + ".")
        lines += [f"{g.method} at {g.x}: {g.state}." for g in self.gaps if g.state]
        return " ".join(lines)


def _place(point: Point) -> str:
    where = "" if isinstance(point.x, float) else f"{point.x} "
    if point.difference is not None:
        return f"{where}{point.mean:.3f} ({point.difference:+.3f})"
    return f"{where}{point.text or format(point.mean, '.3f')}"


def curves(summary: Summary, measure: str) -> tuple[Panel, ...]:
    """Means against the noise rate: a panel per data set and kind of noise that has two rates or more.

    A clean run without a kind of its own is the start of every kind's curve.
    """
    panels = []
    for dataset in summary.datasets:
        every = _rows(summary, dataset, measure)
        levels = {r.level for r in every}
        kinds = dict.fromkeys(r.level.noise for r in every if not r.level.clean)
        for kind in kinds:
            start = Level(kind, 0.0) if Level(kind, 0.0) in levels else Level("none", 0.0)
            rows = [r for r in every if r.level == start or (r.level.noise == kind and not r.level.clean)]
            rows.sort(key=lambda r: r.level.rate)
            rates = {r.level: r.level.rate for r in rows}
            if len(rates) > 1:
                title = f"{dataset}, {kind} noise" if len(kinds) > 1 else dataset
                panels.append(_panel("curves", summary, rows, rates, title, f"rate of {kind} noise"))
    return tuple(panels)


def bars(summary: Summary, measure: str, level: Level) -> tuple[Panel, ...]:
    """Means of the methods at one noise level, a panel per data set that has it."""
    panels = []
    for dataset in summary.datasets:
        rows = [r for r in _rows(summary, dataset, measure) if r.level == level]
        if rows:
            title = f"{dataset}, {level.label}" if len(summary.levels) > 1 else dataset
            panels.append(_panel("bars", summary, rows, {level: measure}, title, measure))
    return tuple(panels)


def heat(summary: Summary, measure: str) -> tuple[Panel, ...]:
    """Methods against noise levels: the difference from the baseline where there is one, else the mean."""
    panels = []
    strength = _strengths(summary, measure)
    for dataset in summary.datasets:
        rows = [r for r in _rows(summary, dataset, measure) if r.method != summary.baseline]
        levels = [v for v in summary.levels if any(r.level == v for r in rows)]
        if len(levels) > 1:
            kinds = {v.noise for v in levels if not v.clean}
            one = f"rate of {min(kinds)} noise" if len(kinds) == 1 else ""
            names = {v: f"{v.rate:g}" if one and v.noise != "none" else v.label for v in levels}
            panels.append(_panel("heat", summary, rows, names, dataset, one or "noise", strength))
    return tuple(panels)


def _rows(summary: Summary, dataset: str, measure: str) -> list[Row]:
    return [r for r in summary.rows if r.dataset == dataset and r.measure == measure]


def _panel(
    kind: str,
    summary: Summary,
    rows: Sequence[Row],
    places: Mapping[Level, float] | Mapping[Level, str],
    title: str,
    x_title: str,
    strength: Callable[[Row], float | None] = lambda row: 0.0,
) -> Panel:
    """Rows of one data set and measure, each at the place of its level."""
    points, gaps = [], []
    for r in rows:
        x, strong = places[r.level], strength(r)
        if r.mean is None or strong is None:
            gaps.append(Gap(r.method, x, r.state))
        else:
            points.append(
                Point(r.method, x, r.mean, r.low, r.high, r.state == "complete", r.mark, r.difference, strong)
            )
    present = {r.method for r in rows}
    return Panel(
        kind,
        tuple(m for m in summary.methods if kind == "curves" or m in present),
        tuple(dict.fromkeys(places.values())),
        tuple(points),
        tuple(gaps),
        title=title,
        measure=rows[0].measure,
        x_title=x_title,
        dataset=rows[0].dataset,
    )


def _strengths(summary: Summary, measure: str) -> Callable[[Row], float | None]:
    """How strongly a heat map colours a row: on one scale for all data sets, so that panels compare.

    Differences from 0 to the largest, means from the smallest to the largest; None where there is neither.
    """
    against = summary.baseline is not None

    def size(row: Row) -> float | None:
        figure = row.difference if against else row.mean
        return None if figure is None else abs(figure) if against else figure

    sizes = [s for r in summary.rows if r.measure == measure and (s := size(r)) is not None]
    low = 0.0 if against else min(sizes, default=0.0)
    span = max(sizes, default=0.0) - low
    return lambda row: None if (own := size(row)) is None else (own - low) / span if span > 0 else 0.0


def kept_panels(
    summary: Summary, measure: str, axis: str = "pnoise", *, floor: str | None = None
) -> tuple[Panel, ...]:
    """A panel per method that loses: what it keeps against dNoise or pNoise, a line per data set and kind.

    A clean point starts every line; shares are those of the clean figure, or of what it has above ``floor``.
    """
    one_of("axis", axis, AXES)
    of = "share of clean" if floor is None else f"share of clean above {floor}"
    panels = []
    for method in summary.methods:
        shares = kept(summary, measure, method, floor=floor) if method != floor else ()
        kinds = {k.level.noise for k in shares if not k.level.clean}
        points = []
        for dataset, kind in dict.fromkeys((k.dataset, k.level.noise) for k in shares if not k.level.clean):
            mine = [k for k in shares if k.dataset == dataset]
            noisy = [k for k in mine if k.level.noise == kind and not k.level.clean]
            line = dataset if len(kinds) == 1 else f"{dataset}, {kind}"
            start = [k for k in mine if k.level.clean][:1]
            for k in start + sorted(noisy, key=lambda k: k.level.rate):
                points.append(Point(line, float(k.pnoise if axis == "pnoise" else k.dnoise), k.share))
        # a method that learns nothing keeps everything, which is no picture
        if any(not k.level.clean and k.share != 1 for k in shares):
            panels.append(_traces(method, f"{measure}, {of}", AXES[axis], points))
    return tuple(panels)


def pair_noise_panels(summary: Summary) -> tuple[Panel, ...]:
    """A panel per kind of noise: pNoise against the rate, counted as points and in closed form as lines."""
    counted, closed = realised(summary, "pnoise"), realised(summary, "expected")
    panels = []
    for kind in dict.fromkeys(level.noise for _, level in counted if not level.clean):
        datasets = {d for d, level in counted if level.noise == kind and not level.clean}
        places = [p for p in counted if p[0] in datasets and (p[1].clean or p[1].noise == kind)]
        places.sort(key=lambda p: (summary.datasets.index(p[0]), p[1].rate))
        points = [Point(d, level.rate, counted[d, level]) for d, level in places]
        lines = [Point(d, level.rate, closed[d, level]) for d, level in places if (d, level) in closed]
        panels.append(_traces(f"{kind} noise", "pNoise", f"rate of {kind} noise (dNoise)", points, lines))
    return tuple(panels)


def _traces(
    title: str, measure: str, x_title: str, points: Sequence[Point], lines: Sequence[Point] = ()
) -> Panel:
    return Panel(
        "traces",
        tuple(dict.fromkeys(p.method for p in points)),
        tuple(sorted({float(p.x) for p in (*points, *lines)})),
        tuple(points),
        lines=tuple(lines),
        title=title,
        measure=measure,
        x_title=x_title,
        series="Data set",
    )


def history_panels(summary: Summary) -> list[tuple[str, Panel]]:
    """The heat maps of outliers by iteration that the cells of a study brought along, each with its method.

    Cells of several folds and seeds are averaged, each band weighing its documents.
    """
    histories: dict[tuple[str, Level, str], list[Mapping[str, Any]]] = {}
    for cell in summary.cells:
        if cell.status == "done" and "history" in cell.chosen:
            histories.setdefault((cell.dataset, cell.level, cell.method), []).append(cell.chosen["history"])
    panels = []
    for (dataset, level, method), several in histories.items():
        title = f"{dataset}, {level.label}" if len(summary.levels) > 1 else dataset
        first = several[0]
        alike = [h for h in several if np.shape(h["shares"]) == np.shape(first["shares"])]
        panel = history_panel(*_together(alike), first=first["first"], last=first["last"], title=title)
        panels.append((method, panel))
    return panels


def history_panel(
    shares: npt.ArrayLike, sizes: npt.ArrayLike, *, first: int = 1, last: int = 1, title: str = ""
) -> Panel:
    """The heat map of outliers by iteration (Figure 6 of Marcuzzi et al. 2022).

    Rows are bands: documents flagged by that share of the models, the most frequent on top; ``sizes`` counts
    them. Columns are stretches of the training, from ``first`` to ``last`` trees. A cell of ``shares``
    (bands, steps) is the share of the band's documents that a model of the stretch flags, on average; NaN is
    a gap.

    >>> history_panel([[0.1, 0.3], [1.0, 0.9]], [40, 2], last=100).methods
    ('50–100 % (2)', '0–50 % (40)')
    """
    table, counts = np.asarray(shares, dtype=np.float64), np.asarray(sizes)
    if table.ndim != 2 or counts.shape != (len(table),):
        raise invalid("sizes", "must have one number per band of shares", f"{counts.shape} for {table.shape}")
    n = len(counts)
    bands = [f"{100 * b / n:g}–{100 * (b + 1) / n:g} % ({size:,})" for b, size in enumerate(counts.tolist())]
    columns = stretches(first, last, table.shape[1])
    cells = [
        (band, x, share)
        for band, row in zip(bands[::-1], table[::-1].tolist(), strict=True)
        for x, share in zip(columns, row, strict=True)
    ]
    points = tuple(Point(band, x, share, strength=share) for band, x, share in cells if share == share)
    gaps = tuple(Gap(band, x, "") for band, x, share in cells if share != share)
    return Panel(
        "history",
        tuple(bands[::-1]),
        tuple(columns),
        points,
        gaps,
        title=title,
        measure="share flagged",
        x_title="trees of the model",
        series="flagged by … of the models (documents)",
    )


def stretches(first: int, last: int, steps: int) -> list[str]:
    """The models of every step, as ``outlier_history`` parts them.

    >>> stretches(51, 60, 4)
    ['51–53', '54–55', '56–58', '59–60']
    """
    models = last - first + 1
    edges = [first - 1 - (-models * step // steps) for step in range(steps + 1)]
    return [f"{a + 1}–{b}" if b > a + 1 else f"{b}" for a, b in itertools.pairwise(edges)]


def _together(histories: Sequence[Mapping[str, Any]]) -> tuple[FloatArray, IntArray]:
    """The mean of several tables, weighted by documents, and the mean number of documents."""
    sizes = np.array([h["sizes"] for h in histories], dtype=np.float64)
    shares = np.array([h["shares"] for h in histories], dtype=np.float64)
    flags = np.nansum(shares * sizes[:, :, None], axis=0)
    counted = np.sum(~np.isnan(shares) * sizes[:, :, None], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: FloatArray = flags / counted
    return mean, np.rint(sizes.mean(axis=0)).astype(np.int64)
