"""``cleanrank gold sample --for evaluation``: sheets for people, in batches."""

import json

import numpy as np
import pandas as pd
import pytest

from cleanrank.data.spreadsheet import read_frame, write_frame

SAMPLE = ("gold", "sample", "--for", "evaluation")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Runs in runs/, the labels of a judge in judge.qrels and as a table with texts in judge.csv."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    (tmp_path / "runs").mkdir()
    pairs = [(f"q{q}", f"d{d}") for q in range(4) for d in range(12)]
    for name in ("bm25", "new"):
        scores = rng.permutation(len(pairs))
        lines = [f"{q} Q0 {d} 1 {s} {name}\n" for (q, d), s in zip(pairs, scores, strict=True)]
        (tmp_path / "runs" / f"{name}.txt").write_text("".join(lines))
    table = pd.DataFrame(pairs, columns=["qid", "docid"]).assign(grade=rng.integers(0, 3, len(pairs)))
    table.assign(text="about " + table["docid"]).to_csv("judge.csv", index=False)
    lines = [f"{row.qid} 0 {row.docid} {row.grade}\n" for row in table.itertuples()]
    (tmp_path / "judge.qrels").write_text("".join(lines))
    return tmp_path


def test_a_sheet_is_drawn_filled_in_and_continued(cli, folder):
    words = (
        "gold",
        "sample",
        "--for",
        "evaluation",
        "--runs",
        "runs",
        "--judge",
        "judge.csv",
        "-m",
        "ndcg@5",
    )
    done = cli(*words, "--budget", 6, "-o", "first.csv")
    assert done.code == 0, done.err
    assert "6 of 48 documents for levels in ndcg@5:trec: 6 rows, 6 to judge" in done.err
    assert "first.csv: fill in true_grade where it is blank, then: cleanrank evaluate" in done.err
    assert "evaluate runs -m ndcg@5 --judge judge.csv --gold first.csv" in done.err
    sheet = read_frame("first.csv")
    assert list(sheet.columns) == ["qid", "docid", "text", "batch", "draw", "probability", "true_grade"]
    assert sheet["true_grade"].isna().all()
    write_frame(sheet.assign(true_grade=1), "first.csv")
    # The command that the remark names.
    done = cli(*done.err.split("then: cleanrank ")[1].split(), "--json")
    assert done.code == 0, done.err
    assert [(each["system"], each["n_gold"]) for each in json.loads(done.out)] == [("bm25", 6), ("new", 6)]
    done = cli(*words, "--budget", 10, "--gold", "first.csv", "-o", "second.xlsx")
    assert done.code == 0, done.err
    assert "10 rows, 4 to judge" in done.err
    grown = read_frame("second.xlsx")
    assert len(grown) == 10
    assert set(sheet["docid"] + sheet["qid"]) <= set(grown["docid"] + grown["qid"])


def test_it_says_when_to_stop(cli, folder):
    words = (*SAMPLE, "--runs", "runs", "--judge", "judge.csv", "-m", "dcg@5")
    assert cli(*words, "--budget", 20, "-o", "first.csv").code == 0
    sheet = read_frame("first.csv")
    write_frame(sheet.assign(true_grade=np.arange(len(sheet)) % 3), "first.csv")
    more = ("--budget", 25, "--gold", "first.csv")
    done = cli(*words, *more, "--width", 0.01, "-o", "second.csv")
    assert done.code == 0, done.err
    assert "0.01 was asked for: not enough)" in done.err
    assert "in all may be needed for intervals 0.01 wide" in done.err
    assert "second.csv: fill in true_grade where it is blank" in done.err
    done = cli(*words, *more, "--width", 100, "-o", "third.csv")
    assert "100 was asked for: enough)" in done.err
    assert "third.csv: nothing is left to judge, then: cleanrank evaluate" in done.err
    assert len(read_frame("third.csv")) == 20


def test_differences_and_whole_queries(cli, folder):
    words = (*SAMPLE, "--judge", "judge.qrels", "--runs", "runs/bm25.txt")
    done = cli(*words, "--runs", "runs/new.txt", "--compare", "bm25,new", "--budget", 5, "-o", "a.csv")
    assert done.code == 0, done.err
    assert "for the difference of bm25 and new in dcg@10:trec: 5 rows" in done.err
    assert "cleanrank compare bm25=runs/bm25.txt new=runs/new.txt -m dcg@10 --judge judge.qrels" in done.err
    sheet = read_frame("a.csv")
    write_frame(sheet.assign(true_grade=1), "a.csv")
    done = cli(*done.err.split("then: cleanrank ")[1].split(), "--json")
    assert done.code == 0, done.err
    assert json.loads(done.out)[0]["system"] == "new - bm25"
    done = cli(*words, "--map", "0=0,1=0,2=1", "--budget", 5, "-o", "c.csv")
    assert "--gold c.csv --map 0=0,1=0,2=1" in done.err
    done = cli(*words, "--unit", "queries", "--measure", "map", "--budget", 2, "-o", "b.csv")
    assert done.code == 0, done.err
    sheet = read_frame("b.csv")
    assert sheet["qid"].nunique() == 2
    assert "probability" not in sheet


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--for evaluation --judge judge.csv", "needs --runs and --judge; got no --runs"),
        ("--for evaluation --runs runs", "needs --runs and --judge; got no --judge"),
        (
            "judge.qrels --for evaluation --runs runs --judge judge.csv",
            "must be left out with --for evaluation",
        ),
        ("--for noise", "needs DATA"),
        ("judge.qrels --runs runs", "--runs goes with --for evaluation; got --for noise"),
        ("--for evaluate --runs runs", "Did you mean 'evaluation'?"),
        ("--for evaluation --runs runs --judge judge.csv -m map", "--unit queries takes any measure"),
        (
            "--for evaluation --runs runs --judge judge.csv --gold judge.csv",
            "go into --pilot",
        ),
        (
            "--for evaluation --runs runs --judge judge.csv --compare bm25",
            "systems; got 'bm25'",
        ),
        ("--for evaluation --runs nowhere --judge judge.csv", "nowhere"),
    ],
)
def test_wrong_words_get_a_sentence(cli, folder, words, sentence):
    done = cli("gold", "sample", *words.split(), "-o", "out.csv")
    assert done.code == 2, done.err
    assert sentence in " ".join(done.err.split())
    assert not (folder / "out.csv").exists()
