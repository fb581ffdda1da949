"""Tables that people filled in: spreadsheets, CSV files of any country, frames.

Cells are kept as texts until somebody knows what they should be. Spreadsheets rewrite what is typed: 149
becomes 149.0, 1320 becomes 1,320 or 1.320, 007 becomes 7, ``Row_id`` is a heading as good as ``row_id``.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from cleanrank.data.arrow_tables import arrow_table
from cleanrank.data.files import existing_file
from cleanrank.data.project_file import is_project, project_columns
from cleanrank.data.spreadsheet import read_frame, read_records, text_of_value
from cleanrank.errors import BadFileError, UnknownNameError, error_text, invalid
from cleanrank.types import Array, IntArray
from cleanrank.validation import is_table

GROUPED = re.compile(r"(\d{1,3}(?:[.,'’\s]\d{3})+)(?:[.,]0+)?")
WHOLE = re.compile(r"(\d+)(?:[.,]0*)?")
THREE_ZEROS = re.compile(r"\d+[.,]0+")
TOTALS = frozenset(
    {"total", "totals", "sum", "summe", "gesamt", "average", "mean", "count", "anzahl", "somme"}
)

# Usual headings of what a column may hold, the likeliest first.
ROLES: dict[str, tuple[str, ...]] = {
    "row": ("row_id", "row", "row_number"),
    "query": ("query_id", "qid", "topic_id", "topic", "query", "search_id", "search", "q"),
    "doc": ("doc_id", "document_id", "docno", "doc", "document", "passage_id", "pid", "product_id",
            "corpus_id", "url"),
    "grade": ("grade", "label", "relevance", "rel", "rating", "judgement", "judgment", "score"),
    "truth": ("true_grade", "true_label", "gold_grade", "gold_label", "gold", "truth"),
    "item": ("item", "item_id", "task", "task_id", "pair", "pair_id", "id"),
    "annotator": ("annotator", "annotator_id", "worker", "worker_id", "judge", "judge_id", "assessor",
                  "assessor_id", "rater", "rater_id", "user", "user_id"),
    "seconds": ("seconds", "duration", "work_time", "work_time_in_seconds", "time_spent", "elapsed"),
    "at": ("at", "timestamp", "answered_at", "submitted_at", "submit_time", "created_at"),
    "share": ("stratum_share",),
}  # fmt: skip
ROLES["true grade"] = ROLES["truth"] + ROLES["grade"]


@dataclass(frozen=True, eq=False)
class Sheet:
    """A table of cells.

    Attributes:
        name: what messages call it.
        values: heading -> cells.
        lines: where each row stands in its file.
        unit: what such a place is called.
    """

    name: str
    values: Mapping[str, Sequence[Any]]
    lines: Sequence[Any]
    unit: str = "line"
    path: str = field(default="", repr=False)

    def __len__(self) -> int:
        return len(self.lines)

    def texts(self, heading: str) -> list[str]:
        """The cells of a column as texts; nothing, None and NaN are empty."""
        column = self.values[heading]
        if set(map(type, column)) == {str}:
            stripped = {text: text.strip() for text in set(column)}  # ids come often
            return [stripped[text] for text in column]
        return ["" if _is_missing(value) else text_of_value(value) for value in column]

    def heading(self, role: str, name: str | None = None) -> str | None:
        """The column that holds something: the one called ``name``, or the first of the usual headings."""
        plain: dict[str, str] = {}
        for heading in self.values:
            plain.setdefault(plain_name(heading), heading)
        if name is not None:
            if name not in self.values and plain_name(name) not in plain:
                listed = ", ".join(self.values) or "none"
                raise UnknownNameError(f"{self.name} has no column {name!r}. Columns: {listed}.")
            return name if name in self.values else plain[plain_name(name)]
        usual = (plain_name(each) for each in ROLES[role])
        return next((plain[each] for each in usual if each in plain), None)

    def headings(self, roles: Sequence[str], names: Mapping[str, str] | None = None) -> dict[str, str]:
        """Role -> column, for the roles that the table has; ``names`` overrides the usual headings."""
        found = {role: self.heading(role, (names or {}).get(role.split()[-1])) for role in roles}
        return {role: heading for role, heading in found.items() if heading is not None}

    def bad(self, message: str, line: int = 1) -> BadFileError:
        """The error for something wrong with the table."""
        return BadFileError(message, self.path or self.name, line)


def _is_missing(value: Any) -> bool:
    # pandas' NA is not even equal to itself, nor different.
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value


def plain_name(heading: str) -> str:
    """A heading without case, blanks and signs.

    >>> plain_name("Row_ID"), plain_name(" true grade ")
    ('rowid', 'truegrade')
    """
    return re.sub(r"[\W_]", "", str(heading).casefold())


def whole_numbers(texts: Sequence[str]) -> list[int | None]:
    """Whole numbers of a column, also as spreadsheets write them; None for anything else.

    A column in which every number ends in zeros after a sign (2.000) has decimals; elsewhere 1.320 and 1,320
    are groups of three digits.

    >>> whole_numbers(["7", "149.0", "1,320", "1.320", "x", ""]), whole_numbers(["2.000", "3.000"])
    ([7, 149, 1320, 1320, None, None], [2, 3])
    """
    decimals = all(THREE_ZEROS.fullmatch(text) for text in texts if text)

    def whole(text: str) -> int | None:
        grouped = None if decimals else GROUPED.fullmatch(text)
        if grouped is not None:
            return int(re.sub(r"\D", "", grouped[1]))
        match = WHOLE.fullmatch(text)
        return int(match[1]) if match else None

    return [whole(text) for text in texts]


def match_ids(texts: Sequence[str], ids: Array) -> IntArray:
    """The place in ``ids`` of every text, -1 where there is none.

    Texts count as they are; a text that is no id is also read as the number that a spreadsheet may have
    rewritten (149.0, 1,320, or 7 for 007), where only one of the ids reads so.

    >>> match_ids(["149.0", "7", "x", "b"], np.array(["149", "007", "b"])).tolist()
    [0, 1, -1, 2]
    """
    exact = {str(each): place for place, each in enumerate(ids.tolist())}
    numbers: dict[int, int] = {}
    for number, place in zip(whole_numbers(list(exact)), exact.values(), strict=True):
        if number is not None:
            numbers[number] = -1 if number in numbers else place
    read = whole_numbers(texts)

    def place_of(text: str, number: int | None) -> int:
        known = exact.get(text)
        return known if known is not None else -1 if number is None else numbers.get(number, -1)

    return np.array([place_of(t, n) for t, n in zip(texts, read, strict=True)], dtype=np.int64)


def read_sheet_file(path: str | PathLike[str], delimiter: str | None = None, purpose: str = "") -> Sheet:
    """The cells of a CSV (in any common encoding and delimiter), .xlsx or .parquet file, with their lines.

    JSON of a relevance tool is read like a sheet of its ratings: query_id, doc_id, annotator and grade. A
    labelling project is read like a sheet of its judgements, for a purpose as in ``project_columns``.
    """
    file = existing_file(path)
    if is_project(file):
        columns = project_columns(file, purpose)
        return Sheet(str(file), columns, range(len(next(iter(columns.values())))), "judgement", str(file))
    if file.suffix.lower() in (".parquet", ".pq"):
        return frame_sheet(read_frame(file), name=str(file))
    if file.suffix.lower() == ".json":
        from cleanrank.data.relevance_tools.tools import opinion_columns

        columns, places = opinion_columns(file)
        return Sheet(str(file), columns, places, "rating", str(file))
    names, rows = read_records(file, delimiter)
    if not names:
        message = error_text(f"{str(file)!r}", "must have a line of headings", "nothing")
        raise BadFileError(message, str(file), 1)
    columns = {name: [cells[name] for _, cells in rows] for name in names if name}
    return Sheet(str(file), columns, [line for line, _ in rows], path=str(file))


def frame_sheet(frame: Any, name: str = "the frame") -> Sheet:
    """The cells of a frame of any kind, lazy ones among them, or of a mapping of columns."""
    is_pandas = type(frame).__module__.partition(".")[0] == "pandas"
    if is_table(frame) and not is_pandas and not isinstance(frame, Mapping):
        frame = arrow_table(frame)
    names = getattr(frame, "column_names", getattr(frame, "columns", None))
    names = list(frame) if isinstance(frame, Mapping) else names
    if names is None:
        raise invalid(name, "must be a table: a frame, a mapping of columns or a file", type(frame).__name__)
    single = next((each for each in names if not hasattr(frame[each], "__len__")), None)
    if single is not None:
        raise invalid(name, "must map headings to columns", f"{frame[single]!r} for {str(single)!r}")
    columns = {str(each): _plain_column(frame[each]) for each in names}
    sizes = {len(column) for column in columns.values()}
    if len(sizes) > 1:
        raise invalid(name, "must have columns of one length", ", ".join(map(str, sorted(sizes))))
    return Sheet(name, columns, range(max(sizes, default=0)), "row")


def _plain_column(column: Any) -> list[Any]:
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(column, method):
            values: list[Any] = getattr(column, method)()
            return values
    return list(column)
