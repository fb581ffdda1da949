"""Values over ties are exact means over all orders of the tied documents."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleanrank.metrics import _measure_kernels as kernels

DISCOUNT = 1 / np.log2(np.arange(2, 12))
STOP = np.array([0.0, 0.2, 0.7])
SIMPLE = {
    "dcg": lambda code, *place: kernels.dcg_of(2.0**code, DISCOUNT, *place),
    "relevant": lambda code, rank, end, cut, average: kernels.retrieved_relevant(
        code, rank, end, cut, 1, average
    ),
    "precisions": lambda code, rank, end, cut, average: kernels.precision_sum(
        code, rank, end, cut, 1, average
    ),
    "first": lambda code, rank, end, cut, average: kernels.first_relevant(
        code, rank, end, cut, 1, average, True
    ),
    "any": lambda code, rank, end, cut, average: kernels.first_relevant(
        code, rank, end, cut, 1, average, False
    ),
    "err": lambda code, rank, end, cut, average: kernels.expected_reciprocal(
        STOP, code, rank, end, cut, average, 1.0
    ),
}


@given(
    st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2)), min_size=1, max_size=6),
    st.integers(1, 6),
    st.sampled_from(sorted(SIMPLE)),
)
@settings(max_examples=60, deadline=None)
def test_averages_over_ties_are_means_over_all_orders(documents, cut, name):
    code = np.array([grade for grade, _ in documents])
    score = np.array([score for _, score in documents])
    n, cut = len(code), min(cut, len(documents))
    alone = np.arange(1, n + 1)
    orders = [np.array(p) for p in permutations(range(n)) if (np.diff(score[list(p)]) <= 0).all()]
    end = np.array([int((score >= s).sum()) for s in score[orders[0]]])
    each = [SIMPLE[name](code, order, alone, cut, False) for order in orders]
    assert SIMPLE[name](code, orders[0], end, cut, True) == pytest.approx(np.mean(each))


@given(st.lists(st.integers(0, 3), min_size=1, max_size=10), st.integers(1, 10))
@settings(max_examples=40, deadline=None)
def test_the_ideal_is_the_same_by_counts_and_by_sorting(codes, cut):
    code, cut = np.array(codes), min(cut, len(codes))
    counts, gain_of = np.bincount(code, minlength=4), 2.0 ** np.arange(4) - 1
    best = np.sort(gain_of[code])[::-1][:cut] @ DISCOUNT[:cut]
    assert kernels.ideal_by_count(counts, gain_of, DISCOUNT, cut) == pytest.approx(best)
    assert kernels.ideal_by_sort(gain_of[code], DISCOUNT, len(code), cut) == pytest.approx(best)
    assert kernels.count_from(counts, 2) == (code >= 2).sum()


def test_binary_preference_by_hand():
    code, rank, alone = np.array([1, 0, 1, 0, 1]), np.arange(5), np.arange(1, 6)
    everything = np.zeros(0, dtype=bool)
    # Of three relevant documents 0, 1 and 2 of the two others stand above them.
    found = kernels.binary_preference(code, everything, rank, alone, 5, 1, False)
    assert found == pytest.approx((1 + 1 / 2 + 0) / 3)
    judged = np.array([True, False, True, True, True])
    found = kernels.binary_preference(code, judged, rank, alone, 5, 1, False)
    assert found == pytest.approx((1 + 1 + 0) / 3)
