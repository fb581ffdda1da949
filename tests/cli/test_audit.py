import json

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from tests.cli.conftest import cli as cli
from tests.issues.test_audit import MISREAD, collection

QUICK = "--option repeats=1 --option folds=3"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audit")
    qrels, runs, texts, truth = collection()
    lines = [f"{q} 0 {d} {g}" for q, docs in qrels.items() for d, g in docs.items()]
    (folder / "a.qrels").write_text("\n".join(lines) + "\n")
    lines = [
        f"{q} Q0 {d} 1 {score} {name}"
        for name, run in runs.items()
        for q, docs in run.items()
        for d, score in docs.items()
    ]
    (folder / "runs.txt").write_text("\n".join(lines) + "\n")
    pd.DataFrame(texts).to_csv(folder / "texts.csv", index=False)
    lines = [f"{q} 0 {d} {g}" for q, docs in truth.items() for d, g in docs.items() if q in ("q3", "q4")]
    (folder / "llm.qrels").write_text("\n".join(lines) + "\n")
    return folder


@pytest.fixture
def audited(cli, folder, monkeypatch, tmp_path):
    monkeypatch.chdir(folder)

    def run(options):
        return cli(*f"audit a.qrels -o {tmp_path}/issues.csv {QUICK} {options}".split())

    return run


def test_an_audit_writes_issues_a_page_and_a_sheet(audited, tmp_path):
    out = f"--html {tmp_path}/page.html --sheet {tmp_path}/sheet.csv --n 30"
    result = audited(f"--runs runs.txt --texts texts.csv --judge llm.qrels {out}")
    assert f"Query {MISREAD}" in result.err
    assert "looks misread" in result.err
    issues = pd.read_csv(tmp_path / "issues.csv")
    assert {"query_id", "doc_id", "given_label", "doubt", "why"} <= {*issues}
    assert issues.doubt.is_monotonic_decreasing
    assert "filler" in issues.why[0]
    page = (tmp_path / "page.html").read_text()
    assert "Queries that look misread" in page
    assert page.count("<h2>") == 6
    assert len(pd.read_csv(tmp_path / "sheet.csv")) == 30


def test_runs_may_follow_the_judgements(audited, tmp_path):
    first = audited("--runs runs.txt --json").out
    second = audited("runs.txt --json --force").out
    assert json.loads(first)["worst"] == json.loads(second)["worst"]
    assert {each["name"] for each in json.loads(first)["evidence"]} == {"bm25", "bert", "fusion"}


def test_repaired_qrels_and_their_audit_trail(cli, audited, folder, tmp_path):
    audited("--runs runs.txt")
    threshold = pd.read_csv(tmp_path / "issues.csv").doubt[9]
    repaired = tmp_path / "repaired.qrels"
    cli("clean", "a.qrels", f"{tmp_path}/issues.csv", "-o", str(repaired), "--min-doubt", str(threshold))
    before, after = cr.read_qrels(folder / "a.qrels"), cr.read_qrels(repaired)
    assert before.n_docs - after.n_docs == 10
    trail = json.loads((tmp_path / "repaired.qrels.audit.json").read_text())
    gone = {row["row_id"] for row in trail["changes"]}
    kept = np.isin(before.row_ids, list(gone), invert=True)
    assert before.doc_ids[kept].tolist() == after.doc_ids.tolist()


def test_a_filled_in_sheet_tells_the_noise_and_repairs_the_labels(cli, audited, folder, tmp_path):
    audited(f"--runs runs.txt --sheet {tmp_path}/sheet.csv --n 60")
    truth = {(q, d): g for q, docs in collection()[3].items() for d, g in docs.items()}
    sheet = pd.read_csv(tmp_path / "sheet.csv")
    sheet["annotator"] = "ann"
    sheet["grade"] = [truth[pair] for pair in zip(sheet.query_id, sheet.doc_id, strict=True)]
    sheet.to_csv(tmp_path / "filled.csv", index=False)
    result = cli("gold", "read", f"{tmp_path}/filled.csv", "a.qrels", "--json")
    assert json.loads(result.out)["matrix"][0][0] > 0.8
    cli("clean", "a.qrels", "--review", f"{tmp_path}/filled.csv", "-o", f"{tmp_path}/new.qrels")
    after = cr.read_qrels(tmp_path / "new.qrels")
    labels = dict(zip(zip(after.qid, after.doc_ids, strict=True), after.y, strict=True))
    assert all(labels[pair] == truth[pair] for pair in zip(sheet.query_id, sheet.doc_id, strict=True))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", "evidence must be there to doubt a label"),
        ("--runs runs.txt --n 5", "--n goes with --sheet"),
        ("--runs a.qrels", "must"),
        ("--runs runs.txt --judge a.qrels", "must not be the judgements themselves"),
        ("--runs runs.txt --method sourr", "unknown detector 'sourr'"),
        ("--runs missing.txt", "there is no file"),
        ("--runs empty.txt", "must"),
    ],
)
def test_wrong_calls_are_refused(audited, folder, options, words):
    (folder / "empty.txt").write_text("")
    result = audited(options)
    assert result.code == 2
    assert words in result.err
