"""Which rows of the data a table of answers speaks of: by row id, or by query and document."""

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cleanrank.data.sheets import TOTALS, Sheet, frame_sheet, match_ids, whole_numbers
from cleanrank.errors import error_text, invalid
from cleanrank.ragged import match_rows, query_of_row
from cleanrank.types import Array, FloatArray, IntArray, RankingData

UNANSWERED = {"", "?"}
SHOWN = 10
KEYS = ("row", "query", "doc")
COLUMNS = (*KEYS, "grade", "share")
TAKEN_AS_RANDOM = (
    "the answers are taken as a random choice among the rows of each given grade; documents chosen otherwise "
    "(the top of a system, the hard ones) tell the noise of such documents"
)
NO_DOCUMENTS = "Name their column (doc_id=), or give gold by row id."


@dataclass(frozen=True, eq=False)
class Answered:
    """Rows of the data with their true grades, and remarks on what was left out."""

    row_ids: IntArray
    true_grades: IntArray
    shares: FloatArray
    unanswered: tuple[int, ...]
    notes: tuple[str, ...]


class Entry(NamedTuple):
    """A row of a table of answers: texts, as they were typed."""

    line: int
    row: str
    query: str
    doc: str
    grade: str
    share: str


def read_entries(sheet: Sheet, columns: Mapping[str, str] | None = None) -> tuple[list[Entry], list[str]]:
    """The rows of a table of answers, and the lines that are no answers (totals).

    Args:
        sheet: the table.
        columns: names of columns that have no usual heading: row, query, doc, grade -> heading.
    """
    for role in columns or {}:
        if role not in COLUMNS:
            raise invalid("columns of gold", "must be row, query, doc or grade", repr(role))
    headings = sheet.headings((*KEYS, "true grade", "share"), columns)
    by_row, by_pair = "row" in headings, {"query", "doc"} <= headings.keys()
    if "true grade" not in headings or not (by_row or by_pair):
        rule = "must have the column true_grade (or grade) and row_id, or query_id and doc_id"
        at = "line 1" if sheet.unit == "line" else ""
        remedy = "Name yours with the argument columns (--gold-columns), by role: query, doc, grade."
        message = error_text(sheet.name, rule, ", ".join(sheet.values) or "none", at=at, remedy=remedy)
        raise sheet.bad(message)
    empty = [""] * len(sheet)
    cells = [
        sheet.texts(headings[role]) if role in headings else empty for role in (*KEYS, "true grade", "share")
    ]
    if not by_row:
        cells[0] = empty
    entries, totals = [], []
    for entry in map(Entry, sheet.lines, *cells):
        keys = {entry.row.casefold(), entry.query.casefold()} if by_row else {entry.query.casefold()}
        if keys & TOTALS and not entry.doc:
            totals.append(f"{sheet.unit} {entry.line} is a total and was left out")
        elif any(entry[1:]):
            entries.append(entry)
    last = entries[-1] if entries else None
    if last is not None and not any(last[1:4]):
        entries.pop()
        totals.append(f"{sheet.unit} {last.line} names no document (a total?) and was left out")
    return entries, totals


def answered_rows(
    entries: Sequence[Entry],
    data: RankingData,
    sheet: Sheet,
    *,
    n_grades: int | None = None,
    allow_unanswered: bool = False,
    notes: Sequence[str] = (),
) -> Answered:
    """The answers as rows of the data; whatever is wrong is reported at once, each with its line."""
    by_row = any(entry.row for entry in entries)
    C = max(data.n_grades, 2) if n_grades is None else n_grades
    keys = _rows_named(entries, data) if by_row else _pairs_named(entries, data, sheet)
    wrong: list[tuple[int, str]] = []
    answers: dict[int, tuple[int, int, float]] = {}
    unanswered: list[int] = []
    missing: list[Entry] = []
    grades = whole_numbers([entry.grade for entry in entries])
    for entry, key, grade in zip(entries, keys, grades, strict=True):
        if by_row and (problem := _wrong_row(entry, key, data)):
            wrong.append((entry.line, problem))
        elif entry.grade in UNANSWERED:
            unanswered.append(entry.line)
        elif grade is None or not 0 <= grade < C:
            rule = f"must be a grade from 0 to {C - 1}"
            remedy = "A longer scale goes into n_grades (--grades)."
            wrong.append((entry.line, error_text("true_grade", rule, repr(entry.grade), remedy=remedy)))
        elif key < 0:
            missing.append(entry)
        elif key in answers and answers[key][1] != grade:
            what = f"row {data.row_ids[key]}" if by_row else f"query {entry.query!r}, document {entry.doc!r}"
            rule = f"must have one true grade, and {sheet.unit} {answers[key][0]} says {answers[key][1]}"
            wrong.append((entry.line, error_text(what, rule, grade)))
        else:
            answers.setdefault(key, (entry.line, grade, _share(entry, wrong)))
    if unanswered and not allow_unanswered:
        rule = f"must be filled in; {len(unanswered)} are empty"
        remedy = "Fill them in, or leave them out with allow_unanswered (--allow-unanswered)."
        wrong.append((unanswered[0], error_text("true_grade", rule, "nothing", remedy=remedy)))
    _refuse(sheet, wrong, bool(answers or missing))
    if not answers:
        raise sheet.bad(_nothing_matches(missing, data, sheet))
    said = [*notes]
    if missing:
        first = f"the first: query {missing[0].query!r}, document {missing[0].doc!r}"
        said.append(
            f"{len(missing):,} of {len(entries):,} answers are for documents not in the data ({first})"
        )
    if not by_row:
        said.append(TAKEN_AS_RANDOM)
    places, answer = _all_rows(answers, data, by_row)
    return Answered(
        data.row_ids[places],
        np.array([a[1] for a in answer], dtype=np.int64),
        np.array([a[2] for a in answer], dtype=np.float64),
        tuple(unanswered),
        tuple(said),
    )


def _rows_named(entries: Sequence[Entry], data: RankingData) -> list[int]:
    """The position in the data of every entry's row id, -1 where it has none."""
    rows = whole_numbers([entry.row for entry in entries])
    places: list[int] = match_rows(data.row_ids, [-1 if row is None else row for row in rows]).tolist()
    return places


def _pairs_named(entries: Sequence[Entry], data: RankingData, sheet: Sheet) -> list[int]:
    """For every entry the first position in the data of its query and document, -1 where there is none."""
    docs, doc_of_row = np.unique(_documents(data), return_inverse=True)
    query = match_ids([entry.query for entry in entries], data.query_ids)
    doc = match_ids([entry.doc for entry in entries], docs)
    key_of_row = query_of_row(data.indptr) * len(docs) + doc_of_row
    unique, first = np.unique(key_of_row, return_index=True)
    place = match_rows(unique, np.where((query >= 0) & (doc >= 0), query * len(docs) + doc, -1))
    keys: list[int] = np.where(place >= 0, first[place], -1).tolist()
    return keys


def _documents(data: RankingData) -> Array:
    """The documents' ids, or else the text column that is called like one (url, docno)."""
    if data.doc_ids is not None:
        return data.doc_ids
    texts = frame_sheet(data.extra or {}, "data")
    heading = texts.heading("doc")
    if heading is None:
        rule = "must have document ids to be matched with gold by query and document"
        raise invalid("data", rule, "none", remedy=NO_DOCUMENTS)
    return np.array(texts.texts(heading))


def _all_rows(
    answers: Mapping[int, tuple[int, int, float]], data: RankingData, by_row: bool
) -> tuple[IntArray, list[tuple[int, int, float]]]:
    """Positions and answers; a document that a query lists twice has its grade in both rows."""
    first = np.array(list(answers), dtype=np.int64)
    values = list(answers.values())
    if by_row:
        return first, values
    _, doc_of_row = np.unique(_documents(data), return_inverse=True)
    key_of_row = query_of_row(data.indptr) * (doc_of_row.max(initial=0) + 1) + doc_of_row
    place = match_rows(key_of_row[first], key_of_row)
    rows = np.flatnonzero(place >= 0)
    return rows, [values[at] for at in place[rows].tolist()]


def _wrong_row(entry: Entry, place: int, data: RankingData) -> str:
    """What is wrong with the row id or the query of an entry; nothing if they go together."""
    if place < 0:
        rule = f"must be a row of the data (0 to {int(data.row_ids.max(initial=0))})"
        return error_text("row_id", rule, repr(entry.row))
    query = data.query_ids[np.searchsorted(data.indptr, place, side="right") - 1 :][:1]
    if entry.query and match_ids([entry.query], query)[0] < 0:
        rule = f"must be {str(query[0])!r}, the query of row {data.row_ids[place]} in the data"
        remedy = "Is this the file the sheet was drawn from?"
        return error_text("query_id", rule, repr(entry.query), remedy=remedy)
    return ""


def _share(entry: Entry, wrong: list[tuple[int, str]]) -> float:
    if not entry.share:
        return 1.0
    with contextlib.suppress(ValueError):
        if 0 < (share := float(entry.share.replace(",", "."))) <= 1:
            return share
    wrong.append((entry.line, error_text("stratum_share", "must lie in (0, 1]", repr(entry.share))))
    return 1.0


def _nothing_matches(missing: Sequence[Entry], data: RankingData, sheet: Sheet) -> str:
    rule = "must speak of documents of the data; none of its queries and documents is there"
    gold = ", ".join(f"({e.query}, {e.doc})" for e in missing[:3])
    docs = _documents(data)[:3].tolist()
    own = ", ".join(f"({q}, {d})" for q, d in zip(data.qid[:3].tolist(), docs, strict=False))
    return error_text(sheet.name, rule, gold, remedy=f"The data have {own}, ...")


def _refuse(sheet: Sheet, wrong: list[tuple[int, str]], any_answer: bool) -> None:
    if not wrong and not any_answer:
        wrong = [(1, error_text("gold", "must hold at least one answer", "none"))]
    if wrong:
        wrong.sort(key=lambda each: each[0])
        lines = [f"{sheet.name}, {sheet.unit} {number}: {message}" for number, message in wrong[:SHOWN]]
        more = f"\n... and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        raise sheet.bad("\n".join(lines) + more, wrong[0][0])
