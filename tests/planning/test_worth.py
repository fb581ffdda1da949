"""Effective pairs against what is really learnt: a linear ranker on labels bought each way.

Documents have normal features; their true grade comes from a hidden direction with noise. Every way labels
its queries, and the ranker is the sum of all pair differences. Its squared signal-to-noise ratio cos² / (1 -
cos²) with the hidden direction should rank the ways as effective pairs do.
"""

import numpy as np
import pytest
from scipy.stats import norm, spearmanr

from cleanrank.planning import plan_labels
from cleanrank.planning.candidates import coarsened
from cleanrank.planning.judges import judge_matrix, median_matrix

from .test_judges_topk import naive_order

FEATURES, SCATTER, POOL = 10, 0.7, 3000


def net_wins(labels):
    return np.sign(labels[:, None] - labels[None, :]).sum(axis=1)


def documents(n, order, hidden, rng):
    X = rng.normal(size=(n, FEATURES))
    score = X @ hidden + SCATTER * rng.normal(size=n)
    cuts = norm.ppf(np.cumsum(order.proportions)[:-1]) * np.sqrt(1 + SCATTER**2)
    return X, np.digitize(score, cuts)


def query(option, order, hidden, rng):
    """Features and net wins of the labelled documents of one query."""
    n = order.documents
    if option.grades is None:
        X, true = documents(n, order, hidden, rng)
        best = naive_order(true.tolist(), order.top_k, option.error_rate, iter(rng.random, None))
        wins = np.full(n, -float(order.top_k))
        wins[best] = n - 1 - 2 * np.arange(order.top_k)
        return X, wins
    groups = coarsened(order.proportions, option.grades)
    T = median_matrix(judge_matrix(order.error, option.grades), option.repeats)[groups]
    X, true = documents(n if option.sampling == "natural" else POOL, order, hidden, rng)
    given = (rng.random(len(true))[:, None] >= np.cumsum(T[true], axis=1)[:, :-1]).sum(axis=1)
    if option.sampling == "balanced":
        by = given if order.screen_cost is None else groups[true]
        kept = [np.flatnonzero(by == m)[: n // option.grades] for m in range(option.grades)]
        X, given = X[np.concatenate(kept)], given[np.concatenate(kept)]
    return X, net_wins(given)


def learnt(option, order, rng, times=40):
    found = []
    for _ in range(times):
        hidden = rng.normal(size=FEATURES)
        hidden /= np.linalg.norm(hidden)
        ranker = np.zeros(FEATURES)
        for _ in range(option.queries):
            X, wins = query(option, order, hidden, rng)
            ranker += wins @ X
        found.append(ranker @ hidden / np.linalg.norm(ranker))
    cosine = np.mean(found)
    return cosine**2 / (1 - cosine**2)


@pytest.mark.parametrize(
    ("asked", "published"),
    [
        ({}, 0.986),
        ({"prevalence": 0.1}, 0.955),
        ({"prevalence": 0.1, "screen_cost": 0.01}, 0.985),
        ({"error": 0.25}, 0.974),
    ],
)
def test_effective_pairs_rank_the_ways_as_learning_does(asked, published):
    """The rank correlations are those of docs/plan.md."""
    found = plan_labels(60, cost=0.1, **asked)
    rng = np.random.default_rng(0)
    there = [o for o in found.options if not o.problem and o.queries > 1]
    worth = [learnt(o, found.order, rng) for o in there]
    assert len(there) > 8
    assert spearmanr([o.effective_pairs for o in there], worth)[0] == pytest.approx(published, abs=6e-4)
    assert worth[[o.name for o in there].index(found.recommended)] > 0.75 * max(worth)
