"""Score files: one number per line in the order of the input rows, ``.npy``, or a TREC run."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from cleanrank import checks
from cleanrank.checks import BadFileError
from cleanrank.data.files import existing_file
from cleanrank.data.frames import read_any
from cleanrank.data.trec import Run, from_qrels_run, read_qrels, read_run, scores_from_run
from cleanrank.types import FloatArray, RankingData


def read_judged_and_scores(
    data: str | Path, scores: Sequence[str | Path]
) -> tuple[RankingData, list[FloatArray]]:
    """Judged data and the scores of one or more systems, all in the row order of the data.

    Judgements in a TREC qrels file go with TREC runs: the data then hold every document that is judged or
    retrieved by any of the runs, unjudged ones with grade 0.
    """
    if not is_qrels(data):
        judged = read_any(data)
        return judged, [read_scores(path, judged) for path in scores]
    runs = [read_run(path) for path in scores]
    if len(runs) == 1:
        found = from_qrels_run(read_qrels(data), runs[0])
        return found.data, [found.scores]
    judged = from_qrels_run(read_qrels(data), _union(runs)).data
    return judged, [scores_from_run(run, judged) for run in runs]


def is_qrels(path: str | Path) -> bool:
    """Whether a file looks like TREC judgements: topic, iteration, document, grade."""
    line = _first_line(existing_file(path))
    return len(line.split()) == 4 and ":" not in line.split()[1]


def read_scores(path: str | Path, data: RankingData) -> FloatArray:
    """Scores of all rows of ``data``, in its row order.

    Files with a number per line and ``.npy`` arrays follow the rows of the input file, as a model's
    predictions do; a TREC run (six columns) is matched by query and document id.
    """
    path = existing_file(path)
    if path.suffix == ".npy":
        try:
            found = np.load(path, allow_pickle=False)
        except ValueError as error:
            raise BadFileError(
                f"score file {str(path)!r} must hold a plain array of numbers: {error}."
            ) from None
    elif len(_first_line(path).split()) == 6:
        return scores_from_run(read_run(path), data)
    else:
        found = _from_lines(path)
    if found.shape != (data.n_docs,):
        raise BadFileError(
            checks.complaint(
                f"score file {str(path)!r}",
                f"must hold one score per row of the data ({data.n_docs:,})",
                f"{found.size:,} scores" if found.ndim == 1 else f"an array of shape {found.shape}",
                remedy="Scores follow the rows of the input file.",
            ),
            str(path),
        )
    if found.dtype.kind not in "iuf":
        raise BadFileError(
            checks.complaint(f"score file {str(path)!r}", "must hold numbers", f"dtype {found.dtype}"),
            str(path),
        )
    if data.n_docs and data.row_ids.max() >= data.n_docs:
        checks.fail("data", "must hold all rows of its input to take scores by row", "a selection of them")
    return np.asarray(found, dtype=np.float64)[data.row_ids]


def _union(runs: Sequence[Run]) -> Run:
    """Every (topic, document) of any run, once; the scores mean nothing."""
    topics = np.concatenate([run.topic_ids[run.topic] for run in runs])
    docs = np.concatenate([run.doc_ids[run.doc] for run in runs])
    topic_ids, topic = np.unique(topics, return_inverse=True)
    doc_ids, doc = np.unique(docs, return_inverse=True)
    pairs = np.unique(topic.astype(np.int64) * len(doc_ids) + doc)
    return Run(topic_ids, doc_ids, pairs // len(doc_ids), pairs % len(doc_ids), np.zeros(len(pairs)))


def _first_line(path: Path) -> str:
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.strip():
                return line
    return ""


def _from_lines(path: Path) -> FloatArray:
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    try:
        return np.array(lines, dtype=np.float64)
    except ValueError:
        for number, line in enumerate(lines, start=1):
            try:
                float(line)
            except ValueError:
                raise BadFileError(
                    checks.complaint(
                        "a score",
                        "must be one number on a line",
                        repr(line[:80]),
                        at=f"{path}, line {number}",
                    ),
                    str(path),
                    number,
                ) from None
        raise
