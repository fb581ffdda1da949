"""The solver of RankSVM against sums over explicit pairs, scikit-learn's LinearSVC and scipy."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize
from sklearn.svm import LinearSVC

from cleanrank.rankers.classic._pair_solver import PairProblem, Shape, minimise
from tests.rankers.classic.rows import pairs_of, random_rows

SHAPES = [Shape.squared(), Shape.hinge(), Shape.hinge(0.3), Shape.hinge(1e-3), Shape.hinge(at=-1.0)]


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
    proven = 1e-4 if separable and C == 1000 else 1e-7  # more than the floats of slopes can prove there
    assert solution.gap <= proven * solution.objective
    least = hinge_objective(program.x[:F], D, C)
    assert solution.objective <= least * (1 + 1e-6)
    assert solution.objective - solution.gap <= least


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
