"""Compiled loops over the words of pairs of query and text; ``text_features`` says what the columns mean.

Words are numbers. Text d owns words[starts[d]:starts[d + 1]], query q likewise its own; a query's words are
all different. A query has MOST_WORDS words at the most, the rarest ones of a longer one.
"""

import numpy as np

from cleanrank.jit import kernel, prange
from cleanrank.types import FloatArray, IntArray

MOST_WORDS = 64
NEAR = 8
K1, B = 0.9, 0.4
MU = 1000.0
LAMBDA = 0.4
N_COLUMNS = 13


@kernel(parallel=True)
def measure_pairs(
    doc: IntArray,
    query: IntArray,
    words: IntArray,
    starts: IntArray,
    query_words: IntArray,
    query_starts: IntArray,
    idf: FloatArray,
    share: FloatArray,
    mean_length: float,
    out: FloatArray,
) -> None:
    """Writes the N_COLUMNS measures of every pair (doc[i], query[i]) to ``out[i]``."""
    for i in prange(len(doc)):
        d, q = doc[i], query[i]
        measure_pair(
            words[starts[d] : starts[d + 1]],
            query_words[query_starts[q] : query_starts[q + 1]],
            idf,
            share,
            mean_length,
            out[i],
        )


@kernel()
def measure_pair(
    text: IntArray, query: IntArray, idf: FloatArray, share: FloatArray, mean_length: float, out: FloatArray
) -> None:
    """The measures of one text for one query."""
    n, m = len(text), len(query)
    count, last = np.zeros(m), np.full(m, -1)
    first = n
    follows, close = np.zeros(m), np.zeros(m)
    for at in range(n):
        for j in range(m):
            if text[at] != query[j]:
                continue
            count[j] += 1
            first = min(first, at)
            if j > 0 and last[j - 1] >= 0:
                if last[j - 1] == at - 1:
                    follows[j] = 1
                if at - last[j - 1] <= NEAR:
                    close[j] = 1
            if j + 1 < m and last[j + 1] >= 0 and at - last[j + 1] <= NEAR:
                close[j + 1] = 1
            last[j] = at
    matched = 0
    for j in range(m):
        matched += count[j] > 0
    window = shortest_window(text, query, count)
    bm25 = dirichlet = jelinek = known = every = tokens = missed = 0.0
    for j in range(m):
        weight, tf = idf[query[j]], count[j]
        every += weight
        tokens += tf
        if tf > 0:
            known += weight
            bm25 += weight * tf * (K1 + 1) / (tf + K1 * (1 - B + B * n / mean_length))
            dirichlet += np.log(1 + tf / (MU * share[query[j]]))
            jelinek += np.log(1 + (1 - LAMBDA) / LAMBDA * tf / n / share[query[j]])
        else:
            missed = max(missed, weight)
    out[0] = bm25
    out[1] = dirichlet / max(m, 1) + np.log(MU / (MU + n))
    out[2] = jelinek / max(m, 1)
    out[3] = matched / max(m, 1)
    out[4] = known / every if every > 0 else 0.0
    out[5] = tokens / max(n, 1)
    out[6] = missed
    out[7] = follows.sum() / max(m - 1, 1)
    out[8] = close.sum() / max(m - 1, 1)
    out[9] = matched / window if window > 0 else 0.0
    out[10] = first / n if n > 0 else 1.0
    out[11] = np.log(1.0 + n)
    out[12] = len(np.unique(text)) / max(n, 1)


@kernel()
def shortest_window(text: IntArray, query: IntArray, count: FloatArray) -> int:
    """The words of the shortest piece of text that holds all query words that occur; 0 where none does."""
    m = len(query)
    last = np.full(m, -1)
    shortest = 0
    for at in range(len(text)):
        hit = False
        for j in range(m):
            if text[at] == query[j]:
                last[j] = at
                hit = True
        if not hit:
            continue
        start = at
        for j in range(m):
            if count[j] > 0:
                start = min(start, last[j])
        if start >= 0 and (shortest == 0 or at - start + 1 < shortest):
            shortest = at - start + 1
    return shortest
