"""Text tables as people and spreadsheets write them: encodings, delimiters, cells that look like formulas."""

import csv
import io
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cleanrank.data.files import FRAMES, existing_file, read_unpacked, written_whole
from cleanrank.errors import BadFileError, CleanrankError, error_text, invalid
from cleanrank.validation import one_of

if TYPE_CHECKING:
    import pandas as pd

DELIMITERS = ",;\t|"
BOMS = {b"\xef\xbb\xbf": "utf-8-sig", b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16"}
SEPARATOR_LINE = re.compile(r'"?sep=(.)"?[ \t]*\r?(\n|$)', re.IGNORECASE)
NUMBER = r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?"
# Apostrophes may stand before such a start, so that every text can be told from its escaped form.
FORMULA = re.compile(rf"(?!{NUMBER}$)'*[=+\-@\t\r\n]")
ESCAPED = re.compile(r"'+[=+\-@\t\r\n]")
LONGEST_CELL = 32_767
MOST_ROWS = 1_048_576
STREAMED = 1 << 20  # larger tables are written as Parquet piece by piece, with less effort to pack them


def write_frame(
    frame: "pd.DataFrame",
    path: str | PathLike[str],
    suffix: str | None = None,
    *,
    measured: Sequence[str] = (),
) -> None:
    """Writes a data frame without its index, as the suffix says (one of FRAMES), whole or not at all.

    People open such files: texts that a spreadsheet would run as formulas are escaped (``read_frame`` undoes
    it), and CSV begins with the mark by which spreadsheets know UTF-8. Columns of ``measured`` numbers, which
    hardly repeat, are stored smaller in .parquet.
    """
    target = Path(path)
    kind = one_of("file ending", (suffix or target.suffix).lower(), FRAMES)
    if kind == ".parquet" and len(frame) > STREAMED:
        starts = range(0, len(frame), STREAMED)
        stream_frames((frame.iloc[start : start + STREAMED] for start in starts), target)
        return
    with written_whole(target) as part:
        if kind == ".parquet":
            lists = [name for name in measured if frame[name].dtype == object]
            floats = [f"{name}.list.element" if name in lists else name for name in measured]
            others = [str(name) for name in frame.columns if name not in measured]
            options: dict[str, Any] = {"use_byte_stream_split": floats, "use_dictionary": others}
            options |= {"compression": "zstd", "compression_level": 19}
            frame.to_parquet(part, index=False, **options)
        elif kind == ".xlsx":
            rows = (tuple(row) for row in frame.astype(object).itertuples(index=False, name=None))
            write_workbook([str(name) for name in frame.columns], rows, len(frame), str(part))
        else:
            cells = _mapped_texts(frame, escaped)
            separator = "\t" if kind == ".tsv" else ","
            cells.to_csv(part, index=False, sep=separator, encoding="utf-8-sig", lineterminator="\n")


def stream_frames(frames: Iterable["pd.DataFrame"], path: str | PathLike[str]) -> None:
    """Writes data frames with the same columns, one after the other, as one Parquet file, whole or not."""
    import pyarrow as pa
    import pyarrow.parquet

    with written_whole(path) as part, ExitStack() as stack:
        writer: Any = None
        for frame in frames:
            table = pa.Table.from_pandas(
                frame, preserve_index=False, schema=None if writer is None else writer.schema
            )
            if writer is None:
                writer = stack.enter_context(
                    pyarrow.parquet.ParquetWriter(part, table.schema, compression="zstd")
                )
            writer.write_table(table)


def read_frame(path: str | PathLike[str], delimiter: str | None = None) -> "pd.DataFrame":
    """The data frame of a .parquet or .xlsx file, or of a text table in any common encoding and delimiter."""
    import pandas as pd

    file = existing_file(path)
    suffix = file.suffix.lower()
    if suffix == ".xlsx":
        rows = read_workbook(str(file))
        head = [str(value).strip() for value in rows[0][1]] if rows else []
        return pd.DataFrame([row for _, row in rows[1:]], columns=head)
    try:
        if suffix == ".parquet":
            return pd.read_parquet(file)
        said, text = split_separator_line(read_text(file))
        separator = delimiter or said or delimiter_of(text.lstrip().split("\n", 1)[0])
        frame = pd.read_csv(io.StringIO(text), sep=separator, index_col=False)
    except (ValueError, OSError, OverflowError, csv.Error) as error:
        if isinstance(error, CleanrankError):
            raise
        text = str(error).strip().split("\n", 1)[0].rstrip(".")
        raise BadFileError(f"{file.name} must be a table; got {text}.", str(file)) from error
    frame.columns = [str(name).strip() for name in frame.columns]
    frame = _mapped_texts(frame, unescaped)
    return frame if separator == "," else frame.apply(_with_decimal_points)


def read_records(
    path: str | PathLike[str], delimiter: str | None = None
) -> tuple[list[str], list[tuple[int, dict[str, str]]]]:
    """The names of the columns of a table (.xlsx or text), and (line, cells) of its rows, all as texts.

    Cells are stripped; a cell beyond the header, and a column without a name, is left out.
    """
    file = existing_file(path)
    if file.suffix.lower() == ".xlsx":
        rows = [
            (line, [text_of_value(value) for value in values]) for line, values in read_workbook(str(file))
        ]
    else:
        rows = list(records_of(read_text(file), str(file), delimiter))
    names = rows[0][1] if rows else []
    kept = [j for j, name in enumerate(names) if name]
    return names, [(n, {names[j]: row[j] if j < len(row) else "" for j in kept}) for n, row in rows[1:]]


def _mapped_texts(frame: "pd.DataFrame", change: Callable[[str], str]) -> "pd.DataFrame":
    """The frame with every text, also those of its header, changed."""
    columns = {
        name: frame[name].map(lambda cell: change(cell) if isinstance(cell, str) else cell)
        for name in frame.columns
        if frame[name].dtype.kind == "O"
    }
    return frame.assign(**columns).rename(columns=lambda name: change(str(name)))


def _with_decimal_points(column: "pd.Series[Any]") -> "pd.Series[Any]":
    """A column of numbers with decimal commas, which go with semicolons, as numbers; others as they are."""
    import pandas as pd

    if column.dtype.kind != "O" or not column.notna().any():
        return column
    numbers = pd.to_numeric(column.str.replace(",", ".", n=1), errors="coerce")
    return numbers if (numbers.notna() | column.isna()).all() else column


def read_text(path: str | PathLike[str]) -> str:
    """The text of a plain or packed file: UTF-8, UTF-16 with a mark, or else Windows-1252."""
    return decoded(read_unpacked(path), str(path))


def decoded(raw: bytes, path: str) -> str:
    r"""The text of a file: UTF-8 or UTF-16 (by its mark), else Windows-1252, which is said in a warning.

    >>> decoded("größe".encode("utf-16"), "a.csv"), decoded(b"\xef\xbb\xbfa,b", "a.csv")
    ('größe', 'a,b')
    """
    encoding = next((name for mark, name in BOMS.items() if raw.startswith(mark)), "utf-8")
    remedy = "Save it as CSV UTF-8."
    try:
        text = raw.decode(encoding)
    except UnicodeDecodeError as error:
        try:
            if encoding != "utf-8" or b"\0" in raw:
                raise error
            text = raw.decode("cp1252")
        except UnicodeDecodeError as undefined:
            line = 1 + raw.count(b"\n", 0, error.start)
            value, at = repr(raw[error.start : error.start + 8]), f"line {line}"
            message = error_text(f"{path!r}", "must be UTF-8 text", value, at=at, remedy=remedy)
            raise BadFileError(message, path, line) from undefined
        warnings.warn(f"{path!r} is not UTF-8 and was read as Windows-1252. {remedy}", stacklevel=2)
    return text


def split_separator_line(text: str) -> tuple[str | None, str]:
    r"""The delimiter that a first line ``sep=;`` says, and the text without that line.

    >>> split_separator_line("sep=;\na;b\n"), split_separator_line("a,b\n")
    ((';', 'a;b\n'), (None, 'a,b\n'))
    """
    match = SEPARATOR_LINE.match(text)
    return (match[1], text[match.end() :]) if match else (None, text)


def delimiter_of(header: str) -> str:
    """The delimiter that the header line holds most often outside quotes; a comma where it holds none.

    >>> delimiter_of('query;"title, short";grade'), delimiter_of("score")
    (';', ',')
    """
    bare = re.sub(r'"[^"]*"', "", header)
    return max(DELIMITERS, key=bare.count)


def checked_delimiter(delimiter: str) -> str:
    r"""One character; ``\t`` and ``tab`` are a tab."""
    delimiter = {"\\t": "\t", "tab": "\t"}.get(delimiter, delimiter)
    if len(delimiter) != 1 or delimiter in '"\r\n':
        raise invalid("delimiter", "must be one character", repr(delimiter))
    return delimiter


def records_of(text: str, path: str, delimiter: str | None = None) -> Iterator[tuple[int, list[str]]]:
    r"""(line, cells) of every row that is not blank, the header first; cells are stripped and unescaped.

    >>> list(records_of("sep=;\nid;title\n'=1;dé\n", "a.csv"))
    [(2, ['id', 'title']), (3, ['=1', 'dé'])]
    """
    said, rest = split_separator_line(text)
    before = text.count("\n", 0, len(text) - len(rest))
    first = rest.lstrip().split("\n", 1)[0]
    reader = csv.reader(io.StringIO(rest, newline=""), delimiter=delimiter or said or delimiter_of(first))
    try:
        for row in reader:
            cells = [unescaped(cell.strip()) for cell in row]
            if any(cells):
                yield before + reader.line_num, cells
    except csv.Error as error:
        line = before + reader.line_num
        message = f"{path!r}, line {line}, cannot be read as a table: {error}."
        raise BadFileError(message, path, line) from error


def escaped(cell: str) -> str:
    """A text that a spreadsheet would run as a formula, with an apostrophe before it; others as they are.

    >>> [escaped(text) for text in ("=1+1", "-3", "-3+cmd", "'=x", "it's")]
    ["'=1+1", '-3', "'-3+cmd", "''=x", "it's"]
    """
    return f"'{cell}" if FORMULA.match(cell) else cell


def unescaped(cell: str) -> str:
    """What ``escaped`` was given."""
    return cell[1:] if ESCAPED.match(cell) else cell


def write_workbook(head: list[str], rows: Iterator[tuple[Any, ...]], n_rows: int, path: str) -> None:
    """Writes one sheet as .xlsx; texts are texts, never formulas."""
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell
    from openpyxl.utils.exceptions import IllegalCharacterError

    remedy = "Write .csv or .parquet."
    if n_rows >= MOST_ROWS:
        raise invalid(
            "rows of an .xlsx file", f"must be fewer than {MOST_ROWS:,}", f"{n_rows:,}", remedy=remedy
        )
    book = Workbook(write_only=True)
    sheet = book.create_sheet("cleanrank")
    sheet.freeze_panes = "A2"

    def cell_of(value: Any) -> Any:
        if not isinstance(value, str):
            return None if value != value else value
        try:
            cell = WriteOnlyCell(sheet, value)
        except IllegalCharacterError:
            rule = "must not hold control characters"
            raise invalid("a cell of an .xlsx file", rule, repr(value[:40]), remedy=remedy) from None
        if len(value) > LONGEST_CELL:
            rule = f"must have at most {LONGEST_CELL:,} characters"
            raise invalid("a cell of an .xlsx file", rule, f"{len(value):,}", remedy=remedy)
        cell.data_type = "s"
        cell.quotePrefix = FORMULA.match(value) is not None
        return cell

    sheet.append([cell_of(name) for name in head])
    for row in rows:
        sheet.append([cell_of(value) for value in row])
    # In memory first: on a full disk openpyxl fails in ways of its own.
    whole = io.BytesIO()
    book.save(whole)
    Path(path).write_bytes(whole.getbuffer())


def read_workbook(path: str) -> list[tuple[int, list[Any]]]:
    """(line, values) of every row of the first sheet that is not blank; None where a cell is empty."""
    from openpyxl import load_workbook

    try:
        with open(path, "rb") as file:
            book = load_workbook(file, read_only=True, data_only=True)
            rows = list(book.worksheets[0].iter_rows(values_only=True))
            book.close()
    # openpyxl lets through whatever zip and XML raise.
    except Exception as error:
        if isinstance(error, MemoryError):
            raise
        message = f"{path!r} cannot be read as a workbook (.xlsx): {error or type(error).__name__}."
        raise BadFileError(message, path) from error
    return [(i, list(row)) for i, row in enumerate(rows, 1) if any(cell is not None for cell in row)]


def text_of_value(value: Any) -> str:
    """The text of a workbook's cell: whole numbers without a point, nothing for an empty one.

    >>> [text_of_value(value) for value in (2.0, 0.5, None, " d1 ", True)]
    ['2', '0.5', '', 'd1', 'TRUE']
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value).strip()
