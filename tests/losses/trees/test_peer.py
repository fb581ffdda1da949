import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.losses.trees.lambdarank import LambdaRankObjective
from cleanrank.losses.trees.peer import KINDS, PeerObjective, Peers, permute_all, permute_within

from ..oracle import lambda_query


@pytest.fixture(scope="module")
def case():
    data = cr.make_ranking(6, 3, docs_per_query=9, seed=0)
    return data, np.random.default_rng(0).normal(size=data.n_docs)


def peer_part(data, scores, peers, **options):
    """g' and h' as they were subtracted."""
    objective = PeerObjective(data, peers, **options)
    objective(scores)
    return objective._peer_grad.copy(), objective._peer_hess.copy()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("mode", ["exact", "parity"])
def test_alpha_zero_is_the_base_objective_bit_for_bit(case, kind, mode):
    data, scores = case
    base = LambdaRankObjective(data, mode=mode)(scores)
    np.testing.assert_array_equal(PeerObjective(data, Peers(0.0, kind), mode=mode)(scores), base)


def test_expected_peers_are_the_mean_over_permutations(case):
    data, scores = case
    grad, hess = peer_part(data, scores, Peers(0.3, "expected"), norm=False)
    rng = np.random.default_rng(1)
    a, b = data.indptr[0], data.indptr[1]
    gains = 2.0 ** data.y[a:b] - 1
    draws = [lambda_query(list(scores[a:b]), list(rng.permutation(gains)), norm=False) for _ in range(4000)]
    for found, place in ((grad, 0), (hess, 1)):
        values = np.array([draw[place] for draw in draws])
        error = values.std(axis=0) / np.sqrt(len(values))
        assert (np.abs(found[a:b] - values.mean(axis=0)) < 4.5 * error + 1e-6).all()
        assert np.abs(found[a:b]).max() > 20 * error.max()


@pytest.mark.parametrize("norm", [False, True])
def test_many_sampled_peers_come_near_the_expected_ones(case, norm):
    data, scores = case
    sampled = PeerObjective(data, Peers(0.3, "sampled", permutations=40), norm=norm, n_jobs=1)
    rounds = []
    for _ in range(40):
        sampled(scores)
        rounds.append((sampled._peer_grad.copy(), sampled._peer_hess.copy()))
    values = np.array(rounds, dtype=float)
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    wanted = np.array(peer_part(data, scores, Peers(0.3, "expected"), norm=norm), dtype=float)
    # The factor of ``norm`` is not linear in the labels, so there the mean is near, not equal.
    slack = 0.1 * np.abs(wanted).max(axis=1, keepdims=True) if norm else 1e-6
    assert (np.abs(values.mean(axis=0) - wanted) < 5 * error + slack).all()
    assert np.abs(wanted[0]).max() > 20 * np.median(error[0])


def test_gradients_and_hessians_are_combined_by_the_formula(case):
    data, scores = case
    base = [a.astype(float) for a in LambdaRankObjective(data)(scores)]
    peer = [a.astype(float) for a in peer_part(data, scores, Peers(0.5))]
    grad, hess = PeerObjective(data, Peers(0.5))(scores)
    np.testing.assert_allclose(grad, base[0] - 0.5 * peer[0], atol=1e-6)
    floor = np.maximum(base[1] - 0.5 * peer[1], 1e-3 * base[1])
    np.testing.assert_allclose(hess, np.where(base[1] > 0, floor, 0.5 * peer[1]), atol=1e-6)
    assert (hess >= 0).all()


@pytest.mark.parametrize("within", ["query", "batch"])
def test_permutations_change_with_round_and_seed_but_not_with_threads(case, within):
    data, scores = case
    peers = Peers(0.5, within=within, seed=4)
    one, two = (PeerObjective(data, peers, n_jobs=n) for n in (1, 2))
    first = one(scores)[0].copy()
    np.testing.assert_array_equal(two(scores)[0], first)
    second = one(scores)[0].copy()
    np.testing.assert_array_equal(two(scores)[0], second)
    assert (first != second).any()
    other = PeerObjective(data, Peers(0.5, within=within, seed=5))(scores)[0]
    assert (other != first).any()


@pytest.mark.parametrize("within", ["query", "batch"])
def test_peers_are_judged_by_the_ideal_of_their_own_gains(within):
    # Two queries of a document of grade 2 and one of grade 0, and a query of zeros: gains from elsewhere
    # change what the best order is worth, gains of the same query do not.
    data = cr.from_arrays(np.zeros((6, 1)), [2, 0, 0, 2, 0, 0], group=[2, 2, 2])
    scores = np.array([0.3, 0.1, 0.2, 0.5, 0.4, 0.6])
    moved = 0
    for seed in range(8):
        peers = Peers(1.0, within=within, seed=seed)
        grad, _ = peer_part(data, scores, peers, norm=False)
        (key,) = np.random.SeedSequence([seed, 0]).generate_state(1, np.uint64)
        gains = np.empty(6)
        if within == "query":
            permute_within(2.0**data.y - 1, data.indptr, key, gains)
        else:
            permute_all(2.0**data.y - 1, key, gains)
        moved += (gains.reshape(3, 2).sum(axis=1) != [3.0, 3.0, 0.0]).any()
        for q in range(3):
            rows = slice(2 * q, 2 * q + 2)
            wanted, _ = lambda_query(list(scores[rows]), list(gains[rows]), norm=False)
            np.testing.assert_allclose(grad[rows], wanted, atol=1e-6)
    assert (moved > 0) == (within == "batch")


def test_wrong_peers_are_named():
    with pytest.raises(CleanrankError, match="unknown kind of peers 'expcted'"):
        Peers(0.1, "expcted")
    with pytest.raises(CleanrankError, match="alpha must be a number >= 0"):
        Peers(-0.1)
    with pytest.raises(CleanrankError, match="within must be 'query' for expected"):
        Peers(0.1, "expected", "batch")
    with pytest.raises(CleanrankError, match="permutations must be an integer >= 1"):
        Peers(0.1, permutations=0)
