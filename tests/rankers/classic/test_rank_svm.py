"""RankSVM: weights, the ramp, its choices and errors; the solver has tests of its own."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import cleanrank as cr
from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.rankers.classic import rank_svm
from cleanrank.rankers.classic._pair_solver import PairProblem, minimise
from cleanrank.rankers.classic.rank_svm import CS, RankSVM
from tests.rankers.classic.rows import pairs_of, random_rows


@pytest.mark.parametrize("loss", list(rank_svm.LOSSES))
def test_whole_weights_are_copies(loss: str) -> None:
    X, y, indptr = random_rows(11, 4)
    weights = np.random.default_rng(0).integers(0, 4, len(y))
    weights[:2] = 1, 2
    qid = np.repeat(np.arange(len(indptr) - 1), np.diff(indptr))
    options: dict[str, Any] = {"C": 0.05, "loss": loss, "scaling": "none", "tol": 1e-10}
    one = RankSVM(**options).fit(X, y, qid=qid, sample_weight=weights)
    copied = np.repeat(np.arange(len(y)), weights)
    two = RankSVM(**options).fit(X[copied], y[copied], qid=qid[copied])
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-4, atol=1e-5)
    assert one.objective_ == pytest.approx(two.objective_, rel=1e-8)


@given(seed=st.integers(0, 10_000), C=st.sampled_from([0.01, 1.0, 30.0]))
@settings(max_examples=25, deadline=None)
def test_cccp_never_raises_the_ramp(seed: int, C: float) -> None:
    X, y, indptr = random_rows(seed)
    i, j = pairs_of(y, indptr).T
    D = X[i] - X[j]

    def ramp(w: Any) -> float:
        return float(0.5 * w @ w + C * np.clip(1 - D @ w, 0, 2).sum())

    problem = PairProblem(X, y, indptr, None)
    start = minimise(problem, C, "hinge")
    one = rank_svm.descend_ramp(problem, C, start, 1e-6, 1000)
    two = rank_svm.descend_ramp(problem, C, one, 1e-6, 1000)
    assert one.objective == pytest.approx(ramp(one.w), rel=1e-9)
    assert two.objective <= one.objective <= ramp(start.w) * (1 + 1e-12)


def test_ramp_withstands_inverted_pairs() -> None:
    """A tenth of the rows has its feature turned round; the hinge gives way, the ramp does not."""
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    X = np.stack([y + 0.3 * rng.normal(size=400), rng.normal(size=400)], axis=1)
    X[:40, 0] = 3.0 * (1 - 2 * y[:40])
    group = [20] * 20
    options: dict[str, Any] = {"C": 1.0, "scaling": "none"}
    hinge, ramp = (RankSVM(loss=loss, **options).fit(X, y, group=group) for loss in ("hinge", "ramp"))
    assert ramp.coef_[0] > 2 * hinge.coef_[0] > 0


def test_c_is_chosen_on_validation_rows() -> None:
    train, held = (cr.make_ranking(30, 6, docs_per_query=12, seed=seed) for seed in (1, 2))
    ranker = RankSVM(measure="ndcg@5").fit_data(train, held)
    values = ranker.evals_result_["valid_0"]["ndcg@5"]
    assert len(values) == len(CS)
    assert CS[int(np.argmax(values))] == ranker.C_
    fixed = RankSVM(C=ranker.C_, measure="ndcg@5").fit_data(train, held)
    assert fixed.C_ == ranker.C_
    assert fixed.objective_ == pytest.approx(ranker.objective_, rel=2e-6)
    for C, value in zip(CS[::3], values[::3], strict=True):
        alone = RankSVM(C=C).fit_data(train)
        assert cr.evaluate(alone.predict(held.X), held, "ndcg@5").means["ndcg@5"] == pytest.approx(
            value, abs=0.02
        )


def test_without_validation_rows_all_are_learnt_with_the_chosen_c() -> None:
    data = cr.make_ranking(25, 5, docs_per_query=10, seed=4)
    ranker = RankSVM().fit_data(data)
    assert ranker.C_ in CS
    assert RankSVM(C=ranker.C_).fit_data(data).objective_ == pytest.approx(ranker.objective_, rel=2e-6)
    shuffled = np.random.default_rng(0).permutation(data.n_docs)
    again = RankSVM().fit(data.X[shuffled], data.y[shuffled], qid=data.qid[shuffled])
    assert again.C_ == ranker.C_
    two = data.select_queries(np.arange(2))
    assert RankSVM().fit_data(two).C_ == 1.0


@pytest.mark.parametrize("loss", list(rank_svm.LOSSES))
def test_threads_change_no_bit(loss: str) -> None:
    data = cr.make_ranking(80, 5, docs_per_query=10, seed=5)
    one, two = (RankSVM(C=0.1, loss=loss, n_jobs=n).fit_data(data) for n in (1, 2))
    assert (one.coef_ == two.coef_).all()


@pytest.mark.parametrize("scaling", ["zscore", "minmax"])
@pytest.mark.parametrize("factor", [1e-30, 1e30])
def test_any_scale_of_features(scaling: str, factor: float) -> None:
    X, y, indptr = random_rows(5)
    plain, scaled = (
        RankSVM(C=0.1, scaling=scaling).fit(X * by, y, group=np.diff(indptr)) for by in (1.0, factor)
    )
    assert scaled.objective_ == pytest.approx(plain.objective_, rel=1e-6)


def test_a_warning_says_when_steps_were_not_enough() -> None:
    data = cr.make_ranking(20, 5, docs_per_query=10, seed=0)
    with pytest.warns(UserWarning, match="RankSVM did not reach tol=1e-06 of the objective; got a gap of"):
        RankSVM(C=10.0, max_iter=1).fit_data(data)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"C": -1}, 'C must be a number > 0 or "auto"; got -1. C="auto" chooses on validation rows.'),
        ({"C": "x"}, 'C must be a number > 0 or "auto"; got \'x\'. C="auto" chooses on validation rows.'),
        ({"C": np.nan}, 'C must be a number > 0 or "auto"; got nan.'),
        ({"loss": "y"}, "unknown loss of RankSVM 'y'. Known: hinge, squared_hinge, ramp."),
        ({"max_iter": 0}, "max_iter must be an integer >= 1; got 0."),
        ({"tol": 0}, "tol must be a number > 0 and < 1; got 0."),
    ],
    ids=str,
)
def test_bad_settings_are_refused(option: dict[str, Any], words: str) -> None:
    data = cr.make_ranking(5, 3, docs_per_query=5, seed=0)
    with pytest.raises((InvalidInputError, UnknownNameError)) as error:
        RankSVM(**option).fit_data(data)
    assert words in str(error.value)


def test_weights_that_leave_no_pair_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="sample_weight must be above 0 for two documents"):
        RankSVM(C=1.0).fit([[0.0], [1.0]], [0, 1], group=[2], sample_weight=[0, 1])
