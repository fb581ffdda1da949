import json
import re
import sys
from xml.etree import ElementTree

import pytest

from cleanrank.errors import InvalidInputError, MissingExtraError, UnknownNameError
from cleanrank.report import panels
from cleanrank.report.images import inline_picture, picture, save_picture, write_pictures
from cleanrank.report.summaries import Level, summarise

from .grids import grid, record

FAST = {"resamples": 200, "permutations": 200}


def shown(summary):
    return {
        "curves": panels.curves(summary, "map"),
        "bars": panels.bars(summary, "map", Level("uniform", 0.1)),
        "heat": panels.heat(summary, "map"),
    }


def words(path):
    return [e.text for e in ElementTree.parse(path).iter() if e.tag.endswith("text")]


@pytest.mark.parametrize("form", ["png", "svg"])
@pytest.mark.parametrize("kind", ["curves", "bars", "heat"])
def test_the_same_numbers_give_the_same_bytes(summary, tmp_path, kind, form):
    first = save_picture(shown(summary)[kind], tmp_path / f"a.{form}", baseline="lambdamart").read_bytes()
    again = save_picture(shown(summary)[kind], tmp_path / f"b.{form}", baseline="lambdamart").read_bytes()
    assert first == again
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"a.{form}", f"b.{form}"]
    if form == "svg":
        ElementTree.fromstring(first)
    else:
        assert first.startswith(b"\x89PNG")


def test_the_last_digits_of_a_mean_do_not_show(tmp_path):
    def drawn(name, mean):
        points = (panels.Point("a", 0.0, 0.1), panels.Point("a", 1.0, mean))
        return save_picture(
            [panels.Panel("traces", ("a",), (0.0, 1.0), points)], tmp_path / name
        ).read_bytes()

    assert drawn("a.svg", 1 / 3) == drawn("b.svg", 1 / 3 + 2e-16) != drawn("c.svg", 1 / 3 + 1e-6)


def test_curves_share_one_legend_that_names_the_baseline(summary, tmp_path):
    texts = words(save_picture(shown(summary)["curves"], tmp_path / "a.svg", baseline="lambdamart"))
    assert texts.count("lambdamart (baseline)") == 1
    assert texts.count("sour neg") == 1
    assert {"MQ2008", "OHSUMED", "rate of uniform noise", "map"} <= set(texts)


def test_heat_says_what_is_incomplete_and_what_it_shows(summary, tmp_path):
    texts = words(save_picture(shown(summary)["heat"], tmp_path / "a.svg", baseline="lambdamart"))
    assert texts.count("incomplete") == 2
    assert "MQ2008: difference of map" in texts
    figures = [p.difference for panel in shown(summary)["heat"] for p in panel.points]
    assert sum(f"{abs(d):.3f}" in t for d in figures for t in texts if t) >= len(figures)


def test_files_have_colours_in_the_place_of_variables(summary):
    for panel in shown(summary).values():
        spec = picture(panel, "lambdamart")
        assert "var(" not in spec
        assert "bandwidth" not in spec
        assert "#5f6773" in spec or panel[0].kind == "heat"
        assert all(isinstance(view["width"], int) for view in json.loads(spec)["concat"])


def test_four_panels_are_two_rows_of_two(summary):
    (one, two) = shown(summary)["curves"]
    assert json.loads(picture([one, two, one, two]))["columns"] == 2


def test_curves_over_any_axis_have_every_panel_and_one_legend(tmp_path):
    def panel(axis, methods):
        points = tuple(panels.Point(m, x, 0.5 + x, 0.4 + x, 0.6 + x) for m in methods for x in (0.1, 0.2))
        return panels.Panel("curves", methods, (0.1, 0.2), points, title=f"over {axis}", x_title=axis)

    drawn = [panel("alpha", ("a", "b")), panel("epochs", ("b", "c"))]
    texts = words(save_picture(drawn, tmp_path / "a.svg", baseline="b"))
    assert {"alpha", "epochs", "over alpha", "over epochs"} <= set(texts)
    assert [t for t in texts if t in ("a", "b (baseline)", "c")] == ["a", "b (baseline)", "c"]
    for view in json.loads(picture(drawn, "b"))["concat"]:
        scale = view["layer"][-1]["encoding"]["color"]["scale"]  # the same in every panel
        assert scale == {"domain": ["a", "b", "c"], "range": ["#0072b2", "#5f6773", "#d55e00"]}


def test_what_cannot_be_drawn_is_refused(summary, tmp_path):
    with pytest.raises(UnknownNameError, match="png, svg"):
        save_picture(shown(summary)["curves"], tmp_path / "a.jpeg")
    for nothing in ([], panels.curves(summarise([record(values={"map": [0.1, 0.2]})], **FAST), "map")):
        with pytest.raises(InvalidInputError, match="needs points"):
            save_picture(nothing, tmp_path / "a.svg")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("axis", ["pnoise", "dnoise"])
def test_what_is_kept_is_drawn_at_the_panels_places(noted, axis):
    (panel,) = drawn = panels.kept_panels(noted, "map", axis)
    (view,) = json.loads(picture(drawn))["concat"]
    points = {(r["method"], round(r["x"], 8)): r["mean"] for r in view["data"]["values"]}
    assert points == pytest.approx({(p.method, round(p.x, 8)): p.mean for p in panel.points})
    assert view["title"] == [panel.title]


def test_pnoise_has_lines_of_theory_and_counted_points(noted):
    (view,) = json.loads(picture(panels.pair_noise_panels(noted)))["concat"]
    rows = view["data"]["values"]
    assert [r["line"] for r in rows if "line" in r and r["method"] == "d2"] == pytest.approx([0, 0.21, 0.41])
    assert [r["mean"] for r in rows if "mean" in r and r["method"] == "d2"] == pytest.approx([0, 0.2, 0.4])


def test_every_measure_has_its_pictures_in_both_formats(tmp_path, summary):
    made = write_pictures(summary, tmp_path / "new" / "pictures")
    stems, kinds = ("ndcg-10", "map", "ndcg-5-letor"), ("curves", "bars", "heat")
    assert {p.name for p in made} == {f"{s}-{k}.{e}" for s in stems for k in kinds for e in ("png", "svg")}
    assert {p.name for p in (tmp_path / "new" / "pictures").iterdir()} == {p.name for p in made}
    for path in made:
        if path.suffix == ".png":
            assert path.read_bytes().startswith(b"\x89PNG")
        else:
            assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_without_noise_there_are_bars_alone(tmp_path):
    clean = summarise(grid(rates=(0.0,), measures=("map",)), baseline="lambdamart", **FAST)
    assert sorted(p.name for p in write_pictures(clean, tmp_path)) == ["map-bars.png", "map-bars.svg"]


def test_where_nothing_ran_there_is_no_picture(tmp_path):
    failed = [record(noise="uniform", rate=r, status="failed", error="x") for r in (0.0, 0.2)]
    assert write_pictures(summarise(failed, measures=["map"], **FAST), tmp_path) == []


def test_without_the_package_the_command_is_named(monkeypatch, summary, tmp_path):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(MissingExtraError, match="pip install vl-convert-python"):
        save_picture(shown(summary)["bars"], tmp_path / "a.png")


NASTY = "</text></svg><script>alert(1)</script>"


def test_a_picture_of_a_page_is_markup_that_holds_no_script_and_shares_no_name():
    points = tuple(panels.Point(m, x, 0.5 + x, 0.4, 0.6) for m in (NASTY, "b") for x in (0.1, 0.2))
    panel = panels.Panel("traces", (NASTY, "b"), (0.1, 0.2), points, title="t")
    one, other = (inline_picture(panel, name) for name in ("one", "other"))
    drawings = [*one["drawn"], *other["drawn"]]
    for drawing in drawings:
        root = ElementTree.fromstring(drawing)
        assert {e.tag.rpartition("}")[2] for e in root.iter()} <= {
            "svg", "g", "path", "text", "tspan", "line", "rect", "defs", "clipPath"
        }  # fmt: skip
        assert NASTY in [e.text for e in root.iter()]
        assert "var(--c1)" in drawing
        assert "aria-" not in drawing
    ids = re.findall(r' id="([^"]+)"', "".join(drawings))
    assert len(ids) == len(set(ids)) >= 4
    assert [ElementTree.fromstring(d).get("width") for d in one["drawn"]] == ["540", "350"]
