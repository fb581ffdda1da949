"""TREC files: judgements (qrels: ``topic 0 doc grade``) and runs (``topic Q0 doc rank score tag``).

A file of millions of lines takes seconds. As in trec_eval the rank column is ignored: the order is by falling
score, ties by falling document id.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from cleanrank.data.files import written_whole
from cleanrank.data.line_fields import LineFields, read_fields
from cleanrank.errors import invalid
from cleanrank.ragged import indptr_of, judged_rows, match_rows, query_of_row, rank_order
from cleanrank.types import Array, IntArray, RankingData, Run
from cleanrank.validation import one_of

QRELS = ("topic", "iteration", "document", "grade")
RUN = ("topic", "Q0", "document", "rank", "score", "tag")
RUN_COLUMNS = (0, 2, 4, 5)


@dataclass(frozen=True, eq=False)
class JudgedRuns:
    """Runs with their judgements, on one set of rows.

    Attributes:
        data: every document that was judged or that a run retrieved, topic by topic, without features; of a
            topic the higher document id comes first, so that ties fall as in trec_eval. ``data.judged`` says
            which ones the judgements hold; the others have grade 0, as in trec_eval.
        scores: of each run one score per row, masked where the run did not retrieve the document.
        unanswered: of each run the judged topics that it retrieves nothing for; they count 0.
        left_out: judged topics that are not evaluated.
        unjudged_topics: topics that some run retrieves for and nobody judged; they are not evaluated.
    """

    data: RankingData
    scores: "tuple[np.ma.MaskedArray[Any, np.dtype[np.float64]], ...]"
    unanswered: tuple[tuple[str, ...], ...]
    left_out: tuple[str, ...]
    unjudged_topics: tuple[str, ...]


def read_qrels(path: str | os.PathLike[str]) -> RankingData:
    r"""Judgements of a qrels file (.gz is unpacked); a pair of topic and document may come once only.

    Args:
        path: lines of topic, iteration, document and grade.

    Returns:
        A row per judgement, with document ids and without features. Negative grades become 0 and count as not
        judged (``judged``), as in trec_eval.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "qrels.txt"
    ...     _ = path.write_text("301 0 FR94-1 2\n301 0 FR94-2 -1\n")
    ...     qrels = read_qrels(path)
    >>> qrels.query_ids.tolist(), qrels.y.tolist(), qrels.judged.tolist()
    (['301'], [2, 0], [True, False])
    """
    return judgements_of(read_fields(path, QRELS, (0, 2, 3)))


def judgements_of(fields: LineFields) -> RankingData:
    """Judgements of lines whose wanted fields are topic, document and grade, as ``read_qrels`` gives them."""
    grades = fields.numbers(2, pa.int64(), "a grade", "must be a whole number")
    topic_ids, topic = fields.topics()
    fields.refuse_repeated(topic, 1)
    most = np.iinfo(np.int32).max
    if len(grades) and grades.max() > most:
        at = int(np.argmax(grades))
        raise fields.bad(at, "a grade", f"must be at most {most}", grades[at])
    order = np.argsort(topic, kind="stable")
    return RankingData(
        X=np.zeros((len(order), 0), dtype=np.float32),
        y=np.maximum(grades, 0)[order],
        indptr=indptr_of(np.bincount(topic, minlength=len(topic_ids))),
        query_ids=topic_ids,
        row_ids=order,
        doc_ids=fields.texts(1, order),
        judged=(grades >= 0)[order] if (grades < 0).any() else None,
    )


def read_run(path: str | os.PathLike[str]) -> Run:
    """Scores of a run file (.gz is unpacked); a pair of topic and document may come once only.

    Args:
        path: lines of topic, Q0, document, rank, score and tag.

    Returns:
        The scores of the retrieved documents; the rank column is ignored, as in trec_eval.
    """
    return _run_of(read_fields(path, RUN, RUN_COLUMNS))


def read_runs(path: str | os.PathLike[str]) -> dict[str, Run]:
    r"""The runs of a file that may hold several, by their tags, in order of appearance.

    Args:
        path: lines as ``read_run`` takes them; of one tag, a pair of topic and document may come once only.

    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "runs.txt"
    ...     _ = path.write_text("301 Q0 a 1 2.5 old\n301 Q0 a 1 7 new\n")
    ...     {tag: run.scores.tolist() for tag, run in read_runs(path).items()}
    {'old': [2.5], 'new': [7.0]}
    """
    fields = read_fields(path, RUN, RUN_COLUMNS)
    tags, tag = fields.topics(3)
    return {
        str(name): _run_of(fields.select(np.flatnonzero(tag == place))) for place, name in enumerate(tags)
    }


def _run_of(fields: LineFields) -> Run:
    scores = fields.numbers(2, pa.float64(), "a score", "must be a number")
    wrong = ~np.isfinite(scores)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise fields.bad(at, "a score", "must be finite", scores[at])
    topic_ids, topic = fields.topics(0)
    fields.refuse_repeated(topic, 1)
    doc_ids, doc = fields.topics(1)
    tag = fields.columns[3][0].as_py() if len(scores) else ""
    return Run(topic_ids, doc_ids, topic, doc, scores, tag)


def join_runs(judgements: RankingData, runs: Sequence[Run], *, topics: str = "judged") -> JudgedRuns:
    r"""Brings runs and judgements together for evaluation; the values of a run do not depend on the others.

    Args:
        judgements: data with document ids, as ``read_qrels`` reads them.
        runs: one or more.
        topics: "judged": all judged topics count, a run that lacks one gets 0 there (trec_eval -c); "shared":
            only those that every run retrieves for (trec_eval's default for one run).

    Returns:
        Data and scores that ``evaluate`` and ``compare`` take.

    >>> import cleanrank as cr
    >>> qrels = cr.from_arrays(np.zeros((2, 0)), [2, 1], qid=["301", "301"], doc_ids=["a", "b"])
    >>> topic, doc, scores = np.array([0, 0]), np.array([0, 1]), np.array([7.0, 5.0])
    >>> run = Run(np.array(["301"]), np.array(["x", "a"]), topic, doc, scores)
    >>> joined = join_runs(qrels, [run])
    >>> joined.data.doc_ids.tolist(), joined.data.y.tolist(), joined.scores[0].tolist()
    (['x', 'b', 'a'], [0, 1, 2], [7.0, None, 5.0])
    """
    one_of("topics", topics, ("judged", "shared"))
    if judgements.doc_ids is None:
        raise invalid("data", "must have document ids to be matched with a run", "none")
    topic_ids = np.asarray(judgements.query_ids).astype(str)
    place_of = [_places(run.topic_ids, topic_ids) for run in runs]
    answered = [np.isin(np.arange(len(topic_ids)), places) for places in place_of]
    for run, has in zip(runs, answered, strict=True):
        if not has.any():
            ids = f"{run.topic_ids[:3].tolist()} of the run and {topic_ids[:3].tolist()} of the judgements"
            remedy = "Check whether they belong to the same collection."
            raise invalid("a run", "must share topics with the judgements", ids, remedy=remedy)
    kept = np.logical_and.reduce(answered) if topics == "shared" else np.ones(len(topic_ids), dtype=np.bool_)
    if not kept.any():
        raise invalid("runs", "must share topics", "none that all of them retrieve for")
    query = query_of_row(judgements.indptr)
    ours = kept[query]
    names = np.concatenate((np.asarray(judgements.doc_ids).astype(str), *(run.doc_ids for run in runs)))
    falling = _falling_place(names)
    n_names = int(falling.max(initial=0)) + 1
    judged_keys = (query * n_names + falling[: len(query)])[ours]
    run_keys, inside, start = [], [], len(query)
    for run, places in zip(runs, place_of, strict=True):
        topic, doc = places[run.topic], falling[start + run.doc]
        inside.append((topic >= 0) & kept[topic])
        run_keys.append((topic * n_names + doc)[inside[-1]])
        start += len(run.doc_ids)
    keys = np.unique(np.concatenate((judged_keys, *run_keys)))
    rows = np.searchsorted(keys, judged_keys)

    def column(values: Array) -> Array:
        """Values of the judgements on the rows of the join, 0 for other documents."""
        joined = np.zeros(len(keys), dtype=values.dtype)
        joined[rows] = values[ours]
        return joined

    scores = []
    for run, own, key in zip(runs, inside, run_keys, strict=True):
        score = np.full(len(keys), -np.inf)
        score[np.searchsorted(keys, key)] = run.scores[own]
        scores.append(np.ma.masked_equal(score, -np.inf))
    place = np.cumsum(kept) - 1
    name_at = np.empty(n_names, dtype=np.int64)
    name_at[falling] = np.arange(len(names))
    unjudged = [run.topic_ids[places < 0] for run, places in zip(runs, place_of, strict=True)]
    return JudgedRuns(
        data=RankingData(
            X=np.zeros((len(keys), 0), dtype=np.float32),
            y=column(judgements.y),
            indptr=indptr_of(np.bincount(place[keys // n_names], minlength=int(kept.sum()))),
            query_ids=judgements.query_ids[kept],
            row_ids=np.arange(len(keys)),
            gains=None if judgements.gains is None else column(judgements.gains),
            doc_ids=names[name_at[keys % n_names]],
            judged=column(judged_rows(judgements)),
        ),
        scores=tuple(scores),
        unanswered=tuple(tuple(topic_ids[kept & ~has].tolist()) for has in answered),
        left_out=tuple(topic_ids[~kept].tolist()),
        unjudged_topics=tuple(dict.fromkeys(topic for ids in unjudged for topic in ids.tolist())),
    )


def scores_from_run(
    run: Run, data: RankingData, name: str = "a run"
) -> "np.ma.MaskedArray[Any, np.dtype[np.float64]]":
    """Scores of a run for rows of data, matched by query and document id; masked where it has none."""
    if data.doc_ids is None:
        raise invalid("data", "must have document ids to be matched with a run", "none")
    topic = _places(np.asarray(data.query_ids).astype(str), run.topic_ids)[query_of_row(data.indptr)]
    docs = _places(data.doc_ids, run.doc_ids)
    keys = np.where((topic >= 0) & (docs >= 0), topic * len(run.doc_ids) + docs, -1)
    if not (keys >= 0).any() and data.n_docs:
        what, own, other = "topics", run.topic_ids, data.query_ids
        if (topic >= 0).any():
            what, own, other = "documents", run.doc_ids, data.doc_ids
        ids = f"{what} such as {own[:3].tolist()} where the data have {other[:3].tolist()}"
        raise invalid(name, "must share topics and documents with the data", ids)
    at = match_rows(run.topic * len(run.doc_ids) + run.doc, keys)
    return np.ma.masked_equal(np.where(at >= 0, np.append(run.scores, -np.inf)[at], -np.inf), -np.inf)


def _falling_place(names: Array) -> IntArray:
    """The place of every name among the different ones, from the highest down (bytes of UTF-8, as strcmp)."""
    encoded = pa.array(names, pa.large_string()).dictionary_encode()  # pa.string comes in chunks
    place = np.empty(len(encoded.dictionary), dtype=np.int64)
    place[pc.sort_indices(encoded.dictionary).to_numpy()[::-1]] = np.arange(len(place))
    return np.asarray(place[encoded.indices.to_numpy()], dtype=np.int64)


def write_qrels(data: RankingData, path: str | os.PathLike[str]) -> None:
    """Writes grades as judgements, -1 for rows that nobody judged; row ids stand in for document ids."""
    zero = pa.array(np.zeros(data.n_docs, dtype=np.int8))
    grades = data.y if data.judged is None else np.where(data.judged, data.y, -1)
    _write(path, [_words("query ids", data.qid), zero, _documents(data), pa.array(grades)])


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
    places = pc.index_in(pa.array(names, pa.large_string()), value_set=pa.array(among, pa.large_string()))
    return np.asarray(pc.fill_null(places, -1).to_numpy(zero_copy_only=False), dtype=np.int64)
