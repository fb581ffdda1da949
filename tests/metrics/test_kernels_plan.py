import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cleanrank.jit import query_chunks
from cleanrank.metrics._kernels import CODES, make_plan
from cleanrank.metrics.measure import MEASURES, as_measures, discount
from cleanrank.ragged import indptr_of


def test_every_measure_has_a_code():
    assert list(CODES) == list(MEASURES)
    assert len(set(CODES.values())) == len(CODES)


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(1, 70))
def test_chunks_cover_all_queries_once(sizes, chunks):
    borders = query_chunks(indptr_of(sizes), chunks)
    assert borders[0] == 0
    assert borders[-1] == len(sizes)
    assert (np.diff(borders) > 0).all()
    assert len(borders) - 1 <= chunks


def test_discounts():
    np.testing.assert_allclose(discount("log2", 3), [1, 1 / np.log2(3), 0.5])
    np.testing.assert_allclose(discount("letor", 4), [1, 1, 1 / np.log2(3), 0.5])


@pytest.mark.parametrize(
    ("measures", "top"),
    [("ndcg@10", 10), (["ndcg@10", "p@20"], 20), ("ndcg", 0), ("ndcg@10:ties=average", 0), ("ndcg@500", 0),
     (["ndcg@10", "auc"], 0), ("tau", 0)],
)  # fmt: skip
def test_the_top_suffices_when_all_measures_stop_there(measures, top):
    assert make_plan(as_measures(measures), np.array([0, 1]), np.array([0, 2])).top == top


def test_grades_without_gaps_where_they_are_high():
    plan = make_plan(as_measures("map:relevant=9"), np.array([0, 9, 4000]), np.array([0, 3]))
    assert plan.code.tolist() == [0, 1, 2]
    assert plan.gain_of[1].tolist() == [0, 9, 4000]
