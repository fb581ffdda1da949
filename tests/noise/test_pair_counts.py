import itertools

import numpy as np
import pytest

from cleanrank.noise import _pair_counts
from cleanrank.ragged import indptr_of


def naive(true, given, indptr):
    """Pair by pair, with NumPy's outer comparisons."""
    rows = []
    for s, e in itertools.pairwise(indptr):
        higher = given[s:e, None] > given[None, s:e]
        step = np.sign(true[s:e, None].astype(int) - true[None, s:e].astype(int))
        rows.append([(higher & (step == sign)).sum() for sign in (1, -1, 0)])
    return np.array(rows, dtype=np.int64).reshape(-1, 3).T


@pytest.fixture(scope="module")
def labels():
    rng = np.random.default_rng(0)
    indptr = indptr_of([0, 1, 2, 7, 8, 9, 63, 0, 200, 1100, 2500, 0])
    return rng.integers(0, 8, indptr[-1]), rng.integers(0, 8, indptr[-1]), indptr


@pytest.mark.parametrize("dtype", [np.uint8, np.int32, np.int64])
def test_counts_of_all_query_lengths(labels, dtype):
    true, given, indptr = labels
    found = _pair_counts.pair_counts(true.astype(dtype), given.astype(dtype), indptr)
    np.testing.assert_array_equal(found, naive(true, given, indptr))


def test_blocks_of_queries_in_parallel(labels):
    true, given, _ = labels
    indptr = np.arange(0, len(true) + 1, 1, dtype=np.int64)[:: _pair_counts.BLOCK // 16]
    true, given = true[: indptr[-1]].astype(np.int32), given[: indptr[-1]].astype(np.int32)
    counts = np.empty((3, len(indptr) - 1), dtype=np.int64)
    _pair_counts._count_blocks(true, given, indptr, counts)
    np.testing.assert_array_equal(counts, naive(true, given, indptr))


@pytest.mark.parametrize("scale", [9, 256, 2**31 - 1])
def test_wide_scales_go_by_sorting(labels, scale):
    rng = np.random.default_rng(scale % 97)
    _, _, indptr = labels
    true, given = rng.integers(0, scale, (2, indptr[-1]))
    given[::3] = true[::3]
    np.testing.assert_array_equal(_pair_counts.pair_counts(true, given, indptr), naive(true, given, indptr))


def test_one_wide_query_does_not_touch_the_others(labels):
    true, given, indptr = labels
    true = true.astype(np.int32)
    true[indptr[6]] = 1000
    np.testing.assert_array_equal(
        _pair_counts.pair_counts(true, given.astype(np.int32), indptr), naive(true, given, indptr)
    )


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_negative_grades_are_reported_by_query(labels, dtype):
    true, given, indptr = labels
    true, given = true.astype(dtype), given.astype(dtype)
    given[indptr[5]] = -1
    found = _pair_counts.pair_counts(true, given, indptr)
    assert found[0, 5] == _pair_counts.NEGATIVE
    assert (np.delete(found, 5, axis=1) >= 0).all()


def test_a_long_query_of_one_cell_counts_beyond_a_byte_and_32_bits():
    n = 200_000
    true = np.repeat(np.array([0, 1], np.uint8), n)
    found = _pair_counts.pair_counts(true, true, np.array([0, 2 * n]))
    assert found[:, 0].tolist() == [n * n, 0, 0]
