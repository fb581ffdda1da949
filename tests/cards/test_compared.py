import numpy as np
import pytest
from benchmarks.cards.compared import compared_card

from cleanrank.errors import CleanrankError
from cleanrank.report.summaries import Level

from .test_recovery import UNIFORM, cells

JUDGED = Level("judge", 1.0)
BASE = {"noisy-trained": 0.5}


def judge(name, gain, rng=1, spread=0.05):
    return cells(
        {**BASE, "m": 0.5 + gain},
        dataset=name,
        level=JUDGED,
        folds=(1, 2),
        seeds=(1,),
        rng=rng,
        spread=spread,
    )


def first_word(name):
    return name.partition(" ")[0]


def test_gains_are_means_of_paired_differences_and_a_mean_counts_each_set_once():
    records = judge("x a", 0.1) + judge("x b", 0.0) + judge("y a", -0.04)
    card = compared_card(records, level=JUDGED, group=first_word, resamples=200)
    assert card.methods == ("m",)
    assert card.means["x a", "noisy-trained"] == pytest.approx(0.5)
    assert [card.gains[d, "m"].value for d in card.datasets] == pytest.approx([0.1, 0.0, -0.04])
    assert card.average("m").value == pytest.approx(0.02)
    assert card.average("m", group="x").value == pytest.approx(0.05)
    assert card.average("noisy-trained", "m").value == pytest.approx(-0.02)
    assert card.queries["x a"] == 80
    assert card.average("never ran") is None


def test_judges_of_one_collection_share_queries_and_others_do_not():
    """Ten judges with the same differences: where queries are shared their mean is as uncertain as one."""
    same = [r for n in range(10) for r in judge(f"x {n}", 0.0, rng=1)]
    apart = [r for n in range(10) for r in judge(f"{n} x", 0.0, rng=1)]
    widths = []
    for records in (same, apart):
        card = compared_card(records, level=JUDGED, group=first_word, resamples=500)
        each = next(iter(card.gains.values()))
        average = card.average("m")
        widths.append((average.high - average.low) / (each.high - each.low))
    assert widths[0] == pytest.approx(1, abs=0.02)
    assert widths[1] == pytest.approx(np.sqrt(0.1), abs=0.08)


def test_who_is_clearly_behind_is_named_and_other_levels_do_not_count():
    records = (
        judge("x a", -0.2) + judge("x b", 0.001) + cells({**BASE, "m": 0.9}, dataset="x a", level=UNIFORM)
    )
    card = compared_card(records, level=JUDGED, group=first_word, resamples=200)
    assert card.behind("m") == ["x a"]
    assert card.behind("m", -0.5) == []


def test_a_gap_is_named_and_without_cells_there_is_no_card():
    records = judge("x a", 0.1)
    card = compared_card(records[:-1], level=JUDGED, resamples=20)
    assert card.missing == ("x a, judge 1, m: 1 of 2 cells",)
    assert card.gains == {}
    with pytest.raises(CleanrankError, match=r"must hold cells of uniform 0\.2 with ndcg@10"):
        compared_card(records, level=UNIFORM)
