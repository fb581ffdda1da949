"""Models of the true grade given the judges' answers, fitted on gold rows and compared on rows left out.

Candidates: every judge that answered half of the gold rows or more, as it answers and recalibrated; stacking,
an ordinal regression on all such judges' answers; and Dawid and Skene's posterior, with the gold rows known,
recalibrated by the same regression. Each is cross-fitted over queries, so that its accuracy is that on rows
and queries it did not see.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from cleanrank.judges.answers import Answers
from cleanrank.judges.ordinal import cross_fit, fit_ordinal, fit_scaling, log_loss
from cleanrank.noise.agreement import judgements
from cleanrank.noise.annotators import dawid_skene
from cleanrank.types import FloatArray, IntArray

Predict: TypeAlias = Callable[[FloatArray], FloatArray]
FOLDS = 5
DRAWS = 100
COVERED = 0.5  # share of the gold rows from which on a judge has a column of its own
ONE_JUDGE = 1.0  # penalty of a regression on one judge's answers
DS_STEPS = 100
UNSURE = 1e-3  # the least probability that a model of independent errors may claim
CHUNK = 20_000
STREAM = 1513


@dataclass(frozen=True, eq=False)
class GoldRows:
    """Pairs whose true grade is known.

    Attributes:
        rows: places of the pairs, ascending.
        y: their grades.
        weights: one over the probability with which a pair was drawn, 1 on average.
        group: what is drawn together: queries, or the rows themselves with fewer than FOLDS queries.
        fold: part of the cross-validation.
        n_grades: C.
        by_query: whether groups are queries.
    """

    rows: IntArray
    y: IntArray
    weights: FloatArray
    group: IntArray
    fold: IntArray
    n_grades: int
    by_query: bool

    def mean(self, values: FloatArray) -> tuple[float, float]:
        """The weighted mean over the rows, and its standard error over groups."""
        share = self.weights / self.weights.sum()
        mean = float((share * values).sum())
        sums = np.bincount(self.group, share * (values - mean))
        return mean, float(np.sqrt((sums**2).sum() * len(sums) / max(len(sums) - 1, 1)))


@dataclass(frozen=True, eq=False)
class Candidate:
    """A way to get the probabilities of the grades.

    Attributes:
        name: what it is called: *stacking*, *dawid-skene*, or a judge's name.
        kind: *stacking*, *dawid-skene*, *recalibrated* or *as answered*.
        columns: (N, P) of all pairs.
        held: (n, C) probabilities of the gold rows, from fits that did not see their fold.
        fit: weights of the gold rows -> a function from columns to probabilities.
        accuracy: of ``held``, on the gold rows.
    """

    name: str
    kind: str
    columns: FloatArray
    held: FloatArray
    fit: Callable[[FloatArray], Predict]
    accuracy: float

    @property
    def is_single(self) -> bool:
        """Whether it reads one judge alone."""
        return self.kind in ("recalibrated", "as answered")


def gold_rows(rows: IntArray, y: IntArray, weights: FloatArray, query: IntArray, seed: int) -> GoldRows:
    """Gold rows in groups and folds; the order in which they come does not matter."""
    order = np.argsort(rows)
    rows, y, weights, query = rows[order], y[order], weights[order], query[rows[order]]
    queries, group = np.unique(query, return_inverse=True)
    by_query = len(queries) >= FOLDS
    group = group if by_query else np.arange(len(rows))
    places = np.random.default_rng([seed, STREAM]).permutation(int(group.max()) + 1)
    return GoldRows(
        rows, y, weights / weights.mean(), group, places[group] % FOLDS, int(y.max()) + 1, by_query
    )


def candidates(answers: Answers, gold: GoldRows, common_scale: bool, seed: int) -> list[Candidate]:
    """All candidates that the answers allow."""
    on_gold = np.isin(answers.pair, gold.rows)
    counts = np.bincount(answers.judge[on_gold], minlength=len(answers.judges))
    own = np.flatnonzero(counts >= COVERED * len(gold.rows))
    values = np.full((len(answers.qid), len(own)), np.nan)
    kept = np.isin(answers.judge, own)
    values[answers.pair[kept], np.searchsorted(own, answers.judge[kept])] = answers.value[kept]
    found = []
    for place, name in enumerate(answers.judges[a] for a in own):
        column = values[:, [place]]
        found.append(_as_answered(name, column, gold))
        found.append(_regression(name, "recalibrated", standardised(column), gold, penalties=(ONE_JUDGE,)))
    columns = standardised(values)
    if common_scale:
        posterior = _dawid_skene(answers, gold, seed)
        found.append(_scaled("dawid-skene", posterior, gold))
        if len(own) < len(answers.judges):
            at_least = np.cumsum(posterior[:, ::-1], axis=1)[:, -2::-1]
            columns = np.hstack([columns, standardised(at_least)])
    if len(own) > 1:
        found.append(_regression("stacking", "stacking", columns, gold))
    return found


def choose(found: Sequence[Candidate], gold: GoldRows) -> tuple[Candidate, Candidate | None]:
    """The candidate to use, and the best single judge.

    That judge is used where it beats the best combination both in accuracy, by more than a standard error of
    the difference, and in the logarithmic loss: the best of many on the same rows looks better than it is.
    """

    def loss(each: Candidate) -> float:
        return gold.mean(log_loss(each.held, gold.y))[0]

    def order(each: Candidate) -> tuple[float, float]:
        return each.accuracy, -loss(each)

    single = max((each for each in found if each.is_single), key=order, default=None)
    combined = max((each for each in found if not each.is_single), key=order, default=None)
    if single is None or combined is None:
        best = combined or single
        assert best is not None
        return best, single
    right = [(each.held.argmax(axis=1) == gold.y).astype(np.float64) for each in (single, combined)]
    difference, error = gold.mean(right[0] - right[1])
    return (single if difference > error and loss(single) < loss(combined) else combined), single


def with_intervals(
    best: Candidate, gold: GoldRows, level: float, seed: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(N, C) probabilities, and (2, N, C) and (2, N) ends of their and of the expected grade's intervals.

    By the Bayesian bootstrap: every group of gold rows gets an exponential weight, and the model is fitted
    anew.
    """
    rng = np.random.default_rng([seed, STREAM, 1])
    draws = rng.exponential(size=(DRAWS, int(gold.group.max()) + 1))
    models = [best.fit(gold.weights * each[gold.group]) for each in draws]
    predict = best.fit(gold.weights)
    N, C = len(best.columns), gold.n_grades
    p, ends, expected = np.empty((N, C)), np.empty((2, N, C)), np.empty((2, N))
    tails = [(1 - level) / 2, (1 + level) / 2]
    for start in range(0, N, CHUNK):
        part = slice(start, start + CHUNK)
        columns = best.columns[part]
        p[part] = predict(columns)
        drawn = np.stack([model(columns) for model in models])
        ends[:, part] = np.quantile(drawn, tails, axis=0)
        expected[:, part] = np.quantile((drawn * np.arange(C)).sum(axis=2), tails, axis=0)
    return p, ends, expected


def standardised(values: FloatArray) -> FloatArray:
    """Columns of mean 0 and deviation 1, 0 where there is no answer; one more per column says where not."""
    seen = ~np.isnan(values)
    count = np.maximum(seen.sum(axis=0), 1)
    centred = np.where(seen, values - np.where(seen, values, 0.0).sum(axis=0) / count, 0.0)
    spread = np.sqrt((centred**2).sum(axis=0) / count)
    share = seen.mean(axis=0)
    columns: FloatArray = np.hstack(
        [centred / np.where(spread > 0, spread, 1.0), (share - seen)[:, share < 1]]
    )
    return columns


def _candidate(
    name: str,
    kind: str,
    columns: FloatArray,
    held: FloatArray,
    gold: GoldRows,
    fit: Callable[[FloatArray], Predict],
) -> Candidate:
    accuracy, _ = gold.mean((held.argmax(axis=1) == gold.y).astype(np.float64))
    return Candidate(name, kind, columns, held, fit, min(accuracy, 1.0))


def _regression(
    name: str, kind: str, columns: FloatArray, gold: GoldRows, penalties: Sequence[float] | None = None
) -> Candidate:
    X = columns[gold.rows]
    options = {} if penalties is None else {"penalties": penalties}
    held, penalty = cross_fit(X, gold.y, gold.n_grades, gold.fold, gold.weights, **options)
    start = fit_ordinal(X, gold.y, gold.n_grades, penalty, gold.weights)

    def fit(weights: FloatArray) -> Predict:
        return fit_ordinal(X, gold.y, gold.n_grades, penalty, weights, start).predict

    return _candidate(name, kind, columns, held, gold, fit)


def _as_answered(name: str, column: FloatArray, gold: GoldRows) -> Candidate:
    """A judge's own answers: right with the share of gold rows on which they are, else any grade."""
    X = column[gold.rows]

    def fit(weights: FloatArray) -> Predict:
        total = weights.sum()
        right = (weights @ (X[:, 0] == gold.y) + 1) / (total + 2)
        shares = (np.bincount(gold.y, weights, gold.n_grades) + 0.5) / (total + 0.5 * gold.n_grades)

        def predict(columns: FloatArray) -> FloatArray:
            same = columns == np.arange(gold.n_grades)
            answered = right * same + (1 - right) * shares
            p: FloatArray = np.where(same.any(axis=1, keepdims=True), answered, shares)
            return p

        return predict

    return _candidate(name, "as answered", column, _held_out(X, gold, fit), gold, fit)


def _scaled(name: str, probabilities: FloatArray, gold: GoldRows) -> Candidate:
    """Probabilities that are there already, recalibrated; grades that no gold row has get none."""
    seen, code = np.unique(gold.y, return_inverse=True)
    columns = np.log(probabilities[:, seen])
    X = columns[gold.rows]

    def fit(weights: FloatArray) -> Predict:
        model = fit_scaling(X, code, weights=weights)

        def predict(columns: FloatArray) -> FloatArray:
            p = np.zeros((len(columns), gold.n_grades))
            p[:, seen] = model.predict(columns)
            return p

        return predict

    return _candidate(name, name, columns, _held_out(X, gold, fit), gold, fit)


def _held_out(X: FloatArray, gold: GoldRows, fit: Callable[[FloatArray], Predict]) -> FloatArray:
    """(n, C) probabilities of the gold rows from fits in which their fold has no weight."""
    held = np.zeros((len(gold.y), gold.n_grades))
    for part in np.unique(gold.fold):
        out = gold.fold == part
        held[out] = fit(gold.weights * ~out)(X[out])
    return held


def _dawid_skene(answers: Answers, gold: GoldRows, seed: int) -> FloatArray:
    """(N, C) probabilities of the true grades by Dawid and Skene's model.

    A gold row counts as known except in the fit that gives its own probabilities.
    """
    C = max(int(answers.value.max()) + 1, gold.n_grades)
    table = judgements(
        item=answers.pair, annotator=answers.judge, grade=answers.value.astype(np.int64), n_grades=C
    )
    known = np.full(len(answers.qid), -1)
    known[gold.rows] = gold.y

    def posterior(true_grades: IntArray) -> FloatArray:
        return dawid_skene(table, known=true_grades, starts=1, seed=seed, iterations=DS_STEPS).posterior

    p = posterior(known)
    for part in np.unique(gold.fold):
        out = gold.rows[gold.fold == part]
        rest = known.copy()
        rest[out] = -1
        p[out] = posterior(rest)[out]
    kept = np.maximum(p[:, : gold.n_grades], UNSURE)  # grades that gold rows have
    shares: FloatArray = kept / kept.sum(axis=1, keepdims=True)
    return shares
