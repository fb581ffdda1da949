"""Intervals of corrected measures hold the truth when the matrix is an estimate; long run: benchmarks/."""

import numpy as np

import cleanrank as cr
from cleanrank.metrics.noisy_labels import corrected

LENIENT = np.array([[0.70, 0.20, 0.10], [0.05, 0.75, 0.20], [0.02, 0.08, 0.90]])
DOCUMENTS = 20
REPETITIONS = 60


def judged(n, seed):
    rng = np.random.default_rng(seed)
    relevance = 0.7 * rng.normal(size=(n, DOCUMENTS)) + 0.3 * rng.normal(size=(n, 1))
    scores = relevance + 0.7 * rng.normal(size=relevance.shape)
    y = np.digitize(relevance, [0.4, 1.0]).ravel()
    group = np.full(n, DOCUMENTS)
    return cr.from_arrays(np.zeros((len(y), 1)), y, group=group), scores.ravel()


def test_intervals_with_the_draws_of_an_estimate_hold_the_population_value():
    everyone, scores = judged(5_000, 0)
    value = cr.evaluate(scores, everyone, "precision@10").means["precision@10"]
    held = {"draws": 0, "matrix alone": 0}
    for seed in range(1, REPETITIONS + 1):
        truth, scores = judged(150, seed)
        labelled = cr.corrupt(truth, LENIENT, seed=seed).data
        sample = cr.sample_gold(labelled, 200, seed=seed)
        estimate = cr.estimate_noise(labelled, gold=(sample.row_ids, truth.y[sample.rows]), seed=seed)
        for way, noise in (("draws", estimate), ("matrix alone", estimate.profile)):
            result = corrected(
                scores, labelled, "precision@10", noise, seed=seed, resamples=500, allow_dependent=True
            )
            held[way] += bool(result.low[0] <= value <= result.high[0])
    # Binomial with 60 trials: fewer than 53 at .95 has a probability of .01.
    assert held["draws"] >= 53
    assert held["matrix alone"] < held["draws"]
