"""How much a document decides: the weight that systems give it times how uncertain its gain is.

The weight is what one unit more of gain would add to a system's mean, to first order at the judge's grades.
For DCG and precision that is the discount of the rank; NDCG and recall divide by what is relevant at all, so
documents that no system ranks high count as well.
"""

import numpy as np

from cleanrank.errors import invalid
from cleanrank.judges.documents import RATIOS, SUMS, grade_values, rank_weights
from cleanrank.judges.labels import Pool
from cleanrank.judges.systems import system_ranks, within_cutoff
from cleanrank.metrics.measure import Measure
from cleanrank.ragged import ranks, segment_sum
from cleanrank.types import Array, FloatArray, IntArray

SAMPLED = (*SUMS, *RATIOS)
TOP_ONLY = (*SUMS, "mrr", "err", "success")  # measures to which only the first ranks matter
FLOOR = 0.15
ERROR_ODDS = 0.5  # an error by one grade more is that much less likely, where nothing is known of the judge
PRIOR_ANSWERS = 10.0  # answers of a pilot that this assumption is worth, for each grade of the judge


def gains_of(measure: Measure, grades: IntArray) -> FloatArray:
    """The gain of every document under a measure; that of grade 0 for those that nobody judged (-1)."""
    known = np.maximum(grades, 0)
    return grade_values(measure, int(known.max()) + 1)[known]


def influence(pool: Pool, measure: Measure) -> FloatArray:
    """(S, N) what one unit more of a document's gain adds to the mean of a system, at the judge's gains."""
    query, lengths = pool.query, np.diff(pool.indptr)[pool.query]
    weight = np.array([rank_weights(measure, each, lengths) for each in system_ranks(pool, measure.ties)])
    if measure.name in SUMS:
        return weight / pool.n_queries
    gain = gains_of(measure, pool.grades[0])
    ideal = np.ones(len(gain))
    if measure.name == "ndcg":
        ideal = rank_weights(measure, ranks(gain, pool.indptr), lengths)
        # Documents of one grade share their ideal ranks.
        _, tied = np.unique(np.array([query, gain]), axis=1, return_inverse=True)
        ideal = (np.bincount(tied, ideal) / np.bincount(tied))[tied]
    # Where the judge sees nothing relevant, one document of gain 1 stands for what there may be.
    best = np.maximum(segment_sum(ideal * gain, pool.indptr), 1.0)
    value = np.array([segment_sum(each * gain, pool.indptr) / best for each in weight])
    return (weight - value[:, query] * ideal) / best[query] / pool.n_queries


def uncertainty(pool: Pool, measure: Measure, counted: Array, pilot: IntArray | None = None) -> FloatArray:
    """The standard deviation of the gain for every grade of the judge."""
    judge = pool.grades[0]
    n_grades = int(max(judge.max(), 0 if pilot is None else pilot.max())) + 1
    grades = np.arange(n_grades)
    # Every grade counts as seen once, so that a judge who never gives one does not rule it out.
    share = 1.0 + np.bincount(judge[counted], minlength=n_grades)
    odds = ERROR_ODDS ** np.abs(np.subtract.outer(grades, grades)) * share
    odds /= odds.sum(1, keepdims=True)
    gain = grade_values(measure, n_grades)
    variance = np.maximum(odds @ gain**2 - (odds @ gain) ** 2, 0.0)
    if pilot is not None:
        given, answer = pilot[0], gain[pilot[1]]
        n = np.bincount(given, minlength=n_grades)
        mean = np.bincount(given, answer, n_grades) / np.maximum(n, 1)
        squares = np.bincount(given, (answer - mean[given]) ** 2, n_grades)
        variance = (PRIOR_ANSWERS * variance + squares) / (PRIOR_ANSWERS + n)
    return np.asarray(np.sqrt(variance))


def document_sizes(
    pool: Pool, measure: Measure, difference: bool = False, pilot: IntArray | None = None
) -> tuple[FloatArray, int]:
    """Sizes with mean 1 over the documents that count, 0 for all others.

    Args:
        pool: the judge's labels (its first) and the systems.
        measure: what is to be estimated.
        difference: whether the sample is for the second system minus the first, instead of for each level.
        pilot: (2, P) grades of the judge and true grades of some pairs.

    Returns:
        (N,) sizes, and how many documents would count if the judge had graded them.
    """
    weight = influence(pool, measure)
    weight = weight[1:] - weight[:1] if difference else weight
    ranked, graded = np.any(weight != 0, axis=0), pool.grades[0] >= 0
    _check_counted(pool, measure, ranked, difference)
    counted = graded & (ranked | (measure.name not in SUMS))
    spread = uncertainty(pool, measure, counted, pilot)[pool.grades[0]]
    size = np.where(counted, np.sqrt((weight**2).mean(0)) * spread, 0.0)
    total = size.sum()
    size = size * (counted.sum() / total) if total > 0 else counted.astype(np.float64)
    return np.where(counted, (1.0 - FLOOR) * size + FLOOR, 0.0), int((ranked & ~graded).sum())


def counted_documents(pool: Pool, measure: Measure) -> Array:
    """(N,) the documents to judge of a query that is judged as a whole."""
    judge, query = pool.grades[0], pool.query
    counted: Array = np.any(within_cutoff(system_ranks(pool, measure.ties), measure), axis=0)
    _check_counted(pool, measure, counted)
    if measure.name not in TOP_ONLY:
        counted |= judge > 0
    # Also a query for which nothing is retrieved needs an answer.
    empty = np.bincount(query[counted], minlength=pool.n_queries) == 0
    return np.asarray(counted | (empty[query] & (judge >= 0)))


def _check_counted(pool: Pool, measure: Measure, counted: Array, difference: bool = False) -> None:
    if difference and not counted.any():
        rule = f"must rank documents differently for {measure} to differ"
        raise invalid(f"systems {' and '.join(map(repr, pool.systems))}", rule, "the same ranks throughout")
    if not (pool.grades[0][counted] >= 0).any():
        at = int(np.argmax(counted))
        place = f"query {str(pool.query_ids[pool.query[at]])!r}"
        rule = "must have graded documents that systems rank within the cut-off"
        remedy = "Check whether runs and judge belong to the same collection."
        raise invalid(
            "judge", rule, f"no grade of document {str(pool.doc_ids[at])!r}", at=place, remedy=remedy
        )
