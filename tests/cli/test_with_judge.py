"""evaluate and compare with --judge and --gold."""

import json

import pytest

import cleanrank as cr
from tests.judges.test_evaluation import PAIRS, labels, run, whole


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """judge.qrels, binary.qrels, gold.qrels, sheet.csv and two runs, in the folder where commands run."""
    monkeypatch.chdir(tmp_path)
    binary = labels("judge").assign(grade=lambda frame: (frame.grade > 1).astype(int))
    for name, frame in (("judge", labels("judge")), ("gold", whole(12)), ("binary", binary)):
        lines = [f"{r.qid} 0 {r.docid} {r.grade}\n" for r in frame.itertuples()]
        (tmp_path / f"{name}.qrels").write_text("".join(lines))
    sample = labels("gold", PAIRS.sample(150, random_state=0).index)
    sample.rename(columns={"grade": "true_grade"}).assign(probability=0.25).to_csv("sheet.csv", index=False)
    for name in ("good", "poor"):
        lines = [f"{r.qid} Q0 {r.docid} 0 {r.score!r} {name}\n" for r in run(name).itertuples()]
        (tmp_path / f"{name}.run").write_text("".join(lines))
    return tmp_path


def test_evaluate_prints_what_the_library_says(cli, folder):
    done = cli("evaluate", "good.run", "--judge", "judge.qrels", "--gold", "gold.qrels", "--json")
    expected = cr.evaluate_with_judge("good.run", judge="judge.qrels", gold="gold.qrels")
    assert json.loads(done.out) == [json.loads(json.dumps(expected.to_json()))]
    shown = cli("evaluate", "good.run", "poor.run", "--judge", "judge.qrels", "--gold", "gold.qrels")
    assert f"{expected.mean:.4f}" in shown.out
    assert "12 of 30 queries have gold labels; intervals are for these queries." in shown.err


def test_a_sheet_with_probabilities_is_a_sample_of_documents(cli, folder):
    options = ("--judge", "judge.qrels", "--gold", "sheet.csv", "-m", "dcg@10", "-m", "ndcg@10", "--json")
    rows = json.loads(cli("evaluate", "good.run", *options).out)
    assert [row["design"] for row in rows] == ["documents", "documents"]
    assert rows[0]["n_gold"] == 150


def test_compare_shows_differences_and_writes_a_page(cli, folder):
    words = ("compare", "old=poor.run", "new=good.run", "--judge", "judge.qrels", "--gold", "gold.qrels")
    done = cli(*words, "--html", "page.html")
    expected = cr.compare_with_judge(
        {"old": "poor.run", "new": "good.run"}, judge="judge.qrels", gold="gold.qrels"
    )
    assert "new - old" in done.out
    assert f"[{expected.low:.4f}, {expected.high:.4f}]" in done.out
    assert "new - old" in (folder / "page.html").read_text()
    (row,) = json.loads(cli(*words, "--json", "--target", "queries like these").out)
    assert row["target"] == "queries like these"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("evaluate", "good.run", "--judge", "judge.qrels"), "--judge and --gold must be given together"),
        (
            ("evaluate", "good.run", "--judge", "binary.qrels", "--gold", "gold.qrels"),
            "as in --map 0=0,1=3.",
        ),
        (
            ("evaluate", "good.run", "--judge", "judge.qrels", "--gold", "gold.qrels", "--map", "0:1"),
            "--map must read VALUE=GRADE",
        ),
        (
            (
                "evaluate",
                "good.run",
                "--judge",
                "judge.qrels",
                "--gold",
                "gold.qrels",
                "--noise",
                "uniform:.1",
            ),
            "--judge stands in for --noise",
        ),
        (("evaluate", "gold.qrels"), "takes DATA and one file of SCORES"),
        (
            ("compare", "a=good.run", "--judge", "judge.qrels", "--gold", "gold.qrels"),
            "Missing argument",
        ),
    ],
)
def test_bad_options_are_said(cli, folder, words, message):
    done = cli(*words)
    assert done.code == 2
    assert message in " ".join(done.err.split())


def test_another_scale_is_mapped(cli, folder):
    options = ("--judge", "binary.qrels", "--gold", "gold.qrels", "--map", "0=0,1=2", "--json")
    (row,) = json.loads(cli("evaluate", "good.run", *options).out)
    assert row["low"] < row["mean"] < row["high"]


@pytest.mark.parametrize("command", [("evaluate", "good.run"), ("compare", "old=poor.run", "new=good.run")])
def test_the_interval_is_the_one_asked_for(cli, folder, command):
    options = ("--judge", "judge.qrels", "--gold", "gold.qrels", "--json")
    (student,) = json.loads(cli(*command, *options).out)
    (skewed,) = json.loads(cli(*command, *options, "--interval", "bootstrap-t").out)
    assert skewed["mean"] == student["mean"]
    assert skewed["low"] != student["low"]
    assert cli(*command, *options, "--interval", "normal").code == 2
