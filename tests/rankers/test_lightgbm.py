from types import SimpleNamespace

import lightgbm
import numpy as np
import pytest
import scipy.sparse

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.rankers._lightgbm import ARGUMENTS, _main_names, resolve_aliases, run_settings
from cleanrank.rankers.base import varies
from tests.rankers.training import trained


@pytest.fixture(scope="module")
def data():
    return cr.make_ranking(20, 4, docs_per_query=10, seed=0)


def with_features(data, X):
    return cr.from_arrays(X, data.y, group=data.lengths)


def test_an_alias_is_the_parameter_it_stands_for(data):
    wanted = trained(data, n_estimators=3, params={"learning_rate": 0.5, "min_data_in_leaf": 2})
    found = trained(data, n_estimators=3, params={"eta": 0.5, "min_child_samples": 2})
    other = trained(data, n_estimators=3)
    np.testing.assert_array_equal(found.predict(data.X), wanted.predict(data.X))
    assert not np.array_equal(other.predict(data.X), wanted.predict(data.X))


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"num_leafs": 3}, r"unknown parameter of LightGBM 'num_leafs'\. Did you mean 'num_lea"),
        ({"eta": 0.1, "learning_rate": 0.2}, "must give 'learning_rate' once"),
        (["eta"], "params must be a mapping"),
    ],
)
def test_wrong_parameters_are_named(params, words):
    with pytest.raises(CleanrankError, match=words):
        resolve_aliases(params)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_what_has_an_argument_is_no_parameter(name):
    with pytest.raises(CleanrankError, match="instead"):
        resolve_aliases({name: 3})


@pytest.mark.parametrize("implementation", ["exact", "parity", "builtin"])
@pytest.mark.parametrize("value", [1.0, np.nan])
def test_constant_features_are_refused_by_every_objective(data, implementation, value):
    constant = with_features(data, np.full((data.n_docs, 3), value))
    with pytest.raises(CleanrankError, match=r"features must differ .* got 3 constant ones"):
        trained(constant, implementation=implementation, n_estimators=2)


def test_too_few_rows_for_a_split_are_told(data):
    few = data.select(np.arange(6))
    with pytest.raises(CleanrankError, match="must have a column that can be split; got 6 rows, 20 a leaf"):
        trained(few, implementation="exact", n_estimators=2)


@pytest.mark.parametrize("kind", [np.asarray, scipy.sparse.csr_matrix])
def test_a_value_far_down_counts(kind):
    X = np.zeros((9000, 2))
    assert not varies(kind(X))
    X[8999, 1] = 1
    assert varies(kind(X))


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"num_leaves": 1}, r"num_leaves must be more than 1 \(LightGBM\); got 1"),
        ({"num_leaves": "x"}, "num_leaves must be of type int"),
        ({"learning_rate": 0}, "learning_rate must be more than 0"),
        ({"boosting": "foo"}, "LightGBM must be able to train; it said: Unknown boosting type foo"),
    ],
)
def test_lightgbm_speaks_in_our_words(data, params, words):
    with pytest.raises(CleanrankError, match=words) as caught:
        trained(data, objective="gbdt", n_estimators=2, params=params)
    assert ".cpp" not in str(caught.value)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_estimators": 0}, "n_estimators must be an integer >= 1; got 0"),
        ({"n_estimators": "9"}, "n_estimators must be"),
        ({"early_stopping_rounds": "x"}, "early_stopping_rounds must be an integer"),
        ({"seed": None}, "seed must be"),
        ({"n_jobs": 0}, "n_jobs must be"),
    ],
)
def test_runs_are_checked_first(data, options, words):
    with pytest.raises(CleanrankError, match=words):
        trained(data, **{"n_estimators": 2, **options})


def test_validation_rows_must_fit(data):
    with pytest.raises(CleanrankError, match="validation data must have the 4 features"):
        trained(data, with_features(data, data.X[:, :3]), n_estimators=2)
    with pytest.raises(CleanrankError, match="validation data must have at least one document"):
        trained(data, data.select([]), n_estimators=2)


@pytest.mark.parametrize("implementation", ["exact", "builtin"])
def test_grades_beyond_float64_are_refused(data, implementation):
    high = data.with_labels(data.y * 2000)
    with pytest.raises(CleanrankError, match="grades must be at most 1000"):
        trained(high, implementation=implementation, n_estimators=2)


def test_rows_to_score_are_checked(data):
    model = trained(data, n_estimators=2)
    for X, words in (
        (data.X[:, :3], "must have the 4 columns that the model was trained on; got 3"),
        (data.X[0], "must have two dimensions"),
        ([["a"] * 4], "must hold numbers"),
    ):
        with pytest.raises(CleanrankError, match=words):
            model.predict(X)
    np.testing.assert_array_equal(model.predict(data.X[:2].tolist()), model.predict(data.X[:2]))


@pytest.mark.parametrize("listed", ["no class", "no method", "other values"])
def test_a_lightgbm_that_lists_no_names_gets_parameters_as_they_are(data, monkeypatch, listed):
    wanted = trained(data, n_estimators=3, params={"learning_rate": 0.5}).predict(data.X)
    if listed == "no class":
        monkeypatch.delattr(lightgbm.basic, "_ConfigAliases")
    elif listed == "no method":
        monkeypatch.setattr(lightgbm.basic, "_ConfigAliases", object())
    else:
        fake = SimpleNamespace(_get_all_param_aliases=lambda: {"learning_rate": 3})
        monkeypatch.setattr(lightgbm.basic, "_ConfigAliases", fake)
    _main_names.cache_clear()
    try:
        with pytest.warns(UserWarning, match="does not list the names of its parameters"):
            assert resolve_aliases({"eta": 0.1, "learning_rate": 0.2}) == {"eta": 0.1, "learning_rate": 0.2}
        with pytest.raises(CleanrankError, match="must leave 'objective' to the argument"):
            resolve_aliases({"objective": "regression"})
        # LightGBM itself goes by the list that was taken away; ours stays empty.
        monkeypatch.undo()
        found = trained(data, n_estimators=3, params={"learning_rate": 0.5}).predict(data.X)
    finally:
        monkeypatch.undo()
        _main_names.cache_clear()
    np.testing.assert_array_equal(found, wanted)
    assert resolve_aliases({"eta": 0.1}) == {"learning_rate": 0.1}


@pytest.mark.parametrize(("n_jobs", "threads"), [(None, 0), (-1, 0), (3, 3)])
def test_every_run_is_told_seed_and_threads(n_jobs, threads):
    found = run_settings(2**40 + 7, n_jobs)
    assert found["num_threads"] == threads
    assert found["seed"] == 7
