"""An audit of judgements as tables and as a page to hand to the assessors."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cleanrank.data.texts import texts_of
from cleanrank.issues.audit import FAR, Audit
from cleanrank.issues.by_query import CONCENTRATED, MOST_DOUBTED, QueryDoubt
from cleanrank.issues.evidence import quote
from cleanrank.issues.to_judge import text_columns
from cleanrank.judges.system_order import Span
from cleanrank.report.issue_tables import ORDER, by_grade_table, worst_table
from cleanrank.report.judge_tables import span_cell
from cleanrank.report.sections import Section, write_sections
from cleanrank.report.table import ABSENT, Cell, Line, Table, number

MOST_QUERIES = 20
LONGEST = 400  # letters of a text
KINDS = {"judge": "judge", "run": "system", "runs": "all systems", "score": "score", "text": "text"}
QUERIES = (
    f"A row counts as doubted if it is among the {MOST_DOUBTED:.0%} most doubted of all. A query looks "
    f"misread where {CONCENTRATED * MOST_DOUBTED:.0%} of its rows are. Order: the share of pairs of "
    "documents that models which never saw the query put in the order of the grades."
)
AGREES = (
    "Agreement: the share of pairs of documents of a query, of different grades, that the source puts in "
    "their order, with a 95% interval over queries; .5 is a coin toss. A source that agrees with hardly "
    "anything proves nothing against a label."
)
INDEPENDENT = (
    f"Far apart: {FAR} grades or more. These judges were evidence: they are no independent check of doubts."
)
HOW = (
    "Doubts are an order in which to look, not a verdict: an assessor may have known what no system finds. "
    "Models of the grades that never saw a query predict its grades from the evidence; a label is doubted as "
    "far as it is unlikely and far from what they expect, and more so in a query with many such labels."
)


def queries_table(
    queries: Sequence[QueryDoubt], texts: Mapping[str, str] | None = None, caption: str = ""
) -> Table:
    """The most doubted queries, with their texts where they are known."""
    known = texts or {}
    head = ["query", "documents", "doubted", "share", "mean grade", "expected", "order", "looks misread"]
    rows: list[Line] = []
    for each in queries[:MOST_QUERIES]:
        cells: list[str | Cell] = [
            Cell(str(each.query_id)),
            number(each.documents, ","),
            number(each.doubted, ","),
            number(each.share, ".0%"),
            number(each.given, ".2f"),
            number(each.expected, ".2f"),
            number(each.order, ".2f"),
            Cell("yes" if each.is_suspect else ABSENT),
        ]
        rows.append([*cells, Cell(known.get(str(each.query_id), ""), kind="below")] if known else cells)
    align = "l" + "r" * (len(head) - 1) + "l" * bool(known)
    head += ["text"] if known else []
    return Table(head, rows, caption=caption, notes=[QUERIES] if rows else [], align=align)


def evidence_table(audit: Audit, caption: str = "", *, kinds: Sequence[str] = tuple(KINDS)) -> Table:
    """How every source of evidence goes with the judgements."""
    chosen = [each for each in audit.evidence if each.kind in kinds]
    far = any(each.far == each.far for each in chosen)
    rows: list[Line] = []
    for each in chosen:
        signal = Span(each.signal.auc, each.signal.low, each.signal.high)
        cells: list[str | Cell] = [KINDS[each.kind], each.name, number(each.pairs, ","), span_cell(signal)]
        rows.append(cells + ([number(each.far, ".1%"), number(each.far_on_top, ".1%")] if far else []))
    head = ["source", "name", "pairs", "agreement", *(["far apart", "on the most doubted"] if far else [])]
    notes = [AGREES, *([INDEPENDENT] if far else [])] if rows else []
    return Table(head, rows, caption=caption, notes=notes, align="ll" + "r" * (len(head) - 2))


def suspect_words(audit: Audit) -> list[str]:
    """One sentence for every query that looks misread."""
    texts = texts_of(audit.data).queries
    words = []
    for each in audit.suspects:
        text = texts.get(str(each.query_id), "")
        named = f"Query {each.query_id}" + (f" (“{text}”)" if text else "")
        words.append(
            f"{named} looks misread: {each.doubted:,} of its {each.documents:,} documents are doubted; "
            f"mean grade {each.given:.2f}, expected {each.expected:.2f}."
        )
    return words


def write_audit_page(
    path: str | os.PathLike[str],
    audit: Audit,
    worst: Sequence[Mapping[str, Any]],
    *,
    name: str,
    table_file: str,
) -> Path:
    """Writes the page of an audit.

    Args:
        path: the file to write.
        audit: what was found.
        worst: explanations of the rows to look at first, as records.
        name: of the judgements.
        table_file: the name of the file that lists all rows.
    """
    issues, texts = audit.issues, texts_of(audit.data)
    judged = len(issues) if audit.data.judged is None else int(audit.data.judged.sum())
    columns = text_columns(audit.data, [each["row_id"] for each in worst])
    shown = {name: [quote(str(text), letters=LONGEST) for text in cells] for name, cells in columns.items()}
    listed = f"{len(worst):,} of {judged:,} labels are listed here; {table_file} has all of them. {ORDER}"
    known = [] if issues.signal is None else [f"Signal of the evidence, out of fold: {issues.signal}."]
    sections = [
        Section(
            "Queries that look misread",
            [*suspect_words(audit), queries_table(audit.queries, texts.queries, "The most doubted queries")],
        ),
        Section(
            "Labels to judge again",
            [listed, worst_table(worst, "Most doubted first", shown)] if worst else [],
        ),
        Section("How far the evidence goes", [HOW, *known, issues.caution]),
        Section("By judge", [evidence_table(audit, "Other judges", kinds=("judge",))]),
        Section("By source", [evidence_table(audit, "Systems, texts and scores", kinds=tuple(KINDS)[1:])]),
        Section("By grade", [by_grade_table(issues, caption="Issues by given grade")]),
    ]
    kept = [
        Section(each.heading, [part for part in each.parts if not isinstance(part, Table) or part.rows])
        for each in sections
    ]
    figures = [
        (f"{judged:,}", "labels"),
        (f"{len(audit.queries):,}", "queries"),
        (f"{len(audit.suspects):,}", "look misread"),
        (f"{issues.n_issues:,}", "labels are doubted enough to act on"),
    ]
    return write_sections(path, f"Audit of judgements: {name}", kept, figures=figures)
