"""Gold sheets as files: what a judge fills in, and how the answers are read back; gold from elsewhere.

A sheet (CSV or .xlsx) has the columns row_id, query_id, doc_id (when known), the texts that came along with
the rows, and true_grade (empty, to be filled in). The given grade is left out by default: a judge who sees
it leans towards it. A LETOR sheet holds the rows themselves with ``?`` in place of the grade and
``# row_id = ...`` at the end. ``stratum_share`` appears in sheets drawn by doubt.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from cleanrank.data.files import existing_file, written_whole
from cleanrank.data.project_file import is_project
from cleanrank.data.scores import is_qrels
from cleanrank.data.sheets import Sheet, frame_sheet, read_sheet_file
from cleanrank.data.spreadsheet import read_text, write_frame
from cleanrank.data.trec import read_qrels
from cleanrank.errors import BadFileError, error_text, invalid
from cleanrank.noise._gold_rows import Entry, answered_rows, read_entries
from cleanrank.noise.estimate import NoiseEstimate
from cleanrank.noise.gold import GoldSheet, from_gold, match_answers
from cleanrank.ragged import match_rows
from cleanrank.stored import as_array
from cleanrank.types import FloatArray, IntArray, RankingData
from cleanrank.validation import one_of

FORMS = ("csv", "letor", "xlsx")
SUFFIXES = {".csv": "csv", ".tsv": "csv", ".xlsx": "xlsx"}
LETOR_LINE = re.compile(r"^(?P<grade>\S+)\s+qid:(?P<query>\S+).*#.*?row_id\s*=\s*(?P<row>\S+)")
LETOR_SHARE = re.compile(r"stratum_share\s*=\s*(\S+)")


@dataclass(frozen=True, eq=False)
class GoldAnswers:
    """Rows of known true grade; ``shares`` as in ``from_gold``.

    Attributes:
        row_ids: the rows.
        true_grades: their true grades.
        shares: the share of the given grade's rows that each row was drawn from.
        unanswered: the lines of a sheet without an answer.
        notes: what was left out or assumed, in words; ``estimate`` hands them on.
    """

    row_ids: IntArray
    true_grades: IntArray
    shares: FloatArray
    unanswered: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()

    def estimate(self, data: RankingData, **options: Any) -> NoiseEstimate:
        """The noise matrix that these answers give for ``data``; ``options`` as in ``from_gold``."""
        estimate = from_gold(data, self.row_ids, self.true_grades, shares=self.shares, **options)
        return replace(estimate, reasons=(*estimate.reasons, *self.notes))


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
        data: the data they were drawn from, for their texts; a LETOR sheet needs it for the features.
        form: one of FORMS; by default CSV for .csv and .tsv, a workbook for .xlsx, else LETOR.
        show_given: adds the given grade, which biases the judge.
    """
    target = Path(path)
    form = SUFFIXES.get(target.suffix.lower(), "letor") if form is None else form
    one_of("form of a sheet", form, FORMS)
    if form == "letor":
        if data is None:
            raise invalid("data", "must be given for a LETOR sheet")
        with written_whole(target) as part, part.open("w", encoding="utf-8", newline="") as out:
            _write_letor(sheet, data, out, show_given)
    else:
        suffix = target.suffix.lower()
        suffix = suffix if SUFFIXES.get(suffix) == form else f".{form}"
        write_frame(_frame(sheet, data, show_given), target, suffix)


def read_sheet(
    path: str | PathLike[str],
    data: RankingData,
    *,
    n_grades: int | None = None,
    allow_unanswered: bool = False,
    columns: Mapping[str, str] | None = None,
) -> GoldAnswers:
    """Reads true grades from a file; all errors are reported with their lines.

    Args:
        path: a filled-in sheet (CSV, .xlsx, LETOR), any table with a column of row ids, or of queries and
            documents, and one of grades (CSV, .xlsx, .parquet), a TREC qrels file, or a labelling project.
        data: the data that the rows belong to.
        n_grades: grades of the scale; those of the data when not given.
        allow_unanswered: leaves rows without an answer out. Rows that a judge skips are often the hard
            ones, so the noise of the others is too low.
        columns: headings that are not among the usual ones: row, query, doc or grade -> heading.

    Returns:
        The answers. Of those by query and document, the ones that are not in the data are counted in
        ``notes``; it is an error when there is none in the data.
    """
    file = existing_file(path)
    if is_qrels(file):
        return _answers(_qrels_sheet(read_qrels(file), str(file)), data, n_grades=n_grades)
    is_binary = file.suffix.lower() in (".xlsx", ".xlsm", ".parquet", ".pq") or is_project(file)
    text = "" if is_binary else read_text(file)
    if " qid:" in text.lstrip().split("\n", 1)[0]:
        sheet = Sheet(str(file), {}, [], path=str(file))
        entries = list(_letor_entries(file, text))
        rows = answered_rows(entries, data, sheet, n_grades=n_grades, allow_unanswered=allow_unanswered)
        return GoldAnswers(**vars(rows))
    options: dict[str, Any] = {"n_grades": n_grades, "allow_unanswered": allow_unanswered}
    return _answers(read_sheet_file(file, purpose="gold"), data, columns=columns, **options)


def gold_answers(
    gold: Any, data: RankingData, *, n_grades: int | None = None, columns: Mapping[str, str] | None = None
) -> GoldAnswers | None:
    """The gold that a caller gives, in any of its forms, as checked answers; None for none.

    Args:
        gold: a file or a frame as in ``read_sheet``; judgements of ``read_qrels``; a Series or mapping from
            row id, or from (query, document), to true grade; a pair (row ids, true grades) or a triple with
            the ``shares`` of ``from_gold``; a grade per row in input order, -1 where unknown; or answers.
        data: the data that the rows belong to.
        n_grades: grades of the scale, of a file or frame; those of the data when not given.
        columns: headings that are not among the usual ones: row, query, doc or grade -> heading.

    Returns:
        The answers; blank grades of a file or frame are left out.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays(np.zeros((3, 1)), [0, 1, 1], qid=[1, 1, 1], doc_ids=["a", "b", "c"])
    >>> gold_answers([-1, -1, 0], data).row_ids.tolist(), gold_answers({2: 0}, data).true_grades.tolist()
    ([2], [0])
    >>> gold_answers({"query": [1, 1], "doc": ["c", "x"], "grade": [0, 1]}, data).row_ids.tolist()
    [2]
    """
    if gold is None:
        return None
    options: dict[str, Any] = {"n_grades": n_grades, "columns": columns, "allow_unanswered": True}
    if isinstance(gold, str | PathLike):
        return read_sheet(gold, data, **options)
    if isinstance(gold, RankingData):
        return _answers(_qrels_sheet(gold, "gold"), data, n_grades=n_grades)
    if (sheet := _sheet_of(gold, data, columns)) is not None:
        return _answers(sheet, data, **options) if len(sheet) else None
    shares = None
    if isinstance(gold, GoldAnswers):
        match_answers(data, gold.row_ids, gold.true_grades)
        return gold
    if isinstance(gold, Mapping):
        rows, grades = np.array(list(gold)), np.array(list(gold.values()))
    elif isinstance(gold, tuple) and len(gold) in (2, 3):
        rows, grades = np.asarray(gold[0]), np.asarray(gold[1])
        shares = None if len(gold) == 2 else np.asarray(gold[2], dtype=np.float64)
    else:
        column = np.asarray(gold)
        if column.shape != (data.n_docs,) or column.dtype.kind not in "iu":
            rule = (
                "must be answers, (row ids, grades), a frame or file with grades, or a whole grade per row "
                f"({data.n_docs}), -1 unknown"
            )
            raise invalid("gold", rule, f"{column.dtype}, shape {column.shape}")
        places = np.flatnonzero(column >= 0)
        # A column follows the rows of the input, which may have been regrouped; of a part, its own rows.
        whole = np.array_equal(np.sort(data.row_ids), np.arange(data.n_docs))
        rows, grades = places if whole else data.row_ids[places], column[places]
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


def _answers(
    sheet: Sheet, data: RankingData, *, columns: Mapping[str, str] | None = None, **options: Any
) -> GoldAnswers:
    entries, notes = read_entries(sheet, columns)
    return GoldAnswers(**vars(answered_rows(entries, data, sheet, notes=notes, **options)))


def _sheet_of(gold: Any, data: RankingData, columns: Mapping[str, str] | None) -> Sheet | None:
    """The table behind a frame, a Series, or a mapping of columns or of (query, document); else None."""
    if isinstance(gold, Mapping):
        first = next(iter(gold), None)
        if isinstance(first, tuple) and len(first) == 2:
            queries, docs = zip(*gold, strict=True)
            return frame_sheet({"query": queries, "doc": docs, "grade": list(gold.values())}, "gold")
        is_table = isinstance(first, str) and hasattr(gold[first], "__len__")
        return frame_sheet(gold, "gold") if is_table else None
    if type(gold).__module__.partition(".")[0] == "pandas" and hasattr(gold, "index"):
        frame = gold.to_frame("true_grade") if gold.ndim == 1 else gold
        if gold.ndim == 1 and len(gold) == data.n_docs:
            frame = frame[gold != -1]
        sheet = frame_sheet(frame.reset_index(drop=True), "gold")
        keys = sheet.headings(("row", "query"), columns)
        # The index of a frame that was never set is no row id.
        if not keys and (gold.ndim == 1 or type(frame.index).__name__ != "RangeIndex"):
            names = ["row_id"] if frame.index.nlevels == 1 else ["query_id", "doc_id"]
            sheet = frame_sheet(frame.rename_axis(index=names).reset_index(), "gold")
        return sheet
    is_table = hasattr(gold, "columns") or hasattr(gold, "column_names")
    return frame_sheet(gold, "gold") if is_table else None


def _qrels_sheet(qrels: RankingData, name: str) -> Sheet:
    """Judgements of documents; negative grades of a qrels file are none."""
    if qrels.doc_ids is None:
        raise invalid("gold", "must have document ids to be matched with the data", "none")
    known = qrels if qrels.judged is None else qrels.select(qrels.judged)
    return frame_sheet({"query_id": known.qid, "doc_id": known.doc_ids, "grade": known.y}, name)


def _frame(sheet: GoldSheet, data: RankingData | None, show_given: bool) -> Any:
    """The sheet as a frame: ids, the texts that came along with the rows, and the column to fill in."""
    import pandas as pd

    columns: dict[str, Any] = {"row_id": sheet.row_ids, "query_id": sheet.query_ids}
    if sheet.doc_ids is not None:
        columns["doc_id"] = sheet.doc_ids
    for name, values in ({} if data is None else data.extra or {}).items():
        columns.setdefault(name, np.asarray(values)[sheet.rows])
    if show_given:
        columns["given_grade"] = sheet.given_grades
    if sheet.strategy == "doubt":
        columns["stratum_share"] = sheet.shares.round(9)
    # The last column, and the only one to fill in.
    columns.pop("true_grade", None)
    return pd.DataFrame(columns).assign(true_grade="")


def _write_letor(sheet: GoldSheet, data: RankingData, out: TextIO, show_given: bool) -> None:
    for i, values in enumerate(as_array(data.X[sheet.rows])):
        cells = " ".join(f"{j}:{v}" for j, v in enumerate(values, start=1) if v != 0 and v == v)
        notes = [f"row_id = {sheet.row_ids[i]}"]
        if sheet.doc_ids is not None:
            notes.append(f"docid = {sheet.doc_ids[i]}")
        if show_given:
            notes.append(f"given_grade = {sheet.given_grades[i]}")
        if sheet.strategy == "doubt":
            notes.append(f"stratum_share = {sheet.shares[i]:.9g}")
        out.write(f"? qid:{sheet.query_ids[i]} {cells} # {' '.join(notes)}\n")


def _letor_entries(file: Path, text: str) -> Iterator[Entry]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        match = LETOR_LINE.match(line.strip())
        if match is None:
            rule, at = "must read 'grade qid:ID ... # row_id = ...'", f"{file}, line {number}"
            message = error_text("a line of a LETOR sheet", rule, repr(line[:60]), at=at)
            raise BadFileError(message, str(file), number)
        share = LETOR_SHARE.search(line)
        yield Entry(number, match["row"], match["query"], "", match["grade"], share[1] if share else "")
