import numpy as np
import pytest

from cleanrank.cleaning import clean
from cleanrank.errors import CleanrankError
from cleanrank.experiments.methods import METHODS
from cleanrank.experiments.methods.trees import RANKERS, train_ranker
from cleanrank.issues.isolation import find_isolated
from cleanrank.losses.trees.peer import Peers
from cleanrank.rankers.trees import TreeParams
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


@pytest.mark.parametrize("name", RANKERS)
def test_the_forest_of_a_contender_keeps_all_trees_without_validation(name):
    params = {**METHODS["sour"].params, **QUICK, "ranker": name, "alpha": 0.1 if name == "peer" else 0.0}
    whole = train_ranker(params, made(1), None, "ndcg@10", 1)
    assert whole.best_iteration == 6
    stopped = train_ranker(params, made(1), made(2), "ndcg@10", 1)
    own = {
        k: v for k, v in params.items() if k in METHODS[name].params and (k != "objective" or name == "sour")
    }
    kind = {"kind": params["kind"]} if name == "isolation" else {}
    wanted = METHODS[name].run(task(name, **{**own, **kind})).scores
    np.testing.assert_array_equal(stopped.predict(made(3).X), wanted)


def test_an_unknown_contender_is_named():
    with pytest.raises(CleanrankError, match="unknown ranker 'svm'"):
        train_ranker({**METHODS["sour"].params, "ranker": "svm"}, made(1), None, "ndcg@10", 1)
