"""Judgements out of a project, and back in again."""

import json

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.labeling.decisions import opinions_by_row
from cleanrank.labeling.export import (
    FORMATS,
    export_judgements,
    graded_data,
    judgement_frame,
    label_studio_tasks,
    preference_frame,
)
from cleanrank.labeling.imports import import_judgements
from cleanrank.labeling.projects import add_label_batch, make_project
from cleanrank.labeling.session import Session
from cleanrank.labeling.tasks import label_judge
from cleanrank.noise.judgement_table import read_judgements
from tests.labeling.test_decisions import append

TEXTS = ["plain", "=1+1", "<b>bold</b>", 'umläut, "quoted"\nline', ""]


def data():
    return cr.from_arrays(
        np.arange(10.0).reshape(5, 2),
        [0, 1, 2, 2, 1],
        qid=[7, 8, 7, 8, 7],
        doc_ids=list("abcde"),
        feature_names=("bm25", "age"),
        extra={"query": ["x", "y", "x", "y", "x"], "title": TEXTS},
    )


def new_project(path):
    return make_project(path, data(), name="p")


@pytest.fixture
def project(tmp_path):
    """Rows a to e; everybody grades a to c of the first batch, d is dropped, of e nobody is sure."""
    with new_project(tmp_path / "p.sqlite") as made:
        grade = made.add_batch([[0, 2, 4], [1, 3]], name="g", kind="grade", annotators_per_unit=3)
        for who, grades in {"ann": (1, 2), "bob": (1, 0), "c d": (0, 0)}.items():
            for question, value in enumerate(grades):
                append(made, grade, who, value, question=str(question))
        append(made, grade, "ann", 2, unit=1)
        review = made.add_batch([[3], [4]], name="r", kind="review", purpose="repair")
        append(made, review, "ann", "drop")
        append(made, review, "ann", "unsure", unit=1)
        yield made


GRADES = {"a": 1, "b": 2, "c": 0}


def grades_of(read):
    return dict(zip(read.doc_ids.tolist(), read.y.tolist(), strict=True))


def test_one_grade_per_document(project):
    graded, notes = graded_data(project)
    assert grades_of(graded) == GRADES
    assert graded.row_ids.tolist() == [0, 2, 1]
    assert graded.X.tolist() == [[0.0, 1.0], [4.0, 5.0], [2.0, 3.0]]
    assert notes == [
        "1 documents were dropped by those who judged them",
        "1 documents have no grade because nobody was sure",
    ]
    assert grades_of(graded_data(project, annotator="ann")[0]) == {"a": 1, "b": 2, "c": 2}
    # 0, 0 and 2: the middle one; of 0, 1 and 1 too.
    assert grades_of(graded_data(project, combine="median")[0]) == {"a": 1, "b": 2, "c": 0}


def test_letor(project, tmp_path):
    done = export_judgements(project, tmp_path / "out.txt")
    assert (done.form, done.rows) == ("letor", 3)
    assert done.notes[0] == "1 documents were dropped by those who judged them"
    back = cr.read_letor(tmp_path / "out.txt")
    assert back.y.tolist() == [1, 0, 2]
    assert back.query_ids.tolist() == [7, 8]
    assert back.X.tolist() == [[0.0, 1.0], [4.0, 5.0], [2.0, 3.0]]


def test_qrels(project, tmp_path):
    assert export_judgements(project, tmp_path / "out.qrels").form == "qrels"
    assert (tmp_path / "out.qrels").read_text() == "7 0 a 1\n7 0 c 0\n8 0 b 2\n"
    export_judgements(project, tmp_path / "of-bob.txt", form="qrels", annotator="bob")
    assert (tmp_path / "of-bob.txt").read_text() == "7 0 a 1\n7 0 c 0\n"
    with new_project(tmp_path / "other.sqlite") as other:
        batch = import_judgements(other, tmp_path / "of-bob.txt", annotator="bob")
        assert (batch.kind, batch.purpose) == ("grade", "label")
        assert {row: said["bob"].value for row, said in opinions_by_row(other).items()} == {0: 1, 2: 0}
        assert Session(other, batch.id, "eve").asked() is None  # nobody is asked


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_data_sets_with_texts(project, tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    assert export_judgements(project, path, form="labels").rows == 3
    back = cr.read_data(path)
    assert grades_of(back) == GRADES
    assert back.feature_names == ("bm25", "age")
    assert back.extra["title"].tolist() == [TEXTS[0], TEXTS[2], TEXTS[1]]
    assert back.extra["query"].tolist() == ["x", "x", "y"]


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".xlsx", ".parquet"])
def test_everybodys_judgements_come_back(project, tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    done = export_judgements(project, path)
    assert (done.form, done.rows) == ("judgements", 9)
    with new_project(tmp_path / "other.sqlite") as other:
        batch = import_judgements(other, path)
        assert (batch.kind, batch.purpose) == ("review", "repair")
        pd.testing.assert_frame_equal(
            judgement_frame(other).drop(columns=["batch", "purpose"]),
            judgement_frame(project).drop(columns=["batch", "purpose"]),
        )
        with pytest.raises(InvalidInputError, match="must be a grade from 0 to 2"):
            import_judgements(other, {"row_id": [0, 0], "annotator": ["x", "y"], "grade": [1, 9]})
        assert len(other.batches()) == 1  # nothing of it was stored
    # Grades are read by whatever reads judgements.
    found = read_judgements(path)
    assert repr(found.judgements) == "Judgements(7 of 3 items by 3 annotators, 3 grades)"
    assert "2 blank grades were left out" in found.notes


def test_of_one_person(project, tmp_path):
    export_judgements(project, tmp_path / "out.csv", annotator="c d")
    assert pd.read_csv(tmp_path / "out.csv")["annotator"].tolist() == ["c d"] * 2


def test_label_studio_tasks_with_several_annotators(project, tmp_path):
    path = tmp_path / "tasks.json"
    done = export_judgements(project, path)
    assert done.notes == ("5 of 5 tasks have annotations",)
    tasks = json.loads(path.read_text(encoding="utf-8"))
    first = tasks[0]
    assert (first["id"], first["data"]["query"], first["data"]["title"]) == (1, "x", "plain")
    assert [each["completed_by"]["email"] for each in first["annotations"]] == ["ann", "bob", "c d"]
    assert first["annotations"][2]["result"] == [
        {
            "from_name": "grade",
            "to_name": "text",
            "type": "choices",
            "value": {"choices": ["0: not relevant"]},
        }
    ]
    with new_project(tmp_path / "other.sqlite") as other:
        import_judgements(other, path)
        assert label_studio_tasks(other) == tasks


@pytest.mark.parametrize(
    ("result", "value"),
    [
        ([{"from_name": "rel", "type": "choices", "value": {"choices": ["relevant"]}}], 2),
        ([{"type": "rating", "value": {"rating": 1}}], 1),
        ([{"type": "number", "value": {"number": 2}}], 2),
        (
            [
                {"from_name": "x", "value": {"choices": ["2"]}},
                {"from_name": "grade", "value": {"choices": ["0"]}},
            ],
            0,
        ),
        ([{"type": "textarea", "value": {"text": ["hm"]}}], None),
    ],
)
def test_results_of_other_label_studio_projects(tmp_path, result, value):
    done = {"completed_by": 3, "result": result, "lead_time": 2.5, "created_at": "2026-01-31T12:00:00Z"}
    cancelled = {"completed_by": 4, "was_cancelled": True, "result": []}
    task = {"id": 9, "data": {"qid": 7, "docno": "a"}, "annotations": [done, cancelled]}
    (tmp_path / "a.json").write_text(json.dumps([task]))
    with new_project(tmp_path / "p.sqlite") as project:
        if value is None:
            with pytest.raises(InvalidInputError, match="judgements must be at least one"):
                import_judgements(project, tmp_path / "a.json")
            return
        import_judgements(project, tmp_path / "a.json")
        (opinion,) = opinions_by_row(project)[0].values()
        assert (opinion.annotator, opinion.value, opinion.seconds) == ("3", value, 2.5)
        assert opinion.at == "2026-01-31T12:00:00.000+00:00"


def test_preferences(tmp_path):
    with new_project(tmp_path / "p.sqlite") as project:
        batch = add_label_batch(project, kind="pairs", annotators_per_unit=2)
        truth = {0: 0, 2: 2, 4: 1, 1: 1, 3: 1}
        for who in ("ann", "bob"):
            session = Session(project, batch.id, who)
            while (asked := session.asked()) is not None:
                rows = [document.row for document in asked.documents]
                if who == "bob" and 1 in rows:
                    break
                one, other = (truth[row] for row in rows)
                value = 1 if one > other else 2 if one < other else 0
                session.answer(
                    value, unit=asked.unit.position, question=asked.question.key, request=f"{who}{rows}"
                )
        frame = preference_frame(project)
        pairs = [("7", "c", "a"), ("7", "c", "e"), ("7", "e", "a")]
        for who in ("ann", "bob"):
            own = frame[frame["annotator"] == who]
            assert sorted(zip(own["query_id"], own["better"], own["worse"], strict=True)) == pairs
        assert len(preference_frame(project, "ann")) == 3
        export_judgements(project, tmp_path / "pairs.csv", form="preferences")
        assert len(pd.read_csv(tmp_path / "pairs.csv")) == 6
        with pytest.raises(InvalidInputError, match="got comparisons alone"):
            export_judgements(project, tmp_path / "judgements.csv")
        # Levels of preference stand in for grades, where there are none.
        graded, notes = graded_data(project)
        assert grades_of(graded) == {"a": 0, "e": 1, "c": 2, "b": 0, "d": 0}
        assert notes == ["documents were compared, not graded: their grades are levels of preference"]


def test_the_best_documents_get_levels(tmp_path):
    with new_project(tmp_path / "p.sqlite") as project:
        batch = add_label_batch(project, kind="top-k", k=1, queries=["7"])
        judge, session = label_judge([0, 2, 1]), Session(project, batch.id, "ann")
        while (asked := session.asked()) is not None:
            key = asked.question.key
            session.answer(judge(asked.question), unit=0, question=key, request=f"request {key}")
        assert grades_of(graded_data(project)[0]) == {"a": 0, "c": 1, "e": 0}


@pytest.mark.parametrize(
    ("name", "options", "error", "words"),
    [
        ("out.json", {"form": "letor"}, InvalidInputError, "output must be"),
        ("out.csv", {"form": "label-studio"}, InvalidInputError, "output must be .json"),
        ("out.csv", {"form": "html"}, UnknownNameError, "unknown format 'html'"),
        ("out.csv", {"combine": "median"}, InvalidInputError, "combine goes with one grade per document"),
        ("out.txt", {"combine": "mean"}, UnknownNameError, "unknown way to combine answers 'mean'"),
        ("out.csv", {"annotator": "eve"}, UnknownNameError, "unknown annotator 'eve'. Known: ann, bob, c d"),
        ("out.csv", {"form": "preferences"}, InvalidInputError, "must have compared documents"),
        ("nowhere/out.csv", {}, FileNotFoundError, "does not exist"),
    ],
)
def test_what_cannot_be_written_is_refused(project, tmp_path, name, options, error, words):
    with pytest.raises(error, match=words):
        export_judgements(project, tmp_path / name, **options)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("form", ["letor", "qrels", "labels", "judgements", "preferences"])
def test_a_project_without_answers_has_nothing_to_write(tmp_path, form):
    suffix = {"letor": ".txt", "qrels": ".qrels"}.get(form, ".csv")
    with (
        new_project(tmp_path / "p.sqlite") as project,
        pytest.raises(InvalidInputError, match="project must have"),
    ):
        export_judgements(project, tmp_path / f"out{suffix}", form=form)
    assert set(FORMATS) == {"letor", "qrels", "labels", "judgements", "preferences", "label-studio"}


def test_a_document_twice_in_a_query_is_no_qrels(tmp_path):
    table = {"query": ["q", "q"], "doc_id": ["a", "a"]}
    with make_project(tmp_path / "p.sqlite", table, name="p") as project:
        batch = add_label_batch(project)
        for question in "01":
            append(project, batch, "ann", 1, question=question)
        with pytest.raises(
            InvalidInputError, match="qrels must hold a document once in a query; got 'a' twice"
        ):
            export_judgements(project, tmp_path / "out.qrels")
