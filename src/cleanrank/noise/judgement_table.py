"""Tables of several people's judgements, long (a judgement a row) or wide (a column per annotator)."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np

from cleanrank.data.sheets import Sheet, frame_sheet, read_sheet_file, whole_numbers
from cleanrank.errors import error_text, invalid
from cleanrank.noise.agreement import Judgements, judgements
from cleanrank.types import Array, FloatArray, IntArray

ROLES = ("item", "query", "doc", "annotator", "grade", "truth", "seconds", "at")
NOT_JUDGED = {"", "?", "-", "NA", "N/A", "NAN"}
NEGATIVE = re.compile(r"-\d+([.,]0*)?")


@dataclass(frozen=True, eq=False)
class JudgedItems:
    """Judgements with the names of their items.

    Attributes:
        judgements: grades from 0; items are numbered in the order of their first appearance.
        keys: heading -> name of every item: item, or query_id and doc_id.
        lowest: the grade that 0 stands for: 1 on a scale from 1 to 5.
        truth: the true grade of every item on the scale of the table, -1 where it is not known; None where
            the table has no column of true grades.
        seconds: how long every judgement took, NaN where it is not known; None where no column says so.
        at: when every judgement was made, NaT where it is not known; None where no column says so.
        notes: what was left out or assumed, in words.
    """

    judgements: Judgements
    keys: Mapping[str, Array]
    lowest: int = 0
    truth: IntArray | None = None
    notes: tuple[str, ...] = ()
    seconds: FloatArray | None = None
    at: Array | None = None

    @property
    def query(self) -> IntArray | None:
        """The query of every item, 0 to Q - 1; None where items have no queries."""
        if "query_id" not in self.keys:
            return None
        return np.unique(self.keys["query_id"], return_inverse=True)[1].astype(np.int64)

    def of(self, names: Collection[str]) -> Any:
        """A pandas frame, a judgement a row, of the annotators with these names.

        The columns are those that ``read_judgements`` reads: the items' names, annotator, grade and, where
        they are known, true_grade, seconds and at.
        """
        import pandas as pd

        said = self.judgements
        rows = np.flatnonzero(np.isin(said.annotators, list(names))[said.annotator])
        columns: dict[str, Any] = {name: key[said.item[rows]] for name, key in self.keys.items()}
        columns["annotator"] = said.annotators[said.annotator[rows]]
        columns["grade"] = said.grade[rows] + self.lowest
        if self.truth is not None:
            truth = self.truth[said.item[rows]]
            columns["true_grade"] = pd.arrays.IntegerArray(truth, truth < 0)
        for name, values in (("seconds", self.seconds), ("at", self.at)):
            if values is not None:
                columns[name] = values[rows]
        return pd.DataFrame(columns)


def read_judgements(
    table: Any,
    *,
    columns: Mapping[str, str] | None = None,
    annotators: Sequence[str] | None = None,
    delimiter: str | None = None,
    lowest: int | None = None,
) -> JudgedItems:
    """Reads who gave which grade to what.

    Args:
        table: a file (CSV, .xlsx, .parquet), a frame or a mapping of columns: long, with the columns item (or
            query and document), annotator and grade; or wide, with a column of grades per annotator.
        columns: headings that are not among the usual ones: item, query, doc, annotator, grade, truth (true
            grades of some items), seconds (what a judgement took), at (when it was made) -> heading.
        annotators: the columns of a wide table that hold grades; all columns of whole numbers if not given.
        delimiter: of a text file, if it cannot be guessed.
        lowest: the lowest grade of the scale; the lowest that was given when not given.

    Returns:
        The judgements. Blank and negative grades are no judgements; of two of the same item by the same
        person the first counts. Both are said in ``notes``.

    >>> wide = {"item": ["a", "b"], "ann": [1, 2], "bob": [1, 0]}
    >>> read_judgements(wide).judgements
    Judgements(4 of 2 items by 2 annotators, 3 grades)
    """
    for role in columns or {}:
        if role not in ROLES:
            raise invalid("columns of judgements", f"must be {', '.join(ROLES)}", repr(role))
    is_file = isinstance(table, str | PathLike)
    sheet = read_sheet_file(table, delimiter) if is_file else frame_sheet(table, "judgements")
    headings = sheet.headings(ROLES, columns)
    if "annotator" in headings and annotators is None:
        return _from_long(sheet, headings, lowest)
    return _from_wide(sheet, headings, annotators, lowest)


def _from_long(sheet: Sheet, headings: Mapping[str, str], lowest: int | None) -> JudgedItems:
    keys = _keys(sheet, headings)
    if "grade" not in headings or not keys:
        raise sheet.bad(_rule(sheet))
    who = np.array(sheet.texts(headings["annotator"]))
    grades, notes = _grades(sheet, sheet.texts(headings["grade"]), sheet.lines)
    kept = np.flatnonzero((grades >= 0) & (who != ""))
    times = _times(sheet, headings)
    return _judged(keys, kept, who[kept], grades[kept], _truth(sheet, headings), notes, lowest, times)


def _from_wide(
    sheet: Sheet, headings: Mapping[str, str], annotators: Sequence[str] | None, lowest: int | None
) -> JudgedItems:
    keys = _keys(sheet, headings)
    if annotators is None and "grade" in headings:
        raise sheet.bad(_rule(sheet))  # a long table that lacks a column
    if annotators is None:
        roles = ("item", "query", "doc", "truth", "seconds", "at")
        own = {headings[role] for role in roles if role in headings}
        names = [name for name in sheet.values if name not in own and _holds_grades(sheet.texts(name))]
    else:
        names = [str(sheet.heading("annotator", name)) for name in annotators]
    if len(names) < 2:
        raise sheet.bad(_rule(sheet))
    if not keys:
        keys = {"row": np.array([str(line) for line in sheet.lines])}
    notes = [] if annotators is not None else [f"columns taken as annotators: {', '.join(names)}"]
    parts, people, rows = [], [], []
    for name in names:
        grades, more = _grades(sheet, sheet.texts(name), sheet.lines)
        kept = np.flatnonzero(grades >= 0)
        parts.append(grades[kept])
        people.append(np.repeat(name, len(kept)))
        rows.append(kept)
        notes += [f"{name}: {note}" for note in more if "blank" not in note]
    item, who, said = (np.concatenate(each) for each in (rows, people, parts))
    return _judged(keys, item, who, said, _truth(sheet, headings), notes, lowest)


def _truth(sheet: Sheet, headings: Mapping[str, str]) -> Array | None:
    """The true grade in every row, -1 where it is not known."""
    return _grades(sheet, sheet.texts(headings["truth"]), sheet.lines)[0] if "truth" in headings else None


def _times(sheet: Sheet, headings: Mapping[str, str]) -> dict[str, Array]:
    """What the columns of times hold; NaN and NaT for what is no time."""
    import pandas as pd

    times: dict[str, Array] = {}
    if "seconds" in headings:
        texts = pd.Series(sheet.texts(headings["seconds"]), dtype=object)
        times["seconds"] = pd.to_numeric(texts, errors="coerce").to_numpy(dtype=np.float64)
    if "at" in headings:
        moments = pd.to_datetime(
            pd.Series(sheet.texts(headings["at"]), dtype=object), errors="coerce", utc=True, format="ISO8601"
        )
        times["at"] = moments.dt.tz_localize(None).to_numpy(dtype="datetime64[ns]")
    return times


def _keys(sheet: Sheet, headings: Mapping[str, str]) -> dict[str, Array]:
    roles = {"query_id": "query", "doc_id": "doc"}
    if not {"query", "doc"} <= headings.keys():
        alone = next((role for role in ("item", "doc", "query") if role in headings), None)
        roles = {} if alone is None else {"item": alone}
    return {name: np.array(sheet.texts(headings[role])) for name, role in roles.items()}


def _rule(sheet: Sheet) -> str:
    rule = (
        "must have the columns item (or query_id and doc_id), annotator and grade, or one column of grades "
        "for each of two or more annotators"
    )
    remedy = "Name yours with the argument columns (--columns), by role: item, annotator, grade."
    return error_text(sheet.name, rule, ", ".join(sheet.values) or "none", remedy=remedy)


def _holds_grades(texts: Sequence[str]) -> bool:
    read = [t for t in texts if t.upper() not in NOT_JUDGED and not NEGATIVE.fullmatch(t)]
    return bool(read) and all(number is not None for number in whole_numbers(read))


def _grades(sheet: Sheet, texts: Sequence[str], lines: Sequence[int]) -> tuple[Array, list[str]]:
    """A grade per row, -1 where there is none, and how many there were of those."""
    blank = [text.upper() in NOT_JUDGED for text in texts]
    negative = [NEGATIVE.fullmatch(text) is not None for text in texts]
    numbers = whole_numbers(texts)
    for line, text, number, skip in zip(lines, texts, numbers, map(max, blank, negative), strict=True):
        if number is None and not skip:
            at = f"{sheet.unit} {line}"
            raise sheet.bad(error_text("a grade", "must be a whole number", repr(text), at=at), line)
    notes = []
    if any(blank):
        notes.append(f"{sum(blank):,} blank grades were left out")
    if any(negative):
        notes.append(f"{sum(negative):,} negative grades are no grades and were left out")
    return np.array([-1 if number is None else number for number in numbers], dtype=np.int64), notes


def _judged(
    keys: Mapping[str, Array],
    rows: Array,
    who: Array,
    grades: Array,
    truth: Array | None,
    notes: list[str],
    lowest: int | None,
    times: Mapping[str, Array] | None = None,
) -> JudgedItems:
    if not len(rows):
        raise invalid("judgements", "must hold at least one grade", "none")
    in_order = np.argsort(rows, kind="stable")
    rows, who, grades = rows[in_order], who[in_order], grades[in_order]
    codes = np.zeros(len(rows), dtype=np.int64)
    for column in keys.values():
        _, code = np.unique(column[rows], return_inverse=True)
        codes = np.unique(codes * (code.max() + 1) + code, return_inverse=True)[1]
    _, first, item = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    item = place[item]
    _, person = np.unique(who, return_inverse=True)
    _, once = np.unique(item * (person.max() + 1) + person, return_index=True)
    if len(once) < len(rows):
        repeated = len(rows) - len(once)
        notes = [*notes, f"{repeated:,} further judgements of an item by the same person were left out"]
    once = np.sort(once)
    lowest = int(grades.min()) if lowest is None else lowest
    named = {name: column[rows][first[order]] for name, column in keys.items()}
    table = judgements(item=item[once], annotator=who[once], grade=grades[once] - lowest)
    known = None if truth is None else np.full(len(order), -1, dtype=np.int64)
    if known is not None and truth is not None:
        np.maximum.at(known, item, truth[rows])  # known where one of the item's rows says so
    kept = {name: values[rows[once]] for name, values in (times or {}).items()}
    return JudgedItems(table, named, lowest, known, tuple(notes), kept.get("seconds"), kept.get("at"))
