import itertools
import math

import pytest
import torch

from cleanrank.errors import InvalidInputError
from cleanrank.losses.torch import ranking_loss
from tests.losses.dense import batch, value_and_gradient

S = torch.tensor([[0.3, -1.0, 2.0]], dtype=torch.float64)
Y = torch.tensor([[1, 0, 1]])


def f(d):
    return math.log1p(math.exp(-d))


def test_ranknet_by_hand_on_each_set_of_pairs():
    """Pairs of documents 0 and 1, 2 and 1; 0 and 2 tie."""
    strict = f(1.3) + f(3.0)
    assert float(ranking_loss("ranknet")(S, Y)) == pytest.approx(strict / 2, rel=1e-12)
    # The other order of a pair has target 0, and l(-d, 0) = l(d, 1).
    both = ranking_loss("ranknet", pairs="strict_both")(S, Y)
    assert float(both) == pytest.approx(2 * strict / 4, rel=1e-12)
    ties = f(1.7) + f(-1.7)
    all_ordered = ranking_loss("ranknet", pairs="all_ordered")(S, Y)
    assert float(all_ordered) == pytest.approx((2 * strict + ties) / 6, rel=1e-12)


def test_weightings_by_hand():
    s, y = torch.cat((S, S)), torch.tensor([[1, 0, 1], [0, 0, 1]])
    first, second = f(1.3) + f(3.0), f(1.7) + f(3.0)
    expected = {
        "macro": (first / 2 + second / 2) / 2,
        "micro": (first / 9 + second / 9) / 2,
        "pooled": (first + second) / 4,
        "sum": (first + second) / 2,
    }
    for name, value in expected.items():
        assert float(ranking_loss("ranknet", weighting=name)(s, y)) == pytest.approx(value, rel=1e-12)


def test_lambdarank_by_hand():
    """Ranks: document 2, 0, 1. A swap of 0 and 1 moves a gain of 1 between ranks 2 and 3."""
    discount = [1.0, 1 / math.log2(3), 0.5]
    ideal = discount[0] + discount[1]
    value = f(1.3) * (discount[1] - discount[2]) / ideal + f(3.0) * (discount[0] - discount[2]) / ideal
    assert float(ranking_loss("lambdarank")(S, Y)) == pytest.approx(value, rel=1e-12)
    cut = f(3.0) * 1.0
    assert float(ranking_loss("lambdarank", measure="ndcg@1")(S, Y)) == pytest.approx(cut, rel=1e-12)
    # Average precision 1 of relevant ranks 1, 2; after the swaps (1 + 2/3) / 2 and (1/2 + 2/3) / 2.
    ap = f(1.3) * (1 - 5 / 6) + f(3.0) * (1 - 7 / 12)
    assert float(ranking_loss("lambdarank", measure="map")(S, Y)) == pytest.approx(ap, rel=1e-12)


def test_the_gradient_of_lambdarank_takes_the_changes_as_constants():
    gradient = value_and_gradient(ranking_loss("lambdarank", measure="ndcg@1"), S, Y)[1]
    slope = 1 / (1 + math.exp(3.0))
    torch.testing.assert_close(gradient, torch.tensor([[0.0, slope, -slope]], dtype=torch.float64))


def test_real_valued_gains_order_the_pairs_of_lambdarank():
    gains = torch.tensor([[0.0, 3.0, 1.0]], dtype=torch.float64)
    found = ranking_loss("lambdarank", measure="dcg")(S, 0 * Y, gains=gains)
    d = [1.0, 1 / math.log2(3), 0.5]  # document 2 stands first, then 0, then 1
    value = f(-1.3) * 3 * (d[1] - d[2]) + f(-3.0) * 2 * (d[0] - d[2]) + f(1.7) * 1 * (d[0] - d[1])
    assert float(found) == pytest.approx(value, rel=1e-12)


def flips(y, e_plus, e_minus):
    for bits in itertools.product((0, 1), repeat=len(y)):
        p = 1.0
        for a, b in zip(y, bits, strict=True):
            e = e_plus if a else e_minus
            p *= e if a != b else 1 - e
        yield torch.tensor([bits]), p


@pytest.mark.parametrize("binary", ["logistic", "hinge", "zero_one", "exponential"])
@pytest.mark.parametrize("rates", [(0.05, 0.05), (0.3, 0.1), (0.5, 0.04)])
def test_peers_of_weight_e_plus_and_e_minus_undo_flipped_clicks_whatever_the_loss(binary, rates):
    """The mean over all flips of the peer risk is (1 - e+ - e-) times the clean risk, exactly."""
    s = torch.tensor([[0.3, -1.0, 2.0, 0.1]], dtype=torch.float64)
    y = [1, 0, 0, 1]
    base = ranking_loss("pairwise", binary=binary, pairs="all_ordered")
    peer = ranking_loss(
        "pairwise", binary=binary, robust={"name": "peer", "alpha": sum(rates)}, pairs="all_ordered"
    )
    noisy = sum(p * float(peer(s, given)) for given, p in flips(y, *rates))
    clean = float(base(s, torch.tensor([y])))
    assert noisy == pytest.approx((1 - sum(rates)) * clean, rel=1e-12)


def test_ranknet_with_peers_is_logistic_and_unhinged():
    s, y, mask = batch()
    alpha = 0.3
    peer = ranking_loss("ranknet", robust={"name": "peer", "alpha": alpha}, pairs="strict_both")
    plain, linear = (
        ranking_loss("pairwise", binary=name, pairs="strict_both")(s, y, mask).item()
        for name in ("logistic", "unhinged")
    )
    expected = (1 - alpha) * plain + alpha / 2 * (linear - 1)
    assert peer(s, y, mask).item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["ranknet", "lambdarank", "pairwise"])
@pytest.mark.parametrize("mode", ["expected", "sampled"])
def test_peers_of_weight_0_are_the_base_to_the_last_bit(name, mode):
    s, y, mask = batch()
    peer = {"name": "peer", "alpha": 0.0, "mode": mode}
    for pairs in ("strict", "strict_both", "all_ordered"):
        base = value_and_gradient(ranking_loss(name, pairs=pairs), s, y, mask)
        zero = value_and_gradient(ranking_loss(name, pairs=pairs, robust=peer), s, y, mask)
        assert torch.equal(base[0], zero[0])
        assert torch.equal(base[1], zero[1])


PREFERENCES = torch.tensor([[0, 2, 1], [1, 0, 1], [0, 0, 1]])


def test_preferences_equal_the_pairs_of_grades_that_state_them():
    s = torch.cat((S, -S))
    y = torch.tensor([[1, 0, 1], [1, 0, 0]])
    mask = torch.tensor([[True, True, True], [True, True, False]])
    for options in (
        {},
        {"weighting": "micro"},
        {"pairs": "strict_both"},
        {"weighting": "pooled"},
        {"sigma": 2.0},
    ):
        loss = ranking_loss("ranknet", **options)
        by_grade = value_and_gradient(loss, s, y, mask)
        stated = value_and_gradient(loss.on_preferences, s, PREFERENCES, mask)
        torch.testing.assert_close(stated, by_grade, rtol=1e-12, atol=1e-12)


def test_a_preference_stated_twice_weighs_twice():
    s = torch.cat((S, -S))
    loss = ranking_loss("pairwise", binary="sigmoid")
    twice = torch.cat((PREFERENCES, PREFERENCES[:1]))
    weighed = loss.on_preferences(s, PREFERENCES, weights=torch.tensor([2.0, 1.0, 1.0]))
    assert float(weighed) == pytest.approx(float(loss.on_preferences(s, twice)), rel=1e-12)


def test_peers_of_weight_2e_undo_preferences_that_are_wrong_at_rate_e():
    e = 0.15
    peer = ranking_loss("ranknet", robust={"name": "peer", "alpha": 2 * e}, pairs="strict_both")
    wrong = PREFERENCES[:, [0, 2, 1]]
    s = torch.cat((S, -S))
    noisy = 0.0
    for flipped in itertools.product((0, 1), repeat=3):
        p = math.prod(e if x else 1 - e for x in flipped)
        given = torch.where(torch.tensor(flipped)[:, None] == 1, wrong, PREFERENCES)
        noisy += p * float(peer.on_preferences(s, given))
    clean = float(ranking_loss("ranknet", pairs="strict_both").on_preferences(s, PREFERENCES))
    assert noisy == pytest.approx((1 - 2 * e) * clean, rel=1e-12)


def test_sampled_peers_of_preferences_average_to_the_expected_ones():
    s = torch.cat((S, -S))
    peer = {"name": "peer", "alpha": 0.4}
    expected = ranking_loss("ranknet", robust=peer, pairs="strict_both").on_preferences(s, PREFERENCES)
    loss = ranking_loss("ranknet", robust={**peer, "mode": "sampled"}, pairs="strict_both")
    source = torch.Generator().manual_seed(0)
    found = torch.stack([loss.on_preferences(s, PREFERENCES, None, source) for _ in range(600)])
    assert abs(found.mean() - expected) < 4.5 * found.std() / 600**0.5


@pytest.mark.parametrize(
    ("options", "preferences", "words"),
    [
        ({"pairs": "all_ordered"}, PREFERENCES, "strict_both"),
        ({}, PREFERENCES[:, :2], r"shape \(P, 3\)"),
        ({}, PREFERENCES.double(), "must be integers"),
        ({}, torch.tensor([[0, 0, 1], [0, 1, 1]]), "row 1"),
        ({}, torch.tensor([[0, 0, 3]]), "row 0"),
        ({}, torch.tensor([[2, 0, 1]]), "row 0"),
        ({}, torch.tensor([[1, 0, 2]]), "row 0"),
        ({"weighting": "prevalence", "noise": (0.9, 0.9)}, PREFERENCES, "reads grades"),
    ],
)
def test_preferences_that_make_no_sense_are_refused(options, preferences, words):
    mask = torch.tensor([[True, True, True], [True, True, False]])
    with pytest.raises(InvalidInputError, match=words):
        ranking_loss("ranknet", **options).on_preferences(torch.cat((S, S)), preferences, mask)


def test_lambdarank_refuses_preferences():
    with pytest.raises(InvalidInputError, match="lambdarank, which reads grades"):
        ranking_loss("lambdarank").on_preferences(S, torch.tensor([[0, 0, 1]]))
