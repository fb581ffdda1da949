import json
from dataclasses import replace

import numpy as np
import pytest

from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.planning import Plan, plan_labels
from cleanrank.planning.candidates import options_of
from cleanrank.planning.plan import choose


@pytest.fixture(scope="module")
def found():
    return plan_labels(5000, cost=0.1)


def test_the_recommendation_has_most_effective_pairs(found):
    best = found[found.recommended]
    assert best.effective_pairs == max(o.effective_pairs for o in found.options if not o.problem)
    assert best is choose(found.options)
    assert best.query_cost * best.queries <= 5000 + 1e-6


def test_bad_pairs_in_great_numbers_are_not_trusted():
    """A way beyond the turning point is passed over for one before it, whatever its effective pairs."""
    first, second, *_ = options_of(plan_labels(5000).order)
    assert choose([first, second]) is first
    beyond = replace(first, pnoise=0.41)
    assert choose([beyond, second]) is second
    assert choose([beyond, replace(second, problem="too dear")]) is beyond
    assert choose([]) is None
    hopeless = plan_labels(5000, prevalence=0.01, error=0.45, repeats=(1,), top_k=None)
    assert hopeless.recommended
    assert hopeless.reasons[0].kind == "act"
    assert "better judges" in hopeless.reasons[0].text


def test_rare_relevance_calls_for_repeated_judging(found):
    assert found[found.recommended].repeats == 1
    rare = plan_labels(5000, cost=0.1, prevalence=0.05)
    assert rare[rare.recommended].repeats > 1


def test_cheap_comparisons_make_pairs_win(found):
    pairs = next(r for r in found.reasons if r.topic == "pairs")
    price = pairs.figures["break_even_pair_cost"]
    assert plan_labels(5000, cost=0.1, pair_cost=0.97 * price).recommended.startswith("top 10")
    assert not plan_labels(5000, cost=0.1, pair_cost=1.03 * price).recommended.startswith("top 10")


def test_a_good_screener_makes_balance_win():
    assert "balanced" in plan_labels(5000, cost=0.1, prevalence=0.1, screen_cost=0.005).recommended
    assert "natural" in plan_labels(5000, cost=0.1, prevalence=0.1).recommended


def test_changes_name_what_would_be_taken(found):
    for change in (*found.changes, *found.by_error):
        assert change.changed == (change.recommended != found.recommended)
    assert any(c.changed for c in found.changes)
    here = next(c for c in found.by_error if c.what == "0.1")
    assert here.recommended == found.recommended
    assert here.effective_pairs == found[found.recommended].effective_pairs
    known = plan_labels(5000, error={2: 0.1, 3: 0.15, 5: 0.25})
    assert known.by_error == ()


def test_errors_by_scale_are_used(found):
    known = plan_labels(5000, cost=0.1, error={2: 0.3, 3: 0.02, 5: 0.3})
    assert known[known.recommended].grades == 3
    assert known["2 grades, natural, judged once"].error_rate == pytest.approx(0.3)
    assert known.order.pair_error == 0.3
    matrix = [[0.8, 0.2], [0.1, 0.9]]
    assert plan_labels(50, error={2: matrix}, scales=(2,)).order.pair_error == pytest.approx(0.15)


def test_prevalence_and_proportions_describe_the_truth(found):
    assert plan_labels(50, prevalence=0.2).order.proportions == pytest.approx(
        (0.8, *(0.2 * p / 0.483 for p in (0.325, 0.133, 0.017, 0.008)))
    )
    three = plan_labels(50, proportions=(70, 16, 14))
    assert three.order.scales == (2, 3)
    assert three.order.proportions == pytest.approx((0.7, 0.16, 0.14))


def test_nothing_to_be_had():
    poor = plan_labels(1, cost=1)
    assert poor.recommended == ""
    assert "cheapest" in poor.reasons[0].text
    assert poor.changes == ()
    assert "Nothing to recommend" in repr(poor)


def test_json_holds_everything():
    found = plan_labels(500, error={2: [[0.9, 0.1], [0.2, 0.8]], 3: 0.2, 5: 0.3})
    plainly = json.loads(found.to_json())
    assert set(plainly) == set(Plan.__dataclass_fields__)
    assert plainly["order"]["error"]["2"] == [[0.9, 0.1], [0.2, 0.8]]
    assert plainly["recommended"] == found.recommended


def test_the_same_seed_gives_the_same_plan(found):
    assert plan_labels(5000, cost=0.1) == found
    other = plan_labels(5000, cost=0.1, seed=1)
    assert other.recommended == found.recommended
    assert other != found


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"budget": 0}, "budget must be a number > 0"),
        ({"cost": -1}, "cost must be a number > 0"),
        ({"documents": 1}, "documents must be a number >= 2"),
        ({"error": 0.7}, "error must lie in"),
        ({"error": {3: 0.1}}, "pair_error must be given"),
        ({"scales": (1,)}, "scales must lie between 2"),
        ({"repeats": (2,)}, "odd number"),
        ({"prevalence": 0.0}, "prevalence must lie between"),
        ({"prevalence": 0.1, "proportions": (1, 1)}, "either `proportions` or `prevalence`, not both"),
        ({"proportions": (1, 0)}, "at least two grades"),
        ({"shared": 2}, "shared must be a number >= 0 and <= 1"),
        ({"screen_cost": -1}, "screen_cost must be a number >= 0"),
    ],
)
def test_bad_arguments_are_refused(options, words):
    with pytest.raises(InvalidInputError, match=words):
        plan_labels(**{"budget": 100, **options})


def test_unknown_options_name_the_closest(found):
    with pytest.raises(UnknownNameError, match="Did you mean '2 grades, natural, judged once'"):
        found["2 grades, natural, judged onc"]
    assert np.isfinite(found["2 grades, natural, judged once"].pnoise)
