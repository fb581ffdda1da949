"""Score files: one number per line in the order of the input rows, ``.npy``, or a TREC run."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.data.files import existing_file, first_bytes, written_whole
from cleanrank.data.project_file import is_project
from cleanrank.data.spreadsheet import read_text
from cleanrank.data.tables import kind_of_file, read_data, start_text
from cleanrank.data.trec import QRELS, JudgedRuns, join_runs, read_run, scores_from_run
from cleanrank.errors import BadFileError, error_text, invalid
from cleanrank.ragged import judged_rows
from cleanrank.types import Array, FloatArray, RankingData


@dataclass(frozen=True, eq=False)
class Judged:
    """Judged data with the scores of systems.

    Attributes:
        data: the rows.
        scores: one array per system, masked where it did not retrieve a document.
        convention: of measures that name none; ``trec`` for TREC runs.
        remarks: what a reader must know of the join, in words.
    """

    data: RankingData
    scores: list[Array]
    convention: str
    remarks: list[str]


def read_judged_and_scores(
    data: str | Path,
    scores: Sequence[str | Path],
    columns: Mapping[str, Any] | None = None,
    topics: str = "judged",
) -> Judged:
    """Judged data, and the scores of one or more systems in its row order.

    Args:
        data: a table or LETOR file, or TREC judgements (qrels), which go with TREC runs.
        scores: score files, or TREC runs: the data then hold every document that is judged or that a run
            retrieves.
        columns: options of ``read_data``.
        topics: of TREC runs, see ``join_runs``.
    """
    qrels = is_qrels(data)
    judged = read_judged(data, columns)
    if not judged.n_queries:
        raise BadFileError(error_text(f"{str(data)!r}", "must hold at least one row", "none"), str(data))
    if not qrels and not all(is_run(path) for path in scores):
        return Judged(judged, [read_scores(path, judged) for path in scores], "lightgbm", [])
    runs = [read_run(path) for path in scores]
    joined = join_runs(judged, runs, topics=topics)
    return Judged(joined.data, list(joined.scores), "trec", _remarks(joined, scores, judged, topics))


def read_judged(path: str | os.PathLike[str], columns: Mapping[str, Any] | None = None) -> RankingData:
    """TREC judgements (qrels), or else what ``read_data`` reads with the options ``columns``."""
    return read_data(path, **(columns or {}))


def _remarks(
    joined: JudgedRuns, paths: Sequence[str | Path], judgements: RankingData, topics: str
) -> list[str]:
    """What the join left out, and what counts 0."""
    data, negatives = joined.data, 0 if judgements.judged is None else int((~judgements.judged).sum())
    rule = {
        "judged": "all judged topics count, those that a run lacks with 0, as with trec_eval -c "
        "(--topics shared: only those that every run has)",
        "shared": "only topics that every run has count, as in trec_eval without -c "
        "(--topics judged: all judged ones)",
    }[topics]
    remarks = [f"{data.n_queries:,} topics: {rule}."]
    if joined.left_out:
        remarks.append(f"{len(joined.left_out):,} judged topics are left out: {_some(joined.left_out)}.")
    if joined.unjudged_topics:
        names = _some(joined.unjudged_topics)
        remarks.append(f"{len(joined.unjudged_topics):,} topics are not judged and left out: {names}.")
    if negatives:
        remarks.append(f"{negatives:,} documents with negative grades count as not judged.")
    for path, scores, unanswered in zip(paths, joined.scores, joined.unanswered, strict=True):
        retrieved = ~np.ma.getmaskarray(scores)
        judged = judged_rows(data)
        unjudged, missed = int((retrieved & ~judged).sum()), int((~retrieved & judged).sum())
        lacks = f"; {len(unanswered):,} judged topics are not answered: {_some(unanswered)}"
        remarks.append(
            f"{Path(path).name}: {int(retrieved.sum()):,} documents retrieved, {unjudged:,} of them not "
            f"judged (grade 0); {missed:,} judged ones not retrieved (never found)"
            f"{lacks if unanswered else ''}."
        )
    return remarks


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


def is_run(path: str | Path) -> bool:
    """Whether a file looks like a TREC run: topic, Q0, document, rank, score, tag."""
    file = existing_file(path)
    fields = [] if file.suffix == ".npy" else _first_line(file).split()
    if len(fields) != 6 or fields[0].startswith(("{", "[")):
        return False
    return (
        file.suffix not in (".csv", ".tsv") or re.fullmatch(r"[-+.\deE]+", fields[4]) is not None
    )  # headings


def is_qrels(path: str | os.PathLike[str]) -> bool:
    """Whether a file looks like TREC judgements: topic, iteration, document, grade."""
    file = Path(path)
    if file.is_file() and len(_first_line(file).split()) != len(QRELS):
        return False
    return kind_of_file(file) == "qrels"


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
    elif is_run(path):
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


def _first_line(path: Path) -> str:
    if is_project(path):
        return ""
    start = start_text(first_bytes(path, 1 << 16))
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
