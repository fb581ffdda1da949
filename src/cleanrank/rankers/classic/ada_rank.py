"""AdaRank (Xu and Li 2007): boosting of single features towards a measure of whole rankings."""

import math
from collections.abc import Collection
from dataclasses import dataclass, replace

import numpy as np

from cleanrank.errors import invalid
from cleanrank.metrics.evaluation import query_values
from cleanrank.metrics.measure import Measure
from cleanrank.ragged import indptr_of
from cleanrank.rankers.classic.base import LinearRanker, Rows, Watch
from cleanrank.rankers.classic.models import LinearModel
from cleanrank.types import FloatArray, Progress
from cleanrank.validation import check_integer, check_number, one_of

UPDATES: dict[str, str] = {
    "combined": "exp(-E) of the ranker so far (Xu and Li 2007)",
    "cumulative": "the weight before times exp(-alpha E) of the ranker so far (RankLib)",
}
REPEATS: dict[str, str] = {
    "keep": "the best feature is taken, however often in a row (Xu and Li 2007)",
    "set_aside": "a feature that is best twice in a row waits until training ends without it (RankLib)",
}
DIRECTIONS = ("up", "both")
TIE = 1e-10  # weighted values this close are equal: the first feature is taken
MOST_VALUE = 1.0 - 1e-6  # the weight of a feature without errors would be infinite
MOST_IN_A_ROW = 5


@dataclass(kw_only=True, eq=False, repr=False)
class AdaRank(LinearRanker):
    """Boosted features: each round adds a weighted feature, chosen by a measure on weighted queries.

    A round takes the feature with the largest sum of P E: P are the weights of the queries, which add up to 1
    and are equal at first, E is the value of ``target`` on each query when its documents are ranked by the
    feature. Its weight is alpha = ln(sum P (1 + E) / sum P (1 - E)) / 2, and queries that the ranker so far
    serves badly weigh more in the next round. Queries on which the target is not defined, such as those
    without relevant documents, are left out. Rows have no weights.

    Training ends after ``n_estimators`` rounds, by ``early_stopping_rounds``, when a feature has the value 1
    on all queries, when none has a value above 0, and when a round lowers the mean of E of the ranker by
    ``tolerance`` or more; that round is undone. While features are set aside (``repeats``) the last two only
    bring one of them back, the last one first.

    Args:
        n_estimators: rounds at the most, undone ones among them.
        target: the measure E, with values from -1 to 1, such as "map" or "ndcg@10". It is averaged over all
            orders of tied documents unless it names others: the order of the rows may tell the grades.
        update: of the weights of queries: "combined", exp(-E) of the ranker so far, as published;
            "cumulative", the weight before times exp(-alpha E) of the ranker so far, as in RankLib.
        directions: "up" takes features as they are; "both" also reversed ones, by a negative weight.
        repeats: "keep" takes the best feature however often, as published, which often ends with one feature;
            "set_aside": when a feature is best twice in a row, the first of the two rounds is undone and the
            feature waits; once it is back, a feature that was taken 5 times more in a row without a change in
            the mean of E is passed over until there is one, as in RankLib.
        tolerance: see above; None never ends training for it.
        early_stopping_rounds: rounds without gain on validation data before it stops; 0 never stops and keeps
            the best number of rounds, None keeps all rounds. Without validation data the best is the one with
            the highest mean of E.
        measure: what the number of rounds is chosen by on validation data.
        scaling: of features, which are added up: "none", "zscore" or "minmax".
        random_state: not read; nothing is random.
        n_jobs: threads; results are the same for any number.

    Attributes:
        model_: the trained LinearModel.
        best_iteration_: rounds in use, undone ones among them.
        coef_: weights of the features as they were given.
        intercept_: X @ coef_ + intercept_ are the scores, where no value is missing.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(20, 5, docs_per_query=10, seed=0)
    >>> ranker = AdaRank(n_estimators=20).fit(data.X, data.y, qid=data.qid)
    >>> ranker.coef_.shape
    (5,)
    """

    n_estimators: int = 500
    target: str = "map"
    update: str = "cumulative"
    directions: str = "up"
    repeats: str = "set_aside"
    tolerance: float | None = 0.002
    early_stopping_rounds: int | None = 100
    measure: str = "map:ties=average"
    scaling: str = "none"
    random_state: int = 0
    n_jobs: int = 1

    def _train(self, rows: Rows, watch: Watch, progress: Progress | None) -> LinearModel:
        self._check(rows)
        features = _Features.of(rows, watch, self._target(), self.directions == "both")
        state = before = features.start()
        best, best_step, steps = state, 0, 0
        by_training = not watch.sets and self.early_stopping_rounds is not None
        aside: list[int] = []
        spent: set[int] = set()
        last, in_a_row, setting_aside = -1, 0, self.repeats == "set_aside"
        for step in range(self.n_estimators):
            pick = features.best(state.P, [*aside, *spent])
            if setting_aside and pick == last:
                aside.append(last)
                state = before
                continue
            after = None if pick is None else features.add(state, pick, self.update == "cumulative")
            if pick is None or after is None or self._falls(state, after):
                setting_aside = False
                if not aside:
                    break
                aside.pop()
                continue
            if self.repeats == "set_aside" and not setting_aside:
                in_a_row = in_a_row + 1 if pick == last and abs(after.mean - state.mean) <= TIE else 0
                if not in_a_row:
                    spent.clear()
                elif in_a_row == MOST_IN_A_ROW:
                    spent.add(pick)
                    in_a_row = 0
            before, state, last = state, after, pick
            steps += 1
            if watch.see(state.held) and (state.mean > best.mean + TIE or not by_training):
                best, best_step = state, steps
            if progress is not None:
                progress(step + 1, self.n_estimators)
            if watch.done or state.perfect:
                break
        if not steps:
            watch.see(state.held)  # no feature is worth anything: all scores are equal
        watch.best_step = best_step
        return self._linear(best.coef, watch)

    def _falls(self, before: "_State", after: "_State") -> bool:
        return self.tolerance is not None and after.mean + self.tolerance <= before.mean

    def _check(self, rows: Rows) -> None:
        check_integer("n_estimators", self.n_estimators, least=1)
        one_of("update", self.update, UPDATES)
        one_of("directions", self.directions, DIRECTIONS)
        one_of("repeats", self.repeats, REPEATS)
        if self.tolerance is not None:
            check_number("tolerance", self.tolerance, least=0)
        if rows.weights is not None:
            remedy = "Leave it out, or use RankBoost or RankSVM, where pairs have weights."
            raise invalid(
                "sample_weight", "must be None in AdaRank, which weighs queries", "numbers", remedy=remedy
            )

    def _target(self) -> Measure:
        """The measure E: averaged over orders of tied documents, not a number where it is not defined."""
        measure = self.target if isinstance(self.target, Measure) else Measure.parse(self.target)
        if measure.name == "dcg" or measure.weighting not in (None, "macro"):
            rule = "must be a measure of one query with values from -1 to 1"
            raise invalid("target", rule, repr(str(measure)), remedy="Try 'map' or 'ndcg@10'.")
        return replace(measure, empty="skip", ties="average" if measure.ties == "stable" else measure.ties)


@dataclass(frozen=True, eq=False)
class _State:
    """A ranker on its way."""

    coef: FloatArray  # (F,)
    scores: FloatArray  # (N,), of the training rows
    held: tuple[FloatArray, ...]  # scores of every set of validation rows
    P: FloatArray  # (Q,), weights of the queries; their sum is 1
    mean: float  # of E over queries
    perfect: bool = False  # the last feature ranks all queries as well as can be


@dataclass(frozen=True, eq=False)
class _Features:
    """Features as weak rankers: what each is worth on each query."""

    rows: Rows  # of queries on which the measure is defined
    columns: FloatArray  # (F, N), of these rows
    held: tuple[FloatArray, ...]  # (F, .), of every set of validation rows
    measure: Measure
    E: FloatArray  # (F or 2F, Q), the second half of the reversed features

    @classmethod
    def of(cls, rows: Rows, watch: Watch, measure: Measure, both: bool) -> "_Features":
        defined = ~np.isnan(_values(measure, rows, np.arange(len(rows.y), dtype=np.float64)))
        if not defined.any():
            rule = "must have queries on which the target is defined"
            raise invalid(
                "training data", rule, f"none for {str(measure)!r}", remedy="Choose another target."
            )
        lengths = np.diff(rows.indptr)
        kept = np.repeat(defined, lengths)
        rows = Rows(rows.X[kept], rows.y[kept], indptr_of(lengths[defined]))
        columns = np.ascontiguousarray(rows.X.T)
        E = np.array([_values(measure, rows, column) for column in columns])
        if both:
            E = np.concatenate((E, [_values(measure, rows, -column) for column in columns]))
        held = tuple(np.ascontiguousarray(X.T) for X in watch.sets)
        # A feature without any order in a query (Kendall's tau) is worth nothing there.
        return cls(rows, columns, held, measure, np.nan_to_num(E))

    def start(self) -> _State:
        """The state before the first round."""
        n_queries = self.E.shape[1]
        held = tuple(np.zeros(X.shape[1]) for X in self.held)
        n_features, n_rows = self.columns.shape
        return _State(np.zeros(n_features), np.zeros(n_rows), held, np.full(n_queries, 1 / n_queries), -1.0)

    def best(self, P: FloatArray, without: Collection[int]) -> int | None:
        """The weak ranker of the largest weighted value, of ties the first; None where none is above 0."""
        worth = self.E @ P
        worth[list(without)] = -1.0
        pick = int(np.argmax(worth >= worth.max() - TIE))
        return pick if worth[pick] > TIE else None

    def add(self, state: _State, pick: int, cumulative: bool) -> _State:
        """The state after one more round."""
        feature = pick % len(self.columns)
        value = float(self.E[pick] @ state.P)
        alpha = math.atanh(min(value, MOST_VALUE))  # as P adds up to 1
        signed = alpha if pick == feature else -alpha
        coef = state.coef.copy()
        coef[feature] += signed
        scores = state.scores + signed * self.columns[feature]
        held = tuple(s + signed * X[feature] for s, X in zip(state.held, self.held, strict=True))
        E = np.nan_to_num(_values(self.measure, self.rows, scores))
        P = state.P * np.exp(-alpha * E) if cumulative else np.exp(-E)
        return _State(coef, scores, held, P / P.sum(), float(E.mean()), value > MOST_VALUE)


def _values(measure: Measure, rows: Rows, scores: FloatArray) -> FloatArray:
    """The measure on every query; NaN where it is not defined."""
    values: FloatArray = query_values((measure,), rows.y, scores, rows.indptr)[0][0]
    return values
