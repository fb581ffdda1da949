"""Compiled loops that know nothing of measures: ranking a query, counting its pairs, resampling queries.

Symbols of one query: n documents; ``code[d]`` the place of the grade of d on the scale of C grades;
``rank[r]`` the document at rank r (from 0); ``end[r]`` one past the last rank tied with r.

Sort keys are 64-bit integers: the upper bits of the score in an order-preserving form, the row in the lower
bits, so that ties keep the order of the rows; scores that differ only in the bits given to the row are put
right afterwards.
"""

import numpy as np

from cleanrank.jit import kernel, mix64, prange
from cleanrank.types import Array

STABLE, AVERAGE, WORST = range(3)
INSERTION = 12
BLOCK = 2048


@kernel()
def sort_keys(keys: Array, spare: Array, n: int) -> None:
    """Sorts keys[:n] in ascending order; runs of a few by insertion, then merges without branches."""
    for start in range(0, n, INSERTION):
        stop = min(start + INSERTION, n)
        for i in range(start + 1, stop):
            key = keys[i]
            j = i
            while j > start and keys[j - 1] > key:
                keys[j] = keys[j - 1]
                j -= 1
            keys[j] = key
    width = INSERTION
    flipped = False
    while width < n:
        source, target = (spare, keys) if flipped else (keys, spare)
        for start in range(0, n, 2 * width):
            middle = min(start + width, n)
            _merge(source, target, start, middle, min(start + 2 * width, n))
        flipped = not flipped
        width *= 2
    if flipped:
        for i in range(n):
            keys[i] = spare[i]


@kernel()
def _merge(source: Array, target: Array, start: int, middle: int, stop: int) -> None:
    i, j, to = start, middle, start
    while i < middle and j < stop:
        left, right = source[i], source[j]
        first = left < right
        target[to] = left if first else right
        i += first
        j += not first
        to += 1
    while i < middle:
        target[to] = source[i]
        i += 1
        to += 1
    while j < stop:
        target[to] = source[j]
        j += 1
        to += 1


@kernel()
def _sort_rows(rows: Array, worth: Array, descending: bool) -> None:
    """Sorts rows by their worth; equal ones keep their order."""
    n = len(rows)
    sign = -1.0 if descending else 1.0
    source, target = rows.copy(), rows.copy()
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            i, middle = start, min(start + width, n)
            j, stop = middle, min(start + 2 * width, n)
            for to in range(start, stop):
                right = i >= middle or (j < stop and sign * worth[source[j]] < sign * worth[source[i]])
                target[to] = source[j] if right else source[i]
                j += right
                i += not right
        source, target = target, source
        width *= 2
    for i in range(n):
        rows[i] = source[i]


@kernel()
def rank_all(score: Array, bits: Array, keys: Array, spare: Array, rank: Array, n: int) -> None:
    """Ranks all documents: descending score, ties by row. ``bits`` are those of ``score``."""
    row_bits = np.uint64(1)
    while (np.int64(1) << np.int64(row_bits)) < n:
        row_bits += np.uint64(1)
    low = (np.uint64(1) << row_bits) - np.uint64(1)
    sign = np.uint64(1) << np.uint64(63)
    for d in range(n):
        b = bits[d]
        # Ascending keys are descending scores: negative numbers keep their bits, positive ones are inverted.
        key = b if b & sign else ~b & ~sign
        keys[d] = (key & ~low) | np.uint64(d)
    sort_keys(keys, spare, n)
    for r in range(n):
        rank[r] = np.int64(keys[r] & low)
    start = 0
    while start < n:
        stop = start + 1
        mixed = False
        while stop < n and (keys[stop] & ~low) == (keys[start] & ~low):
            mixed |= score[rank[stop]] != score[rank[start]]
            stop += 1
        if mixed:
            _sort_rows(rank[start:stop], score, True)
        start = stop


@kernel()
def rank_top(score: Array, best: Array, rank: Array, n: int, k: int) -> None:
    """Ranks the k best documents of n >= k; ``best`` keeps their scores."""
    held = 0
    for d in range(n):
        s = score[d]
        if held == k and s <= best[k - 1]:
            continue
        r = held if held < k else k - 1
        while r > 0 and best[r - 1] < s:
            best[r] = best[r - 1]
            rank[r] = rank[r - 1]
            r -= 1
        best[r] = s
        rank[r] = d
        held = min(held + 1, k)


@kernel()
def tie_ends(score: Array, rank: Array, end: Array, n: int) -> bool:
    """Fills ``end``; returns whether any scores tie."""
    tied = False
    stop = n
    for r in range(n - 1, -1, -1):
        if r + 1 < n and score[rank[r]] != score[rank[r + 1]]:
            stop = r + 1
        tied |= r + 1 < stop
        end[r] = stop
    return tied


@kernel()
def worst_order(rank: Array, end: Array, worth: Array, out: Array, n: int) -> None:
    """The ranking in which tied documents stand with the least worth first."""
    r = 0
    while r < n:
        stop = end[r]
        for i in range(r, stop):
            out[i] = rank[i]
        if stop > r + 1:
            _sort_rows(out[r:stop], worth, False)
        r = stop


@kernel()
def right_of_two(code: Array, rank: Array, end: Array, n: int, relevant: int, ties: int) -> float:
    """Pairs (relevant, not relevant) in the right order."""
    total = 0.0
    seen = 0
    r = 0
    while r < n:
        stop = r + 1 if ties == STABLE else end[r]
        inside = 0
        for i in range(r, stop):
            inside += code[rank[i]] >= relevant
        others = stop - r - inside
        total += seen * others
        if ties == AVERAGE:
            total += 0.5 * inside * others
        seen += inside
        r = stop
    return total


@kernel()
def _above(tree: Array, size: int, c: int, seen: int) -> int:
    """Of the ``seen`` codes counted in the Fenwick tree, those above c."""
    below = 0
    i = c + 1
    while i > 0:
        below += tree[i]
        i -= i & -i
    return seen - below


@kernel()
def right_of_many(code: Array, rank: Array, end: Array, n: int, size: int, ties: int) -> tuple[float, float]:
    """(pairs of different grades in the right order, pairs of different grades that tie in score)."""
    tree = np.zeros(size + 1, np.int64)
    within = np.zeros(size, np.int64)
    total = 0.0
    tied = 0.0
    seen = 0
    r = 0
    while r < n:
        stop = r + 1 if ties == STABLE else end[r]
        for i in range(r, stop):
            total += _above(tree, size, code[rank[i]], seen)
        m = stop - r
        same = 0
        for i in range(r, stop):
            c = code[rank[i]]
            same += within[c]
            within[c] += 1
            j = c + 1
            while j <= size:
                tree[j] += 1
                j += j & -j
        for i in range(r, stop):
            within[code[rank[i]]] = 0
        tied += m * (m - 1) // 2 - same
        seen += m
        r = stop
    if ties == AVERAGE:
        total += 0.5 * tied
    return total, tied


@kernel()
def pairs_within(counts: Array) -> float:
    """Pairs of equal grades."""
    total = 0.0
    for c in counts:
        total += 0.5 * c * (c - 1.0)
    return total


@kernel()
def tau_b(code: Array, rank: Array, end: Array, n: int, counts: Array) -> float:
    """Kendall's tau-b; NaN when all grades or all scores are equal."""
    right, tied = right_of_many(code, rank, end, n, len(counts), WORST)
    every = 0.5 * n * (n - 1.0)
    graded = every - pairs_within(counts)
    scored = every
    r = 0
    while r < n:
        m = end[r] - r
        scored -= 0.5 * m * (m - 1.0)
        r = end[r]
    if graded == 0.0 or scored == 0.0:
        return np.nan
    return float((2.0 * right - (graded - tied)) / (np.sqrt(graded) * np.sqrt(scored)))


_mix = kernel(inline=True)(mix64)


@kernel(inline=True)
def _word(key: np.uint64, counter: int) -> np.uint64:
    return _mix(key + (np.uint64(counter) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15))


@kernel()
def _add_word(
    table: Array, sums: Array, key: np.uint64, first: int, w: int, per_draw: int, listed: bool
) -> None:
    """Adds what 64 numbers contribute to each sum: eight look-ups in tables that stay in cache."""
    low = np.uint64(255)
    for i in range(len(sums)):
        if listed:
            bits = np.uint64(first + i) if w == 0 else np.uint64(0)
        else:
            bits = _word(key, (first + i) * per_draw + w)
        sums[i] += (
            table[0, bits & low]
            + table[1, (bits >> np.uint64(8)) & low]
            + table[2, (bits >> np.uint64(16)) & low]
            + table[3, (bits >> np.uint64(24)) & low]
            + table[4, (bits >> np.uint64(32)) & low]
            + table[5, (bits >> np.uint64(40)) & low]
            + table[6, (bits >> np.uint64(48)) & low]
            + table[7, bits >> np.uint64(56)]
        )


@kernel(parallel=True)
def count_extreme_blocks(
    tables: Array, draws: int, total: int, slack: int, side: int, key: np.uint64, listed: bool
) -> Array:
    """Extreme draws in each block of draws; whole numbers, so any order of summing gives the same."""
    blocks = (draws + BLOCK - 1) // BLOCK
    counts = np.zeros(blocks, np.int64)
    for b in prange(blocks):
        first = b * BLOCK
        sums = np.zeros(min(BLOCK, draws - first), np.int64)
        for w in range(len(tables)):
            _add_word(tables[w], sums, key, first, w, len(tables), listed)
        extreme = 0
        for i in range(len(sums)):
            s = 2 * sums[i] - total
            if side > 0:
                extreme += s >= total - slack
            elif side < 0:
                extreme += s <= total + slack
            else:
                extreme += abs(s) >= abs(total) - slack
        counts[b] = extreme
    return counts


@kernel()
def _resample(rows: Array, out: Array, key: np.uint64, counter: int) -> None:
    n, m = rows.shape
    size = np.uint64(n)
    for i in range(0, n, 2):
        bits = _word(key, counter + i // 2)
        one = np.int64(((bits >> np.uint64(32)) * size) >> np.uint64(32))
        for c in range(m):
            out[c] += rows[one, c]
        if i + 1 < n:
            two = np.int64(((bits & np.uint64(0xFFFFFFFF)) * size) >> np.uint64(32))
            for c in range(m):
                out[c] += rows[two, c]


@kernel(parallel=True)
def sum_resamples(rows: Array, resamples: int, key: np.uint64) -> Array:
    """Sums over rows drawn with replacement, one line per resample."""
    out = np.zeros((resamples, rows.shape[1]), np.float64)
    per_draw = (len(rows) + 1) // 2
    for b in prange(resamples):
        _resample(rows, out[b], key, b * per_draw)
    return out
