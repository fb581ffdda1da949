import base64
import hashlib
import html
import re

import pytest

from cleanrank.errors import MissingDataError
from cleanrank.report.pages import Page, write_page, write_report
from cleanrank.report.published import Published
from cleanrank.report.summaries import summarise

from .grids import grid, record

pytest.importorskip("vl_convert")
FAST = {"resamples": 200, "permutations": 500}
NASTY = '<img src=x onerror="alert(1)"></script><script>alert(2)</script>'
PUBLISHED = (
    Published("MQ2008", "lambdamart", "ndcg@10", 0.51, "Table 2"),
    Published("MQ2008", "sour neg", "ndcg@10", 0.6111, "Table 2"),
    Published("OHSUMED", "sour neg", "ndcg@10", 0.41, "Table 2", noise="uniform", rate=0.2),
    Published("OHSUMED", "AdaRank", "map", 0.4487, "Table 3", context=True),
)


def write(path, records, **more):
    known = {k: more.pop(k) for k in ("baseline", "measures", "expected") if k in more}
    summary = summarise(records, **known, **FAST)
    return write_report(records, path, **{"title": "T", "command": "run", "summary": summary, **more})


@pytest.fixture(scope="module")
def report(tmp_path_factory, summary):
    path = tmp_path_factory.mktemp("report") / "report.html"
    return write_report(
        grid(),
        path,
        title="Noise",
        command="cleanrank reproduce recipes/noise/quick.toml",
        published=PUBLISHED,
        notes=["A note."],
        summary=summary,
    )


def test_the_same_records_give_the_same_bytes(report, tmp_path):
    again = write(
        tmp_path / "again.html",
        grid(),
        title="Noise",
        command="cleanrank reproduce recipes/noise/quick.toml",
        baseline="lambdamart",
        published=PUBLISHED,
        notes=["A note."],
    )
    assert again.read_bytes() == report.read_bytes()


def test_the_page_is_small_and_names_no_address_to_load(report):
    text = report.read_text("utf-8")
    assert len(text.encode()) < 300_000
    assert not re.search(r"<(script|link|img|iframe|object|embed|base)\b", text)
    assert not re.search(r"@import|url\((?!#)", text)


def test_everything_from_outside_is_escaped(tmp_path):
    records = [
        record(dataset=NASTY, noise=noise, rate=rate, method=method, values={"map": [0.1, 0.2]}, recipe=NASTY)
        for noise, rate in (("none", 0.0), (NASTY, 0.1))
        for method in (NASTY, "other")
    ]
    records.append(
        record(dataset=NASTY, method="broken", status="failed", error=NASTY, versions={NASTY: NASTY})
    )
    figures = [
        Published(NASTY, NASTY, "map", 0.1, NASTY),
        Published(NASTY, "x", "map", 0.1, NASTY, context=True),
    ]
    path = write(
        tmp_path / "a.html",
        records,
        title=NASTY,
        command=NASTY,
        baseline=NASTY,
        published=figures,
        notes=[NASTY],
    )
    text = path.read_text("utf-8")
    assert "<img" not in text
    assert "<script" not in text


def test_failed_cells_never_become_numbers(tmp_path):
    """A failed record that carries values all the same: they are nowhere on the page."""
    records = [record(method="fine", values={"map": [0.25, 0.5]})]
    records.append(
        record(method="broken", values={"map": [0.123456, 0.123456]}, status="failed", error="died")
    )
    text = write(tmp_path / "a.html", records, baseline="fine").read_text("utf-8")
    assert "0.1235" not in text
    assert "0.123456" not in text
    assert ">failed</text>" in text  # in the picture too


def test_a_grid_of_which_all_failed_still_has_a_page(tmp_path):
    text = write(tmp_path / "a.html", [record(status="failed", error="died")]).read_text("utf-8")
    assert "1 cell failed" in text
    assert 'id="pictures"' not in text


def test_a_data_set_of_which_all_failed_has_no_empty_picture(visit, tmp_path):
    rates = (0.0, 0.2)
    made = [record("good", noise="uniform", rate=r, values={"map": [0.4, 0.6]}) for r in rates]
    made += [record("bad", noise="uniform", rate=r, status="failed", error="died") for r in rates]
    seen = visit(write(tmp_path / "a.html", made, measures=["map"]))
    assert "bad" not in " ".join(seen.page.locator("figcaption").all_inner_texts())
    assert seen.quiet(), seen.said
    failed = visit(write(tmp_path / "b.html", made[2:], measures=["map"]))
    failed.page.wait_for_selector("text=2 cells failed")
    assert failed.page.locator("nav a[href='#pictures']").count() == 0
    assert failed.quiet(), failed.said


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_opens_quietly_and_draws_without_a_script(visit, report, scheme):
    seen = visit(report, color_scheme=scheme)
    page = seen.page
    assert seen.quiet(), (seen.said, seen.asked)
    assert page.locator(".plot svg:visible").count() == 4  # those of the other measures are folded away
    for plot in page.locator(".plot:visible").all():
        box = plot.bounding_box()
        assert box["width"] > 200
        assert box["height"] > 60
        assert plot.get_attribute("role") == "img"
        assert len(plot.get_attribute("aria-label")) > 40
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    assert page.locator(".plot svg:visible").count() == 12
    # three lines and three bands in each of the two curves of three measures, all with a colour
    assert page.locator(".plot svg g.mark-line path").count() == 18
    strokes = page.evaluate(
        "[...document.querySelectorAll('g.mark-line path')].map(p => getComputedStyle(p).stroke)"
    )
    assert len(set(strokes)) == 3
    assert all(s.startswith("rgb") for s in strokes)
    assert (brightness(page) < 60) == (scheme == "dark")


def brightness(page):
    rgb = re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))
    return sum(map(int, rgb[:3])) / 3


def test_every_screen_holds_the_page(visit, report):
    seen = visit(report)
    seen.page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    for width in (400, 820, 1280):
        assert seen.fits(width), width


def too_wide(page, width):
    """What reaches beyond the paper, with everything that is folded away unfolded."""
    return page.evaluate(
        """width => {
          for (const part of document.querySelectorAll("details")) part.open = true;
          return [...document.querySelectorAll("table, svg, p, pre, code, h1, h2, h3")]
            .map(e => [e.tagName, e.textContent.slice(0, 60), e.getBoundingClientRect().right])
            .filter(e => e[2] > width + 1); }""",
        width,
    )


def test_many_measures_fit_the_paper(visit, tmp_path):
    measures = [f"ndcg@{k}:letor" for k in (1, 2, 3, 4, 5, 10)]
    path = write(tmp_path / "a.html", grid(rates=(0.0, 0.3), measures=measures), baseline="lambdamart")
    page = visit(path).page
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 695, "height": 1000})
    assert too_wide(page, 695) == []


def test_print_is_light_and_fits_the_paper(visit, report):
    seen = visit(report, color_scheme="dark")
    page = seen.page
    page.emulate_media(media="print", color_scheme="dark")
    assert brightness(page) in (0, 255)  # no background at all, or white
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(27, 31, 38)"
    page.set_viewport_size({"width": 695, "height": 1000})  # A4 less its margins, in CSS pixels
    assert too_wide(page, 695) == []
    assert page.pdf(prefer_css_page_size=True).startswith(b"%PDF")


def test_nasty_names_run_no_script(visit, tmp_path):
    records = [
        record(
            dataset=NASTY, noise=noise, rate=rate, method=method, values={"map": [0.1, 0.02 * len(method)]}
        )
        for noise, rate in (("none", 0.0), ("uniform", 0.1))
        for method in (NASTY, "other", "=1+1")
    ]
    seen = visit(write(tmp_path / "a.html", records, title=NASTY, command=NASTY, baseline="other"))
    page = seen.page
    assert seen.quiet(), seen.said
    assert page.locator("img").count() == 0


def test_every_control_can_be_reached_and_named(visit, report):
    page = visit(report).page
    unnamed = page.evaluate(
        """[...document.querySelectorAll("a, summary, [tabindex]")].filter(e =>
          !(e.getAttribute("aria-label") || e.textContent.trim() || e.labels?.length)).length"""
    )
    assert unnamed == 0
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Pictures"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_data_sets_are_compared_where_cells_note_their_noise(visit, tmp_path):
    records = [
        record(
            dataset,
            1,
            "uniform" if rate else "none",
            rate,
            values={"map": [0.8 - rate * factor, 0.8]},
            chosen={"train_dnoise": rate, "train_pnoise": rate * factor, "expected_pnoise": rate}
            if rate
            else {},
        )
        for dataset, factor in (("d1", 1.0), ("d2", 2.0))
        for rate in (0.0, 0.1, 0.2)
    ]
    path = write_report(records, tmp_path / "noted.html", title="t", command="c")
    text = path.read_text()
    for title in ("m, against dNoise", "m, against pNoise", "pNoise under uniform noise"):
        assert title in text
    page = visit(path).page
    figure = page.locator("figure", has_text="m, against pNoise")
    assert figure.locator("svg").count() == 1
    assert figure.locator("g.role-mark.mark-symbol path").count() == 6


def test_the_header_counts_the_grid(tmp_path):
    records = grid(rates=(0.0, 0.3))
    text = write(tmp_path / "a.html", records, title="A <title>", notes=["a note"], published=PUBLISHED)
    text = text.read_text("utf-8")
    assert "<h1>A &lt;title&gt;</h1>" in text
    assert "MQ2008, OHSUMED · 3 methods · 2 noise levels · 5 folds · 3 seeds · 179 of 180 cells done" in text
    assert 'href="#gaps"' in text
    assert 'href="#published"' in text


def test_a_whole_grid_needs_no_notice(tmp_path):
    text = write(tmp_path / "a.html", [record(values={"map": [0.1, 0.2]})]).read_text("utf-8")
    body = text.partition("<main>")[2].partition("</main>")[0]
    for absent in ('class="notice"', 'id="gaps"', 'id="published"'):
        assert absent not in body


def test_verdicts_are_counted_and_figures_without_one_stand_apart(tmp_path, summary):
    text = write_report(grid(), tmp_path / "a.html", title="t", command="c", summary=summary,
                        published=PUBLISHED).read_text("utf-8")  # fmt: skip
    assert "agrees: 1 · differs: 1 · not run: 1." in text
    assert "For orientation" in text
    assert "No published figure for 69 figures of ours" in text


def test_provenance_lists_versions_seeds_and_conventions(tmp_path):
    records = [
        record(seed=0, values={"ndcg@5:letor": [0.1]}),
        record(seed=4, values={"ndcg@5:letor": [0.1]}, versions={"numpy": "2.3.0"}),
    ]
    text = write(tmp_path / "a.html", records).read_text("utf-8").partition("<footer")[2]
    assert "numpy 2.4.0 and 2.3.0" in text
    assert "<dd>0, 4</dd>" in text
    assert "discount 1 at rank 1" in text
    assert "200 resamples" in text


def test_the_policy_allows_the_style_and_no_script(report):
    text = report.read_text("utf-8")
    policy = html.unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', text).group(1))
    style = re.search(r"<style>(.*?)</style>", text, re.S).group(1)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy.startswith(f"default-src 'none'; style-src 'sha256-{digest}';")
    assert "script" not in policy
    assert "unsafe" not in policy


def test_a_page_is_written_whole(tmp_path):
    def page(path, title):
        return write_page(path, Page("base.html", title, {"sections": ()}))

    path = page(tmp_path / "a.html", "first")
    page(path, "sécond")
    assert "<h1>sécond</h1>" in path.read_text("utf-8")
    assert [p.name for p in tmp_path.iterdir()] == ["a.html"]
    with pytest.raises(MissingDataError, match="does not exist"):
        page(tmp_path / "none" / "a.html", "x")
