import itertools

import numpy as np
import pytest
import torch

from cleanrank.errors import CleanrankError, InvalidInputError
from cleanrank.losses.pairs import check_weighting
from cleanrank.losses.torch import ranking_loss
from cleanrank.losses.torch.pair_loss import OVER_PAIRS, clean_share, list_factors, pair_weight


def noise_matrix(noise):
    return torch.tensor(check_weighting("prevalence", "strict", noise))


PAIRS_OF = {
    "strict": lambda a, b: a > b,
    "strict_both": lambda a, b: a != b,
    "all_ordered": lambda a, b: True,
}


@pytest.mark.parametrize("kind", PAIRS_OF)
def test_the_weight_of_pairs_is_counted_one_by_one(kind):
    rng = np.random.default_rng(0)
    y, w = rng.integers(0, 3, (5, 9)), rng.uniform(0, 2, (5, 9))
    w[rng.random((5, 9)) < 0.3] = 0.0
    expected = [
        sum(
            w[q, i] * w[q, j]
            for i, j in itertools.permutations(range(9), 2)
            if PAIRS_OF[kind](y[q, i], y[q, j])
        )
        for q in range(5)
    ]
    found = pair_weight(kind, torch.tensor(y, dtype=torch.float64), torch.tensor(w))
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_what_each_weighting_does_by_hand():
    """Lists of 3 and 4 documents with 2 and 3 pairs, one empty list and one without pairs."""
    n_pairs = torch.tensor([2.0, 3.0, 0.0, 0.0], dtype=torch.float64)
    n_docs = torch.tensor([3.0, 4.0, 0.0, 1.0], dtype=torch.float64)
    share = torch.tensor([0.2, 0.1, 0.5, 0.5], dtype=torch.float64)
    expected = {
        "sum": [1 / 3, 1 / 3, 0, 1 / 3],
        "macro": [1 / 4, 1 / 6, 0, 0],
        "pooled": [1 / 5] * 4,
        "micro": [1 / 27, 1 / 48, 0, 1 / 3],
        "prevalence": [1 / (9 * 0.2 * 3), 1 / (16 * 0.1 * 3), 0, 1 / (0.5 * 3)],
    }
    for name, values in expected.items():
        np.testing.assert_allclose(
            list_factors(name, n_pairs if name in OVER_PAIRS else n_docs, share), values, rtol=1e-12
        )


def test_the_clean_share_of_pairs_comes_back_from_noisy_shares():
    """Prevalence .1 under keep probabilities (.9, .8) looks like .17; 1,000 documents show it exactly."""
    y = torch.zeros(1, 1000, dtype=torch.float64)
    y[0, :170] = 1.0
    found = clean_share(y, torch.ones_like(y), noise_matrix((0.9, 0.8)))
    assert float(found) == pytest.approx(0.1 * 0.9, abs=1e-12)


def test_three_grades_use_the_whole_matrix():
    T = np.array([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.05, 0.25, 0.7]])
    true = np.array([0.5, 0.3, 0.2])
    counts = np.rint(true @ T * 2000).astype(int)
    y = torch.tensor(np.repeat([0.0, 1.0, 2.0], counts))[None]
    found = clean_share(y, torch.ones_like(y), noise_matrix(T))
    assert float(found) == pytest.approx((1 - (true**2).sum()) / 2, abs=1e-3)


def test_a_share_below_that_of_one_document_is_lifted_to_it():
    y = torch.zeros(1, 10, dtype=torch.float64)
    found = clean_share(y, torch.ones_like(y), noise_matrix((0.9, 0.9)))
    assert float(found) == pytest.approx(9 / 100)


def test_without_noise_prevalence_is_macro():
    s = torch.randn(4, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    y = torch.tensor([[1, 0, 0, 0, 0, 0, 0, 0], [1, 1, 1, 0, 0, 0, 0, 0], [1] * 4 + [0] * 4, [1] * 7 + [0]])
    macro = ranking_loss("ranknet")(s, y)
    prevalence = ranking_loss("ranknet", weighting="prevalence", noise=(1.0, 1.0))(s, y)
    assert float(prevalence) == pytest.approx(float(macro), rel=1e-12)


def test_noise_that_says_nothing_or_is_no_matrix_is_refused():
    with pytest.raises(InvalidInputError, match="must keep the grades apart"):
        noise_matrix((0.5, 0.5))
    with pytest.raises(InvalidInputError, match="rows that sum to 1"):
        noise_matrix([[0.9, 0.2], [0.1, 0.9]])


def flips(y, gamma0, gamma1):
    """Every noisy version of binary labels with its probability."""
    for bits in itertools.product((0, 1), repeat=len(y)):
        keep = [gamma1 if a else gamma0 for a in y]
        yield bits, np.prod([k if a == b else 1 - k for a, b, k in zip(y, bits, keep, strict=True)])


def mean_noisy(loss, scores, queries, gamma0, gamma1):
    """The exact mean over all flips, list by list (the weighting must not mix lists)."""
    total = 0.0
    for s, y in zip(scores, queries, strict=True):
        for bits, p in flips(y, gamma0, gamma1):
            total += p * float(loss(s[None], torch.tensor([bits])))
    return total / len(queries)


@pytest.mark.parametrize("binary", ["sigmoid", "ramp", "unhinged", "zero_one"])
def test_the_micro_slope_is_exact_for_any_mix_of_prevalences_and_unequal_flips(binary):
    gamma0, gamma1 = 0.95, 0.7
    queries = [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [1, 1, 1, 1, 0], [0, 0, 0, 0, 0]]
    g = torch.Generator().manual_seed(0)
    scorers = [torch.randn(4, 5, generator=g, dtype=torch.float64) for _ in range(4)]
    micro = ranking_loss("pairwise", binary=binary, weighting="micro")
    clean = [float(micro(s, torch.tensor(queries))) for s in scorers]
    noisy = [mean_noisy(micro, s, queries, gamma0, gamma1) for s in scorers]
    for a, b in itertools.combinations(range(4), 2):
        assert noisy[a] - noisy[b] == pytest.approx((gamma0 + gamma1 - 1) * (clean[a] - clean[b]), abs=1e-12)


def test_the_macro_slope_is_not():
    queries = [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0]]
    g = torch.Generator().manual_seed(0)
    a, b = (torch.randn(2, 5, generator=g, dtype=torch.float64) for _ in range(2))
    macro = ranking_loss("pairwise", binary="sigmoid")
    clean = float(macro(a, torch.tensor(queries)) - macro(b, torch.tensor(queries)))
    noisy = mean_noisy(macro, a, queries, 0.9, 0.9) - mean_noisy(macro, b, queries, 0.9, 0.9)
    assert abs(noisy / clean - 0.8) > 0.05


def test_prevalence_keeps_the_clean_macro_risk_at_one_slope_on_a_mix():
    """Long lists, so that the estimated prevalence is near the true one."""
    rng = np.random.default_rng(1)
    gamma, n = 0.9, 1500
    slopes = {"macro": [], "prevalence": []}
    y = np.stack([rng.permutation(np.arange(n) < p * n) for p in (0.05, 0.2, 0.5)]).astype(int)
    noisy = torch.tensor(np.where(rng.random(y.shape) < gamma, y, 1 - y))
    scorers = [torch.tensor(a * y + rng.normal(size=y.shape)) for a in (0.0, 2.0)]
    macro = ranking_loss("pairwise", binary="sigmoid")
    fixed = ranking_loss("pairwise", binary="sigmoid", weighting="prevalence", noise=(gamma, gamma))
    clean = [float(macro(s, torch.tensor(y))) for s in scorers]
    for name, loss in (("macro", macro), ("prevalence", fixed)):
        found = [float(loss(s, noisy)) for s in scorers]
        slopes[name] = (found[1] - found[0]) / (clean[1] - clean[0])
    assert slopes["prevalence"] == pytest.approx(0.8, abs=0.03)
    assert slopes["macro"] < 0.7


@pytest.mark.parametrize("noise", [(1.5, 0.9), [[1.2, -0.2], [0.1, 0.9]], "x", [[0.9, 0.1], [0.1]], 3])
def test_what_holds_no_probabilities_is_no_noise(noise):
    with pytest.raises(CleanrankError, match=r"noise matrix must hold probabilities|square matrix|'x'"):
        noise_matrix(noise)


@pytest.mark.parametrize("top", [2.0, 0.5])
def test_labels_that_the_noise_does_not_cover_are_refused(top):
    """Left out they would count as no documents, and the list would weigh too much."""
    y = torch.tensor([[0.0, 1.0, top], [0.0, 1.0, 1.0]])
    with pytest.raises(
        InvalidInputError, match=r"noise must cover every label, the grades 0\.\.1; got labels up to"
    ):
        clean_share(y, torch.ones_like(y), noise_matrix((0.9, 0.9)))
    inside = torch.tensor([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
    assert clean_share(y, inside, noise_matrix((0.9, 0.9))).shape == (2,)
