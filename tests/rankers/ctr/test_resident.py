"""Rows on the device give networks what the rows hold, in any order and any pieces."""

import numpy as np
import pytest
import torch

from cleanrank.rankers.ctr import MODELS
from cleanrank.rankers.ctr.resident import batches, logits, resident
from tests.rankers.ctr.planted import planted

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def rows():
    return planted(90)


@pytest.mark.parametrize("most", [None, 11])
def test_inputs_are_the_fields_of_the_rows(rows, most):
    chosen = np.array([5, 0, 89, 5])
    user, item, context, history, lengths = resident(rows, CPU, most).inputs(torch.from_numpy(chosen))
    for tensor, part in ((user, rows.user), (item, rows.item), (context, rows.context)):
        np.testing.assert_array_equal(tensor.numpy(), part[chosen])
    expected = rows.histories[rows.history_of[chosen]]
    T = expected.shape[1]
    np.testing.assert_array_equal(history[:, :T].numpy(), expected)
    assert history.shape[1] == (most or T)
    assert not history[:, T:].any()
    np.testing.assert_array_equal(lengths.numpy(), rows.lengths[rows.history_of[chosen]])


def test_scores_do_not_depend_on_the_pieces(rows):
    network = MODELS["din"](rows.layout, history=rows.histories.shape[1])
    on_device = resident(rows, CPU)
    np.testing.assert_allclose(logits(network, on_device, chunk=7), logits(network, on_device), atol=1e-6)
    assert logits(network, resident(rows.select(np.zeros(90, dtype=bool)), CPU)).shape == (0,)


def test_every_row_is_in_one_batch():
    parts = batches(103, 20, np.random.default_rng(0))
    assert [len(part) for part in parts] == [20] * 5 + [3]
    assert sorted(np.concatenate(parts).tolist()) == list(range(103))
