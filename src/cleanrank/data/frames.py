"""Frames and files of tables: pandas, polars, pyarrow, CSV, Parquet; any data file by its suffix.

All of them go through an Arrow table, which pandas and polars hand over without copying numbers. A missing
feature becomes NaN; a missing label or query id is an error that names its row. Rows count from 0.
"""

import contextlib
import difflib
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from cleanrank.data.files import existing_file, first_bytes, written_whole
from cleanrank.errors import BadFileError, InvalidInputError, MissingExtraError, UnknownNameError, invalid
from cleanrank.ragged import from_arrays
from cleanrank.types import Array, RankingData
from cleanrank.validation import one_of

PathLike = str | os.PathLike[str]
BLOCK_ROWS = 1024
COMPRESSED = (".gz", ".xz", ".bz2", ".zst")
OPTIONAL = {"gains": "gain", "doc_id": "doc_id", "weight": "weight", "position": "position"}
KINDS = ("pandas", "polars", "arrow")
NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"


def from_frame(
    df: Any,
    *,
    label: str,
    qid: str,
    features: Sequence[str] | None = None,
    gains: str | None = None,
    doc_id: str | None = None,
    weight: str | None = None,
    position: str | None = None,
) -> RankingData:
    """Ranking data from a pandas, polars or pyarrow table (or whatever speaks the Arrow C stream).

    Args:
        df: one row per document, in any order.
        label: the column of grades.
        qid: the column of query ids, whole numbers or strings.
        features: the columns of features; all that are not named otherwise when not given.
        gains: the column of real-valued gains.
        doc_id: the column of document ids.
        weight: the column of row weights.
        position: the column of shown ranks (from 1).

    Returns:
        The rows, grouped by query.

    >>> import pandas as pd
    >>> df = pd.DataFrame({"q": ["a", "b", "a"], "grade": [1, 0, 2], "bm25": [0.5, None, 2.0]})
    >>> data = from_frame(df, label="grade", qid="q")
    >>> data.query_ids.tolist(), data.y.tolist(), data.X[:, 0].tolist(), data.feature_names
    (['a', 'b'], [1, 2, 0], [0.5, 2.0, nan], ('bm25',))
    """
    if isinstance(features, str):
        raise invalid("features", "must be a list of columns", repr(features), remedy=f"Give [{features!r}].")
    optional = {"gains": gains, "doc_id": doc_id, "weight": weight, "position": position}
    named = {"label": label, "qid": qid, **optional}
    roles = {role: str(name) for role, name in named.items() if name is not None}
    table = _table(df, [*roles.values(), *(features or ())])
    names = table.column_names
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise invalid("columns", "must have different names", f"{twice!r} twice")
    for role, name in roles.items():
        _existing_column(names, name, f"{role}=")
    if features is None:
        features = [name for name in names if name not in roles.values()]
    else:
        features = [_existing_column(names, str(name), "features=") for name in features]

    def numbers(role: str) -> Array | None:
        return _numbers(table, roles[role]) if role in roles else None

    _refuse_null(table.column(roles["label"]), roles["label"], "labels")
    return from_arrays(
        _matrix(table, features),
        _numbers(table, roles["label"], "Map the grades to 0, 1, 2, ... first."),
        qid=_ids(table, roles["qid"]),
        gains=numbers("gains"),
        doc_ids=_strings(table, roles["doc_id"]) if "doc_id" in roles else None,
        weights=numbers("weight"),
        positions=numbers("position"),
        feature_names=tuple(features),
    )


def to_frame(data: RankingData, kind: str = "pandas") -> Any:
    """One row per document: label, qid, what else there is (gain, doc_id, weight, position), features.

    Args:
        data: the data; rows come query by query.
        kind: "pandas", "polars" or "arrow".

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[1.0], [2.0]], [0, 1], qid=[7, 7], feature_names=("bm25",))
    >>> to_frame(data, "arrow").column_names
    ['label', 'qid', 'bm25']
    """
    one_of("kind of frame", kind, KINDS)
    table = _to_table(data)
    if kind == "arrow":
        return table
    if kind == "pandas":
        return table.to_pandas()
    try:
        import polars
    except ImportError as error:
        words = "this needs polars, which is not installed. Install it with: pip install polars"
        raise MissingExtraError(words) from error
    return polars.from_arrow(table)


def read_parquet(path: PathLike, *, label: str = "label", qid: str = "qid", **columns: Any) -> RankingData:
    """Ranking data from a Parquet file; ``columns`` are the other arguments of ``from_frame``.

    The columns gain, doc_id, weight and position are read as such when they exist and are not named.
    """
    file = existing_file(path)
    try:
        table = pyarrow.parquet.read_table(file, partitioning=None)
    except (pa.ArrowException, OSError) as error:
        raise BadFileError(f"{str(file)!r} cannot be read as Parquet: {_short(error)}.", str(file)) from error
    return _from_file(table, file, label, qid, columns)


def read_csv(
    path: PathLike, *, label: str = "label", qid: str = "qid", delimiter: str | None = None, **columns: Any
) -> RankingData:
    """Ranking data from a CSV file with a header (.gz, .bz2 and .zst are unpacked; .tsv is cut at tabs).

    Query ids in quotes stay strings. ``columns`` as in ``read_parquet``.
    """
    file = existing_file(path)
    if delimiter is None:
        delimiter = "\t" if ".tsv" in file.suffixes else ","
    if len(delimiter) != 1:
        raise invalid("delimiter", "must be one character", repr(delimiter))
    header, first = _first_lines(file, delimiter)
    quoted = [name for name, value in zip(header, first, strict=False) if value.startswith('"')]
    texts = {name: pa.string() for name in (qid, columns.get("doc_id") or "doc_id") if name in header}
    if qid not in quoted:
        texts.pop(qid, None)
    options = {
        "parse_options": pyarrow.csv.ParseOptions(delimiter=delimiter),
        "convert_options": pyarrow.csv.ConvertOptions(column_types=texts),
    }
    try:
        table = pyarrow.csv.read_csv(file, **options)
    except (pa.ArrowException, OSError):
        table = _read_csv_slowly(file, options)
    if not table.num_rows:
        words = "must hold at least one row below its header; it has none"
        raise BadFileError(f"{str(file)!r} {words}.", str(file))
    return _from_file(table, file, label, qid, columns)


def _read_csv_slowly(file: Path, options: dict[str, Any]) -> Any:
    """Reads with one thread, because only then does an error know its line."""
    try:
        return pyarrow.csv.read_csv(file, read_options=pyarrow.csv.ReadOptions(use_threads=False), **options)
    except (pa.ArrowException, OSError) as error:
        row = re.search(r"[Rr]ow #?(\d+)", str(error))
        line = int(row.group(1)) if row else None
        where = f"{str(file)!r}" + (f", line {line}," if line else "")
        raise BadFileError(f"{where} cannot be read as CSV: {_short(error)}.", str(file), line) from error


def write_parquet(data: RankingData, path: PathLike) -> None:
    """Writes what ``to_frame`` gives as Parquet; query id type, names and float32 values are kept."""
    with written_whole(path) as part:
        pyarrow.parquet.write_table(_to_table(data), part)


def write_csv(data: RankingData, path: PathLike) -> None:
    """Writes what ``to_frame`` gives as CSV (.gz is packed); strings are quoted, numbers are not."""
    if Path(path).suffix == ".xz":
        raise invalid("the suffix of a packed CSV file", "must be .gz, .bz2 or .zst", f"{str(path)!r}")
    codec = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}.get(Path(path).suffix)
    with written_whole(path) as part, pa.output_stream(str(part), compression=codec) as stream:
        pyarrow.csv.write_csv(_to_table(data), stream)


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
    if isinstance(path, str | os.PathLike) and (kind := kind_of_file(path)) != "letor":
        return (read_parquet if kind == "parquet" else read_csv)(path, **options)
    from cleanrank.data.letor import read_letor

    return read_letor(path, **options)


def write_data(data: RankingData, path: PathLike) -> None:
    """Writes Parquet (.parquet, .pq), CSV (.csv) or else LETOR; .gz, .xz, .zst after it compress the text.

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
    suffix = next((s for s in reversed(Path(path).suffixes) if s not in COMPRESSED), "")
    if suffix in (".parquet", ".pq"):
        write_parquet(data, path)
    elif suffix == ".csv":
        write_csv(data, path)
    else:
        from cleanrank.data.letor import write_letor

        write_letor(data, path)


def kind_of_file(path: PathLike) -> str:
    """What a file holds by its suffix or else its content: "parquet", "csv" or "letor"."""
    file = existing_file(path)
    suffixes = set(file.suffixes[-2:])
    if suffixes & {".parquet", ".pq"}:
        return "parquet"
    if suffixes & {".csv", ".tsv"}:
        return "csv"
    start = first_bytes(file, 4096)
    if start.startswith(b"PAR1"):
        return "parquet"
    line = start.split(b"\n", 1)[0].split(b"#", 1)[0]
    return "csv" if b"," in line and b":" not in line else "letor"


def _table(df: Any, names: Sequence[str]) -> Any:
    """An Arrow table of ``df``; levels of a pandas index that are among ``names`` become columns."""
    if isinstance(df, pa.Table):
        return df
    if type(df).__module__.partition(".")[0] == "pandas" and hasattr(df, "columns"):
        levels = [name for name in df.index.names if name is not None and name in names]
        if levels:
            df = df.reset_index(level=levels)
        repeated = df.columns[df.columns.duplicated()]
        if len(repeated):
            raise invalid("columns", "must have different names", f"{str(repeated[0])!r} twice")
        try:
            return pa.Table.from_pandas(df, preserve_index=False)
        except (pa.ArrowException, TypeError) as error:
            rule, remedy = "must hold values of one kind", "Convert or drop it first."
            raise invalid("every column", rule, _short(error), remedy=remedy) from error
    if hasattr(df, "__arrow_c_stream__") or isinstance(df, pa.RecordBatch | pa.RecordBatchReader):
        # A stream may hold a single column, which is no table.
        with contextlib.suppress(pa.ArrowException, TypeError, ValueError):
            return pa.table(df) if not isinstance(df, pa.RecordBatchReader) else df.read_all()
    rule = "must be a pandas, polars or pyarrow table or have the Arrow C stream interface"
    remedy = "Collect it first: df.collect()." if hasattr(df, "collect") else "Arrays go into from_arrays."
    raise invalid("a frame", rule, type(df).__name__, remedy=remedy)


def _existing_column(names: Sequence[str], name: str, argument: str) -> str:
    if name in names:
        return name
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    listed = ", ".join(names[:20]) + (f", ... ({len(names)} in all)" if len(names) > 20 else "")
    raise UnknownNameError(f"there is no column {name!r} ({argument}).{hint} Columns: {listed}.")


def _plain(column: Any) -> Any:
    """A column without dictionary encoding and with one kind of string."""
    encoded = pa.types.is_dictionary(column.type)
    kind = column.type.value_type if encoded else column.type
    plain = pa.large_string() if _is_text(kind) else kind
    if not encoded:
        return column.cast(plain)
    chunks = [chunk.dictionary.cast(plain).take(chunk.indices) for chunk in column.chunks]
    return pa.chunked_array(chunks, type=plain)


def _is_text(kind: Any) -> bool:
    return str(kind) in ("string", "large_string", "string_view")


def _is_number(kind: Any) -> bool:
    kinds = ("integer", "floating", "boolean", "decimal", "null")
    return any(getattr(pa.types, f"is_{name}")(kind) for name in kinds)


def _numbers(table: Any, name: str, remedy: str = "") -> Array:
    """A column as NumPy numbers, without a copy where there are no nulls; null becomes NaN."""
    column = _plain(table.column(name))
    if not _is_number(column.type):
        value, at = f"type {column.type}", ""
        if _is_text(column.type):
            bad = pc.invert(pc.fill_null(pc.match_substring_regex(column, NUMBER), True))
            row = max(int(pc.index(bad, True).as_py()), 0)
            value, at = f"{column[row].as_py()!r}", f"row {row}"
        raise invalid(f"column {name!r}", "must hold numbers", value, at=at, remedy=remedy)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        column = column.cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy())


def _matrix(table: Any, names: Sequence[str]) -> npt.NDArray[np.float32]:
    """The features, filled block by block of rows so that the writes stay in the processor's cache."""
    remedy = "Encode it as numbers first or leave it out with features=[...]."
    columns = [_numbers(table, name, remedy) for name in names]
    X = np.empty((table.num_rows, len(names)), dtype=np.float32)
    for start in range(0, len(X), BLOCK_ROWS):
        block = X[start : start + BLOCK_ROWS]
        for j, column in enumerate(columns):
            try:
                with np.errstate(over="raise"):
                    block[:, j] = column[start : start + BLOCK_ROWS]
            except FloatingPointError:
                wide = np.abs(np.nan_to_num(column[start : start + BLOCK_ROWS], posinf=0, neginf=0))
                row = int(np.argmax(wide > np.finfo(np.float32).max))
                value, at = column[start + row], f"row {start + row}"
                name, rule = f"column {names[j]!r}", "must fit into float32"
                raise invalid(name, rule, value, at=at, remedy="Rescale it.") from None
    return X


def _refuse_null(column: Any, name: str, what: str) -> None:
    if column.null_count:
        row = int(pc.index(column.is_null(), True).as_py())
        subject, remedy = f"{what} (column {name!r})", "Drop such rows first."
        raise invalid(subject, "must be present", "null", at=f"row {row}", remedy=remedy)


def _ids(table: Any, name: str) -> Array:
    column = _plain(table.column(name))
    _refuse_null(column, name, "query ids")
    if pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
        return np.asarray(column.to_numpy())
    if not _is_text(column.type):
        subject, rule = f"query ids (column {name!r})", "must be whole numbers or strings"
        raise invalid(subject, rule, f"type {column.type}", remedy="Convert it first.")
    coded = pa.chunked_array(column.chunks, type=column.type).combine_chunks().dictionary_encode()
    ids: Array = np.asarray(coded.dictionary.to_pylist(), dtype=str)[coded.indices.to_numpy()]
    return ids


def _strings(table: Any, name: str) -> Array:
    column = _plain(table.column(name))
    _refuse_null(column, name, "document ids")
    try:
        return np.asarray(column.cast(pa.large_string()).to_pylist(), dtype=str)
    except pa.ArrowException as error:
        subject = f"document ids (column {name!r})"
        raise invalid(subject, "must be strings or numbers", _short(error)) from error


def _to_table(data: RankingData) -> Any:
    X = data.X if isinstance(data.X, np.ndarray) else data.X.toarray()
    names = data.feature_names or tuple(f"feature_{j + 1}" for j in range(data.n_features))
    columns: dict[str, Any] = {"label": pa.array(data.y), "qid": _qid_column(data)}
    optional = (data.gains, data.doc_ids, data.weights, data.positions)
    for name, values in zip(OPTIONAL.values(), optional, strict=True):
        if values is not None:
            columns[name] = pa.array(values)
    clash = next((name for name in names if name in columns), None)
    if clash is not None:
        raise invalid("feature_names", "must differ from the other columns", clash, remedy="Rename it first.")
    features = [pa.array(np.ascontiguousarray(X[:, j])) for j in range(data.n_features)]
    return pa.table([*columns.values(), *features], names=[*columns, *names])


def _qid_column(data: RankingData) -> Any:
    if data.query_ids.dtype.kind not in "US":
        return pa.array(data.qid)
    code = np.repeat(np.arange(data.n_queries, dtype=np.int32), data.lengths)
    return pa.DictionaryArray.from_arrays(pa.array(code), pa.array(data.query_ids)).cast(pa.string())


def _from_file(table: Any, file: Path, label: str, qid: str, columns: dict[str, Any]) -> RankingData:
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


def _first_lines(file: Path, delimiter: str) -> tuple[list[str], list[str]]:
    """The header's names and the raw fields (quotes kept) of the first row."""
    try:
        with pa.input_stream(str(file)) as stream:
            start = stream.read(1 << 20).decode("utf-8", errors="replace")
    except (pa.ArrowException, OSError) as error:
        raise BadFileError(f"{str(file)!r} cannot be unpacked: {_short(error)}.", str(file)) from error
    cut = re.compile(rf'(?:^|{re.escape(delimiter)})("(?:[^"]|"")*"|[^{re.escape(delimiter)}]*)')
    lines = [line for line in start.removeprefix("\ufeff").splitlines() if line.strip()][:2]
    if not lines:
        raise BadFileError(f"{str(file)!r} must have a header line; it is empty.", str(file))
    fields = [[match.group(1) for match in cut.finditer(line)] for line in lines]
    header = [name.strip('"').replace('""', '"') for name in fields[0]]
    return header, fields[1] if len(fields) > 1 else []


def _short(error: BaseException) -> str:
    return str(error).split("\n", 1)[0].rstrip(".")[:300]
