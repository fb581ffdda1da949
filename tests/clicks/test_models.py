import numpy as np
import pytest

from cleanrank.clicks.models import (
    CLICK_MODELS,
    CascadeModel,
    PositionModel,
    cascade,
    ccm,
    make_click_model,
    pbm,
    relevance,
    trust,
)
from cleanrank.errors import CleanrankError
from cleanrank.ragged import indptr_of


def test_relevance_of_five_grades():
    np.testing.assert_allclose(relevance(np.arange(5), 4), [0, 1 / 15, 3 / 15, 7 / 15, 1])
    np.testing.assert_allclose(relevance(np.arange(5), 4, 0.1), [0.1, 0.16, 0.28, 0.52, 1.0])
    np.testing.assert_allclose(relevance([0, 1], 1), [0, 1])
    with pytest.raises(CleanrankError, match="top_grade must be at least 1 and the highest grade; got 2"):
        relevance([0, 3], 2)


def test_examination_falls_to_its_tail():
    ranks = np.arange(1, 104)
    seen = pbm().examined(ranks)
    assert seen[:3].tolist() == [0.68, 0.61, 0.48]
    assert (seen[9:] == 0.06).all()
    assert seen.mean() == pytest.approx((2.94 + 93 * 0.06) / 103)
    assert round(float(seen.mean()), 4) == 0.0827
    np.testing.assert_allclose(pbm(eta=2).examined(ranks), seen**2)
    assert pbm(examination=[0.9, 0.5]).examined([1, 2, 7]).tolist() == [0.9, 0.5, 0.5]


def test_trust_is_the_position_model_with_its_own_click_chances():
    model = trust()
    ranks = np.array([1, 2, 10, 30])
    base, weight = model.chances(np.zeros(4), ranks, indptr_of([4]), np.zeros(0, bool))
    seen = np.array([0.68, 0.61, 0.06, 0.06])
    plus, minus = np.array([0.98, 0.97, 0.89, 0.79]), np.array([0.65, 0.325, 0.065, 0.065])
    np.testing.assert_allclose(base, seen * minus)
    np.testing.assert_allclose(base + weight, seen * plus)


def naive_walk(model, r, rng):
    """One list, one user, step by step."""
    a1, a2, a3 = model.goes_on
    clicks = np.zeros(len(r), bool)
    for i, p in enumerate(r):
        clicks[i] = rng.random() < p
        if rng.random() >= (a2 * (1 - p) + a3 * p if clicks[i] else a1):
            break
    return clicks


@pytest.mark.parametrize(
    "model", [ccm(), ccm(a1=0.7, a2=0.6, a3=0.2), cascade()], ids=lambda m: str(m.goes_on)
)
def test_walking_users_agree_with_a_step_by_step_simulation(model):
    r = np.array([0.1, 0.5, 0.0, 0.9, 0.3])
    n = 20_000
    rng = np.random.default_rng(0)
    ours = model.draw(np.tile(r, n), np.tile(np.arange(1, 6), n), indptr_of(np.full(n, 5)), rng).reshape(n, 5)
    theirs = np.array([naive_walk(model, r, rng) for _ in range(n)])
    for what in (lambda c: c, lambda c: c[:, :-1] & c[:, 1:]):
        a, b = what(ours).mean(axis=0), what(theirs).mean(axis=0)
        assert (abs(a - b) < 4 * np.sqrt(2 * 0.25 / n)).all()
    assert not ours[:, 2].any()


def test_users_who_stop_at_a_click_never_click_twice():
    rng = np.random.default_rng(1)
    r = rng.random(5000)
    for model in (ccm(a1=1, a2=0, a3=0), cascade()):
        clicks = model.draw(r, np.ones(5000, int), indptr_of(np.full(500, 10)), rng).reshape(500, 10)
        assert clicks.sum(axis=1).max() == 1
        assert clicks.any(axis=1).mean() > 0.9


@pytest.mark.parametrize("name", CLICK_MODELS)
def test_the_chances_a_model_states_are_those_it_draws(name):
    """P(click | clicks above) = b + w r, checked for every pattern of clicks above that occurs often."""
    model = make_click_model(name, {"way": "second"})
    r = relevance([1, 3, 0, 4], 4, model.noise)
    n = 60_000
    rng = np.random.default_rng(3)
    position, indptr, every = np.tile(np.arange(1, 5), n), indptr_of(np.full(n, 4)), np.tile(r, n)
    clicks = model.draw(every, position, indptr, rng)
    base, weight = model.chances(every, position, indptr, clicks)
    stated = (base + weight * every).reshape(n, 4)
    drawn = clicks.reshape(n, 4)
    checked = 0
    for k in range(4):
        above = drawn[:, :k] @ (1 << np.arange(k))
        for pattern in np.unique(above):
            rows = above == pattern
            if rows.sum() < 2000:
                continue
            p = stated[rows, k]
            assert np.ptp(p) < 1e-12
            assert abs(drawn[rows, k].mean() - p[0]) < 4 * np.sqrt(0.25 / rows.sum())
            checked += 1
    assert checked >= 5


def test_models_by_name_check_their_options():
    assert make_click_model("pbm", {"way": "second"}) == PositionModel(noise=0.1)
    assert make_click_model("ccm") == CascadeModel(goes_on=(0.95, 0.30, 0.05))
    assert make_click_model("pbm", {"noise": 0.03}).noise == 0.03
    with pytest.raises(CleanrankError, match="Did you mean 'cascade'"):
        make_click_model("cascad")
    with pytest.raises(CleanrankError, match=r"unknown option of click model 'ccm' 'eta'.*a1, a2, a3"):
        make_click_model("ccm", {"eta": 1})
    with pytest.raises(CleanrankError, match="unknown way 'third'"):
        make_click_model("pbm", {"way": "third"})
    with pytest.raises(CleanrankError, match="fitting types"):
        make_click_model("pbm", {"examination": 3})


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: pbm(noise=2), "noise must lie in"),
        (lambda: pbm(eta=-1), "eta must be a number >= 0"),
        (lambda: pbm(examination=[1.2]), "examination must lie in"),
        (lambda: ccm(a1=1.5), "goes_on must lie in"),
        (lambda: CascadeModel(goes_on=(1, 0)), "three probabilities"),
        (lambda: trust(plus=[]), "trust_plus must lie in"),
    ],
)
def test_impossible_users_are_refused(make, words):
    with pytest.raises(CleanrankError, match=words):
        make()
