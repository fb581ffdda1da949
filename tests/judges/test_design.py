"""How gold labels were chosen: found out from the labels themselves."""

import numpy as np
import pytest

from cleanrank.errors import InvalidInputError
from cleanrank.judges.design import design_of
from tests.judges.test_evaluation import LENGTH, PAIRS, Q, labels, run, whole


def chosen(gold, measure="dcg@10", **settings):
    return design_of(run("good"), labels("judge"), gold, measure, **settings)


def test_the_kind_follows_the_gold_labels():
    some = labels("gold", PAIRS.sample(200, random_state=0).index)
    assert chosen(whole(10)).kind == "queries"
    assert chosen(some).kind == "stratified"
    assert chosen(some.assign(probability=0.3)).kind == "documents"
    assert chosen(whole(10), kind="stratified").n_gold == 10 * LENGTH


def test_what_systems_show_makes_a_query_whole():
    top = PAIRS[PAIRS.qid.isin(PAIRS.qid.unique()[:8])].sort_values("good").groupby("qid").tail(5)
    design = chosen(labels("gold", top.index), "dcg@5")
    assert design.kind == "queries"
    assert design.whole.sum() == design.n_gold == 8


def test_strata_are_grades_of_the_judge_and_rare_ones_are_joined():
    some = PAIRS.sample(60, random_state=1).index
    frame = chosen(labels("gold", some)).frame()
    judge = PAIRS.judge.to_numpy()
    assert len(frame.judge) == Q * LENGTH
    drawn = np.bincount(judge[some], minlength=4)
    for grade in range(4):
        rows = frame.judge == grade
        assert len(np.unique(frame.probability[rows])) == 1
        if drawn[grade] >= 5 and drawn[grade + 1 :].sum() >= 5:
            assert frame.probability[rows][0] == pytest.approx(drawn[grade] / (judge == grade).sum())
    assert frame.probability.sum() == pytest.approx(60)


def test_systems_differ_where_their_rankings_do():
    other = run("good")
    first = other.qid == "q00"
    other.loc[first, "score"] *= -1
    both = {"a": run("good"), "b": other}
    design = design_of(both, labels("judge"), whole(10), "ndcg@10")
    assert np.flatnonzero(design.differing(0, 1)).tolist() == [0]


def test_a_measure_without_a_value_for_every_query_is_refused():
    with pytest.raises(InvalidInputError, match="must give every query a value"):
        chosen(whole(10), "ndcg@10:skip")
