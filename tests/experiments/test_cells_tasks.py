"""What a cell hands to its method: noisy labels, and the truth only where it is paid for or asked for."""

import dataclasses

import numpy as np
import pytest

from cleanrank.data.split import Splits
from cleanrank.experiments import cells as module
from cleanrank.experiments.cells import filter_cells, key_of, noisy_data, run_cell, score
from cleanrank.experiments.methods import METHODS, Method, MethodResult, trees
from tests.experiments.toys import cell_of, unpack


@pytest.fixture
def task_of(cells, splits, monkeypatch):
    """The task that a noisy cell with some parameters makes."""
    tasks = []

    def look(task):
        tasks.append(task)
        return MethodResult(np.zeros(task.test.n_docs))

    monkeypatch.setattr(trees, "look", look, raising=False)
    monkeypatch.setitem(METHODS, "look", Method(1, "methods.trees:look", {}))

    def make(params=None, data: Splits = splits, **changes):
        cell = {**cell_of(cells, rate=0.3, seed=1).inputs, "algorithm": "look", "params": params or {}}
        score({**cell, **changes}, data)
        return tasks[-1]

    return make


def test_methods_learn_and_choose_by_noisy_labels(task_of, cells, splits):
    task = task_of()
    train, validation = noisy_data(cell_of(cells, rate=0.3, seed=1).inputs, splits)
    np.testing.assert_array_equal(task.train.y, train.y)
    np.testing.assert_array_equal(task.validation.y, validation.y)
    assert (task.train.y != splits.train.y).any()
    assert (task.validation.y != splits.validation.y).any()
    np.testing.assert_array_equal(task.test.X, splits.test.X)


def test_a_ceiling_alone_chooses_by_the_truth(task_of, splits):
    np.testing.assert_array_equal(task_of({"clean_validation": True}).validation.y, splits.validation.y)
    assert (task_of({"clean_validation": False}).validation.y != splits.validation.y).any()


def test_the_judge_tells_the_truth_of_training_rows(task_of, splits):
    task = task_of({"gold": -1})
    rows = np.arange(splits.train.n_docs)
    np.testing.assert_array_equal(task.judge(rows), splits.train.y)
    assert (task.judge(rows) != task.train.y).any()


def test_the_matrix_and_the_users_are_for_those_who_may_ask(task_of, monkeypatch):
    assert task_of().profile is None
    assert task_of().users is None
    monkeypatch.setattr(module, "noisy_data", lambda cell, splits: (splits.train, splits.validation))
    clicked = task_of({"noise": "true"}, noise="pbm", rate=0.05)
    assert clicked.users.flip == (0.05, 0.05)
    assert clicked.profile.matrix.tolist() == [[0.95, 0.05], [0.05, 0.95]]


def test_scores_belong_to_the_rows_of_the_test_data(cells, splits, monkeypatch):
    """Where queries are not contiguous in the input, rows of the data stand in another order than there."""
    order = np.random.default_rng(0).permutation(splits.test.n_docs)
    shuffled = dataclasses.replace(splits.test, row_ids=order)
    moved = dataclasses.replace(splits, test=shuffled)
    monkeypatch.setattr(module, "_splits", lambda *_: moved)
    cell = cell_of(cells, rate=0.0, method="norm on")
    given = unpack(run_cell(cell.text))
    monkeypatch.setattr(module, "_splits", lambda *_: splits)
    assert given.means == unpack(run_cell(cell.text)).means


def test_keys_hold_what_figures_depend_on_alone(cells):
    clean = cell_of(cells, rate=0.0).inputs
    assert key_of({**clean, "on": ["train"], "noise": "uniform"}) == key_of(
        {**clean, "on": [], "noise": "none"}
    )
    assert key_of({**clean, "measures": clean["measures"][::-1]}) == key_of(clean)
    assert key_of({**clean, "method": "another label", "dataset": "another label"}) == key_of(clean)


def test_filters_join(cells):
    kept = filter_cells(cells, ["method=chance", "seed=2"])
    assert {(cell.inputs["method"], cell.inputs["seed"]) for cell in kept} == {("chance", 2)}
