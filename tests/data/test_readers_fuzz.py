"""Damaged files of every kind are read or refused: only errors of cleanrank come out, and nothing hangs."""

import re
import time
import warnings

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.clicks.logs import clicks_from_log
from cleanrank.data.scores import read_scores
from cleanrank.data.spreadsheet import read_frame, read_records, write_frame
from cleanrank.data.table_files import write_csv
from cleanrank.data.tables import read_data
from cleanrank.data.texts import read_texts
from cleanrank.data.trec import read_qrels, read_run
from cleanrank.errors import CleanrankError
from cleanrank.issues.features import score_columns, systems_of
from cleanrank.issues.table import LabelIssues, read_issues
from cleanrank.judges.labels import as_labels
from cleanrank.noise.corrupt import read_changed
from cleanrank.noise.gold_sheet import read_sheet

TRIALS = 1000
SECONDS = 5.0
DATA = cr.from_arrays(
    np.arange(24.0).reshape(12, 2) / 8,
    [0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2],
    qid=np.repeat(["a", "=b", "ü", "007"], 3),
    doc_ids=[f"d{i}" for i in range(12)],
)
SPLICES = [b"\x00", b"\xff", b"\xff\xfe", b'"', b"\r", b"\n", b";", b",", b"\t", b"sep=;\n", b"-1", b"1e400"]
SPLICES += [b"9" * 30, b"99999999999999999999", b"\xe9", b"'", b"''", b"{", b"#", b":", b"1:1", b"\x1f\x8b"]
SPLICES += [b"=", b"\x80", b"inf", b"nan", b"TRUE", b"PAR1"]


def qrels_text():
    return "".join(f"{q} 0 {d} {y}\n" for q, d, y in zip(DATA.qid, DATA.doc_ids, DATA.y, strict=True))


def run_text(tag="tag"):
    return "".join(
        f"{q} Q0 {d} 1 {i / 7} {tag}\n" for i, (q, d) in enumerate(zip(DATA.qid, DATA.doc_ids, strict=True))
    )


def table(frame):
    def write(path):
        write_frame(pd.DataFrame(frame), path)

    return write


ISSUES = LabelIssues.of(DATA, doubt=np.linspace(0, 1, 12), is_label_issue=np.arange(12) > 8)
TRUTH = {"row_id": DATA.row_ids, "query_id": DATA.qid, "true_grade": DATA.y, "given_grade": DATA.y}
SHEET = {"row_id": DATA.row_ids, "query_id": DATA.qid, "doc_id": DATA.doc_ids, "true_grade": DATA.y}
CLICKS = {"session": 0, "query_id": DATA.qid, "row_id": DATA.row_ids, "position": 1, "click": DATA.y > 1}


def write_as_data(path):
    cr.write_data(DATA, path)


PAIRS = {"query_id": DATA.qid, "doc_id": DATA.doc_ids}
TEXTS = PAIRS | {"query": DATA.qid, "text": [f"text é {doc}" for doc in DATA.doc_ids]}


def text_lines(path):
    pd.DataFrame(TEXTS).to_json(path, orient="records", lines=True)


# name -> (ending, how it is written, how it is read)
READERS = {
    "CSV": (".csv", write_as_data, read_data),
    "packed CSV": (".csv.gz", write_as_data, read_data),
    "table of any name": ("", lambda path: write_csv(DATA, path), read_data),
    "Parquet": (".parquet", write_as_data, read_data),
    "qrels": (".txt", lambda path: path.write_text(qrels_text()), read_qrels),
    "run": (".txt", lambda path: path.write_text(run_text()), read_run),
    "scores": (".txt", lambda path: path.write_text("0.5\n" * 12), lambda path: read_scores(path, DATA)),
    "npy scores": (".npy", lambda path: np.save(path, np.ones(12)), lambda path: read_scores(path, DATA)),
    "sheet": (".csv", table(SHEET), lambda path: read_sheet(path, DATA, allow_unanswered=True)),
    "workbook sheet": (".xlsx", table(SHEET), lambda path: read_sheet(path, DATA, allow_unanswered=True)),
    "issues": (".csv", ISSUES.save, read_issues),
    "issues in Parquet": (".parquet", ISSUES.save, read_issues),
    "truth": (".csv", table(TRUTH), lambda path: read_changed(path, DATA)),
    "clicks": (".csv", table(CLICKS), lambda path: clicks_from_log(path, DATA)),
    "texts": (".csv", table(TEXTS), lambda path: read_texts(path, DATA)),
    "lines of texts": (".jsonl", text_lines, lambda path: read_texts(path, DATA)),
    "columns of scores": (
        ".csv",
        table(PAIRS | {"ce": DATA.X[:, 0]}),
        lambda path: score_columns(path, DATA),
    ),
    "systems": (
        ".txt",
        lambda path: path.write_text(run_text() + run_text().replace("tag", "b")),
        systems_of,
    ),
    "systems in a table": (".csv", table({"qid": DATA.qid, "docid": DATA.doc_ids, "score": 0.5}), systems_of),
    "judge": (".csv", table({"qid": DATA.qid, "docid": DATA.doc_ids, "grade": DATA.y}), as_labels),
    "folder of Parquet": (".parquet", write_as_data, lambda path: read_data(path.parent, form="folder")),
    "records": (".tsv", table(SHEET), read_records),
    "frame": (".csv", table(SHEET), read_frame),
}


def damaged(raw: bytes, rng: np.random.Generator) -> bytes:
    """The bytes with one to three of: a byte changed, a piece cut, doubled or put in."""
    for _ in range(rng.integers(1, 4)):
        at, to = sorted(rng.integers(0, len(raw) + 1, 2).tolist())
        kind = rng.integers(5)
        if kind == 0 and raw:
            at = min(at, len(raw) - 1)
            raw = raw[:at] + bytes([rng.integers(256)]) + raw[at + 1 :]
        elif kind == 1:
            raw = raw[:at] + raw[to:]
        elif kind == 2:
            raw = raw[:to] + raw[at:]
        elif kind == 3:
            raw = raw[:at] + SPLICES[rng.integers(len(SPLICES))] + raw[at:]
        else:
            raw = raw[:at]
    return raw


@pytest.mark.parametrize("kind", READERS)
def test_damaged_files_are_read_or_refused(tmp_path, kind):
    suffix, write, read = READERS[kind]
    path = tmp_path / f"a{suffix}"
    write(path)
    whole = path.read_bytes()
    read(path)
    rng = np.random.default_rng(sum(kind.encode()))
    refused = 0
    for trial in range(TRIALS):
        path.write_bytes(damaged(whole, rng))
        start = time.monotonic()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                read(path)
            except CleanrankError:
                refused += 1
            except Exception as error:
                raise AssertionError(f"trial {trial}: {path.read_bytes()[:300]!r}") from error
        assert time.monotonic() - start < SECONDS
    assert refused > 0


def test_damaged_runs_hold_what_a_plain_reader_finds(tmp_path):
    path, rng, compared = tmp_path / "a.txt", np.random.default_rng(1), 0
    for trial in range(TRIALS):
        raw = damaged(run_text().encode(), rng)
        path.write_bytes(raw)
        try:
            run = read_run(path)
        except CleanrankError:
            continue
        encoding = "utf-16" if raw.startswith(b"\xff\xfe") else "utf-8-sig"
        lines = [
            re.split(r"[ \t\r]+", line.strip(" \t\r")) for line in raw.decode(encoding, "replace").split("\n")
        ]
        said = sorted((q, d, float(score)) for q, _, d, _, score, _ in filter(any, lines))
        names = run.topic_ids[run.topic].tolist(), run.doc_ids[run.doc].tolist(), run.scores.tolist()
        assert sorted(zip(*names, strict=True)) == said, f"trial {trial}"
        compared += 1
    assert compared > TRIALS / 20
