import math
from dataclasses import replace

import numpy as np
import pytest
import torch

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.rankers.neural.denoising import OTHER, coteach, kept_share, strict_pairs
from cleanrank.rankers.neural.networks import build_network
from cleanrank.rankers.neural.ranker import NeuralRanker

SMALL = {"epochs": 3, "network_options": {"hidden": (8,)}, "early_stopping_rounds": 0, "device": "cpu"}


@pytest.fixture(scope="module")
def data():
    return cr.make_ranking(40, 6, docs_per_query=8, seed=3)


def test_pairs_are_those_of_a_naive_loop():
    y = torch.tensor([[2.0, 0.0, 1.0], [1.0, 1.0, 0.0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    found = {tuple(t) for t in torch.stack(strict_pairs(y, mask), 1).tolist()}
    naive = {
        (q, i, j)
        for q in range(2)
        for i in range(3)
        for j in range(3)
        if mask[q, i] and mask[q, j] and y[q, i] > y[q, j]
    }
    assert found == naive


def test_share_falls_to_its_end():
    assert [kept_share(t, 0.4, 10) for t in (0, 5, 10, 50)] == [1.0, 0.8, 0.6, 0.6]


def test_nothing_forgotten_is_ranknet(data):
    # All pairs are kept, so the second network plays no part in the first; both count in the clipping.
    alone = NeuralRanker(clip_norm=None, **SMALL).fit_data(data)
    taught = coteach(NeuralRanker(clip_norm=None, **SMALL), data, forget=0.0)
    # The gradient of the last bias is nothing but rounding, which Adam blows up to a common shift.
    first, second = (each.predict(data.X) for each in (alone, taught))
    assert np.allclose(first - first.mean(), second - second.mean(), atol=1e-4)


def test_forgetting_changes_the_network_and_repeats(data):
    first, again = (coteach(NeuralRanker(**SMALL), data, forget=0.4, ramp=1).predict(data.X) for _ in "ab")
    assert (first == again).all()
    assert not np.allclose(first, coteach(NeuralRanker(**SMALL), data, forget=0.0).predict(data.X))


def test_the_best_epoch_is_kept(data):
    ranker = coteach(NeuralRanker(**SMALL), data, data, forget=0.1)
    values = [h["value"] for h in ranker.history_]
    assert ranker.model_.best_epoch == int(np.argmax(values)) + 1
    assert ranker.score(data.X, data.y, group=data.lengths) == pytest.approx(max(values))


@pytest.mark.parametrize(
    ("settings", "options", "word"),
    [
        ({"loss": "listnet"}, {}, "strict pairs"),
        ({"pairs": "all_ordered"}, {}, "strict pairs"),
        ({"robust": "symmetrize"}, {}, "robust"),
        ({"checkpoint": "run"}, {}, "checkpoint"),
        ({"loss_options": {"weighting": "micro"}}, {}, "loss_options"),
        ({"network": "attention"}, {}, "one by one"),
        ({}, {"forget": 1.0}, "forget"),
        ({}, {"ramp": 0}, "ramp"),
    ],
)
def test_what_cannot_be_taught_is_refused(data, settings, options, word):
    with pytest.raises(CleanrankError, match=word):
        coteach(NeuralRanker(**{"epochs": 1, **settings}), data, **options)


def test_sample_weights_are_refused(data):
    weighted = replace(data, weights=np.ones(data.n_docs, dtype=np.float32))
    with pytest.raises(CleanrankError, match="weights"):
        coteach(NeuralRanker(epochs=1), weighted)


def test_one_step_by_hand():
    # One list, two linear networks, one step of plain gradient descent: the first learns from the pairs that
    # the second finds easiest.
    rng = np.random.default_rng(2)
    X = rng.normal(size=(8, 3)).astype(np.float32)
    data = cr.from_arrays(X, [1, 0, 1, 0, 0, 1, 0, 0], group=[8])
    ranker = NeuralRanker(
        network="linear", optimizer="sgd", learning_rate=0.5, weight_decay=0.0, clip_norm=None, epochs=1,
        scaling="none", device="cpu",
    )  # fmt: skip
    first, second = (build_network("linear", 3, seed=s) for s in (0, OTHER))
    start = torch.from_numpy(X)
    pairs = [(i, j) for i in range(8) for j in range(8) if data.y[i] > data.y[j]]
    s = second(start).detach()
    easy = sorted(pairs, key=lambda p: float(s[p[1]] - s[p[0]]))[: math.ceil(0.6 * len(pairs))]
    f = first(start)
    loss = torch.stack([torch.nn.functional.softplus(f[j] - f[i]) for i, j in easy]).mean()
    grads = torch.autograd.grad(loss, list(first.parameters()), allow_unused=True)
    with torch.no_grad():
        for weight, g in zip(first.parameters(), grads, strict=True):
            weight -= 0.5 * (0.0 if g is None else g)
        expected = first(start).numpy()
    found = coteach(ranker, data, forget=0.4, ramp=1).predict(X)
    assert found - found.mean() == pytest.approx(expected - expected.mean(), abs=1e-5)
