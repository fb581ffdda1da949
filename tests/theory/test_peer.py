import math

import numpy as np
import pytest

from cleanrank.errors import CleanrankError
from cleanrank.losses.binary import LOSSES
from cleanrank.theory import optimal_alpha, peer_excess_risk_bound, peer_imbalance_bound


def test_pairs_need_the_sum_of_both_rates():
    found = optimal_alpha(0.05, 0.05)
    assert float(found) == pytest.approx(0.1)
    assert not found.approximate


@pytest.mark.parametrize(
    "options", [{"n_grades": 3}, {"lambdarank": True}, {"pairs": "strict_both"}], ids=lambda o: next(iter(o))
)
def test_what_is_not_covered_is_called_approximate(options):
    found = optimal_alpha(0.1, 0.2, **options)
    assert found.approximate
    assert float(found) == pytest.approx(0.3)


def test_points():
    quoted = optimal_alpha(0.5037, 0.0373, pairs="points", prevalence=0.0281, loss="sigmoid")
    assert float(quoted) == pytest.approx(0.5185, abs=5e-5)
    assert not quoted.approximate
    assert optimal_alpha(0.5037, 0.0373, pairs="points", prevalence=0.0281).approximate
    assert float(optimal_alpha(0.05, 0.05, pairs="points", prevalence=0.0281, loss="zero_one")) == 0.0
    assert float(optimal_alpha(0.2, 0.2, pairs="points", prevalence=0.5, loss="zero_one")) == 0.0


@pytest.mark.parametrize("loss", ["logistic", "hinge", "zero_one", "exponential"])
@pytest.mark.parametrize(("e_plus", "e_minus"), [(0.05, 0.05), (0.3, 0.1), (0.0, 0.25)])
def test_noisy_peer_loss_of_all_ordered_pairs_is_proportional_to_the_clean_loss(loss, e_plus, e_minus):
    """Exactly, by the expectation over the noise of each pair of clicks."""
    rng = np.random.default_rng(0)
    clicks = rng.random(40) < 0.3
    scores = clicks + rng.normal(size=40)
    kept = np.where(clicks, 1 - e_plus, e_minus)
    off = ~np.eye(40, dtype=bool)
    difference = (scores[:, None] - scores[None, :])[off]
    one, zero = (LOSSES[loss].value(difference, t) for t in (1, 0))

    def risk(label):
        """Mean loss minus alpha times the mean loss of peers: features of one pair, label of another."""
        peers = label.mean() * one.mean() + (1 - label.mean()) * zero.mean()
        return (label * one + (1 - label) * zero).mean(), peers

    clean, _ = risk((clicks[:, None] & ~clicks[None, :])[off].astype(float))
    noisy, peers = risk((kept[:, None] * (1 - kept[None, :]))[off])
    alpha = float(optimal_alpha(e_plus, e_minus))
    assert noisy - alpha * peers == pytest.approx((1 - e_plus - e_minus) * clean, rel=1e-10)
    assert (
        noisy - 0.5 * alpha * peers != pytest.approx((1 - e_plus - e_minus) * clean, rel=1e-3) or alpha == 0
    )


@pytest.mark.parametrize("loss", ["zero_one", "sigmoid", "ramp"])
def test_noisy_peer_loss_of_points_is_affine_in_the_clean_loss(loss):
    rng = np.random.default_rng(1)
    y = (rng.random(4000) < 0.2).astype(float)
    e_plus, e_minus = 0.3, 0.1
    given = np.where(y == 1, 1 - e_plus, e_minus)
    alpha = float(optimal_alpha(e_plus, e_minus, pairs="points", prevalence=float(y.mean()), loss=loss))
    clean, noisy = [], []
    for sd in (0.3, 1.0, 2.0, 4.0):
        scores = 2 * y - 1 + sd * rng.normal(size=len(y)) + rng.normal()
        one, zero = (LOSSES[loss].value(scores, t) for t in (1, 0))
        clean.append((y * one + (1 - y) * zero).mean())
        peers = given.mean() * one.mean() + (1 - given.mean()) * zero.mean()
        noisy.append((given * one + (1 - given) * zero).mean() - alpha * peers)
    np.testing.assert_allclose(np.diff(noisy), (1 - e_plus - e_minus) * np.diff(clean), atol=1e-9)


@pytest.mark.parametrize("loss", ["logistic", "hinge", "exponential"])
@pytest.mark.parametrize(
    ("prevalence", "e_plus", "e_minus", "exact"),
    [(0.25, 0.3, 0.1, True), (0.5, 0.2, 0.2, True), (0.4, 0.3, 0.1, False), (0.5, 0.2, 0.0, False)],
)
def test_noisy_peer_loss_of_points_is_the_clean_loss_but_for_a_shift(
    loss, prevalence, e_plus, e_minus, exact
):
    rng = np.random.default_rng(2)
    y = rng.permutation(np.arange(4000) < prevalence * 4000).astype(float)
    given = np.where(y == 1, 1 - e_plus, e_minus)
    alpha = optimal_alpha(e_plus, e_minus, pairs="points", prevalence=prevalence, loss=loss)
    assert float(alpha) == pytest.approx(e_plus + e_minus)
    share = given.mean()
    one, zero = (LOSSES[loss].value(rng.normal(size=len(y)) + y, t) for t in (1, 0))
    clean = (y * one + (1 - y) * zero).mean()
    noisy = (given * one + (1 - given) * zero).mean() - float(alpha) * (
        share * one + (1 - share) * zero
    ).mean()
    shift = (e_minus - float(alpha) * share) * (one - zero).mean()
    assert noisy == pytest.approx((1 - e_plus - e_minus) * clean + shift, abs=1e-12)
    # Exact where false clicks are as frequent among flips as clicks among given labels.
    assert exact == (abs(shift) < 1e-9)
    assert alpha.approximate != exact


def test_bound():
    found = peer_excess_risk_bound(400, 0.1, 0.2, delta=0.1)
    assert float(found) == pytest.approx(1.3 / 0.7 * math.sqrt(2 * math.log(20) / 400))
    assert "one fixed scorer" in found.statement
    assert peer_excess_risk_bound(5, 0.1, 0.2).vacuous
    assert float(peer_excess_risk_bound(400, 0.1, 0.2, alpha=0.0)) < float(
        peer_excess_risk_bound(400, 0.1, 0.2)
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: optimal_alpha(0.6, 0.4), "must be below 1"),
        (lambda: optimal_alpha(-0.1, 0.4), "e_plus must be a number >= 0 and <= 1"),
        (lambda: optimal_alpha(0.1, 0.1, pairs="strict_positive"), "Use all_ordered"),
        (lambda: optimal_alpha(0.1, 0.1, pairs="all_order"), "Did you mean 'all_ordered'"),
        (lambda: optimal_alpha(0.1, 0.1, pairs="points"), "prevalence must be given"),
        (
            lambda: optimal_alpha(0.3, 0.1, pairs="points", prevalence=2 / 3, loss="sigmoid"),
            "must not balance the given labels",
        ),
        (lambda: peer_excess_risk_bound(0, 0.1, 0.1), "n_pairs must be"),
        (lambda: peer_excess_risk_bound(9, 0.1, 0.1, delta=1), "delta must be a number > 0 and < 1"),
        (lambda: optimal_alpha("x", 0.4), "e_plus must be a number >= 0 and <= 1; got 'x'"),
        (lambda: peer_excess_risk_bound(9, 0.1, 0.1, alpha="x"), "alpha must be a number .*got 'x'"),
    ],
)
def test_complaints(call, message):
    with pytest.raises(CleanrankError, match=message):
        call()


def test_a_weight_that_peers_refuse_is_said_to_be_one():
    """More invented than lost clicks among few relevant documents: (.05 - .2) / (1 - 2 x .275)."""
    found = optimal_alpha(0.05, 0.2, pairs="points", prevalence=0.1, loss="sigmoid")
    assert float(found) == pytest.approx((0.05 - 0.2) / (1 - 2 * (0.1 * 0.95 + 0.9 * 0.2)))
    assert "outside [0, 1], where peers do not train" in found.statement
    assert "outside" not in optimal_alpha(0.2, 0.05, pairs="points", prevalence=0.1, loss="sigmoid").statement


@pytest.mark.parametrize("seed", range(20))
def test_peers_cost_no_more_than_the_imbalance(seed):
    # Points with a weight, a label and the decisions of many scorers; expectations over the noise are exact.
    rng = np.random.default_rng(seed)
    n, e_plus, e_minus = 60, *rng.uniform(0, 0.45, 2)
    goal = np.ones(n) if seed % 2 else rng.random(n)
    Y = rng.random(n) < rng.uniform(0.05, 0.95)
    decisions = rng.random((400, n)) < rng.random((400, 1))
    p, largest = float(Y.mean()), float(goal.max())
    noisy = np.where(Y, 1 - e_plus, e_minus)  # P(given 1)
    given = noisy.mean()

    def risk(share_of_ones):
        return (goal * np.where(decisions, 1 - share_of_ones, share_of_ones)).mean(axis=1)

    clean = risk(Y.astype(float))
    kept = int(np.argmin(risk(noisy) - risk(np.full(n, given))))
    bound = peer_imbalance_bound(p, largest=largest)
    assert clean[kept] - clean.min() <= float(bound) + 1e-12
    assert float(peer_imbalance_bound(p, largest=largest, published=True)) == 2 * float(bound)


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5, 0.8])
def test_the_bound_of_imbalance_is_reached(p):
    # "Always 1" and "always 0" tie in peer risk, and lie |1 - 2 p| apart.
    def peer_risk(always):
        return (1 - p if always else p) - (p * (1 - always) + (1 - p) * always)

    assert peer_risk(1) == pytest.approx(peer_risk(0))
    assert float(peer_imbalance_bound(p)) == pytest.approx(abs((1 - p) - p))
    assert peer_imbalance_bound(0.0).vacuous
    assert not peer_imbalance_bound(0.2).vacuous
    with pytest.raises(CleanrankError, match="prevalence must be"):
        peer_imbalance_bound(1.2)


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan")])
def test_the_bound_refuses_a_weight_that_peers_refuse(alpha):
    with pytest.raises(CleanrankError, match="alpha must be a number >= 0 and <= 1"):
        peer_excess_risk_bound(100, 0.1, 0.1, alpha=alpha)


def test_fewer_than_two_grades_are_refused():
    with pytest.raises(CleanrankError, match="n_grades must be an integer >= 2; got 1"):
        optimal_alpha(0.1, 0.1, n_grades=1)
