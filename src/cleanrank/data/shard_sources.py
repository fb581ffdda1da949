"""Where a folder of shards comes from: pieces of whole queries, read one after the other.

A source yields pieces of about PIECE bytes of features and says after each where in the files the next one
begins, so that a conversion can go on there: bytes of a text, rows of a table.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.data.files import Text, existing_file, open_texts
from cleanrank.errors import BadFileError, invalid
from cleanrank.ragged import from_arrays
from cleanrank.stored import StoredFeatures
from cleanrank.types import Array, RankingData

PIECE = 1 << 27
TEXT_PIECE = 1 << 28
LEAST_TEXT = 1 << 16
MOST = 1 << 29  # bytes of the features of a piece of text
LEAST_ROWS = 1024


@dataclass(frozen=True)
class Piece:
    """Some whole queries, and where their source goes on; or the word that all must be read again.

    Attributes:
        data: the rows.
        after: where the next piece begins; None where a broken conversion cannot go on.
        done: how much of the source is read, and the whole of it.
        stored: the shard that holds just these features, where there is one.
        restart: whether the pieces so far are void, and come again.
    """

    data: Any
    after: Any
    done: tuple[int, int] = (0, 0)
    stored: Path | None = None
    restart: bool = False


@dataclass(frozen=True)
class Source:
    """Files and how pieces are read from them.

    Attributes:
        kind: what the files are.
        files: their paths.
        options: of reading them.
        pieces: place behind the last piece, None at first -> the pieces from there on.
        stored_as: the type of features that are stored already.
    """

    kind: str
    files: Sequence[str | Path]
    options: Mapping[str, Any]
    pieces: Callable[[Any], Iterator[Piece]]
    stored_as: str = "float32"

    def settings(self) -> dict[str, Any]:
        """What must be the same for a broken conversion to go on."""
        files = [(str(Path(file).absolute()), *_stamp(file)) for file in self.files]
        return {"kind": self.kind, "files": files, "options": dict(self.options)}


def _stamp(file: str | Path) -> tuple[int, int]:
    stat = os.stat(file)
    return stat.st_size, stat.st_mtime_ns


def of_data(data: RankingData) -> Source:
    """Data in memory, or from another folder of shards, whose files are taken as they are if all rows are."""

    def run(_: Any) -> Iterator[Piece]:
        files = data.X.whole_shards() if isinstance(data.X, StoredFeatures) else None
        if files is not None:
            cuts = np.searchsorted(data.indptr, [start for start, _ in files] + [data.n_docs]).tolist()
            for (_, file), first, last in zip(files, cuts[:-1], cuts[1:], strict=True):
                piece = data.query_range(first, last)
                yield Piece(piece, None, (int(data.indptr[last]), data.n_docs), file)
            return
        rows = max(LEAST_ROWS, PIECE // (4 * max(1, data.n_features)))
        for first, last in _ranges(data, rows):
            yield Piece(data.query_range(first, last), None, (int(data.indptr[last]), data.n_docs))

    stored_as = str(data.X.stored_as) if isinstance(data.X, StoredFeatures) else "float32"
    return Source("data", (), {}, run, stored_as)


def of_pieces(pieces: Iterable[RankingData]) -> Source:
    """Pieces of whole queries that come one by one."""

    def run(_: Any) -> Iterator[Piece]:
        for number, data in enumerate(pieces, start=1):
            yield Piece(data, None, (number, number))

    return Source("pieces", (), {}, run)


def _ranges(data: RankingData, rows: int) -> Iterator[tuple[int, int]]:
    """(first, last + 1) of runs of queries that hold about so many rows.

    >>> import cleanrank as cr
    >>> list(_ranges(cr.from_arrays([[0.0]] * 5, [0] * 5, group=[2, 2, 1]), 3))
    [(0, 1), (1, 3)]
    """
    first = 0
    while first < data.n_queries:
        last = int(np.searchsorted(data.indptr, data.indptr[first] + rows, side="right")) - 1
        last = min(max(last, first + 1), data.n_queries)
        yield first, last
        first = last


# LETOR


def of_letor(
    path: Any,
    *,
    n_jobs: int | None = None,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    feature_names: Sequence[str] | None = None,
) -> Source:
    """LETOR files, one after the other; arguments are those of ``read_letor``."""
    paths = [existing_file(each) for each in ([path] if isinstance(path, str | os.PathLike) else path)]
    options = {"n_features": n_features, "zero_based": zero_based, "feature_names": feature_names}
    return Source("letor", paths, options, partial(_letor_pieces, paths, n_jobs, options))


def _letor_pieces(
    paths: Sequence[Path], n_jobs: int | None, options: Mapping[str, Any], after: Any
) -> Iterator[Piece]:
    """Parses about TEXT_PIECE bytes at a time, and of these what comes before the last query.

    The columns are guessed from samples. A line that needs others is met by looking at all lines, and by
    starting again.
    """
    from cleanrank.data import _letor_reader as reader
    from cleanrank.data.letor import names_queries, side_columns, side_files

    of_files, sides = [open_texts(path) for path in paths], side_files(paths)
    texts = [text for each in of_files for text in each]
    if not names_queries(of_files, sides):
        rule = "must name their queries (qid:ID) where data stay on disk"
        raise invalid("rows", rule, "a .query file beside them", remedy="Read them into memory.")
    given = reader.ReadOptions(True, options["n_features"], options["zero_based"], True)
    beside = {}
    if any(side is not None for each in sides for side in each.values()):
        beside = side_columns(sides, reader.count_rows(texts, n_jobs))
    state = after or {"text": 0, "at": texts[0].start, "row": 0, **_columns(reader, texts, given)}
    size, is_long = TEXT_PIECE, False
    while chunk := _chunk(texts, state["text"], state["at"], size):
        ends_all = chunk[-1].end == texts[-1].end and len(chunk) == len(texts) - state["text"]
        rows = reader.count_rows(chunk, n_jobs)
        if not rows:
            state = {**state, "text": state["text"] + len(chunk) - 1, "at": chunk[-1].end}
            continue
        excess = 4 * rows * state["width"] / MOST
        if excess > 1 and size > LEAST_TEXT and not is_long:  # rows that name few of many features
            size = max(LEAST_TEXT, int(size / (2 * excess)))
            continue
        strict = replace(given, n_features=state["width"], zero_based=state["base"] == 0)
        try:
            parsed = reader.parse_texts(chunk, strict, n_jobs=n_jobs, progress=None)
        except BadFileError:
            reader.parse_texts(chunk, given, n_jobs=n_jobs, progress=None)
            layout = reader.true_layout(texts, given, n_jobs)
            state = {"text": 0, "at": texts[0].start, "row": 0, "base": layout.base, "width": layout.width}
            yield Piece(None, None, restart=True)
            continue
        ids = parsed.qid if parsed.names is None else np.array(parsed.names)[parsed.qid]
        kept = len(ids)
        if not ends_all:
            changes = np.flatnonzero(ids[1:] != ids[:-1])
            if not len(changes):  # one query is longer than the piece
                size, is_long = 2 * size, True
                continue
            kept = int(changes[-1]) + 1
        data = _of_parsed(parsed, ids, kept, state["row"], options["feature_names"], beside)
        text, at = len(chunk) - 1, chunk[-1].end
        if kept < len(ids):
            text = next(k for k, (_, first, last) in enumerate(parsed.places) if first <= kept < last)
            at = chunk[text].raw.rfind(b"\n", 0, int(parsed.qid_at[kept])) + 1
            at = max(at, chunk[text].start)
        state = {**state, "text": state["text"] + text, "at": at, "row": state["row"] + kept}
        passed = sum(each.end - each.start for each in texts[: state["text"]])
        done = passed + at - texts[state["text"]].start
        yield Piece(data, state, (done, sum(each.end - each.start for each in texts)))


def _columns(reader: Any, texts: Sequence[Text], given: Any) -> dict[str, int]:
    layout = reader.guessed_layout(texts, given)
    return {"base": layout.base, "width": max(layout.width, 1)}


def _chunk(texts: Sequence[Text], number: int, at: int, size: int) -> list[Text]:
    """Whole lines of about so many bytes from a place on; of several texts where one ends before."""
    chunk = []
    while number < len(texts) and size > 0:
        text = texts[number]
        end = text.end if text.end - at <= size else text.line_end(at + size - 1) + 1
        if end > at:
            origin = text.start if text.origin is None else text.origin
            chunk.append(replace(text, start=at, end=end, origin=origin))
        elif number == len(texts) - 1:
            break
        size -= end - at
        number += 1
        at = texts[number].start if number < len(texts) else 0
    return chunk


def _of_parsed(
    parsed: Any, ids: Array, kept: int, row: int, names: Any, beside: Mapping[str, Any]
) -> RankingData:
    """The first ``kept`` rows of a parsed piece, of which the first is row ``row`` of all."""
    from cleanrank.data.letor import COMMENT

    data = from_arrays(
        parsed.X[:kept],
        parsed.y[:kept],
        qid=ids[:kept],
        doc_ids=None if parsed.doc_ids is None else parsed.doc_ids[:kept],
        feature_names=names,
        extra=None if parsed.comments is None else {COMMENT: parsed.comments[:kept]},
        **{name: column[row : row + kept] for name, column in beside.items()},
    )
    return contiguous(data, row)


def contiguous(data: RankingData, row: int) -> RankingData:
    """A piece that begins with row ``row`` of all; refused where rows of a query do not follow each other."""
    broken = np.flatnonzero(np.diff(data.row_ids) != 1)
    if len(broken):
        query = data.query_ids[np.searchsorted(data.indptr, broken[0], side="right") - 1]
        rows = data.row_ids[broken[0] : broken[0] + 2] + row
        raise scattered(str(query), *rows.tolist())
    return replace(data, row_ids=data.row_ids + row)


def scattered(query: str, first: int, second: int) -> Exception:
    """The error of a query whose rows do not follow each other."""
    rule = "must follow each other where data stay on disk"
    remedy = "Sort the file by query first, or read it into memory."
    return invalid(f"the rows of query {query!r}", rule, f"rows {first:,} and {second:,}", remedy=remedy)


# Tables


def of_parquet(files: Sequence[Path], **columns: Any) -> Source:
    """Parquet files, one after the other; ``columns`` are arguments of ``from_frame``."""
    return Source(
        "parquet", files, columns, partial(_table_pieces, partial(_parquet_batches, files), files, columns)
    )


def of_csv(file: Path, *, delimiter: str | None = None, **columns: Any) -> Source:
    """A CSV file; ``columns`` are arguments of ``from_frame``."""
    batches = partial(_csv_batches, file, delimiter, columns)
    return Source(
        "csv", [file], {"delimiter": delimiter, **columns}, partial(_table_pieces, batches, [file], columns)
    )


def _table_pieces(
    batches: Callable[[int], Iterator[tuple[Any, tuple[int, int]]]],
    files: Sequence[Path],
    columns: Mapping[str, Any],
    after: Any,
) -> Iterator[Piece]:
    """Pieces of tables that come batch by batch, from a row on; the last query waits for the next batch."""
    import pyarrow as pa

    from cleanrank.data.table_files import of_table

    row, held = after or 0, None
    stream = batches(row)
    following = next(stream, None)
    while following is not None:
        (batch, done), following = following, next(stream, None)
        table = batch if held is None else pa.concat_tables([held, batch], promote_options="default")
        data = of_table(table, files[0], columns)
        kept = data.n_docs if following is None else int(data.indptr[-2])
        if kept and (following is None or data.n_queries > 1):
            data = contiguous(data, row)
            held = table.slice(kept)
            row += kept
            yield Piece(data if kept == data.n_docs else data.query_range(0, data.n_queries - 1), row, done)
        else:
            held = table


def _parquet_batches(files: Sequence[Path], row: int) -> Iterator[tuple[Any, tuple[int, int]]]:
    """(rows, rows so far and in all) of Parquet files, from a row on."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        opened = [pyarrow.parquet.ParquetFile(file, memory_map=True) for file in files]
        total, passed = sum(each.metadata.num_rows for each in opened), 0
        for file in opened:
            width = max(1, file.metadata.num_columns)
            rows = max(LEAST_ROWS, PIECE // (4 * width))
            groups = [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
            ends = np.cumsum(groups) + passed
            first = int(np.searchsorted(ends, row, side="right"))
            at = passed + sum(groups[:first])
            for batch in file.iter_batches(rows, row_groups=list(range(first, len(groups)))):
                table = pa.Table.from_batches([batch])
                if at + len(table) > row:
                    table = table.slice(max(row - at, 0))
                    yield table, (at + batch.num_rows, total)
                at += batch.num_rows
            passed += file.metadata.num_rows
    except (pa.ArrowException, OSError) as error:
        raise BadFileError(f"{str(files[0])!r} cannot be read as Parquet: {error}.", str(files[0])) from error


def _csv_batches(
    file: Path, delimiter: str | None, columns: Mapping[str, Any], row: int
) -> Iterator[tuple[Any, tuple[int, int]]]:
    """(rows, rows so far) of a CSV file, from a row on."""
    from cleanrank.data.table_files import csv_batches

    at = 0
    for table in csv_batches(file, delimiter, columns):
        if at + len(table) > row:
            yield table.slice(max(row - at, 0)), (at + len(table), 0)
        at += len(table)
