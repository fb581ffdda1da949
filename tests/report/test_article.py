import json
import re

import pytest

from cleanrank.report.article import drawn, write_article
from cleanrank.report.curves import picture

pytest.importorskip("vl_convert")
NASTY = "<script>alert(1)</script>"
PICTURES = [picture("one", NASTY, "in words", {"mark": "bar"}), picture("two", "b", "c", {"mark": "point"})]


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    sections = [
        ("first", "First", [NASTY, None, *drawn(PICTURES)]),
        ("bare", "Nothing here", [None]),
    ]
    path = tmp_path_factory.mktemp("article") / "page.html"
    return write_article(path, "A title", "a lede", [("1.5", NASTY)], sections, PICTURES).read_text()


def test_sections_without_parts_are_left_out(text):
    assert 'id="first"' in text
    assert "Nothing here" not in text


def test_words_are_escaped_wherever_they_stand(text):
    assert NASTY not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 3


def test_the_page_carries_every_picture_for_its_script(text):
    block = re.search(r'id="pictures-data">(.*?)</script>', text).group(1)
    assert [p["id"] for p in json.loads(block)["pictures"]] == ["one", "two"]


def test_pictures_are_placed_by_name():
    (only,) = drawn(PICTURES, "two")
    assert 'id="two"' in only
    assert 'id="one"' not in only
    assert drawn(PICTURES, "three") == []
