import json
import re

import pytest

from cleanrank.report import charts, panels
from cleanrank.report.summaries import Level, summarise

from .grids import record

FAST = {"resamples": 200, "permutations": 500}
vl_convert = pytest.importorskip("vl_convert")


@pytest.fixture(scope="module")
def drawn(summary):
    found = {
        "curves": panels.curves(summary, "ndcg@10")[0],
        "bars": panels.bars(summary, "ndcg@10", Level("uniform", 0.3))[0],
        "heat": panels.heat(summary, "ndcg@10")[0],
    }
    return summary, found


@pytest.mark.parametrize("kind", ["curves", "bars", "heat"])
def test_vega_lite_draws_the_description(drawn, kind):
    """The reference compiler takes it and draws every number that is shown as text, and none for a gap."""
    summary, found = drawn
    panel = found[kind]
    spec = charts.specification(panel, summary.baseline, methods=summary.methods, width=400)
    svg = vl_convert.vegalite_to_svg(json.dumps(spec))
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    if kind == "curves":
        assert len(re.findall(r'aria-roledescription="line mark"', svg)) == 3
    else:
        assert {row["shown"] for row in charts.data(panel)} <= set(texts)


def test_data_keep_numbers_and_mark_gaps(drawn):
    _, found = drawn
    rows = charts.data(found["heat"])
    gaps = [r for r in rows if r.get("gap")]
    assert [(g["method"], g["x"], g["mean"], g["shown"]) for g in gaps] == [
        ("peer α=auto", "0.3", None, "incomplete")
    ]
    assert len(rows) == 8


def test_negative_differences_have_a_real_minus(drawn):
    _, found = drawn
    shown = [r["shown"] for r in charts.data(found["heat"]) if (r.get("difference") or 0) < 0]
    assert shown
    assert all(s.startswith("−") for s in shown)


def test_vega_lite_draws_traces_with_a_legend_of_data_sets(noted):
    import vl_convert

    (kept,) = panels.kept_panels(noted, "map")
    (pair,) = panels.pair_noise_panels(noted)
    for panel, lines in ((kept, 0), (pair, 6)):
        spec = charts.specification(panel, width=300)
        assert sum("line" in row for row in spec["data"]["values"]) == lines
        svg = vl_convert.vegalite_to_svg(json.dumps(spec))
        assert svg.count('aria-roledescription="point"') == 6
        for name in ("d1", "d2"):
            assert f">{name}</text>" in svg


def drawn_by_vega(panel, width=300, **options):
    return vl_convert.vegalite_to_svg(json.dumps(charts.specification(panel, width=width, **options)))


def test_curves_have_a_band_a_line_and_hollow_points(summary):
    panel = panels.curves(summary, "map")[0]
    layers = charts.specification(panel, width=300)["layer"]
    assert [layer["mark"]["type"] for layer in layers] == ["area", "line", "point"]
    hollow = layers[2]["encoding"]["fill"]["condition"]
    assert hollow == {"test": "!datum.complete", "value": "var(--paper)"}
    rows = charts.data(panel)
    assert [r["x"] for r in rows if not r["complete"]] == [0.3]
    assert drawn_by_vega(panel).count('aria-roledescription="point"') == 12


def test_a_line_stops_where_nothing_ran():
    records = [
        record(noise="u" if r else "none", rate=r, values={"map": [0.5, 0.6]}) for r in (0.0, 0.1, 0.3, 0.4)
    ]
    records.append(record(noise="u", rate=0.2, status="failed", error="x"))
    (panel,) = panels.curves(summarise(records, **FAST), "map")
    (path,) = re.findall(r'aria-roledescription="line mark"[^>]* d="([^"]*)"', drawn_by_vega(panel))
    assert path.count("M") == 2


def test_bars_start_at_zero(summary):
    panel = panels.bars(summary, "map", Level("uniform", 0.1))[1]
    assert charts.specification(panel, width=300)["layer"][0]["encoding"]["x"]["scale"] == {"zero": True}
    assert [r["mean"] for r in charts.data(panel)] == [p.mean for p in panel.points]


def test_rules_and_their_names_are_drawn_beside_the_lines():
    points = tuple(panels.Point("a", x, x) for x in (0.1, 0.2))
    panel = panels.Panel("traces", ("a",), (0.1, 0.2), points, rules=((0.15, "here"),))
    svg = drawn_by_vega(panel)
    assert ">here</text>" in svg
    assert "mark-rule" in svg


def test_places_that_are_words_stand_at_equal_steps():
    points = tuple(panels.Point("a", x, 0.5) for x in ("0", "30", "1,000"))
    svg = drawn_by_vega(panels.Panel("traces", ("a",), ("0", "30", "1,000"), points))
    assert re.findall(r">(0|30|1,000)</text>", svg) == ["0", "30", "1,000"]


def test_parts_of_dots_stand_above_one_another_with_a_legend():
    points = tuple(panels.Point(m, x, 0.5, 0.4, 0.6) for m in "ab" for x in ("one", "two"))
    svg = drawn_by_vega(panels.Panel("dots", ("a", "b"), ("one", "two"), points, colours=(1, 0)))
    assert svg.count('aria-roledescription="point"') == 4
    assert "mark-rule" in svg
    assert ">two</text>" in svg


def test_parts_of_bars_are_stacked():
    points = tuple(panels.Point("a", x, v) for x, v in (("floor", 0.1), ("errors", 0.2)))
    panel = panels.Panel("bars", ("a",), ("floor", "errors"), points, colours=(0, 2))
    svg = drawn_by_vega(panel)
    assert svg.count('aria-roledescription="bar"') == 2
    assert ">errors</text>" in svg


@pytest.mark.parametrize("kind", ["curves", "bars", "heat"])
def test_every_colour_is_a_variable_of_the_style(drawn, kind):
    from cleanrank.report.images import colours

    summary, found = drawn
    text = json.dumps(charts.specification(found[kind], summary.baseline, width=300)["layer"])
    names = set(re.findall(r"var\(--([\w-]+)\)", text))
    assert names
    assert names <= set(colours())
    assert "#" not in text


def test_names_of_rows_and_legends_are_broken_to_fit():
    names = ("3 grades, balanced, judged once", "short")
    panel = panels.Panel("bars", names, ("",), tuple(panels.Point(m, "", 0.5) for m in names))
    texts = {w: re.findall(r">([^<>]+)</t", drawn_by_vega(panel, width=w)) for w in (300, 900)}
    assert names[0] in texts[900]
    assert names[0] not in texts[300]
    assert {"3 grades,", "short"} <= set(texts[300])
    assert not any("…" in t for t in texts[300])
