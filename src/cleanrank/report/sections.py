"""Pages of sections: words, tables and pictures under headings."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from cleanrank.report.images import NARROW, WIDE, inline_picture
from cleanrank.report.pages import Page, write_page
from cleanrank.report.panels import Panel
from cleanrank.report.table import Table

Part: TypeAlias = "str | Table | Panel"


class Section(NamedTuple):
    """A heading with paragraphs, tables and pictures below it."""

    heading: str
    parts: Sequence[Part]


def sections_page(
    title: str,
    sections: Sequence[Section],
    *,
    lede: str = "",
    figures: Sequence[tuple[str, str]] = (),
) -> Page:
    """A page of sections, with its pictures drawn; sections without parts are left out.

    Args:
        title: of the page.
        sections: what it shows.
        lede: a line under the title.
        figures: (value, what it is), shown large under it.
    """
    kept = [(heading, [part for part in parts if part]) for heading, parts in sections]
    named = []
    for number, (heading, parts) in enumerate((each for each in kept if each[1]), start=1):
        drawn: list[Any] = list(parts)
        for place, part in enumerate(parts):
            if isinstance(part, Panel):
                drawn[place] = inline_picture(part, f"picture-{number}-{place}", (2 * WIDE, NARROW))
        named.append((f"section-{number}", {"heading": heading, "parts": drawn}))
    return Page("sections.html", title, {"lede": lede, "figures": figures, "named": named})


def write_sections(
    path: str | os.PathLike[str], title: str, sections: Sequence[Section], **options: Any
) -> Path:
    """Writes a page of sections whole or not at all; ``options`` are those of ``sections_page``."""
    return write_page(path, sections_page(title, sections, **options))
