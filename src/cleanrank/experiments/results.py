"""What computing a cell gives, as bytes (JSON and compressed float64, never pickle) and as a flat table.

Values are packed by zstd, by zlib on machines that have nothing but NumPy and torch; either is read anywhere.
Rows of the table are in the order of their inputs, and figures are the same from run to run; only columns
that end in ``_seconds`` or ``_at`` tell of the run itself. ``tracked`` reads such a table back.
"""

import json
import re
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np

from cleanrank.data.spreadsheet import write_frame
from cleanrank.errors import invalid
from cleanrank.types import FloatArray, RunRecord

ZSTD = b"\x28\xb5\x2f\xfd"  # how every zstd frame begins; no zlib stream does
# Noise of training labels: dNoise and pNoise as counted, the closed form for the queries at hand, and the
# papers' for overall shares of grades.
REALISED = ("train_dnoise", "train_pnoise", "expected_pnoise", "overall_pnoise")
INPUTS = (
    "dataset", "fold", "noise", "rate", "method", "algorithm", "version", "seed", "params", "grid", "select",
    "data", "options", "derived", "identity", "on", "measures",
)  # fmt: skip
COLUMNS = (
    "recipe", "key", *INPUTS, "measure", "status", "mean", "n_queries", "query_se", *REALISED, "chosen",
    "error", "versions", "wall_seconds", "started_at",
)  # fmt: skip
TYPES = dict.fromkeys(("fold", "version", "seed", "n_queries"), "Int64")
TYPES |= dict.fromkeys(("rate", "mean", *REALISED), "float64")
TYPES |= dict.fromkeys(("query_se", "wall_seconds"), "float32")


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


def rows_of(
    records: Iterable[RunRecord], measures: Sequence[str] | None = None, *, values: bool = False
) -> list[dict[str, Any]]:
    """One row per cell and measure; a failed cell has its measures too, without a figure.

    ``measures`` are those to give, all unless given; ``values`` adds a column with the value of every query.
    """
    rows = []
    for record in records:
        shared = vars(record) | {name: _plain(record.cell.get(name)) for name in INPUTS}
        shared |= {name: record.chosen.get(name) for name in REALISED}
        chosen = {name: value for name, value in record.chosen.items() if name not in REALISED}
        shared |= {"chosen": to_json(chosen), "versions": to_json(dict(record.versions))}
        shared |= {"wall_seconds": round(record.wall_seconds, 2)}
        shared |= {"started_at": re.sub(r"\.\d+", "", record.started_at)}  # to the second
        shared["error"] = record.error.strip().rpartition("\n")[2]
        there = record.means if record.status == "done" else record.cell.get("measures", ())
        for measure in record.cell.get("measures") or list(record.means):
            if measure in there and (measures is None or measure in measures):
                row = {**shared, "measure": measure, **_figures(record, measure)}
                rows.append({name: row[name] for name in (*COLUMNS, *["values"] * values)})
    return sorted(rows, key=_place)


def _figures(record: RunRecord, measure: str) -> dict[str, Any]:
    """Mean, queries, standard error and values of a measure.

    The error is that of the plain mean over queries: of a figure pooled over rows or pairs it is as near as
    queries are alike in size.
    """
    mean, per_query = _or_none(record.means.get(measure, np.nan)), record.values.get(measure)
    if per_query is None:
        queries, error = (of.get(measure) for of in (record.n_queries, record.query_se))
        return {"mean": mean, "n_queries": queries, "query_se": error, "values": None}
    counted = per_query[~np.isnan(per_query)]
    error = float(counted.std(ddof=1) / np.sqrt(len(counted))) if len(counted) > 1 else None
    return {
        "mean": mean, "n_queries": len(counted), "query_se": error, "values": per_query.astype(np.float32)
    }  # fmt: skip


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


def export(
    records: Sequence[RunRecord],
    path: str | Path,
    *,
    measures: Sequence[str] | None = None,
    values: bool = False,
) -> int:
    """Writes records as .parquet, .csv, .tsv or .xlsx; returns the number of rows.

    Args:
        records: what ran.
        path: the file to write.
        measures: those to give; all unless given.
        values: whether to give the value of every query as well, in single precision (.parquet only).

    Returns:
        The number of rows.
    """
    import pandas as pd

    if values and Path(path).suffix.lower() != ".parquet":
        raise invalid("values of queries", "must go to a .parquet file", repr(str(path)))
    rows = rows_of(records, measures, values=values)
    frame = pd.DataFrame(rows, columns=(*COLUMNS, *["values"] * values))
    measured = ("mean", "query_se", *["values"] * (values and len(frame) > 0))
    frame = frame.astype({name: TYPES.get(name, "string") for name in COLUMNS})
    write_frame(frame, path, measured=measured)
    return len(frame)


def _plain(value: Any) -> Any:
    return to_json(value) if isinstance(value, dict | list) else value


def _place(row: Mapping[str, Any]) -> tuple[Any, ...]:
    return (
        row["recipe"], str(row["dataset"]), row["fold"] or 0, str(row["noise"]), row["rate"] or 0.0,
        str(row["method"]), row["seed"] or 0, row["key"], row["measure"],
    )  # fmt: skip
