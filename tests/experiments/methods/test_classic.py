import inspect

import numpy as np
import pytest

from cleanrank.experiments.methods import METHODS
from cleanrank.rankers import RANKERS, make_ranker
from tests.experiments.methods.test_methods import task

CLASSIC = [name for name in METHODS if METHODS[name].function.startswith("methods.classic")]
IN_RECIPES = {None: "", "auto": 0.0}
SET_BY_TASK = {"measure", "random_state", "n_jobs"}


@pytest.mark.parametrize("name", CLASSIC)
def test_parameters_are_those_of_the_class(name):
    parameters = inspect.signature(RANKERS[name.replace("_", "-")].load()).parameters
    own = {key: each.default for key, each in parameters.items() if key not in SET_BY_TASK}
    assert METHODS[name].params == {key: IN_RECIPES.get(value, value) for key, value in own.items()}
    assert set(parameters) >= SET_BY_TASK


@pytest.mark.parametrize("name", CLASSIC)
def test_a_method_is_the_ranker_chosen_by_the_tasks_measure(name):
    given = task(name, select="map:letor")
    ranker = make_ranker(name.replace("_", "-"), measure="map:letor", random_state=1)
    ranker.fit_data(given.train, given.validation)
    found = METHODS[name].run(given)
    np.testing.assert_array_equal(found.scores, ranker.predict(given.test.X))
    assert found.chosen["steps"] == ranker.best_iteration_
    assert found.chosen["validation"] == ranker.model_.validation_value


def test_the_grid_is_searched_by_validation():
    grid = {"robust": ["", "average", "margin"], "epochs": [1, 20]}
    found = METHODS["prank"].run(task("prank", grid=grid))
    values = {
        (robust, epochs): METHODS["prank"]
        .run(task("prank", robust=robust, epochs=epochs))
        .chosen["validation"]
        for robust in grid["robust"]
        for epochs in grid["epochs"]
    }
    assert len(set(values.values())) > 1
    assert found.chosen["validation"] == max(values.values())
    assert values[found.chosen["robust"], found.chosen["epochs"]] == max(values.values())
