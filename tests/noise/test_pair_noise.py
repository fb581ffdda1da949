import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.noise.pair_noise import (
    PairNoise,
    new_come_share,
    pnoise,
    pnoise_curve,
    pnoise_expected,
    pnoise_matrices,
    signal_left,
)
from cleanrank.noise.profiles import NoiseProfile, adjacent, geometric, uniform
from cleanrank.ragged import indptr_of, query_of_row

OHSUMED = (70, 16, 14)
MSLR = (51.7, 32.5, 13.3, 1.7, 0.8)


def naive(true, noisy, indptr):
    """Correct, inverse and new-come pairs of every query, pair by pair."""
    rows = []
    for start, end in itertools.pairwise(indptr):
        counts = [0, 0, 0]
        for i in range(start, end):
            for j in range(start, end):
                if noisy[i] > noisy[j]:
                    counts[0 if true[i] > true[j] else 1 if true[i] < true[j] else 2] += 1
        rows.append(counts)
    return np.array(rows).T.reshape(3, -1)


# Measured ------------------------------------------------------------------------------------------------


def test_four_documents_by_hand():
    # Pairs of different given grade: (1,0) new, (1,2) inverse, (3,0) correct, (3,2) new.
    found = pnoise([0, 0, 1, 1], [0, 1, 0, 1])
    assert (found.correct, found.inverse, found.new_come, found.total) == (1, 1, 2, 4)
    assert float(found) == (1 + 0.5 * 2) / 4
    assert float(pnoise([0, 0, 1, 1], [0, 1, 0, 1], new_weight=1.0)) == 3 / 4
    assert repr(found) == "PairNoise(0.5000 pooled: 1 correct, 1 inverse, 2 new-come at weight 0.5)"
    assert isinstance(found, PairNoise)


@st.composite
def labelled_queries(draw):
    top = draw(st.sampled_from([1, 4, 7, 8, 20, 255, 256, 70_000]))
    lengths = draw(st.lists(st.integers(0, 12), max_size=5))
    n = sum(lengths)
    grades = st.lists(st.integers(0, top), min_size=n, max_size=n)
    dtype = draw(st.sampled_from([d for d in ("u1", "i2", "i4", "u4", "i8", "u8") if top <= np.iinfo(d).max]))
    return np.array(draw(grades), dtype), np.array(draw(grades), dtype), indptr_of(lengths)


@given(labelled_queries())
@settings(max_examples=150, deadline=None)
def test_counts_equal_a_naive_pair_loop(case):
    true, noisy, indptr = case
    found = pnoise(true, noisy, indptr)
    expected = naive(true, noisy, indptr)
    np.testing.assert_array_equal(found.counts, expected)
    assert (found.correct, found.inverse, found.new_come) == tuple(expected.sum(axis=1))


def test_long_queries_do_not_overflow_the_byte_tables():
    rng = np.random.default_rng(0)
    true, noisy = rng.integers(0, 3, 3000), np.zeros(3000, int)
    noisy[::2] = 1  # 1500 documents in one column: far beyond 255 a lane
    np.testing.assert_array_equal(pnoise(true, noisy).counts, naive(true, noisy, [0, 3000]))


@pytest.mark.parametrize("n", [1019, 1020, 1021, 2040, 2041])
def test_queries_at_the_edges_of_a_part(n):
    rng = np.random.default_rng(n)
    true, noisy = rng.integers(0, 8, (2, n))
    table = np.zeros((8, 8), int)
    np.add.at(table, (noisy, true), 1)
    correct = sum(
        table[a, l] * table[b, j] for a in range(8) for b in range(a) for l in range(8) for j in range(l)
    )
    assert pnoise(true, noisy).correct == correct


def test_threads_and_blocks_give_the_same_counts(monkeypatch):
    rng = np.random.default_rng(3)
    indptr = indptr_of(rng.integers(0, 40, 700))
    true, noisy = rng.integers(0, 5, (2, indptr[-1])).astype(np.int32)
    true[::997] = 300
    serial = pnoise(true, noisy, indptr)
    monkeypatch.setattr("cleanrank.noise._pair_counts.SERIAL", 0)
    for n_jobs in (1, 2, None):
        np.testing.assert_array_equal(pnoise(true, noisy, indptr, n_jobs=n_jobs).counts, serial.counts)


def test_pooled_divides_sums_and_macro_averages_ratios():
    # Query 1: one inverse pair of one. Query 2: four correct of four. Query 3: no pair at all.
    true, noisy, indptr = [0, 1, 0, 0, 1, 1, 0, 1], [1, 0, 0, 0, 1, 1, 2, 2], [0, 2, 6, 8]
    assert float(pnoise(true, noisy, indptr)) == 1 / 5
    macro = pnoise(true, noisy, indptr, weighting="macro")
    assert float(macro) == (1 + 0) / 2
    np.testing.assert_array_equal(macro.per_query, [1.0, 0.0, np.nan])


def test_nothing_to_count_is_nan():
    for weighting in ("pooled", "macro"):
        assert np.isnan(float(pnoise([], [], [0], weighting=weighting)))
        assert np.isnan(float(pnoise([], [], [0, 0, 0], weighting=weighting)))
        assert np.isnan(float(pnoise([1, 0], [1, 1], weighting=weighting)))
    assert pnoise([], [], [0, 0, 0]).per_query.shape == (2,)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ({"true": [0, 1], "given": [0]}, r"given must have as many grades as true \(2\); got 1"),
        ({"true": [0.5, 1], "given": [0, 1]}, "true must be a list of whole grades"),
        ({"true": [0, 1], "given": [0, -1]}, "given grades must not be negative; got -1 at row 1"),
        ({"true": [-3, 1], "given": [0, 1]}, "true grades must not be negative; got -3 at row 0"),
        (
            {"true": [0, 1], "given": [0, 1], "indptr": [0, 1]},
            r"rise from 0 to the number of rows \(2\); got 0..1",
        ),
        ({"true": [0, 1], "given": [0, 1], "indptr": [0, 2, 1, 2]}, "indptr must rise"),
        ({"true": [0, 1], "given": [0, 1], "indptr": []}, "indptr must be a list of row offsets"),
        ({"true": [0, 1], "given": [0, 1], "weighting": "micro"}, "unknown weighting 'micro'.*pooled, macro"),
        ({"true": [0, 1], "given": [0, 1], "new_weight": 2}, "new_weight must be a number >= 0"),
        ({"true": [0, 1], "given": [0, 1], "n_jobs": 0}, "n_jobs must be a positive number"),
    ],
)
def test_mistakes_are_named(call, words):
    with pytest.raises(CleanrankError, match=words):
        pnoise(**call)


# Closed form ---------------------------------------------------------------------------------------------

TABLE = [
    (OHSUMED, "uniform", (0.1237, 0.2939, 0.4146)),
    (OHSUMED, "geometric", (0.1146, 0.2704, 0.3810)),
    (OHSUMED, "adjacent", (0.0948, 0.2125, 0.2885)),
    ((99.2, 0.8), "uniform", (0.4666, 0.4925, 0.5000)),
    ((99.2, 0.8), "adjacent", (0.4666, 0.4925, 0.5000)),
    (MSLR, "uniform", (0.1156, 0.2824, 0.3943)),
    (MSLR, "geometric", (0.0926, 0.2345, 0.3358)),
    (MSLR, "adjacent", (0.0598, 0.1577, 0.2346)),
    ((84.2, 15.8), "uniform", (0.1962, 0.3850, 0.5000)),
    ((84.2, 15.8), "geometric", (0.1962, 0.3850, 0.5000)),
    ((70, 30), "uniform", (0.1257, 0.3276, 0.5000)),
]
# Documents of each grade in a list of the derived sets, and pNoise at 10 % noise.
LISTS = [((8, 8), 0.0908), ((14, 2), 0.2166), ((85, 17), 0.1879), ((100, 2), 0.4242)]


@pytest.mark.parametrize(("proportions", "profile", "values"), TABLE)
def test_values_for_the_data_sets_of_the_papers(proportions, profile, values):
    found = pnoise_curve(proportions, [0.1, 0.3, 0.5], profile)
    np.testing.assert_array_equal(found.round(4), values)


@pytest.mark.parametrize(("counts", "value"), LISTS)
def test_values_for_short_lists(counts, value):
    assert round(pnoise_expected(uniform(0.1, 2), counts, length=sum(counts)), 4) == value


@pytest.mark.parametrize(("counts", "value"), [((8, 8), 0.171), ((14, 2), 0.426)])
def test_new_come_pairs_at_full_weight_give_the_readings_of_the_paper(counts, value):
    found = pnoise_expected(uniform(0.1, 2), counts, length=16, new_weight=1.0)
    assert abs(found - value) < 6e-4


@pytest.mark.parametrize("rate", [0.0, 0.05, 0.3, 0.5])
def test_two_balanced_grades_return_the_rate(rate):
    expected = rate if rate else 0.0
    assert pnoise_expected(uniform(rate, 2), [1, 1]) == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("C", [2, 3, 5, 7])
def test_labels_without_information_have_pair_noise_one_half(C):
    r = np.random.default_rng(C).dirichlet(np.ones(C))
    assert pnoise_expected(uniform((C - 1) / C, C), r) == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize("C", [2, 3, 5, 7])
@pytest.mark.parametrize("rate", [0.1, 0.4])
def test_uniform_noise_in_explicit_terms(C, rate):
    """A and D written out for the uniform profile, as in Niu et al. (2015)."""
    t, kappa = rate / (C - 1), 1 - rate * C / (C - 1)
    r = np.random.default_rng(C).dirichlet(np.ones(C))
    equal = 1 - (C * t**2 + 2 * t * kappa + kappa**2)
    other = 1 - (C * t**2 + 2 * t * kappa)
    top = bottom = 0.0
    for l in range(C):
        top += r[l] ** 2 / 2 * equal / 2
        bottom += r[l] ** 2 / 2 * equal
        for j in range(l + 1, C):
            top += r[l] * r[j] * (t**2 * C * (C - 1) / 2 + t * kappa * (C - 1 - (j - l)))
            bottom += r[l] * r[j] * other
    assert pnoise_expected(uniform(rate, C), r) == pytest.approx(top / bottom, abs=1e-13)


@pytest.mark.parametrize("weight", [0.5, 1.0])
@pytest.mark.parametrize("C", [2, 3, 5])
def test_the_matrices_hold_the_probabilities_that_the_paper_names(C, weight):
    """Every pair of true grades and every pair of given ones, by hand."""
    rng = np.random.default_rng(C)
    T = rng.dirichlet(np.ones(C), size=C)
    A, D = pnoise_matrices(T, new_weight=weight)
    for l, j in np.ndindex(C, C):
        given = [(a, b, T[l, a] * T[j, b]) for a, b in np.ndindex(C, C)]
        real = sum(p for a, b, p in given if a != b)
        inverse = sum(p for a, b, p in given if a > b)
        expected = (real, inverse) if l < j else (real / 2, weight * real / 2) if l == j else (0, 0)
        np.testing.assert_allclose((A[l, j], D[l, j]), expected, atol=1e-14)
    r = rng.dirichlet(np.ones(C))
    assert r @ D @ r / (r @ A @ r) == pytest.approx(pnoise_expected(T, r, new_weight=weight))


def test_the_matrices_of_two_grades_are_those_printed_in_the_paper():
    rate = 0.3
    A, D = pnoise_matrices(f"uniform:{rate}", 2)
    kept = rate**2 + (1 - rate) ** 2
    np.testing.assert_allclose(A, [[rate * (1 - rate), kept], [0, rate * (1 - rate)]])
    np.testing.assert_allclose(D, [[rate * (1 - rate) / 2, rate**2], [0, rate * (1 - rate) / 2]])


@pytest.mark.parametrize("C", [2, 3, 5, 7])
@pytest.mark.parametrize("kind", ["uniform", "geometric", "random"])
@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_closed_form_count_and_pair_loop_agree_by_monte_carlo(C, kind, weight):
    rng = np.random.default_rng(C)
    r = rng.dirichlet(2 * np.ones(C))
    profile = {
        "uniform": uniform(0.3, C),
        "geometric": geometric(0.3, C),
        "random": NoiseProfile(rng.dirichlet(np.ones(C), size=C)),
    }[kind]
    indptr = indptr_of(np.full(150, 40))
    values = []
    for _ in range(40):
        true = rng.choice(C, indptr[-1], p=r)
        values.append(float(pnoise(true, profile.sample(true, rng), indptr, new_weight=weight)))
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    expected = pnoise_expected(profile, r, new_weight=weight)
    assert abs(np.mean(values) - expected) < 3 * error
    few = indptr[:3]
    noisy = profile.sample(true, rng)
    np.testing.assert_array_equal(
        pnoise(true[: few[-1]], noisy[: few[-1]], few).counts, naive(true, noisy, few)
    )


@pytest.mark.parametrize(("counts", "value"), LISTS)
def test_short_lists_by_monte_carlo(counts, value):
    rng = np.random.default_rng(7)
    Q = 2_000
    true = np.tile(np.repeat([0, 1], counts), Q)
    indptr = indptr_of(np.full(Q, sum(counts)))
    values = [float(pnoise(true, uniform(0.1, 2).sample(true, rng), indptr)) for _ in range(12)]
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    assert abs(np.mean(values) - value) < 3 * error + 5e-5


@pytest.mark.parametrize(("counts", "half", "full"), [((8, 8), 0.092, 0.174), ((14, 2), 0.194, 0.381)])
def test_macro_means_of_short_lists(counts, half, full):
    """The mean of per-query ratios at weight 1/2 and 1, as simulated before."""
    rng = np.random.default_rng(1)
    true = np.tile(np.repeat([0, 1], counts), 20_000)
    indptr = indptr_of(np.full(20_000, 16))
    noisy = uniform(0.1, 2).sample(true, rng)
    for weight, expected in ((0.5, half), (1.0, full)):
        assert float(pnoise(true, noisy, indptr, new_weight=weight, weighting="macro")) == pytest.approx(
            expected, abs=0.004
        )


def test_merged_grades_can_be_more_robust():
    """Five grades against relevant or not: balance beats the number of grades at low noise."""
    assert pnoise_curve([51.7, 48.3], [0.1])[0] == pytest.approx(0.100, abs=5e-4)
    assert pnoise_curve(MSLR, [0.1])[0] == pytest.approx(0.116, abs=5e-4)


def test_a_curve_takes_options_and_weights_rows_by_its_own_proportions():
    found = pnoise_curve(OHSUMED, [0.2], "geometric", options={"rho": 0.3, "row_weights": [1, 2, 2]})
    profile = geometric(0.2, 3, rho=0.3, row_weights=[1, 2, 2], proportions=OHSUMED)
    assert found[0] == pnoise_expected(profile, OHSUMED)
    assert pnoise_expected(adjacent(0.1, 3).matrix, OHSUMED) == pnoise_expected(adjacent(0.1, 3), OHSUMED)


def test_no_pairs_in_expectation_is_nan():
    assert np.isnan(pnoise_expected(uniform(0.0, 2), [1, 0]))
    with pytest.raises(CleanrankError, match="length must be an integer >= 2"):
        pnoise_expected(uniform(0.1, 2), [1, 1], length=1)


# What it means -------------------------------------------------------------------------------------------


def test_signal_left():
    assert signal_left(0.5) == 0
    assert signal_left(pnoise([0, 1], [0, 1])) == 1
    assert signal_left(0.2561) == pytest.approx(0.4878)


def test_new_come_share_of_sampled_pairs_says_how_many_scores_tie():
    rng = np.random.default_rng(0)
    indptr = indptr_of(np.full(50, 30))
    true = rng.integers(0, 3, 1500)
    sharp, blunt = rng.normal(size=1500), rng.integers(0, 5, 1500)
    error = 3 * np.sqrt(0.25 / 10_000)
    assert abs(new_come_share(sharp, true, indptr) - 0.5) < error
    assert abs(new_come_share(blunt, true, indptr) - 0.5 * (1 - 0.2)) < error + 0.01
    assert abs(new_come_share(blunt, true, indptr, ties=0.5) - 0.5) < error
    assert new_come_share(sharp, true, indptr, seed=1) == new_come_share(sharp, true, indptr, seed=1)


def test_new_come_share_with_given_grades_is_exact():
    rng = np.random.default_rng(4)
    indptr = indptr_of([7, 0, 12, 9])
    true, noisy = rng.integers(0, 3, (2, 28))
    scores = rng.integers(0, 6, 28) / 2
    won = tied = total = 0
    query = query_of_row(indptr)
    for i in range(28):
        for j in range(28):
            if query[i] == query[j] and true[i] == true[j] and noisy[i] > noisy[j]:
                total += 1
                won += scores[i] > scores[j]
                tied += scores[i] == scores[j]
    assert tied, "the case must have ties"
    assert new_come_share(scores, true, indptr, given=noisy) == won / total
    assert new_come_share(scores, true, indptr, given=noisy, ties=0.5) == (won + tied / 2) / total


def test_new_come_share_refuses_what_has_no_such_pair():
    with pytest.raises(CleanrankError, match="two documents of equal grade"):
        new_come_share([1.0, 2.0], [0, 1], [0, 2])
    with pytest.raises(CleanrankError, match="equal true and different given"):
        new_come_share([1.0, 2.0], [0, 0], [0, 2], given=[1, 1])
    with pytest.raises(CleanrankError, match="scores must hold a number for each of the 2 rows"):
        new_come_share([1.0], [0, 0], [0, 2])


@pytest.mark.data
def test_new_come_share_of_a_trained_ranker(data_root):
    """Table 2 of the paper with trees on OHSUMED: sampled pairs show ties, made-up pairs show no opinion."""
    parts = cr.load_dataset("ohsumed", fold=1)
    model = cr.BoostedRanker(implementation="builtin", n_estimators=30).fit_data(
        parts.train, parts.validation
    )
    test = parts.test
    scores = model.predict(test.X)
    found = new_come_share(scores, test.y, test.indptr)
    assert 0.44 <= found <= 0.51
    assert new_come_share(scores, test.y, test.indptr, ties=0.5) == pytest.approx(0.5, abs=0.015)
    noisy = cr.corrupt(test, rate=0.2, seed=0)
    assert new_come_share(scores, test.y, test.indptr, given=noisy.data.y, ties=0.5) == pytest.approx(
        0.5, abs=0.03
    )


@pytest.mark.data
def test_measured_on_real_labels_meets_the_closed_form(data_root):
    """Pooled counts on OHSUMED against the closed form of each query's own proportions, weighted by pairs."""
    data = cr.load_dataset("ohsumed", fold=1).train
    profile = geometric(0.2, 3)
    values = [float(pnoise(data.y, profile.apply(data, seed).data.y, data.indptr)) for seed in range(20)]
    T = profile.matrix
    G = T @ np.tril(np.ones((3, 3)), -1) @ T.T
    top = bottom = 0.0
    for start, end in itertools.pairwise(data.indptr):
        n = np.bincount(data.y[start:end], minlength=3).astype(float)
        for l in range(3):
            top += n[l] * (n[l] - 1) / 2 * G[l, l]
            bottom += n[l] * (n[l] - 1) * G[l, l]
            for j in range(l + 1, 3):
                top += n[l] * n[j] * G[l, j]
                bottom += n[l] * n[j] * (G[l, j] + G[j, l])
    error = np.std(values, ddof=1) / np.sqrt(len(values))
    assert abs(np.mean(values) - top / bottom) < 3 * error
