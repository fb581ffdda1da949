import copy

import lightgbm
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cleanrank as cr
from cleanrank.errors import CleanrankError
from cleanrank.losses.trees.lambdarank import (
    MODES,
    LambdaRankObjective,
    Ranking,
    gains_of,
)
from cleanrank.ragged import rank_order

from ..oracle import lambda_all

# What float32 sums and a table of 2^20 sigmoids leave of float64.
CLOSE = {"exact": {"rtol": 1e-6, "atol": 1e-9}, "parity": {"rtol": 3e-4, "atol": 2e-5}}


def judged(y, lengths, **more):
    return cr.from_arrays(np.zeros((len(y), 1)), y, group=lengths, **more)


@st.composite
def queries(draw):
    lengths = draw(st.lists(st.integers(1, 9), min_size=1, max_size=5))
    n = sum(lengths)
    y = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    # Few distinct values, so that ties are frequent.
    scores = draw(st.lists(st.sampled_from([-2.0, -0.5, 0.0, 0.0, 0.3, 1.7]), min_size=n, max_size=n))
    return judged(y, lengths), np.array(scores)


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=60, deadline=None)
@given(case=queries(), norm=st.booleans(), sigma=st.sampled_from([0.5, 1.0, 2.0]), level=st.integers(1, 8))
def test_gradients_are_those_of_the_plain_loop(mode, case, norm, sigma, level):
    data, scores = case
    found = LambdaRankObjective(data, mode=mode, norm=norm, sigmoid=sigma, truncation_level=level)
    grad, hess = found(scores)
    wanted = lambda_all(scores, 2.0**data.y - 1, data.indptr, sigma=sigma, level=level, norm=norm)
    assert grad.dtype == hess.dtype == np.float32
    np.testing.assert_allclose(grad, wanted[0], **CLOSE[mode])
    np.testing.assert_allclose(hess, wanted[1], **CLOSE[mode])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("y", "lengths"),
    [([0, 0, 0], [3]), ([2, 2, 2], [3]), ([1], [1]), ([3, 0], [1, 1])],
    ids=["no relevant", "one grade", "one document", "two of one"],
)
def test_queries_without_pairs_have_no_gradient(mode, y, lengths):
    grad, hess = LambdaRankObjective(judged(y, lengths), mode=mode)(np.arange(len(y), dtype=float))
    assert not grad.any()
    assert not hess.any()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("norm", [True, False])
def test_extreme_scores_stay_finite(mode, norm):
    y = [0, 1, 2, 0, 1, 3]
    scores = np.array([900.0, -900.0, 1e5, 0.0, -1e5, 1e-3])
    grad, hess = LambdaRankObjective(judged(y, [6]), mode=mode, norm=norm)(scores)
    assert np.isfinite(grad).all()
    assert np.isfinite(hess).all()
    wanted, _ = lambda_all(scores, 2.0 ** np.array(y) - 1, [0, 6], norm=norm)
    np.testing.assert_allclose(grad, wanted, rtol=1e-4, atol=1e-8)
    assert np.abs(grad).max() > 0


@pytest.mark.parametrize("mode", MODES)
def test_any_thread_count_gives_the_same_bits(mode):
    data = cr.make_ranking(50, 3, docs_per_query=30, seed=1)
    scores = np.random.default_rng(0).normal(size=data.n_docs)
    one, two = (
        tuple(a.copy() for a in LambdaRankObjective(data, mode=mode, n_jobs=n)(scores)) for n in (1, 2)
    )
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("mode", MODES)
def test_gains_equal_to_those_of_the_labels_change_nothing(mode):
    data = cr.make_ranking(20, 3, docs_per_query=15, seed=2)
    scores = np.random.default_rng(1).normal(size=data.n_docs)
    by_grade = LambdaRankObjective(data, mode=mode)(scores)
    real = cr.from_arrays(data.X, data.y, group=data.lengths, gains=2.0**data.y - 1)
    np.testing.assert_array_equal(LambdaRankObjective(real, mode=mode)(scores), by_grade)
    listed = LambdaRankObjective(data, mode=mode, label_gain=[0, 1, 3, 7, 15])(scores)
    np.testing.assert_array_equal(listed, by_grade)


def test_real_gains_count_between_equal_grades():
    data = judged([1, 1, 1], [3], gains=[0.2, 1.5, 0.7])
    scores = np.array([0.3, -0.1, 0.0])
    grad, _ = LambdaRankObjective(data)(scores)
    wanted, _ = lambda_all(scores, [0.2, 1.5, 0.7], [0, 3])
    np.testing.assert_allclose(grad, wanted, rtol=1e-6)
    assert grad[1] < 0 < grad[0]


def test_a_weight_multiplies_the_gradient_of_its_document_and_no_other():
    y, scores = [0, 2, 1], np.array([0.5, 0.1, -0.2])
    plain = np.array(LambdaRankObjective(judged(y, [3]))(scores))
    found = np.array(LambdaRankObjective(judged(y, [3], weights=[1.0, 2.0, 0.0]))(scores))
    np.testing.assert_array_equal(found, plain * np.array([1.0, 2.0, 0.0], np.float32))


@pytest.mark.parametrize("mode", MODES)
def test_a_query_of_more_than_ten_thousand_documents(mode):
    n = 12_000
    rng = np.random.default_rng(0)
    y, scores = rng.integers(0, 3, n), rng.normal(size=n)
    grad, hess = LambdaRankObjective(judged(y, [n]), mode=mode, truncation_level=2)(scores)
    wanted, curved = _two_levels(scores, 2.0**y - 1)
    np.testing.assert_allclose(grad, wanted, rtol=2e-3, atol=1e-6)
    np.testing.assert_allclose(hess, curved, rtol=2e-3, atol=1e-6)


def _two_levels(scores, gains):
    """The oracle's definition on whole vectors, for truncation at 2."""
    order = np.argsort(-scores, kind="stable")
    s, g, d = scores[order], gains[order], 1 / np.log2(np.arange(2, len(scores) + 2))
    ideal = np.sort(gains)[::-1][:2] @ d[:2]
    grad, hess, total = np.zeros(len(s)), np.zeros(len(s)), 0.0
    for i in range(2):
        gap, away = g[i] - g[i + 1 :], s[i] - s[i + 1 :]
        delta = np.abs(gap) * (d[i] - d[i + 1 :]) / ideal / (0.01 + away)
        p = 1 / (1 + np.exp(np.where(gap > 0, away, -away)))
        lam = p * delta * np.sign(gap)
        grad[i] -= lam.sum()
        grad[i + 1 :] += lam
        hess[i] += (p * (1 - p) * delta).sum()
        hess[i + 1 :] += p * (1 - p) * delta
        total += 2 * np.abs(lam).sum()
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    return grad[back] * np.log2(1 + total) / total, hess[back] * np.log2(1 + total) / total


def train(data, objective, rounds, **more):
    params = {"num_leaves": 15, "verbosity": -1, "num_threads": 1, "deterministic": True, "seed": 3,
              "force_row_wise": True, "metric": "None", "label_gain": [0, 1, 3, 7, 15], **more}  # fmt: skip
    rows = lightgbm.Dataset(data.X, label=data.y, group=data.lengths, weight=data.weights)
    return lightgbm.train({**params, "objective": objective}, rows, rounds)


@pytest.mark.parametrize("norm", [True, False])
def test_parity_grows_lightgbms_trees(norm):
    data = cr.make_ranking(80, 12, docs_per_query=40, seed=4)
    own = train(data, "lambdarank", 100, lambdarank_norm=norm)
    ours = train(data, LambdaRankObjective(data, mode="parity", norm=norm), 100)
    for rounds in (*range(1, 11), 100):
        np.testing.assert_allclose(
            ours.predict(data.X, num_iteration=rounds),
            own.predict(data.X, num_iteration=rounds),
            rtol=0,
            atol=1e-6,
            err_msg=f"after {rounds} trees",
        )


def test_parity_with_weights_sigmoid_and_truncation_is_lightgbms():
    base = cr.make_ranking(60, 8, docs_per_query=30, seed=5)
    weights = np.random.default_rng(0).uniform(0.2, 3, base.n_docs)
    data = cr.from_arrays(base.X, base.y, group=base.lengths, weights=weights)
    own = train(data, "lambdarank", 30, sigmoid=2.0, lambdarank_truncation_level=5)
    ours = train(data, LambdaRankObjective(data, mode="parity", sigmoid=2.0, truncation_level=5), 30)
    np.testing.assert_allclose(ours.predict(data.X), own.predict(data.X), rtol=0, atol=1e-6)


def test_the_observer_sees_scores_and_rankings_of_every_round():
    data = cr.make_ranking(15, 4, docs_per_query=12, seed=6)
    seen = []
    objective = LambdaRankObjective(
        data, observer=lambda *at: seen.append((at[0], at[1].copy(), at[2].copy()))
    )
    model = train(data, objective, 5)
    objective.observe(model.predict(data.X, raw_score=True))
    assert [at[0] for at in seen] == [0, 1, 2, 3, 4, 5]
    for rounds, scores, order in seen:
        wanted = (
            model.predict(data.X, num_iteration=rounds, raw_score=True) if rounds else np.zeros(data.n_docs)
        )
        np.testing.assert_array_equal(scores, wanted)
        np.testing.assert_array_equal(
            order + np.repeat(data.indptr[:-1], data.lengths), rank_order(scores, data.indptr)
        )


def test_copies_of_parameters_share_the_objective():
    objective = LambdaRankObjective(judged([0, 1], [2]))
    assert copy.deepcopy({"objective": objective})["objective"] is objective


@given(st.lists(st.lists(st.integers(-3, 3), min_size=1, max_size=60), min_size=2, max_size=6))
@settings(max_examples=50, deadline=None)
def test_the_running_order_is_the_stable_sort_whatever_came_before(rounds):
    n = len(rounds[0])
    ranking = Ranking(np.array([0, n // 2, n]))
    for values in rounds:
        scores = np.resize(np.array(values, dtype=float), n)
        found = ranking.update(scores) + np.repeat([0, n // 2], [n // 2, n - n // 2])
        np.testing.assert_array_equal(found, rank_order(scores, ranking.indptr))


def test_wrong_arguments_are_named():
    data = judged([0, 2], [2])
    with pytest.raises(CleanrankError, match="unknown mode 'exakt'"):
        LambdaRankObjective(data, mode="exakt")
    with pytest.raises(CleanrankError, match="sigmoid must be a number > 0"):
        LambdaRankObjective(data, sigmoid=0)
    with pytest.raises(CleanrankError, match="truncation_level must be an integer >= 1"):
        LambdaRankObjective(data, truncation_level=0)
    with pytest.raises(CleanrankError, match=r"label_gain must list .* for grades 0\.\.2"):
        gains_of(data, [0, 1])
    with pytest.raises(CleanrankError, match=r"one value per row \(2\)"):
        LambdaRankObjective(data)(np.zeros(3))
