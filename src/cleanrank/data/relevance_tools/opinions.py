"""What tools say of pairs of query and document, and the ranking data that it comes to."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from cleanrank.data.json_files import Node
from cleanrank.data.ratings import combined, to_grades
from cleanrank.errors import BadFileError, InvalidInputError, invalid
from cleanrank.ragged import from_arrays
from cleanrank.types import Array, RankingData

QUERY_TEXT = "query"


@dataclass
class Opinions:
    """Ratings of pairs of query and document, in the order of the file.

    Attributes:
        pairs: (query, document) -> place.
        ratings: place of a pair -> annotator -> (rating, where it stands); "" is nobody in particular.
        fields: name -> place -> value: texts of documents and whatever else is carried along.
    """

    pairs: dict[tuple[str, str], int] = field(default_factory=dict)
    ratings: dict[int, dict[str, tuple[float, Node]]] = field(default_factory=dict)
    fields: dict[str, dict[int, Any]] = field(default_factory=dict)

    def add_pair(self, query: str, doc: str, fields: Mapping[str, Any] | None = None) -> int:
        """The place of a pair; what it has of fields is kept."""
        place = self.pairs.setdefault((query, doc), len(self.pairs))
        for name, value in (fields or {}).items():
            self.fields.setdefault(name, {})[place] = value
        return place

    def add(
        self,
        query: Node,
        doc: Node,
        rating: Node,
        annotator: str = "",
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        """A rating; an annotator may rate a pair once."""
        value = rating.number()
        if value < 0:
            raise rating.bad("must not be negative", value)
        place = self.add_pair(query.text(), doc.text(), fields)
        said = self.ratings.setdefault(place, {})
        if annotator in said:
            rule = "must be rated once only" + (f" by {annotator!r}" if annotator else "")
            pair = f"{query.text()!r}, {doc.text()!r} again"
            raise doc.bad(f"of its query {rule}", pair, f"The first is at {said[annotator][1].place}.")
        said[annotator] = value, rating

    def data(self, source: Node, ratings: Any = None, combine: str = "majority") -> RankingData:
        """One row per pair; pairs without a rating count as not judged.

        Args:
            source: the document, for messages.
            ratings: the rule from ratings to grades.
            combine: how the ratings of several people become one.
        """
        if not any(self.ratings.values()):
            raise source.bad("must hold at least one rating", "none")
        several = any(len(said) > 1 for said in self.ratings.values())
        if combine != "majority" and not several:
            raise invalid("combine=", "goes with ratings of several people", repr(combine))
        place = np.array([place for place, said in self.ratings.items() for _ in said])
        values = [value for said in self.ratings.values() for value, _ in said.values()]
        try:
            graded = to_grades(values, ratings)
        except InvalidInputError as error:
            raise BadFileError(f"{str(source.file)!r}: {error}", str(source.file)) from error
        n = len(self.pairs)
        judged = np.zeros(n, dtype=np.bool_)
        judged[place] = True
        votes = np.zeros((n, int(graded.grades.max()) + 1))
        np.add.at(votes, (place, graded.grades), 1)
        y, gains = np.zeros(n, dtype=np.int64), np.zeros(n)
        y[judged], expected = combined(votes[judged], combine)
        if expected is not None:
            gains[judged] = expected
        elif graded.gains is not None:
            np.add.at(gains, place, graded.gains)
            gains[judged] /= votes[judged].sum(axis=1)
        has_gains = expected is not None or graded.gains is not None
        return from_pairs(
            self.pairs,
            y=y,
            gains=gains if has_gains else None,
            judged=judged,
            extra={name: _column(values, n) for name, values in self.fields.items()} or None,
        )


def from_pairs(
    pairs: Iterable[tuple[str, str]], y: Array, judged: Array | None = None, **columns: Any
) -> RankingData:
    """Ranking data of pairs of query and document, without features unless there are any."""
    columns.setdefault("X", np.zeros((len(y), 0), dtype=np.float32))
    queries, docs = zip(*pairs, strict=True)
    data = from_arrays(y=y, qid=np.array(queries, dtype=str), doc_ids=np.array(docs, dtype=str), **columns)
    return data if judged is None or judged.all() else replace(data, judged=judged[data.row_ids])


def written_rows(data: RankingData) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Query by query its rows and their documents; row ids stand in for document ids."""
    docs = data.row_ids if data.doc_ids is None else data.doc_ids
    names = [str(doc) for doc in docs.tolist()]
    for query, (start, end) in zip(data.query_ids.tolist(), pairwise(data.indptr.tolist()), strict=True):
        yield str(query), [(row, names[row]) for row in range(start, end)]


def written_rating(data: RankingData, row: int) -> float | int | None:
    """The rating to write for a row: its gain, else its grade; None where nobody judged it."""
    if data.judged is not None and not data.judged[row]:
        return None
    return int(data.y[row]) if data.gains is None else float(data.gains[row])


def _column(values: Mapping[int, Any], n: int) -> Array:
    column = np.full(n, None, dtype=object)
    column[list(values)] = list(values.values())
    return column
