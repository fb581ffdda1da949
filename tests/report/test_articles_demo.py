import pytest

from cleanrank.report.articles import write_demo

pytest.importorskip("vl_convert")
NASTY = "<script>alert(1)</script>"


def system(name, mean, **others):
    bare = dict.fromkeys(("difference", "low", "high", "p", "recovered"))
    return {"name": name, "mean": mean, "mean_low": mean - 0.1, "mean_high": mean + 0.1, **bare, **others}


FOUND = {
    "queries": {"train": 10, "validation": 4, "test": 6},
    "documents": {"train": 1234, "validation": 400, "test": 600},
    "features": 136,
    "rate": 0.1,
    "seed": 0,
    "changed": 123,
    "pnoise": 0.119,
    "pnoise_expected": 0.115,
    "signal_left": 0.762,
    "gold": {"rows": 100, "rate": 0.117, "low": 0.07, "high": 0.19},
    "grades": [
        {"grade": 0, "true": 700, "given": 650, "wrong": 0.03},
        {"grade": 1, "true": 534, "given": 584, "wrong": None},
    ],
    "detectors": [
        {
            "name": NASTY,
            "issues": 10,
            "precision": 0.8,
            "recall": 0.2,
            "average_precision": 0.6,
            "within_grades": None,
            "curve": {"recall": [0.1, 1.0], "precision": [0.9, 0.1]},
        }
    ],
    "reliability": [{"said": 0.1, "wrong": 0.12, "rows": 1000}, {"said": 0.9, "wrong": 0.85, "rows": 20}],
    "worst": [
        {"query": NASTY, "row": 7, "given": 4, "truth": 0, "doubt": 0.97, "why": "graded 4, but ranked last"}
    ],
    "systems": [
        system("noisy", 0.39),
        system("cleaned", 0.42, difference=0.03, low=-0.01, high=0.07, p=0.2, recovered=0.6),
        system("clean", 0.44, difference=0.05, low=0.01, high=0.09, p=0.01, recovered=1.0),
    ],
    "baseline": "noisy",
    "ceiling": "clean",
    "best": "cleaned",
    "recovered": 0.6,
    "steps": [{"step": "making data", "seconds": 1.5}],
    "command": "cleanrank demo --seed 0",
}


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    return write_demo(FOUND, tmp_path_factory.mktemp("story") / "story.html")


def test_the_page_shows_its_figures(page):
    text = page.read_text()
    for words in (
        "11.9%",
        "60%",
        "1,234",
        "graded 4, but ranked last",
        "−0.0100 to +0.0700",
        "cleanrank demo --seed 0",
    ):
        assert words in text
    assert ".050" in text  # what the noise cost


def test_words_are_escaped(page):
    assert NASTY not in page.read_text()


def test_without_a_loss_nothing_is_won_back(tmp_path):
    text = write_demo(FOUND | {"recovered": None, "best": None}, tmp_path / "a.html").read_text()
    assert "of it won back" not in text


def test_pictures_are_drawn_without_a_request(page, visit):
    for scheme in ("light", "dark"):
        seen = visit(page, color_scheme=scheme)
        drawn = seen.page
        assert drawn.locator("#quality svg, #finding svg, #reliability svg").count() == 6
        assert seen.fits(400)
        assert seen.quiet()
