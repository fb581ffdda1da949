"""Measures of systems from a judge's labels on all pairs and gold labels on a sample of the pairs.

The pairs that the judge labelled are the *frame*; gold labels were given to a sample of it, pair d with
probability pi_d. A model of the true grade given what is known of every pair (the judge's grade, where the
systems rank it, its query) is calibrated on the sample, and sampled pairs correct what the model gets wrong:

    sum over the frame of f(model_d) + sum over the sample of (f(y_d) - f(model_d)) / pi_d

for a measure that is a sum over documents (DCG, precision: f is rank weight x gain). This *difference
estimator* (Cassel, Sarndal and Wretman 1976) is unbiased whatever the model is worth; a good model makes the
second sum small. Residuals are leave-one-out, so that fitting the sample does not shrink them.

NDCG and recall divide by what the grades of the query allow. For them grades that nobody gave are drawn from
the model; h is the value of a query under such draws, sampled pairs holding their gold grades, and

    E h + sum over the sample of (1 / pi_d - 1) (h - E[h with the grade of d drawn from the model as well])

is the estimate. For sums over documents both forms are the same. What it leaves out is of second order:
products of the errors of two documents of a query.

Symbols: F pairs in the frame, n of them sampled; Q queries; S systems; C grades; M draws.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cleanrank.errors import invalid
from cleanrank.metrics.measure import Measure, discount
from cleanrank.ragged import query_of_row
from cleanrank.types import FloatArray, IntArray

SUMS = ("dcg", "precision")
RATIOS = ("ndcg", "recall")
DRAWS = 64
STREAM = 9151
# Prior variances of a query's leniency and of its slope in the judge's grade, in units of the residual
# variance; cross-validation chooses.
VARIANCES = ((0.0, 0.0), (0.1, 0.0), (0.25, 0.0), (0.25, 0.1), (0.5, 0.0), (0.5, 0.25), (1.0, 0.5))
LOOSE = 1e3  # prior variance of coefficients that are hardly shrunk
PRIOR_DF = 10.0
TINY = 1e-300


@dataclass(frozen=True, eq=False)
class Frame:
    """What is known of every pair of the frame; rows of a query are contiguous.

    Attributes:
        indptr: (Q + 1,).
        judge: (F,) grades of the judge.
        gold: (F,) gold grades, -1 where there is none.
        probability: (F,) with which a pair was drawn to be judged.
        weights: (S, F) what a gain counts at the rank at which a system puts the pair; 0 beyond the cut-off.
        prominence: (F,) the mean over systems of 1 / rank.
        n_grades: C.
    """

    indptr: IntArray
    judge: IntArray
    gold: IntArray
    probability: FloatArray
    weights: FloatArray
    prominence: FloatArray
    n_grades: int

    @property
    def sample(self) -> IntArray:
        """Rows with gold grades."""
        return np.flatnonzero(self.gold >= 0)

    @property
    def query(self) -> IntArray:
        """(F,) the place of every row's query."""
        return query_of_row(self.indptr)

    @property
    def reached(self) -> FloatArray:
        """(n, C): 1 where the gold grade of a sampled pair is at least l."""
        return np.greater_equal.outer(self.gold[self.sample], np.arange(self.n_grades)).astype(np.float64)


@dataclass(frozen=True, eq=False)
class Parts:
    """Values of queries under the model, and what the sample says is wrong with them.

    Attributes:
        by_query: (S, Q).
        corrections: (S, n), of the value of the query of a sampled pair.
        query: (n,) of the sampled pairs.
        probability: (n,).
        weights: (S, F) of the frame, where ``expected`` is known.
        expected: (F,) what a pair adds to the variance at weight 1, according to the model; None where the
            measure is a ratio or the probabilities of pairs that were not drawn are not known.
    """

    by_query: FloatArray
    corrections: FloatArray
    query: IntArray
    probability: FloatArray
    weights: FloatArray | None = None
    expected: FloatArray | None = None

    @cached_property
    def corrected(self) -> FloatArray:
        """(S, Q): estimates of the queries' values; noisy one by one, unbiased in their mean."""
        added = self.corrections * (1 / self.probability - 1)
        places = [np.bincount(self.query, row, minlength=self.by_query.shape[1]) for row in added]
        return self.by_query + np.array(places).reshape(self.by_query.shape)

    @cached_property
    def spread(self) -> FloatArray:
        """(S, n): their squares sum to the variance of the sum over queries, for these queries."""
        spread: FloatArray = self.corrections * np.sqrt(1 - self.probability) / self.probability
        return spread

    def variances(self, sides: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Variances of linear combinations of the systems' means, and their degrees of freedom.

        Few sampled pairs may lie where a system ranks high. What the model expects of all pairs counts as
        much as PRIOR_DF degrees of freedom beside them.

        Args:
            sides: (K, S), how each system counts in each combination.
        """
        n = self.by_query.shape[1]
        squares = (sides @ self.spread / n) ** 2
        variance = squares.sum(axis=1)
        df = 2 * variance**2 / np.maximum((squares**2).sum(axis=1), TINY)
        if self.weights is not None and self.expected is not None:
            expected = (sides @ self.weights) ** 2 @ self.expected / n**2
            variance = (df * variance + PRIOR_DF * expected) / (df + PRIOR_DF)
            df = df + PRIOR_DF
        return variance, np.maximum(df, 1.0)


def check_measure(measure: Measure) -> None:
    """Raises where a measure cannot be estimated from sampled documents."""
    if measure.name not in SUMS + RATIOS:
        remedy = "Judge whole queries: any measure can be estimated from them."
        rule = f"must be one of {', '.join(SUMS + RATIOS)} where gold labels are a sample of documents"
        raise invalid("measure", rule, str(measure), remedy=remedy)
    if measure.ties not in ("stable", "doc_id"):
        rule = "must break ties by row or document id where gold labels are a sample of documents"
        raise invalid("measure", rule, str(measure), remedy=f"Use {measure.name}:ties=stable.")
    if measure.empty == "skip":
        rule = "must give queries without relevant documents a value where gold labels are a sample"
        raise invalid("measure", rule, str(measure), remedy="Use the convention trec or lightgbm.")


def rank_weights(measure: Measure, ranks: IntArray, lengths: IntArray) -> FloatArray:
    """What a gain counts at every rank (from 1; 0: not retrieved); ``lengths`` of the rows' queries."""
    depth = max(int(ranks.max(initial=0)), 1)
    by_rank = np.zeros(depth + 1)
    if measure.discount is not None:
        by_rank[1:] = discount(measure.discount, depth)
    else:
        by_rank[1:] = 1.0 / (measure.cutoff or 1) if measure.name == "precision" else 1.0
    if measure.cutoff is not None:
        by_rank[measure.cutoff + 1 :] = 0.0
    weights: FloatArray = by_rank[ranks]
    if measure.name == "precision" and measure.cutoff is None:
        weights = weights / lengths
    if measure.short == "zero" and measure.cutoff is not None:
        weights = np.where(lengths < measure.cutoff, 0.0, weights)
    return weights


def parts(frame: Frame, measure: Measure, *, use_judge: bool = True, seed: int = 0) -> Parts:
    """The parts of the estimates of all systems.

    Args:
        frame: pairs, labels, weights.
        measure: one that ``check_measure`` lets through.
        use_judge: False for an estimate from gold labels alone: the model is a constant for sums over
            documents (the ratio estimator of Hajek), and knows ranks and queries for ratios.
        seed: of the draws.
    """
    estimate = _sums if measure.name in SUMS else _ratios
    if use_judge:
        models = [calibrated(frame)] * len(frame.weights)
    elif measure.name in SUMS:
        models = [_constant(frame, weight) for weight in frame.weights]
    else:
        models = [calibrated(replace(frame, judge=np.zeros_like(frame.judge)))] * len(frame.weights)
    by_query, corrections = estimate(frame, measure, models, seed)
    rows = frame.sample
    result = Parts(by_query, corrections, frame.query[rows], frame.probability[rows])
    if measure.name in RATIOS or not np.isfinite(frame.probability).all():
        return result
    model = models[0] if use_judge else _constant(frame, frame.weights.mean(axis=0))
    return replace(result, weights=frame.weights, expected=_expected_variance(frame, measure, *model))


def _expected_variance(frame: Frame, measure: Measure, above: FloatArray, held_out: FloatArray) -> FloatArray:
    """What each pair adds to the variance at weight 1, by the spread of its grades under the model.

    The spread is scaled up where residuals of the sample are larger than the model says.
    """
    rows, values = frame.sample, grade_values(measure, frame.n_grades)
    steps, squared_steps = (np.diff(each, prepend=0.0) for each in (values, values**2))
    likely = _probabilities(above)
    spread = np.maximum(likely @ squared_steps - (likely @ steps) ** 2, 0.0)
    residuals = values[frame.gold[rows]] - held_out @ steps
    scale = max(1.0, float((residuals**2).sum() / max(spread[rows].sum(), TINY)))
    share: FloatArray = spread * scale * (1 - frame.probability) / frame.probability
    return share


def grade_values(measure: Measure, n_grades: int) -> FloatArray:
    """What a document of each grade counts: its gain, or 1 if it is relevant."""
    grades = np.arange(n_grades, dtype=np.float64)
    if measure.gain is not None:
        return np.exp2(grades) - 1 if measure.gain == "exp" else grades
    return (grades >= (measure.relevant or 1)).astype(np.float64)


def calibrated(frame: Frame) -> tuple[FloatArray, FloatArray]:
    """P(grade >= l) of every pair (F, C), and of the sampled ones by a model without them (n, C).

    Ridge regressions on the judge's grade, the log of the prominence, and a leniency and slope of every query
    that was sampled, whose variances are those with the least leave-one-out error.
    """
    rows, query = frame.sample, frame.query
    height = np.log(frame.prominence + 1e-3)
    height = (height - height.mean()) / max(float(height.std()), 1e-9)
    slope = frame.judge - frame.judge[rows].mean()
    fixed = np.column_stack((np.eye(frame.n_grades)[frame.judge], height))
    sampled, place = np.unique(query[rows], return_inverse=True)
    own = np.eye(len(sampled))[place]
    X = np.hstack((fixed[rows], own, own * slope[rows, None]))
    sizes = fixed.shape[1], len(sampled), len(sampled)
    reached = frame.reached
    fits = [_ridge(X, reached, np.repeat((LOOSE, *both), sizes)) for both in VARIANCES]
    coefficients, held_out = min(fits, key=lambda fit: float(((reached - fit[1]) ** 2).sum()))
    common, leniency, steepness = np.split(coefficients, np.cumsum(sizes)[:-1])
    by_query = np.zeros((2, len(frame.indptr) - 1, frame.n_grades))
    by_query[:, sampled] = leniency, steepness
    return fixed @ common + by_query[0, query] + by_query[1, query] * slope[:, None], held_out


def _ridge(X: FloatArray, Y: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Coefficients with a prior variance per column of X, and leave-one-out predictions."""
    used = variance > 0
    A = X[:, used]
    if A.shape[1] <= len(A):
        inverse = np.linalg.inv(A.T @ A + np.diag(1 / variance[used]))
        solution = inverse @ (A.T @ Y)
        leverage = ((A @ inverse) * A).sum(axis=1)
    else:
        scaled = A * variance[used]
        kernel = scaled @ A.T
        weights = np.linalg.inv(kernel + np.eye(len(A)))
        solution = scaled.T @ (weights @ Y)
        leverage = (kernel * weights).sum(axis=1)  # both symmetric
    coefficients = np.zeros((X.shape[1], Y.shape[1]))
    coefficients[used] = solution
    return coefficients, Y - (Y - A @ solution) / (1 - leverage)[:, None]


def _constant(frame: Frame, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The shares of grades among the sampled pairs as a system weighs them, for all pairs (Hajek 1971)."""
    rows = frame.sample
    sampled = weight[rows] / frame.probability[rows]
    sampled = sampled if sampled.any() else 1 / frame.probability[rows]
    share = sampled @ frame.reached / sampled.sum()
    return np.tile(share, (len(frame.gold), 1)), np.tile(share, (len(rows), 1))


Models = list[tuple[FloatArray, FloatArray]]


def _sums(frame: Frame, measure: Measure, models: Models, seed: int) -> tuple[FloatArray, FloatArray]:
    """Measures that are sums over documents: exact."""
    rows, query, values = frame.sample, frame.query, grade_values(measure, frame.n_grades)
    steps, truth = np.diff(values, prepend=0.0), values[frame.gold[frame.sample]]
    by_query, corrections = [], []
    for weight, (above, held_out) in zip(frame.weights, models, strict=True):
        expected = above @ steps
        expected[rows] = truth
        by_query.append(np.bincount(query, weight * expected, minlength=len(frame.indptr) - 1))
        corrections.append(weight[rows] * (truth - held_out @ steps))
    return np.array(by_query), np.array(corrections)


def _ratios(frame: Frame, measure: Measure, models: Models, seed: int) -> tuple[FloatArray, FloatArray]:
    """Measures that divide by what the grades of the query allow: means over drawn grades."""
    rows, query, Q, C = frame.sample, frame.query, len(frame.indptr) - 1, frame.n_grades
    truth, values = frame.gold[rows], grade_values(measure, C)
    steps = np.diff(values, prepend=0.0)[1:]
    best = _best(measure, int(np.diff(frame.indptr).max()))
    empty = 1.0 if measure.empty == "one" else 0.0
    uniform = np.random.default_rng([seed, STREAM]).random((DRAWS, len(query)))
    by_query, corrections, drawn_by = [], [], None
    for weight, model in zip(frame.weights, models, strict=True):
        if drawn_by is not model:  # all systems share the model of the judge
            drawn_by = model
            above, held_out = (_probabilities(each) for each in model)
            drawn = (uniform[:, :, None] < above[None, :, 1:]).sum(axis=2)
            drawn[:, rows] = truth
            at_least = np.empty((DRAWS, Q, C - 1), dtype=np.int64)
            for m, grades in enumerate(drawn):
                for l in range(1, C):
                    at_least[m, :, l - 1] = np.bincount(query, grades >= l, minlength=Q)
            allowed = best[at_least] @ steps
            others = at_least[:, query[rows]] - (truth[:, None] >= np.arange(1, C))
            changed = others[:, :, None, :] + np.greater_equal.outer(np.arange(C), np.arange(1, C))
            allowed_if = best[changed] @ steps  # (M, n, C): with the grade of a sampled pair set to l
            shares = -np.diff(held_out, axis=1, append=0.0)
        used = np.flatnonzero(weight)
        gained = values[drawn[:, used]] * weight[used]
        place = np.arange(DRAWS)[:, None] * Q + query[used]
        sums = np.bincount(place.ravel(), gained.ravel(), minlength=DRAWS * Q)
        total = sums.astype(np.float64).reshape(DRAWS, Q)
        value = _ratio(total, allowed, empty)
        rest = total[:, query[rows]] - weight[rows] * values[truth]
        if_grade = _ratio(rest[:, :, None] + weight[rows, None] * values, allowed_if, empty).mean(axis=0)
        by_query.append(value.mean(axis=0))
        corrections.append(if_grade[np.arange(len(rows)), truth] - (shares * if_grade).sum(axis=1))
    return np.array(by_query), np.array(corrections)


def _best(measure: Measure, most: int) -> FloatArray:
    """What n documents of one gain unit can reach at best, for n = 0..most."""
    if measure.name == "recall":
        return np.arange(most + 1, dtype=np.float64)
    assert measure.discount is not None
    reached = np.concatenate(([0.0], np.cumsum(discount(measure.discount, most))))
    return reached if measure.cutoff is None else reached[np.minimum(np.arange(most + 1), measure.cutoff)]


def _probabilities(above: FloatArray) -> FloatArray:
    """P(grade >= l) within [0, 1] and not rising in l."""
    falling: FloatArray = np.minimum.accumulate(np.clip(above, 0.0, 1.0), axis=1)
    falling[:, 0] = 1.0
    return falling


def _ratio(total: FloatArray, allowed: FloatArray, empty: float) -> FloatArray:
    return np.where(allowed > 0, total / np.where(allowed > 0, allowed, 1.0), empty)
