"""Sizes of documents: what one more unit of gain adds to a mean, and how uncertain gains are."""

import numpy as np
import pytest

from cleanrank.errors import InvalidInputError
from cleanrank.judges.labels import Pool, as_labels, as_runs, pool_of
from cleanrank.judges.sampling_sizes import FLOOR, document_sizes, gains_of, influence, uncertainty
from cleanrank.metrics.evaluation import evaluate_arrays
from cleanrank.metrics.measure import Measure

RANKED = {"q1": {"a": 3, "b": 2, "c": 1}, "q2": {"d": 2, "e": 1}}
JUDGE = {"q1": {"a": 2, "b": 0, "c": 1}, "q2": {"d": 1, "e": 3, "f": 1}}


@pytest.fixture
def pool() -> Pool:
    return pool_of([as_labels(JUDGE)], as_runs({"one": RANKED}))


@pytest.mark.parametrize("text", ["dcg@2:linear", "precision@2"])
def test_influence_on_sums_is_what_a_unit_of_gain_adds(pool, text):
    measure = Measure.parse(text)
    slopes = influence(pool, measure)[0]
    for row in range(len(pool.doc_ids)):
        means = []
        for grade in (0, 1):
            grades = np.zeros(len(pool.doc_ids), dtype=int)
            grades[row] = grade
            scores = np.ma.masked_equal(pool.scores[0], -np.inf)
            means.append(evaluate_arrays(grades, scores, pool.indptr, measure)[text].mean())
        assert means[1] - means[0] == pytest.approx(slopes[row])


def test_influence_on_ndcg_sums_to_nothing_weighted_by_gains(pool):
    """NDCG does not change where all gains of a query grow by one factor."""
    measure = Measure.parse("ndcg")
    gain = gains_of(measure, pool.grades[0])
    total = np.bincount(pool.query, influence(pool, measure)[0] * gain)
    assert total == pytest.approx(0, abs=1e-12)


def test_sizes_have_mean_one_and_a_floor(pool):
    sizes, ungraded = document_sizes(pool, Measure.parse("dcg@2"))
    counted = sizes > 0
    assert counted.sum() == 4
    assert sizes[counted].mean() == pytest.approx(1)
    assert sizes[counted].min() >= FLOOR
    assert ungraded == 0


def test_a_pilot_teaches_how_uncertain_the_judge_is(pool):
    measure, counted = Measure.parse("dcg@10"), np.ones(len(pool.doc_ids), bool)
    sure = uncertainty(pool, measure, counted, np.array([[0] * 500, [0] * 500]))
    assert sure[0] < uncertainty(pool, measure, counted)[0] / 3


def test_equal_rankings_have_no_difference_to_sample_for():
    pool = pool_of([as_labels(JUDGE)], as_runs({"one": RANKED, "two": RANKED}))
    with pytest.raises(InvalidInputError, match="must rank documents differently"):
        document_sizes(pool, Measure.parse("dcg@2"), difference=True)
