"""LightGBM's attributes and habits, which all rankers of trees share."""

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import InvalidInputError
from cleanrank.metrics.evaluation import evaluate_mean

TRAIN, FIRST, SECOND = (cr.make_ranking(30, 6, docs_per_query=10, seed=s) for s in (1, 2, 3))


@pytest.fixture(scope="module")
def ranker():
    return cr.BoostedRanker(n_estimators=12, early_stopping_rounds=3).fit_data(
        TRAIN, {"first": FIRST, "second": SECOND}
    )


def test_attributes_are_those_of_the_trees_in_use(ranker):
    trees = ranker.booster_.trees_to_dataframe()
    used = trees[(trees["tree_index"] < ranker.best_iteration_) & trees["split_feature"].notna()]
    names = ranker.booster_.feature_name()
    expected = [int((used["split_feature"] == name).sum()) for name in names]
    assert ranker.feature_importances_.tolist() == expected
    assert 0 < ranker.best_iteration_ <= 12


def test_every_set_of_validation_rows_has_its_curve_and_the_first_decides(ranker):
    curves = {name: next(iter(curve.values())) for name, curve in ranker.evals_result_.items()}
    assert list(curves) == ["first", "second"]
    assert len(curves["first"]) == len(curves["second"])
    assert int(np.argmax(curves["first"])) + 1 == ranker.best_iteration_
    scores = ranker.booster_.predict(SECOND.X, num_iteration=2)
    assert curves["second"][1] == pytest.approx(evaluate_mean(scores, SECOND, "ndcg@10"))


def test_callbacks_see_every_tree_and_are_forgotten():
    seen = []
    ranker = cr.BoostedRanker(n_estimators=4).fit_data(
        TRAIN, callbacks=[lambda env: seen.append(env.iteration)]
    )
    assert seen == [0, 1, 2, 3]
    ranker.fit_data(TRAIN)
    assert len(seen) == 4


def test_measures_of_lightgbm_go_with_one_set_of_validation_rows():
    ranker = cr.BoostedRanker(n_estimators=4, params={"boosting": "dart"})
    with pytest.raises(InvalidInputError, match="goes with one set of validation rows; got 2 sets"):
        ranker.fit_data(TRAIN, {"first": FIRST, "second": SECOND})
