from pathlib import Path

import numpy as np
import pytest

from cleanrank.experiments.recipe import read_recipe
from cleanrank.experiments.sources import identity_of, load_splits
from cleanrank.experiments.studies import STUDIES, StudyTask
from cleanrank.noise.profiles import uniform
from cleanrank.theory import order_preservation
from cleanrank.theory.order_preservation import _read

RECIPES = Path(__file__).parents[3] / "recipes" / "haddad"


def inquiry(**params):
    splits = load_splits("prevalence", 1, {"n_queries": 12})
    study = STUDIES["order"]
    given = {**study.params, "n_scorers": 10, "draws": 30, **params}
    return StudyTask(splits, splits.train, splits.validation, uniform(0.1, 2), given, "ndcg@10", seed=4)


def test_queries_of_rising_prevalence():
    splits = load_splits("prevalence", 1, {"n_queries": 5, "n_docs": 20, "lowest": 0.2})
    assert np.add.reduceat(splits.test.y, splits.test.indptr[:-1]).tolist() == [4, 8, 11, 14, 18]
    assert splits.train is splits.test
    assert identity_of("prevalence", 1, {}) == "prevalence 1"


@pytest.mark.parametrize("loss", ["ramp", "ndcg@10", "ranknet:micro"])
def test_the_study_is_the_trial_on_the_labels_of_the_cell(loss):
    asked = inquiry(loss=loss)
    found = STUDIES["order"].run(asked)
    test = asked.clean.test
    same = order_preservation(loss, 0.9, labels=(test.y, test.indptr), n_scorers=10, draws=30, seed=4)
    assert found.means["slope"] == same.slope
    assert found.chosen["verdict"] == same.verdict
    assert found.chosen["theory"] == same.expected
    assert found.query_ids == ["all queries"]
    assert found.values["tau"].tolist() == [same.tau]


@pytest.mark.parametrize("path", sorted(RECIPES.glob("*.toml")), ids=lambda p: p.stem)
def test_every_loss_of_a_recipe_is_known(path):
    for algorithm in read_recipe(path).methods:
        if algorithm.method == "order":
            assert _read(algorithm.params["loss"]) is not None
