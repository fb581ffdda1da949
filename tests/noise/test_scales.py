import itertools

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.noise.pair_noise import pnoise_expected
from cleanrank.noise.profiles import NoiseProfile, adjacent, geometric, make_profile, one_way, uniform
from cleanrank.noise.scales import DERIVED, best_proportions, derive, merge_grades, resample


@pytest.fixture(scope="module")
def graded():
    """Three queries; the last has one document of grade 1 only."""
    y = [0, 0, 0, 1, 1, 1, 2, 2, 2, 1, 0, 2, 1, 0, 1, 0, 0, 0, 0, 0, 1, 2]
    X = np.arange(len(y), dtype=np.float32)[:, None]
    return cr.from_arrays(X, y, qid=["a"] * 8 + ["b"] * 9 + ["c"] * 5)


def per_query(data):
    return [np.bincount(data.y[s:e], minlength=3).tolist() for s, e in itertools.pairwise(data.indptr)]


# Merging -------------------------------------------------------------------------------------------------


def test_groups_and_mappings_say_the_same(graded):
    by_groups = merge_grades(graded, [[0], [1, 2]])
    np.testing.assert_array_equal(by_groups.y, np.minimum(graded.y, 1))
    np.testing.assert_array_equal(merge_grades(graded, {0: 0, 1: 1, 2: 1}).y, by_groups.y)
    np.testing.assert_array_equal(merge_grades(graded, {0: 2, 1: 1, 2: 0}).y, 2 - graded.y)
    np.testing.assert_array_equal(by_groups.row_ids, graded.row_ids)
    assert graded.y.max() == 2, "the input is untouched"


def test_grades_that_do_not_occur_may_be_named(graded):
    np.testing.assert_array_equal(merge_grades(graded, [[0, 1], [2, 3, 4]]).y, graded.y == 2)


def test_bad_mappings_are_refused(graded):
    with pytest.raises(CleanrankError, match=r"every grade in the data \(\[2\]\)"):
        merge_grades(graded, [[0], [1]])
    with pytest.raises(CleanrankError, match="every grade once; got 1 twice"):
        merge_grades(graded, [[0, 1], [1, 2]])
    with pytest.raises(CleanrankError, match="grades >= 0"):
        merge_grades(graded, {0: -1, 1: 0, 2: 0})


# Sampling ------------------------------------------------------------------------------------------------


def test_every_query_has_the_counts_and_short_ones_are_named(graded):
    found = resample(graded, [2, 2, 1], seed=4)
    assert per_query(found.data) == [[2, 2, 1], [2, 2, 1]]
    assert found.short.tolist() == ["c"]
    assert found.available.tolist() == [[3, 1, 1]]
    assert repr(found) == "Resampled(2 queries of 2+2+1 documents, seed 4; 1 with too few left out)"
    taken = resample(graded, [2, 2, 1], seed=4, short="take")
    assert per_query(taken.data) == [[2, 2, 1], [2, 2, 1], [2, 1, 1]]
    assert taken.short.tolist() == ["c"]
    assert "kept with what they have" in repr(taken)


def test_rows_keep_their_order_values_and_ids(graded):
    found = resample(graded, [2, 2, 1], seed=4).data
    assert (np.diff(found.row_ids) > 0).all()
    np.testing.assert_array_equal(found.X[:, 0], found.row_ids)
    np.testing.assert_array_equal(found.y, graded.y[found.row_ids])


def test_same_seed_same_sample_and_every_row_is_as_likely(graded):
    a, b = (resample(graded, [2, 0, 0], seed=1).data.row_ids for _ in range(2))
    np.testing.assert_array_equal(a, b)
    seen = np.zeros(graded.n_docs)
    for seed in range(1500):
        seen[resample(graded, [2, 0, 0], seed=seed).data.row_ids] += 1
    first = seen[:3] / 1500  # two of three documents of grade 0
    assert (abs(first - 2 / 3) < 4 * np.sqrt(2 / 9 / 1500)).all()
    assert not seen[graded.y > 0].any()


def test_proportions_are_rounded_by_largest_remainder(graded):
    assert resample(graded, proportions=[1, 1], size=5).counts == (3, 2)
    assert resample(graded, proportions=[0.5, 0.3, 0.2], size=4).counts == (2, 1, 1)


@pytest.mark.parametrize(
    ("proportions", "size", "counts"),
    [((5, 1), 102, (85, 17)), ((50, 1), 102, (100, 2)), ((7, 1), 16, (14, 2))],
)
def test_sizes_of_the_papers_come_from_their_proportions(proportions, size, counts):
    y = np.repeat([0, 1], [120, 30])
    data = cr.from_arrays(np.zeros((150, 1)), y, qid=np.zeros(150, int))
    assert resample(data, proportions=proportions, size=size).counts == counts


def test_resampling_mistakes_are_named(graded):
    with pytest.raises(CleanrankError, match="either `counts`, or `proportions` and `size`"):
        resample(graded)
    with pytest.raises(CleanrankError, match="either `counts`, or `proportions` and `size`"):
        resample(graded, [1, 1], size=3)
    with pytest.raises(CleanrankError, match=r"must keep a query.*short='take'"):
        resample(graded, [50, 50])
    with pytest.raises(CleanrankError, match="counts must list documents"):
        resample(graded, [0, 0])
    with pytest.raises(CleanrankError, match="unknown treatment of short queries"):
        resample(graded, [1, 1], short="skip")


@pytest.mark.parametrize("name", DERIVED)
def test_derived_sets_have_two_grades_and_their_sizes(name):
    rng = np.random.default_rng(0)
    top = {"ohsumed": 3, "td2003": 2, "mslr-web10k": 5}[DERIVED[name].source]
    data = cr.from_arrays(np.zeros((4000, 1)), rng.integers(0, top, 4000), qid=np.repeat(np.arange(10), 400))
    found = derive(data, name, seed=1)
    assert found.data.n_grades == 2
    if DERIVED[name].counts is not None:
        assert per_query(found.data) == [[*DERIVED[name].counts, 0]] * 10
    else:
        assert found.data.n_docs == 4000
    assert len(found.short) == 0


def test_derived_names_are_checked(graded):
    with pytest.raises(CleanrankError, match="Did you mean 'OHSUMED2G'"):
        derive(graded, "OHSUMED2")


@pytest.mark.data
def test_derived_from_real_data(data_root):
    train = cr.load_dataset("ohsumed", fold=1).train
    found = derive(train, "OHSUMED2G").data
    share = np.bincount(train.y) / train.n_docs
    np.testing.assert_allclose(np.bincount(found.y) / found.n_docs, [share[0], share[1] + share[2]])


# The best proportions ------------------------------------------------------------------------------------


def grid_search(profile, step, length=None):
    """The smallest pNoise over all proportions in whole steps."""
    C = profile.n_grades
    best, lowest = None, np.inf
    for head in itertools.product(range(step + 1), repeat=C - 1):
        if sum(head) > step:
            continue
        counts = [*head, step - sum(head)]
        value = pnoise_expected(profile, counts, length=length)
        if value < lowest:
            best, lowest = counts, value
    return np.array(best) / step, lowest


def test_most_balanced_is_not_best_for_three_grades():
    found = best_proportions("uniform", 3, rate=0.1)
    assert [round(p, 2) for p in found.proportions] == [0.39, 0.22, 0.39]
    assert round(found.pnoise, 4) == 0.0797
    assert round(found.balanced, 4) == 0.0821


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.45])
def test_two_grades_are_best_balanced(rate):
    found = best_proportions("uniform", 2, rate=rate)
    np.testing.assert_allclose(found.proportions, [0.5, 0.5], atol=1e-5)
    assert found.pnoise == pytest.approx(rate)


@pytest.mark.parametrize(
    "profile",
    [
        uniform(0.1, 3),
        uniform(0.5, 3),
        geometric(0.3, 3),
        adjacent(0.3, 3),
        one_way(0.3, 3),
        NoiseProfile(np.random.default_rng(8).dirichlet([1, 1, 1], size=3)),
        NoiseProfile(0.6 * np.eye(4) + 0.4 * np.random.default_rng(3).dirichlet(np.ones(4), size=4)),
    ],
    ids=repr,
)
def test_nothing_on_a_grid_is_better(profile):
    step = 100 if profile.n_grades == 3 else 30
    found = best_proportions(profile)
    _shares, lowest = grid_search(profile, step)
    assert found.pnoise <= lowest + 1e-9
    assert found.pnoise >= lowest - 5e-4, "the grid must come close"
    assert found.pnoise == pytest.approx(pnoise_expected(profile, found.proportions))
    assert sum(found.proportions) == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "C", "n"), [("uniform", 3, 16), ("uniform", 2, 16), ("adjacent", 3, 12), ("geometric", 4, 10)]
)
def test_short_lists_get_whole_documents(name, C, n):
    found = best_proportions(name, C, rate=0.2, length=n)
    assert sum(found.counts) == n
    _, lowest = grid_search(make_profile(name, 0.2, C), n, length=n)
    assert found.pnoise == pytest.approx(lowest, abs=1e-12)


def test_labels_without_noise_or_information_leave_balance():
    for rate in (0.0, 2 / 3):
        found = best_proportions("uniform", 3, rate=rate)
        np.testing.assert_allclose(found.proportions, 1 / 3)


def test_best_proportions_mistakes_are_named():
    with pytest.raises(CleanrankError, match="n_grades must be given"):
        best_proportions("uniform", rate=0.1)
    with pytest.raises(CleanrankError, match="not with a matrix"):
        best_proportions(uniform(0.1, 3), 3)
    with pytest.raises(CleanrankError, match="length must be an integer >= 2"):
        best_proportions("uniform", 3, rate=0.1, length=1)


def test_a_set_with_merged_grades_alone_says_so():
    data = cr.from_arrays(np.zeros((4, 1)), [0, 1, 2, 0], group=[3, 1])
    assert repr(derive(data, "OHSUMED2G")) == "Resampled(2 queries, all documents, 2 grades)"
