import lightgbm
import numpy as np
import pytest

import cleanrank as cr
from cleanrank.checks import CleanrankError
from cleanrank.data.split import split
from cleanrank.evaluate.compare import evaluate
from cleanrank.rankers.trees import train_gbdt, train_lambdarank

SMALL = {"num_leaves": 7, "min_data_in_leaf": 5}


@pytest.fixture(scope="module")
def parts(toy):
    return split(toy, (0.5, 0.25, 0.25), seed=1)


def test_it_learns_and_reports_the_validation_value_of_the_kept_round(parts):
    train, validation, test = parts
    model = train_lambdarank(train, validation, params=SMALL, rounds=60, early_stopping_rounds=10)
    assert 1 <= model.best_iteration <= 60
    found = evaluate(model.predict(validation.X), validation, "ndcg@10").means["ndcg@10"]
    assert model.validation_value == pytest.approx(found, abs=1e-12)
    random = np.random.default_rng(0).normal(size=test.n_docs)
    ours = evaluate(model.predict(test.X), test, "ndcg@10").means["ndcg@10"]
    assert ours > evaluate(random, test, "ndcg@10").means["ndcg@10"] + 0.1


def test_early_stopping_on_our_ndcg_keeps_the_round_that_lightgbm_keeps(parts):
    train, validation, _ = parts
    model = train_lambdarank(train, validation, params=SMALL, rounds=80, early_stopping_rounds=15)
    reference = lightgbm.Dataset(train.X, label=train.y, group=train.lengths)
    peer = lightgbm.train(
        {
            "objective": "lambdarank",
            "metric": "ndcg",
            "eval_at": [10],
            "learning_rate": 0.05,
            "min_sum_hessian_in_leaf": 0.0,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            "seed": 0,
            "verbosity": -1,
            **SMALL,
        },
        reference,
        num_boost_round=80,
        valid_sets=[reference.create_valid(validation.X, label=validation.y, group=validation.lengths)],
        callbacks=[lightgbm.early_stopping(15, verbose=False)],
    )
    assert model.best_iteration == peer.best_iteration
    np.testing.assert_array_equal(model.predict(validation.X), peer.predict(validation.X))


def test_same_seed_same_scores_for_any_thread_count(parts):
    train, validation, test = parts
    one, two = (train_lambdarank(train, validation, params=SMALL, rounds=20, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.predict(test.X), two.predict(test.X))


def test_norm_changes_the_forest(parts):
    train, _, test = parts
    on, off = (train_lambdarank(train, norm=norm, params=SMALL, rounds=10) for norm in (True, False))
    assert on.best_iteration == off.best_iteration == 10
    assert (on.predict(test.X) != off.predict(test.X)).any()


def test_a_saved_model_scores_alike(parts, tmp_path):
    train, validation, test = parts
    model = train_lambdarank(train, validation, params=SMALL, rounds=40, early_stopping_rounds=5)
    model.save(tmp_path / "model.txt")
    loaded = lightgbm.Booster(model_file=str(tmp_path / "model.txt"))
    np.testing.assert_array_equal(loaded.predict(test.X), model.predict(test.X))


def test_settings_that_lie_are_refused(parts):
    with pytest.raises(CleanrankError, match="bagging_by_query must be off"):
        train_lambdarank(parts[0], params={"bagging_by_query": True}, rounds=1)


def test_gbdt_with_one_stump_predicts_the_mean_grade_of_each_side():
    X = np.array([[0], [0], [0], [1], [1], [1]], dtype=np.float32)
    data = cr.from_arrays(X, [0, 0, 1, 1, 2, 4], group=[3, 3])
    stump = {"num_leaves": 2, "min_data_in_leaf": 1, "learning_rate": 1.0, "min_data_in_bin": 1}
    found = train_gbdt(data, params=stump, rounds=1).predict(X)
    np.testing.assert_allclose(found, [1 / 3] * 3 + [7 / 3] * 3, rtol=1e-6)


def test_gbdt_is_lightgbms_regression_stopped_on_a_ranking_measure(parts):
    train, validation, test = parts
    model = train_gbdt(train, validation, params=SMALL, measure="map", rounds=60, early_stopping_rounds=10)
    peer = lightgbm.train(
        {
            "objective": "regression",
            "learning_rate": 0.05,
            "min_sum_hessian_in_leaf": 0.0,
            "deterministic": True,
            "force_row_wise": True,
            "num_threads": 1,
            "seed": 0,
            "verbosity": -1,
            **SMALL,
        },
        lightgbm.Dataset(train.X, label=train.y),
        num_boost_round=60,
    )
    np.testing.assert_array_equal(
        model.predict(test.X), peer.predict(test.X, num_iteration=model.best_iteration)
    )
    by_round = [
        evaluate(peer.predict(validation.X, num_iteration=i), validation, "map").means["map"]
        for i in range(1, model.best_iteration + 11)
        if i <= 60
    ]
    assert int(np.argmax(by_round)) + 1 == model.best_iteration
    assert model.validation_value == pytest.approx(max(by_round), abs=1e-12)


@pytest.mark.parametrize("train_trees", [train_lambdarank, train_gbdt])
def test_both_objectives_refuse_gains_and_count_rounds(parts, train_trees):
    train = parts[0]
    seen = []
    train_trees(train, params=SMALL, rounds=3, progress=lambda *at: seen.append(at))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    graded = cr.from_arrays(np.asarray(train.X), train.y, group=train.lengths, gains=train.y * 0.5)
    with pytest.raises(CleanrankError, match="must have grades only"):
        train_trees(graded, rounds=1)
