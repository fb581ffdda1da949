"""Wrong labels among rows that nobody judged: against enumeration and against data whose truth is known."""

from math import comb, gamma

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.labeling.left import WEAK, wrong_left, wrong_pairs
from cleanrank.labeling.progress import DROPPED, UNJUDGED, label_progress
from cleanrank.noise.gold import from_gold


def judged_rows(data, truth, rows):
    new = np.full(data.n_docs, UNJUDGED)
    new[rows] = truth[rows]
    return new


def noise_of(data, new, rows):
    return from_gold(data, data.row_ids[rows], new[rows], n_grades=2)


def test_early_rows_give_the_posterior_of_the_number_left_that_counting_gives():
    """40 rows of one grade: 8 drawn early (1 wrong), 6 of the others chosen (4 wrong), 26 open."""
    n = 42  # with two rows of another grade
    truth = np.zeros(n, int)
    truth[[0, 8, 9, 10, 11, 40, 41]] = 1
    early = (np.arange(n) < 8) | (np.arange(n) >= 40)
    data = cr.from_arrays(np.zeros((n, 1)), (np.arange(n) >= 40).astype(int), qid=np.zeros(n))
    new = judged_rows(data, truth, early | (np.arange(n) < 14))
    noise = noise_of(data, new, np.flatnonzero(early))
    draws = wrong_left(
        data, new, noise=noise, late=np.zeros(n, bool), early=early, rng=np.random.default_rng(0)
    )
    # by hand: P(L) ~ BetaBinomial(26, a, b) x C(5 + L, 1) C(35 - L, 7) / C(40, 8)
    a, b = WEAK
    prior = [comb(26, L) * _beta_function(L + a, 26 - L + b) for L in range(27)]
    p = np.array([prior[L] * (5 + L) * comb(35 - L, 7) for L in range(27)])
    p /= p.sum()
    counts = np.bincount(draws[:, 0].astype(int), minlength=27) / len(draws)
    assert abs(counts - p).max() < 4 * np.sqrt(0.25 / len(draws))
    assert draws[:, 0].mean() == pytest.approx(p @ np.arange(27), abs=0.3)
    assert (draws[:, 1] == 0).all()  # no row of grade 1 is open


def _beta_function(a, b):
    return gamma(a) * gamma(b) / gamma(a + b)


def test_without_open_rows_nothing_is_left_and_without_drawn_ones_nothing_is_said():
    data = cr.from_arrays(np.zeros((20, 1)), [0, 1] * 10, qid=[1] * 20)
    everything = np.ones(20, bool)
    noise = noise_of(data, data.y, np.arange(20))
    options = {"noise": noise, "late": ~everything, "rng": np.random.default_rng(0)}
    assert not wrong_left(data, data.y.astype(int), early=everything, **options).any()
    some = judged_rows(data, data.y, [0])
    assert wrong_left(data, some, early=~everything, **options) is None


def loop(seed, n=2000):
    """Rows whose doubt tells of errors; an early sample, then the most doubted of the others are judged."""
    rng = np.random.default_rng(seed)
    doubt = -np.sort(-rng.random(n))
    chance = 0.8 / (1 + (np.arange(1, n + 1) / 150) ** 2) + 0.03
    truth = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    given = np.where(rng.random(n) < chance, (truth + rng.integers(1, 3, n)) % 3, truth)
    data = cr.from_arrays(np.zeros((n, 1)), given, qid=np.arange(n) // 20)
    early = np.zeros(n, bool)
    early[cr.sample_gold(data, 120, seed=seed).rows] = True
    chosen = np.zeros(n, bool)
    chosen[np.flatnonzero(~early)[:250]] = True  # judged rows are not chosen
    return data, truth, np.where(chosen, doubt, np.nan), early, chosen


@pytest.mark.slow
@pytest.mark.parametrize("with_late", [False, True])
def test_intervals_hold_the_truth_when_the_drawn_rows_came_first(with_late):
    misses, widths, biased = np.zeros(3), [], []
    for seed in range(40):
        data, truth, doubt, early, chosen = loop(seed)
        drawn = early.copy()
        if with_late:
            others = np.flatnonzero(~early)
            drawn[others[cr.sample_gold(data.select(~early), 100, seed=seed + 1).rows]] = True
        new = judged_rows(data, truth, drawn | chosen)
        options = {"drawn": drawn, "doubt": doubt, "level": 0.9, "seed": seed}  # .95 at look 1
        found = label_progress(data, new, early=early, **options)
        wrong = data.y != truth
        left = (wrong & (new == UNJUDGED)).sum()
        mended = wrong.sum() - left
        truths = wrong.mean(), left / data.n_docs, mended / wrong.sum()
        estimates = found.before, found.after, found.won_back
        misses += [not e.low <= value <= e.high for e, value in zip(estimates, truths, strict=True)]
        widths.append(found.after.width)
        biased.append(label_progress(data, new, **options).after.mean - truths[1])
    # .05 of 40 is 2; 7 or more of 40 have a probability below .004
    assert misses.max() <= 6
    # early rows that count as if they spoke for the open rows alone would say that more is left
    assert np.mean(biased) > 0.01
    if with_late:
        assert np.mean(widths) < 0.1


def test_late_rows_narrow_what_early_rows_say():
    data, truth, doubt, early, chosen = loop(3)
    others = np.flatnonzero(~early)
    late = np.zeros(data.n_docs, bool)
    late[others[cr.sample_gold(data.select(~early), 300, seed=9).rows]] = True
    first = label_progress(
        data, judged_rows(data, truth, early | chosen), drawn=early, doubt=doubt, early=early
    )
    new = judged_rows(data, truth, early | chosen | late)
    second = label_progress(data, new, drawn=early | late, doubt=doubt, early=early)
    assert second.after.width < first.after.width


def test_rows_judged_for_another_reason_do_not_speak_for_the_rest():
    """All wrong labels are among the rows of an evaluation; drawn ones of these must not raise the rest."""
    rng = np.random.default_rng(0)
    truth = rng.choice(2, 2000)
    apart = np.arange(2000) < 200
    data = cr.from_arrays(np.zeros((2000, 1)), np.where(apart, 1 - truth, truth), qid=np.arange(2000) // 10)
    drawn = np.zeros(2000, bool)
    drawn[cr.sample_gold(data, 300, seed=0).rows] = True
    new = judged_rows(data, truth, apart | drawn)
    assert label_progress(data, new, drawn=drawn, apart=apart).after.mean < 0.01
    assert label_progress(data, new, drawn=drawn).after.mean > 0.08


def test_wrong_pairs_are_those_that_counting_gives_when_every_row_is_judged():
    rng = np.random.default_rng(1)
    truth = rng.choice(3, 60)
    given = np.where(rng.random(60) < 0.3, rng.choice(3, 60), truth)
    data = cr.from_arrays(np.zeros((60, 1)), given, qid=np.arange(60) // 10)
    new = truth.copy()
    noise = from_gold(data, data.row_ids, truth)
    before, after = wrong_pairs(data, new, np.zeros((1000, 3)), noise)
    assert before == pytest.approx(counted_pairs(data.y, truth, data.qid))
    assert not after.any()
    new[data.y != truth] = DROPPED
    before, after = wrong_pairs(data, new, np.zeros((1000, 3)), noise)
    assert not before.any()


def counted_pairs(given, truth, qid):
    """pNoise by its definition: pairs that only errors created count a half."""
    wrong = every = 0.0
    for query in np.unique(qid):
        g, t = given[qid == query], truth[qid == query]
        above = g[:, None] > g
        every += above.sum()
        wrong += (above & (t[:, None] < t)).sum() + 0.5 * (above & (t[:, None] == t)).sum()
    return wrong / every


@pytest.mark.slow
def test_the_share_of_wrong_pairs_holds_the_truth():
    misses = np.zeros(3)
    for seed in range(30):
        truth = cr.make_ranking(60, 5, docs_per_query=20, seed=seed)
        noisy = cr.corrupt(truth, rate=0.2, seed=seed + 1)
        data = noisy.data
        drawn = np.zeros(data.n_docs, bool)
        drawn[cr.sample_gold(data, 200, seed=seed + 2).rows] = True
        chosen = (data.y != truth.y) & (np.random.default_rng(seed).random(data.n_docs) < 0.5) & ~drawn
        new = judged_rows(data, truth.y, drawn | chosen)
        doubt = np.where(chosen, 1.0, np.nan)
        found = label_progress(data, new, drawn=drawn, early=drawn, doubt=doubt, level=0.9, seed=seed)
        mended = np.where(new >= 0, new, data.y)
        was, now = (counted_pairs(labels, truth.y, data.qid) for labels in (data.y, mended))
        truths = was, now, 1 - now / was
        estimates = found.pairs_before, found.pairs_after, found.pairs_won_back
        misses += [not e.low <= value <= e.high for e, value in zip(estimates, truths, strict=True)]
    assert misses.max() <= 5  # .05 of 30 is 1.5; 6 or more have a probability below .004
