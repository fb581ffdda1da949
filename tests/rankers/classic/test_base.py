"""The base of classic rankers, on one that takes a step in a known direction."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import BadFileError, InvalidInputError
from cleanrank.metrics.evaluation import evaluate_mean
from cleanrank.rankers.classic.base import LinearRanker, Rows, Watch
from cleanrank.rankers.classic.models import LinearModel, StumpModel, load_model
from cleanrank.rankers.columns import Columns
from cleanrank.rankers.scaling import fit_scaling


@dataclass(kw_only=True, eq=False, repr=False)
class Planned(LinearRanker):
    """Weights that are given, one vector a step."""

    steps: tuple = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
    scaling: str = "zscore"
    measure: str = "map"
    early_stopping_rounds: int | None = 0
    random_state: int = 0
    n_jobs: int = 1

    def _train(self, rows: Rows, watch: Watch, progress):
        assert rows.X.flags.c_contiguous
        best = None
        for weights in np.array(self.steps):
            if watch.see([X @ weights for X in watch.sets]):
                best = weights
            if watch.done:
                break
        return self._linear(best, watch)


@pytest.fixture(scope="module")
def data():
    return cr.make_ranking(30, 3, docs_per_query=12, seed=0)


def one_step(weights, data):
    return evaluate_mean(Planned(steps=(weights,)).fit_data(data).predict(data.X), data, "map")


def test_the_best_step_on_the_first_set_is_kept(data):
    values = [one_step(weights, data) for weights in Planned.steps]
    ranker = Planned().fit_data(data, {"first": data, "other": data.select(np.arange(60))})
    assert ranker.evals_result_["first"]["map"] == pytest.approx(values)
    assert ranker.best_iteration_ == int(np.argmax(values)) + 1
    assert ranker.model_.validation_value == pytest.approx(max(values))
    assert len(ranker.evals_result_["other"]["map"]) == 3
    # Without validation rows, or where nothing is to stop it, the last step counts.
    assert Planned().fit_data(data).best_iteration_ == 3
    assert Planned(early_stopping_rounds=None).fit_data(data, data).best_iteration_ == 3


def test_it_stops_after_so_many_steps_without_gain(data):
    order = np.argsort([one_step(weights, data) for weights in Planned.steps])[::-1]
    falling = tuple(Planned.steps[place] for place in order)
    ranker = Planned(steps=falling, early_stopping_rounds=1).fit_data(data, data)
    assert ranker.best_iteration_ == 1
    assert len(ranker.evals_result_["valid_0"]["map"]) == 2


def test_coefficients_are_those_of_the_features_as_given(data):
    X = data.X * [1.0, 100.0, 0.01] + [5.0, 0.0, -3.0]
    ranker = Planned(steps=((0.5, -2.0, 1.0),)).fit(X, data.y, qid=data.qid)
    np.testing.assert_allclose(X @ ranker.coef_ + ranker.intercept_, ranker.predict(X), atol=1e-8)
    missing = X.copy()
    missing[:, 1] = np.nan
    filled = X.copy()
    filled[:, 1] = X[:, 1].mean()
    np.testing.assert_allclose(ranker.predict(missing), ranker.predict(filled), atol=1e-8)


def test_what_it_cannot_learn_from_is_refused(data):
    with pytest.raises(InvalidInputError, match="Planned reads grades; got rows with expected gains"):
        Planned().fit_data(replace(data, gains=data.y.astype(float)))
    whole = np.round(np.abs(data.X))
    with pytest.raises(InvalidInputError, match="Planned reads numbers alone; got categories in 'Column_0'"):
        Planned().fit(whole, data.y, qid=data.qid, categorical_feature=[0])
    with pytest.raises(InvalidInputError, match="early_stopping_rounds must be an integer >= 0; got -1"):
        Planned(early_stopping_rounds=-1).fit_data(data)
    with pytest.raises(InvalidInputError, match="must have two documents of different labels"):
        Planned().fit(data.X, data.y, qid=np.arange(data.n_docs))
    X = np.array(data.X)
    X[7, 2] = np.inf
    with pytest.raises(InvalidInputError, match=r"X must be finite.* got inf at row 7, column 2"):
        Planned().fit(X, data.y, qid=data.qid)


def stumps(**changes):
    X = np.zeros((2, 2))
    parts = {
        "ranker": "RankBoost",
        "params": {},
        "columns": Columns(2, ("a", "b")),
        "scaling": fit_scaling(X, "none", dtype=np.float64),
        "best_iteration": 3,
        "features": np.array([1, 0, 1]),
        "thresholds": np.array([0.5, 0.0, -0.5]),
        "weights": np.array([1.0, 0.25, -2.0]),
    }
    return StumpModel(**parts | changes)


def test_stumps_add_the_weights_of_the_thresholds_that_are_exceeded():
    rng = np.random.default_rng(0)
    features, thresholds = rng.integers(0, 2, 40), np.round(rng.normal(size=40), 1)
    model = stumps(features=features, thresholds=thresholds, weights=rng.normal(size=40))
    X = np.round(rng.normal(size=(50, 2)), 1)
    naive = sum(w * (X[:, f] > t) for f, t, w in zip(features, thresholds, model.weights, strict=True))
    np.testing.assert_allclose(model.predict(X), naive, atol=1e-12)
    assert model.importances.sum() == pytest.approx(1)


@pytest.mark.parametrize("kind", ["stumps", "linear"])
def test_models_are_saved_with_all_digits(kind, tmp_path, data):
    model = stumps()
    if kind == "linear":
        model = Planned(steps=((0.1, 1 / 3, -2e-17),)).fit_data(data).model_
    model.save(tmp_path / "model")
    again = load_model(tmp_path / "model")
    assert type(again) is type(model)
    assert again.columns == model.columns
    rows = np.random.default_rng(0).normal(size=(9, model.n_features))
    np.testing.assert_array_equal(again.predict(rows), model.predict(rows))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"version": 2}, "version 2"),
        ({"n_features": 3}, "shift must hold 3 finite numbers"),
        ({"feature_names": ["a"]}, "1 feature_names for 2 features"),
        ({"scaling": "cube"}, "unknown scaling 'cube'"),
        ({"model": {"features": [2], "thresholds": [0], "weights": [1]}}, "features must lie in 0..1"),
        (
            {"model": {"features": [0], "thresholds": [0, 1], "weights": [1]}},
            "thresholds must hold 1 finite numbers",
        ),
        ({"model": {"weights": [1, None], "thresholds": []}}, "weights must hold 2 finite numbers"),
        ({"model": {"weights": [1, float("inf")], "thresholds": []}}, "weights must hold 2 finite numbers"),
        ({"model": []}, "indices must be integers"),
    ],
)
def test_broken_files_are_refused(change, why, tmp_path):
    stumps().save(tmp_path / "model")
    record = json.loads((tmp_path / "model").read_text()) | change
    (tmp_path / "model").write_text(json.dumps(record))
    with pytest.raises(BadFileError, match="must be a whole ranker as JSON") as caught:
        load_model(tmp_path / "model")
    assert why in str(caught.value)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"class": "RankSVN"}, "unknown class 'RankSVN'. Did you mean 'RankSVM'?"),
        ({"class": "BoostedRanker"}, "unknown class 'BoostedRanker'"),
        ({"params": {"measuse": "map"}}, "'measuse'"),
    ],
)
def test_files_of_no_classic_ranker_are_refused(change, why, tmp_path, data):
    cr.RankSVM(C=1.0).fit_data(data).save(tmp_path / "model")
    record = json.loads((tmp_path / "model").read_text()) | change
    (tmp_path / "model").write_text(json.dumps(record))
    with pytest.raises(BadFileError, match="must be a whole ranker as JSON") as caught:
        cr.load_ranker(tmp_path / "model")
    assert why in str(caught.value)


def test_a_file_that_was_cut_is_refused(tmp_path):
    stumps().save(tmp_path / "model")
    text = (tmp_path / "model").read_text()
    (tmp_path / "model").write_text(text[: len(text) // 2])
    with pytest.raises(BadFileError, match="must be a whole ranker as JSON"):
        load_model(tmp_path / "model")


def test_linear_models_score_rows_alike_in_any_company():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 50))
    scaling = fit_scaling(X, "zscore", dtype=np.float64)
    model = LinearModel(
        ranker="RankSVM",
        params={},
        columns=Columns(50),
        scaling=scaling,
        best_iteration=1,
        weights=rng.normal(size=50),
        thresholds=np.zeros(0),
    )
    alone = np.concatenate([model.predict(X[i : i + 1]) for i in range(len(X))])
    np.testing.assert_array_equal(model.predict(X), alone)


def test_json_may_be_written_anew_by_others(tmp_path, data):
    ranker = cr.RankBoost(n_estimators=2).fit_data(data)
    ranker.save(tmp_path / "model.json")
    record = json.loads((tmp_path / "model.json").read_text())
    (tmp_path / "model.json").write_text("\n" + json.dumps(record, indent=2, sort_keys=True))
    np.testing.assert_array_equal(
        cr.load_ranker(tmp_path / "model.json").predict(data.X), ranker.predict(data.X)
    )
