"""Labels that leave nothing to learn are refused in words, by every ranker."""

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import InvalidInputError
from cleanrank.rankers import RANKERS, make_ranker

SMALL = {
    "neural": {"epochs": 1, "network_options": {"hidden": (4,)}},
    "sour": {"start": 1, "end": 2, "n_estimators": 2},
    "prank": {"epochs": 2},
    "rank-svm": {"C": 1.0},
    "list-net": {"max_iter": 2},
}


def ranker_of(name, **params):
    return make_ranker(name, **SMALL.get(name, {"n_estimators": 2}), **params)


@pytest.fixture(scope="module")
def rows():
    return cr.make_ranking(12, 3, docs_per_query=8, seed=0)


@pytest.fixture(scope="module")
def one_document(rows):
    return cr.from_arrays(np.asarray(rows.X), rows.y, group=np.ones(rows.n_docs, dtype=int))


@pytest.mark.parametrize("name", RANKERS)
def test_equal_labels_are_refused(rows, name):
    with pytest.raises(InvalidInputError, match="labels must differ between documents; got the same one in"):
        ranker_of(name).fit_data(rows.with_labels(np.ones_like(rows.y)))


@pytest.mark.parametrize("name", sorted(RANKERS.keys() - {"gbdt", "prank"}))
def test_queries_without_a_pair_are_refused(rows, one_document, name):
    by_query = rows.with_labels(np.repeat(np.arange(rows.n_queries) % 3, rows.lengths))
    for data, words in ((one_document, "one document a query"), (by_query, "equal labels within every")):
        with pytest.raises(InvalidInputError, match=f"two documents of different labels.*{words}"):
            ranker_of(name).fit_data(data)


def test_what_can_be_learnt_from_grades_alone_is_learnt(one_document):
    scores = ranker_of("gbdt", min_child_samples=2).fit_data(one_document).predict(one_document.X)
    assert len(np.unique(scores)) > 1
    for points in (ranker_of("neural", loss="pointwise"), ranker_of("prank")):
        assert np.isfinite(points.fit_data(one_document).predict(one_document.X)).all()


def test_gains_decide_where_there_are_gains(rows):
    equal = cr.from_arrays(np.asarray(rows.X), rows.y, group=rows.lengths, gains=np.full(rows.n_docs, 0.5))
    with pytest.raises(InvalidInputError, match="labels must differ"):
        ranker_of("lambdarank").fit_data(equal)
    for options in ({"label_gain": [1] * 5}, {"params": {"label_gain": [1] * 5}}):
        with pytest.raises(InvalidInputError, match="labels must differ"):
            ranker_of("lambdarank", **options).fit_data(rows)
    assert ranker_of("gbdt", label_gain=[1] * 5).fit_data(rows).model_.best_iteration == 2


def test_one_query_with_a_pair_is_enough(rows):
    y = np.zeros_like(rows.y)
    y[0] = 1
    assert ranker_of("lambdarank").fit_data(rows.with_labels(y)).model_.best_iteration >= 1
