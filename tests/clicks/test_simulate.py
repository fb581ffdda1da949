import itertools

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.clicks.models import CLICK_MODELS, pbm, relevance
from cleanrank.clicks.simulate import (
    click_sessions,
    flip_rates,
    online_clicks,
    shown_order,
    simulate_clicks,
    static_clicks,
)
from cleanrank.errors import CleanrankError
from cleanrank.ragged import indptr_of, ranks

YAHOO = np.array([185_192, 254_110, 202_700, 54_473, 13_402])


@pytest.fixture(scope="module")
def judged():
    rng = np.random.default_rng(0)
    lengths = rng.integers(3, 25, 60)
    n = lengths.sum()
    return cr.from_arrays(
        rng.normal(size=(n, 2)), rng.integers(0, 5, n), qid=np.repeat(np.arange(60), lengths)
    )


@pytest.fixture(scope="module")
def scores(judged):
    return judged.y + np.random.default_rng(1).normal(size=judged.n_docs)


@pytest.mark.parametrize("name", CLICK_MODELS)
def test_a_log_shows_every_list_in_rank_order(name, judged, scores):
    log = simulate_clicks(judged, name, scores=scores, sessions=3, seed=2)
    assert log.n_lists == 3 * judged.n_queries
    assert len(log) == 3 * judged.n_docs
    place = ranks(scores, judged.indptr)
    np.testing.assert_array_equal(log.position, place[log.row])
    for start, end in itertools.pairwise(log.indptr):
        assert log.position[start:end].tolist() == list(range(1, end - start + 1))
    np.testing.assert_array_equal(log.query, np.tile(np.arange(60), 3))
    np.testing.assert_array_equal(log.session, np.repeat(np.arange(3), 60))
    np.testing.assert_array_equal(log.clicks_per_list, np.add.reduceat(log.click, log.indptr[:-1]))
    assert log.settings["model"] == name


@pytest.mark.parametrize("name", CLICK_MODELS)
def test_same_seed_same_clicks_and_sessions_stand_alone(name, judged, scores):
    few = simulate_clicks(judged, name, scores=scores, sessions=2, seed=7)
    many = simulate_clicks(judged, name, scores=scores, sessions=5, seed=7)
    np.testing.assert_array_equal(many.click[: len(few)], few.click)
    one_by_one = np.concatenate(
        [s.click for s in click_sessions(judged, name, scores=scores, sessions=5, seed=7)]
    )
    np.testing.assert_array_equal(one_by_one, many.click)
    other = simulate_clicks(judged, name, scores=scores, sessions=5, seed=8)
    assert (other.click != many.click).any()
    half = len(few) // 2
    assert (few.click[:half] != few.click[half:]).any(), "sessions differ"


def test_position_based_click_rates(judged, scores):
    log = simulate_clicks(judged, "pbm", scores=scores, sessions=400, seed=1, options={"way": "second"})
    expected = pbm().examined(log.position) * relevance(judged.y[log.row], 4, 0.1)
    for k in range(1, 13):
        at = log.position == k
        error = np.sqrt((expected[at] * (1 - expected[at])).sum()) / at.sum()
        assert abs(log.click[at].mean() - expected[at].mean()) < 4 * error


def test_flips_symmetric_and_not(judged, scores):
    clean = simulate_clicks(judged, scores=scores, sessions=100, seed=3)
    assert flip_rates(0.05) == (0.05, 0.05)
    for flip in (0.05, (0.5, 0.04)):
        noisy = simulate_clicks(judged, scores=scores, sessions=100, seed=3, flip=flip)
        lost, made_up = flip_rates(flip)
        p = clean.click.mean()
        expected = p * (1 - lost) + (1 - p) * made_up
        assert noisy.click.mean() == pytest.approx(expected, abs=4 * np.sqrt(0.25 / len(clean)))
    # Draws for flips come after those for clicks, so session 0 shows exactly what was turned round.
    one = len(clean) // 100
    only_lost = simulate_clicks(judged, scores=scores, sessions=1, seed=3, flip=(1.0, 0.0))
    assert not only_lost.click.any()
    turned = simulate_clicks(judged, scores=scores, sessions=1, seed=3, flip=1.0)
    np.testing.assert_array_equal(turned.click, ~clean.click[:one])


@pytest.mark.parametrize("flip", [(0.5037, 0.0373), 0.05])
def test_flips_change_the_click_rate_as_their_rates_say(judged, scores, flip):
    """A share p of clicks becomes p (1 - lost) + (1 - p) made up, as .0281 becomes .0502 in the paper."""
    lost, made_up = flip_rates(flip)
    before, after = (
        simulate_clicks(judged, scores=scores, sessions=200, seed=3, flip=rates).click.mean()
        for rates in (None, flip)
    )
    assert after == pytest.approx(before * (1 - lost) + (1 - before) * made_up, abs=0.01)


def test_cutoff_shows_the_top_only(judged, scores):
    log = simulate_clicks(judged, scores=scores, cutoff=5)
    assert log.position.max() == 5
    assert len(log) == np.minimum(judged.lengths, 5).sum()
    whole = simulate_clicks(judged, scores=scores)
    np.testing.assert_array_equal(np.sort(log.row), np.sort(whole.row[whole.position <= 5]))


def test_without_scores_positions_or_rows_decide(judged):
    np.testing.assert_array_equal(shown_order(judged, None), np.arange(judged.n_docs))
    clicked = static_clicks(judged, scores=-np.arange(judged.n_docs)[::-1].astype(float), seed=1)
    order = shown_order(clicked, None)
    start, end = judged.indptr[3], judged.indptr[4]
    assert order[start:end].tolist() == list(range(end - 1, start - 1, -1))


def test_static_clicks_are_data_to_train_on(judged, scores):
    clicked = static_clicks(judged, "ccm", scores=scores, seed=4)
    log = simulate_clicks(judged, "ccm", scores=scores, seed=4)
    np.testing.assert_array_equal(clicked.y[log.row], log.click)
    np.testing.assert_array_equal(clicked.positions, ranks(scores, judged.indptr))
    assert clicked.X is judged.X or np.shares_memory(clicked.X, judged.X)
    np.testing.assert_array_equal(clicked.row_ids, judged.row_ids)
    assert judged.y.max() == 4, "the input is untouched"


def test_online_clicks_are_fresh_and_skip_empty_lists(judged, scores):
    steps = list(itertools.islice(online_clicks(judged, scores=scores, lists=32, seed=5), 4))
    for step, log in enumerate(steps):
        assert log.n_lists == 32
        assert (log.clicks_per_list > 0).all()
        assert log.session.tolist() == list(range(32 * step, 32 * step + 32))
        np.testing.assert_array_equal(
            np.searchsorted(judged.indptr, log.row, side="right") - 1,
            np.repeat(log.query, np.diff(log.indptr)),
        )
    assert any(len(a) != len(b) or (a.row != b.row).any() for a, b in itertools.pairwise(steps))
    again = list(itertools.islice(online_clicks(judged, scores=scores, lists=32, seed=5), 4))
    np.testing.assert_array_equal(again[3].click, steps[3].click)
    np.testing.assert_array_equal(again[3].row, steps[3].row)
    with_empty = next(online_clicks(judged, scores=scores, lists=200, skip_empty=False))
    assert with_empty.n_lists == 200
    assert (with_empty.clicks_per_list == 0).any()


def test_lists_that_never_get_a_click_are_refused_instead_of_waiting_for_ever(judged):
    barren = judged.with_labels(np.zeros(judged.n_docs, int))
    with pytest.raises(CleanrankError, match=r"must get a click.*skip_empty=False"):
        next(online_clicks(barren, top_grade=4))


def test_mistakes_are_named(judged):
    with pytest.raises(CleanrankError, match="sessions must be an integer >= 1"):
        simulate_clicks(judged, sessions=0)
    with pytest.raises(CleanrankError, match="unknown click model 'pmb'"):
        simulate_clicks(judged, "pmb")
    with pytest.raises(CleanrankError, match="options go with a named model"):
        simulate_clicks(judged, pbm(), options={"eta": 1})
    with pytest.raises(CleanrankError, match="scores must hold a number for each"):
        simulate_clicks(judged, scores=[1.0])
    with pytest.raises(CleanrankError, match="flip must be one rate or a pair"):
        simulate_clicks(judged, flip=(0.1, 0.2, 0.3))
    with pytest.raises(CleanrankError, match="flip must lie in"):
        simulate_clicks(judged, flip=1.5)
    with pytest.raises(CleanrankError, match="seed must be an integer >= 0"):
        simulate_clicks(judged, seed=-1)
    with pytest.raises(CleanrankError, match="cutoff must be an integer >= 1"):
        simulate_clicks(judged, cutoff=0)


def yahoo_like(seed=0, queries=4000):
    """Lists of about Yahoo's lengths and label mix, and scores noisy enough for a PBM click rate of .0281."""
    rng = np.random.default_rng(seed)
    lengths = np.maximum(1, rng.poisson(23.7 * rng.gamma(3, 1 / 3, queries)))
    n = lengths.sum()
    y = rng.choice(5, n, p=YAHOO / YAHOO.sum())
    data = cr.from_arrays(np.zeros((n, 1)), y, group=lengths)
    noise, r = rng.normal(size=n), relevance(y, 4)
    low, high = 0.0, 30.0
    for _ in range(30):
        spread = (low + high) / 2
        scores = y + spread * noise
        rate = (pbm().examined(ranks(scores, indptr_of(lengths))) * r).mean()
        low, high = (spread, high) if rate > 0.0281 else (low, spread)
    return data, scores


def test_click_rates_of_yahoo_like_lists():
    """The click chain's defaults give the positive rates .0369 and .0428 that they were set for."""
    data, scores = yahoo_like()
    rates = {
        (name, way): simulate_clicks(data, name, scores=scores, sessions=3, options={"way": way}).click.mean()
        for name in ("pbm", "ccm")
        for way in ("first", "second")
    }
    assert rates["pbm", "first"] == pytest.approx(0.0281, abs=0.001)
    assert rates["pbm", "second"] == pytest.approx(0.0410, abs=0.001), "the reported rate"
    assert rates["ccm", "first"] == pytest.approx(0.0369, abs=0.0015)
    assert rates["ccm", "second"] == pytest.approx(0.0428, abs=0.0015)
