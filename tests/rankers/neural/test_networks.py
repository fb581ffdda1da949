import numpy as np
import pytest
import torch

from cleanrank.errors import CleanrankError
from cleanrank.rankers.neural.networks import NETWORKS, AttentionNetwork, build_network

OPTIONS = {"mlp": {"hidden": (8, 4)}, "attention": {"width": 8}}


def made(name, seed=0, n_features=5, **more):
    return build_network(name, n_features, seed=seed, **{**OPTIONS.get(name, {}), **more}).eval()


def scores(network, X):
    """Scores of one list, whichever kind of network."""
    if network.listwise:
        return network(X[None], torch.ones(1, len(X), dtype=torch.bool))[0]
    return network(X)


@pytest.mark.parametrize("name", NETWORKS)
def test_permuting_documents_permutes_scores(name):
    X = torch.randn(7, 5, generator=torch.Generator().manual_seed(0))
    network = made(name)
    place = torch.tensor([3, 1, 6, 0, 5, 2, 4])
    torch.testing.assert_close(scores(network, X[place]), scores(network, X)[place])
    assert scores(network, X).unique().numel() == 7


@pytest.mark.parametrize("name", NETWORKS)
def test_first_weights_come_from_the_seed_and_leave_torchs_stream_alone(name):
    before = torch.get_rng_state()
    one, same, other = made(name), made(name), made(name, seed=1)
    assert torch.equal(before, torch.get_rng_state())
    weights = [torch.cat([p.detach().ravel() for p in n.parameters()]) for n in (one, same, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_the_linear_network_is_a_product():
    network, X = made("linear"), torch.randn(4, 5)
    w, b = network.output.weight.detach().numpy()[0], network.output.bias.item()
    np.testing.assert_allclose(network(X).detach().numpy(), X.numpy() @ w + b, rtol=1e-6, atol=1e-6)


def test_the_usual_mlp_has_the_published_layers():
    network = build_network("mlp", 136)
    shapes = [tuple(p.shape) for p in network.parameters() if p.ndim == 2]
    assert shapes == [(512, 136), (256, 512), (128, 256), (1, 128)]
    kinds = [type(layer).__name__ for layer in network.features]
    assert kinds == ["LayerNorm", "Linear", "ELU"] * 3 + ["LayerNorm"]


def test_the_mlp_is_what_its_formula_says():
    network = made("mlp", hidden=(3,))
    X = np.random.default_rng(0).normal(size=(4, 5))

    def norm(x):
        return (x - x.mean(1, keepdims=True)) / np.sqrt(x.var(1, keepdims=True) + 1e-5)

    W, b = (p.detach().double().numpy() for p in network.features[1].parameters())
    w, c = (p.detach().double().numpy() for p in network.output.parameters())
    a = norm(X) @ W.T + b
    wanted = norm(np.where(a > 0, a, np.expm1(a))) @ w[0] + c
    found = network(torch.from_numpy(X).float()).detach().numpy()
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_the_direct_ranker_is_antisymmetric_and_reads_score_differences():
    network = made("direct")
    a, b = torch.randn(2, 6, 5)
    o = network.preference(a, b)
    assert torch.equal(o, -network.preference(b, a))
    torch.testing.assert_close(o, 2 * torch.sigmoid(network(a) - network(b)) - 1)
    assert network.output.bias is None
    assert torch.equal(network.preference(a, a), torch.zeros(6))


def test_attention_ignores_padding_and_other_queries():
    network = made("attention")
    X = torch.randn(2, 6, 5)
    mask = torch.ones(2, 6, dtype=torch.bool)
    mask[0, 4:] = False
    found = network(X, mask)
    alone = network(X[:1, :4], mask[:1, :4])
    torch.testing.assert_close(found[0, :4], alone[0])
    assert (found[0, 4:] == 0).all()
    dirty = X.clone()
    dirty[0, 4:] = 1e6
    assert torch.equal(network(dirty, mask), found)


def test_attention_sees_the_other_documents_of_the_list():
    network = made("attention")
    X, mask = torch.randn(1, 4, 5), torch.ones(1, 4, dtype=torch.bool)
    changed = X.clone()
    changed[0, 3] += 1
    assert not torch.allclose(network(X, mask)[0, 0], network(changed, mask)[0, 0])


def test_an_empty_list_stays_finite():
    network = made("attention")
    mask = torch.tensor([[True, True], [False, False]])
    found = network(torch.randn(2, 2, 5), mask)
    found.sum().backward()
    assert torch.isfinite(found).all()
    assert all(torch.isfinite(p.grad).all() for p in network.parameters())


def test_dropout_works_in_training_alone():
    for name in ("mlp", "attention", "direct"):
        network, X = made(name, dropout=0.5), torch.randn(9, 5)
        assert torch.equal(scores(network, X), scores(network, X))
        network.train()
        assert not torch.equal(scores(network, X), scores(network, X))


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("mpl", {}, "Did you mean 'mlp'"),
        ("mlp", {"activation": "elo"}, "Did you mean 'elu'"),
        ("mlp", {"hidden": (0,)}, "hidden must be an integer >= 1"),
        ("mlp", {"dropout": 1.0}, "dropout must be a number >= 0 and < 1"),
        ("mlp", {"heads": 2}, "takes hidden, activation, dropout, norm; got 'heads'"),
        ("linear", {"hidden": (2,)}, "takes no options"),
        ("attention", {"width": 9, "heads": 2}, "multiple of the 2 heads"),
        ("attention", {"blocks": 0}, "blocks must be an integer >= 1"),
    ],
)
def test_wrong_options_are_named(name, options, words):
    with pytest.raises(CleanrankError, match=words):
        build_network(name, 5, **options)


def test_attention_learns_what_depends_on_the_list():
    """The target is the distance from the list's mean, which no document network can know."""
    torch.manual_seed(0)
    X = torch.randn(64, 8, 1) + 3 * torch.randn(64, 1, 1)
    target = X[..., 0] - X[..., 0].mean(1, keepdim=True)
    mask = torch.ones(64, 8, dtype=torch.bool)
    network = AttentionNetwork(1, width=16)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(150):
        loss = ((network(X, mask) - target) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.2 * target.var().item()
