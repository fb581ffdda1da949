"""Rows that classic rankers are tried on."""

import itertools
from typing import Any

import numpy as np


def random_rows(seed: int, grades: int = 3, queries: int = 6, features: int = 4) -> tuple[Any, Any, Any]:
    """(X, y, indptr): queries of 1 to 9 documents, one of one grade, scores with ties."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 10, queries)
    lengths[0] = 9
    y = rng.integers(grades, size=lengths.sum())
    y[:2] = 0, grades - 1
    indptr = np.append(0, np.cumsum(lengths))
    y[indptr[1] : indptr[2]] = 1
    X = np.round(rng.normal(size=(len(y), features)) + 0.3 * y[:, None], 1)
    return X, y, indptr


def pairs_of(y: Any, indptr: Any) -> Any:
    """(better, worse) of every pair."""
    return np.array(
        [
            (i, j)
            for a, b in itertools.pairwise(indptr)
            for i in range(a, b)
            for j in range(a, b)
            if y[i] > y[j]
        ]
    )
