import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.losses.binary import LOSSES
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.theory.peer import kept_signal, pair_alpha, point_alpha, preference_alpha


def binary(e_plus, e_minus):
    return [[1 - e_minus, e_minus], [e_plus, 1 - e_plus]]


@pytest.mark.parametrize(("e_plus", "e_minus"), [(0.05, 0.05), (0.3, 0.1), (0.5037, 0.0373), (0.0, 0.0)])
def test_two_grades_ask_for_the_sum_of_the_flip_rates(e_plus, e_minus):
    found = pair_alpha(binary(e_plus, e_minus), [0, 1, 0, 0])
    assert found.value == pytest.approx(e_plus + e_minus, abs=1e-12)
    assert not found.approximate
    assert pair_alpha(NoiseProfile(binary(e_plus, e_minus)), [0, 1]).value == found.value
    assert 1 - kept_signal(np.array(binary(e_plus, e_minus)))[1, 0] == pytest.approx(found.value)


def test_three_grades_keep_less_of_near_pairs():
    T = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    kept = kept_signal(T)
    assert kept[1, 0] == pytest.approx(0.63)
    assert kept[2, 0] == pytest.approx(0.77)
    found = pair_alpha(T, [0, 0, 1, 2])
    assert found.approximate
    assert "0.63 to 0.77" in found.statement
    assert 1 - 0.77 < found.value < 1 - 0.63


def test_kept_signal_is_what_sampling_shows():
    rng = np.random.default_rng(0)
    T = rng.dirichlet([1, 1, 1, 1], 4)
    a, b = 3, 1
    u, v = rng.choice(4, 200_000, p=T[a]), rng.choice(4, 200_000, p=T[b])
    assert kept_signal(T)[a, b] == pytest.approx(np.mean(u > v) - np.mean(u < v), abs=0.01)


def test_lambdarank_is_reported_as_approximate():
    found = pair_alpha(binary(0.1, 0.1), [0, 1], lambdarank=True)
    assert found.value == pytest.approx(0.2)
    assert found.approximate
    T = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    assert "not covered" in pair_alpha(T, [0, 1, 2], lambdarank=True).statement


def test_documents_follow_equation_16():
    clean, e_minus, e_plus = 0.0281, 0.0373, 0.5037
    share = clean * (1 - e_plus) + (1 - clean) * e_minus
    shown = np.arange(100_000) < round(share * 100_000)
    found = point_alpha(binary(e_plus, e_minus), shown, LOSSES["sigmoid"])
    assert found.value == pytest.approx(0.5185, abs=1e-4)
    assert not found.approximate
    assert point_alpha(binary(0.05, 0.05), shown, LOSSES["sigmoid"]).value == 0
    assert point_alpha(binary(e_plus, e_minus), shown, LOSSES["logistic"]).approximate
    with pytest.raises(CleanrankError, match=r"must come out in \[0, 1\]"):
        point_alpha(binary(0.1, 0.3), shown, LOSSES["sigmoid"])
    with pytest.raises(CleanrankError, match="must be 2 x 2"):
        point_alpha(np.eye(3), shown, LOSSES["sigmoid"])


@pytest.mark.parametrize("loss", ["logistic", "hinge", "exponential"])
def test_peers_of_preferences_leave_one_part_of_the_clean_loss(loss):
    """By hand: E over wrong preferences of l(d, t) - alpha m is (1 - 2 e) l(d, 1)."""
    e, d = 0.15, np.linspace(-3, 3, 13)
    alpha = preference_alpha(binary(e, e)).value
    right, wrong = LOSSES[loss].value(d, 1), LOSSES[loss].value(d, 0)
    noisy = (1 - e) * right + e * wrong - alpha * (right + wrong) / 2
    np.testing.assert_allclose(noisy, (1 - 2 * e) * right)


def test_uneven_noise_of_preferences_is_refused():
    with pytest.raises(CleanrankError, match="noise of preferences"):
        preference_alpha(binary(0.1, 0.2))
    with pytest.raises(CleanrankError, match="e below 1/2"):
        preference_alpha(binary(0.5, 0.5))


@pytest.mark.parametrize(
    ("noise", "message"),
    [
        ([[0.9, 0.2], [0.1, 0.9]], "rows that sum to 1"),
        ([0.1, 0.2], "must be below 1"),
        ([[1.0]], "must be a square matrix"),
        ([[1.2, -0.2], [0, 1]], "must hold probabilities"),
        ("uniform", "no file 'uniform'"),
        ([[1], [0, 1]], "must be a square matrix"),
        (None, "must be a square matrix"),
    ],
)
def test_what_is_no_noise_matrix_is_refused(noise, message):
    with pytest.raises(CleanrankError, match=message):
        pair_alpha(noise, [0, 1])


def test_more_grades_than_rows_and_hopeless_noise_are_refused():
    with pytest.raises(CleanrankError, match="a row for each of the 3 grades"):
        pair_alpha(binary(0.1, 0.1), [0, 2])
    with pytest.raises(CleanrankError, match="must be below 1"):
        pair_alpha(binary(0.5, 0.5), [0, 1])
    with pytest.raises(CleanrankError, match="must leave some of the order"):
        pair_alpha(np.full((3, 3), 1 / 3), [0, 1, 2])


def test_a_profile_and_what_it_did_agree():
    data = cr.make_ranking(100, 3, docs_per_query=20, seed=0)
    noisy = cr.corrupt(data, profile="uniform", rate=0.2, seed=1)
    C = noisy.profile.n_grades
    counts = np.array([[np.sum((data.y == l) & (noisy.data.y == m)) for m in range(C)] for l in range(C)])
    T = counts / counts.sum(1, keepdims=True)
    expected = pair_alpha(noisy.profile, noisy.data.y).value
    assert pair_alpha(T, noisy.data.y).value == pytest.approx(expected, abs=0.05)
    # The part of the order that is lost, counted over the pairs of different true grades.
    a, b = np.nonzero(data.y[:, None] > data.y)
    order = np.sign(noisy.data.y[a] - noisy.data.y[b])
    assert expected == pytest.approx(1 - order.mean(), abs=0.02)


def test_pairs_count_by_their_true_shares_not_by_the_given_ones():
    # Grade 2 is always right, and grades 0 and 1 are mixed up; most given ones are zeros in truth.
    T = np.array([[0.6, 0.4, 0.0], [0.1, 0.9, 0.0], [0.0, 0.0, 1.0]])
    true = np.array([0.8, 0.1, 0.1])
    given = np.round(1000 * true @ T).astype(int)
    found = pair_alpha(T, np.repeat(np.arange(3), given)).value
    kept = {(1, 0): 0.6 * 0.9 - 0.4 * 0.1, (2, 0): 1.0, (2, 1): 1.0}
    pairs = {places: true[places[0]] * true[places[1]] for places in kept}
    assert found == pytest.approx(1 - sum(pairs[g] * kept[g] for g in kept) / sum(pairs.values()), abs=1e-3)
    shares = given / given.sum()
    by_given = {g: shares[g[0]] * shares[g[1]] for g in kept}
    wrong = 1 - sum(by_given[g] * kept[g] for g in kept) / sum(by_given.values())
    assert abs(found - wrong) > 0.05
