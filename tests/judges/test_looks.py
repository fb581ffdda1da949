"""When to stop judging: intervals that hold at all looks together."""

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import InvalidInputError
from cleanrank.judges.looks import level_of
from tests.judges.test_sampling import collection, filled

MEASURE = "dcg@5:gain=exp"


def test_the_levels_of_all_looks_share_one_alpha():
    spent = [1 - level_of(k, 0.9) for k in range(1, 2000)]
    assert spent[0] == pytest.approx(0.05)
    assert 0.0999 < sum(spent) < 0.1


@pytest.mark.parametrize("unit", ["documents", "queries"])
def test_batches_are_added_until_the_interval_is_as_narrow_as_asked(unit):
    truth, judge, runs = collection(n_queries=12)
    step, pool = (25, 130) if unit == "documents" else (3, 12)
    options = {"unit": unit, "measure": MEASURE, "width": 4.0}
    sample = cr.sample_for_evaluation(runs, judge, step, **options)
    assert sample.look is None
    assert not sample.enough
    widths = []
    for batch in range(2, 20):
        gold = filled(sample, truth)
        sample = cr.sample_for_evaluation(runs, judge, min(batch * step, pool), gold=gold, **options)
        widths.append(sample.look.width)
        assert sample.look.number == batch - 1
        assert sample.look.level == level_of(batch - 1, 0.95)
        if sample.enough:
            break
        assert len(sample.new)
        assert "in all may be needed for intervals 4 wide" in sample.notes[-1]
    assert sample.enough
    assert sample.budget == (batch - 1) * step
    assert not len(sample.new)
    assert min(widths[:-1]) > 4 >= widths[-1]
    assert sample.to_json()["look"]["enough"] is True
    assert repr(sample.look).endswith("4 was asked for: enough)")
    # It is the widest of the intervals that evaluate_with_judge gives at this level.
    gold = filled(sample, truth)
    own = cr.evaluate_with_judge(
        runs, judge=judge, gold=gold, measure=MEASURE, level=sample.look.level, design=unit
    )
    assert max(each.high - each.low for each in own.values()) == pytest.approx(widths[-1])


def test_the_look_at_a_difference_is_the_second_system_minus_the_first():
    truth, judge, runs = collection()
    options = {"compare": ("s2", "s0"), "measure": MEASURE, "width": 1e-3}
    gold = filled(cr.sample_for_evaluation(runs, judge, 20, **options), truth)
    look = cr.sample_for_evaluation(runs, judge, 30, gold=gold, **options).look
    assert look.system == "s0 - s2"
    pair = {name: runs[name] for name in ("s2", "s0")}
    own = cr.compare_with_judge(pair, judge=judge, gold=gold, measure=MEASURE, level=0.975)
    assert (look.mean, look.low, look.high) == (own.mean, own.low, own.high)


def test_wrong_widths_are_refused():
    _, judge, runs = collection()
    with pytest.raises(InvalidInputError, match="width must be a number > 0"):
        cr.sample_for_evaluation(runs, judge, width=0)
    with pytest.raises(InvalidInputError, match="level must be a number"):
        cr.sample_for_evaluation(runs, judge, width=1, level=1.5)


@pytest.mark.slow
def test_all_looks_together_hold_the_truth():
    truth, judge, runs = collection(n_queries=15, n_systems=2)
    means = cr.evaluate_with_judge(runs, judge=judge, gold=truth, measure=MEASURE, design="queries")
    held, ends = [], []
    for seed in range(200):
        options = {"measure": MEASURE, "seed": seed, "width": 1e-9}
        sample, looks = cr.sample_for_evaluation(runs, judge, 30, **options), []
        for budget in (60, 90, 120):
            sample = cr.sample_for_evaluation(runs, judge, budget, gold=filled(sample, truth), **options)
            looks.append(sample.look)
        held.append([look.low <= means[look.system].mean <= look.high for look in looks])
        ends.append(looks[-1].width / looks[0].width)
    assert np.all(held, axis=1).mean() >= 0.95 - 2 * np.sqrt(0.95 * 0.05 / 200)
    assert np.mean(ends) < 1
