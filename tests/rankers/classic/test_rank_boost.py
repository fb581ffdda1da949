"""RankBoost against the paper's algorithm on an explicit list of pairs; weights, extreme scores, ends."""

import math
from typing import Any

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.rankers.classic import rank_boost
from cleanrank.rankers.classic.base import Rows
from cleanrank.rankers.classic.rank_boost import RankBoost

FORMS: list[dict[str, Any]] = [
    {},
    {"directions": "up"},
    {"max_bins": None, "margin": "smooth"},
    {"max_bins": 4},
    {"max_bins": 10, "bins": "equal", "directions": "up"},
]


def small(seed: int, n_grades: int) -> tuple[Any, Any, Any]:
    """X, y, qid: ties in features, single documents, queries of one grade, rows in any order."""
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(8), rng.integers(1, 9, 8))
    y = rng.integers(0, n_grades, len(qid))
    y[qid == 3] = n_grades - 1
    y[np.flatnonzero(qid == qid[-1])[:1]] = 0
    X = np.round(8 * rng.normal(size=(len(qid), 4)) + 2 * y[:, None]) / 8
    order = rng.permutation(len(qid))
    return X[order], y[order], qid[order]


def pair_list(y: Any, qid: Any) -> list[tuple[int, int]]:
    """(i, j): document i is to stand above j."""
    n = range(len(y))
    return [(i, j) for i in n for j in n if qid[i] == qid[j] and y[i] > y[j]]


def thresholds_of(column: Any, max_bins: int | None, bins: str) -> list[float]:
    values = sorted(set(column.tolist()))
    if bins == "equal":
        step = (values[-1] - values[0]) / max_bins
        return [values[0] + k * step for k in range(1, max_bins)]
    if max_bins is None or len(values) <= max_bins:
        return values[:-1]
    return [values[k * len(values) // max_bins - 1] for k in range(1, max_bins)]


def naive(
    X: Any, y: Any, qid: Any, w: Any, rounds: int, directions: str = "both", max_bins: int | None = 255,
    bins: str = "quantile", margin: str = "none",
) -> tuple[Any, list[tuple[int, float]]]:  # fmt: skip
    """Scores of the rows, and (feature, weight) of every round."""
    pairs = pair_list(y, qid)
    start = [w[i] * w[j] for i, j in pairs]
    D = [each / sum(start) for each in start]
    scores, steps = np.zeros(len(y)), []
    for _ in range(rounds):
        ways = []
        for f in range(X.shape[1]):
            for theta in thresholds_of(X[:, f], max_bins, bins):
                h = (X[:, f] > theta).astype(float)
                r = sum(d * (h[i] - h[j]) for d, (i, j) in zip(D, pairs, strict=True))
                ways.append((abs(r) if directions == "both" else r, f, h, r))
        most = max(way[0] for way in ways)
        if most <= 1e-10:
            break
        strength, f, h, r = next(way for way in ways if way[0] >= most - 1e-10)
        alpha = (
            0.5 * math.log((1 + strength) / (1 - strength)) if strength < 1 - 1e-6 else math.atanh(1 - 1e-6)
        )
        if margin == "smooth" and steps:
            loss = sum(s * math.exp(scores[j] - scores[i]) for s, (i, j) in zip(start, pairs, strict=True))
            g = max(0.0, -math.log(loss) / sum(abs(a) for _, a in steps))
            alpha -= 0.5 * math.log((1 + g) / (1 - g))
        alpha = math.copysign(alpha, r)
        D = [d * math.exp(-alpha * (h[i] - h[j])) for d, (i, j) in zip(D, pairs, strict=True)]
        D = [d / sum(D) for d in D]
        scores = scores + alpha * h
        steps.append((f, alpha))
        if strength > 1 - 1e-6:
            break
    return scores, steps


@pytest.mark.parametrize("form", FORMS, ids=str)
@pytest.mark.parametrize("n_grades", [2, 3, 5])
def test_equals_the_paper_on_a_list_of_pairs(form: dict[str, Any], n_grades: int) -> None:
    for seed in range(2):
        X, y, qid = small(seed, n_grades)
        weights = None if seed == 0 else np.random.default_rng(seed).integers(1, 9, len(y)) / 4
        scores, steps = naive(X, y, qid, np.ones(len(y)) if weights is None else weights, 30, **form)
        ranker = RankBoost(n_estimators=30, **form).fit(X, y, qid=qid, sample_weight=weights)
        assert ranker.model_.features.tolist() == [f for f, _ in steps]
        np.testing.assert_allclose(ranker.model_.weights, [a for _, a in steps], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(ranker.predict(X), scores, rtol=1e-8, atol=1e-8)


def separable() -> tuple[Any, Any, Any]:
    """No single threshold orders all pairs, but a sum of them does."""
    rng = np.random.default_rng(4)
    X = rng.uniform(size=(60, 3))
    return X, np.digitize(X.sum(axis=1), [1.2, 1.8]), np.repeat(np.arange(6), 10)


def test_smooth_margins_take_shorter_steps_once_all_pairs_are_ordered() -> None:
    X, y, qid = separable()
    scores, _ = naive(X, y, qid, np.ones(60), 120, max_bins=None, margin="smooth")
    smooth = RankBoost(n_estimators=120, max_bins=None, margin="smooth").fit(X, y, qid=qid)
    np.testing.assert_allclose(smooth.predict(X), scores, rtol=1e-8, atol=1e-8)
    assert all(scores[i] > scores[j] for i, j in pair_list(y, qid))
    plain = RankBoost(n_estimators=120, max_bins=None).fit(X, y, qid=qid)
    same = np.isclose(plain.model_.weights, smooth.model_.weights, rtol=1e-12)
    first = int(np.argmin(same))
    assert 5 < first < 120
    assert abs(smooth.model_.weights[first]) < abs(plain.model_.weights[first])
    model, pairs = smooth.model_, pair_list(y, qid)
    h = X[:, model.features] > model.thresholds
    margins = np.array([np.cumsum(model.weights * (h[i].astype(float) - h[j])) for i, j in pairs])
    G = -np.log(np.exp(-margins).sum(axis=0)) / np.cumsum(np.abs(model.weights))
    assert (np.diff(G)[G[:-1] > 0] > -1e-12).all()  # the paper: it never falls
    assert G[-1] > max(G[first], 0)


def test_weights_are_copies_and_weight_0_is_absence() -> None:
    X, y, qid = small(5, 4)
    copies = np.random.default_rng(0).integers(0, 4, len(y))
    weighted = RankBoost(n_estimators=40, max_bins=6).fit(X, y, qid=qid, sample_weight=copies)
    rows = np.repeat(np.arange(len(y)), copies)
    copied = RankBoost(n_estimators=40, max_bins=6).fit(X[rows], y[rows], qid=qid[rows])
    assert weighted.model_.features.tolist() == copied.model_.features.tolist()
    assert weighted.model_.thresholds.tolist() == copied.model_.thresholds.tolist()
    np.testing.assert_allclose(weighted.model_.weights, copied.model_.weights, rtol=1e-8)


@pytest.mark.parametrize("spread", [1.0, 300.0, 1e5])
def test_pulls_of_extreme_scores_neither_overflow_nor_vanish(spread: float) -> None:
    rng = np.random.default_rng(1)
    y, qid = rng.integers(0, 4, 40), np.repeat(np.arange(5), 8)
    pairs = rank_boost._Pairs.of(Rows(np.zeros((40, 1)), y, np.arange(0, 41, 8), rng.uniform(0.5, 2.0, 40)))
    pairs.scores[:] = spread * rng.normal(size=40)
    listed = pair_list(y, qid)
    exponents = np.array([pairs.scores[j] - pairs.scores[i] for i, j in listed])
    products = np.array([pairs.weights[i] * pairs.weights[j] for i, j in listed])
    heavy = products * np.exp(exponents - exponents.max())
    pulls = np.zeros(40)
    for weight, (i, j) in zip(heavy, listed, strict=True):
        pulls[i] += weight
        pulls[j] -= weight
    total, log_loss = pairs.update()
    np.testing.assert_allclose(pairs.pull, pulls, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose([total, log_loss], [heavy.sum(), exponents.max() + np.log(heavy.sum())])


def test_a_threshold_that_orders_all_pairs_ends_training() -> None:
    X = np.array([[0.0, 5.0], [1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    ranker = RankBoost().fit(X, [0, 0, 1, 1], qid=[1, 1, 1, 1])
    assert ranker.best_iteration_ == 1
    assert ranker.model_.thresholds.tolist() == [1.5]
    assert ranker.feature_importances_.tolist() == [1.0, 0.0]
    assert 5 < ranker.model_.weights[0] < 10


def test_features_that_tell_nothing_within_queries_leave_scores_equal() -> None:
    X, y = np.array([[0.0], [0.0], [1.0], [1.0]]), [0, 1, 1, 0]
    for directions in rank_boost.DIRECTIONS:
        ranker = RankBoost(directions=directions).fit(X, y, qid=[1, 1, 2, 2])
        np.testing.assert_allclose(ranker.predict(X), 0.0, atol=1e-8)


def test_threads_and_bins_of_two_bytes_change_nothing() -> None:
    data = cr.make_ranking(60, 6, docs_per_query=20, seed=2)
    one, two = (RankBoost(n_estimators=25, max_bins=None, n_jobs=n).fit_data(data).model_ for n in (1, 2))
    assert one.weights.tolist() == two.weights.tolist()
    assert one.thresholds.tolist() == two.thresholds.tolist()
    candidates = rank_boost._Candidates.of(np.asarray(data.X, dtype=float), None, "quantile")
    assert candidates.bins.dtype == np.uint16


def test_validation_rows_choose_the_number_of_rounds() -> None:
    data = cr.make_ranking(60, 6, docs_per_query=20, seed=2)
    train, held = data.select_queries(np.arange(40)), data.select_queries(np.arange(40, 60))
    seen: list[tuple[int, int]] = []
    ranker = RankBoost(n_estimators=40).fit_data(train, held, progress=lambda *step: seen.append(step))
    (values,) = ranker.evals_result_["valid_0"].values()
    assert len(values) == 40
    assert seen[-1] == (40, 40)
    assert ranker.best_iteration_ == int(np.argmax(values)) + 1 == len(ranker.model_.weights)
    again = cr.evaluate(ranker.predict(held.X), held, ranker.measure, order="data").means[ranker.measure]
    assert again == pytest.approx(max(values), abs=1e-12)
    stopped = RankBoost(n_estimators=40, early_stopping_rounds=2).fit_data(train, held)
    assert len(stopped.evals_result_["valid_0"][ranker.measure]) <= stopped.best_iteration_ + 2


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_estimators": 0}, "n_estimators must be an integer >= 1; got 0"),
        ({"directions": "down"}, "unknown directions 'down'"),
        ({"bins": "equals"}, "Did you mean 'equal'"),
        ({"margin": "soft"}, "unknown margin 'soft'.* Known: none, smooth"),
        ({"max_bins": 1}, "max_bins must be an integer >= 2; got 1"),
        (
            {"max_bins": None, "bins": "equal"},
            "max_bins must be a number with bins='equal'; got None",
        ),
    ],
)
def test_wrong_parameters_are_named(parameters: dict[str, Any], words: str) -> None:
    X, y, qid = small(0, 3)
    with pytest.raises((InvalidInputError, UnknownNameError), match=words):
        RankBoost(**parameters).fit(X, y, qid=qid)


def test_weights_that_leave_nothing_are_refused() -> None:
    X, y = np.array([[0.0], [0.0], [1.0]]), np.array([0, 1, 1])
    for weights, words in (([0, 1, 1], "two documents of different labels"), ([1, 1, 0], "that differ in")):
        with pytest.raises(InvalidInputError, match=f"sample_weight must leave .*{words}.* Give them"):
            RankBoost().fit(X, y, qid=[1, 1, 1], sample_weight=weights)
