"""What several people's answers come to."""

from itertools import count

import pytest

from cleanrank.data.project_file import project_columns
from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.labeling.decisions import check_grade, decisions, majority, median, opinions_by_row, words
from cleanrank.labeling.loop import project_progress
from cleanrank.labeling.projects import make_project

REQUESTS = count()


def append(project, batch, annotator, value, unit=0, question="0"):
    kind = "skip" if value is None else "answer"
    asked = {"batch": batch.id, "unit": unit, "question": question, "request": str(next(REQUESTS))}
    return project.append(annotator=annotator, kind=kind, value=value, **asked)


@pytest.fixture
def project(tmp_path):
    table = {"query": ["q"] * 5, "label": [0, 1, 2, 2, None]}
    with make_project(tmp_path / "p.sqlite", table, name="p") as made:
        yield made


@pytest.mark.parametrize(
    ("votes", "given", "by_majority", "by_median"),
    [
        ([1], None, (1, False), (1, False)),
        ([2, 2, 0], 0, (2, False), (2, False)),
        ([0, 2], None, (0, True), (0, True)),
        ([0, 2], 2, (2, True), (2, True)),
        ([0, 2], 1, (0, True), (0, True)),
        ([0, 1, 2], 2, (2, True), (1, False)),
        ([0, 0, 2, 2], 2, (2, True), (2, True)),
        (["drop"], 1, ("drop", False), ("drop", False)),
        (["drop", 1], 0, (1, True), (1, False)),
        (["drop", "drop", 1], 1, ("drop", False), ("drop", False)),
        (["drop", "drop", 0, 2], 1, ("drop", False), (0, True)),
    ],
)
def test_rules(votes, given, by_majority, by_median):
    assert majority(votes, given) == by_majority
    assert median(votes, given) == by_median


def test_the_last_word_of_everybody_counts_and_who_is_unsure_has_no_vote(project):
    review = project.add_batch([[0], [1], [3]], name="r", kind="review", purpose="repair")
    grade = project.add_batch([[0, 1, 2]], name="g", kind="grade")
    pairs = project.add_batch([[0, 1]], name="p", kind="pairs")
    append(project, review, "ann", 2)
    append(project, review, "bob", "unsure")
    append(project, review, "ann", "unsure", unit=1)
    append(project, review, "ann", "drop", unit=2)
    taken_back = append(project, review, "bob", 0, unit=2)
    project.append(
        annotator="bob", batch=1, unit=2, kind="undo", question="0", request="u", undoes=taken_back.id
    )
    append(project, grade, "ann", 1)  # of row 0 again
    append(project, grade, "cid", None, question="1")
    append(project, grade, "cid", 0, question="2")
    append(project, pairs, "cid", 1, question="0,1")
    made = decisions(project)
    assert [(each.row, each.value) for each in made] == [(0, 1), (1, None), (2, 0), (3, "drop")]
    assert [(o.annotator, o.value, o.batch) for o in made[0].opinions] == [
        ("bob", "unsure", 1),
        ("ann", 1, 2),
    ]
    assert words(made) == [
        "1 documents were dropped by those who judged them",
        "1 documents have no grade because nobody was sure",
    ]
    assert [each.row for each in decisions(project, annotator="cid")] == [2]
    assert [(each.row, each.value) for each in decisions(project, batches=[review])] == [
        (0, 2), (1, None), (3, "drop"),
    ]  # fmt: skip


def test_the_last_word_may_come_in_an_earlier_batch(project):
    first = project.add_batch([[0], [1]], name="first", kind="grade")
    review = project.add_batch([[1]], name="review", kind="review", purpose="repair")
    append(project, first, "ann", 0)
    append(project, review, "ann", 1)
    append(project, first, "ann", 0, unit=1)  # somebody goes on with the first batch
    assert [(each.row, each.value) for each in decisions(project)] == [(0, 0), (1, 0)]
    assert project_columns(project.path, "gold")["true_grade"] == [0, 0]
    assert [step.labels.wrong for step in project_progress(project).steps] == [1, 1]


def test_ties_are_said(project):
    batch = project.add_batch([[1]], name="g", kind="grade", annotators_per_unit=2)
    for who, grade in (("ann", 2), ("bob", 1)):
        append(project, batch, who, grade)
    (made,) = decisions(project)
    assert (made.value, made.is_tie) == (1, True)
    assert words([made]) == ["1 documents had a tie, which went to the given label, else to the lowest grade"]


def test_what_is_unknown_is_refused(project):
    with pytest.raises(UnknownNameError, match=r"unknown annotator 'eve'\. Known: nobody\."):
        opinions_by_row(project, annotator="eve")
    with pytest.raises(UnknownNameError, match="unknown way to combine answers 'mean'"):
        decisions(project, combine="mean")
    assert (check_grade(2, 3, ""), check_grade("drop", 3, "")) == (2, "drop")
    for value in (3, -1, "good", 1.5, True):
        with pytest.raises(
            InvalidInputError, match="a judgement must be a grade from 0 to 2, 'drop' or 'unsure'"
        ):
            check_grade(value, 3, "line 1")
