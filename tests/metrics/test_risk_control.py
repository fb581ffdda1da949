import math

import numpy as np
import pytest
from scipy import stats

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.metrics.risk_control import (
    BOUNDS,
    RISKS,
    bentkus_p,
    calibrate_cutoff,
    hoeffding_bentkus_p,
    hoeffding_p,
    upper_bound,
)
from cleanrank.ragged import ranks


def population(n_queries, seed, n_docs=12):
    """Queries of unequal difficulty and prevalence, with scores."""
    rng = np.random.default_rng(seed)
    share = rng.beta(1.0, 3.0, size=(n_queries, 1))
    y = (rng.random((n_queries, n_docs)) < share).astype(int)
    scores = 2.0 * y + rng.gamma(1.0, 1.5, size=(n_queries, 1)) * rng.normal(size=y.shape)
    return scores.ravel(), cr.from_arrays(np.zeros((y.size, 1)), y.ravel(), group=[n_docs] * n_queries)


def risk_of(shown, data, risk):
    """The mean risk by its definition, query by query."""
    values = []
    for a, b in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        y, on = data.y[a:b] > 0, shown[a:b]
        if risk == "false_negatives" and y.any():
            values.append((y & ~on).sum() / y.sum())
        elif risk == "false_positives" and (~y).any():
            values.append((on & ~y).sum() / (~y).sum())
        elif risk == "false_discovery":
            values.append((on & ~y).sum() / max(on.sum(), 1))
    return np.mean(values), len(values)


GRID = np.linspace(-4, 8, 60)


@pytest.mark.parametrize("risk", RISKS)
@pytest.mark.parametrize("cut", ["score", "rank"])
def test_the_cut_is_the_boldest_that_passes_in_a_row(risk, cut):
    scores, data = population(150, 1)
    grid = GRID if cut == "score" else np.arange(1, 13)
    alpha = 0.8 if (risk, cut) == ("false_discovery", "rank") else 0.3
    found = calibrate_cutoff(scores, data, risk, alpha, delta=0.1, cut=cut, grid=grid)
    safest_first = sorted(grid, reverse=(risk == "false_negatives") != (cut == "score"))
    best = None
    for at in safest_first:
        shown = scores >= at if cut == "score" else ranks(scores, data.indptr) <= at
        mean, n = risk_of(shown, data, risk)
        if hoeffding_bentkus_p(mean, n, alpha) > 0.1:
            break
        best = at, mean
    assert best is not None
    assert found.at == pytest.approx(best[0])
    assert found.empirical == pytest.approx(best[1])
    assert found.n_queries == n
    assert found.empirical < found.upper <= alpha + 1e-9
    np.testing.assert_array_equal(
        found.keep(scores, data),
        scores >= found.at if cut == "score" else ranks(scores, data.indptr) <= found.at,
    )


@pytest.mark.parametrize(
    ("risk", "method"), [("false_negatives", "ltt"), ("false_negatives", "rcps"), ("false_discovery", "ltt")]
)
def test_the_limit_is_broken_no_more_often_than_delta(risk, method):
    alpha, delta, trials = 0.25, 0.1, 200
    everyone_scores, everyone = population(20_000, 99)
    broken = 0
    for trial in range(trials):
        scores, data = population(80, 1000 + trial)
        grid = GRID if risk == "false_discovery" else None
        found = calibrate_cutoff(scores, data, risk, alpha, delta, method=method, grid=grid)
        broken += true_risk(found, everyone_scores, everyone, risk) > alpha
    assert broken <= delta * trials + 2 * math.sqrt(trials * delta * (1 - delta))


def true_risk(found, scores, data, risk):
    """As ``risk_of``, for many queries of 12 documents at once."""
    on, y = found.keep(scores, data).reshape(-1, 12), data.y.reshape(-1, 12) > 0
    if risk == "false_discovery":
        return ((on & ~y).sum(axis=1) / np.maximum(on.sum(axis=1), 1)).mean()
    some = y.any(axis=1)
    return ((y & ~on)[some].sum(axis=1) / y[some].sum(axis=1)).mean()


def test_a_cut_without_a_guarantee_is_broken_much_more_often():
    """The test above can fail: a cut where the mean of the sample meets the limit breaks it often."""
    everyone_scores, everyone = population(20_000, 99)
    broken = 0
    for trial in range(40):
        scores, data = population(80, 1000 + trial)
        risks = [risk_of(scores >= at, data, "false_negatives")[0] for at in GRID[::3]]
        at = GRID[::3][np.flatnonzero(np.array(risks) <= 0.25).max()]
        naive = calibrate_cutoff(scores, data, "false_negatives", 0.9, 0.9, grid=[at])
        broken += true_risk(naive, everyone_scores, everyone, "false_negatives") > 0.25
    assert broken > 10


def test_p_values_by_their_formulas():
    assert hoeffding_p(0.0, 29, 0.1) == pytest.approx(0.9**29)
    r, a, n = 0.05, 0.1, 200
    h = r * math.log(r / a) + (1 - r) * math.log((1 - r) / (1 - a))
    assert hoeffding_p(r, n, a) == pytest.approx(math.exp(-n * h))
    assert bentkus_p(r, n, a) == pytest.approx(math.e * stats.binom.cdf(10, n, a))
    assert hoeffding_p(0.2, n, a) == 1.0
    assert bentkus_p(0.3, n, a) == 1.0


@pytest.mark.parametrize(("mean", "n"), [(0.051, 200), (0.0501, 200), (0.049, 200), (0.123, 37), (1 / 3, 10)])
def test_bentkus_rounds_the_sum_of_losses_up(mean, n):
    """The sum is seldom whole: the next whole number above it counts, never the one below."""
    above = math.ceil(round(n * mean, 9))
    assert bentkus_p(mean, n, 0.5) == pytest.approx(min(1.0, math.e * stats.binom.cdf(above, n, 0.5)))
    assert stats.binom.cdf(above, n, 0.5) > stats.binom.cdf(above - 1, n, 0.5)


def test_a_sum_that_is_whole_but_for_rounding_stays_whole():
    mean = float(np.mean([0.1] * 30))  # 30 x .1 is 3.0000000000000004
    assert bentkus_p(mean, 30, 0.3) == pytest.approx(min(1.0, math.e * stats.binom.cdf(3, 30, 0.3)))


def test_testing_stops_at_the_first_cut_that_fails():
    """The risk of false discovery falls, rises and falls again along the cuts; later passes do not count."""
    n = 200
    # Every query: relevant documents at 3 and 1, another one at 2, shown from the highest score on.
    data = cr.from_arrays(np.zeros((8 * n, 1)), np.tile([1, 0, 1, 1, 1, 1, 1, 1], n), group=[8] * n)
    scores = np.tile([3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0], n)
    risks = [risk_of(scores >= at, data, "false_discovery")[0] for at in (3.0, 2.0, 1.0)]
    assert risks == pytest.approx([0.0, 0.5, 0.125])
    cut = calibrate_cutoff(scores, data, "false_discovery", 0.3, 0.05, grid=[1.0, 2.0, 3.0])
    # The cut at 1 has a risk of .125 and would pass on its own, but lies behind one that fails.
    assert hoeffding_bentkus_p(0.125, n, 0.3) < 0.05 < hoeffding_bentkus_p(0.5, n, 0.3)
    assert (cut.at, cut.empirical) == (3.0, 0.0)
    assert calibrate_cutoff(scores, data, "false_discovery", 0.3, 0.05, grid=[1.0, 3.0]).at == 1.0


@pytest.mark.parametrize("bound", BOUNDS)
def test_p_values_are_valid_at_the_limit(bound):
    rng = np.random.default_rng(0)
    means = rng.beta(0.2, 1.8, size=(4000, 60)).mean(axis=1)
    p = np.array([BOUNDS[bound](m, 60, 0.1) for m in means])
    for level in (0.01, 0.05, 0.2):
        assert (p <= level).mean() <= level + 2 * math.sqrt(level / 4000)


@pytest.mark.parametrize("bound", BOUNDS)
def test_upper_bound_inverts_the_p_value(bound):
    upper = upper_bound(0.05, 200, 0.05, bound)
    assert BOUNDS[bound](0.05, 200, upper) == pytest.approx(0.05, abs=1e-6)


def test_too_few_queries_are_refused_with_the_number_needed():
    scores, data = population(60, 0)
    few = data.select_queries(np.arange(20))
    with pytest.raises(CleanrankError, match=r"must number at least 29 .* got"):
        calibrate_cutoff(scores[: len(few)], few, "false_discovery", 0.1, 0.05, grid=GRID)


def test_the_number_needed_is_the_least_and_soon_found_for_a_tiny_limit():
    scores, data = population(60, 0)
    for alpha, need in ((0.01, 299), (1e-9, 2_995_732_273)):
        with pytest.raises(CleanrankError, match=f"must number at least {need} "):
            calibrate_cutoff(scores, data, "false_positives", alpha, 0.05)
        assert need == math.ceil(math.log(0.05) / math.log1p(-alpha))


def test_documents_of_equal_score_are_shown_together():
    """Queries of a relevant and another document with one score: a cut at the tie must show both of them."""
    y = np.tile([1, 0], 40)
    data = cr.from_arrays(np.zeros((80, 1)), y, group=[2] * 40)
    scores = np.tile([1.0, 1.0], 40)
    found = calibrate_cutoff(scores, data, "false_negatives", 0.1, 0.05)
    assert (found.at, found.empirical) == (1.0, 0.0)
    assert found.keep(scores, data).all()
    hidden = calibrate_cutoff(scores, data, "false_positives", 0.1, 0.05)
    assert hidden.trivial
    assert not hidden.keep(scores, data).any()


def test_queries_without_a_relevant_document_do_not_dilute_the_risk():
    y = np.concatenate([np.tile([1, 0], 40), np.zeros(200, dtype=int)])
    data = cr.from_arrays(np.zeros((280, 1)), y, group=[2] * 140)
    scores = np.concatenate([np.tile([1.0, 0.0], 40), np.zeros(200)])
    assert calibrate_cutoff(scores, data, "false_negatives", 0.1, 0.05).n_queries == 40
    assert calibrate_cutoff(scores, data, "false_positives", 0.1, 0.05).n_queries == 140


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ((0.5, 0, 0.1), "n must be an integer >= 1"),
        ((1.5, 9, 0.1), "mean must be a number >= 0 and <= 1"),
        ((0.5, 9, 2), "delta must be a number > 0 and < 1"),
    ],
)
def test_upper_bound_refuses_what_is_no_mean(call, message):
    with pytest.raises(CleanrankError, match=message):
        upper_bound(*call)


def test_nothing_can_be_guaranteed_but_the_trivial():
    rng = np.random.default_rng(0)
    y = (rng.random((100, 10)) < 0.1).astype(int)
    data = cr.from_arrays(np.zeros((1000, 1)), y.ravel(), group=[10] * 100)
    scores = rng.normal(size=1000)
    found = calibrate_cutoff(scores, data, "false_discovery", 0.05, 0.05, cut="rank")
    assert found.trivial
    assert not found.keep(scores, data).any()
    assert "trivial" in repr(found)
    everything = calibrate_cutoff(scores, data, "false_negatives", 0.1, 0.05, grid=[5.0])
    assert everything.trivial
    assert everything.keep(scores, data).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"risk": "false_discovry"}, "Did you mean 'false_discovery'"),
        ({"risk": "false_discovery"}, "grid must be given"),
        ({"risk": "false_discovery", "grid": GRID, "method": "rcps"}, "must be 'ltt'"),
        ({"alpha": 0}, "alpha must be a number > 0 and < 1"),
        ({"delta": 1}, "delta must be a number > 0 and < 1"),
        ({"grid": [np.nan]}, "finite cuts"),
        ({"grid": ["a"]}, "grid must hold finite cuts; got"),
        ({"relevant": 9}, "has a meaning, with a grade of at least 9"),
        ({"relevant": 0, "risk": "false_positives"}, "has a meaning, with grades below 0"),
        ({"relevant": "x"}, "relevant must be an integer"),
    ],
)
def test_complaints(call, message):
    scores, data = population(60, 0)
    with pytest.raises(CleanrankError, match=message):
        calibrate_cutoff(scores, data, **call)
