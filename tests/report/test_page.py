import base64
import hashlib
import json
import re

import pytest

from cleanrank.errors import MissingDataError
from cleanrank.report.page import Safe, Td, data_block, escape, joined, number, page, table, tag, write_page

NASTY = "</td><script>alert(\"1\")</script><img src=x onerror='f()'>&"


def test_text_is_escaped_in_content_and_attributes():
    made = tag("p", NASTY, title=NASTY)
    assert "<script" not in made
    assert "onerror='" not in made
    assert made.count("&lt;script&gt;") == 2
    assert "&quot;" in made


def test_safe_markup_is_not_escaped_twice():
    assert tag("p", tag("b", "a & b")) == "<p><b>a &amp; b</b></p>"
    assert joined([Safe("<i>"), None, "<"]) == "<i>&lt;"
    assert escape(3) == "3"


@pytest.mark.parametrize("value", [None, float("nan")])
def test_no_number_is_a_dash_that_sorts_as_nothing(value):
    cell = number(value)
    assert (cell.shown, cell.value) == ("–", None)


def test_numbers_have_a_real_minus():
    assert number(-0.25, "+.2f").shown == "−0.25"


def test_a_table_heads_its_columns_and_rows():
    made = table([("A", "why <a>"), ("B", "")], [["x", Td("1.0", 1.0, "num")]], caption="c & d")
    assert made.count('scope="col"') == 2
    assert '<th scope="row">x</th>' in made
    assert '<td data-v="1" class="num">1.0</td>' in made
    assert "<caption>c &amp; d</caption>" in made
    assert 'title="why &lt;a&gt;"' in made


def test_rows_must_fit_the_columns():
    with pytest.raises(ValueError, match="zip"):
        table([("A", "")], [["x", "y"]], caption="")


def test_data_cannot_end_their_element():
    value = {"a": NASTY, "b": [1.5, None, "\u2028"]}
    block = data_block("d", value)
    inner = re.fullmatch(r'<script type="application/json" id="d">(.*)</script>', block, re.S).group(1)
    assert "<" not in inner
    assert json.loads(inner) == value
    with pytest.raises(ValueError, match="JSON"):
        data_block("d", float("nan"))


def test_the_policy_names_the_hash_of_every_script_and_style():
    text = page("t", [], scripts=["one()", "two()"], extra_style="p{}")
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1).replace("&#x27;", "'")
    style = re.search(r"<style>(.*?)</style>", text, re.S).group(1)
    for inner in ("one()", "two()", style):
        digest = base64.b64encode(hashlib.sha256(inner.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_a_page_is_written_whole(tmp_path):
    path = write_page(tmp_path / "a.html", "first")
    write_page(path, "sécond")
    assert path.read_text("utf-8") == "sécond"
    assert [p.name for p in tmp_path.iterdir()] == ["a.html"]
    with pytest.raises(MissingDataError, match="does not exist"):
        write_page(tmp_path / "none" / "a.html", "x")
