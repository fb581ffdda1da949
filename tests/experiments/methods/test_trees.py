from dataclasses import replace

import numpy as np
import pytest

from cleanrank.cleaning import clean
from cleanrank.errors import CleanrankError
from cleanrank.experiments.methods import METHODS
from cleanrank.experiments.methods.trees import RANKERS, train_ranker
from cleanrank.issues.isolation import find_isolated
from cleanrank.losses.trees.peer import Peers
from cleanrank.noise.corrupt import corrupt
from cleanrank.rankers import trees
from cleanrank.rankers.trees import TreeParams
from cleanrank.remember import Memory, remembering
from tests.experiments.methods.test_methods import made, task

QUICK = {"rounds": 6, "min_data_in_leaf": 5, "early_stopping_rounds": 6}


def test_starts_and_kinds_share_a_base_forest_and_give_what_each_gives_alone(monkeypatch):
    grid = {"start": [0, 2, 4], "kind": ["neg", "all"]}
    bases = []
    train_trees = TreeParams.train

    def count(self, train, *args, **kwargs):
        bases.append(kwargs.get("observer") is not None)
        return train_trees(self, train, *args, **kwargs)

    monkeypatch.setattr(TreeParams, "train", count)
    found = METHODS["sour"].run(task("sour", cutoff=3, grid=grid, **QUICK))
    assert sum(bases) == 1
    values = {}
    for start in grid["start"]:
        for kind in grid["kind"]:
            alone = METHODS["sour"].run(task("sour", cutoff=3, start=start, kind=kind, **QUICK))
            values[start, kind] = alone.chosen["validation"]
    assert found.chosen["validation"] == max(values.values())
    assert (found.chosen["start"], found.chosen["kind"]) == max(values, key=values.get)


@pytest.mark.parametrize(
    "options",
    [
        {"variant": "last"},
        {"variant": "curr"},
        {"variant": "fly", "objective": "exact", "patience": 2},
        {"folds": 2},
    ],
)
def test_variants_search_their_grid_too(options):
    given = {**QUICK, "rounds": 20, **options}
    found = METHODS["sour"].run(task("sour", grid={"kind": ["neg", "pos"]}, **given))
    values = [
        METHODS["sour"].run(task("sour", kind=kind, **given)).chosen["validation"] for kind in ("neg", "pos")
    ]
    assert found.chosen["validation"] == max(values)


def test_isolation_trains_on_what_is_left():
    given = task("isolation", **QUICK)
    found = METHODS["isolation"].run(given)
    cleaned = clean(given.train, find_isolated(given.train, seed=1))
    plain = METHODS["lambdarank"].run(task("lambdarank", train=cleaned.data, **QUICK))
    np.testing.assert_array_equal(found.scores, plain.scores)
    assert found.chosen["removed"] == cleaned.acted.sum()


def test_peers_are_searched_by_alpha():
    found = METHODS["peer"].run(task("peer", grid={"alpha": [0.05, 0.5]}, **QUICK))
    assert found.chosen["alpha"] in (0.05, 0.5)
    settings = TreeParams(
        implementation="parity", peers=Peers(found.chosen["alpha"], kind="expected", seed=1),
        n_estimators=6, params={"min_data_in_leaf": 5, "min_sum_hessian_in_leaf": 0.0},
        seed=1,
    )  # fmt: skip
    model = settings.train(made(1), made(2))
    np.testing.assert_array_equal(found.scores, model.predict(made(3).X))


def asked(name, **changes):
    params = {**METHODS["sour"].params, **QUICK, "ranker": name, "alpha": 0.1 if name == "peer" else 0.0}
    return replace(task("sour"), params={**params, **changes})


@pytest.mark.parametrize("name", RANKERS)
def test_the_forest_of_a_contender_keeps_all_trees_without_validation(name):
    whole, _ = train_ranker(asked(name), validation=None)
    assert whole.best_iteration == 6
    stopped, chosen = train_ranker(asked(name))
    params = asked(name).params
    own = {
        k: v for k, v in params.items() if k in METHODS[name].params and (k != "objective" or name == "sour")
    }
    wanted = METHODS[name].run(task(name, **own))
    np.testing.assert_array_equal(stopped.predict(made(3).X), wanted.scores)
    assert chosen == wanted.chosen


@pytest.mark.parametrize(
    ("name", "grid"), [("peer", {"alpha": [0.05, 0.5]}), ("sour", {"start": [0, 3], "kind": ["neg", "pos"]})]
)
def test_a_contender_searches_its_grid_as_its_method_does(name, grid):
    _, chosen = train_ranker(replace(asked(name), grid=grid))
    wanted = METHODS[name].run(task(name, grid=grid, **QUICK))
    assert chosen == wanted.chosen


def test_an_unknown_contender_is_named():
    with pytest.raises(CleanrankError, match="unknown ranker 'svm'"):
        train_ranker(asked("svm"))


def test_cells_share_one_base_forest_and_find_the_bits_of_separate_training(monkeypatch):
    """Windows, kinds, p-SOUR and plain lambdarank without stopping: one forest, also for other ends."""
    windows = [
        {"start": 0, "end": 6}, {"start": 3, "end": 6}, {"start": 0, "end": 4}, {"start": 0, "end": 2},
        {"start": 3, "end": 6, "kind": "pos"}, {"start": 0, "end": 6, "min_frequency": 0.5},
    ]  # fmt: skip
    noisy = corrupt(made(1), "uniform", 0.3, seed=1).data
    tasks = [task("sour", train=noisy, cutoff=3, **QUICK, **each) for each in windows]
    separate = [METHODS["sour"].run(each) for each in tasks]
    grown = []
    boost = trees.boost
    monkeypatch.setattr(trees, "boost", lambda *a, **k: grown.append(k["validation_set"]) or boost(*a, **k))
    with remembering(Memory()):
        shared = [METHODS["sour"].run(each) for each in tasks]
        train_ranker(replace(asked("lambdarank"), train=noisy, select="ndcg@3"), validation=None)
    assert sum(stops is None for stops in grown) == 1
    for one, other in zip(separate, shared, strict=True):
        assert one.scores.tobytes() == other.scores.tobytes()
        assert one.chosen == other.chosen
    assert len({found.chosen["removed"] for found in shared}) > 2
