"""RankBoost (Freund, Iyer, Schapire and Singer 2003) and smooth margins (Rudin and Schapire 2009)."""

import math
from dataclasses import dataclass

import numpy as np

from cleanrank.errors import invalid
from cleanrank.jit import query_chunks
from cleanrank.ragged import indptr_of, query_of_row
from cleanrank.rankers.classic import _rank_boost as kernels
from cleanrank.rankers.classic.base import ClassicRanker, Rows, Watch
from cleanrank.rankers.classic.models import StumpModel
from cleanrank.types import Array, FloatArray, IntArray, Progress
from cleanrank.validation import check_integer, one_of

BINS = ("quantile", "equal")
DIRECTIONS = ("both", "up")
MARGINS: dict[str, str] = {
    "none": "the step that lowers the exponential loss most",
    "smooth": "the step towards the largest smooth margin (Rudin and Schapire 2009)",
}
# Edges this close, as a share of all pair weights, are equal: the first feature and threshold is taken.
TIE = 1e-10
MOST_EDGE = 1.0 - 1e-6  # the step of a weak ranker without errors would be infinite
CHUNKS = 64


@dataclass(kw_only=True, eq=False, repr=False)
class RankBoost(ClassicRanker):
    """Boosted thresholds: each round adds a weighted 1[feature > threshold], chosen on pairs of documents.

    Pairs are those of different grades within a query, all with the same weight at first, or with the product
    of the weights of their rows. A round takes the threshold with the largest edge r, the weight of the pairs
    that it orders right minus that of those it orders wrong, as a share of all; its own weight is atanh(r).
    The weight of a pair is multiplied by exp(-(difference of scores)); it is a product over its documents, so
    a round costs a pass over the rows, not over the pairs. Training ends when no threshold has an edge, when
    one orders all pairs right, after ``n_estimators`` rounds, or by ``early_stopping_rounds``.

    Args:
        n_estimators: rounds at the most.
        directions: "both" also takes thresholds whose lower side is the better one, by a negative weight (the
            largest absolute r); "up" only those whose upper side is (the largest r), as RankLib does.
        max_bins: a feature has fewer thresholds than this; None: one at every value that occurs.
        bins: "quantile" puts as many of the different values of a feature into each bin, "equal" makes bins
            equally wide, as RankLib does (max_bins=10). Thresholds lie midway between neighbouring values.
        margin: "none", or "smooth": the weight is atanh(r) - atanh(g) with g = max(0, G) and the smooth
            margin G = -ln(sum over pairs of exp(-(difference of scores))) / (sum of absolute weights so far).
            G is above 0 only once all pairs are ordered right; on data with contradictions nothing differs.
        early_stopping_rounds: rounds without gain on validation data before it stops; 0 never stops and keeps
            the best number of rounds, None keeps all rounds.
        measure: what the number of rounds is chosen by. Ties are averaged, for a few thresholds leave many,
            and the order of the rows may tell the grades.
        scaling: of features, which thresholds do not need.
        random_state: not read; nothing is random.
        n_jobs: threads; results are the same for any number.

    Attributes:
        model_: the trained StumpModel.
        best_iteration_: rounds in use.
        feature_importances_: the absolute weights of each feature's thresholds, as shares of their sum.

    >>> import cleanrank as cr
    >>> data = cr.make_ranking(20, 5, docs_per_query=10, seed=0)
    >>> ranker = RankBoost(n_estimators=20).fit(data.X, data.y, qid=data.qid)
    >>> ranker.feature_importances_.shape
    (5,)
    """

    n_estimators: int = 300
    directions: str = "both"
    max_bins: int | None = 255
    bins: str = "quantile"
    margin: str = "none"
    early_stopping_rounds: int | None = 0
    measure: str = "map:ties=average"
    scaling: str = "none"
    random_state: int = 0
    n_jobs: int = 1

    @property
    def feature_importances_(self) -> FloatArray:
        """The absolute weights of each feature's thresholds, as shares of their sum."""
        shares: FloatArray = self._fitted().importances
        return shares

    def _train(self, rows: Rows, watch: Watch, progress: Progress | None) -> StumpModel:
        self._check()
        pairs = _Pairs.of(rows)
        candidates = _Candidates.of(pairs.X, self.max_bins, self.bins)
        both = self.directions == "both"
        held = [np.asfortranarray(X) for X in watch.sets]
        held_scores = [np.zeros(len(X)) for X in held]
        stumps: list[tuple[int, float, float]] = []
        size = 0.0  # the sum of the absolute weights
        for step in range(self.n_estimators):
            total, log_loss = pairs.update()
            feature, place, edge = candidates.best(pairs.pull, total, both)
            strength = abs(edge) if both else max(edge, 0.0)
            if stumps and strength <= TIE:
                break
            weight = math.atanh(min(strength, MOST_EDGE))
            if self.margin == "smooth" and size:
                weight -= math.atanh(min(max(-log_loss / size, 0.0), strength, MOST_EDGE))
            size += weight
            weight = math.copysign(weight, edge)
            threshold = float(candidates.thresholds[feature][place])
            stumps.append((feature, threshold, weight))
            kernels.add_above(pairs.scores, candidates.bins[feature], place, weight)
            for scores, X in zip(held_scores, held, strict=True):
                scores += weight * (X[:, feature] > threshold)
            watch.see(held_scores)
            if progress is not None:
                progress(step + 1, self.n_estimators)
            if watch.done or strength > MOST_EDGE:
                break
        features, thresholds, weights = (np.array(part) for part in zip(*stumps, strict=True))
        return self._stumps(features, thresholds, weights, watch)

    def _check(self) -> None:
        check_integer("n_estimators", self.n_estimators, least=1)
        one_of("directions", self.directions, DIRECTIONS)
        one_of("bins", self.bins, BINS)
        one_of("margin", self.margin, MARGINS)
        if self.max_bins is not None:
            check_integer("max_bins", self.max_bins, least=2)
        elif self.bins == "equal":
            remedy = "Give a number, or use bins='quantile'."
            raise invalid("max_bins", "must be a number with bins='equal'", "None", remedy=remedy)


@dataclass(frozen=True, eq=False)
class _Pairs:
    """All pairs of documents, by way of their scores and of the pull on each; see ``_rank_boost``."""

    X: FloatArray  # (N, F), of rows with a weight above 0: others are in no pair
    weights: FloatArray  # (N,)
    indptr: IntArray
    slot: IntArray  # (N,), the slot of every document: one grade of one query
    slots: IntArray  # (Q + 1,), where the slots of a query begin
    bounds: IntArray  # of chunks of queries
    scores: FloatArray  # (N,), so far
    pull: FloatArray  # (N,)
    buffers: tuple[FloatArray, ...]

    @classmethod
    def of(cls, rows: Rows) -> "_Pairs":
        X, y, indptr, query = rows.X, rows.y, rows.indptr, query_of_row(rows.indptr)
        weights = np.ones(len(y)) if rows.weights is None else rows.weights
        kept = weights > 0
        n_queries = len(indptr) - 1
        if not kept.all():
            X, y, query, weights = X[kept], y[kept], query[kept], weights[kept]
            indptr = indptr_of(np.bincount(query, minlength=n_queries))
        grades, code = np.unique(y, return_inverse=True)
        keys, slot = np.unique(query * len(grades) + code, return_inverse=True)
        slots = indptr_of(np.bincount(keys // len(grades), minlength=n_queries))
        if not (np.diff(slots) > 1).any():
            rule = "must leave two documents of different labels in at least one query"
            raise invalid("sample_weight", rule, "zeros for all of them", remedy="Give them weights above 0.")
        shapes = (4, len(keys)), n_queries, n_queries, (2, len(y))
        buffers = tuple(np.empty(shape) for shape in shapes)
        bounds = query_chunks(indptr, CHUNKS)
        return cls(X, weights, indptr, slot, slots, bounds, np.zeros(len(y)), np.empty(len(y)), buffers)

    def update(self) -> tuple[float, float]:
        """Renews the pulls; returns the sum of pair weights on their scale, and its logarithm without one."""
        (low, high, as_higher, as_lower), heaviest, totals, parts = self.buffers
        where = (self.slot, self.indptr, self.slots, self.bounds, low, high)
        kernels.slot_ranges(self.scores, *where, heaviest)
        top = float(heaviest.max())
        kernels.pulls(self.scores, self.weights, *where, top, as_higher, as_lower, parts, self.pull, totals)
        total = float(totals.sum())
        return total, top + math.log(total)


@dataclass(frozen=True, eq=False)
class _Candidates:
    """Candidate thresholds of every feature, and of every value the number of thresholds below it."""

    thresholds: list[FloatArray]  # per feature, ascending
    bins: Array  # (F, N)
    n_bins: IntArray  # (F,), one more than thresholds

    @classmethod
    def of(cls, X: FloatArray, max_bins: int | None, kind: str) -> "_Candidates":
        columns = np.ascontiguousarray(X.T)
        thresholds = [_thresholds(column, max_bins, kind) for column in columns]
        n_bins = np.array([len(each) + 1 for each in thresholds], dtype=np.int64)
        if n_bins.max(initial=1) == 1:
            rule = "must leave documents that differ in at least one column"
            raise invalid("sample_weight", rule, "zeros for others", remedy="Give them weights above 0.")
        bins = np.empty(columns.shape, dtype=np.min_scalar_type(int(n_bins.max()) - 1))
        for f, column in enumerate(columns):
            bins[f] = np.searchsorted(thresholds[f], column, side="left")
        return cls(thresholds, bins, n_bins)

    def best(self, pull: FloatArray, total: float, both: bool) -> tuple[int, int, float]:
        """Feature, place of the threshold and edge of the best weak ranker; of ties the first."""
        edges = np.empty(len(self.bins))
        kernels.best_edges(self.bins, self.n_bins, pull, both, edges)
        least = edges.max() - TIE * total
        feature = int(np.argmax(edges >= least))
        place, edge = kernels.first_edge(self.bins[feature], self.n_bins[feature], pull, both, least)
        return feature, place, edge / total


def _thresholds(column: FloatArray, max_bins: int | None, kind: str) -> FloatArray:
    """Thresholds of a feature, ascending, midway between neighbours among its values: rounding moves none."""
    values = np.unique(column)
    above = np.arange(1, len(values))  # the places of the first values above thresholds
    if kind == "equal" and max_bins is not None:
        inner = np.linspace(values[0], values[-1], max_bins + 1)[1:-1]
        above = np.unique(np.searchsorted(values, inner, side="right"))
        above = above[(above > 0) & (above < len(values))]
    elif max_bins is not None and len(values) > max_bins:
        above = np.arange(1, max_bins) * len(values) // max_bins
    middle: FloatArray = values[above - 1] + (values[above] - values[above - 1]) / 2
    return middle
