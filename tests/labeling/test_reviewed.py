"""Reviewed labels back in the data: from a project and from its sheet."""

import json
from itertools import count

import numpy as np
import pandas as pd
import pytest

import cleanrank as cr
from cleanrank.errors import BadFileError, CleanrankError, InvalidInputError, UnknownNameError
from cleanrank.labeling.export import export_judgements
from cleanrank.labeling.projects import add_label_batch, make_project
from cleanrank.labeling.reviewed import clean_reviewed
from tests.oracles import same_data

REQUESTS = count()


@pytest.fixture
def data():
    """Six rows of two queries; their labels are 0, 1, 2, 0, 1, 2."""
    return cr.from_arrays(np.arange(12.0).reshape(6, 2), [0, 1, 2, 0, 1, 2], qid=[7, 7, 7, 8, 8, 8])


@pytest.fixture
def project(tmp_path, data):
    """Rows 0 to 4 in review; what was said of each is in the comments."""
    said = {
        0: {"ann": 0},  # keep
        1: {"ann": 2, "bob": 0, "cy": 2},  # relabel
        2: {"ann": "drop", "bob": "unsure"},  # drop
        3: {"ann": 2, "bob": 0},  # a tie: the given label stands
        4: {"ann": "unsure"},  # nobody was sure
    }
    with make_project(tmp_path / "p.sqlite", data, name="p") as made:
        units = [([row], {"doubt": 0.9 - row / 10}) for row in said]
        made.add_batch(units, name="r", kind="review", purpose="repair", annotators_per_unit=3)
        for unit, answers in enumerate(said.values()):
            for who, value in answers.items():
                say(made, who, value, unit=unit)
        yield made


def say(project, annotator, value, *, unit=0, batch=1, question="0"):
    asked = {"batch": batch, "unit": unit, "question": question, "request": str(next(REQUESTS))}
    return project.append(annotator=annotator, kind="answer", value=value, **asked)


def trail(cleaned):
    """row -> what its row of the audit trail says."""
    return {row["row_id"]: row for row in cleaned.removed.to_dict("records")}


@pytest.mark.parametrize("source", ["project", "path", "sheet.csv", "sheet.xlsx", "sheet.parquet"])
def test_what_people_decided_goes_into_the_labels(data, project, tmp_path, source):
    review = {"project": project, "path": project.path}.get(source, tmp_path / source)
    if "sheet" in source:
        export_judgements(project, review)
    cleaned = clean_reviewed(data, review)
    assert same_data(cleaned.data, data.with_labels(np.array([0, 2, 2, 0, 1, 2])).drop(np.arange(6) == 2))
    assert cleaned.undo() is data
    counts = {
        name: cleaned.options[name] for name in ("reviewed", "keep", "relabel", "drop", "unsure", "ties")
    }
    assert counts == {"reviewed": 5, "keep": 2, "relabel": 1, "drop": 1, "unsure": 1, "ties": 1}
    assert cleaned.by == "ann, bob, cy"
    assert repr(cleaned) == "Cleaned(2 of 6 documents changed by review)"
    changes = trail(cleaned)
    assert changes.keys() == {1, 2}
    assert (changes[1]["action"], changes[1]["given_label"], changes[1]["new_label"]) == ("relabel", 1, 2)
    words = ("2", "0") if "sheet" in source else ("2 (relevant)", "0 (not relevant)")
    assert changes[1]["why"] == f"ann: {words[0]}; bob: {words[1]}; cy: {words[0]}"
    assert (changes[1]["by"], changes[2]["action"]) == ("ann, bob, cy", "drop")
    assert np.isnan(changes[2]["new_label"])
    assert changes[1]["at"] == max(event.at for event in project.events() if event.unit == 1)
    if "sheet" not in source:
        assert changes[1]["doubt"] == 0.8


def test_single_rows_are_undone(data, project):
    cleaned = clean_reviewed(data, project)
    without = cleaned.undo([2])
    assert same_data(without.data, data.with_labels(np.array([0, 2, 2, 0, 1, 2])))
    assert trail(without).keys() == {1}
    assert trail(without)[1]["by"] == "ann, bob, cy"
    with pytest.raises(CleanrankError, match="must be ids of changed rows"):
        without.undo([2])


def test_the_rule_and_the_person_decide(data, project):
    say(project, "cy", 1, unit=3)
    assert clean_reviewed(data, project).data.y.tolist() == [0, 2, 0, 1, 2]
    assert clean_reviewed(data, project, combine="median").data.y.tolist() == [0, 2, 1, 1, 2]
    only_bob = clean_reviewed(data, project, annotator="bob")
    assert only_bob.data.y.tolist() == [0, 0, 2, 0, 1, 2]
    assert (only_bob.by, only_bob.options["annotator"]) == ("bob", "bob")


def test_answers_of_a_plain_batch_count_and_the_last_word_is_taken(data, project):
    batch = add_label_batch(project, queries=["8"]).id
    say(project, "ann", 0, batch=batch, question="0")
    say(project, "ann", 1, batch=batch, question="2")
    cleaned = clean_reviewed(data, project)
    assert cleaned.data.y.tolist() == [0, 2, 0, 1, 1]
    assert trail(cleaned)[5]["why"] == "ann: 1 (partially relevant)"
    assert cleaned.options["ties"] == 0


def test_rows_are_found_by_id_whatever_the_order(data, project):
    shuffled = data.select(np.array([5, 4, 3, 2, 1, 0]))
    cleaned = clean_reviewed(shuffled, project)
    new = dict(zip(cleaned.data.row_ids.tolist(), cleaned.data.y.tolist(), strict=True))
    assert new == {0: 0, 1: 2, 3: 0, 4: 1, 5: 2}


def test_a_frame_comes_back_as_a_frame(data, project):
    frame = pd.DataFrame(data.X, columns=["a", "b"]).assign(label=data.y, qid=data.qid, note=list("uvwxyz"))
    cleaned = clean_reviewed(frame, project)
    assert cleaned.frame.label.tolist() == [0, 2, 0, 1, 2]
    assert cleaned.frame.note.tolist() == ["u", "v", "x", "y", "z"]
    renamed = frame.rename(columns={"label": "mark", "qid": "search"})
    again = clean_reviewed(renamed, project, label="mark", qid="search")
    assert again.frame.mark.tolist() == [0, 2, 0, 1, 2]


def test_a_grade_that_no_label_has(tmp_path):
    data = cr.from_arrays(np.zeros((2, 1)), [0, 1], qid=[1, 1])
    with make_project(tmp_path / "p.sqlite", data, name="p", scale=4) as project:
        add_label_batch(project)
        say(project, "ann", 3)
        assert clean_reviewed(data, project).data.y.tolist() == [3, 1]
        export_judgements(project, tmp_path / "s.csv")
    assert clean_reviewed(data, tmp_path / "s.csv").data.y.tolist() == [3, 1]


def test_the_audit_trail_is_written(data, project, tmp_path):
    clean_reviewed(data, project).save_audit(tmp_path / "audit.json")
    record = json.loads((tmp_path / "audit.json").read_text())
    assert (record["mode"], record["changed"], record["options"]["ties"]) == ("review", 2, 1)
    assert [change["action"] for change in record["changes"]] == ["relabel", "drop"]


def test_other_data_are_refused(data, project):
    for other, words in (
        (
            data.with_labels(np.array([1, 1, 2, 0, 1, 2])),
            "got query '7' and label 1 for query '7' and label 0 at row 0",
        ),
        (data.drop(np.arange(6) == 3), "got no such row for query '8' and label 0 at row 3"),
        (cr.from_arrays(data.X, data.y, qid=[6, 6, 6, 8, 8, 8]), "got query '6' and label 0 for query '7'"),
    ):
        with pytest.raises(
            InvalidInputError, match="data must be the data that the project was made from; " + words
        ):
            clean_reviewed(other, project)


def test_reviews_that_cannot_be_used_are_refused(data, project, tmp_path):
    with pytest.raises(UnknownNameError, match="unknown way to combine answers 'mean'"):
        clean_reviewed(data, project, combine="mean")
    with pytest.raises(UnknownNameError, match="unknown annotator 'eve'"):
        clean_reviewed(data, project, annotator="eve")
    with make_project(tmp_path / "empty.sqlite", data, name="e") as empty:
        with pytest.raises(InvalidInputError, match="a review must have answers; got none"):
            clean_reviewed(data, empty)
        empty.add_batch([[row] for row in range(6)], name="r", kind="review", purpose="repair")
        for row in range(6):
            say(empty, "ann", "drop", unit=row)
        with pytest.raises(
            InvalidInputError, match="a review must leave at least one document; got all dropped"
        ):
            clean_reviewed(data, empty)
    (tmp_path / "far.csv").write_text("row_id,annotator,grade\n77,ann,1\n")
    with pytest.raises(InvalidInputError, match="a judged document must be one of the project; got row '77'"):
        clean_reviewed(data, tmp_path / "far.csv")
    (tmp_path / "no.csv").write_text("note\nhello\n")
    with pytest.raises(BadFileError, match="must have the columns grade"):
        clean_reviewed(data, tmp_path / "no.csv")
    (tmp_path / "who.csv").write_text("row_id,grade\n1,1\n")
    with pytest.raises(InvalidInputError, match="must name who gave them"):
        clean_reviewed(data, tmp_path / "who.csv")
    assert clean_reviewed(data, tmp_path / "who.csv", annotator="ann").by == "ann"
    gains = cr.from_arrays(data.X, data.y, qid=data.qid, gains=np.linspace(0, 1, 6))
    with pytest.raises(InvalidInputError, match="must have grades only to be relabelled"):
        clean_reviewed(gains, project)
