"""The page of the matrix: complete without a script, searched and filtered with one."""

import re

import pytest

from cleanrank.report.matrix import MEANINGS, matrix_markdown, totals, write_matrix

NASTY = "<img src=x onerror=alert(1)></script><script>alert(2)</script>"


def line(row, verdict="agrees", source="A (2020)", **more):
    return {
        "source": source, "table": "Tab. 1", "row": row, "column": "NDCG@10", "expected": 0.5,
        "observed": 0.51, "verdict": verdict, "data": "real", "why": "", "recipe": "a/one",
        "low": 0.49, "high": 0.53,
        "dataset": "d", "clear": None, "command": "cleanrank reproduce a/one", "erratum": None, "facts": {},
        "origin": {"from": "results/a/one.parquet", "ran": "2026-01-01", "versions": "cleanrank 1"},
    } | more  # fmt: skip


def lines():
    nothing = {"observed": None, "low": None, "high": None, "data": None, "origin": {}}
    return [
        line("plain"),
        line("far", "differs", why="+0.2000, allowed 0.1."),
        line("near", "same direction", "B (2021)", data="stand-in", clear=True, why="Against plain."),
        line("back", "opposite direction", "B (2021)", data="stand-in", clear=True),
        line("lost", "not computable here", "B (2021)", why="The text is lost.", **nothing),
        line("said", "wrong in the paper", "B (2021)", expected="in words", erratum="s3"),
        line("later", "not run", "B (2021)", why="No cell has run.", **nothing),
    ]


def test_totals_tell_own_data_from_others():
    assert "Of 7 figures 3 were measured on the paper's own data and 2 on stand-ins, by 1 " in totals(lines())
    assert "2 differences lie beyond their error" in totals(lines())
    assert "; 1 of these have the direction of the paper." in totals(lines())


def test_markdown_has_every_figure_with_its_reason():
    text = matrix_markdown(lines())
    for each in lines():
        assert re.search(rf"^\| {each['row']} .*{each['verdict']}", text, re.M)
    assert "| B (2021) |  |  | 1 | 1 | 1 | 1 | 1 | 5 |" in text
    assert "1. The text is lost." not in text.partition("## B (2021)")[0]
    numbers = {
        row: re.search(rf"^\| {row} .*\((\d)\) \|$", text, re.M)[1] for row in ("near", "lost", "later")
    }
    for row, why in (
        ("near", "Against plain."),
        ("lost", "The text is lost."),
        ("later", "No cell has run."),
    ):
        assert re.search(rf"^{numbers[row]}\. {re.escape(why)}$", text.partition("## B (2021)")[2], re.M)
    assert "[S3](../errata.md)" in text
    assert "`cleanrank reproduce a/one` (results/a/one.parquet, 2026-01-01)" in text


def test_a_page_holds_all_and_is_the_same_twice(tmp_path):
    first = write_matrix(lines(), tmp_path / "a.html").read_bytes()
    assert first == write_matrix(lines(), tmp_path / "b.html").read_bytes()
    text = first.decode("utf-8")
    for verdict, (sign, _, _) in MEANINGS.items():
        assert f"{sign} {verdict}" in text
    assert "0.4900 – 0.5300" in text
    assert "cleanrank reproduce a/one" in text


def test_what_comes_from_files_is_escaped(tmp_path):
    bad = line(NASTY, source=NASTY, why=NASTY, command=NASTY, expected=NASTY, recipe=NASTY)
    text = write_matrix([bad], tmp_path / "a.html").read_text("utf-8")
    assert "<img" not in text
    assert text.count("<script>") == 1


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_search_and_filters_leave_what_fits(visit, tmp_path, scheme):
    opened = visit(write_matrix(lines(), tmp_path / "a.html"), color_scheme=scheme)
    page = opened.page

    def seen():
        return page.locator("tbody tr[data-verdict]:visible th").all_inner_texts()

    assert len(seen()) == 7
    page.fill("#words", "b (2021) TEXT")
    assert seen() == ["lost"]
    page.fill("#words", "")
    page.select_option("#verdict", "same direction")
    assert seen() == ["near"]
    page.select_option("#verdict", "")
    page.select_option("#paper", "A (2020)")
    assert seen() == ["plain", "far"]
    assert page.inner_text("#count") == "2 figures"
    page.select_option("#paper", "")
    page.select_option("#data", "stand-in")
    assert seen() == ["near", "back"]
    assert page.locator("section[data-paper]:visible").count() == 1
    assert opened.quiet()
    assert opened.fits(1280)
    assert opened.fits(390)


def test_without_a_script_all_figures_are_there(visit, tmp_path):
    opened = visit(write_matrix(lines(), tmp_path / "a.html"), java_script_enabled=False)
    assert opened.page.locator("tbody tr[data-verdict]:visible").count() == 7
    assert not opened.page.locator("#filters").is_visible()
