import pytest

from cleanrank.report.detected import detection_card
from cleanrank.report.plots import save_figure
from cleanrank.report.recovery import recovery_card
from cleanrank.report.recovery_plots import plot_cost, plot_detection, plot_settings, plot_shares

from .test_detected import AP
from .test_detected import cells as detected
from .test_recovery import ENDS, MISSED, cells

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def card():
    vague = {"clean-trained": 0.501, "noisy-trained": 0.5, "30 rows": 0.51, "m": 0.5}
    return recovery_card(
        cells({**ENDS, "30 rows": 0.57, "m": 0.48}) + cells(vague, spread=0.3, level=MISSED), resamples=100
    )


def points(axes):
    """The marked points of an axes, by line."""
    return [line.get_xydata().tolist() for line in axes.lines if line.get_marker() not in ("None", "", None)]


def test_shares_are_drawn_where_the_card_has_them(card):
    axes = plot_shares(card).axes[0]
    drawn = [y for line in points(axes) for y, _ in line]
    shares = [a.share.value for a in card.averages if a.method != "clean-trained"]
    assert drawn[:2] == pytest.approx(shares)
    assert [t.get_text() for t in axes.get_yticklabels()] == ["30 rows", "m"]


def test_settings_with_a_clear_loss_show_their_shares(card):
    axes = plot_settings(card).axes[0]
    assert [t.get_text() for t in axes.texts] == [".7", "-.2"]
    assert [t.get_text() for t in axes.get_xticklabels()] == ["A, uniform 0.2"]


def test_cost_starts_at_the_baseline(card):
    figure = plot_cost(card, {"corrected": [(0, "noisy-trained"), (30, "30 rows"), (100, "never ran")]})
    (axes,) = figure.axes
    ((line),) = points(axes)
    assert line[0][1] == 0
    assert line[1][1] == pytest.approx(0.7)
    assert len(line) == 2
    assert [t.get_text() for t in axes.get_xticklabels()] == ["0", "30", "100"]


def test_pictures_give_the_same_bytes(card, tmp_path):
    found = detection_card(detected({"auto": [0.8], "sour": [0.5]}), [AP], resamples=20)
    for draw in (lambda: plot_shares(card), lambda: plot_settings(card), lambda: plot_detection(found, [AP])):
        for name in ("a.svg", "b.svg"):
            save_figure(draw(), tmp_path / name)
        assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
