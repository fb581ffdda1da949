"""Data sets on disk, for data larger than memory: folders of shards, each of some whole queries.

    FOLDER/
      features-00000.npy    the features of the first shard's rows, (rows, F): float32, float16 or uint8 codes
      rows-00000.parquet    its other columns, a row each
      queries-00000.parquet its queries: id and number of documents
      codes.npy             with uint8: the value that each code of each column stands for, (F, 256)
      dataset.json          what the folder holds: names, types, and size and checksum of every file

A folder is made in one pass of bounded memory beside its place, as ``.FOLDER.part``, and renamed when it is
whole. A conversion that was broken off goes on behind its last whole shard when it is asked for again: the
part says of which files, as they were, with which settings, and where in them the next shard begins.

``features`` stay on disk and are mapped (``cleanrank.stored``); the other columns are read into memory.
"""

import os
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet

from cleanrank.data import cache as cached
from cleanrank.data._shard_files import EXTRA, OWN_NAMES, QUERIES, ROWS, Outline, checksum_of, write_shard
from cleanrank.data.arrow_tables import short_text
from cleanrank.data.files import written_whole
from cleanrank.data.shard_sources import Piece, Source, of_data, of_pieces, scattered
from cleanrank.errors import BadFileError, InvalidInputError, MissingDataError, error_text, invalid
from cleanrank.ragged import indptr_of
from cleanrank.stored import StoredFeatures
from cleanrank.types import Array, Progress, RankingData
from cleanrank.validation import check_path, one_of

DATASET = "dataset.json"
STATE = "state.json"
VERSION = 1
DTYPES = ("float32", "float16", "uint8")


def is_shards(folder: Path) -> bool:
    """Whether a folder is a data set of shards, or one that is not finished."""
    return (folder / DATASET).is_file() or _part_of(folder).is_dir()


def read_shards(folder: str | os.PathLike[str], *, verify: bool = False) -> RankingData:
    """Opens a folder of shards: X stays on disk as StoredFeatures, the other columns are in memory.

    Args:
        folder: what ``cleanrank convert`` or ``write_data`` made.
        verify: whether to read all features and compare their checksums; sizes are always compared.

    >>> import tempfile
    >>> import cleanrank as cr
    >>> data = cr.make_ranking(5, 3, docs_per_query=10, seed=0)
    >>> with tempfile.TemporaryDirectory() as name:
    ...     write_shards(data, f"{name}/small")
    ...     opened = read_shards(f"{name}/small")
    ...     bool((opened.X.toarray() == data.X).all()), bool((opened.y == data.y).all())
    (True, True)
    """
    place = check_path(folder)
    facts = _described(place)
    try:
        _check_files(place, facts, verify)
        return _opened(place, facts)
    except BadFileError:
        raise
    except (InvalidInputError, LookupError, TypeError, AttributeError) as error:
        rule, remedy = f"must describe what it holds ({DATASET})", "Convert the data again."
        words = error_text(f"the folder {str(place)!r}", rule, short_text(error), remedy=remedy)
        raise BadFileError(words, str(place)) from error


def _opened(place: Path, facts: Mapping[str, Any]) -> RankingData:
    """The data that a description describes."""
    try:
        rows = [pyarrow.parquet.read_table(place / ROWS.format(k)) for k in range(len(facts["shards"]))]
        queries = [pyarrow.parquet.read_table(place / QUERIES.format(k)) for k in range(len(facts["shards"]))]
    except (pa.ArrowException, OSError) as error:
        raise BadFileError(f"{str(place)!r} cannot be read: {error}.", str(place)) from error
    table = pa.concat_tables(rows, promote_options="default")
    columns = {name: _column(table, own) for name, own in OWN_NAMES.items() if own in table.column_names}
    extra = {
        name.removeprefix(EXTRA): _extra(table.column(name))
        for name in table.column_names
        if name.startswith(EXTRA)
    }
    ids = [part.column("query_id") for part in queries]
    names = facts["feature_names"]
    return RankingData(
        X=StoredFeatures(place),
        indptr=indptr_of(np.concatenate([part.column("documents").to_numpy() for part in queries])),
        query_ids=_query_ids(ids),
        feature_names=None if names is None else tuple(names),
        extra=extra or None,
        categories={name: tuple(values) for name, values in facts["categories"].items()} or None,
        **columns,
    )


def write_shards(
    data: RankingData | Iterable[RankingData],
    folder: str | os.PathLike[str],
    *,
    dtype: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> None:
    """Writes data, or pieces of whole queries of them that come one by one, as a folder of shards.

    Args:
        data: ranking data; or pieces, such as those of ``make_ranking_chunks``; each of them becomes a shard.
        folder: the folder, which must not exist yet.
        dtype: how features are stored: "float32"; "float16", half as large; or "uint8", a quarter: the code
            of the nearest of at most 255 values of the column, as found in the first shard. As they are when
            not given, if they come from such a folder.
        force: replace the folder if it is there.
        progress: called with (rows, rows in all), or the pieces so far twice.
    """
    source = of_data(data) if isinstance(data, RankingData) else of_pieces(data)
    convert(source, folder, dtype=dtype, force=force, progress=progress)


def convert(
    source: Source,
    folder: str | os.PathLike[str],
    *,
    dtype: str | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> None:
    """Writes the pieces of a source as a folder of shards; goes on where an earlier attempt was broken off.

    Args:
        source: see ``shard_sources``.
        folder: see ``write_shards``.
        dtype: see ``write_shards``.
        force: see ``write_shards``.
        progress: called with how much of the source is done, and the whole of it.
    """
    dtype = one_of("dtype", source.stored_as if dtype is None else dtype, DTYPES)
    target = check_path(folder)
    check_folder(target, force=force)
    with _held(_part_of(target)) as part:
        settings = _plain({"version": VERSION, "dtype": dtype, "source": source.settings()})
        outline, after, seen = _state(part, settings)
        with _Writer(part, settings) as writer:
            for piece in source.pieces(after):
                writer.wait()
                if piece.restart:
                    _empty(part)
                    outline, seen = None, {}
                    continue
                outline = _outline_of(piece.data, dtype) if outline is None else _merged(outline, piece.data)
                _check_new(piece.data, seen)
                writer.put(piece, outline)
                if progress is not None:
                    progress(*piece.done)
        if outline is None:
            raise InvalidInputError(error_text("data", "must hold at least one row to be written", "none"))
        facts = {"format": "cleanrank shards", "version": VERSION, "source": settings["source"]}
        _write_json(part / DATASET, {**facts, **msgspec.to_builtins(outline)})
        (part / STATE).unlink(missing_ok=True)
        (part / LOCK).unlink(missing_ok=True)
        cached.put_in_place(part, target)


def opened_out_of_core(source: Source, progress: Progress | None = None) -> RankingData:
    """The data of a source from the folder of shards that the cache keeps of it, which is made if need be."""
    key = msgspec.json.encode([source.kind, *(str(Path(p).absolute()) for p in source.files), source.options])
    folder = cached.cache_folder().parent / "shards" / f"{zlib.crc32(key):08x}-{Path(source.files[0]).name}"
    if not (folder / DATASET).is_file() or _described(folder).get("source") != _plain(source.settings()):
        folder.parent.mkdir(parents=True, exist_ok=True)
        convert(source, folder, force=True, progress=progress)
    return read_shards(folder)


def check_folder(target: Path, *, force: bool = False) -> None:
    """Raises unless a folder of shards can be made there."""
    if not target.parent.is_dir():
        raise MissingDataError(f"the folder {str(target.parent)!r} does not exist. Make it first.")
    if not os.access(target.parent, os.W_OK | os.X_OK):
        words = f"the folder {str(target.parent)!r}"
        raise invalid(words, "must be writable", "read-only", remedy="Write to another folder.")
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return
    if not target.is_dir() or not (target / DATASET).is_file():
        rule = "must be a new or empty folder, or one of shards"
        raise invalid("output", rule, repr(str(target)), remedy="Name another folder.")
    if not force:
        raise invalid("output", "must not exist yet", repr(str(target)), remedy="Overwrite with --force.")


# Reading


def _described(folder: Path) -> dict[str, Any]:
    """What dataset.json says; raises where the folder is none, not finished, or of another version."""
    file = folder / DATASET
    if not file.is_file():
        if _part_of(folder).is_dir():
            rule = "must be finished before it is read"
            remedy = "Run the same cleanrank convert again: it goes on where it was broken off."
            raise MissingDataError(
                error_text(f"the folder {str(folder)!r}", rule, "a part of it", remedy=remedy)
            )
        rule = f"must be one that cleanrank convert has made ({DATASET})"
        raise MissingDataError(error_text(f"the folder {str(folder)!r}", rule))
    facts = _read_json(file)
    if facts.get("format") != "cleanrank shards" or facts.get("version") != VERSION:
        rule = f"must describe a folder of shards of version {VERSION}"
        value = f"{facts.get('format')!r}, version {facts.get('version')!r}"
        raise BadFileError(
            error_text(f"{str(file)!r}", rule, value, remedy="Convert the data again."), str(file)
        )
    return facts


def _read_json(file: Path) -> dict[str, Any]:
    try:
        facts: dict[str, Any] = msgspec.json.decode(file.read_bytes(), type=dict)
        return facts
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        remedy = "Convert the data again."
        words = error_text(f"{str(file)!r}", "must be whole JSON", str(error), remedy=remedy)
        raise BadFileError(words, str(file)) from error


def _check_files(folder: Path, facts: Mapping[str, Any], verify: bool) -> None:
    """Compares every file with what was written; features by their size alone unless ``verify``."""
    listed = [(folder / name, known) for shard in facts["shards"] for name, known in shard["files"].items()]
    for file, (size, checksum) in listed:
        if not file.is_file() or file.stat().st_size != size:
            value = f"{file.stat().st_size:,} bytes" if file.is_file() else "no file"
            words = error_text(f"{str(file)!r}", f"must have the {size:,} bytes that were written", value)
            raise BadFileError(f"{words} Convert the data again.", str(file))
        if (verify or file.suffix != ".npy") and checksum_of(file) != checksum:
            words = error_text(f"{str(file)!r}", "must hold what was written", "another checksum")
            raise BadFileError(f"{words} Convert the data again.", str(file))


def _column(table: Any, name: str) -> Array:
    column = table.column(name)
    if pa.types.is_string(column.type):
        return np.asarray(column.fill_null("").to_pylist(), dtype=str)
    return np.asarray(column.to_numpy())


def _extra(column: Any) -> Array:
    text = column.fill_null("") if pa.types.is_string(column.type) else column
    return np.asarray(text.to_pandas().to_numpy())


def _query_ids(parts: Sequence[Any]) -> Array:
    """Ids of the queries of all shards: whole numbers if they are in each, else strings."""
    if all(pa.types.is_integer(part.type) for part in parts):
        return np.concatenate([part.to_numpy() for part in parts])
    return np.concatenate([np.asarray(part.to_pylist(), dtype=str) for part in parts])


# Writing


class _Writer:
    """Writes one shard while the next piece is read; what is finished is noted after every shard."""

    def __init__(self, part: Path, settings: Mapping[str, Any]) -> None:
        self.part, self.settings = part, settings
        self.thread = ThreadPoolExecutor(1)
        self.last: Future[None] | None = None

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, kind: Any, *_: Any) -> None:
        try:
            if kind is None:
                self.wait()
        finally:
            self.thread.shutdown(wait=True)

    def put(self, piece: Piece, outline: Outline) -> None:
        """Writes a piece; the one before must be written."""
        self.last = self.thread.submit(self._write, piece, outline)

    def wait(self) -> None:
        """Waits for the shard that is being written; raises what went wrong with it."""
        if self.last is not None:
            self.last.result()
        self.last = None

    def _write(self, piece: Piece, outline: Outline) -> None:
        outline.shards.append(write_shard(self.part, len(outline.shards), piece, outline))
        state = {"settings": self.settings, "after": piece.after, "outline": msgspec.to_builtins(outline)}
        _write_json(self.part / STATE, state)


def _outline_of(data: RankingData, dtype: str) -> Outline:
    if not data.n_features:
        remedy = "Judgements without features fit into memory."
        raise invalid("data", "must have features to be kept as shards", "none", remedy=remedy)
    return Outline(data.n_features, dtype, data.feature_names, dict(data.categories or {}))


def _merged(outline: Outline, data: RankingData) -> Outline:
    """The outline with what a further piece adds to it: values of categories, behind those that are known."""
    if data.n_features != outline.n_features or data.feature_names != outline.feature_names:
        shape = f"{data.n_features} features"
        raise invalid("every piece of the data", f"must have the same {outline.n_features} features", shape)
    for name, values in (data.categories or {}).items():
        known = outline.categories.get(name, ())
        outline.categories[name] = (*known, *(value for value in values if value not in known))
    return outline


def _check_new(data: RankingData, seen: dict[Any, int]) -> None:
    """Raises where a query that an earlier shard holds comes again."""
    rows = data.row_ids[data.indptr[:-1]]
    for query, row in zip(data.query_ids.tolist(), rows.tolist(), strict=True):
        if str(query) in seen:
            raise scattered(str(query), seen[str(query)], row)
        seen[str(query)] = row


# The part


LOCK = "lock"


def _part_of(folder: Path) -> Path:
    place = folder.absolute()
    return place.with_name(f".{place.name}.part") if place.name else place / ".part"


@contextmanager
def _held(part: Path) -> Iterator[Path]:
    """The folder of a part, which no other process writes to at the same time."""
    part.mkdir(exist_ok=True)
    try:
        import fcntl
    except ImportError:  # where there are no such locks
        yield part
        return
    with (part / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            rule = "must be written by one process at a time"
            raise invalid(f"the folder {str(part)!r}", rule, "another one is at work") from None
        yield part


def _state(part: Path, settings: Mapping[str, Any]) -> tuple[Outline | None, Any, dict[Any, int]]:
    """What an earlier attempt with the same settings has finished: outline, place in the source, queries."""
    try:
        state = _read_json(part / STATE)
        if state["settings"] != settings or state["after"] is None:
            raise BadFileError("the part is of other files or settings, or of what cannot go on")
        outline = msgspec.convert(state["outline"], Outline)
        _check_files(part, state["outline"], verify=True)
        seen: dict[Any, int] = {}
        for k in range(len(outline.shards)):
            queries = pyarrow.parquet.read_table(part / QUERIES.format(k))
            row_ids = pyarrow.parquet.read_table(part / ROWS.format(k), columns=["row_id"]).column(0)
            first = row_ids.to_numpy()[indptr_of(queries.column("documents").to_numpy())[:-1]].tolist()
            seen |= {str(query): row for query, row in zip(queries.column(0).to_pylist(), first, strict=True)}
    except (OSError, KeyError, InvalidInputError, msgspec.ValidationError, pa.ArrowException):
        _empty(part)
        return None, None, {}
    return outline, state["after"], seen


def _empty(part: Path) -> None:
    for file in part.iterdir():
        if file.name != LOCK:
            file.unlink()


def _plain(value: Any) -> Any:
    """A value as it reads back from JSON."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _write_json(file: Path, value: Any) -> None:
    with written_whole(file) as whole:
        whole.write_bytes(msgspec.json.format(msgspec.json.encode(value), indent=1))
