from types import SimpleNamespace

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import CleanrankError, InvalidInputError
from cleanrank.metrics import noisy_labels
from cleanrank.metrics.evaluation import evaluate
from cleanrank.metrics.measure import Measure
from cleanrank.metrics.noisy_labels import coefficients, corrected, query_stats

T2 = np.array([[0.9, 0.1], [0.25, 0.75]])
T3 = np.array([[0.8, 0.15, 0.05], [0.1, 0.8, 0.1], [0.05, 0.2, 0.75]])

UNBIASED = ("dcg@3", "dcg:gain=linear:ties=average", "dcg@4:letor", "precision@2", "precision:relevant=2",
            "auc:micro", "auc:micro:ties=stable", "auc:micro:relevant=2", "pairacc:micro")  # fmt: skip


def make(rng, queries, sizes, shares):
    lengths = rng.integers(*sizes, queries)
    n = int(lengths.sum())
    y = rng.choice(len(shares), n, p=shares)
    data = cr.from_arrays(np.ones((n, 1)), y, qid=np.repeat(np.arange(queries), lengths))
    return data, y + rng.integers(0, 5, n).astype(float)


def corrupt(rng, data, T):
    drawn = rng.uniform(size=data.n_docs)[:, None] > T.cumsum(axis=1)[data.y]
    return data.with_labels(np.minimum(drawn.sum(axis=1), len(T) - 1))


@pytest.mark.parametrize("text", UNBIASED)
def test_no_noise_changes_nothing(text):
    data, s = make(np.random.default_rng(0), 20, (2, 9), [0.6, 0.3, 0.1])
    found = corrected(s, data, text, noise=np.eye(3))
    ours = evaluate(s, data, text)
    np.testing.assert_allclose(found.means[0], ours.means[found.measures[0].__str__()], atol=1e-12)
    np.testing.assert_allclose(found.by_query, ours.by_query, atol=1e-12)
    assert found.noisy[0] == pytest.approx(found.means[0])


def test_no_noise_changes_nothing_pooled():
    data, s = make(np.random.default_rng(0), 20, (2, 9), [0.6, 0.3, 0.1])
    texts = ["auc:pooled", "pairacc:pooled"]
    found = corrected(s, data, texts, noise=np.eye(3))
    np.testing.assert_allclose(found.means, list(evaluate(s, data, texts).means.values()), atol=1e-12)
    low, high = evaluate(s, data, texts).intervals()["auc:pooled"]
    assert (found.low[0], found.high[0]) == pytest.approx((low, high), abs=1e-9)


def test_corrected_values_are_unbiased():
    rng = np.random.default_rng(1)
    data, s = make(rng, 8, (3, 9), [0.6, 0.3, 0.1])
    measures = [Measure.parse(t) for t in UNBIASED]
    h = [coefficients(m, T3) for m in measures]
    draws = np.empty((1500, len(measures)))
    for r in range(len(draws)):
        noisy = corrupt(rng, data, T3)
        draws[r] = [(query_stats(m, s, noisy, 3)[0] @ c).mean() for m, c in zip(measures, h, strict=True)]
    truth = np.array(list(evaluate(s, data, measures).means.values()))
    error = (draws.mean(axis=0) - truth) / (draws.std(axis=0) / np.sqrt(len(draws)))
    assert np.abs(error).max() < 4


def test_pooled_auc_is_consistent():
    rng = np.random.default_rng(2)
    data, s = make(rng, 3000, (5, 15), [0.8, 0.2])
    noisy = corrupt(rng, data, T2)
    found = corrected(s, noisy, "auc:pooled", noise=T2)
    truth = evaluate(s, data, "auc:pooled").means["auc:pooled"]
    assert abs(found.noisy[0] - truth) > 0.05
    assert found.means[0] == pytest.approx(truth, abs=0.02)
    assert found.low[0] < truth < found.high[0]


@pytest.mark.slow
@pytest.mark.parametrize("text", ["dcg@5", "auc:micro", "auc:pooled", "precision@3"])
def test_intervals_cover_the_truth(text):
    """The truth is that of the population which queries are drawn from; 95 % of intervals hold it."""
    rng = np.random.default_rng(3)
    large, s = make(rng, 40_000, (5, 12), [0.8, 0.2])
    truth = evaluate(s, large, text).means[str(Measure.parse(text))]
    held = 0
    for trial in range(150):
        chosen = np.zeros(large.n_queries, dtype=bool)
        chosen[rng.choice(large.n_queries, 200, replace=False)] = True
        rows = np.repeat(chosen, large.lengths)
        found = corrected(s[rows], corrupt(rng, large.select(rows), T2), text, T2, seed=trial, resamples=1000)
        held += found.low[0] <= truth <= found.high[0]
    assert 0.88 <= held / 150 <= 0.99


def test_draws_of_the_matrix_widen_the_interval():
    rng = np.random.default_rng(4)
    data, s = make(rng, 300, (5, 12), [0.8, 0.2])
    noisy = corrupt(rng, data, T2)
    kept = rng.beta(90, 10, 400), rng.beta(75, 25, 400)
    drawn = np.stack([[[a, 1 - a], [1 - b, b]] for a, b in zip(*kept, strict=True)])
    for text in ("dcg@5", "auc:micro", "auc:pooled"):
        sure = corrected(s, noisy, text, T2)
        unsure = corrected(s, noisy, text, T2, matrix_draws=drawn)
        assert unsure.high[0] - unsure.low[0] > 1.1 * (sure.high[0] - sure.low[0])
        assert unsure.means[0] == sure.means[0]
        same = corrected(s, noisy, text, T2, matrix_draws=[T2, T2])
        assert (same.low[0], same.high[0]) == pytest.approx((sure.low[0], sure.high[0]), abs=1e-9)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ndcg@10", "ideal DCG"),
        ("map", "quadratic"),
        ("mrr", "product"),
        ("err", "product"),
        ("recall@5", "number of relevant"),
        ("tau", "untied pairs"),
        ("auc", "macro weighting"),
        ("pairacc", "macro weighting"),
        ("dcg@5:skip", "keep all queries"),
        ("dcg@5:ties=worst", "noisy labels"),
    ],
)
def test_other_measures_are_refused_with_the_reason(text, reason):
    data, s = make(np.random.default_rng(5), 3, (2, 5), [0.5, 0.5])
    with pytest.raises(InvalidInputError, match=reason):
        corrected(s, data, text, noise=T2)


@pytest.mark.parametrize(
    ("noise", "words"),
    [
        ([[0.5, 0.5], [0.5, 0.5]], "condition number"),
        ([[0.5, 0.5], [0.50001, 0.49999]], "condition number"),
        ([[0.9, 0.2], [0.1, 0.9]], "sum to 1"),
        ([[1.1, -0.1], [0.0, 1.0]], "must hold probabilities"),
        ([[1.0]], "square matrix"),
        (np.ones((2, 3)), "square matrix"),
        (None, "matrix"),
    ],
)
def test_bad_matrices_are_refused(noise, words):
    data, s = make(np.random.default_rng(6), 3, (4, 9), [0.5, 0.5])
    with pytest.raises(CleanrankError, match=words):
        corrected(s, data, "dcg@5", noise=noise)


def test_a_profile_is_as_good_as_its_matrix():
    class Profile:
        matrix = T2

    data, s = make(np.random.default_rng(7), 9, (4, 9), [0.5, 0.5])
    np.testing.assert_array_equal(
        corrected(s, data, "dcg@5", noise=Profile()).means, corrected(s, data, "dcg@5", noise=T2).means
    )
    assert "as labelled" in repr(corrected(s, data, "dcg@5", noise=T2))


def test_bad_draws_and_gains_are_refused():
    data, s = make(np.random.default_rng(8), 9, (4, 9), [0.5, 0.5])
    with pytest.raises(InvalidInputError, match="matrix_draws"):
        corrected(s, data, "dcg@5", noise=T2, matrix_draws=np.ones((4, 3, 3)) / 3)
    with pytest.raises(InvalidInputError, match="must be invertible in all but"):
        corrected(s, data, "dcg@5", noise=T2, matrix_draws=np.full((4, 2, 2), 0.5))
    with pytest.raises(InvalidInputError, match=r"matrix_draws must have rows .* at draw 1, row 0"):
        corrected(s, data, "dcg@5", noise=T2, matrix_draws=[T2, [[0.9, 0.2], [0.1, 0.9]]])
    with pytest.raises(InvalidInputError, match="gains"):
        corrected(s, data.with_labels(data.y, gains=data.y * 1.0), "dcg@5", noise=T2)
    for level in (0, 1):
        with pytest.raises(InvalidInputError, match="level must be a number > 0 and < 1"):
            corrected(s, data, "dcg@5", noise=T2, level=level)


def test_an_estimate_brings_its_own_uncertainty():
    data = cr.make_ranking(60, n_features=3, seed=4)
    scores = data.y + np.random.default_rng(0).normal(size=data.n_docs)
    matrix = 0.8 * np.eye(5) + 0.04
    draws = np.stack([share * np.eye(5) + (1 - share) / 5 for share in np.linspace(0.5, 1.0, 50)])
    estimate = SimpleNamespace(matrix=matrix, draws=draws)
    plain, wide = (corrected(scores, data, "dcg@10", noise=noise) for noise in (matrix, estimate))
    explicit = corrected(scores, data, "dcg@10", noise=matrix, matrix_draws=draws)
    assert wide.means == plain.means
    assert wide.high - wide.low > 1.2 * (plain.high - plain.low)
    assert (wide.low, wide.high) == (explicit.low, explicit.high)


def test_a_family_with_its_rate_names_a_matrix():
    data = cr.from_arrays([[1.0]] * 2, [0, 1], qid=[1, 1])
    named = corrected([1, 2], data, "dcg@10", noise="uniform:0.1")
    assert named.means == corrected([1, 2], data, "dcg@10", noise=[[0.9, 0.1], [0.1, 0.9]]).means
    with pytest.raises(CleanrankError, match="no file 'uniform'"):
        corrected([1, 2], data, "dcg@10", noise="uniform")


def test_draws_that_cannot_be_inverted_count_at_both_ends(monkeypatch):
    values, unknown = np.arange(1000.0), np.arange(1000) >= 990
    monkeypatch.setattr(noisy_labels, "resampled_means", lambda *arguments: (values, unknown))
    nothing = np.zeros((1, 1))
    assert noisy_labels._interval(Measure("dcg"), nothing, nothing, nothing, 0.95, 0, 1000) == (14.0, 975.0)


@pytest.mark.parametrize("spoilt", [[-0.1, 1.1], [0.5, 0.6]])
def test_the_draw_that_is_no_matrix_is_named(spoilt):
    draws = np.stack([T2, T2])
    draws[1, 1] = spoilt
    with pytest.raises(CleanrankError, match=r"sum to 1; got .* at draw 1, row 1\."):
        noisy_labels._checked_draws(draws, T2)
