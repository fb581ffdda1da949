import numpy as np
import pytest
import torch

from cleanrank.ragged import indptr_of
from cleanrank.rankers.neural.documents import batch_scores, documents, score_all
from cleanrank.rankers.neural.inputs import batch_of
from cleanrank.rankers.neural.networks import build_network
from cleanrank.rankers.scaling import fit_scaling
from tests.oracles import pad

CPU = torch.device("cpu")
LENGTHS = [3, 0, 5, 1, 2]


@pytest.fixture
def docs():
    X = np.random.default_rng(0).normal(size=(11, 4)).astype(np.float32)
    return documents(X, fit_scaling(X, "none"), indptr_of(LENGTHS), CPU)


def test_padding_is_that_of_groups_and_can_be_undone(docs):
    queries = np.array([2, 0, 4])
    batch = batch_of(docs.indptr, queries, CPU)
    values = torch.arange(11.0)[batch.rows]
    wanted, mask = pad(values.numpy(), indptr_of([5, 3, 2]))
    np.testing.assert_array_equal(batch.pad(values).numpy(), wanted)
    np.testing.assert_array_equal(batch.mask.numpy(), mask)
    assert torch.equal(batch.unpad(batch.pad(values)), values)
    wide = docs.rows(batch.rows)
    assert batch.pad(wide).shape == (3, 5, 4)
    assert torch.equal(batch.unpad(batch.pad(wide)), wide)


@pytest.mark.parametrize("name", ["mlp", "attention"])
@pytest.mark.parametrize("chunk", [1, 4, 1000])
def test_scores_do_not_depend_on_how_documents_are_cut(docs, name, chunk):
    options = {"hidden": (5,)} if name == "mlp" else {"width": 6}
    network = build_network(name, 4, **options)
    found = score_all(network, docs, chunk=chunk)
    assert found.dtype == np.float64
    for q in (0, 2, 3, 4):
        rows = slice(docs.indptr[q], docs.indptr[q + 1])
        X = docs.X[rows]
        alone = (
            network(X[None], torch.ones(1, len(X), dtype=torch.bool))[0]
            if name == "attention"
            else network(X)
        )
        np.testing.assert_allclose(found[rows], alone.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_gradients_flow_through_padding_to_real_documents_alone(docs):
    network = build_network("linear", 4)
    batch = batch_of(docs.indptr, np.array([0, 2]), CPU)
    scores = batch_scores(network, False, docs, batch)
    scores.sum().backward()
    torch.testing.assert_close(network.output.weight.grad[0], docs.rows(batch.rows).sum(0))
    assert network.output.bias.grad.item() == 8


def test_no_documents_have_no_scores():
    X = np.zeros((0, 4), np.float32)
    empty = documents(X, fit_scaling(X), np.array([0]), CPU)
    assert score_all(build_network("linear", 4), empty).shape == (0,)
    assert score_all(build_network("attention", 4, width=4), empty).shape == (0,)
