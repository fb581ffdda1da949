import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.metrics.measure import as_measures
from cleanrank.metrics.selection import CRITERIA, means_of
from cleanrank.noise.profiles import uniform


@pytest.fixture(scope="module")
def data():
    return cr.make_ranking(80, 4, seed=3)


@pytest.fixture(scope="module")
def systems(data):
    rng = np.random.default_rng(0)
    return {f"sd {sd}": data.y + sd * rng.normal(size=len(data)) for sd in (6.0, 1.0, 3.0)}


def test_values_are_those_of_evaluate(data, systems):
    found = cr.select_model(systems, data)
    for criterion in CRITERIA:
        means = [cr.evaluate(s, data, criterion).means[criterion] for s in systems.values()]
        np.testing.assert_allclose(found.values[criterion], means)
    assert found.criterion == "auc:micro"
    assert found.winner == "sd 1.0"
    assert found.agreement is None
    assert found.systems == tuple(systems)


def test_a_criterion_of_ones_own_decides(data):
    """One system is best at the top, the other over the whole list."""
    top, whole = data.y.astype(float), data.y + 0.0
    ranked = np.lexsort((-data.y, data.qid))
    starts = data.indptr[:-1]
    top[ranked[starts]] += 100
    whole[ranked[starts]] -= 0.0
    rng = np.random.default_rng(1)
    top = np.where(top > 50, top, rng.normal(size=len(data)))
    whole[ranked[starts]] = data.y[ranked[starts]] - 1.5
    found = {c: cr.select_model({"top": top, "whole": whole}, data, c).winner for c in ("dcg@1", "auc:micro")}
    assert found == {"dcg@1": "top", "auc:micro": "whole"}


def test_noise_again_counts_how_often_the_target_is_met(data, systems):
    given = cr.corrupt(data, rate=0.3, seed=1).data
    found = cr.select_model(systems, given, noise=uniform(0.3, 5), repetitions=40)
    assert set(found.agreement) == set(found.regret) == set(CRITERIA)
    assert all(0 <= a <= 1 for a in found.agreement.values())
    assert found.criterion == min(found.regret, key=found.regret.get)
    assert found.winner == "sd 1.0"


def test_without_noise_in_the_matrix_the_target_itself_always_agrees(data, systems):
    found = cr.select_model(systems, data, noise=np.eye(5), repetitions=5)
    assert found.agreement["ndcg@10"] == 1.0
    assert found.regret["ndcg@10"] == 0.0


def test_agreement_against_a_loop(data, systems):
    given = cr.corrupt(data, rate=0.2, seed=2).data
    profile = uniform(0.7, 5)
    close = {
        name: given.y + (8 + i) * np.random.default_rng(i).normal(size=len(given))
        for i, name in enumerate("ab")
    }
    found = cr.select_model(close, given, "map", profile, repetitions=30, seed=5)
    truth = [cr.evaluate(s, given, "ndcg@10").means["ndcg@10"] for s in close.values()]
    rng = np.random.default_rng([5, 2])
    hits = 0
    for _ in range(30):
        noisy = given.with_labels(profile.sample(given.y, rng))
        values = [cr.evaluate(s, noisy, "map").means["map"] for s in close.values()]
        hits += int(np.argmax(values)) == int(np.argmax(truth))
    assert found.agreement["map"] == pytest.approx(hits / 30)
    assert 0 < hits < 30


def test_stability_is_low_between_equals_and_high_for_a_clear_winner(data, systems):
    clear = cr.select_model(systems, data, repetitions=60).stability["auc:micro"]
    rng = np.random.default_rng(4)
    equals = {name: data.y + 3.0 * rng.normal(size=len(data)) for name in "abcdef"}
    assert cr.select_model(equals, data, repetitions=60).stability["auc:micro"] < clear == 1.0


def test_same_seed_same_selection(data, systems):
    one, two = (
        cr.select_model(systems, data, noise=uniform(0.2, 5), repetitions=10, seed=7) for _ in range(2)
    )
    assert one.agreement == two.agreement
    assert one.stability == two.stability


def test_an_estimate_stands_for_a_matrix(data, systems):
    class Estimate:
        matrix = uniform(0.2, 5).matrix

    found = cr.select_model(systems, data, noise=Estimate(), repetitions=5)
    assert found.regret is not None
    assert "*" in repr(found)
    assert repr(found).splitlines()[0] == f"sd 1.0 by {found.criterion} (target ndcg@10)"


def test_means_use_the_labels_that_are_given(data, systems):
    other = data.y[::-1].copy()
    found = means_of(as_measures("auc:micro"), list(systems.values()), other, data)
    expected = [
        cr.evaluate(s, data.with_labels(other), "auc:micro").means["auc:micro"] for s in systems.values()
    ]
    np.testing.assert_allclose(found[0], expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"systems": {"a": 1}}, "at least two systems"),
        ({"systems": [1, 2]}, "must map names"),
        ({"criterion": "ndgc@10"}, "Did you mean 'ndcg'"),
        ({"repetitions": 0}, "repetitions must be"),
        ({"noise": np.eye(2)}, "a row for each of the 5 grades"),
        ({"criterion": ["map", "mrr"]}, "criterion must be one measure; got map, mrr"),
        ({"target": ["map", "mrr"]}, "target must be one measure"),
    ],
)
def test_complaints(data, systems, call, message):
    with pytest.raises(CleanrankError, match=message):
        cr.select_model(**{"systems": systems, "data": data, **call})


def test_labels_that_differ_nowhere_choose_nobody(data, systems):
    flat = data.with_labels(np.repeat(np.arange(data.n_queries) % 3, np.diff(data.indptr)))
    with pytest.raises(CleanrankError, match="labels must differ within at least one query"):
        cr.select_model(systems, flat)


def test_one_criterion_may_come_as_text_and_none_beside_ones_own(data, systems):
    assert list(cr.select_model(systems, data, "map", criteria="ndcg@10").values) == ["ndcg@10", "map"]
    assert list(cr.select_model(systems, data, "map", criteria=()).values) == ["map"]
