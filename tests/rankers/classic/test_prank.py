"""PRank against Crammer and Singer's rule in plain Python, the order of its thresholds, its robust forms."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

import cleanrank as cr
from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.rankers.classic.prank import PRank, put_in_order

FORMS: list[dict[str, Any]] = [{}, {"robust": "margin", "margin": 0.3}, {"robust": "average"}]


def naive(
    X: Any, y: Any, weights: Any, epochs: int, seed: int, robust: str | None = None, margin: float = 0.0
) -> list[tuple[Any, Any]]:
    """(w, b) after every epoch; grades 1..C and thresholds b_1..b_{C-1}, as in the paper."""
    C = int(y.max()) + 1
    w, b = np.zeros(X.shape[1]), np.zeros(C - 1)
    least = margin * (1 + np.mean([x @ x for x in X])) if robust == "margin" else 0.0
    rng = np.random.default_rng(seed)
    after_rows, models = [], []
    for _ in range(epochs):
        for i in rng.permutation(len(y)):
            x, grade = X[i], y[i] + 1
            predicted = next((r for r in range(1, C) if w @ x - b[r - 1] < 0), C)
            tau = np.zeros(C - 1)
            for r in range(1, C):
                z = 1 if grade > r else -1
                reach = z * (w @ x - b[r - 1])
                if (predicted != grade and reach <= 0) or reach < least:
                    tau[r - 1] = z
            w, b = w + weights[i] * tau.sum() * x, b - weights[i] * tau
            b = isotonic_regression(b).x
            after_rows.append((weights[i], w, b))
        if robust == "average":
            total = sum(weight for weight, _, _ in after_rows)
            mean = [sum(each[0] * each[part] for each in after_rows) / total for part in (1, 2)]
            models.append((mean[0], mean[1]))
        else:
            models.append((w, b))
    return models


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_the_papers_rule(form: dict[str, Any], weighted: bool) -> None:
    data = cr.make_ranking(12, 4, docs_per_query=8, seed=3)
    weights = np.random.default_rng(1).uniform(0.2, 3.0, data.n_docs) if weighted else np.ones(data.n_docs)
    ranker = PRank(epochs=4, random_state=5, scaling="none", **form)
    ranker.fit(data.X, data.y, qid=data.qid, sample_weight=weights if weighted else None)
    X = np.asarray(data.X, dtype=np.float64)
    w, b = naive(X, data.y, weights.astype(np.float32).astype(np.float64), 4, 5, **form)[-1]
    np.testing.assert_allclose(ranker.coef_, w, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(ranker.thresholds_, b, rtol=1e-8, atol=1e-8)
    scores = X @ w
    assert ranker.predict_grades(data.X).tolist() == [int((score >= b).sum()) for score in scores]


@given(
    seed=st.integers(0, 10_000), form=st.sampled_from(FORMS), grades=st.integers(2, 6), weighted=st.booleans()
)
@settings(max_examples=40, deadline=None)
def test_thresholds_are_ordered(seed: int, form: dict[str, Any], grades: int, weighted: bool) -> None:
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(40, 3)), rng.integers(grades, size=40)
    y[:2] = 0, grades - 1
    weights = rng.uniform(0, 4, 40) if weighted else None
    ranker = PRank(epochs=3, random_state=seed, **form)
    ranker.fit(X, y, group=[20, 20], sample_weight=weights)
    assert len(ranker.thresholds_) == grades - 1
    assert (np.diff(ranker.thresholds_) >= -1e-12).all()
    assert set(ranker.predict_grades(X)) <= set(range(grades))
    if not weighted and form.get("robust") != "average":
        assert (ranker.thresholds_ == np.round(ranker.thresholds_)).all()


@given(values=st.lists(st.floats(-5, 5), max_size=9))
def test_the_nearest_order_is_isotonic_regression(values: list[float]) -> None:
    b = np.array(values)
    expected = isotonic_regression(b).x if len(b) else b
    put_in_order(b)
    np.testing.assert_allclose(b, expected, atol=1e-12)


def test_validation_rows_choose_the_epoch() -> None:
    data = cr.make_ranking(60, 6, docs_per_query=10, signal=0.4, seed=0)
    train, held = cr.split(data, (0.6, 0.4), seed=0)
    ranker = PRank(epochs=20, scaling="none").fit_data(train, held)
    history = ranker.evals_result_["valid_0"]["map"]
    assert len(history) == 20
    assert ranker.best_iteration_ == int(np.argmax(history)) + 1
    models = naive(np.asarray(train.X, dtype=np.float64), train.y, np.ones(train.n_docs), 20, 0)
    np.testing.assert_allclose(ranker.coef_, models[ranker.best_iteration_ - 1][0], atol=1e-8)
    assert ranker.score(held.X, held.y, qid=held.qid) == pytest.approx(max(history), abs=1e-12)
    last = PRank(epochs=20, early_stopping_rounds=None).fit_data(train, held)
    assert last.best_iteration_ == 20
    soon = PRank(epochs=20, early_stopping_rounds=3).fit_data(train, held)
    assert len(soon.evals_result_["valid_0"]["map"]) < 20


def test_rows_of_no_weight_are_not_there() -> None:
    data = cr.make_ranking(10, 4, docs_per_query=8, seed=2)
    weights = (np.arange(data.n_docs) % 3 > 0).astype(np.float64)
    for form in FORMS:
        both = PRank(epochs=3, scaling="none", **form)
        whole = both.fit(data.X, data.y, qid=data.qid, sample_weight=weights).coef_
        part = both.fit(data.X[weights > 0], data.y[weights > 0], qid=data.qid[weights > 0]).coef_
        np.testing.assert_array_equal(whole, part)


def test_weights_must_leave_a_row() -> None:
    data = cr.make_ranking(5, 3, docs_per_query=6, seed=0)
    with pytest.raises(
        InvalidInputError, match="sample_weight must be above 0 for at least one row; got none"
    ):
        PRank().fit(data.X, data.y, qid=data.qid, sample_weight=np.zeros(data.n_docs))


def test_one_document_a_query_is_enough() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 2))
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    ranker = PRank().fit(X, y, qid=np.arange(80))
    assert (ranker.predict_grades(X) == y).mean() > 0.9


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"epochs": 0}, "epochs must be an integer >= 1; got 0"),
        ({"margin": 0.0}, "margin must be a number > 0; got 0.0"),
        ({"margin": float("nan")}, "margin must be a number > 0; got nan"),
        ({"scaling": "log"}, "unknown scaling 'log'"),
        ({"robust": "Margin"}, "unknown robust form of PRank 'Margin'"),
        ({"early_stopping_rounds": -1}, "early_stopping_rounds must be an integer >= 0; got -1"),
    ],
)
def test_bad_parameters_are_refused(params: dict[str, Any], words: str) -> None:
    data = cr.make_ranking(5, 3, docs_per_query=6, seed=0)
    with pytest.raises((InvalidInputError, UnknownNameError)) as caught:
        PRank(**params).fit(data.X, data.y, qid=data.qid)
    assert words in str(caught.value)
