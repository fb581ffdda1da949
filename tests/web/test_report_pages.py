"""What the pages of reports show, and what they say where there is nothing to show."""

import re

import numpy as np
import pytest

from cleanrank.errors import InvalidInputError
from cleanrank.experiments.store import Store
from cleanrank.labeling.answers import known_grades
from cleanrank.labeling.decisions import gold_grades
from cleanrank.labeling.records import Document
from cleanrank.labeling.store import create_project, open_project
from cleanrank.report.table import Table
from cleanrank.web import report_pages
from cleanrank.web.security import Refused

from .conftest import BATCHES, SCALE, make_judged, make_runs


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    return make_judged(tmp_path_factory.mktemp("judged") / "judged.sqlite")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return make_runs(tmp_path_factory.mktemp("runs") / "runs.sqlite")


def section(page, heading):
    return next(each["parts"] for _, each in page.values["named"] if each["heading"] == heading)


def answer(project, batch, annotator, value, *, unit=0, question="0", seconds=1.0):
    """Stores an answer as it is."""
    project.append(
        annotator=annotator,
        batch=batch,
        unit=unit,
        kind="answer",
        question=question,
        value=value,
        seconds=seconds,
        request=f"{batch}-{unit}-{question}",
    )


def test_answers_are_counted_by_person_with_pace_and_gold_questions(judged):
    with open_project(judged) as project:
        known = known_grades(project)
        table = report_pages.answers_table(project, known)
        columns = project.judgements()
        times = {
            name: [s for s, who in zip(columns["seconds"], columns["annotator"], strict=True) if who == name]
            for name in ("ann", "bob", "cy")
        }
    assert len(known) == 15
    rows = {row[0].text: [cell.value for cell in row[1:]] for row in table.cells}
    assert [rows[name][:3] for name in ("ann", "bob", "cy")] == [[204, 0, 0], [204, 0, 0], [144, 0, 0]]
    for name, seconds in times.items():
        assert rows[name][3] == pytest.approx(np.median(seconds))
    on_gold = [
        (grade == known[row])
        for row, who, grade in zip(*(columns[c] for c in ("project_row", "annotator", "grade")), strict=True)
        if who == "cy" and row in known
    ]
    assert rows["cy"][4:] == [15, pytest.approx(np.mean(on_gold))]


def test_skips_and_what_was_taken_back_are_counted_apart(project_file):
    with open_project(project_file) as project:
        answer(project, 1, "ann", 2)
        answer(project, 1, "ann", 1, question="1", seconds=None)
        said = {"annotator": "ann", "batch": 1, "unit": 0}
        skip = project.append(**said, kind="skip", question="2", request="skip")
        project.append(**said, kind="undo", question="2", request="undo", undoes=skip.id)
        project.append(**said, kind="skip", question="2", request="again")
        (row,) = report_pages.answers_table(project, {}).texts
    assert row == ["ann", "2", "1", "1", "1.0", "0", "–"]


def test_reliable_annotators_are_told_from_others(judged):
    page = report_pages.annotators_of(judged)
    (answers,) = section(page, "Answers so far")
    assert [row[0] for row in answers.texts] == ["ann", "bob", "cy"]
    people = section(page, "Annotators")[0]
    assert people.texts[0][0] == "cy"  # the least reliable first
    assert "noisier than most" in people.texts[0][-1] or "unreliable" in people.texts[0][-1]
    assert section(page, "Grades from all of them")[0].rows  # there are gold questions
    assert section(page, "Agreement")[0].head == ("", "432 judgements of 144 items")
    items = section(page, "What to judge again")[-1]
    assert len(items.rows) == report_pages.MOST_TO_JUDGE
    assert all(re.fullmatch(r"[01]\.\d\d", row[items.head.index("probability")]) for row in items.texts)


def test_who_answers_without_reading_is_named(tmp_path):
    rng = np.random.default_rng(3)
    path = make_judged(tmp_path / "judged.sqlite")
    with open_project(path) as project:
        for name in ("dan", "eve", "fay"):
            for unit in range(144):
                project.append(
                    annotator=name,
                    batch=1,
                    unit=unit,
                    kind="answer",
                    question="0",
                    value=1 if name == "fay" else int(rng.integers(3)),
                    seconds=0.2 if name == "dan" else float(rng.gamma(3, 2)),
                    request=f"{name}-{unit}",
                )
    (odd,) = section(report_pages.annotators_of(path), "Constant or fast answers")
    assert {(row[0], row[1]) for row in odd.texts} == {("dan", "fast answers"), ("fay", "constant answers")}


def test_before_two_people_graded_the_same_the_page_says_what_is_needed(project_file):
    page = report_pages.annotators_of(project_file)
    assert section(page, "What is needed") == ["Nobody has answered yet."]
    with open_project(project_file) as project:
        answer(project, BATCHES["grade"], "ann", 2)
        answer(project, BATCHES["grade"], "bob", 0, question="1")
        answer(project, BATCHES["pairs"], "bob", 1, question="0,1")
    page = report_pages.annotators_of(project_file)
    assert "two people or more have graded" in section(page, "What is needed")[0]
    assert [row[:2] for row in section(page, "Answers so far")[0].texts] == [["ann", "1"], ["bob", "2"]]
    with open_project(project_file) as project:
        answer(project, BATCHES["grade"], "ann", 0, question="1")
    page = report_pages.annotators_of(project_file)
    assert [row[0] for row in section(page, "Annotators")[0].texts] == ["ann", "bob"]


def test_the_data_set_is_that_of_the_given_labels(judged):
    page = report_pages.data_set_of(judged)
    assert page.title == "Diagnosis of Judged"
    with open_project(judged) as project:
        given = [each.given_label for query in project.query_ids() for each in project.documents_of(query)]
    assert page.values["d"]["grades"]["documents"] == np.bincount(given).tolist()
    assert page.values["d"]["features"] == 3


def test_texts_without_features_are_diagnosed_too(project_file):
    assert report_pages.data_set_of(project_file).values["d"]["documents"] == 12


def test_documents_without_labels_are_no_data_set(tmp_path):
    path = tmp_path / "new.sqlite"
    create_project(path, [Document(0, "q", "a")], {}, name="New", scale=SCALE).close()
    assert "came without" in section(report_pages.data_set_of(path), "What is needed")[0]


def test_given_labels_are_held_against_gold_answers_and_people_against_gold_questions(judged):
    page = report_pages.judges_of(judged)
    table = section(page, "Judges")[0]
    with open_project(judged) as project:
        gold, known, columns = gold_grades(project), known_grades(project), project.judgements()
        given = {row: project.document(row).given_label for row in gold}
    rows = {row[0]: row for row in table.texts}
    assert list(rows) == ["given labels", "ann", "bob", "cy"]
    share = np.mean([given[row] == grade for row, grade in gold.items()])
    assert rows["given labels"][1:3] == [str(len(gold)), f"{share:.0%}"]
    graded = zip(columns["project_row"], columns["annotator"], columns["grade"], strict=True)
    of_cy = {row: grade for row, who, grade in graded if who == "cy"}
    share = np.mean([of_cy[row] == grade for row, grade in known.items()])
    assert rows["cy"][1:3] == [str(len(known)), f"{share:.0%}"]
    assert f"given labels against {len(gold)} gold answers" in page.values["lede"]
    assert "annotators against gold questions" in page.values["lede"]


def test_without_gold_people_are_held_against_the_majority_of_the_others(project_file):
    said = {"ann": (0, 1, 2), "bob": (0, 1, 1), "cy": (0, 2, 2)}
    with open_project(project_file) as project:
        for name, grades in said.items():
            for document, grade in enumerate(grades):
                answer(project, 1, name, grade, question=str(document))
    page = report_pages.judges_of(project_file)
    assert "majority of the other annotators" in page.values["lede"]
    assert "given labels" not in page.values["lede"]
    # Of a tie the lower grade counts: the others of ann say 0, 1, 1, of bob 0, 1, 2, of cy 0, 1, 1.
    equal = {row[0]: row[2] for row in section(page, "Judges")[0].texts}
    assert equal == {"ann": "67%", "bob": "67%", "cy": "33%"}


def test_without_gold_and_overlap_the_page_says_what_is_needed(project_file):
    with open_project(project_file) as project:
        answer(project, 1, "ann", 2)
    assert "needs documents" in section(report_pages.judges_of(project_file), "What is needed")[0]


def test_recipes_are_listed_with_links_to_their_reports(runs):
    (table,) = section(report_pages.runs_of(runs), "Recipes")
    assert isinstance(table, Table)
    assert table.texts == [["demo/none", "1", "0", "1"], ["demo/two", "8", "8", "0"]]
    assert '<a href="/runs/demo/two">demo/two</a>' in table.html()


def test_names_of_recipes_are_escaped(tmp_path):
    with Store(tmp_path / "runs.sqlite") as store:
        store.add_recipe('<b>"x"', {"key": {"dataset": "d", "method": "m"}})
    html = section(report_pages.runs_of(tmp_path / "runs.sqlite"), "Recipes")[0].html()
    assert '<a href="/runs/%3Cb%3E%22x%22">&lt;b&gt;&#34;x&#34;</a>' in html


def test_the_report_of_a_recipe_has_its_figures(runs):
    page = report_pages.run_of(runs, "demo/two")
    assert page.values["summary"].methods == ("plain", "robust")
    assert page.values["command"] == "cleanrank reproduce demo/two"
    assert section(report_pages.run_of(runs, "demo/none"), "What is needed")


def test_a_known_recipe_has_its_title_and_published_figures(tmp_path):
    path = tmp_path / "runs.sqlite"
    make_runs(path)
    with Store(path) as store:
        (record, *_) = store.records(recipe="demo/two")
        store.add_recipe("noise/quick", {record.key: record.cell})
    page = report_pages.run_of(path, "noise/quick")
    assert page.title != "noise/quick"
    assert page.values["notes"]


@pytest.mark.parametrize("file", [None, "runs"])
def test_recipes_that_are_not_there_are_refused(file, request):
    path = None if file is None else request.getfixturevalue(file)
    with pytest.raises(Refused, match="There"):
        report_pages.run_of(path, "../secret")


def test_without_runs_the_page_says_how_to_get_some(tmp_path):
    assert "--runs FILE" in section(report_pages.runs_of(None), "What is needed")[0]
    Store(tmp_path / "runs.sqlite").__exit__()
    assert "--runs FILE" in section(report_pages.runs_of(tmp_path / "runs.sqlite"), "What is needed")[0]
    with pytest.raises(InvalidInputError, match="must be an existing file"):
        report_pages.runs_of(tmp_path / "none.sqlite")
