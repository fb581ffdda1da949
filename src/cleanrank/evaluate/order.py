"""How sure is the order of two systems when the test labels are noisy?

The corrected difference D of two systems is unbiased for the true one. Its variance over the noise, for the
queries at hand, is a closed form; it contains the true grades, which T^-1 estimates without bias from the
labels as it does for the difference itself. Symbols are those of ``cleanrank.evaluate.corrected``.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.evaluate import resampling
from cleanrank.evaluate.compare import checked_scores
from cleanrank.evaluate.corrected import (
    check_correctable,
    coefficients,
    grade_values,
    noise_matrix,
    query_stats,
    rank_weights,
)
from cleanrank.evaluate.measures import Measure, MeasureLike, as_measures
from cleanrank.evaluate.significance import checked_count
from cleanrank.types import Array, FloatArray, RankingData
from cleanrank.validation import one_of

OVER = ("queries", "labels")
BLOCK = 512


def order_probability(
    scores_a: npt.ArrayLike,
    scores_b: npt.ArrayLike,
    data: RankingData,
    measure: MeasureLike = "dcg@10",
    noise: Any = None,
    over: str = "queries",
    seed: int = 0,
    resamples: int = 10_000,
) -> float:
    """The probability that the corrected order of two systems is the true one.

    Args:
        scores_a: of one system.
        scores_b: of the other.
        data: with noisy grades.
        measure: one that can be corrected, see ``corrected``.
        noise: T (C, C), or an object with a ``matrix``.
        over: "queries": for the population that the queries come from, by bootstrap over queries (the noise
            of their labels included). "labels": for these very queries, where only the labels are in doubt:
            Phi(|D| / sd), with the standard deviation of D over the noise.
            Both take every true difference as equally likely beforehand; between systems that are known to be
            nearly equal, they are too sure.
        seed: of the bootstrap.
        resamples: of the bootstrap.

    Equal systems give 1/2.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[1.0]] * 40, [1, 0] * 20, qid=[i // 2 for i in range(40)])
    >>> good, bad = [1, 0] * 20, [0, 1] * 20
    >>> order_probability(good, bad, data, "dcg@1", noise=[[0.9, 0.1], [0.1, 0.9]], over="labels") > 0.99
    True
    """
    one_of("over", over, OVER)
    resamples = checked_count("resamples", resamples)
    m = as_measures(measure)[0]
    T = noise_matrix(noise, data)
    check_correctable(m, data, len(T))
    a, b = (checked_scores(s, data.n_docs, data) for s in (scores_a, scores_b))
    # The denominator of a pooled measure is that of both systems, so the numerators decide.
    stats = query_stats(m, a, data, len(T))[0] - query_stats(m, b, data, len(T))[0]
    change = stats @ coefficients(m, T)
    observed = float(change.sum())
    if over == "queries":
        sums = resampling.resampled_sums(change[:, None], resamples, seed)[:, 0] * np.sign(observed)
        return float(((sums > 0).sum() + 0.5 * (sums == 0).sum()) / resamples)
    return _normal(abs(observed), max(label_variance(m, a, b, data, T), 0.0))


def _normal(size: float, variance: float) -> float:
    if variance == 0.0:
        return 1.0 if size > 0.0 else 0.5
    from scipy import special

    return float(special.ndtr(size / np.sqrt(variance)))


def label_variance(m: Measure, a: Array, b: Array, data: RankingData, T: FloatArray) -> float:
    """The variance over the noise of the corrected difference (a sum over queries), without bias."""
    if m.name in ("dcg", "precision"):
        weights = rank_weights(m, a, data) - rank_weights(m, b, data)
        g = grade_values(m, len(T))
        spread = np.linalg.solve(T, T @ np.linalg.solve(T, g) ** 2 - g**2)
        return float((weights**2) @ spread[data.y])
    return _pair_variance(m, a, b, data, T)


def _pair_variance(m: Measure, a: Array, b: Array, data: RankingData, T: FloatArray) -> float:
    """With K_ji = 1 - K_ij the difference is sum_(i<j) dK_ij e_i' A e_j, A = G - G', e the corrected one-hot.

    To first order each document i adds b_i' cov(e_i) b_i, b_i = sum_j dK_ij A e_j. The estimate of b_i holds
    the noise of the e_j, which counts each pair twice more; each pair's own product belongs there once.
    """
    inverse = np.linalg.inv(T)
    g = grade_values(m, len(T))
    A = g - g.T
    one_hot = np.stack([np.diag(e) for e in np.eye(len(T))])
    true_spread = np.einsum("yj,ja,jb->yab", T, inverse, inverse) - one_hot
    spread = np.einsum("ly,yab->lab", inverse, true_spread)
    turned = np.einsum("ab,lbc,dc->lad", A, spread, A)
    product = np.einsum("lab,mab->lm", spread, turned)
    total = 0.0
    scale = np.ones(data.n_queries) if m.weighting == "pooled" else 1.0 / np.maximum(data.lengths, 1) ** 4.0
    for q, (start, stop) in enumerate(pairwise(data.indptr)):
        y = data.y[start:stop]
        first = second = 0.0
        for low in range(0, stop - start, BLOCK):
            rows = slice(low, low + BLOCK)
            step = _above(m, a[start:stop], rows) - _above(m, b[start:stop], rows)
            pull = step @ (inverse[y] @ A.T)
            first += float(np.einsum("ia,iab,ib->", pull, spread[y[rows]], pull))
            second += 0.5 * float((step**2 * product[np.ix_(y[rows], y)]).sum())
        total += (first - second) * scale[q]
    return total


def _above(m: Measure, s: Array, rows: slice) -> FloatArray:
    """K (rows, n): 1 where a row ranks above a document, 1/2 where they tie (by row if ties are stable)."""
    mine, place = s[rows, None], np.arange(len(s))
    above: FloatArray = (mine > s).astype(np.float64)
    equal = mine == s
    tied: FloatArray = equal & (place[rows, None] < place) if m.ties == "stable" else 0.5 * equal
    return above + tied
