"""Arrow tables of frames of any kind, and of Parquet and Arrow files."""

import contextlib
import difflib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import narwhals as nw
import pyarrow as pa
import pyarrow.parquet

from cleanrank.errors import BadFileError, UnknownNameError, invalid


def arrow_table(df: Any, names: Sequence[str] = ()) -> Any:
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
            raise invalid("every column", rule, short_text(error), remedy=remedy) from error
    frame = _hugging_face(df)
    if frame is not None:
        return frame
    known = nw.from_native(df, pass_through=True)
    if isinstance(known, nw.LazyFrame):
        known = known.collect("pyarrow")
    if isinstance(known, nw.DataFrame):
        return known.to_arrow()
    if hasattr(df, "__arrow_c_stream__") or isinstance(df, pa.RecordBatch | pa.RecordBatchReader):
        # A stream may hold a single column, which is no table.
        with contextlib.suppress(pa.ArrowException, TypeError, ValueError):
            return pa.table(df) if not isinstance(df, pa.RecordBatchReader) else df.read_all()
    rule = "must be a table of pandas, polars, pyarrow or DuckDB or have the Arrow C stream interface"
    raise invalid("a frame", rule, type(df).__name__, remedy="Arrays go into from_arrays.")


def _hugging_face(df: Any) -> Any:
    """The Arrow table of a data set of Hugging Face's datasets, with its selection and order; else None."""
    if type(df).__module__.partition(".")[0] != "datasets" or not hasattr(df, "with_format"):
        return None
    if isinstance(df, Mapping):
        rule = "must be one split of the data set"
        raise invalid("a frame", rule, ", ".join(map(str, df)), remedy="As in dataset['train'].")
    return df.with_format("arrow")[:]


def existing_column(names: Sequence[str], name: str, argument: str) -> str:
    """Returns ``name`` if there is such a column; else raises with the closest and the columns there are."""
    if name in names:
        return name
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    listed = ", ".join(names[:20]) + (f", ... ({len(names)} in all)" if len(names) > 20 else "")
    raise UnknownNameError(f"there is no column {name!r} ({argument}).{hint} Columns: {listed}.")


def read_arrow_file(file: Path) -> Any:
    """The table of a Parquet file or, where it ends in .arrow, of a stream of Arrow."""
    is_stream = file.suffix == ".arrow"
    try:
        if is_stream:
            with pa.memory_map(str(file)) as source:
                table = pa.ipc.open_stream(source).read_all()
        else:
            table = pyarrow.parquet.read_table(file, partitioning=None)
        table.validate(full=True)
        _ = table.column_names  # whose text may be broken too
        return table
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        kind = "Arrow" if is_stream else "Parquet"
        message = f"{str(file)!r} cannot be read as {kind}: {short_text(error)}."
        raise BadFileError(message, str(file)) from error


def short_text(error: BaseException) -> str:
    """The first line of what another library said, without its full stop."""
    return str(error).split("\n", 1)[0].rstrip(".")[:300]
