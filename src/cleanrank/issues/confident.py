"""Confident learning: counts of rows that predictions surely place in another grade (Northcutt et al. 2021).

p (N, C) are probabilities of the given grades from models that never saw the row. The threshold of grade l
is the mean of p_l over the rows given l. A row is *confidently* of grade l when p_l reaches that threshold;
where several do, the most probable grade counts. The confident joint Q[m, l] counts rows given m that are
confidently of l, scaled so that its rows sum to the number of rows given each grade.

Quality of a label: "self-confidence" is p of the given grade, "margin" is (p_given - max_other p + 1) / 2.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.issues.feature_signal import feature_signal
from cleanrank.issues.table import EXPECTED, BoolArray, LabelIssues
from cleanrank.noise.anchors import FitPredict
from cleanrank.rankers.grade_model import cross_fit, fit_grades
from cleanrank.types import Array, FloatArray, IntArray, RankingData
from cleanrank.validation import check_numbers, one_of

SLACK = 1e-6
LEAST = 1


def find_confident(
    data: RankingData,
    *,
    by: str = "noise-rate",
    score: str = "self-confidence",
    folds: int = 5,
    probabilities: npt.ArrayLike | None = None,
    fit_predict: FitPredict | None = None,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    n_jobs: int = 1,
) -> LabelIssues:
    """Doubts labels that cross-fitted grade probabilities speak against.

    Without signal in them (``LabelIssues.signal``) nothing is an issue, unless the probabilities are given.

    Args:
        data: judged rows.
        by: how issues are chosen, one of PRUNING.
        score: what doubt is read off, one of QUALITIES; doubt is 1 - quality.
        folds: parts that the queries are cut into.
        probabilities: (N, C) out-of-fold probabilities of the given grades, instead of cross-fitted ones.
        fit_predict: (train, rows) -> (rows, C) in place of ``fit_grades``.
        params: LightGBM parameters of that.
        seed: for the folds and the models.
        n_jobs: threads.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((4, 1)), [0, 0, 1, 0], group=[4])
    >>> issues = find_confident(data, probabilities=[[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.1, 0.9]])
    >>> issues.is_label_issue.tolist(), issues.suggested_label.tolist()
    ([False, False, False, True], [0, 0, 1, 1])
    """
    quality = QUALITIES[one_of("quality of a label", score, QUALITIES)]
    prune = PRUNING[one_of("way of pruning", by, PRUNING)]
    p = out_of_fold(
        data, probabilities, folds=folds, fit_predict=fit_predict, params=params, seed=seed, n_jobs=n_jobs
    )
    p_given = self_confidence(p, data.y)
    table = LabelIssues.of(
        data,
        doubt=np.clip(1 - quality(p, data.y), 0.0, 1.0),
        # Nothing speaks against a grade that is as probable as any.
        is_label_issue=prune(p, data.y) & (p_given < p.max(axis=1) - SLACK),
        suggested_label=p.argmax(axis=1),
        reasons={
            "confident": np.clip(1 - p_given, 0.0, 1.0),
            EXPECTED: p @ np.arange(p.shape[1]),
        },
    )
    signal = feature_signal(data, probabilities, seed=seed, n_jobs=n_jobs)
    # Whoever brings predictions vouches for them.
    return table.with_signal(signal) if probabilities is None else replace(table, signal=signal)


def out_of_fold(
    data: RankingData,
    probabilities: npt.ArrayLike | None = None,
    *,
    folds: int = 5,
    fit_predict: FitPredict | None = None,
    params: Mapping[str, Any] | None = None,
    seed: int = 0,
    n_jobs: int = 1,
) -> FloatArray:
    """(N, C) probabilities of the given grades: those at hand, checked, or cross-fitted ones."""
    if probabilities is None:
        C = max(data.n_grades, 2)
        small = partial(fit_grades, n_grades=C, params=params, seed=seed, n_jobs=n_jobs)
        return cross_fit(data, fit_predict or small, folds, seed=seed)[0]
    p = check_numbers("probabilities", probabilities)
    if p.ndim != 2 or len(p) != data.n_docs or p.shape[1] < max(data.n_grades, 2):
        rule = f"must have a row per document and a column per grade ({data.n_docs}, {max(data.n_grades, 2)})"
        raise invalid("probabilities", rule, f"shape {p.shape}")
    bad = ~(np.isfinite(p).all(axis=1) & (p >= -1e-9).all(axis=1) & (abs(p.sum(axis=1) - 1) < 1e-3))
    if bad.any():
        row = int(np.argmax(bad))
        raise invalid(
            "probabilities", "must be probabilities that sum to 1", p[row].tolist(), at=data.place(row)
        )
    return p


def self_confidence(p: FloatArray, y: Array) -> FloatArray:
    """The probability of the given grade."""
    p_given: FloatArray = p[np.arange(len(y)), y]
    return p_given


def normalised_margin(p: FloatArray, y: Array) -> FloatArray:
    """(p_given - max_other p + 1) / 2."""
    others = p.copy()
    others[np.arange(len(y)), y] = -np.inf
    margin: FloatArray = (self_confidence(p, y) - others.max(axis=1) + 1) / 2
    return margin


def thresholds(p: FloatArray, y: Array) -> FloatArray:
    """Mean p_l over the rows given grade l; infinite for a grade that nobody gave."""
    count = np.bincount(y, minlength=p.shape[1])
    total = np.bincount(y, weights=self_confidence(p, y), minlength=p.shape[1])
    return np.where(count > 0, total / np.maximum(count, 1), np.inf)


def confident_grades(p: FloatArray, y: Array) -> IntArray:
    """The grade that each row is confidently of; -1 where there is none."""
    reached = p >= thresholds(p, y) - SLACK
    several = reached.sum(axis=1) > 1
    grade = np.where(several, p.argmax(axis=1), reached.argmax(axis=1))
    return np.where(reached.any(axis=1), grade, -1).astype(np.int64)


def confident_joint(p: FloatArray, y: Array) -> IntArray:
    """Q (C, C): rows given m that are confidently of l, scaled to the counts of the given grades.

    At least one row of every grade counts as right, and whole numbers are made by largest remainders.
    """
    C = p.shape[1]
    guess = confident_grades(p, y)
    sure = guess >= 0
    counts = np.bincount(y[sure] * C + guess[sure], minlength=C * C).reshape(C, C)
    np.fill_diagonal(counts, np.maximum(counts.diagonal(), 1))
    given_counts = np.bincount(y, minlength=C)
    scaled = (counts.T / counts.sum(axis=1) * given_counts).T
    # The second scaling changes nothing but the last bits, which decide ties of remainders.
    return _rounded(scaled / scaled.sum() * given_counts.sum())


def prune_by_noise_rate(p: FloatArray, y: Array) -> BoolArray:
    """For every m != l, the Q[m, l] rows given m with the largest p_l - p_m."""
    wrong = _removable(confident_joint(p, y))
    pruned = np.zeros(len(y), dtype=np.bool_)
    for m in range(p.shape[1]):
        rows = np.flatnonzero(y == m)
        if len(rows) <= LEAST:
            continue
        for l in range(p.shape[1]):
            if l != m and wrong[m, l] > 0:
                ahead = p[rows, l] - p[rows, m]
                pruned[rows[np.argsort(-ahead, kind="stable")[: wrong[m, l]]]] = True
    return pruned


def prune_by_grade(p: FloatArray, y: Array) -> BoolArray:
    """For every m, the rows given m with the smallest p_m, as many as Q counts outside its diagonal."""
    kept = _removable(confident_joint(p, y)).diagonal()
    pruned = np.zeros(len(y), dtype=np.bool_)
    for m in range(p.shape[1]):
        rows = np.flatnonzero(y == m)
        if len(rows) > LEAST:
            pruned[rows[np.argsort(p[rows, m], kind="stable")[: max(len(rows) - kept[m], 0)]]] = True
    return pruned


def _confidently_other(p: FloatArray, y: Array) -> BoolArray:
    guess = confident_grades(p, y)
    return np.asarray((guess >= 0) & (guess != y))


def _removable(joint: IntArray) -> IntArray:
    """Q with at least LEAST right rows a grade, taken evenly from its errors."""
    short = np.maximum(LEAST - joint.diagonal(), 0)
    sources = np.maximum((joint > 0).sum(axis=1) - 1, 1)
    fewer: IntArray = np.maximum(joint - (short / sources)[:, None], 0).astype(np.int64)
    np.fill_diagonal(fewer, np.maximum(joint.diagonal(), LEAST))
    return fewer


def _rounded(values: FloatArray) -> IntArray:
    """Rows of whole numbers with the same sums, nearest first, the rest by largest remainders."""
    rounded = np.rint(values)
    for row, whole in zip(values, rounded, strict=True):
        short = int(np.rint(row.sum()) - whole.sum())
        order = np.argsort(row - whole, kind="stable")
        whole[order[::-1][:short] if short > 0 else order[: -short or 0]] += np.sign(short)
    return rounded.astype(np.int64)


QUALITIES: dict[str, Callable[[FloatArray, Array], FloatArray]] = {
    "self-confidence": self_confidence,
    "margin": normalised_margin,
}

PRUNING: dict[str, Callable[[FloatArray, Array], BoolArray]] = {
    "noise-rate": prune_by_noise_rate,
    "grade": prune_by_grade,
    "both": lambda p, y: prune_by_noise_rate(p, y) & prune_by_grade(p, y),
    "confident": _confidently_other,
    "predicted": lambda p, y: p.argmax(axis=1) != y,
}
