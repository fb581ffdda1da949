"""The signal of a data set: whether its features tell anything about its grades, by a small quick model.

Queries are cut into parts, and each part is predicted by a model of the parts before it. Out of fold in the
usual way, where every part is predicted from all others, each part's chance findings are tested on those that
it taught: of 60 sets of 20 queries with random features, 6 then lay above a coin toss at 95 %.
"""

import numpy as np
import numpy.typing as npt

from cleanrank.data.split import fold_of_query
from cleanrank.noise.signal import Signal, signal_of
from cleanrank.rankers.grade_model import fit_mean_grade
from cleanrank.types import Array, IntArray, RankingData

MOST_ROWS = 20_000
PARTS = 8
FEWEST_QUERIES = 200  # queries tell of the features, not rows


def feature_signal(
    data: RankingData, probabilities: npt.ArrayLike | None = None, *, seed: int = 0, n_jobs: int = 1
) -> Signal:
    """The AUC of a small model of the grades on queries it never saw, on some 20,000 rows at the most.

    Args:
        data: judged rows of at least two queries.
        probabilities: (N, C) out-of-fold probabilities of the grades, whose AUC is then taken instead.
        seed: for the queries, the parts and the model.
        n_jobs: threads.

    >>> import cleanrank as cr
    >>> feature_signal(cr.make_ranking(60, 5, docs_per_query=20, seed=0)).is_shown
    True
    """
    if probabilities is not None:
        p = np.asarray(probabilities, dtype=np.float64)
        return signal_of(data.y, p @ np.arange(p.shape[1]), data.indptr)
    sample = _sampled(data, seed)
    part = fold_of_query(sample, min(PARTS, max(sample.n_queries, 2)), seed)
    scores = np.zeros(sample.n_docs)
    for each in range(1, part.max() + 1):
        held = np.repeat(part == each, sample.lengths)
        before = sample.select_queries(part < each)
        scores[held] = fit_mean_grade(before, sample.select(held), seed=seed, n_jobs=n_jobs)
    tested = np.repeat(part > 0, sample.lengths)
    rows = sample.select(tested)
    return signal_of(rows.y, scores[tested], rows.indptr)


def _sampled(data: RankingData, seed: int) -> RankingData:
    """Queries in random order until they hold MOST_ROWS rows; of long queries FEWEST_QUERIES, thinned."""
    if data.n_docs <= MOST_ROWS:
        return data
    rng = np.random.default_rng(seed)
    order = rng.permutation(data.n_queries)
    fits = int(np.searchsorted(np.cumsum(data.lengths[order]), MOST_ROWS, side="right"))
    if fits >= min(FEWEST_QUERIES, data.n_queries):
        return data.select_queries(np.sort(order[:fits]))
    chosen = np.sort(order[:FEWEST_QUERIES])
    budget = MOST_ROWS // len(chosen)
    spans = [range(*data.indptr[q : q + 2]) for q in chosen]
    return data.select(np.concatenate([_thinned(data.y[span], budget, rng) + span.start for span in spans]))


def _thinned(y: Array, budget: int, rng: np.random.Generator) -> IntArray:
    """So many documents of a query at the most, others than those of the commonest grade first.

    Each grade is thinned at random, which leaves the expected AUC as it is.
    """
    if len(y) <= budget:
        return np.arange(len(y))
    is_common = y == np.bincount(y).argmax()
    rare, common = (rng.permutation(np.flatnonzero(rows)) for rows in (~is_common, is_common))
    rare = rare[: budget // 2]
    return np.sort(np.concatenate((rare, common[: budget - len(rare)])))
