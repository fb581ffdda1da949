import numpy as np
import pytest
import torch

import cleanrank as cr
from cleanrank.checks import CleanrankError
from cleanrank.rankers.coteaching import coteach, kept_share, strict_pairs
from cleanrank.rankers.neural import NeuralRanker

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
        ({"network": "attention"}, {}, "one by one"),
        ({}, {"forget": 1.0}, "forget"),
        ({}, {"ramp": 0}, "ramp"),
    ],
)
def test_what_cannot_be_taught_is_refused(data, settings, options, word):
    with pytest.raises(CleanrankError, match=word):
        coteach(NeuralRanker(**{"epochs": 1, **settings}), data, **options)
