import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.losses.binary import LOSSES, BinaryLoss, gce
from cleanrank.losses.pairs import PAIR_SETS, PAIR_WEIGHTINGS, check_weighting, clean_pair_share
from cleanrank.losses.robust import peer
from cleanrank.losses.trees.lambdarank import LambdaRankObjective
from cleanrank.losses.trees.pairwise import (
    LEAST,
    STEP,
    PairwiseObjective,
    RobustLambdaObjective,
    falling_order,
    query_factors,
)
from cleanrank.types import RankingData


def judged(seed: int = 0, lengths: tuple[int, ...] = (7, 1, 12, 4, 30), grades: int = 3) -> RankingData:
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(len(lengths)), lengths)
    return cr.from_arrays(np.zeros((len(qid), 1)), rng.integers(0, grades, len(qid)), qid=qid)


def naive(
    data: RankingData,
    scores: np.ndarray,
    loss: BinaryLoss,
    pair_set: str,
    factors: np.ndarray,
    sigma: float = 1.0,
    level: int | None = None,
) -> np.ndarray:
    """Gradients pair by pair, from the definition."""
    grad = np.zeros(len(scores))
    for q, (a, b) in enumerate(zip(data.indptr[:-1], data.indptr[1:], strict=True)):
        rank = np.empty(b - a, dtype=int)
        rank[np.argsort(-scores[a:b], kind="stable")] = np.arange(b - a)
        for i in range(a, b):
            for j in range(a, b):
                higher = data.y[i] > data.y[j]
                counted = {
                    "strict": higher,
                    "strict_both": data.y[i] != data.y[j],
                    "all_ordered": i != j,
                }[pair_set]
                if not counted or (level is not None and min(rank[i - a], rank[j - a]) >= level):
                    continue
                g = factors[q] * sigma * loss.gradient(sigma * (scores[i] - scores[j]), int(higher))
                grad[i] += g
                grad[j] -= g
    return grad


@pytest.mark.parametrize("pair_set", PAIR_SETS)
@pytest.mark.parametrize("name", ["logistic", "hinge", "squared"])
def test_gradients_pair_by_pair(pair_set: str, name: str) -> None:
    data = judged()
    scores = np.random.default_rng(1).normal(0, 2, data.n_docs)
    objective = PairwiseObjective(data, LOSSES[name], pair_set=pair_set, weighting="sum", sigmoid=1.7)
    grad, _ = objective(scores)
    expected = naive(data, scores, LOSSES[name], pair_set, np.ones(data.n_queries), 1.7)
    np.testing.assert_allclose(grad, expected, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("name", ["logistic", "ramp"])
def test_truncation_keeps_pairs_with_one_document_at_the_top(name: str) -> None:
    data = judged()
    scores = np.random.default_rng(1).normal(0, 2, data.n_docs)
    objective = PairwiseObjective(data, LOSSES[name], weighting="sum", truncation_level=3)
    expected = naive(data, scores, LOSSES[name], "strict", np.ones(data.n_queries), level=3)
    np.testing.assert_allclose(objective(scores)[0], expected, rtol=1e-6, atol=1e-5)


@pytest.mark.parametrize("pair_set", PAIR_SETS)
@pytest.mark.parametrize("weighting", PAIR_WEIGHTINGS)
def test_factors_of_queries(pair_set: str, weighting: str) -> None:
    data = judged(grades=2)
    if weighting == "prevalence":
        if pair_set == "all_ordered":
            with pytest.raises(InvalidInputError, match="must not be 'prevalence' for all_ordered pairs"):
                PairwiseObjective(
                    data, LOSSES["hinge"], pair_set=pair_set, weighting=weighting, noise=(0.9, 0.8)
                )
            return
        matrix = check_weighting(weighting, pair_set, (0.9, 0.8))
        found = query_factors(data.y * 1.0, data, pair_set, weighting, matrix)
        lengths = data.lengths.astype(float)
        share = clean_pair_share(data.grade_counts(2) / lengths[:, None], lengths, matrix)
        assert found[2] == pytest.approx(1 / (144 * share[2]))
        return
    found = query_factors(data.y * 1.0, data, pair_set, weighting)
    counts = []
    for a, b in zip(data.indptr[:-1], data.indptr[1:], strict=True):
        y, n = data.y[a:b], b - a
        strict = int((y[:, None] > y[None, :]).sum())
        counts.append({"strict": strict, "strict_both": 2 * strict, "all_ordered": n * (n - 1)}[pair_set])
    for q, (n, pairs) in enumerate(zip(data.lengths, counts, strict=True)):
        some = sum(c > 0 for c in counts)
        expected = {
            "sum": 1.0,
            "macro": 5 / some / max(pairs, 1),
            "micro": 1 / n**2,
            "pooled": 5 / sum(counts),
        }[weighting]
        assert found[q] == pytest.approx(expected if pairs else 0.0)


def test_real_valued_gains_order_the_pairs() -> None:
    data = cr.from_arrays([[0.0]] * 3, [1, 1, 0], qid=[1] * 3)
    from dataclasses import replace

    real = replace(data, gains=np.array([0.2, 0.9, 0.5]))
    grad, _ = PairwiseObjective(real, LOSSES["logistic"], weighting="sum")(np.zeros(3))
    assert grad.tolist() == [1.0, -1.0, 0.0]


def test_falling_order_by_query() -> None:
    order, lower = falling_order(np.array([1.0, 3.0, 1.0, 5.0, 5.0]), np.array([0, 3, 3, 5]))
    assert order.tolist() == [1, 0, 2, 0, 1]
    assert lower.tolist() == [1, 3, 3, 2, 2]


@pytest.mark.parametrize("loss", [LOSSES["logistic"], LOSSES["ramp"], gce(0.5), peer("logistic", 1.0)])
@pytest.mark.parametrize("kind", ["pairs", "top", "lambda"])
def test_hessians_are_positive_and_bound_the_step(loss: BinaryLoss, kind: str) -> None:
    data = judged(3, (20, 30), 2)
    scores = np.random.default_rng(2).normal(0, 8, data.n_docs)
    objective = {
        "pairs": lambda: PairwiseObjective(data, loss, weighting="sum"),
        "top": lambda: PairwiseObjective(data, loss, weighting="sum", truncation_level=50),
        "lambda": lambda: RobustLambdaObjective(data, loss, truncation_level=50),
    }[kind]()
    grad, hess = objective(scores)
    assert (hess > 0).all()
    assert (np.abs(grad) <= STEP * hess * (1 + 1e-5)).all()
    if kind == "pairs":
        fewest = min((data.y[:20] == 0).sum(), (data.y[:20] == 1).sum())
        assert hess[:20].min() >= 0.99 * LEAST * fewest


def test_curvature_is_used_where_it_is_larger() -> None:
    data = cr.from_arrays([[0.0]] * 2, [1, 0], qid=[1, 1])
    _, hess = PairwiseObjective(data, LOSSES["logistic"], weighting="sum")(np.array([2.0, 0.0]))
    p = 1 / (1 + np.exp(-2.0))
    assert hess[0] == pytest.approx(p * (1 - p), rel=1e-6)
    _, hess = PairwiseObjective(data, LOSSES["logistic"], weighting="sum")(np.array([0.0, 5.0]))
    assert hess[0] == pytest.approx((1 - 1 / (1 + np.exp(5.0))) / STEP, rel=1e-6)


@pytest.mark.parametrize("norm", [False, True])
def test_lambdarank_with_the_logistic_loss_has_lambdaranks_gradients(norm: bool) -> None:
    data = judged()
    scores = np.random.default_rng(4).normal(0, 2, data.n_docs)
    expected = LambdaRankObjective(data, norm=norm, truncation_level=5)(scores)[0].copy()
    found = RobustLambdaObjective(data, LOSSES["logistic"], norm=norm, truncation_level=5)(scores)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["sigmoid", "hinge"])
def test_lambdarank_weighs_pairs_by_their_swap(name: str) -> None:
    y, scores = np.array([2, 0, 1]), np.array([0.3, 1.1, -0.4])
    data = cr.from_arrays(np.zeros((3, 1)), y, qid=[1] * 3)
    found = RobustLambdaObjective(data, LOSSES[name], norm=False)(scores)[0]
    rank = np.array([1, 0, 2])
    discount, gain = 1 / np.log2(rank + 2), 2.0**y - 1
    ideal = 3 / np.log2(2) + 1 / np.log2(3)
    expected = np.zeros(3)
    for i in range(3):
        for j in range(3):
            if y[i] > y[j]:
                delta = (gain[i] - gain[j]) * abs(discount[i] - discount[j]) / ideal
                g = delta * float(LOSSES[name].gradient(scores[i] - scores[j], 1))
                expected[i] += g
                expected[j] -= g
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("name", ["logistic", "hinge", "exponential"])
@pytest.mark.parametrize("scale", [1e3, 1e5])
def test_scores_far_apart_stay_finite(name: str, scale: float) -> None:
    data = judged()
    scores = np.random.default_rng(5).normal(0, scale, data.n_docs)
    for make in (
        PairwiseObjective(data, LOSSES[name], weighting="sum"),
        PairwiseObjective(data, LOSSES[name], weighting="sum", truncation_level=4),
        RobustLambdaObjective(data, LOSSES[name]),
    ):
        grad, hess = make(scores)
        assert np.isfinite(grad).all()
        assert np.isfinite(hess).all()
    if name == "logistic":
        grad, _ = PairwiseObjective(data, LOSSES[name], weighting="sum")(scores)
        expected = naive(data, scores, LOSSES[name], "strict", np.ones(data.n_queries))
        np.testing.assert_allclose(grad, expected, rtol=1e-6, atol=1e-6)


def test_same_bits_for_any_number_of_threads_and_weights_multiply() -> None:
    from dataclasses import replace

    data = judged(6, (40, 3, 80, 25, 60))
    scores = np.random.default_rng(6).normal(size=data.n_docs)
    one = [a.copy() for a in PairwiseObjective(data, gce(0.3), n_jobs=1)(scores)]
    two = PairwiseObjective(data, gce(0.3), n_jobs=2)(scores)
    for a, b in zip(one, two, strict=True):
        np.testing.assert_array_equal(a, b)
    heavy = replace(data, weights=np.full(data.n_docs, 2, np.float32))
    for a, b in zip(one, PairwiseObjective(heavy, gce(0.3))(scores), strict=True):
        np.testing.assert_allclose(b, 2 * a)


def test_the_observer_sees_the_ranking() -> None:
    seen = []
    data = judged(0, (4,))
    objective = PairwiseObjective(data, LOSSES["hinge"], observer=lambda r, s, o: seen.append((r, o.copy())))
    objective(np.array([0.0, 3.0, 1.0, 2.0]))
    objective(np.array([4.0, 3.0, 1.0, 2.0]))
    assert [(r, o.tolist()) for r, o in seen] == [(0, [1, 3, 2, 0]), (1, [0, 1, 3, 2])]


def test_one_class_and_single_documents_have_no_gradient() -> None:
    data = cr.from_arrays(np.zeros((5, 1)), [1, 1, 1, 0, 1], qid=[1, 1, 1, 2, 3])
    grad, hess = PairwiseObjective(data, LOSSES["logistic"])(np.arange(5.0))
    assert not grad.any()
    assert not hess.any()


def test_what_is_refused() -> None:
    data = judged()
    with pytest.raises(InvalidInputError, match=r"must have a gradient .* got 'zero_one'.*'sigmoid'"):
        PairwiseObjective(data, LOSSES["zero_one"])
    with pytest.raises(UnknownNameError, match=r"unknown set of pairs 'all'"):
        PairwiseObjective(data, LOSSES["hinge"], pair_set="all")
    with pytest.raises(InvalidInputError, match="truncation_level must be None for all ordered pairs"):
        PairwiseObjective(data, LOSSES["hinge"], pair_set="all_ordered", truncation_level=3)
    with pytest.raises(InvalidInputError, match=r"truncation_level must be .* >= 1; got 0"):
        PairwiseObjective(data, LOSSES["hinge"], truncation_level=0)
    with pytest.raises(InvalidInputError, match="noise must be given for weighting='prevalence'"):
        PairwiseObjective(data, LOSSES["hinge"], weighting="prevalence")
    with pytest.raises(InvalidInputError, match="noise must have a row for each of the 3 grades"):
        PairwiseObjective(data, LOSSES["hinge"], weighting="prevalence", noise=(0.9, 0.9))
    with pytest.raises(InvalidInputError, match="noise must keep the grades apart"):
        PairwiseObjective(judged(grades=2), LOSSES["hinge"], weighting="prevalence", noise=(0.5, 0.5))
    with pytest.raises(InvalidInputError, match="mode must be 'exact'"):
        RobustLambdaObjective(data, LOSSES["hinge"], mode="parity")
