"""What holds for every measure in MEASURES."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cleanrank.metrics import _reference
from cleanrank.metrics.evaluation import evaluate_arrays, query_values
from cleanrank.metrics.measure import MEASURES, Measure

BEST_IS_ONE = [name for name in MEASURES if name in ("ndcg", "map", "mrr", "recall", "auc", "pairacc")]
BOUNDED = [name for name in MEASURES if MEASURES[name].unit or name == "err"]


@st.composite
def queries(draw, distinct=True):
    """Several short queries, by default without tied scores."""
    sizes = draw(st.lists(st.integers(1, 12), min_size=1, max_size=5))
    n = sum(sizes)
    y = np.array(draw(st.lists(st.integers(0, 4), min_size=n, max_size=n)), dtype=np.int32)
    score = st.integers(-1000, 1000) if distinct else st.integers(0, 2)
    s = np.array(draw(st.lists(score, min_size=n, max_size=n, unique=distinct)), dtype=np.float64)
    return y, s, np.concatenate(([0], np.cumsum(sizes)))


def forms(name):
    """A measure with and without a cut-off, in all its weightings and ways to treat ties."""
    kind = MEASURES[name]
    for cutoff in (None, 3) if kind.cutoff else (None,):
        for ties in ("stable", "average", "worst") if "ties" in kind.parts else (None,):
            for weighting in ("macro", "micro", "pooled") if "weighting" in kind.parts else (None,):
                yield Measure(name, cutoff, ties=ties, weighting=weighting)


def values(name, y, s, indptr):
    return evaluate_arrays(y, s, indptr, list(forms(name))).by_query


every = pytest.mark.parametrize("name", MEASURES)
law = settings(max_examples=30, deadline=None)


@every
@law
@given(case=queries(), seed=st.integers(0, 99))
def test_the_order_of_rows_does_not_matter_without_ties(name, case, seed):
    y, s, indptr = case
    rng = np.random.default_rng(seed)
    order = np.concatenate([a + rng.permutation(b - a) for a, b in pairwise(indptr)])
    np.testing.assert_allclose(
        values(name, y, s, indptr), values(name, y[order], s[order], indptr), rtol=0, atol=1e-12
    )


@every
@law
@given(case=queries(distinct=False))
def test_a_monotone_change_of_scores_changes_nothing(name, case):
    y, s, indptr = case
    np.testing.assert_array_equal(values(name, y, s, indptr), values(name, y, np.exp(s) - 7.0, indptr))


@pytest.mark.parametrize("name", BOUNDED)
@law
@given(case=queries(distinct=False))
def test_values_lie_between_0_and_1(name, case):
    found = values(name, *case)
    assert ((found >= 0) & (found <= 1 + 1e-12) | np.isnan(found)).all()


@every
@law
@given(case=queries(distinct=False))
def test_average_lies_between_worst_and_best_ties(name, case):
    if "ties" not in MEASURES[name].parts:
        return
    y, s, indptr = case
    cutoff = 3 if MEASURES[name].cutoff else None
    m = [Measure(name, cutoff, ties=t) for t in ("worst", "average", "stable")]
    found = evaluate_arrays(y, s, indptr, m).by_query
    best = evaluate_arrays(y, s + y * 1e-6, indptr, m[2]).by_query[0]
    assert ((found[0] <= found[1] + 1e-12) | np.isnan(found[0])).all()
    assert ((found[0] <= found[2] + 1e-12) | np.isnan(found[0])).all()
    assert ((found[1] <= best + 1e-12) | np.isnan(best)).all()


@pytest.mark.parametrize("name", BEST_IS_ONE)
@law
@given(case=queries())
def test_the_best_ranking_is_1(name, case):
    y, _, indptr = case
    found = evaluate_arrays(
        y, y * 1.0, indptr, Measure(name, empty="skip" if name != "mrr" else None)
    ).by_query
    if name == "mrr":
        found = found[:, [y[a:b].any() for a, b in pairwise(indptr)]]
    np.testing.assert_allclose(found[~np.isnan(found)], 1.0, atol=1e-12)


@every
@law
@given(case=queries())
def test_no_ranking_beats_that_by_grade(name, case):
    y, s, indptr = case
    cutoff = 3 if MEASURES[name].cutoff else None
    found = evaluate_arrays(y, s, indptr, Measure(name, cutoff)).by_query
    best = evaluate_arrays(y, y * 1.0, indptr, Measure(name, cutoff)).by_query
    assert ((found <= best + 1e-12) | np.isnan(best) | (name == "tau")).all()


@every
@law
@given(case=queries(distinct=False))
def test_compiled_equals_plain(name, case):
    y, s, indptr = case
    measures = tuple(forms(name))
    for a, b in zip(
        query_values(measures, y, s, indptr),
        _reference.query_measures(measures, y, s, indptr, None),
        strict=True,
    ):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


@every
def test_the_number_of_threads_changes_no_bit(name):
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 200, 300)
    indptr = np.concatenate(([0], np.cumsum(sizes)))
    y, s = rng.integers(0, 5, indptr[-1]), rng.integers(0, 50, indptr[-1]) / 7
    alone, many = (evaluate_arrays(y, s, indptr, list(forms(name)), n_jobs=j).by_query for j in (1, 2))
    assert alone.tobytes() == many.tobytes()


@every
def test_queries_do_not_see_each_other(name):
    rng = np.random.default_rng(1)
    indptr = np.concatenate(([0], np.cumsum(rng.integers(1, 30, 20))))
    y, s = rng.integers(0, 5, indptr[-1]), rng.integers(0, 9, indptr[-1]) / 7
    together = values(name, y, s, indptr)
    for q in range(20):
        rows = slice(indptr[q], indptr[q + 1])
        alone = values(name, y[rows], s[rows], [0, indptr[q + 1] - indptr[q]])
        np.testing.assert_array_equal(together[:, [q]], alone)
