"""Tables in Markdown for documents."""

from collections.abc import Mapping, Sequence

from cleanrank.report.collapse import Collapse
from cleanrank.report.published import Verdict
from cleanrank.report.summaries import Row, Summary
from cleanrank.report.traces import SOURCES, realised


def markdown_table(summary: Summary, measures: Sequence[str] | None = None) -> str:
    """The results as a Markdown table: mean ± half the interval, and the mark.

    Where nothing ran the table has a word, not a number.

    Args:
        summary: what ``summarise`` gave.
        measures: the columns; all measures unless given.
    """
    shown = tuple(measures or summary.measures)
    noise = len(summary.levels) > 1
    head = ["data set", *(["noise"] if noise else []), "method", *shown]
    lines = []
    for row in summary.rows:
        if row.measure == summary.measures[0]:  # once for all measures
            names = [row.dataset, *([row.level.label] if noise else []), row.method]
            found = [summary.find(row.dataset, row.level, row.method, m) for m in shown]
            lines.append([*names, *(_value(r) for r in found)])
    return _table(head, lines, left=len(head) - len(shown)) + _foot(summary)


def markdown_verdicts(verdicts: Sequence[Verdict]) -> str:
    """Published figures beside ours as a Markdown table."""
    head = ["data set", "noise", "method", "measure", "published", "ours", "tolerance", "verdict", "source"]
    lines = [
        [
            v.dataset + (f", fold {v.fold}" if v.fold else ""),
            v.level.label,
            v.method,
            v.measure,
            "–" if v.published is None else f"{v.published:.{max(v.decimals, 1)}f}",
            "–" if v.ours is None else f"{v.ours:.4f}",
            "–" if v.tolerance is None else f"±{v.tolerance:.4f}",
            v.verdict + (f" ({v.note})" if v.note and v.verdict else v.note),
            v.source,
        ]
        for v in verdicts
    ]
    return _table(head, lines, left=4)


def markdown_pair_noise(summary: Summary) -> str:
    """The noise of the training labels at each level: counted dNoise and pNoise beside the closed forms."""
    found = {what: realised(summary, what) for what in SOURCES}
    places = [
        (d, v) for d in summary.datasets for v in summary.levels if (d, v) in found["pnoise"] and not v.clean
    ]
    head = ["data set", "noise", "dNoise", "pNoise", "closed form", "overall shares"]
    lines = [
        [
            dataset,
            level.label,
            *("–" if (v := by.get((dataset, level))) is None else f"{v:.4f}" for by in found.values()),
        ]
        for dataset, level in places
    ]
    return _table(head, lines, left=2)


def markdown_collapse(found: Mapping[str, Collapse]) -> str:
    """How much of the loss dNoise and pNoise explain, a line for each of several comparisons."""
    head = [
        "",
        "levels",
        "data sets",
        "R² over dNoise",
        "R² over pNoise",
        "gain",
        "ρ with dNoise",
        "ρ with pNoise",
    ]
    lines = [
        [
            name,
            str(c.points),
            str(c.datasets),
            *(_between(e.r2, e.r2_low, e.r2_high) for e in (c.dnoise, c.pnoise)),
            _between(c.gain, c.gain_low, c.gain_high),
            *(_between(e.spearman, e.spearman_low, e.spearman_high) for e in (c.dnoise, c.pnoise)),
        ]
        for name, c in found.items()
    ]
    return _table(head, lines, left=1)


def _between(value: float, low: float, high: float) -> str:
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"


def _value(row: Row | None) -> str:
    if row is None:
        return "–"
    if row.mean is None:
        return row.state
    half = "" if row.half_width is None else f" ±{row.half_width:.3f}"
    lack = f" (incomplete: {row.done} of {row.cells} cells)" if row.state == "incomplete" else ""
    return f"{row.mean:.4f}{half}{' ' + row.mark if row.mark else ''}{lack}"


def _foot(summary: Summary) -> str:
    words = f"\nMean ± half the {summary.confidence:.0%} bootstrap interval over queries."
    if summary.baseline is not None:
        words += (
            f" ▲ better, ▼ worse than {_cell(summary.baseline)} with p < .05, doubled with p < .01"
            " (Fisher, Holm)."
        )
    return words + "\n"


def _cell(text: str) -> str:
    r"""A text that cannot end its cell.

    >>> print(_cell("a|b"))
    a\|b
    """
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")


def _table(head: Sequence[str], lines: Sequence[Sequence[str]], *, left: int) -> str:
    rule = [":--" if i < left else "--:" for i in range(len(head))]
    return "".join(
        f"| {' | '.join(row)} |\n"
        for row in ([_cell(h) for h in head], rule, *([_cell(c) for c in r] for r in lines))
    )
