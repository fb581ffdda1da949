"""Mined negatives as JSON lines, the way sentence-transformers and FlagEmbedding train on them.

A line is a query with positives and negatives, in one of FORMS:

* "triplet": ``{"query": ..., "positive": ..., "negative": ...}``, with an optional ``score`` or ``label``;
* "tuple": ``negative_1``, ``negative_2``, ... in place of ``negative``, with an optional list
  ``score`` or ``scores`` of the negatives, or of the positive and the negatives;
* "lists": ``{"query": ..., "pos": [...], "neg": [...]}``, with optional ``pos_scores`` and ``neg_scores``.

``anchor`` is as good as ``query``. Other members of a line stay with it.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import msgspec
import numpy as np

from cleanrank.data.files import check_outputs, existing_file, written_whole
from cleanrank.data.json_files import Node, read_json_lines
from cleanrank.errors import BadFileError, error_text
from cleanrank.ragged import from_arrays
from cleanrank.types import Array, RankingData
from cleanrank.validation import one_of

FORMS = ("triplet", "tuple", "lists")
QUERIES = ("query", "anchor")
SCORED = {"triplet": "score", "tuple": "score", "lists": "neg_scores"}  # what is written
SCORES = ("score", "label", "scores")
NUMBERED = re.compile(r"negative_([1-9]\d*)")


@dataclass(frozen=True)
class Mined:
    """A query with positives and mined negatives.

    Attributes:
        query: its text.
        positives: texts that are relevant.
        negatives: texts that are taken not to be.
        scores: a number for every negative, where each has one of its own; else none.
        rest: other members of the line, as they were.
        first_score: the positive's, where a tuple lists it before those of the negatives.
    """

    query: str
    positives: tuple[str, ...]
    negatives: tuple[str, ...]
    scores: tuple[float, ...] = ()
    rest: Mapping[str, Any] = field(default_factory=dict)
    first_score: float | None = None


@dataclass(frozen=True, eq=False)
class Negatives:
    """Lines of one form.

    Attributes:
        lines: the queries with positives and negatives; a query may come in several.
        form: one of FORMS.
        names: what the file calls the query, and the scores where there are any.
    """

    lines: tuple[Mined, ...]
    form: str
    names: tuple[str, str] = ("query", "")

    def __len__(self) -> int:
        return len(self.lines)

    @cached_property
    def data(self) -> RankingData:
        """A row for every query and text: positives have grade 1, negatives are not judged.

        A text that is a positive of a query in one line is so in all. Queries and texts are numbered in order
        of appearance; the texts themselves are columns ``query`` and ``text``.

        >>> lines = (Mined("fruit", ("apple",), ("pear", "lorry")),)
        >>> data = Negatives(lines, "lists").data
        >>> data.y.tolist(), data.judged.tolist(), data.doc_ids.tolist()
        ([1, 0, 0], [True, False, False], ['d1', 'd2', 'd3'])
        """
        pairs: dict[tuple[str, str], bool] = {}
        for line in self.lines:
            pairs |= {(line.query, text): True for text in line.positives}
            for text in line.negatives:
                pairs.setdefault((line.query, text), False)
        queries = {query: f"q{n}" for n, query in enumerate(dict.fromkeys(q for q, _ in pairs), start=1)}
        texts = {text: f"d{n}" for n, text in enumerate(dict.fromkeys(t for _, t in pairs), start=1)}
        is_positive = np.array(list(pairs.values()), dtype=np.bool_)
        data = from_arrays(
            np.zeros((len(pairs), 0)),
            is_positive.astype(np.int32),
            qid=[queries[query] for query, _ in pairs],
            doc_ids=[texts[text] for _, text in pairs],
            extra={"query": _objects([q for q, _ in pairs]), "text": _objects([t for _, t in pairs])},
        )
        return replace(data, judged=is_positive[data.row_ids], row_ids=np.arange(data.n_docs))

    def without(self, pairs: set[tuple[str, str]]) -> "Negatives":
        """The lines without some negatives, given as (query, text); lines that lose all of theirs are gone.

        >>> mined = Negatives((Mined("fruit", ("apple",), ("pear", "lorry")),), "lists")
        >>> mined.without({("fruit", "pear")}).lines[0].negatives
        ('lorry',)
        """
        kept = []
        for line in self.lines:
            stays = [n for n, text in enumerate(line.negatives) if (line.query, text) not in pairs]
            if stays:
                scores = tuple(line.scores[n] for n in stays) if line.scores else ()
                kept.append(replace(line, negatives=tuple(line.negatives[n] for n in stays), scores=scores))
        return replace(self, lines=tuple(kept))

    def with_scores(self, scores: Mapping[tuple[str, str], float]) -> "Negatives":
        """The lines with a number for every negative, by (query, text)."""
        name = SCORED[self.form]
        lines = [
            replace(
                line,
                scores=tuple(scores[line.query, text] for text in line.negatives),
                first_score=None,
            )
            for line in self.lines
        ]
        return replace(self, lines=tuple(lines), names=(self.names[0], name))


def read_negatives(path: str | os.PathLike[str]) -> Negatives:
    r"""Reads mined negatives, one query a line, plain or packed; the first line tells the form.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = f"{folder}/mined.jsonl"
    ...     with open(file, "w") as out:
    ...         _ = out.write('{"anchor": "fruit", "positive": "apple", "negative": "lorry", "score": 3}\n')
    ...     mined = read_negatives(file)
    >>> mined.form, mined.lines[0].negatives, mined.lines[0].scores
    ('triplet', ('lorry',), (3.0,))
    """
    file = existing_file(path)
    lines: list[Mined] = []
    form, names = "", ("", "")
    for node in read_json_lines(file):
        if not form:
            form, names = _form_of(node)
        lines.append(READERS[form](node, *names))
    if not lines:
        raise BadFileError(error_text(str(file), "must hold queries with negatives", "nothing"), str(file))
    return Negatives(tuple(lines), form, names)


def is_negatives(path: str | os.PathLike[str]) -> bool:
    """Whether the first line of a file of JSON lines holds a query with positives and negatives."""
    try:
        first = next(read_json_lines(path), None)
        return first is not None and bool(_form_of(first)[0])
    except BadFileError:
        return False


def write_negatives(
    mined: Negatives, path: str | os.PathLike[str], *, form: str | None = None, force: bool = False
) -> None:
    """Writes the lines, whole or not at all.

    Args:
        mined: the lines.
        path: a file that ends in .jsonl or .ndjson.
        form: one of FORMS; that of the lines when not given. A line of several positives becomes several.
        force: overwrite a file.
    """
    check_outputs(path, force=force, suffixes=(".jsonl", ".ndjson"))
    chosen = mined.form if form is None else one_of("form", form, FORMS)
    query, scores = mined.names
    if chosen != mined.form:
        scores = SCORED[chosen] if scores else ""
    with written_whole(path) as part, part.open("wb") as out:
        for line in mined.lines:
            for record in WRITERS[chosen](line, query, scores):
                out.write(msgspec.json.encode({**record, **line.rest}) + b"\n")


def _form_of(node: Node) -> tuple[str, tuple[str, str]]:
    """The form of a line, and what it calls the query and the scores of negatives."""
    query = next((name for name in QUERIES if name in node), "")
    if not query:
        raise node.bad("must have a member 'query' or 'anchor'", _members(node))
    if "pos" in node and "neg" in node:
        return "lists", (query, "neg_scores" if "neg_scores" in node else "")
    scores = next((name for name in SCORES if name in node), "")
    if "positive" in node and "negative" in node:
        return "triplet", (query, scores)
    if "positive" in node and "negative_1" in node:
        return "tuple", (query, scores)
    rule = "must have members positive and negative, positive and negative_1, ..., or pos and neg"
    raise node.bad(rule, _members(node))


def _members(node: Node) -> str:
    return ", ".join(name for name, _ in node.members()) or "none"


def _read_triplet(node: Node, query: str, scores: str) -> Mined:
    positive, negative = node.child("positive").text(), node.child("negative").text()
    number = (node.child(scores).number(),) if scores else ()
    rest = _rest(node, {query, "positive", "negative", scores})
    return Mined(node.child(query).text(), (positive,), (negative,), number, rest)


def _read_tuple(node: Node, query: str, scores: str) -> Mined:
    numbered = sorted(int(match[1]) for name, _ in node.members() if (match := NUMBERED.fullmatch(name)))
    names = [f"negative_{number}" for number in numbered if f"negative_{number}" in node]
    if not names:
        raise node.bad("must have members negative_1, negative_2, ...", _members(node))
    numbers = tuple(each.number() for each in node.child(scores).entries()) if scores else ()
    rest = _rest(node, {query, "positive", scores, *(f"negative_{number}" for number in numbered)})
    texts = tuple(node.child(name).text() for name in names)
    has_first = len(numbers) == len(texts) + 1
    first, numbers = (numbers[0], numbers[1:]) if has_first else (None, numbers)
    _check_scores(node, scores, numbers, texts)
    return Mined(node.child(query).text(), (node.child("positive").text(),), texts, numbers, rest, first)


def _read_lists(node: Node, query: str, scores: str) -> Mined:
    positives, negatives = (tuple(each.text() for each in node.child(n).entries()) for n in ("pos", "neg"))
    numbers = tuple(each.number() for each in node.child(scores).entries()) if scores else ()
    if not positives:
        raise node.child("pos").bad("must hold a text", "none")
    _check_scores(node, scores, numbers, negatives)
    return Mined(
        node.child(query).text(), positives, negatives, numbers, _rest(node, {query, "pos", "neg", scores})
    )


def _check_scores(node: Node, name: str, scores: Sequence[float], texts: Sequence[str]) -> None:
    if scores and len(scores) != len(texts):
        raise node.child(name).bad(f"must have a number for each of {len(texts)} negatives", len(scores))


def _rest(node: Node, read: set[str]) -> dict[str, Any]:
    return {name: each.value for name, each in node.members() if name not in read}


def _triplets(line: Mined, query: str, scores: str) -> list[dict[str, Any]]:
    return [
        {query: line.query, "positive": positive, "negative": negative, **_number(line, scores, n)}
        for positive in line.positives
        for n, negative in enumerate(line.negatives)
    ]


def _number(line: Mined, scores: str, n: int) -> dict[str, float]:
    return {scores: line.scores[n]} if scores and line.scores else {}


def _tuples(line: Mined, query: str, scores: str) -> list[dict[str, Any]]:
    numbered = {f"negative_{n}": text for n, text in enumerate(line.negatives, start=1)}
    first = [] if line.first_score is None else [line.first_score]
    listed = {scores: [*first, *line.scores]} if scores and line.scores else {}
    return [{query: line.query, "positive": each, **numbered, **listed} for each in line.positives]


def _lists(line: Mined, query: str, scores: str) -> list[dict[str, Any]]:
    listed = {scores: [*line.scores]} if scores and line.scores else {}
    return [{query: line.query, "pos": [*line.positives], "neg": [*line.negatives], **listed}]


def _objects(texts: Sequence[str]) -> Array:
    column = np.empty(len(texts), dtype=object)
    column[:] = texts
    return column


READERS = {"triplet": _read_triplet, "tuple": _read_tuple, "lists": _read_lists}
WRITERS = {"triplet": _triplets, "tuple": _tuples, "lists": _lists}
