"""Ratings of the Rated Ranking Evaluator (RRE), which Quepid also exports: queries with their documents.

``relevant_documents`` maps a rating to documents, ``{"3": ["a", "b"]}``, or a document to its rating,
``{"a": {"gain": 3}}``. A group's ratings hold for each of its queries; a query's id is its ``$query``, else
all its placeholders.
"""

from collections.abc import Iterator
from typing import Any

from cleanrank.data.json_files import Node
from cleanrank.data.relevance_tools.opinions import QUERY_TEXT, Opinions, written_rating, written_rows
from cleanrank.types import RankingData

DOCUMENTS = "relevant_documents"
LEVELS = ("topics", "query_groups", "queries")
PLACEHOLDER = "$query"


def is_ratings(document: Node) -> bool:
    """Whether a document looks like ratings of RRE."""
    return any(DOCUMENTS in each for each in _levels(document))


def _levels(node: Node) -> Iterator[Node]:
    yield node
    for name in LEVELS:
        listed = node.find(name)
        if isinstance(listed.value, list):
            for each in listed.entries():
                yield from _levels(each)


def rre_opinions(document: Node) -> Opinions:
    """The ratings of all queries."""
    opinions = Opinions()
    for holder in _levels(document):
        if DOCUMENTS in holder:
            ratings = list(_ratings(holder.child(DOCUMENTS)))
            for query in _queries(holder):
                for doc, rating in ratings:
                    opinions.add(query, doc, rating, fields={QUERY_TEXT: query.text()})
    return opinions


def _queries(holder: Node) -> Iterator[Node]:
    """The queries that the documents of a level belong to, as nodes with their ids."""
    for each in holder.child("queries").entries() if "queries" in holder else (holder,):
        if DOCUMENTS in each and each is not holder:
            continue
        values = dict(each.child("placeholders").members())
        if not values:
            raise each.find("placeholders").bad("must hold the query", "nothing")
        if PLACEHOLDER in values:
            yield values[PLACEHOLDER]
        else:
            text = " ".join(f"{name}={value.text()}" for name, value in values.items())
            yield Node(text, each.file, f"{each.place}.placeholders")


def _ratings(documents: Node) -> Iterator[tuple[Node, Node]]:
    for key, value in documents.members():
        name = Node(key, documents.file, value.place)
        if isinstance(value.value, list):
            for doc in value.entries():
                yield doc, name
        else:
            yield name, value.child("gain")


def rre_ratings(data: RankingData) -> dict[str, Any]:
    """Ratings of data, a group per query; rows that nobody judged are left out."""
    groups = []
    for query, rows in written_rows(data):
        rated = {
            doc: {"gain": rating} for row, doc in rows if (rating := written_rating(data, row)) is not None
        }
        if rated:
            queries = [{"template": "query.json", "placeholders": {PLACEHOLDER: query}}]
            groups.append({"name": query, "queries": queries, DOCUMENTS: rated})
    topics = [{"description": "cleanrank", "query_groups": groups}]
    return {"index": "cleanrank", "id_field": "id", "topics": topics}
