"""Risks of linear scorers over documents or pairs, of many scorers at once, compiled.

A pair's logistic and sigmoid loss need no exponential of their own: with e = exp(score) of both documents

    p = e_j / (e_i + e_j)      logistic -log(1 - p), slope -p      sigmoid p, slope -p (1 - p).

Where a query has more than ``most`` pairs, its relevant documents meet equally many others each: the others
stand in a random ring, and relevant document r of P meets those from place r N / P on. All documents then
take part in about equally many pairs.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from cleanrank.jit import kernel
from cleanrank.losses.binary import LOSSES, BinaryLoss
from cleanrank.theory.order_preservation import Risk
from cleanrank.types import Array, FloatArray, IntArray, RankingData

FARTHEST = 100.0  # scores beyond count as this one: seven factors of a product still fit a double
FACTORS = 6
BETA1, BETA2, TINY = 0.9, 0.999, 1e-8


class Pairs(NamedTuple):
    """Relevant and other documents of queries that have both; every relevant one meets ``met`` others."""

    relevant: IntArray
    relevant_from: IntArray  # (Q + 1,)
    other: IntArray
    other_from: IntArray
    met: IntArray  # (Q,)
    weight: FloatArray  # (Q,) of one pair

    @property
    def n_pairs(self) -> int:
        """How many pairs there are."""
        return int(np.diff(self.relevant_from) @ self.met)


@dataclass(frozen=True, eq=False)
class LinearRisk:
    """A weighted mean of a loss; W, its argument, has a scorer in every column."""

    X: Any  # (n, F), dense or sparse
    loss: BinaryLoss
    target: FloatArray  # (n,) of points
    weight: FloatArray  # (n,) of points
    pairs: Pairs | None = None

    def with_loss(self, name: str) -> "LinearRisk":
        """The same documents or pairs under another loss."""
        return replace(self, loss=LOSSES[name])

    def values(self, W: Array) -> FloatArray:
        """The risk of every scorer."""
        return self._values(_exponentials(self.X @ W))

    def gradients(self, W: Array) -> Array:
        """(F, columns): by the weights."""
        return self._gradients(_exponentials(self.X @ W), W)

    def values_and_gradients(self, W: Array) -> tuple[FloatArray, Array]:
        """Both, with one product of features and weights."""
        e = _exponentials(self.X @ W)
        return self._values(e), self._gradients(e, W)

    def _values(self, e: FloatArray) -> FloatArray:
        if self.pairs is None:
            return point_values(e, self.target, self.weight, self._is_sigmoid)
        return pair_values(e, self.pairs, self._is_sigmoid)

    def _gradients(self, e: FloatArray, W: Array) -> Array:
        if self.pairs is None:
            slopes = point_slopes(e, self.target, self.weight, self._is_sigmoid)
        else:
            slopes = pair_slopes(e, self.pairs, self._is_sigmoid)
        gradients: Array = self.X.T @ slopes.astype(np.promote_types(W.dtype, self.X.dtype))
        return gradients

    @property
    def _is_sigmoid(self) -> float:
        return float(self.loss.name == "sigmoid")


def _exponentials(scores: Array) -> FloatArray:
    return np.exp(np.clip(scores, -FARTHEST, FARTHEST).astype(np.float64))


def risk_of(risk: Risk, X: Any, data: RankingData, most: int, rng: np.random.Generator) -> LinearRisk:
    """The risk of labels > 0 over documents, or over pairs, of a query about ``most`` at the most."""
    target = (data.y > 0).astype(np.float64)
    weight = np.repeat(1.0 / (np.maximum(data.lengths, 1) * data.n_queries), data.lengths)
    loss = LOSSES[risk.loss] if isinstance(risk.loss, str) else risk.loss
    if risk.pairs is None:
        return LinearRisk(X, loss, target, weight)
    return LinearRisk(
        X, loss, target, weight, pairs_of(target, data.indptr, risk.pairs == "macro", most, rng)
    )


def pairs_of(y: FloatArray, indptr: IntArray, macro: bool, most: int, rng: np.random.Generator) -> Pairs:
    """Pairs of every query that has two grades, weighted by query ("macro") or by n^2 ("micro")."""
    relevant, other, met, weight = [], [], [], []
    for a, b in pairwise(indptr):
        above, below = a + np.flatnonzero(y[a:b] > 0), a + np.flatnonzero(y[a:b] == 0)
        if not len(above) or not len(below):
            continue
        each = min(len(below), max(1, most // len(above)))
        total = 1.0 if macro else len(above) * len(below) / float(b - a) ** 2
        relevant.append(rng.permutation(above))
        other.append(rng.permutation(below))
        met.append(each)
        weight.append(total / (len(above) * each))
    starts = [np.cumsum([0, *map(len, documents)]) for documents in (relevant, other)]
    rows = [np.concatenate([np.zeros(0, dtype=np.int64), *documents]) for documents in (relevant, other)]
    queries = max(1, len(met) if macro else len(indptr) - 1)
    weights = np.array(weight, dtype=np.float64) / queries
    return Pairs(rows[0], starts[0], rows[1], starts[1], np.array(met, dtype=np.int64), weights)


@kernel(fastmath=True)
def point_slopes(e: FloatArray, target: FloatArray, weight: FloatArray, is_sigmoid: float) -> FloatArray:
    """The derivative of the risk by every score; a scorer in every column of ``e``."""
    slopes = np.empty(e.shape)
    for i in range(e.shape[0]):
        sign = weight[i] if target[i] == 0 else -weight[i]
        for c in range(e.shape[1]):
            p = (1.0 if target[i] == 1 else e[i, c]) / (1.0 + e[i, c])
            slopes[i, c] = sign * (p - is_sigmoid * p * p)
    return slopes


@kernel(fastmath=True)
def point_values(e: FloatArray, target: FloatArray, weight: FloatArray, is_sigmoid: float) -> FloatArray:
    """The risk of every column."""
    values = np.zeros(e.shape[1])
    for i in range(e.shape[0]):
        for c in range(e.shape[1]):
            odds = 1.0 / e[i, c] if target[i] == 1 else e[i, c]  # that the scorer is wrong
            values[c] += weight[i] * (odds / (1.0 + odds) if is_sigmoid else np.log1p(odds))
    return values


@kernel(fastmath=True)
def pair_slopes(e: FloatArray, pairs: Pairs, is_sigmoid: float) -> FloatArray:
    """The derivative of the risk by every score; a scorer in every column of ``e``."""
    relevant, relevant_from, other, other_from, met, weight = pairs
    columns = e.shape[1]
    slopes, total = np.zeros(e.shape), np.zeros(columns)
    for q in range(len(met)):
        P, N = relevant_from[q + 1] - relevant_from[q], other_from[q + 1] - other_from[q]
        for r in range(P):
            i, place = relevant[relevant_from[q] + r], r * N // P
            total[:] = 0.0
            for _ in range(met[q]):
                j = other[other_from[q] + place]
                place = place + 1 if place + 1 < N else 0
                for c in range(columns):
                    p = e[j, c] / (e[i, c] + e[j, c])
                    slope = weight[q] * (p - is_sigmoid * p * p)
                    total[c] += slope
                    slopes[j, c] += slope
            for c in range(columns):
                slopes[i, c] -= total[c]
    return slopes


@kernel(fastmath=True)
def pair_values(e: FloatArray, pairs: Pairs, is_sigmoid: float) -> FloatArray:
    """The risk of every column; logarithms are taken of products of FACTORS."""
    relevant, relevant_from, other, other_from, met, weight = pairs
    columns = e.shape[1]
    values, total, product = np.zeros(columns), np.zeros(columns), np.ones(columns)
    for q in range(len(met)):
        P, N = relevant_from[q + 1] - relevant_from[q], other_from[q + 1] - other_from[q]
        for r in range(P):
            i, place = relevant[relevant_from[q] + r], r * N // P
            total[:] = 0.0
            for k in range(met[q]):
                j = other[other_from[q] + place]
                place = place + 1 if place + 1 < N else 0
                if is_sigmoid:
                    for c in range(columns):
                        total[c] += e[j, c] / (e[i, c] + e[j, c])
                else:
                    for c in range(columns):
                        product[c] *= e[i, c] + e[j, c]
                    if (k + 1) % FACTORS == 0 or k + 1 == met[q]:
                        for c in range(columns):
                            total[c] += np.log(product[c])
                            product[c] = 1.0
            for c in range(columns):
                if not is_sigmoid:
                    total[c] -= met[q] * np.log(e[i, c])
                values[c] += weight[q] * total[c]
    return values


@kernel(fastmath=True)
def adam_step(
    W: Array, gradient: Array, first: Array, second: Array, rate: Array, decay: Array, step: int
) -> None:
    """One step of Adam (Kingma and Ba 2015) in place, a learning rate and a weight decay for every column.

    All arrays are of single precision, and so is the arithmetic.
    """
    scale1, scale2 = np.float32(1.0 / (1.0 - BETA1**step)), np.float32(1.0 / (1.0 - BETA2**step))
    old1, new1 = np.float32(BETA1), np.float32(1.0 - BETA1)
    old2, new2, tiny = np.float32(BETA2), np.float32(1.0 - BETA2), np.float32(TINY)
    for f in range(W.shape[0]):
        for c in range(W.shape[1]):
            g = gradient[f, c] + decay[c] * W[f, c]
            first[f, c] = old1 * first[f, c] + new1 * g
            second[f, c] = old2 * second[f, c] + new2 * g * g
            W[f, c] -= rate[c] * (first[f, c] * scale1) / (np.sqrt(second[f, c] * scale2) + tiny)
