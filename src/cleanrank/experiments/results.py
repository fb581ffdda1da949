"""What computing a cell gives, as bytes (JSON and compressed float64, never pickle) and as a flat table.

Values are packed by zstd, by zlib on machines that have nothing but NumPy and torch; either is read anywhere.
Rows of the table are in the order of their inputs, and figures are the same from run to run; only columns
that end in ``_seconds`` or ``_at`` tell of the run itself.
"""

import json
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cleanrank.data.spreadsheet import write_frame
from cleanrank.types import FloatArray, RunRecord

ZSTD = b"\x28\xb5\x2f\xfd"  # how every zstd frame begins; no zlib stream does
# Noise of training labels: dNoise and pNoise as counted, the closed form for the queries at hand, and the
# papers' for overall shares of grades.
REALISED = ("train_dnoise", "train_pnoise", "expected_pnoise", "overall_pnoise")
INPUTS = (
    "dataset", "fold", "noise", "rate", "method", "algorithm", "version", "seed", "params", "grid", "select",
)  # fmt: skip
COLUMNS = (
    "recipe", "key", *INPUTS, "measure", "status", "mean", "n_queries", *REALISED, "chosen", "error",
    "versions", "wall_seconds", "started_at",
)  # fmt: skip
TYPES = dict.fromkeys(("fold", "version", "seed", "n_queries"), "Int64") | dict.fromkeys(
    ("rate", "mean", "wall_seconds", *REALISED), "float64"
)


@dataclass(frozen=True)
class Result:
    """What computing one cell gave, before it has a key; ``pack`` turns it into bytes."""

    status: Literal["done", "failed"]
    values: Mapping[str, FloatArray] = field(default_factory=dict)  # measure -> one value per query
    means: Mapping[str, float] = field(default_factory=dict)  # a measure may weigh queries in its own way
    query_ids: Sequence[int] | Sequence[str] = ()
    chosen: Mapping[str, Any] = field(default_factory=dict)
    error: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    wall_seconds: float = 0.0
    started_at: str = ""


def pack(result: Result) -> bytes:
    """A result as bytes: a JSON header and the compressed values, each after the length of its JSON.

    >>> split(pack(Result("failed", error="no luck")))[0]["error"]
    'no luck'
    """
    header = {key: value for key, value in vars(result).items() if key not in ("values", "query_ids")}
    header["started_at"] = result.started_at or now()
    header["means"] = {m: _or_none(v) for m, v in result.means.items()}
    names = list(result.values)
    table = np.array(list(result.values.values()), dtype="<f8").reshape(len(names), len(result.query_ids))
    columns = {"measures": names, "query_ids": list(result.query_ids)}
    return _with_json(header, _compress(_with_json(columns, table.tobytes())))


def _with_json(value: Any, rest: bytes) -> bytes:
    text = to_json(value).encode()
    return struct.pack("<I", len(text)) + text + rest


def split(packed: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the compressed values of a packed result."""
    (size,) = struct.unpack_from("<I", packed)
    return json.loads(packed[4 : 4 + size]), packed[4 + size :]


def unpack_values(blob: bytes) -> tuple[dict[str, FloatArray], list[Any]]:
    """(measure -> one value per query, query ids) from the compressed part of a packed result."""
    columns, raw = split(_decompress(blob))
    names, query_ids = columns["measures"], columns["query_ids"]
    table = np.frombuffer(raw, dtype="<f8").reshape(len(names), len(query_ids))
    return {n: table[i].astype(np.float64) for i, n in enumerate(names)}, query_ids


def to_json(value: Any) -> str:
    """Canonical JSON: sorted keys, no blanks, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def now() -> str:
    """The time, ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _compress(raw: bytes) -> bytes:
    try:
        import zstandard
    except ImportError:
        return zlib.compress(raw)
    return zstandard.ZstdCompressor(level=3).compress(raw)


def _decompress(blob: bytes) -> bytes:
    if blob[:4] != ZSTD:
        return zlib.decompress(blob)
    import zstandard

    return zstandard.ZstdDecompressor().decompress(blob)


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def or_nan(value: float | None) -> float:
    """JSON's null back to NaN."""
    return float("nan") if value is None else float(value)


def rows_of(records: Iterable[RunRecord]) -> list[dict[str, Any]]:
    """One row per cell and measure; a failed cell has its measures too, without a figure."""
    rows = []
    for record in records:
        shared = vars(record) | {name: _plain(record.cell.get(name)) for name in INPUTS}
        shared |= {name: record.chosen.get(name) for name in REALISED}
        shared |= {name: to_json(dict(getattr(record, name))) for name in ("chosen", "versions")}
        shared["error"] = record.error.strip().rpartition("\n")[2]
        for measure in record.cell.get("measures") or list(record.means):
            values = record.values.get(measure)
            row = {
                **shared,
                "measure": measure,
                "mean": _or_none(record.means.get(measure, np.nan)),
                "n_queries": None if values is None else int((~np.isnan(values)).sum()),
            }
            rows.append({name: row[name] for name in COLUMNS})
    return sorted(rows, key=_place)


def line_of(record: RunRecord) -> dict[str, Any]:
    """One cell in a list of cells."""
    cell = record.cell
    return {
        "key": record.key[:12],
        **{name: cell[name] for name in ("dataset", "fold")},
        "noise": cell["noise"] if cell["rate"] else "none",
        **{name: cell[name] for name in ("rate", "method", "seed")},
        "status": record.status,
        "seconds": round(record.wall_seconds, 2),
    }


def export(records: Sequence[RunRecord], path: str | Path) -> int:
    """Writes records as .parquet or .csv; returns the number of rows."""
    import pandas as pd

    frame = pd.DataFrame(rows_of(records), columns=COLUMNS)
    write_frame(frame.astype({name: TYPES.get(name, "string") for name in COLUMNS}), path)
    return len(frame)


def _plain(value: Any) -> Any:
    return to_json(value) if isinstance(value, dict | list) else value


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        row["recipe"], str(row["dataset"]), row["fold"] or 0, str(row["noise"]), row["rate"] or 0.0,
        str(row["method"]), row["seed"] or 0, row["key"], row["measure"],
    )  # fmt: skip
