"""What commands share: where things are printed, progress, tables."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from cleanrank.metrics.comparison import Comparison
from cleanrank.metrics.evaluation import Evaluation
from cleanrank.metrics.measure import describe_parts
from cleanrank.report.table import plain

# A pipe or a file gets whole lines; only a terminal's width may fold a table.
WIDE = 200


def out() -> Console:
    """Data: stdout, as they are: a name such as ``bm25[k1]`` or ``:x:`` is no markup."""
    width = None if sys.stdout.isatty() else WIDE
    return Console(width=width, highlight=False, markup=False, emoji=False)


def note(text: str) -> None:
    """A remark: stderr."""
    typer.echo(text, err=True)


def print_json(value: Any) -> None:
    """One JSON document on stdout; NaN becomes null."""
    typer.echo(json.dumps(plain(value), indent=2, allow_nan=False))


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal's stderr, silence elsewhere; yields ``tick(done, total)``."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def steps(count: int) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for work of several named steps; yields ``tick(step, done, total)``.

    The bar shows steps done and, within a step that knows its size, how far it is. Elsewhere than on a
    terminal each step is one line on stderr.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.fields[place]}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=count, place="")
        seen: list[str] = []

        def tick(step: str, done: int, total: int) -> None:
            if step not in seen:
                seen.append(step)
                if not console.is_terminal:
                    note(f"{step} ...")
            part = min(done / total, 1.0) if total else 0.0
            place = f"{len(seen)}/{count}"
            bar.update(task, completed=len(seen) - 1 + part, description=step, place=place)

        yield tick


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 1, title: str = "") -> None:
    """A table on stdout; the first ``left`` columns are words, the others numbers."""
    shown = Table(title=title or None, title_justify="left", header_style="bold", box=None, pad_edge=False)
    for place, column in enumerate(columns):
        shown.add_column(column, justify="left" if place < left else "right", overflow="fold")
    for row in rows:
        shown.add_row(*row)
    out().print(shown)


def interval_head(level: float) -> str:
    """The head of a column of intervals.

    >>> interval_head(0.975)
    '97.5% interval'
    """
    return f"{100 * level:g}% interval"


def show_evaluation(found: Evaluation, level: float, seed: int) -> None:
    """Means with intervals, then each measure's convention."""
    intervals = found.intervals(level, seed)
    rows = []
    for measure, mean in found.means.items():
        low, high = intervals[measure]
        used = int((found[measure] == found[measure]).sum())
        rows.append((measure, f"{mean:.4f}", f"[{low:.4f}, {high:.4f}]", f"{used:,}"))
    table(("measure", "mean", interval_head(level), "queries"), rows)
    note("")
    for each in found.measures:
        note(f"{each}: {describe_parts(each)}")
    note(f"Intervals: bootstrap over queries, 10,000 resamples, seed {seed}.")


def show_comparison(found: Comparison) -> None:
    """Means, differences with intervals and p-values against the baseline."""
    rows = []
    for row in found.rows():
        if row["baseline"]:
            rows.append((row["system"], row["measure"], f"{row['mean']:.4f}", "baseline", "", "", "", ""))
            continue
        corrected = row["p_corrected"]
        rows.append(
            (
                row["system"],
                row["measure"],
                f"{row['mean']:.4f}",
                f"{row['difference']:+.4f}",
                f"[{row['low']:+.4f}, {row['high']:+.4f}]",
                f"{row['p']:.2g}",
                "" if corrected is None else f"{corrected:.2g}",
                f"{row['wins']}/{row['ties']}/{row['losses']}",
            )
        )
    settings = found.settings
    level = interval_head(settings["level"])
    head = ("system", "measure", "mean", "difference", level, "p", "p (Holm)", "won/tied/lost")
    table(head, rows, left=2)
    note("")
    note(explain_test(found))


def explain_test(found: Comparison) -> str:
    """One sentence on how the p-values came about."""
    settings = found.settings
    tests = {"fisher": "Fisher's randomisation test", "t": "paired t-test"}
    words = f"{tests[settings['test']]}, {settings['alternative']}"
    if settings["test"] == "fisher":
        count = settings["permutations"]
        words += f", {count:,} permutations" if isinstance(count, int) else ", all permutations"
    return f"{words}, seed {settings['seed']}; intervals: bootstrap over queries."
