"""One report on one data set: its shape, its contradictions, its fragility, and what to do about it."""

import json
import os
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cleanrank.diagnosis.advice import Advice, advise
from cleanrank.diagnosis.duplicates import Duplicates, Repeats, duplicates_of
from cleanrank.diagnosis.fragility import (
    DEFAULT_PROFILES,
    FAMILIES,
    RATES,
    TURNING_POINT,
    Balance,
    Curve,
    KnownCurve,
    Merge,
    balance_of,
    curves_of,
    known_curves,
    merges_of,
)
from cleanrank.diagnosis.profile import (
    Columns,
    Grades,
    Idle,
    Lengths,
    Pairs,
    columns_of,
    grade_counts,
    grades_of,
    idle_of,
    lengths_of,
    pairs_of,
)
from cleanrank.errors import invalid
from cleanrank.types import RankingData
from cleanrank.validation import one_of

if TYPE_CHECKING:
    pass

REFERENCE_RATE = 0.1
MOST_MERGED = 10


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """What ``diagnose`` found; prints as a report.

    Attributes:
        queries: how many.
        documents: how many.
        features: how many columns.
        lengths: documents per query.
        grades: how labels are spread.
        pairs: pairs within queries.
        idle: queries that teach nothing.
        duplicates: identical rows and contradicting labels.
        columns: constant columns, missing values.
        rate: the error rate that the advice speaks of.
        new_weight: what a new-come pair counts in pNoise.
        curves: pNoise against the error rate, one curve per profile.
        known: the same for published data sets, under the first profile.
        merges: coarser scales, at ``rate`` under the first profile; none beyond ten grades.
        balance: even and best shares, at ``rate`` under the first profile; None with one grade, with more
            than ten, or with another weight of new-come pairs than 1/2.
        advice: what to do and know.
        name: what the data are called.
    """

    queries: int
    documents: int
    features: int
    lengths: Lengths
    grades: Grades
    pairs: Pairs
    idle: Idle
    duplicates: Duplicates
    columns: Columns
    rate: float
    new_weight: float
    curves: tuple[Curve, ...]
    known: tuple[KnownCurve, ...]
    merges: tuple[Merge, ...]
    balance: Balance | None
    advice: tuple[Advice, ...] = field(default=())
    name: str = ""

    def at(self, rate: float, *, overall: bool = False) -> float:
        """The pNoise of the first profile at a rate, over real queries or from overall proportions."""
        curve = self.curves[0]
        return float(np.interp(rate, curve.rates, curve.overall if overall else curve.pnoise))

    def known_at(self, known: KnownCurve, rate: float) -> float:
        """The pNoise of a published data set at a rate."""
        return float(np.interp(rate, self.curves[0].rates, known.pnoise))

    def __repr__(self) -> str:

        return report(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values; what is not a finite number becomes None."""
        from cleanrank.report.tables import plain

        values: dict[str, Any] = plain(asdict(self))
        return values

    def to_json(self) -> str:
        """Everything as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Writes a page of one file that needs no network."""
        from cleanrank.report.diagnosis import write_diagnosis

        return write_diagnosis(self.to_dict(), path)


def diagnose(
    data: RankingData,
    *,
    rates: Sequence[float] = RATES,
    profiles: Sequence[str] = DEFAULT_PROFILES,
    new_weight: float = 0.5,
    rate: float = REFERENCE_RATE,
    turning_point: float = TURNING_POINT,
    name: str = "",
) -> Diagnosis:
    """Looks at a judged data set: how many label errors can it bear, and what should be done first?

    Args:
        data: judged rows; their labels stand in for the truth.
        rates: label error rates of the curves, rising.
        profiles: families of noise; the first is the one that the advice speaks of.
        new_weight: what a new-come pair counts in pNoise.
        rate: the error rate that the advice speaks of.
        turning_point: the pNoise at which the knee is placed.
        name: what to call the data in the report.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[0.1], [0.4], [0.9], [0.9]], [0, 0, 1, 0], qid=[1, 1, 1, 1])
    >>> found = diagnose(data)
    >>> found.pairs.different, found.duplicates.within.least_wrong, round(found.at(0.1), 3)
    (3, 1, 0.1)
    """
    _check(rates, profiles, new_weight, rate, turning_point)
    grid = tuple(sorted({*(float(r) for r in rates), float(rate)}))
    counts = grade_counts(data)
    curves = curves_of(counts, grid, profiles, new_weight=new_weight, turning_point=turning_point)
    used = int((counts.sum(axis=0) > 0).sum())
    first = profiles[0]
    found = Diagnosis(
        queries=data.n_queries,
        documents=data.n_docs,
        features=data.n_features,
        lengths=lengths_of(data.lengths),
        grades=grades_of(counts),
        pairs=pairs_of(counts),
        idle=idle_of(data, counts),
        duplicates=duplicates_of(data),
        columns=columns_of(data),
        rate=float(rate),
        new_weight=float(new_weight),
        curves=curves,
        known=known_curves(grid, first, new_weight) if curves else (),
        merges=merges_of(counts, first, rate, new_weight=new_weight) if 2 < used <= MOST_MERGED else (),
        balance=balance_of(counts, first, rate) if 1 < used <= MOST_MERGED and new_weight == 0.5 else None,
        name=name,
    )
    return replace(found, advice=advise(found))


def _check(
    rates: Sequence[float], profiles: Sequence[str], new_weight: float, rate: float, turning_point: float
) -> None:
    if not len(rates) or not len(profiles):
        raise invalid("rates" if not len(rates) else "profiles", "must name at least one", "none")
    for profile in profiles:
        one_of("noise profile", profile, FAMILIES)
    for each in (*rates, rate):
        if not 0 <= each <= 1:
            raise invalid("rates", "must lie in [0, 1]", each)
    if not 0 <= new_weight <= 1:
        raise invalid("new_weight", "must lie in [0, 1]", new_weight)
    if not 0 < turning_point <= 0.5:
        raise invalid("turning_point", "must lie in (0, 1/2]", turning_point)


WIDTH = 100
BAR = 24
MARKS = {"act": "!", "know": "-", "fine": "+"}
SHOWN_RATES = (0.05, 0.1, 0.2, 0.3, 0.5)
BLOCKS = "▁▂▃▄▅▆▇█"


def report(found: "Diagnosis") -> str:
    """The whole report."""
    parts = [_head(found), _grades(found), _curves(found), _known(found), _repeats(found), _advice(found)]
    return "\n\n".join(part for part in parts if part)


def _head(found: "Diagnosis") -> str:
    q = found.lengths.quantiles
    lines = [
        f"{found.name or 'data'}: {found.queries:,} queries, {found.documents:,} documents, "
        f"{found.features:,} features",
        f"documents per query  {q['0']:g} to {q['100']:g}, median {q['50']:g}, mean "
        f"{found.lengths.mean:.1f}   {spark(found.lengths.queries)}",
        f"pairs in queries     {found.pairs.all:,}, of different grades {found.pairs.different:,}",
        f"queries that teach   {found.queries - found.idle.queries:,}; {found.idle.queries:,} hold one "
        "grade or one document",
    ]
    columns = found.columns
    if columns.constant or columns.constant_in_queries or columns.missing or columns.infinite:
        lines.append(
            f"columns              {len(columns.constant):,} constant, "
            f"{len(columns.constant_in_queries):,} constant in every query, {columns.missing:,} values "
            f"missing, {columns.infinite:,} infinite"
        )
    return "\n".join(lines)


def _grades(found: "Diagnosis") -> str:
    grades = found.grades
    most = max(grades.shares)
    rows = [
        (str(g), f"{n:,}", f"{s:.1%}", f"{m:.1%}", f"{k:,}", "█" * max(round(BAR * s / most), 1 if n else 0))
        for g, (n, s, m, k) in enumerate(
            zip(grades.documents, grades.shares, grades.query_shares, grades.queries, strict=True)
        )
    ]
    head = ("grade", "documents", "share", "mean share in a query", "queries", "")
    return table(head, rows, left=(5,)) + f"\nas varied as {grades.effective:.2f} even grades"


def _curves(found: "Diagnosis") -> str:
    if not found.curves:
        return ""
    first = found.curves[0]
    rates = [r for r in SHOWN_RATES if r in first.rates] or list(first.rates)
    differ = any(abs(a - b) >= 0.001 for c in found.curves for a, b in zip(c.pnoise, c.overall, strict=True))
    rows = []
    for curve in found.curves:
        places = [curve.rates.index(r) for r in rates]
        knee = curve.limits.turning_point
        shown = "never" if knee is None else f"{knee:.1%}"
        rows.append((curve.profile, "pNoise", *(f"{curve.pnoise[i]:.3f}" for i in places), shown))
        if differ:
            rows.append(("", "by overall shares", *(f"{curve.overall[i]:.3f}" for i in places), ""))
        rows.append(("", "worst tenth of queries", *(f"{curve.worst_tenth[i]:.3f}" for i in places), ""))
        rows.append(("", "AUC signal left", *(f"{curve.signal_left[i]:.0%}" for i in places), ""))
    head = ("errors", "label error rate", *(f"{r:.0%}" for r in rates), "knee")
    return table(head, rows, left=(0, 1))


def _known(found: "Diagnosis") -> str:
    if not found.known:
        return ""
    curve = found.curves[0]
    rates = [r for r in SHOWN_RATES if r in curve.rates] or list(curve.rates)
    mine = ("these data", _shares(found.grades.shares), *(f"{found.at(r, overall=True):.3f}" for r in rates))
    rows = [mine] + [
        (k.dataset, _shares(k.shares), *(f"{found.known_at(k, r):.3f}" for r in rates)) for k in found.known
    ]
    rows.sort(key=lambda row: float(row[2]))
    head = (f"pNoise, {curve.profile}, overall shares", "shares in %", *(f"{r:.0%}" for r in rates))
    return table(head, rows, left=(0, 1))


def _repeats(found: "Diagnosis") -> str:
    kinds: list[tuple[str, Repeats | None]] = [
        ("identical rows in a query", found.duplicates.within),
        ("rows of zeros in a query", found.duplicates.blank),
        ("identical rows across queries", found.duplicates.across),
        ("document ids twice in a query", found.duplicates.doc_ids),
    ]
    rows = [
        (
            name,
            *(
                f"{n:,}"
                for n in (r.groups, r.rows, r.contradicting_groups, r.contradicting_rows, r.least_wrong)
            ),
        )
        for name, r in kinds
        if r is not None and r.groups
    ]
    if not rows:
        return "no identical rows"
    lines = [
        table(("repeated", "groups", "rows", "contradicting", "rows in them", "least wrong"), rows, left=(0,))
    ]
    for example in found.duplicates.within.examples[:3]:
        lines.append(
            f"  query {', '.join(example.queries)}: rows {_some(example.rows)} have grades "
            f"{_some(example.grades)}"
        )
    return "\n".join(lines)


def _some(numbers: Sequence[int]) -> str:
    return ", ".join(str(n) for n in numbers[:8]) + (", ..." if len(numbers) > 8 else "")


def _advice(found: "Diagnosis") -> str:
    return "\n".join(
        textwrap.fill(a.text, WIDTH, initial_indent=f"{MARKS[a.kind]} ", subsequent_indent="  ")
        for a in found.advice
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: Sequence[int] = (0,)) -> str:
    """Columns in line; those in ``left`` begin together, the others end together.

    >>> print(table(("a", "n"), [("x", "10"), ("yy", "9")]))
    a    n
    x   10
    yy   9
    """
    lines = [tuple(head), *(tuple(r) for r in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i in left else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def spark(values: Sequence[float]) -> str:
    """A histogram of one line.

    >>> spark([0, 1, 4, 8])
    ' ▁▄█'
    """
    most = max(values, default=0) or 1
    return "".join(" " if not v else BLOCKS[max(0, round(len(BLOCKS) * v / most) - 1)] for v in values)


def _shares(shares: Sequence[float]) -> str:
    return " : ".join(f"{100 * s:.3g}" for s in shares)
