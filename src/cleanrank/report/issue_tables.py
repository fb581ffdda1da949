"""Label issues as tables and as a page: counts by grade, what to judge next and why, what that would win."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cleanrank.issues.rejudging import Rejudging
from cleanrank.issues.table import LabelIssues
from cleanrank.report.sections import Section, write_sections
from cleanrank.report.table import Cell, Table, number

WORST = (
    ("row", "row_id"),
    ("query", "query_id"),
    ("document", "doc_id"),
    ("given", "given_label"),
    ("suggested", "suggested_label"),
    ("doubt", "doubt", ".3f"),
    ("why", "why"),
)
PROBABILITY = "Doubt is the probability that the label is wrong, as far as the noise is as stated."
ORDER = "Doubts order the rows, from 0 to 1, the most doubtful first; they are no probabilities."
ASSUMED = (
    "Wrong labels found: expected, with a {level:.0%} interval. pNoise: the share of wrong pairs, "
    "{before:.1%} as labelled. New judgements are taken as right. {checked}"
)
CHECKED = "The doubts were checked on the rows that are judged already."
UNCHECKED = (
    "Nothing was checked: if errors follow the features, fewer are found. Judge some rows again (--gold)."
)


def worst_table(
    explanations: Sequence[Mapping[str, Any]],
    caption: str = "",
    texts: Mapping[str, Sequence[Any]] | None = None,
) -> Table:
    """A row per explained label; documents where they are known; ``texts``: heading -> cells.

    On narrow pages the texts and the reason stand below the figures of their row.
    """
    named = any(each["doc_id"] is not None for each in explanations)
    columns = [column for column in WORST if named or column[1] != "doc_id"]
    table = Table.of(explanations, columns, caption=caption)
    head, rows = [*table.head[:-1], *(texts or {}), table.head[-1]], []
    for place, cells in enumerate(table.cells):
        words = [
            Cell("" if v[place] is None else str(v[place]), kind="below") for v in (texts or {}).values()
        ]
        rows.append([*cells[:-1], *words, replace(cells[-1], kind="below")])
    align = table.align[:-1] + "l" * (len(head) - len(table.head) + 1)
    return replace(table, head=head, rows=rows, align=align)


def by_grade_table(issues: LabelIssues, quality: Mapping[str, Any] | None = None, caption: str = "") -> Table:
    """Issues by given grade, with the quality of the detector where the truth is known."""
    columns = [
        ("given grade", "grade"),
        ("documents", "n", ","),
        ("issues", "issues", ","),
        ("share", "share", ".2%"),
    ]
    if quality is not None:
        measures = ("precision", "recall", "average precision")
        columns += [("wrong labels", "base_rate", ".2%")]
        columns += [(name, name.replace(" ", "_"), ".3f") for name in measures]
    rows = []
    for grade, share in issues.shares_by_grade().items():
        part = issues.select(issues.given_label == grade)
        of_grade = {} if quality is None else quality[f"grade {grade}"]
        rows.append({**of_grade, "grade": grade, "n": len(part), "issues": part.n_issues, "share": share})
    return Table.of(rows, columns, caption=caption)


def rejudging_table(
    plans: Sequence[Rejudging], caption: str = "", *, is_checked: bool = False, level: float = 0.95
) -> Table:
    """What judging the most doubted rows again costs and wins, a row per number of rows."""
    head = (
        "rows judged again",
        "cost",
        "wrong labels found",
        "at random",
        "wrong labels left",
        "pNoise after",
    )
    rows: list[list[str | Cell]] = [
        [
            number(plan.rows, ","),
            number(plan.cost, ",.2f"),
            Cell(f"{plan.wrong:,.0f} [{plan.low:,.0f}, {plan.high:,.0f}]", plan.wrong),
            number(plan.at_random, ",.0f"),
            number(plan.wrong_left, ",.0f"),
            number(plan.pnoise_after, ".1%"),
        ]
        for plan in plans
    ]
    checked = CHECKED if is_checked else UNCHECKED
    notes = [ASSUMED.format(level=level, before=p.pnoise_before, checked=checked) for p in plans[:1]]
    return Table(head, rows, caption=caption, notes=notes)


def write_issues_page(
    path: str | os.PathLike[str],
    issues: LabelIssues,
    worst: Sequence[Mapping[str, Any]],
    *,
    name: str,
    table_file: str,
    is_probability: bool,
    texts: Mapping[str, Sequence[Any]] | None = None,
    remarks: Sequence[str] = (),
    quality: Mapping[str, Any] | None = None,
    plans: Sequence[Rejudging] = (),
    is_checked: bool = False,
) -> Path:
    """Writes the page of a table of issues.

    Args:
        path: the file to write.
        issues: the table.
        worst: explanations of the rows to judge next, as records.
        name: of the data.
        table_file: the name of the file that lists all rows.
        is_probability: whether doubts are probabilities of a wrong label.
        texts: columns of text that came with the data, a cell for each of ``worst``.
        remarks: what a reader must know.
        quality: of the detector, where the truth is known.
        plans: what judging again wins.
        is_checked: whether their doubts were checked on judged rows.
    """
    known = [] if issues.signal is None else [f"Signal of the features, out of fold: {issues.signal}."]
    listed = f"{len(worst):,} of {len(issues):,} labels are listed here; {table_file} has all of them."
    doubt = PROBABILITY if is_probability else ORDER
    table = [worst_table(worst, "Most doubted first", texts)] if worst else []
    sections = [
        Section("What to judge next", [f"{listed} {doubt}", *remarks, *table]),
        Section(
            "What judging again wins",
            [rejudging_table(plans, "The most doubted rows judged again", is_checked=is_checked)]
            if plans
            else [],
        ),
        Section("What the features know", [*known, issues.caution]),
        Section("By grade", [by_grade_table(issues, quality, "Issues by given grade")]),
    ]
    figures = [
        (f"{len(issues):,}", "labels"),
        (f"{issues.n_issues:,}", "are doubted enough to act on"),
        (f"{issues.share:.2%}", "of all"),
    ]
    return write_sections(path, f"Labels to look at again: {name}", sections, figures=figures)
