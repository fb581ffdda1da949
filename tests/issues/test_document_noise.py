import numpy as np
import pytest
from scipy.optimize import minimize

import cleanrank as cr
from cleanrank.issues.bayes import bayes, likelihoods
from cleanrank.issues.document_noise import (
    DESCRIBED,
    LEARNING,
    LOOKING,
    _design,
    _fit,
    _log_likelihood,
    describe_documents,
    document_noise,
)
from cleanrank.issues.posterior import posterior_of

T = np.array([[0.8, 0.15, 0.05], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7]])


def judged(seed, leniency=0.0, queries=80, docs=15):
    """Rows whose P(true | features) is known, true grades, and given grades of judges lenient by query."""
    rng = np.random.default_rng([seed, 5])
    N = queries * docs
    prior = rng.dirichlet([2.0, 1.0, 0.6], size=N)
    truth = (rng.random((N, 1)) > prior.cumsum(axis=1)).sum(axis=1)
    lenient = np.repeat(rng.normal(size=queries), docs)[:, None]
    chances = T[truth] * np.exp(leniency * lenient * np.arange(3))
    chances /= chances.sum(axis=1, keepdims=True)
    given = (rng.random((N, 1)) > chances.cumsum(axis=1)).sum(axis=1)
    data = cr.from_arrays(np.zeros((N, 1)), given, group=[docs] * queries)
    return data, prior, truth


def log_likelihoods(seed, leniency, n_gold):
    """The mean log P(true grade) of rows that are not gold: under the matrix, tilted; was that used?"""
    data, prior, truth = judged(seed, leniency)
    gold = np.random.default_rng(seed).permutation(data.n_docs)[:n_gold]
    known = np.full(data.n_docs, -1)
    known[gold] = truth[gold]
    base = bayes(prior, likelihoods(data.y, T))
    noise = document_noise(data, base, prior, T, known, seed=seed)
    rest = np.flatnonzero(known < 0)
    posteriors = (base, noise.posterior(data, base, prior, T))
    return *(np.log(p[rest, truth[rest]]).mean() for p in posteriors), noise.is_used


@pytest.mark.parametrize("n_gold", [100, 300])
def test_errors_that_follow_the_matrix_are_left_to_it(n_gold):
    matrix, tilted, used = np.mean([log_likelihoods(seed, 0.0, n_gold) for seed in range(8)], axis=0)
    assert used < 0.6
    assert tilted > matrix - 0.01


def test_lenient_judges_are_learnt_from_gold_rows_and_better_from_more():
    few, many = (np.mean([log_likelihoods(seed, 1.5, n) for seed in range(4)], axis=0) for n in (100, 400))
    assert many[2] == 1.0
    assert few[1] > few[0]
    assert many[1] > many[0] + 0.05
    assert many[1] - many[0] > few[1] - few[0]


def test_a_tilt_carries_over_to_other_queries():
    data, prior, truth = judged(1, 1.5)
    known = np.where(np.arange(data.n_docs) % 3 == 0, truth, -1)
    noise = document_noise(data, bayes(prior, likelihoods(data.y, T)), prior, T, known)
    others, other_prior, other_truth = judged(2, 1.5)
    rows = np.arange(others.n_docs)
    matrix = bayes(other_prior, likelihoods(others.y, T))
    tilted = noise.posterior(others, matrix, other_prior, T)
    assert tilted.sum(axis=1) == pytest.approx(1.0)
    assert np.log(tilted[rows, other_truth]).mean() > np.log(matrix[rows, other_truth]).mean() + 0.05
    assert "errors depend on the document" in str(noise)


def test_rankers_learn_from_a_tilt_that_is_sure_alone():
    data, prior, truth = judged(0, 0.8)
    known = np.where(np.arange(data.n_docs) % 6 == 0, truth, -1)
    base = bayes(prior, likelihoods(data.y, T))
    by_gain = {
        least: document_noise(data, base, prior, T, known, least_gain=least) for least in (LOOKING, LEARNING)
    }
    gain, error = by_gain[LOOKING].gain, by_gain[LOOKING].error
    assert LOOKING * error < gain < LEARNING * error
    assert [noise.is_used for noise in by_gain.values()] == [True, False]
    posterior = posterior_of(data, T, known=known, folds=2)
    assert posterior.documents.is_used == (posterior.documents.gain > LEARNING * posterior.documents.error)


def test_few_gold_rows_say_nothing():
    data, prior, truth = judged(0, 1.5)
    known = np.full(data.n_docs, -1)
    known[:20] = truth[:20]
    base = bayes(prior, likelihoods(data.y, T))
    noise = document_noise(data, base, prior, T, known)
    assert not noise.is_used
    assert "follow the noise matrix" in str(noise)
    assert np.array_equal(noise.posterior(data, base, prior, T), base)


def test_the_tilt_is_where_the_penalised_likelihood_is_largest():
    data, prior, truth = judged(3, 1.0, queries=20)
    z = describe_documents(data, prior, T)
    logs = np.log(bayes(prior, likelihoods(data.y, T)))
    rows = logs, _design(logs, (z - z.mean(axis=0)) / z.std(axis=0), data.y), truth

    def loss(tilt):
        return 3.0 * (tilt**2).sum() / 2 - _log_likelihood(tilt, *rows).sum()

    tilt = _fit(*rows, ridge=3.0, start=np.zeros(3 + 2 * len(DESCRIBED)))
    oracle = minimize(loss, np.zeros_like(tilt)).x
    assert tilt == pytest.approx(oracle, abs=1e-3)


def test_documents_are_described_by_place_lead_and_leniency():
    prior = np.array([[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    data = cr.from_arrays(np.zeros((3, 1)), [1, 2, 1], qid=[1, 1, 2])
    described = dict(zip(DESCRIBED, describe_documents(data, prior, np.eye(3)).T, strict=True))
    assert described["place in the query"].tolist() == [0.25, 0.75, 0.5]
    assert described["lead over the query's mean"].tolist() == [-0.75, 0.75, 0.0]
    assert described["leniency of the query"].tolist() == [0.25, 0.25, 1.0]
    assert described["doubt about the grade"] == pytest.approx([np.log(2), 0.0, 0.0])
