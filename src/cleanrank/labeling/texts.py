"""What there is to read in a project: documents from tables of texts, and the texts of every row."""

from collections.abc import Mapping, Sequence
from typing import Any

from cleanrank.data.json_files import JSON_LINES
from cleanrank.data.sheets import Sheet, plain_name, whole_numbers
from cleanrank.data.texts import as_sheet, queries_of, query_heading
from cleanrank.errors import error_text, invalid
from cleanrank.judges.labels import numbers
from cleanrank.labeling.records import Document

NO_LABELS = ("score",)  # a usual heading of grades, but of a table to judge it is a system's
TABLES = (".csv", ".tsv", ".xlsx", ".parquet", ".pq", *JSON_LINES)


def documents_of(table: Any) -> tuple[list[Document], dict[str, str], dict[int, float]]:
    """Documents to judge and the texts of their queries, from a table that need not have labels or features.

    Args:
        table: a file, a frame or a mapping of columns: query_id (or query), and further doc_id, query, title,
            text, url, label; all columns but ids and labels are shown. A sheet that was drawn from data has
            their row_id, and stratum_share, which is hidden: it would say which labels are doubted.

    Returns:
        The documents, numbered as their rows; query id -> text; document -> stratum_share.

    >>> documents, queries, _ = documents_of({"query": ["fruit"], "text": ["An apple."], "label": [""]})
    >>> documents[0].query_id, documents[0].doc_id, documents[0].given_label, documents[0].fields
    ('fruit', '0', None, {'text': 'An apple.'})
    """
    sheet = as_sheet(table, "the table")
    headings = sheet.headings(("row", "query", "doc", "grade", "share"))
    if plain_name(headings.get("grade", "")) in NO_LABELS:
        del headings["grade"]
    if "query" not in headings or not len(sheet):
        rule = "must have rows and a column of queries: query_id or query"
        raise sheet.bad(error_text(sheet.name, rule, ", ".join(sheet.values) or "nothing"))
    ids = sheet.texts(headings["query"])
    blank = next((line for line, text in zip(sheet.lines, ids, strict=True) if not text), None)
    if blank is not None:
        raise sheet.bad(
            error_text("a query", "must have an id", "nothing", at=f"{sheet.unit} {blank}"), blank
        )
    heading = query_heading(sheet)
    queries = {} if heading is None else queries_of(sheet, ids, heading)
    docs = sheet.texts(headings["doc"]) if "doc" in headings else [""] * len(sheet)
    labels = _labels(sheet, headings.get("grade"))
    hidden = {heading, *(headings.get(role) for role in ("query", "grade", "share"))}
    row_ids: Sequence[Any] = whole_numbers(sheet.texts(headings["row"])) if "row" in headings else [None]
    if None in row_ids:
        row_ids = range(len(sheet))
    else:
        hidden.add(headings["row"])
    if "doc" in headings and plain_name(headings["doc"]) != "url":
        hidden.add(headings["doc"])
    columns = {name: sheet.texts(name) for name in sheet.values if name not in hidden}
    documents = [
        Document(row, query, doc or str(row), row_id, label, _filled(columns, row))
        for row, (query, doc, row_id, label) in enumerate(zip(ids, docs, row_ids, labels, strict=True))
    ]
    shares = numbers("stratum_share", sheet.values[headings["share"]]).tolist() if "share" in headings else []
    return documents, queries, dict(enumerate(shares))


def fields_by_row(fields: Mapping[str, Sequence[str]], n_rows: int) -> list[dict[str, str]]:
    """For every row the fields that it has."""
    for name, column in fields.items():
        if len(column) != n_rows:
            rule = f"must have a text for every row of the data ({n_rows:,})"
            raise invalid(f"field {name!r}", rule, f"{len(column):,}")
    return [_filled(fields, row) for row in range(n_rows)]


def _filled(columns: Mapping[str, Sequence[str]], row: int) -> dict[str, str]:
    return {name: str(texts[row]) for name, texts in columns.items() if texts[row]}


def _labels(sheet: Sheet, heading: str | None) -> list[int | None]:
    if heading is None:
        return [None] * len(sheet)
    texts = sheet.texts(heading)
    labels = whole_numbers(texts)
    for line, text, label in zip(sheet.lines, texts, labels, strict=True):
        if text and label is None:
            remedy = "Leave it empty where nobody judged."
            words = error_text(
                "a label", "must be a grade from 0", repr(text), at=f"{sheet.unit} {line}", remedy=remedy
            )
            raise sheet.bad(words, line)
    return labels
