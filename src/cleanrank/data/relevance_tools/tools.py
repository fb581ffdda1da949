"""Which tool wrote a JSON document, by its content; reading it, and writing one like it."""

import csv
import io
from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from cleanrank.data.files import existing_file, written_whole
from cleanrank.data.json_files import Node, is_json_lines, read_json, read_json_lines
from cleanrank.data.relevance_tools.label_studio import is_tasks, task_opinions, tasks_of
from cleanrank.data.relevance_tools.ltr_logs import is_log, read_ltr_log
from cleanrank.data.relevance_tools.opensearch import is_judgment_list, judgment_list, judgment_opinions
from cleanrank.data.relevance_tools.opinions import Opinions, written_rating, written_rows
from cleanrank.data.relevance_tools.quepid import CSV_HEADER, book, book_opinions, is_book, table_opinions
from cleanrank.data.relevance_tools.rre import is_ratings, rre_opinions, rre_ratings
from cleanrank.data.spreadsheet import escaped
from cleanrank.types import RankingData


class Tool(NamedTuple):
    """A kind of document: what it is called, how it is recognised, read and made."""

    words: str
    matches: Callable[[Node], bool]
    opinions: Callable[[Node], Opinions]
    document: Callable[[RankingData], Any]


TOOLS: dict[str, Tool] = {
    "opensearch": Tool("a judgment list of OpenSearch", is_judgment_list, judgment_opinions, judgment_list),
    "quepid-book": Tool("a book of Quepid", is_book, book_opinions, book),
    "rre": Tool("ratings of RRE", is_ratings, rre_opinions, rre_ratings),
    "label-studio": Tool("tasks of Label Studio", is_tasks, task_opinions, tasks_of),
}
LTR_LOG = "ltr-log"
# What else begins like this, and what to do with it.
OTHERS = {
    ("querySetQueries",): "a query set of OpenSearch, which has no judgments",
    (
        "action_name",
        "user_query",
    ): "a log of User Behavior Insights: read_ubi of cleanrank.clicks.ubi reads it",
    ("index", "create"): "a bulk file of OpenSearch; if it is a log of User Behavior Insights, read_ubi of "
    "cleanrank.clicks.ubi reads it",
    ("query-id", "corpus-id"): "judgements of BEIR: name the folder that holds them "
    "(cleanrank convert --split chooses among several)",
    ("_id",): "a corpus or the queries of BEIR: name the folder that holds it",
    ("positive", "negative", "positives", "negatives"): "texts to train embeddings with, without grades: "
    "cleanrank missing looks for positives among mined negatives",
}


def tool_of(document: Node) -> str:
    """The name of the tool that wrote a document, or "ltr-log"; raises where none is known."""
    name = next((name for name, tool in TOOLS.items() if tool.matches(document)), None)
    if name is None and is_log(document):
        return LTR_LOG
    if name is None:
        members = list(document.value) if isinstance(document.value, dict) else []
        other = next((what for names, what in OTHERS.items() if set(names) & set(members)), "")
        holds = (
            f"members {', '.join(map(repr, members[:8]))}"
            if members
            else f"a {type(document.value).__name__}"
        )
        known = ", ".join(tool.words for tool in TOOLS.values())
        rule = f"must be {known}, or a feature log of the LTR plugin"
        raise document.bad(rule, holds, f"It looks like {other}." if other else "")
    return name


def read_tool_file(path: Any, form: str, **options: Any) -> RankingData:
    """Ranking data of a file of one of TOOLS or of a feature log; "json" and "json-lines" look for which.

    Args:
        path: the file.
        form: the name of a tool, "ltr-log", "json" or "json-lines".
        options: ``ratings`` and ``combine``, or those of ``read_ltr_log``.
    """
    documents: Iterator[Node]
    if form == "json-lines" or (form == LTR_LOG and is_json_lines(path)):
        documents = read_json_lines(path)
    else:
        documents = iter([read_json(path)])
    first = next(documents, None)
    if first is None:
        first = Node(None, existing_file(path))
    kind = tool_of(first) if form in ("json", "json-lines") else form
    if kind == LTR_LOG:
        return read_ltr_log(chain([first], documents), **options)
    return _of_opinions(TOOLS[kind].opinions(first), first, **options)


def opinion_columns(file: Path) -> tuple[dict[str, list[Any]], list[str]]:
    """The ratings of a tool's document as columns of a sheet, and where they stand."""
    document = read_json(file)
    opinions = TOOLS[tool_of(document)].opinions(document)
    columns: dict[str, list[Any]] = {name: [] for name in ("query_id", "doc_id", "annotator", "grade")}
    places = []
    for (query, doc), place in opinions.pairs.items():
        for person, (rating, node) in opinions.ratings.get(place, {}).items():
            for column, value in zip(columns.values(), (query, doc, person, rating), strict=True):
                column.append(value)
            places.append(node.place)
    return columns, places


def is_ltr_log(file: Path) -> bool:
    """Whether the first line of a file of JSON lines is a response with logged features."""
    return any(is_log(first) for first in islice(read_json_lines(file), 1))


def _of_opinions(
    opinions: Opinions, source: Node, *, ratings: Any = None, combine: str = "majority"
) -> RankingData:
    return opinions.data(source, ratings, combine)


def read_quepid_csv(path: Any, *, delimiter: str | None = None, **options: Any) -> RankingData:
    """Ratings of a CSV file of Quepid: query, docid and rating, or a column per rater."""
    file = existing_file(path)
    return _of_opinions(table_opinions(file, delimiter), Node(None, file), **options)


def write_tool_file(data: RankingData, path: Path, form: str) -> None:
    """Writes the document of a tool."""
    with written_whole(path) as part:
        part.write_bytes(
            msgspec.json.format(msgspec.json.encode(TOOLS[form].document(data)), indent=1) + b"\n"
        )


def write_quepid_csv(data: RankingData, path: Path) -> None:
    """Writes query, docid and rating; rows that nobody judged are left out."""
    text = io.StringIO(newline="")
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(CSV_HEADER)
    lines.writerows(_csv_rows(data))
    with written_whole(path) as part:
        part.write_text(text.getvalue(), encoding="utf-8", newline="")


def _csv_rows(data: RankingData) -> Iterable[tuple[str, str, float | int]]:
    for query, rows in written_rows(data):
        for row, doc in rows:
            rating = written_rating(data, row)
            if rating is not None:
                yield escaped(query), escaped(doc), rating
