import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from cleanrank.metrics import _rank_kernels

FINITE = st.floats(allow_nan=False, allow_infinity=False)


def rank_all(score):
    n = len(score)
    score = score + 0.0
    rank = np.empty(n, np.int64)
    _rank_kernels.rank_all(
        score, score.view(np.uint64), np.empty(n, np.uint64), np.empty(n, np.uint64), rank, n
    )
    return rank


@given(arrays(np.float64, st.integers(1, 200), elements=st.sampled_from([0.0, -0.0, 1.0, -2.5]) | FINITE))
def test_the_ranking_is_the_stable_descending_order(score):
    np.testing.assert_array_equal(rank_all(score), np.argsort(-score, kind="stable"))


@given(arrays(np.float64, st.integers(1, 300), elements=st.integers(0, 90).map(lambda i: 1.0 + i * 2.0**-52)))
def test_neighbours_in_the_last_bits_are_told_apart(score):
    np.testing.assert_array_equal(rank_all(score), np.argsort(-score, kind="stable"))


@given(arrays(np.float64, st.integers(1, 60), elements=st.integers(0, 9).map(float)), st.data())
def test_the_top_is_the_head_of_the_ranking(score, data):
    k = data.draw(st.integers(1, len(score)))
    best, rank = np.empty(k), np.empty(k, np.int64)
    _rank_kernels.rank_top(score, best, rank, len(score), k)
    np.testing.assert_array_equal(rank, np.argsort(-score, kind="stable")[:k])


@pytest.mark.parametrize("n", [0, 1, 2, 12, 13, 24, 25, 1000])
def test_keys_are_sorted(n):
    keys = np.random.default_rng(n).integers(0, 2**63, n).astype(np.uint64)
    expected = np.sort(keys)
    _rank_kernels.sort_keys(keys, np.empty(n, np.uint64), n)
    np.testing.assert_array_equal(keys, expected)


def test_ties_end_where_scores_change():
    score = np.array([3.0, 2.0, 2.0, 1.0])
    end = np.empty(4, np.int64)
    assert _rank_kernels.tie_ends(score, np.arange(4), end, 4)
    assert end.tolist() == [1, 3, 3, 4]
    out = np.empty(4, np.int64)
    _rank_kernels.worst_order(np.arange(4), end, np.array([0.0, 5.0, 1.0, 9.0]), out, 4)
    assert out.tolist() == [0, 2, 1, 3]
