"""A labelling project read like a sheet, by whatever reads sheets."""

import sqlite3
import warnings
from itertools import count

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.data.project_file import is_project, majority, project_columns, read_answers
from cleanrank.data.scores import is_qrels, is_run
from cleanrank.data.sheets import read_sheet_file
from cleanrank.errors import BadFileError, InvalidInputError
from cleanrank.judges.labels import as_labels
from cleanrank.labeling.projects import add_evaluation_batch, add_gold_batch, add_label_batch, make_project
from cleanrank.labeling.session import Session
from cleanrank.labeling.store import open_project
from cleanrank.noise.gold_sheet import read_sheet
from cleanrank.noise.judgement_table import read_judgements

REQUESTS = count()


def say(project, batch, annotator, grade_of, n=None):
    """Answers the first n questions of a batch."""
    session = Session(project, batch.id, annotator)
    for _ in range(10_000 if n is None else n):
        asked = session.asked()
        if asked is None:
            return
        request = str(next(REQUESTS))
        value = grade_of(asked.documents[0].row)
        where = {"unit": asked.unit.position, "question": asked.question.key}
        session.skip(**where, request=request) if value is None else session.answer(
            value, **where, seconds=1.5, request=request
        )


@pytest.fixture
def judged(tmp_path):
    """Three people grade four documents; ann takes one answer back and skips one document."""
    path = tmp_path / "answers of people.sqlite"
    table = {"query_id": ["q"] * 4, "doc_id": list("abcd"), "label": [0, 1, 2, 2]}
    with make_project(path, table, name="p") as project:
        batch = add_label_batch(project, annotators_per_unit=3)
        say(project, batch, "ann", [0, 1, None, 2].__getitem__)
        Session(project, batch.id, "ann").undo("undo")
        say(project, batch, "ann", lambda row: 1)
        say(project, batch, "bob", [0, 2, 1, 2].__getitem__)
        say(project, batch, "cid", [1, 2, 0, 1].__getitem__)
    return path


def test_a_project_is_known_by_its_content(judged, tmp_path):
    other = tmp_path / "a.sqlite"
    other.write_text("1 0 a 1\n")
    assert is_project(judged)
    assert not is_project(other)
    assert not is_qrels(judged)
    assert not is_run(judged)
    with pytest.raises(BadFileError, match=r"is a labelling project .* cleanrank export answers of people"):
        cr.read_data(judged)


def test_all_judgements_that_stand(judged):
    columns = project_columns(judged)
    assert columns["annotator"] == ["ann"] * 3 + ["bob"] * 4 + ["cid"] * 4
    assert columns["doc_id"] == [*"abd", *"abcd", *"abcd"]
    assert columns["grade"] == [0, 1, 1, 0, 2, 1, 2, 1, 2, 0, 1]
    assert set(columns["seconds"]) == {1.5}
    assert columns["row_id"][:3] == [0, 1, 3]
    assert columns["given_label"][:3] == [0, 1, 2]
    assert len(read_answers(judged)) == 11
    found = read_judgements(judged)
    assert repr(found.judgements) == "Judgements(11 of 4 items by 3 annotators, 3 grades)"


def test_one_grade_per_document_is_that_of_most_people():
    assert (majority([2, 0, 2]), majority([0, 2]), majority([])) == (2, 0, None)
    assert (majority([0, 2], given=2), majority([0, 2], given=1), majority([0, 0, 2], given=2)) == (2, 0, 0)


def test_one_grade_per_document(judged):
    assert project_columns(judged, "gold") == {
        "row_id": [0, 1, 3, 2],
        "query_id": ["q"] * 4,
        "doc_id": ["a", "b", "d", "c"],
        "true_grade": [0, 2, 1, 0],
    }
    data = cr.from_arrays(np.zeros((4, 1)), [0, 1, 2, 2], qid=["q"] * 4, doc_ids=list("abcd"))
    answers = read_sheet(judged, data)
    assert dict(zip(answers.row_ids.tolist(), answers.true_grades.tolist(), strict=True)) == {
        0: 0,
        1: 2,
        2: 0,
        3: 1,
    }
    labels = as_labels(judged)
    assert dict(zip(labels.docid.tolist(), labels.grade.tolist(), strict=True)) == {
        "a": 0,
        "b": 2,
        "c": 0,
        "d": 1,
    }


def test_the_later_answer_of_the_same_person_counts(tmp_path):
    path = tmp_path / "p.sqlite"
    with make_project(path, {"query": ["q"], "label": [2]}, name="p") as project:
        for grade in (0, 2):
            say(project, add_label_batch(project), "ann", lambda row, grade=grade: grade)
        say(project, add_label_batch(project), "bob", lambda row: 0)
    # ann says 2, bob 0: a tie, which goes to the given label.
    assert project_columns(path, "gold")["true_grade"] == [2]


def test_of_a_gold_sample_only_the_drawn_rows_speak(tmp_path, toy):
    path = tmp_path / "p.sqlite"
    with make_project(path, toy, name="toy") as project:
        query = project.query_ids()[0]
        say(project, add_label_batch(project, queries=[query]), "ann", lambda row: 2)
        judged_before = {document.row for document in project.documents_of(query)}
        batch = add_gold_batch(project, 120, seed=1)
        rows = [unit.rows[0] for unit in project.units(batch.id)]
        assert 0 < len(judged_before & set(rows)) < len(judged_before)
        with pytest.raises(BadFileError, match=r"true_grade must be filled in; 11\d are empty"):
            read_sheet(path, toy)
        say(project, batch, "bob", lambda row: row % 3)
    columns = project_columns(path, "gold")
    assert columns["row_id"] == rows
    assert columns["true_grade"] == [2 if row in judged_before else row % 3 for row in rows]
    expected = cr.estimate_noise(toy, gold=(columns["row_id"], columns["true_grade"]))
    estimate = cr.estimate_noise(toy, gold=path)
    np.testing.assert_array_equal(estimate.matrix, expected.matrix)
    assert estimate.reasons == expected.reasons  # nothing is assumed of how rows were chosen


def test_documents_drawn_for_evaluation_bring_their_probabilities(tmp_path, toy):
    path = tmp_path / "p.sqlite"
    scores = {"one": toy.X[:, 0], "other": toy.X[:, 1]}
    with make_project(path, toy, name="toy") as project:
        add_evaluation_batch(project, scores, 30, measure="dcg@5")
        batch = add_evaluation_batch(project, scores, 40, measure="dcg@5", seed=1)
        abouts = [unit.about for unit in project.units(batch.id)]
        say(project, batch, "ann", lambda row: row % 3)
        rows = [unit.rows[0] for unit in project.units(batch.id)]
    labels = as_labels(path, "gold")
    assert labels.docid.tolist() == [str(row) for row in rows]
    assert labels.grade.tolist() == [row % 3 for row in rows]
    np.testing.assert_allclose(labels.probability, [about["probability"] for about in abouts])
    # A larger sample goes on from the answers of the project, as it does from a sheet.
    names = list(zip(toy.qid.astype(str).tolist(), toy.row_ids.astype(str).tolist(), strict=True))

    def nested(values):
        table = {query: {} for query, _ in names}
        for (query, document), value in zip(names, values.tolist(), strict=True):
            table[query][document] = value
        return table

    judge, runs = nested(toy.y), {name: nested(column) for name, column in scores.items()}
    sample = cr.sample_for_evaluation(runs, judge, 60, measure="dcg@5", seed=1, gold=path)
    assert (len(sample), len(sample.new)) == (60, 20)


def test_answers_that_are_missing_are_said(tmp_path, toy):
    path = tmp_path / "p.sqlite"
    with make_project(path, toy, name="toy") as project:
        batch = add_evaluation_batch(project, {"one": toy.X[:, 0]}, 30, measure="dcg@5")
        say(project, batch, "ann", lambda row: 1, n=10)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert len(as_labels(path, "gold")) == 10
    assert "20 of 30 drawn pairs have no answer" in str(caught[0].message)


def test_a_project_without_answers_and_other_sqlite_files_are_refused(tmp_path):
    path = tmp_path / "p.sqlite"
    make_project(path, {"query": ["q"]}, name="p").close()
    assert len(read_sheet_file(path)) == 0
    with pytest.raises(InvalidInputError, match="must hold at least one grade"):
        read_judgements(path)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE a (b)")
    connection.close()
    with pytest.raises(BadFileError, match="must be a labelling project; got another program's SQLite file"):
        read_sheet_file(other)


def test_words_of_a_review_are_answers_but_no_grades(tmp_path):
    path = tmp_path / "p.sqlite"
    with make_project(path, {"query": ["q"] * 2, "label": [0, 1]}, name="p") as project:
        batch = project.add_batch([[0], [1]], name="r", kind="review", purpose="repair")
        say(project, batch, "ann", ["drop", 1].__getitem__)
    assert [each["grade"] for each in read_answers(path)] == ["drop", 1]
    assert project_columns(path)["grade"] == [1]
    with open_project(path) as project:
        assert project.judgements()["grade"] == [1]
