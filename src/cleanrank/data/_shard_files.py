"""The files of one shard: features, the other columns, queries, and the values of codes."""

import os
import shutil
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from cleanrank.data import cache as cached
from cleanrank.data.shard_sources import Piece
from cleanrank.errors import invalid
from cleanrank.stored import CODES, FEATURES, as_array, code_values, encoded
from cleanrank.types import PER_ROW, Array, RankingData

ROWS, QUERIES = "rows-{:05d}.parquet", "queries-{:05d}.parquet"
OWN_NAMES = {"y": "label", "row_ids": "row_id", "gains": "gain", "doc_ids": "doc_id",
             "weights": "weight", "positions": "position", "judged": "judged"}  # fmt: skip
EXTRA = "extra:"


@dataclass
class Outline:
    """What all shards of a folder share, and what is known of each."""

    n_features: int
    stored_as: str = "float32"
    feature_names: tuple[str, ...] | None = None
    categories: dict[str, tuple[Any, ...]] = field(default_factory=dict)
    shards: list[dict[str, Any]] = field(default_factory=list)


def write_shard(folder: Path, number: int, piece: Piece, outline: Outline) -> dict[str, Any]:
    """Writes the files of one shard; what is known of it."""
    data, features, checksum = piece.data, folder / FEATURES.format(number), None
    if piece.stored is not None and _stored_as(piece.stored) == outline.stored_as:
        # No file of a shard is ever changed: two folders may share it.
        _linked(piece.stored, features)
        if outline.stored_as == "uint8" and number == 0:
            _linked(piece.stored.with_name(CODES), folder / CODES)
    else:
        X = _encoded(folder, number, data, outline)
        np.save(features, X, allow_pickle=False)
        checksum = cached.checksum(X)
    pyarrow.parquet.write_table(_rows_table(data), folder / ROWS.format(number), compression="zstd")
    ids = data.query_ids if data.query_ids.dtype.kind == "i" else data.query_ids.tolist()
    queries = pa.table({"query_id": pa.array(ids), "documents": pa.array(data.lengths)})
    pyarrow.parquet.write_table(queries, folder / QUERIES.format(number), compression="zstd")
    known = {features.name: checksum_of(features) if checksum is None else checksum}
    others = [each.format(number) for each in (ROWS, QUERIES)]
    others += [CODES] if outline.stored_as == "uint8" and number == 0 else []
    known |= {name: checksum_of(folder / name) for name in others}
    files = {name: ((folder / name).stat().st_size, value) for name, value in known.items()}
    return {"documents": data.n_docs, "queries": data.n_queries, "files": files}


def _stored_as(file: Path) -> str:
    return str(np.load(file, mmap_mode="r", allow_pickle=False).dtype)


def _linked(file: Path, target: Path) -> None:
    try:
        os.link(file, target)
    except OSError:  # another disk, or one without links
        shutil.copyfile(file, target)


def _encoded(folder: Path, number: int, data: RankingData, outline: Outline) -> Array:
    """The features as they are stored."""
    X = np.ascontiguousarray(_recoded(data, outline.categories))
    if outline.stored_as == "uint8":
        return _as_codes(folder, number, X)
    return _as_half(X) if outline.stored_as == "float16" else X


def _recoded(data: RankingData, categories: Mapping[str, tuple[Any, ...]]) -> Array:
    """Features with the codes of categories that all shards share."""
    X = as_array(data.X)
    for name, values in (data.categories or {}).items():
        if values == categories[name][: len(values)]:
            continue
        place = (data.feature_names or ()).index(name)
        shared = np.array([*(categories[name].index(value) for value in values), np.nan], dtype=np.float32)
        codes = X[:, place]
        X = X.copy() if not X.flags.writeable else X
        X[:, place] = shared[np.where(np.isnan(codes), len(values), codes).astype(np.int64)]
    return X


def _as_codes(folder: Path, number: int, X: Array) -> Array:
    if number == 0:
        np.save(folder / CODES, code_values(X), allow_pickle=False)
    return encoded(X, np.load(folder / CODES, allow_pickle=False))


def _as_half(X: Array) -> Array:
    with np.errstate(over="ignore"):
        half = X.astype(np.float16)
    beyond = np.isinf(half) & np.isfinite(X)
    if beyond.any():
        row, column = np.argwhere(beyond)[0]
        remedy = "Store float32, or rescale that feature."
        at = f"row {row} of a shard, column {column}"
        raise invalid(
            "features", "must fit into float16 (up to 65,504)", X[row, column], at=at, remedy=remedy
        )
    return half


def _rows_table(data: RankingData) -> Any:
    columns: dict[str, Any] = {}
    for name in PER_ROW:
        values = getattr(data, name)
        if values is not None:
            columns[OWN_NAMES[name]] = pa.array(values if values.dtype.kind not in "US" else values.tolist())
    for name, values in (data.extra or {}).items():
        columns[EXTRA + name] = pa.array(values, from_pandas=True)
    return pa.table(columns)


def checksum_of(file: Path) -> int:
    if file.suffix == ".npy":
        return cached.checksum(np.load(file, mmap_mode="r", allow_pickle=False))
    return zlib.crc32(file.read_bytes())
