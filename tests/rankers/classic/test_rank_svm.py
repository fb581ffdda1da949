"""RankSVM against sums over explicit pairs, scikit-learn's LinearSVC and scipy; its choices and errors."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize
from sklearn.svm import LinearSVC

import cleanrank as cr
from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.jit import threads
from cleanrank.rankers.classic import rank_svm
from cleanrank.rankers.classic._pair_solver import PairProblem, Shape, minimise
from cleanrank.rankers.classic.rank_svm import CS, RankSVM

SHAPES = [Shape.squared(), Shape.hinge(), Shape.hinge(0.3), Shape.hinge(1e-3), Shape.hinge(at=-1.0)]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with threads(1):
        yield


def random_rows(seed: int, grades: int = 3, queries: int = 6, features: int = 4) -> tuple[Any, Any, Any]:
    """(X, y, indptr): queries of 1 to 9 documents, one of one grade, scores with ties."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 10, queries)
    lengths[0] = 9
    y = rng.integers(grades, size=lengths.sum())
    y[:2] = 0, grades - 1
    indptr = np.append(0, np.cumsum(lengths))
    y[indptr[1] : indptr[2]] = 1
    X = np.round(rng.normal(size=(len(y), features)) + 0.3 * y[:, None], 1)
    return X, y, indptr


def pairs_of(y: Any, indptr: Any) -> Any:
    """(better, worse) of every pair."""
    return np.array(
        [
            (i, j)
            for a, b in itertools.pairwise(indptr)
            for i in range(a, b)
            for j in range(a, b)
            if y[i] > y[j]
        ]
    )


def naive_losses(lead: Any, shape: Shape) -> tuple[Any, Any, Any]:
    """(loss, slope, curvature) of every lead."""
    curved, straight = (lead >= shape.lower) & (lead < shape.upper), lead < shape.lower
    over = np.where(curved, shape.upper - lead, 0.0)
    loss = shape.curvature * over**2
    middle = (shape.lower + shape.upper) / 2 if shape.slope else 0.0
    loss = loss + np.where(straight, shape.slope * (middle - lead), 0.0)
    return loss, -2 * shape.curvature * over - shape.slope * straight, 2 * shape.curvature * curved


def hinge_objective(w: Any, D: Any, C: float, counts: Any = 1.0) -> float:
    return float(0.5 * w @ w + C * (counts * np.maximum(0, 1 - D @ w)).sum())


@given(
    seed=st.integers(0, 10_000),
    grades=st.integers(2, 5),
    shape=st.sampled_from(SHAPES),
    weighted=st.booleans(),
    scale=st.sampled_from([1e-9, 0.3, 1.0, 1e4]),
)
@settings(max_examples=80, deadline=None)
def test_sums_equal_explicit_pairs(
    seed: int, grades: int, shape: Shape, weighted: bool, scale: float
) -> None:
    X, y, indptr = random_rows(seed, grades)
    rng = np.random.default_rng(seed + 1)
    weights = rng.uniform(0, 3, len(y)) if weighted else np.ones(len(y))
    problem = PairProblem(X, y, indptr, weights if weighted else None)
    i, j = pairs_of(y, indptr).T
    D, u = X[i] - X[j], weights[i] * weights[j]
    assert problem.pairs == pytest.approx(u.sum())
    for _ in range(2):  # the second call starts from the order of the first
        w, v = scale * np.round(rng.normal(size=(2, X.shape[1])), 1)
        scores = problem.scores(w)
        np.testing.assert_allclose(scores, X @ w, rtol=1e-12, atol=1e-12 * scale)
        scores = np.round(scores, 6) if scale == 1.0 else scores  # a lead of exactly 1 happens
        lead = scores[i] - scores[j]
        loss, slope, curvature = naive_losses(lead, shape)
        if_all_were_curved = 2 * shape.curvature * u @ np.abs(shape.upper - lead)
        close = {"rtol": 1e-8, "atol": 1e-8 * float(u @ np.abs(slope)) + 1e-13 * if_all_were_curved + 1e-12}
        result = problem.losses(scores, shape)
        np.testing.assert_allclose(result.loss, u @ loss, rtol=1e-8, atol=close["atol"] * max(1, scale))
        np.testing.assert_allclose(result.slopes, -u @ slope, **close)
        np.testing.assert_allclose(result.curved, u @ (curvature > 0), **close)
        np.testing.assert_allclose(problem.by_feature(result.by_row), D.T @ (u * slope), **close)
        expected = D.T @ (u * curvature * (D @ v))
        if_all_were_curved = np.abs(D).T @ (u * 2 * shape.curvature * np.abs(D @ v))
        atol = 1e-8 * np.abs(expected).max() + 1e-13 * if_all_were_curved.max()
        np.testing.assert_allclose(problem.product(v), expected, rtol=1e-8, atol=atol)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [1e-4, 1e-2, 1.0, 100.0])
@pytest.mark.parametrize("grades", [2, 3, 5])
def test_objective_equals_that_of_linear_svc(loss: str, C: float, grades: int) -> None:
    X, y, indptr = random_rows(7 + grades, grades, queries=20)
    i, j = pairs_of(y, indptr).T
    D = X[i] - X[j]
    both, sign = np.concatenate([D, -D]), np.repeat([1, -1], len(D))
    peer = LinearSVC(C=C / 2, loss=loss, fit_intercept=False, tol=1e-10, max_iter=300_000, dual=True)
    w = peer.fit(both, sign).coef_[0]

    def objective(w: Any) -> float:
        return float(0.5 * w @ w + C * (np.maximum(0, 1 - D @ w) ** (2 if "sq" in loss else 1)).sum())

    solution = minimise(PairProblem(X, y, indptr, None), C, loss, tol=1e-8)
    assert solution.objective == pytest.approx(objective(solution.w), rel=1e-9)
    assert solution.gap <= 1e-8 * solution.objective
    assert solution.objective <= objective(w) * (1 + 1e-7)
    assert solution.objective * (1 - 1e-12) - solution.gap <= objective(w)
    assert solution.objective == pytest.approx(objective(w), rel=1e-6)


@pytest.mark.parametrize("C", [0.01, 1.0, 1000.0])
@pytest.mark.parametrize("separable", [False, True])
def test_hinge_equals_the_quadratic_program(C: float, separable: bool) -> None:
    """The objective as a program in (w, xi), xi >= 0, xi >= 1 - lead, solved by scipy."""
    X, y, indptr = random_rows(3, 3, queries=4)
    if separable:
        X[:, 0] = y + 0.01 * X[:, 1]
    i, j = pairs_of(y, indptr).T
    D = X[i] - X[j]
    F, P = D.shape[1], len(D)
    start = np.append(np.zeros(F), np.ones(P))
    program = minimize(
        lambda z: 0.5 * z[:F] @ z[:F] + C * z[F:].sum(),
        start,
        jac=lambda z: np.append(z[:F], np.full(P, C)),
        constraints=LinearConstraint(np.hstack([D, np.eye(P)]), 1.0, np.inf),
        bounds=[(None, None)] * F + [(0, None)] * P,
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    solution = minimise(PairProblem(X, y, indptr, None), C, "hinge", tol=1e-7)
    proven = 1e-5 if separable and C == 1000 else 1e-7  # more than the floats of slopes can prove there
    assert solution.gap <= proven * solution.objective
    least = hinge_objective(program.x[:F], D, C)
    assert solution.objective <= least * (1 + 1e-6)
    assert solution.objective - solution.gap <= least


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


def test_many_features_and_grades() -> None:
    """More features than principal axes are computed for, and a grade for every document."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 600)), np.tile(np.arange(20), 3)
    solution = minimise(PairProblem(X, y, np.array([0, 20, 40, 60]), None), 0.01, "squared_hinge")
    assert solution.gap <= 1e-6 * solution.objective
    i, j = pairs_of(y, [0, 20, 40, 60]).T
    lead = (X[i] - X[j]) @ solution.w
    expected = 0.5 * solution.w @ solution.w + 0.01 * (np.maximum(0, 1 - lead) ** 2).sum()
    assert solution.objective == pytest.approx(expected, rel=1e-9)


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
