"""The file of a labelling project: its tables, and its judgements read like any sheet.

Answers are events that are only ever added; an undo is an event too, which names the one that it undoes. The
view ``judgements`` holds the grades that stand, ``preferences`` the pairs.

``project_columns`` reads a file like a sheet. Where one grade per document is wanted, it is the one that most
people gave, of a tie the given label if it is among them, else the lowest (as ``labeling.decisions``); of two
answers of the same person the later one counts.
"""

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from cleanrank.data.files import first_bytes
from cleanrank.data.sqlite_file import MAGIC, FileKind, open_file

APPLICATION_ID = 0x636C7270
SCHEMA_VERSION = 1

SCHEMA = """
CREATE TABLE project (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE queries (id TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE documents (
  "row" INTEGER PRIMARY KEY,
  query_id TEXT NOT NULL REFERENCES queries (id),
  doc_id TEXT NOT NULL,
  row_id INTEGER,
  given_label INTEGER,
  fields TEXT NOT NULL,
  features BLOB
);
CREATE INDEX documents_of_query ON documents (query_id);
CREATE TABLE batches (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('grade', 'pairs', 'top-k', 'active', 'review')),
  purpose TEXT NOT NULL CHECK (purpose IN ('label', 'gold', 'evaluation', 'repair')),
  settings TEXT NOT NULL,
  annotators_per_unit INTEGER NOT NULL CHECK (annotators_per_unit > 0),
  blind INTEGER NOT NULL CHECK (blind IN (0, 1)),
  made_at TEXT NOT NULL
);
CREATE TABLE units (
  batch INTEGER NOT NULL REFERENCES batches (id),
  position INTEGER NOT NULL,
  "rows" TEXT NOT NULL,
  about TEXT NOT NULL,
  PRIMARY KEY (batch, position)
) WITHOUT ROWID;
CREATE TABLE events (
  id INTEGER PRIMARY KEY,
  at TEXT NOT NULL,
  annotator TEXT NOT NULL,
  batch INTEGER NOT NULL,
  unit INTEGER NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('answer', 'skip', 'undo')),
  question TEXT NOT NULL,
  value CHECK (typeof(value) IN ('integer', 'text', 'null')),
  seconds REAL,
  request TEXT NOT NULL,
  undoes INTEGER REFERENCES events (id) CHECK ((kind = 'undo') = (undoes IS NOT NULL)),
  UNIQUE (annotator, request),
  FOREIGN KEY (batch, unit) REFERENCES units (batch, position)
);
CREATE INDEX events_of_batch ON events (batch);
CREATE UNIQUE INDEX undone_once ON events (undoes) WHERE undoes IS NOT NULL;
CREATE TRIGGER events_stay BEFORE UPDATE ON events
BEGIN SELECT RAISE(ABORT, 'events are only ever added'); END;
CREATE TRIGGER events_remain BEFORE DELETE ON events
BEGIN SELECT RAISE(ABORT, 'events are only ever added'); END;
CREATE TABLE claims (
  id INTEGER PRIMARY KEY,
  batch INTEGER NOT NULL,
  unit INTEGER NOT NULL,
  annotator TEXT NOT NULL,
  at TEXT NOT NULL,
  FOREIGN KEY (batch, unit) REFERENCES units (batch, position)
);
CREATE INDEX claims_of_batch ON claims (batch);
CREATE TABLE annotators (
  name TEXT PRIMARY KEY,
  token_sha256 TEXT UNIQUE,
  invited_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE VIEW standing AS
  SELECT * FROM events e WHERE e.kind != 'undo' AND NOT EXISTS (SELECT 1 FROM events u WHERE u.undoes = e.id);
CREATE VIEW judgements AS
  SELECT d.query_id, d.doc_id, d.row_id, s.annotator, s.value AS grade, s.seconds, s.at, b.name AS batch,
    b.purpose, d.given_label, json_extract(u.about, '$.true_grade') AS gold_grade, d."row" AS project_row
  FROM standing s JOIN batches b ON b.id = s.batch JOIN units u ON u.batch = s.batch AND u.position = s.unit
    JOIN documents d ON d."row" = json_extract(u."rows", '$[' || s.question || ']')
  WHERE s.kind = 'answer' AND b.kind IN ('grade', 'review') AND typeof(s.value) = 'integer';
CREATE VIEW preferences AS
  SELECT d.query_id, d.doc_id, o.doc_id AS other_doc_id, s.value AS better, s.annotator, s.seconds, s.at,
    b.name AS batch, b.purpose
  FROM standing s JOIN batches b ON b.id = s.batch JOIN units u ON u.batch = s.batch AND u.position = s.unit
    JOIN documents d ON d."row" = json_extract(
      u."rows", '$[' || substr(s.question, 1, instr(s.question, ',') - 1) || ']')
    JOIN documents o ON o."row" = json_extract(
      u."rows", '$[' || substr(s.question, instr(s.question, ',') + 1) || ']')
  WHERE s.kind = 'answer' AND b.kind IN ('pairs', 'top-k', 'active') AND typeof(s.value) = 'integer'
    AND instr(s.question, ',') > 0;
"""

KIND = FileKind(
    "project",
    "a labelling project",
    APPLICATION_ID,
    SCHEMA_VERSION,
    SCHEMA,
    synchronous="FULL",
    exact=True,
    remedies={
        "locked": "Another program holds it; try again when that one has finished.",
        "full": "Free space on the disk; all earlier answers are stored.",
        "readonly": "Make the file and its folder writable.",
    },
)


ANSWERS = """
  SELECT d.query_id, d.doc_id, d.row_id, s.annotator, s.value AS grade, s.seconds, s.at, b.name AS batch,
    b.purpose, d.given_label, json_extract(u.about, '$.true_grade') AS gold_grade, d."row" AS project_row,
    b.id AS batch_id
  FROM standing s JOIN batches b ON b.id = s.batch JOIN units u ON u.batch = s.batch AND u.position = s.unit
    JOIN documents d ON d."row" = json_extract(u."rows", '$[' || s.question || ']')
  WHERE s.kind = 'answer' AND b.kind IN ('grade', 'review')
  ORDER BY s.id
"""
IDS = ("row_id", "query_id", "doc_id")
SHARES = "stratum shares"  # document -> stratum_share of the sheet that the project was made from
COLUMNS = ("query_id", "doc_id", "row_id", "annotator", "grade", "seconds", "at", "batch", "purpose",
           "given_label", "gold_grade", "project_row")  # fmt: skip
DRAWN = """
  SELECT u.batch AS batch_id, u.about, d."row" AS project_row, d.row_id, d.query_id, d.doc_id
  FROM units u JOIN batches b ON b.id = u.batch JOIN documents d ON d."row" = json_extract(u."rows", '$[0]')
  WHERE b.purpose = ? ORDER BY u.batch, u.position
"""


def is_project(path: Path) -> bool:
    """Whether a file is a SQLite file by its content; ``open_file`` says whether it is a project."""
    return first_bytes(path, len(MAGIC)) == MAGIC


def read_answers(path: Path) -> list[dict[str, Any]]:
    """The answers about single documents that stand, in order: grades, and the words of a review."""
    return _rows(path, ANSWERS)


def project_columns(path: Path, purpose: str = "") -> dict[str, list[Any]]:
    """The judgements of a project as columns of a sheet.

    Args:
        path: the file.
        purpose: empty for all judgements of everybody; "gold" or "evaluation" for one true_grade per document
            of the rows that were drawn for it, None where it has no answer yet (of evaluation: those of the
            last batch, with their probabilities); of all judged documents where none were drawn.
    """
    answers = [each for each in read_answers(path) if isinstance(each["grade"], int)]
    if not purpose:
        return _columns(answers, COLUMNS)
    drawn = _rows(path, DRAWN, purpose)
    if purpose == "evaluation" and drawn:
        drawn = [each for each in drawn if each["batch_id"] == drawn[-1]["batch_id"]]
    by_row: dict[int, list[dict[str, Any]]] = {}
    for each in answers:
        by_row.setdefault(each["project_row"], []).append(each)
    if not drawn:
        columns = _columns([said[0] for said in by_row.values()], IDS)
        kept = _rows(path, "SELECT value FROM project WHERE key = ?", f"kept: {SHARES}")
        if kept:
            shares = json.loads(kept[0]["value"])
            columns["stratum_share"] = [shares[str(row)] for row in by_row]
        return {**columns, "true_grade": [_grade_of(said) for said in by_row.values()]}
    abouts = [json.loads(each["about"]) for each in drawn]
    columns = _columns(drawn, IDS)
    if purpose == "evaluation":
        columns = {"qid": columns["query_id"], "docid": columns["doc_id"], "batch": [1] * len(drawn)}
        columns |= _columns(abouts, ("draw", "probability"))
    grades = []
    for each, about in zip(drawn, abouts, strict=True):
        batches = (each["batch_id"], about.get("answered_in"))
        said = by_row.get(each["project_row"], ())
        grades.append(_grade_of([answer for answer in said if answer["batch_id"] in batches]))
    return {**columns, "true_grade": grades}


def majority(grades: Iterable[int], given: int | None = None) -> int | None:
    """The grade that comes most often, of a tie the given label or else the lowest; None without any.

    >>> majority([2, 1, 2]), majority([3, 0]), majority([3, 0], given=3), majority([])
    (2, 0, 3, None)
    """
    counts = Counter(grades)
    return min(counts, key=lambda grade: (-counts[grade], grade != given, grade), default=None)


def _grade_of(answers: list[dict[str, Any]]) -> int | None:
    given = answers[0]["given_label"] if answers else None
    return majority({each["annotator"]: each["grade"] for each in answers}.values(), given)


def _columns(records: list[dict[str, Any]], names: Iterable[str]) -> dict[str, list[Any]]:
    return {name: [each[name] for each in records] for name in names}


def _rows(path: Path, query: str, *arguments: Any) -> list[dict[str, Any]]:
    with closing(open_file(path, KIND, create=False)) as connection, KIND.worded(path):
        return [dict(row) for row in connection.execute(query, arguments)]
