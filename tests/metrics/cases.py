"""Rankings for tests, and the mean over all orders of tied documents by brute force."""

from itertools import permutations, product

import numpy as np

from cleanrank.metrics.measure import CHOICES, CONVENTIONS, MEASURES, Measure, as_measures


def every_measure(cutoffs=(None, 1, 3, 10, 40)):
    """All names x cut-offs x ties x conventions x weightings."""
    texts = []
    for name, kind in MEASURES.items():
        ties = CHOICES["ties"] if "ties" in kind.parts else [None]
        weightings = CHOICES["weighting"] if "weighting" in kind.parts else [None]
        for cutoff, tie, weighting, convention in product(
            cutoffs if kind.cutoff else [None], ties, weightings, CONVENTIONS
        ):
            words = [name if cutoff is None else f"{name}@{cutoff}", convention]
            words += [weighting] if weighting else []
            words += [f"ties={tie}"] if tie else []
            texts.append(":".join(words))
    return as_measures(texts)


def random_ranking(rng, queries=30, longest=60, kind="distinct"):
    """(y, scores, indptr) with empty queries, queries of one grade and queries without relevant documents."""
    sizes = rng.integers(0, longest, queries)
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    n = int(indptr[-1])
    y = rng.choice(5, n, p=[0.6, 0.2, 0.1, 0.05, 0.05]).astype(np.int32)
    for q in rng.choice(queries, queries // 4, replace=False):
        y[indptr[q] : indptr[q + 1]] = rng.choice([0, 0, 2])
    scores = {
        "distinct": lambda: rng.permutation(n).astype(float),
        "tied": lambda: rng.integers(0, 4, n).astype(float),
        "last bits": lambda: 1.0 + rng.integers(0, 40, n) * 2.0**-52,
        "constant": lambda: np.zeros(n),
        "signed zeros": lambda: rng.choice([-0.0, 0.0, -1.0, 1.0], n),
    }[kind]()
    return y, scores, indptr


def tie_orders(scores):
    """All rankings that agree with the scores."""
    groups = [np.flatnonzero(scores == s) for s in sorted(set(scores), reverse=True)]
    for chosen in product(*(permutations(g) for g in groups)):
        yield np.concatenate([np.array(c) for c in chosen])


def brute(name, y, k, order, max_grade=4):
    """One measure of one strict ranking, from its textbook definition."""
    g = [int(y[d]) for d in order]
    n = len(g)
    cut = n if k is None else min(k, n)
    rel = [x >= 1 for x in g]
    if name in ("dcg", "ndcg"):
        dcg = sum((2.0 ** g[r] - 1) / np.log2(r + 2) for r in range(cut))
        best = sorted(g, reverse=True)
        ideal = sum((2.0 ** best[r] - 1) / np.log2(r + 2) for r in range(cut))
        return dcg if name == "dcg" else dcg / ideal
    if name == "map":
        return sum(sum(rel[: r + 1]) / (r + 1) for r in range(cut) if rel[r]) / sum(rel)
    if name == "mrr":
        return next((1 / (r + 1) for r in range(cut) if rel[r]), 0.0)
    if name == "precision":
        return sum(rel[:cut]) / (n if k is None else k)
    if name == "recall":
        return sum(rel[:cut]) / sum(rel)
    if name == "err":
        total, reach = 0.0, 1.0
        for r in range(cut):
            p = (2.0 ** g[r] - 1) / 2.0**max_grade
            total, reach = total + reach * p / (r + 1), reach * (1 - p)
        return total
    pairs = [
        (a, b)
        for a in range(n)
        for b in range(n)
        if (rel[a] and not rel[b] if name == "auc" else g[a] > g[b])
    ]
    return sum(a < b for a, b in pairs) / len(pairs)


def one(measure: "str | Measure", y, scores, gains=None):
    """The value of one query."""
    from cleanrank.metrics.evaluation import evaluate_arrays

    return float(evaluate_arrays(y, scores, [0, len(y)], measure, gains)[measure][0])
