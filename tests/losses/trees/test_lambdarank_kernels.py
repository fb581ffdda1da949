import numpy as np
import pytest

from cleanrank.losses.trees.lambdarank import ideal_dcg, resort, sigmoid_table


@pytest.mark.parametrize("n", [1, 2, 50, 3000])
def test_resort_is_the_stable_descending_sort_from_any_start(n):
    rng = np.random.default_rng(n)
    score = rng.integers(0, 9, n).astype(float)
    for start in (np.arange(n), np.arange(n)[::-1], rng.permutation(n)):
        order = start.astype(np.int32)
        resort(score, order)
        np.testing.assert_array_equal(order, np.argsort(-score, kind="stable"))


def test_ideal_dcg_by_hand():
    discount = 1 / np.log2(np.arange(2, 6))
    found = ideal_dcg(np.array([1.0, 3.0, 0.0, 7.0]), np.array([0, 3, 4]), discount, 2)
    np.testing.assert_allclose(found, [3 + 1 / np.log2(3), 7])


def test_the_table_holds_sigmoids_between_its_edges():
    table = sigmoid_table(2.0)
    assert table.shape == (1 << 20,)
    assert table[1 << 19] == 0.5
    np.testing.assert_allclose(table[0], 1 / (1 + np.exp(-25.0)))
