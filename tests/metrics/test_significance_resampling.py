import numpy as np
import pytest

from cleanrank.metrics import significance


@pytest.fixture
def without_numba(monkeypatch):
    monkeypatch.setattr(significance, "has_numba", lambda: False)


def test_words_are_splitmix64():
    """The published test vector: seed 1234567 of the reference generator."""
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert significance.words(np.uint64(1234567), 0, 3).tolist() == expected


def test_words_can_be_made_from_any_place():
    key = significance.stream_key(3)
    np.testing.assert_array_equal(significance.words(key, 0, 50)[20:], significance.words(key, 20, 30))


def test_keys_of_negative_and_large_seeds():
    keys = {int(significance.stream_key(s)) for s in (-1, 0, 1, 2, 2**62, 2**70)}
    assert len(keys) >= 5


def test_tables_hold_all_subset_sums():
    d = np.arange(1, 71, dtype=np.int64) ** 2
    tables = significance.subset_tables(d)
    assert tables.shape == (2, 8, 256)
    for word, byte, subset in ((0, 0, 0b101), (0, 7, 255), (1, 0, 0b100001), (1, 1, 255)):
        first = word * 64 + byte * 8
        expected = sum(int(d[first + bit]) for bit in range(8) if subset >> bit & 1 and first + bit < len(d))
        assert tables[word, byte, subset] == expected


@pytest.mark.parametrize("side", [-1, 0, 1])
@pytest.mark.parametrize("n", [1, 63, 64, 65, 200])
def test_numpy_counts_the_same_draws(side, n, without_numba):
    d = np.random.default_rng(n).integers(-900, 1000, n) * 1000
    key = significance.stream_key(7)
    plain = significance.count_extreme(d, 5000, side, key)
    from cleanrank.metrics import _rank_kernels

    compiled = _rank_kernels.count_extreme_blocks(
        significance.subset_tables(d), 5000, int(d.sum()), n, side, key, False
    )
    assert plain == compiled.sum()


def test_signs_are_fair_and_independent():
    """Each sign is + in half of the draws, and two of them agree in half."""
    bits = np.unpackbits(significance.words(significance.stream_key(0), 0, 20_000).view(np.uint8)).reshape(
        -1, 64
    )
    means = bits.mean(axis=0)
    assert np.abs(means - 0.5).max() < 5 * 0.5 / np.sqrt(20_000)
    together = np.corrcoef(bits.T) - np.eye(64)
    assert np.abs(together).max() < 5.5 / np.sqrt(20_000)


@pytest.mark.parametrize("n", [1, 2, 7, 100])
def test_numpy_draws_the_same_resamples(n, without_numba):
    columns = np.random.default_rng(n).normal(size=(n, 3))
    plain = significance.resampled_sums(columns, 50, seed=4)
    from cleanrank.metrics import _rank_kernels

    compiled = _rank_kernels.sum_resamples(columns, 50, significance.stream_key(4))
    np.testing.assert_allclose(plain, compiled, rtol=0, atol=1e-12)


def test_every_row_is_drawn_equally_often():
    n, resamples = 37, 20_000
    counts = significance.resampled_sums(np.eye(n), resamples, seed=0)
    assert (counts.sum(axis=1) == n).all()
    assert np.abs(counts.mean(axis=0) - 1).max() < 5 / np.sqrt(resamples)
    assert counts.var(axis=0).mean() == pytest.approx(1 - 1 / n, abs=0.02)
