import pytest

from cleanrank.planning import plan_labels
from cleanrank.planning.plan import REASONS


@pytest.fixture(scope="module")
def found():
    return plan_labels(5000, cost=0.1)


def test_every_reason_is_heard(found):
    heard = {r.topic for r in (*found.reasons, *plan_labels(5000, cost=0.1, prevalence=0.05).reasons)}
    assert heard == set(REASONS)


FORMS = {
    "bought": {"queries": ",.0f", "query_cost": ",.2f", "pnoise": ".1%", "signal_left": ".0%"},
    "sampling": {"screened": ",.0f", "documents": ".0f", "pnoise": ".3f", "rival_pnoise": ".3f"},
    "repeats": {"pnoise": ".3f", "rival_pnoise": ".3f", "query_cost": ",.2f", "rival_query_cost": ",.2f"},
    "pairs": {"judgements": ",.0f", "pnoise": ".3f", "floor": ".3f", "excess": ".3f"},
}


@pytest.mark.parametrize("topic", FORMS)
def test_the_words_hold_the_figures(found, topic):
    (reason,) = [r for r in found.reasons if r.topic == topic]
    for name, form in FORMS[topic].items():
        assert format(reason.figures[name], form) in reason.text


def test_figures_are_those_of_the_options(found):
    reasons = {r.topic: r.figures for r in found.reasons}
    assert reasons["grades"] == {
        f"effective_pairs of {g} grades": found[f"{g} grades, natural, judged once"].effective_pairs
        for g in (3, 2, 5)
    }
    assert reasons["repeats"]["rival_pnoise"] == found["3 grades, natural, median of 3"].pnoise
    best = found["top 10 by pairs, judged once"]
    assert reasons["pairs"]["floor"] + reasons["pairs"]["excess"] == pytest.approx(best.pnoise)


def test_caveats_say_what_is_assumed(found):
    assert any("independent" in c for c in found.caveats)
    assert any("every step" in c for c in found.caveats)
    assert not any("every step" in c for c in plan_labels(50, error={2: 0.1, 3: 0.1, 5: 0.1}).caveats)
    assert not any("Repeated" in c for c in plan_labels(50, shared=0.5).caveats)


def test_pairs_as_the_best_way_are_not_compared_with_themselves():
    found = plan_labels(5000, cost=0.1, pair_cost=0.001)
    assert found.recommended.startswith("top 10")
    assert {"grades", "sampling", "pairs"}.isdisjoint(r.topic for r in found.reasons)
