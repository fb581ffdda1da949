import collections
import itertools

import numpy as np

from cleanrank.losses.trees.peer import mean_gain_gap, permute_all, permute_within


def test_mean_gain_gap_by_enumeration():
    gain = np.array([0.0, 3.0, 1.0, 7.0, 2.0, 5.0])
    indptr = np.array([0, 4, 5, 6])
    pairs = [abs(a - b) for a, b in itertools.permutations(gain[:4], 2)]
    np.testing.assert_allclose(mean_gain_gap(gain, indptr), [np.mean(pairs), 0, 0])


def test_all_permutations_of_a_query_are_about_equally_frequent():
    gain, out = np.array([0.0, 1.0, 2.0, 9.0]), np.empty(4)
    counts = collections.Counter()
    for key in np.random.default_rng(0).integers(0, 2**63, 3000, dtype=np.uint64):
        permute_within(gain, np.array([0, 3, 4]), key, out)
        assert out[3] == 9.0
        counts[tuple(out[:3])] += 1
    assert len(counts) == 6
    assert all(400 < count < 600 for count in counts.values())


def test_over_all_rows_gains_leave_their_query():
    gain, out = np.arange(100.0), np.empty(100)
    permute_all(gain, np.uint64(3), out)
    assert sorted(out) == gain.tolist()
    assert (out[:50] >= 50).any()
