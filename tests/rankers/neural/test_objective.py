import numpy as np
import pytest
import torch

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.losses.torch import ranking_loss
from cleanrank.rankers.neural.objective import DIRECT, LOSSES, LossConfig, list_loss, preference_loss

FLIPS = [[0.9, 0.1], [0.2, 0.8]]


@pytest.fixture
def clicked():
    rng = np.random.default_rng(0)
    return cr.from_arrays(rng.normal(size=(40, 2)), rng.integers(0, 2, 40), qid=np.repeat(np.arange(4), 10))


@pytest.fixture
def batch():
    rng = torch.Generator().manual_seed(0)
    return torch.randn(4, 10, generator=rng), torch.randint(0, 2, (4, 10), generator=rng)


@pytest.mark.parametrize("name", LOSSES)
def test_every_loss_is_made_and_falls_along_its_gradient(name, clicked, batch):
    loss, alpha = list_loss(LossConfig(name), clicked)
    assert alpha is None
    scores, labels = batch
    scores = scores.clone().requires_grad_()
    mask = torch.ones(4, 10, dtype=torch.bool)
    generators = [torch.Generator().manual_seed(1) for _ in range(2)]
    value = loss(scores, labels, mask, generators[0])
    value.backward()
    lower = loss((scores - 0.01 * scores.grad / scores.grad.norm()).detach(), labels, mask, generators[1])
    assert lower < value


def test_the_direct_loss_is_its_formula_and_has_its_derivatives():
    m = np.linspace(-4, 4, 33)
    np.testing.assert_allclose(DIRECT.value(m, 1), (1 - np.tanh(m / 2)) ** 2)
    h = 1e-5
    for target in (0, 1):
        rise = (DIRECT.value(m + h, target) - DIRECT.value(m - h, target)) / (2 * h)
        np.testing.assert_allclose(DIRECT.gradient(m, target), rise, atol=1e-8)
        bend = (DIRECT.gradient(m + h, target) - DIRECT.gradient(m - h, target)) / (2 * h)
        np.testing.assert_allclose(DIRECT.curvature(m, target), bend, atol=1e-8)


def test_svm_rank_is_the_hinge_on_strict_pairs():
    loss, _ = list_loss(LossConfig("pairwise", "hinge"), None)
    scores, labels = torch.tensor([[0.2, 1.0, -1.0]]), torch.tensor([[2, 1, 0]])
    wanted = np.mean([1 - (0.2 - 1.0), max(0, 1 - 1.2), max(0, 1 - 2.0)])
    assert loss(scores, labels, torch.ones(1, 3, dtype=torch.bool)).item() == pytest.approx(wanted)


def test_auto_is_the_sum_of_the_flip_rates_and_the_loss_uses_it(clicked, batch):
    config = LossConfig("ranknet", pairs="all_ordered", robust="peer", alpha="auto", noise=FLIPS)
    loss, alpha = list_loss(config, clicked)
    assert float(alpha) == pytest.approx(0.3)
    assert not alpha.approximate
    wanted = ranking_loss("ranknet", pairs="all_ordered", robust={"name": "peer", "alpha": 0.3})
    assert loss(*batch).item() == pytest.approx(wanted(*batch).item(), rel=1e-6)
    assert loss(*batch).item() != pytest.approx(
        list_loss(LossConfig(pairs="all_ordered"), clicked)[0](*batch).item()
    )
    for other in ("lambdarank", "pointwise"):
        flips = [[0.95, 0.05], [0.05, 0.95]] if other == "pointwise" else FLIPS
        config = LossConfig(other, pairs="all_ordered", robust="peer", alpha="auto", noise=flips)
        if other == "pointwise":
            config = LossConfig(other, robust="peer", alpha="auto", noise=flips)
        assert list_loss(config, clicked)[1].approximate


def test_peers_without_weight_are_the_base_to_the_last_bit(clicked, batch):
    base, _ = list_loss(LossConfig(pairs="all_ordered"), clicked)
    peers, alpha = list_loss(LossConfig(pairs="all_ordered", robust="peer", alpha=0.0), clicked)
    assert float(alpha) == 0
    grads = []
    for loss in (base, peers):
        scores = batch[0].clone().requires_grad_()
        loss(scores, batch[1]).backward()
        grads.append(scores.grad)
    assert torch.equal(*grads)
    assert torch.equal(base(*batch), peers(*batch))


def test_sampled_peers_are_drawn_from_the_generator(clicked, batch):
    loss, _ = list_loss(LossConfig(pairs="all_ordered", robust="peer", alpha=0.5, peers="sampled"), clicked)
    values = [loss(*batch, None, torch.Generator().manual_seed(seed)).item() for seed in (0, 0, 1)]
    assert values[0] == values[1] != values[2]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (LossConfig("ranknte"), "Did you mean 'ranknet'"),
        (
            LossConfig(robust="peer"),
            "must be 'all_ordered' with peers: strict pairs all have target 1",
        ),
        (LossConfig(robust="peer", pairs="strict_both"), "which pairs are strict depends on the noise"),
        (LossConfig(robust="peer", pairs="al_ordered"), "Did you mean 'all_ordered'"),
        (LossConfig("listnet", robust="peer"), "peers need one of the losses"),
        (LossConfig(robust="peer", pairs="all_ordered", alpha="best"), "unknown alpha 'best'"),
        (LossConfig(robust="peer", pairs="all_ordered", alpha="auto"), "alpha='auto' needs the noise"),
        (LossConfig(robust="per"), "Did you mean 'peer'"),
        (LossConfig(binary="hinge"), "must be 'logistic' for ranknet"),
        (LossConfig(lambda *a, **k: 0, robust="peer"), "must be None where the loss is a callable"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_reason(config, words, clicked):
    with pytest.raises(CleanrankError, match=words):
        list_loss(config, clicked)


def test_preferences_are_strict_pairs_without_lists():
    scores = torch.tensor([[0.5, -0.25, 2.0]])
    stated = torch.tensor([[0, 0, 1], [0, 2, 1]])
    loss, _ = preference_loss(LossConfig())
    d = np.array([0.75, 2.25])
    wanted = np.log1p(np.exp(-d)).mean()
    assert loss.on_preferences(scores, stated).item() == pytest.approx(wanted)
    peers, alpha = preference_loss(LossConfig(robust="peer", alpha="auto", noise=[[0.9, 0.1], [0.1, 0.9]]))
    mean = (np.log1p(np.exp(-d)) + np.log1p(np.exp(d))).mean() / 2
    assert float(alpha) == pytest.approx(0.2)
    assert peers.on_preferences(scores, stated).item() == pytest.approx(wanted - 0.2 * mean)
    with pytest.raises(CleanrankError, match="must be 'ranknet', 'pairwise' or 'direct' for preferences"):
        preference_loss(LossConfig("lambdarank"))
