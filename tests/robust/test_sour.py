import numpy as np
import pytest
from sklearn.base import clone

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.issues.sour import watch_training
from cleanrank.rankers.trees import TreeParams
from tests.oracles import same_data

QUICK = {"start": 5, "end": 15, "n_estimators": 15, "num_leaves": 7, "min_child_samples": 5}


@pytest.fixture(scope="module")
def noisy():
    return cr.corrupt(cr.make_ranking(40, 6, docs_per_query=20, seed=0), rate=0.1, seed=1).data


@pytest.fixture(scope="module")
def validation():
    return cr.make_ranking(20, 6, docs_per_query=20, seed=7)


def test_the_final_forest_is_trained_on_the_rest(noisy):
    model = cr.SOURRanker(**QUICK).fit_data(noisy)
    detector, base = watch_training(noisy, model.window(), model.tree_params())
    rest = noisy.drop(detector.outliers())
    assert same_data(model.cleaned_.data, rest)
    alone = model.tree_params(n_estimators=15).train(rest)
    np.testing.assert_array_equal(model.predict(noisy.X), alone.predict(noisy.X))
    np.testing.assert_array_equal(model.base_.predict(noisy.X), base.predict(noisy.X))
    assert model.chosen_["removed"] == detector.outliers().sum() > 0


def test_rows_may_come_in_any_order(noisy):
    rng = np.random.default_rng(0)
    # Whole queries move and rows stay in order within them, since ties follow the order of rows.
    place = np.repeat(rng.permutation(noisy.n_queries), noisy.lengths)
    order = np.argsort(place, kind="stable")
    one = cr.SOURRanker(**QUICK).fit(noisy.X, noisy.y, qid=noisy.qid)
    two = cr.SOURRanker(**QUICK).fit(noisy.X, noisy.y, group=noisy.lengths)
    moved = cr.SOURRanker(**QUICK).fit(noisy.X[order], noisy.y[order], qid=noisy.qid[order])
    np.testing.assert_array_equal(one.predict(noisy.X), two.predict(noisy.X))
    assert set(order[moved.cleaned_.removed.row_id]) == set(one.cleaned_.removed.row_id)


def test_start_and_kind_are_chosen_on_validation_data_from_one_base_forest(noisy, validation, monkeypatch):
    options = {**QUICK, "start": [0, 5, 10], "kind": ["neg", "all"], "early_stopping_rounds": 15}
    trained = []
    train_trees = TreeParams.train

    def count(self, train, *args, **kwargs):
        trained.append(train.n_docs)
        return train_trees(self, train, *args, **kwargs)

    monkeypatch.setattr(TreeParams, "train", count)
    found = cr.SOURRanker(**options).fit_data(noisy, validation)
    assert trained.count(noisy.n_docs) == 1  # the base forest
    assert len(trained) <= 7
    values = {}
    for start in options["start"]:
        for kind in options["kind"]:
            alone = cr.SOURRanker(**{**options, "start": start, "kind": kind}).fit_data(noisy, validation)
            values[start, kind] = alone.chosen_["validation"]
    assert found.chosen_["validation"] == max(values.values())
    assert (found.chosen_["start"], found.chosen_["kind"]) == max(values, key=values.get)


def test_auto_means_ten_starts_and_three_kinds():
    model = cr.SOURRanker(start="auto", kind="auto", end=1000)
    assert model.starts() == list(range(0, 1000, 100))
    assert model.kinds() == ["neg", "pos", "all"]


@pytest.mark.parametrize(
    "options",
    [
        {"variant": "last"},
        {"variant": "curr", "ends": [2, 5]},
        {"variant": "fly", "patience": 3},
        {"folds": 3},
        {"peers": 0.1},
        {"min_frequency": 0.5},
        {"implementation": "builtin"},
        {"rule": "reference", "kind": "pos"},
        {"objective": "lambdamart"},
    ],
)
def test_every_variant_fits_and_repeats(noisy, validation, options):
    one, two = (
        cr.SOURRanker(**{**QUICK, **options}).fit_data(noisy, validation).predict(noisy.X) for _ in range(2)
    )
    assert np.isfinite(one).all()
    assert one.tobytes() == two.tobytes()


def test_last_sour_looks_at_the_best_round(noisy, validation):
    model = cr.SOURRanker(**{**QUICK, "variant": "last"}).fit_data(noisy, validation)
    assert model.chosen_["start"] == model.base_.best_iteration - 1
    assert set(np.unique(model.issues_.doubt)) <= {0.0, 1.0}


def test_it_is_a_scikit_learn_estimator(noisy):
    model = cr.SOURRanker(**QUICK, params={"lambda_l2": 1.0})
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(start=3).start == 3


def test_validation_data_come_as_in_lightgbm(noisy, validation):
    pair = (validation.X, validation.y)
    one = cr.SOURRanker(**QUICK).fit(noisy.X, noisy.y, qid=noisy.qid, eval_set=pair, eval_qid=validation.qid)
    two = cr.SOURRanker(**QUICK).fit(
        noisy.X, noisy.y, qid=noisy.qid, eval_set=[pair], eval_qid=[validation.qid]
    )
    assert one.chosen_ == two.chosen_
    assert one.chosen_["validation"] is not None


def edge_cases():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)).astype(np.float32)
    y = (X[:, 0] > 0.3).astype(int) + (X[:, 0] > 1)
    group = np.array([1, 2, 5, 12, 80, 100, 100])
    one_class = y.copy()
    one_class[20:100] = 0
    tied = np.repeat(np.arange(7.0), group)[:, None].astype(np.float32)
    return {
        "short queries": (X, y, group),
        "one class": (X, one_class, group),
        "ties everywhere": (tied, y, group),
    }


@pytest.mark.parametrize("case", edge_cases())
@pytest.mark.parametrize("rule", ["paper", "reference"])
def test_edge_cases_work(case, rule):
    X, y, group = edge_cases()[case]
    model = cr.SOURRanker(**{**QUICK, "kind": "all", "rule": rule}).fit(X, y, group=group)
    assert np.isfinite(model.predict(X)).all()


def test_a_query_that_loses_all_its_documents_is_reported():
    # With k = 1 a query of two documents that is ranked upside down has outliers only.
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(200, 1)), [[3.0], [-3.0]]]).astype(np.float32)
    y = np.concatenate([(X[:200, 0] > 0).astype(int), [0, 1]])
    qid = np.concatenate([np.repeat(np.arange(10), 20), [99, 99]])
    options = {**QUICK, "cutoff": 1, "kind": "all", "num_leaves": 2, "min_child_samples": 60}
    model = cr.SOURRanker(**options).fit(X, y, qid=qid)
    assert 99 in model.cleaned_.emptied
    assert 99 not in model.cleaned_.data.query_ids
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": "auto"}, "needs validation data"),
        ({"start": "often"}, "must be a number of trees"),
        ({"kind": "none"}, "unknown kind of outlier"),
        ({"variant": "first"}, "unknown variant of SOUR"),
        ({"start": 20}, "start and end must satisfy"),
    ],
)
def test_mistakes_are_named(noisy, options, message):
    with pytest.raises(CleanrankError, match=message):
        cr.SOURRanker(**{**QUICK, **options}).fit_data(noisy)
    with pytest.raises(CleanrankError, match="must be fitted"):
        cr.SOURRanker().predict(noisy.X)


def test_a_choice_goes_with_plain_sour_only(noisy, validation):
    with pytest.raises(CleanrankError, match="goes with variant 'sour'"):
        cr.SOURRanker(**{**QUICK, "start": "auto", "variant": "last"}).fit_data(noisy, validation)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"start": 5.0}, "start must be a number of trees, a list of them or 'auto'"),
        ({"start": []}, "start must be a number of trees"),
        ({"start": [0, 20]}, "start must lie between 0 and 14, below end"),
        ({"start": [0, -1]}, "start must lie between 0 and 14"),
        ({"kind": []}, "kind must be one of neg, pos, all"),
        ({"kind": {"neg"}}, "unknown kind of outlier"),
        ({"end": 0}, "end must be an integer >= 1"),
        ({"end": 5.5}, "end must be an integer >= 1"),
        ({"variant": "curr", "ends": [5, 3]}, "ends must rise"),
        ({"variant": "curr", "ends": [15]}, "ends must rise from above 0 to below 15"),
        ({"variant": "curr", "ends": []}, "ends must be a list of tree counts"),
        ({"variant": "curr", "ends": 5}, "ends must be a list of tree counts; got 5"),
        ({"ends": [3]}, "ends goes with variant 'curr'; got variant 'sour'"),
        ({"variant": "fly", "patience": 0}, "patience must lie between 1 and the number of trees"),
        ({"variant": "fly", "patience": 2.5}, "patience must lie between"),
        ({"variant": "fly", "patience": 16}, r"the number of trees \(15\); got 16"),
        ({"variant": "fly", "patience": 3, "peers": 0.1}, "without peers; got exact with peers"),
        ({"variant": "fly", "patience": 3, "implementation": "builtin"}, "needs implementation 'exact'"),
        ({"variant": "fly", "patience": 3, "start": 15}, "start and end must satisfy"),
        ({"variant": "fly", "patience": 3, "params": {"boosting": "dart"}}, "must not be 'dart'"),
        ({"variant": "fly", "patience": 3, "folds": 2}, "folds goes with variant 'sour'"),
        ({"variant": "last", "min_frequency": 0.5}, "min_frequency goes with variant 'sour'"),
        ({"folds": 2.5}, "folds must be an integer"),
        ({"folds": 1}, "folds must be a whole number between 2 and"),
        ({"peers": "many"}, "peers must be a number"),
    ],
)
def test_settings_are_checked_before_a_tree_grows(noisy, validation, options, message):
    with pytest.raises(CleanrankError, match=message):
        cr.SOURRanker(**{**QUICK, **options}).fit_data(noisy, validation)


def test_lists_may_be_arrays(noisy, validation):
    wanted = cr.SOURRanker(**{**QUICK, "start": [0, 5], "kind": ["neg", "pos"]})
    found = cr.SOURRanker(**{**QUICK, "start": np.array([0, 5]), "kind": np.array(["neg", "pos"])})
    assert found.fit_data(noisy, validation).chosen_ == wanted.fit_data(noisy, validation).chosen_
    curr = cr.SOURRanker(**{**QUICK, "variant": "curr", "ends": np.array([5, 10])}).fit_data(noisy)
    assert curr.chosen_["ends"] == [5, 10]


def test_patience_decides_who_is_left_out(noisy):
    fly = {**QUICK, "variant": "fly", "start": 0}
    few, many = (cr.SOURRanker(**fly, patience=p).fit_data(noisy).chosen_["removed"] for p in (9, 1))
    assert few < many
    late = cr.SOURRanker(**{**fly, "start": 10}, patience=6).fit_data(noisy)
    assert late.chosen_["removed"] == 0  # ten trees pass unseen, and four cannot be six in a row


def test_a_lower_share_of_models_leaves_more_out(noisy):
    """p-SOUR: documents that half of the models flag, not all of them."""
    model = cr.SOURRanker(**QUICK, min_frequency=0.5).fit_data(noisy)
    detector, _ = watch_training(noisy, model.window(), model.tree_params())
    assert model.window().min_frequency == 0.5
    np.testing.assert_array_equal(model.cleaned_.acted, detector.counts >= 5)
    assert model.chosen_["removed"] > cr.SOURRanker(**QUICK).fit_data(noisy).chosen_["removed"]


def test_last_sour_watches_the_model_that_validation_data_find_best(noisy, validation):
    model = cr.SOURRanker(**{**QUICK, "variant": "last"}, early_stopping_rounds=3).fit_data(noisy, validation)
    base = model.tree_params(n_estimators=15).train(noisy, validation)
    assert model.base_.best_iteration == base.best_iteration < 15
    assert model.base_.validation_value == base.validation_value
    whole = cr.SOURRanker(**{**QUICK, "variant": "last"}).fit_data(noisy)
    assert whole.base_.best_iteration == 15


def test_the_cut_off_is_that_of_early_stopping_too(noisy, validation):
    model = cr.SOURRanker(**QUICK, cutoff=3).fit_data(noisy, validation)
    value = cr.evaluate(model.predict(validation.X), validation, "ndcg@3").means["ndcg@3"]
    assert model.chosen_["validation"] == pytest.approx(value, abs=1e-12)


@pytest.mark.parametrize(
    "options", [{"peers": 0.3}, {"objective": "lambdamart"}, {"implementation": "builtin"}, {"folds": 3}]
)
def test_every_setting_of_the_trees_is_read(noisy, options):
    plain, other = (cr.SOURRanker(**{**QUICK, **each}).fit_data(noisy) for each in ({}, options))
    assert (plain.predict(noisy.X) != other.predict(noisy.X)).any()


def test_phases_learn_without_the_outliers_of_their_time(noisy):
    """The first trees of curr-SOUR are those of the rows that are no outliers up to there."""
    model = cr.SOURRanker(**{**QUICK, "variant": "curr", "ends": [5, 10]}).fit_data(noisy)
    detector, _ = watch_training(
        noisy, model.window(start=0, end=10, min_frequency=1.0), model.tree_params(), keep="lead"
    )
    outliers = detector.outliers(end=5)
    assert model.chosen_["removed_in_phases"][0] == outliers.sum() > 0
    first = model.tree_params(n_estimators=5).train(noisy.drop(outliers))
    stages = dict(model.model_.staged_predict(noisy.X, end=5))
    np.testing.assert_allclose(stages[5], first.predict(noisy.X))
