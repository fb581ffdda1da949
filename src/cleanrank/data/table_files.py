"""Tables in files: CSV, TSV and Parquet.

All of them go through an Arrow table and ``from_frame``. A message about a value names the file.
"""

import codecs
import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from cleanrank.data.arrow_tables import read_arrow_file, short_text
from cleanrank.data.files import existing_file, first_bytes, is_packed, open_packed, written_whole
from cleanrank.data.frames import OPTIONAL, from_frame, to_frame
from cleanrank.data.shard_sources import of_data
from cleanrank.data.spreadsheet import checked_delimiter, delimiter_of, read_text, split_separator_line
from cleanrank.errors import BadFileError, InvalidInputError, UnknownNameError, invalid
from cleanrank.stored import StoredFeatures
from cleanrank.types import RankingData
from cleanrank.validation import one_of

PathLike = str | os.PathLike[str]
# Whole numbers in their one usual spelling; as a column of floats, pandas writes 7 as 7.0.
WHOLE_IDS = (r"^(0|-?[1-9][0-9]{0,17})$", r"^(0|-?[1-9][0-9]{0,14})[.]0$")
START = 1 << 20
CSV_BLOCK = 1 << 25


def read_parquet(path: PathLike, **columns: Any) -> RankingData:
    """Ranking data from a Parquet file; ``columns`` are arguments of ``from_frame``.

    The columns gain, doc_id, weight and position are read as such when they exist and are not named.
    """
    file = existing_file(path)
    return of_table(read_arrow_file(file), file, columns)


def read_csv(path: PathLike, *, delimiter: str | None = None, **columns: Any) -> RankingData:
    """Ranking data from a text table with a header (packed files are unpacked).

    The text may be UTF-8, UTF-16 (with its mark) or Windows-1252. It is cut at ``delimiter``; else at what a
    first line such as ``sep=;`` says, tabs in .tsv, or whichever of , ; | and tab the header holds most.
    Query ids are whole numbers if all are written as such (7, not 007 or +7) and not in quotes, else
    strings. ``columns`` as in ``read_parquet``.
    """
    file = existing_file(path)
    qid = columns.get("qid", "qid")
    table, quoted = read_table(file, delimiter, (qid, columns.get("doc_id") or "doc_id"))
    if not table.num_rows:
        words = "must hold at least one row below its header; it has none"
        raise BadFileError(f"{str(file)!r} {words}.", str(file))
    if qid in table.column_names and qid not in quoted:
        place = table.column_names.index(qid)
        table = table.set_column(place, qid, _plain_ids(table.column(qid)))
    return of_table(table, file, columns)


def read_table(file: Path, delimiter: str | None = None, texts: Sequence[str] = ()) -> tuple[Any, list[str]]:
    """The Arrow table of a text table, as in ``read_csv``, and the columns that are quoted in its first row.

    ``texts`` are columns to keep as texts, whatever they hold.
    """
    form = CSVForm.of(file, delimiter, texts)
    return _csv_table(file, form), form.quoted


class CSVForm(NamedTuple):
    """How a text table is to be read.

    Attributes:
        source: the file, or its bytes unpacked and decoded.
        skipped: lines before the header.
        quoted: columns that are quoted in the first row.
        options: arguments of Arrow's readers.
    """

    source: Path | bytes
    skipped: int
    quoted: list[str]
    options: dict[str, Any]

    @classmethod
    def of(cls, file: Path, delimiter: str | None, texts: Sequence[str]) -> "CSVForm":
        """The form of a file; see ``read_table``."""
        source, start = _utf8_source(file)
        said, start = split_separator_line(start)
        if delimiter is None:
            guessed = delimiter_of(start.lstrip().split("\n", 1)[0])
            delimiter = said or ("\t" if ".tsv" in file.suffixes else guessed)
        delimiter = checked_delimiter(delimiter)
        header, first = _first_lines(file, start, delimiter)
        quoted = [name for name, value in zip(header, first, strict=False) if value.startswith('"')]
        options = {
            "parse_options": pyarrow.csv.ParseOptions(delimiter=delimiter),
            "convert_options": pyarrow.csv.ConvertOptions(
                column_types={name: pa.string() for name in texts if name in header},
                decimal_point=_decimal_point(start, delimiter),
            ),
        }
        return cls(source, 0 if said is None else 1, quoted, options)

    def stream(self) -> Any:
        """What Arrow reads."""
        return pa.BufferReader(self.source) if isinstance(self.source, bytes) else self.source


def csv_batches(file: Path, delimiter: str | None, columns: Mapping[str, Any]) -> Iterator[Any]:
    """The tables of a CSV file, block by block, with query ids as in ``read_csv``.

    The first block decides which columns are text; whole numbers may turn into fractions in later ones.
    """
    qid = columns.get("qid", "qid")
    form = CSVForm.of(file, delimiter, (qid, columns.get("doc_id") or "doc_id"))
    settings = pyarrow.csv.ReadOptions(skip_rows=form.skipped, block_size=CSV_BLOCK)
    try:
        schema = pyarrow.csv.open_csv(form.stream(), read_options=settings, **form.options).schema
        wide = {each.name: pa.float64() for each in schema if each.type in (pa.int64(), pa.null())}
        convert = form.options["convert_options"]
        convert.column_types = {**wide, **convert.column_types}
        for batch in pyarrow.csv.open_csv(form.stream(), read_options=settings, **form.options):
            table = pa.Table.from_batches([batch])
            if qid in table.column_names and qid not in form.quoted:
                place = table.column_names.index(qid)
                table = table.set_column(place, qid, _plain_ids(table.column(qid)))
            yield table
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        rule = "cannot be read as CSV block by block"
        remedy = "A column must hold numbers, or text, from the first block on. Or read it into memory"
        raise BadFileError(f"{str(file)!r} {rule}: {short_text(error)}. {remedy}.", str(file)) from error


def _decimal_point(start: str, delimiter: str) -> str:
    """A comma where cells such as 0,5 occur and none such as 0.5, as in spreadsheets of many countries."""
    cell = rf"(?:^|{re.escape(delimiter)})-?\d+{{}}\d+(?:{re.escape(delimiter)}|\r?$)"
    if delimiter == "," or re.search(cell.format(r"\."), start, re.MULTILINE):
        return "."
    return "," if re.search(cell.format(","), start, re.MULTILINE) else "."


def _plain_ids(column: Any) -> Any:
    """Ids as whole numbers if that loses nothing of how they are written, else as they are."""
    ids = column.combine_chunks().dictionary_encode().dictionary
    for whole in WHOLE_IDS:
        if pc.all(pc.match_substring_regex(ids, whole)).as_py():
            return column.cast(pa.float64()).cast(pa.int64()) if "." in whole else column.cast(pa.int64())
    return column


def _utf8_source(file: Path) -> tuple[Path | bytes, str]:
    """What Arrow reads as UTF-8: the file, or its bytes unpacked and decoded; and how its text begins."""
    start = first_bytes(file, START)
    try:
        if not is_packed(file):
            return file, codecs.getincrementaldecoder("utf-8-sig")().decode(start)
    except UnicodeDecodeError:
        pass
    text = read_text(file)
    return text.encode(), text[:START]


def _csv_table(file: Path, form: CSVForm) -> Any:
    """The table of a CSV file; texts beyond the beginning that are not UTF-8 are decoded after all."""

    def read(whole: Path | bytes, threads: bool) -> Any:
        settings = pyarrow.csv.ReadOptions(use_threads=threads, skip_rows=form.skipped)
        stream = form._replace(source=whole).stream()
        table = pyarrow.csv.read_csv(stream, read_options=settings, **form.options)
        if any(pa.types.is_binary(kind) for kind in table.schema.types):
            raise pa.ArrowInvalid("text that is not UTF-8")
        return table

    try:
        return read(form.source, True)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        decoded = form.source if isinstance(form.source, bytes) else read_text(file).encode()
    try:
        # Only with one thread does an error know its line.
        return read(decoded, False)
    except (pa.ArrowException, OSError) as error:
        row = re.search(r"[Rr]ow #?(\d+)", str(error))
        line = int(row.group(1)) + form.skipped if row else None
        where = f"{str(file)!r}" + (f", line {line}," if line else "")
        raise BadFileError(f"{where} cannot be read as CSV: {short_text(error)}.", str(file), line) from error


def write_parquet(data: RankingData, path: PathLike, **names: str) -> None:
    """Writes what ``to_frame`` gives as Parquet; query id type, names and float32 values are kept."""
    with written_whole(path) as part, contextlib.ExitStack() as stack:
        writer: Any = None
        for table in _tables(data, names):
            if writer is None:
                writer = stack.enter_context(pyarrow.parquet.ParquetWriter(part, table.schema))
            writer.write_table(table)


def _tables(data: RankingData, names: Mapping[str, str]) -> Iterator[Any]:
    """What ``to_frame`` gives; of features that stay on disk some queries at a time."""
    if not isinstance(data.X, StoredFeatures):
        yield to_frame(data, "arrow", **names)
        return
    for piece in of_data(data).pieces(None):
        yield to_frame(piece.data, "arrow", **names)


def write_csv(data: RankingData, path: PathLike, **names: str) -> None:
    """Writes what ``to_frame`` gives as CSV (.gz, .bz2, .xz, .zst after it pack it); strings are quoted.

    A name with .tsv in it gets tabs.
    """
    target = Path(path)
    delimiter = "\t" if ".tsv" in target.suffixes else ","
    with written_whole(target) as part, open_packed(part, target.suffix) as stream:
        for number, table in enumerate(_tables(data, names)):
            nested = next((field.name for field in table.schema if pa.types.is_nested(field.type)), None)
            if nested is not None:
                rule, remedy = "must hold single values to be written as text", "Write Parquet, or drop it."
                raise invalid(f"column {nested!r}", rule, table.schema.field(nested).type, remedy=remedy)
            options = pyarrow.csv.WriteOptions(include_header=not number, delimiter=delimiter)
            pyarrow.csv.write_csv(table, stream, options)


def of_table(table: Any, file: Path, columns: Mapping[str, Any]) -> RankingData:
    """Ranking data of the Arrow table of a file.

    Args:
        table: the table; the columns gain, doc_id, weight and position are read as such when they exist and
            are not named.
        file: for messages.
        columns: arguments of ``from_frame``; with ``judged=False`` labels and query ids may be missing.
    """
    given = {"label": "label", "qid": "qid", **columns}
    if not given.pop("judged", True):
        for name in (given["label"], given["qid"]):
            if name not in table.column_names:
                table = table.append_column(name, pa.array([0] * table.num_rows))
            elif name == given["label"] and table.column(name).null_count:
                table = table.drop_columns([name]).append_column(name, pa.array([0] * table.num_rows))
    for argument in given:
        one_of("argument", argument, ("label", "qid", "features", "ratings", "distribution", *OPTIONAL))
    listed = (*(given.get("features") or ()), *(given.get("distribution") or ()))
    used = {*(str(name) for name in given.values() if isinstance(name, str)), *listed}
    for role, name in OPTIONAL.items():
        if role not in given and name in table.column_names and name not in used:
            given[role] = name
    try:
        return from_frame(table, **given)
    except (InvalidInputError, UnknownNameError) as error:
        raise BadFileError(f"{str(file)!r}: {error}", str(file)) from error


def _first_lines(file: Path, start: str, delimiter: str) -> tuple[list[str], list[str]]:
    """The header's names and the raw fields (quotes kept) of the first row."""
    cut = re.compile(rf'(?:^|{re.escape(delimiter)})("(?:[^"]|"")*"|[^{re.escape(delimiter)}]*)')
    lines = [line for line in start.splitlines() if line.strip()][:2]
    if not lines:
        raise BadFileError(f"{str(file)!r} must have a header line; it is empty.", str(file))
    fields = [[match.group(1) for match in cut.finditer(line)] for line in lines]
    header = [name.strip('"').replace('""', '"') for name in fields[0]]
    return header, fields[1] if len(fields) > 1 else []
