"""Every picture of a summary as files: curves, bars and heat maps of each measure, as PNG and SVG."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

from cleanrank.report import panels
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
    """Writes the pictures that the grid has rows for, as ``ndcg-10-curves.png`` and the like."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    made = []
    for measure in summary.measures:
        stem = "".join(c if c.isalnum() else "-" for c in measure)
        for kind, draw in PICTURES.items():
            if not any(panel.points for panel in DRAWN[kind](summary, measure)):
                continue
            figure = draw(summary, measure)
            made += [save_figure(figure, Path(folder) / f"{stem}-{kind}.{ending}") for ending in FORMATS]
    return made
