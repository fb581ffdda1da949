import numpy as np

from cleanrank.jit import threads
from cleanrank.theory.simulation import mean_pair_weights


def test_weights_of_pairs_against_a_loop():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, size=(6, 9)).astype(np.int32)
    indptr = np.array([0, 2, 2, 6, 9])
    table, scale = rng.random((3, 3)), rng.random((6, 4))
    scale[2, 0] = 0.0
    expected = []
    for q in range(4):
        rows = range(indptr[q], indptr[q + 1])
        expected += [
            sum(scale[d, q] * table[labels[d, i], labels[d, j]] for d in range(6)) for i in rows for j in rows
        ]
    found = mean_pair_weights(labels, indptr, table, scale)
    np.testing.assert_allclose(found, expected)
    with threads(1):
        np.testing.assert_array_equal(mean_pair_weights(labels, indptr, table, scale), found)
