"""Passages that an assessor and language models judged: TREC Deep Learning 2019 and 2020 as ranking data.

Two tables with the same rows: labels (``qid``, ``docid``, ``nist`` and a column ``j:NAME`` for every judge)
and features (``qid``, ``docid``, one column each). The grades of the data are NIST's, 0 to 3; those of the
judge who is asked for stand beside them, as ``extra["judge"]``.

Judges answer on scales of their own. ``to_grades`` brings an answer to NIST's scale:

* two answers, 0 and 1, stay as they are, since nothing says which of NIST's grades a plain yes stands for;
* any other scale, from 0 to 1, 3 or 5, is stretched to 0..3 and rounded, halves up: of 0..5 the answers 1 and
  2 become 1, 3 and 4 become 2, 5 becomes 3; of shares, 1/6, 1/2 and 5/6 are the places of the cuts.

The order of two answers is never reversed. A row that the judge left out is no row of training and validation
data; test data hold every row, under NIST's grades.
"""

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cleanrank.data.split import Splits, folds
from cleanrank.data.spreadsheet import read_frame
from cleanrank.errors import BadFileError, invalid
from cleanrank.ragged import from_arrays
from cleanrank.types import IntArray, RankingData
from cleanrank.validation import one_of

JUDGE = "judge"  # the name of the judge's grades among the extra columns
PREFIX = "j:"
SCALES = (1.0, 3.0, 5.0)
TOP_GRADE = 3
FOLDS = 5
NOT_JUDGED = -1
IDS = ("qid", "docid")
TEXTS = ("query", "text")


def judged_splits(labels: Path, features: Path, fold: int = 1, *, judge: str = "") -> Splits:
    """A fold of five by query: three parts train, one validates, one tests; every query is tested once.

    With a ``judge``, rows that it did not judge are left out of training and validation data.
    """
    train, validation, test = folds(read_judged(labels, features, judge), FOLDS, validation=True)[fold - 1]
    if judge:
        train, validation = (_judged_rows(part) for part in (train, validation))
    return Splits(train, validation, test)


def _judged_rows(data: RankingData) -> RankingData:
    assert data.extra is not None
    return data.select(data.extra[JUDGE] != NOT_JUDGED)


def read_judged(labels: Path, features: Path, judge: str = "") -> RankingData:
    """All rows under NIST's grades; ``extra["judge"]`` has the grades of ``judge``, -1 where it gave none."""
    judged, measured = read_frame(labels), read_frame(features)
    for path, frame, ids in ((labels, judged, (*IDS, "nist")), (features, measured, IDS)):
        if lacking := [name for name in ids if name not in frame]:
            held = f"{', '.join(map(repr, lacking))} is not among its columns"
            raise BadFileError(f"{path.name} must have the columns {', '.join(ids)}; {held}.", str(path))
    if not judged[list(IDS)].equals(measured[list(IDS)]):
        rule = f"must have the rows of {labels.name} in the same order"
        raise BadFileError(f"{features.name} {rule}; got other values of qid and docid.", str(features))
    judges = judges_of(list(judged.columns))
    answers = judged[PREFIX + one_of(JUDGE, judge, judges)].to_numpy() if judge else None
    names = tuple(str(name) for name in measured.columns if name not in IDS)
    return from_arrays(
        measured[list(names)].to_numpy(np.float32),
        judged["nist"].to_numpy(),
        qid=judged["qid"].to_numpy(str),
        doc_ids=judged["docid"].to_numpy(str),
        feature_names=names,
        extra=None if answers is None else {JUDGE: to_grades(answers)},
    )


def judges_of(columns: list[str]) -> list[str]:
    """The names of the judges among the columns of a table of labels."""
    return [name.removeprefix(PREFIX) for name in columns if name.startswith(PREFIX)]


def to_grades(answers: npt.ArrayLike) -> IntArray:
    """A judge's answers as grades 0 to 3, by the rule above; -1 where an answer is missing.

    >>> to_grades([0, 1, 1, np.nan]).tolist()
    [0, 1, 1, -1]
    >>> to_grades([0, 1, 2, 3, 4, 5]).tolist(), to_grades([0.1, 0.2, 0.5, 0.9]).tolist()
    ([0, 1, 1, 2, 2, 3], [0, 1, 2, 3])
    """
    values = np.asarray(answers, dtype=np.float64)
    judged = ~np.isnan(values)
    lowest, highest = np.min(values, initial=0, where=judged), np.max(values, initial=0, where=judged)
    if lowest < 0 or highest > SCALES[-1]:
        rule = f"must lie between 0 and {SCALES[-1]:g}"
        raise invalid("answers of a judge", rule, f"{lowest:g} to {highest:g}")
    grades = np.full(len(values), NOT_JUDGED, dtype=np.int64)
    if np.isin(values[judged], (0, 1)).all():
        grades[judged] = values[judged]
    else:
        scale = min(top for top in SCALES if highest <= top)
        grades[judged] = np.floor(values[judged] * TOP_GRADE / scale + 0.5)
    return grades


def read_with_texts(labels: Path, features: Path, judge: str = "") -> RankingData:
    """All rows with the texts of queries and passages (``extra``), to be judged or reviewed.

    Grades are NIST's, or those of ``judge``; a row that the judge left out counts as not judged.
    """
    data, frame = read_judged(labels, features, judge), read_frame(labels)
    texts = {name: frame[name].to_numpy()[data.row_ids] for name in TEXTS if name in frame}
    if not judge:
        return replace(data, extra=texts)
    assert data.extra is not None
    grades = data.extra[JUDGE]
    return replace(data, y=np.maximum(grades, 0).astype(np.int32), judged=grades != NOT_JUDGED, extra=texts)
