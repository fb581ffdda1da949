"""``cleanrank judge``."""

import json

import pandas as pd
import pytest

from tests.judges.test_report import collection


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Gold, two judges (one of them binary, as qrels) and a folder of runs."""
    folder = tmp_path_factory.mktemp("judges")
    gold, judge, runs = collection(queries=14, documents=25)
    gold.to_csv(folder / "gold.csv", index=False)
    judge.to_csv(folder / "graded.csv", index=False)
    binary = judge.assign(iteration=0, grade=(judge["grade"] > 1).astype(int))
    binary[["qid", "iteration", "docid", "grade"]].to_csv(
        folder / "binary.qrels", sep=" ", index=False, header=False
    )
    (folder / "runs").mkdir()
    for name, run in runs.items():
        run.to_csv(folder / "runs" / f"{name}.csv", index=False)
    return folder


def test_one_judge_with_systems(folder, cli):
    shown = cli("judge", folder / "gold.csv", folder / "graded.csv", "--runs", folder / "runs", "-m", "dcg@5")
    assert "P(given | gold)" in shown.out
    assert "dcg@5:trec" in shown.out
    assert "train on?" in shown.out
    assert "true grade alone" in shown.err
    record = json.loads(
        cli("judge", folder / "gold.csv", folder / "graded.csv", "--runs", folder / "runs", "--json").out
    )
    assert record["judge"] == "graded"
    assert [each["measure"] for each in record["systems"]] == [
        "ndcg@10:trec",
        "map:trec",
        "precision@10:trec",
    ]
    assert record["systems"][0]["systems"] == [f"s{k}" for k in range(6)]


def test_several_judges_on_a_page(folder, cli, tmp_path):
    page = tmp_path / "judges.html"
    arguments = ["judge", folder / "gold.csv", folder / "graded.csv", folder / "binary.qrels"]
    arguments += ["--runs", folder / "runs", "--map", "binary:0=0,1=2", "--html", page]
    shown = cli(*arguments)
    assert f"wrote {page}" in shown.err
    text = page.read_text()
    for words in (
        "Grades of binary",
        "Leniency by query, graded",
        "by the judge&#39;s",
        "What a grade is worth",
    ):
        assert words in text
    assert text.count("<svg") >= 8
    cli(*arguments)  # a page of its own may be replaced
    record = json.loads(cli(*arguments[:-2], "--json").out)
    assert [each["judge"] for each in record["judges"]] == ["graded", "binary"]


def test_a_judge_without_differences_between_queries_gets_words_in_place_of_a_picture(folder, cli, tmp_path):
    page = tmp_path / "judges.html"
    cli("judge", folder / "gold.csv", folder / "gold.csv", "--html", page)
    assert "gold: no query differs from the others in leniency by more than chance." in page.read_text()
    assert "Leniency by query" not in page.read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["binary.qrels"], "as in --map 0=0,1=3."),
        (["graded.csv", "--map", "0:0"], "must name a judge (graded); got '0'"),
        (["graded.csv", "--map", "0=x"], "must read VALUE=GRADE,VALUE=GRADE"),
        (["graded.csv", "-m", "map"], "--measure goes with --runs"),
        (["graded.csv", "graded.csv"], "'graded' twice"),
        (["half.csv"], "--map VALUE=GRADE,..."),
    ],
)
def test_refuses_with_a_remedy_in_options(folder, cli, arguments, words):
    pd.DataFrame({"qid": ["q0"], "docid": ["d0"], "grade": [0.5]}).to_csv(folder / "half.csv", index=False)
    paths = [folder / each if each.endswith((".csv", ".qrels")) else each for each in arguments]
    refused = cli("judge", folder / "gold.csv", *paths)
    assert refused.code == 2
    assert words in refused.err
