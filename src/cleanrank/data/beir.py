"""Folders of BEIR and MTEB: ``corpus.jsonl``, ``queries.jsonl`` and ``qrels/SPLIT.tsv``.

Judgements are rows; texts of their queries and documents are carried along (query, title, text). The corpus
is read line by line and only what is judged is kept, so that its size does not matter. A part may also be
a folder of Parquet files (``corpus/*.parquet``), as on the Hugging Face hub, and any file may be packed. Of
several languages (``de-corpus``, ``de-queries``, ``de-qrels``) the split names one, as in "de/test".
"""

import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from cleanrank.data.arrow_tables import read_arrow_file
from cleanrank.data.files import PACKED, read_lines
from cleanrank.data.json_files import ENDINGS, is_json_lines
from cleanrank.data.line_fields import LineFields, read_fields
from cleanrank.data.trec import judgements_of
from cleanrank.errors import BadFileError, MissingDataError, error_text, invalid
from cleanrank.types import Array, RankingData
from cleanrank.validation import check_path, one_of

HEADER = ("query-id", "corpus-id", "score")
FIELDS = ("title", "text")
SHARD = re.compile(r"-\d{5}-of-\d{5}(-[0-9a-f]+)?")  # of a file in parts
QRELS_FOLDERS = ("qrels", "data", "default")
TABLES = tuple(f".tsv{packed}" for packed in ("", *PACKED))


class _Text(msgspec.Struct):
    id: str | int = msgspec.field(name="_id")
    title: str | None = None
    text: str | None = None


class Collection(NamedTuple):
    """Texts of some queries and documents.

    Attributes:
        queries: id -> text.
        documents: id -> (title, text).
    """

    queries: Mapping[str, str | None]
    documents: Mapping[str, tuple[str | None, str | None]]


def is_beir(folder: Path) -> bool:
    """Whether a folder looks like one of BEIR: judgements, and a corpus or queries."""
    return any(
        _parts(folder, f"{_language(split)}{stem}")
        for split in _splits(folder)
        for stem in ("corpus", "queries")
    )


def read_beir(path: str | os.PathLike[str], *, split: str | None = None, texts: bool = True) -> RankingData:
    """Judgements of a BEIR folder with the texts of their queries and documents.

    Args:
        path: the folder.
        split: the name of the judgements, such as "test" or "de/test"; "test" or the only one unless given.
        texts: whether to read texts; a document that the corpus lacks has none.

    Returns:
        A row per judgement, without features; negative scores count as not judged.
    """
    folder = check_path(path)
    splits = _splits(folder)
    if not splits:
        rule = "must hold qrels/SPLIT.tsv"
        raise MissingDataError(error_text(f"the folder {str(folder)!r}", rule, "none"))
    if split is None and "test" not in splits and len(splits) > 1:
        remedy = f"Say split=, one of {', '.join(splits)}, or name its file."
        raise invalid(f"the folder {str(folder)!r}", "has several splits and no test", remedy=remedy)
    name = one_of("split", split or ("test" if "test" in splits else next(iter(splits))), splits)
    data = _judgements(splits[name])
    if not texts:
        return data
    assert data.doc_ids is not None
    extra: dict[str, Array] = {}
    ids = data.query_ids.tolist(), data.doc_ids.tolist()
    queries, documents = _texts_of_parts(folder, *ids, language=_language(name))
    if queries:
        extra["query"] = object_column([queries.get(each) for each in data.qid.tolist()])
    for place, field in enumerate(FIELDS if documents else ()):
        extra[field] = object_column(
            [documents.get(each, (None, None))[place] for each in data.doc_ids.tolist()]
        )
    return replace(data, extra=extra or None)


def is_collection(source: Any) -> bool:
    """Whether a source of texts has them as BEIR has: a folder, or JSON lines with an ``_id``."""
    if not isinstance(source, str | os.PathLike):
        return False
    path = Path(source)
    if path.is_dir() or not is_json_lines(path):
        return path.is_dir()
    try:
        return "_id" in msgspec.json.decode(next(read_lines(path), (1, b"{}"))[1], type=dict)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return False


def read_collection(
    path: str | os.PathLike[str], query_ids: Iterable[str], doc_ids: Iterable[str]
) -> Collection:
    """The texts of some queries and documents, line by line, so that no others are kept.

    Args:
        path: a BEIR folder, which may lack the corpus or the queries, or one of their files, whose name says
            which of both it is.
        query_ids: the queries.
        doc_ids: the documents.
    """
    place = check_path(path)
    if place.is_dir():
        if not _parts(place, "corpus") and not _parts(place, "queries"):
            held = ", ".join(sorted(each.name for each in place.iterdir())[:8]) or "nothing"
            rule = "must hold corpus.jsonl, queries.jsonl or both to give texts"
            raise MissingDataError(error_text(f"the folder {str(place)!r}", rule, held))
        return _texts_of_parts(place, query_ids, doc_ids)
    is_part = {stem: stem in place.name.lower() for stem in ("corpus", "queries")}
    if sum(is_part.values()) != 1:
        rule = "must say by its name whether its _id are documents (corpus.jsonl) or queries (queries.jsonl)"
        remedy = "Rename it, or its fields: doc_id and text, or query_id and query."
        raise BadFileError(error_text("a file of texts", rule, repr(str(place)), remedy=remedy), str(place))
    if is_part["queries"]:
        return Collection(_query_texts([place], query_ids), {})
    return Collection({}, _texts_of([place], set(doc_ids)))


def object_column(values: list[Any]) -> Array:
    """Values as they are, texts or None, as a column to carry along."""
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def _splits(folder: Path) -> dict[str, list[Path]]:
    """Name -> files of judgements."""
    found: dict[str, list[Path]] = {}
    for place in QRELS_FOLDERS:
        if (folder / place).is_dir():
            for file in sorted((folder / place).iterdir()):
                if file.name.endswith((*TABLES, *ENDINGS, ".parquet")) and not file.name.startswith("."):
                    found.setdefault(_split_of(file), []).append(file)
        if found:
            return found
    for part in sorted(folder.glob("*-qrels")):
        language = part.name.removesuffix("-qrels")
        for file in sorted(part.glob("*.parquet")):
            found.setdefault(f"{language}/{_split_of(file)}", []).append(file)
    return found


def _split_of(file: Path) -> str:
    return SHARD.sub("", file.name.split(".")[0])


def _language(split: str) -> str:
    """What the names of a split's other parts begin with."""
    language, slash, _ = split.rpartition("/")
    return f"{language}-" if slash else ""


def _parts(folder: Path, stem: str) -> list[Path]:
    """The files of the corpus or the queries."""
    single = [folder / f"{stem}{ending}" for ending in (*ENDINGS, ".parquet")]
    files = [file for file in single if file.is_file()]
    return files[:1] or sorted((folder / stem).glob("*.parquet")) or sorted((folder / stem).glob("*.jsonl"))


def _texts_of_parts(
    folder: Path, query_ids: Iterable[str], doc_ids: Iterable[str], language: str = ""
) -> Collection:
    queries = _query_texts(_parts(folder, f"{language}queries"), query_ids)
    return Collection(queries, _texts_of(_parts(folder, f"{language}corpus"), set(doc_ids)))


def _query_texts(files: list[Path], query_ids: Iterable[str]) -> dict[str, str | None]:
    return {name: text for name, (_, text) in _texts_of(files, set(query_ids)).items()}


def _judgements(files: list[Path]) -> RankingData:
    if len(files) == 1 and files[0].name.endswith(TABLES):
        return judgements_of(_without_header(read_fields(files[0], HEADER, (0, 1, 2), tabs=True)))
    columns: list[list[Any]] = [[], [], []]
    lines: list[int] = []
    for file in files:
        for line, record in _records(file):
            if lacking := [name for name in HEADER if record.get(name) is None]:
                words = error_text(
                    "a judgement",
                    f"must have {', '.join(HEADER)}",
                    f"no {lacking[0]}",
                    at=f"{file}, line {line}",
                )
                raise BadFileError(words, str(file), line)
            for column, name in zip(columns, HEADER, strict=True):
                column.append(_whole_text(record[name]))
            lines.append(line)
    fields = [pa.array(column, pa.large_string()) for column in columns]
    return judgements_of(LineFields(files[0], fields, np.array(lines, dtype=np.int64)))


def _whole_text(value: Any) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def _records(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    if file.name.endswith(".parquet"):
        yield from enumerate(_parquet(file, HEADER).to_pylist(), start=1)
        return
    for line, raw in read_lines(file):
        yield line, _decoded(raw, file, line, dict[str, Any])


def _without_header(fields: LineFields) -> LineFields:
    """The lines below the header, if there is one; its names say which field is which."""
    first = [column[0].as_py() for column in fields.columns] if len(fields.lines) else []
    if not first or any(character.isdigit() for character in first[2]):
        return fields
    order = [first.index(name) for name in HEADER] if sorted(first) == sorted(HEADER) else range(len(HEADER))
    return LineFields(fields.file, [fields.columns[at][1:] for at in order], fields.lines[1:])


def _texts_of(files: list[Path], wanted: set[str]) -> dict[str, tuple[str | None, str | None]]:
    """Id -> (title, text) of those that are wanted; files of several splits may repeat them."""
    found: dict[str, tuple[str | None, str | None]] = {}
    for file in files:
        for line, each in _text_records(file, wanted):
            name = str(each.id)
            if name in wanted:
                texts = each.title, each.text
                if found.setdefault(name, texts) != texts:
                    rule, value = "must have one text only", f"another of {name!r}"
                    raise BadFileError(
                        error_text("an _id", rule, value, at=f"{file}, line {line}"), str(file), line
                    )
    return found


def _text_records(file: Path, wanted: set[str]) -> Iterator[tuple[int, _Text]]:
    if file.name.endswith(".parquet"):
        table = _parquet(file, ("_id",))
        ids = table.column("_id").cast(pa.string())
        kept = pc.is_in(ids, pa.array(sorted(wanted), pa.string()))
        rows = np.flatnonzero(kept.to_numpy()) + 1
        for row, record in zip(rows.tolist(), table.filter(kept).to_pylist(), strict=True):
            yield row, _Text(str(record["_id"]), record.get("title"), record.get("text"))
        return
    decoder = msgspec.json.Decoder(_Text)
    for line, raw in read_lines(file):
        try:
            yield line, decoder.decode(raw)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise _bad_line(file, line, error) from None


def _decoded(raw: bytes, file: Path, line: int, kind: Any) -> Any:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise _bad_line(file, line, error) from None


def _bad_line(file: Path, line: int, error: Exception) -> BadFileError:
    rule = (
        "must be a JSON object with _id and texts"
        if "corpus" in file.name or "queries" in file.name
        else "must be a JSON object"
    )
    words = error_text("a line", rule, str(error).rstrip("."), at=f"{file}, line {line}")
    return BadFileError(words, str(file), line)


def _parquet(file: Path, needed: tuple[str, ...]) -> Any:
    table = read_arrow_file(file)
    if "_id" in needed and "_id" not in table.column_names:
        table = table.rename_columns(["_id" if name == "id" else name for name in table.column_names])
    if lacking := [name for name in needed if name not in table.column_names]:
        there, rule = ", ".join(table.column_names), f"must have a column {lacking[0]!r}"
        raise BadFileError(error_text(repr(str(file)), rule, there), str(file))
    return table


def write_beir(data: RankingData, path: str | os.PathLike[str], *, split: str = "test") -> None:
    """Writes judgements and the texts that came along (query, title, text) as a BEIR folder, whole or not.

    Args:
        data: judgements; rows that nobody judged get the score -1.
        path: the folder, which must not exist yet or be empty.
        split: the name of the judgements.
    """
    target = check_path(path)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise invalid(
            "output", "must be a new or empty folder", repr(str(target)), remedy="Name another one."
        )
    if not target.parent.is_dir():
        raise MissingDataError(f"the folder {str(target.parent)!r} does not exist. Make it first.")
    part = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    try:
        (part / "qrels").mkdir(parents=True)
        _write_parts(data, part, split)
        if target.exists():
            target.rmdir()
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _write_parts(data: RankingData, folder: Path, split: str) -> None:
    docs = (data.row_ids if data.doc_ids is None else data.doc_ids).astype(str)
    queries = data.qid.astype(str)
    grades = data.y if data.judged is None else np.where(data.judged, data.y, -1)
    _check_ids("query ids", queries, data)
    _check_ids("document ids", docs, data)
    extra: Mapping[str, Array] = data.extra or {}
    with (folder / "qrels" / f"{split}.tsv").open("w", encoding="utf-8", newline="") as file:
        file.write("\t".join(HEADER) + "\n")
        file.writelines(
            f"{q}\t{d}\t{g}\n"
            for q, d, g in zip(queries.tolist(), docs.tolist(), grades.tolist(), strict=True)
        )
    _write_texts(folder / "queries.jsonl", queries, {"text": extra.get("query")}, "query")
    _write_texts(folder / "corpus.jsonl", docs, {name: extra.get(name) for name in FIELDS}, "document")


def _check_ids(what: str, ids: Array, data: RankingData) -> None:
    for row, each in enumerate(ids.tolist()):
        if not each or each != each.strip() or any(mark in each for mark in "\t\r\n"):
            rule = "must be texts without tabs, line ends and blanks at their ends to go into a BEIR folder"
            raise invalid(what, rule, repr(each), at=data.place(row))


def _write_texts(file: Path, ids: Array, columns: Mapping[str, Array | None], what: str) -> None:
    """A line for every id; all rows of an id must agree on its texts."""
    known = {name: column.tolist() for name, column in columns.items() if column is not None}
    records: dict[str, dict[str, Any]] = {}
    for row, name in enumerate(ids.tolist()):
        record = {field: column[row] for field, column in known.items() if column[row] is not None}
        if records.setdefault(name, record) != record:
            raise invalid(
                f"the texts of {what} {name!r}", "must be the same in all its rows", "others", at=f"row {row}"
            )
    with file.open("wb") as lines:
        for name, record in records.items():
            if record or not known:
                lines.write(msgspec.json.encode({"_id": name, **record}) + b"\n")
