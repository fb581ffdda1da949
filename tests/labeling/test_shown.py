"""What a reviewer is shown, with the given grade and without it."""

from dataclasses import fields

import numpy as np
import pytest

from cleanrank.labeling.records import Document, Scale
from cleanrank.labeling.shown import answer_words, shown_issue
from cleanrank.labeling.store import create_project

SCALE = Scale(("bad", "fair", "good"))
ABOUT = {
    "doubt": 0.8,
    "suggested_label": 0,
    "why": "graded 2, but ranked last",
    "probabilities": [0.7, 0.2, 0.1],
    "scores": {"0": 1.5, "1": 0.25, "2": 1.0, "3": 0.5},
}


def project_of(path, given, about, *, features=True):
    values = np.array([[1.0, 5.0], [9.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    documents = [
        Document(row, "q", f"d{row}", row, label, {"title": f"T{row}"}, values[row] if features else None)
        for row, label in enumerate([0, given, 1, 1])
    ]
    names = ("bm25", "constant") if features else ()
    project = create_project(path, documents, name="p", scale=SCALE, feature_names=names)
    for blind in (False, True):
        project.add_batch([([1], about)], name="r", kind="review", purpose="repair", blind=blind)
    return project


def shown(project, batch):
    return shown_issue(project, project.batch(batch), project.units(batch)[0])


def test_a_reviewer_sees_reasons_the_ranking_and_the_features(tmp_path):
    with project_of(tmp_path / "p.sqlite", 2, ABOUT) as project:
        issue = shown(project, 1)
    assert (issue.given, issue.suggested, issue.doubt, issue.why) == (2, 0, 0.8, "graded 2, but ranked last")
    assert issue.probabilities == (0.7, 0.2, 0.1)
    # by expected grade: 0 (1.5), 2 (1.0), 3 (.5), 1 (.25), which is the document
    assert [(each.rank, each.document.doc_id, each.score, each.is_own) for each in issue.ranking] == [
        (1, "d0", 1.5, False),
        (2, "d2", 1.0, False),
        (3, "d3", 0.5, False),
        (4, "d1", 0.25, True),
    ]
    (place,) = issue.features  # the constant one says nothing
    assert (place.name, place.value, place.below) == ("bm25", 9.0, 1.0)


def test_documents_that_models_did_not_rank_come_last(tmp_path):
    with project_of(tmp_path / "p.sqlite", 2, {**ABOUT, "scores": {"1": 0.5, "3": 0.25}}) as project:
        ranking = shown(project, 1).ranking
    assert [(each.document.row, each.score) for each in ranking] == [
        (1, 0.5),
        (3, 0.25),
        (0, None),
        (2, None),
    ]
    with project_of(tmp_path / "other.sqlite", 2, {"doubt": 1.0}, features=False) as project:
        bare = shown(project, 1)
    assert (bare.ranking, bare.features, bare.suggested, bare.why) == ((), (), None, "")


@pytest.mark.parametrize("given", [0, 1, None])
def test_in_blind_mode_nothing_depends_on_the_given_grade(tmp_path, given):
    other = {
        "doubt": 0.1,
        "suggested_label": 1,
        "why": "else",
        "probabilities": [0, 1, 0],
        "scores": {"1": 2},
    }
    with (
        project_of(tmp_path / "a.sqlite", 2, ABOUT) as first,
        project_of(tmp_path / "b.sqlite", given, other) as second,
    ):
        one, two = shown(first, 2), shown(second, 2)
    for field in fields(one):
        if field.name != "document":
            assert getattr(one, field.name) == getattr(two, field.name)
    assert one.document.given_label is two.document.given_label is None
    assert one.features


@pytest.mark.parametrize(
    ("value", "given", "words"),
    [(2, 2, "keep 2 (good)"), (2, None, "2 (good)"), (0, 2, "0 (bad)"), ("unsure", 1, "unsure"),
     ("drop", None, "drop"), (None, 1, "skipped"), (7, 1, "7")],
)  # fmt: skip
def test_answers_in_words(value, given, words):
    assert answer_words(value, SCALE, given) == words
