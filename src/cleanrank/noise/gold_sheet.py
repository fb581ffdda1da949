"""Gold sheets as files: what a judge fills in, and how the answers are read back.

A CSV sheet has the columns row_id, query_id, doc_id (when known) and true_grade (empty, to be filled in).
The given grade is left out by default: a judge who sees it leans towards it. A LETOR sheet holds the rows
themselves with ``?`` in place of the grade and ``# row_id = ...`` at the end. ``stratum_share`` appears in
sheets drawn by doubt.
"""

import contextlib
import csv
import io
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np

from cleanrank.data.files import existing_file, written_whole
from cleanrank.errors import BadFileError, error_text, invalid
from cleanrank.noise.estimate import NoiseEstimate
from cleanrank.noise.gold import GoldSheet, from_gold, match_answers
from cleanrank.ragged import match_rows
from cleanrank.types import FloatArray, IntArray, RankingData
from cleanrank.validation import one_of

FORMS = ("csv", "letor")
COLUMNS = ("row_id", "query_id", "true_grade", "stratum_share")
UNANSWERED = {"", "?"}
SHOWN = 10
LETOR_LINE = re.compile(r"^(?P<grade>\S+)\s+qid:(?P<query>\S+).*#.*?row_id\s*=\s*(?P<row>\S+)")
LETOR_SHARE = re.compile(r"stratum_share\s*=\s*(\S+)")


@dataclass(frozen=True, eq=False)
class GoldAnswers:
    """The answers of a sheet, one per row id; ``shares`` as in ``from_gold``.

    ``unanswered`` lists the lines of the sheet without an answer.
    """

    row_ids: IntArray
    true_grades: IntArray
    shares: FloatArray
    unanswered: tuple[int, ...] = ()

    def estimate(self, data: RankingData, **options: Any) -> NoiseEstimate:
        """The noise matrix that these answers give for ``data``; ``options`` as in ``from_gold``."""
        return from_gold(data, self.row_ids, self.true_grades, shares=self.shares, **options)


class _Entry(NamedTuple):
    line: int
    row: str
    query: str
    grade: str
    share: str


def write_sheet(
    sheet: GoldSheet,
    path: str | PathLike[str],
    *,
    data: RankingData | None = None,
    form: str | None = None,
    show_given: bool = False,
) -> None:
    """Writes a sheet to fill in, whole or not at all.

    Args:
        sheet: the rows.
        path: where to.
        data: the data they were drawn from; a LETOR sheet needs it for the features.
        form: one of FORMS; by default CSV for .csv and .tsv, else LETOR.
        show_given: adds the given grade, which biases the judge.
    """
    target = Path(path)
    form = ("csv" if target.suffix in (".csv", ".tsv") else "letor") if form is None else form
    one_of("form of a sheet", form, FORMS)
    if form == "letor" and data is None:
        raise invalid("data", "must be given for a LETOR sheet")
    with written_whole(target) as part, part.open("w", encoding="utf-8", newline="") as out:
        if form == "csv":
            _write_csv(sheet, out, "\t" if target.suffix == ".tsv" else ",", show_given)
        elif data is not None:
            _write_letor(sheet, data, out, show_given)


def read_sheet(
    path: str | PathLike[str],
    data: RankingData,
    *,
    n_grades: int | None = None,
    allow_unanswered: bool = False,
) -> GoldAnswers:
    """Reads the answers of a filled-in sheet; all errors are reported with their lines.

    Args:
        path: the sheet.
        data: the data it was drawn from.
        n_grades: grades of the scale; those of the data when not given.
        allow_unanswered: leaves rows without an answer out. Rows that a judge skips are often the hard
            ones, so the noise of the others is too low.
    """
    file = existing_file(path)
    C = max(data.n_grades, 2) if n_grades is None else n_grades
    entries = list(_entries(file))
    rows = [_whole(entry.row) for entry in entries]
    queries = _queries(data, rows)
    wrong: list[tuple[int, str]] = []
    answers: dict[int, tuple[int, int, float]] = {}
    unanswered: list[int] = []
    for entry, row, query in zip(entries, rows, queries, strict=True):
        if row is None or query is None:
            rule = f"must be a row of the data (0 to {int(data.row_ids.max(initial=0))})"
            wrong.append((entry.line, error_text("row_id", rule, repr(entry.row))))
        elif entry.query and entry.query != query:
            rule = f"must be {query!r}, the query of row {row} in the data"
            remedy = "Is this the file the sheet was drawn from?"
            wrong.append((entry.line, error_text("query_id", rule, repr(entry.query), remedy=remedy)))
        elif entry.grade in UNANSWERED:
            unanswered.append(entry.line)
        elif (grade := _whole(entry.grade)) is None or not 0 <= grade < C:
            rule = f"must be a grade from 0 to {C - 1}"
            remedy = "A longer scale goes into n_grades (--grades)."
            wrong.append((entry.line, error_text("true_grade", rule, repr(entry.grade), remedy=remedy)))
        elif row in answers and answers[row][1] != grade:
            rule = f"must have one true grade, and line {answers[row][0]} says {answers[row][1]}"
            wrong.append((entry.line, error_text(f"row {row}", rule, grade)))
        else:
            answers.setdefault(row, (entry.line, grade, _share(entry, wrong)))
    if unanswered and not allow_unanswered:
        rule = f"must be filled in; {len(unanswered)} are empty"
        remedy = "Fill them in, or leave them out with allow_unanswered (--allow-unanswered)."
        wrong.append((unanswered[0], error_text("true_grade", rule, "nothing", remedy=remedy)))
    _refuse(file, wrong, bool(answers))
    return GoldAnswers(
        np.array(list(answers), dtype=np.int64),
        np.array([grade for _, grade, _ in answers.values()], dtype=np.int64),
        np.array([share for _, _, share in answers.values()], dtype=np.float64),
        tuple(unanswered),
    )


def _queries(data: RankingData, row_ids: Sequence[int | None]) -> list[str | None]:
    """The query of every row id, None for a row that is not in the data."""
    places = match_rows(data.row_ids, [-1 if row is None else row for row in row_ids])
    queries = np.searchsorted(data.indptr, places, side="right") - 1
    return [None if p < 0 else str(data.query_ids[q]) for p, q in zip(places, queries, strict=True)]


def _write_csv(sheet: GoldSheet, out: TextIO, delimiter: str, show_given: bool) -> None:
    columns: dict[str, list[Any]] = {"row_id": sheet.row_ids.tolist(), "query_id": sheet.query_ids.tolist()}
    if sheet.doc_ids is not None:
        columns["doc_id"] = sheet.doc_ids.tolist()
    if show_given:
        columns["given_grade"] = sheet.given_grades.tolist()
    if sheet.strategy == "doubt":
        columns["stratum_share"] = [repr(round(share, 9)) for share in sheet.shares.tolist()]
    columns["true_grade"] = [""] * len(sheet)
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))


def _write_letor(sheet: GoldSheet, data: RankingData, out: TextIO, show_given: bool) -> None:
    rows = data.X[sheet.rows]
    features = rows if isinstance(rows, np.ndarray) else rows.toarray()
    for i, values in enumerate(features):
        cells = " ".join(f"{j}:{v}" for j, v in enumerate(values, start=1) if v != 0 and v == v)
        notes = [f"row_id = {sheet.row_ids[i]}"]
        if sheet.doc_ids is not None:
            notes.append(f"docid = {sheet.doc_ids[i]}")
        if show_given:
            notes.append(f"given_grade = {sheet.given_grades[i]}")
        if sheet.strategy == "doubt":
            notes.append(f"stratum_share = {sheet.shares[i]:.9g}")
        out.write(f"? qid:{sheet.query_ids[i]} {cells} # {' '.join(notes)}\n")


def _entries(file: Path) -> Iterator[_Entry]:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadFileError(f"{file} must be UTF-8 text; got other bytes ({error}).", str(file)) from None
    first = text.lstrip().split("\n", 1)[0]
    yield from (_letor_entries(file, text) if " qid:" in first else _csv_entries(file, text))


def _csv_entries(file: Path, text: str) -> Iterator[_Entry]:
    header = text.split("\n", 1)[0]
    # Spreadsheets of many countries write semicolons.
    delimiter = max(",;\t", key=header.count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    names = [name.strip() for name in reader.fieldnames or []]
    for needed in ("row_id", "true_grade"):
        if needed not in names:
            rule = f"must have the column {needed}"
            message = error_text(f"sheet {file}", rule, ", ".join(names) or "none", at="line 1")
            raise BadFileError(message, str(file), 1)
    reader.fieldnames = names
    for line in reader:
        # A cell beyond the header has the key None.
        cells = {name: (text or "").strip() for name, text in line.items() if isinstance(name, str)}
        if any(cells.values()):
            row, query, grade, share = (cells.get(name, "") for name in COLUMNS)
            yield _Entry(reader.line_num, row, query, grade, share)


def _letor_entries(file: Path, text: str) -> Iterator[_Entry]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        match = LETOR_LINE.match(line.strip())
        if match is None:
            rule, at = "must read 'grade qid:ID ... # row_id = ...'", f"{file}, line {number}"
            message = error_text("a line of a LETOR sheet", rule, repr(line[:60]), at=at)
            raise BadFileError(message, str(file), number)
        share = LETOR_SHARE.search(line)
        yield _Entry(number, match["row"], match["query"], match["grade"], share[1] if share else "")


def _whole(text: str) -> int | None:
    """A whole number, also when a spreadsheet wrote it as 2.0."""
    match = re.fullmatch(r"(\d+)(?:[.,]0*)?", text)
    return int(match[1]) if match else None


def _share(entry: _Entry, wrong: list[tuple[int, str]]) -> float:
    if not entry.share:
        return 1.0
    with contextlib.suppress(ValueError):
        if 0 < (share := float(entry.share)) <= 1:
            return share
    wrong.append((entry.line, error_text("stratum_share", "must lie in (0, 1]", repr(entry.share))))
    return 1.0


def _refuse(file: Path, wrong: list[tuple[int, str]], any_answer: bool) -> None:
    if not wrong and not any_answer:
        wrong = [(1, error_text("a sheet", "must hold at least one answer", "none"))]
    if wrong:
        wrong.sort(key=lambda each: each[0])
        lines = [f"{file}, line {number}: {message}" for number, message in wrong[:SHOWN]]
        more = f"\n... and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        raise BadFileError("\n".join(lines) + more, str(file), wrong[0][0])


def gold_answers(gold: Any, data: RankingData) -> GoldAnswers | None:
    """The gold that a caller gives, in any of its forms, as checked answers; None for none.

    Args:
        gold: the answers of a gold sheet; a pair (row ids, true grades) or a triple with the ``shares`` of
            ``from_gold``; a mapping from row id to true grade; or a grade per row, -1 where it is not known.
        data: the data that the row ids belong to.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((3, 1)), [0, 1, 1], qid=[1, 1, 1])
    >>> gold_answers([-1, -1, 0], data).row_ids.tolist(), gold_answers({2: 0}, data).true_grades.tolist()
    ([2], [0])
    """
    if gold is None:
        return None
    shares = None
    if isinstance(gold, GoldAnswers):
        rows, grades, shares = gold.row_ids, gold.true_grades, gold.shares
    elif isinstance(gold, Mapping):
        rows, grades = np.array(list(gold)), np.array(list(gold.values()))
    elif isinstance(gold, tuple) and len(gold) in (2, 3):
        rows, grades = np.asarray(gold[0]), np.asarray(gold[1])
        shares = None if len(gold) == 2 else np.asarray(gold[2], dtype=np.float64)
    else:
        column = np.asarray(gold)
        if column.shape != (data.n_docs,) or column.dtype.kind not in "iu":
            rule = f"must be answers, (row ids, grades), or a whole grade per row ({data.n_docs}), -1 unknown"
            raise invalid("gold", rule, f"{column.dtype}, shape {column.shape}")
        rows = np.flatnonzero(column >= 0)
        grades = column[rows]
    if not rows.size:
        return None
    match_answers(data, rows, grades)
    return GoldAnswers(rows, grades, np.ones(len(rows)) if shares is None else shares)


def known_grades(data: RankingData, answers: GoldAnswers | None) -> IntArray | None:
    """The true grade of every row of the data, -1 where it is not known."""
    if answers is None:
        return None
    place = match_rows(answers.row_ids, data.row_ids)
    return np.where(place >= 0, answers.true_grades[place], -1).astype(np.int64)
