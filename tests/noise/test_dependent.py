"""What holds for noise that depends on the document or the query."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse, stats

import cleanrank as cr
from cleanrank.data.split import fold_of_query
from cleanrank.errors import CleanrankError
from cleanrank.noise.dependent import DEPENDENT, MOST, _scaled, hard_documents, suggested_grades
from cleanrank.noise.profiles import make_profile

FIVE = cr.make_ranking(120, 6, docs_per_query=20, seed=3)
TWO = FIVE.with_labels(np.minimum(FIVE.y, 1))
CASES = [pytest.param(name, data, id=f"{name}-{data.n_grades}") for name in DEPENDENT for data in (FIVE, TWO)]


@pytest.mark.parametrize(("name", "data"), CASES)
def test_the_mean_probability_is_the_rate_and_the_matrix_is_counted(name, data):
    C = data.n_grades
    for rate in (0.05, 0.3):
        noisy = cr.corrupt(data, name, rate, seed=2)
        rates = noisy.row_rates
        assert rates.mean() == pytest.approx(rate)
        assert rates.min() >= 0
        assert rates.max() <= MOST
        assert abs(noisy.rate - rate) < 4 * np.sqrt((rates * (1 - rates)).sum()) / len(rates)
        assert 0 <= noisy.data.y.min() <= noisy.data.y.max() < C
        np.testing.assert_array_equal(noisy.changed, noisy.data.y != data.y)
        counts = noisy.profile.matrix * np.bincount(data.y, minlength=C)[:, None]
        for true in range(C):
            np.testing.assert_allclose(counts[true], np.bincount(noisy.data.y[data.y == true], minlength=C))


@pytest.mark.parametrize(("name", "data"), CASES)
def test_a_higher_rate_changes_what_a_lower_one_changed_to_the_same_grades(name, data):
    low, middle, high = (cr.corrupt(data, name, rate, seed=5) for rate in (0.1, 0.2, 0.4))
    for less, more in ((low, middle), (middle, high)):
        assert (less.data.y == more.data.y)[less.changed].all()
        assert less.rate < more.rate


@pytest.mark.parametrize(("name", "data"), CASES)
def test_same_seed_same_noise_and_rate_0_none(name, data):
    first, second, other = (cr.corrupt(data, name, 0.3, seed=s).data.y for s in (1, 1, 2))
    np.testing.assert_array_equal(first, second)
    assert (first != other).any()
    none = cr.corrupt(data, name, 0.0)
    assert not none.changed.any()
    np.testing.assert_array_equal(none.profile.matrix, np.eye(data.n_grades))


@pytest.mark.parametrize(("name", "data"), CASES)
def test_rows_that_nobody_judged_stay_and_count_for_nothing(name, data):
    judged = np.random.default_rng(1).random(data.n_docs) < 0.7
    judged[: data.indptr[3]] = False  # nor has a query without any a part in it
    partly = replace(data, judged=judged, y=np.where(judged, data.y, 0))
    noisy = cr.corrupt(partly, name, 0.3, seed=2, n_grades=data.n_grades)
    assert not noisy.changed[~judged].any()
    assert noisy.row_rates[judged].mean() == pytest.approx(0.3)
    alone = cr.corrupt(partly.select(judged), name, 0.3, seed=2, n_grades=data.n_grades)
    np.testing.assert_array_equal(noisy.data.y[judged], alone.data.y)
    assert noisy.profile == alone.profile


def by_features(noisy, data):
    """The p-value of equal scores (of a linear model) where grade 0 was kept and where it was not."""
    X = np.column_stack([data.X, np.ones(data.n_docs)])
    scores = X @ np.linalg.lstsq(X, data.y, rcond=None)[0]
    rows = data.y == 0
    return stats.mannwhitneyu(scores[rows & noisy.changed], scores[rows & ~noisy.changed]).pvalue


def by_queries(noisy, data):
    """The p-value of equal shares of errors in all queries, among documents of grade 0."""
    rows = data.y == 0
    query = np.repeat(np.arange(data.n_queries), data.lengths)[rows]
    table = [np.bincount(query[noisy.changed[rows] == c], minlength=data.n_queries) for c in (False, True)]
    return stats.chi2_contingency(np.array(table)[:, np.sum(table, axis=0) > 0]).pvalue


@pytest.mark.parametrize("data", [FIVE, TWO], ids=["5", "2"])
def test_errors_depend_on_what_they_are_said_to_depend_on(data):
    hard, lenient = (cr.corrupt(data, name, 0.3, seed=4) for name in DEPENDENT)
    uniform = cr.corrupt(data, "uniform", 0.3, seed=4)
    assert by_features(hard, data) < 1e-12
    assert by_queries(lenient, data) < 1e-12
    assert by_features(lenient, data) > 1e-3 < by_features(uniform, data)
    assert by_queries(uniform, data) > 1e-3


def test_wrong_grades_are_near_what_the_features_suggest():
    suggested = suggested_grades(FIVE, 5)
    _, wrong = hard_documents(FIVE, 5, np.random.default_rng(7))
    assert (wrong != FIVE.y).all()
    expected = np.array([[0.5 ** abs(m - s) if m != y else 0.0 for m in range(5)] for s, y in
                         zip(suggested, FIVE.y, strict=True)])  # fmt: skip
    expected /= expected.sum(axis=1, keepdims=True)
    high = suggested > 1.0
    for rows in (high, ~high, FIVE.y == 2):
        found = np.bincount(wrong[rows], minlength=5)
        deviation = np.sqrt((expected * (1 - expected))[rows].sum(axis=0))
        assert (abs(found - expected[rows].sum(axis=0)) <= 4 * deviation).all()


def test_a_judge_moves_the_grades_of_a_query_one_way_by_one():
    noisy = cr.corrupt(FIVE, "lenient-queries", 0.3, seed=1)
    moves = noisy.data.y - FIVE.y
    for start, end in zip(FIVE.indptr[:-1], FIVE.indptr[1:], strict=True):
        assert len(set(moves[start:end][noisy.changed[start:end]].tolist())) <= 1
    assert set(moves.tolist()) == {-1, 0, 1}
    assert not noisy.row_rates[(moves < 0) & (FIVE.y == 0)].any()


def test_suggested_grades_against_sums_by_hand():
    rng = np.random.default_rng(0)
    X = FIVE.X.copy()
    X[rng.random(X.shape) < 0.2] = np.nan
    X[:, 3] = 7.0
    data = replace(FIVE, X=X)
    ranks = np.zeros(X.shape)
    for i in range(X.shape[1]):
        known = X[~np.isnan(X[:, i]), i]
        for row in range(len(X)):
            if not np.isnan(X[row, i]):
                below, equal = (known < X[row, i]).sum(), (known == X[row, i]).sum()
                ranks[row, i] = (below + equal / 2) / len(known) - 0.5
    fold = np.repeat(fold_of_query(data, 5), data.lengths)
    predicted = np.zeros(len(X))
    for f in range(5):
        train, test = fold != f, fold == f
        centre, mean = ranks[train].mean(axis=0), data.y[train].mean()
        # The penalty as rows of its own: plain least squares.
        A = np.vstack([ranks[train] - centre, np.sqrt(train.sum() / 1000) * np.eye(X.shape[1])])
        target = np.concatenate([data.y[train] - mean, np.zeros(X.shape[1])])
        predicted[test] = mean + (ranks[test] - centre) @ np.linalg.lstsq(A, target, rcond=None)[0]
    suggested = suggested_grades(data, 5)
    assert stats.spearmanr(suggested, predicted).statistic > 1 - 1e-6
    # Spread over the scale, they are distributed as the grades are.
    assert abs(np.bincount(np.rint(suggested).astype(int), minlength=5) - np.bincount(data.y)).max() <= 1


def test_sparse_features_suggest_what_dense_ones_do():
    X = np.where(FIVE.X > 0, FIVE.X, 0)
    dense, thin = (suggested_grades(replace(FIVE, X=x), 5) for x in (X, sparse.csr_matrix(X)))
    np.testing.assert_array_equal(dense, thin)


def test_probabilities_have_the_mean_asked_for():
    rng = np.random.default_rng(1)
    for _ in range(100):
        n = int(rng.integers(2, 40))
        prone = rng.exponential(size=n) ** 3 * (rng.random(n) < rng.random())
        prone[0] = 1.0
        rate = float(rng.random() * MOST * (prone > 0).mean())
        rates = _scaled(prone, rate, "some")
        assert rates.mean() == pytest.approx(rate)
        free = (rates < MOST) & (prone > 0)
        ratio = rates[free] / prone[free]
        assert ratio.size == 0 or np.ptp(ratio) < 1e-12 * ratio.max() + 1e-300
        assert (rates[~free & (prone > 0)] == MOST).all()


def test_a_rate_that_the_grades_do_not_allow_is_said():
    mostly = FIVE.with_labels((np.arange(FIVE.n_docs) % 20 == 0).astype(int))
    with pytest.warns(UserWarning, match=r"can change 0\.\d+ of these labels at the most, not 0\.8"):
        noisy = cr.corrupt(mostly, "lenient-queries", 0.8, seed=0)
    assert set(noisy.row_rates.tolist()) == {0.0, MOST}


def test_mistakes_are_named():
    one = FIVE.select_queries([0])
    blank = replace(FIVE, X=np.full((FIVE.n_docs, 2), 3.0, dtype=np.float32))
    bare = replace(FIVE, X=np.zeros((FIVE.n_docs, 0), dtype=np.float32), feature_names=None)
    for name in DEPENDENT:
        with pytest.raises(CleanrankError, match=f"{name} noise needs at least two queries .*; got 1"):
            cr.corrupt(one, name, 0.3)
        with pytest.raises(CleanrankError, match="needs labels of at least two grades; got grade 1 alone"):
            cr.corrupt(FIVE.with_labels(np.ones(FIVE.n_docs, dtype=int)), name, 0.3)
        with pytest.raises(CleanrankError, match=r"rate must be given with a named profile\. Say rate"):
            cr.corrupt(FIVE, name)
        with pytest.raises(CleanrankError, match=r"noise rate must be a number >= 0 and <= 1; got 1\.5"):
            cr.corrupt(FIVE, name, 1.5)
        with pytest.raises(CleanrankError, match=f"options do not go with {name} noise"):
            cr.corrupt(FIVE, name, 0.3, spread=0.1)
        with pytest.raises(CleanrankError, match=f"must have a matrix; got '{name}', which has none"):
            make_profile(name, 0.3, 5)
        with pytest.raises(CleanrankError, match="must have a matrix"):
            cr.corrupt(FIVE, f"{name}:0.3")
    for data, value in ((blank, "2 that do not vary"), (bare, "none")):
        with pytest.raises(CleanrankError, match=f"features that tell documents apart; got {value}"):
            cr.corrupt(data, "hard-documents", 0.3)
        assert cr.corrupt(data, "lenient-queries", 0.3).changed.any()
