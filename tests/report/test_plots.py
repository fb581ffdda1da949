import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from cleanrank.errors import InvalidInputError, MissingExtraError, UnknownNameError
from cleanrank.report import panels, plots, traces
from cleanrank.report.grid import Level
from cleanrank.report.summaries import summarise

from .grids import record

FAST = {"resamples": 200, "permutations": 500}
pytest.importorskip("matplotlib")


def test_curves_draw_the_panels_numbers(summary):
    figure = plots.plot_curves(summary, "map")
    ax = figure.axes[0]
    lines = [line for line in ax.lines if len(line.get_xdata()) == 4]
    panel = panels.curves(summary, "map")[0]
    for line, method in zip(lines, summary.methods, strict=True):
        np.testing.assert_allclose(line.get_ydata(), [p.mean for p in panel.points if p.method == method])
    assert len(ax.collections) == 3  # a band each
    hollow = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    assert [line.get_xdata()[0] for line in hollow] == [0.3]


def test_a_line_stops_where_nothing_ran():
    records = [
        record(noise="u" if r else "none", rate=r, values={"map": [0.5, 0.6]}) for r in (0.0, 0.1, 0.3, 0.4)
    ]
    records.append(record(noise="u", rate=0.2, status="failed", error="x"))
    ax = plots.plot_curves(summarise(records, **FAST), "map").axes[0]
    assert [len(line.get_xdata()) for line in ax.lines if line.get_marker() in ("None", "")] == [2, 2]


def test_bars_start_at_zero_and_reach_the_mean(summary):
    ax = plots.plot_bars(summary, "map", Level("uniform", 0.1)).axes[1]
    panel = panels.bars(summary, "map", Level("uniform", 0.1))[1]
    assert [(b.get_x(), b.get_width()) for b in ax.patches] == [(0, p.mean) for p in panel.points]


def test_heat_says_what_is_incomplete(summary):
    words = [t.get_text() for t in plots.plot_heat(summary, "map").axes[0].texts]
    assert words.count("incomplete") == 1
    assert len(words) == 8


@pytest.mark.parametrize("kind", ["png", "svg"])
@pytest.mark.parametrize("name", sorted(plots.PICTURES))
def test_the_same_numbers_give_the_same_bytes(summary, tmp_path, name, kind):
    first = plots.save_figure(plots.PICTURES[name](summary, "map"), tmp_path / f"a.{kind}").read_bytes()
    again = plots.save_figure(plots.PICTURES[name](summary, "map"), tmp_path / f"b.{kind}").read_bytes()
    assert first == again
    assert sorted(p.name for p in tmp_path.iterdir()) == [f"a.{kind}", f"b.{kind}"]
    if kind == "svg":
        ET.fromstring(first)
    else:
        assert first.startswith(b"\x89PNG")


def test_no_global_state_of_pyplot_is_touched(summary, tmp_path):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    plots.save_figure(plots.plot_curves(summary, "map"), tmp_path / "a.png")
    assert dict(mpl.rcParams) == before


def test_without_the_package_the_command_is_named(summary, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match="pip install matplotlib"):
        plots.plot_curves(summary, "map")


def test_what_cannot_be_drawn_is_refused(summary, tmp_path):
    with pytest.raises(UnknownNameError, match="png, svg"):
        plots.save_figure(plots.plot_curves(summary, "map"), tmp_path / "a.jpeg")
    with pytest.raises(UnknownNameError, match="map"):
        plots.plot_curves(summary, "mapp")
    clean = summarise([record(values={"map": [0.1, 0.2]})], **FAST)
    with pytest.raises(InvalidInputError, match="two noise levels"):
        plots.plot_curves(clean, "map")
    assert plots.plot_bars(clean, "map").axes


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


@pytest.mark.parametrize("axis", ["pnoise", "dnoise"])
def test_what_is_kept_is_drawn_at_the_panels_places(noted, axis):
    figure = plots.plot_kept(noted, "map", axis)
    (panel,) = traces.kept_panels(noted, "map", axis)
    (ax,) = figure.axes
    assert (ax.get_title(loc="left"), ax.get_xlabel()) == (panel.title, panel.x_title)
    for series in panel.methods:
        expected = [(p.x, p.mean) for p in panel.points if p.method == series]
        assert any(np.allclose(line.get_xydata(), expected) for line in ax.lines)
    names = [t.get_text() for t in figure.legends[0].get_texts()]
    assert names == ["d1", "d2"]


def test_pnoise_has_lines_of_theory_and_counted_points(noted):
    figure = plots.plot_pair_noise(noted)
    (ax,) = figure.axes
    lines = [line for line in ax.lines if line.get_linestyle() != "None"]
    dots = [line for line in ax.lines if line.get_linestyle() == "None"]
    assert lines[1].get_ydata() == pytest.approx([0, 0.21, 0.41])
    assert dots[1].get_ydata() == pytest.approx([0, 0.2, 0.4])
    assert [t.get_text() for t in figure.legends[0].get_texts()] == ["d1", "d2", "counted", "closed form"]


def test_traces_need_noise(tmp_path):
    records = [record(values={"map": [0.5, 0.6]})]
    with pytest.raises(InvalidInputError, match="needs a noisy level"):
        plots.plot_kept(summarise(records, resamples=50, permutations=50), "map")


def test_curves_over_any_axis_have_every_panel_and_one_legend():
    from cleanrank.report.panels import Panel, Point
    from cleanrank.report.plots import draw_curves

    def panel(axis, methods):
        points = tuple(Point(m, x, 0.5 + x, 0.4 + x, 0.6 + x, True, "") for m in methods for x in (0.1, 0.2))
        return Panel("curves", "data", "ndcg@10", f"over {axis}", axis, methods, (0.1, 0.2), points)

    figure = draw_curves([panel("alpha", ("a", "b")), panel("epochs", ("b", "c"))], baseline="b")
    assert [ax.get_xlabel() for ax in figure.axes] == ["alpha", "epochs"]
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "c"]


def test_curves_without_points_are_refused():
    from cleanrank.errors import CleanrankError
    from cleanrank.report.plots import draw_curves

    with pytest.raises(CleanrankError, match="points"):
        draw_curves([])
