import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import cleanrank as cr
from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.noise.estimate import weak_prior
from cleanrank.noise.gold import (
    DOUBTFUL,
    _cells,
    _log_marginal,
    allocate,
    from_gold,
    given_posterior,
    sample_gold,
)
from cleanrank.noise.pair_noise import pnoise_expected
from cleanrank.noise.profiles import NoiseProfile, one_way, uniform

SHARES = np.array([0.75, 0.17, 0.08])


def judged(n=6000, C=3, seed=0):
    """Rows whose grades are all that matters; row ids in no order."""
    rng = np.random.default_rng([seed, 7])
    y = rng.choice(C, size=n, p=SHARES) if C == 3 else rng.choice(C, size=n)
    return cr.from_arrays(np.zeros((n, 1)), y, qid=rng.integers(0, 50, size=n))


@given(st.integers(0, 200), st.lists(st.integers(0, 60), min_size=1, max_size=6))
def test_allocation_is_even_as_far_as_there_is_room(n, room):
    taken = allocate(n, room)
    assert taken.sum() == min(n, sum(room))
    assert (taken <= room).all()
    full = taken == np.array(room)
    if not full.all():
        # No stratum with room left stays more than one behind another.
        assert taken[~full].max(initial=0) >= taken.max() - 1
        assert taken[~full].min() >= taken[~full].max() - 1


def test_stratified_rows_are_even_over_given_grades_and_differ_by_seed():
    data = judged()
    sheet = sample_gold(data, 90, seed=1)
    assert np.bincount(sheet.given_grades).tolist() == [30, 30, 30]
    assert len(set(sheet.row_ids.tolist())) == 90
    assert np.array_equal(data.row_ids[sheet.rows], sheet.row_ids)
    assert np.array_equal(data.qid[sheet.rows], sheet.query_ids)
    assert np.array_equal(sheet.row_ids, sample_gold(data, 90, seed=1).row_ids)
    assert not np.array_equal(sheet.row_ids, sample_gold(data, 90, seed=2).row_ids)
    assert not (np.diff(sheet.given_grades) >= 0).all()  # the order does not give the grade away


def test_random_rows_follow_the_shares():
    data = judged()
    counts = np.bincount(sample_gold(data, 2000, "random").given_grades) / 2000
    assert counts == pytest.approx(SHARES, abs=0.03)


def test_half_of_a_doubt_sheet_comes_from_the_most_doubtful_fifth():
    data = judged()
    doubt = np.random.default_rng(0).random(data.n_docs)
    sheet = sample_gold(data, 120, "doubt", doubt=doubt)
    for grade in range(3):
        rows = np.flatnonzero(data.y == grade)
        cut = np.sort(doubt[rows])[-round(DOUBTFUL * len(rows))]
        of_grade = sheet.given_grades == grade
        doubtful = doubt[sheet.rows[of_grade]] >= cut
        assert doubtful.sum() == 20
        assert sheet.shares[of_grade][doubtful] == pytest.approx(DOUBTFUL, abs=0.01)
        assert sheet.shares[of_grade][~doubtful] == pytest.approx(1 - DOUBTFUL, abs=0.01)


def test_sampling_refuses_what_makes_no_sense():
    data = judged(100)
    with pytest.raises(InvalidInputError, match="number of grades"):
        sample_gold(data, 2)
    with pytest.raises(InvalidInputError, match="rows"):
        sample_gold(data, 101)
    with pytest.raises(UnknownNameError, match="stratified"):
        sample_gold(data, 10, "stratifed")
    with pytest.raises(InvalidInputError, match="strategy 'doubt' needs the doubt of every row"):
        sample_gold(data, 10, "doubt")
    with pytest.raises(InvalidInputError, match="doubt"):
        sample_gold(data, 10, doubt=np.zeros(100))


def test_judging_every_row_gives_the_realised_matrix():
    data = judged()
    noise = NoiseProfile(np.array([[0.8, 0.15, 0.05], [0.3, 0.6, 0.1], [0.1, 0.2, 0.7]]))
    noisy = noise.apply(data, 3).data
    found = from_gold(noisy, noisy.row_ids, data.y)
    realised = np.zeros((3, 3))
    np.add.at(realised, (data.y, noisy.y), 1.0)
    realised /= realised.sum(axis=1, keepdims=True)
    assert found.matrix == pytest.approx(realised, abs=0.01)
    assert found.proportions == pytest.approx(np.bincount(data.y) / data.n_docs, abs=0.01)
    assert found.trusted
    assert found.answers.tolist() == np.bincount(data.y).tolist()


def test_the_posterior_is_the_one_a_grid_finds():
    """Two grades: P(true 1 | given m) on a grid, density written out, against the sampler."""
    given, counts = np.repeat([0, 1], [900_000, 100_000]), np.array([[9.0, 1.0], [4.0, 6.0]])
    data = cr.from_arrays(np.zeros((len(given), 1)), given, qid=np.zeros(len(given), dtype=int))
    rows = np.r_[np.arange(10), 900_000 + np.arange(10)]
    truth = np.r_[[0] * 9, 1, [0] * 4, [1] * 6]
    w, a = np.array([0.9, 0.1]), weak_prior(2)
    grid = (np.arange(1500) + 0.5) / 1500
    # A finer grid near 0, where the density of an error nobody saw is high.
    q0, q1 = np.meshgrid(grid**2, grid, indexing="ij")
    jacobian = 2 * np.sqrt(q0)
    J = np.array([[w[0] * (1 - q0), w[1] * (1 - q1)], [w[0] * q0, w[1] * q1]])
    r = J.sum(axis=1)
    T = J / r[:, None]
    log = counts[0, 0] * np.log(1 - q0) + counts[0, 1] * np.log(q0)
    log += counts[1, 0] * np.log(1 - q1) + counts[1, 1] * np.log(q1) + np.log(jacobian)
    for l in range(2):
        # Dirichlet rows of T, Dirichlet(C w) proportions, and the Jacobian r_l^-(C-1) from (T, r) to J.
        log += (2 * w[l] - 1 - 1) * np.log(r[l]) + sum((a[l, m] - 1) * np.log(T[l, m]) for m in range(2))
    density = np.exp(log - log.max())
    density /= density.sum()
    found = from_gold(data, rows, truth, draws=6000)
    for l, m in ((0, 0), (1, 1)):
        assert found.matrix[l, m] == pytest.approx((density * T[l, m]).sum(), abs=0.01)
    assert found.proportions[1] == pytest.approx((density * r[1]).sum(), abs=0.005)
    second = (density * T[1, 1] ** 2).sum() - (density * T[1, 1]).sum() ** 2
    assert found.draws[:, 1, 1].std() == pytest.approx(np.sqrt(second), rel=0.06)


def answered(data, noisy, n, strategy="stratified", seed=0, doubt=None, weighted=True):
    sheet = sample_gold(noisy, n, strategy, seed, doubt=doubt)
    shares = sheet.shares if weighted else None
    return from_gold(noisy, sheet.row_ids, data.y[sheet.rows], shares=shares, draws=300, seed=seed)


def test_doubt_sheets_need_their_shares_and_are_unbiased_with_them():
    data = judged(20_000)
    noisy = uniform(0.2, 3).apply(data, 1)
    doubt = noisy.changed + np.random.default_rng(0).normal(size=data.n_docs)
    rates = [answered(data, noisy.data, 300, "doubt", s, doubt).rate for s in range(12)]
    naive = [answered(data, noisy.data, 300, "doubt", s, doubt, weighted=False).rate for s in range(12)]
    assert np.mean(rates) == pytest.approx(0.2, abs=0.02)
    assert np.mean(naive) > 0.26


def test_an_unjudged_grade_is_named():
    data = judged()
    rows = np.flatnonzero(data.y < 2)[:50]
    found = from_gold(data, data.row_ids[rows], data.y[rows])
    assert not found.trusted
    assert "given grade 2" in found.reasons[0]


def test_a_scale_may_be_longer_than_what_occurs():
    data = judged()
    rows = np.arange(60)
    assert from_gold(data, data.row_ids[rows], data.y[rows], n_grades=5).matrix.shape == (5, 5)
    with pytest.raises(InvalidInputError, match="n_grades"):
        from_gold(data, data.row_ids[rows], data.y[rows], n_grades=2)


def test_wrong_answers_are_refused():
    data = judged(50)
    with pytest.raises(InvalidInputError, match="rows of the data; got 99"):
        from_gold(data, [1, 99], [0, 0])
    with pytest.raises(InvalidInputError, match="row 4 as"):
        from_gold(data, [4, 4], [0, 0])
    with pytest.raises(InvalidInputError, match="one true grade per row"):
        from_gold(data, [4, 5], [0])
    with pytest.raises(InvalidInputError, match="integers >= 0"):
        from_gold(data, [4, 5], [0, -1])


@pytest.mark.slow
@pytest.mark.parametrize("noise", [uniform(0.2, 3), one_way(0.1, 3)], ids=lambda noise: noise.name)
def test_intervals_hold_what_they_promise(noise):
    data = judged(8000)
    shares = np.bincount(data.y) / data.n_docs
    truth = pnoise_expected(noise, shares)
    inside, errors, entries = [], [], []
    for seed in range(120):
        found = answered(data, noise.apply(data, seed).data, 100, seed=seed)
        low, high = found.pnoise_interval
        inside.append(low <= truth <= high)
        low, high = found.interval
        entries.append(((low <= noise.matrix) & (noise.matrix <= high)).mean())
        errors.append(abs(found.matrix - noise.matrix).mean())
    assert np.mean(inside) > 0.86
    assert np.mean(entries) > 0.86
    assert np.mean(errors) < 0.06


def estimates(truth, noise, assumed, n, seeds=range(8)):
    """The mean error of the matrix, by true grades, without and with an assumed one."""
    errors = []
    for seed in seeds:
        noisy = NoiseProfile(noise).apply(truth, seed).data
        sheet = sample_gold(noisy, n, seed=seed)
        answers = truth.y[sheet.rows]
        both = (
            from_gold(noisy, sheet.row_ids, answers, n_grades=3, draws=300, assumed=a)
            for a in (None, assumed)
        )
        errors.append([abs(each.matrix - noise).sum(axis=1) @ SHARES for each in both])
    return np.mean(errors, axis=0)


def test_an_assumption_that_answers_bear_out_helps_and_one_that_they_contradict_has_no_say():
    truth = judged()
    right = uniform(0.3, 3).matrix
    for n, gain in ((30, 0.7), (100, 0.8), (300, 0.95)):
        alone, with_right = estimates(truth, right, right, n)
        assert with_right < gain * alone
    missed = np.array([[1.0, 0.0, 0.0], [0.6, 0.4, 0.0], [0.6, 0.0, 0.4]])
    alone, with_wrong = estimates(truth, missed, right, 100)
    assert with_wrong < 1.05 * alone


def test_an_assumed_matrix_is_weighed_by_the_marginal_likelihood_of_the_answers():
    # One stratum, two grades: the integral over P(true 1 | given) is done by quadrature.
    counts, believed = np.array([[7.0, 2.0]]), np.array([0.8, 0.2])
    p = (np.arange(200_000) + 0.5) / 200_000
    for worth in (2.5, 10.0, 40.0):
        shape = worth * believed
        prior = (1 - p) ** (shape[0] - 1) * p ** (shape[1] - 1)
        integral = np.log(((1 - p) ** 7 * p**2 * prior).sum() / prior.sum())
        assert _log_marginal(counts, shape)[0] == pytest.approx(integral, abs=0.02)


def test_shares_of_true_grades_under_an_assumed_matrix_solve_for_the_given_ones():
    rng = np.random.default_rng(3)
    r, T = rng.dirichlet([5, 5, 5]), 0.6 * np.eye(3) + 0.4 * rng.dirichlet([1, 1, 1], size=3)
    joint = r[:, None] * T
    expected = (joint / joint.sum(axis=0)).T
    assert given_posterior(T, joint.sum(axis=0)) == pytest.approx(expected, abs=0.02)


def test_a_stratum_that_nobody_answered_is_covered_by_the_other_of_its_grade():
    """Rows of grade 0 were drawn from two strata, and only answers of the doubtful fifth came back."""
    given, truth = np.array([0] * 20 + [1] * 30), np.array([0] * 10 + [1] * 10 + [1] * 30)
    shares = np.array([0.2] * 20 + [1.0] * 30)
    grades, sizes, counts = _cells(given, truth, shares, np.array([800.0, 200.0]), 2)
    assert grades.tolist() == [0, 1]
    assert sizes.tolist() == [800.0, 200.0]
    assert counts.tolist() == [[10.0, 10.0], [0.0, 30.0]]


def test_a_grade_that_nobody_judged_again_keeps_its_rows():
    grades, sizes, counts = _cells(
        np.array([0, 0]), np.array([0, 1]), np.ones(2), np.array([60.0, 30.0, 10.0]), 3
    )
    assert grades.tolist() == [0, 1, 2]
    assert sizes.tolist() == [60.0, 30.0, 10.0]
    assert counts[1:].sum() == 0


def test_the_shares_of_both_strata_of_a_grade_sum_to_one():
    data = judged(1000)
    sheet = sample_gold(data, 90, "doubt", 0, doubt=np.random.default_rng(0).random(data.n_docs))
    for grade in np.unique(data.y):
        mine = set(sheet.shares[data.y[sheet.rows] == grade].round(9).tolist())
        assert len(mine) == 2
        assert sum(mine) == pytest.approx(1)


@pytest.mark.parametrize(("n", "trusted"), [(29, False), (30, True)])
def test_thirty_answers_are_the_least(n, trusted):
    data = judged(300)
    sheet = sample_gold(data, n, "stratified", 0)
    found = from_gold(data, sheet.row_ids, data.y[sheet.rows])
    assert found.trusted == trusted
    assert any("too few" in reason for reason in found.reasons) == (not trusted)


def test_rows_of_whole_grades_are_tested_and_kept_and_those_drawn_by_doubt_are_not():
    clean = cr.make_ranking(30, 5, docs_per_query=20, seed=1)
    noisy = cr.corrupt(clean, rate=0.2, seed=2).data
    rows = np.arange(0, noisy.n_docs, 4)
    whole = from_gold(noisy, rows, clean.y[rows], shares=np.ones(len(rows)))
    np.testing.assert_array_equal(whole.known_rows[:, 1], clean.y[rows])
    assert np.isfinite(whole.class_conditional.p_value)
    part = from_gold(noisy, rows, clean.y[rows], shares=np.full(len(rows), 0.5))
    assert part.known_rows is None or not len(part.known_rows)
    assert np.isnan(part.class_conditional.p_value)
