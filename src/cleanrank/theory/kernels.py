"""The compiled loop of ``cleanrank.theory.simulate``."""

import numba
import numpy as np

from cleanrank.compiled import kernel
from cleanrank.types import Array


@kernel()
def _one_query(labels: Array, table: Array, scale: Array, out: Array) -> None:
    draws, n = labels.shape
    for d in range(draws):
        if scale[d] == 0.0:
            continue
        for i in range(n):
            a = labels[d, i]
            for j in range(n):
                out[i * n + j] += scale[d] * table[a, labels[d, j]]


@kernel(parallel=True)
def mean_pair_weights(labels: Array, indptr: Array, table: Array, scale: Array) -> Array:
    """For every ordered pair (i, j) of a query: sum over draws d of scale[d, q] table[label_di, label_dj]."""
    n_queries = len(indptr) - 1
    starts = np.zeros(n_queries + 1, np.int64)
    for q in range(n_queries):
        starts[q + 1] = starts[q] + (indptr[q + 1] - indptr[q]) ** 2
    out = np.zeros(starts[-1], np.float64)
    for q in numba.prange(n_queries):
        rows = labels[:, indptr[q] : indptr[q + 1]]
        _one_query(rows, table, scale[:, q], out[starts[q] : starts[q + 1]])
    return out
