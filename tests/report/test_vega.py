import json
import re
import sys

import pytest

from cleanrank.errors import MissingExtraError
from cleanrank.report import panels, traces, vega
from cleanrank.report.grid import Level
from cleanrank.report.palette import looks
from cleanrank.report.summaries import summarise

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
    spec = vega.description(panel, looks(summary.methods, summary.baseline)) | {"width": 400}
    spec["data"] = {"values": vega.data(panel)}
    svg = vl_convert.vegalite_to_svg(json.dumps(spec))
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", svg)
    if kind == "curves":
        assert len(re.findall(r'aria-roledescription="line mark"', svg)) == 3
    else:
        assert {row["shown"] for row in vega.data(panel)} <= set(texts)


def test_data_keep_numbers_and_mark_gaps(drawn):
    _, found = drawn
    rows = vega.data(found["heat"])
    gaps = [r for r in rows if r.get("gap")]
    assert [(g["method"], g["x"], g["mean"], g["shown"]) for g in gaps] == [
        ("peer α=auto", "0.3", None, "incomplete")
    ]
    assert len(rows) == 8


def test_negative_differences_have_a_real_minus(drawn):
    _, found = drawn
    shown = [r["shown"] for r in vega.data(found["heat"]) if (r.get("difference") or 0) < 0]
    assert shown
    assert all(s.startswith("−") for s in shown)


def test_without_the_package_the_command_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingExtraError, match="pip install vl-convert-python"):
        vega.library.__wrapped__()


def test_the_library_carries_its_licence_and_cannot_end_its_element():
    code = vega.library()
    assert "Redistribution and use in source and binary forms" in code
    assert "</script" not in code.lower()
    assert code == vega.library()
    assert 5e5 < len(code) < 1.2e6


@pytest.fixture
def noted():
    """Two data sets whose cells note the noise of their training labels."""
    made = []
    for dataset, factor in (("d1", 1.0), ("d2", 2.0)):
        for rate in (0.0, 0.1, 0.2):
            chosen = {
                "train_dnoise": rate,
                "train_pnoise": rate * factor,
                "expected_pnoise": rate * factor + 0.01,
            }
            values = {"map": [0.8 - rate * factor, 0.8]}
            noise = "uniform" if rate else "none"
            made.append(record(dataset, 1, noise, rate, values=values, chosen=chosen if rate else {}))
    return summarise(made, resamples=50, permutations=50)


def test_vega_lite_draws_traces_with_a_legend_of_data_sets(noted):
    import vl_convert

    (kept,) = traces.kept_panels(noted, "map")
    (pair,) = traces.pair_noise_panels(noted)
    for panel, lines in ((kept, 0), (pair, 6)):
        spec = vega.description(panel, looks(panel.methods))
        rows = vega.data(panel)
        assert sum("line" in row for row in rows) == lines
        spec = {**spec, "width": 300, "data": {"values": rows}}
        svg = vl_convert.vegalite_to_svg(json.dumps(spec))
        assert svg.count('aria-roledescription="point"') == 6
        for name in ("d1", "d2"):
            assert f">{name}</text>" in svg
