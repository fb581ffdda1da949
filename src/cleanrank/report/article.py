"""A page to be read from top to bottom: key figures, then sections of words, tables and pictures."""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from cleanrank import __version__
from cleanrank.report import curves, vega
from cleanrank.report.page import Safe, asset, data_block, page, tag, write_page
from cleanrank.report.sections import theme_button

Section: TypeAlias = tuple[str, str, Sequence[object]]
STYLE = """
.advice{list-style:none;padding:0;margin:.6rem 0;max-width:112ch}
.advice li{display:grid;grid-template-columns:4.2em 1fr;gap:.2rem .6rem;padding:.5rem 0;
border-bottom:1px solid var(--line)}
.advice .pill{justify-self:start;align-self:start;margin-top:.1em}
.advice details{font-size:.87rem;color:var(--muted);margin:.1rem 0 0}
.advice dl{margin:.2rem 0 .2rem .9rem}
.facts{display:flex;flex-wrap:wrap;gap:.6rem 2.6rem;list-style:none;padding:0;margin:1rem 0 .2rem}
.facts strong{display:block;font-size:1.55rem;line-height:1.2;font-weight:650;letter-spacing:-.015em;
font-variant-numeric:tabular-nums}
.facts span{color:var(--muted);font-size:.87rem}
tr.chosen>*{background:var(--ok-bg)}
@media print{.advice li{break-inside:avoid}.advice details{display:none}}
"""


def write_article(
    path: str | os.PathLike[str],
    title: str,
    lede: str,
    key_figures: Iterable[tuple[str, str]],
    sections: Sequence[Section],
    pictures: Sequence[Mapping[str, Any]],
    *,
    style: str = "",
) -> Path:
    """Writes the page; the same values give the same bytes.

    Args:
        path: the file.
        title: of the page.
        lede: one line under it.
        key_figures: (value, what it is) of the figures that stand out.
        sections: (id, heading, parts); parts that are None are left out, and so are sections without parts.
        pictures: what ``curves.picture`` makes; ``drawn`` places them.
        style: rules of this page alone.
    """
    there = [(name, words, [p for p in parts if p is not None]) for name, words, parts in sections]
    there = [s for s in there if s[2]]
    body = [
        tag(
            "header",
            tag("div", tag("h1", title), theme_button(), class_="top"),
            tag("p", lede, class_="lede"),
            tag("ul", *(tag("li", tag("strong", v), tag("span", w)) for v, w in key_figures), class_="facts"),
            tag(
                "nav", *(tag("a", words, href=f"#{name}") for name, words, _ in there), aria_label="Sections"
            ),
        ),
        tag("main", *(tag("section", tag("h2", words), *parts, id=name) for name, words, parts in there)),
        tag("footer", tag("p", f"Made with cleanrank {__version__}.", class_="hint")),
        data_block("pictures-data", {"pictures": [{"id": p["id"], "spec": p["spec"]} for p in pictures]}),
    ]
    scripts = [vega.library(), asset("report.js"), asset("pictures.js")]
    return write_page(path, page(title, body, scripts=scripts, extra_style=STYLE + curves.COLOURS + style))


def drawn(pictures: Sequence[Mapping[str, Any]], *names: str) -> list[Safe]:
    """The places of the pictures of these names, or of all."""
    chosen = [p for p in pictures if not names or p["id"] in names]
    if not chosen:
        return []
    figures = [
        tag(
            "figure",
            tag("figcaption", p["title"]),
            tag("div", id=p["id"], class_="plot", role="img", aria_label=p["words"]),
            class_="wide" if p["wide"] else None,
        )
        for p in chosen
    ]
    return [tag("div", *figures, class_="figures")]
