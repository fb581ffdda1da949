"""Fills the marked blocks of pages and draws their pictures, from tracked results alone.

    python benchmarks/pages.py              # all pages: `make docs` runs this
    python benchmarks/pages.py niu sour     # those of some modules

A page is prose with blocks between ``<!-- NAME -->`` and ``<!-- end NAME -->``. The module that writes it
(see ``WRITERS``) reads results/*.parquet and benchmarks/results/*.json, trains nothing, and holds

    TEXTS: dict[str, Callable[[], str]]              # by the name of a block: its Markdown
    PICTURES: dict[str, Callable[[Path], object]]    # by the name of a file in docs/results/img: draws it

A page of docs/results holds no table and no picture outside of its blocks; tests/test_pages.py sees to it.
"""

import argparse
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from cleanrank.data.files import written_whole
from cleanrank.experiments.matrix import matrix
from cleanrank.report.matrix import matrix_markdown

DOCS = Path(__file__).parent.parent / "docs"
IMAGES = DOCS / "results" / "img"
# The modules of this folder that write pages, and the pages of each, below docs.
WRITERS = {
    "niu": ("results/niu.md",),
    "sour_tables": ("results/sour.md",),
    "haddad": ("results/haddad.md",),
    "peerrank_tables": ("results/peerrank.md",),
    "ctr": ("results/ctr.md", "click-models.md"),
    "judges": ("results/judges.md", "can-i-trust-my-judge.md"),
    "estimation": ("results/estimation.md",),
    "recovery": ("results/recovery.md", "how-much-can-be-won-back.md", "label-issues.md"),
    "baselines": ("results/baselines.md", "results/noise-quick.md"),
    "labeling": ("results/labeling.md",),
    "annotators": ("annotators.md",),
    "audit": ("audit.md",),
    "labeling_load": ("benchmarks.md",),
    "missing": ("missing-judgements.md",),
    "mutation": ("benchmarks.md",),
    "sizes": ("sizes.md",),
}
# A page that is written whole, by the command on the left.
WHOLE = {"cleanrank reproduce --matrix --markdown": "results/matrix.md"}

BLOCK = re.compile(
    r"^<!-- (?!end )(?P<name>[^>\n]+?) -->\n(?P<text>.*?)^<!-- end (?P=name) -->$", re.M | re.S
)
MARKER = re.compile(r"^<!-- (?:end )?(?!needs:|prints)[^>\n]+ -->$", re.M)
TABLE = re.compile(r"^\|.*\|\n\|[ :|-]+\|$", re.M)
PICTURE = re.compile(r"!\[[^\]]*\]\((?P<path>[^)\s]+)\)|<(?:img|svg)\b[^>]*>")


def fill(page: Path, texts: Mapping[str, str]) -> None:
    """Puts texts into the blocks of a page; a text without a block is an error.

    Args:
        page: the file.
        texts: the Markdown of a block by the block's name; other blocks stay as they are.
    """
    old = page.read_text(encoding="utf-8")
    if missing := texts.keys() - blocks(page):
        raise SystemExit(
            f"{page.name} has no block {', '.join(sorted(missing))}. Add <!-- NAME --> and "
            "<!-- end NAME -->, each on a line of its own."
        )

    def filled(block: re.Match[str]) -> str:
        name = block["name"]
        if name not in texts:
            return block[0]
        return f"<!-- {name} -->\n{texts[name].strip(chr(10))}\n<!-- end {name} -->"

    new = BLOCK.sub(filled, old)
    if new != old:
        with written_whole(page) as part:
            part.write_text(new, encoding="utf-8")


def blocks(page: Path) -> set[str]:
    """The names of a page's blocks."""
    return {block["name"] for block in BLOCK.finditer(page.read_text(encoding="utf-8"))}


def unwritten(page: Path) -> list[str]:
    """The tables, pictures and single markers outside of a page's blocks: the first line of each."""
    prose = BLOCK.sub("", page.read_text(encoding="utf-8"))
    found = (match for kind in (TABLE, PICTURE, MARKER) for match in kind.finditer(prose))
    return [match[0].splitlines()[0] for match in found]


def write(name: str) -> None:
    """Fills the pages of a module and draws its pictures."""
    writer = import_module(name)
    pages = [DOCS / page for page in WRITERS[name]]
    texts = {block: make() for block, make in writer.TEXTS.items()}
    for page in pages:
        fill(page, {block: texts[block] for block in blocks(page) & texts.keys()})
    for file, draw in writer.PICTURES.items():
        draw(IMAGES / file)


def write_whole() -> None:
    """Writes the page that has no prose of its own: the matrix, from tracked results alone."""
    text = matrix_markdown([line.to_dict() for line in matrix()])
    (page,) = (DOCS / name for name in WHOLE.values())
    if not page.exists() or page.read_text(encoding="utf-8") != text:
        with written_whole(page) as part:
            part.write_text(text, encoding="utf-8")


def main() -> None:
    """Writes the pages of the modules on the command line, or all."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("module", nargs="*", choices=[[], *WRITERS, "matrix"], help="all unless given")
    for name in parser.parse_args().module or [*WRITERS, "matrix"]:
        print(name, file=sys.stderr, flush=True)
        write_whole() if name == "matrix" else write(name)


if __name__ == "__main__":
    main()
