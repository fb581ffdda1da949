import json
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.data.split import Splits
from cleanrank.experiments.studies import STUDIES, StudyTask
from cleanrank.experiments.studies import trees as studies
from cleanrank.experiments.studies.trees import TREES
from cleanrank.issues.outliers import Window
from cleanrank.issues.sour import outlier_history, watch_model
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.rankers import trees
from cleanrank.rankers.trees import TreeParams
from cleanrank.remember import Memory, remembering
from tests.experiments.methods.test_methods import made

QUICK = {"rounds": 10, "min_data_in_leaf": 5, "start": 4, "cutoff": 3, "early_stopping_rounds": 10}


NOISY = cr.corrupt(made(1), "uniform", 0.3, seed=1).data


def inquiry(name, train=None, **changes):
    parts = Splits(made(1), made(2), made(3))
    params = {**STUDIES[name].params, **QUICK, **changes}
    return StudyTask(
        parts, train or parts.train, parts.validation, NoiseProfile(np.eye(3)), params, "ndcg@3", 1
    )


@pytest.mark.parametrize("name", ["outliers", "breakdown", "exit_leaves", "curve"])
def test_a_study_gives_all_its_measures_twice_the_same(name):
    one, two = (STUDIES[name].run(inquiry(name)) for _ in range(2))
    assert set(one.means) == set(one.values) == set(STUDIES[name].measures)
    for measure, values in one.values.items():
        assert values.shape == (len(one.query_ids),)
        np.testing.assert_array_equal(values, two.values[measure])


def base(train=None):
    settings = TreeParams(implementation="builtin", params={"min_data_in_leaf": 5}, n_estimators=10, seed=1)
    return settings.train(train or made(1))


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
    asked = []
    grow = studies.train_ranker
    monkeypatch.setattr(
        studies, "train_ranker", lambda task, **rest: asked.append(task.params) or grow(task, **rest)
    )
    found = STUDIES["breakdown"].run(inquiry("breakdown", ranker="sour", ranker_start=ranker_start))
    plain = STUDIES["breakdown"].run(inquiry("breakdown"))
    assert asked[0]["start"] == wanted
    assert found.means["share with outliers"] == plain.means["share with outliers"]


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("tree", [1, 10])
def test_scores_of_exit_leaves_are_those_that_lightgbm_predicts(single, tree):
    """Documents by hand: their scores by the trees up to one, or by it alone, leaf by leaf."""
    measured = STUDIES["exit_leaves"].run(inquiry("exit_leaves", single=single))
    data, booster = made(3), base().booster
    flagged = watch_model(data, base(), Window(3, 4, 10)).outliers()
    first = tree - 1 if single else 0
    scores = booster.predict(data.X, raw_score=True, start_iteration=first, num_iteration=tree - first)
    reached = booster.predict(data.X, pred_leaf=True, start_iteration=tree - 1, num_iteration=1).reshape(-1)
    in_top = np.concatenate(
        [
            np.argsort(np.argsort(-base().predict(data.X)[a:b], kind="stable")) < 3
            for a, b in zip(data.indptr, data.indptr[1:], strict=False)
        ]
    )
    kinds = {"P_k": (data.y > 0) & in_top, "O-": flagged, "N": (data.y == 0) & ~flagged}
    for kind, rows in kinds.items():
        counts = Counter(reached[rows].tolist())
        busiest = sorted(counts, key=lambda leaf: (-counts[leaf], leaf))[:30]
        means = [scores[rows & (reached == leaf)].mean() for leaf in busiest]
        assert measured.means[f"{kind}, tree {tree}"] == pytest.approx(np.mean(means))
    assert np.isnan(measured.means[f"N, tree {TREES[-1]}"])


def test_scores_of_exit_leaves_claim_no_interval():
    measured = STUDIES["exit_leaves"].run(inquiry("exit_leaves"))
    assert all(np.isnan(values).all() for values in measured.values.values())
    assert np.isfinite(measured.means["P_k, trees 1-50"])


@pytest.mark.parametrize(("split", "data"), [("validation", made(2)), ("test", made(3))])
@pytest.mark.parametrize("ranker", ["lambdarank", "sour"])
def test_curves_are_those_of_the_first_trees(split, data, ranker):
    task = inquiry("curve", NOISY, split=split, ranker=ranker, early_stopping_rounds=0)
    measured = STUDIES["curve"].run(task)
    train, removed = NOISY, 0
    if ranker == "sour":
        outliers = watch_model(train, base(NOISY), Window(3, 4, 10)).outliers()
        train, removed = train.drop(outliers), outliers.sum()
        assert removed
    settings = TreeParams(
        implementation="builtin", params={"min_data_in_leaf": 5, "min_sum_hessian_in_leaf": 0.0},
        n_estimators=10, early_stopping_rounds=0, measure="ndcg@3", seed=1,
    )  # fmt: skip
    model, whole = settings.train(train, made(2)), settings.train(train)
    assert model.best_iteration < 10

    def values(size):
        return cr.evaluate(whole.booster.predict(data.X, num_iteration=size), data, "ndcg@3")["ndcg@3"]

    for size in (1, 5, 10):
        np.testing.assert_allclose(measured.values[f"at {10 * size}%"], values(size))
        assert measured.chosen["curve"]["mean"][size - 1] == pytest.approx(values(size).mean(), abs=1e-5)
    assert measured.chosen["curve"]["trees"] == list(range(1, 11))
    np.testing.assert_allclose(measured.values["best"], values(model.best_iteration))
    assert measured.means["trees"] == model.best_iteration == measured.chosen["trees"]
    assert measured.means["documents removed"] == removed
    assert measured.chosen.get("removed_share", 0) == removed / made(1).n_docs
    if split == "validation":
        assert measured.means["best"] == pytest.approx(model.validation_value)


def test_a_curve_has_nothing_where_training_has_stopped():
    measured = STUDIES["curve"].run(inquiry("curve", NOISY, early_stopping_rounds=3))
    assert measured.means["trees"] == measured.chosen["curve"]["trees"][-1] < 10
    assert np.isnan(measured.means["at 100%"])
    assert measured.chosen["curve"]["mean"][-1] == pytest.approx(measured.means["best"], abs=1e-5)


def test_a_study_searches_the_grid_on_validation_data():
    task = replace(inquiry("curve", ranker="peer"), grid={"alpha": [0.05, 0.9]})
    alone = [STUDIES["curve"].run(inquiry("curve", ranker="peer", alpha=alpha)) for alpha in (0.05, 0.9)]
    best = max(alone, key=lambda each: each.chosen["validation"])
    together = STUDIES["curve"].run(task)
    assert alone[0].chosen["validation"] != alone[1].chosen["validation"]
    np.testing.assert_array_equal(together.values["best"], best.values["best"])
    assert together.chosen["alpha"] in (0.05, 0.9)


def test_all_studies_of_a_table_share_their_forests(monkeypatch):
    """Eleven parts of a table and both kinds of leaves: a base forest, a stopped one, and SOUR's."""
    grown = []
    boost = trees.boost
    monkeypatch.setattr(trees, "boost", lambda *a, **k: grown.append(1) or boost(*a, **k))

    def run(name, **changes):
        STUDIES[name].run(inquiry(name, NOISY, **changes))

    with remembering(Memory()):
        for start in (0, 4, 8):
            for ranker in ("lambdarank", "sour"):
                run("breakdown", start=start, ranker_start=4, ranker=ranker)
        run("breakdown", best_round=True, ranker_start=4)
        run("outliers")
        run("exit_leaves")
        run("curve", ranker="sour")
    assert len(grown) == 3
