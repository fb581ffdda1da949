import json

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.data.split import Splits
from cleanrank.experiments.studies import STUDIES, StudyTask
from cleanrank.experiments.studies.trees import TREES
from cleanrank.issues.outliers import Window
from cleanrank.issues.sour import outlier_history, watch_model
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.rankers.trees import TreeParams
from tests.experiments.methods.test_methods import made

QUICK = {"rounds": 10, "min_data_in_leaf": 5, "start": 4, "cutoff": 3, "early_stopping_rounds": 10}


def inquiry(name, **changes):
    parts = Splits(made(1), made(2), made(3))
    params = {**STUDIES[name].params, **QUICK, **changes}
    return StudyTask(parts, parts.train, parts.validation, NoiseProfile(np.eye(3)), params, "ndcg@3", 1)


@pytest.mark.parametrize("name", ["outliers", "breakdown", "exit_leaves", "curve"])
def test_a_study_gives_all_its_measures_twice_the_same(name):
    one, two = (STUDIES[name].run(inquiry(name)) for _ in range(2))
    assert set(one.means) == set(one.values) == set(STUDIES[name].measures)
    for measure, values in one.values.items():
        assert values.shape == (len(one.query_ids),)
        np.testing.assert_array_equal(values, two.values[measure])


def base():
    settings = TreeParams(implementation="builtin", params={"min_data_in_leaf": 5}, n_estimators=10, seed=1)
    return settings.train(made(1))


@pytest.mark.parametrize("kind", ["neg", "pos", "all"])
def test_outliers_are_counted_as_the_detector_counts_them(kind):
    found = STUDIES["outliers"].run(inquiry("outliers", kind=kind))
    data = made(1)
    detector = watch_model(data, base(), Window(3, 4, 10, kind))
    assert found.means["removed"] == pytest.approx(detector.outliers().mean())
    allowed = {"neg": data.y == 0, "pos": data.y > 0, "all": data.y >= 0}[kind]
    assert found.means["removed of kind"] == pytest.approx(detector.outliers().sum() / allowed.sum())
    last = watch_model(data, base(), Window(3, 9, 10, kind))
    assert found.means["flagged at 100%"] == pytest.approx(last.outliers().mean())
    assert found.means["ever flagged"] >= found.means["flagged by half"] >= found.means["removed"]


def test_outliers_bring_the_table_of_their_heat_map_along():
    found = STUDIES["outliers"].run(inquiry("outliers", start=0, kind="all"))
    told = found.chosen["history"]
    shares, sizes = outlier_history(made(1), base(), Window(3, 0, 10, "all"))
    assert (told["sizes"], told["first"], told["last"]) == (sizes.tolist(), 1, 10)
    given = np.array(told["shares"], dtype=float)
    np.testing.assert_allclose(given, shares, atol=5e-5)
    assert found.means["ever flagged"] == pytest.approx(sum(told["sizes"]) / made(1).n_docs)
    json.dumps(told, allow_nan=False)


def test_the_two_parts_of_a_breakdown_make_the_whole():
    found = STUDIES["breakdown"].run(inquiry("breakdown"))
    share = found.means["share with outliers"]
    assert 0 < share < 1
    parts = found.means["queries with outliers"], found.means["queries without outliers"]
    assert share * parts[0] + (1 - share) * parts[1] == pytest.approx(found.means["all queries"])
    plain = cr.evaluate(base().predict(made(3).X), made(3), "ndcg@3")
    flagged = watch_model(made(3), base(), Window(3, 4, 10)).outliers()
    with_outliers = np.add.reduceat(flagged, made(3).indptr[:-1]) > 0
    assert share == pytest.approx(with_outliers.mean())
    assert len(plain["ndcg@3"]) == len(found.query_ids)


def test_the_best_round_alone_can_part_the_queries():
    """Queries by hand: a non-relevant document in the top 3 of that round, a relevant one below."""
    asked = inquiry("breakdown", best_round=True, rounds=40, early_stopping_rounds=5)
    found = STUDIES["breakdown"].run(asked)
    stopped = TreeParams(
        implementation="builtin", params={"min_data_in_leaf": 5}, measure="ndcg@3", seed=1,
        n_estimators=40, early_stopping_rounds=5,
    ).train(made(1), made(2))  # fmt: skip
    assert 1 < stopped.best_iteration < 40
    test = made(3)
    scores = stopped.booster.predict(test.X, num_iteration=stopped.best_iteration)
    wanted = []
    for a, b in zip(test.indptr, test.indptr[1:], strict=False):
        ranked = test.y[a:b][np.argsort(-scores[a:b], kind="stable")]
        wanted.append((ranked[:3] == 0).any() and (ranked[3:] > 0).any())
    np.testing.assert_array_equal(found.values["share with outliers"], wanted)
    assert 0 < np.mean(wanted) < 1


@pytest.mark.parametrize(("ranker_start", "wanted"), [(-1, 4), (0, 0), (9, 9)])
def test_sour_may_filter_from_another_start_than_the_one_that_parts_the_queries(
    monkeypatch, ranker_start, wanted
):
    from cleanrank.experiments.studies import trees

    asked = []
    grow = trees.train_ranker
    monkeypatch.setattr(
        trees, "train_ranker", lambda params, *rest: asked.append(params) or grow(params, *rest)
    )
    found = STUDIES["breakdown"].run(inquiry("breakdown", ranker="sour", ranker_start=ranker_start))
    plain = STUDIES["breakdown"].run(inquiry("breakdown"))
    assert asked[0]["start"] == wanted
    assert found.means["share with outliers"] == plain.means["share with outliers"]


def test_exit_leaves_are_those_of_single_trees():
    found = STUDIES["exit_leaves"].run(inquiry("exit_leaves"))
    model = base()
    data = made(3)
    flagged = watch_model(data, base(), Window(3, 4, 10)).outliers()
    others = (data.y == 0) & ~flagged
    leaves = model.booster.predict(data.X[others], pred_leaf=True, num_iteration=1).reshape(-1)
    values = {leaf: model.booster.get_leaf_output(0, int(leaf)) for leaf in np.unique(leaves)}
    counts = {leaf: (leaves == leaf).sum() for leaf in values}
    busiest = sorted(values, key=lambda leaf: (-counts[leaf], leaf))[:30]
    assert found.means["N, tree 1"] == pytest.approx(np.mean([values[leaf] for leaf in busiest]))
    assert np.isnan(found.means[f"N, tree {TREES[-1]}"])


def test_a_curve_ends_at_the_whole_forest():
    found = STUDIES["curve"].run(inquiry("curve"))
    last = cr.evaluate(base().predict(made(2).X), made(2), "ndcg@3").means["ndcg@3"]
    assert found.means["validation at 100%"] == pytest.approx(last)
