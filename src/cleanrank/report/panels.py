"""What each picture shows, as plain data: one panel per data set, for ``plots`` and ``vega`` to draw.

Points keep the state of their row, so that a renderer can draw an incomplete one hollow; a row without a
mean gives no point but a gap. Every panel can say in words what it shows.
"""

from collections.abc import Callable
from dataclasses import dataclass

from cleanrank.report.grid import Level
from cleanrank.report.summaries import Row, Summary


@dataclass(frozen=True)
class Point:
    """One method's mean at one place of the x axis; ``strength`` in [0, 1] is the colour in a heat map."""

    method: str
    x: float | str
    mean: float
    low: float | None
    high: float | None
    complete: bool
    mark: str
    difference: float | None = None
    strength: float = 0.0


@dataclass(frozen=True)
class Gap:
    """A place without a number, and why: "incomplete", "failed" or "not run"."""

    method: str
    x: float | str
    state: str


@dataclass(frozen=True)
class Panel:
    """One data set's picture of one measure: ``kind`` is "curves", "bars", "heat", "traces" or "history".

    In traces, the series (``methods``) are data sets, and ``lines``, where given, are drawn instead of
    joining the points. In a history, they are bands of documents.
    """

    kind: str
    dataset: str
    measure: str
    title: str
    x_title: str
    methods: tuple[str, ...]
    xs: tuple[float | str, ...]
    points: tuple[Point, ...]
    gaps: tuple[Gap, ...] = ()
    lines: tuple[Point, ...] = ()

    @property
    def words(self) -> str:
        """The picture in words, for readers who do not see it."""
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


def curves(summary: Summary, measure: str) -> tuple[Panel, ...]:
    """Means against the noise rate: a panel per data set and kind of noise that has two rates or more.

    A clean run without a kind of its own is the start of every kind's curve.
    """
    panels = []
    for dataset in summary.datasets:
        rows = _rows(summary, dataset, measure)
        kinds = dict.fromkeys(r.level.noise for r in rows if not r.level.clean)
        for kind in kinds:
            own_clean = any(r.level == Level(kind, 0.0) for r in rows)
            start = Level(kind, 0.0) if own_clean else Level("none", 0.0)
            there = [r for r in rows if r.level == start or (r.level.noise == kind and not r.level.clean)]
            rates = tuple(sorted({r.level.rate for r in there}))
            if len(rates) < 2:
                continue
            panels.append(
                Panel(
                    "curves",
                    dataset,
                    measure,
                    f"{dataset}, {kind} noise" if len(kinds) > 1 else dataset,
                    f"rate of {kind} noise",
                    summary.methods,
                    rates,
                    *_drawn(
                        sorted(there, key=lambda r: r.level.rate), {r.level: r.level.rate for r in there}
                    ),
                )
            )
    return tuple(panels)


def bars(summary: Summary, measure: str, level: Level) -> tuple[Panel, ...]:
    """Means of the methods at one noise level, a panel per data set that has it."""
    panels = []
    for dataset in summary.datasets:
        rows = [r for r in _rows(summary, dataset, measure) if r.level == level]
        if rows:
            title = f"{dataset}, {level.label}" if len(summary.levels) > 1 else dataset
            there = tuple(m for m in summary.methods if any(r.method == m for r in rows))
            drawn = _drawn(rows, {level: measure})
            panels.append(Panel("bars", dataset, measure, title, measure, there, (measure,), *drawn))
    return tuple(panels)


def heat(summary: Summary, measure: str) -> tuple[Panel, ...]:
    """Methods against noise levels: the difference from the baseline where there is one, else the mean."""
    panels = []
    strength = _strengths(summary, measure)
    for dataset in summary.datasets:
        rows = [r for r in _rows(summary, dataset, measure) if r.method != summary.baseline]
        levels = [v for v in summary.levels if any(r.level == v for r in rows)]
        methods = tuple(m for m in summary.methods if any(r.method == m for r in rows))
        if len(levels) > 1 and methods:
            kinds = {v.noise for v in levels if not v.clean}
            one = f"rate of {min(kinds)} noise" if len(kinds) == 1 else ""
            names = {v: f"{v.rate:g}" if one and v.noise != "none" else v.label for v in levels}
            panels.append(
                Panel(
                    "heat",
                    dataset,
                    measure,
                    dataset,
                    one or "noise",
                    methods,
                    tuple(dict.fromkeys(names.values())),
                    *_drawn(rows, names, strength),
                )
            )
    return tuple(panels)


def _rows(summary: Summary, dataset: str, measure: str) -> list[Row]:
    return [r for r in summary.rows if r.dataset == dataset and r.measure == measure]


def _strengths(summary: Summary, measure: str) -> Callable[[Row], float | None]:
    """How strongly a heat map colours a row: on one scale for all data sets, so that panels compare.

    Differences from 0 to the largest, means from the smallest to the largest; None where there is neither.
    """
    against = summary.baseline is not None

    def size(row: Row) -> float | None:
        if against:
            return None if row.difference is None else abs(row.difference)
        return row.mean

    sizes = [s for r in summary.rows if r.measure == measure and (s := size(r)) is not None]
    low = 0.0 if against else min(sizes, default=0.0)
    span = max(sizes, default=0.0) - low

    def strength(row: Row) -> float | None:
        found = size(row)
        return None if found is None else (found - low) / span if span > 0 else 0.0

    return strength


def _drawn(
    rows: list[Row],
    places: dict[Level, float] | dict[Level, str],
    strength: Callable[[Row], float | None] = lambda row: 0.0,
) -> tuple[tuple[Point, ...], tuple[Gap, ...]]:
    points, gaps = [], []
    for r in rows:
        x, strong = places[r.level], strength(r)
        if r.mean is None or strong is None:
            gaps.append(Gap(r.method, x, r.state))
        else:
            points.append(
                Point(r.method, x, r.mean, r.low, r.high, r.state == "complete", r.mark, r.difference, strong)
            )
    return tuple(points), tuple(gaps)


def _place(point: Point) -> str:
    where = "" if isinstance(point.x, float) else f"{point.x} "
    if point.difference is not None:
        return f"{where}{point.mean:.3f} ({point.difference:+.3f})"
    return f"{where}{point.mean:.3f}"
