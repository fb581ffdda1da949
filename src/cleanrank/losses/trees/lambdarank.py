"""LambdaRank for boosted trees: what LightGBM calls for gradients, tree by tree, compiled.

In a query let s be the scores sorted downwards, G the gains, D(r) = 1/log2(r + 1) the discount of rank r and
Z the ideal DCG up to rank K, the truncation level. A pair (i, j) counts when G_i > G_j and one of the two
stands at a rank <= K:

    delta = (G_i - G_j) |D_i - D_j| / Z,   with ``norm`` divided by .01 + |s_i - s_j| unless all scores tie
    p = 1 / (1 + exp(sigma (s_i - s_j)))
    lambda = sigma p delta,   h = sigma^2 p (1 - p) delta

Document i receives gradient -lambda, j +lambda, both the hessian h. With ``norm`` all of a query are
multiplied by log2(1 + S) / S, S = 2 sum lambda.

Unlike LightGBM's own objective these take real-valued gains and any number of documents per query (LightGBM
refuses more than 10,000; memory here is linear in them), and let an observer look on: it sees the scores of
every prefix of the model and the rankings that the objective has sorted anyway.
"""

import copy
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeAlias

import numpy as np

from cleanrank.errors import invalid
from cleanrank.jit import kernel, prange, query_chunks, threads
from cleanrank.losses.trees._pair_kernels import (
    exponential_factor,
    load_ranked,
    longest_query,
    rank_queries,
    resort,
    store_sums,
)
from cleanrank.ragged import query_of_row
from cleanrank.types import Array, FloatArray, IntArray, RankingData
from cleanrank.validation import check_integer, check_number, one_of

# (trees, scores, order): scores (N,) float64 of the model with so many trees; order (N,) int32, in the rows
# of a query its documents (counted from 0 within the query), best first, ties by row. Both arrays are reused
# from call to call: an observer copies what it keeps and writes to neither.
Observer: TypeAlias = Callable[[int, FloatArray, Array], None]

MODES: dict[str, str] = {
    "exact": "float64 throughout; faster than LightGBM's own",
    "parity": "LightGBM's own arithmetic, step by step; the same trees",
}
PIECES = 256
HIGHEST_GRADE = 1000
BINS = 1 << 20


class Ranking:
    """The running order of all queries under scores that change a little from tree to tree."""

    def __init__(self, indptr: IntArray) -> None:
        self.indptr = np.array(indptr, dtype=np.int64)  # writeable, as kernels are compiled per flag
        self.order = first_order(self.indptr)
        self.bounds = query_chunks(self.indptr, PIECES)
        self.rounds = 0

    def update(self, scores: FloatArray) -> Array:
        """Sorts by new scores; the array is the same one in every call."""
        rank_queries(scores, self.indptr, self.bounds, self.order)
        self.rounds += 1
        return self.order


class LambdaRankObjective:
    """LambdaRank gradients and hessians as LightGBM's ``objective`` callable.

    The scores of a call are those of the model with as many trees as there were calls before. No call sees
    the whole model; ``train_lambdarank`` reads its scores and hands them to ``observe``.

    Args:
        data: the rows of the LightGBM data set, in its order; a weight multiplies what a document receives.
        mode: one of MODES.
        norm: divide by score distances and damp the lambdas of a query, as LightGBM's ``lambdarank_norm``.
        sigmoid: steepness sigma.
        truncation_level: one document of a pair stands at this rank or above.
        label_gain: gain of each grade, else 2^y - 1; not with real-valued gains.
        observer: called for every tree.
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
        check_number("sigmoid", sigmoid, above=0)
        check_integer("truncation_level", truncation_level, least=1)
        self.gains = gains_of(data, label_gain)
        self.weights = data.weights
        self.ranking = Ranking(data.indptr)
        self.mode, self.norm, self.sigmoid = mode, bool(norm), float(sigmoid)
        self.truncation_level, self.observer, self.n_jobs = int(truncation_level), observer, n_jobs
        self.rounds = 0
        longest = int(data.lengths.max(initial=0))
        self._discount = 1.0 / np.log2(np.arange(2, longest + 2))
        self._table = sigmoid_table(self.sigmoid) if mode == "parity" else np.zeros(0)
        self._inverse_ideal = self._ideal(self.gains)
        self._grad, self._hess = (np.empty(data.n_docs, np.float32) for _ in range(2))

    def __deepcopy__(self, memo: Any) -> "LambdaRankObjective":
        # LightGBM copies its parameters deeply, this object with them; the observer must stay the caller's.
        return self

    def __call__(self, scores: Array, dataset: Any = None) -> tuple[Array, Array]:
        """Gradients and hessians (N,) float32 at ``scores``; the arrays are reused by the next call."""
        current = self._checked(scores)
        with threads(self.n_jobs):
            self._base(current)
        self._notify(current)
        if self.weights is not None:
            self._grad *= self.weights
            self._hess *= self.weights
        return self._grad, self._hess

    def part(self, first: int, last: int) -> Self:
        """The objective of the queries first, ..., last - 1 alone, with an observer of their rows.

        What was computed over all queries stays, so that the parts give the gradients of the whole.
        """
        indptr = self.ranking.indptr
        rows = slice(indptr[first], indptr[last])
        part = copy.copy(self)
        part.gains = self.gains[rows]
        part.weights = None if self.weights is None else self.weights[rows]
        part.ranking = Ranking(indptr[first : last + 1] - indptr[first])
        part.observer = None if self.observer is None else part_of_observer(self.observer, first, last)
        part._inverse_ideal = self._inverse_ideal[first:last]
        part._grad, part._hess = self._grad[rows].copy(), self._hess[rows].copy()
        return part

    def take(self, rows: slice, part: "LambdaRankObjective") -> None:
        """Takes over what the observer of a part saw of its rows."""
        whole: Any = self.observer
        if whole is not None:
            whole.take(rows, part.observer)

    def observe(self, scores: Array) -> None:
        """Shows the observer the whole model, which no call saw."""
        if self.observer is not None:
            current = self._checked(scores)
            with threads(self.n_jobs):
                self.ranking.update(current)
            self._notify(current)

    def _notify(self, scores: FloatArray) -> None:
        if self.observer is not None:
            self.observer(self.rounds, scores, self.ranking.order)
        self.rounds += 1

    def _base(self, scores: FloatArray) -> None:
        self._lambdas(scores, self.gains, self._inverse_ideal, self._grad, self._hess)

    def _lambdas(self, scores: Array, gains: Array, inverse_ideal: Array, grad: Array, hess: Array) -> None:
        lambda_gradients(
            scores, gains, self.ranking.indptr, self.ranking.bounds, self.ranking.order, self._discount,
            inverse_ideal, self.sigmoid, self.norm, self.truncation_level, self._table, grad, hess,
        )  # fmt: skip

    def _ideal(self, gains: FloatArray) -> FloatArray:
        ideal: FloatArray = ideal_dcg(gains, self.ranking.indptr, self._discount, self.truncation_level)
        return np.divide(1.0, ideal, out=np.zeros_like(ideal), where=ideal > 0)

    def _checked(self, scores: Array) -> FloatArray:
        checked: FloatArray = np.ascontiguousarray(scores, dtype=np.float64)
        if checked.shape != self.gains.shape:
            rule = f"must have one value per row ({len(self.gains)})"
            raise invalid("scores", rule, f"shape {checked.shape}")
        return checked


def part_of_observer(observer: Any, first: int, last: int) -> Any:
    """An observer of the queries first, ..., last - 1 alone."""
    if not hasattr(observer, "part"):
        rule = "must be able to watch a part of the queries on a cluster"
        raise invalid("the observer", rule, type(observer).__name__, remedy="Train without client=.")
    return observer.part(first, last)


def gains_of(data: RankingData, label_gain: Sequence[float] | None = None) -> FloatArray:
    """The gain of every row: real-valued gains, else ``label_gain`` of its grade, else 2^y - 1."""
    if label_gain is None:
        if data.gains is not None:
            return data.gains.copy()
        check_grades(data)
        return np.ldexp(1.0, data.y) - 1.0
    if data.gains is not None:
        raise invalid("label_gain", "must not be given for data with real-valued gains")
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
        rule = f"must be at most {HIGHEST_GRADE} for gains of 2^grade - 1"
        remedy = "Map the grades to a few levels or give gains=."
        raise invalid("grades", rule, int(data.y[row]), at=data.place(row), remedy=remedy)


def first_order(indptr: IntArray) -> Array:
    """Rows of each query counted from 0: the ranking of equal scores."""
    return (np.arange(indptr[-1]) - indptr[query_of_row(indptr)]).astype(np.int32)


# Slices as arguments of a function of its own: written inline this loop is not vectorised.
@kernel(fastmath=True)
def _below(
    e: Array, s: Array, g: Array, d: Array, inverse_e: float, score: float, gain: float, discount: float,
    distance: float, lam: Array, hess: Array,
) -> tuple[float, float, float]:  # fmt: skip
    """Adds the pairs of one document with those below it; gives its own sums and the sum of |lambda|."""
    own, own_hess, total = 0.0, 0.0, 0.0
    for j in range(len(s)):
        x = e[j] * inverse_e  # exp(-sigma (score - s_j))
        inverse = 1.0 / (1.0 + x)
        gap = gain - g[j]
        delta = gap * (discount - d[j])
        if distance > 0.0:
            delta /= distance + (score - s[j])
        # p = x/(1+x) when the better document stands above, 1/(1+x) when it stands below.
        l = delta * inverse * (x if gap > 0.0 else 1.0)
        h = abs(delta) * x * inverse * inverse
        own += l
        own_hess += h
        total += abs(l)
        lam[j] += l
        hess[j] += h
    return own, own_hess, total


@kernel()
def _query_exact(
    score: Array, gain: Array, order: Array, discount: Array, inverse_ideal: float, sigma: float, norm: bool,
    level: int, grad: Array, hess: Array, work: Array,
) -> None:  # fmt: skip
    n = len(order)
    e, s, g, lam, h = work[0, :n], work[1, :n], work[2, :n], work[3, :n], work[4, :n]
    d = discount[:n]
    spread = load_ranked(score, order, sigma, s, e, lam, h)
    for k in range(n):
        g[k] = gain[order[k]]
    distance = 0.01 if norm and spread != 0.0 else 0.0
    total = 0.0
    for i in range(min(level, n - 1)):
        inverse_e = exponential_factor(s, e, i, sigma, spread)
        own, own_hess, size = _below(
            e[i + 1 :], s[i + 1 :], g[i + 1 :], d[i + 1 :], inverse_e, s[i], g[i], d[i], distance,
            lam[i + 1 :], h[i + 1 :],
        )  # fmt: skip
        lam[i] -= own
        h[i] += own_hess
        total += size
    factor = sigma * inverse_ideal
    store_sums(lam, h, order, factor, sigma, norm, total * (2.0 * factor), grad, hess)


def sigmoid_table(sigma: float) -> Array:
    """1 / (1 + exp(sigma x)) at 2^20 points, as LightGBM tabulates it."""
    edge = 50.0 / sigma / 2
    factor = BINS / (2 * edge)
    points = np.arange(BINS) / factor - edge
    table: Array = 1.0 / (1.0 + np.exp(points * sigma))
    return table


# Three loops instead of one, on slices: the first two are vectorised, the third waits for its own sums.
@kernel()
def _parity_deltas(
    s: Array, g: Array, d: Array, score: float, gain: float, discount: float, inverse_ideal: float,
    small: float, use: float, sigma: float, delta: Array, place: Array,
) -> None:  # fmt: skip
    """The |delta NDCG| of one document's pairs and their places in the table."""
    edge = 50.0 / sigma / 2
    factor = BINS / (2 * edge)
    for j in range(len(s)):
        distance = score - s[j]
        gap = gain - g[j]
        delta[j] = abs(gap) * (discount - d[j]) * inverse_ideal / (small + use * distance)
        place[j] = np.int32((np.copysign(distance, gap) + edge) * factor)


@kernel()
def _clamped_places(s: Array, g: Array, score: float, gain: float, sigma: float, place: Array) -> None:
    """Places in the table when some scores lie further apart than it reaches."""
    edge = 50.0 / sigma / 2
    factor = BINS / (2 * edge)
    for j in range(len(s)):
        signed = np.copysign(score - s[j], gain - g[j])
        if signed <= -edge:
            place[j] = 0
        elif signed >= edge:
            place[j] = BINS - 1
        else:
            place[j] = np.int32((signed + edge) * factor)


@kernel()
def _parity_lambdas(table: Array, place: Array, sigma: float, delta: Array, hess: Array) -> None:
    """Turns the deltas into -|lambda| and finds the hessians."""
    for j in range(len(place)):
        p = table[place[j]]
        hess[j] = p * (1.0 - p) * (sigma * sigma * delta[j])
        delta[j] = p * (-sigma * delta[j])


@kernel()
def _parity_sums(
    pair_lam: Array, pair_hess: Array, g: Array, gain: float, own: np.float32, own_hess: np.float32,
    total: float, lam: Array, hess: Array,
) -> tuple[np.float32, np.float32, float]:  # fmt: skip
    """Adds in float32, pair by pair; pairs of equal gains add zeros, which leaves every sum as it is."""
    for j in range(len(g)):
        l = np.float32(pair_lam[j])
        h = np.float32(pair_hess[j])
        l = -l if gain < g[j] else l
        own = np.float32(own + l)
        lam[j] = np.float32(lam[j] - l)
        own_hess = np.float32(own_hess + h)
        hess[j] = np.float32(hess[j] + h)
        total -= 2 * pair_lam[j]
    return own, own_hess, total


@kernel()
def _query_parity(
    score: Array, gain: Array, order: Array, discount: Array, inverse_ideal: float, sigma: float, norm: bool,
    level: int, grad: Array, hess: Array, table: Array, work: Array, single: Array, place: Array,
) -> None:  # fmt: skip
    n = len(order)
    s, g, pair_lam, pair_hess = work[0, :n], work[1, :n], work[2, :n], work[3, :n]
    d, lam, h = discount[:n], single[0, :n], single[1, :n]
    for k in range(n):
        s[k] = score[order[k]]
        g[k] = gain[order[k]]
        lam[k] = np.float32(0.0)
        h[k] = np.float32(0.0)
    apart = norm and s[0] != s[n - 1]
    small, use = (np.float64(np.float32(0.01)), 1.0) if apart else (1.0, 0.0)
    wide = s[0] - s[n - 1] > 24.0 / sigma
    total = 0.0
    for i in range(min(level, n - 1)):
        k = i + 1
        _parity_deltas(
            s[k:], g[k:], d[k:], s[i], g[i], d[i], inverse_ideal, small, use, sigma, pair_lam[k:], place[k:n]
        )
        if wide:
            _clamped_places(s[k:], g[k:], s[i], g[i], sigma, place[k:n])
        _parity_lambdas(table, place[k:n], sigma, pair_lam[k:], pair_hess[k:])
        lam[i], h[i], total = _parity_sums(
            pair_lam[k:], pair_hess[k:], g[k:], g[i], lam[i], h[i], total, lam[k:], h[k:]
        )
    scale = np.log2(1 + total) / total if norm and total > 0 else 1.0
    for k in range(n):
        grad[order[k]] = np.float32(lam[k] * scale)
        hess[order[k]] = np.float32(h[k] * scale)


@kernel(parallel=True)
def lambda_gradients(
    score: Array, gain: Array, indptr: Array, bounds: Array, order: Array, discount: Array,
    inverse_ideal: Array, sigma: float, norm: bool, level: int, table: Array, grad: Array, hess: Array,
) -> None:  # fmt: skip
    """Gradients of all queries.

    ``bounds`` cuts the queries into pieces of work, ``order`` is kept from call to call, and an empty
    ``table`` means the exact mode.
    """
    for piece in prange(len(bounds) - 1):
        first, last = bounds[piece], bounds[piece + 1]
        longest = longest_query(indptr, first, last)
        work = np.empty((5, longest))
        single = np.empty((2, longest), np.float32)
        place = np.empty(longest, np.int32)
        for q in range(first, last):
            a, b = indptr[q], indptr[q + 1]
            resort(score[a:b], order[a:b])
            if b - a < 2 or inverse_ideal[q] == 0.0:
                grad[a:b] = np.float32(0.0)
                hess[a:b] = np.float32(0.0)
            elif len(table):
                _query_parity(
                    score[a:b], gain[a:b], order[a:b], discount, inverse_ideal[q], sigma, norm, level,
                    grad[a:b], hess[a:b], table, work, single, place,
                )  # fmt: skip
            else:
                _query_exact(
                    score[a:b], gain[a:b], order[a:b], discount, inverse_ideal[q], sigma, norm, level,
                    grad[a:b], hess[a:b], work,
                )  # fmt: skip


@kernel(parallel=True)
def ideal_dcg(gain: Array, indptr: Array, discount: Array, level: int) -> Array:
    """The DCG of every query's ideal ranking, cut at ``level``."""
    ideal = np.zeros(len(indptr) - 1)
    for q in prange(len(indptr) - 1):
        best = np.sort(gain[indptr[q] : indptr[q + 1]])[::-1]
        for k in range(min(level, len(best))):
            ideal[q] += best[k] * discount[k]
    return ideal
