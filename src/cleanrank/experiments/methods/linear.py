"""Linear scorers trained on one loss, a whole grid of steps and decays at once (Haddad 2022, Sect. 5.2).

A linear risk is sum_p w_p l(r_p . W, t_p): rows r are documents (points, with an intercept) or differences of
documents (pairs, target 1). All G = 5 x 3 combinations of learning rate and weight decay share its rows, so W
is (F, G) and one product serves them. Adam takes full steps; of each combination the step with the least risk
on noisy validation data is kept, and of all combinations the one where that is least.

Dense features are standardised; sparse ones, such as counts of words, stay sparse and as they are.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise, product
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix, hstack, issparse

from cleanrank.errors import invalid
from cleanrank.experiments.methods import MethodResult, MethodTask
from cleanrank.losses.binary import LOSSES, BinaryLoss
from cleanrank.theory.order_preservation import Risk
from cleanrank.types import Array, FloatArray, RankingData

RATES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
DECAYS = (1e-5, 1e-4, 1e-3)
WEIGHTS = ("macro", "micro")
BETA1, BETA2, TINY = 0.9, 0.999, 1e-8


@dataclass(frozen=True, eq=False)
class Rows:
    """What a linear risk is a sum over; target (1 or 0) and weight per logit."""

    r: Any  # rows; documents where there are ``pairs``
    target: Array
    weight: Array
    pairs: Any = None  # (pairs, documents), +1 and -1 in a row; None where rows give the logits themselves

    def logits(self, W: Array) -> Array:
        """Of all logits under each column of W."""
        scores: Array = self.r @ W if self.pairs is None else self.pairs @ (self.r @ W)
        return scores

    def gradient(self, slope: Array) -> Array:
        """By W, from the slopes of the logits."""
        gradient: Array = self.r.T @ (slope if self.pairs is None else self.pairs.T @ slope)
        return gradient


def linear(task: MethodTask) -> MethodResult:
    """One model for all queries, or (``per_query``) one for each, then with documents in all splits."""
    params = task.params
    risk = Risk.parse(params["loss"])
    if risk is None or (risk.pairs is not None and risk.pairs not in WEIGHTS):
        rule = f"must name a loss of points, or of pairs with the weights {' or '.join(WEIGHTS)}"
        raise invalid("loss", rule, repr(params["loss"]))
    scaled = _with_intercept if issparse(task.train.X) else _scaling(task.train)
    parts = [scaled(d.X) for d in (task.train, task.validation, task.test)]
    if not params["per_query"]:
        return MethodResult(*_fitted(risk, parts, task.train, task.validation, params, task.seed))
    cuts = [list(pairwise(d.indptr)) for d in (task.train, task.validation, task.test)]
    sizes = [len(c) for c in cuts]
    if len(set(sizes)) > 1:
        raise invalid("queries", "must be the same in all splits for one model a query", sizes)
    scores = np.zeros(task.test.n_docs)
    for q, spans in enumerate(zip(*cuts, strict=True)):
        mine = [x[a:b] for x, (a, b) in zip(parts, spans, strict=True)]
        train = task.train.select(np.arange(*spans[0]))
        validation = task.validation.select(np.arange(*spans[1]))
        scores[slice(*spans[2])] = _fitted(risk, mine, train, validation, params, task.seed + q)[0]
    return MethodResult(scores)


def _with_intercept(X: Any) -> Any:
    return hstack((X, csr_matrix(np.ones((X.shape[0], 1), dtype=np.float32))), format="csr")


def _scaling(train: RankingData) -> Callable[[Any], Array]:
    X = np.asarray(train.X, dtype=np.float64)
    centre, spread = X.mean(axis=0), X.std(axis=0)
    spread[spread == 0] = 1.0

    def scaled(other: Any) -> Array:
        # Single precision halves the time; a constant column serves as intercept.
        standardised = (np.asarray(other, dtype=np.float64) - centre) / spread
        return np.column_stack((standardised, np.ones(len(standardised)))).astype(np.float32)

    return scaled


def rows_of(risk: Risk, X: Any, data: RankingData, most: int, rng: np.random.Generator) -> Rows:
    """Rows of a risk; of a query at most ``most`` pairs, drawn at random, which then stand for all."""
    y = (data.y > 0).astype(np.float32)
    if risk.pairs is None:
        lengths = np.maximum(data.lengths, 1)
        weights = np.repeat(1.0 / (lengths * data.n_queries), data.lengths)
        return Rows(X, y, weights.astype(np.float32))
    first, second, weight = [], [], []
    for a, b in pairwise(data.indptr):
        above, below = np.flatnonzero(y[a:b] > 0), np.flatnonzero(y[a:b] == 0)
        pairs = len(above) * len(below)
        if not pairs:
            continue
        total = 1.0 if risk.pairs == "macro" else pairs / (b - a) ** 2
        # Pairs are drawn by number: a list of thousands of documents has millions.
        kept = rng.choice(pairs, most, replace=False) if pairs > most else np.arange(pairs)
        first.append(a + above[kept // len(below)])
        second.append(a + below[kept % len(below)])
        weight.append(np.full(len(kept), total / len(kept)))
    if not first:
        return Rows(X[:0], y[:0], y[:0])
    weights = np.concatenate(weight) / (len(first) if risk.pairs == "macro" else data.n_queries)
    i, j, ones = np.concatenate(first), np.concatenate(second), np.ones(len(weights), dtype=np.float32)
    sparse: bool = issparse(X)
    if not sparse:
        return Rows(X[i] - X[j], ones, weights.astype(np.float32))
    # Differences of sparse rows are twice as full: documents are scored first, then subtracted.
    place = np.tile(np.arange(len(i)), 2), np.concatenate((i, j))
    pairs_of: Any = csr_matrix((np.concatenate((ones, -ones)), place), shape=(len(i), int(X.shape[0])))
    return Rows(X, ones, weights.astype(np.float32), pairs_of)


def _fitted(
    risk: Risk, parts: list[Any], train: RankingData, validation: RankingData, params: Any, seed: int
) -> tuple[FloatArray, dict[str, Any]]:
    X, X_val, X_test = parts
    rng = np.random.default_rng(seed)
    most = params["max_pairs"]
    inside, outside = rows_of(risk, X, train, most, rng), rows_of(risk, X_val, validation, most, rng)
    loss = LOSSES[risk.loss] if isinstance(risk.loss, str) else risk.loss
    W, least, when = descend(loss, inside, outside, params["steps"])
    best = int(np.argmin(least))
    rate, decay = list(product(RATES, DECAYS))[best]
    chosen = {
        "learning_rate": rate,
        "weight_decay": decay,
        "step": int(when[best]),
        "risk": float(least[best]),
    }
    return (X_test @ W[:, best]).astype(np.float64), chosen


def descend(loss: BinaryLoss, inside: Rows, outside: Rows, steps: int) -> tuple[Array, Array, Array]:
    """Adam for every combination: weights (F, G) of its best step, their risk on ``outside``, the step."""
    grid = np.array(list(product(RATES, DECAYS)), dtype=np.float32)
    W = np.zeros((inside.r.shape[1], len(grid)), dtype=np.float32)
    first, second = np.zeros_like(W), np.zeros_like(W)
    best, least, when = W.copy(), np.full(len(grid), np.inf), np.zeros(len(grid), dtype=np.int64)
    for step in range(1, steps + 1):
        now = outside.weight @ loss.value(outside.logits(W), outside.target[:, None])
        better = now < least
        best[:, better], least[better], when[better] = W[:, better], now[better], step - 1
        slope = inside.weight[:, None] * loss.gradient(inside.logits(W), inside.target[:, None])
        gradient = inside.gradient(slope) + grid[:, 1] * W
        first = BETA1 * first + (1 - BETA1) * gradient
        second = BETA2 * second + (1 - BETA2) * gradient**2
        W = W - grid[:, 0] * (first / (1 - BETA1**step)) / (np.sqrt(second / (1 - BETA2**step)) + TINY)
    return best, least, when
