from functools import partial

import numpy as np
import pytest
import torch
from torch.nn import functional

import cleanrank as cr
from cleanrank.clicks import pbm, static_clicks
from cleanrank.errors import CleanrankError
from cleanrank.experiments.noises import Users
from cleanrank.losses.torch import ranking_loss
from cleanrank.rankers.neural.debias import (
    DEBIASING,
    Debiased,
    DualLearning,
    InversePropensity,
    PairDebias,
)
from cleanrank.rankers.neural.ranker import NeuralRanker

EXAMINED = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])


def batch(seed=0, lists=5, length=7):
    rng = torch.Generator().manual_seed(seed)
    scores = torch.randn(lists, length, generator=rng)
    clicks = (torch.rand(lists, length, generator=rng) < 0.3).float()
    lengths = torch.randint(3, length + 1, (lists, 1), generator=rng)
    mask = torch.arange(length) < lengths
    ranks = torch.rand(lists, length, generator=rng).masked_fill(~mask, 2.0).argsort(1).argsort(1) + 1
    return scores, clicks * mask, mask, ranks


def naive(scores, clicks, mask, ranks, weigh):
    """The mean over lists of the mean over pairs of weight times logistic loss, pair by pair."""
    means = []
    for s, c, m, k in zip(*(t.tolist() for t in (scores, clicks, mask, ranks)), strict=True):
        docs = [i for i in range(len(s)) if m[i]]
        pairs = [(i, j) for i in docs for j in docs if c[i] > c[j]]
        if pairs:
            losses = [weigh(k[i], k[j]) * np.log1p(np.exp(s[j] - s[i])) for i, j in pairs]
            means.append(sum(losses) / len(pairs))
    return sum(means) / len(means)


def ranknet(**options):
    return partial(ranking_loss, "ranknet", **options)


def test_inverse_propensities_pair_by_pair():
    scores, clicks, mask, ranks = batch()
    rates = EXAMINED * 0.1
    made = Debiased(ranknet(), InversePropensity(rates))
    expected = naive(scores, clicks, mask, ranks, lambda k, _: EXAMINED[0] / EXAMINED[min(k, 10) - 1])
    assert float(made(scores, clicks, mask, positions=ranks)) == pytest.approx(expected, rel=1e-5)


def test_pair_debias_pair_by_pair():
    scores, clicks, mask, ranks = batch(1)
    rule = PairDebias(4)
    rule.plus, rule.minus = torch.tensor([1.0, 0.7, 0.5, 0.2]), torch.tensor([1.0, 1.1, 0.9, 0.8])
    plus, minus = rule.plus.tolist(), rule.minus.tolist()
    made = Debiased(ranknet(), rule)
    expected = naive(scores, clicks, mask, ranks, lambda k, o: 1 / plus[min(k, 4) - 1] / minus[min(o, 4) - 1])
    assert float(made(scores, clicks, mask, positions=ranks)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize(
    ("pairs", "robust"),
    [("strict", None), ("all_ordered", None), ("all_ordered", {"name": "peer", "alpha": 0.2})],
)
def test_equal_weights_leave_the_loss_alone(pairs, robust):
    scores, clicks, mask, ranks = batch(2)
    assert (clicks.sum(1) == 0).any()  # a list without pairs is among them
    scores.requires_grad_()
    made = Debiased(ranknet(robust=robust), InversePropensity([0.3, 0.3]), pairs=pairs)
    plain = ranking_loss("ranknet", robust=robust, pairs=pairs)
    a, b = made(scores, clicks, mask, positions=ranks), plain(scores, clicks, mask)
    assert a.item() == pytest.approx(b.item(), rel=1e-5)
    (ga,), (gb,) = torch.autograd.grad(a, scores), torch.autograd.grad(b, scores)
    assert torch.allclose(ga, gb, atol=1e-6)


def test_pair_debias_moves_by_its_formula():
    scores, clicks, mask, ranks = batch(3, lists=4, length=5)
    rule = PairDebias(5, step=0.3)
    rule.minus = torch.tensor([1.0, 0.8, 0.9, 0.7, 0.6])
    minus = rule.minus.clone()
    totals = torch.zeros(5)
    for q in range(4):
        for i in range(5):
            for j in range(5):
                if mask[q, i] and mask[q, j] and clicks[q, i] > clicks[q, j]:
                    loss = functional.softplus(scores[q, j] - scores[q, i])
                    totals[ranks[q, i] - 1] += loss / minus[ranks[q, j] - 1]
    rule.learn(scores, clicks, ranks - 1, mask)
    wanted = torch.where(totals > 0, 0.7 + 0.3 * (totals / totals[0]).sqrt(), 1.0)
    assert torch.allclose(rule.plus, wanted if totals[0] > 0 else torch.ones(5), atol=1e-5)
    assert totals[0] > 0  # else this test shows nothing


def test_dual_learning_finds_what_is_examined():
    # Scores say nothing and documents are alike: clicks depend on ranks alone.
    rng = np.random.default_rng(0)
    rule = DualLearning(10, learning_rate=0.3)
    ranks = torch.arange(10).expand(256, 10)
    mask = torch.ones(256, 10, dtype=torch.bool)
    for _ in range(150):
        clicks = torch.from_numpy((rng.random((256, 10)) < 0.3 * EXAMINED).astype(np.float32))
        rule.learn(torch.zeros(256, 10), clicks, ranks, mask)
    assert (np.diff(rule.ratios[[0, 2, 4, 7]]) < 0).all()
    assert np.corrcoef(np.log(rule.ratios), np.log(EXAMINED))[0, 1] > 0.95


def test_random_lists_give_propensities():
    data = cr.make_ranking(300, 3, docs_per_query=15, seed=1)
    rates = Users(data, pbm(), 0.0, 4).click_rates(sessions=60, seed=3)
    assert np.abs(InversePropensity(rates).ratios - EXAMINED / EXAMINED[0]).max() < 0.06


def test_rare_ranks_weigh_no_more_than_a_hundred():
    rule = InversePropensity([0.5, 0.01, 0.001])
    weights = rule.weights(torch.ones(1, 3), torch.tensor([[0, 1, 2]]))[0].tolist()
    assert weights == pytest.approx([1.0, 50.0, 100.0])
    assert rule.ratios[2] == pytest.approx(0.002)  # what was measured stays as it is
    logits = DualLearning(3)
    logits.logits = torch.tensor([0.0, -2.0, -9.0])
    assert logits.weights(torch.ones(1, 3), torch.tensor([[0, 1, 2]]))[0, 2].item() == 100.0


def test_each_side_learns_from_weights_that_stand_still():
    # The ranker's gradient is that of the loss with its weights as plain numbers, and the logits move by
    # their own loss alone, whatever is done with the ranker's.
    scores, clicks, mask, ranks = batch(4)
    scores.requires_grad_()
    rule = DualLearning(5)
    rule.logits = torch.tensor([0.5, 0.1, 0.0, -0.4, -1.0], requires_grad=True)
    rule._optimizer = torch.optim.Adagrad([rule.logits], lr=0.05)
    weights = rule.weights(clicks, ranks - 1)
    assert not weights.requires_grad
    alone = DualLearning(5)
    alone.logits = rule.logits.detach().clone().requires_grad_()
    alone._optimizer = torch.optim.Adagrad([alone.logits], lr=0.05)
    Debiased(ranknet(), rule)(scores, clicks, mask, positions=ranks).backward()

    class Fixed:
        def weights(self, clicks, ranks):
            return weights

        def learn(self, *_):
            pass

    plain = scores.detach().clone().requires_grad_()
    Debiased(ranknet(), Fixed())(plain, clicks, mask, positions=ranks).backward()
    assert torch.allclose(scores.grad, plain.grad, atol=1e-7)
    alone.learn(scores.detach(), clicks, ranks - 1, mask)
    assert torch.equal(rule.logits, alone.logits)
    assert not torch.equal(rule.logits, torch.tensor([0.5, 0.1, 0.0, -0.4, -1.0]))


def clicked(n=40, seed=1):
    return static_clicks(cr.make_ranking(n, 5, docs_per_query=8, seed=seed), "pbm", seed=2, flip=0.05)


@pytest.mark.parametrize("name", sorted(DEBIASING))
@pytest.mark.parametrize("robust", [None, {"name": "peer", "alpha": 0.1}])
def test_a_ranker_debiases_by_name(name, robust):
    data = clicked()
    rates = {"click_rates": EXAMINED} if name == "ipw" else {}
    pairs = "all_ordered" if robust else "strict"
    rule = DEBIASING[name](*rates.values())
    settings = {"epochs": 2, "network_options": {"hidden": (8,)}, "n_jobs": 1}
    made = NeuralRanker(Debiased(ranknet(robust=robust), rule, pairs=pairs), **settings)
    named = NeuralRanker(debias=name, robust=robust, pairs=pairs, **rates, **settings)
    by_hand = made.fit_data(data).predict(data.X)
    scores = named.fit(data.X, data.y, qid=data.qid, position=data.positions).predict(data.X)
    np.testing.assert_array_equal(scores, by_hand)
    assert (named.alpha_ is None) == (robust is None)
    plain = NeuralRanker(robust=robust, pairs=pairs, **settings).fit_data(data).predict(data.X)
    assert (scores != plain).any()
    # Ranks matter: shown in another order the same clicks give another ranker.
    turned = named.fit(data.X, data.y, qid=data.qid, position=9 - data.positions.clip(max=8)).predict(data.X)
    assert (turned != scores).any()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"debias": "ipv"}, "unknown debiasing 'ipv'. Did you mean 'ipw'"),
        ({"debias": "ipw"}, "click_rates must be given for debias='ipw', and for it alone"),
        ({"debias": "dla", "click_rates": [0.5, 0.2]}, "click_rates must be given for debias='ipw'"),
        ({"click_rates": [0.5, 0.2]}, "click_rates go with debias='ipw'"),
        ({"debias": "dla", "loss": "listnet"}, "debias needs one of the losses ranknet"),
        ({"debias": "dla", "loss_options": {"weighting": "macro"}}, "must leave the weighting to debias"),
        ({"debias": "dla", "robust": "peer"}, "pairs must be 'all_ordered' with peers"),
        (
            {"debias": "dla", "loss": ranking_loss("ranknet")},
            "debias must be None where the loss is a callable",
        ),
    ],
)
def test_settings_that_cannot_debias_are_refused(settings, words):
    with pytest.raises(CleanrankError, match=words):
        NeuralRanker(**{"loss": "ranknet", **settings}, epochs=1).fit_data(clicked(10))


def test_grades_are_no_clicks_and_preferences_have_no_ranks():
    data = cr.make_ranking(10, 3, docs_per_query=5, seed=0)
    with pytest.raises(CleanrankError, match=r"labels must be clicks, 0 or 1, for debias='dla'; got [2-4]"):
        NeuralRanker(debias="dla", epochs=1).fit_data(data)
    with pytest.raises(CleanrankError, match="debias must be None for preferences"):
        NeuralRanker(debias="dla", epochs=1).fit_preferences(data.X, [(0, 1)])
    shown = clicked(10)
    with pytest.raises(CleanrankError, match="must have positions"):
        NeuralRanker(debias="dla", epochs=1).fit(shown.X, shown.y, qid=shown.qid)


def test_positions_must_be_there():
    data = cr.make_ranking(10, 3, docs_per_query=5, seed=0)
    with pytest.raises(CleanrankError, match="positions"):
        NeuralRanker(Debiased(ranknet(), PairDebias()), epochs=1).fit_data(data)


def test_a_checkpoint_is_refused(tmp_path):
    # What a rule has learnt would be lost, and the training would go on with other weights.
    data = static_clicks(cr.make_ranking(10, 3, docs_per_query=5, seed=0), "pbm", seed=2)
    place = tmp_path / "run"
    with pytest.raises(CleanrankError, match="checkpoint"):
        NeuralRanker(Debiased(ranknet(), PairDebias()), epochs=1, checkpoint=place).fit_data(data)
    assert not place.exists()


def test_peers_go_into_the_loss_not_beside_it():
    data = static_clicks(cr.make_ranking(10, 3, docs_per_query=5, seed=0), "pbm", seed=2)
    with pytest.raises(CleanrankError, match="robust"):
        NeuralRanker(Debiased(ranknet(), PairDebias()), robust="peer", epochs=1).fit_data(data)


def test_published_inverse_propensities():
    # ULTRA's table, from 10^7 shuffled sessions; the eye-tracking vector gives it but for its sampling error.
    published = [1, 1.117, 1.415, 2.003, 2.435, 3.401, 6.192, 6.808, 8.546, 11.33]
    found = InversePropensity(EXAMINED).weights(torch.ones(1, 12), torch.arange(12)[None])[0]
    assert found[:10].tolist() == pytest.approx(published, rel=0.01)
    assert found[10:].tolist() == [found[9].item()] * 2  # constant from rank 10 on


def test_dual_learning_weights_by_hand():
    rule = DualLearning(3)
    rule.logits = torch.tensor([0.5, 0.0, -1.0])
    clicks, ranks = torch.tensor([[1.0, 1.0, 1.0, 0.0, 1.0]]), torch.tensor([[0, 1, 2, 2, 7]])
    # softmax(g)_1 / softmax(g)_k = exp(g_1 - g_k) where clicked; 1 elsewhere.
    expected = [1.0, np.exp(0.5), np.exp(1.5), 1.0, np.exp(1.5)]
    assert rule.weights(clicks, ranks)[0].tolist() == pytest.approx(expected, rel=1e-6)


def test_dual_learning_step_by_hand():
    # One list, ranks 1 and 2, the second clicked: the loss w log(1 + exp(g_1 - g_2)) with w = exp(f_1 - f_2)
    # has the gradient w / 2 at g_1 and -w / 2 at g_2; Adagrad's first step is the rate times the sign.
    rule = DualLearning(2, learning_rate=0.05)
    scores, clicks = torch.tensor([[1.0, 0.5]]), torch.tensor([[0.0, 1.0]])
    rule.learn(scores, clicks, torch.tensor([[0, 1]]), torch.ones(1, 2, dtype=torch.bool))
    assert rule.logits.grad.tolist() == pytest.approx([np.exp(0.5) / 2, -np.exp(0.5) / 2], rel=1e-5)
    assert rule.logits.tolist() == pytest.approx([-0.05, 0.05], rel=1e-4)


def test_pair_debias_moves_both_ratios_by_hand():
    # Scores 0: the documents at ranks 1 and 2 are clicked, those at 3 and 4 not; every loss is log 2.
    # L+_1 = L+_2 = log 2 (1/t-_3 + 1/t-_4), so t+ stay at 1. No non-click at rank 1: t- has no measure.
    rule = PairDebias(4)
    mask, ranks = torch.ones(1, 4, dtype=torch.bool), torch.arange(4)[None]
    rule.learn(torch.zeros(1, 4), torch.tensor([[1.0, 1.0, 0.0, 0.0]]), ranks, mask)
    assert rule.plus.tolist() == pytest.approx([1.0] * 4)
    assert rule.minus.tolist() == [1.0] * 4
    # Clicks at ranks 2 and 3, none at the first.
    scores = torch.tensor([[0.0, 1.0, 0.0]])
    rule.learn(
        scores, torch.tensor([[0.0, 1.0, 1.0]]), torch.tensor([[0, 1, 2]]), torch.ones(1, 3, dtype=torch.bool)
    )
    # No click at rank 1: t+ waits. L-_1 = softplus(-1) + log 2 is the only one, so t-_1 stays 1.
    assert rule.plus.tolist() == pytest.approx([1.0] * 4)
    assert rule.minus.tolist() == pytest.approx([1.0] * 4)
    rule.learn(
        torch.tensor([[0.0, 2.0, 0.0]]), torch.tensor([[1.0, 1.0, 0.0]]), torch.tensor([[0, 1, 2]]),
        torch.ones(1, 3, dtype=torch.bool),
    )  # fmt: skip
    ratio = np.log1p(np.exp(-2)) / np.log(2)
    assert rule.plus.tolist() == pytest.approx([1.0, 0.95 + 0.05 * ratio**0.5, 1.0, 1.0], rel=1e-5)


def test_pair_debias_does_not_add_up_the_ranks_that_share_a_ratio():
    # Rank 1 clicked and ranks 2 to 6 not, and the other way round: all losses are log 2.
    rule, mask = PairDebias(2, step=1.0), torch.ones(2, 6, dtype=torch.bool)
    clicks = torch.tensor([[1.0, 0, 0, 0, 0, 0], [0.0, 1, 1, 1, 1, 1]])
    rule.learn(torch.zeros(2, 6), clicks, torch.arange(6).expand(2, 6), mask)
    # L+_1 = L-_1 = 5 log 2; ranks 2 to 6 have log 2 each, five times that together.
    assert rule.plus.tolist() == pytest.approx([1.0, 0.2**0.5])
    assert rule.minus.tolist() == pytest.approx([1.0, 0.2**0.5])


def test_rates_must_be_positive():
    with pytest.raises(CleanrankError, match="rates"):
        InversePropensity([0.3, 0.0])
