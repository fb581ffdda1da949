"""A judge beside gold labels on the pairs that both graded: matrix, agreement, leniency, coverage.

Pairs of one query are not independent: a judge who misreads a query errs on all of its documents. All
intervals here therefore draw whole queries with replacement (percentile bootstrap). Everything but pNoise
follows from counts N[q, l, m] of pairs of query q with gold grade l and judge grade m, so a draw is a
weighted sum of Q small tables. Where gold pairs were drawn with known probabilities, a pair counts
1 / probability.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cleanrank.judges.labels import Pool
from cleanrank.judges.system_order import Span
from cleanrank.noise.agreement import table_agreement
from cleanrank.noise.pair_noise import pnoise
from cleanrank.types import Array, FloatArray, IntArray

DRAWS = 1000
STREAM = 1503
DEPTH = 10
NOT_RANDOM = 0.01


@dataclass(frozen=True)
class Coverage:
    """Which pairs gold and judge graded.

    Attributes:
        gold_pairs, judge_pairs, common: pairs graded by gold, by the judge, by both.
        gold_queries, judge_queries, common_queries: queries with such pairs.
        share: of the judge's pairs in queries with gold, how many have a gold grade.
        covered_grade, uncovered_grade: mean grade of the judge on those with and without a gold grade.
        p_random: p-value of the hypothesis that the pairs with gold are a random part of each query's pairs;
            NaN where all or none have gold, or where gold was drawn with known probabilities.
        top_gold, top_judge: of the documents that systems rank in their first 10, the share with a gold grade
            and with a grade of the judge; NaN without systems.
        never_on_top: of the common pairs, the share that no system ranks in its first 10; NaN likewise.
    """

    gold_pairs: int
    judge_pairs: int
    common: int
    gold_queries: int
    judge_queries: int
    common_queries: int
    share: float
    covered_grade: float
    uncovered_grade: float
    p_random: float
    top_gold: float
    top_judge: float
    never_on_top: float

    @property
    def not_random(self) -> bool:
        """Whether the pairs with gold differ from the others in the judge's own grades."""
        return self.p_random < NOT_RANDOM


@dataclass(frozen=True)
class QueryLeniency:
    """How lenient a judge is on one query.

    Attributes:
        query: its id.
        pairs: graded by both.
        difference: mean of the judge's grade less the gold grade.
        leniency: how much more the judge gives than on other queries to documents of the same gold grade,
            shrunk towards 0 by how little the query tells.
        low, high: its interval.
    """

    query: str
    pairs: int
    difference: float
    leniency: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class AgainstGold:
    """What the common pairs say; spans hold intervals over queries."""

    counts: IntArray
    matrix: FloatArray
    matrix_low: FloatArray
    matrix_high: FloatArray
    agreement: dict[str, Span]
    pnoise: Span
    leniency: Span
    by_grade: tuple[Span, ...]
    by_judge_grade: tuple[Span, ...]
    by_query: tuple[QueryLeniency, ...]
    query_spread: float


def against_gold(
    true: IntArray,
    given: IntArray,
    query: IntArray,
    query_ids: Array,
    *,
    weights: FloatArray | None = None,
    level: float = 0.95,
    seed: int = 0,
) -> AgainstGold:
    """Compares two columns of grades of the same pairs.

    Args:
        true: gold grades.
        given: the judge's grades.
        query: place in ``query_ids`` of every pair.
        query_ids: names of the queries.
        weights: of pairs that were not drawn alike.
        level: of the intervals.
        seed: of the draws of queries.

    >>> columns = np.array([0, 0, 1, 1]), np.array([0, 1, 1, 1]), np.array([0, 0, 1, 1])
    >>> against_gold(*columns, np.array(["a", "b"])).matrix.tolist()
    [[0.5, 0.5], [0.0, 1.0]]
    """
    present, place = np.unique(query, return_inverse=True)
    C, Q = int(max(true.max(), given.max(), 1)) + 1, len(present)
    cells = (place * C + true) * C + given
    counts = np.bincount(cells, minlength=Q * C * C).reshape(Q, C, C)
    weight = np.ones(len(cells)) if weights is None else weights
    weighed = np.bincount(cells, weight, minlength=Q * C * C).astype(np.float64).reshape(Q, C, C)
    rng = np.random.default_rng([seed, STREAM])
    drawn = rng.multinomial(Q, np.full(Q, 1 / Q), size=DRAWS).astype(np.float64) if Q > 1 else None
    total = weighed.sum(axis=0)
    tables = None if drawn is None else (drawn @ weighed.reshape(Q, -1)).reshape(-1, C, C)

    def spans(figures: Callable[[FloatArray], FloatArray]) -> tuple[Span, ...]:
        """Figures (T, K) of tables (T, C, C), with their intervals."""
        values = figures(total[None])[0]
        low, high = np.full((2, len(values)), np.nan) if tables is None else interval(figures(tables), level)
        return tuple(map(Span, values.tolist(), low.tolist(), high.tolist()))

    matrix = _rows(total)
    low, high = (np.full((2, C, C), np.nan)) if tables is None else interval(_rows(tables), level)
    grades = np.arange(C, dtype=np.float64)
    change = grades[None, :] - grades[:, None]
    pairs = pnoise(true, given, qid=place)
    wrong, every = pairs.counts[1] + pairs.new_weight * pairs.counts[2], pairs.counts.sum(axis=0)
    ends = (np.nan, np.nan) if drawn is None else interval(_ratio(drawn @ wrong, drawn @ every), level)
    spread, by_query = _by_query(true, given, place, query_ids[present], total, level)
    measures = spans(lambda n: np.stack(list(table_agreement(n).values()), axis=1))
    agreement = dict(zip(table_agreement(total), measures, strict=True))
    return AgainstGold(
        counts.sum(axis=0),
        matrix,
        low,
        high,
        agreement,
        Span(pairs.value, float(ends[0]), float(ends[1])),
        spans(lambda n: ((n * change).sum(axis=(1, 2)) / n.sum(axis=(1, 2)))[:, None])[0],
        spans(lambda n: _ratio((n * change).sum(axis=2), n.sum(axis=2))),
        spans(lambda n: _ratio((n * grades[:, None]).sum(axis=1), n.sum(axis=1))),
        by_query,
        spread,
    )


def interval(drawn: FloatArray, level: float) -> tuple[FloatArray, FloatArray]:
    """Lower and upper ends over the draws (the first axis), those without a value left out."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of entries that no draw has
        low, high = np.nanquantile(drawn, [(1 - level) / 2, (1 + level) / 2], axis=0)
    return low, high


def _ratio(up: FloatArray, down: FloatArray) -> FloatArray:
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio: FloatArray = np.where(down > 0, up / down, np.nan)
    return ratio


def _rows(tables: FloatArray) -> FloatArray:
    return _ratio(tables, tables.sum(axis=-1, keepdims=True))


def _by_query(
    true: IntArray, given: IntArray, query: IntArray, names: Array, counts: FloatArray, level: float
) -> tuple[float, tuple[QueryLeniency, ...]]:
    """Leniency of every query given the gold grade, shrunk; and its spread between queries.

    The residual of a pair is the judge's grade less its mean for that gold grade. Means of queries vary with
    tau^2 + s^2 / n: s^2 from within queries, tau^2 by moments; a mean m is shrunk to m tau^2 / (tau^2 +
    s^2 / n), the posterior mean of normal queries.
    """
    from scipy.special import ndtri

    usual = _ratio(counts @ np.arange(counts.shape[1]), counts.sum(axis=1))
    residual = given - usual[true]
    n = np.bincount(query).astype(np.float64)
    means, differences = np.bincount(query, residual) / n, np.bincount(query, given - true) / n
    Q, total = len(n), n.sum()
    within = float(((residual - means[query]) ** 2).sum()) / max(total - Q, 1)
    between = 0.0
    if Q > 1:
        between = max(0.0, float(n @ means**2 - (Q - 1) * within) / float(total - (n @ n) / total))
    noise = within / n
    kept = _ratio(np.full(Q, between), between + noise)
    kept = np.nan_to_num(kept)
    half = float(ndtri((1 + level) / 2)) * np.sqrt(kept * noise)
    shrunk = kept * means
    rows = zip(names, n, differences, shrunk, shrunk - half, shrunk + half, strict=True)
    by_query = tuple(QueryLeniency(str(q), int(k), *(float(v) for v in rest)) for q, k, *rest in rows)
    return float(np.sqrt(between)), tuple(sorted(by_query, key=lambda each: -each.leniency))


def coverage_of(pool: Pool, gold: int, judge: int, places: IntArray) -> Coverage:
    """Which pairs two lines of a pool's grades cover; ``places`` are the systems' ranks."""
    query = pool.query
    by_gold, by_judge = pool.grades[gold] >= 0, pool.grades[judge] >= 0
    both = by_gold & by_judge
    asked = np.isin(query, np.unique(query[by_gold]))
    own = by_judge & asked
    grades = pool.grades[judge].astype(np.float64)
    top_gold = top_judge = never = float("nan")
    if len(pool.systems):
        times = ((places > 0) & (places <= DEPTH)).sum(axis=0) * asked
        if times.sum():
            top_gold, top_judge = float(times @ by_gold / times.sum()), float(times @ by_judge / times.sum())
        never = float((times[both] == 0).mean()) if both.any() else float("nan")
    drawn = not np.isnan(pool.probability[gold][by_gold]).all()
    every = (by_gold, by_judge, both)
    gold_queries, judge_queries, common_queries = (len(np.unique(query[each])) for each in every)
    return Coverage(
        int(by_gold.sum()),
        int(by_judge.sum()),
        int(both.sum()),
        gold_queries,
        judge_queries,
        common_queries,
        float(both.sum() / max(own.sum(), 1)),
        float(grades[both].mean()) if both.any() else float("nan"),
        float(grades[own & ~both].mean()) if (own & ~both).any() else float("nan"),
        float("nan") if drawn else _random_part(query[own], both[own], grades[own]),
        top_gold,
        top_judge,
        never,
    )


def _random_part(query: IntArray, covered: Array, grades: FloatArray) -> float:
    """P-value that the covered pairs of each query are a random part of it, by their grades' sums.

    Under the hypothesis the sum of covered grades has a hypergeometric mean and variance in every query.
    """
    from scipy.special import ndtr

    n = np.bincount(query).astype(np.float64)
    k = np.bincount(query, covered)
    mean = _ratio(np.bincount(query, grades).astype(np.float64), n)
    squares = np.bincount(query, (grades - np.nan_to_num(mean)[query]) ** 2).astype(np.float64)
    variance = _ratio(squares, n - 1)
    spread = np.nansum(variance * k * (n - k) / np.where(n > 0, n, 1))
    seen = np.nansum(np.bincount(query, grades * covered) - k * mean)
    return float(2 * ndtr(-abs(seen) / np.sqrt(spread))) if spread > 0 else float("nan")
