"""The reproduction matrix as a page with search and filters, and as Markdown, from plain values.

``lines`` are the dictionaries of ``experiments.matrix``: one per published figure.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cleanrank.report.charts import asset
from cleanrank.report.pages import Page, write_page
from cleanrank.report.published import RULE
from cleanrank.report.table import Table, number

Line = Mapping[str, Any]
TITLE = "The reproduction matrix"
# The sign of each verdict, the style of its word, and what it means.
MEANINGS = {
    "agrees": ("●", "ok", "measured on the paper's own data, within the tolerance"),
    "differs": ("✕", "bad", "measured on the paper's own data, outside of the tolerance"),
    "same direction": ("▲", "ok", "on other data the figure lies on the same side of its reference"),
    "opposite direction": ("▼", "warn", "on other data the figure lies on the other side of its reference"),
    "wrong in the paper": ("◆", "warn", "an erratum shows it"),
    "not computable here": ("○", "none", "data are not at hand, or the source does not say enough"),
    "not run": ("–", "none", "a recipe could measure it here and has not run"),
}
INTRODUCTION = (
    "Every figure that the papers behind cleanrank print, ours beside it, and a verdict or the reason why "
    "there is none. Figures on the paper's own data are judged by their value; on other data (stand-ins) a "
    "value has no counterpart, and only directions are compared. Our figures come from the files of "
    "`results/`, which travel with the code, and from the store of this machine; "
    "`cleanrank reproduce RECIPE --recompute` computes them again."
)


def counts_table(lines: Sequence[Line]) -> Table:
    """How many figures of each paper have each verdict."""
    papers = list(dict.fromkeys(line["source"] for line in lines))
    rows: list[Any] = []
    for name in [*papers, "all"]:
        mine = Counter(line["verdict"] for line in lines if name in (line["source"], "all"))
        rows.append([name, *(number(mine[v] or None, ".0f", absent="") for v in MEANINGS), str(mine.total())])
    return Table(["Paper", *MEANINGS, "figures"], rows, align="l" + "r" * (len(MEANINGS) + 1))


def totals(lines: Sequence[Line]) -> str:
    """How many figures were measured, on which data, and how many directions are more than chance."""
    real, other = ([line for line in lines if line["data"] == kind] for kind in ("real", "stand-in"))
    distinct = len({(line["recipe"], line["dataset"], line["observed"]) for line in other})
    clear = [line for line in lines if line["clear"]]
    same = sum(line["verdict"] == "same direction" for line in clear)
    return (
        f"Of {len(lines)} figures {len(real)} were measured on the paper's own data and {len(other)} on "
        f"stand-ins, by {distinct} different results, for one result may stand for several figures. On "
        f"stand-ins {len(clear)} differences lie beyond their error (1.96 standard errors over queries and "
        f"seeds); {same} of these have the direction of the paper."
    )


def groups(lines: Sequence[Line]) -> list[tuple[str, str, list[Line]]]:
    """(paper, table, its figures), in the order of the figures."""
    by_table: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        by_table.setdefault((line["source"], line["table"]), []).append(line)
    return [(source, table, mine) for (source, table), mine in by_table.items()]


def shown(value: Any, digits: int = 4) -> str:
    """A figure as the tables show it; words stay words.

    >>> shown(0.51234), shown(">0.4"), shown(None), shown(16140.0)
    ('0.5123', '>0.4', '', '16,140')
    """
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value:,.0f}" if abs(value) >= 20 else f"{value:.{digits}f}"


def observed(line: Line) -> str:
    """Our figure with its interval."""
    interval = f" [{line['low']:.4f}, {line['high']:.4f}]" if line["low"] is not None else ""
    return shown(line["observed"]) + interval


def write_matrix(lines: Sequence[Line], path: str | os.PathLike[str]) -> Path:
    """Writes the page: all figures without a script, and with one a search box and filters.

    Args:
        lines: the figures.
        path: the file to write.

    Returns:
        The path.
    """
    values = {
        "introduction": INTRODUCTION,
        "totals": totals(lines),
        "counts": counts_table(lines),
        "meanings": MEANINGS,
        "groups": groups(lines),
        "papers": list(dict.fromkeys(line["source"] for line in lines)),
        "total": len(lines),
        "shown": shown,
        "observed": observed,
        "rule": RULE,
    }
    return write_page(path, Page("matrix.html", TITLE, values), script=asset("matrix.js"))


def matrix_markdown(lines: Sequence[Line]) -> str:
    """The matrix as a Markdown page; reasons stand below the table of their figures, each once.

    Args:
        lines: the figures.

    Returns:
        The page.
    """
    parts = [f"# {TITLE}", INTRODUCTION, totals(lines), RULE, counts_table(lines).markdown()]
    parts += ["\n".join(f"* {sign} *{name}*: {meaning}" for name, (sign, _, meaning) in MEANINGS.items())]
    parts += ["Written by `cleanrank reproduce --matrix --markdown docs/results/matrix.md`."]
    for source, table, mine in groups(lines):
        reasons = list(dict.fromkeys(line["why"] for line in mine if line["why"]))
        rows = [_markdown_row(line, reasons) for line in mine]
        head = ["row", "column", "expected", "observed", "verdict", "data", "why"]
        parts += [f"## {source}, {table}", Table(head, rows, align="llrrlll").markdown()]
        parts += ["\n".join(f"{i}. {reason}" for i, reason in enumerate(reasons, 1))] if reasons else []
        parts += [_origins(mine)]
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def _markdown_row(line: Line, reasons: Sequence[str]) -> list[str]:
    sign, _, _ = MEANINGS[line["verdict"]]
    verdict = f"{sign} {line['verdict']}"
    if line["erratum"]:
        verdict += f" ([{line['erratum'].upper()}](../errata.md))"
    why = f"({reasons.index(line['why']) + 1})" if line["why"] else ""
    data = {"real": "real", "stand-in": f"stand-in: {line['dataset']}"}.get(line["data"] or "", "")
    return [line["row"], line["column"], shown(line["expected"]), observed(line), verdict, data, why]


def _origins(lines: Iterable[Line]) -> str:
    """The recipes behind a table, and where their results came from."""
    places = dict.fromkeys(
        f"`cleanrank reproduce {line['recipe']}` ({line['origin']['from']}, {line['origin']['ran']})"
        for line in lines
        if line["recipe"] and line["observed"] is not None
    )
    return f"Measured by {', '.join(places)}." if places else ""
