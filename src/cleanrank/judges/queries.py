"""Means over queries from a judge's labels on all queries and gold labels on some whole queries.

Y_q is a measure of query q under gold labels, f_q under the judge's; gold holds n of the N queries. With a
power lambda in [0, 1],

    mean over gold of (Y - lambda f) + lambda x mean of f

is unbiased whatever the judge is worth: prediction-powered inference with power tuning (PPI++, Angelopoulos,
Duchi and Zrnic 2023). Two targets:

* *these queries*: the mean of Y over the N queries, of which gold is a simple random sample. The mean of f is
  over all N. This is the regression estimator of survey sampling; lambda is the slope of Y on f, and the
  variance s^2 (1/n - 1/N + (mean of f - mean over gold)^2 / sum of squares of f) with n - 2 degrees of
  freedom holds at small n, where the plug-in variance of PPI++ is too small;
* *queries like these*: the mean over a population of which all N are a sample. The mean of f is over the
  queries without gold, lambda is that of PPI++, and the variance of that mean is added, with the degrees of
  freedom of Satterthwaite (1946).

Symbols: rows are systems, (S, n) and (S, N - n).
"""

from dataclasses import dataclass

import numpy as np

from cleanrank.types import FloatArray

TARGETS = ("these queries", "queries like these")
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class PoweredMeans:
    """Means of S systems.

    Attributes:
        mean: (S,).
        standard_error: (S,).
        df: (S,) degrees of freedom of Student's t.
        power: (S,) lambda.
        residuals: (S, n), Y - lambda f.
    """

    mean: FloatArray
    standard_error: FloatArray
    df: FloatArray
    power: FloatArray
    residuals: FloatArray


def powered_means(gold: FloatArray, judge: FloatArray, others: FloatArray, target: str) -> PoweredMeans:
    """Means from gold queries and a judge.

    Args:
        gold: (S, n) values of the gold queries under gold labels.
        judge: (S, n) the same under the judge's.
        others: (S, N - n) values of all other queries under the judge's.
        target: one of TARGETS.

    >>> gold, judge = np.array([[0.2, 0.4, 0.9]]), np.array([[0.3, 0.5, 1.0]])
    >>> means = powered_means(gold, judge, np.array([[0.6, 0.8]]), TARGETS[0])
    >>> means.mean.round(6).tolist(), means.power.round(6).tolist()  # the judge is .1 too high throughout
    ([0.54], [1.0])
    """
    n, rest = gold.shape[1], others.shape[1]
    if rest == 0 or n < 3:  # gold says it all, or too little to say what the judge is worth
        return gold_means(gold, rest, target)
    fluctuation = judge - judge.mean(axis=1, keepdims=True)
    squares = (fluctuation**2).sum(axis=1)
    slope = (fluctuation * gold).sum(axis=1) / np.maximum(squares, TINY)
    everywhere = np.hstack((judge, others))
    if target == TARGETS[1]:
        spread = (1 + n / rest) * everywhere.var(axis=1, ddof=1)
        slope = (fluctuation * gold).sum(axis=1) / n / np.maximum(spread, TINY)
    power = np.where(squares > TINY, np.clip(slope, 0.0, 1.0), 0.0)
    residuals = gold - power[:, None] * judge
    variance = residuals.var(axis=1) * n / (n - 2)
    lever = np.where(power > 0, everywhere.mean(axis=1) - judge.mean(axis=1), 0.0) ** 2
    lever /= np.maximum(squares, TINY)
    if target == TARGETS[0]:
        mean = residuals.mean(axis=1) + power * everywhere.mean(axis=1)
        total, df = variance * (1 / n - 1 / (n + rest) + lever), np.full(len(gold), n - 2.0)
    else:
        mean = residuals.mean(axis=1) + power * others.mean(axis=1)
        from_gold = variance * (1 / n + lever)
        from_others = power**2 * others.var(axis=1, ddof=1) / rest if rest > 1 else np.zeros(len(gold))
        total = from_gold + from_others
        df = total**2 / np.maximum(from_gold**2 / (n - 2) + from_others**2 / max(rest - 1, 1), TINY)
    return PoweredMeans(mean, np.sqrt(total), np.maximum(df, 1.0), power, residuals)


def gold_means(gold: FloatArray, rest: int, target: str) -> PoweredMeans:
    """Means from gold queries alone, with ``rest`` queries not judged."""
    n = gold.shape[1]
    share = rest / (n + rest) if target == TARGETS[0] else 1.0
    error = np.sqrt(gold.var(axis=1, ddof=1) / n * share) if n > 1 else np.full(len(gold), np.inf)
    return PoweredMeans(gold.mean(axis=1), error, np.full(len(gold), n - 1.0), np.zeros(len(gold)), gold)
