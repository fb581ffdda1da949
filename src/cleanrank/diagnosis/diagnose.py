"""One report on one data set: its shape, its contradictions, its fragility, and what to do about it."""

import json
import os
import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.diagnosis.advice import Advice, advise
from cleanrank.diagnosis.duplicates import Duplicates, duplicates_of
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
from cleanrank.report import articles
from cleanrank.report.table import Table, plain
from cleanrank.types import RankingData
from cleanrank.validation import check_number, one_of

REFERENCE_RATE = 0.1
MOST_MERGED = 10


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """The result of ``diagnose``; prints as a report.

    Attributes:
        queries: how many.
        documents: how many.
        features: how many columns.
        lengths: documents per query.
        grades: how labels are spread.
        pairs: pairs within queries.
        idle: queries without preference pairs.
        duplicates: identical rows and contradicting labels.
        columns: constant columns, missing values.
        rate: the error rate that the advice is about.
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
        values: dict[str, Any] = plain(asdict(self))
        return values

    def to_json(self) -> str:
        """Everything as JSON text."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False)

    def to_html(self, path: str | os.PathLike[str]) -> Path:
        """Writes a page of one file that needs no network."""
        return articles.write_diagnosis(self.to_dict(), path)


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
    """Describes a judged data set: how many label errors can it bear, and what should be done first?

    Args:
        data: judged rows; their labels stand in for the truth.
        rates: label error rates of the curves, rising.
        profiles: families of noise; the advice is about the first.
        new_weight: what a new-come pair counts in pNoise.
        rate: the error rate that the advice is about.
        turning_point: the pNoise at which the knee is placed.
        name: what to call the data in the report.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[0.1], [0.4], [0.9], [0.9]], [0, 0, 1, 0], qid=[1, 1, 1, 1])
    >>> diagnosis = diagnose(data)
    >>> diagnosis.pairs.different, diagnosis.duplicates.within.least_wrong, round(diagnosis.at(0.1), 3)
    (3, 1, 0.1)
    """
    _check(rates, profiles, new_weight, rate, turning_point)
    grid = tuple(sorted({*(float(r) for r in rates), float(rate)}))
    counts = grade_counts(data)
    curves = curves_of(counts, grid, profiles, new_weight=new_weight, turning_point=turning_point)
    used = int((counts.sum(axis=0) > 0).sum())
    first = profiles[0]
    diagnosis = Diagnosis(
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
    return replace(diagnosis, advice=advise(diagnosis))


def _check(
    rates: Sequence[float], profiles: Sequence[str], new_weight: float, rate: float, turning_point: float
) -> None:
    if not len(rates) or not len(profiles):
        raise invalid("rates" if not len(rates) else "profiles", "must name at least one", "none")
    for profile in profiles:
        one_of("noise profile", profile, FAMILIES)
    for each in (*rates, rate):
        check_number("rates", each, least=0, most=1)
    check_number("new_weight", new_weight, least=0, most=1)
    check_number("turning_point", turning_point, above=0, most=0.5)


WIDTH = 100
BAR = 24
MARKS = {"act": "!", "know": "-", "fine": "+"}
SHOWN_RATES = (0.05, 0.1, 0.2, 0.3, 0.5)
BLOCKS = "▁▂▃▄▅▆▇█"


def report(diagnosis: Diagnosis) -> str:
    """The whole report."""
    values = diagnosis.to_dict()
    parts = [
        _head(diagnosis),
        _grades(diagnosis, values),
        *_curves(diagnosis, values),
        _repeats(diagnosis, values),
    ]
    return "\n\n".join([*parts, "\n".join(filled(a.text, MARKS[a.kind]) for a in diagnosis.advice)])


def filled(text: str, mark: str = "-") -> str:
    """A paragraph of an item in a list."""
    return textwrap.fill(text, WIDTH, initial_indent=f"{mark} ", subsequent_indent="  ")


def _head(diagnosis: Diagnosis) -> str:
    q, idle, columns = diagnosis.lengths.quantiles, diagnosis.idle.queries, diagnosis.columns
    lines = [
        f"{diagnosis.name or 'data'}: {diagnosis.queries:,} queries, {diagnosis.documents:,} documents, "
        f"{diagnosis.features:,} features",
        f"documents per query  {q['0']:g} to {q['100']:g}, median {q['50']:g}, mean "
        f"{diagnosis.lengths.mean:.1f}   {spark(diagnosis.lengths.queries)}",
        f"pairs in queries     {diagnosis.pairs.all:,}, of different grades {diagnosis.pairs.different:,}",
        f"queries with pairs   {diagnosis.queries - idle:,}; {idle:,} hold one grade or one document",
    ]
    if columns.constant or columns.constant_in_queries or columns.missing or columns.infinite:
        lines.append(
            f"columns              {len(columns.constant):,} constant, "
            f"{len(columns.constant_in_queries):,} constant in every query, {columns.missing:,} values "
            f"missing, {columns.infinite:,} infinite"
        )
    return "\n".join(lines)


def _grades(diagnosis: Diagnosis, values: dict[str, Any]) -> str:
    grades, table = diagnosis.grades, articles.grades_table(values)
    most = max(grades.shares)
    bars = [
        "█" * max(round(BAR * s / most), 1 if n else 0)
        for n, s in zip(grades.documents, grades.shares, strict=True)
    ]
    rows = [[*row, bar] for row, bar in zip(table.rows, bars, strict=True)]
    note = f"as varied as {grades.effective:.2f} equally frequent grades"
    return Table([*table.head, ""], rows, align=f"{table.align}l", notes=[note]).text()


def _curves(diagnosis: Diagnosis, values: dict[str, Any]) -> list[str]:
    """The pNoise by kind of error, and beside published data sets."""
    if not diagnosis.curves:
        return []
    first = diagnosis.curves[0]
    rates = [r for r in SHOWN_RATES if r in first.rates] or list(first.rates)
    every = {"these data": (diagnosis.grades.shares, first.overall)}
    every |= {k.dataset: (k.shares, k.pnoise) for k in diagnosis.known}
    rows = [
        [
            name,
            " : ".join(f"{100 * s:.3g}" for s in shares),
            *(f"{np.interp(r, first.rates, pnoise):.3f}" for r in rates),
        ]
        for name, (shares, pnoise) in every.items()
    ]
    rows.sort(key=lambda row: float(row[2]))
    head = [f"pNoise, {first.profile}, overall shares", "Shares in %", *(f"{r:.0%}" for r in rates)]
    notes = [
        f"knee: the error rate at which pNoise reaches {first.limits.at:g}, beyond which rankers fell fast",
        "AUC signal left: 1 - 2 pNoise, the share that is left of AUC's distance from a coin toss",
    ]
    curves = replace(articles.curves_table(values, rates, differing=True), notes=notes)
    return [curves.text(), Table(head, rows, headed=2).text()]


def _repeats(diagnosis: Diagnosis, values: dict[str, Any]) -> str:
    table = articles.repeats_table(values)
    if not table.rows:
        return "no identical rows"
    examples = [
        f"  query {', '.join(e.queries)}: rows {_some(e.rows)} have grades {_some(e.grades)}"
        for e in diagnosis.duplicates.within.examples[:3]
    ]
    return replace(table, notes=examples).text()


def _some(numbers: Sequence[int]) -> str:
    return ", ".join(str(n) for n in numbers[:8]) + (", ..." if len(numbers) > 8 else "")


def spark(values: Sequence[float]) -> str:
    """A histogram of one line.

    >>> spark([0, 1, 4, 8])
    ' ▁▄█'
    """
    most = max(values, default=0) or 1
    return "".join(" " if not v else BLOCKS[max(0, round(len(BLOCKS) * v / most) - 1)] for v in values)
