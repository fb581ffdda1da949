"""Every code block of the manual and the README runs, page by page, from top to bottom.

``python`` blocks of a page share one namespace, ``bash`` blocks run with ``cleanrank`` on the path; both
start in the page's own empty folder. Blocks of other kinds (``text``, ``toml``, ``sh``) are only shown. A
page that opens with ``<!-- needs: data -->`` reads the real data sets.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```(python|bash)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
RUNNABLE = [page for page in PAGES if BLOCK.search(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", RUNNABLE, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_blocks_of_a_page_run(page, tmp_path, monkeypatch, request):
    text = page.read_text(encoding="utf-8")
    if "<!-- needs: data -->" in text:
        request.getfixturevalue("data_root")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLEANRANK_CACHE", str(tmp_path / "cache"))
    namespace = {"__name__": "__docs__"}
    for block in BLOCK.finditer(text):
        line = text[: block.start()].count("\n") + 2
        if block.group(1) == "python":
            code = compile("\n" * (line - 1) + block.group(2), str(page), "exec")
            exec(code, namespace)
            continue
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.group(2)],
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{page}:{line}\n{done.stdout}\n{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\((?!https?://|#)([^)#\s]+)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name}: {target}"
