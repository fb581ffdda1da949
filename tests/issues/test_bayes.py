from itertools import pairwise

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.issues.bayes import SHIFTS, SPREADS, bayes, bayes_by_query, invert_noise, settled


def drawn(spread, seed=0, queries=60, docs=12):
    """A prior, the likelihood of given grades and true grades, where queries shift the prior."""
    rng = np.random.default_rng([seed, 3])
    prior = rng.dirichlet([2.0, 1.0, 1.0], size=queries * docs)
    shift = np.repeat(rng.normal(scale=spread, size=queries), docs)[:, None]
    q = prior * np.exp(shift * np.arange(3))
    q /= q.sum(axis=1, keepdims=True)
    truth = (rng.random((len(q), 1)) > q.cumsum(axis=1)).sum(axis=1)
    T = 0.55 * np.eye(3) + 0.15
    given = (rng.random((len(q), 1)) > T[truth].cumsum(axis=1)).sum(axis=1)
    return prior, T.T[given], truth, np.arange(0, len(q) + 1, docs)


def test_queries_that_differ_are_learnt_from_and_alike_ones_left_alone():
    for spread, least, most in ((0.0, -0.005, 0.02), (1.0, 0.03, np.inf)):
        prior, likelihood, truth, indptr = drawn(spread)
        rows = np.arange(len(truth))
        posterior, shifted = bayes_by_query(prior, likelihood, indptr)
        assert posterior.sum(axis=1) == pytest.approx(1.0)
        assert shifted.sum(axis=1) == pytest.approx(1.0)
        alone = bayes(prior, likelihood)
        gain = np.log(posterior[rows, truth]).mean() - np.log(alone[rows, truth]).mean()
        assert least < gain < most


def test_the_posterior_of_a_query_is_the_sum_over_its_shifts():
    prior, likelihood, _, indptr = drawn(1.0, queries=3, docs=4)
    evidence, posteriors = [], []
    for spread in SPREADS:
        chance = np.exp(-(SHIFTS**2) / (2 * spread**2))
        chance /= chance.sum()
        total, out = 0.0, np.zeros_like(prior)
        for start, end in pairwise(indptr):
            weights = []
            for shift in SHIFTS:
                q = prior[start:end] * np.exp(shift * np.arange(3))
                q /= q.sum(axis=1, keepdims=True)
                weights.append(
                    (np.prod((q * likelihood[start:end]).sum(axis=1)), bayes(q, likelihood[start:end]))
                )
            joint = np.array([w for w, _ in weights]) * chance
            total += np.log(joint.sum())
            out[start:end] = sum(w / joint.sum() * each for w, (_, each) in zip(joint, weights, strict=True))
        evidence.append(total)
        posteriors.append(out)
    expected = posteriors[int(np.argmax(evidence))]
    assert bayes_by_query(prior, likelihood, indptr)[0] == pytest.approx(expected, abs=1e-6)


def test_known_rows_are_certain():
    probabilities = np.full((3, 2), 0.5)
    assert settled(probabilities, None) is probabilities
    assert settled(probabilities, [-1, 0, 1]).tolist() == [[0.5, 0.5], [1.0, 0.0], [0.0, 1.0]]


def test_suggested_grades_are_those_that_the_reasons_call_likeliest():
    noisy = cr.corrupt(cr.make_ranking(60, 6, docs_per_query=20, signal=0.9, seed=0), "one-way", 0.1, seed=1)
    found = cr.find_label_issues(noisy.data, folds=2, seed=0)
    p = np.stack([found.reasons[f"p_true_{grade}"] for grade in range(5)], axis=1)
    issues = found.is_label_issue
    assert issues.any()
    assert np.array_equal(found.suggested_label[issues], p.argmax(axis=1)[issues])


def test_solutions_outside_of_the_simplex_may_come_back_to_a_grade_that_they_had_lost():
    """EM that starts at an exact zero could never leave it."""
    T = np.array([[0.9, 0.1, 0.0], [0.2, 0.6, 0.2], [0.0, 0.1, 0.9]])
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.3, 0.3, 0.3], size=400)
    q = invert_noise(p, T)
    assert (np.linalg.solve(T.T, p.T).T < 0).any(axis=1).sum() > 100

    def likelihood(candidates):
        return (p * np.log(np.maximum(candidates @ T, 1e-300))).sum(axis=1)

    for grade in range(3):
        toward = 0.99 * q + 0.01 * np.eye(3)[grade]
        assert (likelihood(toward) <= likelihood(q) + 1e-7).all()


@pytest.mark.parametrize("low", range(4))
def test_whichever_grade_would_be_negative_the_solution_is_on_the_simplex(low):
    T = 0.6 * np.eye(4) + 0.1
    observed = np.full((1, 4), 0.31)
    observed[0, low] = 0.07  # less than the noise alone makes of it
    (q,) = invert_noise(observed, T)
    assert q.min() >= 0.0
    assert q.sum() == pytest.approx(1.0)
    assert np.delete(q, low) == pytest.approx(1 / 3, abs=0.01)
