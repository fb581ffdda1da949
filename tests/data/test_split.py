import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cleanrank as cr
from cleanrank.data.split import Splits, fold_of_query, folds, split
from cleanrank.errors import InvalidInputError


def ranking(qid, seed=0):
    rng = np.random.default_rng(seed)
    return cr.from_arrays(rng.normal(size=(len(qid), 2)), rng.integers(0, 3, len(qid)), qid=qid)


@settings(max_examples=50, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 6), min_size=10, max_size=40),
    seed=st.integers(0, 2**32),
    shuffle=st.randoms(use_true_random=False),
)
def test_a_split_covers_all_rows_keeps_queries_whole_and_ignores_row_order(sizes, seed, shuffle):
    qid = np.repeat(np.arange(len(sizes)), sizes)
    parts = split(ranking(qid), (0.6, 0.2, 0.2), seed)
    rows = np.concatenate([part.row_ids for part in parts])
    assert sorted(rows) == list(range(len(qid)))
    ids = [set(part.query_ids.tolist()) for part in parts]
    assert sum(map(len, ids)) == len(sizes)
    assert set().union(*ids) == set(range(len(sizes)))
    assert all((part.lengths == np.array(sizes)[part.query_ids]).all() for part in parts)
    order = list(range(len(qid)))
    shuffle.shuffle(order)
    again = split(ranking(qid[order]), (0.6, 0.2, 0.2), seed)
    assert [set(part.query_ids.tolist()) for part in again] == ids


def test_sizes_follow_the_shares_and_seeds_differ():
    data = ranking(np.repeat(np.arange(101), 2))
    assert [part.n_queries for part in split(data, (0.6, 0.2, 0.2))] == [61, 20, 20]
    assert [part.n_queries for part in split(data, (0.5,))] == [50]
    assert [part.n_queries for part in split(data, (0.1, 0.2))] == [10, 20]
    first, again, other = (set(split(data, (0.5, 0.5), seed)[0].query_ids) for seed in (1, 1, 2))
    assert first == again
    assert first != other
    drawn = split(data, (0.5, 0.5), np.random.default_rng(1))[0]
    assert set(drawn.query_ids) == first


@pytest.mark.parametrize("shares", [(), (0.5, 0.6), (0.5, -0.1), (1.0, 0.0), (np.nan,)])
def test_impossible_shares_are_refused(shares):
    with pytest.raises(InvalidInputError, match="shares must be positive and sum to at most 1"):
        split(ranking([1, 2, 3]), shares)


def test_a_part_without_a_query_is_refused():
    with pytest.raises(InvalidInputError, match="at least one of the 3 queries"):
        split(ranking([1, 2, 3]), (0.9, 0.1))


@pytest.mark.parametrize("validation", [False, True])
def test_every_query_is_tested_once(validation):
    data = ranking(np.repeat(np.arange(23), 3))
    cut = folds(data, 5, seed=3, validation=validation)
    tested = np.concatenate([parts[-1].query_ids for parts in cut])
    assert sorted(tested) == list(range(23))
    for k, parts in enumerate(cut):
        ids = [set(part.query_ids.tolist()) for part in parts]
        assert sum(map(len, ids)) == len(set().union(*ids)) == 23
        assert len(ids[-1]) in (4, 5)
        if validation:
            assert ids[1] == set(cut[k - 1][-1].query_ids.tolist())


def test_folds_need_enough_queries():
    with pytest.raises(InvalidInputError, match=r"between 2 and the number of queries \(3\); got 4"):
        folds(ranking([1, 2, 3]), 4)
    with pytest.raises(InvalidInputError, match="at least 3"):
        folds(ranking([1, 2, 3]), 2, validation=True)
    assert sorted(fold_of_query(ranking(["a", "b", "c"]), 3)) == [0, 1, 2]


def test_splits_unpack():
    data = ranking([1, 2, 3])
    train, validation, test = Splits(data, data.select_queries([0]), data.select_queries([1]))
    assert (train.n_queries, validation.n_queries, test.n_queries) == (3, 1, 1)


def test_scikit_learn_splits_by_query():
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import GroupKFold, cross_val_score

    data = ranking(np.random.default_rng(0).integers(0, 12, 200))
    for train, test in GroupKFold(4).split(data.X, data.y, groups=data.qid):
        assert not set(data.qid[train]) & set(data.qid[test])
        assert data.select(test).n_queries == 3
        assert same_lengths(data.select(train), data)
    scores = cross_val_score(Ridge(), data.X, data.y, groups=data.qid, cv=GroupKFold(4))
    assert scores.shape == (4,)


def same_lengths(part, whole):
    known = dict(zip(whole.query_ids.tolist(), whole.lengths.tolist(), strict=True))
    return all(known[q] == n for q, n in zip(part.query_ids.tolist(), part.lengths.tolist(), strict=True))


@pytest.mark.parametrize("n", [1, 2.5, "3", True])
def test_folds_are_a_whole_number_of_parts(n):
    data = cr.from_arrays([[0.0]] * 3, [0, 1, 0], qid=[1, 2, 3])
    with pytest.raises(InvalidInputError, match="folds must be a whole number between 2 and"):
        fold_of_query(data, n)
