"""Score files: one number per line in the order of the input rows, ``.npy``, or a TREC run."""

from pathlib import Path

import numpy as np

from cleanrank import checks
from cleanrank.checks import BadFileError
from cleanrank.types import FloatArray, RankingData


def read_scores(path: str | Path, data: RankingData) -> FloatArray:
    """Scores of all rows of ``data``, in its row order.

    Files with a number per line and ``.npy`` arrays follow the rows of the input file, as a model's
    predictions do; a TREC run (six columns) is matched by query and document id.
    """
    path = Path(path)
    if not path.is_file():
        raise BadFileError(f"score file must exist; got {str(path)!r}.", str(path))
    if path.suffix == ".npy":
        found = np.load(path, allow_pickle=False)
    elif _columns_of_first_line(path) >= 6:
        return _from_run(path, data)
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
            checks.complaint(f"score file {str(path)!r}", "must hold numbers", f"dtype {found.dtype}"), str(path)
        )
    if data.n_docs and data.row_ids.max() >= data.n_docs:
        checks.fail("data", "must hold all rows of its input to take scores by row", "a selection of them")
    return np.asarray(found, dtype=np.float64)[data.row_ids]


def _columns_of_first_line(path: Path) -> int:
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.strip():
                return len(line.split())
    return 0


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
                        "a score", "must be one number on a line", repr(line[:80]), at=f"{path}, line {number}"
                    ),
                    str(path),
                    number,
                ) from None
        raise


def _from_run(path: Path, data: RankingData) -> FloatArray:
    from cleanrank.data.trec import read_run, scores_from_run

    if data.doc_ids is None:
        checks.fail(
            "data", "must have document ids to take the scores of a TREC run", "none", remedy="Give one score per line."
        )
    return scores_from_run(read_run(path), data)
