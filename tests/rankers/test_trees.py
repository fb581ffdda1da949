import lightgbm
import numpy as np
import pytest

import cleanrank as cr
from cleanrank.data.split import split
from cleanrank.errors import CleanrankError
from cleanrank.metrics.evaluation import evaluate
from cleanrank.ragged import rank_order
from cleanrank.rankers.trees import TreeModel
from tests.rankers.training import trained

SMALL = {"num_leaves": 7, "min_data_in_leaf": 5}


@pytest.fixture(scope="module")
def parts(toy):
    return split(toy, (0.5, 0.25, 0.25), seed=1)


def test_it_learns_and_reports_the_validation_value_of_the_kept_round(parts):
    train, validation, test = parts
    model = trained(train, validation, params=SMALL, n_estimators=60, early_stopping_rounds=10)
    assert 1 <= model.best_iteration <= 60
    found = evaluate(model.predict(validation.X), validation, "ndcg@10", order="data").means["ndcg@10"]
    assert model.validation_value == pytest.approx(found, abs=1e-12)
    random = np.random.default_rng(0).normal(size=test.n_docs)
    ours = evaluate(model.predict(test.X), test, "ndcg@10", order="data").means["ndcg@10"]
    assert ours > evaluate(random, test, "ndcg@10", order="data").means["ndcg@10"] + 0.1


def test_early_stopping_on_our_ndcg_keeps_the_round_that_lightgbm_keeps(parts):
    train, validation, _ = parts
    model = trained(train, validation, params=SMALL, n_estimators=80, early_stopping_rounds=15)
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
    one, two = (trained(train, validation, params=SMALL, n_estimators=20, n_jobs=n) for n in (1, 2))
    np.testing.assert_array_equal(one.predict(test.X), two.predict(test.X))


def test_norm_changes_the_forest(parts):
    train, _, test = parts
    on, off = (
        trained(train, objective=norm, params=SMALL, n_estimators=10) for norm in ("lambdarank", "lambdamart")
    )
    assert on.best_iteration == off.best_iteration == 10
    assert (on.predict(test.X) != off.predict(test.X)).any()


def test_a_saved_model_scores_alike(parts, tmp_path):
    train, validation, test = parts
    model = trained(train, validation, params=SMALL, n_estimators=40, early_stopping_rounds=5)
    model.save(tmp_path / "model.txt")
    loaded = lightgbm.Booster(model_file=str(tmp_path / "model.txt"))
    np.testing.assert_array_equal(loaded.predict(test.X), model.predict(test.X))


def test_settings_that_lie_are_refused(parts):
    with pytest.raises(CleanrankError, match="bagging_by_query must be off"):
        trained(parts[0], params={"bagging_by_query": True}, n_estimators=1)


def test_gbdt_with_one_stump_predicts_the_mean_grade_of_each_side():
    X = np.array([[0], [0], [0], [1], [1], [1]], dtype=np.float32)
    data = cr.from_arrays(X, [0, 0, 1, 1, 2, 4], group=[3, 3])
    stump = {"num_leaves": 2, "min_data_in_leaf": 1, "learning_rate": 1.0, "min_data_in_bin": 1}
    found = trained(data, objective="gbdt", params=stump, n_estimators=1).predict(X)
    np.testing.assert_allclose(found, [1 / 3] * 3 + [7 / 3] * 3, rtol=1e-6)


def test_gbdt_is_lightgbms_regression_stopped_on_a_ranking_measure(parts):
    train, validation, test = parts
    model = trained(
        train,
        validation,
        objective="gbdt",
        params=SMALL,
        measure="map",
        n_estimators=60,
        early_stopping_rounds=10,
    )
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
        evaluate(peer.predict(validation.X, num_iteration=i), validation, "map", order="data").means["map"]
        for i in range(1, model.best_iteration + 11)
        if i <= 60
    ]
    assert int(np.argmax(by_round)) + 1 == model.best_iteration
    assert model.validation_value == pytest.approx(max(by_round), abs=1e-12)


@pytest.mark.parametrize("objective", ["lambdarank", "gbdt"])
def test_both_objectives_count_trees(parts, objective):
    seen = []
    trained(parts[0], objective=objective, params=SMALL, n_estimators=3, progress=lambda *at: seen.append(at))
    assert seen == [(1, 3), (2, 3), (3, 3)]


def test_the_built_in_lambdarank_refuses_gains_and_least_squares_learn_the_grade_of_a_gain(parts):
    train = parts[0]
    X, y = np.asarray(train.X), train.y
    graded = cr.from_arrays(X, y, group=train.lengths, gains=y * 0.5)
    with pytest.raises(CleanrankError, match="must have grades only"):
        trained(graded, n_estimators=1)
    options = {"objective": "gbdt", "params": SMALL, "n_estimators": 5}
    by_gain = trained(cr.from_arrays(X, y, group=train.lengths, gains=2.0**y - 1), **options)
    np.testing.assert_allclose(by_gain.predict(X), trained(train, **options).predict(X), atol=1e-6)


def test_a_smoothed_curve_chooses_where_its_mean_is_highest(parts):
    train, validation, _ = parts
    options = {"params": SMALL, "n_estimators": 30, "early_stopping_rounds": 0}
    plain = trained(train, validation, **options)
    smooth = trained(train, validation, smoothing=4, **options)
    assert smooth.history == plain.history
    padded = np.pad(plain.history, 4, mode="edge")
    means = [padded[i : i + 9].mean() for i in range(30)]
    assert smooth.best_iteration == int(np.argmax(means)) + 1
    assert smooth.validation_value == pytest.approx(max(means))
    with pytest.raises(CleanrankError, match="smoothing goes with a measure of cleanrank"):
        trained(train, validation, smoothing=4, measure="lightgbm:ndcg@10", **options)


@pytest.mark.parametrize("implementation", ["builtin", "exact", "parity"])
def test_an_observer_sees_every_model_once_and_changes_nothing(parts, implementation):
    train, validation, _ = parts
    seen = []
    options = {
        "params": SMALL,
        "n_estimators": 25,
        "early_stopping_rounds": 3,
        "implementation": implementation,
    }
    watched = trained(
        train, validation, observer=lambda *at: seen.append((at[0], at[1].copy(), at[2].copy())), **options
    )
    plain = trained(train, validation, **options)
    np.testing.assert_array_equal(watched.predict(train.X), plain.predict(train.X))
    assert [at[0] for at in seen] == list(range(len(seen)))
    best = watched.best_iteration
    assert len(seen) > best
    np.testing.assert_array_equal(seen[best][1], watched.predict(train.X))
    for _, scores, order in seen:
        rows = order + np.repeat(train.indptr[:-1], train.lengths)
        np.testing.assert_array_equal(rows, rank_order(scores, train.indptr))


def test_our_objectives_take_gains_and_long_queries_that_lightgbm_refuses(parts):
    train = parts[0]
    graded = cr.from_arrays(np.asarray(train.X), train.y, group=train.lengths, gains=2.0**train.y - 1)
    by_gain, by_grade = (
        trained(d, implementation="exact", params=SMALL, n_estimators=5) for d in (graded, train)
    )
    np.testing.assert_array_equal(by_gain.predict(train.X), by_grade.predict(train.X))
    rng = np.random.default_rng(0)
    long = cr.from_arrays(rng.normal(size=(10_500, 2)), rng.integers(0, 2, 10_500), group=[10_500])
    with pytest.raises(CleanrankError, match=r"at most 10,000 documents .* got 10,500"):
        trained(long, n_estimators=1)
    assert len(np.unique(trained(long, implementation="exact", n_estimators=2).predict(long.X))) > 1


@pytest.mark.parametrize("measure", ["lightgbm:ndcg@10", "lightgbm:map@5", "lightgbm:auc"])
def test_early_stopping_on_lightgbms_own_measures(parts, measure):
    train, validation, _ = parts
    model = trained(
        train, validation, params=SMALL, measure=measure, n_estimators=60, early_stopping_rounds=8
    )
    assert 1 <= model.best_iteration <= 60
    if measure.endswith("ndcg@10"):
        ours = trained(train, validation, params=SMALL, n_estimators=60, early_stopping_rounds=8)
        assert ours.best_iteration == model.best_iteration
        assert ours.validation_value == pytest.approx(model.validation_value, abs=1e-9)


def test_a_forest_is_continued_from_its_scores(parts):
    train = parts[0]
    half = trained(train, params=SMALL, n_estimators=6, implementation="parity")
    whole = trained(train, params=SMALL, n_estimators=12, implementation="parity")
    seen = []
    more = trained(
        train, params=SMALL, n_estimators=6, implementation="parity", init_model=half,
        observer=lambda rounds, scores, order: seen.append(scores.copy()),
    )  # fmt: skip
    np.testing.assert_allclose(seen[0], half.predict(train.X), atol=1e-12)
    assert more.best_iteration == 12
    np.testing.assert_allclose(more.predict(train.X), whole.predict(train.X), atol=1e-6)


def test_files_that_are_no_model_are_named(tmp_path):
    wrong = tmp_path / "model.txt"
    wrong.write_text("1 qid:1 1:0.5\n")
    with pytest.raises(CleanrankError, match="must be LightGBM's text"):
        TreeModel.load(wrong)
    wrong.write_text("tree\nversion=v4\nnum_class=1\n")
    with pytest.raises(CleanrankError, match="must be whole"):
        TreeModel.load(wrong)
    with pytest.raises(CleanrankError, match="there is no file"):
        TreeModel.load(tmp_path / "none.txt")


def test_a_model_cut_short_is_refused_before_lightgbm_sees_it(parts, tmp_path):
    """LightGBM reads beyond the end of such a file and takes the process with it."""
    trained(parts[0], n_estimators=4).save(tmp_path / "model.txt")
    text = (tmp_path / "model.txt").read_bytes()
    end = text.index(b"end of trees")
    for size in (200, end // 2, end - 1):
        (tmp_path / "cut.txt").write_bytes(text[:size])
        with pytest.raises(CleanrankError, match="must be whole; got another number of bytes"):
            TreeModel.load(tmp_path / "cut.txt")
    (tmp_path / "cut.txt").write_bytes(text[: end + 20])
    np.testing.assert_array_equal(
        TreeModel.load(tmp_path / "cut.txt").predict(parts[0].X),
        TreeModel.load(tmp_path / "model.txt").predict(parts[0].X),
    )
