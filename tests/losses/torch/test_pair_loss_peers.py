from collections import Counter

import pytest
import torch

from cleanrank.errors import InvalidInputError
from cleanrank.losses.torch import ranking_loss
from cleanrank.losses.torch.lists import needs_generator
from cleanrank.losses.torch.pair_loss import Urn, pair_urn
from tests.losses.dense import batch, value_and_gradient

N = 40_000


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_members_are_drawn_by_weight():
    drawn = Urn(torch.tensor([1.0, 0.0, 3.0])).draw(N, generator())
    share = torch.bincount(drawn, minlength=3) / N
    torch.testing.assert_close(share, torch.tensor([0.25, 0.0, 0.75]), rtol=0, atol=0.01)


def test_the_far_end_of_the_line_belongs_to_the_last_member():
    urn = Urn(torch.tensor([1.0, 2.0, 0.0]))
    assert urn.find(torch.tensor([0.0, 0.999, 1.0, 3.0], dtype=torch.float64)).tolist() == [0, 0, 1, 1]


@pytest.mark.parametrize("kind", ["all_ordered", "strict_both"])
def test_pairs_are_drawn_with_their_weight_in_the_risk(kind):
    y = torch.tensor([[2.0, 0.0, 2.0, 1.0], [0.0, 1.0, 0.0, 7.0]])
    w = torch.tensor([[1.0, 2.0, 0.5, 1.0], [1.0, 1.0, 3.0, 0.0]])
    c = torch.tensor([0.25, 1.0])
    weight = {}
    for q in range(2):
        for i in range(4):
            for j in range(4):
                if i != j and (kind == "all_ordered" or y[q, i] != y[q, j]):
                    weight[4 * q + i, 4 * q + j] = float(c[q] * w[q, i] * w[q, j])
    urn = pair_urn(kind, y, w, c)
    assert float(urn.first.total) == pytest.approx(sum(weight.values()), rel=1e-6)
    i, j = urn.draw(N, generator())
    found = Counter(zip(i.tolist(), j.tolist(), strict=True))
    for pair, expected in weight.items():
        share = expected / sum(weight.values())
        assert abs(found.pop(pair, 0) / N - share) < 5 * (share / N) ** 0.5 + 1e-9
    assert not found


@pytest.mark.parametrize("pairs", ["all_ordered", "strict_both"])
@pytest.mark.parametrize("weighting", ["macro", "micro", "pooled"])
@pytest.mark.parametrize("name", ["ranknet", "lambdarank"])
def test_expected_peers_are_the_mean_of_sampled_ones_in_value_and_gradient(name, pairs, weighting):
    """40 lists in one: draws of a batch of copies are as many independent draws."""
    alpha = 0.5
    s, y, mask = batch(3, 6)
    w = torch.rand(s.shape, generator=generator(5), dtype=s.dtype) + 0.5
    settings = {"pairs": pairs, "weighting": weighting}
    peer = {"name": "peer", "alpha": alpha}
    sampled = ranking_loss(name, robust={**peer, "mode": "sampled"}, **settings)
    expected = ranking_loss(name, robust=peer, **settings)
    value, gradient = value_and_gradient(expected, s, y, mask, weights=w)
    source, values, gradients = generator(1), [], []
    for _ in range(150):
        v, g = value_and_gradient(sampled, s, y, mask, source, weights=w)
        values.append(v)
        gradients.append(g)
    values, gradients = torch.stack(values), torch.stack(gradients)
    assert abs(values.mean() - value) < 4.5 * values.std() / 150**0.5
    error = gradients.std(0) / 150**0.5
    assert ((gradients.mean(0) - gradient).abs() <= 4.5 * error + 1e-12).all()
    assert values.std() > 0


@pytest.mark.parametrize("weighting", ["pooled", "macro"])
def test_so_they_are_for_points_with_the_share_of_the_batch_as_prior(weighting):
    s, y, mask = batch(3, 6)
    peer = {"name": "peer", "alpha": 0.5}
    sampled = ranking_loss("pointwise", robust={**peer, "mode": "sampled"}, weighting=weighting, relevant=3)
    value, gradient = value_and_gradient(
        ranking_loss("pointwise", robust=peer, weighting=weighting, relevant=3), s, y, mask
    )
    source = generator(2)
    drawn = [value_and_gradient(sampled, s, y, mask, source) for _ in range(400)]
    values, gradients = (torch.stack(part) for part in zip(*drawn, strict=True))
    assert abs(values.mean() - value) < 4.5 * values.std() / 20
    assert ((gradients.mean(0) - gradient).abs() <= 4.5 * gradients.std(0) / 20 + 1e-12).all()


def test_the_same_seed_gives_the_same_bits_and_another_one_others():
    s, y, mask = batch()
    loss = ranking_loss(
        "ranknet", robust={"name": "peer", "alpha": 0.1, "mode": "sampled"}, pairs="all_ordered"
    )
    a, b, c = (loss(s, y, mask, generator(seed)).item() for seed in (3, 3, 4))
    assert a == b != c


def test_sampled_peers_need_a_generator_and_leave_the_global_one_alone():
    with pytest.raises(InvalidInputError, match="sampled peers must have a source of randomness"):
        needs_generator("sampled peers", None)
    s, y, mask = batch()
    loss = ranking_loss(
        "ranknet", robust={"name": "peer", "alpha": 0.1, "mode": "sampled"}, pairs="all_ordered"
    )
    before = torch.get_rng_state()
    loss(s, y, mask, generator())
    assert torch.equal(before, torch.get_rng_state())
    with pytest.raises(InvalidInputError, match="generator"):
        loss(s, y, mask)


def test_a_batch_without_pairs_has_no_peers():
    s = torch.ones(2, 1, requires_grad=True)
    loss = ranking_loss(
        "ranknet", robust={"name": "peer", "alpha": 0.1, "mode": "sampled"}, pairs="all_ordered"
    )
    loss(s, torch.ones(2, 1), None, generator()).backward()
    assert not s.grad.any()
