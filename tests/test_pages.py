"""Pages of docs/results hold prose and blocks that benchmarks/pages.py writes from tracked results."""

import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest
from benchmarks import pages

from tests.test_docs import same_figures

ROOT = Path(__file__).parent.parent
RESULTS = sorted((ROOT / "docs" / "results").glob("*.md"))
PAGE = "# Title\n\nProse, a | b.\n\n<!-- one -->\n| a |\n| --: |\n| 1 |\n<!-- end one -->\n\nMore.\n"


@pytest.fixture
def page(tmp_path):
    file = tmp_path / "page.md"
    file.write_text(PAGE, encoding="utf-8")
    return file


def test_a_block_is_filled_and_the_rest_stays(page):
    pages.fill(page, {"one": "\nnew \\1 text\n\n"})
    assert page.read_text(encoding="utf-8") == re.sub(
        r"-->\n\|.*\|\n<", lambda _: "-->\nnew \\1 text\n<", PAGE, flags=re.S
    )
    with pytest.raises(SystemExit, match="no block two"):
        pages.fill(page, {"two": ""})


def test_a_page_that_holds_its_texts_is_not_written(page):
    before = page.stat()
    pages.fill(page, {"one": "| a |\n| --: |\n| 1 |"})
    assert (page.stat().st_ino, page.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


TABLE_AND_PICTURES = ["| a | b |\n|---|--:|\n| 1 | 2 |", "![words](img/x.svg)", '<img src="x.png">']


@pytest.mark.parametrize("stray", [*TABLE_AND_PICTURES, "<!-- two -->", "<!-- end one -->"])
def test_what_stands_outside_of_blocks_is_seen(page, stray):
    assert pages.unwritten(page) == []
    page.write_text(f"{PAGE}\n{stray}\n", encoding="utf-8")
    assert pages.unwritten(page) == [stray.splitlines()[0]]


@pytest.mark.parametrize("own", TABLE_AND_PICTURES)
def test_what_stands_in_a_block_is_fine(page, own):
    page.write_text(PAGE.replace("| 1 |", f"| 1 |\n\n{own}\n"), encoding="utf-8")
    assert pages.unwritten(page) == []


def test_every_page_of_results_has_one_writer():
    written = Counter(page for each in pages.WRITERS.values() for page in each) + Counter(
        pages.WHOLE.values()
    )
    assert all(written[f"results/{page.name}"] == 1 for page in RESULTS)


def test_every_block_has_one_writer(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    written = Counter(
        (page, block)
        for module, own in pages.WRITERS.items()
        for page in own
        for block in pages.blocks(pages.DOCS / page) & import_module(module).TEXTS.keys()
    )
    blocks = {
        (page, block)
        for own in pages.WRITERS.values()
        for page in own
        for block in pages.blocks(pages.DOCS / page)
    }
    assert written == dict.fromkeys(blocks, 1)


@pytest.fixture
def writer(module, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return import_module(module)


@pytest.mark.parametrize("module", pages.WRITERS)
def test_tables_and_pictures_stand_in_blocks_that_a_command_writes(module, writer):
    own = [pages.DOCS / page for page in pages.WRITERS[module]]
    for page in own:
        if page in RESULTS:
            assert pages.unwritten(page) == [], page.name
            assert pages.blocks(page) <= writer.TEXTS.keys(), page.name
            shown = pages.PICTURE.findall(page.read_text(encoding="utf-8"))
            assert {Path(path).name for path in shown} <= writer.PICTURES.keys(), page.name
    assert writer.TEXTS.keys() <= set().union(*map(pages.blocks, own))
    assert all((pages.IMAGES / file).is_file() for file in writer.PICTURES)


@pytest.mark.slow
@pytest.mark.parametrize("module", pages.WRITERS)
def test_writing_a_page_again_changes_nothing(module, writer, tmp_path):
    """From a fresh checkout: no data, no store. Figures may differ by what processors make of them."""
    texts = {name: make().strip() for name, make in writer.TEXTS.items()}
    for page in pages.WRITERS[module]:
        for block in pages.BLOCK.finditer((pages.DOCS / page).read_text(encoding="utf-8")):
            if block["name"] in texts:
                same_figures(block["text"].strip(), texts[block["name"]])
    for file, draw in writer.PICTURES.items():
        draw(tmp_path / file)
        draw(tmp_path / f"again-{file}")
        assert (tmp_path / file).read_bytes() == (tmp_path / f"again-{file}").read_bytes(), file
