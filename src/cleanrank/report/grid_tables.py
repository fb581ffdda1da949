"""The tables of a grid, for pages and for Markdown: results, published figures, tests, folds, gaps, noise."""

from collections.abc import Iterable, Mapping, Sequence

from markupsafe import Markup

from cleanrank.report.collapse import SOURCES, Collapse, realised
from cleanrank.report.means import plain_mean
from cleanrank.report.published import VERDICT_MARKS, Verdict
from cleanrank.report.summaries import BETTER, WORSE, Level, Row, Summary
from cleanrank.report.summaries import Cell as GridCell
from cleanrank.report.table import ABSENT, Cell, Line, Table, convention, number

AT_ONCE = 5  # measures side by side in one table: what fits a laptop and a sheet of paper
PILL = Markup('<span class="pill {}">{}</span>')
EXPLAINED = {
    "Noise": "kind and rate of the noise in the training labels",
    "Mean": "over all folds' test queries, averaged over seeds",
    "Seed SD": "standard deviation of the seeds' means",
    "Cells": "done of expected",
    "Seeds": "done of expected",
    "Difference": "from the baseline",
    "Tolerance": "how far ours may lie from the published figure",
    "p": "Fisher, two-sided",
    "p (Holm)": "corrected over all comparisons of this measure",
}


def chunks(measures: Sequence[str]) -> list[Sequence[str]]:
    """The measures in groups that fit side by side."""
    return [measures[i : i + AT_ONCE] for i in range(0, len(measures), AT_ONCE)]


def p_value(value: float | None) -> Cell:
    """A p-value; one below .0001 is said to be so.

    >>> p_value(0.04321).text, p_value(0.000012).text
    ('0.0432', '< 0.0001')
    """
    if value is not None and value < 0.0001:
        return Cell("< 0.0001", value)
    return number(value)


def _head(summary: Summary) -> list[str]:
    """Headings of the columns that name a row; noise only where there are several levels."""
    return ["Data set", *(["Noise"] if len(summary.levels) > 1 else []), "Method"]


def _names(summary: Summary, dataset: str, level: Level, method: str, *, again: bool = False) -> list[Cell]:
    """The cells that name a row; ``again`` mutes what the row above says too."""
    kind = "name again" if again else "name"
    noise = [Cell(level.label, None, kind)] if len(summary.levels) > 1 else []
    html = Markup('{}<span class="tagword"> baseline</span>').format(method)
    own = Cell(method, method, html=html if method == summary.baseline else None)
    return [Cell(dataset, None, kind), *noise, own]


def results_table(summary: Summary, measures: Sequence[str] | None = None) -> Table:
    """Means with half-intervals and marks: a row per data set, noise and method, a column per measure.

    Where nothing ran the table has a word, not a number. All measures are shown unless given.
    """
    measures = tuple(measures or summary.measures)
    groups: dict[tuple[str, Level], dict[str, None]] = {}
    for row in summary.rows:
        groups.setdefault((row.dataset, row.level), {})[row.method] = None
    rows: list[Line] = []
    kinds = []
    for (dataset, level), methods in groups.items():
        best = [_best(summary, dataset, level, m) for m in measures]
        for i, method in enumerate(methods):
            own = [summary.find(dataset, level, method, m) for m in measures]
            values = [value_cell(row, most) for row, most in zip(own, best, strict=True)]
            rows.append([*_names(summary, dataset, level, method, again=i > 0), *values])
            kinds.append("" if i else "first")
    foot = f"Mean ± half the {summary.confidence:.0%} bootstrap interval over queries."
    if summary.baseline is not None:
        foot += f" {BETTER} better, {WORSE} worse than {summary.baseline} with p < .05, doubled with p < .01"
        foot += " (Fisher, Holm)."
    return Table(
        [*_head(summary), *measures],
        rows,
        caption=f"Mean ± half the {summary.confidence:.0%} interval: {', '.join(measures)}",
        headed=len(_head(summary)),
        explained={**EXPLAINED, **{m: convention(m) for m in measures}},
        notes=[foot],
        row_kinds=kinds,
    )


def _best(summary: Summary, dataset: str, level: Level, measure: str) -> float | None:
    rows = [summary.find(dataset, level, m, measure) for m in summary.methods]
    means = [r.mean for r in rows if r is not None and r.mean is not None and r.state == "complete"]
    return max(means) if len(means) > 1 else None


def value_cell(row: Row | None, best: float | None = None) -> Cell:
    """A mean as the results show it: never a number where nothing ran."""
    if row is None:
        return Cell(ABSENT, None, "none")
    if row.mean is None:
        return Cell(row.state, None, "none", PILL.format("bad" if row.failed else "none", row.state))
    half = "" if row.half_width is None else f" ±{row.half_width:.3f}"
    lack = f"{row.done} of {row.cells} cells" if row.state == "incomplete" else ""
    text = f"{row.mean:.4f}{half}{' ' + row.mark if row.mark else ''}"
    pill = Markup('<span class="pill warn" title="{}">incomplete</span> ').format(lack) if lack else Markup()
    bold = "b" if row.mean == best else "span"
    html = Markup(f"{{}}<{bold}>{{:.4f}}</{bold}><small>{{}}</small>{{}}").format(
        pill, row.mean, half, _mark(row)
    )
    return Cell(f"{text} (incomplete: {lack})" if lack else text, row.mean, "value", html)


def _mark(row: Row) -> Markup:
    if not row.mark or row.difference is None:
        return Markup('<span class="mark"></span>')
    better = row.difference > 0
    words = f"{'better' if better else 'worse'} than the baseline, p = {p_value(row.p_holm).text}"
    return Markup('<span class="mark {}" title="{}">{}</span>').format(
        "up" if better else "down", words, row.mark
    )


def verdict_table(verdicts: Iterable[Verdict], caption: str = "") -> Table:
    """Published figures beside ours, each with its verdict and the tolerance used."""
    rows: list[Line] = [
        [
            Cell(v.dataset + (f", fold {v.fold}" if v.fold else ""), None, "name"),
            Cell(v.level.label, None, "name"),
            v.method,
            v.measure,
            number(v.published, f".{max(v.decimals, 1)}f"),
            number(v.ours),
            number(v.difference, "+.4f"),
            Cell(ABSENT) if v.tolerance is None else Cell(f"±{v.tolerance:.4f}", v.tolerance),
            verdict_cell(v.verdict, v.note),
            Cell(v.source, v.source, "source"),
        ]
        for v in verdicts
    ]
    head = ["Data set", "Noise", "Method", "Measure", "Published", "Ours", "Difference", "Tolerance",
            "Verdict", "Source"]  # fmt: skip
    explained = {**EXPLAINED, "Difference": "ours minus published"}
    return Table(head, rows, caption=caption, align="llllrrrrll", headed=3, explained=explained)


def verdict_cell(verdict: str, note: str = "") -> Cell:
    """A verdict as a shape, a word and what it lacks."""
    shape, kind = VERDICT_MARKS.get(verdict, VERDICT_MARKS[""])
    html = PILL.format(kind, f"{shape} {verdict}")
    if note:
        html += Markup("<small> {}</small>").format(note)
    return Cell(f"{verdict} ({note})" if note and verdict else verdict or note, verdict, html=html)


def measure_table(summary: Summary, measure: str) -> Table:
    """Intervals, spreads and tests of one measure."""
    tested = summary.baseline is not None
    interval = f"{summary.confidence:.0%} interval"
    head = [*_head(summary), "Mean", interval, "Seed SD", "Queries", "Cells"]
    if tested:
        head += ["Difference", "p", "p (Holm)"]
    rows: list[Line] = []
    for row in (r for r in summary.rows if r.measure == measure):
        cells: Line = [
            *_names(summary, row.dataset, row.level, row.method),
            number(row.mean) if row.mean is not None else value_cell(row),
            _interval(row.low, row.high),
            number(row.seed_sd),
            number(row.n_queries or None, ",.0f"),
            _done(row.done, row.cells),
        ]
        if tested:
            difference = number(row.difference, "+.4f")
            html = Markup("{}{}").format(difference.text, _mark(row))
            difference = Cell(f"{difference.text} {row.mark}".strip(), difference.value, html=html)
            cells += [difference, p_value(row.p), p_value(row.p_holm)]
        rows.append(cells)
    return Table(
        head,
        rows,
        caption=measure,
        headed=len(_head(summary)),
        explained={**EXPLAINED, interval: "bootstrap over queries"},
    )


def _interval(low: float | None, high: float | None) -> Cell:
    return Cell(ABSENT) if low is None or high is None else Cell(f"{low:.4f} – {high:.4f}", low)


def _done(done: int, expected: int) -> Cell:
    words = f"{done} of {expected}"
    return Cell(words, float(done), html=None if done == expected else PILL.format("warn", words))


def fold_table(summary: Summary, dataset: str, measures: Sequence[str]) -> Table:
    """A row per noise level, method and fold: means over the seeds that ran it."""
    groups: dict[tuple[Level, str, str], list[GridCell]] = {}
    for cell in summary.cells:
        if cell.dataset == dataset:
            groups.setdefault((cell.level, cell.method, cell.fold), []).append(cell)
    noise = len(summary.levels) > 1
    rows: list[Line] = []
    for (level, method, fold), cells in groups.items():
        done = [c for c in cells if c.status == "done"]
        rows.append(
            [
                *([Cell(level.label, None, "name")] if noise else []),
                method,
                Cell(fold or ABSENT, fold),
                _done(len(done), len(cells)),
                *(number(plain_mean([c.means[m] for c in done if m in c.means])) for m in measures),
            ]
        )
    return Table(
        [*(["Noise"] if noise else []), "Method", "Fold", "Seeds", *measures],
        rows,
        caption=f"{dataset} by fold, means over seeds: {', '.join(measures)}",
        headed=3 if noise else 2,
        explained=EXPLAINED,
    )


def gap_table(summary: Summary) -> Table:
    """The cells that failed or are missing, with their tracebacks."""
    rows: list[Line] = [
        [
            Cell(c.dataset, None, "name"),
            Cell(c.level.label, None, "name"),
            c.method,
            c.fold or ABSENT,
            c.seed or ABSENT,
            Cell(c.status, c.status, html=PILL.format("bad" if c.status == "failed" else "none", c.status)),
            _error(c.error.strip()),
        ]
        for c in summary.gaps
    ]
    head = ["Data set", "Noise", "Method", "Fold", "Seed", "State", "Error"]
    return Table(head, rows, caption="Cells that failed or are missing", align="lllllll", headed=3)


def _error(text: str) -> Cell:
    if not text:
        return Cell(ABSENT)
    last = text.splitlines()[-1]
    html = Markup("<details><summary>{}</summary><pre>{}</pre></details>").format(last, text)
    return Cell(last, text[:40], html=html)


def pair_noise_table(summary: Summary) -> Table:
    """The noise of the training labels at each level: counted dNoise and pNoise beside the closed forms."""
    figures = {what: realised(summary, what) for what in SOURCES}
    rows: list[Line] = [
        [dataset, level.label, *(number(by.get((dataset, level))) for by in figures.values())]
        for dataset in summary.datasets
        for level in summary.levels
        if (dataset, level) in figures["pnoise"] and not level.clean
    ]
    head = ["Data set", "Noise", "dNoise", "pNoise", "Closed form", "Overall shares"]
    return Table(head, rows, headed=2)


def collapse_table(collapses: Mapping[str, Collapse]) -> Table:
    """How much of the loss dNoise and pNoise explain, a line for each of several comparisons."""
    rows = []
    for name, c in collapses.items():
        r2, rho = [c.dnoise.r2, c.pnoise.r2, c.gain], [c.dnoise.spearman, c.pnoise.spearman]
        rows.append([name, str(c.points), str(c.datasets), *(str(e) for e in (*r2, *rho))])
    head = ["", "Levels", "Data sets", "R² over dNoise", "R² over pNoise", "Gain", "ρ with dNoise",
            "ρ with pNoise"]  # fmt: skip
    return Table(head, rows)
