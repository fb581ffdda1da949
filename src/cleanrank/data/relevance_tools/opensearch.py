"""Judgment lists of OpenSearch's Search Relevance Workbench.

A list is what one sends to import it (``judgmentRatings`` at the top), or the answer of the judgments API
(``hits.hits[].._source``) with one list in it. Ratings are numbers, mostly written as texts.
"""

from typing import Any

from cleanrank.data.json_files import Node
from cleanrank.data.relevance_tools.ltr_logs import search_hits
from cleanrank.data.relevance_tools.opinions import QUERY_TEXT, Opinions, written_rating, written_rows
from cleanrank.types import RankingData

RATINGS = "judgmentRatings"


def is_judgment_list(document: Node) -> bool:
    """Whether a document looks like a judgment list."""
    return RATINGS in document or any(RATINGS in each.find("_source") for each in search_hits(document))


def judgment_opinions(document: Node) -> Opinions:
    """The ratings of a judgment list; the text of a query is its id."""
    if RATINGS not in document:
        lists = [each for each in search_hits(document) if RATINGS in each.find("_source")]
        if not lists:
            document.child(RATINGS)
        if len(lists) > 1:
            remedy = "Ask for one of them by its id."
            raise document.find("hits", "hits").bad("must hold one judgment list", f"{len(lists)}", remedy)
        document = lists[0].child("_source")
    opinions = Opinions()
    ratings = document.child(RATINGS)
    if isinstance(ratings.value, dict):  # of an earlier version: query -> ratings
        for query, listed in ratings.members():
            _add(opinions, Node(query, document.file, listed.place), listed)
    else:
        for each in ratings.entries():
            _add(opinions, each.child("query"), each.child("ratings"))
    return opinions


def _add(opinions: Opinions, query: Node, ratings: Node) -> None:
    for each in ratings.entries():
        fields = {QUERY_TEXT: query.text()}
        opinions.add(query, each.child("docId"), each.child("rating"), fields=fields)


def judgment_list(data: RankingData) -> dict[str, Any]:
    """The document to import a judgment list with; rows that nobody judged are left out."""
    listed = []
    for query, rows in written_rows(data):
        ratings = [
            {"docId": doc, "rating": str(rating)}
            for row, doc in rows
            if (rating := written_rating(data, row)) is not None
        ]
        if ratings:
            listed.append({"query": query, "ratings": ratings})
    description = "Judgments generated outside SRW"
    return {"name": "cleanrank", "description": description, "type": "IMPORT_JUDGMENT", RATINGS: listed}
