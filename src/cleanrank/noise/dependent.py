"""Noise that no matrix describes: errors that depend on the document or on the query, not on the grade alone.

A kind of DEPENDENT says two things about every row: how prone it is to an error, w >= 0, and which wrong
grade it would be given. ``corrupt_rows`` does the rest: a row errs with probability min(MOST, k w), where k
makes the mean over the judged rows the rate. The wrong grade does not depend on the rate, and one draw per
row decides, so a higher rate changes what a lower one changed, to the same grades, and more.
"""

import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cleanrank.data.split import fold_of_query
from cleanrank.errors import invalid
from cleanrank.noise.corruption import Corruption
from cleanrank.noise.profiles import NoiseProfile, draw_grades, missing_rate
from cleanrank.ragged import judged_rows
from cleanrank.types import Array, FloatArray, RankingData
from cleanrank.validation import check_memory, check_number

MOST = 0.9  # no document is judged wrongly with a higher probability
FOLDS = 5
RIDGE = 1e-3  # per training row; a feature's ranks have variance 1/12
Grades: TypeAlias = npt.NDArray[np.int32]


def hard_documents(data: RankingData, n_grades: int, rng: np.random.Generator) -> tuple[FloatArray, Grades]:
    """Judges err on documents that look like another grade, and then tend to give that one.

    What a document looks like is ``suggested_grades``, s. With the true grade y it is prone to errors by
    |s - y|, and a judge who errs gives grade m != y with a probability proportional to 2^-|m - s|.
    """
    suggested = suggested_grades(data, n_grades)
    grades = np.arange(n_grades)

    def steps_of(rows: slice) -> FloatArray:
        weights = 0.5 ** abs(grades - suggested[rows, None])
        weights[grades == data.y[rows, None]] = 0.0
        sums = np.cumsum(weights, axis=1)
        steps: FloatArray = sums[:, :-1] / sums[:, -1:]
        return steps

    return abs(suggested - data.y), draw_grades(steps_of, data.n_docs, rng)


def lenient_queries(data: RankingData, n_grades: int, rng: np.random.Generator) -> tuple[FloatArray, Grades]:
    """Every query has a judge: a lenient one gives some documents a grade too many, a strict one too few.

    Leniency is normal over queries, and documents are prone to errors by its size; those of grade 0 cannot
    fall, those of the top grade cannot rise.
    """
    leniency = np.repeat(rng.standard_normal(data.n_queries), data.lengths)
    wrong = data.y + np.where(leniency > 0, 1, -1).astype(np.int32)
    return np.where((wrong >= 0) & (wrong < n_grades), abs(leniency), 0.0), wrong


DEPENDENT: Mapping[str, Callable[[RankingData, int, np.random.Generator], tuple[FloatArray, Grades]]] = {
    "hard-documents": hard_documents,
    "lenient-queries": lenient_queries,
}


def corrupt_rows(
    data: RankingData, name: str, rate: float | None, n_grades: int, seed: int = 0
) -> Corruption:
    """Draws every judged document's given grade from a kind of DEPENDENT.

    Args:
        data: clean data, which stay untouched.
        name: the kind.
        rate: the mean probability that a judged document's grade changes.
        n_grades: grades of the scale.
        seed: same seed, same draws.

    Returns:
        The noisy data beside the truth: ``profile`` is counted, ``row_rates`` are what was drawn from.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(40, 5, docs_per_query=20, seed=0)
    >>> noisy = corrupt_rows(data, "hard-documents", 0.3, 5, seed=1)
    >>> noisy.profile.name, round(float(noisy.row_rates.mean()), 6)
    ('hard-documents 0.3, counted', 0.3)
    """
    if rate is None:
        raise missing_rate()
    check_number("noise rate", rate, least=0, most=1)
    given, rates = data.y, np.zeros(data.n_docs)
    if rate:
        judged = judged_rows(data)
        rows = data if judged.all() else data.select(judged)
        _check(rows, name)
        rng = np.random.default_rng(seed)
        prone, wrong = DEPENDENT[name](rows, n_grades, rng)
        rates[judged] = _scaled(prone, rate, name)
        given = data.y.copy()
        given[judged] = np.where(rng.random(rows.n_docs) < rates[judged], wrong, rows.y)
    noisy = data.with_labels(given)
    profile = counted_profile(data, noisy, n_grades, f"{name} {rate:g}, counted")
    return Corruption(noisy, data.y, given != data.y, profile, int(seed), row_rates=rates)


def counted_profile(clean: RankingData, noisy: RankingData, n_grades: int, name: str) -> NoiseProfile:
    """The shares of given grades among the judged documents of each true grade.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((4, 1)), [0, 0, 1, 1], group=[4])
    >>> counted_profile(data, data.with_labels([0, 2, 2, 2]), 3, "counted").matrix.tolist()
    [[0.5, 0.0, 0.5], [0.0, 0.0, 1.0], [0.0, 0.0, 1.0]]
    """
    judged = slice(None) if clean.judged is None else clean.judged
    counts = np.zeros((n_grades, n_grades))
    np.add.at(counts, (clean.y[judged], noisy.y[judged]), 1.0)
    # A grade that does not occur has no errors to count.
    absent = counts.sum(axis=1) == 0
    counts[absent] = np.eye(n_grades)[absent]
    return NoiseProfile(counts / counts.sum(axis=1, keepdims=True), name)


def suggested_grades(data: RankingData, n_grades: int) -> FloatArray:
    """What the features suggest about every row's grade, on the scale of the grades, out of fold by query.

    A ridge regression of the grades on the ranks of the features over all rows (missing values in the middle)
    predicts the queries that it has not seen. Such predictions crowd together; they are spread over the scale
    so that they are distributed as the grades are, grade g taking [g - 1/2, g + 1/2]. Nothing here is random.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[0.1], [0.7], [0.1], [0.7]], [0, 1, 0, 1], group=[2, 2])
    >>> suggested_grades(data, 2).tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    from scipy.stats import rankdata

    features, y = _feature_ranks(data), data.y.astype(np.float64)
    if not features.any():
        value = f"{data.n_features} that do not vary" if data.n_features else "none"
        raise invalid("hard-documents noise", "needs features that tell documents apart", value)
    fold = np.repeat(fold_of_query(data, min(FOLDS, data.n_queries)), data.lengths)
    predictions = np.empty(data.n_docs)
    for held_out in (fold == f for f in range(int(fold.max()) + 1)):
        X, target = features[~held_out].astype(np.float64), y[~held_out]
        centre, mean = X.mean(axis=0), target.mean()
        X -= centre
        penalty = RIDGE * len(X) * np.eye(X.shape[1])
        weights = np.linalg.solve(X.T @ X + penalty, X.T @ (target - mean))
        predictions[held_out] = mean + (features[held_out] - centre) @ weights
    # Rounded: the last digits depend on the machine, and rows of equal features must stay equal.
    quantiles = (rankdata(predictions.round(9)) - 0.5) / len(y)
    ends = np.concatenate(([0.0], np.cumsum(np.bincount(data.y, minlength=n_grades)) / len(y)))
    suggested: FloatArray = np.interp(quantiles, ends, np.arange(n_grades + 1) - 0.5)
    return suggested


def _feature_ranks(data: RankingData) -> Array:
    """The features' ranks over all rows, -1/2 to 1/2; 0 where a value is missing or a feature constant."""
    from scipy.stats import rankdata

    check_memory("features", 4.0 * data.n_docs * data.n_features + 16.0 * data.n_features**2)
    X: Any = data.X.tocsc() if hasattr(data.X, "tocsc") else data.X
    ranks = np.zeros(X.shape, dtype=np.float32)
    for j in range(X.shape[1]):
        values = X[:, [j]].toarray()[:, 0] if hasattr(X, "toarray") else X[:, j]
        known = ~np.isnan(values)
        ranks[known, j] = (rankdata(values[known]) - 0.5) / max(known.sum(), 1) - 0.5
    return ranks


def _check(rows: RankingData, name: str) -> None:
    subject = f"{name} noise"
    if rows.n_queries < 2:
        raise invalid(subject, "needs at least two queries with judged documents", rows.n_queries)
    if rows.y.min() == rows.y.max():
        raise invalid(subject, "needs labels of at least two grades", f"grade {rows.y[0]} alone")


def _scaled(prone: FloatArray, rate: float, name: str) -> FloatArray:
    """min(MOST, k prone) with the k that makes the mean ``rate``, or the highest mean below it.

    >>> _scaled(np.array([0.0, 1.0, 2.0, 6.0]), 0.375, "some").round(9).tolist()
    [0.0, 0.2, 0.4, 0.9]
    """
    falling = np.sort(prone[prone > 0])[::-1]
    # With the m most prone at MOST, the others share what is left: the smallest m that keeps them below it.
    left = rate * len(prone) - MOST * np.arange(len(falling))
    k = left / np.cumsum(falling[::-1])[::-1]
    fits = k * falling <= MOST
    rates: FloatArray = np.where(prone > 0, MOST, 0.0)
    if fits.any():
        rates = np.minimum(MOST, k[np.argmax(fits)] * prone)
    else:
        words = f"{name} noise can change {rates.mean():.3g} of these labels at the most, not {rate:g}"
        warnings.warn(words, stacklevel=5)
    return rates
