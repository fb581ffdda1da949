"""How names, values and verdicts are shown in the tables of a page."""

from collections.abc import Sequence

from cleanrank.errors import CleanrankError
from cleanrank.metrics.measure import Measure
from cleanrank.report.grid import Level
from cleanrank.report.page import Safe, Td, joined, tag
from cleanrank.report.published import AGREES, DIFFERS, NO_FIGURE, NOT_RUN, Verdict
from cleanrank.report.summaries import BETTER, Row, Summary

AT_ONCE = 5  # measures side by side in one table: what fits a laptop and a sheet of paper
RULE = (
    "A figure agrees when it lies within 1.96 √(s² + e²) + r of the published one: s is the standard "
    "deviation over seeds, e the bootstrap standard error over queries, r half a unit of the last published "
    "digit."
)
SHAPE_OF: dict[str, tuple[str, str]] = {
    AGREES: ("●", "ok"),
    DIFFERS: ("✕", "bad"),
    NO_FIGURE: ("○", "none"),
    NOT_RUN: ("–", "none"),
    "": ("○", "none"),
}


def convention(measure: str) -> str:
    """What a measure's text stands for, in words; a text that is no measure of ours stands for itself.

    >>> convention("clicks per view")
    'clicks per view'
    """
    try:
        return Measure.parse(measure).describe()
    except CleanrankError:
        return measure


def many(n: int, what: str) -> str:
    """A count and its noun."""
    return f"{n:,} {what}" + ("" if n == 1 else "s")


def chunks(measures: Sequence[str]) -> list[Sequence[str]]:
    """The measures in groups that fit side by side."""
    return [measures[i : i + AT_ONCE] for i in range(0, len(measures), AT_ONCE)]


def name_columns(summary: Summary) -> list[tuple[str, str]]:
    """Headings of the columns that name a row; noise only where there are several levels."""
    noise = (
        [("Noise", "kind and rate of the noise in the training labels")] if len(summary.levels) > 1 else []
    )
    return [("Data set", ""), *noise, ("Method", "")]


def names(summary: Summary, dataset: str, level: Level, method: str, *, again: bool = False) -> list[Td]:
    """The cells that name a row; ``again`` mutes what the row above says too."""
    kind = "name again" if again else "name"
    noise = [Td(level.label, level_value(level), kind)] if len(summary.levels) > 1 else []
    shown: object = method
    if method == summary.baseline:
        shown = joined([method, tag("span", " baseline", class_="tagword")])
    return [Td(dataset, None, kind), *noise, Td(shown, method)]


def level_value(level: Level) -> str:
    """What a noise level sorts by: clean first, then kind and rate."""
    return "" if level.clean else f"{level.noise} {level.rate:09.6f}"


def value_cell(row: Row | None, best: float | None) -> Td:
    """A mean as the results show it: never a number where nothing ran."""
    if row is None:
        return Td("–", None, "num none")
    if row.mean is None:
        return Td(tag("span", row.state, class_=f"pill {'bad' if row.failed else 'none'}"), None, "num none")
    half = "" if row.half_width is None else f" ±{row.half_width:.3f}"
    parts: list[object] = []
    if row.state == "incomplete":
        words = f"{row.done} of {row.cells} cells"
        parts += [tag("span", "incomplete", class_="pill warn", title=words), " "]
    parts += [tag("b" if row.mean == best else "span", f"{row.mean:.4f}"), tag("small", half)]
    parts.append(tag("span", row.mark, class_=f"mark {direction(row)}", title=mark_words(row)))
    return Td(joined(parts), row.mean, "num value")


def direction(row: Row) -> str:
    """The class of a significance mark."""
    return "" if not row.mark else ("up" if BETTER in row.mark else "down")


def mark_words(row: Row) -> str | None:
    """A significance mark in words."""
    if not row.mark or row.difference is None or row.p_holm is None:
        return None
    return f"{'better' if row.difference > 0 else 'worse'} than the baseline, p = {p_value(row.p_holm)}"


def p_value(value: float) -> str:
    """A p-value; one below .0001 is said to be so.

    >>> p_value(0.04321), p_value(0.000012)
    ('0.0432', '< 0.0001')
    """
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def folded(heading: str, *content: object) -> Safe:
    """Content folded away under its heading."""
    return tag("details", tag("summary", heading), *content)


def verdict_cell(verdict: Verdict) -> Td:
    """A verdict as a shape, a word and what it lacks."""
    shape, kind = SHAPE_OF[verdict.verdict]
    note = tag("small", f" {verdict.note}") if verdict.note else None
    shown = joined([tag("span", f"{shape} {verdict.verdict}", class_=f"pill {kind}"), note])
    return Td(shown, verdict.verdict)
