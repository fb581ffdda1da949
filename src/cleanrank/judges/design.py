"""Which pairs have gold labels, how they were chosen, and what intervals from them can claim."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import stats

from cleanrank.errors import invalid
from cleanrank.judges.documents import Frame, check_measure, rank_weights
from cleanrank.judges.inputs import read_inputs
from cleanrank.judges.labels import Mapped, Pool, check_together, pool_of
from cleanrank.judges.systems import (
    check_retrieved,
    prominence,
    system_ranks,
    system_values,
    within_cutoff,
)
from cleanrank.metrics.measure import Measure, MeasureLike, as_measures
from cleanrank.ragged import indptr_of
from cleanrank.types import Array, FloatArray, IntArray
from cleanrank.validation import one_of

DESIGNS = {
    "queries": "whole queries, drawn at random",
    "documents": "pairs, each drawn with a probability that the gold labels state",
    "stratified": "pairs, drawn at random among all or within each grade of the judge",
}
UNJUDGED = ("zero", "drop")
WHOLE = 0.95  # of a query's pairs must have gold labels for the query to count as judged as a whole
MOSTLY = 0.9  # of the gold labels must lie in such queries for the design to be "queries"
FEWEST = 5  # gold labels of a stratum; smaller ones are joined with the grade next to them
MOST_ERRORS = 4.0  # standard errors by which drawn weights may miss their sum
SUSPICIOUS = 0.001  # p-value below which gold labels do not look like a random sample


@dataclass(frozen=True, eq=False)
class Design:
    """Labels and systems on one set of rows, and how the gold labels were chosen.

    Attributes:
        kind: one of DESIGNS.
        pool: its first labels are the judge's, its second the gold ones.
        measure: what is estimated.
        ranks: (S, N) from 1; 0 where a system did not retrieve the document.
        whole: (Q,) whether a query is judged as a whole.
        notes: what a reader must know, in words.
    """

    kind: str
    pool: Pool
    measure: Measure
    ranks: IntArray
    whole: Array
    notes: tuple[str, ...]

    @property
    def is_gold(self) -> Array:
        """(N,) pairs with both labels."""
        return np.asarray((self.pool.grades >= 0).all(axis=0))

    @property
    def n_gold(self) -> int:
        """Gold queries, or gold documents."""
        return int(self.whole.sum() if self.kind == "queries" else self.is_gold.sum())

    @property
    def n_all(self) -> int:
        """All queries, or all documents that the judge labelled."""
        return self.pool.n_queries if self.kind == "queries" else int((self.pool.grades[0] >= 0).sum())

    @cached_property
    def judge_values(self) -> FloatArray:
        """(S, Q): the measure under the judge's labels."""
        values: FloatArray = system_values(self.pool, self.pool.grades[0], (self.measure,))[0]
        return values

    @cached_property
    def gold_values(self) -> FloatArray:
        """(S, Q): the measure under the gold labels."""
        values: FloatArray = system_values(self.pool, self.pool.grades[1], (self.measure,))[0]
        return values

    @cached_property
    def warning(self) -> str:
        """Why the gold labels do not look like a random sample; empty where they do."""
        return _not_random(self)

    def differing(self, a: int, b: int) -> Array:
        """(Q,) queries in which two systems' rankings differ within the cut-off."""
        most = self.measure.cutoff or int(self.ranks.max())
        first, second = (np.where(self.ranks[s] <= most, self.ranks[s], 0) for s in (a, b))
        counts = np.bincount(self.pool.query, first != second, minlength=self.pool.n_queries)
        return np.asarray(counts > 0)

    def frame(self) -> Frame:
        """The pairs that the judge labelled, for ``judges.documents``."""
        check_measure(self.measure)
        pool, rows = self.pool, np.flatnonzero(self.pool.grades[0] >= 0)
        lengths = np.diff(pool.indptr)[pool.query[rows]]
        judge, gold = pool.grades[:, rows]
        drawn = pool.probability[1][rows] if self.kind == "documents" else _shares(judge, gold)
        return Frame(
            indptr=indptr_of(np.bincount(pool.query[rows], minlength=pool.n_queries)),
            judge=judge,
            gold=gold,
            probability=drawn,
            weights=np.array([rank_weights(self.measure, rank[rows], lengths) for rank in self.ranks]),
            prominence=prominence(self.ranks)[rows],
            n_grades=int(max(judge.max(), gold.max())) + 1,
        )


def design_of(
    runs: Any,
    judge: Any,
    gold: Any,
    measure: MeasureLike,
    *,
    kind: str = "auto",
    unjudged: str = "zero",
    mapping: Mapped = None,
) -> Design:
    """Reads labels and systems, and finds out how gold labels were chosen; see ``evaluate_with_judge``."""
    one_of("design", kind, ("auto", *DESIGNS))
    one_of("unjudged", unjudged, UNJUDGED)
    systems, judged, right, convention = read_inputs(runs, judge, gold, mapping)
    wanted = _one_measure(measure, convention)
    check_together(judged, right)
    pool, notes = _judged_queries(pool_of([judged, right], systems), unjudged)
    check_retrieved(pool)
    rank = system_ranks(pool, wanted.ties)
    notes += _gaps(pool, rank > 0)
    whole = _whole(pool, np.asarray(within_cutoff(rank, wanted).any(axis=0)))
    is_gold = (pool.grades >= 0).all(axis=0)
    stated = np.isfinite(pool.probability[1])
    if kind == "auto":
        mostly = whole[pool.query[is_gold]].mean() >= MOSTLY
        kind = "documents" if stated.any() else "queries" if mostly else "stratified"
    if kind == "documents" and not stated[is_gold].all():
        remedy = "Say design='stratified' if pairs were drawn at random, or within the judge's grades."
        missing = f"{int((~stated[is_gold]).sum()):,} without"
        raise invalid("gold labels", "must state the probability of every pair", missing, remedy=remedy)
    outside = int(((pool.grades[1] >= 0) & (pool.grades[0] < 0)).sum())
    if kind == "queries":
        part = int((np.bincount(pool.query, is_gold, minlength=pool.n_queries) > 0).sum() - whole.sum())
        if part:
            notes.append(f"{part:,} queries with gold labels for some documents only do not count as gold")
        _check_enough("queries judged as a whole", int(whole.sum()))
    else:
        if outside:
            notes.append(f"{outside:,} gold labels of pairs without a label of the judge are left out")
        _check_enough("gold labels", int(is_gold.sum()))
    return Design(kind, pool, wanted, rank, whole, tuple(notes))


def _one_measure(measure: MeasureLike, convention: str) -> Measure:
    parsed = as_measures(measure, convention)
    if len(parsed) > 1:
        raise invalid("measure", "must be one measure", ", ".join(map(str, parsed)))
    if parsed[0].empty == "skip" or parsed[0].weighting in ("micro", "pooled"):
        rule = "must give every query a value, all of the same weight"
        short = parsed[0].name + (f"@{parsed[0].cutoff}" if parsed[0].cutoff else "")
        remedy = f"Say what a query without relevant documents counts: {short}:empty=zero."
        raise invalid("measure", rule, str(parsed[0]), remedy=remedy)
    return parsed[0]


def _judged_queries(pool: Pool, unjudged: str) -> tuple[Pool, list[str]]:
    """The queries that the judge labelled; with unjudged="drop", only documents with labels."""
    counts = np.bincount(pool.query, pool.grades[0] >= 0, minlength=pool.n_queries)
    kept = (counts > 0)[pool.query]
    notes = []
    if (counts == 0).any():
        notes.append(f"{int((counts == 0).sum()):,} queries without a label of the judge are left out")
    not_judged = kept & (pool.grades < 0).all(axis=0)
    if unjudged == "drop":
        kept &= ~not_judged
    if not_judged.any():
        what = "are taken out of the rankings" if unjudged == "drop" else "count as not relevant"
        notes.append(f"{int(not_judged.sum()):,} retrieved documents that nobody judged {what}")
    return pool.select(kept), notes


def _gaps(pool: Pool, retrieved: Array) -> list[str]:
    """Queries for which systems retrieved nothing."""
    notes = []
    for name, rows in zip(pool.systems, retrieved, strict=True):
        without = int((np.bincount(pool.query, rows, minlength=pool.n_queries) == 0).sum())
        if without:
            notes.append(f"{name!r} retrieved nothing for {without:,} of {pool.n_queries:,} queries")
    return notes


def _whole(pool: Pool, shown: Array) -> Array:
    """Whether gold labels cover what the judge labelled of a query, or what systems show of it."""
    judged, gold = pool.grades >= 0

    def share(rows: Array) -> FloatArray:
        of = np.bincount(pool.query, rows, minlength=pool.n_queries)
        covered = np.bincount(pool.query, rows & gold, minlength=pool.n_queries)
        return np.where(of > 0, covered / np.maximum(of, 1), 0.0)

    return np.asarray(np.maximum(share(judged), share(judged & shown)) >= WHOLE)


def _check_enough(what: str, n: int) -> None:
    if n < 2:
        remedy = "Judge more: cleanrank gold sample --for evaluation says which."
        raise invalid(what, "must be at least 2 for an interval", n, remedy=remedy)


def _shares(judge: IntArray, gold: IntArray) -> FloatArray:
    """The share of the pairs of a grade of the judge that have gold labels; rare grades are joined."""
    of, drawn = np.bincount(judge), np.bincount(judge, gold >= 0)
    stratum = np.zeros(len(of), dtype=np.int64)
    current, count = 0, 0.0
    for grade in range(len(of)):
        if count >= FEWEST and drawn[grade:].sum() >= FEWEST:
            current, count = current + 1, 0.0
        stratum[grade] = current
        count += drawn[grade]
    share = np.bincount(stratum, drawn) / np.bincount(stratum, of)
    return np.asarray(share[stratum[judge]])


def _not_random(design: Design) -> str:
    """Why the gold labels do not look like a random sample of what they are a sample of, if they do not."""
    pool = design.pool
    if design.kind == "queries":
        values = design.judge_values.mean(axis=0)
        groups = values[design.whole], values[~design.whole]
        what = "gold queries and the others have different values under the judge"
    elif design.kind == "stratified":
        judged = pool.grades[0] >= 0
        height = prominence(design.ranks)
        for grade in np.unique(pool.grades[0][judged]):
            rows = pool.grades[0] == grade
            height[rows] -= height[rows].mean()
        groups = height[judged & design.is_gold], height[judged & ~design.is_gold]
        what = "gold labels lie at other ranks than the rest of the judge's pairs"
    else:
        shown = within_cutoff(design.ranks, design.measure).any(axis=0)
        without = shown & (pool.grades[0] >= 0) & ~design.is_gold
        if without.any() and (pool.probability[1][design.is_gold] == 1).all():
            return (
                f"{int(without.sum()):,} documents that count have no gold labels, though probabilities of 1 "
                "say that all were drawn: the estimate and its interval claim nothing about them"
            )
        return _drawn_for_others(design)
    if min(map(len, groups)) < 3 or all(np.ptp(g) == 0 for g in groups):
        return ""
    p = float(stats.mannwhitneyu(*groups).pvalue)
    if p >= SUSPICIOUS:
        return ""
    return (
        f"{what} (p = {p:.1g}): if they were not drawn at random, the estimate and its interval claim "
        "nothing about the rest"
    )


def _drawn_for_others(design: Design) -> str:
    """Why the probabilities do not fit the documents that a system shows, if they do not.

    Weights of drawn pairs over their probabilities must sum to the weights of all pairs, up to chance. They
    do not where a sheet was drawn for other systems, whose documents it holds, or probabilities are wrong.
    """
    frame = design.frame()
    rows = frame.sample
    drawn, probability = frame.weights[:, rows], frame.probability[rows]
    off = np.abs((drawn / probability).sum(axis=1) - frame.weights.sum(axis=1))
    # Few drawn pairs may show too little spread: the largest weight counts once more.
    largest = frame.weights.max(axis=1) / probability.min()
    error = np.sqrt((drawn**2 * (1 - probability) / probability**2).sum(axis=1) + largest**2)
    wrong = off > MOST_ERRORS * error
    if not wrong.any():
        return ""
    name = design.pool.systems[int(np.argmax(off / error))]
    return (
        f"the drawn documents and their probabilities do not fit the ranking of {name!r}: if they were drawn "
        "for other systems, and not at random from its documents, the estimate and its interval claim "
        "nothing about it (draw for this system too: cleanrank gold sample --for evaluation)"
    )
