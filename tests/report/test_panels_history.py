import numpy as np
import pytest

from cleanrank.errors import CleanrankError
from cleanrank.report import charts
from cleanrank.report.images import save_picture, write_pictures
from cleanrank.report.pages import write_report
from cleanrank.report.panels import history_panel, history_panels, stretches
from cleanrank.report.summaries import summarise

from .grids import record

SHARES = np.array([[0.05, 0.1, np.nan], [0.9, 1.0, 0.95]])


def test_the_picture_holds_the_table_and_names_bands_and_trees():
    panel = history_panel(SHARES, [40, 2], first=51, last=80, title="t")
    assert panel.methods == ("50–100 % (2)", "0–50 % (40)")
    assert panel.xs == ("51–60", "61–70", "71–80")
    table = np.full((2, 3), np.nan)
    for p in panel.points:
        table[panel.methods.index(p.method), panel.xs.index(p.x)] = p.mean
    np.testing.assert_array_equal(table, SHARES[::-1])
    assert [(g.method, g.x) for g in panel.gaps] == [("0–50 % (40)", "71–80")]


def test_the_same_table_gives_the_same_bytes(tmp_path):
    for name in ("a.png", "b.png"):
        save_picture([history_panel(SHARES, [40, 2], last=30)], tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_a_history_without_outliers_is_a_picture_too(tmp_path):
    blank = history_panel(np.full((2, 3), np.nan), [0, 0], last=30)
    assert save_picture([blank], tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


def test_sizes_of_other_bands_are_refused():
    with pytest.raises(CleanrankError, match="one number per band"):
        history_panel(SHARES, [1, 2, 3])


@pytest.mark.parametrize(("first", "last", "steps"), [(1, 100, 10), (51, 60, 4), (1, 7, 7), (3, 25, 10)])
def test_stretches_are_those_that_the_history_counts_by(first, last, steps):
    forests = range(first, last + 1)
    by_step = [[] for _ in range(steps)]
    for seen, trees in enumerate(forests):
        by_step[seen * steps // len(forests)].append(trees)
    wanted = [f"{t[0]}–{t[-1]}" if len(t) > 1 else f"{t[0]}" for t in by_step]
    assert stretches(first, last, steps) == wanted


def told(shares, sizes):
    return {"removed": 1, "history": {"shares": shares, "sizes": sizes, "first": 1, "last": 30}}


def studied():
    """Two folds of one study: 40 and 10 documents flagged by few forests, 2 and none by most."""
    one = told([[0.1, 0.2, 0.3], [1.0, 0.9, 0.8]], [40, 2])
    two = told([[0.6, 0.2, 0.3], [None, None, None]], [10, 0])
    values = {"removed": [0.1, 0.2]}
    return [
        record(fold=1, method="neg, s=0", values=values, chosen=one),
        record(fold=2, method="neg, s=0", values=values, chosen=two),
        record(fold=1, method="pos <b>", values=values, chosen=told([[0.5, None, 0.5], [None] * 3], [4, 0])),
        record(fold=2, method="pos <b>", values=values, chosen={}),
    ]


def test_folds_are_averaged_by_documents():
    (method, panel), (other, second) = history_panels(summarise(studied(), resamples=20))
    assert (method, other) == ("neg, s=0", "pos <b>")
    assert panel.methods == ("50–100 % (1)", "0–50 % (25)")
    assert panel.xs == ("1–10", "11–20", "21–30")
    found = {(p.method, p.x): p.mean for p in panel.points}
    assert found["0–50 % (25)", "1–10"] == pytest.approx((40 * 0.1 + 10 * 0.6) / 50)
    assert found["50–100 % (1)", "21–30"] == pytest.approx(0.8)
    assert {g.x for g in second.gaps if g.method.startswith("0–50")} == {"11–20"}
    assert "0–50 % (25): 20% at 1–10, 30% at 21–30 trees." in panel.words
    assert "50–100 % (0): no documents." in second.words


def test_the_rows_of_the_picture_are_in_the_order_of_bands_and_stretches():
    panel = history_panels(summarise(studied(), resamples=20))[1][1]
    rows = charts.data(panel)
    assert list(dict.fromkeys(r["x"] for r in rows)) == list(panel.xs)
    assert list(dict.fromkeys(r["method"] for r in rows)) == list(panel.methods)


def test_pictures_in_files_have_the_histories_too(tmp_path):
    made = {p.name for p in write_pictures(summarise(studied(), resamples=20), tmp_path)}
    assert {"outliers-d-neg--s-0.png", "outliers-d-pos--b-.svg"} <= made


def test_the_page_draws_the_history_of_every_choice_of_outliers(tmp_path, visit):
    opened = visit(write_report(studied(), tmp_path / "r.html", title="t", command="c"))
    shown = {
        figure.locator("figcaption").inner_text(): figure.locator("svg").first.text_content()
        for figure in opened.page.locator("figure", has_text="trees of the model").all()
    }
    assert list(shown) == ["d, neg, s=0", "d, pos <b>"]
    first, second = shown.values()
    assert first.index("50–100 %") < first.index("0–50 % (25)")
    assert "0–50 % (4)" in second
    assert opened.quiet()
