"""Every code block of the manual and the README runs, page by page, from top to bottom.

``python`` blocks of a page share one namespace, ``bash`` blocks run line by line: a plain ``cleanrank``
command in this process, anything else in a shell with ``cleanrank`` on the path. Both start in the page's own
empty folder. Blocks of other kinds (``text``, ``toml``, ``sh``) are only shown; a ``text`` block that follows
``<!-- prints -->`` is what the Python block before it prints. A page that opens with ``<!-- needs: data -->``
reads the real data sets.
"""

import ast
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from cleanrank.cli.main import main

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PRINTS = re.compile(r"\s*<!-- prints -->\s*```text\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
RUNNABLE = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]
NAMES = [
    alias.asname
    for node in ast.parse((ROOT / "src/cleanrank/__init__.pyi").read_text()).body
    if isinstance(node, ast.ImportFrom)
    for alias in node.names
]


def run_lines(block, monkeypatch):
    """Runs a block of shell commands; those that need no shell save the start of a process."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for line in [block] if "<<" in block else block.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True) if "<<" not in line else []
        if words[:1] == ["cleanrank"] and not re.search(r"[|<>$;&`*]", line):
            monkeypatch.setattr("sys.argv", words)
            code = None
            try:
                main()
            except SystemExit as stop:
                code = stop.code
            assert not code, line
        elif line.strip():
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", line],
                env={**os.environ, "PATH": path},
                capture_output=True,
                text=True,
            )
            assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"


def same_figures(shown, printed):
    """The same words, and numbers that differ no more than from one processor to another.

    After a change of what is computed: python docs/fill_prints.py.
    """
    assert NUMBER.sub("#", shown).split() == NUMBER.sub("#", printed).split()
    for one, other in zip(NUMBER.findall(shown), NUMBER.findall(printed), strict=True):
        a, b = (float(figure.replace(",", "")) for figure in (one, other))
        assert a == pytest.approx(b, rel=0.03, abs=0.003), (one, other)


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch, request, capsys):
    text = page.read_text(encoding="utf-8")
    if "<!-- needs: data -->" in text:
        request.getfixturevalue("data_root")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLEANRANK_CACHE", str(tmp_path / "cache"))
    namespace = {"__name__": "__docs__"}
    for block in BLOCK.finditer(text):
        line = text[: block.start()].count("\n") + 2
        if block.group(1) == "bash":
            run_lines(block.group(2), monkeypatch)
            continue
        capsys.readouterr()
        exec(compile("\n" * (line - 1) + block.group(2), str(page), "exec"), namespace)
        if shown := PRINTS.match(text, block.end()):
            same_figures(shown.group(1), capsys.readouterr().out)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_public_name_has_its_place_in_the_reference():
    pages = sorted((ROOT / "docs/reference").glob("*.md"))
    listed = re.findall(r"^::: cleanrank\.(\w+)$", "\n".join(p.read_text() for p in pages), re.MULTILINE)
    assert sorted(listed) == sorted(NAMES)


@pytest.mark.slow
def test_the_manual_is_built_with_signatures_and_docstrings(tmp_path):
    """Strictly: a broken link or a name that cannot be read fails. No private module shows."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    built = "".join(p.read_text(encoding="utf-8") for p in (tmp_path / "reference").rglob("*.html"))
    for name in NAMES:
        assert f'id="cleanrank.{name}"' in built
    words = re.sub(r"<[^>]+>|\s+", " ", built)
    assert "P(given | true) as a matrix" in words  # a docstring
    assert re.search(r"mode ?: ?str ?= ?", re.sub(r"\s+", " ", words))  # a signature
    assert not re.search(r"cleanrank(?:\.\w+)*\._\w", words)
