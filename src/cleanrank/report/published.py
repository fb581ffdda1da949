"""Published figures and the verdict on ours beside them.

A figure of ours *agrees* with a published one when

    |ours - published| <= z * sqrt(seed_sd^2 + query_se^2) + rounding

with z = 1.96, ``seed_sd`` the standard deviation over seeds, ``query_se`` the bootstrap standard error over
queries and ``rounding`` half a unit of the published figure's last digit. A spread that is not known (one
seed, say) counts as 0, so an unknown spread makes the verdict stricter, never kinder.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Literal

from cleanrank.errors import invalid
from cleanrank.report.summaries import Level, Row, Summary
from cleanrank.report.table import canonical

Z = 1.96
AGREES, DIFFERS, NO_FIGURE, NOT_RUN = "agrees", "differs", "no published figure", "not run"
RULE = (
    "A figure agrees when it lies within 1.96 √(s² + e²) + r of the published one: s is the standard "
    "deviation over seeds, e the bootstrap standard error over queries, r half a unit of the last published "
    "digit."
)
# The shape of each verdict and the style of its word.
VERDICT_MARKS: dict[str, tuple[str, str]] = {
    AGREES: ("●", "ok"),
    DIFFERS: ("✕", "bad"),
    NO_FIGURE: ("○", "none"),
    NOT_RUN: ("–", "none"),
    "": ("○", "none"),
}


@dataclass(frozen=True)
class Published:
    """A figure somebody published.

    Attributes:
        dataset: name of the data set, as in the records.
        method: label of the method, as in the records.
        measure: text of the measure, as in the records.
        value: the figure.
        source: paper and table.
        noise: kind of noise; None means clean labels.
        rate: noise rate; None means clean labels, or any rate if ``noise`` has only one.
        fold: the fold it belongs to; None means all folds together.
        context: another ranker's figure, shown for orientation: it never gets a verdict.
        decimals: digits printed after the point; read off the figures of the same source and measure unless
            given.
        relation: "=", or "~" for about; ">" and "<" where the source gives a bound.
    """

    dataset: str
    method: str
    measure: str
    value: float
    source: str
    noise: str | None = None
    rate: float | None = None
    fold: int | str | None = None
    context: bool = False
    decimals: int | None = None
    relation: Literal["=", "~", ">", "<"] = "="

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            place = f"{self.dataset}, {self.method}"
            raise invalid("a published figure", "must be finite", self.value, at=place)

    @property
    def level(self) -> Level:
        """The noise level it was measured at."""
        return Level(self.noise or "none", self.rate or 0.0)


@dataclass(frozen=True)
class Verdict:
    """Our figure beside a published one; ``tolerance`` is None where nothing was judged."""

    dataset: str
    level: Level
    method: str
    measure: str
    verdict: str
    ours: float | None = None
    low: float | None = None
    high: float | None = None
    published: float | None = None
    tolerance: float | None = None
    decimals: int = 4
    source: str = ""
    fold: str = ""
    note: str = ""
    context: bool = False

    @property
    def difference(self) -> float | None:
        """Ours minus published."""
        return None if self.ours is None or self.published is None else self.ours - self.published

    @property
    def what(self) -> str:
        """What the figure is of: data set, fold, noise, method and measure."""
        fold = [f"fold {self.fold}"] if self.fold else []
        return " · ".join([self.dataset, *fold, self.level.label, self.method, self.measure])


def tolerance(seed_sd: float | None, query_se: float | None, decimals: int) -> float:
    """How far ours may lie from a published figure.

    z * sqrt(seed_sd^2 + query_se^2) + half a unit of the last digit.

    >>> round(tolerance(0.003, 0.004, 3), 6)
    0.0103
    """
    return Z * math.hypot(seed_sd or 0.0, query_se or 0.0) + 0.5 * 10.0**-decimals


def judge(ours: float | None, published: float | None, allowed: float, relation: str = "=") -> str:
    """The verdict in words; equal to the tolerance still agrees, and a bound allows nothing.

    >>> judge(0.512, 0.51, 0.002), judge(0.52, 0.51, 0.002), judge(0.5, None, 0.1), judge(None, 0.5, 0.1)
    ('agrees', 'differs', 'no published figure', 'not run')
    >>> judge(0.52, 0.51, 0.002, ">"), judge(0.5, 0.51, 0.02, ">")
    ('agrees', 'differs')
    """
    if ours is None:
        return NOT_RUN
    if published is None:
        return NO_FIGURE
    if relation in ("<", ">"):
        return AGREES if (ours > published) == (relation == ">") and ours != published else DIFFERS
    # a hair of slack, so that 0.512 - 0.510 is not more than 0.002 for the sake of binary fractions
    return AGREES if abs(ours - published) <= allowed + 1e-12 else DIFFERS


def decimals_of(figure: Published, others: Iterable[Published] = ()) -> int:
    """Digits after the point: the most that any figure of the same source and measure shows.

    A table prints all its figures alike, so the .4700 that was read as .47 counts four digits beside .4695.

    >>> a, b = (Published("d", "m", "map", v, "Table 1") for v in (0.47, 0.4695))
    >>> decimals_of(a), decimals_of(a, [a, b])
    (2, 4)
    """
    if figure.decimals is not None:
        return figure.decimals
    alike = [o for o in others if (o.source, o.measure) == (figure.source, figure.measure)]
    exponents = [Decimal(repr(float(o.value))).normalize().as_tuple().exponent for o in [figure, *alike]]
    return max(max(0, -int(exponent)) for exponent in exponents)


def compare_published(summary: Summary, published: Sequence[Published]) -> tuple[Verdict, ...]:
    """Sets every row of a summary beside the published figures.

    A row whose cells are not all done is "not run": a part of the cells is no match for a whole figure.
    Rows without a published figure follow at the end.
    """
    matched: set[tuple[str, Level, str, str]] = set()
    verdicts: list[Verdict] = []
    published = [replace(f, measure=canonical(f.measure)) for f in published]
    for figure in published:
        verdict = _verdict(summary, figure, decimals_of(figure, published))
        verdicts.append(verdict)
        if not figure.context and not verdict.fold:
            matched.add((verdict.dataset, verdict.level, verdict.method, verdict.measure))
    for row in summary.rows:
        name = (row.dataset, row.level, row.method, row.measure)
        if name in matched:
            continue
        if row.state != "complete":
            verdicts.append(Verdict(*name, NOT_RUN, note=_lack(row)))
        else:
            word = NOT_RUN if row.mean is None else NO_FIGURE
            verdicts.append(Verdict(*name, word, row.mean, row.low, row.high))
    return tuple(verdicts)


def _verdict(summary: Summary, figure: Published, decimals: int) -> Verdict:
    row = matching_row(summary, figure)
    blank = replace(_blank(figure, row.level if row else figure.level), decimals=decimals)
    if figure.context:
        return replace(blank, verdict="", note="for orientation")
    if row is None:
        return blank
    if blank.fold:
        return _fold_verdict(summary, row, blank, figure.relation)
    if row.state != "complete" or row.mean is None:
        return replace(blank, note=_lack(row))
    allowed = tolerance(row.seed_sd, row.query_se, decimals)
    return replace(
        blank,
        verdict=judge(row.mean, figure.value, allowed, figure.relation),
        ours=row.mean,
        low=row.low,
        high=row.high,
        tolerance=allowed,
    )


def _blank(figure: Published, level: Level) -> Verdict:
    """A published figure without one of ours."""
    return Verdict(
        figure.dataset,
        level,
        figure.method,
        figure.measure,
        NOT_RUN,
        published=figure.value,
        source=figure.source,
        fold="" if figure.fold is None else str(figure.fold),
        context=figure.context,
    )


def _fold_verdict(summary: Summary, row: Row, blank: Verdict, relation: str) -> Verdict:
    """One fold: the mean over its seeds, judged with the pooled standard error scaled to its queries."""
    cells = [
        c
        for c in summary.cells
        if (c.dataset, c.level, c.method, c.fold) == (row.dataset, row.level, row.method, blank.fold)
    ]
    means = [c.means[row.measure] for c in cells if row.measure in c.means]
    if not cells or len(means) < len(cells):
        return replace(blank, note=f"{len(means)} of {len(cells)} cells" if cells else "no such fold")
    ours = math.fsum(means) / len(means)
    spread = math.sqrt(sum((m - ours) ** 2 for m in means) / (len(means) - 1)) if len(means) > 1 else None
    se = (row.query_se or 0.0) * math.sqrt(max(row.n_queries, 1) / max(cells[0].n_queries, 1))
    allowed = tolerance(spread, se, blank.decimals)
    verdict = judge(ours, blank.published, allowed, relation)
    return replace(blank, verdict=verdict, ours=ours, tolerance=allowed)


def matching_row(summary: Summary, figure: Published) -> Row | None:
    """The row of a summary that a figure is of; None where there is none, or more than one."""
    rows = [
        r
        for r in summary.rows
        if (r.dataset, r.method, r.measure) == (figure.dataset, figure.method, figure.measure)
    ]
    if figure.rate == 0.0 or (figure.rate is None and figure.noise is None):
        clean = [r for r in rows if r.level.clean]
        own = [r for r in clean if r.level.noise == figure.noise]
        return next(iter(own or clean), None)
    if figure.noise is not None:
        rows = [r for r in rows if r.level.noise == figure.noise]
    if figure.rate is not None:
        rows = [r for r in rows if math.isclose(r.level.rate, figure.rate, abs_tol=1e-9)]
    return rows[0] if len(rows) == 1 else None


def _lack(row: Row) -> str:
    return f"{row.done} of {row.cells} cells" if row.state == "incomplete" else row.state
