from collections import Counter

import numpy as np
import pytest
import scipy.sparse

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.issues.contradictions import find_contradictions


def repeated(seed, n=200, queries=10):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(n, 3)).astype(np.float32)
    return cr.from_arrays(X, rng.integers(0, 3, n), qid=np.sort(rng.integers(0, queries, n)))


def naive(data, across, blanks):
    doubt, suggested = np.zeros(data.n_docs), data.y.copy()
    qid = data.qid
    for i in range(data.n_docs):
        if not blanks and not data.X[i].any():
            continue
        same = [
            j for j in range(data.n_docs) if (data.X[j] == data.X[i]).all() and (across or qid[j] == qid[i])
        ]
        twins = [j for j in same if j != i]
        if twins:
            doubt[i] = np.mean([data.y[j] != data.y[i] for j in twins])
            counts = Counter(data.y[same].tolist())
            best = max(counts, key=lambda g: (counts[g], -g))
            if doubt[i] > 0.5 and counts[best] > counts[data.y[i]]:
                suggested[i] = best
    return doubt, suggested


@pytest.mark.parametrize("across", [False, True])
@pytest.mark.parametrize("blanks", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_doubt_is_the_share_of_twins_that_disagree(seed, sparse, blanks, across):
    data = repeated(seed)
    wanted, suggested = naive(data, across, blanks)
    if sparse:
        data = cr.from_arrays(scipy.sparse.csr_matrix(np.asarray(data.X)), data.y, qid=data.qid)
    found = find_contradictions(data, across=across, blanks=blanks)
    np.testing.assert_allclose(found.doubt, wanted)
    np.testing.assert_array_equal(found.suggested_label, suggested)
    np.testing.assert_array_equal(found.is_label_issue, suggested != data.y)


@pytest.mark.parametrize("sparse", [False, True])
def test_near_twins_need_a_tolerance(sparse):
    rng = np.random.default_rng(0)
    X = np.repeat(10 * rng.normal(size=(50, 4)), 4, axis=0)
    y = np.repeat(rng.integers(0, 2, 50), 4)
    X += 1e-6 * rng.normal(size=X.shape)
    wrong = np.arange(200) % 4 == 0
    y[wrong] = 1 - y[wrong]
    features = scipy.sparse.csr_matrix(X) if sparse else X
    data = cr.from_arrays(features, y, group=[8] * 25)
    assert not find_contradictions(data).is_label_issue.any()
    found = find_contradictions(data, tolerance=0.01)
    assert found.precision(wrong) == 1.0
    assert found.recall(wrong) > 0.95


def test_missing_values_are_values(toy):
    X = np.array([[np.nan, 1], [np.nan, 1], [np.nan, 1], [0, 1]])
    found = find_contradictions(cr.from_arrays(X, [0, 0, 1, 1], group=[4]))
    assert found.doubt.tolist() == [0.5, 0.5, 1.0, 0.0]
    assert find_contradictions(toy).n_issues == 0


def test_mistakes_are_named(toy):
    with pytest.raises(CleanrankError, match="tolerance must be a number >= 0"):
        find_contradictions(toy, tolerance=-1)
