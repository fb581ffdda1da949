"""Logs of User Behavior Insights (UBI), JSON lines: what users searched for, saw and clicked.

A log holds documents of the indices ``ubi_queries`` (query_id, user_query) and ``ubi_events`` (action_name,
query_id, the object and its position), with or without the action lines of a bulk file. A list is what one
query_id showed: its impressions, and whatever was clicked without one. Positions count from 1; of an
application that counts from 0 (its lowest ordinal is 0) one is added.
"""

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from cleanrank.clicks.logs import ClickLog, clicks_from_log
from cleanrank.data.files import open_packed, written_whole
from cleanrank.data.json_files import Node, read_json_lines
from cleanrank.data.relevance_tools.opinions import from_pairs
from cleanrank.errors import BadFileError, error_text

QUERIES, EVENTS = "ubi_queries", "ubi_events"
SHOWN, CLICKED = ("impression",), ("click",)
ACTIONS = ("index", "create")
APPLICATION = "cleanrank"


@dataclass
class _Search:
    """One query_id: its text, and per document the ordinal and whether it was clicked."""

    application: str
    text: str | None = None
    ordinals: dict[str, int] = field(default_factory=dict)
    clicked: set[str] = field(default_factory=set)


def read_ubi(
    path: str | os.PathLike[str], *, clicks: Sequence[str] = CLICKED, shown: Sequence[str] = SHOWN
) -> ClickLog:
    """The lists that a UBI log shows, with positions and clicks; its documents have no grades and features.

    Args:
        path: JSON lines, plain or packed.
        clicks: the names of actions that count as a click.
        shown: the names of actions that say a document was shown.

    Returns:
        The log. A query's id is its text. ``settings`` count events that were left out, by reason.
    """
    table, counts = ubi_table(path, clicks=clicks, shown=shown)
    pairs = dict.fromkeys(zip(table["query_id"].to_pylist(), table["doc_id"].to_pylist(), strict=True))
    data = from_pairs(pairs, np.zeros(len(pairs), dtype=np.int64), np.zeros(len(pairs), dtype=np.bool_))
    return replace(clicks_from_log(table, data), settings={"source": Path(path).name, **counts})


def ubi_table(
    path: str | os.PathLike[str], *, clicks: Sequence[str] = CLICKED, shown: Sequence[str] = SHOWN
) -> tuple[Any, dict[str, int]]:
    """A row for every document shown, as ``clicks_from_log`` takes it, and counts of what was left out."""
    import pyarrow as pa

    searches: dict[str, _Search] = {}
    counts: Counter[str] = Counter()
    lowest: dict[str, int] = {}
    for record in _records(path):
        if "action_name" not in record:
            if "user_query" in record:
                query = record.child("query_id").text()
                _search(searches, record, query).text = _user_query(record)
            continue
        action = record.child("action_name").text()
        if action in shown or action in clicks:
            _add_event(searches, record, action in clicks, counts, lowest)
    rows = _rows(searches, lowest, counts)
    if not any(rows.values()):
        rule = f"must hold events of documents that were shown ({', '.join(shown)}) or clicked"
        raise BadFileError(error_text(repr(str(path)), rule, "none"), str(path))
    return pa.table(rows), {name: count for name, count in counts.items() if count}


def _records(path: str | os.PathLike[str]) -> Iterator[Node]:
    """The documents without action lines; of search hits their source."""
    for each in read_json_lines(path):
        members = dict(each.members())
        if len(members) == 1 and next(iter(members)) in ACTIONS:
            continue
        yield each.child("_source") if "_source" in each else each


def _search(searches: dict[str, _Search], record: Node, query: str) -> _Search:
    application = record.find("application").value
    return searches.setdefault(query, _Search(application if isinstance(application, str) else ""))


def _user_query(record: Node) -> str | None:
    """What the user typed; None where nothing is said, or nothing was typed."""
    typed = record.find("user_query")
    return None if typed.value is None or typed.value == "" else typed.text()


def _add_event(
    searches: dict[str, _Search], record: Node, is_click: bool, counts: Counter[str], lowest: dict[str, int]
) -> None:
    if "query_id" not in record or "object_id" not in record.find("event_attributes", "object"):
        counts["events without a query or an object"] += 1
        return
    search = _search(searches, record, record.child("query_id").text())
    search.text = search.text or _user_query(record)
    attributes = record.child("event_attributes")
    document = attributes.child("object").child("object_id").text()
    ordinal = attributes.find("position", "ordinal")
    if ordinal.value is not None:
        number = ordinal.number()
        if number < 0 or number != int(number) or number >= 1 << 31:
            raise ordinal.bad("must be a whole number from 0", number)
        lowest[search.application] = min(lowest.get(search.application, 1), int(number))
        search.ordinals.setdefault(document, int(number))
    elif document not in search.ordinals:
        counts["events without a position"] += 1
        return
    if is_click:
        search.clicked.add(document)


def _rows(searches: dict[str, _Search], lowest: dict[str, int], counts: Counter[str]) -> dict[str, list[Any]]:
    rows: dict[str, list[Any]] = {name: [] for name in ("session", "query_id", "doc_id", "position", "click")}
    for number, search in enumerate(each for each in searches.values() if each.ordinals):
        if search.text is None:
            counts["shown documents without the text of their query"] += len(search.ordinals)
            continue
        first = 1 - lowest[search.application]
        for document, ordinal in sorted(search.ordinals.items(), key=lambda shown: shown[1]):
            cells = (number, search.text, document, ordinal + first, int(document in search.clicked))
            for column, cell in zip(rows.values(), cells, strict=True):
                column.append(cell)
    return rows


def write_ubi(log: ClickLog, path: str | os.PathLike[str]) -> None:
    """Writes a log as a bulk file of UBI, packed as the name ends; a list is a query_id, without times."""
    target = Path(path)
    data = log.data
    docs = [str(doc) for doc in (data.row_ids if data.doc_ids is None else data.doc_ids).tolist()]
    with written_whole(target) as part, open_packed(part, target.suffix) as file:
        for number in range(log.n_lists):
            query = str(data.query_ids[log.query[number]])
            search = {"application": APPLICATION, "query_id": str(number), "user_query": query}
            _write(file, QUERIES, search)
            for entry in range(log.indptr[number], log.indptr[number + 1]):
                place = {
                    "object": {"object_id": docs[log.row[entry]]},
                    "position": {"ordinal": int(log.position[entry])},
                }
                for action in (*SHOWN, *(CLICKED if log.click[entry] else ())):
                    _write(file, EVENTS, {"action_name": action, **search, "event_attributes": place})


def _write(file: Any, index: str, record: dict[str, Any]) -> None:
    file.write(
        msgspec.json.encode({"index": {"_index": index}}) + b"\n" + msgspec.json.encode(record) + b"\n"
    )
