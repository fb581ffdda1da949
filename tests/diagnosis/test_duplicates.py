from itertools import combinations

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import cleanrank as cr
from cleanrank.data import duplicate_rows
from cleanrank.data import duplicate_rows as module
from cleanrank.data.duplicate_rows import first_rows
from cleanrank.diagnosis.duplicates import duplicates_of, implied_rate
from cleanrank.noise.profiles import uniform

from .sets import plain, repeated


def key(row):
    """What makes two rows identical: NaN is a value, -0 is 0."""
    return tuple("nan" if np.isnan(v) else float(v) + 0.0 for v in row)


def naive(data, group_of):
    """Counts by looking at every group in turn."""
    groups = {}
    for i in range(data.n_docs):
        name = group_of(i)
        if name is not None:
            groups.setdefault(name, []).append(i)
    groups = [g for g in groups.values() if len(g) > 1]
    bad = [g for g in groups if len({data.y[i] for i in g}) > 1]
    pairs = [p for g in groups for p in combinations(g, 2)]
    return (
        len(groups),
        sum(map(len, groups)),
        len(bad),
        sum(map(len, bad)),
        sum(len(g) - np.bincount(data.y[g]).max() for g in groups),
        len(pairs),
        sum(data.y[i] != data.y[j] for i, j in pairs),
    )


def shown(found):
    return (
        found.groups,
        found.rows,
        found.contradicting_groups,
        found.contradicting_rows,
        found.least_wrong,
        found.pairs,
        found.disagreeing_pairs,
    )


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    rows=st.integers(1, 60),
    columns=st.integers(1, 3),
    queries=st.integers(1, 6),
    sparse=st.booleans(),
)
def test_all_kinds_agree_with_a_loop(seed, rows, columns, queries, sparse):
    data = repeated(seed, rows, 3, columns, queries)
    dense = np.asarray(data.X)
    if sparse:
        data = cr.from_arrays(scipy.sparse.csr_matrix(dense), data.y, qid=data.qid)
    query = data.qid
    keys = [key(row) for row in dense]
    blank = [all(v == 0.0 for v in k if v != "nan") and "nan" not in k for k in keys]
    found = duplicates_of(data)
    assert shown(found.within) == naive(data, lambda i: None if blank[i] else (query[i], keys[i]))
    assert shown(found.blank) == naive(data, lambda i: (query[i], keys[i]) if blank[i] else None)
    spanning = {k for k in keys if len({q for q, other in zip(query, keys, strict=True) if other == k}) > 1}
    assert shown(found.across) == naive(data, lambda i: keys[i] if keys[i] in spanning else None)
    assert found.lower_bound == found.within.least_wrong / data.n_docs


def test_blocks_change_nothing(monkeypatch):
    data = repeated(3, rows=300, columns=4)
    before = duplicates_of(data)
    monkeypatch.setattr(module, "BLOCK_VALUES", 28)
    assert duplicates_of(data) == before


def test_sparse_and_dense_rows_find_the_same():
    data = repeated(4, rows=300)
    stored = scipy.sparse.csr_matrix(np.asarray(data.X))
    stored.data[:5] = 0.0  # stored zeros are zeros
    dense = cr.from_arrays(stored.toarray(), data.y, qid=data.qid)
    sparse = cr.from_arrays(stored, data.y, qid=data.qid)
    assert duplicates_of(dense) == duplicates_of(sparse)


def test_a_collision_of_hashes_never_makes_rows_identical(monkeypatch):

    def same_for_all(bits, out):
        out[:] = 7

    monkeypatch.setattr(duplicate_rows, "hash_dense", same_for_all)
    data = plain(queries=5)
    first, _ = first_rows(data)
    assert np.array_equal(first, np.arange(data.n_docs))


def test_an_example_names_rows_of_the_input():
    X = [[1.0], [2.0], [1.0], [2.0], [1.0]]
    data = cr.from_arrays(X, [0, 1, 2, 1, 0], qid=["b", "a", "b", "a", "b"])
    (example,) = duplicates_of(data).within.examples
    assert example.rows == (0, 2, 4)
    assert example.queries == ("b",)
    assert example.grades == (0, 2, 0)


def test_document_ids_repeat_within_a_query_only():
    data = cr.from_arrays(
        np.arange(6.0)[:, None],
        [0, 1, 0, 0, 1, 1],
        qid=[1, 1, 1, 2, 2, 2],
        doc_ids=["x", "x", "y", "x", "", ""],
    )
    found = duplicates_of(data).doc_ids
    assert shown(found) == (1, 2, 1, 2, 1, 1, 1)
    assert duplicates_of(plain()).doc_ids is None


@pytest.mark.parametrize("grades", [2, 3, 5])
@pytest.mark.parametrize("rate", [0.0, 0.05, 0.3])
def test_the_implied_rate_inverts_the_disagreement_of_two_judges(grades, rate):
    T = uniform(rate, grades).matrix
    disagreement = 1 - (T[0] ** 2).sum()
    assert implied_rate(disagreement, grades) == pytest.approx(rate, abs=1e-12)


def test_disagreement_at_chance_means_no_information():
    assert implied_rate(0.9, 3) == pytest.approx(2 / 3)


def test_noise_on_copies_is_found_and_bounded_from_below():
    clean = plain(seed=9, queries=200)
    twice = cr.from_arrays(
        np.repeat(np.asarray(clean.X), 2, axis=0), np.repeat(clean.y, 2), qid=np.repeat(clean.qid, 2)
    )
    noisy = uniform(0.15, 3).apply(twice, 4)
    found = duplicates_of(noisy.data)
    assert found.lower_bound <= noisy.rate
    assert found.implied_rate == pytest.approx(0.15, abs=0.02)
    assert duplicates_of(twice).lower_bound == 0


def test_few_repeated_judgements_carry_a_wide_interval():
    """Twelve pairs, eleven of them disagreeing: more than guessing would."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.normal(size=(12, 3)), 2, axis=0)
    found = duplicates_of(cr.from_arrays(X, [0, 4] * 11 + [1, 1], group=[24]))
    low, high = found.implied_interval
    assert found.implied_rate == high == pytest.approx(found.guessing)
    assert low < 0.85 * high
    many = duplicates_of(cr.from_arrays(X, [0, 0] * 11 + [1, 1], group=[24]))
    assert many.implied_rate == 0
    assert 0 < many.implied_interval[1] < 0.4
