from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.issues.isolation import find_isolated


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3)).astype(np.float32)
    X[:4] += 12
    return cr.from_arrays(X, [0, 1, 0, 1] * 100, group=[20] * 20)


def test_far_rows_are_doubted_most(data):
    found = find_isolated(data)
    assert set(np.argsort(-found.doubt)[:4]) == {0, 1, 2, 3}
    assert found.is_label_issue[:4].all()
    np.testing.assert_array_equal(found.suggested_label, data.y)


def test_the_score_is_that_of_the_paper(data):
    from sklearn.ensemble import IsolationForest

    forest = IsolationForest(n_estimators=100, max_samples=256, random_state=5).fit(data.X)
    found = find_isolated(data, seed=5)
    np.testing.assert_allclose(found.reasons["isolation"], -forest.score_samples(data.X))
    np.testing.assert_array_equal(found.is_label_issue, forest.predict(data.X) == -1)


def test_kinds_part_the_issues(data):
    issues = {kind: find_isolated(data, kind=kind).is_label_issue for kind in ("neg", "pos", "all")}
    np.testing.assert_array_equal(issues["neg"] | issues["pos"], issues["all"])
    assert not data.y[issues["neg"]].any()
    assert data.y[issues["pos"]].all()


def test_contamination_sets_the_share(data):
    assert find_isolated(data, contamination=0.05).n_issues == 20


def test_missing_values_and_sparse_features_work(data):
    X = data.X.copy()
    X[5, 1] = np.nan
    assert find_isolated(cr.from_arrays(X, data.y, group=data.lengths)).is_label_issue[:4].all()
    sparse = cr.from_arrays(scipy.sparse.csr_matrix(data.X), data.y, group=data.lengths)
    assert find_isolated(sparse).is_label_issue[:4].all()


def test_seeds_repeat_and_kinds_are_checked(data):
    assert find_isolated(data, seed=1).doubt.tobytes() == find_isolated(data, seed=1).doubt.tobytes()
    with pytest.raises(CleanrankError, match="unknown kind of outlier"):
        find_isolated(data, kind="none")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sample": 0}, "sample must be an integer >= 1"),
        ({"n_estimators": 0}, "n_estimators must be an integer >= 1"),
        ({"contamination": 0.9}, "contamination must be 'auto' or a share"),
        ({"contamination": "some"}, "contamination must be 'auto' or a share"),
        ({"seed": -1}, "seed must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_settings_are_checked(toy, options, words):
    with pytest.raises(CleanrankError, match=words):
        find_isolated(toy, **options)


def test_no_rows_are_told_and_missing_sparse_values_count_as_zero(toy):
    with pytest.raises(CleanrankError, match="at least one document"):
        find_isolated(toy.select([]))
    X = toy.X.copy()
    X[::3, 0] = np.nan
    dense, sparse = (find_isolated(replace(toy, X=each)) for each in (X, scipy.sparse.csr_matrix(X)))
    np.testing.assert_allclose(sparse.doubt, dense.doubt)
