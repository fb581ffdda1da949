import itertools
import math

import pytest
import torch

from cleanrank.errors import InvalidInputError
from cleanrank.losses.torch import ranking_loss
from cleanrank.metrics.evaluation import evaluate_arrays
from tests.losses.dense import batch, value_and_gradient

S = torch.tensor([[0.3, -1.0, 2.0]], dtype=torch.float64)
Y = torch.tensor([[1, 0, 2]])
E = [math.exp(x) for x in S[0].tolist()]


def test_listnet_by_hand():
    p = [math.exp(y) for y in (1, 0, 2)]
    expected = -sum(a / sum(p) * math.log(e / sum(E)) for a, e in zip(p, E, strict=True))
    assert float(ranking_loss("listnet")(S, Y)) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("gain", "gains"), [("linear", (1, 0, 2)), ("exp", (1, 0, 3))])
def test_softmax_by_hand(gain, gains):
    expected = -sum(g / sum(gains) * math.log(e / sum(E)) for g, e in zip(gains, E, strict=True))
    assert float(ranking_loss("softmax", gain=gain)(S, Y)) == pytest.approx(expected, rel=1e-12)
    given = torch.tensor([gains], dtype=torch.float64)
    assert float(ranking_loss("softmax")(S, 0 * Y, gains=given)) == pytest.approx(expected, rel=1e-12)


def test_softmax_leaves_out_lists_without_gain():
    s, y = torch.cat((S, S)), torch.cat((Y, 0 * Y))
    assert float(ranking_loss("softmax")(s, y)) == pytest.approx(float(ranking_loss("softmax")(S, Y)))


def test_listmle_by_hand():
    expected = -math.log(E[2] / sum(E)) - math.log(E[0] / (E[0] + E[1]))
    generator = torch.Generator().manual_seed(0)
    assert float(ranking_loss("listmle")(S, Y, None, generator)) == pytest.approx(expected, rel=1e-12)


def test_listmle_ties_by_index_and_at_random():
    y = torch.tensor([[1, 1, 0]])

    def of(order):
        left = [E[k] for k in order]
        return -sum(math.log(left[k] / sum(left[k:])) for k in range(3))

    assert float(ranking_loss("listmle", ties="index")(S, y)) == pytest.approx(of([0, 1, 2]), rel=1e-12)
    loss, generator = ranking_loss("listmle"), torch.Generator().manual_seed(0)
    found = [float(loss(S, y, None, generator)) for _ in range(400)]
    either = [of([0, 1, 2]), of([1, 0, 2])]
    assert all(min(abs(v - e) for e in either) < 1e-9 for v in found)
    share = sum(abs(v - either[0]) < 1e-9 for v in found) / 400
    assert abs(share - 0.5) < 4 * 0.5 / 20


def test_the_plackett_luce_probabilities_of_all_orders_sum_to_one():
    loss = ranking_loss("listmle", ties="index")
    orders = itertools.permutations(range(3))
    total = sum(math.exp(-float(loss(S, torch.tensor([order])))) for order in orders)
    assert total == pytest.approx(1.0, rel=1e-12)


def test_random_ties_need_a_generator():
    with pytest.raises(InvalidInputError, match=r"generator=torch.Generator"):
        ranking_loss("listmle")(S, Y)


def test_approximate_ndcg_by_hand():
    def rank(i):
        return 1 + sum(1 / (1 + math.exp((S[0, i] - S[0, j]) / 0.5)) for j in range(3) if j != i)

    ideal = 3 + 1 / math.log2(3)
    expected = 1 - sum(g / math.log2(1 + rank(i)) for i, g in ((0, 1), (2, 3))) / ideal
    found = ranking_loss("approx_ndcg", temperature=0.5)(S, Y)
    assert float(found) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("measure", ["ndcg", "ndcg:letor"])
def test_at_a_low_temperature_it_is_ndcg(measure):
    s, y, _ = batch(1, 12, hidden=0.0)
    found = 1 - ranking_loss("approx_ndcg", temperature=1e-4, measure=measure)(s.detach(), y)
    exact = evaluate_arrays(y[0].numpy(), s[0].detach().numpy(), [0, 12], [measure]).by_query
    assert float(found) == pytest.approx(float(exact[0, 0]), abs=1e-6)


def test_approximate_ndcg_in_blocks_equals_autograd_on_the_whole_table():
    s, y, mask = batch(3, 9)

    def dense(s):
        p = torch.sigmoid((s[:, None, :] - s[:, :, None]) / 0.1)
        other = mask[:, None, :] & ~torch.eye(9, dtype=torch.bool)
        rank = 1 + torch.where(other, p, 0.0).sum(2)
        gain = torch.where(mask, torch.exp2(y.double()) - 1, 0.0)
        best = gain.sort(1, descending=True).values
        ideal = (best / torch.log2(torch.arange(2, 11, dtype=torch.float64))).sum(1)
        return (1 - (gain / torch.log2(1 + rank)).sum(1) / ideal).mean()

    expected = value_and_gradient(dense, s)
    for block in (1, 30, 10**6):
        found = value_and_gradient(ranking_loss("approx_ndcg", block=block), s, y, mask)
        torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["listmle", "approx_ndcg"])
def test_weights_are_refused_where_a_copy_would_change_the_ranking(name):
    with pytest.raises(InvalidInputError, match="weights have no meaning"):
        ranking_loss(name)(S, Y, weights=torch.ones_like(S))


@pytest.mark.parametrize("name", ["listnet", "listmle"])
def test_gains_are_refused_where_they_would_not_be_read(name):
    with pytest.raises(InvalidInputError, match="gains have no meaning"):
        ranking_loss(name)(S, Y, gains=torch.ones_like(S))


def test_a_cut_off_is_refused_by_approximate_ndcg():
    with pytest.raises(InvalidInputError, match="no cut-off"):
        ranking_loss("approx_ndcg", measure="ndcg@10")
