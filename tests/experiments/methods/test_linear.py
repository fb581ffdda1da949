import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import cleanrank as cr
from cleanrank.data.split import Splits
from cleanrank.errors import CleanrankError
from cleanrank.experiments.methods import METHODS, MethodTask, Unjudged
from cleanrank.experiments.methods.linear import DECAYS, RATES, Rows, descend, rows_of
from cleanrank.experiments.sources import identity_of, load_splits
from cleanrank.losses.binary import LOSSES
from cleanrank.noise.profiles import class_conditional
from cleanrank.theory.order_preservation import Risk


def task(splits, gamma=1.0, seed=0, **params):
    rng = np.random.default_rng(seed)
    train, validation = (
        d.with_labels(class_conditional(1 - gamma).sample(d.y, rng))
        for d in (splits.train, splits.validation)
    )
    given = {**METHODS["linear"].params, "steps": 120, **params}
    return MethodTask(train, validation, Unjudged(splits.test.X, splits.test.indptr), given, seed=seed)


@pytest.fixture(scope="module")
def splits():
    return load_splits("thetas", 1, {"n_queries": 4, "train": 200, "test": 200})


@pytest.mark.parametrize("loss", ["logistic", "sym-logistic", "ranknet", "sym-ranknet:micro", "pair-hinge"])
def test_a_model_a_query_learns_its_query(splits, loss):
    found = METHODS["linear"].run(task(splits, loss=loss, per_query=True))
    assert cr.evaluate(found.scores, splits.test, "auc").means["auc"] > 0.7
    again = METHODS["linear"].run(task(splits, loss=loss, per_query=True))
    np.testing.assert_array_equal(found.scores, again.scores)


@pytest.mark.parametrize("loss", ["logistic", "sym-ranknet:micro"])
def test_sparse_features_give_the_scores_of_dense_ones_on_the_same_scale(splits, loss):
    rows = [d.select(np.arange(d.n_docs)) for d in splits]
    train = rows[0].X
    centred = [replace(d, X=(d.X - train.mean(axis=0)) / train.std(axis=0)) for d in rows]
    sparse = [replace(d, X=csr_matrix(d.X)) for d in centred]
    dense, found = (
        METHODS["linear"].run(task(Splits(*parts), gamma=0.9, loss=loss, per_query=True)).scores
        for parts in (centred, sparse)
    )
    np.testing.assert_allclose(found, dense, rtol=1e-3, atol=1e-3)


def test_pairs_drawn_by_number_are_pairs_of_the_query_drawn_evenly():
    data = cr.from_arrays(np.zeros((9, 1)), [0, 1, 0, 0, 0, 1, 0, 1, 0], group=[5, 4])
    X = np.eye(9, dtype=np.float32)
    counts = np.zeros((9, 9))
    for seed in range(400):
        drawn = rows_of(Risk("logistic", "macro"), X, data, 2, np.random.default_rng(seed)).r
        assert drawn.shape == (4, 9)
        np.add.at(counts, (drawn.argmax(axis=1), drawn.argmin(axis=1)), 1)
    allowed = (data.y[:, None] > data.y[None, :]) & (data.qid[:, None] == data.qid[None, :])
    assert not counts[~allowed].any()
    np.testing.assert_allclose(counts[allowed], 200, atol=50)


def test_one_model_for_all_learns_nothing_where_queries_share_nothing():
    splits = load_splits("thetas", 1, {"n_queries": 60, "train": 40, "validation": 20, "test": 40})
    shared = METHODS["linear"].run(task(splits))
    assert cr.evaluate(shared.scores, splits.test, "auc").means["auc"] < 0.62
    assert set(shared.chosen) == {"learning_rate", "weight_decay", "step", "risk"}


def test_rows_of_pairs_carry_the_weights_of_their_risk():
    data = cr.from_arrays(np.zeros((7, 1)), [1, 0, 0, 1, 1, 1, 0], group=[3, 2, 2])
    X = np.random.default_rng(1).normal(size=(7, 2)).astype(np.float32)
    rng = np.random.default_rng(0)
    macro = rows_of(Risk("logistic", "macro"), X, data, 99, rng)
    np.testing.assert_array_equal(macro.r, [X[0] - X[1], X[0] - X[2], X[5] - X[6]])
    np.testing.assert_allclose(macro.weight, [1 / 4, 1 / 4, 1 / 2])
    micro = rows_of(Risk("logistic", "micro"), X, data, 99, rng)
    np.testing.assert_allclose(micro.weight, [1 / 27, 1 / 27, 1 / 12])
    fewer = rows_of(Risk("logistic", "micro"), X, data, 1, rng)
    np.testing.assert_allclose(fewer.weight, [2 / 27, 1 / 12])
    points = rows_of(Risk("logistic"), X, data, 99, rng)
    np.testing.assert_allclose(points.weight.sum(), 1)


def test_adam_is_torchs():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    r = rng.normal(size=(30, 3)).astype(np.float32)
    rows = Rows(r, (rng.random(30) < 0.5).astype(np.float32), np.full(30, 1 / 30, dtype=np.float32))
    for g, (rate, decay) in enumerate(itertools.product(RATES, DECAYS)):
        W = torch.zeros(3, requires_grad=True)
        adam = torch.optim.Adam([W], lr=rate, weight_decay=decay)
        losses = []
        for _ in range(20):
            risk = (
                torch.tensor(rows.weight)
                * LOSSES["logistic"].value(torch.tensor(r) @ W, torch.tensor(rows.target))
            ).sum()
            losses.append(float(risk.detach()))
            adam.zero_grad()
            risk.backward()
            adam.step()
        if g == 0:
            found = descend(LOSSES["logistic"], rows, rows, 20)
        assert found[1][g] == pytest.approx(min(losses), rel=1e-4)
        assert found[2][g] == int(np.argmin(losses))


def test_sources_of_two_grades():
    assert identity_of("thetas", 2, {}) == "thetas 1"
    splits = load_splits("thetas", 3, {"n_queries": 2, "train": 5, "validation": 3, "test": 4})
    assert [d.n_docs for d in (splits.train, splits.validation, splits.test)] == [10, 6, 8]
    assert splits.train.query_ids.tolist() == splits.test.query_ids.tolist()


@pytest.mark.data
def test_files_with_two_grades(data_root):
    splits = load_splits("mq2008", 1, {"relevant": 2})
    whole = load_splits("mq2008", 1, {})
    np.testing.assert_array_equal(splits.test.y, whole.test.y >= 2)
    assert whole.train.n_grades == 3


@pytest.mark.parametrize("loss", ["ndcg@10", "ranknet:prevalence"])
def test_complaints(splits, loss):
    with pytest.raises(CleanrankError, match="must name a loss of points"):
        METHODS["linear"].run(task(splits, loss=loss))
