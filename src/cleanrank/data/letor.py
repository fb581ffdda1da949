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
  The rest of the comments (4,096 bytes each) is carried along as the column "comment" of ``extra``.
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
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from cleanrank.data import cache as cached
from cleanrank.data.files import PACKINGS, existing_file, open_packed, open_texts, written_whole
from cleanrank.data.inputs import check_data
from cleanrank.errors import BadFileError, error_text, invalid
from cleanrank.types import Array, Progress, RankingData
from cleanrank.validation import check_integer, check_n_jobs, check_path

AnyPath: TypeAlias = str | os.PathLike[str]
COMMENT = "comment"
SIDES = ("query", "weight", "position")
NO_ROWS = re.compile(rb"(?:[ \t]*(?:#[^\n]*|\r)?\n)*")
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
    r"""Reads one LETOR/SVMlight file, or several as one data set; plain or packed (gzip, bz2, xz, zstd).

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

    Returns:
        The rows, grouped by query; ``row_ids`` are their places in the input.

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
    several: Any = [path] if isinstance(path, str | os.PathLike) else path
    if not isinstance(several, Iterable) or isinstance(several, bytes):
        raise invalid("path", "must be a path or a list of paths", repr(path))
    paths = [existing_file(each) for each in several]
    if not paths:
        raise invalid("paths", "must name at least one file", "none")
    if dense not in (True, False, None):
        raise invalid("dense", "must be True, False or None", repr(dense))
    if zero_based not in (True, False, "auto"):
        raise invalid("zero_based", 'must be True, False or "auto"', repr(zero_based))
    if n_features is not None:
        check_integer("n_features", n_features, least=1, most=2**31 - 1)
    check_n_jobs(n_jobs)
    sides = side_files(paths)
    files = [*paths, *(side for each in sides for side in each.values() if side is not None)]
    options = {"dense": dense, "n_features": n_features, "zero_based": zero_based}
    entry = cached.Entry.of(files, options) if cache else None
    columns = None if entry is None else cached.load(entry)
    if columns is None:
        columns = _parse(paths, sides, options, n_jobs, progress)
        if entry is not None:
            cached.store(entry, columns)
    elif progress is not None:
        progress(1, 1)
    comments = _comments(columns.pop("comment_bytes", None), columns.pop("comment_ends", None))
    names = None if feature_names is None else tuple(feature_names)
    return RankingData(**columns, feature_names=names, extra=comments)


def _comments(raw: Array | None, ends: Array | None) -> dict[str, Array] | None:
    """The rest of the comments, from their bytes one after the other, which is how they are cached."""
    if raw is None or ends is None:
        return None
    text = raw.tobytes()
    cuts = itertools.pairwise([0, *ends.tolist()])
    return {COMMENT: np.array([text[start:end].decode() for start, end in cuts], dtype=object)}


def _parse(
    paths: Sequence[Path],
    sides: Sequence[Mapping[str, Path | None]],
    options: Mapping[str, Any],
    n_jobs: int | None,
    progress: Progress | None,
) -> dict[str, Any]:
    """The columns of RankingData; the compiled parser is imported here, so that a cached read stays light."""
    from cleanrank.data import _letor_reader as reader

    texts = [open_texts(path) for path in paths]
    expects_qid = names_queries(texts, sides)
    read_options = reader.ReadOptions(expects_qid=expects_qid, **options)
    flat = list(itertools.chain.from_iterable(texts))
    parsed = reader.parse_texts(flat, read_options, n_jobs=n_jobs, progress=progress)
    n = len(parsed.y)
    sizes = None if expects_qid else joined(sides, "query", n)
    columns: dict[str, Any] = reader.grouped(parsed, sizes)
    for name, values in side_columns(sides, n).items():
        columns[name] = values[columns["row_ids"]]
    return columns


def side_columns(sides: Sequence[Mapping[str, Path | None]], n: int) -> dict[str, Array]:
    """Weights and positions of n rows, where there are such files, in the order of the files."""
    found = {"weights": joined(sides, "weight", n), "positions": joined(sides, "position", n)}
    return {name: values for name, values in found.items() if values is not None}


def names_queries(texts: Sequence[Sequence[Any]], sides: Sequence[Mapping[str, Path | None]]) -> bool:
    """Whether rows name their query, going by the first row of each file."""
    named = []
    for parts, side in zip(texts, sides, strict=True):
        text = next((text for text in parts if _first_row(text) < text.end), None)
        if text is None:
            continue
        row = _first_row(text)
        words = re.split(rb"[ \t]+", text.raw[row : text.line_end(row)].split(b"#")[0].strip(b" \t\r"))
        named.append(len(words) > 1 and words[1].startswith(b"qid:"))
        if not named[-1] and side["query"] is None:
            number = text.line_of(row)
            rule = "must name its query as qid:ID after the label"
            start = repr(b" ".join(words[:2]).decode("utf-8", "backslashreplace")[:60])
            remedy = f"Or put the number of documents per query, one a line, into {text.path}.query."
            at = f"line {number} of {text.path}"
            raise BadFileError(error_text("a row", rule, start, at=at, remedy=remedy), text.path, number)
    if len(set(named)) > 1:
        rule = "must all name their queries or all leave them to .query files"
        raise invalid("files", rule, "some of each")
    return all(named)


def _first_row(text: Any) -> int:
    """Where the first row starts; the end of the text if it has none."""
    no_rows = NO_ROWS.match(text.raw, text.start, text.end)
    return text.start if no_rows is None else no_rows.end()


def side_files(paths: Sequence[Path]) -> list[dict[str, Path | None]]:
    """The side files of each of several files, by kind."""
    return [{kind: side_file(each, kind) for kind in SIDES} for each in paths]


def side_file(path: Path, kind: str) -> Path | None:
    """The side file ``PATH.kind``, or that of the name without its compression suffix, if there is one."""
    names = [path, path.with_suffix("")] if path.suffix in PACKINGS else [path]
    tried = (name.with_name(f"{name.name}.{kind}") for name in names)
    return next((each for each in tried if each.is_file()), None)


def joined(sides: Sequence[Mapping[str, Path | None]], kind: str, n: int) -> Array | None:
    """The values of a kind of side file, through all files; None if no file has one."""
    present = [side[kind] for side in sides if side[kind] is not None]
    if not present:
        return None
    if len(present) < len(sides):
        rule = "must lie beside every file or none"
        raise invalid(f".{kind} files", rule, f"{len(present)} of {len(sides)}")
    values = np.concatenate([_numbers(path, kind) for path in present if path is not None])
    rows = int(values.sum()) if kind == "query" else len(values)
    if rows != n:
        rule = f"must {'sum to' if kind == 'query' else 'have a line for each of'} the {n} rows"
        raise BadFileError(error_text(" and ".join(map(str, present)), rule, rows), str(present[0]))
    if kind == "position" and (values == 0).any():
        values = values + 1
    return values


def _numbers(path: Path, kind: str) -> Array:
    """One number a line; blank lines are skipped."""
    whole = kind != "weight"
    least = 1 if kind == "query" else 0
    rule = f"must be a {'whole ' if whole else ''}number >= {least}"
    values = []
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        text = line.strip(b" \t\r")
        if not text:
            continue
        value = float(text) if NUMBER.fullmatch(text) else -1.0
        if not least <= value < (2**31 if whole else 3.4e38) or (whole and value != int(value)):
            start = repr(text[:60].decode("utf-8", "backslashreplace"))
            message = error_text(f"a {kind}", rule, start, at=f"line {number} of {path}")
            raise BadFileError(message, str(path), number)
        values.append(value)
    return np.array(values, dtype=np.float64).astype(np.int64 if whole else np.float32)


def write_letor(data: RankingData, path: AnyPath, *, n_jobs: int | None = None) -> Path:
    """Writes a LETOR file that reads back with the same float32 values, query ids and document ids.

    Rows are written in the order of ``data`` (query by query), not of ``row_ids``; feature indices count
    from 1; every value of a dense X is written, of a sparse one the stored values. Numbers have the fewest
    digits that read back the same. A name that ends in .gz, .bz2, .xz or .zst compresses. Weights and
    positions go to ``PATH.weight`` and ``PATH.position``. The column "comment" of ``extra`` follows the
    document id; other extra columns, feature names and categories have no place in the format. Gains,
    infinite values and ids with blanks raise an error. Query ids that are strings of digits read back as
    numbers.

    Returns:
        The path of the file.

    >>> import tempfile
    >>> from cleanrank.ragged import from_arrays
    >>> data = from_arrays([[0.1, 3.0], [1e-7, float("nan")]], [2, 0], qid=["a", "a"], doc_ids=["x", "y"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(write_letor(data, Path(folder) / "a.txt").read_text().strip())
    2 qid:a 1:0.1 2:3 #docid = x
    0 qid:a 1:1e-7 2:nan #docid = y
    """
    from cleanrank.data._letor_writer import check_writable, letor_blocks

    check_writable(check_data(data))
    target = check_path(path)
    columns = {"weight": data.weights, "position": data.positions}
    for kind, column in columns.items():
        beside = side_file(target, kind)
        if beside is not None and (column is None or beside.name != f"{target.name}.{kind}"):
            rule, remedy = f"would be read as one of {target}", "Remove it, or write to another place."
            raise invalid(f"the side file {str(beside)!r}", rule, remedy=remedy)
    with contextlib.ExitStack() as stack:
        part = stack.enter_context(written_whole(target))
        for kind, column in columns.items():
            if column is not None:
                side = stack.enter_context(written_whole(target.with_name(f"{target.name}.{kind}")))
                side.write_text("".join(f"{value!s}\n" for value in column))
        with open_packed(part, target.suffix) as out:
            for block in letor_blocks(data, n_jobs):
                out.write(block)
    return target
