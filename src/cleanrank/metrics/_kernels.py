"""How measures are computed: compiled, one ranking a query shared by all measures.

Each query is ranked once. If every measure looks only at the first few ranks and ties are stable, the top
is selected in one pass; else the whole query is sorted.

Symbols of one query: n documents; ``code[d]`` the place of the grade of d on the scale of C grades;
``rank[r]`` the document at rank r (from 0); ``end[r]`` one past the last rank tied with r; ``depth`` how many
documents have a rank: those with the score -inf were not retrieved and count in ideal rankings alone.
A measure comes as one row of ``plan`` with the columns CODE to MAX_GRADE; grades become codes 0..C-1 on the
scale of the data, with a table of gains per code.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cleanrank.jit import kernel, prange, query_chunks
from cleanrank.metrics._measure_kernels import (
    binary_preference,
    copy_values,
    count_from,
    dcg_of,
    expected_reciprocal,
    first_relevant,
    ideal_by_count,
    ideal_by_sort,
    precision_sum,
    retrieved_relevant,
)
from cleanrank.metrics._rank_kernels import (
    AVERAGE,
    STABLE,
    WORST,
    pairs_within,
    rank_all,
    rank_top,
    right_of_many,
    right_of_two,
    tau_b,
    tie_ends,
    worst_order,
)
from cleanrank.metrics.measure import Measure, discount
from cleanrank.types import Array, FloatArray, IntArray

CODE, CUTOFF, GAIN, DISCOUNT, EMPTY, SHORT_ZERO, TIES, WEIGHTING, RELEVANT, MAX_GRADE = range(10)
NDCG, DCG, MAP, MRR, ERR, PRECISION, RECALL, SUCCESS, RPREC, BPREF, AUC, PAIRACC, TAU = range(13)
EMPTY_ONE, EMPTY_ZERO, EMPTY_SKIP = range(3)
MACRO, MICRO, POOLED = range(3)

CODES = {
    "ndcg": NDCG, "dcg": DCG, "map": MAP, "mrr": MRR, "err": ERR, "precision": PRECISION, "recall": RECALL,
    "success": SUCCESS, "rprec": RPREC, "bpref": BPREF, "auc": AUC, "pairacc": PAIRACC, "tau": TAU,
}  # fmt: skip
PART_CODES: dict[str | None, int] = {
    None: 0, "one": EMPTY_ONE, "zero": EMPTY_ZERO, "skip": EMPTY_SKIP,
    "stable": STABLE, "doc_id": STABLE, "average": AVERAGE, "worst": WORST,
    "macro": MACRO, "micro": MICRO, "pooled": POOLED,
    "exp": 0, "linear": 1, "log2": 0, "letor": 1,
}  # fmt: skip

# Beyond these, selecting the top costs more than sorting, and grades are renumbered without gaps.
MOST_TOP = 32
MOST_CODES = 256
CHUNKS = 64
MANY_GRADES = 64


@dataclass(frozen=True, eq=False)
class Plan:
    """Inputs of the kernel; see the module."""

    rows: IntArray
    code: npt.NDArray[np.int32]
    gain_of: FloatArray
    discounts: FloatArray
    bounds: IntArray
    top: int


def make_plan(measures: tuple[Measure, ...], y: Array, indptr: IntArray) -> Plan:
    """Turns measures, grades and queries into what the kernel reads."""
    most = int(y.max(initial=0))
    if most < MOST_CODES:
        scale = np.arange(most + 1)
        code = y
    else:
        scale, code = np.unique(y, return_inverse=True)
    longest = int(np.diff(indptr).max(initial=0))
    with np.errstate(over="ignore"):
        gain_of = np.stack((np.exp2(scale.astype(np.float64)) - 1.0, scale.astype(np.float64)))
    return Plan(
        rows=np.array([_row(m, scale) for m in measures], dtype=np.int64),
        code=np.ascontiguousarray(code, dtype=np.int32),
        gain_of=gain_of,
        discounts=np.stack((discount("log2", longest), discount("letor", longest))),
        bounds=query_chunks(indptr, CHUNKS),
        top=_top(measures),
    )


def _row(m: Measure, scale: IntArray) -> list[int]:
    lowest = np.searchsorted(scale, m.relevant or 1)
    empty = PART_CODES[m.empty] if m.empty else EMPTY_SKIP
    parts = [PART_CODES[part] for part in (m.gain, m.discount)]
    policies = [int(m.short == "zero"), PART_CODES[m.ties], PART_CODES[m.weighting]]
    return [CODES[m.name], m.cutoff or 0, *parts, empty, *policies, int(lowest), m.max_grade or 0]


def _top(measures: tuple[Measure, ...]) -> int:
    """The last rank that any measure looks at; 0 when some need the whole ranking."""
    cutoffs = [m.cutoff if m.cutoff and m.ties in ("stable", "doc_id") else 0 for m in measures]
    return max(cutoffs) if min(cutoffs) > 0 and max(cutoffs) <= MOST_TOP else 0


@kernel()
def _pair_value(right: float, every: float, n: int, weighting: int) -> tuple[float, float]:
    if weighting == MICRO:
        return (right / (float(n) * n), 1.0) if n > 0 else (np.nan, 0.0)
    value = right / every if every > 0.0 else np.nan
    return value, 1.0 if weighting == MACRO else every


@kernel()
def _when_empty(empty: int) -> float:
    if empty == EMPTY_SKIP:
        return np.nan
    return 1.0 if empty == EMPTY_ONE else 0.0


@kernel()
def _binary_value(
    p: Array, code: Array, judged: Array, rank: Array, end: Array, counts: Array, depth: int, cut: int
) -> float:
    relevant, average = p[RELEVANT], p[TIES] == AVERAGE
    all_relevant = count_from(counts, relevant)
    if all_relevant == 0:
        return _when_empty(p[EMPTY])
    if p[CODE] == MRR or p[CODE] == SUCCESS:
        return first_relevant(code, rank, end, cut, relevant, average, p[CODE] == MRR)
    if p[CODE] == BPREF:
        return binary_preference(code, judged, rank, end, depth, relevant, average)
    if p[CODE] == RPREC:
        return retrieved_relevant(code, rank, end, min(all_relevant, depth), relevant, average) / all_relevant
    if p[CODE] == MAP:
        return precision_sum(code, rank, end, cut, relevant, average) / all_relevant
    retrieved = retrieved_relevant(code, rank, end, cut, relevant, average)
    if p[CODE] == PRECISION:
        return retrieved / max(p[CUTOFF] if p[CUTOFF] > 0 else depth, 1)
    return retrieved / all_relevant


@kernel()
def _gain_value(
    p: Array, gain: Array, has_gains: bool, gain_of: Array, discount: Array, rank: Array, end: Array,
    counts: Array, n: int, depth: int, cut: int,
) -> float:  # fmt: skip
    best = min(p[CUTOFF], n) if p[CUTOFF] > 0 else n
    if has_gains or len(counts) > MANY_GRADES:
        ideal = ideal_by_sort(gain, discount, n, best)
    else:
        ideal = ideal_by_count(counts, gain_of, discount, best)
    if not ideal > 0.0:
        return _when_empty(p[EMPTY])
    if p[SHORT_ZERO] and depth < p[CUTOFF]:
        return 0.0
    dcg = dcg_of(gain, discount, rank, end, cut, p[TIES] == AVERAGE)
    return dcg if p[CODE] == DCG else dcg / ideal


@kernel()
def _value(
    p: Array, code: Array, judged: Array, gain: Array, has_gains: bool, gain_of: Array, discounts: Array,
    rank: Array, end: Array, counts: Array, n: int, depth: int,
) -> tuple[float, float]:  # fmt: skip
    """Value and weight of one measure on one ranked query; ``rank`` is already that of its ties."""
    kind = p[CODE]
    cut = min(p[CUTOFF], depth) if p[CUTOFF] > 0 else depth
    if kind in (NDCG, DCG):
        value = _gain_value(
            p, gain, has_gains, gain_of[p[GAIN]], discounts[p[DISCOUNT]], rank, end, counts, n, depth, cut
        )
    elif kind == ERR:
        if count_from(counts, p[RELEVANT]) == 0:
            value = _when_empty(p[EMPTY])
        else:
            value = expected_reciprocal(
                gain_of[0], code, rank, end, cut, p[TIES] == AVERAGE, 0.5 ** p[MAX_GRADE]
            )
    elif kind == AUC:
        positive = float(count_from(counts, p[RELEVANT]))
        right = right_of_two(code, rank, end, n, p[RELEVANT], p[TIES])
        value, weight = _pair_value(right, positive * (n - positive), n, p[WEIGHTING])
        return (_when_empty(p[EMPTY]) if np.isnan(value) and p[WEIGHTING] == MACRO else value), weight
    elif kind == PAIRACC:
        right, _ = right_of_many(code, rank, end, n, len(counts), p[TIES])
        every = 0.5 * n * (n - 1.0) - pairs_within(counts)
        value, weight = _pair_value(right, every, n, p[WEIGHTING])
        return (_when_empty(p[EMPTY]) if np.isnan(value) and p[WEIGHTING] == MACRO else value), weight
    elif kind == TAU:
        value = tau_b(code, rank, end, n, counts)
        value = _when_empty(p[EMPTY]) if np.isnan(value) else value
    else:
        value = _binary_value(p, code, judged, rank, end, counts, depth, cut)
    return value, 1.0


@kernel()
def _query_values(
    plan: Array, code: Array, judged: Array, gains: Array, has_gains: bool, gain_of: Array,
    discounts: Array, top: int, depth: int, score: Array, bits: Array, keys: Array, spare: Array,
    rank: Array, other: Array, end: Array, gain: Array, counts: Array, values: Array, weights:
    Array, q: int,
) -> None:  # fmt: skip
    """All measures of query q, into values[:, q] and weights[:, q]."""
    n = len(code)
    for c in range(len(counts)):
        counts[c] = 0
    for d in range(n):
        counts[code[d]] += 1
    tied = False
    if 0 < top < n:
        rank_top(score, other_scores(keys), rank, n, top)
    else:
        rank_all(score, bits, keys, spare, rank, n)
        tied = tie_ends(score, rank, end, n)
    for m in range(len(plan)):
        p = plan[m]
        gained = p[CODE] in (NDCG, DCG)
        if gained and has_gains:
            copy_values(gains, gain, n)
        elif gained:
            _look_up(gain_of[p[GAIN]], code, gain)
        use = rank
        if tied and p[TIES] == WORST and p[CODE] not in (AUC, PAIRACC):
            if not gained:
                copy_values(code, gain, n)
            worst_order(rank, end, gain, other, n)
            use = other
        values[m, q], weights[m, q] = _value(
            p, code, judged, gain, has_gains, gain_of, discounts, use, end, counts, n, depth
        )


@kernel()
def other_scores(keys: Array) -> Array:
    """The key buffer read as scores, so that the selection of the top needs no buffer of its own."""
    return keys.view(np.float64)


@kernel()
def _look_up(table: Array, code: Array, out: Array) -> None:
    for d in range(len(code)):
        out[d] = table[code[d]]


@kernel()
def _chunk(
    plan: Array, scores: Array, code: Array, judged: Array, indptr: Array, first: int, last: int,
    gains: Array, gain_of: Array, discounts: Array, top: int, values: Array, weights: Array,
) -> None:  # fmt: skip
    """The queries first..last - 1, with buffers of their own."""
    longest = discounts.shape[1]
    score = np.empty(longest, np.float64)
    bits = score.view(np.uint64)
    keys = np.empty(longest, np.uint64)
    spare = np.empty(longest, np.uint64)
    rank = np.empty(longest, np.int64)
    other = np.empty(longest, np.int64)
    end = np.empty(longest, np.int64)
    gain = np.empty(longest, np.float64)
    counts = np.empty(gain_of.shape[1], np.int64)
    for q in range(first, last):
        start, stop = indptr[q], indptr[q + 1]
        depth = 0
        for d in range(start, stop):
            score[d - start] = np.float64(scores[d]) + 0.0  # -0.0 and 0.0 tie
            depth += score[d - start] > -np.inf
        _query_values(
            plan, code[start:stop], judged[start:stop] if len(judged) else judged,
            gains[start:stop] if len(gains) else gains, len(gains) > 0, gain_of, discounts, top, depth,
            score, bits, keys, spare, rank, other, end, gain, counts, values, weights, q,
        )  # fmt: skip


@kernel(parallel=True)
def query_measures(
    plan: Array, scores: Array, code: Array, judged: Array, indptr: Array, bounds: Array, gains: Array,
    gain_of: Array, discounts: Array, top: int, values: Array, weights: Array,
) -> None:  # fmt: skip
    """All measures of all queries into values and weights (M, Q); ``bounds`` cut the queries into chunks.

    ``gains`` may be empty: then gains come from ``gain_of`` (exponential, linear). So may ``judged``: then
    all documents are. ``top`` > 0 says that no measure looks beyond that rank.
    """
    for b in prange(len(bounds) - 1):
        _chunk(
            plan, scores, code, judged, indptr, bounds[b], bounds[b + 1], gains, gain_of, discounts, top,
            values, weights,
        )  # fmt: skip
