import numpy as np

from cleanrank.metrics import _rank_kernels, significance


def test_listed_draws_are_all_sign_vectors():
    d = np.array([1, 2, 4, 8], dtype=np.int64)
    tables = significance.subset_tables(d)
    counts = _rank_kernels.count_extreme_blocks(tables, 16, 15, 0, 1, np.uint64(0), True)
    assert counts.sum() == 1  # only all signs + reach the sum of 15
    assert _rank_kernels.count_extreme_blocks(tables, 16, 15, 0, 0, np.uint64(0), True).sum() == 2
    assert _rank_kernels.count_extreme_blocks(tables, 16, 15, 0, -1, np.uint64(0), True).sum() == 16
    assert (
        _rank_kernels.count_extreme_blocks(tables, 16, 15, 2, 1, np.uint64(0), True).sum() == 2
    )  # 15 and 13


def test_blocks_cover_all_draws():
    d = np.zeros(3, dtype=np.int64)
    for count in (1, _rank_kernels.BLOCK - 1, _rank_kernels.BLOCK, _rank_kernels.BLOCK + 1):
        assert (
            _rank_kernels.count_extreme_blocks(
                significance.subset_tables(d), count, 0, 0, 0, np.uint64(1), False
            ).sum()
            == count
        )


def test_resamples_of_equal_rows_are_equal():
    sums = _rank_kernels.sum_resamples(np.full((5, 2), 3.0), 4, np.uint64(9))
    assert (sums == 15.0).all()
