from dataclasses import replace

import numpy as np
import pytest
import torch

from cleanrank.errors import CleanrankError
from cleanrank.rankers.neural.model import Task, checked_preferences, label_columns
from cleanrank.rankers.neural.ranker import NeuralRanker

SMALL = NeuralRanker(network="linear", device="cpu")
NAMES = ("a", "b", "c", "d")


def test_validation_columns_are_found_by_name(toy):
    task = Task(SMALL, toy.X, toy.indptr, toy.row_ids, NAMES)
    turned = replace(toy, X=toy.X[:, [3, 0, 2, 1]], feature_names=("d", "a", "c", "b"))
    torch.testing.assert_close(task.validation_documents(turned).X, task.docs.X, rtol=0, atol=0)
    with pytest.raises(CleanrankError, match="columns that the model was trained on; got none named 'a'"):
        task.validation_documents(replace(toy, feature_names=("b", "c", "d", "e")))


def test_rows_of_bad_features_are_called_as_the_caller_calls_them(toy):
    X = toy.X.copy()
    X[3, 1] = np.inf
    with pytest.raises(CleanrankError, match="got inf at row 1003, column 1"):
        Task(SMALL, X, toy.indptr, np.arange(toy.n_docs) + 1000)


def test_validation_data_need_documents(toy):
    task = Task(SMALL, toy.X, toy.indptr)
    with pytest.raises(CleanrankError, match="validation data must have documents"):
        task.validation_documents(toy.select(np.zeros(toy.n_docs, dtype=bool)))


def test_losses_that_weigh_by_rank_need_ranks(toy):
    labels, extra = label_columns(replace(toy, weights=np.ones(toy.n_docs)), torch.device("cpu"), ())
    assert labels.tolist() == toy.y.tolist()
    assert list(extra) == ["weights"]
    with pytest.raises(CleanrankError, match="must have positions"):
        label_columns(toy, torch.device("cpu"), ("positions",))


def test_preferences_are_pairs_of_rows():
    for wrong, words in (
        ([[0, 1], [0, -1]], "rows from 0 to 4; got -1 at pair 1"),
        ([[5, 1]], "got 5 at pair 0"),
        ([[0.0, 1.0]], "better document, worse document"),
        (np.empty((0, 2), int), "better document, worse document"),
        ([[0, 1], [2, 2]], "must name two different rows at pair 1"),
    ):
        with pytest.raises(CleanrankError, match=words):
            checked_preferences(wrong, 5)
