"""Features that know nothing (a wrong join) condemn no label, and say so; those that know little, few."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import InvalidInputError
from cleanrank.issues.feature_signal import _thinned, feature_signal
from cleanrank.issues.find import combine
from cleanrank.issues.posterior import in_order_of
from cleanrank.issues.table import read_issues
from cleanrank.noise.signal import Signal

SHARES = {"rare": (0.8, 0.15, 0.05), "even": (1 / 3, 1 / 3, 1 / 3), "mixed": (0.5, 0.3, 0.2)}


def unrelated(shares, n=400, seed=0):
    """Random features beside labels of these shares."""
    rng = np.random.default_rng(seed)
    return cr.from_arrays(rng.normal(size=(n, 10)), rng.choice(3, n, p=shares), group=[20] * (n // 20))


def joined_wrong(data, seed=1):
    """The same features and labels, in another order against each other."""
    return replace(data, X=data.X[np.random.default_rng(seed).permutation(data.n_docs)])


def found(data, method="auto", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cr.find_label_issues(data, method, **options)


@pytest.fixture(scope="module")
def judged():
    return cr.make_ranking(60, 8, docs_per_query=20, signal=0.95, seed=4)


@pytest.mark.parametrize("method", ["auto", "confident", "loss", "forgetting", "sour"])
def test_a_wrong_join_condemns_nothing_and_warns_with_figures(judged, method):
    options = {"end": 20} if method == "sour" else {"folds": 2}
    with pytest.warns(UserWarning, match=r"AUC \.\d+ \[\.\d+, \.\d+\].*is the join right"):
        issues = cr.find_label_issues(joined_wrong(judged), method, **options)
    assert issues.n_issues == 0
    assert not issues.signal.is_shown
    np.testing.assert_array_equal(issues.suggested_label, issues.given_label)
    with pytest.raises(
        InvalidInputError, match=r"AUC .* Mend the data, mark issues by hand, or give min_doubt"
    ):
        cr.clean(joined_wrong(judged), issues)


@pytest.mark.parametrize("shares", SHARES)
def test_random_features_raise_no_issues(shares):
    share = [found(unrelated(SHARES[shares], seed=seed), folds=2).share for seed in range(6)]
    assert np.mean(share) < 0.02


@pytest.mark.slow
@pytest.mark.parametrize("n", [400, 4000])
@pytest.mark.parametrize("shares", SHARES)
def test_random_features_raise_below_two_percent_over_fifty_seeds(shares, n):
    share = [found(unrelated(SHARES[shares], n, seed)).share for seed in range(50)]
    assert np.mean(share) < 0.02


def test_right_labels_that_hang_on_something_unseen_are_left_alone():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(4000, 6))
    utility = 0.3 * X[:, 0] + 0.7 * rng.normal(size=4000)
    y = np.digitize(utility, np.quantile(utility, [0.8, 0.95]))
    issues = found(cr.from_arrays(X, y, group=[20] * 200))
    assert issues.signal.is_shown
    assert issues.shares_by_grade()[2] < 0.05


def test_constant_features_say_that_nothing_can_be_known():
    data = unrelated(SHARES["mixed"])
    with pytest.warns(UserWarning, match="not seen to tell anything"):
        assert cr.find_label_issues(replace(data, X=np.ones_like(data.X))).n_issues == 0


def test_known_noise_without_signal_condemns_only_what_is_known_to_be_wrong():
    data = unrelated(SHARES["rare"])
    known = np.full(data.n_docs, -1)
    known[:3] = (data.y[:3] + 1) % 3
    issues = found(data, noise=[[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]], known=known)
    assert np.flatnonzero(issues.is_label_issue).tolist() == [0, 1, 2]
    assert issues.suggested_label[:3].tolist() == known[:3].tolist()
    assert len(cr.clean(data, issues).data) == data.n_docs - 3


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_the_signal_travels_with_the_file(judged, suffix, tmp_path):
    issues = found(joined_wrong(judged), folds=2)
    issues.save(tmp_path / f"issues.{suffix}")
    again = read_issues(tmp_path / f"issues.{suffix}")
    assert again.signal == issues.signal
    assert not set(again.reasons) & {"signal", "signal_low", "signal_high"}
    with pytest.raises(InvalidInputError, match="features that tell something"):
        cr.clean(joined_wrong(judged), again)
    assert cr.clean(joined_wrong(judged), again, min_doubt=1.0).data.n_docs == judged.n_docs


def test_whoever_marks_issues_by_hand_is_heard(judged):
    issues = found(joined_wrong(judged), folds=2)
    marked = replace(issues, is_label_issue=np.arange(len(issues)) < 2)
    assert cr.clean(joined_wrong(judged), marked).data.n_docs == judged.n_docs - 2


def test_detectors_that_learn_nothing_from_features_have_no_signal(judged):
    assert found(joined_wrong(judged), "contradictions").signal is None
    assert found(joined_wrong(judged), "isolation").signal is None


def test_several_tables_have_the_best_of_their_signals(judged):
    weak, strong = (replace(found(judged, folds=2), signal=Signal(a, a - 0.1, a + 0.1)) for a in (0.5, 0.8))
    none = found(judged, "contradictions")
    assert combine({"weak": weak, "none": none, "strong": strong}).signal == strong.signal
    assert combine({"none": none}).signal is None


def test_the_signal_of_large_data_is_measured_on_some_queries(judged, monkeypatch):
    monkeypatch.setattr("cleanrank.issues.feature_signal.MOST_ROWS", 300)
    assert feature_signal(judged).is_shown
    assert not feature_signal(joined_wrong(judged)).is_shown


def test_values_dealt_out_anew_keep_the_order_and_its_ties():
    values, order = np.array([0.4, 0.1, 0.3, 0.2]), np.array([5.0, 7.0, 7.0, 1.0])
    np.testing.assert_allclose(in_order_of(values, order), [0.2, 0.35, 0.35, 0.1])


@pytest.mark.parametrize("queries", [2, 3, 4])
def test_few_queries_mean_fewer_folds(queries):
    data = cr.make_ranking(queries, 5, docs_per_query=30, seed=0)
    assert len(found(data)) == data.n_docs


def test_one_query_is_refused_in_words():
    data = cr.make_ranking(1, 5, docs_per_query=30, seed=0)
    with pytest.raises(InvalidInputError, match="need at least two queries"):
        cr.find_label_issues(data)


def test_grades_of_256_and_more_are_refused_in_words():
    data = unrelated(SHARES["mixed"])
    y = data.y.copy()
    y[7] = 1000
    for act in (cr.find_label_issues, cr.diagnose, lambda d: cr.corrupt(d, rate=0.1)):
        with pytest.raises(InvalidInputError, match=r"below 256; got 1000 at row 7 .*merge_grades"):
            act(data.with_labels(y))


def test_long_queries_with_few_relevant_documents_show_their_signal():
    """Of lists of thousands a sample of whole queries would hold a handful of relevant documents."""
    shape = {"docs_per_query": (1500, 0.2), "grades": (0.996, 0.002, 0.002)}
    data = cr.make_ranking(120, 6, signal=0.95, seed=3, **shape)
    signal = feature_signal(data)
    assert signal.is_shown
    assert signal.high - signal.low < 0.2
    wrong = feature_signal(joined_wrong(data))
    assert not wrong.is_shown


@pytest.mark.parametrize(("n", "budget"), [(50, 100), (1000, 100), (1000, 7)])
def test_a_query_is_thinned_by_grade_and_keeps_what_is_rare(n, budget):
    y = np.zeros(n, dtype=np.int32)
    y[::200], y[5::400] = 1, 2
    kept = _thinned(y, budget, np.random.default_rng(0))
    assert len(kept) == min(n, budget)
    assert (np.diff(kept) > 0).all()
    assert (y[kept] > 0).sum() == min((y > 0).sum(), n if n <= budget else budget // 2)
