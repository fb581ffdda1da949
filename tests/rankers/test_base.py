from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.rankers.base import training_data, unused_columns, validation_data, widened
from tests.rankers.training import trained


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_the_qid_column_names_queries_and_is_no_feature(frame):
    table = frame({"a": [1.0, 2.0, 3.0], "qid": ["x", "y", "x"], "b": [4.0, 5.0, 6.0]})
    data = training_data(table, [0, 1, 2])
    assert data.feature_names == ("a", "b")
    assert data.query_ids.tolist() == ["x", "y"]
    assert data.y.tolist() == [0, 2, 1]
    np.testing.assert_array_equal(data.X, [[1, 4], [3, 6], [2, 5]])


def test_given_ids_win_over_the_column():
    table = pd.DataFrame({"a": [1.0, 2.0], "qid": [1, 1]})
    assert training_data(table, [0, 1], qid=[5, 6]).query_ids.tolist() == [5, 6]
    assert training_data(table, [0, 1], group=[1, 1]).n_queries == 2


def test_validation_rows_come_as_pairs_with_ids_or_sizes_and_names():
    X, y = np.zeros((3, 1)), [0, 1, 0]
    assert validation_data(None) == {}
    for sets in (
        validation_data((X, y), [1, 1, 2]),
        validation_data([(X, y)], [[1, 1, 2]]),
        validation_data([(X, y)], np.array([1, 1, 2])),
        validation_data([(X, y)], eval_group=[[2, 1]]),
        validation_data((X, y), eval_group=[2, 1]),
    ):
        assert sets["valid_0"].lengths.tolist() == [2, 1]
    two = validation_data([(X, y), (X, y)], [[1, 1, 2], None], [None, [3]], ["old", "new"])
    assert {name: data.n_queries for name, data in two.items()} == {"old": 2, "new": 1}
    with pytest.raises(CleanrankError, match="must be a pair"):
        validation_data(X, [1, 1, 2])
    with pytest.raises(CleanrankError, match="eval_qid must be a list with an entry for each of the 2 sets"):
        validation_data([(X, y), (X, y)], [1, 1, 2])
    with pytest.raises(CleanrankError, match="eval_names must name each of the 1 sets"):
        validation_data((X, y), [1, 1, 2], eval_names=["a", "b"])


def test_ids_in_place_of_group_sizes_are_noticed():
    with pytest.raises(CleanrankError, match="An id per row goes into qid="):
        training_data(np.zeros((3, 1)), [0, 1, 0], group=[7, 7, 8])


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix])
def test_rows_are_widened_by_zeros(kind):
    X = np.array([[1.0, 0.0], [0.0, 2.0]], dtype=np.float32)
    data = cr.from_arrays(kind(X), [0, 1], qid=[1, 1], feature_names=["a", "b"], doc_ids=["x", "y"])
    wide = widened(data, 4)
    found = wide.X if isinstance(wide.X, np.ndarray) else wide.X.toarray()
    np.testing.assert_array_equal(found, np.hstack([X, np.zeros((2, 2))]))
    assert type(wide.X) is type(data.X)
    assert wide.feature_names == ("a", "b", "f3", "f4")
    assert wide.doc_ids.tolist() == ["x", "y"]
    assert data.n_features == 2
    assert widened(data, 2) is data
    assert widened(data, 1) is data


def test_widened_sparse_rows_train_and_score_like_dense_ones():
    data = cr.make_ranking(20, 4, docs_per_query=10, seed=0)
    narrow = cr.from_arrays(scipy.sparse.csr_matrix(data.X), data.y, group=data.lengths)
    params = {"min_data_in_leaf": 3}
    sparse, dense = (trained(widened(each, 6), n_estimators=3, params=params) for each in (narrow, data))
    np.testing.assert_array_equal(sparse.predict(widened(narrow, 6).X), dense.predict(widened(data, 6).X))


def test_columns_of_text_are_named_five_at_the_most():
    data = cr.make_ranking(3, 2, docs_per_query=4, seed=0)
    assert unused_columns(data) == ""
    texts = np.full(data.n_docs, "t", dtype=object)
    assert unused_columns(replace(data, extra={"comment": texts})) == ""
    five = dict.fromkeys("abcde", texts)
    assert ": a, b, c, d, e. " in unused_columns(replace(data, extra={"comment": texts, **five}))
    assert ": a, b, c, d, e, .... " in unused_columns(replace(data, extra={**five, "f": texts}))
