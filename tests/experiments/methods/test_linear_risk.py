import numpy as np
import pytest
from scipy.sparse import csr_matrix

import cleanrank as cr
from cleanrank.experiments.methods.linear_risk import pairs_of, risk_of
from cleanrank.losses.binary import LOSSES
from cleanrank.theory.order_preservation import Risk


def data_of(seed, sizes=(3, 8, 1, 6)):
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    X = rng.normal(scale=3.0, size=(n, 4)).astype(np.float32)
    return X, cr.from_arrays(X, rng.random(n) < 0.5, group=list(sizes))


def oracle(name, pairs, X, data, w):
    """The risk by its definition, one pair or document at a time."""
    loss, scores, queries = LOSSES[name], X.astype(np.float64) @ w, []
    for a, b in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        s, y = scores[a:b], data.y[a:b]
        if pairs is None:
            queries.append(np.mean([loss.value(v, t) for v, t in zip(s, y, strict=True)]))
            continue
        values = [loss.value(u - v, 1) for u in s[y == 1] for v in s[y == 0]]
        if pairs == "micro":
            queries.append(np.sum(values) / (b - a) ** 2)
        elif values:
            queries.append(np.mean(values))
    return float(np.mean(queries))


@pytest.mark.parametrize("name", ["logistic", "sigmoid"])
@pytest.mark.parametrize("pairs", [None, "macro", "micro"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sparse", [False, True])
def test_values_and_gradients_of_a_risk(name, pairs, seed, sparse):
    X, data = data_of(seed)
    W = np.random.default_rng(seed + 10).normal(size=(4, 3))
    risk = risk_of(Risk(name, pairs), csr_matrix(X) if sparse else X, data, 10**6, np.random.default_rng(0))
    np.testing.assert_allclose(risk.values(W), [oracle(name, pairs, X, data, w) for w in W.T], rtol=1e-5)
    gradient, h = risk.gradients(W), 1e-5
    for f in range(4):
        step = np.zeros((4, 1))
        step[f] = h
        slope = (risk.values(W + step) - risk.values(W - step)) / (2 * h)
        np.testing.assert_allclose(gradient[f], slope, rtol=1e-4, atol=1e-7)


def test_scores_far_apart_leave_everything_finite():
    X, data = data_of(1)
    for name in ("logistic", "sigmoid"):
        for pairs in (None, "macro"):
            risk = risk_of(Risk(name, pairs), X, data, 10**6, np.random.default_rng(0))
            W = np.array([[1e4], [-1e4], [0], [1e3]], dtype=np.float32)
            assert np.isfinite(risk.values(W)).all()
            assert np.isfinite(risk.gradients(W)).all()


@pytest.mark.parametrize(("relevant", "most"), [(7, 10**6), (7, 35), (7, 3), (30, 60), (1, 5)])
def test_relevant_documents_meet_equally_many_others_and_others_about_as_many(relevant, most):
    n = 40
    y = np.zeros(n)
    y[np.random.default_rng(3).permutation(n)[:relevant]] = 1
    pairs = pairs_of(y, np.array([0, n]), True, most, np.random.default_rng(0))
    X = np.eye(n)
    data = cr.from_arrays(X, y, group=[n])
    # The gradient at 0 counts pairs: each one adds its weight to both of its documents.
    counts = risk_of(Risk("sigmoid", "macro"), X, data, most, np.random.default_rng(0)).gradients(
        np.zeros((n, 1))
    )
    counts = np.abs(counts[:, 0]) * 4 * pairs.n_pairs
    each = min(n - relevant, max(1, most // relevant))
    assert pairs.n_pairs == relevant * each
    np.testing.assert_allclose(counts[y == 1], each)
    assert counts[y == 0].sum() == pytest.approx(pairs.n_pairs)
    assert np.ptp(counts[y == 0]) <= max(2, each)
    if each * relevant >= 4 * (n - relevant):
        assert counts[y == 0].min() > 0


def test_fewer_pairs_have_the_mean_of_all():
    X, data = data_of(5, (60,))
    W = np.random.default_rng(0).normal(size=(4, 1))
    whole = risk_of(Risk("logistic", "macro"), X, data, 10**6, np.random.default_rng(0)).values(W)[0]
    drawn = [
        risk_of(Risk("logistic", "macro"), X, data, 90, np.random.default_rng(s)).values(W)[0]
        for s in range(200)
    ]
    assert np.mean(drawn) == pytest.approx(whole, abs=4 * np.std(drawn) / 200**0.5)
    assert np.std(drawn) > 0


def test_queries_of_one_grade_have_no_pairs():
    X, _ = data_of(0, (6,))
    data = cr.from_arrays(X, [1, 1, 1, 0, 0, 0], group=[3, 3])
    risk = risk_of(Risk("logistic", "macro"), X, data, 10, np.random.default_rng(0))
    assert risk.pairs.n_pairs == 0
    assert risk.values(np.ones((4, 2))).tolist() == [0, 0]
    assert not risk.gradients(np.ones((4, 2))).any()
