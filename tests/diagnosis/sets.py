"""Small judged sets for the tests of this folder."""

import numpy as np

import cleanrank as cr


def plain(seed=0, queries=40, longest=30, grades=(0.6, 0.25, 0.15), columns=5):
    """Queries of mixed length with grades drawn from shares that differ from query to query."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, longest, size=queries)
    y = np.concatenate(
        [rng.choice(len(grades), size=n, p=rng.dirichlet(3 * np.array(grades) + 0.05)) for n in lengths]
    )
    return cr.from_arrays(rng.normal(size=(len(y), columns)).astype(np.float32), y, group=lengths)


def repeated(seed=0, rows=400, values=3, columns=2, queries=12, grades=3):
    """Rows with few different feature values, so that many are identical; NaN, 0 and -0 among them."""
    rng = np.random.default_rng(seed)
    choices = np.array([0.0, -0.0, np.nan, 1.5, -2.0, 7.0][: values + 2], dtype=np.float32)
    X = rng.choice(choices, size=(rows, columns))
    return cr.from_arrays(X, rng.integers(0, grades, rows), qid=np.sort(rng.integers(0, queries, rows)))
