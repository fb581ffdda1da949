"""Score files: one number per line in the order of the input rows, ``.npy``, or a TREC run."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.data.files import existing_file, first_bytes, written_whole
from cleanrank.data.spreadsheet import read_text
from cleanrank.data.tables import kind_of_file, read_data
from cleanrank.data.trec import JudgedRun, Run, from_qrels_run, read_qrels, read_run, scores_from_run
from cleanrank.errors import BadFileError, error_text, invalid
from cleanrank.types import FloatArray, RankingData

NUMBER = re.compile(r"[+-]?\d+(\.\d*)?")


def read_judged_and_scores(
    data: str | Path, scores: Sequence[str | Path], columns: Mapping[str, Any] | None = None
) -> tuple[RankingData, list[FloatArray], list[str]]:
    """Judged data, the scores of one or more systems in its row order, and remarks on what was left out.

    Judgements in a TREC qrels file go with TREC runs: the data then hold every document that is judged or
    retrieved by any of the runs, unjudged ones with grade 0. ``columns`` are options of ``read_data``.
    """
    if not is_qrels(data):
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
    remarks = {
        f"{len(lacking):,} judged topics are not retrieved for and left out: {_some(lacking)}.": lacking,
        f"{len(alone):,} topics are not judged and left out: {_some(alone)}.": alone,
        f"{joined.negatives:,} negative grades are read as 0.": joined.negatives,
        f"{joined.unjudged:,} retrieved documents are not judged and count as grade 0.": joined.unjudged,
        f"{joined.missing:,} judged documents are not retrieved and rank last; "
        "trec_eval takes them as never found, which matters without a cut-off.": joined.missing,
    }
    return [text for text, applies in remarks.items() if applies]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def is_qrels(path: str | Path) -> bool:
    """Whether a file looks like TREC judgements: topic, iteration, document, grade."""
    file = existing_file(path)
    words = _first_line(file).split()
    if len(words) != 4 or ":" in words[1] or words[0].startswith("#"):
        return False
    return kind_of_file(file) == "letor" and NUMBER.fullmatch(words[3]) is not None


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
        # NumPy parses the header as Python and lets through what that raises.
        except Exception as error:
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


def write_scores(scores: FloatArray, path: str | Path) -> None:
    """Writes one score per row, as ``.npy`` or as text that gives the same numbers back."""
    with written_whole(path) as part, part.open("wb") as file:
        if Path(path).suffix == ".npy":
            np.save(file, scores, allow_pickle=False)
        else:
            file.write("".join(f"{score!r}\n" for score in scores.tolist()).encode())


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
    lines = read_text(path).split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    try:
        return np.array(lines, dtype=np.float64)
    except ValueError:
        for number, line in enumerate(lines, start=1):
            try:
                float(line)
            except ValueError:
                rule, at = "must be one number on a line", f"{path}, line {number}"
                message = error_text("a score", rule, repr(line[:80]), at=at)
                raise BadFileError(message, str(path), number) from None
        raise
