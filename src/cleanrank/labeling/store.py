"""A labelling project in one SQLite file: documents, batches of questions, and who answered what.

Answers are only ever added, and each is on the disk (WAL, synchronous=FULL) before ``append`` returns.
Several threads and processes may use a project at once.
"""

import hashlib
import json
import secrets
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.data.files import existing_file, written_whole
from cleanrank.data.project_file import KIND, is_project
from cleanrank.data.sqlite_file import open_file, transaction
from cleanrank.errors import InvalidInputError, UnknownNameError, invalid
from cleanrank.labeling.records import (
    EVENTS,
    KINDS,
    PURPOSES,
    Annotator,
    Batch,
    Document,
    Event,
    Scale,
    Unit,
    check_annotator,
    checked_units,
)
from cleanrank.types import plain
from cleanrank.validation import check_integer, check_number, check_path, one_of

LONGEST_REQUEST = 100


def create_project(
    path: str | PathLike[str],
    documents: Iterable[Document] = (),
    queries: Mapping[str, str] | None = None,
    *,
    name: str,
    scale: Scale,
    feature_names: Sequence[str] = (),
) -> "Project":
    """Makes a project in a new file.

    Args:
        path: the file; it must not exist.
        documents: what can be judged; more may be added later.
        queries: query id -> its text.
        name: for people.
        scale: the grades, with a description of each.
        feature_names: of the numbers in ``Document.features``.

    Returns:
        The project, open; use it with ``with``.

    >>> import tempfile
    >>> scale = Scale(("not relevant", "relevant"))
    >>> document = Document(0, "q", "a", fields={"text": "An apple."})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = f"{folder}/demo.sqlite"
    ...     with create_project(file, [document], {"q": "fruit"}, name="demo", scale=scale) as project:
    ...         project, project.query_text("q"), project.documents_of("q")[0].fields["text"]
    (Project('demo', 1 documents, 0 batches, 0 events), 'fruit', 'An apple.')
    """
    target = check_path(path)
    if target.exists():
        remedy = "Open it with open_project, or name another file."
        raise invalid("project", "must be a new file", repr(str(target)), remedy=remedy)
    if scale.n_grades < 2:
        raise invalid("scale", "must have at least two grades", scale.n_grades)
    with written_whole(target) as part:
        connection = open_file(part, KIND, create=True)
        about = {"name": name, "scale": list(scale.descriptions), "feature_names": list(feature_names)}
        rows = [(key, json.dumps(value)) for key, value in about.items()]
        connection.executemany("INSERT INTO project VALUES (?, ?)", rows)
        try:
            project = Project(part, connection)
            project.add_documents(documents, queries or {})
        finally:
            connection.close()
    return open_project(target)


def open_project(path: str | PathLike[str]) -> "Project":
    """Opens a project; a file that cleanrank did not make, or that was changed, is refused.

    Args:
        path: the file.

    Returns:
        The project; use it with ``with``.

    >>> open_project("nowhere.sqlite")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    cleanrank.errors.MissingDataError: there is no file 'nowhere.sqlite'...
    """
    file = existing_file(path)
    if not is_project(file):
        remedy = "Give a project of cleanrank label or cleanrank review."
        raise KIND.bad(file, f"must be {KIND.contents}", "another kind of file", remedy)
    return Project(file, open_file(file, KIND, create=False))


class Project:
    """A labelling project; made by ``create_project`` and ``open_project``.

    Attributes:
        path: its file.
        name: for people.
        scale: the grades.
        feature_names: of the documents' features.
        lock: held while the file is used; hold it to read several things at one moment of this process.
        remembered: batch -> what sessions keep in memory of it.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self.remembered: dict[int, Any] = {}
        self._connection = connection
        self.lock = threading.RLock()
        self._units: dict[int, tuple[Unit, ...]] = {}
        try:
            connection.execute("PRAGMA foreign_keys = ON")
            about = {key: json.loads(value) for key, value in self._rows("SELECT key, value FROM project")}
            self.name = str(about["name"])
            self.scale = Scale(tuple(map(str, about["scale"])))
            self.feature_names = tuple(map(str, about["feature_names"]))
        except BaseException as error:
            connection.close()
            if isinstance(error, KeyError | TypeError | ValueError) and not isinstance(
                error, InvalidInputError
            ):
                rule, remedy = "must say its name, scale and features", "Do not use a changed file."
                raise KIND.bad(path, rule, f"{error!r}", remedy) from error
            raise

    def __enter__(self) -> "Project":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        with self.lock:
            self._connection.close()

    def __repr__(self) -> str:
        counts = [self._rows(f"SELECT count(*) FROM {t}")[0][0] for t in ("documents", "batches", "events")]
        documents, batches, events = (f"{count:,}" for count in counts)
        return f"Project({self.name!r}, {documents} documents, {batches} batches, {events} events)"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """One transaction of everything in the block; blocks may be nested."""
        with self.lock, KIND.worded(self.path):
            if self._connection.in_transaction:
                yield
            else:
                with transaction(self._connection):
                    yield

    def _rows(self, query: str, arguments: Sequence[Any] = ()) -> list[sqlite3.Row]:
        with self.lock, KIND.worded(self.path):
            return self._connection.execute(query, arguments).fetchall()

    def _execute(self, statement: str, arguments: Sequence[Any]) -> int:
        with self.writing():
            return int(self._connection.execute(statement, arguments).lastrowid or 0)

    def add_documents(self, documents: Iterable[Document], queries: Mapping[str, str]) -> None:
        """Adds documents and their queries; those that are there already must be the same."""
        with self.writing():
            for query, text in queries.items():
                self._execute("INSERT OR IGNORE INTO queries VALUES (?, ?)", (str(query), text))
            for each in documents:
                self._add_document(each)

    def _add_document(self, each: Document) -> None:
        cells: tuple[Any, ...] = (each.query_id, each.doc_id, each.row_id, each.given_label)
        select = 'SELECT query_id, doc_id, row_id, given_label FROM documents WHERE "row" = ?'
        present = self._rows(select, (each.row,))
        if present and tuple(present[0]) != cells:
            rule = "must be the documents that the project was made from"
            value = f"query, document, row and label {cells} for {tuple(present[0])}"
            raise invalid("documents", rule, value, at=f"document {each.row}")
        if not present:
            self._execute("INSERT OR IGNORE INTO queries VALUES (?, '')", (each.query_id,))
            features = None if each.features is None else np.asarray(each.features, "<f4").tobytes()
            row = (each.row, *cells, json.dumps(dict(each.fields)), features)
            self._execute("INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?, ?)", row)

    def keep(self, key: str, value: Any) -> None:
        """Stores something JSON-like under a name, in place of what was there."""
        self._execute(
            "INSERT OR REPLACE INTO project VALUES (?, ?)", (f"kept: {key}", json.dumps(plain(value)))
        )

    def kept(self, key: str) -> Any:
        """What ``keep`` stored under a name; None if nothing."""
        rows = self._rows("SELECT value FROM project WHERE key = ?", (f"kept: {key}",))
        return json.loads(rows[0][0]) if rows else None

    def query_text(self, query_id: str) -> str:
        """The text of a query; empty where the data have none."""
        rows = self._rows("SELECT text FROM queries WHERE id = ?", (query_id,))
        return str(rows[0][0]) if rows else ""

    def query_ids(self) -> tuple[str, ...]:
        """The queries that have documents, in the order of these."""
        query = 'SELECT query_id FROM documents GROUP BY query_id ORDER BY min("row")'
        return tuple(str(query_id) for (query_id,) in self._rows(query))

    def document(self, row: int) -> Document:
        """The document of this number."""
        rows = self._rows('SELECT * FROM documents WHERE "row" = ?', (row,))
        if not rows:
            raise invalid("document", "must be in the project", row)
        return self._document(rows[0])

    def documents(self) -> tuple[Document, ...]:
        """All documents, query by query."""
        order = 'ORDER BY min("row") OVER (PARTITION BY query_id), "row"'
        return tuple(map(self._document, self._rows(f"SELECT * FROM documents {order}")))

    def documents_of(self, query_id: str) -> tuple[Document, ...]:
        """The documents of a query, by their numbers."""
        rows = self._rows('SELECT * FROM documents WHERE query_id = ? ORDER BY "row"', (query_id,))
        return tuple(map(self._document, rows))

    def _document(self, row: sqlite3.Row) -> Document:
        cells = dict(row)
        fields = {str(name): str(text) for name, text in self._json(cells.pop("fields")).items()}
        blob = cells.pop("features")
        if blob is not None and len(blob) != 4 * len(self.feature_names):
            rule, remedy = f"must have {len(self.feature_names)} features", "Do not use a changed file."
            raise KIND.bad(self.path, f"document {cells['row']} {rule}", f"{len(blob)} bytes", remedy)
        features = None if blob is None else np.frombuffer(blob, "<f4").astype(np.float64)
        return Document(**cells, fields=fields, features=features)

    def _json(self, text: str) -> dict[str, Any]:
        try:
            return dict(json.loads(text))
        except (ValueError, TypeError) as error:
            raise KIND.bad(self.path, "must hold JSON", f"{error}", "Do not use a changed file.") from error

    def batches(self) -> tuple[Batch, ...]:
        """All batches, in the order in which they were made."""
        return tuple(map(self._batch, self._rows("SELECT * FROM batches ORDER BY id")))

    def batch(self, batch_id: int) -> Batch:
        """The batch of this number."""
        rows = self._rows("SELECT * FROM batches WHERE id = ?", (batch_id,))
        if not rows:
            known = ", ".join(f"{each.id} ({each.name})" for each in self.batches()) or "none"
            raise UnknownNameError(f"unknown batch {batch_id!r}. Known: {known}.")
        return self._batch(rows[0])

    def _batch(self, row: sqlite3.Row) -> Batch:
        cells = dict(row)
        del cells["made_at"]
        settings, blind = self._json(cells.pop("settings")), bool(cells.pop("blind"))
        return Batch(**cells, settings=settings, blind=blind)

    def add_batch(
        self,
        units: Iterable[Sequence[int] | tuple[Sequence[int], Mapping[str, Any]]],
        *,
        name: str,
        kind: str,
        purpose: str = "label",
        settings: Mapping[str, Any] | None = None,
        annotators_per_unit: int = 1,
        blind: bool = True,
    ) -> Batch:
        """Adds a batch of units.

        Args:
            units: the rows of each unit, documents of one query; or (rows, about), see ``Unit``.
            name: for people.
            kind: one of KINDS; the units of "review" have one row each.
            purpose: one of PURPOSES.
            settings: of the task.
            annotators_per_unit: by how many people each unit is judged.
            blind: hide the given grade.

        Returns:
            The batch with its number.
        """
        one_of("kind of batch", kind, KINDS)
        one_of("purpose of a batch", purpose, PURPOSES)
        check_integer("annotators_per_unit", annotators_per_unit, least=1)
        query_of = dict(map(tuple, self._rows('SELECT "row", query_id FROM documents')))
        checked = checked_units(units, query_of, kind)
        with self.writing():
            asked = (json.dumps(plain(settings or {})), annotators_per_unit, int(blind))
            statement = "INSERT INTO batches VALUES (NULL, ?, ?, ?, ?, ?, ?, ?)"
            batch_id = self._execute(statement, (name, kind, purpose, *asked, now()))
            for unit in checked:
                cells = (batch_id, unit.position, json.dumps(unit.rows), json.dumps(plain(unit.about)))
                self._execute("INSERT INTO units VALUES (?, ?, ?, ?)", cells)
        return self.batch(batch_id)

    def units(self, batch_id: int) -> tuple[Unit, ...]:
        """The units of a batch, in order."""
        if batch_id not in self._units:
            rows = self._rows("SELECT * FROM units WHERE batch = ? ORDER BY position", (batch_id,))
            self._units[batch_id] = tuple(map(self._unit, rows))
        return self._units[batch_id]

    def _unit(self, row: sqlite3.Row) -> Unit:
        rows = self._json(f'{{"rows": {row["rows"]}}}')["rows"]
        present = 'SELECT count(*) FROM documents WHERE "row" IN (SELECT value FROM json_each(?))'
        if not isinstance(rows, list) or self._rows(present, (json.dumps(rows),))[0][0] != len(rows):
            rule, remedy = "must have units of its own documents", "Do not use a changed file."
            raise KIND.bad(self.path, rule, f"{rows!r}"[:80], remedy)
        return Unit(row["position"], tuple(rows), self._json(row["about"]))

    def append(
        self,
        *,
        annotator: str,
        batch: int,
        unit: int,
        kind: str,
        question: str = "",
        value: int | str | None = None,
        seconds: float | None = None,
        request: str,
        undoes: int | None = None,
        at: str | None = None,
    ) -> Event:
        """Stores an event, durably; what has the request of an earlier event of the annotator is that event.

        Nothing is checked against what is being asked: that is what ``Session`` does.
        """
        one_of("kind of event", kind, EVENTS)
        check_annotator(annotator)
        if not isinstance(request, str) or not 1 <= len(request) <= LONGEST_REQUEST:
            raise invalid(
                "request", f"must be a text of 1 to {LONGEST_REQUEST} characters", repr(request)[:80]
            )
        if seconds is not None:
            check_number("seconds", seconds, least=0)
        with self.writing():
            earlier = self.event_of(annotator, request)
            if earlier is not None:
                same = (earlier.batch, earlier.unit, earlier.kind, earlier.question, earlier.value)
                if same != (batch, unit, kind, question, value):
                    rule, remedy = "must be a new one for every answer", "Reload the page and answer again."
                    raise invalid("request", rule, repr(request), remedy=remedy)
                return earlier
            cells = (at or now(), annotator, batch, unit, kind, question, value, seconds, request, undoes)
            event_id = self._execute(f"INSERT INTO events VALUES (NULL{', ?' * len(cells)})", cells)
        return Event(event_id, *cells)

    def event_of(self, annotator: str, request: str) -> Event | None:
        """The event that a request of an annotator made; None if there is none."""
        rows = self._rows("SELECT * FROM events WHERE annotator = ? AND request = ?", (annotator, request))
        return Event(*rows[0]) if rows else None

    def events(
        self, batch: int | None = None, annotator: str | None = None, *, after: int = 0
    ) -> tuple[Event, ...]:
        """All events, or those of a batch or an annotator, with numbers above ``after``, in order."""
        query = "SELECT * FROM events WHERE id > ?"
        conditions = {"batch": batch, "annotator": annotator}
        chosen = {column: value for column, value in conditions.items() if value is not None}
        query += "".join(f" AND {column} = ?" for column in chosen) + " ORDER BY id"
        return tuple(Event(*row) for row in self._rows(query, (after, *chosen.values())))

    def judgements(self) -> dict[str, list[Any]]:
        """The grades that stand, by column: those of the view ``judgements`` in ``data.project_file``."""
        with self.lock, KIND.worded(self.path):
            found = self._connection.execute("SELECT * FROM judgements ORDER BY at")
            names = [str(column[0]) for column in found.description]
            rows = found.fetchall()
        return {name: [row[place] for row in rows] for place, name in enumerate(names)}

    @property
    def version(self) -> tuple[int, int, int]:
        """The last document, batch and event: it changes whenever something was added."""
        lasts = (("documents", '"row"'), ("batches", "id"), ("events", "id"))
        documents, batches, events = (
            int(self._rows(f"SELECT coalesce(max({column}), -1) FROM {table}")[0][0])
            for table, column in lasts
        )
        return documents, batches, events

    def claim(self, batch: int, unit: int, annotator: str) -> None:
        """Notes that a unit is shown to an annotator, so that others get other units."""
        cells = (batch, unit, annotator, now())
        self._execute("INSERT INTO claims VALUES (NULL, ?, ?, ?, ?)", cells)

    def claims(self, batch: int, *, after: int = 0) -> list[tuple[int, int, str, str]]:
        """(id, unit, annotator, at) of the claims of a batch with numbers above ``after``, in order."""
        query = "SELECT id, unit, annotator, at FROM claims WHERE batch = ? AND id > ? ORDER BY id"
        return [(row[0], row[1], row[2], row[3]) for row in self._rows(query, (batch, after))]

    def invite(self, name: str) -> str:
        """A new token for an annotator, in place of an earlier one; only its hash is stored."""
        token = secrets.token_urlsafe(32)
        check_annotator(name)
        self._execute("INSERT OR REPLACE INTO annotators VALUES (?, ?, ?)", (name, _hash(token), now()))
        return token

    def annotator_of(self, token: str) -> str | None:
        """Whose token it is; None for an unknown or revoked one."""
        rows = self._rows("SELECT name FROM annotators WHERE token_sha256 = ?", (_hash(token),))
        return str(rows[0][0]) if rows else None

    def revoke(self, name: str) -> None:
        """Takes an annotator's token back; the answers stay."""
        if not self._rows("SELECT 1 FROM annotators WHERE name = ?", (name,)):
            known = ", ".join(each.name for each in self.annotators() if each.has_token) or "nobody"
            raise UnknownNameError(f"unknown annotator {name!r}. Invited: {known}.")
        self._execute("UPDATE annotators SET token_sha256 = NULL WHERE name = ?", (name,))

    def annotators(self) -> tuple[Annotator, ...]:
        """Everybody who was invited or has answered, by name."""
        query = """SELECT n.name, max(n.token), sum(n.answers) FROM (
            SELECT name, token_sha256 IS NOT NULL AS token, 0 AS answers FROM annotators UNION ALL
            SELECT annotator, 0, count(*) FROM standing WHERE kind = 'answer' GROUP BY annotator
            ) n GROUP BY n.name ORDER BY n.name"""
        return tuple(Annotator(str(name), bool(token), int(n)) for name, token, n in self._rows(query))


def now() -> str:
    """The time, ISO 8601, UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _hash(token: str) -> str:
    return hashlib.sha256(str(token).encode(errors="replace")).hexdigest()
