"""The loop of labelling on data whose truth is known."""

from itertools import count

import numpy as np
import pytest

import cleanrank as cr
from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.judges.looks import level_of
from cleanrank.labeling.loop import ask_for, progress_text, project_progress
from cleanrank.labeling.projects import (
    add_evaluation_batch,
    add_gold_batch,
    add_label_batch,
    add_repair_batch,
    make_project,
)
from cleanrank.labeling.session import Session

REQUESTS = count()


@pytest.fixture
def truth():
    return cr.make_ranking(40, 4, docs_per_query=10, signal=0.95, seed=0)


@pytest.fixture
def noisy(truth):
    return cr.corrupt(truth, rate=0.2, seed=1)


@pytest.fixture
def project(tmp_path, noisy):
    with make_project(tmp_path / "p.sqlite", noisy.data, name="p", scale=5) as made:
        yield made


@pytest.fixture
def issues(noisy):
    """The wrong labels are doubted most, but a fifth of them."""
    rng = np.random.default_rng(2)
    doubt = np.where(noisy.changed & (rng.random(noisy.data.n_docs) < 0.8), 0.9, 0.1) + 0.01 * rng.random(
        noisy.data.n_docs
    )
    return cr.LabelIssues.of(noisy.data, doubt=doubt, is_label_issue=doubt > 0.5)


def answer(project, batch, grade_of, n=None, annotator="ann"):
    """Answers the first n questions; grade_of may also say "drop" or "unsure", or None to skip."""
    session = Session(project, batch.id, annotator)
    while (asked := session.asked()) is not None and n != 0:
        where = {"unit": asked.unit.position, "question": asked.question.key, "request": str(next(REQUESTS))}
        value = grade_of(asked.documents[0].row)
        session.skip(**where) if value is None else session.answer(value, **where)
        n = None if n is None else n - 1


def test_nothing_is_known_before_the_first_answer(project):
    add_gold_batch(project, 50)
    progress = project_progress(project)
    assert (progress.steps, progress.last, progress.verdicts(), progress.notes()) == ((), None, [], [])
    # nobody has asked for a review either, but without a sample nothing says that it is worth it
    assert [(each.purpose, each.n) for each in progress.proposals()] == [("gold", 100)]
    assert progress_text(project) == ""


def test_a_sample_and_a_review_tell_what_is_wrong_and_what_was_won(project, truth, noisy, issues):
    grades = truth.y.tolist()
    answer(project, add_gold_batch(project, 120), grades.__getitem__)
    answer(project, add_repair_batch(project, 50, issues=issues), grades.__getitem__)
    first, second = project_progress(project).steps
    wrong = noisy.changed
    assert first.labels.before.low < wrong.mean() < first.labels.before.high
    judged = {unit.rows[0] for batch in (1, 2) for unit in project.units(batch)}
    assert (second.n_units, second.n_judged, second.is_finished) == (50, 50, True)
    assert second.labels.judged == len(judged)
    assert second.labels.wrong == sum(wrong[row] for row in judged)
    left = (wrong.sum() - second.labels.wrong) / len(wrong)
    assert second.labels.after.low <= left <= second.labels.after.high
    assert [each.labels.level for each in (first, second)] == [level_of(1, 0.95), level_of(2, 0.95)]
    text = progress_text(project)
    for words in (
        "After A random sample of 120 labels (120 of 120 judged):",
        "wrong labels won back: ",
        "Go on ",
    ):
        assert words in text


def test_opinions_come_to_what_cleaning_takes(project, noisy):
    """Of a tie the given label stands; who is unsure has no vote; the last word of a person counts."""
    batch = project.add_batch(
        [[row] for row in range(5)], name="r", kind="review", purpose="repair", annotators_per_unit=3
    )
    given = noisy.data.y
    other = ((given[:5] + 1) % 5).tolist()
    ann = [other[0], other[1], "drop", "unsure", other[4]]
    bob = [int(given[0]), "unsure", "drop", "unsure", None]
    answer(project, batch, ann.__getitem__, annotator="ann")
    answer(project, batch, bob.__getitem__, annotator="bob")
    (step,) = project_progress(project).steps
    assert (step.labels.judged, step.labels.wrong) == (4, 3)  # row 0 stays, 3 is not judged
    assert (step.n_units, step.n_judged) == (5, 4)


def test_unfinished_batches_are_named(project, truth):
    answer(project, add_gold_batch(project, 60), lambda row: int(truth.y[row]), n=20)
    progress = project_progress(project)
    assert any("A random sample of 60 labels (20 of 60)" in note for note in progress.notes())
    assert not progress.last.is_finished


def test_systems_are_measured_batch_by_batch(project, truth, noisy):
    X = noisy.data.X
    batch = add_evaluation_batch(project, {"one": X[:, 0], "two": X[:, 1]}, 60, measure="ndcg@5")
    answer(project, batch, lambda row: int(truth.y[row]))
    progress = project_progress(project, measure_width=0.001)
    assert progress.has_systems
    assert set(progress.last.systems.estimates) == {"one", "two"}
    assert not progress.last.systems.enough
    (asked,) = [each for each in progress.proposals() if each.purpose == "evaluation"]
    assert "the interval of ndcg@5:trec is wider than 0.001" in asked.why
    further = ask_for(project, "evaluation", 30)
    assert len(project.units(further.id)) == 90
    assert sum("answered_in" in unit.about for unit in project.units(further.id)) == 60
    wide = project_progress(project, measure_width=2)
    assert wide.last.systems.enough
    assert any(each.startswith("Stop measuring systems: ") for each in wide.verdicts())


def test_what_is_asked_for_next(project):
    gold = ask_for(project, "gold", 30, annotators_per_unit=2)
    assert (gold.purpose, gold.annotators_per_unit, len(project.units(gold.id))) == ("gold", 2, 30)
    again = ask_for(project, "gold", 30)
    assert not {u.rows for u in project.units(gold.id)} & {u.rows for u in project.units(again.id)}
    repair = ask_for(project, "repair", 7, blind=True)
    assert (repair.kind, repair.blind, len(project.units(repair.id))) == ("review", True, 7)
    with pytest.raises(InvalidInputError, match="an evaluation needs systems to go on with"):
        ask_for(project, "evaluation")
    with pytest.raises(UnknownNameError, match="unknown purpose 'fun'"):
        ask_for(project, "fun")
    with pytest.raises(InvalidInputError, match="n must be an integer >= 1"):
        ask_for(project, "gold", 0)


def test_without_given_labels_nothing_is_said_of_them(tmp_path):
    with make_project(tmp_path / "p.sqlite", {"query": ["a", "a"]}, name="p") as project:
        answer(project, add_label_batch(project), lambda row: 1)
        progress = project_progress(project)
        assert (progress.n_labels, progress.last.labels, progress.proposals()) == (0, None, [])
        assert progress_text(project) == ""
    with pytest.raises(InvalidInputError, match="measure_width must be a number > 0"):
        project_progress(project, measure_width=0)
