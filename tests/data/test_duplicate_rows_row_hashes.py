import numpy as np
import scipy.sparse

from cleanrank.data.duplicate_rows import first_of_hash, hash_dense, hash_sparse


def hashed(X):
    out = np.empty(len(X), dtype=np.uint64)
    hash_dense(np.ascontiguousarray(X, dtype=np.float32).view(np.uint32), out)
    return out


def test_dense_and_sparse_rows_hash_alike():
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(200, 9)) * (rng.random((200, 9)) < 0.4)).astype(np.float32)
    stored = scipy.sparse.csr_matrix(X)
    out = np.empty(200, dtype=np.uint64)
    hash_sparse(stored.data.view(np.uint32), stored.indices, stored.indptr, out)
    assert np.array_equal(out, hashed(X))


def test_values_columns_and_signs_matter_but_not_the_sign_of_zero_nor_the_kind_of_nan():
    a, b, c, d = hashed([[1, 2], [2, 1], [-1, 2], [1, 3]])
    assert len({a, b, c, d}) == 4
    assert hashed([[0.0, 1]])[0] == hashed([[-0.0, 1]])[0]
    other_nan = np.array([[0xFFC00001, 0]], dtype=np.uint32).view(np.float32)
    assert hashed([[np.nan, 0]])[0] == hashed(other_nan)[0]
    assert hashed([[0.0, -0.0]])[0] == 0


def test_similar_rows_do_not_collide():
    grid = np.array(np.meshgrid(*[np.arange(32)] * 3)).reshape(3, -1).T
    assert len(np.unique(hashed(grid))) == len(grid)


def test_the_first_row_of_each_hash():
    rng = np.random.default_rng(1)
    hashes = rng.integers(0, 50, 300).astype(np.uint64) * np.uint64(1 << 40)  # all start at the same slot
    first = np.empty(300, dtype=np.int64)
    first_of_hash(hashes, first)
    seen = {}
    assert first.tolist() == [seen.setdefault(int(h), i) for i, h in enumerate(hashes)]
