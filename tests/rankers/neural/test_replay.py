"""Steps that are recorded on a GPU learn what steps that are launched learn."""

import numpy as np
import pytest
import torch

import cleanrank as cr
from cleanrank.rankers.ctr import MODELS
from cleanrank.rankers.neural import loop, ranker
from cleanrank.rankers.neural.inputs import Bucket
from cleanrank.rankers.neural.model import Task
from tests.rankers.ctr.planted import planted

GPU = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
SMALL = {"epochs": 4, "network_options": {"hidden": (16, 8)}, "batch_queries": 8, "optimizer": "sgd"}


def test_batches_are_filled_up_with_lists_without_documents(toy):
    task = Task(cr.NeuralRanker(network="linear", device="cpu"), toy.X, toy.indptr)
    filled = ranker.filled_lists(toy.indptr, task)
    queries = np.array([4, 2, 9])
    bucket = filled.bucket(queries)
    assert bucket.lists == 4
    assert bucket.documents >= toy.lengths[queries].sum()
    members = filled.members(queries, bucket)
    batch = filled.batch(torch.from_numpy(members), bucket)
    assert batch.mask.sum(1).tolist() == [*toy.lengths[queries], 0]


@pytest.mark.parametrize("loss", ["ranknet", "lambdarank", "listnet", "approx_ndcg"])
def test_filling_up_changes_no_loss(toy, loss):
    made = cr.NeuralRanker(loss).loss_config()
    risk, _ = ranker.list_loss(made, toy)
    assert risk.replayable
    s = torch.randn(3, 12, generator=torch.Generator().manual_seed(0), requires_grad=True)
    y = torch.tensor(toy.y[:36].reshape(3, 12)).float()
    mask = torch.ones(3, 12, dtype=torch.bool)
    wide = Bucket(4, 16, 0)
    padded = [torch.nn.functional.pad(x, (0, wide.longest - 12, 0, 1)) for x in (s, y, mask)]
    (wanted, gradient), (found, slopes) = (
        (value.detach(), torch.autograd.grad(value, s)[0]) for value in (risk(s, y, mask), risk(*padded))
    )
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(slopes, gradient, rtol=1e-5, atol=1e-6)


def test_losses_that_draw_or_look_are_not_recorded(toy):
    peers = {"pairs": "all_ordered", "robust": "peer", "peers": "sampled"}
    for options in ({"loss": "listmle"}, {"loss": "pointwise"}, peers, {"debias": "dla"}):
        clicks = toy.with_labels(np.minimum(toy.y, 1))
        risk, _ = ranker.list_loss(cr.NeuralRanker(**options).loss_config(), clicks)
        assert not getattr(risk, "replayable", False)


@GPU
@pytest.mark.parametrize("options", [{}, {"loss": "lambdarank"}, {"loss": "listnet"}])
def test_a_replayed_training_is_a_launched_one(toy, monkeypatch, options):
    settings = {**SMALL, "device": "cuda", "deterministic": True, **options}
    replayed = cr.NeuralRanker(**settings).fit_data(toy, toy)
    monkeypatch.setattr(loop, "RECORDED", ())
    launched = cr.NeuralRanker(**settings).fit_data(toy, toy)
    on_host = cr.NeuralRanker(**{**settings, "device": "cpu"}).fit_data(toy, toy)
    for other in (launched, on_host):
        np.testing.assert_allclose(replayed.predict(toy.X), other.predict(toy.X), rtol=1e-2, atol=1e-3)


@GPU
def test_a_replayed_training_goes_on_to_the_same_bits(toy, tmp_path):
    settings = {**SMALL, "device": "cuda", "deterministic": True, "network_options": {"dropout": 0.3}}
    whole = cr.NeuralRanker(**settings).fit_data(toy, toy)
    settings["checkpoint"] = tmp_path / "c"
    cr.NeuralRanker(**{**settings, "epochs": 2}).fit_data(toy, toy)
    parts = cr.NeuralRanker(**settings).fit_data(toy, toy)
    np.testing.assert_array_equal(parts.predict(toy.X), whole.predict(toy.X))


@GPU
@pytest.mark.parametrize("model", MODELS)
def test_models_of_clicks_are_replayed(monkeypatch, model):
    options = {"dropout": 0.0} if model != "autoint" else {}
    settings = {
        "epochs": 3,
        "batch_size": 100,
        "device": "cuda",
        "optimizer": "sgd",
        "model_options": options,
    }
    replayed = cr.CTRModel(model, **settings).fit(planted(400))
    monkeypatch.setattr(loop, "RECORDED", ())
    launched = cr.CTRModel(model, **settings).fit(planted(400))
    held = planted(50, seed=2)
    np.testing.assert_allclose(replayed.predict(held), launched.predict(held), rtol=1e-2, atol=1e-3)


# Last: a recording that breaks off leaves torch drawing other numbers in the next training.
@GPU
def test_what_cannot_be_recorded_is_launched(toy):
    class Looks:
        replayable = True

        def __call__(self, scores, labels, mask, generator, **columns):
            assert float(scores.sum()) < 1e9  # waits for the GPU
            return (scores - labels).square()[mask].mean()

    settings = {**SMALL, "loss": Looks(), "learning_rate": 0.01}
    with pytest.warns(UserWarning, match="launched one by one"):
        found = cr.NeuralRanker(**settings, device="cuda").fit_data(toy)
    wanted = cr.NeuralRanker(**settings, device="cpu").fit_data(toy)
    np.testing.assert_allclose(found.predict(toy.X), wanted.predict(toy.X), rtol=1e-2, atol=1e-3)
