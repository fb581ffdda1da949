import lightgbm as lgb
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score

from cleanrank.errors import CleanrankError
from cleanrank.metrics.explain_ndcg import READINGS, TOOLS, explain_ndcg
from cleanrank.metrics.measure import CONVENTIONS

from .cases import one

RANKINGS = {
    "plain": ([0, 2, 1, 0, 3], [5.0, 4.0, 3.0, 2.0, 1.0], 3),
    "ties": ([0, 2, 1, 0, 3], [1.0, 1.0, 1.0, 2.0, 1.0], 3),
    "ties, best first": ([3, 0, 1, 0, 2], [1.0, 1.0, 1.0, 2.0, 1.0], 3),
    "nothing relevant": ([0, 0, 0], [1.0, 2.0, 3.0], 3),
    "short": ([0, 2, 1], [3.0, 2.0, 1.0], 10),
}
ranking = pytest.mark.parametrize(("y", "s", "k"), RANKINGS.values(), ids=RANKINGS)


@ranking
def test_lightgbm_and_sklearn_do_what_is_said(y, s, k):
    tools = explain_ndcg(y, s, k).tools
    data = lgb.Dataset(np.zeros((len(y), 1)), label=y, group=[len(y)], init_score=s, params={"verbose": -1})
    params = {"objective": "lambdarank", "metric": "ndcg", "eval_at": [k], "verbose": -1}
    assert tools["LightGBM"] == pytest.approx(lgb.Booster(params, data).eval_train()[0][2], abs=1e-7)
    assert tools["scikit-learn ndcg_score"] == pytest.approx(ndcg_score([y], [s], k=k), abs=1e-12)


def judged(y, s):
    names = [f"d{i:02d}" for i in range(len(y))]
    return {"q": dict(zip(names, map(int, y), strict=True))}, {
        "q": dict(zip(names, map(float, s), strict=True))
    }


@ranking
def test_trec_eval_does_what_is_said(y, s, k):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    ir_measures = pytest.importorskip("ir_measures")
    qrels, run = judged(y, s)
    tools = explain_ndcg(y, s, k).tools
    found = pytrec_eval.RelevanceEvaluator(qrels, {f"ndcg_cut.{k}"}).evaluate(run)["q"][f"ndcg_cut_{k}"]
    assert tools["trec_eval, pytrec_eval"] == pytest.approx(found, abs=1e-12)
    found = ir_measures.calc_aggregate([ir_measures.nDCG @ k], qrels, run)[ir_measures.nDCG @ k]
    assert tools["ir_measures nDCG"] == pytest.approx(found, abs=1e-12)


@pytest.mark.slow
@ranking
def test_ranx_does_what_is_said(y, s, k):
    ranx = pytest.importorskip("ranx")
    qrels, run = judged(y, s)
    tools = explain_ndcg(y, s, k).tools
    for name, metric in (("ranx ndcg", "ndcg"), ("ranx ndcg_burges", "ndcg_burges")):
        found = ranx.evaluate(ranx.Qrels(qrels), ranx.Run(run), f"{metric}@{k}")
        assert tools[name] == pytest.approx(found, abs=1e-7)


@ranking
def test_the_table_adds_up(y, s, k):
    found = explain_ndcg(y, s, k)
    assert [d.rank for d in found.documents] == list(range(1, len(y) + 1))
    for name in CONVENTIONS:
        np.testing.assert_equal(found.values[name], one(f"ndcg@{k}:{name}", y, s))
        total = sum(d.contributions[name] for d in found.documents)
        if found.ideal[name] > 0 and (len(y) >= k or name != "letor"):
            assert found.values[name] == pytest.approx(total / found.ideal[name])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 3)), min_size=1, max_size=8), st.integers(1, 6))
def test_the_steps_lead_from_one_reading_to_the_other(pairs, k):
    y, s = zip(*pairs, strict=True)
    found = explain_ndcg(y, s, k)
    values = {**found.tools, **found.values}
    for name in READINGS:
        effects = [step.effect for step in found.steps[name]]
        if np.isnan(values[name]):
            assert np.isnan(effects[-1])
        else:
            assert values["lightgbm"] + sum(effects) == pytest.approx(values[name], abs=1e-12)


def test_sentences_name_the_part_and_the_size():
    steps = explain_ndcg([0, 2, 1], [0.9, 0.8, 0.7], k=3).steps["CatBoost"]
    assert [s.part for s in steps] == ["gain"]
    assert steps[0].sentence.startswith(
        "gain: the gain is 2^y - 1 in lightgbm, the gain is y in CatBoost: +0.0"
    )
    steps = explain_ndcg([0, 0], [0.9, 0.8]).steps["skip"]
    assert "left out" in steps[0].sentence
    assert "no value" in steps[0].sentence
    assert explain_ndcg([1, 0], [0.9, 0.8]).steps["ranx ndcg"] == ()


def test_document_ids_decide_ties_of_trec_eval():
    y, s = [1, 0], [1.0, 1.0]
    assert explain_ndcg(y, s, 1).tools["trec_eval, pytrec_eval"] == 0.0
    assert explain_ndcg(y, s, 1, doc_ids=["b", "a"]).tools["trec_eval, pytrec_eval"] == 1.0
    assert all(d.tied for d in explain_ndcg(y, s, 1).documents)


def test_plain_values():
    found = explain_ndcg([1, 0], [1.0, 2.0]).to_dict()
    assert found["documents"][0]["grade"] == 0
    assert set(found["tools"]) == set(TOOLS)


@pytest.mark.parametrize(
    ("y", "s", "k"),
    [
        ([], [], 3),
        ([1], [np.nan], 3),
        ([1], [1.0, 2.0], 3),
        ([-1], [1.0], 3),
        ([0.5], [1.0], 3),
        ([1], [1.0], 0),
    ],
)
def test_bad_rankings_are_refused(y, s, k):
    with pytest.raises(CleanrankError):
        explain_ndcg(y, s, k)


def test_scores_that_tie_as_32_bit_floats_tie_in_trec_eval():
    ir_measures = pytest.importorskip("ir_measures")
    y, scores, ids = [1, 0], [1.00000001, 1.0], ["a", "b"]
    qrels = [ir_measures.Qrel("1", doc, grade) for doc, grade in zip(ids, y, strict=True)]
    run = [ir_measures.ScoredDoc("1", doc, score) for doc, score in zip(ids, scores, strict=True)]
    theirs = ir_measures.calc_aggregate([ir_measures.nDCG @ 10], qrels, run)[ir_measures.nDCG @ 10]
    found = explain_ndcg(y, scores, 10, ids)
    assert found.tools["ir_measures nDCG"] == pytest.approx(theirs)
    assert found.tools["LightGBM"] == 1.0
    assert explain_ndcg(y, [1e300, -1e300], 10, ids).tools["ir_measures nDCG"] == 1.0
