import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import cleanrank as cr
from cleanrank.data.inputs import as_data, scores_by_row
from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.metrics.explain_ndcg import explain_query
from cleanrank.metrics.noisy_labels import corrected
from cleanrank.metrics.noisy_order import compare_corrected, order_probability
from tests.oracles import same_data

KINDS = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "arrow": pa.table}


@pytest.fixture(scope="module")
def shuffled():
    """A frame that is not grouped by query, with the scores of its rows in its own order."""
    rng = np.random.default_rng(0)
    made = cr.make_ranking(40, 4, docs_per_query=10, seed=3)
    rows = rng.permutation(made.n_docs)
    columns = {
        "grade": made.y[rows],
        "query": [f"q{i}" for i in made.qid[rows]],
        **{f"f{j}": made.X[rows, j].astype(float) for j in range(4)},
        "title": [f"title {i}" for i in rows],
    }
    return columns, columns["grade"] + rng.normal(size=made.n_docs)


def by_hand(columns, scores):
    """Mean NDCG@10 query by query, without the library's grouping."""
    values = []
    for query in dict.fromkeys(columns["query"]):
        mine = np.array(columns["query"]) == query
        values.append(cr.evaluate(scores[mine], y=columns["grade"][mine], group=[mine.sum()])["ndcg@10"][0])
    return np.mean(values)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_data_from_a_frame_and_from_arrays(shuffled, kind):
    columns, _ = shuffled
    data = cr.from_frame(KINDS[kind](columns), label="grade", qid="query")
    assert same_data(as_data(KINDS[kind](columns), label="grade", qid="query"), data)
    features = KINDS[kind]({name: columns[name] for name in ("f0", "f1", "f2", "f3", "title")})
    assert same_data(as_data(features, columns["grade"], qid=columns["query"]), data)
    X = np.column_stack([columns[f"f{j}"] for j in range(4)])
    for matrix in (X, X.tolist()):
        arrays = as_data(matrix, columns["grade"], qid=pd.Series(columns["query"]))
        np.testing.assert_array_equal(arrays.X, data.X)
        np.testing.assert_array_equal(arrays.row_ids, data.row_ids)
    assert as_data(sp.csr_matrix(X), columns["grade"], group=[len(X)]).n_queries == 1
    assert as_data(data) is data


@pytest.mark.parametrize("kind", KINDS)
def test_scores_in_the_order_of_the_users_own_rows(shuffled, kind):
    columns, scores = shuffled
    frame = KINDS[kind](columns)
    data = cr.from_frame(frame, label="grade", qid="query")
    expected = pytest.approx(by_hand(columns, scores))
    assert not np.array_equal(data.row_ids, np.arange(data.n_docs))
    assert cr.evaluate(scores, frame, label="grade", qid="query").means["ndcg@10"] == expected
    assert cr.evaluate(scores, data, order="input").means["ndcg@10"] == expected
    assert cr.evaluate(scores[data.row_ids], data, order="data").means["ndcg@10"] == expected
    assert cr.evaluate(scores, y=columns["grade"], qid=columns["query"]).means["ndcg@10"] == expected
    assert cr.evaluate(scores, data, order="data").means["ndcg@10"] < 0.8 < expected.expected


def test_a_ranker_is_as_good_as_its_own_score_says(shuffled):
    columns, _ = shuffled
    frame = pd.DataFrame(columns)
    features = [f"f{j}" for j in range(4)]
    ranker = cr.BoostedRanker(n_estimators=10, num_leaves=4)
    ranker.fit(frame[features], frame["grade"], qid=frame["query"])
    own = ranker.score(frame[features], frame["grade"], qid=frame["query"])
    evaluation = cr.evaluate(ranker.predict(frame[features]), frame, "ndcg@10", label="grade", qid="query")
    assert evaluation.means["ndcg@10"] == pytest.approx(own, abs=1e-12)


def test_every_function_of_scores_refuses_an_order_that_it_cannot_know(shuffled):
    columns, scores = shuffled
    data = cr.from_frame(pd.DataFrame(columns), label="grade", qid="query")
    systems, noise = {"a": scores, "b": -scores}, "uniform:0.1"
    calls = {
        "evaluate": lambda **o: cr.evaluate(scores, data, **o).means,
        "compare": lambda **o: cr.compare(systems, data, permutations=99, **o).means.tolist(),
        "select_model": lambda **o: cr.select_model(systems, data, repetitions=2, **o).winner,
        "calibrate_cutoff": lambda **o: (
            cr.calibrate_cutoff(scores, data, alpha=0.5, cut="rank", **o).empirical
        ),
        "explain_query": lambda **o: explain_query(data, scores, "q7", **o).values,
        "corrected": lambda **o: corrected(scores, data, noise=noise, **o).means.tolist(),
        "order_probability": lambda **o: order_probability(scores, -scores, data, noise=noise, **o),
        "compare_corrected": lambda **o: compare_corrected(systems, data, noise=noise, **o),
    }
    own = scores[data.row_ids]
    for name, call in calls.items():
        with pytest.raises(InvalidInputError, match=r"order='input'.*order='data'"):
            call()
        mine = call(order="input")
        scores, systems = own, {"a": own, "b": -own}
        assert call(order="data") == mine, name
        scores, systems = shuffled[1], {"a": shuffled[1], "b": -shuffled[1]}
    with pytest.raises(UnknownNameError, match="unknown order 'rows'"):
        cr.evaluate(scores, data, order="rows")


def test_scores_of_rows_in_order_need_no_word():
    data = cr.from_arrays(np.zeros((5, 1)), [0, 1, 2, 0, 1], group=[3, 2]).drop([1])
    scores = np.arange(4.0)
    for order in (None, "input", "data"):
        assert scores_by_row(scores, data, order) is scores


def test_a_kept_selection_takes_scores_in_the_order_of_its_input():
    data = cr.from_arrays(np.zeros((5, 1)), [0, 1, 2, 0, 1], qid=list("abaab")).drop([0])
    assert data.row_ids.tolist() == [2, 3, 1, 4]
    assert scores_by_row([1.0, 2.0, 3.0, 4.0], data, "input").tolist() == [2.0, 3.0, 1.0, 4.0]
    with pytest.raises(
        InvalidInputError, match=r"scores must hold one number per row \(4\); got shape \(3,\)"
    ):
        cr.evaluate([1.0, 2.0, 3.0], data, order="input")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"data": "train.csv"}, "got 'train.csv'. Read a file first: cr.read_data('train.csv')."),
        ({"data": None}, "got None. Make one with cr.read_data, cr.from_frame or cr.from_arrays."),
        ({"data": 3}, "got an int."),
        ({"data": np.zeros((2, 2))}, "got a ndarray. With features alone, say the grades (y=)"),
        ({"data": np.zeros((2, 2)), "y": [0, 1]}, "queries must be given either as qid"),
        ({"data": pd.DataFrame({"x": [1.0]}), "y": [0], "label": "x"}, "a frame must name its columns"),
        ({"data": pd.DataFrame({"x": [1.0]})}, "there is no column 'label' (label=)"),
        ({"data": pl.LazyFrame({"x": [1.0]})}, "there is no column 'label' (label=)"),
    ],
)
def test_what_is_no_data_is_refused_with_the_right_call(arguments, complaint):
    with pytest.raises((InvalidInputError, UnknownNameError), match=re.escape(complaint)):
        as_data(arguments.pop("data"), **arguments)


def test_features_are_chosen_by_name(shuffled):
    frame = pd.DataFrame(shuffled[0]).assign(judge=3)
    columns = {"label": "grade", "qid": "query", "features": ["f1", "f0"]}
    assert cr.find_label_issues(frame, "contradictions", **columns).source.data.feature_names == ("f1", "f0")
    assert cr.diagnose(frame, **columns).features == 2
    data = as_data(frame[["f0", "f1", "judge"]], frame["grade"], qid=frame["query"], features=["f1"])
    assert (data.feature_names, list(data.extra)) == (("f1",), ["f0", "judge"])
    with pytest.raises(InvalidInputError, match="features= names columns of a frame; got an array"):
        as_data(np.zeros((2, 2)), [0, 1], group=[2], features=["a"])


def test_ranking_data_take_no_columns():
    data = cr.make_ranking(3, 2, seed=0)
    with pytest.raises(InvalidInputError, match="label= and qid= go with a frame or X"):
        as_data(data, label="grade", qid="q")
    with pytest.raises(InvalidInputError, match=r"got a Corruption\. Its \.data are the data"):
        as_data(cr.corrupt(data, rate=0.1))


def test_scores_of_pandas_with_another_index_are_refused():
    data = cr.make_ranking(10, 3, docs_per_query=5, seed=0)
    frame = pd.DataFrame({"label": data.y, "qid": data.qid}).sample(frac=1, random_state=0)
    scores = pd.Series(np.arange(float(len(frame))), index=frame.index)
    right = cr.evaluate(scores, frame).means
    assert cr.evaluate(scores.to_numpy(), frame).means == right
    with pytest.raises(cr.CleanrankError, match="scores must have the index of the frame"):
        cr.evaluate(scores.sort_index(), frame)
    with pytest.raises(cr.CleanrankError, match="scores must have the index of the frame"):
        cr.compare({"a": scores, "b": scores.sort_index()}, frame)
