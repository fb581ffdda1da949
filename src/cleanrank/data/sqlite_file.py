"""SQLite files of one kind each: opened with a check of what they are, written in short transactions.

Files are in WAL mode: readers do not wait for a writer, and what was committed survives a crash.
"""

import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from cleanrank.errors import BadFileError, CleanrankError, error_text

BUSY_SECONDS = 60.0
MAGIC = b"SQLite format 3\0"


@dataclass(frozen=True)
class FileKind:
    """What a file holds and how messages speak of it.

    Attributes:
        subject: what messages call the file.
        contents: what it must be.
        application_id: the number in its header.
        version: of the schema.
        schema: the statements that make its tables.
        synchronous: "NORMAL" may lose the last commits when the power fails, "FULL" loses none.
        exact: whether tables, views and triggers must be those of ``schema``, word for word.
        remedies: a word of SQLite's message -> what to do.
    """

    subject: str
    contents: str
    application_id: int
    version: int
    schema: str
    synchronous: str = "NORMAL"
    exact: bool = False
    remedies: Mapping[str, str] = field(default_factory=dict)

    @contextmanager
    def worded(self, path: Path) -> Iterator[None]:
        """Turns errors about the file into one that names it and says what to do."""
        try:
            yield
        except CleanrankError:  # says already what is wrong, with another file perhaps
            raise
        except (sqlite3.OperationalError, OSError) as error:
            remedies = [words for sign, words in self.remedies.items() if sign in str(error)]
            remedies.append("Check that the folder exists and can be written.")
            raise self.bad(path, "must be usable", error, remedies[0]) from error
        except sqlite3.DatabaseError as error:
            remedy = "Move it away, or give another path; what was exported before stays valid."
            raise self.bad(path, "must be an undamaged SQLite file", error, remedy) from error

    def bad(self, path: Path, rule: str, problem: object, remedy: str) -> BadFileError:
        """The error of a file that cannot be used."""
        text = error_text(self.subject, rule, f"{problem} in {str(path)!r}", remedy=remedy)
        return BadFileError(text, str(path))


def open_file(path: Path, kind: FileKind, *, create: bool) -> sqlite3.Connection:
    """A connection to a file of this kind, for any thread; with ``create`` an empty file is filled."""
    with kind.worded(path):
        if create:
            path.parent.mkdir(parents=True, exist_ok=True)
        # SQLite needs to write beside a file in WAL mode even to read it, unless nobody can write.
        option = "immutable=1" if not create and _is_frozen(path) else f"mode={'rwc' if create else 'rw'}"
        connection = sqlite3.connect(
            f"{path.resolve().as_uri()}?{option}",
            uri=True,
            timeout=BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
    connection.row_factory = sqlite3.Row
    try:
        with kind.worded(path):
            _prepare(connection, path, kind)
    except BaseException:
        connection.close()
        raise
    return connection


def _prepare(connection: sqlite3.Connection, path: Path, kind: FileKind) -> None:
    (n_tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if n_tables:
        _check_kind(connection, path, kind)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute(f"PRAGMA synchronous = {kind.synchronous}")
    if not n_tables:  # reading need not wait for a process that writes
        header = f"PRAGMA application_id = {kind.application_id}; PRAGMA user_version = {kind.version};"
        connection.executescript(f"BEGIN IMMEDIATE; {kind.schema} {header} COMMIT;")
        _check_kind(connection, path, kind)


def _check_kind(connection: sqlite3.Connection, path: Path, kind: FileKind) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != kind.application_id:
        problem = "another program's SQLite file"
        raise kind.bad(path, f"must be {kind.contents}", problem, "Give another path.")
    if version != kind.version:
        rule = f"must have schema version {kind.version}"
        remedy = "Use the cleanrank that wrote it, or another path."
        raise kind.bad(path, rule, f"version {version}", remedy)
    if kind.exact:
        own = sqlite3.connect(":memory:")
        own.executescript(kind.schema)
        expected, present = _schema_of(own), _schema_of(connection)
        own.close()
        if present != expected:
            names = ", ".join(sorted({str(name) for _, name, _ in present ^ expected}))
            rule, remedy = "must have the tables and views that cleanrank made", "Do not use a changed file."
            raise kind.bad(path, rule, f"others: {names}", remedy)


def _schema_of(connection: sqlite3.Connection) -> set[tuple[str, str, str]]:
    statements = connection.execute(
        "SELECT type, name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
    )
    return {(kind, name, sql) for kind, name, sql in statements}


def _is_frozen(path: Path) -> bool:
    """Whether neither the file nor its folder can be written and no other process has changes under way."""
    writable = os.access(path, os.W_OK) or os.access(path.parent, os.W_OK)
    return not writable and not path.with_name(f"{path.name}-wal").exists()


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """One short transaction, which takes the write lock at its start so that it cannot deadlock."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield connection
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # a full disk may have ended it already
            connection.execute("ROLLBACK")
        raise
