"""``cleanrank export``; tests/labeling/test_export.py has what is in the files."""

import json

import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.labeling.imports import import_judgements
from cleanrank.labeling.projects import make_project

TABLE = {
    "query_id": ["1", "1", "2"],
    "doc_id": ["a", "b", "c"],
    "title": ["Apple", "Pear", "Car"],
    "label": [0, 2, 1],
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    """Three people judged: of the documents a 1, 2, 2; b 0, 2; c drop."""
    monkeypatch.chdir(tmp_path)
    with make_project("p.sqlite", TABLE, name="p") as made:
        for who, rows, grades in (
            ("ann", [0, 1], [1, 0]),
            ("bob", [0, 1, 2], [2, 2, "drop"]),
            ("cy", [0], [2]),
        ):
            import_judgements(made, {"row_id": rows, "grade": grades}, annotator=who)
    return "p.sqlite"


def test_the_ending_says_the_format(cli, project):
    for name, form, count in (
        ("a.qrels", "qrels", "2 documents"),
        ("a.txt", "letor", "2 documents"),
        ("a.csv", "judgements", "6 rows"),
        ("a.parquet", "judgements", "6 rows"),
        ("a.json", "label-studio", "3 rows"),
    ):
        done = cli("export", project, "-o", name)
        assert done.code == 0, done.err
        assert f"wrote {name} ({form}, {count})" in done.err
    assert (
        "1 documents had a tie, which went to the given label" in cli("export", project, "-o", "b.qrels").err
    )
    labels = cr.read_qrels("a.qrels")
    assert dict(zip(labels.doc_ids.tolist(), labels.y.tolist(), strict=True)) == {"a": 2, "b": 2}


def test_formats_rules_and_people(cli, project):
    done = cli("export", project, "-o", "out.csv", "--format", "labels", "--annotator", "ann", "--json")
    assert done.code == 0, done.err
    record = json.loads(done.out)
    assert (record["path"], record["form"], record["rows"]) == ("out.csv", "labels", 2)
    assert pd.read_csv("out.csv").label.tolist() == [1, 0]
    assert cli("export", project, "-o", "out.csv").code == 2
    done = cli("export", project, "-o", "out.csv", "--format", "labels", "--combine", "median", "--force")
    assert done.code == 0, done.err
    assert pd.read_csv("out.csv").title.tolist() == ["Apple", "Pear"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("nowhere -o a.csv", "there is no file 'nowhere'"),
        ("notes.txt -o a.csv", "project must be a labelling project; got another kind of file"),
        ("p.sqlite -o p.sqlite", "output must differ from every input"),
        ("p.sqlite -o a.csv --format letor", "or a text file; got 'a.csv'"),
        ("p.sqlite -o a.csv --format guess", "unknown format 'guess'"),
        ("p.sqlite -o a.csv --combine mean", "combine goes with one grade per document"),
        ("p.sqlite -o a.txt --combine mean", "unknown way to combine answers 'mean'"),
        ("p.sqlite -o a.txt --annotator eve", "unknown annotator 'eve'. Known: ann, bob, cy."),
        (
            "p.sqlite -o a.csv --format preferences",
            "must have compared documents to be written as preferences",
        ),
        ("p.sqlite -o no/a.csv", "no"),
    ],
)
def test_what_cannot_be_written_is_refused(cli, project, tmp_path, words, message):
    (tmp_path / "notes.txt").write_text("no project\n")
    before = set(tmp_path.iterdir())
    done = cli("export", *words.split())
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert set(tmp_path.iterdir()) == before


def test_a_project_without_answers_has_nothing_to_write(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    make_project("p.sqlite", TABLE, name="p").close()
    for name in ("a.csv", "a.txt", "a.qrels"):
        done = cli("export", "p.sqlite", "-o", name)
        assert done.code == 2
        assert "Judge some documents first." in done.err
