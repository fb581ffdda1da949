"""Noise from the data alone: what predictions for rows nobody trained on say about their given grades.

Let p_m(x) be the probability of the *given* grade m and q_l(x) that of the *true* grade l; then p = q T.
Noise and doubt look alike: a document that is given grade 1 half the time may be noisy or hard. They come
apart only on *anchors*, rows whose true grade the features leave no doubt about:

* rows that surely are of grade l show row l of T. One such set for every grade identifies the matrix.
* rows that surely are *not* of grade m show, under uniform noise, t = gamma / (C - 1) as their share of given
  grade m. One such set identifies the rate. Rows that surely belong to one end of the scale will do, seen
  from the other end; most data have them, if only because grade 0 is common.

Both are read off cross-fitted predictions, and both err upwards: what is doubt counts as noise. Every
estimate is put through checks, and one that fails them is refused, with the reasons, instead of returned.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cleanrank.data.split import query_folds
from cleanrank.errors import invalid
from cleanrank.noise.estimate import NoiseEstimate, summarise, weak_prior
from cleanrank.noise.profiles import NoiseProfile, uniform
from cleanrank.noise.signal import signal_of
from cleanrank.ragged import query_of_row
from cleanrank.types import FloatArray, IntArray, RankingData
from cleanrank.validation import one_of

FitPredict = Callable[[RankingData, RankingData], FloatArray]

# What an estimate must pass; leads and trends are in standard errors.
ANCHOR_SHARE = 0.2
LEAST_ANCHORS = 30
LEAST_AUC = 0.6
LEAST_KAPPA = 0.3
LEAST_KEPT = 0.75
MOST_TREND = 2.5
CLEAR_LEAD = 3.0
MOST_UNEVEN = 2.0
ADDED_KEEPS = 0.7
MOST_GAP = 0.2
STREAM = 9031
BLOCK = 100


@dataclass(frozen=True)
class _Reading:
    """A matrix from anchors: their counts by query, how counts give matrices, objections to it."""

    matrix: FloatArray
    by_query: FloatArray
    read: Callable[[FloatArray, np.random.Generator], FloatArray]
    anchors: int
    doubts: tuple[str, ...]


def cross_fit(
    data: RankingData,
    fit_predict: FitPredict,
    n_folds: int = 5,
    *,
    seed: int = 0,
    n_grades: int | None = None,
) -> FloatArray:
    """Predictions for every row from models that saw none of its query: (N, C).

    Args:
        data: rows with given grades.
        fit_predict: (train, rows) -> (rows, C) probabilities of the given grades.
        n_folds: parts that the queries are cut into.
        seed: decides the parts.
        n_grades: C; the highest grade plus one when not given.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[0.0]] * 4, [0, 1, 1, 1], qid=[1, 1, 2, 2])
    >>> shares = lambda train, rows: np.tile(np.bincount(train.y, minlength=2) / len(train), (len(rows), 1))
    >>> cross_fit(data, shares, 2).tolist()
    [[0.0, 1.0], [0.0, 1.0], [0.5, 0.5], [0.5, 0.5]]
    """
    C = max(data.n_grades, 2) if n_grades is None else n_grades
    probabilities = np.zeros((data.n_docs, C))
    for train, held in query_folds(data, n_folds, seed):
        rows = data.select(held)
        predicted = np.asarray(fit_predict(train, rows), dtype=np.float64)
        if predicted.ndim != 2 or len(predicted) != rows.n_docs or predicted.shape[1] > C:
            rule = f"must give a probability of each of {C} grades for {rows.n_docs} rows"
            raise invalid("fit_predict", rule, f"shape {predicted.shape}")
        # A grade that is missing from the training part has no column: its probability is 0.
        probabilities[held, : predicted.shape[1]] = predicted
    return probabilities


def from_data(
    data: RankingData,
    probabilities: npt.ArrayLike | None = None,
    *,
    fit_predict: FitPredict | None = None,
    family: str | None = None,
    n_folds: int = 5,
    level: float = 0.95,
    draws: int = 1000,
    seed: int = 0,
    strict: bool = False,
) -> NoiseEstimate:
    """The noise matrix from the data alone, or the reasons why it is not identified.

    A refused estimate has no matrix (``profile`` is None and ``matrix`` raises); ``rejected`` keeps the one
    that failed.

    Args:
        data: rows with given grades.
        probabilities: (N, C) cross-fitted probabilities of the given grades.
        fit_predict: instead, a model to cross-fit; it also allows the check against added noise.
        family: "uniform" assumes that errors go to any other grade alike and asks only for their rate. The
            data cannot prove the assumption, so such an estimate is returned with ``trusted=False``.
            Without it the whole matrix is asked for, which needs anchors of every grade.
        n_folds: parts that the queries are cut into.
        level: probability that an interval is meant to hold; it does not cover the upward bias.
        draws: matrices drawn, by resampling queries.
        seed: same seed, same result.
        strict: raises instead of returning an estimate without a matrix.
    """
    if family is not None:
        one_of("family", family, FAMILIES)
    if (probabilities is None) == (fit_predict is None):
        both = "both" if fit_predict is not None else "neither"
        raise invalid("from_data", "takes either `probabilities` or `fit_predict`", both)
    C = max(data.n_grades, 2)
    if fit_predict is not None:
        p = cross_fit(data, fit_predict, n_folds, seed=seed, n_grades=C)
    else:
        p = _probabilities(probabilities, data, C)
    read = FAMILIES[family or "full"]
    reading = read(data, p)
    reasons = [*_no_signal(data, p), *reading.doubts]
    T, r = _resampled(data, reading, draws, seed)
    reasons += [] if reasons else _implausible(r)
    if fit_predict is not None and not reasons:
        reasons += _added_noise(data, fit_predict, read, reading.matrix, n_folds, seed)
    if reasons:
        n, why, rejected = reading.anchors, tuple(reasons), NoiseProfile(reading.matrix, "rejected")
        no_draws = np.zeros((0, C, C)), np.zeros((0, C))
        refused = NoiseEstimate("data", None, *no_draws, n, level, None, False, why, rejected)
        if strict:
            _ = refused.matrix
        return refused
    notes = ["read off the data alone: hard documents count as noise, so the rate is more likely too high"]
    if family is not None:
        # Missed relevant documents and errors that fall off with distance can pass every check (the table of
        # docs/results/estimation.md), so the caller must vouch for an assumed family.
        notes.append(
            "errors were assumed to go to any other grade alike, which the data cannot prove: not trusted"
        )
    if family is not None and C == 2:
        notes.append("with two grades nothing in the data could speak against it")
    if fit_predict is None:
        notes.append("not checked against added noise (that needs fit_predict)")
    r = np.clip(r, 0.0, None)
    r /= r.sum(axis=1, keepdims=True)
    return summarise("data", T, r, reading.anchors, level=level, trusted=family is None, reasons=notes)


def _read_uniform(data: RankingData, p: FloatArray) -> _Reading:
    """The rate from rows most surely of an end of the scale: the grade they are given least often decides.

    Such rows are least likely to belong to the other end, so its share among them is noise and little else.
    """
    C = p.shape[1]
    query = query_of_row(data.indptr)
    end, rows, ahead = _surest_end(data.y, p)
    shares = np.bincount(data.y[rows], minlength=C) / len(rows)
    m = min((g for g in range(C) if g != end), key=lambda g: (shares[g], -abs(g - end)))
    by_query = np.zeros((data.n_queries, 2))
    np.add.at(by_query, (query[rows], (data.y[rows] == m).astype(np.int64)), 1.0)

    def matrices(counts: FloatArray, rng: np.random.Generator) -> FloatArray:
        # Half an error of random weight: errors that no query shows are rare, not impossible.
        wrong = counts[:, 1] + rng.standard_gamma(0.5, size=len(counts))
        t = np.minimum(wrong / np.maximum(counts.sum(axis=1), 1), 1 / C)
        T: FloatArray = t[:, None, None] + (1 - C * t)[:, None, None] * np.eye(C)
        return T

    T = uniform(min(float(shares[m]) * (C - 1), (C - 1) / C), C).matrix
    doubts = _trend(data.y[rows] == m, m)
    for each in (0, C - 1):
        doubts += _order(data.y[anchor_rows(p, each)], each, C)
    if ahead < CLEAR_LEAD:
        doubts.append(
            f"the features single out no rows: those most surely of grade {end} are given it in "
            f"{shares[end]:.0%} of cases, all rows in {(data.y == end).mean():.0%}"
        )
    if 1 - float(shares[m]) * C < LEAST_KAPPA:
        doubts.append(
            f"rows most surely of grade {end} are given grade {m} in {shares[m]:.0%} of cases: "
            "noise and hard documents cannot be told apart"
        )
    return _Reading(T, by_query, matrices, len(rows), tuple(doubts))


def _surest_end(y: npt.NDArray[np.int32], p: FloatArray) -> tuple[int, IntArray, float]:
    """The end of the scale that the features know best: the grade, its surest rows, the lead in errors."""
    ends = []
    for end in (0, p.shape[1] - 1):
        rows = anchor_rows(p, end)
        overall, anchored = float((y == end).mean()), float((y[rows] == end).mean())
        ahead = (anchored - overall) / np.sqrt(max(overall * (1 - overall), 1e-9) / len(rows))
        ends.append((end, rows, float(ahead), anchored))
    end, rows, ahead, _ = max(ends, key=lambda each: each[3] if each[2] > CLEAR_LEAD else -1.0)
    return end, rows, ahead


def _read_full(data: RankingData, p: FloatArray) -> _Reading:
    """Row l of T from the rows that are most surely of grade l."""
    C = p.shape[1]
    query = query_of_row(data.indptr)
    by_query = np.zeros((data.n_queries, C * C))
    T = np.zeros((C, C))
    doubts: list[str] = []
    anchors = 0
    for l in range(C):
        of_grade = int((data.y == l).sum())
        k = min(max(int(ANCHOR_SHARE * of_grade), LEAST_ANCHORS), data.n_docs)
        rows = np.argsort(-p[:, l], kind="stable")[:k]
        np.add.at(by_query, (query[rows], l * C + data.y[rows]), 1.0)
        T[l] = np.bincount(data.y[rows], minlength=C) / k
        anchors += k
        if T[l, l] < LEAST_KEPT:
            doubts.append(
                f"grade {l} has no anchors: of the {k} rows most surely of it {T[l, l]:.0%} are given it"
            )
        else:
            doubts += _trend(data.y[rows] != l, l)

    def matrices(counts: FloatArray, rng: np.random.Generator) -> FloatArray:
        prior = rng.standard_gamma(weak_prior(C), size=(len(counts), C, C))
        tables = counts.reshape(-1, C, C) + prior + 1e-300
        T: FloatArray = tables / tables.sum(axis=2, keepdims=True)
        return T

    return _Reading(T, by_query, matrices, anchors, tuple(doubts))


def _trend(wrong: npt.NDArray[np.bool_], grade: int) -> list[str]:
    """Anchors must form a plateau: the surer half must not look better than the other half."""
    half = len(wrong) // 2
    if half < 10:
        return []
    a, b = float(wrong[:half].mean()), float(wrong[half:].mean())
    spread = np.sqrt(max(a * (1 - a) + b * (1 - b), 1e-6) / half)
    if (b - a) / spread <= MOST_TREND:
        return []
    return [
        f"no plateau at grade {grade}: the surer half of the anchors errs in {a:.1%} of cases, the other "
        f"half in {b:.1%}, so surer rows still would err less"
    ]


def _order(given: npt.NDArray[np.int32], end: int, n_grades: int) -> list[str]:
    """Tests the given grades of rows most surely of an end grade against uniform noise.

    No far grade may beat a nearer one, and the two farthest, which such rows never truly have, must be even.
    Rows that mostly have other grades are no anchors and tell nothing.
    """
    counts = np.bincount(given, minlength=n_grades).astype(np.float64)
    if counts[end] < 0.5 * len(given):
        return []
    path = [g for g in range(n_grades) if g != end]
    path = path if end == 0 else path[::-1]
    for near, far in itertools.pairwise(path):
        ahead = (counts[far] - counts[near]) / np.sqrt(max(counts[far] + counts[near], 1.0))
        farthest = n_grades >= 4 and far == path[-1]
        if ahead > CLEAR_LEAD or (farthest and -ahead > MOST_UNEVEN):
            return [
                f"errors are not uniform: rows most surely of grade {end} are given grade {far} in "
                f"{counts[far] / len(given):.1%} of cases and grade {near} in {counts[near] / len(given):.1%}"
            ]
    return []


def _no_signal(data: RankingData, p: FloatArray) -> list[str]:
    """Features that hardly rank an end of the scale make hard documents look exactly like noise."""
    end, _, _ = _surest_end(data.y, p)
    signal = signal_of(data.y == end, p[:, end], data.indptr, within=False)
    if signal.auc >= LEAST_AUC:
        return []
    return [
        f"the features say too little about the grades: they rank grade {end} with an {signal}; "
        f"below {LEAST_AUC:g} hard documents look like noise"
    ]


def _implausible(r: FloatArray) -> list[str]:
    mean = r.mean(axis=0)
    wrong = [g for g in range(len(mean)) if mean[g] < -0.02]
    return [
        f"the matrix would make {mean[g]:.0%} of the documents truly of grade {g}, which cannot be"
        for g in wrong
    ]


def _added_noise(
    data: RankingData,
    fit_predict: FitPredict,
    read: Callable[[RankingData, FloatArray], _Reading],
    matrix: FloatArray,
    n_folds: int,
    seed: int,
) -> list[str]:
    """Adds uniform noise of a known rate; the matrix read off then must be the product of the two."""
    C = len(matrix)
    added = uniform((1 - ADDED_KEEPS) * (C - 1) / C, C)
    noisier = added.apply(data, np.random.default_rng([seed, STREAM + 1])).data
    again = read(noisier, cross_fit(noisier, fit_predict, n_folds, seed=seed, n_grades=C))
    expected = matrix @ added.matrix
    gap = float(abs(np.diag(again.matrix) - np.diag(expected)).mean()) / float(np.diag(expected).mean())
    if gap <= MOST_GAP:
        return []
    return [
        f"added noise of a known rate was not recovered: grades kept {np.diag(again.matrix).mean():.2f} "
        f"instead of {np.diag(expected).mean():.2f}"
    ]


def _resampled(data: RankingData, reading: _Reading, draws: int, seed: int) -> tuple[FloatArray, FloatArray]:
    """Matrices and true proportions over resampled queries; r solves r T = given shares."""
    rng = np.random.default_rng([seed, STREAM])
    Q, C = data.n_queries, len(reading.matrix)
    given = data.grade_counts(C).astype(np.float64)
    sums = []
    for start in range(0, draws, BLOCK):  # a block at a time: draws x queries would fill the memory
        times = rng.multinomial(Q, np.full(Q, 1 / Q), size=min(BLOCK, draws - start)).astype(np.float64)
        sums.append(times @ np.hstack([reading.by_query, given]))
    totals = np.concatenate(sums)
    T = reading.read(totals[:, :-C], rng)
    w = totals[:, -C:] / totals[:, -C:].sum(axis=1, keepdims=True)
    # A singular matrix (labels without information) has no inverse; a touch of identity keeps r finite.
    soft = 0.999 * T + 0.001 * np.eye(C)
    r = np.linalg.solve(soft.transpose(0, 2, 1), w[:, :, None])[:, :, 0]
    return T, r


def _probabilities(values: npt.ArrayLike | None, data: RankingData, n_grades: int) -> FloatArray:
    p = np.asarray(values, dtype=np.float64)
    if p.shape != (data.n_docs, n_grades):
        rule = f"must have a row per document and a column per grade ({data.n_docs}, {n_grades})"
        raise invalid("probabilities", rule, f"shape {p.shape}")
    sums_to_1 = abs(p.sum(axis=1) - 1) <= 1e-3
    wrong = ~(np.isfinite(p) & (p >= -1e-9)).all(axis=1) | ~sums_to_1
    if wrong.any():
        row = int(np.argmax(wrong))
        rule = "must be probabilities that sum to 1"
        raise invalid("probabilities", rule, p[row].tolist(), at=data.place(row))
    return p


def anchor_rows(p: FloatArray, grade: int) -> IntArray:
    """The rows that are most surely of a grade, the surest first."""
    return np.argsort(-p[:, grade], kind="stable")[: max(int(ANCHOR_SHARE * len(p)), 1)].astype(np.int64)


FAMILIES: dict[str, Callable[[RankingData, FloatArray], _Reading]] = {
    "full": _read_full,
    "uniform": _read_uniform,
}
