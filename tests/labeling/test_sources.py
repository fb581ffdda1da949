"""What projects are made from; ``test_projects`` has what becomes of it."""

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.errors import InvalidInputError, MissingDataError, UnknownNameError
from cleanrank.labeling.projects import make_project
from cleanrank.labeling.sources import read_source
from tests.data.test_judged import tables

ROWS = {"qid": [1, 1, 2], "label": [0, 1, 2], "x": [0.1, 0.2, 0.3], "title": ["Apple", "Pear", "Car"]}


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_a_table_with_all_labels_is_data_and_others_are_texts(tmp_path, suffix):
    path = tmp_path / f"table{suffix}"

    def write(columns):
        frame = pd.DataFrame(columns)
        if suffix == ".parquet":
            frame.to_parquet(path)
        else:
            frame.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")

    write(ROWS)
    read = read_source(path)
    assert read.y.tolist() == [0, 1, 2]
    assert read.extra["title"].tolist() == ["Apple", "Pear", "Car"]
    for columns in (
        ROWS | {"label": [0, None, 2]},
        {name: ROWS[name] for name in ("qid", "title")},
        {name: ROWS[name] for name in ("label", "title")} | {"query": ["a", "a", "b"]},
    ):
        write(columns)
        assert read_source(path) == path


def test_named_columns_make_a_table_data(tmp_path):
    path = tmp_path / "table.csv"
    pd.DataFrame({"search": [1, 1], "mark": [0, 1], "x": [1.0, 2.0]}).to_csv(path, index=False)
    assert read_source(path, columns={"label": "mark", "qid": "search"}).y.tolist() == [0, 1]


def test_letor_qrels_workbooks_and_lines(tmp_path):
    data = cr.make_ranking(3, 2, docs_per_query=4, seed=0)
    cr.write_letor(data, tmp_path / "data.txt")
    np.testing.assert_array_equal(read_source(tmp_path / "data.txt").y, data.y)
    (tmp_path / "a.qrels").write_text("1 0 a 1\n1 0 b -1\n")
    assert read_source(tmp_path / "a.qrels").doc_ids.tolist() == ["a", "b"]
    pd.DataFrame(ROWS).to_excel(tmp_path / "a.xlsx", index=False)
    (tmp_path / "a.jsonl").write_text('{"query": "a", "label": 1, "qid": 1}\n')
    for name in ("a.xlsx", "a.jsonl"):
        assert read_source(tmp_path / name) == tmp_path / name


def test_passages_with_texts_and_the_labels_of_a_judge(tmp_path, monkeypatch):
    monkeypatch.setenv("CLEANRANK_DATA", str(tmp_path))
    labels, _ = tables(tmp_path)
    labels["query"], labels["text"] = "what is " + labels.qid, "text of " + labels.docid
    labels.to_parquet(tmp_path / "trec-dl-judges" / "dl19.labels.parquet")
    data = read_source("dl19")
    assert data.y.tolist() == labels.nist.tolist()
    with make_project(tmp_path / "p.sqlite", data, name="dl19") as project:
        assert project.query_text("q1") == "what is q1"
        assert project.document(5).fields == {"text": "text of d5"}
        assert project.scale.n_grades == 4
    judged = read_source("dl19", judge="yes")
    known = labels["j:yes"].notna().to_numpy()
    np.testing.assert_array_equal(judged.judged, known)
    np.testing.assert_array_equal(judged.y[known], labels["j:yes"].to_numpy()[known])
    with make_project(tmp_path / "j.sqlite", judged, name="judge") as project:
        given = [document.given_label for document in project.documents()]
    assert [label is None for label in given] == (~known).tolist()
    with pytest.raises(UnknownNameError, match=r"unknown judge 'no'\. Known: yes\."):
        read_source("dl19", judge="no")


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        ("nowhere", {}, "must be a file or a data set of the catalogue; got 'nowhere'. Data sets with"),
        ("no/where.csv", {}, "no/where.csv"),
        ("ml-100k", {}, "a data set to judge must have judged documents; got 'movielens-100k'"),
        ("dl19", {"columns": {"label": "x"}}, "columns go with a table; got the data set 'dl19'"),
        ("mq2008", {"judge": "x"}, "judge= goes with dl19 and dl20, which have labels of judges; got 'mq"),
        ("dl19", {}, "trec-dl-judges"),
    ],
)  # fmt: skip
def test_what_cannot_be_judged_is_refused(tmp_path, monkeypatch, source, options, words):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CLEANRANK_DATA", str(tmp_path))
    with pytest.raises((InvalidInputError, MissingDataError)) as refused:
        read_source(source, **options)
    assert words in str(refused.value)


def test_a_file_that_is_named_like_a_data_set_is_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dl19").write_text("1 qid:1 1:0.5\n")
    assert read_source("dl19").n_docs == 1
    with pytest.raises(InvalidInputError, match="judge= goes with dl19 and dl20"):
        read_source("dl19", judge="yes")
