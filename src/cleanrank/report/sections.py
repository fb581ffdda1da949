"""The parts of a report's page that are words and tables."""

import math
from collections.abc import Sequence

from cleanrank import __version__
from cleanrank.report.grid import Level
from cleanrank.report.page import Safe, Td, joined, table, tag
from cleanrank.report.shown import chunks, convention, level_value, many, name_columns, names, value_cell
from cleanrank.report.summaries import BETTER, WORSE, Summary
from cleanrank.types import RunRecord

LINKS = (
    ("pictures", "Pictures"),
    ("results", "Results"),
    ("published", "Published figures"),
    ("details", "Details"),
    ("gaps", "Gaps"),
    ("provenance", "Provenance"),
)


def header(
    summary: Summary,
    title: str,
    command: str,
    notes: Sequence[str],
    *,
    pictured: bool = True,
    judged: bool = False,
) -> Safe:
    """Title, size of the grid, command, notes and the way to the sections that are there."""
    skip = {"pictures": not pictured, "published": not judged, "gaps": not summary.gaps}
    links = [tag("a", words, href=f"#{name}") for name, words in LINKS if not skip.get(name)]
    return tag(
        "header",
        tag("div", tag("h1", title), theme_button(), class_="top"),
        tag("p", _size(summary), class_="lede"),
        *(tag("p", note, class_="note") for note in notes),
        command_block(command),
        tag("nav", *links, aria_label="Sections"),
    )


def theme_button() -> Safe:
    """The switch between light and dark."""
    return tag(
        "button", "Dark", type="button", id="theme", class_="quiet", aria_label="Switch to dark colours"
    )


def command_block(command: str) -> Safe:
    """A command and a button that copies it."""
    copy = tag("button", "Copy", type="button", class_="quiet copy", aria_label="Copy the command")
    return tag("div", tag("code", command), copy, class_="command")


def _size(summary: Summary) -> str:
    count = {s: sum(c.status == s for c in summary.cells) for s in ("done", "failed", "missing")}
    levels = [v for v in summary.levels if not v.clean]
    parts = [
        ", ".join(summary.datasets),
        many(len(summary.methods), "method"),
        many(len(summary.levels), "noise level") if levels else "clean labels",
        many(len({c.fold for c in summary.cells}), "fold"),
        many(len({c.seed for c in summary.cells}), "seed"),
        f"{count['done']:,} of {many(len(summary.cells), 'cell')} done",
    ]
    return " · ".join(parts)


def notice(summary: Summary) -> Safe | None:
    """A warning when cells failed or are missing."""
    if not summary.gaps:
        return None
    failed = sum(c.status == "failed" for c in summary.gaps)
    missing = len(summary.gaps) - failed
    words = [f"{many(n, 'cell')} {state}" for n, state in ((failed, "failed"), (missing, "missing")) if n]
    return tag(
        "p",
        tag("strong", " and ".join(words) + "."),
        " Means over the rest are marked incomplete, are not tested and get no verdict. ",
        tag("a", "See which", href="#gaps"),
        class_="notice",
        role="note",
    )


def results(summary: Summary) -> Safe:
    """Means with half-intervals: a row per data set, noise and method, a column per measure."""
    made = []
    groups = _groups(summary)
    for part in chunks(summary.measures):
        rows, kinds = [], []
        for dataset, level, methods in groups:
            best = {m: _best(summary, dataset, level, m) for m in part}
            for i, method in enumerate(methods):
                cells = [value_cell(summary.find(dataset, level, method, m), best[m]) for m in part]
                rows.append([*names(summary, dataset, level, method, again=i > 0), *cells])
                kinds.append("first" if i == 0 else "")
        columns = [*name_columns(summary), *((m, convention(m)) for m in part)]
        caption = f"Mean ± half the {summary.confidence:.0%} interval: {', '.join(part)}"
        made.append(table(columns, rows, caption=caption, headed=len(name_columns(summary)), row_kinds=kinds))
    return tag("section", tag("h2", "Results"), tag("p", _marks(summary), class_="hint"), *made, id="results")


def _marks(summary: Summary) -> Safe:
    parts: list[object] = ["The best complete mean of each data set and noise level is bold. "]
    if summary.baseline:
        parts += [
            f"{BETTER} better, {WORSE} worse than ",
            tag("b", summary.baseline),
            f" with p < .05, {BETTER * 2} and {WORSE * 2} with p < .01 (Fisher randomisation, "
            "Holm over all comparisons of a measure). ",
        ]
    return joined([*parts, "Click a heading to sort."])


def _groups(summary: Summary) -> list[tuple[str, Level, list[str]]]:
    found: dict[tuple[str, Level], dict[str, None]] = {}
    for row in summary.rows:
        found.setdefault((row.dataset, row.level), {})[row.method] = None
    return [(d, v, list(methods)) for (d, v), methods in found.items()]


def _best(summary: Summary, dataset: str, level: Level, measure: str) -> float | None:
    rows = [summary.find(dataset, level, m, measure) for m in summary.methods]
    means = [r.mean for r in rows if r is not None and r.mean is not None and r.state == "complete"]
    return max(means) if len(means) > 1 else None


def gaps(summary: Summary) -> Safe | None:
    """The cells that failed or are missing, with their tracebacks."""
    if not summary.gaps:
        return None
    columns = [
        ("Data set", ""),
        ("Noise", ""),
        ("Method", ""),
        ("Fold", ""),
        ("Seed", ""),
        ("State", ""),
        ("Error", ""),
    ]
    rows: list[list[Td | str]] = [
        [
            Td(c.dataset, None, "name"),
            Td(c.level.label, level_value(c.level), "name"),
            Td(c.method),
            c.fold or "–",
            c.seed or "–",
            Td(tag("span", c.status, class_=f"pill {'bad' if c.status == 'failed' else 'none'}"), c.status),
            Td(_error(c.error), c.error[:40]),
        ]
        for c in summary.gaps
    ]
    shown = table(columns, rows, caption="Cells that failed or are missing", headed=3)
    return tag("section", tag("h2", "Gaps"), shown, id="gaps")


def _error(text: str) -> object:
    lines = text.strip().splitlines()
    if not lines:
        return "–"
    return tag("details", tag("summary", lines[-1]), tag("pre", text.strip()))


def provenance(summary: Summary, records: Sequence[RunRecord], command: str) -> Safe:
    """Versions, seeds, conventions and statistics: what it takes to get the same page again."""
    versions: dict[str, dict[str, None]] = {}
    for record in records:
        for name, version in record.versions.items():
            versions.setdefault(name, {})[version] = None
    started = sorted(r.started_at for r in records if r.started_at)
    seconds = math.fsum(r.wall_seconds for r in records)
    items: list[tuple[str, object]] = [
        ("Command", tag("code", command)),
        ("Recipe", ", ".join(dict.fromkeys(r.recipe for r in records)) or "–"),
        ("Ran", f"{started[0]} to {started[-1]}" if started else "–"),
        ("Time in cells", f"{seconds:,.1f} s"),
        ("Seeds", ", ".join(dict.fromkeys(c.seed for c in summary.cells if c.seed)) or "none"),
        ("Versions", ", ".join(f"{n} {' and '.join(v)}" for n, v in sorted(versions.items())) or "–"),
        ("Statistics", _statistics(summary)),
    ]
    conventions = [tag("li", convention(m)) for m in summary.measures]
    listed = [joined([tag("dt", name), tag("dd", value)]) for name, value in items]
    return tag(
        "footer",
        tag("h2", "Provenance"),
        tag("dl", *listed),
        tag("h3", "Conventions"),
        tag("ul", *conventions, class_="conventions"),
        tag("p", f"Made with cleanrank {__version__}. Pictures: Vega (BSD-3-Clause).", class_="hint"),
        id="provenance",
    )


def _statistics(summary: Summary) -> str:
    words = (
        "A query's value is averaged over seeds; the test queries of all folds are pooled and each counts "
        f"once. Intervals: {summary.confidence:.0%} bootstrap over queries, {summary.resamples:,} resamples, "
        f"seed {summary.seed}."
    )
    if summary.baseline is None:
        return words
    return words + (
        f" Tests against {summary.baseline}: Fisher randomisation, two-sided, {summary.permutations:,} "
        f"permutations, seed {summary.seed}; Holm over all comparisons of a measure."
    )
