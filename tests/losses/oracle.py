"""LambdaRank gradients as one writes them down: pair by pair, in plain Python."""

import itertools
import math

import numpy as np


def ranking(scores):
    return sorted(range(len(scores)), key=lambda k: (-scores[k], k))


def lambda_query(scores, gains, *, sigma=1.0, level=30, norm=True):
    """(gradients, hessians) of one query in float64."""
    n = len(scores)
    order = ranking(scores)
    discount = [1 / math.log2(r + 2) for r in range(n)]
    ideal = sum(g * discount[r] for r, g in enumerate(sorted(gains, reverse=True)[:level]))
    grad, hess = np.zeros(n), np.zeros(n)
    if ideal == 0 or n < 2:
        return grad, hess
    total = 0.0
    for r in range(n):
        for t in range(r + 1, n):
            i, j = order[r], order[t]
            if r >= level or gains[i] == gains[j]:
                continue
            if gains[i] < gains[j]:
                i, j = j, i
            delta = (gains[i] - gains[j]) * abs(discount[r] - discount[t]) / ideal
            if norm and max(scores) != min(scores):
                delta /= 0.01 + abs(scores[i] - scores[j])
            gap = sigma * (scores[i] - scores[j])
            p = 1 / (1 + math.exp(gap)) if gap < 700 else 0.0
            lam = sigma * p * delta
            grad[i] -= lam
            grad[j] += lam
            hess[i] += sigma * sigma * p * (1 - p) * delta
            hess[j] += sigma * sigma * p * (1 - p) * delta
            total += 2 * lam
    if norm and total > 0:
        grad *= math.log2(1 + total) / total
        hess *= math.log2(1 + total) / total
    return grad, hess


def lambda_all(scores, gains, indptr, **options):
    parts = [
        lambda_query(list(scores[a:b]), list(gains[a:b]), **options) for a, b in itertools.pairwise(indptr)
    ]
    return np.concatenate([p[0] for p in parts]), np.concatenate([p[1] for p in parts])
