"""The folded parts of a page: published figures, intervals and tests by measure, and the folds."""

import math
from collections.abc import Iterable, Sequence

from cleanrank.report.grid import Cell, Level
from cleanrank.report.page import Safe, Td, joined, number, table, tag
from cleanrank.report.published import AGREES, DIFFERS, NOT_RUN, Verdict
from cleanrank.report.shown import (
    RULE,
    chunks,
    convention,
    direction,
    folded,
    level_value,
    many,
    name_columns,
    names,
    p_value,
    value_cell,
    verdict_cell,
)
from cleanrank.report.summaries import Row, Summary


def against_published(verdicts: Sequence[Verdict], summary: Summary) -> Safe | None:
    """Our figures beside the published ones, each with its verdict and the tolerance used."""
    if not verdicts:
        return None
    judged = [v for v in verdicts if v.published is not None and not v.context]
    context = [v for v in verdicts if v.context]
    alone = [v for v in verdicts if v.published is None]
    count = [f"{w}: {sum(v.verdict == w for v in judged)}" for w in (AGREES, DIFFERS, NOT_RUN)]
    made: list[object] = [tag("h2", "Published figures")]
    if judged:
        made += [tag("p", " · ".join(count) + ". ", RULE, class_="hint"), _verdict_table(judged, summary)]
    if context:
        made += [
            tag("h3", "For orientation"),
            tag("p", "Other rankers' published figures; they get no verdict.", class_="hint"),
            _context_table(context, summary),
        ]
    if alone:
        heading = f"No published figure for {many(len(alone), 'figure')} of ours"
        made.append(folded(heading, _alone_table(alone, summary)))
    return tag("section", *made, id="published")


def _verdict_table(verdicts: Iterable[Verdict], summary: Summary) -> Safe:
    columns = [
        *name_columns(summary),
        ("Measure", ""),
        ("Published", ""),
        ("Ours", ""),
        ("Difference", "ours minus published"),
        ("Tolerance", "how far ours may lie from the published figure"),
        ("Verdict", ""),
        ("Source", ""),
    ]
    rows: list[list[Td | str]] = [
        [
            *names(summary, v.dataset + (f", fold {v.fold}" if v.fold else ""), v.level, v.method),
            v.measure,
            number(v.published, f".{max(v.decimals, 1)}f"),
            number(v.ours),
            number(v.difference, "+.4f"),
            number(v.tolerance, kind="plusminus"),
            verdict_cell(v),
            Td(v.source, v.source, "source"),
        ]
        for v in verdicts
    ]
    return table(columns, rows, caption="Published figures and ours", headed=len(name_columns(summary)))


def _context_table(verdicts: Iterable[Verdict], summary: Summary) -> Safe:
    columns = [*name_columns(summary), ("Measure", ""), ("Published", ""), ("Source", "")]
    rows: list[list[Td | str]] = [
        [
            *names(summary, v.dataset, v.level, v.method),
            v.measure,
            number(v.published, f".{max(v.decimals, 1)}f"),
            Td(v.source, v.source, "source"),
        ]
        for v in verdicts
    ]
    return table(columns, rows, caption="Other rankers' figures", headed=len(name_columns(summary)))


def _alone_table(verdicts: Iterable[Verdict], summary: Summary) -> Safe:
    columns = [*name_columns(summary), ("Measure", ""), ("Ours", ""), ("Verdict", "")]
    rows: list[list[Td | str]] = [
        [*names(summary, v.dataset, v.level, v.method), v.measure, number(v.ours), verdict_cell(v)]
        for v in verdicts
    ]
    return table(columns, rows, caption="Figures of ours alone", headed=len(name_columns(summary)))


def details(summary: Summary) -> Safe:
    """Intervals, spreads and tests by measure, then the folds, all folded away."""
    by_measure = [
        folded(m, tag("p", convention(m), class_="hint"), _measure_table(summary, m))
        for m in summary.measures
    ]
    folds = [
        folded(
            f"Folds of {dataset}",
            *(_fold_table(summary, dataset, part) for part in chunks(summary.measures)),
        )
        for dataset in summary.datasets
    ]
    return tag("section", tag("h2", "Details"), *by_measure, *folds, id="details")


def _measure_table(summary: Summary, measure: str) -> Safe:
    columns = [
        *name_columns(summary),
        ("Mean", "over all folds' test queries, averaged over seeds"),
        (f"{summary.confidence:.0%} interval", "bootstrap over queries"),
        ("Seed SD", "standard deviation of the seeds' means"),
        ("Queries", ""),
        ("Cells", "done of asked for"),
    ]
    tested = summary.baseline is not None
    if tested:
        columns += [
            ("Difference", "from the baseline"),
            ("p", "Fisher, two-sided"),
            ("p (Holm)", "corrected over all comparisons of this measure"),
        ]
    rows = [_measure_row(summary, r, tested) for r in summary.rows if r.measure == measure]
    return table(columns, rows, caption=measure, headed=len(name_columns(summary)))


def _measure_row(summary: Summary, row: Row, tested: bool) -> list[Td | str]:
    interval = "–" if row.low is None or row.high is None else f"{row.low:.4f} – {row.high:.4f}"
    mean = number(row.mean) if row.mean is not None else value_cell(row, None)
    cells: list[Td | str] = [
        *names(summary, row.dataset, row.level, row.method),
        mean,
        Td(interval, row.low, "num"),
        number(row.seed_sd),
        number(float(row.n_queries) or None, ",.0f"),
        Td(_cells_word(row), float(row.done), "num"),
    ]
    if tested:
        cells += [
            _difference(row),
            Td("–" if row.p is None else p_value(row.p), row.p, "num"),
            Td("–" if row.p_holm is None else p_value(row.p_holm), row.p_holm, "num"),
        ]
    return cells


def _difference(row: Row) -> Td:
    plain = number(row.difference, "+.4f")
    mark = tag("span", row.mark, class_=f"mark {direction(row)}")
    return Td(joined([plain.shown, mark]), plain.value, plain.kind)


def _cells_word(row: Row) -> object:
    words = f"{row.done} of {row.cells}"
    return words if row.state == "complete" else tag("span", words, class_="pill warn")


def _fold_table(summary: Summary, dataset: str, measures: Sequence[str]) -> Safe:
    """A row per noise level, method and fold: means over the seeds that ran it."""
    groups: dict[tuple[Level, str, str], list[Cell]] = {}
    for cell in summary.cells:
        if cell.dataset == dataset:
            groups.setdefault((cell.level, cell.method, cell.fold), []).append(cell)
    noise = len(summary.levels) > 1
    columns = [
        *([("Noise", "")] if noise else []),
        ("Method", ""),
        ("Fold", ""),
        ("Seeds", "done of asked for"),
    ]
    rows = []
    for (level, method, fold), cells in groups.items():
        done = [c for c in cells if c.status == "done"]
        words = f"{len(done)} of {len(cells)}"
        state: object = words if len(done) == len(cells) else tag("span", words, class_="pill warn")
        rows.append(
            [
                *([Td(level.label, level_value(level), "name")] if noise else []),
                Td(method),
                Td(fold or "–", fold),
                Td(state, float(len(done)), "num"),
                *(number(_mean([c.means[m] for c in done if m in c.means])) for m in measures),
            ]
        )
    caption = f"{dataset} by fold, means over seeds: {', '.join(measures)}"
    return table([*columns, *((m, "") for m in measures)], rows, caption=caption, headed=3 if noise else 2)


def _mean(values: Sequence[float]) -> float | None:
    there = [v for v in values if not math.isnan(v)]
    return math.fsum(there) / len(there) if there else None
