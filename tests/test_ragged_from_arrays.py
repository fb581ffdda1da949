import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import cleanrank as cr
from cleanrank.errors import InvalidInputError
from cleanrank.ragged import from_arrays, row_order
from tests.oracles import same_data


@settings(max_examples=100, deadline=None)
@given(qid=st.lists(st.integers(0, 5), min_size=1, max_size=40), sparse=st.booleans())
def test_shuffled_rows_are_grouped_and_predictions_find_their_way_back(qid, sparse):
    n = len(qid)
    X = np.arange(3 * n, dtype=np.float32).reshape(n, 3)
    data = from_arrays(
        sp.coo_matrix(X) if sparse else X,
        np.arange(n) % 4,
        qid=qid,
        gains=np.arange(n) / 3,
        doc_ids=[f"d{i}" for i in range(n)],
        weights=np.arange(n) / 2,
        positions=np.arange(n) + 1,
    )
    dense = data.X.toarray() if sparse else data.X
    rows = data.row_ids
    np.testing.assert_array_equal(dense, X[rows])
    np.testing.assert_array_equal(data.y, (np.arange(n) % 4)[rows])
    np.testing.assert_array_equal(data.qid, np.array(qid)[rows])
    np.testing.assert_array_equal(data.gains, (np.arange(n) / 3)[rows])
    np.testing.assert_array_equal(data.weights, (np.arange(n) / 2).astype(np.float32)[rows])
    assert data.doc_ids.tolist() == [f"d{i}" for i in rows]
    assert (data.positions == rows + 1).all()
    predicted = dense @ np.array([1.0, -2.0, 0.5])
    back = np.empty(n)
    back[data.row_ids] = predicted
    np.testing.assert_array_equal(back, X @ np.array([1.0, -2.0, 0.5]))


def test_the_input_is_left_as_it_was_and_cannot_reach_the_labels():
    X, y, w = (
        np.ones((3, 2), dtype=np.float32),
        np.array([0, 1, 2], dtype=np.int32),
        np.ones(3, dtype=np.float32),
    )
    data = from_arrays(X, y, qid=[1, 1, 1], weights=w)
    assert X.flags.writeable
    assert y.flags.writeable
    y[:] = 0
    w[:] = 9
    assert data.y.tolist() == [0, 1, 2]
    assert data.weights.tolist() == [1, 1, 1]


def test_group_and_qid_say_the_same():
    X, y = np.zeros((4, 1)), [0, 1, 0, 1]
    by_group = from_arrays(X, y, group=[3, 1])
    assert same_data(by_group, from_arrays(X, y, qid=[0, 0, 0, 1]))
    assert from_arrays(X, y, group=[0, 4]).lengths.tolist() == [0, 4]


def test_frames_and_lists_serve_as_arrays():
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [3, 4]})
    data = cr.from_arrays(frame, pd.Series([0, 1]), qid=pd.Series(["u", "v"]))
    assert data.X.tolist() == [[1, 3], [2, 4]]
    assert data.query_ids.tolist() == ["u", "v"]
    assert from_arrays(np.zeros((0, 3)), [], qid=np.zeros(0, dtype=int)).n_features == 3


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            {},
            "must be given either as qid (an id per row) or as group (documents per query); got neither",
        ),
        ({"qid": [1, 1, 1], "group": [3]}, "got both"),
        ({"qid": [1, 1]}, "qid must have one id per row of X (3); got shape (2,)"),
        ({"group": [1, 1]}, "group must sum to the number of rows (3); got 2."),
        (
            {"group": [7, 7, 8]},
            "group must sum to the number of rows (3); got 22. An id per row goes into qid=.",
        ),
        ({"group": [4, -1]}, "group must"),
        ({"group": [1.5, 1.5]}, "group must list whole numbers of documents per query; got dtype float64"),
        (
            {"qid": [1, 1, 1], "weights": [1.0]},
            "weights must have one value per row of X (3); got shape (1,)",
        ),
        ({"qid": [1, 1, 1], "feature_names": ("a",)}, "feature_names must name each of the 2 columns"),
    ],
)
def test_wrong_arguments_are_refused_in_words(arguments, said):
    with pytest.raises(InvalidInputError) as caught:
        from_arrays(np.zeros((3, 2)), [0, 1, 0], **arguments)
    assert said in str(caught.value)


def test_other_shapes_are_refused():
    with pytest.raises(InvalidInputError, match="X must have two dimensions"):
        from_arrays([1.0, 2.0], [0, 1], qid=[1, 1])
    with pytest.raises(InvalidInputError, match="y must have one value per row"):
        from_arrays([[1.0], [2.0]], [0], qid=[1, 1])
    order, indptr, ids = row_order(3, ["b", "a", "b"], None)
    assert (order.tolist(), indptr.tolist(), ids.tolist()) == ([0, 2, 1], [0, 2, 3], ["b", "a"])


@pytest.mark.parametrize(
    ("X", "complaint"),
    [
        ([[1.0], [2.0, 3.0]], "rows of one length"),
        ([1.0, 2.0], r"X\[:, None\]"),
        (np.array([[1e300], [0.0]]), "float32 can"),
        (sp.csr_matrix([[1e300], [0.0]]), "float32 can"),
        (np.array([[1j], [0.0]]), "real numbers"),
    ],
)
def test_features_that_would_change_are_refused(X, complaint):
    with pytest.raises(InvalidInputError, match=complaint):
        from_arrays(X, [0, 1], qid=[1, 1])


def test_infinite_features_stay_what_they_are():
    assert np.isinf(from_arrays([[np.inf], [0.0]], [0, 1], qid=[1, 1]).X[0, 0])


@pytest.mark.parametrize(
    ("column", "complaint"),
    [
        ({"weights": [1.0, 1e300]}, "weights must be at most 3.4028"),
        ({"positions": [1, 2**33]}, "positions must be at most 2147483647"),
        ({"doc_ids": ["a", None]}, "doc_ids must be present; got None at row 1"),
        ({"feature_names": "a"}, "feature_names must be a list"),
    ],
)
def test_columns_that_would_change_are_refused(column, complaint):
    with pytest.raises(InvalidInputError, match=complaint):
        from_arrays([[1.0], [2.0]], [0, 1], qid=[1, 1], **column)


def test_a_negative_group_is_named():
    with pytest.raises(InvalidInputError, match="negative numbers; got -1 at query 0"):
        from_arrays([[1.0], [2.0], [3.0]], [0, 1, 0], group=[-1, 4])


def test_a_grade_far_out_does_not_make_the_text_of_the_data_costly():
    assert repr(from_arrays([[1.0], [2.0]], [0, 2**31 - 1], qid=[1, 1])).endswith("grades {0: 1, ...})")
