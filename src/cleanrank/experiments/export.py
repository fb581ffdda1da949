"""Runs as a flat table: one row per cell and measure.

Rows are in the order of their inputs, and figures are the same from run to run; only columns that end in
``_seconds`` or ``_at`` tell of the run itself.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.data.files import written_whole
from cleanrank.experiments.realised import REALISED
from cleanrank.experiments.results import to_json
from cleanrank.types import RunRecord
from cleanrank.validation import one_of

INPUTS = (
    "dataset",
    "fold",
    "noise",
    "rate",
    "method",
    "algorithm",
    "version",
    "seed",
    "params",
    "grid",
    "select",
)
FORMATS = ("parquet", "csv")


def rows_of(records: Iterable[RunRecord]) -> list[dict[str, Any]]:
    """One row per cell and measure; a failed cell has its measures too, without a figure."""
    found = []
    for record in records:
        cell = record.cell
        inputs = {name: _plain(cell.get(name)) for name in INPUTS}
        for measure in cell.get("measures") or list(record.means):
            values = record.values.get(measure)
            mean = record.means.get(measure, np.nan)
            found.append(
                {
                    "recipe": record.recipe,
                    "key": record.key,
                    **inputs,
                    "measure": measure,
                    "status": record.status,
                    "mean": None if np.isnan(mean) else float(mean),
                    "n_queries": None if values is None else int((~np.isnan(values)).sum()),
                    **{name: record.chosen.get(name) for name in REALISED},
                    "chosen": to_json(dict(record.chosen)),
                    "error": record.error.strip().rpartition("\n")[2],
                    "versions": to_json(dict(record.versions)),
                    "wall_seconds": record.wall_seconds,
                    "started_at": record.started_at,
                }
            )
    return sorted(found, key=_place)


def export(records: Sequence[RunRecord], path: str | Path) -> int:
    """Writes records as Parquet or CSV, as the ending of ``path`` says; returns the number of rows."""
    path = Path(path)
    ending = one_of("file ending", path.suffix.lstrip("."), FORMATS)
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    rows = rows_of(records)
    kinds = {"fold": pa.int64(), "version": pa.int64(), "seed": pa.int64(), "n_queries": pa.int64()}
    kinds |= dict.fromkeys(("rate", "mean", "wall_seconds", *REALISED), pa.float64())
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in COLUMNS])
    table = pa.Table.from_pylist(rows, schema=schema)
    with written_whole(path) as draft:
        if ending == "parquet":
            pa.parquet.write_table(table, draft)
        else:
            pa.csv.write_csv(table, draft)
    return len(rows)


COLUMNS = (
    "recipe",
    "key",
    *INPUTS,
    "measure",
    "status",
    "mean",
    "n_queries",
    *REALISED,
    "chosen",
    "error",
    "versions",
    "wall_seconds",
    "started_at",
)


def _plain(value: Any) -> Any:
    return to_json(value) if isinstance(value, dict | list) else value


def _place(row: dict[str, Any]) -> tuple[Any, ...]:
    return (
        row["recipe"],
        str(row["dataset"]),
        row["fold"] or 0,
        str(row["noise"]),
        row["rate"] or 0.0,
        str(row["method"]),
        row["seed"] or 0,
        row["key"],
        row["measure"],
    )
