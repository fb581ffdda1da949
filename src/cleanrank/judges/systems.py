"""The systems of a pool: where they rank documents, and what they are worth under some labels."""

from collections.abc import Sequence

import numpy as np

from cleanrank.errors import invalid
from cleanrank.judges.labels import Pool
from cleanrank.metrics.evaluation import query_values
from cleanrank.metrics.measure import Measure
from cleanrank.ragged import ranks
from cleanrank.types import Array, FloatArray, IntArray


def check_retrieved(pool: Pool) -> None:
    """Raises where a system retrieved no document that anybody labelled."""
    labelled = (pool.grades >= 0).any(axis=0)
    for name, retrieved in zip(pool.systems, ~np.isneginf(pool.scores), strict=True):
        if not (retrieved & labelled).any():
            ids = f"{pool.doc_ids[retrieved][:1]} of the run and {pool.doc_ids[labelled][:1]} of the labels"
            remedy = "Check whether ids of documents are written alike."
            raise invalid(
                f"run {name!r}", "must retrieve some documents that have labels", ids, remedy=remedy
            )


def compared_scores(pool: Pool, ties: str | None) -> Array:
    """(S, N) scores whose stable order is that of a measure with these ties.

    Rows stand by falling document id, so that stable ties fall as in trec_eval, on scores of 32 bits.
    """
    return pool.scores.astype(np.float32) if ties == "doc_id" else pool.scores


def system_ranks(pool: Pool, ties: str | None = "doc_id") -> IntArray:
    """(S, N) ranks from 1; 0 where a system did not retrieve the document."""
    places = np.zeros(pool.scores.shape, dtype=np.int64)
    for line, scores in zip(places, compared_scores(pool, ties), strict=True):
        line[:] = np.where(np.isneginf(scores), 0, ranks(scores, pool.indptr))
    return places


def within_cutoff(places: IntArray, measure: Measure) -> Array:
    """(S, N) whether a system ranks the document within the cut-off of a measure."""
    return np.asarray((places > 0) & (places <= (measure.cutoff or places.max(initial=0))))


def prominence(places: IntArray) -> FloatArray:
    """(N,) the mean over systems of 1 / rank, 0 where a document was not retrieved."""
    mean: FloatArray = np.where(places > 0, 1.0 / np.maximum(places, 1), 0.0).mean(axis=0)
    return mean


def system_values(
    pool: Pool, grades: IntArray, measures: Sequence[Measure], rows: Array | None = None
) -> FloatArray:
    """(M, S, Q) values of all systems under some grades (-1: not judged, counts 0), on some rows or all."""
    data = pool.data(grades, rows)
    kept = slice(None) if rows is None else np.flatnonzero(rows)
    values = np.empty((len(measures), len(pool.systems), data.n_queries))
    for ties in dict.fromkeys(measure.ties for measure in measures):
        chosen = [m for m, measure in enumerate(measures) if measure.ties == ties]
        some = tuple(measures[m] for m in chosen)
        for s, scores in enumerate(compared_scores(pool, ties)):
            retrieved = np.ma.masked_equal(scores[kept], -np.inf)
            values[chosen, s] = query_values(some, data.y, retrieved, data.indptr, None, data.judged)[0]
    return values
