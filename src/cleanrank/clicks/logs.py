"""Click logs: lists that were shown, entry by entry, as arrays, tables and files.

A table has a row for every document shown: ``session, query_id, row_id, position, click`` and ``doc_id``
where the data have them. A list is one session of one query.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import cleanrank
from cleanrank.data.files import existing_file, file_sha256, written_whole
from cleanrank.errors import BadFileError, invalid
from cleanrank.ragged import indptr_of, match_rows
from cleanrank.types import Array, IntArray, Progress, RankingData
from cleanrank.validation import one_of

COLUMNS = ("session", "query_id", "row_id", "position", "click")
KINDS = ("pandas", "arrow")
UNKNOWN = ("refuse", "skip")


@dataclass(frozen=True, eq=False)
class ClickLog:
    """Lists shown and what was clicked.

    Attributes:
        data: the documents; ``query`` and ``row`` are places in it.
        query: the query of each list.
        session: the number of each list's session.
        indptr: entries of each list, in rank order.
        row: the document of each entry.
        position: the rank of each entry, from 1.
        click: whether each entry was clicked.
        settings: how the clicks were made, where that is known.
        skipped: entries of a table that are not in ``data`` and were left out.
    """

    data: RankingData = field(repr=False)
    query: IntArray
    session: IntArray
    indptr: IntArray
    row: IntArray
    position: IntArray
    click: npt.NDArray[np.bool_]
    settings: Mapping[str, Any] = field(default_factory=dict)
    skipped: int = 0

    @property
    def n_lists(self) -> int:
        """Lists shown."""
        return len(self.indptr) - 1

    @property
    def clicks_per_list(self) -> IntArray:
        """Clicks on each list."""
        return np.diff(np.concatenate(([0], np.cumsum(self.click)))[self.indptr])

    def __len__(self) -> int:
        return len(self.row)

    def __repr__(self) -> str:
        share = f", {self.click.mean():.2%} clicked" if len(self) else ""
        skipped = f"; {self.skipped:,} skipped" if self.skipped else ""
        return f"ClickLog({self.n_lists:,} lists, {len(self):,} entries{share}{skipped})"

    def select_lists(self, keep: npt.NDArray[np.bool_]) -> "ClickLog":
        """Only the lists in a mask."""
        if keep.all():
            return self
        lengths = np.diff(self.indptr)
        entries = np.repeat(keep, lengths)
        return replace(
            self,
            query=self.query[keep],
            session=self.session[keep],
            indptr=indptr_of(lengths[keep]),
            row=self.row[entries],
            position=self.position[entries],
            click=self.click[entries],
        )

    @classmethod
    def joined(cls, logs: Sequence["ClickLog"]) -> "ClickLog":
        """Several logs of the same data as one."""
        if len(logs) == 1:
            return logs[0]
        columns: dict[str, Any] = {
            name: np.concatenate([getattr(log, name) for log in logs])
            for name in ("query", "session", "row", "position", "click")
        }
        lengths = np.concatenate([np.diff(log.indptr) for log in logs])
        return replace(
            logs[0], indptr=indptr_of(lengths), skipped=sum(log.skipped for log in logs), **columns
        )

    def to_frame(self, kind: str = "pandas") -> Any:
        """A table with a row per entry, as pandas or Arrow."""
        import pyarrow as pa

        one_of("kind of frame", kind, KINDS)
        lengths = np.diff(self.indptr)
        columns = {
            "session": np.repeat(self.session, lengths),
            "query_id": pa.array(np.repeat(self.data.query_ids[self.query], lengths)),
            "row_id": self.data.row_ids[self.row],
            "position": self.position.astype(np.int32),
            "click": self.click.astype(np.int8),
        }
        if self.data.doc_ids is not None:
            columns["doc_id"] = pa.array(self.data.doc_ids[self.row])
        table = pa.table(columns)
        return table if kind == "arrow" else table.to_pandas()


def write_click_log(logs: ClickLog | Iterable[ClickLog], path: str | os.PathLike[str]) -> int:
    """Writes one log, or several one after the other, as Parquet or CSV by suffix; returns the entries."""
    import pyarrow.csv
    import pyarrow.parquet

    open_writer = pyarrow.csv.CSVWriter if _is_csv(Path(path)) else pyarrow.parquet.ParquetWriter
    writer, entries = None, 0
    with written_whole(path) as part:
        try:
            for log in [logs] if isinstance(logs, ClickLog) else logs:
                table = log.to_frame("arrow")
                writer = writer or open_writer(str(part), table.schema)
                writer.write_table(table)
                entries += len(log)
        finally:
            if writer is not None:
                writer.close()
        if writer is None:
            raise invalid("a click log", "must have a session", "none")
    return entries


def write_sessions(
    logs: Iterable[ClickLog],
    path: str | os.PathLike[str],
    *,
    source: str | os.PathLike[str],
    scores: str | os.PathLike[str] | None = None,
    sessions: int,
    cutoff: int | None = None,
    skip_empty: bool = False,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Writes simulated sessions one by one, and beside them how they were made; returns that record.

    Args:
        logs: from ``click_sessions``.
        path: the log; the record goes to ``session_record(path)``.
        source: the file of the data, for its name and checksum.
        scores: the file of the scores that ranked the lists.
        sessions: how many there are.
        cutoff: ranks shown.
        skip_empty: leaves lists without a click out.
        progress: called with (session, sessions).
    """
    counts = dict.fromkeys(("lists", "entries", "clicks", "empty_lists"), 0)
    settings: dict[str, Any] = {}

    def counted() -> Iterator[ClickLog]:
        for session, log in enumerate(logs, start=1):
            settings.update(log.settings)
            empty = log.clicks_per_list == 0
            kept = log.select_lists(~empty) if skip_empty else log
            values = (kept.n_lists, len(kept), int(kept.click.sum()), int(empty.sum()))
            counts.update({name: n + counts[name] for name, n in zip(counts, values, strict=True)})
            if progress is not None:
                progress(session, sessions)
            yield kept

    with written_whole(session_record(path)) as part:
        write_click_log(counted(), path)
        record = {
            "cleanrank": cleanrank.__version__,
            "input": Path(source).name,
            "input_sha256": file_sha256(source),
            "scores": None if scores is None else Path(scores).name,
            "scores_sha256": None if scores is None else file_sha256(scores),
            **settings,
            "sessions": sessions,
            "cutoff": cutoff,
            "skip_empty": skip_empty,
            **counts,
            "click_rate": counts["clicks"] / counts["entries"] if counts["entries"] else None,
        }
        part.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    return record


def session_record(path: str | os.PathLike[str]) -> Path:
    """Where the record of a simulated log lies.

    >>> session_record("log.csv").name
    'log.csv.clicks.json'
    """
    return Path(path).with_name(f"{Path(path).name}.clicks.json")


def clicks_from_log(
    table: Any,
    data: RankingData,
    *,
    columns: Mapping[str, str] | None = None,
    unknown: str = "refuse",
) -> ClickLog:
    """A log from a table (pandas, polars, Arrow), a Parquet or CSV file, or a UBI log.

    Args:
        table: a row for every document shown, or a log of User Behavior Insights (.ndjson, .jsonl). A table
            needs ``position`` and ``click``, and ``row_id`` or both ``query_id`` and ``doc_id`` to find the
            document. Without ``session`` every entry is a list of its own, which does for position-based
            users.
        data: the documents.
        columns: what the columns are called, such as ``{"click": "clicked"}``.
        unknown: entries whose document is not in ``data`` raise an error ("refuse") or are skipped and
            counted ("skip").
    """
    import pyarrow as pa

    one_of("treatment of unknown documents", unknown, UNKNOWN)
    names = {name: name for name in (*COLUMNS, "doc_id")} | dict(columns or {})
    log = table if isinstance(table, pa.Table) else _read(table)
    for name in ("position", "click"):
        one_of(f"column ({name})", names[name], log.column_names)
    row = _rows(log, names, data)
    in_data = row >= 0
    if not in_data.all() and unknown == "refuse":
        at = f"entry {int(np.argmin(in_data))}"
        remedy = "Say unknown='skip' to leave such entries out."
        raise invalid("click log", "must show documents of the data", "another", at=at, remedy=remedy)
    position = _whole(log, names["position"], 1)[in_data]
    click = _whole(log, names["click"], 0)[in_data]
    if (click > 1).any():
        raise invalid("column (click)", "must be 0 or 1", int(click.max()))
    has_session = names["session"] in log.column_names
    session = log.column(names["session"]).to_numpy() if has_session else np.arange(len(row))
    numbers = np.unique(session, return_inverse=True)[1][in_data]
    row = row[in_data]
    query = np.searchsorted(data.indptr, row, side="right") - 1
    order = np.lexsort((position, query, numbers))
    query, numbers = query[order], numbers[order]
    new = np.concatenate(([True], (query[1:] != query[:-1]) | (numbers[1:] != numbers[:-1])))[: len(query)]
    first = np.flatnonzero(new)
    indptr = np.append(first, len(query)).astype(np.int64)
    entries = row[order], position[order], click[order].astype(np.bool_)
    skipped = int((~in_data).sum())
    return ClickLog(data, query[first], numbers[first].astype(np.int64), indptr, *entries, skipped=skipped)


def _rows(table: Any, names: Mapping[str, str], data: RankingData) -> IntArray:
    """The place in ``data`` of every entry's document; -1 where there is none."""
    if names["row_id"] in table.column_names:
        return match_rows(data.row_ids, _whole(table, names["row_id"], 0))
    if {names["query_id"], names["doc_id"]} <= set(table.column_names) and data.doc_ids is not None:
        keys = _keys(*(table.column(names[name]).to_pylist() for name in ("query_id", "doc_id")))
        return match_rows(_keys(data.qid.tolist(), data.doc_ids.tolist()), keys)
    rule = "must name its documents by row_id, or by query_id and doc_id where the data have document ids"
    columns, remedy = ", ".join(table.column_names), "Say columns={'row_id': ...}."
    raise invalid("click log", rule, columns, remedy=remedy)


def _keys(queries: list[Any], docs: list[Any]) -> npt.NDArray[np.str_]:
    return np.array([f"{q}\x1f{d}" for q, d in zip(queries, docs, strict=True)], dtype=np.str_)


def _whole(table: Any, name: str, lowest: int) -> IntArray:
    values: Array = table.column(name).to_numpy()
    subject, rule = f"column {name!r}", f"must hold integers >= {lowest}"
    if values.dtype.kind not in "iubf":
        raise invalid(subject, rule, f"dtype {values.dtype}")
    bad = ~(np.isfinite(values) & (values >= lowest) & (values == np.floor(values)))
    if bad.any():
        raise invalid(subject, rule, values[np.argmax(bad)], at=f"entry {int(np.argmax(bad))}")
    return values.astype(np.int64)


def _read(table: Any) -> Any:
    """An Arrow table from a file or a frame."""
    import pyarrow as pa
    import pyarrow.parquet

    from cleanrank.data.table_files import read_table

    if isinstance(table, str | os.PathLike):
        file = existing_file(table)
        if {".ndjson", ".jsonl"} & set(file.suffixes):
            from cleanrank.clicks.ubi import ubi_table

            return ubi_table(file)[0]
        try:
            return read_table(file)[0] if _is_csv(file) else pyarrow.parquet.read_table(file)
        except (pa.ArrowException, OSError) as error:
            kind = file.suffix[1:]
            raise BadFileError(f"{str(file)!r} cannot be read as {kind}: {error}.", str(file)) from error
    if not hasattr(table, "__arrow_c_stream__"):
        raise invalid("a click log", "must be a table or a path", type(table).__name__)
    return pa.table(table)


def _is_csv(file: Path) -> bool:
    if file.suffix not in (".parquet", ".csv"):
        raise invalid("a click log's file", "must end in .parquet or .csv", repr(str(file)))
    return file.suffix == ".csv"
