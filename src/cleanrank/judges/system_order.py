"""Does a judge order systems as gold labels do? Rank correlations, swaps that matter, and bias of levels.

Values are (S, Q): a line per system, a column per query, NaN where a measure leaves a query out. Intervals
come from draws of queries with replacement, the same queries for both judges and all systems.

Kendall's tau-b counts pairs of systems in the same order less pairs in the other, over the pairs that neither
ties. AP correlation (tau-AP, Yilmaz et al. 2008) weighs the top: over the systems in the order of the judge,
the mean share of those above that belong above by the gold labels, doubled, less 1. Gold is the reference; it
is not symmetric. A pair that gold ties counts one half, one that the judge ties one half on either side.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cleanrank.errors import invalid
from cleanrank.metrics.significance import paired_t_tests
from cleanrank.types import FloatArray, IntArray

TOP = 10
SIGNIFICANT = 0.05
DRAWS = 1000
STREAM = 1502
LISTED = 20


@dataclass(frozen=True)
class Span:
    """A figure with its interval; the ends are NaN where there is none."""

    value: float
    low: float = float("nan")
    high: float = float("nan")

    def to_json(self) -> dict[str, float | None]:
        """Plain values."""
        return {k: v if np.isfinite(v) else None for k, v in vars(self).items()}

    def __str__(self) -> str:
        interval = f" [{self.low:.3f}, {self.high:.3f}]" if self.low == self.low else ""
        return f"{self.value:.3f}{interval}"


@dataclass(frozen=True)
class Swap:
    """Two systems whose order gold labels are sure of and the judge turns round."""

    better: str
    worse: str
    gold: float
    judge: float
    gold_p: float
    judge_p: float


@dataclass(frozen=True, eq=False)
class SystemOrder:
    """Systems under the labels of a judge and under gold labels, by one measure.

    Attributes:
        measure: its text, with the convention.
        systems: names.
        gold: (S,) means by gold labels.
        judge: (S,) means by the judge's labels.
        bias: mean over systems of judge less gold.
        biases: (S,) judge less gold of every system.
        inside: share of systems whose gold mean lies in the interval that the judge's labels give.
        errors_of_bias: (S,) a system's bias in standard errors of its mean.
        tau: Kendall's tau-b.
        tau_ap: AP correlation of the judge's order with gold as the reference.
        top_tau: tau-b among the ten systems that are best by gold labels; NaN with fewer than three systems.
        pairs: of systems.
        significant: pairs whose difference is significant by gold labels.
        kept: of these, pairs significant in the same direction by the judge's.
        reversed: of these, pairs that the judge orders the other way.
        wrong: of these, pairs significant in the other direction by the judge's.
        invented: pairs significant by the judge's labels and not by gold.
        swaps: the reversed pairs, those with the largest difference by gold labels first, at most 20.
    """

    measure: str
    systems: tuple[str, ...]
    gold: FloatArray
    judge: FloatArray
    bias: Span
    biases: FloatArray
    inside: float
    errors_of_bias: FloatArray
    tau: Span
    tau_ap: Span
    top_tau: Span
    pairs: int
    significant: int
    kept: int
    reversed: int
    wrong: int
    invented: int
    swaps: tuple[Swap, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        record = dict(vars(self))
        for name, value in record.items():
            if isinstance(value, Span):
                record[name] = value.to_json()
            elif isinstance(value, np.ndarray):
                record[name] = [float(v) if np.isfinite(v) else None for v in value]
        record["systems"], record["swaps"] = list(self.systems), [vars(swap) for swap in self.swaps]
        return record


def query_draws(n: int, draws: int, seed: int) -> FloatArray:
    """(draws, n): how often each of n queries is drawn, with replacement.

    >>> query_draws(4, 2, seed=0).sum(axis=1).tolist()
    [4.0, 4.0]
    """
    rng = np.random.default_rng([seed, STREAM])
    return rng.multinomial(n, np.full(n, 1 / n), size=draws).astype(np.float64)


def spans(value: float, drawn: FloatArray, level: float) -> Span:
    """A figure with the percentile interval of its draws, stretched to hold the figure itself.

    Rank correlations of resampled queries lie below that of all queries, since drawing adds noise to both
    orders: the interval of the draws alone may miss the figure.
    """
    kept = drawn[np.isfinite(drawn)]
    if len(kept) < 2 or not np.isfinite(value):
        return Span(float(value))
    low, high = np.quantile(kept, [(1 - level) / 2, (1 + level) / 2])
    return Span(float(value), float(min(low, value)), float(max(high, value)))


def system_order(
    gold: FloatArray,
    judge: FloatArray,
    systems: Sequence[str],
    *,
    measure: str = "",
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> SystemOrder:
    """Compares the order and the levels of systems under two sets of labels.

    Args:
        gold: (S, Q) values per query by gold labels.
        judge: the same by the judge's labels.
        systems: names, one per line.
        measure: what was measured.
        level: of the intervals.
        draws: of queries with replacement.
        seed: same seed, same intervals.

    Returns:
        Correlations of the order, swaps, and how far the levels are off.

    >>> gold = np.array([[0.1, 0.2, 0.3], [0.2, 0.3, 0.5], [0.5, 0.4, 0.9]])
    >>> order = system_order(gold, gold[[1, 0, 2]], ["a", "b", "c"])
    >>> round(order.tau.value, 3), order.bias.value
    (0.333, 0.0)
    """
    if gold.shape != judge.shape or gold.ndim != 2 or len(systems) != len(gold) or not gold.size:
        shapes = f"{gold.shape} and {judge.shape} for {len(systems)} systems"
        raise invalid("gold and judge", "must be (systems, queries) of values, at least one", shapes)
    # A query that either set of labels leaves out is left out for both.
    kept = ~np.isnan(gold).any(axis=0) & ~np.isnan(judge).any(axis=0)
    if not kept.any():
        raise invalid("values", "must have a query that both sets of labels can measure", "none")
    gold, judge = gold[:, kept], judge[:, kept]
    S, Q = gold.shape
    weights = query_draws(Q, draws, seed) / Q if Q > 1 else np.zeros((0, Q))
    means, drawn = (gold.mean(axis=1), judge.mean(axis=1)), (weights @ gold.T, weights @ judge.T)
    best = np.argsort(-means[0], kind="stable")[:TOP]
    change = judge - gold
    biases = change.mean(axis=1)
    errors, inside = np.full(S, np.nan), float("nan")
    if Q > 1:
        low, high = np.quantile(drawn[1], [(1 - level) / 2, (1 + level) / 2], axis=0)
        inside = float(((low <= means[0]) & (means[0] <= high)).mean())
        spread = judge.std(axis=1, ddof=1) / np.sqrt(Q)
        errors = np.divide(biases, spread, out=np.full(S, np.inf), where=spread > 0)
        errors[(spread == 0) & (biases == 0)] = 0.0

    def span(function: Any, columns: IntArray) -> Span:
        if len(columns) < 3:
            return Span(float("nan"))
        value = function(*(each[None, columns] for each in means))[0]
        return spans(value, function(*(each[:, columns] for each in drawn)), level)

    every = np.arange(S)
    return SystemOrder(
        measure,
        tuple(systems),
        *means,
        spans(float(biases.mean()), weights @ change.mean(axis=0), level),
        biases,
        inside,
        errors,
        span(kendall_tau, every),
        span(tau_ap, every),
        span(kendall_tau, best),
        **_swaps(gold, judge, systems),
    )


def kendall_tau(gold: FloatArray, judge: FloatArray) -> FloatArray:
    """Kendall's tau-b of every line of two tables (draws, systems); NaN where one of them ties all.

    >>> kendall_tau(np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 3.0, 2.0]])).round(3).tolist()
    [0.333]
    """
    first, second = np.triu_indices(gold.shape[1], 1)
    values = np.empty(len(gold))
    for i, (a, b) in enumerate(zip(gold, judge, strict=True)):
        x, y = np.sign(a[first] - a[second]), np.sign(b[first] - b[second])
        with np.errstate(invalid="ignore"):
            values[i] = (x @ y) / np.sqrt((x @ x) * (y @ y))
    return values


def tau_ap(gold: FloatArray, judge: FloatArray) -> FloatArray:
    """AP correlation of every line: the order of the judge with gold as the reference.

    >>> tau_ap(np.array([[3.0, 2.0, 1.0]]), np.array([[2.0, 3.0, 1.0]])).tolist()
    [0.0]
    """
    values = np.empty(len(gold))
    for i, (a, b) in enumerate(zip(gold, judge, strict=True)):
        order = np.sign(b[None, :] - b[:, None])  # 1 where the column stands above the line
        np.fill_diagonal(order, -1.0)
        above = (order > 0) + 0.5 * (order == 0)
        right = ((order > 0) * np.sign(a[None, :] - a[:, None])).sum(axis=1)
        counts = above.sum(axis=1)
        values[i] = (right[counts > 0] / counts[counts > 0]).mean() if (counts > 0).any() else np.nan
    return values


def _swaps(gold: FloatArray, judge: FloatArray, systems: Sequence[str]) -> dict[str, Any]:
    """How pairs of systems fare that differ significantly, by paired t-tests over queries."""
    S, Q = gold.shape
    first, second = np.triu_indices(S, 1)
    change = gold.mean(axis=1)[first] - gold.mean(axis=1)[second]
    by_judge = judge.mean(axis=1)[first] - judge.mean(axis=1)[second]
    p_gold, p_judge = np.ones((2, len(first)))
    if Q > 1 and S > 1:
        p_gold = paired_t_tests(gold[first], gold[second])
        p_judge = paired_t_tests(judge[first], judge[second])
    sure, sure_by_judge = p_gold < SIGNIFICANT, p_judge < SIGNIFICANT
    same, other = change * by_judge > 0, change * by_judge < 0
    turned = np.flatnonzero(sure & other)
    turned = turned[np.argsort(-np.abs(change[turned]), kind="stable")]
    listed = []
    for pair in turned[:LISTED]:
        names = systems[first[pair]], systems[second[pair]]
        better, worse = names if change[pair] > 0 else names[::-1]
        sign = float(np.sign(change[pair]))
        figures = sign * change[pair], sign * by_judge[pair], p_gold[pair], p_judge[pair]
        listed.append(Swap(better, worse, *(float(v) for v in figures)))
    return {
        "pairs": len(first),
        "significant": int(sure.sum()),
        "kept": int((sure & sure_by_judge & same).sum()),
        "reversed": len(turned),
        "wrong": int((sure & sure_by_judge & other).sum()),
        "invented": int((~sure & sure_by_judge).sum()),
        "swaps": tuple(listed),
    }
