import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.issues.outliers import SOUR, Window, suggest
from tests.oracles import naive_outliers

INDPTR = np.array([0, 7, 7, 12, 13])
Y = np.array([0, 1, 0, 2, 0, 0, 1, 1, 0, 0, 1, 0, 1], dtype=np.int32)


def rankings(n, seed=0):
    rng = np.random.default_rng(seed)
    base = rng.normal(size=len(Y))
    return [(i, (base + 0.4 * rng.normal(size=len(Y))).round(1)) for i in range(n + 1)]


def flags(scores, window):
    found = np.zeros(len(Y), bool)
    for a, b in itertools.pairwise(INDPTR):
        if a == b:
            continue
        neg, pos = naive_outliers(scores[a:b], Y[a:b], min(window.cutoff, b - a), window.rule)
        wanted = {"neg": neg, "pos": pos, "all": neg | pos}[window.kind]
        found[a + np.array(sorted(wanted), int)] = True
    return found


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 1000),
    st.integers(1, 6),
    st.integers(0, 5),
    st.integers(1, 6),
    st.sampled_from(["neg", "pos", "all"]),
    st.sampled_from(["paper", "reference"]),
    st.booleans(),
)
def test_consistent_outliers_are_the_intersection_over_trees_s_plus_1_to_e(
    seed, cutoff, start, length, kind, rule, f0
):
    window = Window(cutoff, start, start + length, kind, rule, include_f0=f0)
    seen = rankings(14, seed)
    found = SOUR(Y, INDPTR, window).watch(seen)
    first = 0 if f0 and start == 0 else start + 1
    inside = [flags(scores, window) for trees, scores in seen if first <= trees <= start + length]
    np.testing.assert_array_equal(found.outliers(), np.all(inside, axis=0))
    np.testing.assert_allclose(found.frequency, np.mean(inside, axis=0))
    np.testing.assert_array_equal(found.counts, np.sum(inside, axis=0))


@pytest.mark.parametrize("p", [0.05, 0.1, 0.29, 0.5, 0.9, 1.0])
def test_p_sour_needs_the_floor_of_the_share(p):
    seen = rankings(100)
    window = Window(3, 0, 100, "all", min_frequency=p)
    found = SOUR(Y, INDPTR, window).watch(seen)
    counts = np.sum([flags(s, window) for t, s in seen if t >= 1], axis=0)
    np.testing.assert_array_equal(found.outliers(), counts >= round(p * 100))
    if p == 1.0:
        plain = SOUR(Y, INDPTR, Window(3, 0, 100, "all")).watch(seen)
        np.testing.assert_array_equal(found.outliers(), plain.outliers())


def test_a_small_share_never_means_everybody():
    found = SOUR(Y, INDPTR, Window(3, 0, 5, "all", min_frequency=0.1)).watch(rankings(5))
    assert found.needed == 1
    assert not found.outliers().all()


def test_one_streak_counter_answers_for_every_start_and_kind():
    seen = rankings(20)
    one = SOUR(Y, INDPTR, Window(3, 0, 20, "all"), keep="streak").watch(seen)
    for start in range(20):
        for kind in ("neg", "pos", "all"):
            alone = SOUR(Y, INDPTR, Window(3, start, 20, kind), n_jobs=1).watch(seen)
            np.testing.assert_array_equal(one.outliers(start=start, kind=kind), alone.outliers())


def test_one_lead_counter_answers_for_every_end_and_the_sets_are_nested():
    seen = rankings(20)
    one = SOUR(Y, INDPTR, Window(3, 0, 20, "all"), keep="lead").watch(seen)
    before = np.ones(len(Y), bool)
    for end in range(1, 21):
        alone = SOUR(Y, INDPTR, Window(3, 0, end, "all")).watch(seen)
        np.testing.assert_array_equal(one.outliers(end=end), alone.outliers())
        assert (one.outliers(end=end) <= before).all()
        before = one.outliers(end=end)


def test_the_detector_keeps_two_bytes_a_document_whatever_the_number_of_trees():
    found = SOUR(Y, INDPTR, Window(3, 0, 60_000), n_jobs=1)
    for trees, scores in rankings(300):
        found(trees, scores)
        assert found.counts.nbytes == 2 * len(Y)
        assert found.weighed.nbytes == 0
    per_document = {k for k, v in vars(found).items() if isinstance(v, np.ndarray) and len(v) == len(Y)}
    assert per_document == {"y", "counts"}
    assert np.shares_memory(found.y, Y)


def test_a_ranking_is_counted_once():
    found = SOUR(Y, INDPTR, Window(3, 0, 9, "all"))
    scores = rankings(1)[1][1]
    found(1, scores)
    once = found.counts.copy()
    found(1, scores)
    np.testing.assert_array_equal(found.counts, once)
    assert found.seen == 1


def test_threads_change_nothing():
    seen = rankings(30)
    one, two = (
        SOUR(Y, INDPTR, Window(3, 0, 30, "all"), evidence="score", n_jobs=n).watch(seen) for n in (1, 2)
    )
    assert one.counts.tobytes() == two.counts.tobytes()
    assert one.weighed.tobytes() == two.weighed.tobytes()


def test_score_evidence_lies_below_the_frequency_and_orders_what_ranks_tie():
    y, indptr = np.array([0, 0, 1]), np.array([0, 3])
    found = SOUR(y, indptr, Window(2, 0, 2, "neg"), evidence="score")
    found.watch([(1, np.array([9.0, 1.0, 0.0])), (2, np.array([8.0, 1.0, 0.0]))])
    assert found.frequency.tolist() == [1.0, 1.0, 0.0]
    assert found.doubt[0] > found.doubt[1] > 0
    np.testing.assert_allclose(found.doubt[1], np.tanh(0.5), rtol=1e-6)


def test_epochs_of_anything_will_do():
    found = SOUR(Y, INDPTR, Window(3, 2, 5, "all"))
    found.watch((epoch, scores.astype(np.float32)) for epoch, scores in rankings(5))
    assert found.seen == 3


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"kind": "ngative"}, "unknown kind of outlier"),
        ({"rule": "papers"}, "Did you mean 'paper'"),
        ({"cutoff": 0}, "cutoff must be an integer >= 1"),
        ({"start": 5, "end": 5}, "start and end must satisfy"),
        ({"end": 70_000}, "at most 65,535 models"),
        ({"min_frequency": 0.0}, "min_frequency must be a number > 0 and <= 1"),
        ({"highest_negative": -1}, "highest_negative must be an integer >= 0"),
    ],
)
def test_windows_that_make_no_sense(options, message):
    with pytest.raises(CleanrankError, match=message):
        Window(**options)


def test_mistakes_are_named():
    found = SOUR(Y, INDPTR, Window(3, 0, 5))
    with pytest.raises(CleanrankError, match="must have seen a model with 1 to 5 trees"):
        found.outliers()
    with pytest.raises(CleanrankError, match="scores must be finite"):
        found.watch([(1, np.full(len(Y), np.nan))])
    with pytest.raises(CleanrankError, match="one value per row"):
        found(1, np.zeros(3))
    found.watch(rankings(5))
    with pytest.raises(CleanrankError, match="needs keep='streak'"):
        found.outliers(start=2)
    with pytest.raises(CleanrankError, match="must end at the number of rows"):
        SOUR(Y, np.array([0, 3]))


def test_a_large_window_fits_when_it_is_short():
    assert Window(start=100_000, end=100_100).holds(100_001)


def test_suggested_grades_stand_on_the_other_side():
    data = cr.from_arrays(np.zeros((6, 1)), [0, 3, 2, 0, 1, 0], group=[6])
    issues = np.array([True, False, False, False, True, False])
    scores = np.array([6.0, 5, 4, 3, 2, 1])
    assert suggest(data, issues, scores=scores).tolist() == [3, 3, 2, 0, 0, 0]
    assert suggest(data, issues).tolist() == [1, 3, 2, 0, 0, 0]
    assert suggest(data, issues & False).tolist() == data.y.tolist()
    assert suggest(data, np.array([True] + [False] * 5), floor=1).tolist()[0] == 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cutoff": 2.5}, "cutoff must be an integer >= 1; got 2.5"),
        ({"start": True}, "start must be an integer; got True"),
        ({"start": "5"}, "start must be an integer; got '5'"),
        ({"start": -1}, "got -1 and 1000"),
        ({"end": None}, "end must be an integer; got None"),
        ({"end": 65_535, "include_f0": True}, "at most 65,535 models"),
        ({"min_frequency": float("nan")}, "min_frequency must be a number > 0 and <= 1"),
        ({"min_frequency": "often"}, "min_frequency must be a number > 0 and <= 1"),
        ({"min_frequency": 1.1}, "min_frequency must be a number > 0 and <= 1"),
        ({"highest_negative": 0.5}, "highest_negative must be an integer"),
    ],
)
def test_every_setting_of_a_window_is_checked(options, message):
    with pytest.raises(CleanrankError, match=message):
        Window(**options)


def test_whole_numbers_of_numpy_and_the_longest_window_will_do():
    window = Window(cutoff=np.int32(3), start=np.int64(0), end=np.int64(65_535))
    assert window.holds(1)
    assert window.holds(65_535)
    assert not window.holds(0)
    assert Window(end=65_534, include_f0=True).holds(0)


@pytest.mark.parametrize(
    ("y", "indptr", "message"),
    [
        (Y, [0, 9, 5, 13], "indptr must rise from 0"),
        (Y, [2, 13], "indptr must rise from 0"),
        (Y, [], "indptr must rise from 0"),
        (Y, [0, 12], "must end at the number of rows"),
        (Y[None], [0, 13], "y must be integer grades"),
        (Y + 0.5, [0, 13], "y must be integer grades"),
        (-Y, [0, 13], "y must be integer grades >= 0, one per row; got -2"),
        (["a"], [0, 1], "y must be integer grades"),
    ],
)
def test_what_would_send_the_kernels_astray_is_refused(y, indptr, message):
    with pytest.raises(CleanrankError, match=message):
        SOUR(y, np.array(indptr, dtype=np.int64))


def test_rankings_and_tables_must_be_of_the_rows_watched(toy):
    found = SOUR(Y, INDPTR, Window(3, 0, 5))
    with pytest.raises(CleanrankError, match=r"order must have one place per row \(13\); got 2"):
        found(1, np.zeros(len(Y)), np.array([1, 0]))
    found(1, list(range(len(Y))))
    assert found.seen == 1
    with pytest.raises(CleanrankError, match="data must be the 13 rows that were watched"):
        found.table(toy)


def test_no_rows_have_no_outliers():
    found = SOUR(np.zeros(0, dtype=int), np.array([0]), Window(3, 0, 5))
    found(1, np.zeros(0))
    assert found.outliers().tolist() == []


@pytest.mark.parametrize(("models", "p", "needed"), [(15, 0.9, 13), (7, 0.5, 3), (3, 0.99, 2), (10, 0.3, 3)])
def test_a_share_that_is_no_whole_number_of_models_is_rounded_down(models, p, needed):
    found = SOUR(Y, INDPTR, Window(3, 0, models, "all", min_frequency=p)).watch(rankings(models))
    assert found.needed == needed
    np.testing.assert_array_equal(found.outliers(), found.counts >= needed)


def test_the_model_without_trees_counts_where_asked():
    assert Window(3, 0, 5).first == 1
    assert Window(3, 0, 5, include_f0=True).first == 0
    assert Window(3, 2, 5, include_f0=True).first == 3


def test_kinds_follow_the_highest_grade_that_is_not_relevant():
    y = np.array([0, 1, 2, 3])
    for highest, neg in ((0, [1, 0, 0, 0]), (1, [1, 1, 0, 0]), (2, [1, 1, 1, 0])):
        found = SOUR(y, np.array([0, 4]), Window(2, 0, 5, "all", highest_negative=highest))
        assert found.of_kind("neg").astype(int).tolist() == neg
        assert found.of_kind("pos").astype(int).tolist() == [1 - each for each in neg]
