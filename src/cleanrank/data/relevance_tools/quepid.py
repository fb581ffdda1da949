"""What Quepid exports: books (JSON), pairs of query and document with judgements of people, and CSV.

A judgement that is marked as unrateable or to be judged later counts for nothing. Fields of the document that
are texts are carried along.
"""

from pathlib import Path
from typing import Any

import msgspec

from cleanrank.data.json_files import Node
from cleanrank.data.relevance_tools.opinions import QUERY_TEXT, Opinions, written_rating, written_rows
from cleanrank.data.spreadsheet import read_records
from cleanrank.types import RankingData

PAIRS = "query_doc_pairs"
NAMES = {"label", "qid", "doc_id", "gain", "weight", QUERY_TEXT}
CSV_HEADER = ("query", "docid", "rating")


def is_book(document: Node) -> bool:
    """Whether a document looks like a book."""
    return PAIRS in document


def book_opinions(document: Node) -> Opinions:
    """The judgements of a book; the text of a query is its id."""
    opinions = Opinions()
    for pair in document.child(PAIRS).entries():
        query = pair.child("query_text" if "query_text" in pair else "query")
        doc = pair.child("doc_id")
        fields = {QUERY_TEXT: query.text(), **_fields(pair)}
        opinions.add_pair(query.text(), doc.text(), fields)
        for each in pair.child("judgements").entries() if "judgements" in pair else ():
            skipped = each.find("unrateable").value is True or each.find("judge_later").value is True
            if not skipped and "rating" in each:
                person = next(
                    (each.child(name) for name in ("user_email", "user_name", "user_id") if name in each),
                    None,
                )
                opinions.add(query, doc, each.child("rating"), "" if person is None else person.text())
    return opinions


def _fields(pair: Node) -> dict[str, Any]:
    """Fields of the document that are texts; a book holds them as an object, or as its text."""
    fields = pair.find("document_fields")
    if isinstance(fields.value, str):
        try:
            value = msgspec.json.decode(fields.value) if fields.value.strip() else {}
        except (msgspec.DecodeError, RecursionError):
            raise fields.bad("must be JSON", repr(fields.value[:60])) from None
        fields = Node(value, fields.file, fields.place)
    found = fields.value if isinstance(fields.value, dict) else {}
    return {name: text for name, text in found.items() if isinstance(text, str) and name not in NAMES}


def is_quepid_header(names: list[str]) -> bool:
    """Whether a table's headings are those of Quepid's CSV: query and docid first, then ratings, no label."""
    plain = [name.strip().casefold() for name in names]
    return plain[:2] == list(CSV_HEADER[:2]) and len(plain) > 2 and "label" not in plain


def table_opinions(file: Path, delimiter: str | None = None) -> Opinions:
    """The ratings of a CSV file; without a column rating, every further column is a person's.

    A query without documents, and a cell without a rating, counts for nothing.
    """
    names, records = read_records(file, delimiter)
    if not is_quepid_header(names):
        remedy = f"As in {','.join(CSV_HEADER)}."
        raise Node(None, file, "the header", 1).bad("must begin with query and docid", names[:8], remedy)
    query, doc = names[:2]
    rating = next((name for name in names if name.casefold() == CSV_HEADER[2]), None)
    people = {"": rating} if rating is not None else {name: name for name in names[2:] if name}
    opinions = Opinions()
    for line, cells in records:
        if not any(cells[name] for name in (doc, *people.values())):
            continue
        nodes = {name: Node(cells[name], file, f"column {name!r}", line) for name in cells}
        place = {QUERY_TEXT: nodes[query].text()}
        opinions.add_pair(nodes[query].text(), nodes[doc].text(), place)
        for person, name in people.items():
            if cells[name]:
                opinions.add(nodes[query], nodes[doc], nodes[name], person)
    return opinions


def book(data: RankingData) -> dict[str, Any]:
    """A book of data: a pair for every row, judged by nobody in particular."""
    texts = {name: column for name, column in (data.extra or {}).items() if name not in NAMES}
    pairs = []
    for query, rows in written_rows(data):
        for position, (row, doc) in enumerate(rows, start=1):
            rating = written_rating(data, row)
            fields = {name: column[row] for name, column in texts.items() if isinstance(column[row], str)}
            pair: dict[str, Any] = {"query_text": query, "doc_id": doc, "position": position}
            pair["document_fields"] = fields
            said = {"rating": rating, "unrateable": False, "judge_later": False}
            pairs.append({**pair, "judgements": [] if rating is None else [said]})
    return {"name": "cleanrank", PAIRS: pairs}
