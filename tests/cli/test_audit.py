import io
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


@pytest.fixture
def beir(folder, tmp_path):
    """The same collection as a BEIR folder."""
    qrels, _, texts, _ = collection()
    where = tmp_path / "beir"
    (where / "qrels").mkdir(parents=True)
    lines = [f"{q}\t{d}\t{g}\n" for q, docs in qrels.items() for d, g in docs.items()]
    (where / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))
    ids = {"queries": ("query_id", "query"), "corpus": ("doc_id", "text")}
    for name, (own, text) in ids.items():
        records = dict(zip(texts[own], texts[text], strict=True)).items()
        lines = [json.dumps({"_id": each, "text": words}) + "\n" for each, words in records]
        (where / f"{name}.jsonl").write_text("".join(lines))
    return where


def test_texts_of_a_folder_count_like_those_of_tables(cli, audited, folder, beir, tmp_path):
    def worst(call):
        return json.loads(call.out)["worst"]

    table = pd.read_csv(folder / "texts.csv")
    table[["doc_id", "text"]].to_csv(tmp_path / "docs.csv", index=False)
    table[["query_id", "query"]].drop_duplicates().to_csv(tmp_path / "queries.csv", index=False)
    expected = worst(audited(f"--texts {tmp_path}/docs.csv --texts {tmp_path}/queries.csv --json"))
    assert "filler" in expected[0]["why"]
    parts = f"--texts {beir}/corpus.jsonl --texts {beir}/queries.jsonl"
    for options in (f"--texts {beir}", parts, f"--texts {beir}/corpus.jsonl --texts {tmp_path}/queries.csv"):
        assert worst(audited(f"{options} --force --json")) == expected
    for judgements in (str(beir), f"{beir}/qrels/test.tsv --texts {beir}"):
        options = f"-o {tmp_path}/issues.csv --force --json {QUICK}"
        assert worst(cli(*f"audit {judgements} {options}".split())) == expected


def test_what_a_folder_lacks_is_named(cli, audited, beir, tmp_path):
    (beir / "queries.jsonl").unlink()
    result = audited(f"--texts {beir}")
    assert "texts must hold the texts of queries; got those of documents alone" in result.err
    result = cli("audit", str(beir), "-o", f"{tmp_path}/issues.csv")
    assert (result.code, "got texts of documents without those of queries" in result.err) == (2, True)
    (beir / "corpus.jsonl").unlink()
    result = audited(f"--texts {beir}")
    assert "must hold corpus.jsonl, queries.jsonl or both to give texts; got qrels" in result.err


def test_who_labels_the_sheet_goes_on_from_it(cli, audited, folder, monkeypatch, tmp_path):
    """The project tells the noise and repairs the labels as the sheet does that is filled in by hand."""
    audited(f"--runs runs.txt --texts texts.csv --sheet {tmp_path}/sheet.csv --n 60")
    truth = {(q, d): g for q, docs in collection()[3].items() for d, g in docs.items()}
    sheet = pd.read_csv(tmp_path / "sheet.csv").drop(columns=["annotator", "grade"])
    sheet["true_grade"] = [truth[pair] for pair in zip(sheet.query_id, sheet.doc_id, strict=True)]
    sheet.to_csv(tmp_path / "filled.csv", index=False)
    asked = sheet.groupby("query_id", sort=False).true_grade.apply(list).sum()
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{grade}\n" for grade in asked)))
    project = f"{tmp_path}/p.sqlite"
    words = f"label {tmp_path}/sheet.csv -o {project} --annotator ann --terminal"
    seen = cli(*words.split())
    assert seen.code == 0, seen.err
    assert "filler" in seen.out
    assert "stratum" not in seen.out  # it would say which labels are doubted
    by_hand, by_project = (
        cli("gold", "read", path, "a.qrels", "--json") for path in (f"{tmp_path}/filled.csv", project)
    )
    assert by_project.code == 0, by_project.err
    assert json.loads(by_hand.out)["matrix"] == json.loads(by_project.out)["matrix"]
    cli("clean", "a.qrels", "--review", project, "-o", f"{tmp_path}/new.qrels")
    after = cr.read_qrels(tmp_path / "new.qrels")
    labels = dict(zip(zip(after.qid, after.doc_ids, strict=True), after.y, strict=True))
    assert all(labels[pair] == truth[pair] for pair in zip(sheet.query_id, sheet.doc_id, strict=True))


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
    said = pd.read_csv(tmp_path / "issues.csv").set_index("row_id").why
    assert all(row["why"] == said[row["row_id"]] for row in trail["changes"])
    assert trail["changes"][0]["why"].startswith("graded ")


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
        ("--runs a.qrels", "must be rankings with scores; got judgements, 'a.qrels'"),
        (
            "--runs runs.txt --option seed=3",
            "must not name what the command itself sets; got 'seed=3'",
        ),
        ("--runs runs.txt --option folds=x", "folds must be a whole number between 2 and"),
        ("--runs runs.txt --option probabilities=x", "probabilities must be numbers; got 'x'"),
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
