"""A diagnosis as text for a terminal."""

import textwrap
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cleanrank.diagnose.duplicates import Repeats

if TYPE_CHECKING:
    from cleanrank.diagnose.diagnosis import Diagnosis

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
