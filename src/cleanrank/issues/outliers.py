"""SOUR: documents that the models of a training run keep ranking where their label does not belong.

A ranking orders a query's n documents by descending score, ties by row; k is the cut-off, clipped to n. A
document is relevant when its grade exceeds ``highest_negative``. NEG outliers are non-relevant documents at
ranks <= k, POS outliers relevant ones at ranks > k, with a witness on the other side:

    rule         NEG: some relevant document ranks    POS: some non-relevant document ranks
    paper        below k                              within the top k
    reference    below the document                   above the document

The model with i trees ranks every query. With s = ``start`` and e = ``end`` the models with s+1, ..., e trees
are looked at, and *consistent* outliers are those of every one of them, or of a share ``min_frequency`` of
them (Marcuzzi et al. 2022). The detector is an observer: whoever trains calls it with (trees, scores, order).
It keeps one uint16 a document, however many trees there are.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.issues.table import BoolArray, LabelIssues
from cleanrank.jit import kernel, prange, query_chunks, threads
from cleanrank.ragged import rank_order
from cleanrank.types import Array, FloatArray, IntArray, RankingData
from cleanrank.validation import check_integer, check_number, one_of

COUNT, STREAK, LEAD = 0, 1, 2
NEG, POS = 1, 2
KINDS: dict[str, int] = {"neg": NEG, "pos": POS, "all": NEG + POS}
KEEPS: dict[str, int] = {"count": COUNT, "streak": STREAK, "lead": LEAD}
PIECES = 64
# Beyond this cut-off, keeping the best k by insertion costs more than a sort.
INSERTION = 64
MOST = int(np.iinfo(np.uint16).max)


@dataclass(frozen=True)
class Window:
    """What is looked for, and where.

    Attributes:
        cutoff: k, the cut-off of the measure.
        start: s; models with s+1 trees and more are looked at.
        end: e, the trees of the last model looked at.
        kind: "neg", "pos" or "all".
        rule: "paper" or "reference", see the head of this module.
        min_frequency: share of the models that must flag a document; 1 means all (SOUR), less is p-SOUR.
        include_f0: with start 0, look at the model without trees too, which ranks in the order of the rows.
        highest_negative: the highest grade that counts as not relevant.
    """

    cutoff: int = 10
    start: int = 0
    end: int = 1000
    kind: str = "neg"
    rule: str = "paper"
    min_frequency: float = 1.0
    include_f0: bool = False
    highest_negative: int = 0

    def __post_init__(self) -> None:
        one_of("kind of outlier", self.kind, KINDS)
        one_of("rule", self.rule, ("paper", "reference"))
        check_integer("cutoff", self.cutoff, least=1)
        check_integer("highest_negative", self.highest_negative, least=0)
        check_integer("start", self.start)
        check_integer("end", self.end)
        check_number("min_frequency", self.min_frequency, above=0, most=1)
        if not 0 <= self.start < self.end:
            trees = f"{self.start} and {self.end}"
            raise invalid("start and end", "must satisfy 0 <= start < end (trees)", trees)
        if self.end - self.first + 1 > MOST:
            raise invalid("window", f"must hold at most {MOST:,} models, to fit a 16-bit counter", self.end)

    @property
    def first(self) -> int:
        """Trees of the first model looked at."""
        return 0 if self.include_f0 and self.start == 0 else self.start + 1

    def holds(self, trees: int) -> bool:
        """Whether the model with that many trees is looked at."""
        return self.first <= trees <= self.end


class SOUR:
    """Counts outliers while somebody ranks; see the module for the definition.

    Args:
        y: grades, in the order of the scores to come.
        indptr: row offsets of the queries.
        window: what is looked for, and where.
        keep: "count" counts flags; "streak" the flags without a break up to now, which answers for every
            start at once; "lead" those from the first model on, which answers for every end at once.
        evidence: "rank", or "score" to weigh flags by how far the scores disagree with the label.
        n_jobs: threads where nobody has sorted; None means all.

    >>> y, scores = np.array([0, 1, 0, 0, 0, 1]), np.arange(6, 0, -1.0)
    >>> detector = SOUR(y, np.array([0, 6]), Window(cutoff=4, end=2, kind="all"))
    >>> for trees in (1, 2):
    ...     detector(trees, scores)
    >>> detector.outliers().nonzero()[0].tolist()
    [0, 2, 3, 5]
    """

    def __init__(
        self,
        y: npt.ArrayLike,
        indptr: IntArray,
        window: Window | None = None,
        *,
        keep: str = "count",
        evidence: str = "rank",
        n_jobs: int | None = None,
    ) -> None:
        self.window = Window() if window is None else window
        self.y, self.indptr = _checked_rows(y, np.asarray(indptr, dtype=np.int64))
        self.keep = one_of("way of counting", keep, KEEPS)
        self.evidence = one_of("evidence", evidence, ("rank", "score"))
        self.n_jobs = n_jobs
        self.counts = np.zeros(len(self.y), dtype=np.uint16)
        self.weighed = np.zeros(len(self.y) if evidence == "score" else 0, dtype=np.float32)
        self.seen, self.last = 0, -1
        relevant_before = np.concatenate(([0], np.cumsum(self.y > self.window.highest_negative)))
        self._relevant = np.diff(relevant_before[self.indptr])
        self._bounds = query_chunks(self.indptr, min(PIECES, max(1, len(self.indptr) - 1)))

    @classmethod
    def of(cls, data: RankingData, window: Window | None = None, **options: Any) -> Self:
        """A detector for a data set."""
        return cls(data.y, data.indptr, window, **options)

    def __call__(self, trees: int, scores: Array, order: Array | None = None) -> None:
        """Sees the ranking of a model of so many trees (or epochs); one seen or outside is passed over.

        ``order`` holds per query the places (from 0) of its documents, best first, if that is known already.
        """
        if not self.window.holds(trees) or trees <= self.last:
            return
        if np.shape(scores) != self.y.shape:
            rule = f"must have one value per row ({len(self.y)})"
            raise invalid("scores", rule, f"shape {np.shape(scores)}")
        if order is not None and len(order) != len(self.y):
            raise invalid("order", f"must have one place per row ({len(self.y)})", len(order))
        window = self.window
        ranked = _read_only(np.ascontiguousarray(scores, dtype=np.float64))
        places = _read_only(np.ascontiguousarray(() if order is None else order, dtype=np.int32))
        # With the order at hand counting takes about a nanosecond a document; waiting for threads, longer.
        with threads(self.n_jobs if order is None else 1):
            _observe(
                ranked, places, self.y, self.indptr, self._bounds, self._relevant, window.highest_negative,
                window.cutoff, window.rule == "paper", KINDS[window.kind], KEEPS[self.keep], self.seen,
                self.counts, self.weighed,
            )  # fmt: skip
        self.seen += 1
        self.last = trees

    def part(self, first: int, last: int) -> Self:
        """A detector for the queries first, ..., last - 1 alone, which has seen nothing."""
        indptr = self.indptr[first : last + 1]
        return type(self)(
            self.y[indptr[0] : indptr[-1]], indptr - indptr[0], self.window,
            keep=self.keep, evidence=self.evidence, n_jobs=self.n_jobs,
        )  # fmt: skip

    def watch(self, rankings: Iterable[tuple[int, Array]]) -> Self:
        """Sees (trees or epochs, scores) in turn: prefixes of a saved model, epochs of a network."""
        for trees, scores in rankings:
            if not np.isfinite(scores).all():
                raise invalid("scores", "must be finite", "nan or infinite", at=f"ranking {trees}")
            self(trees, scores)
        return self

    def take(self, rows: BoolArray | slice, other: "SOUR") -> None:
        """Takes over what another detector saw of some of the rows."""
        self.counts[rows] = other.counts
        if self.evidence == "score":
            self.weighed[rows] = other.weighed
        self.seen, self.last = other.seen, other.last

    def outliers(
        self, *, start: int | None = None, end: int | None = None, kind: str | None = None
    ) -> BoolArray:
        """The consistent outliers, of one kind or all.

        Another start than the window's needs keep="streak", another end keep="lead".
        """
        self._need_something()
        needed = self.needed
        if start is not None and start != self.window.start:
            self._need(start, "start", "streak")
            needed = self.last - start
        if end is not None and end != self.window.end:
            self._need(end, "end", "lead")
            needed = min(end, self.last) - self.window.first + 1
        if needed < 1:
            raise invalid("window", "must hold at least one model", f"start {start}, end {end}")
        return (self.counts >= needed) & self.of_kind(self.window.kind if kind is None else kind)

    @property
    def needed(self) -> int:
        """Flags that make a document an outlier: floor(p n) of n models, at least 1."""
        share = self.window.min_frequency if self.keep == "count" else 1.0
        return max(1, math.floor(share * self.seen + 1e-9))

    @property
    def frequency(self) -> FloatArray:
        """The share of the models that flagged each document."""
        self._need_something()
        return np.asarray(self.counts / self.seen)

    @property
    def doubt(self) -> FloatArray:
        """Between 0 and 1: the share of models that flagged a document, or their mean evidence."""
        self._need_something()
        if self.evidence == "score":
            return np.minimum(self.weighed.astype(np.float64) / self.seen, 1.0)
        return self.frequency

    def of_kind(self, kind: str) -> BoolArray:
        """The documents that could be outliers of that kind, by their label."""
        return labels_of_kind(self.y, kind, self.window.highest_negative)

    def table(
        self, data: RankingData, scores: Array | None = None, issues: BoolArray | None = None
    ) -> LabelIssues:
        """The doubts of the rows that were watched, with ``outliers()`` or ``issues`` as issues.

        With the scores of the last model an issue's suggested grade is the one that the query's own grades,
        sorted, have at its rank; without them it is the lowest relevant grade, or 0.
        """
        if not np.array_equal(data.y, self.y) or not np.array_equal(data.indptr, self.indptr):
            raise invalid("data", f"must be the {len(self.y):,} rows that were watched", repr(data))
        issues = self.outliers() if issues is None else issues
        weighed = {"sour_evidence": self.doubt} if self.evidence == "score" else {}
        return LabelIssues.of(
            data,
            doubt=self.doubt,
            is_label_issue=issues,
            suggested_label=suggest(data, issues, self.window.highest_negative, scores),
            reasons={**weighed, "sour": self.frequency},
        )

    def _need_something(self) -> None:
        if self.seen == 0:
            rule = f"must have seen a model with {self.window.first} to {self.window.end} trees"
            raise invalid("the detector", rule, "none", remedy="Train more trees or move the window.")

    def _need(self, value: int, name: str, keep: str) -> None:
        if self.keep != keep or self.window.start != 0:
            raise invalid(name, f"other than the window's needs keep={keep!r} and a window from 0", value)


def labels_of_kind(y: Array, kind: str, highest_negative: int = 0) -> BoolArray:
    """Which grades are of a kind: "neg" (not relevant), "pos" (relevant) or "all"."""
    kinds = KINDS[one_of("kind of outlier", kind, KINDS)]
    return np.where(y > highest_negative, bool(kinds & POS), bool(kinds & NEG)).astype(np.bool_)


def _checked_rows(y: npt.ArrayLike, indptr: IntArray) -> tuple[Array, IntArray]:
    """Grades and offsets, read-only; kernels read where the offsets point, without a look at the bounds."""
    grades = np.asarray(y)
    integers = grades.ndim == 1 and grades.dtype.kind in "iu"
    if not integers or grades.min(initial=0) < 0:
        value = int(grades.min()) if integers else f"{grades.dtype}, shape {grades.shape}"
        raise invalid("y", "must be integer grades >= 0, one per row", value)
    if indptr.ndim != 1 or not len(indptr) or indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise invalid("indptr", "must rise from 0, a row offset per query and the end", indptr.tolist()[:8])
    if indptr[-1] != len(grades):
        raise invalid("indptr", f"must end at the number of rows ({len(grades)})", int(indptr[-1]))
    return _read_only(grades.astype(np.int32, copy=False)), _read_only(indptr)


def _read_only(values: Array) -> Array:
    """A read-only view: kernels are compiled once for each kind of access."""
    view = values.view()
    view.flags.writeable = False
    return view


def suggest(data: RankingData, issues: BoolArray, floor: int = 0, scores: Array | None = None) -> Array:
    """A grade on the other side of ``floor`` for every issue; other rows keep theirs."""
    relevant = data.y > floor
    ideal = np.where(relevant, 0, floor + 1).astype(data.y.dtype)
    if scores is not None:
        ranked, sorted_ = rank_order(scores, data.indptr), rank_order(data.y, data.indptr)
        at_rank = np.empty_like(data.y)
        at_rank[ranked] = data.y[sorted_]
        ideal = np.where(relevant, np.minimum(at_rank, floor), np.maximum(at_rank, floor + 1))
    return np.where(issues, ideal, data.y)


@kernel()
def _best_first(score: Array, k: int, top: Array) -> None:
    """Puts the k best documents of a query into ``top``, best first, ties by row, without a full sort."""
    if k > INSERTION:
        top[:k] = np.argsort(-score, kind="mergesort")[:k]
        return
    held = 0
    for i in range(len(score)):
        s = score[i]
        if held == k and s <= score[top[k - 1]]:
            continue
        m = held if held < k else k - 1
        while m > 0 and score[top[m - 1]] < s:
            top[m] = top[m - 1]
            m -= 1
        top[m] = i
        held = min(held + 1, k)


@kernel()
def _mark_query(
    score: Array, top: Array, y: Array, floor: int, n_relevant: int, k: int, paper: bool, kinds: int,
    flags: Array,
) -> None:  # fmt: skip
    """Flags the outliers of one query; ``top`` holds its k best documents, best first."""
    n = len(y)
    flags[:n] = 0
    if n_relevant == 0 or n_relevant == n:
        return
    within = 0
    for r in range(k):
        within += y[top[r]] > floor
    if kinds & NEG and n_relevant > (within if paper else 0):
        below = n_relevant
        for r in range(k):
            if y[top[r]] > floor:
                below -= 1
            elif paper or below > 0:
                flags[top[r]] = 1
    if not kinds & POS or k == n or n_relevant == within or (paper and within == k):
        return
    last, last_score = top[k - 1], score[top[k - 1]]
    # The best non-relevant document: POS outliers of the reference rule rank below it.
    best, best_score = last, last_score
    if not paper and within == k:
        best = -1
        for i in range(n):
            if y[i] <= floor and (best < 0 or score[i] > best_score):
                best, best_score = i, score[i]
    for i in range(n):
        s = score[i]
        beyond = s < last_score or (s == last_score and i > last)
        if beyond and y[i] > floor and (s < best_score or (s == best_score and i > best)):
            flags[i] = 1


@kernel()
def _add_evidence(
    score: Array, order: Array, y: Array, floor: int, k: int, paper: bool, flags: Array, evidence: Array
) -> None:
    """Adds tanh(m / 2), m the score distance to the nearest witness: 2 p - 1 for RankNet's probability p."""
    n = len(order)
    witness = 0.0
    for r in range(n - 1, -1, -1):
        i = order[r]
        if y[i] > floor:
            if not paper or r >= k:
                witness = score[i]
        elif flags[i]:
            evidence[i] += np.float32(np.tanh((score[i] - witness) / 2))
    for r in range(n):
        i = order[r]
        if y[i] <= floor:
            if not paper or r < k:
                witness = score[i]
        elif flags[i]:
            evidence[i] += np.float32(np.tanh((witness - score[i]) / 2))


@kernel(parallel=True)
def _observe(
    score: Array, order: Array, y: Array, indptr: IntArray, bounds: IntArray, n_relevant: Array, floor: int,
    k: int, paper: bool, kinds: int, keep: int, seen: int, counts: Array, evidence: Array,
) -> None:  # fmt: skip
    """Counts the outliers of one ranking of all queries into ``counts`` and ``evidence``.

    ``order`` is empty when nobody has sorted, ``evidence`` when ranks alone count.
    """
    for piece in prange(len(bounds) - 1):
        longest = 0
        for q in range(bounds[piece], bounds[piece + 1]):
            longest = max(longest, indptr[q + 1] - indptr[q])
        flags = np.empty(longest, np.uint16)
        places = np.empty(longest, np.int64)
        for q in range(bounds[piece], bounds[piece + 1]):
            a, b = indptr[q], indptr[q + 1]
            n = b - a
            cut = min(k, n)
            s = score[a:b]
            if n == 0:
                continue
            if len(order):
                for r in range(cut):
                    places[r] = order[a + r]
            else:
                _best_first(s, cut, places)
            _mark_query(s, places, y[a:b], floor, n_relevant[q], cut, paper, kinds, flags)
            if len(evidence):
                if len(order):
                    places[:n] = order[a:b]
                else:
                    places[:n] = np.argsort(-s, kind="mergesort")
                _add_evidence(s, places[:n], y[a:b], floor, cut, paper, flags, evidence[a:b])
            _update(counts[a:b], flags, keep, seen)


@kernel()
def _update(counts: Array, flags: Array, keep: int, seen: int) -> None:
    """Brings the counters of one query up to date."""
    if keep == COUNT:
        for i in range(len(counts)):
            counts[i] += flags[i]
    elif keep == STREAK:
        for i in range(len(counts)):
            counts[i] = (counts[i] + np.uint16(1)) * flags[i]
    else:
        for i in range(len(counts)):
            counts[i] += flags[i] * np.uint16(counts[i] == seen)
