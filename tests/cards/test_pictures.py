import pytest
from benchmarks.cards.detection import detection_card
from benchmarks.cards.pictures import cost_panels, detection_panel, settings_panel, shares_panel
from benchmarks.cards.recovery import recovery_card

from cleanrank.report.charts import save_picture

from .test_detection import AP
from .test_detection import cells as detected
from .test_recovery import ENDS, MISSED, cells


@pytest.fixture(scope="module")
def card():
    vague = {"clean-trained": 0.501, "noisy-trained": 0.5, "30 rows": 0.51, "m": 0.5}
    return recovery_card(
        cells({**ENDS, "30 rows": 0.57, "m": 0.48}) + cells(vague, spread=0.3, level=MISSED), resamples=100
    )


def test_shares_are_drawn_where_the_card_has_them(card):
    panel = shares_panel(card)
    drawn = {(p.method, p.x): (p.mean, p.low, p.high) for p in panel.points}
    for a in card.averages:
        if a.method != "clean-trained":
            assert drawn[a.method, "mean of settings"] == (a.share.value, a.share.low, a.share.high)
            assert drawn[a.method, "pooled over settings"] == (a.pooled.value, a.pooled.low, a.pooled.high)
    assert panel.methods == ("30 rows", "m")


def test_settings_with_a_clear_loss_show_their_shares(card):
    panel = settings_panel(card)
    assert [p.text for p in panel.points] == [".7", "-.2"]
    assert [p.strength for p in panel.points] == pytest.approx([0.7, 0.2])
    assert panel.xs == ("A, uniform 0.2",)


def test_cost_starts_at_the_baseline(card):
    (panel,) = cost_panels(card, {"corrected": [(0, "noisy-trained"), (30, "30 rows"), (100, "never ran")]})
    assert [(p.x, p.mean) for p in panel.points] == [("0", 0.0), ("30", pytest.approx(0.7))]
    assert panel.xs == ("0", "30", "100")


def test_pictures_give_the_same_bytes(card, tmp_path):
    detected_card = detection_card(detected({"auto": [0.8], "sour": [0.5]}), [AP], resamples=20)
    cost = cost_panels(card, {"corrected": [(0, "noisy-trained"), (30, "30 rows")]})
    for drawn in ([shares_panel(card)], [settings_panel(card)], [detection_panel(detected_card, [AP])], cost):
        for name in ("a.svg", "b.svg"):
            save_picture(drawn, tmp_path / name)
        assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
