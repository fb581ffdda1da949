"""The measures in plain NumPy, query by query: used where numba is missing, and the oracle of the kernels.

Symbols: grades y, scores s (-inf: not retrieved) and gains of one query of n documents; ``order`` its
ranking; ``group[r]`` the number of the tie that rank r belongs to.
"""

from itertools import pairwise

import numpy as np

from cleanrank.metrics.measure import Measure, discount
from cleanrank.types import Array, FloatArray, IntArray


def query_measures(
    measures: tuple[Measure, ...],
    y: Array,
    scores: Array,
    indptr: IntArray,
    gains: Array | None,
    judged: Array | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Values and weights, one row per measure and one column per query."""
    values = np.empty((len(measures), len(indptr) - 1))
    weights = np.ones_like(values)
    for q, (start, stop) in enumerate(pairwise(indptr)):
        grades, s = y[start:stop], scores[start:stop].astype(np.float64)
        own_gains = None if gains is None else gains[start:stop]
        known = np.ones(len(s), dtype=bool) if judged is None else judged[start:stop]
        for m, measure in enumerate(measures):
            values[m, q], weights[m, q] = _value(measure, grades, s, own_gains, known)
    return values, weights


def _value(
    m: Measure, y: Array, s: FloatArray, own_gains: Array | None, judged: Array
) -> tuple[float, float]:
    if m.name in ("auc", "pairacc"):
        return _pair_value(m, y, s)
    if m.name == "tau":
        value = _tau(y, s)
    elif m.name in ("ndcg", "dcg"):
        value = _gain_value(m, _gains(m, y) if own_gains is None else own_gains.astype(np.float64), s)
    elif m.name == "err":
        value = _err(m, (np.exp2(y.astype(float)) - 1.0) / 2.0 ** (m.max_grade or 0), s)
    else:
        value = _binary_value(m, (y >= (m.relevant or 1)).astype(np.float64), s, judged)
    return (_when_empty(m) if np.isnan(value) else value), 1.0


def _gains(m: Measure, y: Array) -> FloatArray:
    grades = y.astype(np.float64)
    return np.exp2(grades) - 1.0 if m.gain == "exp" else grades


def _when_empty(m: Measure) -> float:
    return {"one": 1.0, "zero": 0.0, "skip": np.nan, None: np.nan}[m.empty]


def _ranked(m: Measure, worth: FloatArray, s: FloatArray) -> tuple[FloatArray, IntArray]:
    """(worth of the documents by rank, bounds of the ties); without averaging each rank is its own tie."""
    order = np.lexsort((worth, -s)) if m.ties == "worst" else np.argsort(-s, kind="stable")
    if m.ties != "average":
        return worth[order], np.arange(len(s) + 1)
    new = np.flatnonzero(np.diff(s[order])) + 1
    return worth[order], np.concatenate(([0], new, [len(s)]))


def _tie_means(x: FloatArray, ties: IntArray) -> FloatArray:
    sizes = np.diff(ties)
    return np.repeat(np.add.reduceat(x, ties[:-1]) / sizes, sizes)


def _gain_value(m: Measure, gain: FloatArray, s: FloatArray) -> float:
    n = len(s)
    cut = min(m.cutoff or n, n)
    weight = discount(m.discount or "log2", cut)
    ideal = float(np.sort(gain)[::-1][:cut] @ weight)
    if not ideal > 0:
        return np.nan
    kept = s > -np.inf
    if m.short == "zero" and kept.sum() < (m.cutoff or 0):
        return 0.0
    ranked = _tie_means(*_ranked(m, gain[kept], s[kept]))[:cut]
    dcg = float(ranked @ weight[: len(ranked)])
    return dcg if m.name == "dcg" else dcg / ideal


def _binary_value(m: Measure, relevant: FloatArray, s: FloatArray, judged: Array) -> float:
    total, unwanted = relevant.sum(), (judged & (relevant == 0)).sum()
    if total == 0:
        return np.nan
    kept = s > -np.inf
    relevant, s, judged = relevant[kept], s[kept], judged[kept]
    n = len(s)
    if n == 0:
        return 0.0
    if m.name == "bpref":
        return _bpref(m, relevant, s, judged, total, unwanted) / float(total)
    cut = min(m.cutoff or n, n)
    x, ties = _ranked(m, relevant, s)
    share = _tie_means(x, ties)
    if m.name == "precision":
        return float(share[:cut].sum() / (m.cutoff or n))
    if m.name in ("recall", "rprec"):
        return float(share[: int(total) if m.name == "rprec" else cut].sum() / total)
    sizes = np.repeat(np.diff(ties), np.diff(ties))
    inside = share * sizes
    place = np.arange(n) - np.repeat(ties[:-1], np.diff(ties))
    before = np.repeat(np.concatenate(([0], np.cumsum(x)))[ties[:-1]], np.diff(ties))
    rank = np.arange(1, n + 1)
    if m.name == "map":
        each = np.divide(inside - 1, sizes - 1, out=np.zeros(n), where=sizes > 1)
        return float((share * (before + 1 + place * each) / rank)[:cut].sum() / total)
    none_yet = np.where((before > 0) | (inside == 0), 0.0, (sizes - place - inside) / (sizes - place))
    first = np.flatnonzero((before == 0) & (inside > 0))
    reach = np.concatenate(([1.0], np.cumprod(none_yet[first])[:-1]))
    here = reach * inside[first] / (sizes - place)[first] / (rank[first] if m.name == "mrr" else 1.0)
    return float(here[first < cut].sum())


def _bpref(
    m: Measure, relevant: FloatArray, s: FloatArray, judged: Array, total: int, unwanted: int
) -> float:
    """The sum over relevant documents of the share of preferences that are right."""
    order = np.lexsort((relevant, -s)) if m.ties == "worst" else np.argsort(-s, kind="stable")
    ties = _ranked(m, relevant, s)[1]
    value, above = 0.0, 0
    for start, end in pairwise(ties):
        group = order[start:end]
        bad = int((judged[group] & (relevant[group] == 0)).sum())
        lost = np.minimum(above + np.arange(bad + 1), total).mean() / max(min(total, unwanted), 1)
        value += float(relevant[group].sum()) * (1.0 - lost)
        above += bad
    return value


def _err(m: Measure, stop: FloatArray, s: FloatArray) -> float:
    if not stop.any():
        return np.nan
    cut = min(m.cutoff or len(s), len(s))
    x, ties = _ranked(m, stop, s)
    total, reach = 0.0, 1.0
    for start, end in pairwise(ties):
        mean = np.zeros(end - start + 1)
        mean[0] = 1.0
        for i, p in enumerate(x[start:end], 1):
            j = np.arange(1, i + 1)
            mean[1 : i + 1] = (i - j) / i * mean[1 : i + 1] + j / i * (1 - p) * mean[:i]
        lost = (mean[:-1] - mean[1:]) / np.arange(start + 1, end + 1)
        total += reach * float(lost[: max(cut - start, 0)].sum())
        reach *= float(mean[-1])
    return total


def _right_pairs(m: Measure, high: FloatArray, low: FloatArray) -> float:
    """Pairs (one of high, one of low) in the right order, ties by the policy of the measure."""
    ordered = np.sort(low)
    below = np.searchsorted(ordered, high, side="left").sum()
    equal = np.searchsorted(ordered, high, side="right").sum() - below
    return float(below + (0.5 * equal if m.ties == "average" else 0.0))


def _pair_value(m: Measure, y: Array, s: FloatArray) -> tuple[float, float]:
    n = len(s)
    if m.ties in ("stable", "doc_id"):
        order = np.argsort(-s, kind="stable")
        s = np.empty(n)
        s[order] = -np.arange(n, dtype=np.float64)
    c = (y >= (m.relevant or 1)).astype(np.int64) if m.name == "auc" else y
    right = every = 0.0
    for grade in np.unique(c)[:-1]:
        high, low = s[c > grade], s[c == grade]
        right += _right_pairs(m, high, low)
        every += float(len(high)) * len(low)
    if m.weighting == "micro":
        return (right / (float(n) * n), 1.0) if n else (np.nan, 0.0)
    value = right / every if every else np.nan
    if m.weighting == "pooled":
        return value, every
    return (_when_empty(m) if every == 0 else value), 1.0


def _tau(y: Array, s: FloatArray) -> float:
    def tied(x: Array) -> float:
        counts = np.unique(x, return_counts=True)[1].astype(np.float64)
        return float((counts * (counts - 1) / 2).sum())

    n = len(s)
    every = n * (n - 1) / 2
    graded, scored = every - tied(y), every - tied(s)
    if graded == 0 or scored == 0:
        return np.nan
    right = sum(_right_pairs(Measure("auc"), s[y > g], s[y == g]) for g in np.unique(y))
    return float((2 * right - graded) / (np.sqrt(graded) * np.sqrt(scored)))
