"""Leaves without a document: LightGBM ends the training over them, so none may be split off."""

import re
from dataclasses import replace

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV, GroupKFold

import cleanrank as cr
from cleanrank.rankers._lightgbm import ROUNDING, leaf_sum
from cleanrank.rankers.trees import TreeParams


@pytest.fixture(scope="module")
def rows():
    return cr.make_ranking(100, seed=1)


@pytest.fixture(scope="module")
def wide():
    return cr.corrupt(cr.make_ranking(200, 136, docs_per_query=120, seed=1), "uniform", 0.2, seed=1)


@pytest.mark.parametrize("implementation", ["exact", "builtin"])
@pytest.mark.parametrize("params", [None, {"min_sum_hessian_in_leaf": 0.0}, {"min_child_weight": 0}])
def test_small_leaves_train(rows, implementation, params):
    settings = {"n_estimators": 25, "implementation": implementation, "params": params}
    model = cr.BoostedRanker(min_child_samples=5, num_leaves=63, **settings).fit_data(rows).model_
    counts = re.findall("\nleaf_count=(.*)", model.booster.model_to_string())
    assert min(int(n) for line in counts for n in line.split()) > 0


def test_a_least_sum_is_never_a_rounding_error(rows):
    total = ROUNDING * rows.n_docs
    name = "min_sum_hessian_in_leaf"
    assert leaf_sum(rows, {}) == {name: 1e-3}  # LightGBM's default
    assert leaf_sum(rows, {name: 0.0}) == {name: total}
    assert leaf_sum(rows, {name: 2}) == {name: 2}
    heavy = replace(rows, weights=np.full(rows.n_docs, 1e9))
    assert leaf_sum(heavy, {}) == {name: pytest.approx(1e9 * total)}
    for value in (-1.0, "x"):
        with pytest.raises(cr.CleanrankError, match=name):
            TreeParams(params={name: value}, n_estimators=1).train(rows)


def test_a_search_over_leaf_sizes_works(rows):
    few = rows.select_queries(range(40))
    grid = {"min_child_samples": [1, 5, 10, 20]}
    with sklearn.config_context(enable_metadata_routing=True):
        ranker = cr.BoostedRanker(n_estimators=15, num_leaves=63).set_fit_request(qid=True)
        ranker = ranker.set_score_request(qid=True)
        search = GridSearchCV(ranker, grid, cv=GroupKFold(2), error_score="raise")
        search.fit(few.X, few.y, qid=few.qid, groups=few.qid)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.slow
def test_the_data_set_on_which_it_was_seen_trains(wide):
    data = wide.data
    assert cr.BoostedRanker(n_estimators=100).fit_data(data).model_.best_iteration == 100
    assert len(cr.find_label_issues(data, method="sour", end=100)) == data.n_docs
    sour = cr.SOURRanker(end=60, n_estimators=60).fit_data(data)
    assert sour.model_.best_iteration == 60
    robust = cr.RobustRanker(noise=wide.profile, n_estimators=60, folds=2, grid={"num_leaves": (31,)})
    assert robust.fit_data(data).chosen_["strategy"] == "posterior"
