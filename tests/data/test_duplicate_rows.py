import numpy as np
import scipy.sparse

import cleanrank as cr
from cleanrank.data.duplicate_rows import (
    across_queries,
    changes,
    first_rows,
    same_ids,
    shared_rows,
    starts_of,
    within_queries,
)
from cleanrank.ragged import query_of_row


def test_groups_are_those_of_a_dictionary():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(300, 3)).astype(np.float32)
    X[X == 2] = np.nan
    data = cr.from_arrays(X, np.zeros(300, int), qid=np.sort(rng.integers(0, 30, 300)))
    first, blank = first_rows(data)
    query = query_of_row(data.indptr)
    seen = {}
    keys = [tuple(str(v) for v in row) for row in data.X]
    assert first.tolist() == [seen.setdefault(key, i) for i, key in enumerate(keys)]
    np.testing.assert_array_equal(blank, [(row == 0).all() for row in data.X])
    shared = shared_rows(first)
    assert shared.tolist() == [keys.count(key) > 1 for key in keys]
    within = within_queries(first, query, shared)
    both = [(q, key) for q, key in zip(query, keys, strict=True)]
    for i in range(300):
        twins = [j for j in range(300) if both[j] == both[i]]
        assert (within[i] >= 0) == (len(twins) > 1)
        assert len(twins) == 1 or set(np.flatnonzero(within == within[i])) == set(twins)
    across = across_queries(first, query, shared)
    for i in range(300):
        assert (across[i] >= 0) == (len({query[j] for j in range(300) if keys[j] == keys[i]}) > 1)


def test_sparse_rows_are_found_like_dense_ones():
    X = np.array([[1, 0, 2], [0, 0, 0], [1, 0, 2], [1, 2, 0]], dtype=np.float32)
    for features in (X, scipy.sparse.csr_matrix(X)):
        first, blank = first_rows(cr.from_arrays(features, [0] * 4, group=[4]))
        assert first.tolist() == [0, 1, 0, 3]
        assert blank.tolist() == [False, True, False, False]


def test_ids_and_runs():
    query = np.array([0, 0, 0, 1, 1])
    found = same_ids(np.array(["a", "b", "a", "a", ""]), query)
    assert found[0] == found[2] >= 0
    assert (found[[1, 3, 4]] == -1).all()
    assert changes(np.array([3, 3, 4, 3])).tolist() == [True, False, True, True]
    assert starts_of(np.array([3, 3, 4, 3])).tolist() == [0, 2, 3]
    assert len(starts_of(np.array([]))) == 0
