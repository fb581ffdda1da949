import numpy as np
import pytest

from cleanrank.data.project_file import project_columns
from cleanrank.labeling.answers import given_data, graded, known_grades, standing
from cleanrank.labeling.decisions import gold_grades
from cleanrank.labeling.store import Document, Scale, create_project

SCALE = Scale(("no", "partly", "yes"))


@pytest.fixture
def documents():
    """Rows of two queries that do not stand together; every fourth without a label."""
    rng = np.random.default_rng(0)
    return [
        Document(
            row,
            f"q{row % 2}",
            f"d{row}",
            given_label=None if row % 4 == 3 else int(rng.integers(3)),
            features=rng.normal(size=2),
        )
        for row in range(12)
    ]


def test_given_labels_are_data_whose_rows_are_the_documents(tmp_path, documents):
    names = ("length", "matches")
    with create_project(
        tmp_path / "p.sqlite", documents, name="p", scale=SCALE, feature_names=names
    ) as project:
        data = given_data(project)
    assert data.feature_names == names
    assert sorted(data.row_ids.tolist()) == [row for row in range(12) if row % 4 != 3]
    for place, row in enumerate(data.row_ids):
        document = documents[row]
        assert (data.qid[place], data.doc_ids[place]) == (document.query_id, document.doc_id)
        assert data.y[place] == document.given_label
        np.testing.assert_allclose(data.X[place], document.features, rtol=1e-6)


def test_features_that_some_documents_lack_are_left_out_and_without_labels_there_are_no_data(
    tmp_path, documents
):
    some = [*documents[:3], Document(20, "q0", "plain", given_label=1)]
    names = ("length", "matches")
    with create_project(tmp_path / "a.sqlite", some, name="a", scale=SCALE, feature_names=names) as project:
        data = given_data(project)
        assert (data.n_docs, data.n_features) == (4, 0)
    unlabelled = [Document(0, "q", "a"), Document(1, "q", "b")]
    with create_project(tmp_path / "b.sqlite", unlabelled, name="b", scale=SCALE) as project:
        assert given_data(project) is None


def test_only_what_was_not_taken_back_stands(tmp_path, documents):
    with create_project(
        tmp_path / "p.sqlite", documents, name="p", scale=SCALE, feature_names=("a", "b")
    ) as project:
        batch = project.add_batch([(0,), (1,), (2,)], name="r", kind="review", purpose="repair").id

        def say(who, unit, kind, value=None, undoes=None):
            request = f"{len(project.events())}"
            return project.append(
                annotator=who, batch=batch, unit=unit, kind=kind, question="0", value=value,
                request=request, undoes=undoes,
            ).id  # fmt: skip

        say("ann", 0, "answer", 2)
        wrong = say("ann", 1, "answer", 0)
        say("ann", 1, "undo", undoes=wrong)
        say("ann", 1, "answer", "drop")
        say("bob", 0, "answer", "unsure")
        say("bob", 2, "skip")
        assert [(e.annotator, e.unit, e.value) for e in standing(project.events(batch))] == [
            ("ann", 0, 2),
            ("ann", 1, "drop"),
            ("bob", 0, "unsure"),
            ("bob", 2, None),
        ]
        listed = list(graded(project))
        assert [(each.row, each.event.value) for each in listed] == [
            (0, 2),
            (1, "drop"),
            (0, "unsure"),
            (2, None),
        ]
        assert [each.row for each in graded(project, annotator="bob")] == [0, 2]
        assert list(graded(project, batches=[])) == []


def test_known_grades_and_the_majority_of_a_gold_sample_count_as_right(tmp_path, documents):
    with create_project(
        tmp_path / "p.sqlite", documents, name="p", scale=SCALE, feature_names=("f", "g")
    ) as project:
        known = [((0,), {"is_gold": True, "true_grade": 2}), ((2,), {})]
        project.add_batch(known, name="labels", kind="grade", annotators_per_unit=3)
        project.add_batch([(1,), (4,), (0,)], name="sample", kind="grade", purpose="gold")
        said = [(1, 0, "ann", 0), (1, 1, "ann", 2), (2, 0, "ann", 2), (2, 0, "bob", 2), (2, 0, "cy", 1)]
        said += [(2, 1, "ann", 2), (2, 1, "bob", 1), (2, 2, "ann", 0)]
        for number, (batch, unit, annotator, value) in enumerate(said):
            project.append(
                annotator=annotator,
                batch=batch,
                unit=unit,
                kind="answer",
                question="0",
                value=value,
                request=str(number),
            )
        assert known_grades(project) == {0: 2}
        assert project.document(4).given_label == 2  # to which the tie of 2 and 1 goes
        assert gold_grades(project) == {0: 2, 1: 2, 4: 2}


def test_rows_of_a_gold_sample_that_were_judged_before_count_as_gold(tmp_path, documents):
    with create_project(
        tmp_path / "p.sqlite", documents, name="p", scale=SCALE, feature_names=("f", "g")
    ) as project:
        project.add_batch([(0,), (1,)], name="doubted", kind="review", purpose="repair")
        project.add_batch([((0,), {"answered_in": 1}), (4,)], name="sample", kind="grade", purpose="gold")
        for batch, unit, value in ((1, 0, 2), (1, 1, 1), (2, 1, 0)):
            asked = {"batch": batch, "unit": unit, "question": "0", "request": f"{batch} {unit}"}
            project.append(annotator="ann", kind="answer", value=value, **asked)
        assert gold_grades(project) == {0: 2, 4: 0}
        columns = project_columns(project.path, "gold")
        assert columns["true_grade"] == [2, 0]
