"""Pages of sections: words and tables under headings, for results that need no pictures."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cleanrank.report.pages import write_page
from cleanrank.report.table import Table


class Section(NamedTuple):
    """A heading with paragraphs and tables below it."""

    heading: str
    parts: Sequence[str | Table]


def write_sections(
    path: str | os.PathLike[str],
    title: str,
    sections: Sequence[Section],
    *,
    lede: str = "",
    figures: Sequence[tuple[str, str]] = (),
) -> Path:
    """Writes a page whole or not at all; sections without parts are left out.

    Args:
        path: the file to write.
        title: of the page.
        sections: what it shows.
        lede: a line under the title.
        figures: (value, what it is), shown large under it.
    """
    kept = [Section(heading, [p for p in parts if p]) for heading, parts in sections]
    kept = [each for each in kept if each.parts]
    named = [(f"section-{number}", each) for number, each in enumerate(kept, start=1)]
    return write_page(path, "sections.html", title, lede=lede, figures=figures, named=named)
