import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.experiments import cells as module
from cleanrank.experiments.cells import noisy_data, run_cell, score
from cleanrank.experiments.engines import THREADS
from cleanrank.experiments.methods import METHODS, Method, MethodResult, MethodTask, Unjudged, trees
from cleanrank.metrics.evaluation import evaluate
from cleanrank.noise.pair_noise import pnoise
from tests.experiments.toys import cell_of, unpack


def for_method(cells, name):
    """A noisy cell of the recipe, given to another method."""
    inputs = dict(cell_of(cells, rate=0.3, method="norm on").inputs)
    params = {
        **METHODS[name].params,
        **({"rounds": 5, "min_data_in_leaf": 5} if "rounds" in METHODS[name].params else {}),
    }
    grid = {"num_leaves": [3, 15]} if "rounds" in METHODS[name].params else {}
    return {**inputs, "algorithm": name, "version": METHODS[name].version, "params": params, "grid": grid}


@pytest.mark.parametrize("name", METHODS)
def test_scores_and_choices_do_not_depend_on_test_labels(cells, splits, name):
    cell = for_method(cells, name)
    given = score(cell, splits)
    for labels in (np.zeros_like(splits.test.y), splits.test.y.max() - splits.test.y):
        poisoned = dataclasses.replace(splits, test=splits.test.with_labels(labels))
        other = score(cell, poisoned)
        assert other.scores.tobytes() == given.scores.tobytes()
        assert other.chosen == given.chosen


@pytest.mark.parametrize("name", METHODS)
def test_methods_run_where_test_labels_do_not_exist(cells, splits, name):
    unlabelled = SimpleNamespace(X=splits.test.X, indptr=splits.test.indptr)
    blind = SimpleNamespace(train=splits.train, validation=splits.validation, test=unlabelled)
    cell = for_method(cells, name)
    assert score(cell, blind).scores.tobytes() == score(cell, splits).scores.tobytes()


def test_a_task_holds_of_the_test_data_features_and_queries_only():
    assert [f.name for f in dataclasses.fields(Unjudged)] == ["X", "indptr"]
    judged = {f.name for f in dataclasses.fields(MethodTask) if f.type in (cr.RankingData, "RankingData")}
    assert judged == {"train", "validation"}


def test_choices_do_depend_on_validation_labels(cells, splits):
    cell = for_method(cells, "one_feature")
    other = dataclasses.replace(
        splits, validation=splits.validation.with_labels(splits.validation.y.max() - splits.validation.y)
    )
    assert score(cell, other).chosen != score(cell, splits).chosen


def test_noise_changes_train_and_validation_and_is_shared_by_methods(cells, splits):
    one, two = (cell_of(cells, rate=0.3, seed=1, method=m).inputs for m in ("norm on", "chance"))
    train, validation = noisy_data(one, splits)
    again, _ = noisy_data(two, splits)
    assert (train.y == again.y).all()
    assert 0.15 < (train.y != splits.train.y).mean() < 0.45
    assert (validation.y != splits.validation.y).any()
    assert (train.X == splits.train.X).all()


def test_noise_keeps_to_its_splits_and_seeds(cells, splits):
    cell = {**cell_of(cells, rate=0.3, seed=1).inputs, "on": ["train"]}
    train, validation = noisy_data(cell, splits)
    assert (validation.y == splits.validation.y).all()
    other, _ = noisy_data({**cell, "seed": 2}, splits)
    assert (train.y != other.y).any()
    clean, _ = noisy_data({**cell, "rate": 0.0}, splits)
    assert clean is splits.train


def test_a_higher_rate_changes_what_a_lower_one_changed_and_more(cells, splits):
    cell = cell_of(cells, rate=0.3, seed=1).inputs
    low, high = (noisy_data({**cell, "rate": r}, splits)[0].y != splits.train.y for r in (0.1, 0.3))
    assert low.sum() < high.sum()
    assert high[low].all()


def test_figures_are_those_of_the_clean_test_labels(cells, splits):
    cell = cell_of(cells, rate=0.3, seed=2, method="chance")
    found = unpack(run_cell(cell.text))
    scores = np.random.default_rng(2).random(splits.test.n_docs)
    expected = evaluate(scores, splits.test, ["ndcg@10", "map:letor"])
    assert found.status == "done", found.error
    assert {m: v.tolist() for m, v in found.values.items()} == {m: v.tolist() for m, v in expected.items()}
    assert found.means == expected.means
    assert list(found.query_ids) == splits.test.query_ids.tolist()
    assert {"python", "numpy", "lightgbm", "cleanrank"} <= set(found.versions)


def test_a_cell_gives_the_same_bits_twice(cells):
    cell = cell_of(cells, rate=0.3, method="norm on")
    one, two = unpack(run_cell(cell.text)), unpack(run_cell(cell.text))
    assert {m: v.tobytes() for m, v in one.values.items()} == {m: v.tobytes() for m, v in two.values.items()}
    assert one.chosen == two.chosen


def test_what_goes_wrong_is_a_failure_with_its_traceback(cells):
    inputs = {**cell_of(cells, method="norm on").inputs}
    inputs["params"] = {**inputs["params"], "num_leaves": 1}
    found = unpack(run_cell(json.dumps(inputs)))
    assert found.status == "failed"
    assert found.means == {}
    assert "Traceback" in found.error
    assert "num_leaves" in found.error


def test_other_data_than_planned_are_refused(cells):
    module._splits.cache_clear()
    found = unpack(run_cell(json.dumps({**cells[0].inputs, "identity": "a1b2c3d4e5f60718"})))
    assert "must be the same where cells are planned and where they are computed" in found.error


def test_another_version_of_a_method_is_refused(cells):
    found = unpack(run_cell(json.dumps({**cells[0].inputs, "version": 99})))
    assert "must have version 99, as the driver has" in found.error


def test_data_are_loaded_once_for_many_cells(cells):
    module._splits.cache_clear()
    for cell in cells[:4]:
        run_cell(cell.text)
    assert module._splits.cache_info().misses == 1


def odd(task):
    return MethodResult(np.zeros(task.test.n_docs), {"validation": float("nan")})


def test_a_method_whose_choice_cannot_be_stored_fails_the_cell(cells, monkeypatch):
    monkeypatch.setattr(trees, "random", odd)
    found = unpack(run_cell(cell_of(cells, method="chance").text))
    assert found.status == "failed"
    assert "JSON compliant" in found.error


def test_a_noisy_cell_notes_how_noisy_its_training_labels_are(cells, splits):
    cell = cell_of(cells, rate=0.3, method="chance").inputs
    train, _ = noisy_data(cell, splits)
    chosen = score(cell, splits).chosen
    assert chosen["train_dnoise"] == (train.y != splits.train.y).mean()
    assert chosen["train_pnoise"] == float(pnoise(splits.train.y, train.y, splits.train.indptr))
    assert 0 < chosen["overall_pnoise"] < chosen["expected_pnoise"] < 0.5
    assert "train_pnoise" not in score(cell_of(cells, rate=0.0, method="chance").inputs, splits).chosen
    assert "train_pnoise" not in score({**cell, "on": ["validation"]}, splits).chosen


def test_a_derived_cell_learns_from_merged_grades_and_is_judged_by_all(cells, splits):
    inputs = {**cell_of(cells, rate=0.0, method="chance", seed=1).inputs, "derived": "MSLR2G"}
    merged, plain = (
        unpack(run_cell(json.dumps(inputs))),
        unpack(run_cell(cell_of(cells, rate=0.0, method="chance", seed=1).text)),
    )
    assert merged.status == "done", merged.error
    assert merged.means == plain.means  # chance ranks alike, and test grades are the same
    noisy_cell = {**inputs, "rate": 0.2, "noise": "uniform", "on": ["train", "validation"]}
    found = unpack(run_cell(json.dumps(noisy_cell))).chosen
    assert 0.1 < found["train_dnoise"] < 0.3


def test_a_study_gives_its_own_figures(cells, splits):
    base = cell_of(cells, rate=0.3, method="chance").inputs
    cell = {**base, "algorithm": "label_noise", "version": 1, "measures": ["dnoise", "pnoise"]}
    found = unpack(run_cell(json.dumps(cell)))
    assert found.status == "done", found.error
    assert found.means["pnoise"] == score(base, splits).chosen["train_pnoise"]
    assert list(found.query_ids) == splits.train.query_ids.tolist()
    clean = unpack(run_cell(json.dumps({**cell, "rate": 0.0})))
    assert clean.means == {"dnoise": 0.0, "pnoise": 0.0}


def test_only_a_ceiling_chooses_on_clean_validation_labels(cells, splits):
    cell = for_method(cells, "corrected")
    cell = {**cell, "params": {**cell["params"], "selection": "best"}}
    ceiling = {**cell, "params": {**cell["params"], "gold": -1, "clean_validation": True}}
    untouched = {**for_method(cells, "lambdarank"), "rate": 0.0}  # trees on labels without noise
    assert score(ceiling, splits).chosen["validation"] == score(untouched, splits).chosen["validation"]
    noisy = {**cell, "params": {**cell["params"], "gold": -1}}
    assert score(noisy, splits).chosen["validation"] != score(ceiling, splits).chosen["validation"]


@pytest.mark.parametrize(("documents", "wanted"), [(1, 3), (10**9, 1)])
def test_large_data_get_the_threads_of_the_engine_and_the_same_bits(
    cells, splits, monkeypatch, documents, wanted
):
    cell = cell_of(cells, method="norm on", rate=0.0).inputs
    alone = score(cell, splits).scores
    asked = []
    run = Method.run
    monkeypatch.setattr(Method, "run", lambda self, task: asked.append(task.n_jobs) or run(self, task))
    monkeypatch.setattr("cleanrank.experiments.cells.MANY_DOCUMENTS", documents)
    monkeypatch.setenv(THREADS, "3")
    assert score(cell, splits).scores.tobytes() == alone.tobytes()
    assert asked == [wanted]
