import numpy as np
import pytest
import torch

from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.losses.pairs import (
    PAIR_SETS,
    PAIR_WEIGHTINGS,
    check_peer_pairs,
    check_weighting,
    clean_pair_share,
)


@pytest.mark.parametrize("pairs", PAIR_SETS)
@pytest.mark.parametrize("weighting", [name for name in PAIR_WEIGHTINGS if name != "prevalence"])
def test_noise_belongs_to_prevalence_alone(pairs, weighting):
    assert check_weighting(weighting, pairs) is None
    with pytest.raises(InvalidInputError, match="noise must be given for weighting='prevalence'"):
        check_weighting(weighting, pairs, (0.9, 0.8))


def test_prevalence_reads_the_noise():
    assert check_weighting("prevalence", "strict", (0.9, 0.75)).tolist() == [[0.9, 1 - 0.9], [0.25, 0.75]]
    with pytest.raises(InvalidInputError, match="must be given for weighting='prevalence'"):
        check_weighting("prevalence", "strict")
    with pytest.raises(InvalidInputError, match="whose number no label changes"):
        check_weighting("prevalence", "all_ordered", (0.9, 0.8))


def test_unknown_names_are_refused():
    with pytest.raises(UnknownNameError, match=r"unknown weighting 'makro'\. Did you mean 'macro'"):
        check_weighting("makro", "strict")
    with pytest.raises(UnknownNameError, match="unknown set of pairs 'all'"):
        check_peer_pairs("all")


def test_peers_need_targets_of_both_kinds():
    check_peer_pairs("all_ordered", both_orders=False)
    check_peer_pairs("strict_both")
    with pytest.raises(InvalidInputError, match=r"'all_ordered' with peers: strict pairs all have target 1"):
        check_peer_pairs("strict")
    with pytest.raises(InvalidInputError, match="depends on the noise"):
        check_peer_pairs("strict_both", both_orders=False)


def test_numpy_and_torch_estimate_the_same_share():
    rng = np.random.default_rng(0)
    shares, n = rng.dirichlet(np.ones(3), 6), rng.integers(1, 30, 6).astype(float)
    matrix = np.array([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.05, 0.25, 0.7]])
    found = clean_pair_share(torch.tensor(shares), torch.tensor(n), torch.tensor(matrix))
    np.testing.assert_allclose(found.numpy(), clean_pair_share(shares, n, matrix), rtol=1e-12)
