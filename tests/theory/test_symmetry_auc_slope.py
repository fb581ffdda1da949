import numpy as np
import pytest

from cleanrank.errors import CleanrankError
from cleanrank.noise.pair_noise import pnoise_expected, signal_left
from cleanrank.noise.profiles import class_conditional
from cleanrank.theory import auc_slope


@pytest.mark.parametrize(
    ("prevalence", "slope"),
    [(0.01, 0.0822), (0.05, 0.3156), (0.1, 0.4878), (0.3, 0.7487), (0.5, 0.8), (0.9, 0.4878)],
)
def test_slopes_at_ten_per_cent_noise(prevalence, slope):
    assert round(auc_slope(prevalence=prevalence, gamma0=0.9, gamma1=0.9), 4) == slope


@pytest.mark.parametrize("prevalence", [0.01, 0.1, 0.37, 0.5, 0.9])
@pytest.mark.parametrize(("gamma0", "gamma1"), [(0.9, 0.9), (0.95, 0.6), (0.6, 0.95), (0.3, 0.5)])
def test_slope_is_the_signal_that_pair_noise_leaves(prevalence, gamma0, gamma1):
    """Two papers meet: 1 - 2 pNoise of two grades is the slope of AUC."""
    profile = class_conditional(gamma0=gamma0, gamma1=gamma1)
    left = signal_left(pnoise_expected(profile, [1 - prevalence, prevalence]))
    assert auc_slope(prevalence=prevalence, gamma0=gamma0, gamma1=gamma1) == pytest.approx(left, abs=1e-12)


def naive_auc(scores, y, weighting):
    wins = (scores[:, None] > scores[None, :]) + 0.5 * (scores[:, None] == scores[None, :])
    pairs = (y[:, None] == 1) & (y[None, :] == 0)
    # Losses, not gains, so that a query without pairs counts 0 under micro weighting.
    lost = ((1 - wins) * pairs).sum()
    return lost / len(y) ** 2 if weighting == "micro" else (lost / pairs.sum() if pairs.any() else np.nan)


def risks_of(weighting, prevalences, gamma0, gamma1, draws, seed):
    """Clean and noisy pairwise 0-1 risk of several scorers, mean over queries and noise draws."""
    rng = np.random.default_rng(seed)
    n = 200
    queries = []
    for p in prevalences:
        y = (np.arange(n) < round(p * n)).astype(int)
        queries.append((y, [2 * y - 1 + sd * rng.normal(size=n) for sd in (0.2, 1.0, 2.0, 4.0)]))
    clean = np.array([[naive_auc(s, y, weighting) for s in scorers] for y, scorers in queries]).mean(axis=0)
    noisy = np.zeros((draws, 4))
    for d in range(draws):
        rows = []
        for y, scorers in queries:
            kept = rng.random(n) < np.where(y == 1, gamma1, gamma0)
            given = np.where(kept, y, 1 - y)
            rows.append([naive_auc(s, given, weighting) for s in scorers])
        noisy[d] = np.nanmean(rows, axis=0)
    return clean, noisy.mean(axis=0)


@pytest.mark.parametrize(("gamma0", "gamma1"), [(0.9, 0.9), (0.95, 0.7)])
def test_micro_slope_holds_on_a_mix_of_prevalences(gamma0, gamma1):
    clean, noisy = risks_of("micro", [0.05, 0.2, 0.5, 0.8], gamma0, gamma1, draws=60, seed=1)
    slope, _ = np.polyfit(clean, noisy, 1)
    assert np.corrcoef(clean, noisy)[0, 1] ** 2 > 0.999
    expected = auc_slope(prevalence=0.3, gamma0=gamma0, gamma1=gamma1, weighting="micro")
    assert expected == pytest.approx(gamma0 + gamma1 - 1)
    assert slope == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("prevalence", [0.1, 0.5])
def test_macro_slope_by_simulation(prevalence):
    clean, noisy = risks_of("macro", [prevalence] * 3, 0.9, 0.9, draws=60, seed=2)
    slope, _ = np.polyfit(clean, noisy, 1)
    assert slope == pytest.approx(auc_slope(prevalence=prevalence, gamma0=0.9, gamma1=0.9), rel=0.07)


def test_a_short_list_keeps_more_than_a_long_one():
    short, long = (auc_slope(prevalence=0.1, gamma0=0.9, gamma1=0.9, n_docs=n) for n in (50, 100_000))
    assert short == pytest.approx(0.5114, abs=5e-5)
    assert long == pytest.approx(auc_slope(prevalence=0.1, gamma0=0.9, gamma1=0.9), abs=1e-4)


def test_edges():
    assert np.isnan(auc_slope(prevalence=0.3, gamma0=1.0, gamma1=0.0))
    assert auc_slope(prevalence=0.3, gamma0=1.0, gamma1=1.0) == pytest.approx(1.0)
    assert auc_slope(prevalence=0.3, gamma0=0.5, gamma1=0.5) == 0.0
    with pytest.raises(CleanrankError, match="prevalence must be a number > 0 and < 1; got 0"):
        auc_slope(prevalence=0, gamma0=0.9, gamma1=0.9)
    with pytest.raises(CleanrankError, match="gamma1 must be a number >= 0 and <= 1; got 9"):
        auc_slope(prevalence=0.5, gamma0=0.9, gamma1=9)
    with pytest.raises(CleanrankError, match="Did you mean 'micro'"):
        auc_slope(prevalence=0.5, gamma0=0.9, gamma1=0.9, weighting="mirco")


@pytest.mark.parametrize("n_docs", [float("nan"), "x", 50.5, 1])
def test_a_length_that_is_none_is_refused(n_docs):
    with pytest.raises(CleanrankError, match="n_docs must be an integer >= 2"):
        auc_slope(prevalence=0.5, gamma0=0.9, gamma1=0.9, n_docs=n_docs)
