"""A labelling project is one more kind of sheet for gold, judges, annotators, evaluation and cleaning."""

import io
import json

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.labeling.imports import import_judgements
from cleanrank.labeling.projects import add_gold_batch, make_project
from cleanrank.labeling.session import Session


@pytest.fixture
def files(tmp_path, monkeypatch):
    """noisy.csv, and p.sqlite: a gold sample of 60 rows that ann judged, and 40 rows of bob and cy.

    plain.csv has the gold answers as a sheet, people.csv what bob and cy said.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    truth = cr.make_ranking(20, 4, docs_per_query=10, signal=0.95, seed=0)
    noisy = cr.corrupt(truth, rate=0.2, seed=1).data
    noisy = cr.from_arrays(
        noisy.X, noisy.y, qid=noisy.qid, doc_ids=[f"d{row}" for row in range(noisy.n_docs)]
    )
    cr.write_data(noisy, "noisy.csv")
    data = cr.read_data("noisy.csv")
    n_grades = max(truth.n_grades, data.n_grades)
    with make_project(
        "p.sqlite", data, name="p", scale=[f"g{grade}" for grade in range(n_grades)]
    ) as project:
        session = Session(project, add_gold_batch(project, 60).id, "ann")
        answers = []
        while (asked := session.asked()) is not None:
            row = asked.documents[0].row
            answers.append((row, int(truth.y[row])))
            session.answer(answers[-1][1], unit=asked.unit.position, question="0", request=f"{row}")
        pd.DataFrame(answers, columns=["row_id", "true_grade"]).to_csv("plain.csv", index=False)
        rng = np.random.default_rng(0)
        rows = rng.permutation(data.n_docs)[:40]
        people = [
            {"row_id": row, "query_id": data.qid[row], "doc_id": data.doc_ids[row], "annotator": who,
             "grade": int(truth.y[row] if rng.random() > rate else (truth.y[row] + 1) % n_grades)}
            for who, rate in (("bob", 0.1), ("cy", 0.6)) for row in rows.tolist()
        ]  # fmt: skip
        pd.DataFrame(people).to_csv("people.csv", index=False)
        import_judgements(project, "people.csv")
    return tmp_path


def record(cli, *words):
    done = cli(*words, "--json")
    assert done.code == 0, done.err
    return json.loads(done.out)


def test_gold_read_takes_the_sample_of_a_project(cli, files):
    assert record(cli, "gold", "read", "p.sqlite", "noisy.csv") == record(
        cli, "gold", "read", "plain.csv", "noisy.csv"
    )


def test_find_issues_learns_from_the_sample_of_a_project(cli, files):
    for name in ("p.sqlite", "plain.csv"):
        done = cli(
            "find-issues", "noisy.csv", "--gold", name, "--option", "folds=2", "-o", f"{name}.issues.csv"
        )
        assert done.code == 0, done.err
    pd.testing.assert_frame_equal(pd.read_csv("p.sqlite.issues.csv"), pd.read_csv("plain.csv.issues.csv"))


def test_a_judge_is_held_against_the_majority_of_a_project(cli, files):
    sheet, data = pd.read_csv("plain.csv"), cr.read_data("noisy.csv")
    said = pd.concat([sheet.rename(columns={"true_grade": "grade"}), pd.read_csv("people.csv")])
    modes = said.groupby("row_id").grade.agg(lambda given: set(given.mode()))
    # of a tie the given label if it is among the tied ones, else the lowest grade
    grades = pd.Series(
        {row: data.y[row] if data.y[row] in tied else min(tied) for row, tied in modes.items()}
    )
    columns = {"qid": data.qid[grades.index], "docid": data.doc_ids[grades.index], "grade": grades.to_numpy()}
    pd.DataFrame(columns).to_csv("gold.csv", index=False)
    judged = pd.DataFrame({"qid": data.qid, "docid": data.doc_ids, "grade": data.y})
    judged.to_csv("judge.csv", index=False)
    assert record(cli, "judge", "p.sqlite", "judge.csv") == record(cli, "judge", "gold.csv", "judge.csv")


def test_annotators_are_those_of_a_project(cli, files):
    found, listed = (record(cli, "annotators", name)["annotators"] for name in ("p.sqlite", "people.csv"))
    by_name = {each["annotator"]: each for each in found}
    assert set(by_name) == {"ann", "bob", "cy"}
    assert {each["annotator"] for each in listed} == {"bob", "cy"}
    assert by_name["bob"]["judgements"] == by_name["cy"]["judgements"] == 40


def test_systems_are_measured_by_the_evaluation_of_a_project(cli, files, monkeypatch):
    data = cr.read_data("noisy.csv")
    (files / "runs").mkdir()
    for name, column in (("one", 0), ("two", 1)):
        rows = zip(data.qid.tolist(), data.doc_ids.tolist(), data.X[:, column].tolist(), strict=True)
        lines = [f"{query} Q0 {doc} 1 {score:.6f} {name}\n" for query, doc, score in rows]
        (files / "runs" / f"{name}.txt").write_text("".join(lines))
    judged = pd.DataFrame({"qid": data.qid, "docid": data.doc_ids, "grade": data.y})
    judged.to_csv("judge.csv", index=False)
    monkeypatch.setattr("sys.stdin", io.StringIO("1\n" * 80))
    command = "label p.sqlite --purpose evaluation --runs runs --n 80 --terminal --annotator ann"
    asked = cli(*command.split())
    assert asked.code == 0, asked.err
    done = cli(
        "evaluate", "runs", "--judge", "judge.csv", "--gold", "p.sqlite", "--design", "documents", "--json"
    )
    assert done.code == 0, done.err
    assert {"one", "two"} <= set(str(json.loads(done.out)).replace("'", " ").split())


def test_what_was_reviewed_goes_into_the_labels(cli, files, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("d\nk\n0\nn\n"))
    done = cli("review", "noisy.csv", "-o", "r.sqlite", "--n", "4", "--terminal", "--annotator", "ann")
    assert done.code == 0, done.err
    cleaned = cli("clean", "noisy.csv", "--review", "r.sqlite", "-o", "clean.csv")
    assert cleaned.code == 0, cleaned.err
    before, after = cr.read_data("noisy.csv"), cr.read_data("clean.csv")
    audit = json.loads((files / "clean.csv.audit.json").read_text())
    dropped = [each["row_id"] for each in audit["changes"] if each["action"] == "drop"]
    relabelled = [each["row_id"] for each in audit["changes"] if each["action"] == "relabel"]
    assert len(dropped) == 1
    labels = dict(zip(before.doc_ids.tolist(), before.y.tolist(), strict=True))
    for row in relabelled:
        labels[before.doc_ids[row]] = 0
    del labels[before.doc_ids[dropped[0]]]
    assert dict(zip(after.doc_ids.tolist(), after.y.tolist(), strict=True)) == labels
    assert audit["options"]["reviewed"] == 4
    assert audit["options"]["unsure"] == 1
    assert {each["by"] for each in audit["changes"]} == {"ann"}
    assert cli("export", "r.sqlite", "-o", "sheet.csv").code == 0
    again = cli("clean", "noisy.csv", "--review", "sheet.csv", "-o", "again.csv")
    assert again.code == 0, again.err
    assert (files / "again.csv").read_text() == (files / "clean.csv").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--review p.sqlite issues.csv", "clean needs ISSUES, or people's decisions (--review); got both"),
        ("", "clean needs ISSUES, or people's decisions (--review); got neither"),
        ("--review p.sqlite --mode relabel", "--mode goes with ISSUES; got --review"),
        ("--review p.sqlite --by ada", "--by goes with ISSUES; got --review"),
        ("issues.csv --combine median", "--combine goes with --review; got ISSUES"),
        ("--review nowhere.sqlite", "there is no file 'nowhere.sqlite'"),
        ("--review p.sqlite --combine mean", "unknown way to combine answers 'mean'"),
        ("--review other.sqlite", "data must be the data that the project was made from"),
    ],
)
def test_reviews_that_cannot_be_used_are_refused(cli, files, words, message):
    with make_project("other.sqlite", {"query": ["1"], "label": [0]}, name="o") as project:
        import_judgements(project, {"row_id": [0], "grade": [1]}, annotator="ann")
    done = cli("clean", "noisy.csv", "-o", "out.csv", *words.split())
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert not list(files.glob("out.csv*"))
