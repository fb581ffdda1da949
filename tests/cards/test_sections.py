from dataclasses import replace

import pytest
from benchmarks.cards.goals import HUNDRED, NOTHING, THREE
from benchmarks.cards.pictures import gains_panel
from benchmarks.cards.sections import AS_JUDGED, CLEAN, JUDGED, NIST, OLD_CEILING, make_cards, sections_of

from cleanrank.experiments.driver import Reproduction, Tally
from cleanrank.report.images import save_picture

from .test_recovery import ENDS, cells

ROBUST = {NOTHING: 0.56, HUNDRED: 0.57, THREE: 0.58}


def run(records):
    numbered = tuple(replace(r, key=f"{i}") for i, r in enumerate(records))
    return Reproduction(None, numbered, numbered, Tally(len(records)))


def exact(means, dataset, level):
    return cells(means, dataset=dataset, level=level, spread=0)


@pytest.fixture(scope="module")
def cards():
    clean = {"noisy-trained": 0.6, "clean-trained": 0.6, OLD_CEILING: 0.6, **ROBUST}
    card = cells({**ENDS, OLD_CEILING: 0.58, **ROBUST}, spread=0) + cells(clean, level=CLEAN, spread=0)
    judged = {"noisy-trained": 0.5, NOTHING: 0.52, THREE: 0.53}
    judges = [r for d in ("dl19 a", "dl19 b", "dl20 a") for r in exact(judged, d, JUDGED)]
    nist = [r for d in ("dl19", "dl20") for r in exact({"noisy-trained": 0.55}, d, CLEAN)]
    return make_cards({"card": run(card), "judges": run(judges), "nist": run(nist)})


def test_shares_are_of_the_true_ceiling_with_the_old_one_beside(cards):
    averages = {a.method: a.pooled.value for a in cards.card.averages}
    assert averages[NOTHING] == pytest.approx(0.6)
    assert averages[OLD_CEILING] == pytest.approx(0.8)
    assert {a.method: a.pooled.value for a in cards.old.averages}[NOTHING] == pytest.approx(0.75)
    text = "\n".join(sections_of(cards))
    assert f"pooled share of {OLD_CEILING}" in text
    assert f"| {NOTHING} | 0 | 0.60 [0.60, 0.60] | 0.75 [0.75, 0.75] |" in text


def test_no_noise_has_a_table_of_its_own_and_does_not_count_as_a_setting(cards):
    assert {s.level.label for s in cards.card.settings} == {"uniform 0.2"}
    assert cards.unharmed.gains["A", NOTHING].value == pytest.approx(-0.04)


def test_nists_labels_stand_beside_every_judge_of_their_collection(cards):
    gains = {d: cards.judges.gains[d, NIST].value for d in cards.judges.datasets}
    assert gains == pytest.approx({"dl19 a": 0.05, "dl19 b": 0.05, "dl20 a": 0.05})
    text = "\n".join(sections_of(cards))
    assert f"| judge | {AS_JUDGED} |" in text
    assert "* judges: 27 of 27 cells" in text


def test_goals_cover_every_part(cards):
    words = [g.what for g in cards.goals]
    assert sum(w.startswith("pooled share") for w in words) == 5
    assert sum(w.startswith("no noise") for w in words) == 6
    assert sum(w.startswith("3 judges") for w in words) == 3


def test_gains_are_drawn_with_their_mean(cards, tmp_path):
    panel = gains_panel(cards.judges, (NOTHING, THREE), AS_JUDGED, "dl19")
    assert panel.methods == ("a", "b", "mean")
    assert [p.mean for p in panel.points if p.x == NOTHING] == pytest.approx([0.02] * 3)
    assert save_picture([panel], tmp_path / "a.svg").stat().st_size > 1000
