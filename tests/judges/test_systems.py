"""Ranks and values of the systems of a pool, against evaluate."""

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.judges.labels import as_labels, as_runs, pool_of
from cleanrank.judges.systems import system_ranks, system_values
from cleanrank.metrics.measure import Measure


@pytest.fixture
def pool():
    rng = np.random.default_rng(0)
    judge = {f"q{q}": {f"d{i}": int(rng.integers(0, 4)) for i in range(12)} for q in range(5)}
    runs = {
        name: {
            q: {d: float(np.round(rng.normal(), 1)) for d in list(docs)[skip:]} for q, docs in judge.items()
        }
        for name, skip in (("one", 0), ("two", 3))
    }
    return pool_of([as_labels(judge)], as_runs(runs))


@pytest.mark.parametrize("rows", [None, "some"])
def test_values_are_those_of_evaluate(pool, rows):
    measures = tuple(map(Measure.parse, ("ndcg@5:trec", "map", "dcg@10", "recall@3:trec")))
    kept = np.ones(len(pool.doc_ids), bool) if rows is None else np.arange(len(pool.doc_ids)) % 4 > 0
    values = system_values(pool, pool.grades[0], measures, None if rows is None else kept)
    data = pool.data(pool.grades[0], kept)
    for s, scores in enumerate(pool.scores):
        expected = cr.evaluate(np.ma.masked_equal(scores[kept], -np.inf), data, measures)
        assert values[:, s] == pytest.approx(expected.by_query)


def test_ranks_count_from_one_and_are_zero_where_nothing_was_retrieved(pool):
    places = system_ranks(pool)
    assert (places[0] > 0).all()
    assert ((places[1] == 0) == np.isneginf(pool.scores[1])).all()
    for q in range(pool.n_queries):
        rows = slice(*pool.indptr[q : q + 2])
        assert sorted(places[0, rows]) == list(range(1, 13))
        by_rank = np.argsort(places[0, rows])
        assert (np.diff(pool.scores[0, rows][by_rank]) <= 0).all()
