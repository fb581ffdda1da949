"""ListNet: a linear ranker whose chances of the first place match those of the grades (Cao et al. 2007).

For each query the cross entropy between softmax(y) and softmax(w.x) over its documents; a row of weight a
counts as a copies, in both. The loss is convex and has an exact gradient in one pass over the rows, so that
L-BFGS replaces the paper's gradient steps.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from cleanrank.errors import invalid
from cleanrank.jit import kernel, prange, query_chunks
from cleanrank.rankers.classic._rank_svm import add, dot, in_order
from cleanrank.rankers.classic.base import LinearRanker, Rows, Watch
from cleanrank.rankers.classic.models import LinearModel
from cleanrank.types import Array, FloatArray, Progress
from cleanrank.validation import check_integer, check_number

CHUNKS = 64
MEMORY = 20  # past steps that L-BFGS keeps


@dataclass(kw_only=True, eq=False, repr=False)
class ListNet(LinearRanker):
    """A linear ranker trained on whole lists: the cross entropy of the chances to be ranked first.

    After every step the scores of validation rows are measured, and the best step is kept; without
    validation rows the last.

    Args:
        max_iter: steps of L-BFGS at the most.
        tol: it stops where no derivative of the mean loss exceeds this.
        measure: what validation rows are judged by.
        scaling: "zscore", "minmax" or "none", of every feature.
        early_stopping_rounds: steps without gain on validation rows before it stops; 0 never stops and keeps
            the best step, None keeps the last.
        random_state: not read, as nothing is random.
        n_jobs: threads; results are the same for any number.

    Attributes:
        coef_: weights of the features as they were given.
        intercept_: what is added to them.
        loss_: the mean loss per query of the step that was kept.
        best_iteration_: the step that was kept.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(20, 5, docs_per_query=10, seed=0)
    >>> ranker = ListNet(max_iter=50).fit(data.X, data.y, qid=data.qid)
    >>> ranker.coef_.shape
    (5,)
    """

    max_iter: int = 200
    tol: float = 1e-6
    measure: str = "map"
    scaling: str = "zscore"
    early_stopping_rounds: int | None = 50
    random_state: int = 0
    n_jobs: int = 1

    def _train(self, rows: Rows, watch: Watch, progress: Progress | None) -> LinearModel:
        from scipy.optimize import minimize

        check_integer("max_iter", self.max_iter, least=1)
        check_number("tol", self.tol, above=0)
        weights = np.ones(len(rows.y)) if rows.weights is None else rows.weights
        if not (weights > 0).any():
            remedy = "Leave sample_weight out where all rows count alike."
            raise invalid("sample_weight", "must be above 0 for at least one row", "none", remedy=remedy)
        target = first_place(rows.y.astype(np.float64), weights, rows.indptr)
        chunks = query_chunks(rows.indptr, CHUNKS)
        queries = max(int((np.diff(rows.indptr) > 0).sum()), 1)
        kept = np.zeros(rows.X.shape[1])

        def objective(w: FloatArray) -> tuple[float, FloatArray]:
            sums = list_losses(rows.X, w, target, weights, rows.indptr, chunks) / queries
            return float(sums[0]), sums[1:]

        def after(intermediate_result: Any) -> None:
            nonlocal kept
            w = intermediate_result.x
            step = len(steps) + 1
            steps.append(float(intermediate_result.fun))
            if watch.see([np.einsum("nf,f->n", X, w) for X in watch.sets]):
                kept, self.loss_ = w.copy(), steps[-1]
            if progress is not None:
                progress(step, self.max_iter)
            if watch.done:
                raise StopIteration

        steps: list[float] = []
        self.loss_ = objective(kept)[0]
        options: Any = {"maxiter": self.max_iter, "maxcor": MEMORY, "gtol": self.tol, "ftol": 0.0}
        minimize(objective, kept, jac=True, method="L-BFGS-B", callback=after, options=options)
        return self._linear(kept, watch)


@kernel()
def log_sum(scores: Array, weights: Array) -> float:
    """log(sum of weight x exp(score)) over the documents of a query; -inf where no weight is above 0."""
    highest, total = -np.inf, 0.0
    for i in range(len(scores)):
        if weights[i] > 0.0:
            highest = max(highest, scores[i])
    for i in range(len(scores)):
        if weights[i] > 0.0:
            total += weights[i] * np.exp(scores[i] - highest)
    return highest + np.log(total) if total > 0.0 else -np.inf


@kernel()
def first_place(scores: Array, weights: Array, indptr: Array) -> Array:
    """Each document's chance of the first place: softmax within its query; 0 for rows of weight 0."""
    chances = np.zeros(len(scores))
    for q in range(len(indptr) - 1):
        first, last = indptr[q], indptr[q + 1]
        log_total = log_sum(scores[first:last], weights[first:last])
        for i in range(first, last):
            if weights[i] > 0.0:
                chances[i] = weights[i] * np.exp(scores[i] - log_total)
    return chances


@kernel()
def chunk_losses(X: Array, w: Array, target: Array, weights: Array, indptr: Array, part: Array) -> None:
    """Adds the loss of the queries that ``indptr`` delimits to part[0], its gradient to part[1:]."""
    rest = part[1:]
    scores = np.zeros(indptr[-1] - indptr[0])
    for q in range(len(indptr) - 1):
        first, last = indptr[q], indptr[q + 1]
        for i in range(first, last):
            scores[i - first] = dot(X[i], w)
        log_total = log_sum(scores[: last - first], weights[first:last])
        for i in range(first, last):
            if weights[i] > 0.0:
                over = log_total - scores[i - first]
                part[0] += target[i] * over
                add(rest, X[i], weights[i] * np.exp(-over) - target[i])


@kernel(parallel=True)
def list_losses(X: Array, w: Array, target: Array, weights: Array, indptr: Array, chunks: Array) -> Array:
    """(sum of the queries' losses, its derivatives by w): one pass over the rows."""
    parts = np.zeros((len(chunks) - 1, X.shape[1] + 1))
    for c in prange(len(chunks) - 1):
        bounds = indptr[chunks[c] : chunks[c + 1] + 1]
        chunk_losses(X, w, target, weights, bounds, parts[c])
    return in_order(parts)
