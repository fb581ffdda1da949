"""ListNet against the paper's loss in plain NumPy; weights, the best step, errors."""

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize

import cleanrank as cr
from cleanrank.errors import InvalidInputError
from cleanrank.jit import query_chunks
from cleanrank.rankers.classic.list_net import ListNet, first_place, list_losses
from tests.rankers.classic.rows import random_rows


def naive(w: Any, X: Any, y: Any, indptr: Any) -> tuple[float, Any]:
    """(loss, gradient): - sum of softmax(y) log softmax(X w), query by query."""
    loss, gradient = 0.0, np.zeros(X.shape[1])
    for a, b in itertools.pairwise(indptr):
        scores = X[a:b] @ w
        target, chances = (np.exp(z - z.max()) / np.exp(z - z.max()).sum() for z in (y[a:b], scores))
        loss -= target @ (scores - scores.max() - np.log(np.exp(scores - scores.max()).sum()))
        gradient += X[a:b].T @ (chances - target)
    return loss, gradient


def compiled(w: Any, X: Any, y: Any, indptr: Any, weights: Any = None) -> tuple[float, Any]:
    weights = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
    target = first_place(y.astype(np.float64), weights, indptr)
    sums = list_losses(X, w, target, weights, indptr, query_chunks(indptr, 64))
    return sums[0], sums[1:]


@given(seed=st.integers(0, 10_000), grades=st.integers(2, 5), scale=st.sampled_from([0.0, 1e-6, 1.0, 1e4]))
@settings(max_examples=50, deadline=None)
def test_loss_and_gradient_equal_the_papers(seed: int, grades: int, scale: float) -> None:
    X, y, indptr = random_rows(seed, grades)
    rng = np.random.default_rng(seed)
    w = scale * rng.normal(size=X.shape[1])
    loss, gradient = compiled(w, X, y, indptr)
    expected, slope = naive(w, X, y, indptr)
    assert loss == pytest.approx(expected, rel=1e-8)
    np.testing.assert_allclose(gradient, slope, rtol=1e-8, atol=1e-8)
    if scale == 1.0:
        numeric = approx_fprime(w, lambda w: compiled(w, X, y, indptr)[0], 1e-7)
        np.testing.assert_allclose(gradient, numeric, atol=1e-4)
    weights = rng.integers(0, 4, len(y))
    copied = np.repeat(np.arange(len(y)), weights)
    lengths = [weights[a:b].sum() for a, b in itertools.pairwise(indptr)]
    copies = np.append(0, np.cumsum([n for n in lengths if n]))
    loss, gradient = compiled(w, X, y, indptr, weights)
    expected, slope = naive(w, X[copied], y[copied], copies)
    assert loss == pytest.approx(expected, rel=1e-8)
    np.testing.assert_allclose(gradient, slope, rtol=1e-8, atol=1e-8)


def test_solution_is_that_of_a_plain_minimiser() -> None:
    X, y, indptr = random_rows(2, queries=30)
    peer = minimize(lambda w: naive(w, X, y, indptr), np.zeros(X.shape[1]), jac=True, method="BFGS", tol=1e-9)
    ranker = ListNet(scaling="none", tol=1e-9, max_iter=1000).fit(X, y, group=np.diff(indptr))
    assert ranker.loss_ == pytest.approx(peer.fun / 30, rel=1e-8)
    np.testing.assert_allclose(ranker.coef_, peer.x, atol=1e-5)


def test_the_best_step_on_validation_rows_is_kept() -> None:
    train, held = (cr.make_ranking(25, 6, docs_per_query=12, seed=seed) for seed in (1, 2))
    ranker = ListNet().fit_data(train, held)
    values = ranker.evals_result_["valid_0"]["map"]
    assert ranker.best_iteration_ == int(np.argmax(values)) + 1
    assert cr.evaluate(ranker.predict(held.X), held, "map").means["map"] == pytest.approx(max(values))
    stopped = ListNet(early_stopping_rounds=2).fit_data(train, held)
    assert len(stopped.evals_result_["valid_0"]["map"]) == stopped.best_iteration_ + 2
    last = ListNet(early_stopping_rounds=None).fit_data(train, held)
    np.testing.assert_allclose(last.coef_, ListNet().fit_data(train).coef_)
    assert ListNet(max_iter=3).fit_data(train).best_iteration_ == 3


def test_threads_change_no_bit() -> None:
    data = cr.make_ranking(80, 5, docs_per_query=10, seed=5)
    one, two = (ListNet(n_jobs=n).fit_data(data).coef_ for n in (1, 2))
    assert (one == two).all()


def test_a_single_document_teaches_nothing() -> None:
    X, y, indptr = random_rows(4)
    more = np.vstack([X, [[1.0, 2.0, 3.0, 4.0]]])
    one = ListNet(scaling="none", tol=1e-9).fit(X, y, group=np.diff(indptr))
    two = ListNet(scaling="none", tol=1e-9).fit(more, np.append(y, 2), group=[*np.diff(indptr), 1])
    np.testing.assert_allclose(one.coef_, two.coef_, atol=1e-5)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"max_iter": 0}, "max_iter must be an integer >= 1; got 0."),
        ({"tol": -1}, "tol must be a number > 0; got -1."),
        ({"early_stopping_rounds": -1}, "early_stopping_rounds must be an integer >= 0; got -1."),
    ],
    ids=str,
)
def test_bad_settings_are_refused(option: dict[str, Any], words: str) -> None:
    data = cr.make_ranking(5, 3, docs_per_query=5, seed=0)
    with pytest.raises(InvalidInputError) as error:
        ListNet(**option).fit_data(data)
    assert words in str(error.value)


def test_weights_of_zero_alone_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="sample_weight must be above 0 for at least one row"):
        ListNet().fit([[0.0], [1.0]], [0, 1], group=[2], sample_weight=[0, 0])
