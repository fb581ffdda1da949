import pytest

from cleanrank.report.pages import write_matrix
from cleanrank.report.published import STATUSES, MatrixRow, Verdict
from cleanrank.report.summaries import Level

NASTY = "<img src=x onerror=alert(1)>"


def figure(measure, published, ours, interval, verdict):
    low, high = interval or (None, None)
    return Verdict("MQ2008", Level(), "m", measure, verdict, ours, low, high, published)


def rows():
    figures = {
        "agrees": (figure("map", 0.47, 0.4712, (0.46, 0.48), "agrees"),),
        "partly": tuple(
            figure(f"ndcg@{k}", 0.4, 0.5, (0.4, 0.6), "differs" if k % 2 else "agrees") for k in range(1, 16)
        ),
        "differs": (figure("map", 0.47, 0.6, None, "differs"),),
        "failed": (figure("map", 0.47, None, None, "not run"),),
        "unjudged": (figure("map", None, 0.5, (0.4, 0.6), "no published figure"),),
        "not run": (figure("map", 0.47, None, None, "not run"),),
    }
    return [
        MatrixRow(
            f"recipes/{s}.toml",
            f"Recipe {s}",
            f"cleanrank reproduce recipes/{s}.toml",
            "group",
            figures[s],
            s,
        )
        for s in STATUSES
    ]


def test_every_recipe_with_its_command_figures_shape_and_word(tmp_path):
    text = write_matrix(rows(), tmp_path / "m.html").read_text("utf-8")
    for row in rows():
        assert row.title in text
        assert row.command in text
        status = STATUSES[row.status]
        assert f"{status.shape} {status.word}" in text
        assert f'class="recipe {status.colour}"' in text
    assert "0.4712" in text
    assert "0.4600 – 0.4800" in text
    assert "3 more figures" in text


def test_the_same_rows_give_the_same_bytes(tmp_path):
    first = write_matrix(rows(), tmp_path / "a.html").read_bytes()
    assert first == write_matrix(rows(), tmp_path / "b.html").read_bytes()


def test_what_comes_from_recipes_is_escaped(tmp_path):
    row = MatrixRow(NASTY, NASTY, NASTY, NASTY, (figure(NASTY, 1.0, None, None, NASTY),), "partly")
    assert "<img" not in write_matrix([row], tmp_path / "m.html").read_text("utf-8")


def test_no_recipes_is_a_page_too(tmp_path):
    assert "Made with cleanrank" in write_matrix([], tmp_path / "m.html").read_text("utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_opens_quietly(visit, tmp_path, scheme):
    seen = visit(write_matrix(rows(), tmp_path / "m.html"), color_scheme=scheme)
    page = seen.page
    assert page.locator("article.recipe").count() == len(STATUSES)
    assert seen.fits(400)
    for status in page.locator("header tbody .status").all():  # seen without scrolling sideways
        assert status.bounding_box()["x"] + status.bounding_box()["width"] <= 400
    assert seen.quiet(), (seen.said, seen.asked)


def test_colours_of_the_words_can_be_read(visit, tmp_path):
    """At least 4.5 : 1 for the words of every status on its paper, light and dark."""
    path = write_matrix(rows(), tmp_path / "m.html")
    script = """() => {
      const light = c => { const v = c.match(/\\d+/g).slice(0, 3).map(Number).map(x => x / 255)
        .map(x => x <= .04045 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
        return .2126 * v[0] + .7152 * v[1] + .0722 * v[2]; };
      const paper = e => { while (e) { const b = getComputedStyle(e).backgroundColor;
        if (!b.startsWith("rgba(0, 0, 0, 0")) return b; e = e.parentElement; } return "rgb(255,255,255)"; };
      return [...document.querySelectorAll(".status, .pill, .hint, code")].map(e => {
        const [a, b] = [light(getComputedStyle(e).color), light(paper(e))].sort((x, y) => y - x);
        return (a + .05) / (b + .05); }); }"""
    for scheme in ("light", "dark"):
        ratios = visit(path, color_scheme=scheme).page.evaluate(script)
        assert len(ratios) > 30
        assert min(ratios) >= 4.5
