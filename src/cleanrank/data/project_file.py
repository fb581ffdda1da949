"""The file of a labelling project: its tables, and its judgements read like any sheet.

Answers are events that are only ever added; an undo is an event too, which names the one that it undoes. The
view ``judgements`` holds the grades that stand, ``preferences`` the pairs.
"""

from cleanrank.data.sqlite_file import FileKind

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
