import pytest
import torch

from cleanrank.errors import InvalidInputError
from cleanrank.losses.torch.lists import read_batch


def test_padding_is_filled_whatever_stands_there():
    bad = torch.tensor([[1.0, torch.nan]])
    found = read_batch(bad, bad, torch.tensor([[True, False]]), bad, bad)
    for tensor in (found.scores, found.labels, found.weights, found.gains):
        assert tensor.tolist() == [[1.0, 0.0]]


def test_half_precision_is_lifted_and_whole_labels_follow_the_scores():
    found = read_batch(
        torch.ones(1, 2, dtype=torch.bfloat16), torch.ones(1, 2, dtype=torch.int64), None, None, None
    )
    assert found.scores.dtype == found.labels.dtype == found.weights.dtype == torch.float32
    assert found.mask.all()
    assert found.copies is None


@pytest.mark.parametrize("name", ["labels", "mask", "weights", "gains"])
def test_shapes_must_agree(name):
    one = torch.ones(2, 3)
    given = {"labels": one, "mask": one.bool(), "weights": one, "gains": one, name: torch.ones(2, 4)}
    with pytest.raises(InvalidInputError, match=rf"scores and {name}.*\(2, 4\)"):
        read_batch(one, **given)


def test_flat_scores_are_refused():
    with pytest.raises(InvalidInputError, match=r"\(lists, documents\); got \(3,\)"):
        read_batch(torch.ones(3), torch.ones(3), None, None, None)


def test_gains_that_nobody_reads_are_refused():
    one = torch.ones(1, 1)
    read_batch(one, one, None, None, None).refuse_gains("ranknet")
    with pytest.raises(InvalidInputError, match="Pass them as labels"):
        read_batch(one, one, None, None, one).refuse_gains("ranknet")


def test_what_is_no_tensor_of_floats_is_refused():
    ones = torch.ones(1, 2)
    with pytest.raises(InvalidInputError, match="scores must be a torch tensor; got ndarray"):
        read_batch(ones.numpy(), ones, None, None, None)
    with pytest.raises(InvalidInputError, match="labels must be a torch tensor; got list"):
        read_batch(ones, [[1, 0]], None, None, None)
    with pytest.raises(InvalidInputError, match=r"scores must be of a floating type; got torch\.int64"):
        read_batch(ones.long(), ones, None, None, None)
