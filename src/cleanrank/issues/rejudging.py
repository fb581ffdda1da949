"""What judging doubtful labels again costs and wins.

Row i has the given grade y_i and probabilities W_i of its true grade. Among n rows about sum_i (1 - W_i[y_i])
labels are wrong. For wrong pairs, every row is a distribution J_i over (given, true) grades: e_y W_i' as it
is, and J_i[g, t] = W_i[t] E[t, g] after a judge with the noise matrix E (the identity for one who is right)
has judged it again. With rows independent, the expected numbers of wrong pairs and of all pairs of different
given grades are sums over queries of

    B(S, S) - sum_i B(J_i, J_i),   S = sum_i J_i,   B(J, K) = sum_{g > h} sum_{t, u} J[g, t] K[h, u] c[t, u]

with c = 1 for t < u, 1/2 for t = u and 0 else (wrong pairs), or c = 1 (all). Their ratio is pNoise.

Doubts rest on the assumption that errors depend on the true grade alone, and real judges err where features
mislead. So doubts are checked on the rows that were judged again, as they were before these answers settled
them: P(wrong) becomes 1 / (1 + exp(-a - b logit P)), with a ~ N(0, 1) and b ~ N(1, 1/4) before the answers
and a normal approximation of the posterior after them (means and variances).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import expit

from cleanrank.errors import invalid
from cleanrank.issues.table import LabelIssues
from cleanrank.issues.to_judge import is_judged, places_to_judge
from cleanrank.noise.estimate import NoiseEstimate, check_level
from cleanrank.noise.gold_sheet import GoldAnswers
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.ragged import match_rows, query_of_row
from cleanrank.types import FloatArray, IntArray, RankingData
from cleanrank.validation import check_number

SIZES = (100, 300, 1000)
DRAWS = 200
NEW_COME = 0.5
TINY = 1e-12
CLOSE = 1e-3
EDGE = 1e-4
PRIOR_MEAN = np.array([0.0, 1.0])
PRIOR_VARIANCE = np.array([1.0, 0.25])
REMEDY = "Say what is known of the noise (gold= or noise=) to the detector 'auto'."


@dataclass(frozen=True)
class Rejudging:
    """What judging the most doubted rows again costs and wins.

    Attributes:
        rows: how many are judged again.
        cost: of judging them.
        wrong: expected wrong labels among them.
        low: lower end of the interval of that number.
        high: its upper end.
        at_random: expected wrong labels among as many rows drawn at random.
        wrong_left: expected wrong labels in all data afterwards.
        pnoise_before: expected share of wrong pairs as labelled.
        pnoise_after: the same when the new judgements stand.
    """

    rows: int
    cost: float
    wrong: float
    low: float
    high: float
    at_random: float
    wrong_left: float
    pnoise_before: float
    pnoise_after: float


def plan_rejudging(
    issues: LabelIssues,
    data: RankingData,
    *,
    cost: float = 1.0,
    rows: Sequence[int] | None = None,
    budget: float | None = None,
    judged: npt.ArrayLike | None = None,
    noise: Any = None,
    check: tuple[FloatArray, FloatArray] | None = None,
    judge: Any = None,
    level: float = 0.95,
    seed: int = 0,
) -> list[Rejudging]:
    """What it costs to judge the most doubted rows again, how many wrong labels that finds, and pNoise after.

    Doubts must be probabilities: those of the detectors "auto" and "posterior" when the noise is known.
    Without known noise doubts order rows and are refused here.

    Args:
        issues: what the detector found in ``data``.
        data: the judged rows.
        cost: of one judgement.
        rows: numbers of rows to compare; SIZES, the number of issues and the budget's when not given.
        budget: money there is.
        judged: row ids that were judged again already; their labels count as corrected.
        noise: the NoiseEstimate behind the doubts: its draws widen the intervals. Intervals hold only chance
            where it is not given.
        check: doubts of rows judged again as they were before the answers, and whether the labels were
            wrong (``doubts_of_judged``): the doubts of all other rows are corrected by them.
        judge: the noise of the new judge, as a matrix or profile; one who is right when not given.
        level: probability that an interval is meant to hold.
        seed: for the draws.

    Returns:
        One Rejudging for each number of rows, ascending.

    >>> import cleanrank as cr
    >>> noisy = cr.corrupt(cr.make_ranking(60, 5, docs_per_query=20, seed=0), rate=0.1, seed=1)
    >>> issues = cr.find_label_issues(noisy.data, noise=noisy.profile)
    >>> plan = plan_rejudging(issues, noisy.data, cost=0.1, rows=[50])[0]
    >>> plan.cost, plan.wrong > 2 * plan.at_random, plan.pnoise_after < plan.pnoise_before
    (5.0, True, True)
    """
    check_number("cost", cost, least=0)
    check_level(level)
    issues = issues.aligned(data)
    W = _probabilities(issues, judged)
    order = places_to_judge(issues, judged)
    left = order[~is_judged(issues, judged)[order]]
    correction = None if check is None else _fit_correction(*check)
    if correction is not None:
        W[left] = _corrected(W[left], data.y[left], correction[0])
    sizes = _sizes(rows, budget, cost, len(left), int(issues.is_label_issue[left].sum()))
    wrong = 1 - W[np.arange(len(W)), data.y]
    wrong[is_judged(issues, judged)] = 0.0
    found = _counts(issues.probabilities(), W, data.y, left[: max(sizes)], noise, correction, level, seed)
    C = W.shape[1]
    errors = np.eye(C) if judge is None else NoiseProfile.of(judge, n_grades=C).matrix
    corrected = np.flatnonzero(is_judged(issues, judged))
    before = _pair_noise(data, W, corrected, np.eye(C), np.zeros(0, dtype=np.int64), errors)
    plans = []
    for n in sizes:
        again = left[:n]
        expected = float(wrong[again].sum())
        still = float(wrong.sum() - expected + (W[again] @ (1 - np.diag(errors))).sum())
        after = _pair_noise(data, W, corrected, np.eye(C), again, errors)
        low, high = (float(v) for v in found[:, n - 1])
        random = n * float(wrong[left].mean())
        plans.append(Rejudging(n, n * cost, expected, low, high, random, still, before, after))
    return plans


def _probabilities(issues: LabelIssues, judged: npt.ArrayLike | None) -> FloatArray:
    """P(true grade) of every row; refused where doubts do not expect as many wrong labels as these do.

    Their order may be another one: gold rows and the default detector order rows together.
    """
    W = issues.probabilities()
    wrong = 1 - W[np.arange(len(W)), issues.given_label]
    if not np.isclose(wrong.mean(), issues.doubt.mean(), atol=CLOSE):
        rule = "must be probabilities of a wrong label to count wrong labels with; these only order the rows"
        raise invalid("doubts", rule, remedy=REMEDY)
    return W


def _sizes(
    rows: Sequence[int] | None, budget: float | None, cost: float, most: int, n_issues: int
) -> list[int]:
    if not most:
        raise invalid("issues", "must hold a row that nobody judged again", "none")
    sizes = [*(SIZES if rows is None else rows)]
    if rows is None and n_issues:
        sizes.append(n_issues)
    if budget is not None:
        if cost <= 0 or budget < cost:
            rule = f"must buy one judgement at least (cost {cost:g})"
            raise invalid("budget", rule, budget, remedy="Raise it, or lower the cost of a judgement.")
        affordable = int(budget / cost + TINY)
        sizes = [*(n for n in sizes if n <= affordable), affordable]
    if any(n < 1 for n in sizes):
        raise invalid("rows", "must be numbers >= 1", min(sizes))
    return sorted({min(n, most) for n in sizes})


def doubts_of_judged(
    unsettled: LabelIssues, data: RankingData, answers: GoldAnswers
) -> tuple[FloatArray, FloatArray]:
    """For ``plan_rejudging``: the doubts of rows judged again, and whether their labels were wrong.

    Args:
        unsettled: issues found under the same noise without being told the answers.
        data: the judged rows.
        answers: the rows of known true grade.
    """
    place = match_rows(unsettled.row_id, answers.row_ids)
    own = match_rows(data.row_ids, answers.row_ids)
    return unsettled.doubt[place], (data.y[own] != answers.true_grades).astype(np.float64)


def _logit(p: FloatArray) -> FloatArray:
    inside = np.clip(p, EDGE, 1 - EDGE)
    return np.asarray(np.log(inside / (1 - inside)))


def _fit_correction(doubt: FloatArray, wrong: FloatArray) -> tuple[FloatArray, FloatArray]:
    return fit_logistic(_logit(doubt), wrong, PRIOR_MEAN, PRIOR_VARIANCE)


def fit_logistic(
    x: FloatArray, wrong: FloatArray, mean: FloatArray, variance: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The most probable (a, b) of P(wrong) = 1 / (1 + exp(-a - b x)), and its covariance.

    Args:
        x: a number per row.
        wrong: 1.0 where the label is wrong, else 0.0.
        mean: of (a, b) before the answers.
        variance: of a and of b before the answers, which are independent.

    >>> theta, _ = fit_logistic(np.zeros(8), np.array([1.0] * 2 + [0.0] * 6), np.zeros(2), np.full(2, 100.0))
    >>> float(expit(theta[0]).round(2))
    0.25
    """
    X = np.stack([np.ones(len(x)), x], axis=1)

    def surprise(theta: FloatArray) -> float:
        z = X @ theta
        apart = ((theta - mean) ** 2 / variance).sum() / 2
        return float((np.logaddexp(0, z) - wrong * z).sum() + apart)

    def slope(theta: FloatArray) -> FloatArray:
        return np.asarray(X.T @ (expit(X @ theta) - wrong) + (theta - mean) / variance)

    theta = minimize(surprise, mean, jac=slope, method="BFGS").x
    p = expit(X @ theta)
    curvature = (X * (p * (1 - p))[:, None]).T @ X + np.diag(1 / variance)
    return theta, np.asarray(np.linalg.inv(curvature), dtype=np.float64)


def _corrected(W: FloatArray, y: npt.NDArray[np.integer], theta: FloatArray) -> FloatArray:
    """Probabilities whose P(wrong) is corrected; the other grades keep their proportions."""
    rows = np.arange(len(W))
    wrong = 1 - W[rows, y]
    new = expit(theta[0] + theta[1] * _logit(wrong))
    out = W * (new / np.maximum(wrong, TINY))[:, None]
    out[rows, y] = 1 - new
    shares: FloatArray = out / out.sum(axis=1, keepdims=True)
    return shares


def _counts(
    raw: FloatArray,
    W: FloatArray,
    y: npt.NDArray[np.integer],
    rows: IntArray,
    noise: Any,
    correction: tuple[FloatArray, FloatArray] | None,
    level: float,
    seed: int,
) -> FloatArray:
    """(2, n): ends of the intervals of the number of wrong labels among the first 1, 2, ..., n rows.

    Under a draw T of the noise the probabilities become W_l T[l, y] / T0[l, y], T0 being the matrix behind W;
    a correction is drawn instead where there is one.
    """
    rng = np.random.default_rng(seed)
    given, at = y[rows], np.arange(len(rows))
    draws = np.zeros((DRAWS, len(rows)), dtype=np.int32)
    is_drawn = isinstance(noise, NoiseEstimate) and len(noise.draws) and noise.n_grades == W.shape[1]
    for s in range(DRAWS):
        p = W[rows]
        if correction is not None:
            p = _corrected(raw[rows], given, rng.multivariate_normal(*correction))
        elif is_drawn:
            T = noise.draws[rng.integers(len(noise.draws))]
            p = p * (T / np.maximum(noise.matrix, TINY))[:, given].T
            p = p / np.maximum(p.sum(axis=1, keepdims=True), TINY)
        draws[s] = np.cumsum(rng.random(len(rows)) < 1 - p[at, given])
    tails = [(1 - level) / 2, (1 + level) / 2]
    ends: FloatArray = np.quantile(draws, tails, axis=0, method="nearest").astype(np.float64)
    return ends


def _pair_noise(
    data: RankingData,
    W: FloatArray,
    corrected: IntArray,
    known: FloatArray,
    again: IntArray,
    errors: FloatArray,
) -> float:
    """Expected pNoise when ``corrected`` rows carry their true grade and ``again`` are judged with errors."""
    C = W.shape[1]
    query = query_of_row(data.indptr)
    S = np.zeros((data.n_queries, C, C))
    new = np.zeros(data.n_docs, dtype=np.bool_)
    new[corrected] = new[again] = True
    old = np.flatnonzero(~new)
    np.add.at(S, (query[old], data.y[old]), W[old])
    own_wrong = own_all = 0.0
    for rows, matrix in ((corrected, known), (again, errors)):
        J = matrix.T[None] * W[rows][:, None, :]
        np.add.at(S, query[rows], J)
        wrong, every = pair_forms(J)
        own_wrong, own_all = own_wrong + wrong, own_all + every
    wrong, every = pair_forms(S)
    return (wrong - own_wrong) / (every - own_all) if every > own_all else float("nan")


def pair_forms(J: FloatArray) -> tuple[float, float]:
    """B(J, J) for wrong pairs and for all pairs, summed over the first axis of (..., given, true).

    >>> pair_forms(np.array([[[1.0, 0.0], [1.0, 0.0]]]))  # true grades 0 and 0, given as 0 and 1
    (0.5, 1.0)
    """
    C = J.shape[-1]
    below = np.cumsum(J, axis=1) - J
    turned = np.triu(np.ones((C, C)), 1) + NEW_COME * np.eye(C)
    wrong = float(((J @ turned) * below).sum())
    return wrong, float((J.sum(axis=2) * below.sum(axis=2)).sum())
