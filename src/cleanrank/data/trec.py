"""TREC files: judgements (qrels: ``topic 0 doc grade``) and runs (``topic Q0 doc rank score tag``).

Fields are cut at blanks and tabs by a compiled scan; a file of millions of lines takes seconds. As in
trec_eval the rank column is ignored: the order is by falling score, ties by falling document id.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from cleanrank.data.files import existing_file, read_unpacked, written_whole
from cleanrank.errors import BadFileError, error_text, invalid
from cleanrank.jit import kernel
from cleanrank.ragged import indptr_of, match_rows, query_of_row, rank_order
from cleanrank.types import Array, FloatArray, IntArray, RankingData

QRELS = ("topic", "iteration", "document", "grade")
RUN = ("topic", "Q0", "document", "rank", "score", "tag")
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Qrels:
    """Judgements, one per line of the file.

    Attributes:
        topic_ids: the topics, in order of appearance.
        doc_ids: the documents, in order of appearance.
        topic: place in ``topic_ids`` of every line.
        doc: place in ``doc_ids`` of every line.
        grades: the grade of every line; negative ones (spam in some tracks) are read as 0.
        negatives: how many grades were negative.
    """

    topic_ids: Array
    doc_ids: Array
    topic: IntArray
    doc: IntArray
    grades: npt.NDArray[np.int32]
    negatives: int = 0


@dataclass(frozen=True, eq=False)
class Run:
    """Scores of retrieved documents, one per line of the file; fields as in ``Qrels``."""

    topic_ids: Array
    doc_ids: Array
    topic: IntArray
    doc: IntArray
    scores: FloatArray
    tag: str = ""


@dataclass(frozen=True, eq=False)
class JudgedRun:
    """A run with its judgements, for the topics that have both.

    Attributes:
        data: the documents of every topic, without features. Unjudged ones have grade 0, as in trec_eval.
            Rows of a topic come in the order of the ranking, so that ties fall as in trec_eval.
        scores: one score per row. Judged documents that the run lacks come below the lowest score, the less
            relevant first, so that recall and ideal rankings know them and nothing is won by leaving one out.
        retrieved: whether the run holds the row.
        judged: whether the judgements hold the row.
        negatives: how many grades were negative and read as 0.
        topics_without_run: topics that were judged but not retrieved for.
        topics_without_judgements: topics that were retrieved for but not judged.
    """

    data: RankingData
    scores: FloatArray
    retrieved: npt.NDArray[np.bool_]
    judged: npt.NDArray[np.bool_]
    negatives: int
    topics_without_run: tuple[str, ...]
    topics_without_judgements: tuple[str, ...]

    @property
    def unjudged(self) -> int:
        """How many retrieved documents nobody judged."""
        return int((~self.judged).sum())

    @property
    def missing(self) -> int:
        """How many judged documents the run lacks."""
        return int((~self.retrieved).sum())


def read_qrels(path: str | os.PathLike[str]) -> Qrels:
    r"""Judgements of a qrels file (.gz is unpacked); a pair of topic and document may come once only.

    Returns:
        The judgements.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "qrels.txt"
    ...     _ = path.write_text("301 0 FR94-1 2\n301 0 FR94-2 -1\n")
    ...     qrels = read_qrels(path)
    >>> qrels.topic_ids.tolist(), qrels.grades.tolist(), qrels.negatives
    (['301'], [2, 0], 1)
    """
    file, fields, lines = _fields(path, QRELS, (0, 2, 3))
    grades = _numbers(file, fields[2], lines, pa.int64(), "a grade", "must be a whole number")
    topic_ids, topic, doc_ids, doc = _pairs(file, fields, lines)
    most = np.iinfo(np.int32).max
    if len(grades) and grades.max() > most:
        at = int(np.argmax(grades))
        raise _bad(file, int(lines[at]), "a grade", f"must be at most {most}", grades[at])
    kept = np.maximum(grades, 0).astype(np.int32)
    return Qrels(topic_ids, doc_ids, topic, doc, kept, int((grades < 0).sum()))


def read_run(path: str | os.PathLike[str]) -> Run:
    """Scores of a run file (.gz is unpacked); a pair of topic and document may come once only.

    Returns:
        The scores.
    """
    file, fields, lines = _fields(path, RUN, (0, 2, 4, 5))
    scores = _numbers(file, fields[2], lines, pa.float64(), "a score", "must be a number")
    wrong = ~np.isfinite(scores)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise _bad(file, int(lines[at]), "a score", "must be finite", scores[at])
    topic_ids, topic, doc_ids, doc = _pairs(file, fields, lines)
    tag = fields[3][0].as_py() if len(fields[3]) else ""
    return Run(topic_ids, doc_ids, topic, doc, scores, tag)


def from_qrels_run(qrels: Qrels, run: Run) -> JudgedRun:
    r"""Joins a run with judgements for evaluation; topics that lack either are left out and named.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     qrels, run = Path(folder) / "qrels", Path(folder) / "run"
    ...     _ = qrels.write_text("301 0 a 2\n301 0 b 1\n"), run.write_text("301 Q0 x 1 7 t\n301 Q0 a 2 5 t\n")
    ...     judged = from_qrels_run(read_qrels(qrels), read_run(run))
    >>> judged.data.doc_ids.tolist(), judged.data.y.tolist(), judged.scores.tolist(), judged.unjudged
    (['x', 'a', 'b'], [0, 2, 1], [7.0, 5.0, 3.0], 1)
    """
    topic_of_run = _places(run.topic_ids, qrels.topic_ids)[run.topic]
    doc_of_run = _places(run.doc_ids, qrels.doc_ids)
    new = doc_of_run < 0
    doc_of_run[new] = len(qrels.doc_ids) + np.arange(new.sum())
    names = np.concatenate((qrels.doc_ids, run.doc_ids[new]))
    shared = np.isin(np.arange(len(qrels.topic_ids)), topic_of_run)
    run_lines = np.flatnonzero(topic_of_run >= 0)
    qrel_lines = np.flatnonzero(shared[qrels.topic])

    key_of_run = topic_of_run[run_lines] * len(names) + doc_of_run[run.doc[run_lines]]
    key_of_qrel = qrels.topic[qrel_lines] * len(names) + qrels.doc[qrel_lines]
    at = match_rows(key_of_qrel, key_of_run)
    judged = at >= 0
    grades = np.where(judged, qrels.grades[qrel_lines][np.maximum(at, 0)], 0) if len(at) else np.zeros(0, int)
    lacking = np.ones(len(qrel_lines), dtype=np.bool_)
    lacking[at[judged]] = False

    topic = np.concatenate((topic_of_run[run_lines], qrels.topic[qrel_lines[lacking]]))
    doc = np.concatenate((doc_of_run[run.doc[run_lines]], qrels.doc[qrel_lines[lacking]]))
    score = run.scores[run_lines]
    floor = np.full(len(qrels.topic_ids), np.inf)
    np.minimum.at(floor, topic_of_run[run_lines], score)
    lacked_grade = qrels.grades[qrel_lines[lacking]]
    score = np.concatenate((score, _below(floor[qrels.topic[qrel_lines[lacking]]], lacked_grade)))
    by_name = np.empty(len(names), dtype=np.int64)
    by_name[pc.sort_indices(pa.array(names, pa.string())).to_numpy()] = np.arange(len(names))
    order = np.lexsort((-by_name[doc], -score, topic))
    present = np.flatnonzero(shared)
    sizes = np.bincount(topic, minlength=len(shared))[present]
    n_run = len(run_lines)
    return JudgedRun(
        data=RankingData(
            X=np.zeros((len(order), 0), dtype=np.float32),
            y=np.concatenate((grades, lacked_grade))[order],
            indptr=indptr_of(sizes),
            query_ids=qrels.topic_ids[present],
            row_ids=np.concatenate((run_lines, len(run.topic) + qrel_lines[lacking]))[order],
            doc_ids=names[doc[order]],
        ),
        scores=score[order],
        retrieved=order < n_run,
        judged=np.concatenate((judged, np.ones(int(lacking.sum()), dtype=np.bool_)))[order],
        negatives=qrels.negatives,
        topics_without_run=tuple(qrels.topic_ids[~shared].tolist()),
        topics_without_judgements=tuple(run.topic_ids[~np.isin(run.topic_ids, qrels.topic_ids)].tolist()),
    )


def scores_from_run(run: Run, data: RankingData) -> FloatArray:
    """The run's scores for the rows of ``data``, matched by query and document id.

    Rows that the run lacks come below the lowest score of their topic (1 where it has none), the less
    relevant first.
    """
    if data.doc_ids is None:
        raise invalid("data", "must have document ids to be matched with a run", "none")
    topics = _places(np.asarray(data.query_ids).astype(str), run.topic_ids)
    docs = _places(data.doc_ids, run.doc_ids)
    topic = topics[query_of_row(data.indptr)]
    keys = np.where((topic >= 0) & (docs >= 0), topic * len(run.doc_ids) + docs, -1)
    if not (keys >= 0).any() and data.n_docs:
        ids = f"topics {run.topic_ids[:3].tolist()} for queries {data.query_ids[:3].tolist()}"
        raise invalid("a run", "must share topics and documents with the data", ids)
    at = match_rows(run.topic * len(run.doc_ids) + run.doc, keys)
    floor = np.full(len(run.topic_ids) + 1, np.inf)
    np.minimum.at(floor, run.topic, run.scores)
    floor[-1] = 1.0
    lacking = _below(floor[topic], data.y)
    return np.where(at >= 0, run.scores[np.maximum(at, 0)] if len(run.scores) else 0.0, lacking)


def _below(floor: FloatArray, grades: Array) -> FloatArray:
    """Scores under ``floor``, the lower the higher the grade; steps are wide enough for huge scores."""
    step = np.maximum(1.0, 2.0 * np.spacing(np.abs(floor)))
    return np.asarray(floor - step * (1.0 + grades), dtype=np.float64)


def write_qrels(data: RankingData, path: str | os.PathLike[str]) -> None:
    """Writes grades as judgements; rows without document ids are named by their row id."""
    zero = pa.array(np.zeros(data.n_docs, dtype=np.int8))
    _write(path, [_words("query ids", data.qid), zero, _documents(data), pa.array(data.y)])


def write_run(
    scores: npt.ArrayLike, data: RankingData, path: str | os.PathLike[str], *, tag: str = "cleanrank"
) -> None:
    """Writes one score per row of ``data`` as a run, best first; ties keep the order of the rows."""
    s = np.asarray(scores, dtype=np.float64)
    if s.shape != (data.n_docs,):
        raise invalid("scores", f"must have one value per row ({data.n_docs})", f"shape {s.shape}")
    if not np.isfinite(s).all():
        row = int(np.argmax(~np.isfinite(s)))
        raise invalid("scores", "must be finite", s[row], at=data.place(row))
    if not tag or tag.split() != [tag]:
        raise invalid("tag", "must be one word", repr(tag))
    order = rank_order(s, data.indptr)
    rank = np.arange(1, data.n_docs + 1) - np.repeat(data.indptr[:-1], data.lengths)

    def constant(text: str) -> Any:
        return pa.DictionaryArray.from_arrays(pa.array(np.zeros(data.n_docs, np.int32)), [text]).cast(
            pa.string()
        )

    columns = [
        _words("query ids", data.qid),
        constant("Q0"),
        _documents(data).take(pa.array(order)),
        pa.array(rank),
        pa.array(s[order]),
        constant(tag),
    ]
    _write(path, columns)


def _write(path: str | os.PathLike[str], columns: list[Any]) -> None:
    table = pa.table(columns, names=[str(j) for j in range(len(columns))])
    options = pyarrow.csv.WriteOptions(include_header=False, delimiter=" ", quoting_style="none")
    with written_whole(path) as part, pa.OSFile(str(part), "wb") as file:
        pyarrow.csv.write_csv(table, file, options)


def _documents(data: RankingData) -> Any:
    if data.doc_ids is not None:
        return _words("document ids", data.doc_ids)
    return pa.array(data.row_ids).cast(pa.string())


def _words(what: str, values: Array) -> Any:
    words = pa.array(values).cast(pa.string())
    wrong = pc.or_(pc.match_substring_regex(words, r"[\s\"]"), pc.equal(words, ""))
    row = int(pc.index(wrong, True).as_py())
    if row >= 0:
        rule = "must be words without blanks or quotes to go into a TREC file"
        raise invalid(what, rule, repr(words[row].as_py()), at=f"row {row}")
    return words


def _places(names: Array, among: Array) -> IntArray:
    """The place of every name among others, or -1."""
    places = pc.index_in(pa.array(names, pa.string()), value_set=pa.array(among, pa.string()))
    return np.asarray(pc.fill_null(places, -1).to_numpy(zero_copy_only=False), dtype=np.int64)


def _pairs(file: Path, fields: list[Any], lines: IntArray) -> tuple[Array, IntArray, Array, IntArray]:
    """(topics, topic of every line, documents, document of every line); a repeated pair is refused."""
    topics, docs = fields[0].dictionary_encode(), fields[1].dictionary_encode()
    topic = topics.indices.to_numpy().astype(np.int64)
    doc = docs.indices.to_numpy().astype(np.int64)
    key = topic * max(len(docs.dictionary), 1) + doc
    order = np.argsort(key, kind="stable")
    again = np.flatnonzero(key[order][1:] == key[order][:-1])
    if len(again):
        at = int(again[np.argmin(order[again + 1])])
        first, second = order[at], order[at + 1]
        pair = f"{fields[0][int(second)].as_py()} {fields[1][int(second)].as_py()}"
        repeated = f"{pair!r} of line {lines[first]} again"
        subject, rule = "a pair of topic and document", "must come once only"
        raise _bad(file, int(lines[second]), subject, rule, repeated, "Keep one of the two lines.")
    return _texts(topics.dictionary), topic, _texts(docs.dictionary), doc


def _texts(values: Any) -> Array:
    return np.asarray(values.to_pylist(), dtype=str) if len(values) else np.zeros(0, dtype="U1")


def _numbers(file: Path, texts: Any, lines: IntArray, kind: Any, subject: str, rule: str) -> Array:
    try:
        return np.asarray(texts.cast(kind).to_numpy())
    except pa.ArrowInvalid:
        low, high = 0, len(texts)
        while high - low > 1:
            middle = (low + high) // 2
            try:
                texts[low:middle].cast(kind)
                low = middle
            except pa.ArrowInvalid:
                high = middle
        raise _bad(file, int(lines[low]), subject, rule, repr(texts[low].as_py())) from None


def _fields(
    path: str | os.PathLike[str], names: tuple[str, ...], columns: tuple[int, ...]
) -> tuple[Path, list[Any], IntArray]:
    """Some fields of every line as Arrow strings, and the line numbers; empty lines are skipped."""
    file = existing_file(path)
    text = np.frombuffer(read_unpacked(file).removeprefix(b"\xef\xbb\xbf"), dtype=np.uint8)
    most = int(np.count_nonzero(text == 10)) + 1
    starts = np.empty((most, len(columns)), dtype=np.int64)
    ends = np.empty((most, len(columns)), dtype=np.int64)
    lines = np.empty(most, dtype=np.int64)
    n, bad_fields = _cut(text, len(names), np.array(columns), starts, ends, lines)
    if bad_fields >= 0:
        rule = f"must have {len(names)} fields ({' '.join(names)})"
        remedy = "Fields are parted by blanks or tabs."
        raise _bad(file, int(lines[n]), "a line", rule, f"{bad_fields} fields", remedy)
    fields = []
    for j in range(len(columns)):
        offsets = indptr_of(ends[:n, j] - starts[:n, j])
        joined = np.empty(int(offsets[-1]), dtype=np.uint8)
        _gather(text, starts[:n, j], offsets, joined)
        field = pa.LargeStringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(joined))
        try:
            field.validate(full=True)
        except pa.ArrowInvalid as error:
            raise BadFileError(f"{str(file)!r} must be UTF-8 text: {error}.", str(file)) from error
        fields.append(field)
    return file, fields, lines[:n]


@kernel()
def _cut(
    text: Bytes, n_fields: int, wanted: IntArray, starts: IntArray, ends: IntArray, lines: IntArray
) -> tuple[int, int]:
    """Finds the wanted fields; returns (lines kept, -1) or (the bad line's place, its number of fields)."""
    kept, line, i, n = 0, 0, 0, len(text)
    while i < n:
        line += 1
        fields, next_wanted = 0, 0
        while i < n and text[i] != 10:
            while i < n and (text[i] == 32 or text[i] == 9 or text[i] == 13):
                i += 1
            if i == n or text[i] == 10:
                break
            start = i
            while i < n and text[i] != 32 and text[i] != 9 and text[i] != 13 and text[i] != 10:
                i += 1
            if next_wanted < len(wanted) and fields == wanted[next_wanted]:
                starts[kept, next_wanted] = start
                ends[kept, next_wanted] = i
                next_wanted += 1
            fields += 1
        i += 1
        if fields == 0:
            continue
        lines[kept] = line
        if fields != n_fields:
            return kept, fields
        kept += 1
    return kept, -1


@kernel()
def _gather(text: Bytes, starts: IntArray, offsets: IntArray, joined: Bytes) -> None:
    for row in range(len(starts)):
        start, at = starts[row], offsets[row]
        for k in range(offsets[row + 1] - at):
            joined[at + k] = text[start + k]


def _bad(file: Path, line: int, subject: str, rule: str, value: object, remedy: str = "") -> BadFileError:
    at = f"{file}, line {line}"
    return BadFileError(error_text(subject, rule, value, at=at, remedy=remedy), str(file), line)
