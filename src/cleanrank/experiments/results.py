"""What computing a cell gives, as bytes (JSON and compressed float64, never pickle) and as a flat table.

Values are packed by zstd, by zlib on machines that have nothing but NumPy and torch; either is read anywhere.
Rows of the table are in the order of their inputs, and figures are the same from run to run; only columns
that end in ``_seconds`` or ``_at`` tell of the run itself.
"""

import json
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cleanrank.data.files import write_frame
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
    values: Mapping[str, FloatArray]
    means: Mapping[str, float]
    query_ids: Sequence[int] | Sequence[str]
    chosen: Mapping[str, Any]
    error: str
    versions: Mapping[str, str]
    wall_seconds: float
    started_at: str


def failure(error: str, *, started_at: str = "", wall_seconds: float = 0.0) -> Result:
    """The result of a cell that gave no figures."""
    return Result("failed", {}, {}, (), {}, error, {}, wall_seconds, started_at or now())


def pack(result: Result) -> bytes:
    """A result as bytes: a JSON header and the compressed values.

    >>> unpack(pack(failure("no luck"))).error
    'no luck'
    """
    header = {
        "status": result.status,
        "means": {m: _or_none(v) for m, v in result.means.items()},
        "chosen": dict(result.chosen),
        "error": result.error,
        "versions": dict(result.versions),
        "wall_seconds": result.wall_seconds,
        "started_at": result.started_at,
    }
    text = to_json(header).encode()
    return struct.pack("<I", len(text)) + text + _pack_values(result.values, result.query_ids)


def unpack(packed: bytes) -> Result:
    """The inverse of ``pack``."""
    header, blob = split(packed)
    values, query_ids = unpack_values(blob)
    means = {m: or_nan(v) for m, v in header.pop("means").items()}
    return Result(values=values, means=means, query_ids=query_ids, **header)


def to_json(value: Any) -> str:
    """Canonical JSON: sorted keys, no blanks, no NaN."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False)


def now() -> str:
    """The time, ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _pack_values(values: Mapping[str, FloatArray], query_ids: Sequence[Any]) -> bytes:
    names = list(values)
    table = np.array([values[n] for n in names], dtype="<f8").reshape(len(names), len(query_ids))
    head = to_json({"measures": names, "query_ids": list(query_ids)}).encode()
    return _compress(struct.pack("<I", len(head)) + head + table.tobytes())


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


def unpack_values(blob: bytes) -> tuple[dict[str, FloatArray], list[Any]]:
    """(measure -> one value per query, query ids) from the compressed part of a packed result."""
    raw = _decompress(blob)
    (size,) = struct.unpack_from("<I", raw)
    head = json.loads(raw[4 : 4 + size])
    names, query_ids = head["measures"], head["query_ids"]
    table = np.frombuffer(raw, dtype="<f8", offset=4 + size).reshape(len(names), len(query_ids))
    return {n: table[i].astype(np.float64) for i, n in enumerate(names)}, query_ids


def split(packed: bytes) -> tuple[dict[str, Any], bytes]:
    """The header and the compressed values of a packed result."""
    (size,) = struct.unpack_from("<I", packed)
    return json.loads(packed[4 : 4 + size]), packed[4 + size :]


def _or_none(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def or_nan(value: float | None) -> float:
    """JSON's null back to NaN."""
    return float("nan") if value is None else float(value)


def rows_of(records: Iterable[RunRecord]) -> list[dict[str, Any]]:
    """One row per cell and measure; a failed cell has its measures too, without a figure."""
    rows = []
    for record in records:
        cell = record.cell
        inputs = {name: _plain(cell.get(name)) for name in INPUTS}
        for measure in cell.get("measures") or list(record.means):
            values = record.values.get(measure)
            rows.append(
                {
                    "recipe": record.recipe,
                    "key": record.key,
                    **inputs,
                    "measure": measure,
                    "status": record.status,
                    "mean": _or_none(record.means.get(measure, np.nan)),
                    "n_queries": None if values is None else int((~np.isnan(values)).sum()),
                    **{name: record.chosen.get(name) for name in REALISED},
                    "chosen": to_json(dict(record.chosen)),
                    "error": record.error.strip().rpartition("\n")[2],
                    "versions": to_json(dict(record.versions)),
                    "wall_seconds": record.wall_seconds,
                    "started_at": record.started_at,
                }
            )
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
