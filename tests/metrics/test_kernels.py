"""The compiled measures against the NumPy path, and against other libraries."""

from itertools import pairwise

import lightgbm as lgb
import numpy as np
import pytest
from scipy.stats import kendalltau
from sklearn.metrics import ndcg_score, roc_auc_score

from cleanrank.metrics import _reference
from cleanrank.metrics.evaluation import evaluate_arrays, query_values
from cleanrank.metrics.measure import as_measures

from .cases import every_measure, one, random_ranking

KINDS = ("distinct", "tied", "last bits", "constant", "signed zeros")


def both(measures, y, s, indptr, gains=None):
    return query_values(measures, y, s, indptr, gains), _reference.query_measures(
        measures, y, s, indptr, gains
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("gained", [False, True])
def test_all_measures_equal_the_numpy_path(kind, gained):
    rng = np.random.default_rng(KINDS.index(kind))
    y, s, indptr = random_ranking(rng, kind=kind)
    gains = rng.uniform(0, 3, len(y)) if gained else None
    measures = every_measure()
    (values, weights), (expected, expected_weights) = both(measures, y, s, indptr, gains)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(weights, expected_weights)


@pytest.mark.parametrize("kind", KINDS)
def test_the_selection_of_the_top_equals_the_whole_sort(kind):
    y, s, indptr = random_ranking(np.random.default_rng(5), kind=kind)
    short = as_measures(["ndcg@10", "map@5", "mrr@3", "err@7", "p@9", "recall@2", "dcg@12:letor"])
    (values, _), (expected, _) = both(short, y, s, indptr)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12)
    sorted_too, _ = query_values((*short, *as_measures("ndcg")), y, s, indptr)
    np.testing.assert_array_equal(values, sorted_too[:-1])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64])
def test_any_number_type_ranks_alike(dtype):
    y, _, indptr = random_ranking(np.random.default_rng(1))
    s = np.random.default_rng(2).integers(-50, 50, len(y)).astype(dtype)
    measures = ("ndcg@10", "map", "auc", "tau", "pairacc")
    a = evaluate_arrays(y, s, indptr, measures).by_query
    b = evaluate_arrays(y, s.astype(np.float64), indptr, measures).by_query
    np.testing.assert_array_equal(a, b)


def test_scores_that_float32_cannot_tell_apart_are_ranked():
    assert one("mrr", [0, 1], np.array([1.0, 1.0 + 2**-40])) == 1.0
    assert one("mrr", [0, 1], np.array([1.0, 1.0 + 2**-40], dtype=np.float32)) == 0.5


@pytest.mark.parametrize("top", [300, 5000])
def test_high_grades(top):
    rng = np.random.default_rng(3)
    y, s, indptr = random_ranking(rng)
    y = rng.choice([0, 1, 7, 250, top], len(y)).astype(np.int32)
    measures = as_measures(
        [
            "ndcg@10:haddad",
            "dcg:gain=linear",
            "map",
            "auc:relevant=8",
            "pairacc",
            "tau",
            "ndcg:haddad:ties=worst",
        ]
    )
    (values, _), (expected, _) = both(measures, y, s, indptr)
    np.testing.assert_allclose(values, expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["distinct", "constant", "rising", "falling", "last bits"])
def test_a_long_query_is_quick(kind):
    n = 100_000
    rng = np.random.default_rng(4)
    s = {"distinct": rng.normal(size=n), "constant": np.zeros(n), "rising": np.arange(n) * 1.0,
         "falling": -np.arange(n) * 1.0, "last bits": 1 + rng.integers(0, n, n) * 2.0**-52}[kind]  # fmt: skip
    y = rng.integers(0, 5, n).astype(np.int32)
    measures = as_measures(
        ["ndcg@10", "map", "auc", "pairacc", "tau", "ndcg@10:ties=worst", "err@10:ties=average"]
    )
    (values, _), (expected, _) = both(measures, y, s, np.array([0, n]))
    np.testing.assert_allclose(values, expected, rtol=1e-11)


# Agreement with other libraries -----------------------------------------------------------------------------


def lightgbm_ndcg(y, scores, sizes, k, metric="ndcg"):
    """LightGBM's own measure of given scores: they enter as the initial score of an untrained model."""
    data = lgb.Dataset(np.zeros((len(y), 1)), label=y, group=sizes, init_score=scores, params={"verbose": -1})
    params = {"objective": "lambdarank", "metric": metric, "eval_at": [k], "verbose": -1,
              "feature_pre_filter": False}  # fmt: skip
    return lgb.Booster(params, data).eval_train()[0][2]


@pytest.mark.parametrize("k", [1, 3, 10, 100])
@pytest.mark.parametrize("kind", ["distinct", "tied", "constant"])
def test_ndcg_is_lightgbms(k, kind):
    y, s, indptr = random_ranking(np.random.default_rng(k), queries=200, kind=kind)
    sizes = np.diff(indptr)
    indptr, sizes = np.unique(indptr), sizes[sizes > 0]
    assert (np.add.reduceat(y, indptr[:-1]) == 0).any()
    assert (sizes < k).any() or k == 1
    ours = evaluate_arrays(y, s, indptr, f"ndcg@{k}").means[f"ndcg@{k}"]
    assert ours == pytest.approx(lightgbm_ndcg(y, s, sizes, k), abs=1e-6)


@pytest.mark.parametrize("kind", ["distinct", "tied"])
def test_ndcg_with_linear_gain_is_sklearns(kind):
    y, s, indptr = random_ranking(np.random.default_rng(7), kind=kind)
    for k in (1, 5, 10, None):
        text = ("ndcg" if k is None else f"ndcg@{k}") + ":gain=linear:empty=zero:ties=average"
        ours = evaluate_arrays(y, s, indptr, text)[text]
        for q, (a, b) in enumerate(pairwise(indptr)):
            if b - a > 1:
                assert ours[q] == pytest.approx(ndcg_score([y[a:b]], [s[a:b]], k=k), abs=1e-12)


def test_auc_is_sklearns_and_tau_is_scipys():
    y, s, indptr = random_ranking(np.random.default_rng(8), kind="tied")
    found = evaluate_arrays(y, s, indptr, ["auc", "auc:relevant=2", "tau"])
    for q, (a, b) in enumerate(pairwise(indptr)):
        for text, lowest in (("auc", 1), ("auc:relevant=2", 2)):
            binary = y[a:b] >= lowest
            if binary.any() and not binary.all():
                assert found[text][q] == pytest.approx(roc_auc_score(binary, s[a:b]), abs=1e-12)
            else:
                assert np.isnan(found[text][q])
        expected = kendalltau(y[a:b], s[a:b]).statistic if b - a > 1 else np.nan
        np.testing.assert_allclose(found["tau"][q], expected, rtol=0, atol=1e-12)


def test_map_and_ndcg_are_those_of_ir_measures():
    ir_measures = pytest.importorskip("ir_measures")
    y, s, indptr = random_ranking(np.random.default_rng(9), kind="distinct")
    qrels, run = [], []
    for q, (a, b) in enumerate(pairwise(indptr)):
        qrels += [ir_measures.Qrel(str(q), str(d), int(y[d])) for d in range(a, b)]
        run += [ir_measures.ScoredDoc(str(q), str(d), float(s[d])) for d in range(a, b)]
    gains = {0: 0, 1: 1, 2: 3, 3: 7, 4: 15}
    peers = {
        "map:letor": ir_measures.AP,
        "map@10:letor": ir_measures.AP @ 10,
        "ndcg@10:gain=linear:empty=zero": ir_measures.nDCG @ 10,
        "ndcg@10:empty=zero": ir_measures.nDCG(gains=gains) @ 10,
        "precision@5": ir_measures.P @ 5,
        "recall@5:empty=zero": ir_measures.R @ 5,
        "mrr": ir_measures.RR,
    }
    ours = evaluate_arrays(y, s, indptr, list(peers))
    for text, peer in peers.items():
        theirs = {m.query_id: m.value for m in ir_measures.iter_calc([peer], qrels, run)}
        assert len(theirs) > 20
        for q, expected in theirs.items():
            assert ours[text][int(q)] == pytest.approx(expected, abs=1e-12), (text, q)


# What the conventions say --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("convention", "expected"),
    [("lightgbm", 1.0), ("skip", np.nan), ("letor", 0.0), ("linear", 1.0), ("trec", 0.0)],
)
@pytest.mark.parametrize("name", ["ndcg", "map", "recall"])
def test_a_query_without_relevant_documents(name, convention, expected):
    found = one(f"{name}@10:{convention}", [0] * 12, np.arange(12.0))
    np.testing.assert_equal(found, expected)


@pytest.mark.parametrize("name", ["dcg", "mrr", "err", "precision"])
def test_measures_that_are_zero_without_relevant_documents(name):
    assert one(f"{name}@10", [0] * 12, np.arange(12.0)) == 0.0
    assert np.isnan(one(f"{name}@10:skip", [0] * 12, np.arange(12.0)))


@pytest.mark.parametrize("convention", ["lightgbm", "skip", "letor", "linear", "trec"])
@pytest.mark.parametrize("name", ["auc", "pairacc", "tau"])
def test_pairs_of_one_class_are_left_out(name, convention):
    assert np.isnan(one(f"{name}:{convention}", [2, 2, 2], [1.0, 2.0, 3.0]))
    assert one(f"{name}:empty=one", [2, 2, 2], [1.0, 2.0, 3.0]) == 1.0
    if name != "tau":
        assert one(f"{name}:micro", [2, 2, 2], [1.0, 2.0, 3.0]) == 0.0


def test_ties_keep_the_order_of_the_rows():
    assert one("mrr", [0, 1, 1], [1.0, 1.0, 1.0]) == 0.5
    assert one("ndcg@1", [0, 1, 1], [1.0, 1.0, 1.0]) == 0.0
    assert one("ndcg@1", [1, 0, 1], [1.0, 1.0, 1.0]) == 1.0


def test_a_short_list_counts_zero_in_letor_only():
    assert one("ndcg@10:letor", [1, 0], [2.0, 1.0]) == 0.0
    assert one("ndcg@10", [1, 0], [2.0, 1.0]) == 1.0
    assert one("ndcg@2:letor", [1, 0], [2.0, 1.0]) == 1.0
    assert one("precision@10:letor", [1, 0], [2.0, 1.0]) == 0.1


def test_pooled_is_the_ratio_of_sums():
    y, s, indptr = [1, 0, 1, 0, 0, 0], [2.0, 1.0, 2.0, 3.0, 1.0, 1.0], [0, 2, 6]
    found = evaluate_arrays(y, s, indptr, ["auc", "auc:pooled", "auc:micro"]).means
    assert found["auc"] == pytest.approx((1 + 2 / 3) / 2)
    assert found["auc:pooled"] == pytest.approx((1 + 2) / (1 + 3))
    assert found["auc:micro"] == pytest.approx((1 / 4 + 2 / 16) / 2)
