"""Which of two systems is better by the true labels, judged by noisy ones and their noise matrix.

Symbols as in ``noisy_labels``.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from cleanrank.metrics.evaluation import Scores, as_rows, check_retrieved, checked_scores
from cleanrank.metrics.measure import Measure, MeasureLike, as_measures
from cleanrank.metrics.noisy_labels import (
    check_assumption,
    check_correctable,
    coefficients,
    corrected,
    grade_values,
    invertible,
    known_noise,
    loaded_noise,
    query_stats,
    rank_weights,
    resampled_means,
    tie_order,
)
from cleanrank.metrics.significance import checked_count
from cleanrank.types import Array, FloatArray, RankingData
from cleanrank.validation import one_of

ROWS_IN_MEMORY = 512


def order_probability(
    scores_a: Scores,
    scores_b: Scores,
    data: RankingData,
    measure: MeasureLike = "dcg@10",
    noise: Any = None,
    over: str = "queries",
    seed: int = 0,
    resamples: int = 10_000,
    *,
    level: float = 0.95,
    order: str | None = None,
    allow_dependent: bool = False,
) -> float:
    """The probability that the corrected order of two systems is the true one.

    Args:
        scores_a: of one system.
        scores_b: of the other.
        data: with noisy grades.
        measure: one that can be corrected, see ``corrected``.
        noise: T, as ``NoiseProfile.of`` reads it; draws of an estimate make the order less sure.
        over: "queries": for the population that the queries come from, by bootstrap over queries (the noise
            of their labels included). "labels": for these very queries, where only the labels are in doubt:
            Phi(|D| / sd), with the standard deviation of D over the noise.
            Both take every true difference as equally likely beforehand; between systems that are known to be
            nearly equal, they are too sure.
        seed: of the bootstrap.
        resamples: of the bootstrap.
        level: an estimate must be invertible in all but (1 - level) / 2 of its draws; those count as wrong.
        order: of the scores, as in ``evaluate``.
        allow_dependent: as in ``corrected``.

    Returns:
        A probability.

    Equal systems give 1/2.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[1.0]] * 40, [1, 0] * 20, qid=[i // 2 for i in range(40)])
    >>> good, bad = [1, 0] * 20, [0, 1] * 20
    >>> order_probability(good, bad, data, "dcg@1", noise=[[0.9, 0.1], [0.1, 0.9]], over="labels") > 0.99
    True
    """
    one_of("over", over, ("queries", "labels"))
    resamples = checked_count("resamples", resamples)
    by_row, data, convention = as_rows([scores_a, scores_b], data, order)
    m = as_measures(measure, convention)[0]
    noise = loaded_noise(noise, data)
    check_assumption(noise, data, by_row, allow_dependent)
    T, drawn = known_noise(noise, data, level)
    check_correctable(m, data, len(T))
    a, b = (tie_order(m, checked_scores(s, data.n_docs, data), data) for s in by_row)
    check_retrieved((m,), np.minimum(a, b))
    # The denominator of a pooled measure is that of both systems, so the numerators decide.
    stats = query_stats(m, a, data, len(T))[0] - query_stats(m, b, data, len(T))[0]
    observed = float((stats @ coefficients(m, T)).sum())
    if over == "queries":
        # Only the sign matters: one per query stands in for the denominator.
        plain = replace(m, weighting="micro") if m.weighting else m
        sums, unknown = resampled_means(plain, stats, np.ones((len(stats), 1)), drawn, seed, resamples)
        sums = sums * np.sign(observed)
        right = ((sums > 0) & ~unknown).sum() + 0.5 * ((sums == 0) & ~unknown).sum()
        return float(right / resamples)
    usable = drawn[invertible(drawn)]
    by_draw = [float((stats @ coefficients(m, each)).sum()) for each in usable]
    return _normal(abs(observed), max(label_variance(m, a, b, data, T), 0.0) + float(np.var(by_draw)))


def compare_corrected(
    systems: "Mapping[str, Scores]",
    data: RankingData,
    measures: "MeasureLike | Iterable[MeasureLike]" = "dcg@10",
    *,
    noise: Any,
    baseline: str | None = None,
    level: float = 0.95,
    seed: int = 0,
    order: str | None = None,
    allow_dependent: bool = False,
) -> list[dict[str, Any]]:
    """Corrected measures of systems, and how sure the order of each with the baseline (the first) is.

    Returns:
        A record per system and measure: ``Corrected.rows`` and, but for the baseline, ``order_probability``.
    """
    first = one_of("system", next(iter(systems)) if baseline is None else baseline, systems)
    arrays, data, convention = as_rows(list(systems.values()), data, order)
    by_name = dict(zip(systems, arrays, strict=True))
    parsed = as_measures(measures, convention)
    noise = loaded_noise(noise, data)
    check_assumption(noise, data, arrays, allow_dependent)  # once, for all systems together
    rows = []
    for name, scores in by_name.items():
        own = corrected(scores, data, parsed, noise, level, seed, order="data", allow_dependent=True)
        for m, row in zip(parsed, own.rows(), strict=True):
            if name != first:
                row["order_probability"] = order_probability(
                    scores, by_name[first], data, m, noise, seed=seed, level=level, order="data",
                    allow_dependent=True,
                )  # fmt: skip
            rows.append({"system": name, **row})
    return rows


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
        for low in range(0, stop - start, ROWS_IN_MEMORY):
            rows = slice(low, low + ROWS_IN_MEMORY)
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
    tied: FloatArray = equal & (place[rows, None] < place) if m.ties != "average" else 0.5 * equal
    return above + tied
