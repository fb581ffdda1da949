"""Pictures for files: the panels drawn with matplotlib as PNG or SVG, the same bytes for the same numbers."""

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from cleanrank.data.files import written_whole
from cleanrank.errors import MissingExtraError, invalid
from cleanrank.report import panels, traces
from cleanrank.report.grid import Level
from cleanrank.report.palette import Look, band_opacity, looks, many_looks
from cleanrank.report.panels import Panel, Point
from cleanrank.report.summaries import Summary
from cleanrank.validation import one_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, LINE = "#1b1f26", "#59616e", "#e4e7ec"
BETTER, WORSE = "#0072b2", "#d55e00"
FORMATS = ("png", "svg")
WIDTH, HEIGHT = 4.3, 3.0  # inches of one panel
LETTER = 0.075  # inches of a letter, about
STYLE: dict[str, Any] = {
    "font.size": 9.0,
    "font.family": ["DejaVu Sans"],
    "axes.edgecolor": "#b9c0ca",
    "axes.labelcolor": MUTED,
    "axes.labelsize": 8.5,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "text.color": INK,
    "svg.hashsalt": "cleanrank",
    "svg.fonttype": "path",
}


def plot_curves(summary: Summary, measure: str) -> "Figure":
    """Means against the noise rate with the bootstrap interval as a band; hollow points are incomplete."""
    return _figure(summary, measure, panels.curves(summary, measure), _draw_curves)


def plot_bars(summary: Summary, measure: str, level: Level | None = None) -> "Figure":
    """Means of the methods at one noise level, by default the first; thin lines are bootstrap intervals."""
    chosen = summary.levels[0] if level is None else level
    return _figure(summary, measure, panels.bars(summary, measure, chosen), _draw_bars)


def plot_heat(summary: Summary, measure: str) -> "Figure":
    """Methods against noise levels: the difference from the baseline where there is one, else the mean."""
    return _figure(summary, measure, panels.heat(summary, measure), _draw_heat)


def plot_kept(summary: Summary, measure: str, axis: str = "pnoise", *, floor: str | None = None) -> "Figure":
    """What each method keeps of its clean figure against dNoise or pNoise, a line per data set."""
    return draw_traces(traces.kept_panels(summary, measure, axis, floor=floor))


def plot_pair_noise(summary: Summary, theory: str = "expected") -> "Figure":
    """Draws pNoise against the noise rate: points are counted, lines are the closed form."""
    return draw_traces(traces.pair_noise_panels(summary, theory))


def draw_traces(drawn: Sequence[Panel]) -> "Figure":
    """Draws panels whose series are data sets, side by side on one scale, with one legend."""
    if not drawn:
        raise invalid("the picture", "needs a noisy level whose cells note their noise", 0)
    series = list(dict.fromkeys(m for p in drawn for m in p.methods))
    chosen = many_looks(series)
    figure = _canvas(drawn, chosen, _draw_traces)
    _legend(figure, {m: m for m in series}, chosen, joined=not drawn[0].lines)
    return figure


def draw_curves(drawn: Sequence[Panel], baseline: str | None = None) -> "Figure":
    """Draws panels whose series are methods over any axis, each on its own scale, with one legend."""
    if not any(panel.points for panel in drawn):
        raise invalid("the picture", "needs points", 0)
    methods = list(dict.fromkeys(m for panel in drawn for m in panel.methods))
    chosen = looks(methods, baseline)
    figure = _canvas(drawn, chosen, _draw_curves)
    _legend(figure, {m: m for m in methods}, chosen)
    return figure


def save_figure(figure: "Figure", path: str | os.PathLike[str], *, dpi: int = 160) -> Path:
    """Writes a figure whole or not at all as PNG or SVG, by the ending of the path."""
    from matplotlib import rc_context

    kind = one_of("picture format", Path(path).suffix.removeprefix(".").lower(), FORMATS)
    # dates and versions would make the bytes differ from day to day
    metadata: dict[str, Any] = {"Software": None} if kind == "png" else {"Date": None, "Creator": None}
    with rc_context(cast(Any, STYLE)), written_whole(path) as part:
        figure.savefig(part, format=kind, dpi=dpi, metadata=metadata)
    return Path(path)


Draw = Callable[["Axes", Panel, dict[str, Look]], None]


def _figure(summary: Summary, measure: str, drawn: Sequence[Panel], draw: Draw) -> "Figure":
    one_of("measure", measure, summary.measures)
    if not drawn:
        raise invalid(
            "the picture", "needs at least two noise levels" if draw is not _draw_bars else "needs a row", 0
        )
    chosen = looks(summary.methods, summary.baseline)
    figure = _canvas(drawn, chosen, draw)
    if draw is _draw_curves:
        _legend(figure, {m: _name(m, summary) for m in chosen}, chosen)
    return figure


def _canvas(drawn: Sequence[Panel], chosen: dict[str, Look], draw: Draw) -> "Figure":
    try:
        from matplotlib import rc_context
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "pictures in files need matplotlib, which is not installed. "
            "Install it with: pip install matplotlib"
        ) from error
    engine = ConstrainedLayoutEngine(w_pad=0.09, h_pad=0.06)
    width = _width(drawn)
    columns = min(len(drawn), max(1, int(13 / width)))
    rows = math.ceil(len(drawn) / columns)
    columns = math.ceil(len(drawn) / rows)  # four panels are two rows of two
    curved = draw in (_draw_curves, _draw_traces)
    height = HEIGHT if curved else 0.85 + 0.3 * max(len(p.methods) for p in drawn)
    with rc_context(cast(Any, STYLE)):
        figure = Figure(figsize=(width * columns, height * rows + 0.45), layout=engine)
        axes = figure.subplots(rows, columns, squeeze=False, sharey=draw is _draw_traces)
        for place, ax in enumerate(axes.flat):
            if place < len(drawn):
                ax.set_title(drawn[place].title)
                draw(ax, drawn[place], chosen)
            else:
                ax.set_axis_off()
    return figure


def _legend(figure: "Figure", names: dict[str, str], chosen: dict[str, Look], *, joined: bool = True) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=k.light, marker=k.marker, linestyle=_dash(k), markersize=5, label=names[m])
        for m, k in chosen.items()
    ]
    if not joined:
        handles.append(Line2D([], [], color=MUTED, marker="o", linestyle="", markersize=5, label="counted"))
        handles.append(Line2D([], [], color=MUTED, linestyle="-", label="closed form"))
    entry = 0.6 + LETTER * max(len(name) for name in names.values())
    columns = max(1, min(len(handles), int(figure.get_figwidth() / entry)))
    figure.legend(handles=handles, loc="outside upper left", ncols=columns, frameon=False)


def _width(drawn: Sequence[Panel]) -> float:
    """Inches of a panel: a heat map needs room for its words, and rows for the names of their methods."""
    if drawn[0].kind in ("curves", "traces"):
        return WIDTH
    names = LETTER * max(len(m) for p in drawn for m in p.methods)
    cells = max(len(p.xs) for p in drawn) * 0.8 if drawn[0].kind == "heat" else 3.0
    return max(WIDTH, names + cells + 0.3)


def _name(method: str, summary: Summary) -> str:
    return f"{method} (baseline)" if method == summary.baseline else method


def _dash(look: Look) -> Any:
    return (0, look.dash) if look.dash else "-"


def _draw_curves(ax: "Axes", panel: Panel, chosen: dict[str, Look]) -> None:
    for method in panel.methods:
        look = chosen[method]
        for run in _runs(panel, method):
            xs = [float(p.x) for p in run]
            ax.plot(xs, [p.mean for p in run], color=look.light, linestyle=_dash(look), linewidth=1.6)
            banded = [p for p in run if p.low is not None and p.high is not None]
            ax.fill_between(
                [float(p.x) for p in banded],
                [p.low or 0.0 for p in banded],
                [p.high or 0.0 for p in banded],
                color=look.light,
                alpha=band_opacity(len(panel.methods)),
                linewidth=0,
            )
            for p in run:
                face = look.light if p.complete else "white"
                ax.plot(
                    p.x, p.mean, marker=look.marker, color=look.light, markerfacecolor=face, markersize=5.5
                )
    ax.set_xticks([float(x) for x in panel.xs], [f"{x:g}" for x in panel.xs])
    ax.set_xlabel(panel.x_title)
    ax.set_ylabel(panel.measure)
    ax.grid(axis="y", color=LINE, linewidth=0.8)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)


def _draw_traces(ax: "Axes", panel: Panel, chosen: dict[str, Look]) -> None:
    for series in panel.methods:
        look = chosen[series]
        points = [p for p in panel.points if p.method == series]
        line = [p for p in panel.lines if p.method == series] if panel.lines else points
        ax.plot(
            [float(p.x) for p in line],
            [p.mean for p in line],
            color=look.light,
            linestyle=_dash(look),
            linewidth=1.4,
        )
        xs, ys = [float(p.x) for p in points], [p.mean for p in points]
        ax.plot(xs, ys, color=look.light, marker=look.marker, linestyle="", markersize=5)
    ax.set_xlabel(panel.x_title)
    ax.set_ylabel(panel.measure)
    ax.grid(color=LINE, linewidth=0.8)
    ax.spines["left"].set_visible(False)
    ax.tick_params(axis="y", length=0)


def _runs(panel: Panel, method: str) -> list[list[Point]]:
    """The points of a method in stretches: where a level has no number the line stops."""
    by_x = {p.x: p for p in panel.points if p.method == method}
    missing = {g.x for g in panel.gaps if g.method == method}
    runs: list[list[Point]] = [[]]
    for x in panel.xs:
        if x in by_x:
            runs[-1].append(by_x[x])
        elif x in missing:
            runs.append([])
    return [r for r in runs if r]


def _draw_bars(ax: "Axes", panel: Panel, chosen: dict[str, Look]) -> None:
    at = {m: i for i, m in enumerate(panel.methods)}
    for p in panel.points:
        ax.barh(
            at[p.method], p.mean, height=0.6, color=chosen[p.method].light, alpha=0.9 if p.complete else 0.35
        )
        if p.low is not None and p.high is not None:
            ax.plot([p.low, p.high], [at[p.method]] * 2, color=INK, linewidth=1.2)
        words = f"{p.mean:.4f} {p.mark}".strip() + ("" if p.complete else " incomplete")
        end = p.high if p.high is not None else p.mean
        ax.annotate(words, (end, at[p.method]), (5, 0), textcoords="offset points", va="center", fontsize=8)
    for gap in panel.gaps:
        ax.annotate(
            gap.state, (0, at[gap.method]), (5, 0), textcoords="offset points", va="center", fontsize=8
        )
    ends = [p.high if p.high is not None else p.mean for p in panel.points]
    ax.set_xlim(0, max(ends, default=1.0) * 1.32 or 1.0)
    ax.set_ylim(len(panel.methods) - 0.5, -0.5)
    ax.set_yticks(range(len(panel.methods)), panel.methods, color=INK)
    ax.set_xlabel(panel.x_title)
    ax.grid(axis="x", color=LINE, linewidth=0.8)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.tick_params(length=0)


def _draw_heat(ax: "Axes", panel: Panel, chosen: dict[str, Look]) -> None:
    from matplotlib.patches import Rectangle

    against = any(p.difference is not None for p in panel.points)
    for p in panel.points:
        x, y = panel.xs.index(p.x), panel.methods.index(p.method)
        colour = WORSE if (p.difference or 0.0) < 0 else BETTER
        box = Rectangle(
            (x - 0.48, y - 0.46), 0.96, 0.92, facecolor=colour, alpha=0.06 + 0.62 * p.strength, linewidth=0
        )
        ax.add_patch(box)
        shown = f"{p.difference:+.3f}".replace("-", "−") if p.difference is not None else f"{p.mean:.3f}"
        ax.text(x, y, f"{shown} {p.mark}".strip(), ha="center", va="center", fontsize=8)
    for gap in panel.gaps:
        place = panel.xs.index(gap.x), panel.methods.index(gap.method)
        ax.text(*place, gap.state, ha="center", va="center", fontsize=8, color=MUTED)
    ax.set_xlim(-0.5, len(panel.xs) - 0.5)
    ax.set_ylim(len(panel.methods) - 0.5, -0.5)
    ax.set_xticks(range(len(panel.xs)), [str(x) for x in panel.xs])
    ax.set_yticks(range(len(panel.methods)), panel.methods, color=INK)
    ax.set_xlabel(panel.x_title)
    ax.set_title(f"{panel.title}: " + ("difference of " if against else "") + panel.measure)
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.tick_params(length=0)


PICTURES: dict[str, Callable[[Summary, str], "Figure"]] = {
    "curves": plot_curves,
    "bars": plot_bars,
    "heat": plot_heat,
}
