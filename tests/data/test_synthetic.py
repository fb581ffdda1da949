import tracemalloc

import numpy as np
import pytest

from cleanrank.data.split import split
from cleanrank.data.synthetic import (
    SHAPES,
    _piece,
    _plan,
    make_haddad,
    make_ranking,
    make_ranking_chunks,
)
from cleanrank.errors import InvalidInputError, UnknownNameError
from tests.oracles import same_data


def ndcg10(scores, data):
    """A plain loop, exponential gain, queries without relevant documents left out."""
    values = []
    for start, end in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        gain = 2.0 ** data.y[start:end] - 1
        discount = 1 / np.log2(np.arange(2, 2 + min(10, len(gain))))
        best = (np.sort(gain)[::-1][:10] * discount).sum()
        if best:
            values.append((gain[np.argsort(-scores[start:end], kind="stable")][:10] * discount).sum() / best)
    return float(np.mean(values))


def with_utility(n_queries, n_features, **options):
    """The data of ``make_ranking`` and the utility of every row, before the judge's noise."""
    return _piece(_plan(n_queries, n_features, **options), 0, n_queries)


def test_the_shape_is_that_of_web_search():
    data = make_ranking(800, seed=3)
    shares = np.bincount(data.y, minlength=5) / data.n_docs
    np.testing.assert_allclose(shares, [0.517, 0.325, 0.133, 0.017, 0.008], atol=0.012)
    assert 108 < data.lengths.mean() < 132
    assert np.median(data.lengths) < 0.93 * data.lengths.mean()
    assert data.n_features == 136
    assert np.isfinite(data.X).all()


def test_columns_are_of_mixed_kinds():
    data = make_ranking(300, seed=1)
    X = data.X
    whole = (np.floor(X) == X).all(axis=0)
    assert 0.3 < whole.mean() < 0.5
    counts = X[:, whole]
    assert (counts.max(axis=0) > 20 * np.maximum(counts.mean(axis=0), 0.5)).mean() > 0.8
    shares = ((X >= 0) & (X <= 1)).all(axis=0)
    assert 0.15 < shares.mean() < 0.25
    starts = data.indptr[:-1]
    per_query = [np.repeat(X[starts, j], data.lengths) for j in range(136)]
    constant = np.array([(X[:, j] == per_query[j]).all() for j in range(136)])
    assert 8 <= constant.sum() <= 14
    own = X[:, ~constant]
    correlation = np.abs(np.corrcoef(np.argsort(np.argsort(own, axis=0), axis=0).T))
    np.fill_diagonal(correlation, 0)
    assert (correlation.max(axis=0) > 0.5).mean() > 0.5
    assert (correlation.max(axis=0) < 0.1).any()


def test_the_same_bits_for_any_chunk_size_thread_count_and_longer_sets():
    whole, utility = with_utility(150, 12, docs_per_query=20, seed=5)
    for size in (1, 31, 32, 33, 150, 1000):
        pieces = list(make_ranking_chunks(150, 12, docs_per_query=20, seed=5, chunk_queries=size))
        np.testing.assert_array_equal(np.concatenate([p.X for p in pieces]), whole.X)
        np.testing.assert_array_equal(np.concatenate([p.y for p in pieces]), whole.y)
        np.testing.assert_array_equal(np.concatenate([p.row_ids for p in pieces]), whole.row_ids)
        np.testing.assert_array_equal(np.concatenate([p.query_ids for p in pieces]), whole.query_ids)
        np.testing.assert_array_equal(np.concatenate([p.lengths for p in pieces]), whole.lengths)
    assert same_data(make_ranking(150, 12, docs_per_query=20, seed=5, n_jobs=3), whole)
    longer = make_ranking(170, 12, docs_per_query=20, seed=5)
    assert same_data(longer.select_queries(np.arange(150)), whole)
    assert not np.array_equal(make_ranking(150, 12, docs_per_query=20, seed=6).y, whole.y)
    assert utility.shape == whole.y.shape
    assert same_data(make_ranking(150, 12, docs_per_query=20, seed=5), whole)


def test_signal_decides_how_far_grades_follow_the_utility():
    clean, utility = with_utility(100, 5, signal=1.0)
    order = np.argsort(utility)
    assert (np.diff(clean.y[order]) >= 0).all()
    found = []
    for signal in (0.0, 0.5, 0.9):
        data, utility = with_utility(100, 5, signal=signal)
        found.append(ndcg10(utility, data))
        shares = np.bincount(data.y, minlength=5) / data.n_docs
        np.testing.assert_allclose(shares, [0.517, 0.325, 0.133, 0.017, 0.008], atol=0.05)
    assert found == sorted(found)
    assert found[2] - found[0] > 0.3
    assert utility.mean() == pytest.approx(0, abs=0.15)
    assert utility.std() == pytest.approx(1, abs=0.1)


@pytest.mark.slow
def test_trees_beat_a_line_and_are_far_from_perfect():
    lightgbm = pytest.importorskip("lightgbm")
    from sklearn.linear_model import Ridge

    train, test = split(make_ranking(900, seed=0), (0.75, 0.25))
    model = lightgbm.LGBMRanker(n_estimators=100, n_jobs=1, verbose=-1)
    model.fit(train.X, train.y, group=train.lengths)
    trees = ndcg10(model.predict(test.X), test)

    def scaled(X):
        return np.log1p(np.maximum(X, 0))

    line = ndcg10(Ridge(100.0).fit(scaled(train.X), train.y).predict(scaled(test.X)), test)
    chance = ndcg10(np.random.default_rng(0).random(test.n_docs), test)
    assert 0.45 < trees < 0.62
    assert chance + 0.15 < line < trees - 0.03


@pytest.mark.parametrize("shape", SHAPES)
def test_presets_have_the_outline_they_imitate(shape):
    outline = SHAPES[shape]
    data = make_ranking(64, shape=shape, n_features=3, seed=2)
    assert data.n_grades <= len(outline.grades)
    spread = outline.docs * np.sqrt(np.expm1(outline.spread**2) / 64)
    assert abs(data.lengths.mean() - outline.docs) < 4 * spread + 1
    shares = np.bincount(data.y, minlength=len(outline.grades)) / data.n_docs
    np.testing.assert_allclose(shares, outline.grades, atol=0.08)
    assert sum(outline.grades) == pytest.approx(1, abs=1e-3)
    assert next(make_ranking_chunks(1, shape=shape)).n_features == outline.n_features


def test_chunks_need_the_memory_of_one_piece():
    tracemalloc.start()
    rows = sum(piece.n_docs for piece in make_ranking_chunks(4000, 100, docs_per_query=60, chunk_queries=64))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert rows * 100 * 4 > 80e6
    assert peak < 40e6


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"n_queries": 0}, "n_queries must be an integer >= 1"),
        ({"grades": (0.5, 0.4)}, "grades must be two or more shares that sum to 1"),
        ({"grades": (1.0,)}, "grades must be two or more"),
        ({"signal": 1.5}, "signal must be a number >= 0 and <= 1"),
        ({"docs_per_query": 0.5}, "docs_per_query must have a mean of at least 1"),
        ({"docs_per_query": (10.0, -1.0)}, "docs_per_query must"),
    ],
)
def test_impossible_outlines_are_refused(arguments, said):
    with pytest.raises(InvalidInputError, match=said):
        make_ranking(**arguments)


def test_unknown_names_are_refused():
    with pytest.raises(UnknownNameError, match="Did you mean 'mslr'"):
        make_ranking(shape="mslr10k")
    with pytest.raises(UnknownNameError, match="Did you mean 'signal'"):
        make_ranking_chunks(10, signals=1)
    with pytest.raises(InvalidInputError, match="chunk_queries"):
        make_ranking_chunks(10, chunk_queries=0)
    with pytest.raises(UnknownNameError, match="per-query, shared"):
        make_haddad(theta="own")


def test_haddad_relevance_is_logistic_in_the_query_own_direction():
    data = make_haddad(30, 4000, dim=3, seed=1)
    assert (data.n_queries, data.n_features, set(data.lengths)) == (30, 3, {4000})
    assert data.X.mean() == pytest.approx(0, abs=0.01)
    assert data.X.std() == pytest.approx(1, abs=0.01)
    thetas = []
    for q in range(data.n_queries):
        rows = slice(data.indptr[q], data.indptr[q + 1])
        X, y, theta = data.X[rows].astype(float), data.y[rows], np.zeros(3)
        for _ in range(20):
            p = 1 / (1 + np.exp(-X @ theta))
            theta += np.linalg.solve((X.T * (p * (1 - p))) @ X, X.T @ (y - p))
        thetas.append(theta)
        margin = X @ theta
        for low, high in ((-1.0, -0.5), (0.5, 1.0)):
            inside = (margin > low) & (margin < high)
            if inside.sum() > 200:
                share = y[inside].mean()
                assert share == pytest.approx(1 / (1 + np.exp(-margin[inside].mean())), abs=0.1)
    thetas = np.array(thetas)
    assert np.abs(thetas.mean(axis=0)).max() < 0.7
    assert 0.7 < thetas.std() < 1.3


def test_shared_theta_carries_over_from_query_to_query():
    def spread(theta, tau):
        data = make_haddad(60, 800, dim=4, theta=theta, tau=tau, seed=7)
        lean = [
            (data.X[a:b] * (2.0 * data.y[a:b, None] - 1)).mean(axis=0)
            for a, b in zip(data.indptr[:-1], data.indptr[1:], strict=True)
        ]
        lean = np.array(lean)
        return lean.std(axis=0).mean() / np.abs(lean.mean(axis=0)).max()

    assert spread("shared", 0.0) < 0.4
    assert spread("shared", 0.0) < spread("shared", 0.5) < spread("per-query", 0.5)
    assert same_data(make_haddad(3, 10, seed=1), make_haddad(3, 10, seed=1))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_queries": 2.5}, "n_queries"),
        ({"n_features": "4"}, "n_features"),
        ({"docs_per_query": (3,)}, "docs_per_query"),
        ({"seed": -1}, "seed must be an integer >= 0"),
        ({"seed": None}, "seed must be an integer >= 0"),
        ({"n_jobs": 0}, "n_jobs"),
    ],
)
def test_arguments_of_another_kind_are_refused(options, words):
    with pytest.raises(InvalidInputError, match=words):
        make_ranking(**{"n_queries": 2, "n_features": 3, **options})


def test_haddad_s_generator_checks_its_seed():
    with pytest.raises(InvalidInputError, match="seed"):
        make_haddad(2, 5, seed=-1)
