"""Every picture of a summary as files: curves, bars and heat maps of each measure, as PNG and SVG."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from cleanrank.report import panels
from cleanrank.report.outliers import draw_history, history_panels
from cleanrank.report.panels import Panel
from cleanrank.report.plots import FORMATS, PICTURES, save_figure
from cleanrank.report.summaries import Summary

# What each picture draws; a grid may have nothing for it: without noise there is no curve.
DRAWN: dict[str, Callable[[Summary, str], Sequence[Panel]]] = {
    "curves": panels.curves,
    "bars": lambda summary, measure: panels.bars(summary, measure, summary.levels[0]),
    "heat": panels.heat,
}


def write_pictures(summary: Summary, folder: str | os.PathLike[str]) -> list[Path]:
    """Writes the pictures that the grid has rows for, as ``ndcg-10-curves.png`` and the like.

    Histories of outliers are called ``outliers-DATA-METHOD``.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    made = []
    for measure in summary.measures:
        stem = _plain(measure)
        for kind, draw in PICTURES.items():
            if not any(panel.points for panel in DRAWN[kind](summary, measure)):
                continue
            figure = draw(summary, measure)
            made += [save_figure(figure, Path(folder) / f"{stem}-{kind}.{ending}") for ending in FORMATS]
    for method, panel in history_panels(summary):
        stem = f"outliers-{_plain(panel.title)}-{_plain(method)}"
        figure = draw_history(panel, title=f"{panel.title}: {method}")
        made += [save_figure(figure, Path(folder) / f"{stem}.{ending}") for ending in FORMATS]
    return made


def _plain(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name)
