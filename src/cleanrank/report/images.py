"""Panels as SVG in pages and as PNG and SVG files, drawn by vl-convert-python; same panels, same bytes."""

import json
import math
import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from cleanrank.data.files import written_whole
from cleanrank.errors import MissingExtraError, invalid
from cleanrank.report import panels
from cleanrank.report.charts import asset, specification
from cleanrank.report.panels import Panel
from cleanrank.report.summaries import Summary
from cleanrank.types import RankingData
from cleanrank.validation import one_of

if TYPE_CHECKING:
    from cleanrank.rankers.trees import TreeModel

FORMATS = ("png", "svg")
FONT = "DejaVu Sans, Verdana, Arial, sans-serif"
WIDTH = 360  # of a panel unless it has columns, in pixels
ACROSS = 1150  # the most that panels take side by side
SCALE = 2.0  # of PNG
WIDE, NARROW = 540, 350  # of pictures in a page, whose paper is 368 pixels wide on a telephone
# Drawing notes that a picture with a name and words of its own does not need, and what is so anyway.
_NOTES = re.compile(r' (?:aria-[\w-]+|role|pointer-events)="[^"]*"| opacity="1"')
# What a page says for all of its pictures.
_IDLE = re.compile(
    r' (?:font-family|xmlns:\w+|version|stroke-miterlimit)="[^"]*"|<path class="(?:back|fore)ground"[^>]*/>'
)


def _vl_convert() -> ModuleType:
    try:
        import vl_convert
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "pictures need vl_convert, which is not installed. Install it with: pip install vl-convert-python"
        ) from error
    return vl_convert


@cache
def colours() -> dict[str, str]:
    """The CSS variables of a page on light paper, name -> colour."""
    light = asset("report.css").partition("}")[0]
    return dict(re.findall(r"--([\w-]+): (#\w+)", light))


def save_picture(
    parts: Sequence[Panel], path: str | os.PathLike[str], *, baseline: str | None = None, width: int = WIDTH
) -> Path:
    """Draws panels of one kind side by side into a file; its ending says whether PNG or SVG.

    The baseline is grey; ``width`` is that of a panel without columns of its own, in pixels.
    """
    form = one_of("picture format", Path(path).suffix.removeprefix(".").lower(), FORMATS)
    spec = picture(parts, baseline, width)
    if form == "png":
        image = _vl_convert().vegalite_to_png(spec, scale=SCALE)
    else:
        image = _svg(spec, "clip").encode("utf-8")
    with written_whole(path) as part:
        part.write_bytes(image)
    return Path(path)


def _svg(spec: str, name: str) -> str:
    """A drawing whose clip paths, which are numbered on from picture to picture, are called by a name."""
    text = _NOTES.sub("", _vl_convert().vegalite_to_svg(spec))
    clips = list(dict.fromkeys(re.findall(r'"clip(\d+)"', text)))
    return re.sub(r'(?<=["#])clip(\d+)', lambda clip: f"{name}{clips.index(clip[1])}", text)


def inline_picture(
    panel: Panel, name: str, widths: Sequence[int] = (WIDE, NARROW), **options: Any
) -> dict[str, Any]:
    """A picture for a page: its name, title, words and a drawing per width, in the colours of the page.

    Args:
        panel: what to draw.
        name: of its place; no other picture of the page may have it.
        widths: in pixels, the widest first; the page shows the widest that fits.
        options: ``baseline``, ``methods`` and ``legend`` of ``specification``.
    """
    from markupsafe import Markup

    drawn = []
    for width in widths:
        spec = specification(panel, width=width, **options)
        spec["config"] = {**spec["config"], "font": FONT}  # measured in this font and shown in the page's
        spec |= {"autosize": {"type": "fit-x", "contains": "padding"}, "padding": spec.get("padding", 2)}
        svg = _svg(json.dumps(spec, ensure_ascii=False), f"{name}-{width}-")
        drawn.append(Markup(_IDLE.sub("", svg)))  # Vega escapes what it draws
    return {"id": name, "kind": panel.kind, "title": panel.title, "words": panel.words, "drawn": drawn}


def save_history(
    judged: RankingData,
    model: "TreeModel",
    path: str | os.PathLike[str],
    *,
    kind: str = "all",
    cutoff: int = 10,
    start: int | None = None,
    end: int = 300,
    n_jobs: int = 1,
) -> Path:
    """Draws which outliers of a model of trees last, tree by tree.

    Args:
        judged: the data.
        model: whose prefixes are looked at.
        path: a .png or .svg file.
        kind: "neg", "pos" or "all" outliers.
        cutoff: the rank that they cross.
        start: the first prefix, in trees; half of ``end`` when not given.
        end: the last one, at most all trees of the model.
        n_jobs: threads.
    """
    from cleanrank.issues.outliers import Window
    from cleanrank.issues.sour import outlier_history

    last = min(end, model.best_iteration)
    first = min(last // 2 if start is None else start, last - 1)
    window = Window(cutoff=cutoff, kind=kind, start=first, end=last)
    shares, sizes = outlier_history(judged, model, window, n_jobs=n_jobs)
    title = f"{kind} outliers of the top {cutoff}"
    return save_picture([panels.history_panel(shares, sizes, first=first + 1, last=last, title=title)], path)


def picture(parts: Sequence[Panel], baseline: str | None = None, width: int = WIDTH) -> str:
    """The Vega-Lite specification of panels side by side, with colours in the place of variables."""
    if not any(panel.points or panel.lines or panel.gaps for panel in parts):
        raise invalid("the picture", "needs points", 0)
    methods = list(dict.fromkeys(m for panel in parts for m in panel.methods))
    width = max(_width(panel, width) for panel in parts)
    columns = min(len(parts), max(1, ACROSS // width))
    columns = math.ceil(len(parts) / math.ceil(len(parts) / columns))  # four panels are two rows of two
    views = []
    for panel in parts:
        spec = specification(panel, baseline, width=max(width, WIDE), methods=methods, legend=True)
        spec |= {"width": width, "title": _title(panel)}  # names stand beside the plot and take none of it
        config = {**spec.pop("config"), "font": FONT, "background": "white"}
        spec.pop("padding", None)
        views.append(spec)
    together: dict[str, Any] = {"concat": views, "columns": columns, "spacing": 26, "config": config}
    if parts[0].kind in ("curves", "traces"):
        named = dict.fromkeys(("color", "shape", "strokeDash"), "shared")
        together["resolve"] = {"scale": named, "legend": named}
    # Machines differ in the last digits of a mean, and a picture should not.
    together = json.loads(json.dumps(together), parse_float=lambda number: float(f"{float(number):.9g}"))
    text = json.dumps({**together, "padding": 8}, ensure_ascii=False)
    text = text.replace("bandwidth('x')", f"{width / max(len(panel.xs) for panel in parts):.0f}")
    return re.sub(r"var\(--([\w-]+)\)", lambda name: colours()[name[1]], text)


def _title(panel: Panel) -> Any:
    """What a heat map shows stands beside it on a page, and in the title here."""
    if panel.kind == "history":
        return {"text": panel.title, "subtitle": "in the cells: % of a band's documents that are flagged"}
    if panel.kind != "heat" or not panel.measure:
        return panel.title.split("\n") if panel.title else None
    compared = any(p.difference is not None for p in panel.points)
    return f"{panel.title}: {'difference of ' if compared else ''}{panel.measure}"


def _width(panel: Panel, usual_width: int) -> int:
    """A heat map is as wide as its words need."""
    if panel.kind not in ("heat", "history"):
        return usual_width
    usual = 8 if panel.kind == "heat" else 4
    longest = max((len(p.text) or usual for p in panel.points), default=usual)
    return max(WIDTH // 2, len(panel.xs) * max(26, min(84, 11 * longest)))


def write_pictures(summary: Summary, folder: str | os.PathLike[str]) -> list[Path]:
    """Writes the pictures that the grid has rows for, as ``ndcg-10-curves.png`` and the like.

    Histories of outliers are called ``outliers-DATA-METHOD``.
    """
    Path(folder).mkdir(parents=True, exist_ok=True)
    every: dict[str, Sequence[Panel]] = {}
    for measure in summary.measures:
        every |= {
            f"{_plain(measure)}-curves": panels.curves(summary, measure),
            f"{_plain(measure)}-bars": panels.bars(summary, measure, summary.levels[0]),
            f"{_plain(measure)}-heat": panels.heat(summary, measure),
        }
    for method, panel in panels.history_panels(summary):
        every[f"outliers-{_plain(panel.title)}-{_plain(method)}"] = [panel]
    return [
        save_picture(parts, Path(folder) / f"{stem}.{form}", baseline=summary.baseline)
        for stem, parts in every.items()
        if any(panel.points or panel.kind == "history" for panel in parts)
        for form in FORMATS
    ]


def _plain(name: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in name)
