"""Files and frames of events, in pieces; which columns of a file are the usual ones."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.data.files import existing_file
from cleanrank.errors import BadFileError, CleanrankError, invalid
from cleanrank.types import Array

PIECE = 1 << 20
BLOCK = 1 << 24
TIMES, BEHAVIOURS, CATEGORY = ("time", "timestamp"), ("behaviour", "behavior"), "category"
SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".pq")


def record_batches(
    source: Any, uses: Sequence[tuple[str, str]], names: Sequence[str] | None = None, delimiter: str = ","
) -> Iterator[Any]:
    """Record batches of the columns that are wanted.

    Args:
        source: a CSV or Parquet file, or a pandas, polars or pyarrow table.
        uses: (argument, name of the column) of every column that is wanted.
        names: the columns of a text file without a header.
        delimiter: between the columns of a text file.
    """
    import pyarrow as pa
    import pyarrow.parquet

    from cleanrank.data.arrow_tables import arrow_table, existing_column

    wanted = [name for _, name in uses]

    def check(there: Sequence[str]) -> None:
        for argument, name in uses:
            existing_column(there, name, argument)

    if not isinstance(source, str | os.PathLike):
        table = arrow_table(source, wanted)
        check(table.column_names)
        columns = {name: table.column(name) for name in wanted}
        views = {name: c.cast(pa.string()) for name, c in columns.items() if str(c.type) == "string_view"}
        yield from pa.table({**columns, **views}).to_batches(max_chunksize=PIECE)
        return
    file = existing_file(source)
    with _readable(file):
        if _is_parquet(file):
            # With a buffer the whole file would stay in memory until its last piece.
            parquet = pyarrow.parquet.ParquetFile(file, pre_buffer=False)
            check(parquet.schema_arrow.names)
            yield from parquet.iter_batches(PIECE, columns=wanted)
            return
        stream = _open_csv(file, names, delimiter)
        check(stream.schema.names)
        for batch in stream:
            yield batch.select(wanted)


def add_piece(blocks: list[Any], column: Any) -> None:
    """Adds a piece of a column; NumPy arrays are copied into large blocks, whose memory is freed for good.

    Thousands of small arrays would leave holes that stay with the process.
    """
    if not isinstance(column, np.ndarray):
        blocks.append(column)
        return
    begin = 0
    while begin < len(column):
        if not blocks or blocks[-1].array.dtype != column.dtype or blocks[-1].used == BLOCK:
            blocks.append(Block(np.empty(BLOCK, dtype=column.dtype)))
        block = blocks[-1]
        size = min(len(column) - begin, BLOCK - block.used)
        block.array[block.used : block.used + size] = column[begin : begin + size]
        block.used, begin = block.used + size, begin + size


def trimmed(blocks: list[Any]) -> list[Any]:
    """The pieces of a column: blocks as far as they are used."""
    return [each.array[: each.used] if isinstance(each, Block) else each for each in blocks]


@dataclass
class Block:
    """An array that is filled from the front; what is not used yet takes no memory."""

    array: Array
    used: int = 0


def is_log_file(data: str) -> bool:
    """Whether a text names a file of events and not a data set: there is one, or its ending says so.

    >>> is_log_file("log.csv.gz"), is_log_file("ml-100k")
    (True, False)
    """
    path = Path(data)
    return path.is_file() or bool(set(SUFFIXES) & {suffix.lower() for suffix in path.suffixes})


def usual_columns(
    path: str | os.PathLike[str], options: Mapping[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Options of ``read_events`` for a file whose columns have their usual names.

    These are user, item, time or timestamp, category, and behaviour, of which ``clicks`` names those that
    count. Fields of ``.tsv`` files are told apart by tabs.

    Args:
        path: a CSV or Parquet file.
        options: those of ``read_events`` that are given; they hold.

    Returns:
        All options, and the columns of the file that none of them names.
    """
    file = existing_file(path)
    tabs = {"delimiter": "\t"} if ".tsv" in file.suffixes else {}
    complete: dict[str, Any] = {"user": "user", "item": "item", **tabs, **options}
    there = complete.get("names") or _column_names(file, complete.get("delimiter", ","))
    if "time" not in complete:
        complete["time"] = next((name for name in TIMES if name in there), TIMES[0])
    if "item_fields" not in complete and CATEGORY in there:
        complete["item_fields"] = [CATEGORY]
    if "behaviour" not in complete and (does := [name for name in BEHAVIOURS if name in there]):
        complete["behaviour"] = does[0]
    if complete.get("behaviour") is not None and complete.get("clicks") is None:
        rule = f"must name the behaviours in column {complete['behaviour']!r} that are clicks"
        remedy = "As in clicks=pv; behaviour=null takes every event for a click."
        raise invalid("clicks=", rule, "none", remedy=remedy)
    used = {complete[role] for role in ("user", "item", "time", "behaviour") if role in complete}
    used |= {*complete.get("user_fields", ()), *complete.get("item_fields", ())}
    return complete, [name for name in there if name not in used]


def _column_names(file: Path, delimiter: str) -> list[str]:
    import pyarrow.parquet

    with _readable(file):
        if _is_parquet(file):
            return list(pyarrow.parquet.ParquetFile(file).schema_arrow.names)
        return list(_open_csv(file, None, delimiter).schema.names)


def _is_parquet(file: Path) -> bool:
    return bool({".parquet", ".pq"} & {suffix.lower() for suffix in file.suffixes})


def _open_csv(file: Path, names: Sequence[str] | None, delimiter: str) -> Any:
    import pyarrow.csv

    given = {"column_names": list(names)} if names is not None else {}
    return pyarrow.csv.open_csv(
        file,
        pyarrow.csv.ReadOptions(block_size=16 << 20, **given),
        pyarrow.csv.ParseOptions(delimiter=delimiter),
        pyarrow.csv.ConvertOptions(strings_can_be_null=True),
    )


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    """What Arrow says of a file that it cannot read, in our words."""
    import pyarrow as pa

    from cleanrank.data.arrow_tables import short_text

    try:
        yield
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        if isinstance(error, CleanrankError):
            raise
        message = f"{str(file)!r} cannot be read as a log of events: {short_text(error)}."
        raise BadFileError(message, str(file)) from error
