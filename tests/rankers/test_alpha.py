import numpy as np
import pytest

import cleanrank as cr
from cleanrank.checks import CleanrankError
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.rankers.alpha import kept_signal, peer_weight, pointwise_weight


def binary(e_plus, e_minus):
    return [[1 - e_minus, e_minus], [e_plus, 1 - e_plus]]


@pytest.mark.parametrize(("e_plus", "e_minus"), [(0.05, 0.05), (0.3, 0.1), (0.5037, 0.0373), (0.0, 0.0)])
def test_two_grades_ask_for_the_sum_of_the_flip_rates(e_plus, e_minus):
    found = peer_weight(binary(e_plus, e_minus), [0, 1, 0, 0])
    assert found.alpha == pytest.approx(e_plus + e_minus, abs=1e-12)
    assert found.exact
    assert found.reason == ""
    assert peer_weight(NoiseProfile(binary(e_plus, e_minus)), [0, 1]).alpha == found.alpha


def test_three_grades_keep_less_of_near_pairs():
    T = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    kept = kept_signal(T)
    assert kept[1, 0] == pytest.approx(0.63)
    assert kept[2, 0] == pytest.approx(0.77)
    found = peer_weight(T, [0, 0, 1, 2])
    assert not found.exact
    assert "0.63 to 0.77" in found.reason
    assert 1 - 0.77 < found.alpha < 1 - 0.63


def test_kept_signal_is_what_sampling_shows():
    rng = np.random.default_rng(0)
    T = rng.dirichlet([1, 1, 1, 1], 4)
    a, b = 3, 1
    u, v = rng.choice(4, 200_000, p=T[a]), rng.choice(4, 200_000, p=T[b])
    assert kept_signal(T)[a, b] == pytest.approx(np.mean(u > v) - np.mean(u < v), abs=0.01)


def test_lambdarank_is_reported_as_approximate():
    found = peer_weight(binary(0.1, 0.1), [0, 1], weighted=True)
    assert found.alpha == pytest.approx(0.2)
    assert not found.exact
    assert "LambdaRank" in found.reason


def test_documents_follow_equation_16():
    clean, e_minus, e_plus = 0.0281, 0.0373, 0.5037
    share = clean * (1 - e_plus) + (1 - clean) * e_minus
    shown = np.arange(100_000) < round(share * 100_000)
    found = pointwise_weight(binary(e_plus, e_minus), shown, symmetric=True)
    assert found.alpha == pytest.approx(0.5185, abs=1e-4)
    assert found.exact
    assert pointwise_weight(binary(0.05, 0.05), shown, symmetric=True).alpha == 0
    assert not pointwise_weight(binary(0.05, 0.05), shown, symmetric=False).exact
    with pytest.raises(CleanrankError, match=r"must come out in \[0, 1\]"):
        pointwise_weight(binary(0.3, 0.1), [0, 1], symmetric=True)
    with pytest.raises(CleanrankError, match=r"must come out in \[0, 1\]"):
        pointwise_weight(binary(0.1, 0.3), shown, symmetric=True)


@pytest.mark.parametrize("noise", [[[0.9, 0.2], [0.1, 0.9]], [0.1, 0.2], [[1.0]], [[1.2, -0.2], [0, 1]]])
def test_what_is_no_noise_matrix_is_refused(noise):
    with pytest.raises(CleanrankError, match="whose rows sum to 1"):
        peer_weight(noise, [0, 1])


def test_more_grades_than_rows_and_hopeless_noise_are_refused():
    with pytest.raises(CleanrankError, match="a row for each of the 3 grades"):
        peer_weight(binary(0.1, 0.1), [0, 2])
    with pytest.raises(CleanrankError, match="must leave some of the order"):
        peer_weight(binary(0.5, 0.5), [0, 1])


def test_an_estimate_stands_for_its_matrix():
    data = cr.make_ranking(60, 5, docs_per_query=20, seed=0)
    noisy = cr.corrupt(data, profile="uniform", rate=0.2, seed=1)
    gold = np.arange(0, noisy.data.n_docs, 2)
    given, true = noisy.data.y[gold], data.y[gold]
    counts = np.array([[np.sum((true == l) & (given == m)) for m in range(5)] for l in range(5)]) + 1e-9
    T = counts / counts.sum(1, keepdims=True)
    assert peer_weight(T, noisy.data.y).alpha == pytest.approx(
        peer_weight(noisy.profile, noisy.data.y).alpha, abs=0.05
    )
