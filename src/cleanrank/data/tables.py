"""Tables in files: CSV, TSV, Parquet; any data file by its suffix or its content.

All of them go through an Arrow table and ``from_frame``. A message about a value names the file.
"""

import codecs
import os
import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from cleanrank.data.files import (
    DATA,
    PACKED,
    check_suffix,
    existing_file,
    first_bytes,
    is_packed,
    open_packed,
    read_unpacked,
    written_whole,
)
from cleanrank.data.frames import OPTIONAL, from_frame, short_text, to_frame
from cleanrank.data.inputs import check_data
from cleanrank.data.spreadsheet import (
    DELIMITERS,
    checked_delimiter,
    delimiter_of,
    read_text,
    split_separator_line,
)
from cleanrank.data.sqlite_file import MAGIC
from cleanrank.errors import BadFileError, InvalidInputError, UnknownNameError, invalid
from cleanrank.types import RankingData
from cleanrank.validation import check_path, one_of

PathLike = str | os.PathLike[str]
# Whole numbers in their one usual spelling; as a column of floats, pandas writes 7 as 7.0.
WHOLE_IDS = (r"^(0|-?[1-9][0-9]{0,17})$", r"^(0|-?[1-9][0-9]{0,14})[.]0$")
QRELS_LINE = re.compile(r"\S+\s+\S+\s+\S+\s+[+-]?\d+(\.\d*)?")
START = 1 << 20
# What these kinds of file have no use for.
TABLE_OPTIONS = {
    "csv": (),
    "parquet": ("delimiter",),
    "letor": ("label", "qid", "doc_id", "features", "delimiter"),
}


def read_data(path: PathLike | Sequence[PathLike], **options: Any) -> RankingData:
    r"""Reads Parquet, CSV/TSV or LETOR, whichever the suffix or else the content says.

    Args:
        path: a file; or several LETOR files, whose rows follow each other.
        options: for LETOR those of ``read_letor``; else ``label``, ``qid`` (columns of these names by
            default), ``features``, ``gains``, ``doc_id``, ``weight`` and ``position`` as in ``from_frame``.

    Returns:
        The rows, grouped by query.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(f"{folder}/a.csv").write_text("qid,label,bm25\n1,2,0.5\n1,0,0.25\n")
    ...     read_data(f"{folder}/a.csv")
    RankingData(1 queries, 2 documents, 1 features (dense), grades {0: 1, 2: 1})
    """
    kind = kind_of_file(path) if isinstance(path, str | os.PathLike) else "letor"
    of_tables = [name for name in options if name in TABLE_OPTIONS[kind]]
    if of_tables:
        others = "CSV" if kind == "parquet" else "CSV or Parquet"
        value = f"{str(path)!r}, a {'Parquet' if kind == 'parquet' else 'LETOR'} file"
        raise invalid(" and ".join(f"{name}=" for name in of_tables), f"must go with {others}", value)
    if isinstance(path, str | os.PathLike) and kind != "letor":
        return (read_parquet if kind == "parquet" else read_csv)(path, **options)
    from cleanrank.data.letor import read_letor

    return read_letor(path, **options)


def read_rows(path: PathLike, **options: Any) -> RankingData:
    r"""Reads rows to score: as ``read_data``, but labels and query ids may be missing; they are 0 then.

    Args:
        path: a file.
        options: those of ``read_data``.

    Returns:
        The rows, grouped by query.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(f"{folder}/a.csv").write_text("bm25\n0.5\n0.25\n")
    ...     read_rows(f"{folder}/a.csv").X.tolist()
    [[0.5], [0.25]]
    """
    if kind_of_file(path) != "letor":
        return read_data(path, judged=False, **options)
    lines = read_unpacked(path).splitlines() if _is_unlabelled(first_bytes(path, 4096)) else []
    if not lines:
        return read_data(path, **options)
    with tempfile.TemporaryDirectory() as folder:
        labelled = Path(folder) / Path(path).name
        grade = b"0 " if lines[0].lstrip().startswith(b"qid:") else b"0 qid:0 "
        labelled.write_bytes(b"\n".join(grade + line if _is_unlabelled(line) else line for line in lines))
        try:
            return read_data(labelled, cache=False, **options)
        except BadFileError as error:
            words = str(error).replace(str(labelled), str(path))
            raise BadFileError(words, str(path), error.line) from error


def _is_unlabelled(text: bytes) -> bool:
    """Whether a LETOR text begins with ``qid:`` or a feature where its label should stand."""
    return b":" in text.split(None, 1)[0] if text.strip() else False


def write_data(
    data: RankingData, path: PathLike, *, label: str = "label", qid: str = "qid", doc_id: str = "doc_id"
) -> None:
    """Writes Parquet (.parquet, .pq), CSV (.csv, .tsv) or else LETOR, as the name ends.

    .gz, .bz2, .xz and .zst after it pack the text; endings of other formats (.xlsx, .json, ...) are refused.

    Args:
        data: the rows.
        path: the file.
        label: in a table, what to call the column of grades.
        qid: in a table, what to call the column of query ids.
        doc_id: in a table, what to call the column of document ids.

    >>> import tempfile
    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[0.5], [2.0]], [0, 1], qid=[7, 7])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_data(data, f"{folder}/small.csv")
    ...     print(Path(f"{folder}/small.csv").read_text().strip())
    "label","qid","feature_1"
    0,7,0.5
    1,7,2
    """
    check_data(data)
    check_suffix(check_path(path), DATA)
    suffix = next((s.lower() for s in reversed(Path(path).suffixes) if s not in PACKED), "")
    if suffix in (".parquet", ".pq"):
        write_parquet(data, path, label=label, qid=qid, doc_id=doc_id)
    elif suffix in (".csv", ".tsv"):
        write_csv(data, path, label=label, qid=qid, doc_id=doc_id)
    else:
        from cleanrank.data.letor import write_letor

        write_letor(data, path)


def names_of(columns: Mapping[str, Any]) -> dict[str, str]:
    """The names that ``write_data`` takes, among options of ``read_data``: a table keeps its own."""
    return {role: str(columns[role]) for role in ("label", "qid", "doc_id") if role in columns}


def column_options(columns: Mapping[str, Any]) -> list[str]:
    """Options of ``read_data`` as words of a command.

    >>> column_options({"doc_id": "url", "features": ["bm25", "age"]})
    ['--doc-id', 'url', '--features', 'bm25,age']
    """
    texts = {name: ",".join(value) if name == "features" else value for name, value in columns.items()}
    return [word for name, text in texts.items() for word in (f"--{name.replace('_', '-')}", text)]


def read_parquet(path: PathLike, *, label: str = "label", qid: str = "qid", **columns: Any) -> RankingData:
    """Ranking data from a Parquet file; ``columns`` are the other arguments of ``from_frame``.

    The columns gain, doc_id, weight and position are read as such when they exist and are not named.
    """
    file = existing_file(path)
    try:
        table = pyarrow.parquet.read_table(file, partitioning=None)
        table.validate(full=True)
        _ = table.column_names
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise BadFileError(
            f"{str(file)!r} cannot be read as Parquet: {short_text(error)}.", str(file)
        ) from error
    return _from_file(table, file, label, qid, columns)


def read_csv(
    path: PathLike, *, label: str = "label", qid: str = "qid", delimiter: str | None = None, **columns: Any
) -> RankingData:
    """Ranking data from a text table with a header (packed files are unpacked).

    The text may be UTF-8, UTF-16 (with its mark) or Windows-1252. It is cut at ``delimiter``; else at what a
    first line such as ``sep=;`` says, tabs in .tsv, or whichever of , ; | and tab the header holds most.
    Query ids are whole numbers if all are written as such (7, not 007 or +7) and not in quotes, else
    strings. ``columns`` as in ``read_parquet``.
    """
    file = existing_file(path)
    table, quoted = read_table(file, delimiter, (qid, columns.get("doc_id") or "doc_id"))
    if not table.num_rows:
        words = "must hold at least one row below its header; it has none"
        raise BadFileError(f"{str(file)!r} {words}.", str(file))
    if qid in table.column_names and qid not in quoted:
        place = table.column_names.index(qid)
        table = table.set_column(place, qid, _plain_ids(table.column(qid)))
    return _from_file(table, file, label, qid, columns)


def read_table(file: Path, delimiter: str | None = None, texts: Sequence[str] = ()) -> tuple[Any, list[str]]:
    """The Arrow table of a text table, as in ``read_csv``, and the columns that are quoted in its first row.

    ``texts`` are columns to keep as texts, whatever they hold.
    """
    source, start = _utf8_source(file)
    said, start = split_separator_line(start)
    if delimiter is None:
        guessed = delimiter_of(start.lstrip().split("\n", 1)[0])
        delimiter = said or ("\t" if ".tsv" in file.suffixes else guessed)
    header, first = _first_lines(file, start, checked_delimiter(delimiter))
    quoted = [name for name, value in zip(header, first, strict=False) if value.startswith('"')]
    options = {
        "parse_options": pyarrow.csv.ParseOptions(delimiter=checked_delimiter(delimiter)),
        "convert_options": pyarrow.csv.ConvertOptions(
            column_types={name: pa.string() for name in texts if name in header},
            decimal_point=_decimal_point(start, checked_delimiter(delimiter)),
        ),
    }
    return _csv_table(file, source, 0 if said is None else 1, options), quoted


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


def _csv_table(file: Path, source: Path | bytes, skipped: int, options: dict[str, Any]) -> Any:
    """The table of a CSV file; texts beyond the beginning that are not UTF-8 are decoded after all."""

    def read(whole: Path | bytes, threads: bool) -> Any:
        settings = pyarrow.csv.ReadOptions(use_threads=threads, skip_rows=skipped)
        stream = pa.BufferReader(whole) if isinstance(whole, bytes) else whole
        table = pyarrow.csv.read_csv(stream, read_options=settings, **options)
        if any(pa.types.is_binary(kind) for kind in table.schema.types):
            raise pa.ArrowInvalid("text that is not UTF-8")
        return table

    try:
        return read(source, True)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        decoded = source if isinstance(source, bytes) else read_text(file).encode()
    try:
        # Only with one thread does an error know its line.
        return read(decoded, False)
    except (pa.ArrowException, OSError) as error:
        row = re.search(r"[Rr]ow #?(\d+)", str(error))
        line = int(row.group(1)) + skipped if row else None
        where = f"{str(file)!r}" + (f", line {line}," if line else "")
        raise BadFileError(f"{where} cannot be read as CSV: {short_text(error)}.", str(file), line) from error


def write_parquet(data: RankingData, path: PathLike, **names: str) -> None:
    """Writes what ``to_frame`` gives as Parquet; query id type, names and float32 values are kept."""
    with written_whole(path) as part:
        pyarrow.parquet.write_table(to_frame(data, "arrow", **names), part)


def write_csv(data: RankingData, path: PathLike, **names: str) -> None:
    """Writes what ``to_frame`` gives as CSV (.gz, .bz2, .xz, .zst after it pack it); strings are quoted.

    A name with .tsv in it gets tabs.
    """
    target = Path(path)
    options = pyarrow.csv.WriteOptions(delimiter="\t" if ".tsv" in target.suffixes else ",")
    table = to_frame(data, "arrow", **names)
    nested = next((field.name for field in table.schema if pa.types.is_nested(field.type)), None)
    if nested is not None:
        rule, remedy = "must hold single values to be written as text", "Write Parquet, or drop it."
        raise invalid(f"column {nested!r}", rule, table.schema.field(nested).type, remedy=remedy)
    with written_whole(target) as part, open_packed(part, target.suffix) as stream:
        pyarrow.csv.write_csv(table, stream, options)


def kind_of_file(path: PathLike) -> str:
    """What a file holds by its suffix or else its content: "parquet", "csv" or "letor"."""
    file = existing_file(path)
    suffixes = {suffix.lower() for suffix in file.suffixes[-2:]}
    if suffixes & {".parquet", ".pq"}:
        return "parquet"
    if suffixes & {".csv", ".tsv"}:
        return "csv"
    start = first_bytes(file, 4096)
    if start.startswith(MAGIC):
        words = "is a labelling project or another SQLite file. Write its labels to a file first: "
        raise BadFileError(f"{str(file)!r} {words}cleanrank export {file.name} -o labels.csv.", str(file))
    if start.startswith(b"PK\x03\x04"):
        words = "is a workbook or an archive. Save the sheet as CSV, or use from_frame on what pandas reads"
        raise BadFileError(f"{str(file)!r} {words}.", str(file))
    if start.startswith(b"PAR1"):
        return "parquet"
    encoding = "utf-16" if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) else "utf-8-sig"
    text = start.decode(encoding, errors="replace").lstrip()
    line = text.split("\n", 1)[0].split("#", 1)[0].rstrip()
    if split_separator_line(text)[0] is not None:
        return "csv"
    is_table = any(delimiter in line for delimiter in DELIMITERS) and ":" not in line
    return "csv" if is_table and not QRELS_LINE.fullmatch(line) else "letor"


def _from_file(table: Any, file: Path, label: str, qid: str, columns: dict[str, Any]) -> RankingData:
    if not columns.pop("judged", True):
        for name in (label, qid):
            if name not in table.column_names:
                table = table.append_column(name, pa.array([0] * table.num_rows))
            elif name == label and table.column(name).null_count:
                table = table.drop_columns([name]).append_column(name, pa.array([0] * table.num_rows))
    for argument in columns:
        one_of("argument", argument, ("features", *OPTIONAL))
    used = {label, qid, *(str(c) for c in columns.values() if isinstance(c, str))}
    used |= set(columns.get("features") or ())
    for role, name in OPTIONAL.items():
        if role not in columns and name in table.column_names and name not in used:
            columns[role] = name
    try:
        return from_frame(table, label=label, qid=qid, **columns)
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
