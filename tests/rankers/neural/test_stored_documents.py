"""Features that stay on disk are learnt from and scored as those in memory, to the bit."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import cleanrank as cr
from cleanrank.data.shards import read_shards, write_shards
from cleanrank.errors import CleanrankError
from cleanrank.rankers.neural.checkpoint import fingerprint
from cleanrank.rankers.neural.documents import StoredDocuments, documents
from cleanrank.rankers.scaling import SCALINGS, fit_scaling
from cleanrank.stored import StoredFeatures

SMALL = {"epochs": 2, "network_options": {"hidden": (8,)}, "batch_queries": 8, "n_jobs": 1, "device": "cpu"}


@pytest.fixture
def stored(toy, tmp_path):
    write_shards(toy, tmp_path / "shards")
    return read_shards(tmp_path / "shards")


@pytest.fixture
def never_whole(monkeypatch):
    """Fails where more than a batch is brought into memory."""
    whole = StoredFeatures.toarray

    def careful(X):
        assert X.shape[0] < 150, "all features are brought into memory"
        return whole(X)

    monkeypatch.setattr(StoredFeatures, "toarray", careful)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"scaling": "minmax", "accumulate": 2},
        {"scaling": "none", "loss": "pointwise"},
    ],
)
def test_networks_learn_the_same_bits(toy, stored, never_whole, options):
    settings = {**SMALL, **options}
    wanted = cr.NeuralRanker(**settings).fit_data(toy, toy)
    found = cr.NeuralRanker(**settings).fit_data(stored, stored)
    assert isinstance(stored.X, StoredFeatures)
    assert found.history_ == wanted.history_
    np.testing.assert_array_equal(found.predict(stored.X), wanted.predict(toy.X))
    np.testing.assert_array_equal(found.predict(toy.X), wanted.predict(toy.X))


def test_networks_that_see_whole_lists_learn_the_same_bits(toy, stored):
    settings = {**SMALL, "network": "attention", "network_options": {"width": 8}}
    wanted, found = (cr.NeuralRanker(**settings).fit_data(data, data) for data in (toy, stored))
    assert found.history_ == wanted.history_
    np.testing.assert_array_equal(found.predict(stored.X, qid=stored.qid), wanted.predict(toy.X, qid=toy.qid))
    order = np.random.default_rng(0).permutation(toy.n_docs)
    shuffled = found.predict(stored.X[order], qid=stored.qid[order])
    np.testing.assert_allclose(shuffled, wanted.predict(toy.X, qid=toy.qid)[order], atol=1e-5)


def test_observers_see_the_scores_of_all_rows(toy, stored, never_whole):
    seen = [[], []]
    for data, scores in zip((toy, stored), seen, strict=True):
        cr.NeuralRanker(**SMALL).fit_data(data, observer=lambda epoch, s, into=scores: into.append(s))
    np.testing.assert_array_equal(*seen)


def test_a_training_from_memory_goes_on_from_disk(toy, stored, tmp_path):
    settings = {**SMALL, "checkpoint": tmp_path / "c"}
    cr.NeuralRanker(**{**settings, "epochs": 1}).fit_data(toy, toy)
    found = cr.NeuralRanker(**settings).fit_data(stored, stored)
    wanted = cr.NeuralRanker(**SMALL).fit_data(toy, toy)
    np.testing.assert_array_equal(found.predict(toy.X), wanted.predict(toy.X))


def test_a_fingerprint_does_not_depend_on_blocks(stored):
    whole = stored.X.toarray()
    assert fingerprint(stored.X) == fingerprint(whole) == fingerprint(iter([whole[:5], whole[5:]]))


@pytest.mark.parametrize("kind", SCALINGS)
def test_scales_learnt_by_blocks_are_those_in_memory(kind, tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(997, 5)) * [1, 100, 1e-3, 1, 1] + [0, 1e4, 0, 0, 0]).astype(np.float32)
    X[:, 3] = 7
    X[rng.random(997) < 0.4, 0] = np.nan
    X[:, 4] = np.nan
    data = cr.from_arrays(X, rng.integers(0, 3, 997), group=[997])
    write_shards(data, tmp_path / "shards")
    monkeypatch.setattr("cleanrank.stored.BLOCK_VALUES", 600)
    found, wanted = fit_scaling(StoredFeatures(tmp_path / "shards"), kind), fit_scaling(X, kind)
    np.testing.assert_array_equal(found.shift, wanted.shift)
    np.testing.assert_array_equal(found.factor, wanted.factor)


def test_infinite_features_on_disk_are_refused_with_their_place(toy, tmp_path):
    X = toy.X.copy()
    X[33, 1] = np.inf
    np.save(tmp_path / "features-00000.npy", X)
    bad = replace(toy, X=StoredFeatures(tmp_path), row_ids=np.arange(toy.n_docs) + 1000)
    for scaling in ("zscore", "none"):
        with pytest.raises(CleanrankError, match=r"must be finite.* got inf at row 1033, column 1"):
            cr.NeuralRanker(**SMALL, scaling=scaling).fit_data(bad)


def test_rows_are_read_when_they_are_asked_for(toy, stored):
    docs = documents(stored.X, fit_scaling(toy.X), toy.indptr, torch.device("cpu"))
    whole = documents(toy.X, fit_scaling(toy.X), toy.indptr, torch.device("cpu"))
    assert isinstance(docs, StoredDocuments)
    rows = torch.tensor([5, 3, 77])
    assert torch.equal(docs.rows(rows), whole.rows(rows))
    assert torch.equal(docs.span(5, 9), whole.span(5, 9))
    np.testing.assert_array_equal(np.concatenate(list(docs.blocks())), np.concatenate(list(whole.blocks())))
