r"""LETOR and SVMlight files in and out.

The grammar, on bytes; ``blank`` is a space or a tab:

    file     = [UTF-8 mark] { line end }        end = LF, or CR LF; the last one may be missing
    line     = { blank } [ row ] [ "#" comment ]
    row      = label [ blanks "qid:" id ] { blanks index ":" value } { blank }
    label    = number, whole, 0 to 65,535 ("2", "2.0" and "+2e0" are the same grade)
    id       = 1 to 1,024 bytes of UTF-8 without blank, "#" or control characters
    index    = digits, at most 2,147,483,646; in any order, but once in a row
    value    = number that float32 can hold, or "nan" in any case, with or without sign
    number   = [sign] digits [ "." [digits] ] [ exponent ]  or  [sign] "." digits [ exponent ]
    exponent = ("e" or "E") [sign] digits
    comment  = { blank } [ "docid" { blank } "=" { blank } ] [ doc id ] [ blank anything ]

- A value becomes ``np.float32(float(text))``; a feature that a row does not name is 0; nan means missing.
- Lines without a row (blank, or only a comment) are skipped.
- Feature indices count from 0 if a 0 occurs anywhere in the files, else from 1; ``zero_based`` forces it.
- The document id is what follows ``docid =``, else the first word of the comment; rows without one get "".
  Other words of the comment are not kept.
- Query ids are int64 if every id is a whole number in its usual spelling, else all are str, so that "07" and
  "7" stay two queries. Rows with the same id belong to one query, wherever they stand and in whichever of
  several files; queries come in the order in which they first appear, rows keep their order within a query,
  and ``row_ids`` count the rows through all files.
- Either all rows name their query or none. If none does, ``FILE.query`` (documents per query, one number a
  line, as LightGBM has it) must lie beside the file; queries are then numbered from 0 on, through all files.
- ``FILE.weight`` and ``FILE.position`` (one number a row) are read when they are there. Positions that count
  from 0, as LightGBM's do, are raised by 1. For ``a.txt.gz``, ``a.txt.gz.weight`` and then ``a.txt.weight``
  are looked for.
"""

import contextlib
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from cleanrank.data import cache as cached
from cleanrank.data._letor.floats import put_digits, put_float
from cleanrank.data._letor.kernels import MAX_GRADE, MAX_ID
from cleanrank.data._letor.reader import crew
from cleanrank.data.files import existing_file, written_whole
from cleanrank.errors import BadFileError, error_text, invalid
from cleanrank.jit import kernel
from cleanrank.ragged import query_of_row
from cleanrank.types import Array, IntArray, Progress, RankingData
from cleanrank.validation import check_n_jobs, is_integer

AnyPath: TypeAlias = str | os.PathLike[str]
SIDES = ("query", "weight", "position")
COMPRESSED = (".gz", ".xz", ".zst")
NUMBER = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def read_letor(
    path: AnyPath | Sequence[AnyPath],
    *,
    dense: bool | None = None,
    cache: bool = True,
    n_jobs: int | None = None,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    feature_names: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> RankingData:
    r"""Reads one LETOR/SVMlight file, or several as one data set; plain, gzip, xz or zstd.

    Args:
        path: a file, or several whose rows follow each other.
        dense: True for a dense X, False for CSR; None takes dense when 30 % of the values are not zero.
        cache: whether to keep the parsed arrays in ``cache_folder()`` and to use those kept by an earlier
            read of the same files. From there, X is mapped, not loaded.
        n_jobs: threads; None or -1 for one per core. The result is the same for any number.
        n_features: columns of X; None takes the highest index that occurs.
        zero_based: whether feature indices count from 0; "auto" looks whether a 0 occurs.
        feature_names: one per column.
        progress: called with (bytes parsed, bytes in all); starts over when a second pass is needed.

    Raises:
        BadFileError: a line breaks the grammar above; ``path`` and ``line`` say where.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "a.txt"
    ...     _ = file.write_text("2 qid:7 1:0.5 3:1 # docid = GX-1\n0 qid:7 1:0.25 2:3 # docid = GX-2\n")
    ...     data = read_letor(file, cache=False)
    >>> data
    RankingData(1 queries, 2 documents, 3 features (dense), grades {0: 1, 2: 1})
    >>> data.X.tolist(), data.doc_ids.tolist()
    ([[0.5, 0.0, 1.0], [0.25, 3.0, 0.0]], ['GX-1', 'GX-2'])
    """
    listed: Any = [path] if isinstance(path, str | os.PathLike) else path
    if not isinstance(listed, Iterable) or isinstance(listed, bytes):
        raise invalid("path", "must be a path or a list of paths", repr(path))
    paths = [existing_file(each) for each in listed]
    if not paths:
        raise invalid("paths", "must name at least one file", "none")
    _check_options(dense, n_features, zero_based, n_jobs)
    sides = [{kind: side_file(each, kind) for kind in SIDES} for each in paths]
    files = [*paths, *(side for each in sides for side in each.values() if side is not None)]
    options = {"dense": dense, "n_features": n_features, "zero_based": zero_based}
    entry = cached.Entry.of(files, options) if cache else None
    columns = None if entry is None else cached.load(entry)
    if columns is None:
        columns = _parse(paths, sides, dense, n_features, zero_based, n_jobs, progress)
        if entry is not None:
            cached.store(entry, columns)
    elif progress is not None:
        progress(1, 1)
    names = None if feature_names is None else tuple(feature_names)
    return RankingData(**columns, feature_names=names)


def _check_options(
    dense: bool | None, n_features: int | None, zero_based: bool | str, n_jobs: int | None
) -> None:
    if dense not in (True, False, None):
        raise invalid("dense", "must be True, False or None", repr(dense))
    if zero_based not in (True, False, "auto"):
        raise invalid("zero_based", 'must be True, False or "auto"', repr(zero_based))
    if n_features is not None and not (is_integer(n_features) and 0 < n_features < 2**31):
        raise invalid("n_features", "must be a positive whole number below 2^31", repr(n_features))
    check_n_jobs(n_jobs)


def _parse(
    paths: Sequence[Path],
    sides: Sequence[Mapping[str, Path | None]],
    dense: bool | None,
    n_features: int | None,
    zero_based: bool | str,
    n_jobs: int | None,
    progress: Progress | None,
) -> dict[str, Any]:
    """The columns of RankingData; the compiled parser is imported here, so that a cached read stays light."""
    from cleanrank.data import files
    from cleanrank.data._letor import reader

    opened = [files.open_texts(path) for path in paths]
    expects_qid = _names_queries(opened, sides)
    wish = reader.Wish(dense, n_features, zero_based, expects_qid)
    flat = list(itertools.chain.from_iterable(opened))
    parsed = reader.parse_texts(flat, wish, n_jobs=n_jobs, progress=progress)
    n = len(parsed.y)
    sizes = None if expects_qid else _joined(sides, "query", n)
    columns: dict[str, Any] = reader.grouped(parsed, sizes)
    for kind, name in (("weight", "weights"), ("position", "positions")):
        values = _joined(sides, kind, n)
        columns[name] = None if values is None else values[columns["row_ids"]]
    return columns


def _names_queries(opened: Sequence[Sequence[Any]], sides: Sequence[Mapping[str, Path | None]]) -> bool:
    """Whether rows name their query, going by the first row of each file."""
    found = []
    for texts, side in zip(opened, sides, strict=True):
        line, row = next(((t, r) for t in texts for r in [_first_row(t)] if r is not None), (texts[0], None))
        if row is None:
            continue
        words = re.split(rb"[ \t]+", line.raw[row : line.line_end(row)].split(b"#")[0].strip(b" \t\r"))
        names = len(words) > 1 and words[1].startswith(b"qid:")
        if not names and side["query"] is None:
            number = line.line_of(row)
            raise BadFileError(
                error_text(
                    "a row",
                    "must name its query as qid:ID after the label",
                    repr(b" ".join(words[:2]).decode("utf-8", "backslashreplace")[:60]),
                    at=f"line {number} of {line.path}",
                    remedy=f"Or put the number of documents per query, one a line, into {line.path}.query.",
                ),
                line.path,
                number,
            )
        found.append(names)
    if len(set(found)) > 1:
        raise invalid(
            "files", "must all name their queries or all leave them to .query files", "some of each"
        )
    return all(found)


def _first_row(text: Any) -> int | None:
    at: int = text.start
    while at < text.end:
        end = text.line_end(at)
        line = text.raw[at:end].lstrip(b" \t")
        if not (line.startswith(b"#") or line in (b"", b"\r")):
            return at
        at = end + 1
    return None


def side_file(path: Path, kind: str) -> Path | None:
    """The side file ``PATH.kind``, or that of the name without its compression suffix, if there is one."""
    names = [path, path.with_suffix("")] if path.suffix in COMPRESSED else [path]
    tried = (name.with_name(f"{name.name}.{kind}") for name in names)
    return next((each for each in tried if each.is_file()), None)


def _joined(sides: Sequence[Mapping[str, Path | None]], kind: str, n: int) -> Array | None:
    """The values of a kind of side file, through all files; None if no file has one."""
    found = [side[kind] for side in sides]
    present = [path for path in found if path is not None]
    if not present:
        return None
    if len(present) < len(found):
        raise invalid(
            f".{kind} files", "must lie beside every file or none", f"{len(present)} of {len(found)}"
        )
    values = np.concatenate([_numbers(path, kind) for path in present])
    held = int(values.sum()) if kind == "query" else len(values)
    if held != n:
        rule = (
            f"must sum to the {n} rows" if kind == "query" else f"must have a line for each of the {n} rows"
        )
        raise BadFileError(error_text(" and ".join(map(str, present)), rule, held), str(present[0]))
    if kind == "position" and (values == 0).any():
        values = values + 1
    return values


def _numbers(path: Path, kind: str) -> Array:
    """One number a line; blank lines are skipped."""
    whole = kind != "weight"
    least = 1 if kind == "query" else 0
    rule = f"must be a {'whole ' if whole else ''}number >= {least}"
    found = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        text = line.strip(b" \t\r")
        if not text:
            continue
        value = float(text) if NUMBER.fullmatch(text) else -1.0
        if not least <= value < (2**31 if whole else 3.4e38) or (whole and value != int(value)):
            shown = repr(text[:60].decode("utf-8", "backslashreplace"))
            words = error_text(f"a {kind}", rule, shown, at=f"line {number} of {path}")
            raise BadFileError(words, str(path), number)
        found.append(value)
    return np.array(found, dtype=np.float64).astype(np.int64 if whole else np.float32)


def write_letor(data: RankingData, path: AnyPath, *, n_jobs: int | None = None) -> Path:
    """Writes a LETOR file that reads back with the same float32 values, query ids and document ids.

    Rows are written in the order of ``data`` (query by query), not of ``row_ids``; feature indices count
    from 1; every value of a dense X is written, of a sparse one the stored values. Numbers have the fewest
    digits that read back the same. A name ending in ``.gz``, ``.xz`` or ``.zst`` compresses. Weights and
    positions go to ``PATH.weight`` and ``PATH.position``. Feature names have no place in the format and are
    left out; gains, infinite values and ids with blanks are refused. Query ids that are strings of digits
    read back as numbers.

    >>> import tempfile
    >>> from cleanrank.data.arrays import from_arrays
    >>> data = from_arrays([[0.1, 3.0], [1e-7, float("nan")]], [2, 0], qid=["a", "a"], doc_ids=["x", "y"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(write_letor(data, Path(folder) / "a.txt").read_text().strip())
    2 qid:a 1:0.1 2:3 #docid = x
    0 qid:a 1:1e-7 2:nan #docid = y
    """
    from cleanrank.data import files

    check_writable(data)
    target = Path(path)
    columns = {"weight": data.weights, "position": data.positions}
    for kind, column in columns.items():
        beside = side_file(target, kind)
        if beside is not None and (column is None or beside.name != f"{target.name}.{kind}"):
            remedy = "Remove it, or write to another place."
            raise invalid(
                str(beside), "must not lie beside a file it does not belong to", "it", remedy=remedy
            )
    with contextlib.ExitStack() as stack:
        part = stack.enter_context(written_whole(target))
        for kind, column in columns.items():
            if column is not None:
                side = stack.enter_context(written_whole(target.with_name(f"{target.name}.{kind}")))
                side.write_text("".join(f"{value!s}\n" for value in column))
        with files.open_packed(part, target.suffix) as out:
            for block in letor_blocks(data, n_jobs):
                out.write(block)
    return target


BLOCK_VALUES = 1 << 16
VALUE_ROOM = 40
"""Bytes for a blank, an index, a colon and a value: at most 1 + 10 + 1 + 24."""
UNFIT = re.compile(r"[\x00-\x20\x7f]")
QID, DOC = b" qid:", b" #docid = "


@kernel()
def put_bytes(out: Any, at: Any, text: Any) -> Any:
    """Copies bytes up to the first 0; returns the position after them."""
    for c in text:
        if c == 0:
            break
        out[at] = c
        at += 1
    return at


@kernel()
def put_rows(
    out: Array, y: Array, query: Array, qids: Array, docs: Array, words: Array, indptr: IntArray,
    indices: Array, values: Array,
) -> int:  # fmt: skip
    """Formats rows whose values lie at ``indptr``; ``words``: what stands before query and document ids."""
    at = 0
    for row in range(len(y)):
        at = put_digits(out, at, np.int64(y[row]), 1)
        at = put_bytes(out, at, words[0])
        at = put_bytes(out, at, qids[query[row]])
        for k in range(indptr[row], indptr[row + 1]):
            out[at] = 32
            at = put_digits(out, at + 1, np.int64(indices[k]) + 1, 1)
            out[at] = 58
            at = put_float(out, at + 1, values[k])
        if docs[row, 0] != 0:
            at = put_bytes(out, at, words[1])
            at = put_bytes(out, at, docs[row])
        out[at] = 10
        at += 1
    return at


def letor_blocks(data: RankingData, n_jobs: int | None) -> Iterator[memoryview]:
    """The text of all rows, in order, block by block."""
    qids = _id_bytes(data.query_ids, "query ids", "#")
    docs = np.zeros((data.n_docs, 1), np.uint8)
    if data.doc_ids is not None:
        docs = _id_bytes(data.doc_ids, "document ids", "")
    query = query_of_row(data.indptr)
    words = np.zeros((2, 16), np.uint8)
    words[0, : len(QID)], words[1, : len(DOC)] = list(QID), list(DOC)

    row_room = qids.shape[1] + docs.shape[1] + 64

    def block(rows: slice) -> memoryview:
        indptr, indices, values = _cells(data, rows)
        infinite = np.isinf(values)
        if infinite.any():
            row = rows.start + int(np.searchsorted(indptr, np.argmax(infinite), side="right")) - 1
            raise invalid("X", "must be finite or nan to be written", "inf", at=data.place(row))
        room = len(values) * VALUE_ROOM + (len(indptr) - 1) * row_room
        out = np.empty(room, np.uint8)
        size = put_rows(
            out, data.y[rows], query[rows], qids, docs[rows], words, indptr, indices, values
        )  # fmt: skip
        return out[:size].data

    step = max(1, BLOCK_VALUES // max(1, data.n_features if isinstance(data.X, np.ndarray) else 64))
    with crew(n_jobs) as work:
        yield from work(block, [slice(k, min(k + step, data.n_docs)) for k in range(0, data.n_docs, step)])


def check_writable(data: RankingData) -> None:
    """Refuses what the format cannot say."""
    if data.n_docs == 0:
        raise invalid("data", "must hold at least one row to be written", "none")
    if data.gains is not None:
        remedy = "Write Parquet, or drop them: dataclasses.replace(data, gains=None)."
        raise invalid("gains", "cannot be written to a LETOR file", "gains", remedy=remedy)
    if data.y.max() > MAX_GRADE:
        raise invalid("labels", f"must be grades up to {MAX_GRADE} to be written", data.y.max())
    if (data.lengths == 0).any():
        remedy = "Leave it out: data.select_queries(data.lengths > 0)."
        empty = str(data.query_ids[np.argmin(data.lengths)])
        raise invalid("queries", "must have rows to be written", f"none in query {empty!r}", remedy=remedy)
    if data.positions is not None and (data.positions < 1).any():
        raise invalid("positions", "must count from 1 to be written", int(data.positions.min()))


def _cells(data: RankingData, rows: slice) -> tuple[IntArray, Array, Array]:
    """(indptr, indices, values) of a block: all cells of a dense X, the stored ones of a sparse one.

    The first row of a sparse X names its last column too, so that the width comes back.
    """
    if isinstance(data.X, np.ndarray):
        n, width = rows.stop - rows.start, data.n_features
        indices = np.tile(np.arange(width, dtype=np.int32), n)
        return np.arange(n + 1) * width, indices, np.ascontiguousarray(data.X[rows]).reshape(-1)
    X = data.X
    first, last = X.indptr[rows.start], X.indptr[rows.stop]
    indptr = (X.indptr[rows.start : rows.stop + 1] - first).astype(np.int64)
    indices = X.indices[first:last].astype(np.int32)
    values = X.data[first:last]
    if rows.start == 0 and data.n_features and data.n_features - 1 not in indices[: indptr[1]]:
        indices = np.insert(indices, indptr[1], data.n_features - 1)
        values = np.insert(values, indptr[1], np.float32(0))
        indptr[1:] += 1
    return indptr, indices, np.ascontiguousarray(values)


def _id_bytes(ids: Array, name: str, also: str) -> Array:
    """Ids as UTF-8, one row of bytes each, filled up with 0."""
    if ids.dtype.kind not in "U":
        ids = ids.astype(str)
    unfit = re.compile(f"{UNFIT.pattern}|{also}") if also else UNFIT
    wrong = next((i for i in ids.tolist() if unfit.search(i) or (also and not i)), None)
    if wrong is not None:
        rule = "must have no blanks or control characters" + (
            f" or {also!r}, and not be empty" if also else ""
        )
        raise invalid(name, f"{rule} to be written", repr(wrong))
    try:
        encoded = np.char.encode(ids, "utf-8")
    except UnicodeEncodeError as error:
        raise invalid(name, "must be valid Unicode to be written", repr(error.object)) from error
    if encoded.dtype.itemsize > MAX_ID:
        raise invalid(name, f"must have at most {MAX_ID} bytes to be written", encoded.dtype.itemsize)
    width = max(encoded.dtype.itemsize, 1)
    return np.ascontiguousarray(encoded).view(np.uint8).reshape(len(ids), width)
