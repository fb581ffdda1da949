import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleanrank.issues import outliers as kernels
from cleanrank.jit import query_chunks, threads
from cleanrank.ragged import indptr_of
from tests.oracles import naive_outliers

RULES = ["paper", "reference"]


def flags_of(scores, y, indptr, k, rule, kinds=kernels.NEG + kernels.POS, floor=0, with_order=False):
    order = np.empty(0, np.int32)
    if with_order:
        parts = [np.lexsort((np.arange(b - a), -scores[a:b])) for a, b in itertools.pairwise(indptr)]
        order = np.concatenate(parts).astype(np.int32)
    counts = np.zeros(len(y), np.uint16)
    relevant = np.diff(np.concatenate(([0], np.cumsum(y > floor)))[indptr])
    with threads(1):
        kernels._observe(
            scores, order, y, indptr, query_chunks(indptr, 8), relevant, floor, k, rule == "paper", kinds,
            kernels.COUNT, 0, counts, np.empty(0, np.float32),
        )  # fmt: skip
    return counts


queries = st.lists(
    st.lists(st.tuples(st.integers(0, 3), st.integers(-3, 3)), max_size=12), min_size=1, max_size=6
)


@settings(max_examples=300, deadline=None)
@given(queries, st.integers(1, 14), st.sampled_from(RULES), st.integers(0, 2), st.booleans())
def test_compiled_flags_are_those_of_the_definition(drawn, k, rule, floor, with_order):
    indptr = indptr_of([len(q) for q in drawn])
    y = np.array([g for q in drawn for g, _ in q], dtype=np.int32)
    scores = np.array([s / 2 for q in drawn for _, s in q])  # few values, so that ties are common
    both = flags_of(scores, y, indptr, k, rule, floor=floor, with_order=with_order)
    neg = flags_of(scores, y, indptr, k, rule, kernels.NEG, floor, with_order)
    pos = flags_of(scores, y, indptr, k, rule, kernels.POS, floor, with_order)
    for a, b in itertools.pairwise(indptr):
        wanted = naive_outliers(scores[a:b], y[a:b], min(k, max(b - a, 1)), rule, floor)
        assert set(np.flatnonzero(neg[a:b])) == wanted[0]
        assert set(np.flatnonzero(pos[a:b])) == wanted[1]
    np.testing.assert_array_equal(both, neg + pos)


@settings(max_examples=100, deadline=None)
@given(queries, st.integers(1, 14))
def test_the_papers_outliers_are_among_the_references(drawn, k):
    indptr = indptr_of([len(q) for q in drawn])
    y = np.array([g for q in drawn for g, _ in q], dtype=np.int32)
    scores = np.array([float(s) for q in drawn for _, s in q])
    assert (flags_of(scores, y, indptr, k, "paper") <= flags_of(scores, y, indptr, k, "reference")).all()


@pytest.mark.parametrize(
    ("y", "paper", "reference"),
    [
        ([0, 1, 0, 0, 0, 0], [], [0]),
        ([1, 1, 1, 1, 0, 1], [], [5]),
        ([1, 1, 0, 1, 0, 1], [2, 5], [2, 5]),  # the top of Figure 1
    ],
)
def test_the_examples_at_four(y, paper, reference):
    scores = np.arange(6, 0, -1.0)
    for rule, wanted in (("paper", paper), ("reference", reference)):
        found = flags_of(scores, np.array(y), np.array([0, 6]), 4, rule)
        assert np.flatnonzero(found).tolist() == wanted


@pytest.mark.parametrize("rule", RULES)
def test_one_class_has_no_outliers_and_ties_keep_the_order_of_rows(rule):
    for y in ([0] * 5, [2] * 5):
        assert not flags_of(np.arange(5.0), np.array(y), np.array([0, 5]), 2, rule).any()
    found = flags_of(np.zeros(5), np.array([0, 1, 0, 1, 0]), np.array([0, 5]), 2, rule)
    assert np.flatnonzero(found).tolist() == [0, 3]


def test_short_queries_are_empty_under_the_papers_rule_only():
    scores, y = np.array([3.0, 2.0, 1.0]), np.array([0, 1, 0])
    assert not flags_of(scores, y, np.array([0, 3]), 10, "paper").any()
    assert np.flatnonzero(flags_of(scores, y, np.array([0, 3]), 10, "reference")).tolist() == [0]


@pytest.mark.parametrize("k", [10, 200, 20_000])
@pytest.mark.parametrize("rule", RULES)
def test_long_queries_and_long_cuts(k, rule):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=12_000).round(2)
    y = (rng.random(12_000) < 0.02).astype(np.int32)
    found = flags_of(scores, y, np.array([0, 12_000]), k, rule)
    np.testing.assert_array_equal(found, flags_of(scores, y, np.array([0, 12_000]), k, rule, with_order=True))
    rank = np.empty(12_000, int)
    rank[np.argsort(-scores, kind="stable")] = np.arange(1, 12_001)
    relevant = y > 0
    cut = min(k, 12_000)
    if rule == "paper":
        neg = ~relevant & (rank <= cut) & (relevant & (rank > cut)).any()
        pos = relevant & (rank > cut) & (~relevant & (rank <= cut)).any()
    else:
        neg = ~relevant & (rank <= cut) & (rank < rank[relevant].max())
        pos = relevant & (rank > cut) & (rank > rank[~relevant].min())
    np.testing.assert_array_equal(found, neg | pos)


def test_counters_of_three_kinds():
    flags = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 1]], np.uint16)
    wanted = {
        kernels.COUNT: [3, 2, 2],
        kernels.STREAK: [3, 1, 2],
        kernels.LEAD: [3, 1, 0],
    }
    for keep, counts in wanted.items():
        found = np.zeros(3, np.uint16)
        for seen in range(3):
            kernels._update(found, flags[seen], keep, seen)
        assert found.tolist() == counts


@pytest.mark.parametrize("rule", RULES)
def test_evidence_is_the_distance_to_the_nearest_witness(rule):
    rng = np.random.default_rng(1)
    scores, y, k = rng.normal(size=20), rng.integers(0, 2, 20), 6
    found = np.zeros(20, np.float32)
    order = np.argsort(-scores, kind="stable")
    neg, pos = naive_outliers(scores, y, k, rule)
    flags = np.zeros(20, np.uint16)
    flags[list(neg | pos)] = 1
    kernels._add_evidence(scores, order, y, 0, k, rule == "paper", flags, found)
    rank = {int(i): r for r, i in enumerate(order, start=1)}
    for i in range(20):
        wanted = 0.0
        if i in neg:
            bar = k if rule == "paper" else rank[i]
            wanted = np.tanh((scores[i] - max(scores[j] for j in range(20) if y[j] and rank[j] > bar)) / 2)
        if i in pos:
            bar = k + 1 if rule == "paper" else rank[i]
            wanted = np.tanh(
                (min(scores[j] for j in range(20) if not y[j] and rank[j] < bar) - scores[i]) / 2
            )
        assert found[i] == pytest.approx(wanted, abs=1e-6)
