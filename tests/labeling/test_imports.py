"""Judgements from elsewhere, as answers of named people; ``test_export`` has the ways there and back."""

import json

import pytest

import cleanrank as cr
from cleanrank.data.project_file import project_columns
from cleanrank.errors import BadFileError, InvalidInputError, UnknownNameError
from cleanrank.labeling.decisions import decisions, opinions_by_row
from cleanrank.labeling.imports import import_judgements
from cleanrank.labeling.projects import make_project

RATED = {"result": [{"value": {"rating": 1}}], "completed_by": 1}
TABLE = {"query_id": ["1", "1", "2"], "doc_id": ["a", "b", "b"], "label": [0, 1, 2]}


@pytest.fixture
def project(tmp_path):
    with make_project(tmp_path / "p.sqlite", TABLE, name="p") as made:
        yield made


def test_a_sheet_by_query_and_document_or_by_row(project):
    sheet = {
        "qid": ["1", "2"],
        "docno": ["b", "b"],
        "worker": ["ann", "bob"],
        "rating": [2, 0],
        "seconds": ["3", ""],
    }
    batch = import_judgements(project, sheet, name="crowd")
    assert (batch.name, batch.kind, batch.purpose) == ("crowd", "grade", "label")
    said = opinions_by_row(project)
    assert {
        row: [(o.annotator, o.value, o.seconds) for o in each.values()] for row, each in said.items()
    } == {
        1: [("ann", 2, 3.0)],
        2: [("bob", 0, None)],
    }
    import_judgements(project, {"row_id": ["0.0", "1"], "true_grade": [1, ""]}, annotator="cid")
    assert opinions_by_row(project)[0]["cid"].value == 1
    assert "cid" not in opinions_by_row(project)[1]


def test_a_random_sample_that_was_judged_in_a_sheet(project):
    import_judgements(project, {"row_id": [0, 2], "true_grade": [1, 2]}, annotator="ann", purpose="gold")
    assert project_columns(project.path, "gold")["true_grade"] == [1, 2]


def test_another_project_and_qrels_without_grades_of_their_own(project, tmp_path):
    import_judgements(project, {"row_id": [0], "grade": [1]}, annotator="ann")
    with make_project(tmp_path / "other.sqlite", TABLE, name="o") as other:
        import_judgements(other, project.path)
        assert [(each.row, each.value) for each in decisions(other)] == [(0, 1)]
        (tmp_path / "qrels").write_text("1 0 a 2\n1 0 b -1\n")
        import_judgements(other, cr.read_qrels(tmp_path / "qrels"), annotator="nist")
        assert list(opinions_by_row(other)[0]) == ["ann", "nist"]
        assert 1 not in opinions_by_row(other)


@pytest.mark.parametrize(
    ("sheet", "options", "words"),
    [
        ({"row_id": [0], "grade": [1]}, {}, "must name who gave them"),
        ({"row_id": [0], "grade": [1]}, {"annotator": " "}, "annotator must be a name"),
        ({"row_id": [7], "grade": [1]}, {}, "a judged document must be one of the project; got row '7'"),
        (
            {"row_id": [0], "query": ["2"], "grade": [1]},
            {},
            "must be one of the project; got row '0', query '2'",
        ),
        ({"query": ["1"], "doc": ["x"], "grade": [1]}, {}, "got query '1', document 'x' at row 0"),
        ({"row_id": [0], "grade": [3]}, {}, r"a grade from 0 to 2, 'drop' or 'unsure'; got 3 at row 0"),
        ({"row_id": [0], "grade": ["good"]}, {}, "got 'good' at row 0"),
        (
            {"row_id": [0, 0], "grade": [1, 1]},
            {},
            "'ann' must have one judgement of each document; got a second",
        ),
        ({"row_id": [0]}, {}, "must have the columns grade, and row_id or query_id and doc_id"),
        (
            {"query": ["1"], "grade": [1]},
            {},
            "must have the columns grade, and row_id or query_id and doc_id",
        ),
        ({"row_id": [0], "grade": [""]}, {}, "judgements must be at least one"),
        ({"row_id": [0], "grade": [1], "at": ["noon"]}, {}, "the time of a judgement must be ISO 8601"),
        (
            {"row_id": [0], "grade": [1], "seconds": ["-2"]},
            {},
            "the seconds of a judgement must be a number from 0",
        ),
        ({"row_id": [0], "grade": [1]}, {"purpose": "fun"}, "unknown purpose of an import 'fun'"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_stored(project, sheet, options, words):
    named = {"annotator": "ann"} if "must name" not in words else {}
    with pytest.raises((InvalidInputError, UnknownNameError), match=words):
        import_judgements(project, sheet, **{**named, **options})
    assert project.batches() == () == project.events()


def test_a_document_that_a_query_lists_twice_needs_its_row(tmp_path):
    table = {"query": ["q", "q"], "doc_id": ["a", "a"]}
    with make_project(tmp_path / "p.sqlite", table, name="p") as project:
        with pytest.raises(InvalidInputError, match="a judged document must be in its query once"):
            import_judgements(project, {"query": ["q"], "doc_id": ["a"], "grade": [1]}, annotator="ann")
        import_judgements(project, {"row_id": [1], "grade": [1]}, annotator="ann")
        assert list(opinions_by_row(project)) == [1]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "must be JSON"),
        ('{"a": 1}', "must be a list of tasks, as Label Studio exports them"),
        ("[1]", "must be a list of tasks"),
        (json.dumps([{"data": {"x": 1}, "annotations": [RATED]}]), "got query '', document '' at task 1"),
    ],
)
def test_files_that_are_no_tasks_are_refused(project, tmp_path, text, words):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises((BadFileError, InvalidInputError), match=words):
        import_judgements(project, tmp_path / "a.json")
    assert project.batches() == ()


def test_a_book_of_quepid_is_everybodys_judgements(project, tmp_path):
    said = [{"rating": 1.0, "user_email": "ann"}, {"rating": 2.0, "user_email": "bob"}]
    pairs = [{"query_text": "1", "doc_id": "b", "judgements": said}]
    (tmp_path / "book.json").write_text(json.dumps({"query_doc_pairs": pairs}))
    import_judgements(project, tmp_path / "book.json")
    assert {
        row: {o.annotator: o.value for o in each.values()} for row, each in opinions_by_row(project).items()
    } == {1: {"ann": 1, "bob": 2}}
