"""What there is to read: texts of queries and fields of documents, from data or from tables of texts."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.data.files import existing_file
from cleanrank.data.sheets import Sheet, frame_sheet, match_ids, plain_name, read_sheet_file, whole_numbers
from cleanrank.data.spreadsheet import read_text
from cleanrank.errors import BadFileError, error_text, invalid
from cleanrank.issues.to_judge import text_columns
from cleanrank.labeling.records import Document
from cleanrank.ragged import match_rows, query_of_row
from cleanrank.types import IntArray, RankingData

QUERY_TEXTS = ("query", "query_text", "question")
NO_LABELS = ("score",)  # a usual heading of grades, but of a table to judge it is a system's
LINES = (".jsonl", ".ndjson")
TABLES = (".csv", ".tsv", ".xlsx", ".parquet", ".pq", *LINES)


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts of the rows of some data.

    Attributes:
        queries: query id -> its text.
        fields: name (title, text, url or others) -> text of every row; empty where there is none.
    """

    queries: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)


def texts_of(data: RankingData) -> Texts:
    """The texts that came along with data; a column query (or query_text) is the text of the query.

    >>> import cleanrank as cr
    >>> extra = {"query": ["fruit", "fruit"], "title": ["Apple", "Pear"]}
    >>> texts = texts_of(cr.from_arrays([[1.0], [2.0]], [0, 1], qid=[7, 7], extra=extra))
    >>> texts.queries, texts.fields
    ({'7': 'fruit'}, {'title': ['Apple', 'Pear']})
    """
    sheet = frame_sheet(text_columns(data, data.row_ids), "data")
    heading = _query_heading(sheet)
    queries = {} if heading is None else _queries(sheet, [str(each) for each in data.qid], heading)
    return Texts(queries, {name: sheet.texts(name) for name in sheet.values if name != heading})


def read_texts(source: Any, data: RankingData) -> Texts:
    """Texts of the rows of data, from a table that names them.

    Args:
        source: a file (.csv, .tsv, .xlsx, .parquet, .jsonl) or frame with columns of texts, beside row_id, or
            query_id and doc_id, or one of these two.
        data: what they belong to.

    Returns:
        The texts; rows that the table does not name have none.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[1.0], [2.0]], [0, 1], qid=[7, 7], doc_ids=["a", "b"])
    >>> read_texts({"doc_id": ["b"], "title": ["Pear"]}, data).fields
    {'title': ['', 'Pear']}
    """
    sheet = as_sheet(source, "texts")
    headings = sheet.headings(("row", "query", "doc"))
    heading = _query_heading(sheet)
    if headings.get("query") == heading:
        headings.pop("query", None)
    queries = {}
    if heading is not None and "query" in headings:
        known = match_ids(sheet.texts(headings["query"]), data.query_ids)
        ids = [str(data.query_ids[at]) if at >= 0 else "" for at in known.tolist()]
        queries = _queries(sheet, ids, heading)
    names = [name for name in sheet.values if name not in (heading, *headings.values())]
    if "doc" in headings and plain_name(headings["doc"]) == "url":
        names.append(headings["doc"])
    if not headings or (not names and not queries):
        rule = "must have row_id, or query_id, doc_id or both, and columns of texts"
        raise sheet.bad(error_text(sheet.name, rule, ", ".join(sheet.values) or "none"))
    if "row" not in headings and "doc" not in headings:
        names = []  # texts of queries alone
    places = _places(sheet, headings, data)
    if (places < 0).all() and names:
        value = str(sheet.texts(next(iter(headings.values())))[:1])
        raise sheet.bad(error_text(sheet.name, "must speak of rows of the data; none is there", value))
    return Texts(queries, {name: _at(sheet.texts(name), places) for name in names})


def documents_of(table: Any) -> tuple[list[Document], dict[str, str]]:
    """Documents to judge and the texts of their queries, from a table that need not have labels or features.

    Args:
        table: a file, a frame or a mapping of columns: query_id (or query), and further doc_id, query, title,
            text, url, label; all columns but ids and labels are shown.

    Returns:
        The documents, numbered as their rows, and query id -> text.

    >>> documents, queries = documents_of({"query": ["fruit"], "text": ["An apple."], "label": [""]})
    >>> documents[0].query_id, documents[0].doc_id, documents[0].given_label, documents[0].fields
    ('fruit', '0', None, {'text': 'An apple.'})
    """
    sheet = as_sheet(table, "the table")
    headings = sheet.headings(("query", "doc", "grade"))
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
    heading = _query_heading(sheet)
    queries = {} if heading is None else _queries(sheet, ids, heading)
    docs = sheet.texts(headings["doc"]) if "doc" in headings else [""] * len(sheet)
    labels = _labels(sheet, headings.get("grade"))
    hidden = {heading, headings["query"], headings.get("grade")}
    if "doc" in headings and plain_name(headings["doc"]) != "url":
        hidden.add(headings["doc"])
    columns = {name: sheet.texts(name) for name in sheet.values if name not in hidden}
    documents = [
        Document(row, query, doc or str(row), row, label, _filled(columns, row))
        for row, (query, doc, label) in enumerate(zip(ids, docs, labels, strict=True))
    ]
    return documents, queries


def as_sheet(source: Any, name: str) -> Sheet:
    """The cells of a file (also JSON lines), a frame or a mapping of columns."""
    if not isinstance(source, str | PathLike):
        return frame_sheet(source, name)
    file = existing_file(source)
    return _read_lines(file) if file.suffix.lower() in LINES else read_sheet_file(file)


def _read_lines(file: Path) -> Sheet:
    records: list[tuple[int, dict[str, Any]]] = []
    for number, line in enumerate(read_text(file).splitlines(), start=1):
        if line.strip():
            try:
                record = json.loads(line)
            except ValueError:
                record = None
            if not isinstance(record, dict):
                at = f"{file}, line {number}"
                words = error_text("a line of JSON lines", "must be an object", repr(line[:60]), at=at)
                raise BadFileError(words, str(file), number)
            records.append((number, record))
    names = dict.fromkeys(name for _, record in records for name in record)
    columns = {name: [record.get(name) for _, record in records] for name in names}
    return Sheet(str(file), columns, [number for number, _ in records], path=str(file))


def fields_by_row(fields: Mapping[str, Sequence[str]], n_rows: int) -> list[dict[str, str]]:
    """For every row the fields that it has."""
    for name, column in fields.items():
        if len(column) != n_rows:
            rule = f"must have a text for every row of the data ({n_rows:,})"
            raise invalid(f"field {name!r}", rule, f"{len(column):,}")
    return [_filled(fields, row) for row in range(n_rows)]


def _filled(columns: Mapping[str, Sequence[str]], row: int) -> dict[str, str]:
    return {name: str(texts[row]) for name, texts in columns.items() if texts[row]}


def _query_heading(sheet: Sheet) -> str | None:
    plain = {plain_name(heading): heading for heading in sheet.values}
    return next((plain[name] for name in map(plain_name, QUERY_TEXTS) if name in plain), None)


def _queries(sheet: Sheet, ids: Sequence[str], heading: str) -> dict[str, str]:
    """The text of every query, which must be the same in all its rows; queries without an id are left out."""
    queries: dict[str, str] = {}
    for line, query, text in zip(sheet.lines, ids, sheet.texts(heading), strict=True):
        if query and text and queries.setdefault(query, text) != text:
            rule, at = f"must have one text, {queries[query]!r}", f"{sheet.unit} {line}"
            raise sheet.bad(error_text(f"query {query!r}", rule, repr(text), at=at), line)
    return queries


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


def _places(sheet: Sheet, headings: Mapping[str, str], data: RankingData) -> IntArray:
    """The row of the table for every row of the data, -1 where there is none."""
    if "row" in headings:
        numbers = [-1 if n is None else n for n in whole_numbers(sheet.texts(headings["row"]))]
        return match_rows(np.array(numbers), data.row_ids)
    if "doc" not in headings:
        return np.full(data.n_docs, -1)
    if data.doc_ids is None:
        rule, remedy = "must have document ids to be given texts by document", "Name their column (doc_id=)."
        raise invalid("data", rule, "none", remedy=remedy)
    docs, doc = np.unique(data.doc_ids.astype(str), return_inverse=True)
    query = query_of_row(data.indptr)
    named = match_ids(sheet.texts(headings["doc"]), docs)
    if "query" in headings:
        queries = match_ids(sheet.texts(headings["query"]), data.query_ids)
        named = np.where((named >= 0) & (queries >= 0), queries * len(docs) + named, -1)
        return match_rows(named, query * len(docs) + doc)
    return match_rows(named, doc)


def _at(texts: Sequence[str], places: IntArray) -> list[str]:
    return [texts[at] if at >= 0 else "" for at in places.tolist()]
