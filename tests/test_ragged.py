import itertools
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleanrank.errors import InvalidInputError
from cleanrank.ragged import (
    group_rows,
    indptr_of,
    match_rows,
    query_of_row,
    rank_order,
    ranks,
    segment_sum,
)

ids = st.one_of(
    st.lists(st.integers(-3, 6), max_size=40),
    st.lists(st.sampled_from(["a", "b", "aa", " b", "é", "10", "9"]), max_size=40),
)
sizes = st.lists(st.integers(0, 6), max_size=10)


def ragged(draw_sizes):
    return st.tuples(
        st.just(draw_sizes),
        st.lists(st.integers(-2, 3), min_size=sum(draw_sizes), max_size=sum(draw_sizes)),
    )


@settings(max_examples=200, deadline=None)
@given(qid=ids)
def test_grouping_agrees_with_a_dictionary(qid):
    order, indptr, found = group_rows(np.array(qid, dtype=None if qid else int))
    rows: dict[object, list[int]] = {}
    for row, each in enumerate(qid):
        rows.setdefault(each, []).append(row)
    assert found.tolist() == list(rows)
    assert order.tolist() == list(itertools.chain.from_iterable(rows.values()))
    assert indptr.tolist() == [0, *itertools.accumulate(len(r) for r in rows.values())]
    assert indptr.dtype == order.dtype == np.int64
    back = np.empty(len(qid), dtype=np.int64)
    back[order] = np.arange(len(qid))
    assert np.array_equal(np.repeat(found, np.diff(indptr))[back], np.array(qid, dtype=found.dtype))


@pytest.mark.parametrize(
    ("qid", "kind", "expected"),
    [
        ([7, 7, 3], "i", [7, 3]),
        (np.array([7, 3], dtype=np.uint8), "i", [7, 3]),
        (np.array([True, False]), "i", [1, 0]),
        (np.array([b"x", b"y"]), "U", ["x", "y"]),
        ([7.0, 3.0, 7.0], "i", [7, 3]),
        (np.array([7, 3, 7], dtype=object), "i", [7, 3]),
        (np.array(["x", "y"], dtype=object), "U", ["x", "y"]),
        (np.array([1, "1", 2], dtype=object), "U", ["1", "2"]),
    ],
)
def test_ids_come_out_as_whole_numbers_or_strings(qid, kind, expected):
    found = group_rows(qid)[2]
    assert found.dtype.kind == kind
    assert kind == "U" or found.dtype == np.int64
    assert found.tolist() == expected


@pytest.mark.parametrize(
    ("qid", "said"),
    [
        ([1.0, 2.5], "qid must be whole numbers or strings; got 2.5 at row 1"),
        ([1.0, np.nan], "qid must be whole numbers or strings; got nan at row 1"),
        (
            np.array(["a", None], dtype=object),
            "qid must be present; got None at row 1. Drop such rows first.",
        ),
        (np.array(["a", float("nan")], dtype=object), "qid must be present; got nan at row 1"),
        ([[1, 2]], "qid must have one dimension; got shape (1, 2)"),
    ],
)
def test_ids_that_are_none_are_refused(qid, said):
    with pytest.raises(InvalidInputError) as caught:
        group_rows(qid)
    assert said in str(caught.value)


@given(lengths=sizes)
def test_offsets_and_queries_of_rows(lengths):
    indptr = indptr_of(lengths)
    assert np.diff(indptr).tolist() == lengths
    expected = [q for q, n in enumerate(lengths) for _ in range(n)]
    assert query_of_row(indptr).tolist() == expected


@given(case=sizes.flatmap(ragged))
def test_segment_sums_agree_with_a_loop(case):
    lengths, values = case
    indptr = indptr_of(lengths)
    expected = [sum(values[a:b]) for a, b in itertools.pairwise(indptr)]
    assert segment_sum(values, indptr).tolist() == expected


@settings(max_examples=200, deadline=None)
@given(case=sizes.flatmap(ragged))
def test_ranks_agree_with_counting_who_stands_before(case):
    lengths, scores = case
    indptr = indptr_of(lengths)
    naive = []
    for a, b in itertools.pairwise(indptr.tolist()):
        for i in range(a, b):
            before = sum(scores[j] > scores[i] or (scores[j] == scores[i] and j < i) for j in range(a, b))
            naive.append(before + 1)
    assert ranks(scores, indptr).tolist() == naive
    order = rank_order(scores, indptr)
    assert sorted(order.tolist()) == list(range(len(scores)))
    assert ranks(scores, indptr)[order].tolist() == [r + 1 for n in lengths for r in range(n)]


def test_negative_zero_and_infinite_scores_are_ranked():
    indptr = indptr_of([4])
    assert ranks([-0.0, 0.0, np.inf, -np.inf], indptr).tolist() == [2, 3, 1, 4]


@pytest.mark.parametrize(
    ("qid", "complaint"),
    [
        (np.array([5, 2**64 - 1], dtype=np.uint64), "beyond 2^63 as strings"),
        (np.array([1e300, 2e300]), "beyond 2^53 as strings"),
        (np.array([2.0**53 + 2, 1.0]), "beyond 2^53 as strings"),
        (np.array(["2020-01-01", "NaT"], dtype="M8[D]"), "dtype datetime64"),
        (np.array([1j, 2]), "dtype complex128"),
        (pd.Series(["a", pd.NA], dtype="string"), "got <NA> at row 1"),
        (np.array(["a", pd.NaT], dtype=object), "got NaT at row 1"),
        (["a", "a", "", "b"], "qid must not be blank; got '' at row 2"),
        (["b", "  ", "a"], "qid must not be blank; got '  ' at row 1"),
    ],
)
def test_ids_that_would_change_or_run_together_are_refused(qid, complaint):
    with pytest.raises(InvalidInputError, match=re.escape(complaint)):
        group_rows(qid)


def test_ids_beyond_int64_are_kept_as_strings():
    assert group_rows([10**30, 1, 10**30])[2].tolist() == [str(10**30), "1"]
    assert group_rows(np.array(["b", "a"], dtype=np.dtypes.StringDType()))[2].tolist() == ["b", "a"]


def test_rows_are_matched_by_id():
    ids = np.array([40, 7, 12, 3])
    assert match_rows(ids, [3, 40, 99, 7]).tolist() == [3, 0, -1, 1]
    assert match_rows(ids, []).tolist() == []
    assert match_rows([], [1, 2]).tolist() == [-1, -1]
    assert match_rows(np.array(["b", "a"]), ["a", "c"]).tolist() == [1, -1]


@given(st.lists(st.integers(-5, 30), unique=True), st.lists(st.integers(-5, 30)))
def test_matching_is_a_look_up(ids, wanted):
    place = {value: at for at, value in enumerate(ids)}
    assert match_rows(ids, wanted).tolist() == [place.get(value, -1) for value in wanted]
