"""The heat map of outliers by iteration (Figure 6 of Marcuzzi et al. 2022), for files and for pages.

Rows are bands: documents flagged by that share of the forests. Columns are stretches of the training. A cell
is the share of the band's documents that a forest of the stretch flags, on average.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.report.grid import Level
from cleanrank.report.panels import Gap, Panel, Point
from cleanrank.report.plots import STYLE
from cleanrank.report.summaries import Summary
from cleanrank.types import FloatArray, IntArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_outlier_history(
    shares: npt.ArrayLike, sizes: npt.ArrayLike, *, first: int = 1, last: int = 1, title: str = ""
) -> "Figure":
    """Draws frequency bands (rows, the most frequent on top) against steps of the training (columns).

    Args:
        shares: (bands, steps), the share of flags, as ``outlier_history`` gives them; NaN stays blank.
        sizes: (bands,), the documents of each band.
        first: trees of the first forest looked at.
        last: trees of the last one.
        title: above the picture.

    >>> plot_outlier_history([[0.1, 0.3], [1.0, 0.9]], [40, 2], last=100).axes[0].get_xlabel()
    'trees of the forest'
    """
    table, counts = np.asarray(shares, dtype=np.float64), np.asarray(sizes)
    if table.ndim != 2 or counts.shape != (len(table),):
        raise invalid("sizes", "must have one number per band of shares", f"{counts.shape} for {table.shape}")
    told = {"shares": table, "sizes": counts, "first": first, "last": last}
    return draw_history(_panel("", "", [told]), title=title)


def draw_history(panel: Panel, *, title: str = "") -> "Figure":
    """Draws the panel of a history with matplotlib."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    bands, steps = len(panel.methods), len(panel.xs)
    table = np.full((bands, steps), np.nan)
    for p in panel.points:
        table[panel.methods.index(p.method), panel.xs.index(p.x)] = p.mean
    with rc_context(cast(Any, STYLE)):
        figure = Figure(figsize=(1.8 + 0.5 * steps, 1.4 + 0.3 * bands), layout="constrained")
        axes = figure.add_subplot()
        image = axes.imshow(table, aspect="auto", cmap="Blues", vmin=0.0, vmax=1.0)
        axes.set_yticks(range(bands), panel.methods)
        axes.set_xticks(range(steps), [str(x) for x in panel.xs], rotation=45, ha="right")
        axes.set_xlabel(panel.x_title)
        axes.set_ylabel("flagged by … of the forests (documents)")
        axes.set_title(title)
        figure.colorbar(image, ax=axes, label="share of them flagged")
    return figure


def band_names(sizes: Sequence[int]) -> list[str]:
    """The bands in words, with the documents in each.

    >>> band_names([40, 2])
    ['0–50 % (40)', '50–100 % (2)']
    """
    n = len(sizes)
    return [f"{100 * b / n:g}–{100 * (b + 1) / n:g} % ({size:,})" for b, size in enumerate(sizes)]


def stretches(first: int, last: int, steps: int) -> list[str]:
    """The forests of every step, as ``outlier_history`` parts them.

    >>> stretches(51, 60, 4)
    ['51–53', '54–55', '56–58', '59–60']
    """
    forests = last - first + 1
    edges = [first - 1 - (-forests * step // steps) for step in range(steps + 1)]
    return [f"{a + 1}–{b}" if b > a + 1 else f"{b}" for a, b in itertools.pairwise(edges)]


def history_panels(summary: Summary) -> list[tuple[str, Panel]]:
    """The heat maps that the cells of a study brought along, each with its method.

    Cells of several folds and seeds are averaged, each band weighing its documents.
    """
    found: dict[tuple[str, Level, str], list[Mapping[str, Any]]] = {}
    for cell in summary.cells:
        if cell.status == "done" and "history" in cell.chosen:
            found.setdefault((cell.dataset, cell.level, cell.method), []).append(cell.chosen["history"])
    drawn = []
    for (dataset, level, method), told in found.items():
        title = f"{dataset}, {level.label}" if len(summary.levels) > 1 else dataset
        drawn.append((method, _panel(dataset, title, told)))
    return drawn


def _panel(dataset: str, title: str, told: Sequence[Mapping[str, Any]]) -> Panel:
    shares, sizes = _together([h for h in told if np.shape(h["shares"]) == np.shape(told[0]["shares"])])
    bands = band_names(sizes.tolist())
    columns = stretches(told[0]["first"], told[0]["last"], shares.shape[1])
    points, gaps = [], []
    for band, row in zip(bands[::-1], shares[::-1], strict=True):
        for x, share in zip(columns, row.tolist(), strict=True):
            if np.isnan(share):
                gaps.append(Gap(band, x, ""))
            else:
                points.append(Point(band, x, share, None, None, complete=True, mark="", strength=share))
    return Panel(
        "history", dataset, "share flagged", title, "trees of the forest", tuple(bands[::-1]), tuple(columns),
        tuple(points), tuple(gaps),
    )  # fmt: skip


def _together(told: Sequence[Mapping[str, Any]]) -> tuple[FloatArray, IntArray]:
    """The mean of several tables, weighted by documents, and the mean number of documents."""
    sizes = np.array([h["sizes"] for h in told], dtype=np.float64)
    shares = np.array([h["shares"] for h in told], dtype=np.float64)
    flags = np.nansum(shares * sizes[:, :, None], axis=0)
    counted = np.sum(~np.isnan(shares) * sizes[:, :, None], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean: FloatArray = flags / counted
    return mean, np.rint(sizes.mean(axis=0)).astype(np.int64)
