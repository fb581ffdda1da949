import html
import json
import re

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.diagnosis import diagnose
from cleanrank.planning import plan_labels
from cleanrank.report.articles import write_diagnosis, write_plan

pytest.importorskip("vl_convert")
NASTY = '<img src=x onerror="alert(1)"></script><script>alert(2)</script>'


def data(rows=300):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(rows, 3)).astype(np.float32)
    X[:, 2] = 7
    return cr.from_arrays(
        X,
        rng.choice(3, size=rows, p=[0.7, 0.2, 0.1]),
        qid=np.sort(rng.integers(0, 25, rows)),
        feature_names=(NASTY, "b", "c"),
    )


@pytest.fixture(scope="module")
def found():
    return diagnose(data(), name="a set")


@pytest.fixture(scope="module")
def page(found, tmp_path_factory):
    return found.to_html(tmp_path_factory.mktemp("diagnosis") / "report.html")


@pytest.fixture(scope="module")
def bought():
    return plan_labels(5000, cost=0.1)


@pytest.fixture(scope="module")
def plan_page(bought, tmp_path_factory):
    return bought.to_html(tmp_path_factory.mktemp("plan") / "plan.html")


def words(path):
    """The text of a page without markup, scripts and styles."""
    text = re.sub(r"(?s)<(script|style).*?</\1>", "", path.read_text("utf-8"))
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text)))


def test_the_page_says_what_the_diagnosis_says(found, page):
    text = words(page)
    assert "Diagnosis of a set" in text
    for advice in found.advice:
        assert advice.text.replace(" `", " ").replace("`", " ") in text
    for curve in found.curves:
        assert f"{curve.at(0.1):.3f}" in text
    for merge in found.merges:
        assert merge.name in text
    assert f"{found.duplicates.within.least_wrong:,}" in text


def test_the_plan_says_what_the_plan_says(bought, plan_page):
    text = words(plan_page)
    for option in bought.options:
        assert option.name in text
        assert f"{option.pnoise:.3f}" in text
    for reason in bought.reasons:
        assert reason.text in text
    for change in bought.changes:
        assert change.what in text


def test_the_pages_come_from_json_alone_and_the_same_values_give_the_same_bytes(
    found, page, bought, plan_page, tmp_path
):
    again = write_diagnosis(json.loads(found.to_json()), tmp_path / "a.html")
    assert again.read_bytes() == page.read_bytes()
    again = write_plan(json.loads(bought.to_json()), tmp_path / "b.html")
    assert again.read_bytes() == plan_page.read_bytes()


def test_names_from_outside_are_escaped(tmp_path):
    path = diagnose(data(), name=NASTY).to_html(tmp_path / "a.html")
    text = path.read_text("utf-8")
    assert NASTY not in text
    assert "&lt;img" in text


@pytest.mark.parametrize("which", ["page", "plan_page"])
def test_the_page_loads_nothing(which, request):
    text = request.getfixturevalue(which).read_text("utf-8")
    assert len(text) < 200_000
    assert not re.search(r"<(script|link|img|iframe|object|embed|base)\b", text)
    assert not re.search(r"@import|url\((?!#)", text)


def test_one_grade_and_nothing_bought_still_make_a_page(tmp_path):
    one = diagnose(cr.from_arrays([[1.0], [2.0]], [0, 0], qid=[1, 1])).to_html(tmp_path / "one.html")
    assert "one grade" in words(one)
    poor = plan_labels(1).to_html(tmp_path / "poor.html")
    assert "The budget buys nothing" in words(poor)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("which", "pictures"), [("page", 4), ("plan_page", 2)])
def test_the_page_shows_its_pictures_without_a_script(visit, which, pictures, scheme, request):
    opened = visit(request.getfixturevalue(which), color_scheme=scheme, java_script_enabled=False)
    assert opened.page.locator(".plot svg:visible").count() == pictures
    for box in opened.page.locator(".plot").all():
        size = box.bounding_box()
        assert size["width"] > 200
        assert size["height"] > 60
    assert opened.quiet(), opened.said


@pytest.mark.parametrize("which", ["page", "plan_page"])
def test_every_screen_holds_the_page(visit, which, request):
    opened = visit(request.getfixturevalue(which))
    for width in (400, 820, 1200):
        assert opened.fits(width), width


def test_a_row_keeps_its_name_in_sight_while_its_figures_are_scrolled(visit, plan_page):
    page = visit(plan_page).page
    page.set_viewport_size({"width": 400, "height": 800})
    page.evaluate("document.querySelector('#options .scroll').scrollLeft = 300")
    name = page.locator("#options tbody tr").first.locator("th").bounding_box()
    assert 0 <= name["x"] < name["x"] + name["width"] < 200


def test_words_of_the_trade_are_explained_and_commands_are_code(page, plan_page):
    text = page.read_text("utf-8")
    for term in ("pNoise", "AUC's signal", "bend", "knee"):
        assert f"<dt>{term}</dt>" in text
    for each in (text, plan_page.read_text("utf-8")):
        assert "turning point" not in each
        assert "`" not in each
    assert "<code>cleanrank plan</code>" in text
