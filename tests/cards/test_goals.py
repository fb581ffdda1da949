import pytest
from benchmarks.cards.compared import compared_card
from benchmarks.cards.detection import detection_card
from benchmarks.cards.goals import (
    CONFIDENT,
    DEFAULT,
    HUNDRED,
    MET,
    MISSED,
    NOT_RUN,
    NOTHING,
    THREE,
    WITHIN,
    detection_goals,
    goal,
    goals_table,
    judge_goals,
    judged_detection_goals,
    recovery_goals,
    unharmed_goals,
    worst,
)
from benchmarks.cards.recovery import recovery_card

from cleanrank.report.collapse import Estimate
from cleanrank.report.summaries import Level

from .test_detection import AP
from .test_detection import cells as detected
from .test_recovery import ENDS, UNIFORM, cells
from .test_recovery import MISSED as MISSED_LEVEL


def verdicts(goals):
    return {g.what: g.verdict for g in goals}


@pytest.mark.parametrize(("value", "word"), [(0.6, MET), (0.5, MET), (0.45, WITHIN), (0.35, MISSED)])
def test_a_goal_is_met_by_its_figure_and_missed_beyond_its_interval(value, word):
    assert goal("x", 0.5, Estimate(value, value - 0.1, value + 0.1)).verdict == word
    assert goal("x", 0.5, None).verdict == NOT_RUN


def test_shares_order_of_gold_and_harm():
    calm = {**ENDS, NOTHING: 0.56, HUNDRED: 0.55, THREE: 0.59}
    harmed = {**ENDS, NOTHING: 0.48, HUNDRED: 0.6, THREE: 0.6}
    records = cells(calm, spread=0) + cells(harmed, spread=0, level=MISSED_LEVEL)
    words = verdicts(recovery_goals(recovery_card(records, resamples=50)))
    assert words[f"pooled share of 2 settings, {NOTHING}"] == MISSED  # (.06 - .02) / .2
    assert words[f"pooled share of 2 settings, {HUNDRED}"] == MET  # (.05 + .1) / .2
    assert words[f"pooled share, {THREE} minus {HUNDRED}"] == MET
    assert words[f"share in the worst of 2 settings, {NOTHING}"] == MISSED
    assert words[f"share in the worst of 2 settings, {THREE}"] == MET
    lacking = verdicts(recovery_goals(recovery_card(cells({**ENDS, NOTHING: 0.56}), resamples=50)))
    assert lacking[f"pooled share of 1 settings, {HUNDRED}"] == NOT_RUN
    assert lacking[f"pooled share, {HUNDRED} minus {NOTHING}"] == NOT_RUN


def test_harm_without_noise_is_seen_in_every_set_and_on_average():
    clean = {"level": Level(), "spread": 0}
    ranked = {"noisy-trained": 0.5, NOTHING: 0.51, HUNDRED: 0.496, THREE: 0.4985}
    records = cells(ranked, **clean) + cells({**ranked, NOTHING: 0.496}, dataset="B", **clean)
    goals = unharmed_goals(compared_card(records, level=Level(), resamples=20))
    words = verdicts(goals)
    assert words[f"no noise, gain in NDCG@10 of the worst data set, {NOTHING}"] == MISSED
    assert words[f"no noise, gain in NDCG@10, mean over data sets, {NOTHING}"] == MET
    assert words[f"no noise, gain in NDCG@10 of the worst data set, {THREE}"] == MET
    assert words[f"no noise, gain in NDCG@10, mean over data sets, {THREE}"] == MISSED
    assert next(g for g in goals if g.verdict == MISSED).places == "B"
    assert "0.0100" not in goals_table(goals).markdown()
    assert "-0.0040 [-0.0040, -0.0040]" in goals_table(goals).markdown()


def test_judges_must_be_ahead_and_none_behind():
    judged = {"level": Level("judge", 1.0), "spread": 0}
    records = [
        *cells({"noisy-trained": 0.5, NOTHING: 0.54, THREE: 0.55}, dataset="x a", **judged),
        *cells({"noisy-trained": 0.5, NOTHING: 0.49, THREE: 0.45}, dataset="x b", **judged),
    ]
    words = list(verdicts(judge_goals(compared_card(records, level=judged["level"], resamples=20))).values())
    assert words == [MET, MISSED, MISSED]


def test_detectors():
    card = detection_card(
        detected({DEFAULT: [0.71], "auto (100 rows)": [0.72], CONFIDENT: [0.6], "auto (300 rows)": [0.8]}),
        [AP], reference=DEFAULT, resamples=20,
    )  # fmt: skip
    assert list(verdicts(detection_goals(card, AP)).values()) == [MET, MISSED]
    assert list(verdicts(judged_detection_goals(card, AP)).values()) == [MET, MET]
    assert UNIFORM in {place[1] for place in card.places}


def test_harm_within_the_interval_is_no_miss():
    found = worst("x", -0.05, {"a": Estimate(-0.06, -0.2, 0.08), "b": Estimate(0.2, 0.1, 0.3)})
    assert (found.verdict, found.places) == (MET, "lowest upper end: a")
    assert worst("x", -0.05, {"a": Estimate(-0.2, -0.3, -0.06)}).verdict == MISSED
