"""PRank: a perceptron with thresholds between grades (Crammer and Singer 2001), and two robust forms.

A row x of grade y in 0..C-1 is scored s = w.x; the predicted grade is the number of thresholds b_0 <= ... <=
b_{C-2} that s reaches. With z_r = +1 where y > r and -1 elsewhere, a row whose predicted grade is wrong
changes

    tau_r = z_r where z_r (s - b_r) <= 0, else 0;    w += (sum_r tau_r) x;    b_r -= tau_r.

Thresholds are whole numbers and stay ordered (their Lemma 1). The robust forms:

* "margin" also moves thresholds with z_r (s - b_r) < margin, be the grade right or not; order is kept for the
  same reason. Margins are in units of 1 + the mean of |x|^2, by which a step moves a score, so that neither
  scaling nor the number of features changes what one means.
* "average" keeps the mean of (w, b) over all rows seen (Freund and Schapire 1999; for thresholds Harrington
  2003), whose last updates do not stand for all.

A row of weight a moves by a tau. Steps of different lengths can part the thresholds' order, so that they are
then put into the nearest order (isotonic regression), which changes nothing where weights are alike.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cleanrank.errors import invalid
from cleanrank.jit import kernel
from cleanrank.rankers.classic.base import LinearRanker, Rows, Watch
from cleanrank.rankers.classic.models import LinearModel
from cleanrank.types import FloatArray, IntArray, Progress
from cleanrank.validation import check_integer, check_number, one_of

ROBUST = ("margin", "average")


@dataclass(kw_only=True, eq=False, repr=False)
class PRank(LinearRanker):
    """A perceptron that predicts grades and ranks by its score.

    It looks at rows one by one and needs no pairs within a query. After every pass over the rows the scores
    of validation rows are measured, and the best pass is kept; without validation rows the last.

    Args:
        epochs: passes over the rows, each in an order of its own.
        robust: None; "margin" also learns from rows whose grade is right by less than ``margin``; "average"
            keeps the mean of all perceptrons on the way instead of the last.
        margin: of robust="margin", in units of 1 + the mean squared length of a scaled row.
        measure: what validation rows are judged by.
        scaling: "zscore", "minmax" or "none", of every feature.
        early_stopping_rounds: passes without gain on validation rows before it stops; 0 never stops and keeps
            the best pass, None keeps the last.
        random_state: for the order of the rows.
        n_jobs: threads of the validation measure; the perceptron has one.

    Attributes:
        coef_: weights of the features as they were given.
        intercept_: what is added to them.
        thresholds_: C - 1 of them, between the grades.
        best_iteration_: the pass that was kept.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(20, 5, docs_per_query=10, seed=0)
    >>> ranker = PRank(epochs=5).fit(data.X, data.y, qid=data.qid)
    >>> bool((np.diff(ranker.thresholds_) >= 0).all()), int(ranker.predict_grades(data.X).max()) <= 4
    (True, True)
    """

    compares: ClassVar[bool] = False

    epochs: int = 100
    robust: str | None = None
    margin: float = 1.0
    measure: str = "map"
    scaling: str = "zscore"
    early_stopping_rounds: int | None = 0
    random_state: int = 0
    n_jobs: int = 1

    @property
    def thresholds_(self) -> FloatArray:
        """Of the score, between the grades."""
        thresholds: FloatArray = self._fitted().thresholds
        return thresholds

    def predict_grades(self, X: Any) -> IntArray:
        """The predicted grade of every row, in input order: how many thresholds its score reaches."""
        return np.searchsorted(self.thresholds_, self.predict(X), side="right")

    def _check_settings(self) -> None:
        check_integer("epochs", self.epochs, least=1)
        if self.robust is not None:
            one_of("robust form of PRank", self.robust, ROBUST)
        check_number("margin", self.margin, above=0)

    def _train(self, rows: Rows, watch: Watch, progress: Progress | None) -> LinearModel:
        self._check_settings()
        weights = np.ones(len(rows.y)) if rows.weights is None else np.asarray(rows.weights, dtype=np.float64)
        used = np.flatnonzero(weights > 0)
        if not len(used):
            remedy = "Leave sample_weight out where all rows count alike."
            raise invalid("sample_weight", "must be above 0 for at least one row", "none", remedy=remedy)
        margin = 0.0
        if self.robust == "margin":
            margin = self.margin * (1 + float((rows.X[used] ** 2).sum() / len(used)))
        n_features, n_thresholds = rows.X.shape[1], int(rows.y.max())
        state = np.zeros(n_features + n_thresholds)  # weights of the features, then thresholds
        sums = np.zeros_like(state)
        rng = np.random.default_rng(self.random_state)
        kept = state.copy()
        for epoch in range(self.epochs):
            order = used[rng.permutation(len(used))]
            see_rows(rows.X, rows.y, weights, order, margin, state, sums)
            now = sums / (weights[used].sum() * (epoch + 1)) if self.robust == "average" else state
            if watch.see([X @ now[:n_features] for X in watch.sets]):
                kept = now.copy()
            if progress is not None:
                progress(epoch + 1, self.epochs)
            if watch.done:
                break
        return self._linear(kept[:n_features], watch, thresholds=kept[n_features:])


@kernel()
def see_rows(
    X: FloatArray,
    y: IntArray,
    weights: FloatArray,
    order: IntArray,
    margin: float,
    state: FloatArray,
    sums: FloatArray,
) -> None:
    """One pass over rows: changes ``state``; after every row its weight times ``state`` joins ``sums``."""
    n_features = X.shape[1]
    b = state[n_features:]
    waiting = 0.0  # the weight of rows since the last change, of which ``sums`` does not know yet
    for row in order:
        score = 0.0
        for f in range(n_features):
            score += state[f] * X[row, f]
        predicted = 0
        while predicted < len(b) and score >= b[predicted]:
            predicted += 1
        wrong = predicted != y[row]
        if wrong or margin > 0.0:
            for j in range(len(state)):
                sums[j] += waiting * state[j]
            waiting = 0.0
            steps = 0
            for r in range(len(b)):
                z = 1 if y[row] > r else -1
                distance = z * (score - b[r])
                if distance < margin or (wrong and distance <= 0.0):
                    steps += z
                    b[r] -= z * weights[row]
            for f in range(n_features):
                state[f] += steps * weights[row] * X[row, f]
            put_in_order(b)
        waiting += weights[row]
    for j in range(len(state)):
        sums[j] += waiting * state[j]


@kernel()
def put_in_order(b: FloatArray) -> None:
    """Replaces values by the nearest rising ones: neighbours out of order share their mean."""
    for end in range(1, len(b)):
        start, total = end, b[end]
        while start > 0 and b[start - 1] > total / (end - start + 1):
            start -= 1
            total += b[start]
        if start < end:
            b[start : end + 1] = total / (end - start + 1)
