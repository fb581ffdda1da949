from dataclasses import replace

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError, InvalidInputError
from cleanrank.metrics import evaluation
from cleanrank.metrics.evaluation import (
    check_grades,
    checked_scores,
    evaluate,
    evaluate_arrays,
    query_values,
    weighted_means,
)
from cleanrank.metrics.measure import Measure, as_measures
from cleanrank.metrics.significance import bootstrap_interval

from .cases import random_ranking


def test_an_evaluation_is_a_mapping(data, scores):
    found = evaluate(scores["a"], data, ["ndcg@10", "map:skip", "AUC"])
    assert list(found) == ["ndcg@10", "map:skip", "auc"]
    assert len(found) == 3
    assert found["NDCG@10:lightgbm"] is not None
    np.testing.assert_array_equal(found["ap:skip"], found[Measure.parse("map:skip")])
    assert "map:skip" in found
    assert "map" not in found
    assert 3 not in found
    assert dict(found).keys() == found.means.keys()
    with pytest.raises(CleanrankError, match=r"unknown evaluated measure 'map'.*map:skip"):
        found["map"]
    assert np.isnan(found["map:skip"][0])
    assert found.means["map:skip"] == pytest.approx(np.nanmean(found["map:skip"]))
    assert found.query_ids.tolist() == list(range(20))


def test_the_table_carries_the_convention(data, scores):
    shown = repr(evaluate(scores["a"], data, ["ndcg@10", "map:skip"]))
    assert "gain 2^y - 1" in shown
    assert "a query is left out" in shown
    assert "  19 " in shown


def test_a_frame_has_a_row_per_query(data, scores):
    frame = evaluate(scores["a"], data, ["ndcg@10", "auc:pooled"]).to_frame()
    assert frame.shape == (20, 2)
    assert frame.index.name == "query_id"


def test_intervals_are_those_of_each_line(data, scores):
    found = evaluate(scores["a"], data, ["ndcg@10", "auc:pooled"])
    expected = bootstrap_interval(found["auc:pooled"], found.weights[1], level=0.9, seed=3)
    assert found.intervals(0.9, seed=3)["auc:pooled"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (np.full(200, np.nan), "got nan at row 0 (query '0')"),
        (np.where(np.arange(200) == 57, np.inf, 0.0), "got inf at row 57 (query '5')"),
        (np.where(np.arange(200) == 3, -np.inf, 0.0).astype(np.float32), "got -inf at row 3"),
        (np.zeros(199), "one number per row (200)"),
        (np.array(["x"] * 200), "must be numbers"),
        (np.zeros(200, dtype=complex), "must be numbers"),
    ],
)
def test_bad_scores_are_refused(data, bad, words):
    with pytest.raises(InvalidInputError) as error:
        evaluate(bad, data, "ndcg@10")
    assert words in str(error.value)


def test_a_column_of_scores_is_flattened():
    assert checked_scores(np.zeros((3, 1)), 3).shape == (3,)


def test_gains_of_the_data_are_used():
    data = cr.from_arrays(np.ones((2, 1)), [0, 1], qid=[1, 1], gains=[2.0, 1.0])
    assert evaluate([2.0, 1.0], data, "ndcg@10").means["ndcg@10"] == 1.0
    assert evaluate([2.0, 1.0], data, "mrr").means["mrr"] == 0.5


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"y": [0.5, 1]}, "whole grades"),
        ({"y": [-1, 1]}, "must not be negative"),
        ({"indptr": [0, 1]}, "must rise from 0"),
        ({"indptr": [0, 2, 1, 2]}, "must rise from 0"),
        ({"indptr": []}, "row offsets"),
        ({"indptr": [0, 1.5, 2]}, "whole numbers"),
        ({"gains": [1.0]}, "gains"),
        ({"gains": [1.0, -1.0]}, "gains"),
    ],
)
def test_bad_arrays_are_refused(arguments, words):
    given = {"y": [0, 1], "scores": [1.0, 2.0], "indptr": [0, 2], "measures": "ndcg"} | arguments
    with pytest.raises(InvalidInputError, match=words):
        evaluate_arrays(**given)


def test_nothing_to_evaluate():
    found = evaluate_arrays(np.zeros(0, np.int32), [], [0], ["ndcg@10", "auc:pooled"])
    assert found["ndcg@10"].shape == (0,)
    assert np.isnan(list(found.means.values())).all()
    assert np.isnan(found.intervals()["ndcg@10"]).all()


def test_without_numba_the_values_are_the_same(monkeypatch):
    y, s, indptr = random_ranking(np.random.default_rng(3), kind="tied")
    measures = as_measures(["ndcg@10", "map", "auc:pooled", "tau", "err@5:ties=average"])
    compiled = query_values(measures, y, s, indptr)
    monkeypatch.setattr(evaluation, "has_numba", lambda: False)
    plain = query_values(measures, y, s, indptr)
    np.testing.assert_allclose(compiled[0], plain[0], rtol=0, atol=1e-12)
    np.testing.assert_array_equal(compiled[1], plain[1])


def test_weighted_means_ignore_nan():
    means = weighted_means(np.array([[1.0, np.nan, 3.0], [np.nan] * 3]), np.array([[1.0, 5.0, 3.0]] * 2))
    assert means.tolist() == pytest.approx([2.5, np.nan], nan_ok=True)


def test_what_was_not_evaluated_has_a_default(data, scores):
    found = evaluate(scores["a"], data, "ndcg@10")
    assert found.get("map") is None
    assert found.get("map", 0) == 0
    assert found.get("ndcg@10:lightgbm") is not None


def test_grades_that_a_measure_cannot_read_are_refused():
    with pytest.raises(InvalidInputError, match=r"max_grade of 'err'.*max_grade=5"):
        check_grades(as_measures("err"), np.array([5]), None)
    with pytest.raises(InvalidInputError, match="gain=linear"):
        check_grades(as_measures("ndcg"), np.array([0, 61]), None)
    check_grades(as_measures("ndcg"), np.array([0, 61]), np.ones(2))


def test_ties_of_trec_go_by_falling_document_id_and_those_of_others_by_row():
    data = cr.from_arrays(np.zeros((3, 1)), [1, 0, 0], group=[3])
    named = replace(data, doc_ids=np.array(["a", "c", "b"]))
    found = cr.evaluate([1.0, 1.0, 0.0], named, ["mrr", "mrr:trec"], order="data")
    assert found["mrr"].tolist() == [1.0]
    assert found["mrr:trec"].tolist() == [0.5]
    later = replace(data, doc_ids=np.array(["c", "a", "b"]))
    assert cr.evaluate([1.0, 1.0, 0.0], later, "mrr:trec", order="data")["mrr:trec"].tolist() == [1.0]


def test_ties_of_trec_eval_are_broken_by_falling_document_ids():
    """Rows 2, 1 and 0 are tied: ids that fall already stay in place, others are put in order."""
    data = cr.from_arrays(np.zeros((5, 1)), [0, 1, 0, 1, 0], qid=[1, 1, 1, 2, 2])
    for ids, order in (("dcbfe", [0, 1, 2, 3, 4]), ("bdcef", [1, 2, 0, 4, 3])):
        scores = evaluation.trec_scores(np.ones(5), replace(data, doc_ids=np.array(list(ids))))
        of_query = [sorted(rows, key=lambda row: -scores[row]) for rows in ([0, 1, 2], [3, 4])]
        assert [*of_query[0], *of_query[1]] == order
