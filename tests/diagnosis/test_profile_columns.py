import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import cleanrank as cr
from cleanrank.diagnosis import profile as module
from cleanrank.diagnosis.profile import columns_of


def naive(X, qid):
    """Sets of values, column by column and query by query."""

    def values(part):
        return {"nan" if np.isnan(v) else float(v) for v in part}

    constant, inside = [], []
    for j in range(X.shape[1]):
        if len(values(X[:, j])) < 2:
            constant.append(f"column {j}")
        elif all(len(values(X[qid == q, j])) < 2 for q in set(qid)):
            inside.append(f"column {j}")
    return tuple(constant), tuple(inside)


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(1, 25),
    queries=st.integers(1, 5),
    sparse=st.booleans(),
    block=st.sampled_from([1, 7, 1 << 20]),
)
def test_agrees_with_a_loop(seed, rows, queries, sparse, block):
    rng = np.random.default_rng(seed)
    qid = np.sort(rng.integers(0, queries, rows))
    kinds = [
        np.zeros(rows),
        np.full(rows, 3.0),
        np.full(rows, np.nan),
        qid * 1.0,
        (qid == 0) * 5.0,
        rng.integers(0, 2, rows) * 1.0,
        np.where(rng.random(rows) < 0.5, np.nan, 1.0),
        np.where(qid == 1, np.nan, 2.0),
        np.full(rows, 4.0) * (rng.random(rows) < 0.9),
    ]
    X = np.array(kinds, dtype=np.float32).T
    data = cr.from_arrays(scipy.sparse.csr_matrix(X) if sparse else X, np.zeros(rows, int), qid=qid)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BLOCK_VALUES", block)
        found = columns_of(data)
    assert (found.constant, found.constant_in_queries) == naive(X, qid)
    assert found.missing == np.isnan(X).sum()
    assert found.missing_columns == {
        f"column {j}": int(n) for j, n in enumerate(np.isnan(X).sum(axis=0)) if n
    }


def test_infinite_values_and_names():
    X = [[np.inf, 1.0], [-np.inf, 1.0]]
    data = cr.from_arrays(X, [0, 1], qid=[1, 1], feature_names=("bm25", "length"))
    found = columns_of(data)
    assert found.infinite == 2
    assert found.constant == ("length",)
