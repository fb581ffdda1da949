"""Tables of texts: what the queries say and what the documents hold, from data or from files beside them."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.data.beir import FIELDS, is_collection, read_collection
from cleanrank.data.files import existing_file
from cleanrank.data.json_files import is_json_lines
from cleanrank.data.sheets import Sheet, frame_sheet, match_ids, plain_name, read_sheet_file, whole_numbers
from cleanrank.data.spreadsheet import read_text
from cleanrank.errors import BadFileError, error_text, invalid
from cleanrank.ragged import match_rows, query_of_row
from cleanrank.types import Array, IntArray, RankingData
from cleanrank.validation import is_number

QUERY_TEXTS = ("query", "query_text", "question")
VECTORS = (list, tuple, np.ndarray)


@dataclass(frozen=True, eq=False)
class Texts:
    """Texts of the rows of some data.

    Attributes:
        queries: query id -> its text.
        fields: name (title, text, url or others) -> text of every row; empty where there is none.
        beside: name -> texts of a table that belong to no row of the data: the rest of the collection.
    """

    queries: Mapping[str, str] = field(default_factory=dict)
    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)
    beside: Mapping[str, Sequence[str]] = field(default_factory=dict)


def texts_of(data: RankingData) -> Texts:
    """The texts that came along with data; a column query (or query_text) is the text of the query.

    >>> import cleanrank as cr
    >>> extra = {"query": ["fruit", "fruit"], "title": ["Apple", "Pear"]}
    >>> texts = texts_of(cr.from_arrays([[1.0], [2.0]], [0, 1], qid=[7, 7], extra=extra))
    >>> texts.queries, texts.fields
    ({'7': 'fruit'}, {'title': ['Apple', 'Pear']})
    """
    sheet = frame_sheet(columns_of_text(data), "data")
    heading = query_heading(sheet)
    queries = {} if heading is None else queries_of(sheet, [str(each) for each in data.qid], heading)
    return Texts(queries, {name: sheet.texts(name) for name in sheet.values if name != heading})


def columns_of_text(data: RankingData) -> dict[str, Array]:
    """The columns of text that came along with data."""
    return {name: column for name, column in (data.extra or {}).items() if column.dtype.kind in "UO"}


def read_texts(source: Any, data: RankingData) -> Texts:
    """Texts of the rows of data, from a table that names them.

    Args:
        source: a file (.csv, .tsv, .xlsx, .parquet, .jsonl) or frame with columns of texts, beside row_id, or
            query_id and doc_id, or one of these two; or a BEIR folder, or its corpus.jsonl or queries.jsonl,
            of which only what belongs to the data is kept.
        data: what they belong to.

    Returns:
        The texts; rows that the table does not name have none.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[1.0], [2.0]], [0, 1], qid=[7, 7], doc_ids=["a", "b"])
    >>> read_texts({"doc_id": ["b"], "title": ["Pear"]}, data).fields
    {'title': ['', 'Pear']}
    """
    if is_collection(source):
        return _of_collection(source, data)
    sheet = as_sheet(source, "texts")
    headings = sheet.headings(("row", "query", "doc"))
    heading = query_heading(sheet)
    if heading is None and headings.keys() == {"query"} and "text" in sheet.values:
        heading = "text"  # of what else, where there are no documents
    if headings.get("query") == heading:
        headings.pop("query", None)
    queries = {}
    if heading is not None and "query" in headings:
        known = match_ids(sheet.texts(headings["query"]), data.query_ids)
        ids = [str(data.query_ids[at]) if at >= 0 else "" for at in known.tolist()]
        queries = queries_of(sheet, ids, heading)
    own = (heading, *headings.values())
    names = [name for name, cells in sheet.values.items() if name not in own and not vector_size(cells)]
    if "doc" in headings and plain_name(headings["doc"]) == "url":
        names.append(headings["doc"])
    if not headings or (not names and not queries):
        rule = "must have row_id, or query_id, doc_id or both, and columns of texts"
        raise sheet.bad(error_text(sheet.name, rule, ", ".join(sheet.values) or "none"))
    if not len(sheet):
        raise sheet.bad(error_text(sheet.name, "must hold at least one row", "none"))
    if "row" not in headings and "doc" not in headings:
        names = []  # texts of queries alone
    places = row_places(sheet, headings, data, [name for name in names if name in FIELDS])
    if (places < 0).all() and names:
        value = str(sheet.texts(next(iter(headings.values())))[:1])
        raise sheet.bad(error_text(sheet.name, "must speak of rows of the data; none is there", value))
    others = np.flatnonzero(~np.isin(np.arange(len(sheet)), places)).tolist()
    fields, beside = {}, {}
    for name in names:
        texts = sheet.texts(name)
        fields[name] = [texts[at] if at >= 0 else "" for at in places.tolist()]
        beside[name] = [texts[at] for at in others]
    return Texts(queries, fields, beside)


def _of_collection(source: Any, data: RankingData) -> Texts:
    docs = _doc_ids(data).tolist()
    queries, documents = read_collection(source, data.query_ids.astype(str).tolist(), docs)
    if not queries and not documents:
        rule = "must hold texts of queries or documents of the data"
        value = f"none of {data.query_ids[:3].tolist()} and {docs[:3]}"
        raise BadFileError(error_text(repr(str(source)), rule, value), str(source))
    named = enumerate(FIELDS if documents else ())
    fields = {name: [documents.get(doc, ("", ""))[place] or "" for doc in docs] for place, name in named}
    filled = {name: cells for name, cells in fields.items() if any(cells)}
    return Texts({name: text for name, text in queries.items() if text}, filled)


def _doc_ids(data: RankingData) -> Array:
    if data.doc_ids is None:
        rule, remedy = "must have document ids to be given texts by document", "Name their column (doc_id=)."
        raise invalid("data", rule, "none", remedy=remedy)
    return data.doc_ids.astype(str)


def as_sheet(source: Any, name: str) -> Sheet:
    """The cells of a file (also JSON lines), a frame or a mapping of columns."""
    if not isinstance(source, str | PathLike):
        return frame_sheet(source, name)
    file = existing_file(source)
    return _read_lines(file) if is_json_lines(file) else read_sheet_file(file)


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


def vector_size(cells: Sequence[Any]) -> int:
    """How many numbers a cell of a column of vectors (an embedding) holds; 0 of any other column."""
    first = next((cell for cell in cells if cell is not None), None)
    return len(first) if isinstance(first, VECTORS) and len(first) and is_number(first[0]) else 0


def query_heading(sheet: Sheet) -> str | None:
    """The column that holds the texts of queries, if there is one."""
    plain = {plain_name(heading): heading for heading in sheet.values}
    return next((plain[name] for name in map(plain_name, QUERY_TEXTS) if name in plain), None)


def queries_of(sheet: Sheet, ids: Sequence[str], heading: str) -> dict[str, str]:
    """The text of every query, which must be the same in all its rows; queries without an id are left out."""
    queries: dict[str, str] = {}
    for line, query, text in zip(sheet.lines, ids, sheet.texts(heading), strict=True):
        if query and text and queries.setdefault(query, text) != text:
            rule, at = f"must have one text, {queries[query]!r}", f"{sheet.unit} {line}"
            raise sheet.bad(error_text(f"query {query!r}", rule, repr(text), at=at), line)
    return queries


def row_places(
    sheet: Sheet, headings: Mapping[str, str], data: RankingData, compared: Sequence[str] = ()
) -> IntArray:
    """The row of the table for every row of the data by its ids, -1 where there is none.

    Of several rows with the same ids it is the first; others must agree with it in the columns ``compared``.
    """
    if "row" not in headings and "doc" not in headings:
        return np.full(data.n_docs, -1)
    named, own = _keys(sheet, headings, data)
    first = match_rows(named, named)
    again = np.flatnonzero((named >= 0) & (first != np.arange(len(named))))
    for name in compared if len(again) else ():
        cells = sheet.texts(name)
        for row in again.tolist():
            before = cells[first[row]]
            if before and cells[row] and cells[row] != before:
                rule = f"must be {before!r}, as {sheet.unit} {sheet.lines[first[row]]} says of the same ids"
                at = f"{sheet.unit} {sheet.lines[row]}"
                words = error_text(f"{sheet.name}, column {name!r},", rule, repr(cells[row]), at=at)
                raise sheet.bad(words, sheet.lines[row])
    return match_rows(named, own)


def _keys(sheet: Sheet, headings: Mapping[str, str], data: RankingData) -> tuple[IntArray, IntArray]:
    """What rows of the table and of the data are matched by; -1 in the table for what the data lack."""
    if "row" in headings:
        numbers = [-1 if n is None else n for n in whole_numbers(sheet.texts(headings["row"]))]
        return np.array(numbers, dtype=np.int64), data.row_ids
    docs, doc = np.unique(_doc_ids(data), return_inverse=True)
    query = query_of_row(data.indptr)
    named = match_ids(sheet.texts(headings["doc"]), docs)
    if "query" in headings:
        queries = match_ids(sheet.texts(headings["query"]), data.query_ids)
        named = np.where((named >= 0) & (queries >= 0), queries * len(docs) + named, -1)
        return named, query * len(docs) + doc
    return named, doc
