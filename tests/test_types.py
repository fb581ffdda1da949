import copy
import dataclasses
import pickle
import re

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import cleanrank as cr
from cleanrank.errors import InvalidInputError
from cleanrank.types import PER_ROW, RankingData, RunRecord
from tests.oracles import same_data


def parts(**change):
    arguments = {
        "X": np.arange(10, dtype=np.float32).reshape(5, 2),
        "y": np.array([0, 1, 2, 0, 1], dtype=np.int32),
        "indptr": np.array([0, 2, 5]),
        "query_ids": np.array(["a", "b"]),
        "row_ids": np.array([0, 3, 1, 2, 4]),
        "gains": np.array([0, 0.5, 3, 0, 1.5]),
        "doc_ids": np.array(["d0", "d3", "d1", "d2", "d4"]),
        "weights": np.array([1, 2, 3, 4, 5], dtype=np.float32),
        "positions": np.array([1, 2, 1, 2, 3], dtype=np.int32),
        "judged": np.array([True, True, False, True, True]),
        "feature_names": ("f", "g"),
    }
    return {**arguments, **change}


def ranking(**change):
    return RankingData(**parts(**change))


def test_the_types_of_the_columns():
    data = ranking(
        y=[0.0, 1, 2, 0, 1], weights=[1, 2, 3, 4, 5], positions=[1.0, 2, 1, 2, 3], X=np.ones((5, 2))
    )
    kinds = {name: str(getattr(data, name).dtype) for name in ("X", "y", "weights", "positions", "gains")}
    assert kinds == {
        "X": "float32",
        "y": "int32",
        "weights": "float32",
        "positions": "int32",
        "gains": "float64",
    }
    assert data.indptr.dtype == data.row_ids.dtype == np.int64
    assert (data.n_docs, data.n_queries, data.n_features, data.n_grades, len(data)) == (5, 2, 2, 3, 5)
    assert data.lengths.tolist() == [2, 3]
    assert data.qid.tolist() == ["a", "a", "b", "b", "b"]
    assert repr(data) == (
        "RankingData(2 queries, 5 documents, 2 features (dense), grades {0: 2, 1: 2, 2: 1})"
    )


@pytest.mark.parametrize("name", [*PER_ROW, "X", "indptr", "query_ids"])
def test_no_column_can_be_written_to_or_exchanged(name):
    data = ranking()
    column = getattr(data, name)
    with pytest.raises(ValueError, match="read-only"):
        column[0] = column[0]
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(data, name, column)


@pytest.mark.parametrize("part", ["data", "indices", "indptr"])
def test_sparse_features_cannot_be_written_to(part):
    X = sp.csr_matrix(np.eye(5, 2, dtype=np.float32))
    data = ranking(X=X)
    with pytest.raises(ValueError, match="read-only"):
        getattr(data.X, part)[0] = 0
    getattr(X, part)[0] = getattr(X, part)[0]


@pytest.mark.parametrize(
    "name", ["y", "indptr", "query_ids", "row_ids", "gains", "doc_ids", "weights", "positions"]
)
def test_the_caller_keeps_the_right_to_write_and_cannot_change_the_data(name):
    given_parts = parts()
    data = RankingData(**given_parts)
    before = getattr(data, name).copy()
    given_parts[name][-1] = given_parts[name][0]
    given_parts[name][0] = given_parts[name][1]
    np.testing.assert_array_equal(getattr(data, name), before)


def test_columns_that_nobody_can_write_to_are_not_copied():
    whole = ranking()
    again = dataclasses.replace(whole, feature_names=("h", "i"))
    for name in (*PER_ROW, "X", "indptr", "query_ids"):
        assert np.shares_memory(getattr(again, name), getattr(whole, name)), name
    X = np.ones((5, 2), dtype=np.float32)
    assert np.shares_memory(ranking(X=X).X, X)
    assert X.flags.writeable


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"X": np.ones(5)}, "X must have two dimensions (documents, features); got shape (5,)."),
        ({"X": np.array([["a", "b"]] * 5)}, "X must hold numbers; got dtype <U1."),
        ({"y": [0, 1]}, "y must have one grade per row of X (5); got shape (2,)."),
        (
            {"y": [0, 1, np.nan, 0, 0]},
            "labels must be finite; got nan at row 1 (query 'b'). Drop or impute it first.",
        ),
        (
            {"y": [0, -1, 2, 0, 0]},
            "labels must not be negative; got -1 at row 3 (query 'a'). Shift or clip the grades first.",
        ),
        (
            {"y": [0.5, 1, 2, 0, 0]},
            "labels must be whole grades; got 0.5 at row 0 (query 'a'). Give real-valued",
        ),
        ({"y": ["a"] * 5}, "labels must be numbers; got dtype <U1."),
        (
            {"y": [2**31, 0, 0, 0, 0]},
            "labels must be at most 2147483647; got 2147483648 at row 0 (query 'a').",
        ),
        ({"indptr": [0, 5]}, "indptr must have one entry more than the 2 query ids; got 2."),
        ({"indptr": [1, 2, 5]}, "indptr must rise from 0 to the number of rows (5); got 1..5."),
        ({"indptr": [0, 2, 4]}, "indptr must rise from 0 to the number of rows (5); got 0..4."),
        ({"indptr": [0, 6, 5]}, "indptr must rise from 0 to the number of rows (5); got 0..5 with a fall."),
        ({"indptr": [0, 2.5, 5]}, "indptr must hold whole numbers; got 2.5 at entry 1."),
        ({"row_ids": [0, 1]}, "row_ids must have one value per row of X (5); got shape (2,)."),
        ({"row_ids": [0, 1, 2, 3, 3.5]}, "row_ids must hold whole numbers; got 3.5 at entry 4."),
        (
            {"weights": [1, 1, np.nan, 1, 1]},
            "weights must be finite and not negative; got nan at row 1 (query 'b').",
        ),
        (
            {"weights": [1, 1, 1, -2, 1]},
            "weights must be finite and not negative; got -2 at row 2 (query 'b').",
        ),
        (
            {"gains": [1, np.inf, 1, 1, 1]},
            "gains must be finite and not negative; got inf at row 3 (query 'a').",
        ),
        ({"positions": ["1"] * 5}, "positions must hold numbers; got dtype <U1."),
        ({"positions": [1, 2, 1, 2, 2.5]}, "positions must hold whole numbers; got 2.5 at entry 4."),
        ({"doc_ids": ["a"]}, "doc_ids must have one value per row of X (5); got shape (1,)."),
        ({"feature_names": ("f",)}, "feature_names must name each of the 2 columns of X; got 1 names."),
    ],
)
def test_what_breaks_a_rule_is_refused_in_words(change, said):
    with pytest.raises(InvalidInputError) as caught:
        ranking(**change)
    assert str(caught.value).startswith(said)


def naive_select(data, keep):
    rows = [r for r in range(data.n_docs) if keep[r]]
    qid = data.qid[rows].tolist()
    ids = [q for k, q in enumerate(qid) if k == 0 or qid[k - 1] != q]
    return rows, ids, [qid.count(q) for q in ids]


@settings(max_examples=80, deadline=None)
@given(
    sizes=st.lists(st.integers(0, 5), max_size=8),
    choose=st.randoms(use_true_random=False),
    sparse=st.booleans(),
)
def test_select_drop_and_positions_agree_with_a_plain_loop(sizes, choose, sparse):
    n = sum(sizes)
    X = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
    data = RankingData(
        X=sp.csr_matrix(X) if sparse else X,
        y=np.arange(n) % 3,
        indptr=np.concatenate(([0], np.cumsum(sizes))),
        query_ids=np.arange(100, 100 + len(sizes)),
        row_ids=np.arange(n) * 7,
        weights=np.arange(n) / 2,
        doc_ids=np.array([f"d{i}" for i in range(n)], dtype="U6"),
    )
    keep = np.array([choose.random() < 0.5 for _ in range(n)], dtype=bool)
    rows, ids, lengths = naive_select(data, keep)
    selected = data.select(keep)
    assert same_data(selected, data.select(np.flatnonzero(keep)))
    assert same_data(selected, data.drop(~keep))
    assert same_data(selected, data.drop(np.flatnonzero(~keep)))
    assert selected.row_ids.tolist() == [7 * r for r in rows]
    assert selected.query_ids.tolist() == ids
    assert selected.lengths.tolist() == lengths
    assert selected.doc_ids.tolist() == [f"d{r}" for r in rows]
    dense = selected.X.toarray() if sparse else selected.X
    np.testing.assert_array_equal(dense, X[rows])
    assert (selected.lengths > 0).all()


def test_emptied_queries_go_and_nothing_may_be_left():
    data = ranking()
    assert data.select([0, 1]).query_ids.tolist() == ["a"]
    none = data.select(np.zeros(5, dtype=bool))
    assert (none.n_docs, none.n_queries, none.n_grades, none.n_features) == (0, 0, 0, 2)
    assert none.select([]).n_docs == 0
    assert repr(none) == "RankingData(0 queries, 0 documents, 2 features (dense), grades {})"
    assert data.select([]).n_queries == 0
    assert data.select([4, 4, 1]).row_ids.tolist() == [3, 4]


def test_queries_are_selected_whole():
    data = ranking()
    assert data.select_queries([1]).row_ids.tolist() == [1, 2, 4]
    assert same_data(data.select_queries(np.array([False, True])), data.select_queries([1]))
    assert data.select_queries([]).n_queries == 0


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ([5], "rows must be positions from 0 to 4; got 5"),
        ([-1], "rows must be positions from 0 to 4; got -1"),
        ([True, False], "rows as a mask must have 5 entries"),
        ([0.5], "rows must be a mask or whole-number positions"),
    ],
)
def test_wrong_choices_are_refused(choice, said):
    with pytest.raises(InvalidInputError) as caught:
        ranking().select(choice)
    assert said in str(caught.value)
    with pytest.raises(InvalidInputError, match="queries must be positions from 0 to 1; got 2"):
        ranking().select_queries([2])


def test_a_range_of_queries_is_their_selection_and_shares_the_features():
    data = ranking(
        indptr=[0, 2, 2, 5], query_ids=["a", "none", "b"], extra={"title": np.array(list("vwxyz"))}
    )
    for first, last in ((0, 3), (0, 1), (2, 3), (1, 1)):
        part = data.query_range(first, last)
        assert part.query_ids.tolist() == data.query_ids[first:last].tolist()
        assert part.extra["title"].tolist() == data.extra["title"][part_of(data, first, last)].tolist()
        same_data(
            part.select_queries(part.lengths > 0),
            data.select_queries((np.arange(3) >= first) & (np.arange(3) < last) & (data.lengths > 0)),
        )
    assert np.shares_memory(data.query_range(2, 3).X, data.X)


def part_of(data, first, last):
    return slice(data.indptr[first], data.indptr[last])


def test_new_labels_leave_the_old_data_alone_and_drop_old_gains():
    data = ranking()
    changed = data.with_labels([4, 4, 4, 4, 4])
    assert changed.y.tolist() == [4] * 5
    assert changed.gains is None
    assert data.y.tolist() == [0, 1, 2, 0, 1]
    assert data.gains is not None
    assert data.with_labels(data.y, gains=[1, 2, 3, 4, 5]).gains.tolist() == [1, 2, 3, 4, 5]
    with pytest.raises(InvalidInputError, match="one grade per row"):
        data.with_labels([1])


def test_extra_columns_and_categories_stay_with_their_rows():
    titles = np.array(["s", "t", None, "v", "w"], dtype=object)
    X = np.array([[0.5, 0], [1, 1], [2, np.nan], [3, 1], [4, 0]])
    data = ranking(
        X=X, feature_names=("bm25", "site"), extra={"title": titles}, categories={"site": ["us", "uk"]}
    )
    titles[0] = "changed"
    assert data.extra["title"].tolist() == ["s", "t", None, "v", "w"]
    for other in (pickle.loads(pickle.dumps(data)), copy.deepcopy(data), data.with_labels(data.y)):
        assert other.extra["title"].tolist() == ["s", "t", None, "v", "w"]
        assert other.categories == {"site": ("us", "uk")}
    part = data.drop([0, 3])
    assert part.extra["title"].tolist() == ["t", None, "w"]
    assert part.categories == data.categories
    with pytest.raises(TypeError):
        data.extra["more"] = titles
    with pytest.raises(ValueError, match="read-only"):
        data.extra["title"][0] = "x"


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            {"extra": {"title": ["a"]}},
            "extra column 'title' must have one value per row of X (5); got shape (1,)",
        ),
        ({"extra": {"a": ["t"] * 5}}, "extra columns must not be named like a feature; got 'a'"),
        ({"categories": {"site": ("us",)}}, "categories must belong to features by name; got 'site'"),
        (
            {"categories": {"a": ("us",)}},
            "the categorical feature 'a' must hold codes from 0 to 0, or NaN; got 2.0",
        ),
    ],
)
def test_wrong_extra_columns_and_categories_are_refused(change, complaint):
    X = np.array([[0, 1], [0, 1], [2, 1], [0, 1], [0, 1]])
    with pytest.raises(InvalidInputError, match=re.escape(complaint)):
        ranking(**{"X": X, "feature_names": ("a", "b"), **change})


def test_same_data_sees_every_difference():
    data = ranking(X=np.array([[np.nan, 1]] * 5, dtype=np.float32), feature_names=("a", "b"))
    assert same_data(data, ranking(X=np.array([[np.nan, 1]] * 5, dtype=np.float32), feature_names=("a", "b")))
    other = {
        "X": np.zeros((5, 2), dtype=np.float32),
        "y": [1, 1, 1, 1, 1],
        "indptr": [0, 3, 5],
        "query_ids": ["a", "c"],
        "row_ids": [9, 8, 7, 6, 5],
        "gains": None,
        "doc_ids": ["x"] * 5,
        "weights": [1, 1, 1, 1, 1],
        "positions": None,
        "judged": None,
        "feature_names": ("x", "y"),
        "extra": {"title": np.array(["t"] * 5)},
        "categories": {"a": ("us", "uk")},
    }
    assert set(other) == {f.name for f in dataclasses.fields(RankingData)}
    for name, value in other.items():
        assert not same_data(data, dataclasses.replace(data, **{name: value})), name
    sparse = ranking(X=sp.csr_matrix(np.eye(5, 2)))
    assert same_data(sparse, ranking(X=sp.csr_matrix(np.eye(5, 2))))
    assert not same_data(sparse, ranking(X=sp.csr_matrix(2 * np.eye(5, 2))))
    assert not same_data(sparse, ranking(X=np.eye(5, 2)))
    holes = ranking(X=sp.csr_matrix(np.array([[np.nan, 1]] * 5)))
    assert same_data(holes, ranking(X=sp.csr_matrix(np.array([[np.nan, 1]] * 5))))


def test_places_name_the_row_of_the_input_and_the_query():
    data = ranking()
    assert data.place(1) == "row 3 (query 'a')"
    assert data.place(2) == "row 1 (query 'b')"
    gap = RankingData(X=np.zeros((1, 0)), y=[0], indptr=[0, 0, 1, 1], query_ids=[5, 6, 7], row_ids=[0])
    assert gap.place(0) == "row 0 (query '6')"


def test_data_travel_between_processes_and_stay_immutable():
    data = pickle.loads(pickle.dumps(ranking()))
    assert same_data(data, ranking())
    with pytest.raises(ValueError, match="read-only"):
        data.y[0] = 3


def test_empty_queries_may_exist():
    data = RankingData(X=np.zeros((1, 1)), y=[2], indptr=[0, 0, 1], query_ids=np.array([3, 4]), row_ids=[0])
    assert data.lengths.tolist() == [0, 1]
    assert data.qid.tolist() == [4]
    assert data.select([0]).query_ids.tolist() == [4]


def test_grades_are_shown_up_to_eight():
    data = cr.from_arrays(np.zeros((12, 1)), range(12), group=[12])
    assert repr(data).endswith("grades {0: 1, 1: 1, 2: 1, 3: 1, 4: 1, 5: 1, 6: 1, 7: 1, ...})")


def test_a_run_record_holds_what_it_is_given():
    record = RunRecord(key="k", recipe="r", cell={"seed": 1}, status="done")
    assert record.values == {}
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.key = "other"
