"""The heat map of outliers by iteration (Figure 6 of Marcuzzi et al. 2022)."""

import itertools
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import numpy.typing as npt

from cleanrank import checks
from cleanrank.report.plots import STYLE

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
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    table, counts = np.asarray(shares, dtype=np.float64), np.asarray(sizes)
    if table.ndim != 2 or counts.shape != (len(table),):
        checks.fail("sizes", "must have one number per band of shares", f"{counts.shape} for {table.shape}")
    bands, steps = table.shape
    with rc_context(cast(Any, STYLE)):
        figure = Figure(figsize=(1.8 + 0.5 * steps, 1.4 + 0.3 * bands), layout="constrained")
        axes = figure.add_subplot()
        image = axes.imshow(table, origin="lower", aspect="auto", cmap="Blues", vmin=0.0, vmax=1.0)
        axes.set_yticks(
            range(bands), [f"{b / bands:.0%}–{(b + 1) / bands:.0%} ({n:,})" for b, n in enumerate(counts)]
        )
        edges = np.linspace(first - 1, last, steps + 1).astype(int)
        axes.set_xticks(
            range(steps),
            [f"{a + 1}–{b}" for a, b in itertools.pairwise(edges)],
            rotation=45,
            ha="right",
        )
        axes.set_xlabel("trees of the forest")
        axes.set_ylabel("flagged in … of the forests (documents)")
        axes.set_title(title)
        figure.colorbar(image, ax=axes, label="share of them flagged")
    return figure
