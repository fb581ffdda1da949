"""LambdaRank objectives for boosted trees: what LightGBM calls for gradients, round by round.

Unlike LightGBM's own objective these take real-valued gains and any number of documents per query (LightGBM
refuses more than 10,000; memory here is linear in them), and let an observer look on: it sees the scores of
every prefix of the forest and the rankings that the objective has sorted anyway.
"""

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from cleanrank.errors import invalid
from cleanrank.jit import query_chunks, threads
from cleanrank.losses.trees import _lambda_kernels
from cleanrank.ragged import query_of_row
from cleanrank.types import Array, FloatArray, IntArray, RankingData
from cleanrank.validation import is_integer, one_of

# (round, scores, order): scores (N,) float64 of the forest with ``round`` trees; order (N,) int32, in the
# rows of a query its documents (counted from 0 within the query), best first, ties by row. Both arrays are
# reused from round to round: an observer copies what it keeps and writes to neither.
Observer: TypeAlias = Callable[[int, FloatArray, Array], None]

MODES: dict[str, str] = {
    "exact": "float64 throughout; faster than LightGBM's own",
    "parity": "LightGBM's own arithmetic, step by step; the same trees",
}
PIECES = 256
HIGHEST_GRADE = 1000


class Ranking:
    """The running order of all queries under scores that change a little from round to round."""

    def __init__(self, indptr: IntArray) -> None:
        self.indptr = np.array(indptr, dtype=np.int64)  # writeable, as kernels are compiled per flag
        self.order = first_order(self.indptr)
        self.bounds = query_chunks(self.indptr, PIECES)
        self.rounds = 0

    def update(self, scores: FloatArray) -> Array:
        """Sorts by new scores and counts the round; the array is the same one in every call."""
        _lambda_kernels.rank_queries(scores, self.indptr, self.bounds, self.order)
        self.rounds += 1
        return self.order


class LambdaRankObjective:
    """LambdaRank gradients and hessians as LightGBM's ``objective`` callable.

    A call counts as a round: the scores it is given are those of the forest with ``rounds`` trees. The last
    forest is not seen by any call; ``train_lambdarank`` reads its scores and hands them to ``observe``.

    Args:
        data: the rows of the LightGBM data set, in its order; a weight multiplies what a document receives.
        mode: one of MODES.
        norm: divide by score distances and damp the lambdas of a query, as LightGBM's ``lambdarank_norm``.
        sigmoid: steepness sigma.
        truncation_level: one document of a pair stands at this rank or above.
        label_gain: gain of each grade, else 2^y - 1; not with real-valued gains.
        observer: called in every round.
        n_jobs: threads; the bits are the same for any number.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[0.0], [1.0]], [0, 1], qid=[1, 1])
    >>> grad, hess = LambdaRankObjective(data, norm=False)(np.zeros(2), None)
    >>> [f"{g:.4f}" for g in grad], [f"{h:.4f}" for h in hess]
    (['0.1845', '-0.1845'], ['0.0923', '0.0923'])
    """

    def __init__(
        self,
        data: RankingData,
        *,
        mode: str = "exact",
        norm: bool = True,
        sigmoid: float = 1.0,
        truncation_level: int = 30,
        label_gain: Sequence[float] | None = None,
        observer: Observer | None = None,
        n_jobs: int | None = None,
    ) -> None:
        one_of("mode", mode, MODES)
        if not _positive(sigmoid):
            raise invalid("sigmoid", "must be a positive number", repr(sigmoid))
        if not is_integer(truncation_level) or truncation_level < 1:
            raise invalid("truncation_level", "must be a whole number from 1 on", repr(truncation_level))
        self.gains = gains_of(data, label_gain)
        self.weights = data.weights
        self.ranking = Ranking(data.indptr)
        self.mode, self.norm, self.sigmoid = mode, bool(norm), float(sigmoid)
        self.truncation_level, self.observer, self.n_jobs = int(truncation_level), observer, n_jobs
        self.rounds = 0
        longest = int(data.lengths.max(initial=0))
        self._discount = 1.0 / np.log2(np.arange(2, longest + 2))
        self._table = _lambda_kernels.sigmoid_table(self.sigmoid) if mode == "parity" else np.zeros(0)
        self._inverse_ideal = self._ideal(self.gains)
        self._grad, self._hess = (np.empty(data.n_docs, np.float32) for _ in range(2))

    def __deepcopy__(self, memo: Any) -> "LambdaRankObjective":
        # LightGBM copies its parameters deeply, this object with them; the observer must stay the caller's.
        return self

    def __call__(self, scores: Array, dataset: Any = None) -> tuple[Array, Array]:
        """Gradients and hessians (N,) float32 at ``scores``; the arrays are reused by the next call."""
        found = self._checked(scores)
        with threads(self.n_jobs):
            self._base(found)
        self._look_on(found)
        if self.weights is not None:
            self._grad *= self.weights
            self._hess *= self.weights
        return self._grad, self._hess

    def observe(self, scores: Array) -> None:
        """Shows the observer the forest that no call saw: the last one."""
        if self.observer is not None:
            found = self._checked(scores)
            with threads(self.n_jobs):
                self.ranking.update(found)
            self._look_on(found)

    def _look_on(self, scores: FloatArray) -> None:
        if self.observer is not None:
            self.observer(self.rounds, scores, self.ranking.order)
        self.rounds += 1

    def _base(self, scores: FloatArray) -> None:
        self._lambdas(scores, self.gains, self._inverse_ideal, self._grad, self._hess)

    def _lambdas(self, scores: Array, gains: Array, inverse_ideal: Array, grad: Array, hess: Array) -> None:
        _lambda_kernels.lambda_gradients(
            scores, gains, self.ranking.indptr, self.ranking.bounds, self.ranking.order, self._discount,
            inverse_ideal, self.sigmoid, self.norm, self.truncation_level, self._table, grad, hess,
        )  # fmt: skip

    def _ideal(self, gains: FloatArray) -> FloatArray:
        found: FloatArray = _lambda_kernels.ideal_dcg(
            gains, self.ranking.indptr, self._discount, self.truncation_level
        )
        return np.divide(1.0, found, out=np.zeros_like(found), where=found > 0)

    def _checked(self, scores: Array) -> FloatArray:
        found: FloatArray = np.ascontiguousarray(scores, dtype=np.float64)
        if found.shape != self.gains.shape:
            raise invalid(
                "scores", f"must have one value per row ({len(self.gains)})", f"shape {found.shape}"
            )
        return found


def _positive(value: Any) -> bool:
    return isinstance(value, Real) and 0 < float(value) < math.inf


def gains_of(data: RankingData, label_gain: Sequence[float] | None = None) -> FloatArray:
    """The gain of every row: real-valued gains, else ``label_gain`` of its grade, else 2^y - 1.

    >>> import cleanrank as cr
    >>> gains_of(cr.from_arrays([[0.0]] * 2, [2, 1], qid=[1, 1])).tolist()
    [3.0, 1.0]
    """
    if label_gain is None:
        if data.gains is not None:
            return data.gains.copy()
        check_grades(data)
        return np.ldexp(1.0, data.y) - 1.0
    if data.gains is not None:
        raise invalid("label_gain", "must not be given for data with real-valued gains", list(label_gain))
    table = np.asarray(label_gain, dtype=np.float64)
    if len(table) < data.n_grades or not (np.isfinite(table) & (table >= 0)).all():
        raise invalid(
            "label_gain", f"must list a finite gain >= 0 for grades 0..{data.n_grades - 1}", table.tolist()
        )
    return np.asarray(table[data.y])


def check_grades(data: RankingData) -> None:
    """Refuses grades whose gain 2^y - 1 is beyond float64."""
    if data.n_grades > HIGHEST_GRADE + 1:
        row = int(np.argmax(data.y))
        raise invalid(
            "grades", f"must be at most {HIGHEST_GRADE} for gains of 2^grade - 1", int(data.y[row]),
            at=data.place(row), remedy="Map the grades to a few levels or give gains=.",
        )  # fmt: skip


def first_order(indptr: IntArray) -> Array:
    """Rows of each query counted from 0: the ranking of equal scores."""
    return (np.arange(indptr[-1]) - indptr[query_of_row(indptr)]).astype(np.int32)
