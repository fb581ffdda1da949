import numpy as np
import pytest

from cleanrank.errors import CleanrankError
from cleanrank.metrics import noisy_order
from cleanrank.metrics.evaluation import evaluate
from cleanrank.metrics.measure import Measure
from cleanrank.metrics.noisy_labels import coefficients, query_stats
from cleanrank.metrics.noisy_order import label_variance, order_probability

from .test_noisy_labels import T2, T3, corrupt, make

MEASURES = ("dcg@3", "dcg:gain=linear:ties=average", "precision@2", "auc:micro", "auc:micro:ties=stable",
            "pairacc:micro", "auc:pooled")  # fmt: skip


def test_the_variance_over_labels_is_estimated_without_bias():
    rng = np.random.default_rng(0)
    data, a = make(rng, 6, (3, 9), [0.6, 0.3, 0.1])
    b = rng.integers(0, 5, data.n_docs).astype(float)
    measures = [Measure.parse(t) for t in MEASURES]
    h = [coefficients(m, T3) for m in measures]
    change = np.empty((800, len(measures)))
    guess = np.empty_like(change)
    for r in range(len(change)):
        noisy = corrupt(rng, data, T3)
        for i, m in enumerate(measures):
            stats = query_stats(m, a, noisy, 3)[0] - query_stats(m, b, noisy, 3)[0]
            change[r, i] = (stats @ h[i]).sum()
            guess[r, i] = label_variance(m, a, b, noisy, T3)
    np.testing.assert_allclose(guess.mean(axis=0), change.var(axis=0), rtol=0.2)


def test_long_queries_are_cut_into_blocks(monkeypatch):

    rng = np.random.default_rng(1)
    data, a = make(rng, 2, (40, 60), [0.6, 0.3, 0.1])
    b = rng.permutation(a)
    whole = label_variance(Measure.parse("auc:micro"), a, b, data, T3)
    monkeypatch.setattr(noisy_order, "ROWS_IN_MEMORY", 7)
    assert label_variance(Measure.parse("auc:micro"), a, b, data, T3) == pytest.approx(whole, rel=1e-12)


@pytest.mark.parametrize("over", ["queries", "labels"])
def test_equal_systems_give_a_half_and_order_does_not_matter(over):
    rng = np.random.default_rng(2)
    data, a = make(rng, 30, (3, 9), [0.6, 0.4])
    b = a + rng.normal(size=len(a))
    assert order_probability(a, a, data, "dcg@3", T2, over) == 0.5
    one, other = (order_probability(*pair, data, "dcg@3", T2, over) for pair in ((a, b), (b, a)))
    assert one == pytest.approx(other, abs=1e-12)
    assert one >= 0.5


def test_without_noise_these_queries_are_certain():
    rng = np.random.default_rng(3)
    data, a = make(rng, 30, (3, 9), [0.6, 0.4])
    b = a + rng.normal(size=len(a))
    assert order_probability(a, b, data, "dcg@3", np.eye(2), "labels") == 1.0
    assert order_probability(a, b, data, "dcg@3", np.eye(2), "queries") < 1.0


@pytest.mark.slow
@pytest.mark.parametrize("text", ["dcg@5", "auc:micro", "precision@3"])
def test_probabilities_over_labels_are_calibrated(text):
    """Over many pairs of systems, the mean probability is the share of right orders; a tie is half right."""
    rng = np.random.default_rng(4)
    said, right = [], []
    for _ in range(300):
        data, _ = make(rng, 25, (5, 12), [0.7, 0.3])
        a, b = (data.y * rng.uniform(-2, 2) + rng.normal(size=data.n_docs) for _ in range(2))
        noisy = corrupt(rng, data, T2)
        m = Measure.parse(text)
        seen = (query_stats(m, a, noisy, 2)[0] - query_stats(m, b, noisy, 2)[0]) @ coefficients(m, T2)
        truth = np.mean(evaluate(a, data, m)[m] - evaluate(b, data, m)[m])
        said.append(order_probability(a, b, noisy, m, T2, "labels"))
        right.append((1 + np.sign(seen.sum()) * np.sign(truth.round(9))) / 2)
    assert 0.6 < np.mean(said) < 0.99
    assert np.mean(right) == pytest.approx(np.mean(said), abs=0.05)


@pytest.mark.slow
def test_probabilities_over_queries_are_calibrated():
    rng = np.random.default_rng(5)
    large, _ = make(rng, 20_000, (5, 12), [0.7, 0.3])
    said, right = [], []
    for trial in range(300):
        a, b = (large.y * rng.uniform(0, 1) + rng.normal(size=large.n_docs) for _ in range(2))
        truth = evaluate(a, large, "dcg@5").means["dcg@5"] - evaluate(b, large, "dcg@5").means["dcg@5"]
        rows = np.repeat(np.isin(np.arange(large.n_queries), rng.choice(large.n_queries, 40)), large.lengths)
        noisy = corrupt(rng, large.select(rows), T2)
        said.append(order_probability(a[rows], b[rows], noisy, "dcg@5", T2, seed=trial, resamples=1000))
        m = Measure.parse("dcg@5")
        stats = query_stats(m, a[rows], noisy, 2)[0] - query_stats(m, b[rows], noisy, 2)[0]
        right.append(np.sign((stats @ coefficients(m, T2)).sum()) == np.sign(truth))
    assert np.mean(right) == pytest.approx(np.mean(said), abs=0.06)


def test_what_cannot_be_corrected_is_refused():
    data, a = make(np.random.default_rng(6), 5, (3, 9), [0.6, 0.4])
    with pytest.raises(CleanrankError, match="cannot be corrected"):
        order_probability(a, a, data, "ndcg@10", T2)
    with pytest.raises(CleanrankError, match="unknown over"):
        order_probability(a, a, data, "dcg@10", T2, over="documents")
