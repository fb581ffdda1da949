"""Feature logs of the learning-to-rank plugin of Elasticsearch and OpenSearch.

A log is one or more search responses whose hits have logged features (``fields._ltrlog``): a document with
a response, a list or ``responses`` of a multi-search, or JSON lines with a response each. A feature that did
not match has no value there and is missing (NaN) here. Responses say neither their query nor grades, so these
stand beside them: the query's id as a member of the response (query_id, qid or query; else the number of the
response), the grade as a field of the hit, or in judgements that are joined by query and document.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from cleanrank.data.files import written_whole
from cleanrank.data.json_files import Node
from cleanrank.data.ratings import to_grades
from cleanrank.data.relevance_tools.opinions import from_pairs, written_rating, written_rows
from cleanrank.errors import BadFileError, InvalidInputError, error_text, invalid
from cleanrank.ragged import judged_rows
from cleanrank.stored import as_array
from cleanrank.types import RankingData

LOG = "_ltrlog"
QUERY_NAMES = ("query_id", "qid", "query")
GRADE_NAMES = ("grade", "label")
ENTRY = "log_entry1"


def is_log(document: Node) -> bool:
    """Whether a document looks like search responses with logged features."""
    return any(
        LOG in hit.find("fields") for response in _responses(document) for hit in search_hits(response)
    )


def _responses(document: Node) -> Iterator[Node]:
    listed = document if isinstance(document.value, list) else document.find("responses")
    if isinstance(listed.value, list):
        yield from listed.entries()
    else:
        yield document


def search_hits(response: Node) -> Iterator[Node]:
    """The hits of a search response; none of any other document."""
    hits = response.find("hits", "hits")
    if isinstance(hits.value, list):
        yield from hits.entries()


def read_ltr_log(
    documents: Iterable[Node],
    *,
    qid: str | None = None,
    label: str | None = None,
    judgements: RankingData | None = None,
    ratings: Any = None,
    judged: bool = True,
) -> RankingData:
    """Rows of logged features, a query per response.

    Args:
        documents: responses, or lists of them.
        qid: the member of a response, or field of its hits, that has the query's id.
        label: the field of a hit that has its grade.
        judgements: grades by query and document, instead.
        ratings: the rule from ratings to grades.
        judged: whether there must be grades; without, they are 0.
    """
    log = _Log()
    source = Node(None, Path())
    for source in documents:
        for response in _responses(source):
            log.add(response, qid, label)
    file = str(source.file)
    if not log.features:
        raise BadFileError(f"{file!r} must hold hits with logged features ({LOG}); got none.", file)
    known = log.ratings if judgements is None else _joined(judgements)
    y, gains, is_judged = _graded(list(log.rows), known, ratings, source.file)
    if judged and not is_judged.any():
        if judgements is not None:
            pair, other = (next(iter(pairs), None) for pairs in (log.rows, known))
            value = f"none; the log has pairs such as {pair}, the judgements such as {other}"
            raise BadFileError(
                error_text(repr(file), "must have pairs of query and document that are judged", value), file
            )
        usual = " or ".join(GRADE_NAMES)
        remedy = f"Name their field with label= (unless {usual}), or give them: judgements=."
        raise BadFileError(f"{file!r} must have grades beside its features; got none. {remedy}", file)
    X = np.full((len(log.rows), len(log.features)), np.nan, dtype=np.float32)
    for row, features in enumerate(log.rows.values()):
        X[row, [log.features[name] for name in features]] = list(features.values())
    names = tuple(log.features)
    return from_pairs(log.rows, y, is_judged if judged else None, X=X, feature_names=names, gains=gains)


@dataclass
class _Log:
    """What the responses so far say: (query, document) -> features and rating, feature -> column."""

    rows: dict[tuple[str, str], dict[str, float]] = field(default_factory=dict)
    ratings: dict[tuple[str, str], float] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    responses: int = 0
    has_ids: bool | None = None

    def add(self, response: Node, qid: str | None, label: str | None) -> None:
        self.responses += 1
        for hit in response.child("hits").child("hits").entries():
            pair = self._query(response, hit, qid), hit.child("_id").text()
            if pair in self.rows:
                raise hit.child("_id").bad("must come once in a query", repr(pair[1]))
            self.rows[pair] = _features(hit)
            for name in self.rows[pair]:
                self.features.setdefault(name, len(self.features))
            rating = _grade(hit, label)
            if rating is not None:
                self.ratings[pair] = rating.number()

    def _query(self, response: Node, hit: Node, name: str | None) -> str:
        holders = (response, hit.find("_source"), hit.find("fields")) if name else (response,)
        names = (name,) if name else QUERY_NAMES
        found = next((h.child(each) for h in holders for each in names if _is_single(h, each)), None)
        if found is None and name is not None:
            raise response.bad(f"must have the query's id as {name!r}", "none")
        self.has_ids = found is not None if self.has_ids is None else self.has_ids
        if self.has_ids != (found is not None):
            rule = f"must have the query's id ({', '.join(QUERY_NAMES)}) like the others, or none like them"
            raise response.bad(rule, "none" if found is None else repr(found.value))
        return str(self.responses) if found is None else _single(found).text()


def _is_single(holder: Node, name: str) -> bool:
    return name in holder and not isinstance(holder.find(name).value, dict)


def _grade(hit: Node, name: str | None) -> Node | None:
    """The grade of a hit: a field that is named, else one of GRADE_NAMES beside the features.

    A field of the document itself (``_source``) is none unless it is named: films have a rating of their own.
    """
    holders = (hit.find("fields"), hit.find("_source"), hit) if name else (hit.find("fields"), hit)
    names = (name,) if name else GRADE_NAMES
    return next((_single(h.child(each)) for h in holders for each in names if each in h), None)


def _single(node: Node) -> Node:
    """The value of a field, which a response may hold as a list of one."""
    if isinstance(node.value, list):
        if len(node.value) != 1:
            raise node.bad("must have one value", len(node.value))
        return next(node.entries())
    return node


def _features(hit: Node) -> dict[str, float]:
    features: dict[str, float] = {}
    for logged in hit.child("fields").child(LOG).entries():
        for _, entry in logged.members():
            for each in entry.entries():
                name = each.child("name").text()
                if name in features:
                    raise each.child("name").bad("must be logged once", repr(name))
                value = each.child("value").number() if "value" in each else float("nan")
                if abs(value) > float(np.finfo(np.float32).max):
                    raise each.child("value").bad("must fit into float32", value)
                features[name] = value
    return features


def _joined(judgements: RankingData) -> dict[tuple[str, str], float]:
    if judgements.doc_ids is None:
        raise invalid("judgements=", "must have document ids", "none")
    values = judgements.y if judgements.gains is None else judgements.gains
    known = judged_rows(judgements)
    columns = (judgements.qid.astype(str), judgements.doc_ids.astype(str), values, known)
    return {
        (q, d): float(v) for q, d, v, is_known in zip(*(c.tolist() for c in columns), strict=True) if is_known
    }


def _graded(
    pairs: list[tuple[str, str]], ratings: Mapping[tuple[str, str], float], rule: Any, file: Path
) -> Any:
    is_judged = np.array([pair in ratings for pair in pairs], dtype=np.bool_)
    y, gains = np.zeros(len(pairs), dtype=np.int64), np.zeros(len(pairs))
    try:
        graded = to_grades([ratings[pair] for pair in pairs if pair in ratings], rule)
    except InvalidInputError as error:
        raise BadFileError(f"{str(file)!r}: {error}", str(file)) from error
    y[is_judged] = graded.grades
    if graded.gains is not None:
        gains[is_judged] = graded.gains
    return y, None if graded.gains is None else gains, is_judged


def write_ltr_log(data: RankingData, path: Path) -> None:
    """Writes a response per query as JSON lines, with the grade among the fields of each hit."""
    names = data.feature_names or tuple(f"feature_{j + 1}" for j in range(data.n_features))
    X = as_array(data.X)
    with written_whole(path) as part, part.open("wb") as file:
        for query, rows in written_rows(data):
            hits = [_hit(data, row, doc, dict(zip(names, X[row].tolist(), strict=True))) for row, doc in rows]
            total = {"value": len(hits), "relation": "eq"}
            file.write(
                msgspec.json.encode({"query_id": query, "hits": {"total": total, "hits": hits}}) + b"\n"
            )


def _hit(data: RankingData, row: int, doc: str, features: Mapping[str, float]) -> dict[str, Any]:
    logged = [{"name": n} if v != v else {"name": n, "value": v} for n, v in features.items()]
    fields: dict[str, Any] = {LOG: [{ENTRY: logged}]}
    if (rating := written_rating(data, row)) is not None:
        fields["grade"] = [rating]
    return {"_id": doc, "fields": fields}
