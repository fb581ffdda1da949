from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import cleanrank as cr
from cleanrank.data.split import Splits
from cleanrank.errors import CleanrankError
from cleanrank.experiments.methods import METHODS, MethodTask, Unjudged
from cleanrank.experiments.methods.linear import (
    BEHIND,
    CONVERGED,
    EVERY,
    LIMIT,
    RISING,
    SPAN,
    Runs,
    adam,
    lbfgs,
)
from cleanrank.experiments.methods.linear_risk import risk_of
from cleanrank.experiments.sources import identity_of, load_splits
from cleanrank.noise.profiles import class_conditional
from cleanrank.theory.order_preservation import Risk


def task(splits, gamma=1.0, seed=0, **params):
    rng = np.random.default_rng(seed)
    train, validation = (
        d.with_labels(class_conditional(1 - gamma).sample(d.y, rng))
        for d in (splits.train, splits.validation)
    )
    given = {**METHODS["linear"].params, "max_steps": 200, **params}
    return MethodTask(train, validation, Unjudged(splits.test.X, splits.test.indptr), given, seed=seed)


@pytest.fixture(scope="module")
def splits():
    return load_splits("thetas", 1, {"n_queries": 4, "train": 200, "test": 200})


@pytest.mark.parametrize("loss", ["logistic", "sym-logistic", "ranknet", "sym-ranknet:micro"])
def test_a_model_a_query_learns_its_query(splits, loss):
    found = METHODS["linear"].run(task(splits, loss=loss, per_query=True))
    assert cr.evaluate(found.scores, splits.test, "auc").means["auc"] > 0.7
    again = METHODS["linear"].run(task(splits, loss=loss, per_query=True))
    np.testing.assert_array_equal(found.scores, again.scores)
    assert [len(values) for values in found.chosen.values()] == [splits.test.n_queries] * len(found.chosen)


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


def test_one_model_for_all_learns_nothing_where_queries_share_nothing():
    splits = load_splits("thetas", 1, {"n_queries": 60, "train": 40, "validation": 20, "test": 40})
    shared = METHODS["linear"].run(task(splits))
    assert cr.evaluate(shared.scores, splits.test, "auc").means["auc"] < 0.62
    assert {"learning_rate", "weight_decay", "start", "step", "stopped", "risk"} <= set(shared.chosen)


def problem(loss, n=60, seed=0):
    rng = np.random.default_rng(seed)
    X = np.column_stack((rng.normal(size=(n, 3)), np.ones(n))).astype(np.float32)
    y = X[:, 0] + 0.8 * rng.normal(size=n) > 0
    data = cr.from_arrays(X, y, group=[n // 2, n - n // 2])
    return risk_of(Risk.parse(loss), X, data, 10**6, rng), data


def test_adam_is_torchs():
    torch = pytest.importorskip("torch")
    risk, data = problem("ranknet")
    runs = adam(risk, risk, np.zeros((4, 1), dtype=np.float32), 1e-9, 20)
    above, below = (torch.tensor(risk.X[data.y == grade]) for grade in (1, 0))
    queries = [data.qid[data.y == grade] for grade in (1, 0)]
    mine = [np.outer(queries[0] == q, queries[1] == q) for q in np.unique(data.qid)]
    weight = torch.tensor(sum(pairs / pairs.sum() for pairs in mine).astype(np.float32) / len(mine))
    for run in range(len(runs.rate)):
        W = torch.zeros(4, requires_grad=True)
        adam_of_torch = torch.optim.Adam([W], lr=float(runs.rate[run]), weight_decay=float(runs.decay[run]))
        losses = []
        for step in range(21):
            margins = (above @ W)[:, None] - (below @ W)[None, :]
            value = (weight * torch.nn.functional.softplus(-margins)).sum()
            if step < EVERY or step % EVERY == 0:
                losses.append((float(value.detach()), step))
            adam_of_torch.zero_grad()
            value.backward()
            adam_of_torch.step()
        assert runs.held[run] == pytest.approx(min(losses)[0], rel=1e-4)
        assert runs.step[run] == min(losses)[1]


@pytest.mark.parametrize("loss", ["logistic", "ranknet", "ranknet:micro"])
def test_both_solvers_reach_the_minimum_of_a_convex_risk(loss):
    """A decay of 1e-3 makes it strictly convex: the gradient of the objective vanishes in one place."""
    risk, _ = problem(loss)
    start = np.zeros((4, 1), dtype=np.float32)
    ends = [solver(risk, risk, start, 1e-6, 5000) for solver in (adam, lbfgs)]
    best = [float(runs.objective[runs.decay == 1e-3].min()) for runs in ends]
    assert best[0] == pytest.approx(best[1], rel=1e-4)
    assert CONVERGED in ends[0].stopped
    assert set(ends[1].stopped) == {CONVERGED}
    for other in 0.1 * np.random.default_rng(0).normal(size=(50, 4, 1)) + [[3.0], [0.5], [1.0], [0.0]]:
        assert risk.values(other)[0] + 0.5e-3 * float((other**2).sum()) > best[1] - 1e-6


def test_runs_stop_for_the_reasons_they_give():
    inside, _ = problem("logistic")
    outside, _ = problem("logistic", seed=1)
    runs = adam(inside, outside, np.zeros((4, 1), dtype=np.float32), 1e-4, 1000)
    for run, word in enumerate(runs.stopped):
        if word == RISING:
            assert runs.steps[run] - runs.step[run] > 2 * SPAN
        if word == LIMIT:
            assert runs.steps[run] == 1000
    assert {LIMIT, CONVERGED} <= set(runs.stopped)
    slow = runs.rate == 1e-5
    assert [runs.stopped[i] for i in np.flatnonzero(slow)] == [LIMIT] * 3
    assert (runs.held <= outside.values(np.zeros((4, 1)))[0]).all()


def test_the_start_with_the_least_training_objective_goes_on():
    risk, _ = problem("sym-ranknet")
    far = np.array([[0, -30.0], [0, 0], [0, 0], [0, 0]], dtype=np.float32)  # where the sigmoid is flat
    runs = adam(risk, risk, far, 1e-4, 600)
    assert set(runs.start.tolist()) == {0, 1}
    behind = [word == BEHIND for word in runs.stopped]
    assert sum(behind) >= 10
    assert (runs.start[behind] == 1).all()
    assert runs.start[runs.best()] == 0
    alone = adam(risk, risk, far[:, :1], 1e-4, 600)
    assert runs.held[runs.best()] == pytest.approx(alone.held[alone.best()])


def test_the_second_start_of_l_bfgs_is_the_end_of_the_convex_loss():
    """One relevant document in thirty: from the origin calling all of them irrelevant is a trap."""
    rng = np.random.default_rng(4)
    X = np.column_stack((rng.normal(size=(300, 3)), np.ones(300))).astype(np.float32)
    y = X[:, 0] > 1.8
    data = cr.from_arrays(X, y, group=[300])
    risk = risk_of(Risk.parse("sym-logistic"), X, data, 1, rng)
    starts = np.zeros((4, 2), dtype=np.float32)
    starts[:, 1] = -9.0  # is not used
    runs = lbfgs(risk, risk, starts, 1e-4, 500)
    convex = lbfgs(risk.with_loss("logistic"), risk.with_loss("logistic"), starts[:, :1], 1e-4, 500)
    reached = risk.values(convex.ends) + 0.5 * convex.decay * (convex.ends**2).sum(axis=0)
    assert (runs.objective[runs.start == 1] <= reached + 1e-9).all()
    assert (runs.objective[runs.start == 1] <= runs.objective[runs.start == 0] + 1e-6).all()
    assert runs.objective.min() < 0.6 * y.mean()


def test_a_run_is_chosen_by_hold_out_risk_among_the_best_starts():
    columns = {"rate": [0.1, 0.1, 0.01], "decay": [1e-3] * 3, "start": [0, 1, 0]}
    held, objective, none = np.array([0.2, 0.1, 0.3]), np.array([0.4, 0.5, 0.1]), np.zeros(3, dtype=int)
    columns = {name: np.array(values) for name, values in columns.items()}
    runs = Runs(
        np.zeros((1, 3)),
        **columns,
        held=held,
        step=none,
        objective=objective,
        steps=none,
        stopped=[LIMIT] * 3,
        ends=np.zeros((1, 3)),
    )
    assert runs.best() == 0


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


@pytest.mark.parametrize("loss", ["ndcg@10", "ranknet:prevalence", "hinge", "pair-ramp:micro"])
def test_complaints(splits, loss):
    with pytest.raises(CleanrankError, match="must be logistic or sym-logistic"):
        METHODS["linear"].run(task(splits, loss=loss))
