import dataclasses

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.experiments.methods import METHODS, MethodTask, Unjudged


def made(seed, n_queries=30, n_docs=8):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * n_docs, 4)).astype(np.float32)
    y = np.clip(np.round(-X[:, 2] + rng.normal(scale=0.3, size=len(X)) + 0.5), 0, 2)
    return cr.from_arrays(X, y, group=[n_docs] * n_queries)


def task(name, **changes):
    test = made(3)
    params = {k: changes.pop(k, v) for k, v in METHODS[name].params.items()}
    given = MethodTask(made(1), made(2), Unjudged(test.X, test.indptr), params, seed=1)
    return dataclasses.replace(given, **changes)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_scores_every_test_document_the_same_twice(name):
    given = task(name, **({"rounds": 5, "min_data_in_leaf": 5} if "rounds" in METHODS[name].params else {}))
    one, two = METHODS[name].run(given), METHODS[name].run(given)
    assert one.scores.shape == (given.test.n_docs,)
    assert np.isfinite(one.scores).all()
    assert one.scores.tobytes() == two.scores.tobytes()
    assert one.chosen == two.chosen


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_version_and_typed_parameters(name):
    method = METHODS[name]
    assert isinstance(method.version, int)
    assert method.version >= 1
    assert all(type(v) in (bool, int, float, str, dict, list) for v in method.params.values())


def test_one_feature_finds_the_one_that_matters_and_its_direction():
    found = METHODS["one_feature"].run(task("one_feature"))
    assert (found.chosen["feature"], found.chosen["sign"]) == (2, -1)


def test_random_order_depends_on_the_seed():
    one, two = (METHODS["random"].run(task("random", seed=s)).scores for s in (1, 2))
    assert (one != two).any()


@pytest.mark.parametrize("name", ["lambdarank", "gbdt"])
def test_trees_are_chosen_from_the_grid_by_validation(name):
    options = {"rounds": 10, "min_data_in_leaf": 5}
    grid = {"learning_rate": [1e-6, 0.3], "num_leaves": [2, 15]}
    found = METHODS[name].run(task(name, grid=grid, **options))
    values = {}
    for rate in grid["learning_rate"]:
        for leaves in grid["num_leaves"]:
            alone = METHODS[name].run(task(name, learning_rate=rate, num_leaves=leaves, **options))
            values[rate, leaves] = alone.chosen["validation"]
    best = max(values, key=values.get)
    assert (found.chosen["learning_rate"], found.chosen["num_leaves"]) == best
    assert found.chosen["validation"] == values[best]
    assert 1 <= found.chosen["trees"] <= 10


def test_lambdarank_hands_its_parameters_on():
    plain = METHODS["lambdarank"].run(task("lambdarank", rounds=5, min_data_in_leaf=5)).scores
    for change in ({"norm": False}, {"num_leaves": 2}, {"lambda_l2": 50.0}, {"feature_fraction": 0.5}):
        other = METHODS["lambdarank"].run(task("lambdarank", rounds=5, min_data_in_leaf=5, **change)).scores
        assert (plain != other).any(), change


def test_gbdt_is_another_objective_with_the_same_parameters():
    options = {"rounds": 5, "min_data_in_leaf": 5}
    plain = METHODS["gbdt"].run(task("gbdt", **options)).scores
    assert (plain != METHODS["lambdarank"].run(task("lambdarank", **options)).scores).any()
    assert (plain != METHODS["gbdt"].run(task("gbdt", num_leaves=2, **options)).scores).any()
    assert set(METHODS["lambdarank"].params) - set(METHODS["gbdt"].params) == {
        "norm",
        "lambdarank_truncation_level",
    }


def test_choices_are_all_combinations_in_order():
    given = task("random", grid={"a": [1, 2], "b": [3, 4]})
    assert list(given.choices()) == [{"a": 1, "b": 3}, {"a": 1, "b": 4}, {"a": 2, "b": 3}, {"a": 2, "b": 4}]
    assert list(task("random").choices()) == [{}]
