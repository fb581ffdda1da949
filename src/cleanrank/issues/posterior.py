"""Posterior doubt: how probable each grade is, given the features, the given grade and the noise.

C grades; T[l, m] = P(given m | true l). A grade model gives p_m(x) = P(given m | x), out of fold. Then
p = q T with q_l(x) = P(true l | x), and Bayes' rule says

    P(true l | x, given m) = q_l(x) T[l, m] / sum_k q_k(x) T[k, m].

The first round solves p = q T for q under q >= 0 and sum q = 1. Where that has no solution, q is the one
whose q T comes closest to p in Kullback-Leibler divergence. The second round learns q from the features
directly, as the maximiser of sum_i log sum_l q_l(x_i) T[l, given_i]: its gradient is that of a softmax whose
target is the posterior, renewed in every round of boosting, so that no inversion is left that could blow up
noise.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.issues.table import LabelIssues
from cleanrank.jit import kernel, prange, threads
from cleanrank.noise.anchors import FitPredict
from cleanrank.noise.estimate import NoiseEstimate
from cleanrank.noise.profiles import NoiseProfile
from cleanrank.rankers.grades import (
    calibrated,
    cross_fit_probabilities,
    cross_fit_true_grades,
    fit_grades,
    rescaled,
)
from cleanrank.types import Array, FloatArray, Progress, RankingData
from cleanrank.validation import check_n_jobs, check_seed

STEPS = 300
CLOSE = 1e-7
TINY = 1e-300
SUM = 1e-3
PROBABILITY = "p_true_"


def posterior(observed: npt.ArrayLike, given: npt.ArrayLike, matrix: Any) -> FloatArray:
    """P(true grade | features, given grade) of every row: (N, C).

    Args:
        observed: (N, C) P(given grade | features), from a model that did not see the row.
        given: (N,) the given grades.
        matrix: T (C, C), rows are true grades; or what holds one as ``matrix``.

    >>> posterior([[0.41, 0.59]], [0], [[0.9, 0.1], [0.2, 0.8]]).round(4).tolist()  # q = (.3, .7)
    [[0.6585, 0.3415]]
    """
    q = true_probabilities(observed, matrix)
    return bayes(q, likelihoods(given, noise_matrix(matrix, q.shape[1])))


def true_probabilities(observed: npt.ArrayLike, matrix: Any, *, n_jobs: int | None = 1) -> FloatArray:
    """Solves q T = p for q, row by row; where no q on the simplex does, gives the closest: (N, C).

    Args:
        observed: (N, C) P(given grade | features).
        matrix: T (C, C).
        n_jobs: threads.

    >>> true_probabilities([[0.41, 0.59], [1.0, 0.0]], [[0.9, 0.1], [0.2, 0.8]]).round(4).tolist()
    [[0.3, 0.7], [1.0, 0.0]]
    """
    p = np.array(observed, dtype=np.float64)
    if p.ndim != 2:
        raise invalid("observed", "must have a row per document and a column per grade", f"shape {p.shape}")
    T = np.ascontiguousarray(noise_matrix(matrix, p.shape[1]))
    bad = ~(np.isfinite(p).all(axis=1) & (p >= 0).all(axis=1) & (p.sum(axis=1) > 0))
    if bad.any():
        row = int(np.argmax(bad))
        raise invalid("observed", "must hold probabilities of the grades", p[row].tolist(), at=f"row {row}")
    p = _padded(p, len(T))
    p /= p.sum(axis=1, keepdims=True)
    start = np.full_like(p, 1 / len(T))
    if np.linalg.matrix_rank(T) == len(T):
        start = p @ np.linalg.inv(T)
    with threads(n_jobs):
        _closest(p, T, start)
    return start


@kernel(parallel=True)
def _closest(p: Array, T: Array, q: Array) -> None:
    """Leaves solutions on the simplex as they are and moves the others there by EM steps."""
    N, C = p.shape
    for i in prange(N):
        lowest = q[i, 0]
        for l in range(1, C):
            lowest = min(lowest, q[i, l])
        exact = lowest >= 0.0
        if exact:
            for m in range(C):
                mixed = 0.0
                for l in range(C):
                    mixed += q[i, l] * T[l, m]
                exact = exact and abs(mixed - p[i, m]) < 1e-9
        if exact:
            continue
        total = 0.0
        for l in range(C):
            q[i, l] = max(q[i, l], 0.01)
            total += q[i, l]
        for l in range(C):
            q[i, l] /= total
        ratio = np.empty(C)
        for _ in range(STEPS):
            for m in range(C):
                mixed = 0.0
                for l in range(C):
                    mixed += q[i, l] * T[l, m]
                ratio[m] = p[i, m] / mixed if mixed > TINY else 0.0
            moved = 0.0
            for l in range(C):
                factor = 0.0
                for m in range(C):
                    factor += T[l, m] * ratio[m]
                new = q[i, l] * factor
                moved = max(moved, abs(new - q[i, l]))
                q[i, l] = new
            if moved < CLOSE:
                break


def likelihoods(given: npt.ArrayLike, matrix: FloatArray) -> FloatArray:
    """P(given grade of the row | true grade l), for every row and l: (N, C)."""
    m = np.asarray(given)
    if m.ndim != 1 or m.dtype.kind not in "iu":
        raise invalid("given", "must be whole grades, one per row", f"{m.dtype}, shape {m.shape}")
    bad = (m < 0) | (m >= len(matrix))
    if bad.any():
        row = int(np.argmax(bad))
        raise invalid("given", f"must be grades from 0 to {len(matrix) - 1}", int(m[row]), at=f"row {row}")
    found: FloatArray = matrix.T[m]
    never = matrix.max(axis=0)[m] <= 0
    if never.any():
        row = int(np.argmax(never))
        rule = "must leave every grade that was given a chance to be given"
        raise invalid("noise", rule, f"probability 0 for grade {m[row]}", at=f"row {row}")
    return found


def bayes(prior: FloatArray, likelihood: FloatArray) -> FloatArray:
    """Bayes' rule, row by row; where prior and likelihood leave nothing, the likelihood decides alone.

    >>> bayes(np.array([[0.3, 0.7]]), np.array([[0.9, 0.2]])).round(4).tolist()
    [[0.6585, 0.3415]]
    """
    if prior.shape != likelihood.shape:
        raise invalid("given", f"must have one grade per row ({len(prior)})", len(likelihood))
    joint = prior * likelihood
    total = joint.sum(axis=1, keepdims=True)
    lost = total[:, 0] <= TINY
    joint[lost] = likelihood[lost] + TINY
    total[lost] = joint[lost].sum(axis=1, keepdims=True)
    found: FloatArray = joint / total
    return found


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the features, the given grades and the noise say about the true grades.

    Attributes:
        prior: (N, C) P(true grade | features), from forests that saw none of the row's query.
        probabilities: (N, C) P(true grade | features, given grade).
        others: P(true grade | features, given grade) of further rows.
        rounds: how many rounds it took.
    """

    prior: FloatArray
    probabilities: FloatArray
    others: tuple[FloatArray, ...]
    rounds: int


def posterior_of(
    data: RankingData,
    noise: Any,
    *,
    known: npt.ArrayLike | None = None,
    others: Sequence[RankingData] = (),
    others_known: Sequence[npt.ArrayLike | None] = (),
    rounds: int = 2,
    folds: int = 5,
    seed: int = 0,
    n_jobs: int = 1,
    fit_predict: FitPredict | None = None,
    calibrate: bool = True,
    params: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Posterior:
    """The posterior of every row, from forests that saw none of its query.

    Args:
        data: rows with given grades.
        noise: T (C, C), a NoiseProfile, or a NoiseEstimate, whose shares of true grades are a start.
        known: (N,) true grades where they are known, -1 elsewhere; known rows teach and are not doubted.
        others: further rows with given grades, of other queries (validation data).
        others_known: ``known`` of each of them.
        rounds: 1 inverts the noise of the predicted given grades; 2 learns the true grades directly.
        folds: parts that the queries are cut into.
        seed: decides the folds and seeds the forests.
        n_jobs: threads.
        fit_predict: (train, rows) -> (N, C) P(given grade), of the first round, in place of ``fit_grades``.
        calibrate: rescale the out-of-fold probabilities, see ``calibrated``.
        params: LightGBM parameters of the grade model that replace ``rankers.grades.DEFAULTS``.
        progress: called with (fold, folds).
    """
    check_seed(seed)
    check_n_jobs(n_jobs)
    for each in others:
        if each.n_features != data.n_features:
            raise invalid("others", f"must have the {data.n_features} features of the data", each.n_features)
    if rounds not in (1, 2):
        raise invalid("rounds", "must be 1 or 2", rounds)
    if fit_predict is not None and rounds == 2:
        raise invalid(
            "fit_predict", "goes with rounds=1: the second round has a likelihood of its own", rounds
        )
    T = noise_matrix(noise, max(each.n_grades for each in (data, *others)))
    L = settled(likelihoods(data.y, T), known)
    if rounds == 1:
        options: dict[str, Any] = {"n_grades": len(T), "seed": seed, "n_jobs": n_jobs, "params": params}
        model: FitPredict = fit_predict or partial(fit_grades, **options)
        p = cross_fit_probabilities(data, folds, seed=seed, n_grades=len(T), fit_predict=model)
        besides = [_padded(model(data, each), len(T)) for each in others]
        if calibrate:
            p, scale = calibrated(p, np.eye(len(T))[data.y])
            besides = [rescaled(each, scale) for each in besides]
        q, *beside = (true_probabilities(each, T, n_jobs=n_jobs) for each in (p, *besides))
    else:
        q, beside = cross_fit_true_grades(
            data, L, folds, seed=seed, others=others, n_jobs=n_jobs, progress=progress, params=params,
            shares=noise.proportions if isinstance(noise, NoiseEstimate) else None,
        )  # fmt: skip
        if calibrate:
            q, scale = calibrated(q, L)
            beside = [rescaled(each, scale) for each in beside]
    truths = list(others_known) or [None] * len(others)
    found = tuple(
        bayes(prior, settled(likelihoods(each.y, T), truth))
        for prior, each, truth in zip(beside, others, truths, strict=True)
    )
    return Posterior(q, bayes(q, L), found, rounds)


def find_posterior(
    data: RankingData,
    *,
    noise: Any,
    rounds: int = 2,
    folds: int = 5,
    seed: int = 0,
    n_jobs: int = 1,
    fit_predict: FitPredict | None = None,
    known: npt.ArrayLike | None = None,
    calibrate: bool = True,
    params: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> LabelIssues:
    """Doubts each grade by its posterior: doubt = 1 - P(given grade is true | features, given grade).

    An issue is a row where another grade is more probable than the given one; that grade is suggested. The
    probability of every grade l is kept as the reason ``p_true_l``; ``clean(mode="posterior")`` reads it.

    Args:
        data: judged rows.
        noise: T (C, C), a NoiseProfile, or a NoiseEstimate.
        rounds: 1 or 2, see ``posterior_of``; 1 when ``fit_predict`` is given.
        folds: parts that the queries are cut into.
        seed: for everything random.
        n_jobs: threads.
        fit_predict: (train, rows) -> (N, C) P(given grade), in place of ``fit_grades``.
        known: (N,) true grades where they are known, -1 elsewhere.
        calibrate: rescale the out-of-fold probabilities, see ``calibrated``.
        params: LightGBM parameters of the grade model.
        progress: called with (fold, folds).

    >>> import cleanrank as cr
    >>> noisy = cr.corrupt(cr.make_ranking(30, 5, docs_per_query=20, seed=0), rate=0.1, seed=1)
    >>> table = find_posterior(noisy.data, noise=noisy.profile, folds=2)
    >>> table.average_precision(noisy) > noisy.rate
    True
    """
    found = posterior_of(
        data, noise, known=known, rounds=1 if fit_predict is not None else rounds, folds=folds, seed=seed,
        n_jobs=n_jobs, fit_predict=fit_predict, calibrate=calibrate, params=params, progress=progress,
    )  # fmt: skip
    return posterior_table(data, found.probabilities)


def posterior_table(data: RankingData, probabilities: FloatArray) -> LabelIssues:
    """The table of a posterior (N, C); ties go to the given grade."""
    rows = np.arange(data.n_docs)
    kept = probabilities[rows, data.y]
    likeliest = probabilities.argmax(axis=1)
    issue = probabilities[rows, likeliest] > kept
    return LabelIssues.of(
        data,
        doubt=np.clip(1 - kept, 0.0, 1.0),
        is_label_issue=issue,
        suggested_label=np.where(issue, likeliest, data.y),
        reasons={f"{PROBABILITY}{grade}": column for grade, column in enumerate(probabilities.T)},
    )


def table_probabilities(table: LabelIssues) -> FloatArray:
    """The posterior (N, C) that a table carries; an error for tables of other detectors."""
    columns: list[FloatArray] = []
    while (name := f"{PROBABILITY}{len(columns)}") in table.reasons:
        columns.append(np.asarray(table.reasons[name], dtype=np.float64))
    if len(columns) < 2:
        raise invalid(
            "issues",
            f"must hold the probability of every grade ({PROBABILITY}0, {PROBABILITY}1, ...)",
            ", ".join(table.reasons) or "no reasons",
            remedy="Find them with find_posterior.",
        )
    found = np.stack(columns, axis=1)
    bad = ~((found >= 0).all(axis=1) & (abs(found.sum(axis=1) - 1) < SUM))
    bad |= table.given_label >= len(columns)
    if bad.any():
        row = int(np.argmax(bad))
        raise invalid(
            f"columns {PROBABILITY}0 to {PROBABILITY}{len(columns) - 1}",
            "must be the probabilities of all grades and sum to 1",
            found[row].round(4).tolist(),
            at=f"row {table.row_id[row]}",
            remedy="Use the table of one detector, as it was written.",
        )
    return found


def noise_matrix(noise: Any, n_grades: int) -> FloatArray:
    """T from a matrix, a NoiseProfile or a NoiseEstimate, for a scale of at least ``n_grades`` grades."""
    given = getattr(noise, "matrix", noise)
    try:
        matrix = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise invalid(
            "noise", "must be a matrix, a NoiseProfile or a NoiseEstimate", repr(noise)[:80]
        ) from None
    T = NoiseProfile(matrix).matrix
    if len(T) < n_grades:
        raise invalid("noise", f"must have a row for each of the {n_grades} grades", f"{len(T)} rows")
    return T


def _padded(probabilities: npt.ArrayLike, n_grades: int) -> FloatArray:
    """Grades that a model never saw have no column: their probability is 0."""
    p = np.asarray(probabilities, dtype=np.float64)
    return np.hstack([p, np.zeros((len(p), n_grades - p.shape[1]))]) if p.shape[1] < n_grades else p


def settled(likelihood: FloatArray, known: npt.ArrayLike | None) -> FloatArray:
    """Rows of a known grade say that grade and nothing else, whatever they were given.

    Args:
        likelihood: (N, C) P(given grade of the row | true grade).
        known: (N,) true grades where they are known, -1 elsewhere; None where none is.

    >>> settled(np.array([[0.9, 0.2], [0.1, 0.8]]), [-1, 0]).tolist()
    [[0.9, 0.2], [1.0, 0.0]]
    """
    if known is None:
        return likelihood
    truth = np.asarray(known)
    N, C = likelihood.shape
    if truth.shape != (N,) or truth.dtype.kind not in "iu":
        rule = f"must be a whole grade per row ({N}), -1 where unknown"
        raise invalid("known", rule, f"{truth.dtype}, shape {truth.shape}")
    bad = (truth < -1) | (truth >= C)
    if bad.any():
        row = int(np.argmax(bad))
        raise invalid(
            "known", f"must be grades from 0 to {C - 1}, -1 where unknown", int(truth[row]), at=f"row {row}",
            remedy="A longer scale needs a noise matrix of its size.",
        )  # fmt: skip
    return np.where(truth[:, None] < 0, likelihood, truth[:, None] == np.arange(C)).astype(np.float64)


ROUNDS: dict[int, str] = {
    1: "the noise of predicted given grades is inverted",
    2: "the true grades are learnt from the likelihood of the given ones",
}
