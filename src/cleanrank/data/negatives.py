"""Mined negatives as JSON lines, the way sentence-transformers and FlagEmbedding train on them.

A line is a query with positives and negatives, in one of FORMS:

* "triplet": ``{"query": ..., "positive": ..., "negative": ...}``, with an optional ``score`` or ``label``, or
  ``scores`` of the positive and the negative;
* "tuple": ``negative_1``, ``negative_2``, ... in place of ``negative``, with an optional list
  ``score`` or ``scores`` of the negatives, or of the positive and the negatives;
* "lists": ``{"query": ..., "pos": [...], "neg": [...]}``, with optional ``pos_scores`` and ``neg_scores``;
* "labeled-pair": ``{"query": ..., "positive": ..., "label": 1}``, or 0 for a negative;
* "labeled-list": ``{"query": ..., "positive": [...], "labels": [1, 0, ...]}``.

All but "lists" are what ``mine_hard_negatives`` of sentence-transformers makes, which keeps the names of the
columns that it was given: the query is ``query``, ``anchor`` or ``question``, the text ``positive``; beside
negatives both may be called otherwise, and are the first members then. Other members stay with their line.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np

from cleanrank.data.files import check_outputs, existing_file, written_whole
from cleanrank.data.json_files import JSON_LINES, Node, read_json_lines
from cleanrank.errors import BadFileError, error_text
from cleanrank.ragged import from_arrays
from cleanrank.types import RankingData
from cleanrank.validation import one_of

QUERIES = ("query", "anchor", "question")
# What is written; lines with labels hold no scores.
SCORED = {"triplet": "score", "tuple": "score", "lists": "neg_scores"}
SCORES = ("score", "label", "scores")
LABELS = {"labeled-pair": "label", "labeled-list": "labels"}
NUMBERED = re.compile(r"negative_([1-9]\d*)")


class Names(NamedTuple):
    """What a file calls the query, the positive, and the scores where there are any."""

    query: str = "query"
    positive: str = "positive"
    scores: str = ""


@dataclass(frozen=True)
class Mined:
    """A query with positives and mined negatives.

    Attributes:
        query: its text.
        positives: texts that are relevant.
        negatives: texts that are taken not to be.
        scores: a number for every negative, where each has one of its own; else none.
        rest: other members of the line, as they were.
        first_score: the positive's, where it is listed before those of the negatives.
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
        names: what the file calls the members of a line.
    """

    lines: tuple[Mined, ...]
    form: str
    names: Names = field(default_factory=Names)

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
        columns = {"query": [query for query, _ in pairs], "text": [text for _, text in pairs]}
        data = from_arrays(
            np.zeros((len(pairs), 0)),
            is_positive.astype(np.int32),
            qid=[queries[query] for query, _ in pairs],
            doc_ids=[texts[text] for _, text in pairs],
            extra={name: np.array(column, object) for name, column in columns.items()},
        )
        return replace(data, judged=is_positive[data.row_ids], row_ids=np.arange(data.n_docs))

    def without(self, pairs: set[tuple[str, str]]) -> "Negatives":
        """The lines without some negatives, given as (query, text); lines that lose all of theirs are gone.

        What has labels keeps its positives.

        >>> mined = Negatives((Mined("fruit", ("apple",), ("pear", "lorry")),), "lists")
        >>> mined.without({("fruit", "pear")}).lines[0].negatives
        ('lorry',)
        """
        kept = []
        for line in self.lines:
            stays = [n for n, text in enumerate(line.negatives) if (line.query, text) not in pairs]
            if stays or (line.positives and self.form in LABELS):
                scores = tuple(line.scores[n] for n in stays) if line.scores else ()
                kept.append(replace(line, negatives=tuple(line.negatives[n] for n in stays), scores=scores))
        return replace(self, lines=tuple(kept))

    def with_scores(self, scores: Mapping[tuple[str, str], float]) -> "Negatives":
        """The lines with a number for every negative, by (query, text); lines with labels hold none."""
        if self.form in LABELS:
            return self
        lines = [
            replace(
                line,
                scores=tuple(scores[line.query, text] for text in line.negatives),
                first_score=None,
            )
            for line in self.lines
        ]
        return replace(self, lines=tuple(lines), names=self.names._replace(scores=SCORED[self.form]))


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
    form, names = "", Names()
    for node in read_json_lines(file):
        if not form:
            form, names = _form_of(node)
        lines.append(READERS[form](node, names))
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
    check_outputs(path, force=force, suffixes=JSON_LINES)
    chosen = mined.form if form is None else one_of("form", form, FORMS)
    names = mined.names
    if chosen != mined.form:
        names = names._replace(scores=SCORED.get(chosen, "") if names.scores else "")
    with written_whole(path) as part, part.open("wb") as out:
        for line in mined.lines:
            for record in WRITERS[chosen](line, names):
                out.write(msgspec.json.encode({**record, **line.rest}) + b"\n")


def _form_of(node: Node) -> tuple[str, Names]:
    """The form of a line, and what it calls its members."""
    members = [name for name, _ in node.members() if name in node]
    if not members:
        raise node.bad("must have a member 'query' or 'anchor'", _members(node))
    query = next((name for name in QUERIES if name in members), "")
    if "pos" in members and "neg" in members:
        query = query or next((name for name in members if not name.startswith(("pos", "neg"))), QUERIES[0])
        return "lists", Names(query, "pos", "neg_scores" if "neg_scores" in members else "")
    negatives = [name for name in members if name == "negative" or NUMBERED.fullmatch(name)]
    label = "" if negatives else next((form for form, name in LABELS.items() if name in members), "")
    others = [name for name in members if name not in (query, *negatives, *SCORES, *LABELS.values())]
    texts = [name for name in others if not name.endswith("id")]
    if negatives and others:
        query = query or others.pop(0)
        positive = next((name for name in ("positive", *others) if name in others), "")
        if positive:
            scores = next((name for name in SCORES if name in members), "")
            return "triplet" if "negative" in negatives else "tuple", Names(query, positive, scores)
    if label and query and len(others) == len(texts) == 1:
        return label, Names(query, texts[0])
    if not query:
        raise node.bad("must have a member 'query' or 'anchor'", _members(node))
    rule = "must have members positive and negative (or negative_1, ...), positive and label, or pos and neg"
    is_scored = any(name in members for name in ("score", "scores"))
    remedy = "Scores alone do not say what is positive: mine without output_scores." if is_scored else ""
    raise node.bad(rule, _members(node), remedy)


def _members(node: Node) -> str:
    return ", ".join(name for name, _ in node.members()) or "none"


def _read_triplet(node: Node, names: Names) -> Mined:
    positive, negative = node.child(names.positive).text(), node.child("negative").text()
    first, numbers = _scores(node, names.scores, 1)
    rest = _rest(node, {*names, "negative"})
    return Mined(node.child(names.query).text(), (positive,), (negative,), numbers, rest, first)


def _read_tuple(node: Node, names: Names) -> Mined:
    numbered = sorted(int(match[1]) for name, _ in node.members() if (match := NUMBERED.fullmatch(name)))
    members = [f"negative_{number}" for number in numbered]
    texts = tuple(node.child(name).text() for name in members if name in node)
    if not texts:
        raise node.bad("must have members negative_1, negative_2, ...", _members(node))
    first, numbers = _scores(node, names.scores, len(texts))
    positive = node.child(names.positive).text()
    return Mined(
        node.child(names.query).text(), (positive,), texts, numbers, _rest(node, {*names, *members}), first
    )


def _read_lists(node: Node, names: Names) -> Mined:
    positives, negatives = (tuple(each.text() for each in node.child(n).entries()) for n in ("pos", "neg"))
    if not positives:
        raise node.child("pos").bad("must hold a text", "none")
    numbers = tuple(each.number() for each in node.child(names.scores).entries()) if names.scores else ()
    _check_scores(node, names.scores, numbers, len(negatives))
    rest = _rest(node, {*names, "neg"})
    return Mined(node.child(names.query).text(), positives, negatives, numbers, rest)


def _read_labeled_pair(node: Node, names: Names) -> Mined:
    return _labeled(node, names, "label", [node.child(names.positive)], [node.child("label")])


def _read_labeled_list(node: Node, names: Names) -> Mined:
    texts, labels = (list(node.child(name).entries()) for name in (names.positive, "labels"))
    if len(texts) != len(labels) or not texts:
        raise node.child("labels").bad(f"must have a label for each of {len(texts)} texts", len(labels))
    return _labeled(node, names, "labels", texts, labels)


def _labeled(node: Node, names: Names, label: str, texts: Sequence[Node], labels: Sequence[Node]) -> Mined:
    parts: dict[float, list[str]] = {0.0: [], 1.0: []}
    for text, each in zip(texts, labels, strict=True):
        value = each.number()
        if value not in parts:
            raise each.bad("must be 1 for a positive or 0 for a negative", value)
        parts[value].append(text.text())
    rest = _rest(node, {*names, label})
    return Mined(node.child(names.query).text(), tuple(parts[1.0]), tuple(parts[0.0]), rest=rest)


def _scores(node: Node, name: str, count: int) -> tuple[float | None, tuple[float, ...]]:
    """The positive's score where it is listed first, and those of ``count`` negatives."""
    if not name:
        return None, ()
    listed = node.child(name)
    numbers = tuple(
        each.number() for each in (listed.entries() if isinstance(listed.value, list) else [listed])
    )
    first, numbers = (numbers[0], numbers[1:]) if len(numbers) == count + 1 else (None, numbers)
    _check_scores(node, name, numbers, count)
    return first, numbers


def _check_scores(node: Node, name: str, scores: Sequence[float], count: int) -> None:
    if scores and len(scores) != count:
        raise node.child(name).bad(f"must have a number for each of {count} negatives", len(scores))


def _rest(node: Node, read: set[str]) -> dict[str, Any]:
    return {name: each.value for name, each in node.members() if name not in read}


def _triplets(line: Mined, names: Names) -> list[dict[str, Any]]:
    return [
        {names.query: line.query, names.positive: positive, "negative": negative, **_number(line, names, n)}
        for positive in line.positives
        for n, negative in enumerate(line.negatives)
    ]


def _number(line: Mined, names: Names, n: int) -> dict[str, Any]:
    if not names.scores or not line.scores:
        return {}
    one = line.scores[n]
    return {names.scores: one if line.first_score is None else [line.first_score, one]}


def _tuples(line: Mined, names: Names) -> list[dict[str, Any]]:
    numbered = {f"negative_{n}": text for n, text in enumerate(line.negatives, start=1)}
    first = [] if line.first_score is None else [line.first_score]
    listed = {names.scores: [*first, *line.scores]} if names.scores and line.scores else {}
    return [{names.query: line.query, names.positive: each, **numbered, **listed} for each in line.positives]


def _lists(line: Mined, names: Names) -> list[dict[str, Any]]:
    listed = {names.scores: [*line.scores]} if names.scores and line.scores else {}
    return [{names.query: line.query, "pos": [*line.positives], "neg": [*line.negatives], **listed}]


def _labeled_pairs(line: Mined, names: Names) -> list[dict[str, Any]]:
    return [
        {names.query: line.query, names.positive: text, "label": label} for text, label in _with_labels(line)
    ]


def _labeled_lists(line: Mined, names: Names) -> list[dict[str, Any]]:
    texts, labels = zip(*_with_labels(line), strict=True)
    return [{names.query: line.query, names.positive: texts, "labels": labels}]


def _with_labels(line: Mined) -> list[tuple[str, int]]:
    return [*((text, 1) for text in line.positives), *((text, 0) for text in line.negatives)]


READERS = {
    "triplet": _read_triplet,
    "tuple": _read_tuple,
    "lists": _read_lists,
    "labeled-pair": _read_labeled_pair,
    "labeled-list": _read_labeled_list,
}
WRITERS = {
    "triplet": _triplets,
    "tuple": _tuples,
    "lists": _lists,
    "labeled-pair": _labeled_pairs,
    "labeled-list": _labeled_lists,
}
FORMS = tuple(READERS)
