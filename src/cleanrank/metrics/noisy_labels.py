"""Measures of the true labels, estimated from noisy ones with a known noise matrix.

T[i, j] is the probability that a document of true grade i was labelled j, independently of all others. With
h = T^-1 g the mean of h[label] over the noise is g[true grade], whatever that is (Natarajan et al. 2013). A
measure allows this correction if it is a sum over documents of (a weight from the scores) x (a number from
the grade), or over pairs of documents likewise:

* DCG, precision: sum_d w_d g[y_d], with w the discount at the rank of d, or 1/k;
* AUC and pairwise accuracy, ``micro``: sum over i != j of K_ij G[y_i, y_j] / n^2, with K = 1 where i ranks
  above j and 1/2 where they tie, and G[a, b] = 1 where grade a should rank above b. Corrected, G becomes
  T^-1 G T^-T. Unbiased, because the noise of i and j is independent;
* ``pooled``: a ratio of two such sums; consistent in the number of queries, not unbiased.

All of this assumes that errors depend on the true grade alone. Where they rise with the rank at which systems
put a document, as those of language models do, the correction makes figures worse, not better: an estimate
whose rows of known grade contradict the assumption is refused (``check_assumption``).

Documents that nobody judged (``data.judged``) carry no noise: they keep their ranks and count 0.

Symbols: C grades; ``stats`` (Q, S) hold, per query, the sums of weights by label (S = C) or by pair of
labels (S = C^2), so that every value is ``stats @ coefficients``.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import InvalidInputError, invalid
from cleanrank.metrics import significance
from cleanrank.metrics.evaluation import (
    Scores,
    aligned,
    as_rows,
    check_retrieved,
    checked_scores,
    trec_scores,
)
from cleanrank.metrics.measure import (
    MAX_EXP_GRADE,
    Measure,
    MeasureLike,
    as_measures,
    describe_parts,
    discount,
)
from cleanrank.metrics.significance import checked_count
from cleanrank.noise.estimate import load_noise
from cleanrank.noise.profiles import MAX_CONDITION, ROUNDING, NoiseProfile
from cleanrank.ragged import match_rows, query_of_row, rank_order, ranks, segment_sum
from cleanrank.types import Array, FloatArray, RankingData
from cleanrank.validation import check_number

# A right matrix is refused in one case of a hundred; judges of real collections fall far below.
REFUSED_BELOW = 0.01
UNCHECKED = (
    "Not checked: that errors depend on the true grade alone, which the correction rests on; an estimate "
    "from rows of known grade would tell."
)
REFUSED: dict[str, str] = {
    "ndcg": "the ideal DCG depends on the labels too, so the effect of noise depends on how many of each "
    "there are (Haddad 2022). Use dcg",
    "map": "it is quadratic in the labels. Use auc:micro or precision",
    "mrr": "it depends on a product over documents, not a sum. Use dcg or precision",
    "err": "it depends on a product over documents, not a sum. Use dcg",
    "recall": "it divides by the number of relevant documents of the query, which the noise changes. "
    "Use precision",
    "tau": "it divides by the number of untied pairs of the query, which the noise changes. "
    "Use pairacc:micro",
    "auc": "with macro weighting the effect of noise depends on the share of relevant documents of each "
    "query. "
    "Use auc:micro or auc:pooled",
    "pairacc": "with macro weighting the effect of noise depends on the grades of each query. "
    "Use pairacc:micro or pairacc:pooled",
}


@dataclass(frozen=True, eq=False, repr=False)
class Corrected:
    """Corrected means with intervals, beside what the noisy labels say.

    Attributes:
        measures: what was measured.
        means: (M,) corrected.
        low: (M,) lower ends of the intervals.
        high: (M,) upper ends.
        noisy: (M,) the means on the labels as they are.
        by_query: (M, Q) corrected values; their mean is ``means`` except for pooled measures.
        level: of the intervals.
        n_draws: matrices drawn from the estimate, whose uncertainty the intervals hold; 1 for a known matrix.
        n_singular: of these, how many cannot be inverted; the intervals count them as beyond both ends.
        assumption: what is known of whether errors depend on the true grade alone, as a sentence.
    """

    measures: tuple[Measure, ...]
    means: FloatArray
    low: FloatArray
    high: FloatArray
    noisy: FloatArray
    by_query: FloatArray
    level: float
    n_draws: int = 1
    n_singular: int = 0
    assumption: str = UNCHECKED

    def rows(self) -> list[dict[str, Any]]:
        """One plain record per measure."""
        columns = zip(self.measures, self.means, self.low, self.high, self.noisy, strict=True)
        return [
            {
                "measure": str(m),
                "corrected": float(mean),
                "interval": [float(low), float(high)],
                "as_labelled": float(noisy),
            }
            for m, mean, low, high, noisy in columns
        ]

    def to_frame(self, query_ids: Array) -> Any:
        """A pandas DataFrame with a row per query and a column per measure."""
        import pandas as pd

        columns = {str(m): row for m, row in zip(self.measures, self.by_query, strict=True)}
        return pd.DataFrame(columns, index=pd.Index(query_ids, name="query_id"))

    def __repr__(self) -> str:
        rows = [("measure", "corrected", f"{100 * self.level:g}% interval", "as labelled", "convention")]
        for m, measure in enumerate(self.measures):
            rows.append(
                (str(measure), f"{self.means[m]:.4f}", f"[{self.low[m]:.4f}, {self.high[m]:.4f}]",
                 f"{self.noisy[m]:.4f}", describe_parts(measure))
            )  # fmt: skip
        return f"{aligned(rows)}\n{self.assumption}"


def corrected(
    scores: Scores,
    data: RankingData,
    measures: "MeasureLike | Iterable[MeasureLike]" = "dcg@10",
    noise: Any = None,
    level: float = 0.95,
    seed: int = 0,
    matrix_draws: npt.ArrayLike | None = None,
    resamples: int = 10_000,
    *,
    order: str | None = None,
    allow_dependent: bool = False,
) -> Corrected:
    """Estimates measures of the true labels from noisy ones, if errors depend on the true grade alone.

    Args:
        scores: one per row, or a Run, as in ``evaluate``.
        data: with noisy grades.
        measures: dcg, precision, auc and pairacc with micro or pooled weighting; others are refused.
        noise: T, as ``NoiseProfile.of`` reads it.
        level: of the bootstrap intervals over queries.
        seed: of the bootstrap.
        matrix_draws: (D, C, C) draws of an estimated T; they widen the intervals by its uncertainty. Those of
            ``noise`` itself (``noise.draws``, also of a saved estimate) when it has some and none are given.
        resamples: of the bootstrap.
        order: of the scores, as in ``evaluate``.
        allow_dependent: correct even where the rows of known grade behind an estimate show that errors depend
            on more than the true grade; the figures may then be far off.

    Returns:
        A Corrected: means and intervals, beside the means on the labels as they are.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[1.0]] * 4, [1, 0, 0, 1], qid=[1, 1, 2, 2])
    >>> estimate = corrected([2, 1, 2, 1], data, "precision@1", noise=[[0.9, 0.1], [0.2, 0.8]])
    >>> estimate.noisy.round(3).tolist(), estimate.means.round(3).tolist()
    ([0.5], [0.571])
    """
    check_number("level", level, above=0, below=1)
    (by_row,), data, convention = as_rows([scores], data, order)
    parsed = as_measures(measures, convention)
    resamples = checked_count("resamples", resamples)
    noise = loaded_noise(noise, data)
    checked = checked_scores(by_row, data.n_docs, data)
    assumption = check_assumption(noise, data, [checked], allow_dependent)
    matrix, drawn = known_noise(noise, data, level, matrix_draws)
    check_retrieved(parsed, checked)
    rows: list[tuple[Any, ...]] = []
    for m in parsed:
        check_correctable(m, data, len(matrix))
        stats, units = query_stats(m, tie_order(m, checked, data), data, len(matrix))
        value = coefficients(m, matrix)
        total = stats @ value
        size = units @ base_coefficients(m, matrix)
        plain = coefficients(m, np.eye(len(matrix)))
        plain_size = units @ base_coefficients(m, np.eye(len(matrix)))
        low, high = _interval(m, stats, units, drawn, level, seed, resamples)
        with np.errstate(invalid="ignore", divide="ignore"):
            by_query = total / (size if m.weighting == "pooled" else 1.0)
            as_labelled = (stats @ plain).sum() / plain_size.sum()
            rows.append((total.sum() / size.sum(), low, high, as_labelled, by_query))
    means, lows, highs, noisy, values = (np.array(c, dtype=np.float64) for c in zip(*rows, strict=True))
    singular = int((~invertible(drawn)).sum())
    return Corrected(parsed, means, lows, highs, noisy, values, level, len(drawn), singular, assumption)


def tie_order(m: Measure, checked: Array, data: RankingData) -> Array:
    """Scores whose ties fall as the measure says when they keep the order of the rows."""
    if m.ties != "doc_id":
        return checked
    return checked_scores(trec_scores(np.ma.masked_equal(checked, -np.inf), data), data.n_docs)


def loaded_noise(noise: Any, data: RankingData) -> Any:
    """The noise itself where a text or a path names it."""
    return load_noise(str(noise), max(data.n_grades, 2)) if isinstance(noise, str | Path) else noise


def check_assumption(
    noise: Any, data: RankingData, systems: Sequence[npt.ArrayLike], allow_dependent: bool
) -> str:
    """What is known of whether errors depend on the true grade alone; refuses where they do not.

    Where the rows of known grade are among the data, the test looks at the ranks of these systems as well.
    """
    tested = getattr(noise, "class_conditional", None)
    if tested is None:
        return UNCHECKED
    known = getattr(noise, "known_rows", None)
    if known is not None:
        from cleanrank.noise.gold import rows_test

        positions = match_rows(data.row_ids, known[:, 0])
        if (positions >= 0).all() and np.array_equal(data.y[positions], known[:, 2]):
            checked = [checked_scores(scores, data.n_docs, data) for scores in systems]
            rank = np.mean([_exposure(scores, data) for scores in checked], axis=0)
            tested = rows_test(data, positions, known[:, 1], rank)
    if tested.rejected(REFUSED_BELOW) and not allow_dependent:
        rule = "must depend on the true grade alone to be corrected by a matrix"
        remedy = (
            "Levels need gold labels beside the noisy ones (evaluate_with_judge); allow_dependent=True "
            "corrects all the same."
        )
        raise invalid("errors", rule, tested.words.rstrip("."), remedy=remedy)
    words: str = tested.words
    return words


def _exposure(scores: Array, data: RankingData) -> FloatArray:
    """The weight 1 / log2(1 + rank) that DCG gives every document, 0 where it was not retrieved."""
    weight: FloatArray = 1.0 / np.log2(1.0 + ranks(scores, data.indptr))
    return np.where(np.isneginf(scores), 0.0, weight)


def known_noise(
    noise: Any, data: RankingData, level: float, matrix_draws: npt.ArrayLike | None = None
) -> tuple[FloatArray, FloatArray]:
    """T (C, C), and draws of it (D, C, C): one, T itself, where T is known."""
    matrix = NoiseProfile.of(noise, data.n_grades, invertible=True).matrix
    subject = "the noise estimate" if matrix_draws is None else "matrix_draws"
    listed = getattr(noise, "draws", None) if matrix_draws is None else matrix_draws
    if listed is None:
        return matrix, matrix[None]
    drawn = _checked_draws(listed, matrix)
    singular = int((~invertible(drawn)).sum())
    if not singular < (1 - level) / 2 * len(drawn):
        share = f"{(1 - level) / 2:.3g} of its draws for intervals of level {level:g}"
        rule = f"must be invertible in all but {share}"
        few = f"{singular:,} of {len(drawn):,} draws with a condition number above {MAX_CONDITION:g}"
        remedy = "The labels judged again are too few to tell the grades apart: judge more, or merge grades."
        raise invalid(subject, rule, few, remedy=remedy)
    return matrix, drawn


def invertible(drawn: FloatArray) -> npt.NDArray[np.bool_]:
    """Which matrices tell the grades apart well enough."""
    usable: npt.NDArray[np.bool_] = np.linalg.cond(drawn) < MAX_CONDITION
    return usable


def _checked_draws(matrix_draws: npt.ArrayLike, matrix: FloatArray) -> FloatArray:
    drawn = np.asarray(matrix_draws, dtype=np.float64)
    if drawn.ndim != 3 or drawn.shape[1:] != matrix.shape:
        raise invalid("matrix_draws", f"must have the shape (draws, *{matrix.shape})", drawn.shape)
    bad = ~(drawn >= 0).all(axis=-1) | ~(np.abs(drawn.sum(axis=-1) - 1.0) <= ROUNDING)
    if bad.any():
        draw, row = np.unravel_index(int(np.argmax(bad)), bad.shape)
        rule = "must have rows of probabilities that sum to 1"
        raise invalid("matrix_draws", rule, drawn[draw, row].tolist(), at=f"draw {int(draw)}, row {int(row)}")
    return drawn


def check_correctable(m: Measure, data: RankingData, n_grades: int) -> None:
    """Refuses what cannot be corrected, with the reason."""
    reason = REFUSED.get(m.name) if m.weighting in (None, "macro") else None
    if reason:
        raise InvalidInputError(f"{str(m)!r} cannot be corrected for label noise: {reason}.")
    if m.empty == "skip":
        rule = "must keep all queries, for noisy labels decide which are left out"
        raise invalid(f"{str(m)!r}", rule, "empty=skip", remedy="Leave the convention out.")  # fmt: skip
    if m.ties == "worst":
        raise invalid(f"{str(m)!r}", "must not break ties by noisy labels", "ties=worst",
                    remedy="Use ties=average.")  # fmt: skip
    if m.name == "dcg" and data.gains is not None:
        raise invalid("data", "must have no gains of their own, for grades are what is noisy",
                    remedy="Use data.with_labels(data.y).")  # fmt: skip
    if m.gain == "exp" and n_grades - 1 > MAX_EXP_GRADE:
        raise invalid("grades", f"must not exceed {MAX_EXP_GRADE} with the gain 2^y - 1", n_grades - 1)


def grade_values(m: Measure, n_grades: int) -> FloatArray:
    """What a document of each true grade contributes, (C,); for pairs of documents (C, C)."""
    grades = np.arange(n_grades, dtype=np.float64)
    if m.name == "dcg":
        return np.exp2(grades) - 1.0 if m.gain == "exp" else grades
    relevant = (grades >= (m.relevant or 1)).astype(np.float64)
    if m.name == "precision":
        return relevant
    if m.name == "auc":
        return np.outer(relevant, 1.0 - relevant)
    return (grades[:, None] > grades[None, :]).astype(np.float64)


def coefficients(m: Measure, T: FloatArray) -> FloatArray:
    """What a label (or pair of labels) contributes, so that its mean over the noise is the true value."""
    inverse = np.linalg.inv(T)
    g = grade_values(m, len(T))
    return inverse @ g if g.ndim == 1 else (inverse @ g @ inverse.T).ravel()


def base_coefficients(m: Measure, T: FloatArray) -> FloatArray:
    """The same for the denominator: 1 per query, or the pairs that should be in order."""
    return coefficients(m, T) if m.weighting == "pooled" else np.ones(1)


def rank_weights(m: Measure, scores: Array, data: RankingData) -> FloatArray:
    """The weight w of each document (N,), from the ranking alone; 0 if it was not retrieved or not judged."""
    retrieved = ~np.isneginf(scores)
    depth = segment_sum(retrieved, data.indptr)
    lengths = np.maximum(np.repeat(depth, data.lengths), 1.0)
    counted = retrieved if data.judged is None else retrieved & data.judged
    longest = int(data.lengths.max(initial=1))
    cut = m.cutoff or longest
    if m.name == "precision":
        table = np.ones(longest)
        scale = 1.0 / (np.full(data.n_docs, m.cutoff) if m.cutoff else lengths)
    else:
        table = discount(m.discount or "log2", longest)
        scale = np.where((lengths < cut) & (m.short == "zero") & (m.cutoff is not None), 0.0, 1.0)
    table[cut:] = 0.0
    weights = table[ranks(scores, data.indptr) - 1] * scale
    if m.ties != "average":
        return np.where(counted, weights, 0.0)
    order = rank_order(scores, data.indptr)
    new = np.ones(data.n_docs, dtype=bool)
    s, q = np.asarray(scores)[order], query_of_row(data.indptr)[order]
    new[1:] = (s[1:] != s[:-1]) | (q[1:] != q[:-1])
    group = np.cumsum(new) - 1
    means = np.bincount(group, weights=weights[order]) / np.bincount(group)
    averaged = np.empty(data.n_docs)
    averaged[order] = means[group]
    return np.where(counted, averaged, 0.0)


def query_stats(m: Measure, scores: Array, data: RankingData, n_grades: int) -> tuple[FloatArray, FloatArray]:
    """(numerator stats (Q, S), denominator stats (Q, S'))."""
    if m.name in ("dcg", "precision"):
        cell = query_of_row(data.indptr) * n_grades + data.y
        sums = np.bincount(cell, weights=rank_weights(m, scores, data), minlength=data.n_queries * n_grades)
        return sums.astype(np.float64).reshape(-1, n_grades), np.ones((data.n_queries, 1))
    if data.judged is not None and not data.judged.all():
        unjudged = f"{int((~data.judged).sum()):,} documents that nobody judged"
        remedy = "Use dcg or precision, which leave them alone."
        raise invalid(f"{str(m)!r}", "must have a judgement of every document", unjudged, remedy=remedy)
    right = np.empty((data.n_queries, n_grades, n_grades))
    every = np.empty_like(right)
    for q, (start, stop) in enumerate(pairwise(data.indptr)):
        labels = np.eye(n_grades)[data.y[start:stop]]
        right[q] = labels.T @ _beaten(m, scores[start:stop].astype(np.float64), labels)
        counts = labels.sum(axis=0)
        every[q] = np.outer(counts, counts) - np.diag(counts)
    if m.weighting == "pooled":
        return right.reshape(data.n_queries, -1), every.reshape(data.n_queries, -1)
    squares = np.maximum(data.lengths.astype(np.float64) ** 2, 1.0)
    return right.reshape(data.n_queries, -1) / squares[:, None], np.ones((data.n_queries, 1))


def _beaten(m: Measure, s: FloatArray, labels: FloatArray) -> FloatArray:
    """(n, C): for each document, the documents of each label below it, ties half; itself left out."""
    order = np.argsort(s, kind="stable")
    if m.ties in ("stable", "doc_id"):
        order = np.argsort(-s, kind="stable")[::-1]
        s = np.argsort(order).astype(np.float64)
    ordered = s[order]
    below = np.concatenate((np.zeros((1, labels.shape[1])), np.cumsum(labels[order], axis=0)))
    strictly = below[np.searchsorted(ordered, s, side="left")]
    weakly = below[np.searchsorted(ordered, s, side="right")]
    beaten: FloatArray = strictly + 0.5 * (weakly - strictly - labels)
    return beaten


def _interval(
    m: Measure, stats: FloatArray, units: FloatArray, drawn: FloatArray, level: float, seed: int,
    resamples: int,
) -> tuple[float, float]:  # fmt: skip
    """Percentile interval over queries; resample b takes the matrix draw b modulo their number."""
    drawn_values, unknown = resampled_means(m, stats, units, drawn, seed, resamples)
    if not unknown.any():
        low, high = significance.quantiles(drawn_values[:, None], level)
        return float(low[0]), float(high[0])
    # Draws that cannot be inverted may lie beyond either end: they are counted at both.
    low_end = np.quantile(np.where(unknown, -np.inf, drawn_values), (1 - level) / 2, method="lower")
    high_end = np.quantile(np.where(unknown, np.inf, drawn_values), (1 + level) / 2, method="higher")
    return float(low_end), float(high_end)


def resampled_means(
    m: Measure, stats: FloatArray, units: FloatArray, drawn: FloatArray, seed: int, resamples: int
) -> tuple[FloatArray, npt.NDArray[np.bool_]]:
    """The corrected mean of every resample of queries, and where its matrix draw cannot be inverted."""
    usable = invertible(drawn)
    up = np.zeros((len(drawn), stats.shape[1]))
    down = np.ones((len(drawn), units.shape[1]))
    for d in np.flatnonzero(usable):
        up[d], down[d] = coefficients(m, drawn[d]), base_coefficients(m, drawn[d])
    if len(drawn) == 1:
        stats, units, up, down = stats @ up.T, units @ down.T, np.ones((1, 1)), np.ones((1, 1))
    sums = significance.resampled_sums(np.concatenate((stats, units), axis=1), resamples, seed)
    which = np.arange(resamples) % len(drawn)
    width = stats.shape[1]
    top = (sums[:, :width] * up[which]).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        values: FloatArray = top / (sums[:, width:] * down[which]).sum(axis=1)
    return values, ~usable[which]
