"""Frames: tables of pandas, polars, pyarrow, DuckDB and whatever else narwhals knows, lazy ones among them.

All of them go through an Arrow table, which pandas and polars hand over without copying numbers. A missing
feature becomes NaN; a missing label or query id is an error that names its row. Rows count from 0.
"""

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from cleanrank.data.arrow_tables import arrow_table, existing_column, short_text
from cleanrank.data.ratings import check_distribution, gains_of_distribution, to_grades
from cleanrank.errors import InvalidInputError, MissingExtraError, invalid
from cleanrank.ragged import from_arrays
from cleanrank.stored import as_array
from cleanrank.types import Array, FloatArray, IntArray, RankingData
from cleanrank.validation import one_of

BLOCK_ROWS = 4096
OPTIONAL = {"gains": "gain", "doc_id": "doc_id", "weight": "weight", "position": "position"}
KINDS = ("pandas", "polars", "arrow")
INDEX_NAMES = ("", "Unnamed: 0", "__index_level_0__")
FEATURE_REMEDY = "Convert it first, or leave it out with features=[...]: other columns are carried along."
NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"


def from_frame(
    df: Any,
    *,
    label: str = "label",
    qid: str = "qid",
    features: Sequence[str] | None = None,
    gains: str | None = None,
    doc_id: str | None = None,
    weight: str | None = None,
    position: str | None = None,
    ratings: Any = None,
    distribution: Sequence[str] | None = None,
) -> RankingData:
    """Ranking data from a table of pandas, polars, pyarrow, DuckDB or whatever else narwhals knows.

    Args:
        df: one row per document, in any order. Lazy frames and relations are collected into Arrow.
        label: the column of grades.
        qid: the column of query ids, whole numbers or strings.
        features: the columns of features; when not given, all columns of numbers and of categories that are
            not named otherwise, without a pandas index that was saved as a column.
        gains: the column of real-valued gains.
        doc_id: the column of document ids; ``doc_id`` if there is one and it is not named otherwise.
        weight: the column of row weights.
        position: the column of shown ranks (from 1).
        ratings: how the column of grades becomes grades where it holds ratings on another scale: a rule of
            ``cleanrank.data.ratings`` such as "levels" or cuts. The ratings become gains.
        distribution: columns with the share of every grade from 0, in order, instead of gains: the gain is
            the expected 2^grade - 1. Without a column of grades the likeliest one stands.

    Columns that are no features (text, dates) are carried along in ``extra``. A category becomes its code in
    X, and ``categories`` has its values; text that is named in ``features`` is taken as categories.

    Returns:
        The rows, grouped by query.

    >>> import pandas as pd
    >>> df = pd.DataFrame({"q": ["a", "b", "a"], "grade": [1, 0, 2], "bm25": [0.5, None, 2.0]})
    >>> data = from_frame(df, label="grade", qid="q")
    >>> data.query_ids.tolist(), data.y.tolist(), data.X[:, 0].tolist(), data.feature_names
    (['a', 'b'], [1, 2, 0], [0.5, 2.0, nan], ('bm25',))
    """
    for name, listed in (("features", features), ("distribution", distribution)):
        if isinstance(listed, str):
            raise invalid(name, "must be a list of columns", repr(listed), remedy=f"Give [{listed!r}].")
    if gains is not None and (distribution is not None or ratings is not None):
        raise invalid("gains=", "must not be given with ratings= or distribution=, which make gains")
    optional = {"gains": gains, "doc_id": doc_id, "weight": weight, "position": position}
    named = {"label": label, "qid": qid, **optional}
    roles = {role: str(name) for role, name in named.items() if name is not None}
    table = arrow_table(df, [*roles.values(), *(features or ()), *(distribution or ())])
    table, shares = _distribution(table, roles["label"], distribution)
    names = table.column_names
    if "doc_id" in names and "doc_id" not in roles and "doc_id" not in {*roles.values(), *(features or ())}:
        roles["doc_id"] = "doc_id"
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise invalid("columns", "must have different names", f"{twice!r} twice")
    for role, name in roles.items():
        existing_column(names, name, f"{role}=")

    def numbers(role: str) -> Array | None:
        return _numbers(table, roles[role]) if role in roles else None

    _refuse_null(table.column(roles["label"]), roles["label"], "labels")
    y, gain = _numbers(table, roles["label"], "Map the grades to 0, 1, 2, ... first."), numbers("gains")
    if ratings is not None:
        graded = to_grades(y, ratings)
        y, gain = graded.grades, graded.gains
    if shares is not None:
        gain = gains_of_distribution(shares)
    return from_arrays(
        y=y,
        qid=_ids(table, roles["qid"]),
        gains=gain,
        doc_ids=_strings(table, roles["doc_id"]) if "doc_id" in roles else None,
        weights=numbers("weight"),
        positions=numbers("position"),
        **feature_columns(table.drop_columns(list(set(roles.values()))), features),
    )


def _distribution(table: Any, label: str, names: Sequence[str] | None) -> tuple[Any, FloatArray | None]:
    """The table without the columns of a distribution, and with a column of grades; the shares."""
    if names is None:
        return table, None
    for name in names:
        existing_column(table.column_names, name, "distribution=")
    shares = np.column_stack([_numbers(table, name).astype(np.float64) for name in names])
    shares = check_distribution(shares, names)
    table = table.drop_columns(list(names))
    if label not in table.column_names:
        table = table.append_column(label, pa.array(np.argmax(shares, axis=1)))
    return table, shares


def feature_columns(df: Any, features: Sequence[str] | None = None) -> dict[str, Any]:
    """X, feature_names, extra and categories, as ``from_arrays`` takes them, of a frame of features."""
    table = arrow_table(df, features or ())
    names = table.column_names
    if features is None:
        index = next((name for name in names if name in INDEX_NAMES and _counts(table.column(name))), None)
        if index is not None:
            names = [name for name in names if name != index]
            words = f"the column {index!r} numbers the rows, as a saved pandas index does: it is left out"
            warnings.warn(f"{words}. Name it in features=[...] to use it.", stacklevel=3)
        used = [name for name in names if _is_feature(table.column(name), name)]
    else:
        used = [existing_column(names, str(name), "features=") for name in features]
    X, categories = _matrix(table, used)
    extra = {name: _objects(table.column(name)) for name in names if name not in used}
    return {"X": X, "feature_names": tuple(used), "extra": extra, "categories": categories}


def to_frame(
    data: RankingData,
    kind: str = "pandas",
    *,
    label: str = "label",
    qid: str = "qid",
    doc_id: str = "doc_id",
) -> Any:
    """One row per document: label, qid, gain, doc_id, weight, position (where there are), features, extra.

    Args:
        data: the data; rows come query by query.
        kind: "pandas", "polars" or "arrow".
        label: what to call the column of grades.
        qid: what to call the column of query ids.
        doc_id: what to call the column of document ids.

    >>> import cleanrank as cr
    >>> data = cr.from_arrays([[1.0], [2.0]], [0, 1], qid=[7, 7], feature_names=("bm25",))
    >>> to_frame(data, "arrow").column_names
    ['label', 'qid', 'bm25']
    """
    one_of("kind of frame", kind, KINDS)
    table = _to_table(data, label, qid, doc_id)
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


def changed_frame(df: Any, rows: IntArray, columns: Mapping[str, Array]) -> Any:
    """Some rows of a frame of pandas, polars or pyarrow, with other values in some columns; the same kind.

    Types of columns, and the index of pandas, stay.

    >>> import pandas as pd
    >>> changed_frame(pd.DataFrame({"y": [1, 0], "t": ["a", "b"]}, index=[7, 8]), [1], {"y": np.array([2])})
       y  t
    8  2  b
    """
    library = type(df).__module__.partition(".")[0]
    if library == "pandas":
        frame = df.iloc[rows].copy()
        for name, values in columns.items():
            frame[name] = values
            if name in df.columns and df[name].dtype.kind in "iufb":
                frame[name] = frame[name].astype(df[name].dtype)
        return frame
    if library == "polars":
        import polars

        types = {name: df.schema.get(name) for name in columns}
        series = (polars.Series(name, values) for name, values in columns.items())
        return df[rows].with_columns(s if types[s.name] is None else s.cast(types[s.name]) for s in series)
    table = arrow_table(df).take(pa.array(rows))
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        if place < 0:
            table = table.append_column(name, pa.array(values))
            continue
        kind = table.schema.field(place).type
        column = pa.array(values) if pa.types.is_dictionary(kind) else pa.array(values).cast(kind)
        table = table.set_column(place, name, column)
    return table


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
        raise _no_number(column, name, remedy)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.int8())
    elif not (pa.types.is_floating(column.type) or pa.types.is_integer(column.type)):
        column = column.cast(pa.float64(), safe=False)
    return np.asarray(column.to_numpy())


def _no_number(column: Any, name: str, remedy: str) -> InvalidInputError:
    value, at = f"type {column.type}", ""
    if _is_text(column.type):
        bad = pc.invert(pc.fill_null(pc.match_substring_regex(column.cast(pa.large_string()), NUMBER), True))
        row = max(int(pc.index(bad, True).as_py()), 0)
        value, at = f"{column[row].as_py()!r}", f"row {row}"
    return invalid(f"column {name!r}", "must hold numbers", value, at=at, remedy=remedy)


def _is_feature(column: Any, name: str) -> bool:
    """Whether a column holds numbers or categories; text that is mostly numbers is refused as an error."""
    if _is_text(column.type) and 0.5 < _share_of_numbers(column) < 1:
        raise _no_number(column, name, FEATURE_REMEDY)
    return _is_number(column.type) or pa.types.is_dictionary(column.type)


def _share_of_numbers(column: Any) -> float:
    """The share of the values of a column of text that are written like numbers; a few rows rule it out."""
    column = column.cast(pa.large_string())
    some = (
        column.take(np.linspace(0, len(column) - 1, 1000).astype(np.int64)) if len(column) > 1000 else column
    )
    for values in (some, column):
        is_number = pc.match_substring_regex(values, NUMBER)
        share = float(pc.mean(is_number).as_py() or 0.0)
        if not share:
            break
    return share


def _counts(column: Any) -> bool:
    """Whether a column holds whole numbers that differ from row to row, as an index does."""
    whole = pa.types.is_integer(column.type) and not column.null_count
    return bool(whole) and pc.count_distinct(column).as_py() == len(column)


def _objects(column: Any) -> Array:
    """A column that is carried along: dates and numbers as such, everything else as objects."""
    values = np.asarray(_plain(column).to_numpy())
    return values.astype(object) if values.dtype.kind in "US" else values


def _codes(column: Any) -> tuple[Array, tuple[Any, ...]]:
    """The codes of a column of categories, NaN where missing, and the categories."""
    coded = pa.chunked_array(column.unify_dictionaries().chunks, type=column.type).combine_chunks()
    values = coded.dictionary.to_pylist()
    kept = [value for value in values if value is not None]
    codes = np.asarray(coded.indices.to_numpy(zero_copy_only=False), dtype=np.float64)
    if len(kept) < len(values):
        new = np.array([np.nan if value is None else kept.index(value) for value in values])
        codes = np.where(np.isnan(codes), np.nan, new[np.nan_to_num(codes).astype(np.int64)])
    return codes, tuple(kept)


def _as_categories(column: Any) -> Any:
    """A column of text as categories in alphabetical order; a blank is a missing one."""
    text = _plain(column).combine_chunks()
    values = pa.array(sorted(value for value in pc.unique(text).to_pylist() if value), pa.large_string())
    return pa.chunked_array([pa.DictionaryArray.from_arrays(pc.index_in(text, values), values)])


def _matrix(table: Any, names: Sequence[str]) -> tuple[npt.NDArray[np.float32], dict[str, tuple[Any, ...]]]:
    """The features, filled block by block of rows so that the writes stay in the processor's cache."""
    columns, categories = [], {}
    for name in names:
        column = table.column(name)
        if _is_text(column.type) and not _share_of_numbers(column):
            column = _as_categories(column)
        if pa.types.is_dictionary(column.type):
            codes, categories[name] = _codes(column)
            columns.append(codes)
        else:
            columns.append(_numbers(table, name, FEATURE_REMEDY))
    X = np.empty((table.num_rows, len(names)), dtype=np.float32)
    for start in range(0, len(X), BLOCK_ROWS):
        block = X[start : start + BLOCK_ROWS]
        for j, column in enumerate(columns):
            if column.dtype == np.float32:
                block[:, j] = column[start : start + BLOCK_ROWS]
                continue
            try:
                with np.errstate(over="raise"):
                    block[:, j] = column[start : start + BLOCK_ROWS]
            except FloatingPointError:
                wide = np.abs(np.nan_to_num(column[start : start + BLOCK_ROWS], posinf=0, neginf=0))
                row = int(np.argmax(wide > np.finfo(np.float32).max))
                value, at = column[start + row], f"row {start + row}"
                name, rule = f"column {names[j]!r}", "must fit into float32"
                raise invalid(name, rule, value, at=at, remedy="Rescale it.") from None
        infinite = np.isinf(block)
        if infinite.any():
            row, j = np.argwhere(infinite)[0]
            name, remedy = f"column {names[j]!r}", "Replace it by a number, or by nan for missing."
            raise invalid(
                name, "must be finite or missing", block[row, j], at=f"row {start + row}", remedy=remedy
            )
    return X, categories


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
        raise invalid(subject, "must be strings or numbers", short_text(error)) from error


def _to_table(data: RankingData, label: str, qid: str, doc_id: str) -> Any:
    X = as_array(data.X)
    names = data.feature_names or tuple(f"feature_{j + 1}" for j in range(data.n_features))
    columns: dict[str, Any] = {label: pa.array(data.y), qid: _qid_column(data)}
    optional = (data.gains, data.doc_ids, data.weights, data.positions)
    for name, values in zip((OPTIONAL | {"doc_id": doc_id}).values(), optional, strict=True):
        if values is not None:
            columns[name] = pa.array(values)
    extra, categories = data.extra or {}, data.categories or {}
    clash = next((name for name in (*names, *extra) if name in columns), None)
    if clash is not None:
        subject = "names of features and extra columns"
        raise invalid(subject, "must differ from the other columns", repr(clash), remedy="Rename it first.")
    for j, name in enumerate(names):
        values = np.ascontiguousarray(X[:, j])
        columns[name] = pa.array(values)
        if name in categories:
            codes = pa.array(values, mask=np.isnan(values)).cast(pa.int32())
            columns[name] = pa.DictionaryArray.from_arrays(codes, pa.array(categories[name]))
    for name, values in extra.items():
        try:
            columns[name] = pa.array(values, from_pandas=True)
        except (pa.ArrowException, TypeError) as error:
            raise invalid(
                f"extra column {name!r}", "must hold values of one kind", short_text(error)
            ) from error
    return pa.table(columns)


def _qid_column(data: RankingData) -> Any:
    if data.query_ids.dtype.kind not in "US":
        return pa.array(data.qid)
    code = np.repeat(np.arange(data.n_queries, dtype=np.int32), data.lengths)
    return pa.DictionaryArray.from_arrays(pa.array(code), pa.array(data.query_ids)).cast(pa.string())
