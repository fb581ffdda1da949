import lightgbm
import numpy as np
import pytest

from cleanrank.checks import CleanrankError
from cleanrank.data.split import split
from cleanrank.evaluate.compare import evaluate
from cleanrank.rankers.trees import train_lambdarank

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
