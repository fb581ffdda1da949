import itertools

import numpy as np
import pytest

from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.noise.agreement import judgements
from cleanrank.noise.annotators import _names, _one_rate, annotator_noise, dawid_skene, from_repeated
from cleanrank.noise.profiles import NoiseProfile, geometric, one_way, uniform

SHARES = [0.6, 0.25, 0.15]


def judged(noises, n_items, seed=0, shares=SHARES, names=True):
    """Every annotator judges every item with their own noise."""
    rng = np.random.default_rng([seed, 5])
    truth = rng.choice(len(shares), size=n_items, p=shares)
    said = [noise.sample(truth, rng) for noise in noises]
    A = len(noises)
    table = {"item": np.tile(np.arange(n_items), A), "grade": np.concatenate(said)}
    if names:
        table["annotator"] = np.repeat([f"a{a}" for a in range(A)], n_items)
    return judgements(
        item=table["item"], annotator=table.get("annotator"), grade=table["grade"], n_grades=len(shares)
    ), truth


def naive_em(said, C, steps):
    """Dawid and Skene written with loops: said[i][a] is a grade."""
    I, A = len(said), len(said[0])
    posterior = [[sum(g == l for g in row) / A for l in range(C)] for row in said]
    for _ in range(steps):
        r = [sum(posterior[i][l] for i in range(I)) / I for l in range(C)]
        T = [[[0.01] * C for _ in range(C)] for _ in range(A)]
        for i, a, l in itertools.product(range(I), range(A), range(C)):
            T[a][l][said[i][a]] += posterior[i][l]
        T = [[[v / sum(row) for v in row] for row in matrix] for matrix in T]
        for i in range(I):
            like = [r[l] * np.prod([T[a][l][said[i][a]] for a in range(A)]) for l in range(C)]
            posterior[i] = [v / sum(like) for v in like]
    return np.array(posterior)


def test_em_is_the_naive_one():
    table, _ = judged([uniform(0.2, 3), uniform(0.1, 3), uniform(0.3, 3)], 60)
    said = table.grade.reshape(3, 60).T.tolist()
    found = dawid_skene(table, starts=1, iterations=7, tolerance=0.0)
    assert found.iterations == 7
    assert found.posterior == pytest.approx(naive_em(said, 3, 7), abs=1e-9)


def test_em_finds_every_annotator_and_most_true_grades():
    noises = [uniform(0.05, 3), uniform(0.2, 3), one_way(0.3, 3), geometric(0.3, 3), uniform(0.4, 3)]
    table, truth = judged(noises, 3000)
    found = dawid_skene(table)
    for matrix, noise in zip(found.matrices, noises, strict=True):
        assert matrix == pytest.approx(noise.matrix, abs=0.06)
    assert found.proportions == pytest.approx(SHARES, abs=0.04)
    best_single = (table.grade.reshape(5, 3000)[0] == truth).mean()
    assert (found.posterior.argmax(axis=1) == truth).mean() > best_single


def test_names_of_grades_are_not_exchanged():
    """From every start the labels come out as the annotators use them."""
    table, _ = judged([uniform(0.3, 3)] * 5, 800, shares=[0.34, 0.33, 0.33])
    for seed in range(4):
        found = dawid_skene(table, starts=4, seed=seed)
        assert (found.matrices.argmax(axis=2) == np.arange(3)).all()


def test_more_starts_never_lower_the_likelihood():
    table, _ = judged([uniform(0.35, 3)] * 3, 150)
    one = dawid_skene(table, starts=1).log_likelihood
    assert dawid_skene(table, starts=6).log_likelihood >= one - 1e-9


@pytest.mark.parametrize("names", [True, False])
def test_three_judgements_identify_the_matrix(names):
    noise = NoiseProfile(np.array([[0.85, 0.1, 0.05], [0.2, 0.7, 0.1], [0.05, 0.2, 0.75]]))
    table, _ = judged([noise] * 3, 3000, names=names)
    found = from_repeated(table, draws=240)
    assert found.trusted
    assert found.matrix == pytest.approx(noise.matrix, abs=0.06)
    assert found.rate == pytest.approx(noise.rate(SHARES), abs=0.03)
    low, high = found.interval
    assert ((low <= found.matrix) & (found.matrix <= high)).all()


def test_the_pooled_matrix_is_the_mean_over_judgements():
    noises = [uniform(0.05, 3), uniform(0.2, 3), uniform(0.35, 3)]
    table, _ = judged(noises, 2500)
    found = from_repeated(table, model="dawid-skene", draws=240)
    assert found.matrix == pytest.approx(np.mean([n.matrix for n in noises], axis=0), abs=0.05)


def test_annotators_are_told_apart():
    table, _ = judged([uniform(0.05, 3), uniform(0.2, 3), uniform(0.45, 3)], 1500)
    found = annotator_noise(table, draws=240)
    assert list(found) == ["a0", "a1", "a2"]
    assert found["a0"].pnoise_interval[1] < found["a1"].pnoise_interval[0]
    assert found["a1"].pnoise_interval[1] < found["a2"].pnoise_interval[0]
    assert found["a2"].rate == pytest.approx(0.45, abs=0.06)
    assert found["a2"].n == 1500


def test_two_judgements_give_a_rate_under_an_assumption():
    table, _ = judged([uniform(0.2, 3)] * 2, 2000, names=False)
    found = from_repeated(table)
    assert found.trusted
    assert "do not identify" in found.reasons[0]
    assert found.matrix == pytest.approx(uniform(0.2, 3).matrix, abs=0.03)
    # Two equal judgements say nothing else than this: (1 - g)^2 + g^2 / 2 of agreement at any shares.
    share = 1 - np.mean(table.grade[:2000] != table.grade[2000:])
    root = (2 - np.sqrt(4 - 6 * (1 - share))) / 3
    assert found.rate == pytest.approx(root, abs=0.01)


def test_an_assumption_that_does_not_fit_is_not_trusted():
    table, _ = judged([one_way(0.2, 3)] * 2, 1000, names=False)
    found = from_repeated(table)
    assert not found.trusted
    assert "does not fit" in found.reasons[1]


def test_two_grades_leave_nothing_to_test():
    table, _ = judged([uniform(0.2, 2)] * 2, 500, shares=[0.7, 0.3], names=False)
    assert not from_repeated(table).trusted
    assert from_repeated(table, family="uniform").trusted


def test_a_family_may_be_named():
    table, _ = judged([geometric(0.3, 3)] * 2, 3000, names=False)
    found = from_repeated(table, family="geometric")
    assert found.trusted
    assert found.matrix == pytest.approx(geometric(0.3, 3).matrix, abs=0.03)


def test_same_seed_same_draws():
    table, _ = judged([uniform(0.2, 3)] * 3, 100)
    a, b, c = (from_repeated(table, seed=seed, draws=80) for seed in (1, 1, 2))
    assert np.array_equal(a.draws, b.draws)
    assert not np.array_equal(a.draws, c.draws)


def test_what_the_judgements_cannot_carry_is_refused():
    table, _ = judged([uniform(0.2, 3)] * 2, 100)
    with pytest.raises(InvalidInputError, match="three or more named annotators"):
        from_repeated(table, model="dawid-skene")
    with pytest.raises(InvalidInputError, match="items with three judgements"):
        from_repeated(table, model="pooled")
    with pytest.raises(UnknownNameError, match="pooled"):
        from_repeated(table, model="pool")
    with pytest.raises(UnknownNameError, match="geometric"):
        from_repeated(table, family="geometrc")
    with pytest.raises(InvalidInputError, match="two judgements"):
        from_repeated({"item": [1, 2], "grade": [0, 1]})


@pytest.mark.slow
@pytest.mark.parametrize("names", [True, False])
def test_intervals_hold_what_they_promise(names):
    noise = uniform(0.2, 3)
    inside, entries = [], []
    for seed in range(40):
        table, _ = judged([noise] * 4, 200, seed=seed, names=names)
        found = from_repeated(table, draws=240, seed=seed)
        low, high = found.rate_interval
        inside.append(low <= 0.2 <= high)
        low, high = found.interval
        entries.append(((low <= noise.matrix) & (noise.matrix <= high)).mean())
    assert np.mean(inside) > 0.83
    assert np.mean(entries) > 0.85


def test_names_of_grades_come_back_through_a_cycle():
    """Grades that EM has in another order are put back by the inverse of that order, not by the order."""
    pooled = np.array([[0.1, 0.1, 0.8], [0.8, 0.1, 0.1], [0.1, 0.8, 0.1]])  # states that mean grades 2, 0, 1
    order = _names(pooled)
    assert order.tolist() == [1, 2, 0]
    assert np.diag(pooled[order]).tolist() == [0.8] * 3


def unequal(n_items=1500, seed=3):
    """A careful annotator who judges everything, and careless ones who judge a fifth each."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, size=n_items, p=SHARES)
    rates = (0.05, 0.05, 0.05, 0.45, 0.45)
    parts = [np.arange(n_items)] * 3 + [rng.permutation(n_items)[: n_items // 5] for _ in range(2)]
    said = [uniform(rate, 3).sample(truth[items], rng) for rate, items in zip(rates, parts, strict=True)]
    table = judgements(
        item=np.concatenate(parts),
        annotator=np.repeat([f"a{a}" for a in range(5)], [len(items) for items in parts]),
        grade=np.concatenate(said),
        n_grades=3,
    )
    return table, np.average(rates, weights=[len(items) for items in parts])


def test_those_who_judge_more_count_more_in_the_noise_of_a_judgement():
    table, rate = unequal()
    found = from_repeated(table, model="dawid-skene", draws=200)
    assert found.rate == pytest.approx(rate, abs=0.025)  # alike they would come to .21


def test_known_grades_are_certain():
    table, truth = judged([uniform(0.3, 3)] * 3, 200)
    known = np.where(np.arange(200) < 50, truth, -1)
    found = dawid_skene(table, known=known)
    np.testing.assert_array_equal(found.posterior[:50], np.eye(3)[truth[:50]])
    assert found.posterior[50:].max(axis=1).min() < 1


def test_few_judgements_keep_to_the_prior_of_the_rate():
    """The rate has the prior Beta(.5, 2): draws from counts of nothing have its mean, .2."""
    update = _one_rate(uniform(1.0, 3).matrix)
    T = update(np.zeros((40_000, 3, 3)), np.random.default_rng(0))
    gamma = 1 - T[:, 0, 0]
    assert gamma.max() <= 2 / 3 + 1e-12
    prior = np.minimum(np.random.default_rng(1).beta(0.5, 2.0, size=40_000), 2 / 3)
    assert gamma.mean() == pytest.approx(prior.mean(), abs=0.005)
    seen = np.tile(np.diag([6.0, 2.0, 0.0]), (40_000, 1, 1))
    seen[:, 0, 1] = 2
    gamma = 1 - update(seen, np.random.default_rng(2))[:, 0, 0]
    assert gamma.mean() == pytest.approx(2.5 / 12.5, abs=0.005)


def test_names_of_grades_follow_those_who_judge_most():
    """Two annotators of few items, who mean 1 by 0 and 0 by 1, do not outvote the one who judged all."""
    rng = np.random.default_rng(0)
    truth = rng.choice(2, size=600, p=[0.6, 0.4])
    few = np.arange(60)
    said = [uniform(0.05, 2).sample(truth, rng), 1 - truth[few], 1 - truth[few]]
    table = judgements(
        item=np.concatenate([np.arange(600), few, few]),
        annotator=np.repeat(["all", "b", "c"], [600, 60, 60]),
        grade=np.concatenate(said),
        n_grades=2,
    )
    found = dawid_skene(table)
    assert (found.posterior.argmax(axis=1) == truth).mean() > 0.9
