"""The store of runs: one SQLite file (WAL) to which results are only ever added.

A result belongs to a key, the hash of all inputs of its cell. A key has at most one result that is "done";
whoever writes it first wins, so two runs at once cannot count a cell twice. Failures are kept as well, and
a later success takes their place. Values per query are kept as zstd-compressed float64.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.data.sqlite_file import FileKind, open_file, transaction
from cleanrank.errors import invalid
from cleanrank.experiments.results import now, or_nan, split, to_json, unpack_values
from cleanrank.types import RunRecord

DEFAULT_STORE = Path(".cleanrank") / "runs.sqlite"
APPLICATION_ID = 0x636C7273
SCHEMA_VERSION = 1

SCHEMA = """
CREATE TABLE IF NOT EXISTS results (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL,
  recipe TEXT NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('done', 'failed')),
  cell TEXT NOT NULL,
  means TEXT NOT NULL,
  chosen TEXT NOT NULL,
  error TEXT NOT NULL,
  versions TEXT NOT NULL,
  wall_seconds REAL NOT NULL,
  started_at TEXT NOT NULL,
  stored_at TEXT NOT NULL,
  query_values BLOB NOT NULL
);
CREATE UNIQUE INDEX IF NOT EXISTS done_once ON results (key) WHERE status = 'done';
CREATE INDEX IF NOT EXISTS by_key ON results (key);
CREATE TRIGGER IF NOT EXISTS append_only BEFORE UPDATE ON results
BEGIN SELECT RAISE(ABORT, 'results are only ever added'); END;
CREATE TABLE IF NOT EXISTS asked (
  recipe TEXT NOT NULL,
  key TEXT NOT NULL,
  cell TEXT NOT NULL,
  asked_at TEXT NOT NULL,
  PRIMARY KEY (recipe, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS asked_by_key ON asked (key);
CREATE TABLE IF NOT EXISTS files (
  path TEXT NOT NULL,
  size INTEGER NOT NULL,
  modified_ns INTEGER NOT NULL,
  sha256 TEXT NOT NULL,
  PRIMARY KEY (path, size, modified_ns)
) WITHOUT ROWID;
CREATE VIEW IF NOT EXISTS latest AS
  SELECT * FROM results WHERE id IN (
    SELECT COALESCE(MAX(CASE WHEN status = 'done' THEN id END), MAX(id)) FROM results GROUP BY key);
CREATE VIEW IF NOT EXISTS figures AS
  SELECT l.key, l.recipe, l.status, m.key AS measure, m.value AS mean FROM latest l, json_each(l.means) m;
"""

KIND = FileKind(
    "store",
    "a file of runs",
    APPLICATION_ID,
    SCHEMA_VERSION,
    SCHEMA,
    remedies={
        "locked": "Another run holds it; try again when that one has finished.",
        "full": "Free space on the disk; finished cells are stored, and the same command goes on from there.",
    },
)


# The row of the standing result of a cell that was asked for; a join with the view would try every row.
STANDING = """(SELECT COALESCE(MAX(CASE WHEN r.status = 'done' THEN r.id END), MAX(r.id))
    FROM results r WHERE r.key = a.key)"""
NOTE_CELL = "INSERT OR IGNORE INTO asked VALUES (?, ?, ?, ?)"


class Store:
    """A file of results, made with its folder unless ``create`` is off; a context manager that closes it."""

    def __init__(self, path: str | Path = DEFAULT_STORE, *, create: bool = True) -> None:
        self.path = Path(path)
        if not create and not self.path.is_file():
            remedy = "Run a recipe or give --store."
            raise invalid("store", "must be an existing file", repr(str(self.path)), remedy=remedy)
        self._connection = open_file(self.path, KIND, create=create)

    def __enter__(self) -> "Store":
        return self

    def __exit__(self, *error: object) -> None:
        self._connection.close()

    @contextmanager
    def _write(self) -> Iterator[sqlite3.Connection]:
        with KIND.worded(self.path), transaction(self._connection) as db:
            yield db

    def _rows(self, query: str, arguments: Sequence[Any] = ()) -> list[sqlite3.Row]:
        with KIND.worded(self.path):
            return self._connection.execute(query, arguments).fetchall()

    def add_recipe(self, recipe: str, cells: Mapping[str, Mapping[str, Any]]) -> None:
        """Notes which cells (key -> cell) a recipe is made of."""
        with self._write() as db:
            db.executemany(NOTE_CELL, [(recipe, key, to_json(cell), now()) for key, cell in cells.items()])

    def add(self, key: str, recipe: str, cell: Mapping[str, Any], packed: bytes) -> bool:
        """Adds a packed result; False when the cell is done already, and nothing is written then."""
        header, blob = split(packed)
        row = {
            "key": key,
            "recipe": recipe,
            "cell": to_json(cell),
            **{name: header[name] for name in ("status", "error", "wall_seconds", "started_at")},
            **{name: to_json(header[name]) for name in ("means", "chosen", "versions")},
            "stored_at": now(),
            "query_values": blob,
        }
        with self._write() as db:
            if self.is_done(key):
                return False
            db.execute(NOTE_CELL, (recipe, key, to_json(cell), now()))
            marks = ", ".join(f":{name}" for name in row)
            db.execute(f"INSERT INTO results ({', '.join(row)}) VALUES ({marks})", row)
        return True

    def is_done(self, key: str) -> bool:
        """Whether the cell has its figures."""
        return bool(self._rows("SELECT 1 FROM results WHERE key = ? AND status = 'done'", (key,)))

    def done_keys(self) -> set[str]:
        """The keys of all cells that have their figures."""
        return {key for (key,) in self._rows("SELECT key FROM results WHERE status = 'done'")}

    def records(
        self, *, recipe: str | None = None, keys: Iterable[str] | None = None, values: bool = True
    ) -> list[RunRecord]:
        """The standing result of every cell, by key: the one that is done, else the latest failure.

        A ``recipe`` leaves the cells that it asked for, under its own labels, and ``keys`` only these. It is
        faster without ``values`` per query.
        """
        blob = "l.query_values" if values else "NULL AS query_values"
        # Without a recipe, labels are those of the first that asked, by name, whoever computed the cell.
        by = "?" if recipe is not None else "(SELECT MIN(recipe) FROM asked WHERE key = a.key)"
        query = f"""
            SELECT l.key, l.status, l.means, l.chosen, l.error, l.versions, l.wall_seconds, l.started_at,
            {blob}, a.recipe, a.cell FROM asked a JOIN results l ON l.id = {STANDING} WHERE a.recipe = {by}"""
        arguments = [] if recipe is None else [recipe]
        if keys is not None:
            query += " AND a.key IN (SELECT value FROM json_each(?))"
            arguments.append(to_json(list(keys)))
        return [self._record(row) for row in self._rows(f"{query} ORDER BY l.key", arguments)]

    def _record(self, row: sqlite3.Row) -> RunRecord:
        try:
            return _record(row)
        except Exception as error:  # damage may show anywhere: in JSON, in compressed values, in their shapes
            problem = f"{type(error).__name__}: {error} at key {row['key']!r}"
            remedy = "Move it away, or give another path; what was exported before stays valid."
            raise KIND.bad(self.path, "must hold results as cleanrank wrote them", problem, remedy) from error

    def recipes(self) -> dict[str, tuple[int, int, int]]:
        """Recipe -> (cells asked for, done, failed)."""
        query = f"""
            SELECT a.recipe, count(*), sum(l.status IS 'done'), sum(l.status IS 'failed')
            FROM asked a LEFT JOIN results l ON l.id = {STANDING} GROUP BY a.recipe ORDER BY a.recipe"""
        return {recipe: (n, done, failed) for recipe, n, done, failed in self._rows(query)}

    def find(self, prefix: str) -> list[RunRecord]:
        """The records whose key starts with ``prefix``."""
        query = "SELECT DISTINCT key FROM results WHERE substr(key, 1, ?) = ?"
        return self.records(keys=[key for (key,) in self._rows(query, (len(prefix), prefix))])

    def find_one(self, prefix: str) -> RunRecord:
        """The record whose key starts with ``prefix``."""
        records = self.find(prefix)
        if len(records) != 1:
            rule, remedy = "must be the start of one stored key", "See `cleanrank runs list RECIPE`."
            raise invalid("key", rule, f"{prefix!r}, which fits {len(records)}", remedy=remedy)
        return records[0]

    def superseded(self, versions: Mapping[str, int], *, failed: bool = False) -> list[tuple[int, str]]:
        """What a clean-up would remove, as (row, why).

        That is failures that were replaced (with ``failed`` all of them) and cells of other ``versions`` of
        a method than its present one.
        """
        standing = {row for (row,) in self._rows("SELECT id FROM latest")}
        removable = []
        for row, status, text in self._rows("SELECT id, status, cell FROM results ORDER BY id"):
            cell = json.loads(text)
            name, version = cell.get("algorithm"), cell.get("version")
            if row not in standing:
                removable.append((row, "superseded failure"))
            elif versions.get(name) != version:
                removable.append((row, f"old version of {name}"))
            elif failed and status == "failed":
                removable.append((row, "failure"))
        return removable

    def remove(self, rows: Iterable[int]) -> None:
        """Deletes results by row and gives the space back.

        Figures go only when their method has a new version: then no recipe asks for that cell any more.
        """
        listed = to_json(list(rows))
        removed = "results WHERE id IN (SELECT value FROM json_each(?))"
        with self._write() as db:
            done = f"SELECT key FROM {removed} AND status = 'done'"
            db.execute(f"DELETE FROM asked WHERE key IN ({done})", (listed,))
            db.execute(f"DELETE FROM {removed}", (listed,))
        # Beside another run the file keeps its size until the next clean-up.
        with KIND.worded(self.path), suppress(sqlite3.OperationalError):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._connection.execute("VACUUM")

    def file_hash(self, path: str, size: int, modified_ns: int) -> str | None:
        """The SHA-256 noted for a file of this size and time, if any."""
        query = "SELECT sha256 FROM files WHERE path = ? AND size = ? AND modified_ns = ?"
        return next((str(sha256) for (sha256,) in self._rows(query, (path, size, modified_ns))), None)

    def note_file(self, path: str, size: int, modified_ns: int, sha256: str) -> None:
        """Notes the SHA-256 of a file."""
        with self._write() as db:
            db.execute("INSERT OR IGNORE INTO files VALUES (?, ?, ?, ?)", (path, size, modified_ns, sha256))


def _record(row: sqlite3.Row) -> RunRecord:
    fields = dict(row)
    blob = fields.pop("query_values")
    fields |= {name: json.loads(fields[name]) for name in ("cell", "means", "chosen", "versions")}
    fields["means"] = {m: or_nan(v) for m, v in fields["means"].items()}
    if blob is not None and fields["status"] == "done":
        fields["values"], ids = unpack_values(blob)
        fields["query_ids"] = np.asarray(ids)
    return RunRecord(**fields)
