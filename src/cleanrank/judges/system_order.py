"""Does a judge order systems as gold labels do? Rank correlations, swaps that matter, and bias of levels.

Values are (S, Q): a line per system, a column per query, NaN where a measure leaves a query out. Intervals
are over queries: Student's t for means; for rank correlations the jackknife on Fisher's scale (arctanh), also
with t. These are wide and not exact, since close systems make the correlation of a sample smaller than that
of all queries: redrawing the queries of TREC DL 2019, a nominal .95 held the correlation of all of them in
.69 to 1.00 of cases (.92 on average over tau and tau-AP, NDCG@10 and precision@10, three judges). The
percentile bootstrap, which adds that noise once more, held it in .02 to .98 (.69 on average;
benchmarks/tau_coverage.py).

Kendall's tau-b counts pairs of systems in the same order less pairs in the other, over the pairs that neither
ties. AP correlation (tau-AP, Yilmaz et al. 2008) weighs the top: over the systems in the order of the judge,
the mean share of those above that belong above by the gold labels, doubled, less 1. Gold is the reference; it
is not symmetric. A pair that gold ties counts one half, one that the judge ties one half on either side.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from cleanrank.errors import invalid
from cleanrank.metrics.significance import paired_t_tests
from cleanrank.types import FloatArray

TOP = 10
SIGNIFICANT = 0.05
LISTED = 20
DIGITS = 12  # means that differ by less tie: sums of equal values in another order


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
            elif isinstance(value, float) and not np.isfinite(value):
                record[name] = None
        record["systems"], record["swaps"] = list(self.systems), [vars(swap) for swap in self.swaps]
        return record


def t_interval(values: FloatArray, level: float = 0.95) -> Span:
    """The mean of values of independent queries with Student's interval; without ends for a single one.

    >>> str(t_interval(np.array([0.0, 1.0, 2.0])))
    '1.000 [-1.484, 3.484]'
    """
    from scipy.special import stdtrit

    n, mean = len(values), float(np.mean(values))
    if n < 2:
        return Span(mean)
    half = float(stdtrit(n - 1, (1 + level) / 2) * np.std(values, ddof=1) / np.sqrt(n))
    return Span(mean, mean - half, mean + half)


def jackknife(
    correlation: Callable[[FloatArray, FloatArray], FloatArray],
    gold: FloatArray,
    judge: FloatArray,
    level: float = 0.95,
) -> Span:
    """A rank correlation of the systems' means (of values (S, Q)) with its interval over queries."""
    from scipy.special import stdtrit

    S, Q = gold.shape
    if S < 3:
        return Span(float("nan"))
    left_out = (1.0 - np.eye(Q)) / max(Q - 1, 1)
    weights = np.concatenate((np.full((1, Q), 1 / Q), left_out))
    values = correlation(*((weights @ each.T).round(DIGITS) for each in (gold, judge)))
    if Q < 3 or not np.isfinite(values).all():
        return Span(float(values[0]))
    most = 1.0 - 1.0 / (S * (S - 1) / 2)  # half a swap from perfect, where arctanh is not finite
    scaled = np.arctanh(np.clip(values, -most, most))
    error = np.sqrt((Q - 1) / Q * ((scaled[1:] - scaled[1:].mean()) ** 2).sum())
    half = float(stdtrit(Q - 1, (1 + level) / 2) * error)
    low, high = np.tanh(scaled[0] - half), np.tanh(scaled[0] + half)
    return Span(float(values[0]), float(min(low, values[0])), float(max(high, values[0])))


def system_order(
    gold: FloatArray,
    judge: FloatArray,
    systems: Sequence[str],
    *,
    measure: str = "",
    level: float = 0.95,
) -> SystemOrder:
    """Compares the order and the levels of systems under two sets of labels.

    Args:
        gold: (S, Q) values per query by gold labels.
        judge: the same by the judge's labels.
        systems: names, one per line.
        measure: what was measured.
        level: of the intervals.

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
    by_gold, by_judge = gold.mean(axis=1), judge.mean(axis=1)
    best = np.argsort(-by_gold, kind="stable")[:TOP]
    change = judge - gold
    intervals = [t_interval(each, level) for each in judge]
    held = [each.low <= mean <= each.high for each, mean in zip(intervals, by_gold, strict=True)]
    spread = judge.std(axis=1, ddof=1) / np.sqrt(judge.shape[1]) if judge.shape[1] > 1 else np.nan * by_gold
    with np.errstate(divide="ignore", invalid="ignore"):
        errors = change.mean(axis=1) / spread
    return SystemOrder(
        measure,
        tuple(systems),
        by_gold,
        by_judge,
        t_interval(change.mean(axis=0), level),
        change.mean(axis=1),
        float(np.mean(held)) if judge.shape[1] > 1 else float("nan"),
        errors,
        jackknife(kendall_tau, gold, judge, level),
        jackknife(tau_ap, gold, judge, level),
        jackknife(kendall_tau, gold[best], judge[best], level),
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
    by_gold, by_labels = gold.mean(axis=1).round(DIGITS), judge.mean(axis=1).round(DIGITS)
    change, by_judge = by_gold[first] - by_gold[second], by_labels[first] - by_labels[second]
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
