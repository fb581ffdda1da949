"""Pairwise objectives for boosted trees with any binary loss: what LightGBM calls for gradients.

``PairwiseObjective`` is the risk of all pairs of a query, ``RobustLambdaObjective`` LambdaRank with another
loss in the place of the logistic one. Both read the formulas of the loss itself, see ``_slopes``, and
differ from the torch losses of the same names by the factor Q, the number of queries: the step of a tree does
not depend on it. Hessians are those of ``_pair_kernels``, positive for every document that has a pair.

The risk of a query is a factor times the sum over its pairs. With n documents and N pairs:

    sum  1        macro  Q / (Q' N), Q' the queries with pairs        pooled  Q / (sum of N)
    micro  1 / n^2        prevalence  1 / (n^2 h), h the share of pairs there would be without noise
"""

from typing import Any

import numpy as np

from cleanrank.errors import invalid
from cleanrank.jit import query_chunks
from cleanrank.losses.binary import BinaryLoss, check_trainable
from cleanrank.losses.pairs import check_weighting, clean_pair_share
from cleanrank.losses.trees import _pair_kernels
from cleanrank.losses.trees._slopes import NO_PAIRS, SlopeReading, stacked, strict_slope, tied_slope
from cleanrank.losses.trees.lambdarank import PIECES, LambdaRankObjective, Observer
from cleanrank.ragged import query_of_row
from cleanrank.types import Array, FloatArray, IntArray, RankingData


class PairwiseObjective(LambdaRankObjective):
    """The gradients of a binary loss over the pairs of every query, as LightGBM's ``objective`` callable.

    Args:
        data: the rows of the LightGBM data set, in its order; a weight multiplies what a document receives.
        loss: l(logit, target) of the logit sigma (s_i - s_j).
        pair_set: one of PAIR_SETS.
        weighting: one of PAIR_WEIGHTINGS.
        noise: for "prevalence" alone, a matrix P(given | true) or the two keep probabilities.
        sigmoid: steepness sigma.
        truncation_level: one document of a pair stands at this rank or above; None for all pairs.
        observer: called for every tree.
        n_jobs: threads; the bits are the same for any number.

    >>> import cleanrank as cr
    >>> from cleanrank.losses.binary import LOSSES
    >>> data = cr.from_arrays([[0.0], [1.0]], [0, 1], qid=[1, 1])
    >>> grad, hess = PairwiseObjective(data, LOSSES["logistic"], weighting="sum")(np.zeros(2))
    >>> grad.tolist(), hess.tolist()
    ([0.5, -0.5], [0.25, 0.25])
    """

    def __init__(
        self,
        data: RankingData,
        loss: BinaryLoss,
        *,
        pair_set: str = "strict",
        weighting: str = "micro",
        noise: Any = None,
        sigmoid: float = 1.0,
        truncation_level: int | None = None,
        observer: Observer | None = None,
        n_jobs: int | None = None,
    ) -> None:
        matrix = check_weighting(weighting, pair_set, noise, data.n_grades)
        level = 1 if truncation_level is None else truncation_level
        super().__init__(
            data, norm=False, sigmoid=sigmoid, truncation_level=level, observer=observer, n_jobs=n_jobs
        )
        self.loss, self.all_pairs = check_trainable(loss), truncation_level is None
        self.slope, self.tied, self.tied_row = strict_slope(loss, both=pair_set != "strict"), NO_PAIRS, 0
        if pair_set == "all_ordered":
            if not self.all_pairs:
                raise invalid(
                    "truncation_level", "must be None for all ordered pairs, ties included", truncation_level
                )
            self._count_ties()
        self.scale = query_factors(self.gains, data, pair_set, weighting, matrix)
        self._by_gain, self._lower = falling_order(self.gains, self.ranking.indptr)
        self._bounds = query_chunks(np.concatenate(([0], np.cumsum(data.lengths**2))), PIECES)

    def _count_ties(self) -> None:
        """Reads the slope of tied pairs: two polynomials, or one table for both."""
        self.tied = tied_slope(self.loss)
        if self.slope.is_polynomial and self.tied.is_polynomial:
            return
        strict = strict_slope(self.loss, both=True, as_table=True)
        self.tied_row = len(strict.table)
        self.slope, self.tied = stacked(strict, tied_slope(self.loss, as_table=True)), NO_PAIRS

    def _base(self, scores: FloatArray) -> None:
        if not self.all_pairs:
            _top_pairs(self, scores, self.slope, self.scale, swap=False)
            return
        ranking = self.ranking
        _pair_kernels.pair_gradients(
            scores, ranking.indptr, self._bounds, self._by_gain, self._lower, self.sigmoid, self.scale,
            self.slope.polynomial, self.tied.polynomial, self.slope.table, self.slope.cuts, self.tied_row,
            self._grad, self._hess,
        )  # fmt: skip
        if self.observer is not None:
            ranking.update(scores)


class RobustLambdaObjective(LambdaRankObjective):
    """LambdaRank with any binary loss: pairs weigh what their swap changes in NDCG.

    ``options`` as of ``LambdaRankObjective``, in its exact mode. The curvature of the logistic loss is kept
    from vanishing where a pair is very wrong (see ``_pair_kernels``), as for every other loss here.
    """

    def __init__(self, data: RankingData, loss: BinaryLoss, **options: Any) -> None:
        super().__init__(data, **options)
        if self.mode != "exact":
            raise invalid("mode", "must be 'exact' for a loss that is not LambdaRank's own", repr(self.mode))
        self.loss = check_trainable(loss)
        self.slope = strict_slope(loss, both=False)

    def _base(self, scores: FloatArray) -> None:
        _top_pairs(self, scores, self.slope, self._inverse_ideal, swap=True)


def _top_pairs(
    objective: LambdaRankObjective, scores: FloatArray, slope: SlopeReading, scale: FloatArray, *, swap: bool
) -> None:
    """Gradients of the pairs with a document above the truncation level, into the objective's arrays."""
    ranking = objective.ranking
    _pair_kernels.top_pair_gradients(
        scores, objective.gains, ranking.indptr, ranking.bounds, ranking.order, objective._discount, scale,
        objective.sigmoid, objective.norm, swap, objective.truncation_level, slope.polynomial, slope.table,
        slope.cuts, objective._grad, objective._hess,
    )  # fmt: skip


def falling_order(values: FloatArray, indptr: IntArray) -> tuple[Array, Array]:
    """The documents of every query by falling value, counted from 0, and where smaller values begin.

    >>> order, lower = falling_order(np.array([0.0, 2.0, 2.0]), np.array([0, 3]))
    >>> order.tolist(), lower.tolist()
    ([1, 2, 0], [2, 2, 3])
    """
    query = query_of_row(indptr)
    rows = np.lexsort((-values, query))
    sorted_values, lengths = values[rows], np.diff(indptr)
    # Rows where a run of equal values of a query begins; the next run's start is where smaller ones begin.
    starts = np.ones(len(rows), dtype=bool)
    starts[1:] = (sorted_values[1:] != sorted_values[:-1]) | (query[1:] != query[:-1])
    run = np.cumsum(starts) - 1
    ends = np.append(np.flatnonzero(starts)[1:], len(rows))
    lower = np.minimum(ends[run] - indptr[query], lengths[query])
    return (rows - indptr[query]).astype(np.int32), lower.astype(np.int32)


def query_factors(
    values: FloatArray, data: RankingData, pair_set: str, weighting: str, matrix: FloatArray | None = None
) -> FloatArray:
    """The factor of every query, as the head of this module lists them; 0 without pairs."""
    n = data.lengths.astype(np.float64)
    query = query_of_row(data.indptr)
    _, lower = falling_order(values, data.indptr)
    strict = np.bincount(query, weights=n[query] - lower, minlength=len(n))
    counted = {"strict": strict, "strict_both": 2 * strict, "all_ordered": n * (n - 1)}[pair_set]
    some = counted > 0
    if weighting == "sum":
        factors = np.ones_like(n)
    elif weighting == "pooled":
        factors = np.full_like(n, len(n) / max(counted.sum(), 1.0))
    elif weighting == "macro":
        factors = len(n) / max(some.sum(), 1) / np.maximum(counted, 1.0)
    elif weighting == "micro":
        factors = 1.0 / np.maximum(n * n, 1.0)
    else:
        assert matrix is not None
        m = np.maximum(n, 1.0)
        share = clean_pair_share(data.grade_counts(len(matrix)) / m[:, None], m, matrix)
        factors = 1.0 / np.maximum(n * n * share, 1e-300)
    return np.where(some, factors, 0.0)
