"""Compiled search for outliers in rankings (Marcuzzi et al. 2022).

A ranking orders a query's n documents by descending score, ties by row; k is the cut-off, clipped to n. A
document is relevant when its grade exceeds ``floor``. NEG outliers are non-relevant documents at ranks <= k,
POS outliers relevant ones at ranks > k, with a witness on the other side:

    rule         NEG: some relevant document ranks    POS: some non-relevant document ranks
    paper        below k                              within the top k
    reference    below the document                   above the document

One counter a document says what was seen so far: how often it was flagged (COUNT), since when without a break
(STREAK), or until when from the first ranking on (LEAD).
"""

import numpy as np

from cleanrank.jit import kernel, prange
from cleanrank.types import Array, FloatArray, IntArray

COUNT, STREAK, LEAD = 0, 1, 2
NEG, POS = 1, 2
PIECES = 64
# Beyond this cut-off, keeping the best k by insertion costs more than a sort.
INSERTION = 64


@kernel()
def best_first(score: Array, k: int, top: Array) -> None:
    """Puts the k best documents of a query into ``top``, best first, ties by row, without a full sort."""
    if k > INSERTION:
        top[:k] = np.argsort(-score, kind="mergesort")[:k]
        return
    held = 0
    for i in range(len(score)):
        s = score[i]
        if held == k and s <= score[top[k - 1]]:
            continue
        m = held if held < k else k - 1
        while m > 0 and score[top[m - 1]] < s:
            top[m] = top[m - 1]
            m -= 1
        top[m] = i
        held = min(held + 1, k)


@kernel()
def mark_query(
    score: Array, top: Array, y: Array, floor: int, n_relevant: int, k: int, paper: bool, kinds: int,
    flags: Array,
) -> None:  # fmt: skip
    """Flags the outliers of one query; ``top`` holds its k best documents, best first."""
    n = len(y)
    flags[:n] = 0
    if n_relevant == 0 or n_relevant == n:
        return
    within = 0
    for r in range(k):
        within += y[top[r]] > floor
    if kinds & NEG and n_relevant > (within if paper else 0):
        below = n_relevant
        for r in range(k):
            if y[top[r]] > floor:
                below -= 1
            elif paper or below > 0:
                flags[top[r]] = 1
    if not kinds & POS or k == n or n_relevant == within or (paper and within == k):
        return
    last, last_score = top[k - 1], score[top[k - 1]]
    # The best non-relevant document: POS outliers of the reference rule rank below it.
    best, best_score = last, last_score
    if not paper and within == k:
        best = -1
        for i in range(n):
            if y[i] <= floor and (best < 0 or score[i] > best_score):
                best, best_score = i, score[i]
    for i in range(n):
        s = score[i]
        beyond = s < last_score or (s == last_score and i > last)
        if beyond and y[i] > floor and (s < best_score or (s == best_score and i > best)):
            flags[i] = 1


@kernel()
def add_evidence(
    score: Array, order: Array, y: Array, floor: int, k: int, paper: bool, flags: Array, evidence: Array
) -> None:
    """Adds tanh(m / 2) for flagged documents, m the score distance to the nearest witness.

    That is 2 p - 1 for RankNet's probability p that the two stand in the right order as they are ranked.
    """
    n = len(order)
    witness = 0.0
    for r in range(n - 1, -1, -1):
        i = order[r]
        if y[i] > floor:
            if not paper or r >= k:
                witness = score[i]
        elif flags[i]:
            evidence[i] += np.float32(np.tanh((score[i] - witness) / 2))
    for r in range(n):
        i = order[r]
        if y[i] <= floor:
            if not paper or r < k:
                witness = score[i]
        elif flags[i]:
            evidence[i] += np.float32(np.tanh((witness - score[i]) / 2))


@kernel(parallel=True)
def observe(
    score: Array, order: Array, y: Array, indptr: IntArray, bounds: IntArray, n_relevant: Array, floor: int,
    k: int, paper: bool, kinds: int, keep: int, seen: int, counts: Array, evidence: Array,
) -> None:  # fmt: skip
    """Counts the outliers of one ranking of all queries.

    Args:
        score: a score per document.
        order: per query the places of its documents, best first; empty when nobody has sorted.
        y: grades.
        indptr: row offsets.
        bounds: cuts the queries into pieces of work.
        n_relevant: relevant documents per query.
        floor: the highest grade that is not relevant.
        k: the cut-off.
        paper: the rule.
        kinds: NEG, POS or NEG + POS.
        keep: COUNT, STREAK or LEAD.
        seen: rankings counted before this one.
        counts: uint16 per document, brought up to date.
        evidence: float32 per document, brought up to date; empty when ranks alone count.
    """
    for piece in prange(len(bounds) - 1):
        longest = 0
        for q in range(bounds[piece], bounds[piece + 1]):
            longest = max(longest, indptr[q + 1] - indptr[q])
        flags = np.empty(longest, np.uint16)
        places = np.empty(longest, np.int64)
        for q in range(bounds[piece], bounds[piece + 1]):
            a, b = indptr[q], indptr[q + 1]
            n = b - a
            cut = min(k, n)
            s = score[a:b]
            if n == 0:
                continue
            if len(order):
                for r in range(cut):
                    places[r] = order[a + r]
            else:
                best_first(s, cut, places)
            mark_query(s, places, y[a:b], floor, n_relevant[q], cut, paper, kinds, flags)
            if len(evidence):
                if len(order):
                    places[:n] = order[a:b]
                else:
                    places[:n] = np.argsort(-s, kind="mergesort")
                add_evidence(s, places[:n], y[a:b], floor, cut, paper, flags, evidence[a:b])
            update(counts[a:b], flags, keep, seen)


@kernel()
def update(counts: Array, flags: Array, keep: int, seen: int) -> None:
    """Brings the counters of one query up to date."""
    if keep == COUNT:
        for i in range(len(counts)):
            counts[i] += flags[i]
    elif keep == STREAK:
        for i in range(len(counts)):
            counts[i] = (counts[i] + np.uint16(1)) * flags[i]
    else:
        for i in range(len(counts)):
            counts[i] += flags[i] * np.uint16(counts[i] == seen)


def relevant_per_query(y: Array, indptr: IntArray, floor: int) -> IntArray:
    """How many documents of every query have a grade above ``floor``."""
    before: IntArray = np.concatenate((np.zeros(1, np.int64), np.cumsum(y > floor, dtype=np.int64)))
    found: IntArray = before[indptr[1:]] - before[indptr[:-1]]
    return found


def naive_outliers(
    score: FloatArray, y: Array, k: int, rule: str, floor: int = 0
) -> tuple[set[int], set[int]]:
    """(NEG, POS) outliers of one query, straight from the definition; slow, kept as the oracle.

    >>> naive_outliers(np.arange(6, 0, -1.0), np.array([0, 1, 0, 0, 0, 0]), 4, "reference")
    ({0}, set())
    """
    ranked = sorted(range(len(y)), key=lambda i: (-score[i], i))
    rank = {i: r for r, i in enumerate(ranked, start=1)}
    relevant = [i for i in ranked if y[i] > floor]
    others = [i for i in ranked if y[i] <= floor]
    if rule == "paper":
        neg = {i for i in others if rank[i] <= k and any(rank[j] > k for j in relevant)}
        pos = {i for i in relevant if rank[i] > k and any(rank[j] <= k for j in others)}
    else:
        neg = {i for i in others if rank[i] <= k and any(rank[j] > rank[i] for j in relevant)}
        pos = {i for i in relevant if rank[i] > k and any(rank[j] < rank[i] for j in others)}
    return neg, pos
