import numpy as np
import pytest

import cleanrank as cr
from cleanrank.diagnosis.fragility import (
    balance_of,
    composition,
    merged_pnoise,
    merges_of,
    pooled_pnoise,
)
from cleanrank.diagnosis.profile import grade_counts
from cleanrank.noise.profiles import make_profile

from .sets import plain

MSLR = np.array([[51_700, 32_500, 13_300, 1_700, 800]])


def test_more_grades_are_not_always_more_robust():
    """The split 0 | 1-4 of MSLR has a lower pNoise than all five grades at 10 %: .100 against .116."""
    found = {m.name: m for m in merges_of(MSLR, "uniform", 0.1)}
    T = make_profile("uniform", 0.1, 5).matrix
    assert pooled_pnoise(T, *composition(MSLR)) == pytest.approx(0.1156, abs=1e-3)
    assert found["0 | 1-4"].asked_anew == pytest.approx(0.100, abs=1e-3)
    assert found["0-1 | 2-4"].asked_anew == pytest.approx(0.1962, abs=1e-3)


def test_all_merges_of_neighbours_are_there_best_first():
    found = merges_of(MSLR, "uniform", 0.1)
    assert len(found) == 4 + 6
    values = [m.asked_anew for m in found]
    assert values == sorted(values)
    assert merges_of(np.array([[5, 5]]), "uniform", 0.1) == ()


def test_grades_that_nobody_has_do_not_multiply_merges():
    found = merges_of(np.array([[5, 0, 3, 2]]), "uniform", 0.1)
    assert len(found) == 2
    assert all(min(m.shares) > 0 for m in found)


def test_pairs_kept_are_counted():
    counts = np.array([[3, 2, 1]])
    (merge,) = [m for m in merges_of(counts, "uniform", 0.1) if m.groups == (0, 1, 1)]
    assert merge.pairs_kept == pytest.approx(9 / 11)
    assert merge.shares == pytest.approx((0.5, 0.5))


@pytest.mark.parametrize("groups", [(0, 1, 1), (0, 0, 1), (0, 1, 2)])
def test_merging_labels_is_what_merging_labels_does(groups):
    data = plain(seed=5, queries=60)
    T = make_profile("adjacent", 0.25, 3)
    new = np.array(groups)
    wrong = every = 0.0
    for seed in range(60):
        noisy = T.apply(data, seed)
        found = cr.pnoise(new[noisy.true_labels], new[noisy.data.y], data.indptr)
        wrong += found.inverse + 0.5 * found.new_come
        every += found.total
    assert wrong / every == pytest.approx(merged_pnoise(T.matrix, groups, grade_counts(data)), abs=0.006)


def test_merging_nothing_changes_nothing():
    counts = np.array([[4, 3, 2], [7, 0, 1]])
    T = make_profile("geometric", 0.2, 3).matrix
    assert merged_pnoise(T, (0, 1, 2), counts) == pytest.approx(pooled_pnoise(T, *composition(counts)))


def test_even_shares_are_not_the_best_for_three_grades():
    found = balance_of(np.array([[70, 16, 14]]), "uniform", 0.1)
    assert found.best_shares == pytest.approx((0.39, 0.22, 0.39), abs=0.01)
    assert (found.given, found.even, found.best) == pytest.approx((0.1237, 0.0821, 0.0797), abs=5e-5)
    two = balance_of(np.array([[9, 1]]), "uniform", 0.1)
    assert two.best_shares == pytest.approx((0.5, 0.5), abs=1e-3)
    assert two.best == pytest.approx(0.1)
