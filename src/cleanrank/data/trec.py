"""TREC files: judgements (``topic 0 doc grade``), runs (``topic Q0 doc rank score tag``) and other scores.

Fields are cut at blanks and tabs by a compiled scan; a file of millions of lines takes seconds. As in
trec_eval the rank column is ignored: the order is by falling score, ties by falling document id. A score file
may also hold one number per line in the order of the input rows, or be ``.npy``.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cleanrank.data.files import existing_file, first_bytes, read_unpacked
from cleanrank.data.frames import kind_of_file, read_data
from cleanrank.errors import BadFileError, error_text, invalid
from cleanrank.jit import kernel
from cleanrank.ragged import indptr_of, match_rows, query_of_row
from cleanrank.types import Array, FloatArray, IntArray, RankingData

QRELS = ("topic", "iteration", "document", "grade")
RUN = ("topic", "Q0", "document", "rank", "score", "tag")
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?")
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Qrels:
    """Judgements, one per line of the file; ids are in order of appearance.

    Attributes:
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
            relevant first, so that nothing is won by leaving one out.
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
    if grades.max(initial=0) > most:
        at = int(np.argmax(grades))
        raise _bad(file, int(lines[at]), "a grade", f"must be at most {most}", grades[at])
    kept = np.maximum(grades, 0).astype(np.int32)
    return Qrels(topic_ids, doc_ids, topic, doc, kept, int((grades < 0).sum()))


def read_run(path: str | os.PathLike[str]) -> Run:
    """Scores of a run file (.gz is unpacked); a pair of topic and document may come once only."""
    file, fields, lines = _fields(path, RUN, (0, 2, 4, 5))
    scores = _numbers(file, fields[2], lines, pa.float64(), "a score", "must be a number")
    if not np.isfinite(scores).all():
        at = int(np.argmin(np.isfinite(scores)))
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
    grades = np.where(judged, qrels.grades[qrel_lines][np.maximum(at, 0)], 0)
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


def read_judged_and_scores(
    data: str | Path, scores: Sequence[str | Path], columns: Mapping[str, str] | None = None
) -> tuple[RankingData, list[FloatArray], list[str]]:
    """Judged data, the scores of one or more systems in its row order, and remarks on what was left out.

    Judgements in a TREC qrels file go with TREC runs: the data then hold every document that is judged or
    retrieved by any of the runs, unjudged ones with grade 0. ``columns`` (label, qid) name those of a table.
    """
    if not is_qrels(data):
        if columns and kind_of_file(data) == "letor":
            raise invalid("names of columns", "must go with CSV or Parquet", f"{str(data)!r}, a LETOR file")
        judged = read_data(data, **(columns or {}))
        if not judged.n_queries:
            raise BadFileError(error_text(f"{str(data)!r}", "must hold at least one row", "none"), str(data))
        return judged, [read_scores(path, judged) for path in scores], []
    runs = [read_run(path) for path in scores]
    joined = from_qrels_run(read_qrels(data), runs[0] if len(runs) == 1 else _union(runs))
    if not joined.data.n_queries:
        topics = f"{list(joined.topics_without_run[:3])} and {list(joined.topics_without_judgements[:3])}"
        remedy = "Check whether they belong to the same collection."
        raise invalid("judgements and runs", "must share topics", topics, remedy=remedy)
    if len(runs) == 1:
        return joined.data, [joined.scores], _remarks(joined)
    remarks = _remarks(joined) + [
        f"{path} has no documents for {lacking:,} of the topics: theirs rank in the worst order."
        for path, run in zip(scores, runs, strict=True)
        if (lacking := int((~np.isin(joined.data.query_ids, run.topic_ids)).sum()))
    ]
    return joined.data, [scores_from_run(run, joined.data) for run in runs], remarks


def _remarks(joined: JudgedRun) -> list[str]:
    """What the join left out or made up."""
    lacking, alone = joined.topics_without_run, joined.topics_without_judgements

    def some(names: Sequence[str]) -> str:
        return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")

    remarks = {
        f"{len(lacking):,} judged topics are not retrieved for and left out: {some(lacking)}.": lacking,
        f"{len(alone):,} topics are not judged and left out: {some(alone)}.": alone,
        f"{joined.negatives:,} negative grades are read as 0.": joined.negatives,
        f"{joined.unjudged:,} retrieved documents are not judged and count as grade 0.": joined.unjudged,
        f"{joined.missing:,} judged documents are not retrieved and rank last; "
        "trec_eval takes them as never found, which matters without a cut-off.": joined.missing,
    }
    return [text for text, applies in remarks.items() if applies]


def is_qrels(path: str | Path) -> bool:
    """Whether a file looks like TREC judgements: topic, iteration, document, grade."""
    file = existing_file(path)
    words = _first_line(file).split()
    fits = len(words) == 4 and ":" not in words[1] and not words[0].startswith("#")
    return fits and kind_of_file(file) == "letor" and NUMBER.fullmatch(words[3]) is not None


def read_scores(path: str | Path, data: RankingData) -> FloatArray:
    """Scores of all rows of ``data``, in its row order.

    Files with a number per line and ``.npy`` arrays follow the rows of the input file, as a model's
    predictions do; a TREC run (six columns) is matched by query and document id.
    """
    path = existing_file(path)
    subject = f"score file {str(path)!r}"
    if path.suffix == ".npy":
        try:
            scores = np.load(path, allow_pickle=False)
        except (ValueError, EOFError, OSError) as error:
            raise BadFileError(f"{subject} must hold a plain array of numbers: {error}.", str(path)) from None
        if not isinstance(scores, np.ndarray):
            scores.close()
            raise BadFileError(f"{subject} must hold one array, not an archive of several (.npz).", str(path))
    elif len(_first_line(path).split()) == 6:
        return scores_from_run(read_run(path), data)
    else:
        scores = _from_lines(path)
    if scores.shape != (data.n_docs,):
        rule = f"must hold one score per row of the data ({data.n_docs:,})"
        size = f"{scores.size:,} scores" if scores.ndim == 1 else f"an array of shape {scores.shape}"
        remedy = "Scores follow the rows of the input file."
        raise BadFileError(error_text(subject, rule, size, remedy=remedy), str(path))
    if scores.dtype.kind not in "iuf":
        raise BadFileError(error_text(subject, "must hold numbers", f"dtype {scores.dtype}"), str(path))
    if data.n_docs and data.row_ids.max() >= data.n_docs:
        raise invalid("data", "must hold all rows of its input to take scores by row", "a selection of them")
    return np.asarray(scores, dtype=np.float64)[data.row_ids]


def _union(runs: Sequence[Run]) -> Run:
    """Every (topic, document) of any run, once; the scores mean nothing."""
    topics = np.concatenate([run.topic_ids[run.topic] for run in runs])
    docs = np.concatenate([run.doc_ids[run.doc] for run in runs])
    topic_ids, topic = np.unique(topics, return_inverse=True)
    doc_ids, doc = np.unique(docs, return_inverse=True)
    pairs = np.unique(topic.astype(np.int64) * len(doc_ids) + doc)
    return Run(topic_ids, doc_ids, pairs // len(doc_ids), pairs % len(doc_ids), np.zeros(len(pairs)))


def _first_line(path: Path) -> str:
    start = first_bytes(path, 1 << 16).decode("utf-8", errors="replace").removeprefix("\ufeff")
    return next((line for line in start.split("\n") if line.strip()), "")


def _from_lines(path: Path) -> FloatArray:
    lines = read_unpacked(path).decode("utf-8", errors="replace").removeprefix("\ufeff").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    scores = np.empty(len(lines))
    for k, line in enumerate(lines):
        try:
            scores[k] = float(line)
        except ValueError:
            raise _bad(path, k + 1, "a score", "must be one number on a line", repr(line[:80])) from None
    return scores


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
    topic_ids, doc_ids = (np.asarray(each.dictionary.to_pylist(), dtype=str) for each in (topics, docs))
    return topic_ids, topic, doc_ids, doc


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
    text: Bytes, n_fields: int, columns: IntArray, starts: IntArray, ends: IntArray, lines: IntArray
) -> tuple[int, int]:
    """Finds fields; returns (lines kept, -1) or (the bad line's place, its number of fields)."""
    kept, line, i, n = 0, 0, 0, len(text)
    while i < n:
        line += 1
        fields, next_column = 0, 0
        while i < n and text[i] != 10:
            while i < n and (text[i] == 32 or text[i] == 9 or text[i] == 13):
                i += 1
            if i == n or text[i] == 10:
                break
            start = i
            while i < n and text[i] != 32 and text[i] != 9 and text[i] != 13 and text[i] != 10:
                i += 1
            if next_column < len(columns) and fields == columns[next_column]:
                starts[kept, next_column] = start
                ends[kept, next_column] = i
                next_column += 1
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
