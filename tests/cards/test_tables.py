from benchmarks.cards.detection import detection_card
from benchmarks.cards.recovery import recovery_card
from benchmarks.cards.tables import (
    NOTHING,
    averages_table,
    detection_by_setting,
    detection_table,
    losses_table,
    pooled_table,
    settings_table,
    shares_table,
)

from .test_detection import AP
from .test_detection import cells as detected
from .test_recovery import ENDS, MISSED, UNIFORM, cells


def lines(table):
    return [[c.strip() for c in line.strip("|\n").split("|")] for line in table.markdown().splitlines()]


def test_tables_hold_the_figures_of_the_card():
    calm = cells({**ENDS, "100 rows": 0.57}, spread=0)
    vague = cells({"clean-trained": 0.501, "noisy-trained": 0.5, "100 rows": 0.51}, spread=0.2, level=MISSED)
    card = recovery_card(calm + vague, resamples=100)
    (average,) = lines(averages_table(card))[2:]
    assert [*average[:2], average[3]] == ["100 rows", "100", "0.70 [0.70, 0.70]"]
    assert average[4] == "0.70 [0.70, 0.70] (A, uniform 0.2)"
    clear, nothing = lines(settings_table(card))[2:]
    assert clear[:4] == ["A", "uniform 0.2", "0.6000", "0.5000"]
    assert (clear[-1], nothing[-1]) == ("", NOTHING)
    table = lines(shares_table(card, UNIFORM))
    assert table[0] == ["method", "A"]
    assert table[2:] == [
        ["noisy-trained", "0.5000"],
        ["clean-trained", "0.6000"],
        ["100 rows", "0.5700, 0.70 [0.70, 0.70]"],
    ]
    assert lines(shares_table(card, MISSED))[-1][-1].endswith(", –")


def test_a_method_that_did_not_run_says_so():
    records = cells({**ENDS, "m": 0.55}) + cells(ENDS, dataset="B")
    card = recovery_card(records, resamples=20)
    assert lines(shares_table(card, UNIFORM))[-1][-1] == "not run"


def test_shares_are_pooled_by_noise_level_or_data_set():
    records = cells({**ENDS, "m": 0.55}, spread=0)  # gains .05 of .1
    records += cells(
        {"clean-trained": 0.8, "noisy-trained": 0.5, "m": 0.77}, spread=0, dataset="B"
    )  # .27 of .3
    records += cells({**ENDS, "other": 0.5}, spread=0, level=MISSED)
    card = recovery_card(records, resamples=20)
    assert lines(pooled_table(card, lambda s: s.level.label))[::2] == [
        ["method", "uniform 0.2", "missed 0.3"],
        ["m", "0.80 [0.80, 0.80]", "not run"],
    ]
    assert lines(pooled_table(card, lambda s: s.dataset))[::2] == [
        ["method", "A", "B"],
        ["m", "0.50 [0.50, 0.50]", "0.90 [0.90, 0.90]"],
    ]
    assert lines(pooled_table(card, lambda s: s.dataset))[-1] == ["other", "0.00 [0.00, 0.00]", "not run"]


def test_detectors_stand_beside_the_lead_of_the_reference():
    card = detection_card(detected({"auto": [0.8], "sour": [0.5]}), [AP], reference="auto", resamples=20)
    head, _, auto, sour = lines(detection_table(card))
    assert head == ["detector", AP, f"auto ahead by ({AP})"]
    assert auto == ["auto", "0.80 [0.80, 0.80]", "–"]
    assert sour[-1] == "0.30 [0.30, 0.30]"
    assert lines(detection_by_setting(card, AP))[-1] == ["A", "uniform 0.2", "0.80", "0.50"]


def test_losses_that_are_clear_stand_out():
    calm = cells({**ENDS, "m": 0.57}, spread=0)
    vague = cells(
        {"clean-trained": 0.501, "noisy-trained": 0.5, "m": 0.5}, spread=0.2, dataset="B", level=MISSED
    )
    _, _, one, two = lines(losses_table(recovery_card(calm + vague, resamples=50)))
    assert one == ["uniform 0.2", "**0.100 [0.100, 0.100]**", "not run"]
    assert two[:2] == ["missed 0.3", "not run"]
    assert not two[2].startswith("**")
