"""Pictures of the report card: shares of methods, shares by setting, what judgements buy, detectors."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cleanrank.report.detected import Detection
from cleanrank.report.palette import BASELINE, LOOKS, many_looks
from cleanrank.report.plots import INK, LINE, MUTED, STYLE
from cleanrank.report.recovery import Card, Estimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOW, HIGH = -1.0, 1.2  # what the picture shows of shares; figures beyond are written at the edge
ROW = 0.26  # inches of a method
WRONG, RIGHT = "#d55e00", "#0072b2"


def plot_shares(card: Card) -> "Figure":
    """Each method's recovered share over all settings, with its interval."""
    shown = [a for a in card.averages if a.method != card.clean]
    figure, (axes,) = _canvas(1, 7.2, ROW * len(shown) + 1.1)
    places = np.arange(len(shown))[::-1]
    _dots(axes, places + 0.13, [a.share or a.pooled for a in shown], LOOKS[0].light, "o", "mean of settings")
    _dots(axes, places - 0.13, [a.pooled for a in shown], BASELINE.light, "s", "pooled over settings")
    _rows(axes, places, [a.method for a in shown])
    axes.axvline(0, color=MUTED, linewidth=0.9)
    axes.axvline(1, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
    axes.set_xlim(LOW, HIGH)
    axes.set_xlabel("recovered share: 0 is noisy-trained, 1 is clean-trained")
    figure.legend(loc="outside upper left", ncols=2, frameon=False, fontsize=8)
    return figure


def plot_settings(card: Card) -> "Figure":
    """Methods against the settings with a clear loss: recovered shares as numbers on colour."""
    from matplotlib.colors import LinearSegmentedColormap

    methods = [a.method for a in card.averages if a.method != card.clean]
    settings = [s for s in card.settings if s.clear]
    shares = np.full((len(methods), len(settings)), np.nan)
    for j, s in enumerate(settings):
        for i, m in enumerate(methods):
            row = card.find(s.dataset, s.level, m)
            if row is not None and row.share is not None:
                shares[i, j] = row.share.value
    figure, (axes,) = _canvas(1, 2.6 + 0.37 * len(settings), ROW * len(methods) + 1.7)
    shades = LinearSegmentedColormap.from_list("share", [WRONG, "#ffffff", RIGHT])
    axes.imshow(np.clip(shares, -1, 1), cmap=shades, vmin=-1, vmax=1, aspect="auto", alpha=0.75)
    for i, j in np.ndindex(*shares.shape):
        words = "–" if np.isnan(shares[i, j]) else f"{shares[i, j]:.1f}".replace("0.", ".")
        axes.text(j, i, words, ha="center", va="center", fontsize=6.5, color=INK)
    axes.set_yticks(range(len(methods)), methods)
    axes.set_xticks(
        range(len(settings)), [f"{s.dataset}, {s.level.label}" for s in settings], rotation=60, ha="right"
    )
    axes.tick_params(length=0, labelsize=7.5)
    for side in axes.spines.values():
        side.set_visible(False)
    return figure


def plot_cost(card: Card, lines: Mapping[str, Sequence[tuple[int, str]]]) -> "Figure":
    """Shares against the rows that are judged again, a panel per setting.

    Args:
        card: of the cost study.
        lines: what a line is -> (rows, method) along it; the method of 0 rows may be the noisy baseline.
    """
    settings = [s for s in card.settings if s.clear]
    figure, panels = _canvas(len(settings), max(4.4 * len(settings), 5.6), 4.0)
    looks = many_looks(list(lines))
    for axes, s in zip(panels, settings, strict=True):
        for name, points in lines.items():
            drawn = [(n, _point(card, s.dataset, s.level, m)) for n, m in points]
            kept = [(n, e) for n, e in drawn if e is not None]
            if not kept:
                continue
            x, y = [_place(n) for n, _ in kept], [e.value for _, e in kept]
            look = looks[name]
            axes.fill_between(
                x,
                [e.low for _, e in kept],
                [e.high for _, e in kept],
                color=look.light,
                alpha=0.06,
                linewidth=0,
            )
            axes.plot(
                x, y, color=look.light, marker=look.marker, markersize=4.5, linewidth=1.4, label=name,
                linestyle=(0, look.dash) if look.dash else "-",
            )  # fmt: skip
        rows = sorted({n for points in lines.values() for n, _ in points})
        axes.set_xticks([_place(n) for n in rows], [f"{n:,}" for n in rows])
        axes.axhline(0, color=MUTED, linewidth=0.9)
        axes.axhline(1, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)))
        axes.grid(axis="y", color=LINE, linewidth=0.7)
        axes.set_ylim(LOW, HIGH)
        axes.set_title(f"{s.dataset}, {s.level.label}", loc="left", fontsize=9.5, fontweight="bold")
        axes.set_xlabel("training rows judged again")
    panels[0].set_ylabel("recovered share")
    if settings:
        handles, labels = panels[0].get_legend_handles_labels()
        figure.legend(
            handles,
            labels,
            loc="outside lower center",
            ncols=min(3, len(settings) + 1),
            frameon=False,
            fontsize=8,
        )
    return figure


def plot_detection(found: Detection, measures: Sequence[str]) -> "Figure":
    """Averages of detectors over settings, a colour per measure."""
    figure, (axes,) = _canvas(1, 7.2, ROW * len(found.detectors) + 1.1)
    places = np.arange(len(found.detectors))[::-1]
    offsets = np.linspace(0.15, -0.15, len(measures))
    for look, measure, offset in zip((LOOKS[0], LOOKS[1], LOOKS[2]), measures, offsets, strict=False):
        _dots(
            axes,
            places + offset,
            [d.means[measure] for d in found.detectors],
            look.light,
            look.marker,
            measure,
        )
    _rows(axes, places, [d.name for d in found.detectors])
    axes.set_xlim(0, 1)
    axes.set_xlabel("mean over settings")
    figure.legend(loc="outside upper left", ncols=len(measures), frameon=False, fontsize=8)
    return figure


def _point(card: Card, dataset: str, level: Any, method: str) -> Estimate | None:
    if method == card.noisy:
        return Estimate(0.0, 0.0, 0.0)
    row = card.find(dataset, level, method)
    return None if row is None else row.share


def _place(rows: int) -> float:
    """Rows on a logarithmic axis that has room for 0."""
    return float(np.log10(max(rows, 10)))


def _dots(
    axes: "Axes", places: Any, estimates: Sequence[Estimate], colour: str, marker: str, label: str
) -> None:
    for place, e in zip(places, estimates, strict=True):
        axes.plot([e.low, e.high], [place, place], color=colour, linewidth=1.1, alpha=0.7)
    axes.plot(
        [e.value for e in estimates], places, linestyle="none", color=colour, marker=marker, markersize=4.5,
        label=label,
    )  # fmt: skip


def _rows(axes: "Axes", places: Any, names: Sequence[str]) -> None:
    axes.set_yticks(places, names)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="x", color=LINE, linewidth=0.7)


def _canvas(panels: int, width: float, height: float) -> tuple["Figure", list["Axes"]]:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(cast(Any, STYLE)):
        figure = Figure(figsize=(width, height), layout="constrained")
        made = figure.subplots(1, max(panels, 1), squeeze=False, sharey=True)
    return figure, list(made[0])


PICTURES = {
    "recovery-shares": plot_shares,
    "recovery-settings": plot_settings,
}
