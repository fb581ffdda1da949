"""SOUR: documents that the forests of a training run keep ranking where their label does not belong.

The forest with i trees ranks every query; ``kernels.py`` says which documents are outliers of a ranking. With
s = ``start`` and e = ``end`` the forests with s+1, ..., e trees are looked at, and *consistent* outliers are
those of every one of them, or of a share ``min_frequency`` of them (Marcuzzi et al. 2022).

The detector is an observer: whoever trains calls it with (trees, scores, order). It keeps one uint16 a
document, however many trees there are.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.issues import _outlier_kernels
from cleanrank.issues.table import LabelIssues
from cleanrank.jit import query_chunks, threads
from cleanrank.ragged import rank_order
from cleanrank.types import Array, FloatArray, IntArray, RankingData
from cleanrank.validation import is_integer, one_of

RULES = ("paper", "reference")
KINDS: dict[str, int] = {
    "neg": _outlier_kernels.NEG,
    "pos": _outlier_kernels.POS,
    "all": _outlier_kernels.NEG + _outlier_kernels.POS,
}
KEEPS: dict[str, int] = {
    "count": _outlier_kernels.COUNT,
    "streak": _outlier_kernels.STREAK,
    "lead": _outlier_kernels.LEAD,
}
EVIDENCE = ("rank", "score")
MOST = int(np.iinfo(np.uint16).max)
NO_ORDER = np.empty(0, dtype=np.int32)

BoolArray = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Window:
    """What is looked for, and where.

    Attributes:
        cutoff: k, the cut-off of the measure.
        start: s; forests with s+1 trees and more are looked at.
        end: e, the trees of the last forest looked at.
        kind: "neg", "pos" or "all".
        rule: "paper" or "reference", see ``kernels.py``.
        min_frequency: share of the forests that must flag a document; 1 means all (SOUR), less is p-SOUR.
        include_f0: with start 0, look at the empty forest too, which ranks in the order of the rows.
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
        one_of("rule", self.rule, RULES)
        for name in ("cutoff", "start", "end", "highest_negative"):
            if not is_integer(getattr(self, name)):
                raise invalid(name, "must be a whole number", repr(getattr(self, name)))
        if self.cutoff < 1:
            raise invalid("cutoff", "must be at least 1", self.cutoff)
        if not 0 <= self.start < self.end:
            raise invalid(
                "start and end", "must satisfy 0 <= start < end (trees)", f"{self.start} and {self.end}"
            )
        if self.end - self.first + 1 > MOST:
            raise invalid("window", f"must hold at most {MOST:,} forests, to fit a 16-bit counter", self.end)
        share: Any = self.min_frequency
        if not isinstance(share, Real) or not 0 < float(share) <= 1:
            raise invalid("min_frequency", "must lie in (0, 1]", repr(share))
        if self.highest_negative < 0:
            raise invalid("highest_negative", "must not be negative", self.highest_negative)

    @property
    def first(self) -> int:
        """Trees of the first forest looked at."""
        return 0 if self.include_f0 and self.start == 0 else self.start + 1

    def holds(self, trees: int) -> bool:
        """Whether the forest with that many trees is looked at."""
        return self.first <= trees <= self.end


class SOUR:
    """Counts outliers while somebody ranks; see the module for the definition.

    Args:
        y: grades, in the order of the scores to come.
        indptr: row offsets of the queries.
        window: what is looked for, and where.
        keep: "count" counts flags; "streak" the flags without a break up to now, which answers for every
            start at once; "lead" those from the first forest on, which answers for every end at once.
        evidence: "rank", or "score" to weigh flags by how far the scores disagree with the label.
        n_jobs: threads where nobody has sorted; None means all.

    >>> y, scores = np.array([0, 1, 0, 0, 0, 1]), np.arange(6, 0, -1.0)
    >>> found = SOUR(y, np.array([0, 6]), Window(cutoff=4, end=2, kind="all"))
    >>> for trees in (1, 2):
    ...     found(trees, scores)
    >>> found.outliers().nonzero()[0].tolist()
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
        self.y = _read_only(_grades(y))
        self.indptr = _read_only(np.asarray(indptr, dtype=np.int64))
        _check_offsets(self.indptr, len(self.y))
        self.keep = one_of("way of counting", keep, KEEPS)
        self.evidence = one_of("evidence", evidence, EVIDENCE)
        self.n_jobs = n_jobs
        self.counts = np.zeros(len(self.y), dtype=np.uint16)
        self.weighed = np.zeros(len(self.y) if evidence == "score" else 0, dtype=np.float32)
        self.seen = 0
        self.last = -1
        self._relevant = _outlier_kernels.relevant_per_query(
            self.y, self.indptr, self.window.highest_negative
        )
        self._bounds = query_chunks(self.indptr, min(_outlier_kernels.PIECES, max(1, len(self.indptr) - 1)))

    @classmethod
    def of(cls, data: RankingData, window: Window | None = None, **options: Any) -> Self:
        """A detector for a data set."""
        return cls(data.y, data.indptr, window, **options)

    def __call__(self, trees: int, scores: Array, order: Array | None = None) -> None:
        """Sees the ranking of the forest with ``trees`` trees.

        Forests outside the window are passed over. A forest that was seen already is not counted again.

        Args:
            trees: how many trees (or epochs) stand behind the scores.
            scores: one per document.
            order: per query the places (from 0) of its documents, best first, if somebody has sorted already.
        """
        if not self.window.holds(trees) or trees <= self.last:
            return
        if np.shape(scores) != self.y.shape:
            raise invalid(
                "scores", f"must have one value per row ({len(self.y)})", f"shape {np.shape(scores)}"
            )
        if order is not None and len(order) != len(self.y):
            raise invalid("order", f"must have one place per row ({len(self.y)})", len(order))
        window = self.window
        ranked = _read_only(np.ascontiguousarray(scores, dtype=np.float64))
        places = _read_only(np.ascontiguousarray(NO_ORDER if order is None else order, dtype=np.int32))
        # With the order at hand counting takes about a nanosecond a document; waiting for threads, longer.
        with threads(self.n_jobs if order is None else 1):
            _outlier_kernels.observe(
                ranked, places, self.y, self.indptr, self._bounds, self._relevant, window.highest_negative,
                window.cutoff, window.rule == "paper", KINDS[window.kind], KEEPS[self.keep], self.seen,
                self.counts, self.weighed,
            )  # fmt: skip
        self.seen += 1
        self.last = trees

    def watch(self, rankings: Iterable[tuple[int, Array]]) -> Self:
        """Sees (trees or epochs, scores) in turn: prefixes of a saved forest, epochs of a network."""
        for trees, scores in rankings:
            found = np.asarray(scores)
            if not np.isfinite(found).all():
                raise invalid("scores", "must be finite", "nan or infinite", at=f"ranking {trees}")
            self(trees, found)
        return self

    def take(self, rows: BoolArray, other: "SOUR") -> None:
        """Takes over what another detector saw of some of the rows."""
        self.counts[rows] = other.counts
        if self.evidence == "score":
            self.weighed[rows] = other.weighed
        self.seen, self.last = other.seen, other.last

    def outliers(
        self, *, start: int | None = None, end: int | None = None, kind: str | None = None
    ) -> BoolArray:
        """The consistent outliers.

        Args:
            start: another start than the window's; needs keep="streak".
            end: another end than the window's; needs keep="lead".
            kind: "neg" or "pos" of a window that looks for all.
        """
        self._need_something()
        counted, needed = self.counts, self.needed
        if start is not None and start != self.window.start:
            self._need(start, "start", "streak")
            needed = self.last - start
        if end is not None and end != self.window.end:
            self._need(end, "end", "lead")
            needed = min(end, self.last) - self.window.first + 1
        if needed < 1:
            raise invalid("window", "must hold at least one forest", f"start {start}, end {end}")
        return (counted >= needed) & self.of_kind(self.window.kind if kind is None else kind)

    @property
    def needed(self) -> int:
        """Flags that make a document an outlier: floor(p n) of n forests, at least 1."""
        if self.keep != "count":
            return self.seen
        return max(1, math.floor(self.window.min_frequency * self.seen + 1e-9))

    @property
    def frequency(self) -> FloatArray:
        """The share of the forests that flagged each document."""
        self._need_something()
        found: FloatArray = self.counts / self.seen
        return found

    @property
    def doubt(self) -> FloatArray:
        """Between 0 and 1: the share of forests that flagged a document, or their mean evidence."""
        self._need_something()
        if self.evidence == "score":
            return np.minimum(self.weighed.astype(np.float64) / self.seen, 1.0)
        return self.frequency

    def of_kind(self, kind: str) -> BoolArray:
        """The documents that could be outliers of that kind, by their label."""
        relevant = self.y > self.window.highest_negative
        wanted = KINDS[one_of("kind of outlier", kind, KINDS)]
        found: BoolArray = np.where(
            relevant, bool(wanted & _outlier_kernels.POS), bool(wanted & _outlier_kernels.NEG)
        )
        return found

    def table(
        self, data: RankingData, scores: Array | None = None, chosen: BoolArray | None = None
    ) -> LabelIssues:
        """The findings, one row per document of ``data``.

        Args:
            data: the rows that were watched.
            scores: of the last forest; with them an issue's suggested grade is the one that the query's own
                grades, sorted, have at its rank. Without them it is the lowest relevant grade, or 0.
            chosen: the issues, when they are other than ``outliers()``.
        """
        if not np.array_equal(data.y, self.y) or not np.array_equal(data.indptr, self.indptr):
            raise invalid("data", f"must be the {len(self.y):,} rows that were watched", repr(data))
        issues = self.outliers() if chosen is None else chosen
        reason = "sour_evidence" if self.evidence == "score" else "sour"
        return LabelIssues.of(
            data,
            doubt=self.doubt,
            is_label_issue=issues,
            suggested_label=suggest(data, issues, self.window.highest_negative, scores),
            reasons={reason: self.doubt} | ({"sour": self.frequency} if self.evidence == "score" else {}),
        )

    def _need_something(self) -> None:
        if self.seen == 0:
            window = self.window
            raise invalid(
                "the detector",
                f"must have seen a forest with {window.first} to {window.end} trees",
                "none",
                remedy="Train more rounds or move the window.",
            )

    def _need(self, value: int, name: str, keep: str) -> None:
        if self.keep != keep or self.window.start != 0:
            raise invalid(name, f"other than the window's needs keep={keep!r} and a window from 0", value)


def _grades(y: npt.ArrayLike) -> Array:
    given = np.asarray(y)
    whole = given.ndim == 1 and given.dtype.kind in "iu"
    if not whole or given.min(initial=0) < 0:
        found = int(given.min()) if whole else f"{given.dtype}, shape {given.shape}"
        raise invalid("y", "must be whole grades from 0 on, one per row", found)
    return given.astype(np.int32, copy=False)


def _check_offsets(indptr: IntArray, n: int) -> None:
    """Kernels read where the offsets point, without a look at the bounds."""
    if indptr.ndim != 1 or not len(indptr) or indptr[0] != 0 or (np.diff(indptr) < 0).any():
        raise invalid("indptr", "must rise from 0, a row offset per query and the end", indptr.tolist()[:8])
    if indptr[-1] != n:
        raise invalid("indptr", f"must end at the number of rows ({n})", int(indptr[-1]))


def _read_only(values: Array) -> Array:
    """A read-only view: kernels are compiled once for each kind of access."""
    view = values.view()
    view.flags.writeable = False
    return view


def suggest(data: RankingData, issues: BoolArray, floor: int = 0, scores: Array | None = None) -> Array:
    """A grade on the other side of ``floor`` for every issue; other rows keep theirs.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((4, 1)), [0, 3, 1, 0], group=[4])
    >>> suggest(data, np.array([True, False, False, False]), scores=np.array([4.0, 3, 2, 1])).tolist()
    [3, 3, 1, 0]
    """
    found = data.y.copy()
    if not issues.any():
        return found
    relevant = data.y > floor
    ideal = np.where(relevant, 0, floor + 1).astype(data.y.dtype)
    if scores is not None:
        ranked, sorted_ = rank_order(scores, data.indptr), rank_order(data.y, data.indptr)
        at_rank = np.empty_like(data.y)
        at_rank[ranked] = data.y[sorted_]
        ideal = np.where(relevant, np.minimum(at_rank, floor), np.maximum(at_rank, floor + 1))
    found[issues] = ideal[issues]
    return found
