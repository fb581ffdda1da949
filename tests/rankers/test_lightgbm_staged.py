import numpy as np
import pytest

from cleanrank.errors import CleanrankError
from cleanrank.rankers.trees import TreeModel
from tests.rankers.training import trained

SMALL = {"num_leaves": 7, "min_data_in_leaf": 5}


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"bagging_fraction": 0.6, "bagging_freq": 1},
        {"data_sample_strategy": "goss"},
        {"extra_trees": True},
        {"linear_tree": True},
    ],
    ids=["plain", "bagging", "goss", "extra trees", "linear trees"],
)
def test_prefixes_are_what_training_saw_and_what_predict_gives_exactly(toy, params, tmp_path):
    seen = []
    model = trained(
        toy,
        params=SMALL | params,
        n_estimators=20,
        implementation="builtin",
        observer=lambda rounds, scores, order: seen.append(scores.copy()),
    )
    assert len(seen) == 21
    model.save(tmp_path / "model.txt")
    for each in (model, TreeModel.load(tmp_path / "model.txt")):
        found = [(i, scores.copy()) for i, scores in each.staged_predict(toy.X, block=3)]
        assert [i for i, _ in found] == list(range(1, 21))
        for i, scores in found:
            np.testing.assert_array_equal(scores, seen[i])
            np.testing.assert_array_equal(
                scores, model.booster.predict(toy.X, num_iteration=i, raw_score=True)
            )


def test_an_end_and_least_squares(toy):
    model = trained(toy, objective="gbdt", params=SMALL, n_estimators=6)
    found = [(i, scores.copy()) for i, scores in model.staged_predict(toy.X, end=4)]
    assert [i for i, _ in found] == [1, 2, 3, 4]
    np.testing.assert_array_equal(found[-1][1], model.booster.predict(toy.X, num_iteration=4, raw_score=True))


def test_dart_is_refused_with_the_reason(toy):
    dart = trained(toy, params=SMALL | {"boosting": "dart"}, n_estimators=3)
    with pytest.raises(CleanrankError, match="rescales earlier trees"):
        next(dart.staged_predict(toy.X))
    with pytest.raises(CleanrankError, match="must not be 'dart'"):
        trained(toy, params={"boosting": "dart"}, n_estimators=1, observer=lambda *at: None)
