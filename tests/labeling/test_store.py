import os
import signal
import sqlite3
import subprocess
import sys
import threading

import numpy as np
import pytest

from cleanrank.data import sqlite_file
from cleanrank.errors import BadFileError, InvalidInputError, UnknownNameError
from cleanrank.labeling.records import Document, Scale
from cleanrank.labeling.store import create_project, open_project

SCALE = Scale(("not relevant", "relevant", "exact"))


def documents(n_queries=2, n_documents=3):
    numbers = range(n_queries * n_documents)
    return [
        Document(i, f"q{i // n_documents}", f"d{i}", i, i % 3, {"text": f"text {i}"}, np.array([i, np.nan]))
        for i in numbers
    ]


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "project.sqlite"
    queries = {"q0": "first <b>query</b>", "q1": "second"}
    with create_project(
        path, documents(), queries, name="p", scale=SCALE, feature_names=["a", "b"]
    ) as project:
        project.add_batch([[0], [1], [2]], name="grades", kind="grade")
    return path


def answer(project, request, **changes):
    fields = {"annotator": "ann", "batch": 1, "unit": 0, "kind": "answer", "question": "0", "value": 2}
    return project.append(**{**fields, "request": request, **changes})


def test_what_goes_in_comes_out(path):
    with open_project(path) as project:
        assert (project.name, project.scale, project.feature_names) == ("p", SCALE, ("a", "b"))
        assert project.query_text("q0") == "first <b>query</b>"
        assert project.query_ids() == ("q0", "q1")
        for before, after in zip(documents()[3:], project.documents_of("q1"), strict=True):
            np.testing.assert_array_equal(after.features, before.features)
            assert {**vars(before), "features": None} == {**vars(after), "features": None}
        batch = project.batch(1)
        assert project.batches() == (batch,)
        assert [unit.rows for unit in project.units(1)] == [(0,), (1,), (2,)]
        event = answer(project, "r1", seconds=1.5)
        assert project.events() == (event,) == project.events(batch=1, annotator="ann")
        assert project.events(annotator="bob") == () == project.events(after=event.id)


def test_documents_may_come_again_but_not_change(path):
    with open_project(path) as project:
        project.add_documents(documents(), {})
        assert "6 documents" in repr(project)
        with pytest.raises(InvalidInputError, match="must be the documents that the project was made from"):
            project.add_documents([Document(9, "q9", "x"), Document(0, "q0", "other")], {})
        assert "6 documents" in repr(project)


@pytest.mark.parametrize(
    ("units", "settings", "message"),
    [
        ([[0, 3]], {}, "different documents of one query"),
        ([[0, 0]], {}, "different documents of one query"),
        ([[]], {}, "different documents of one query"),
        ([[77]], {}, "documents of the project; got 77 at unit 0"),
        ([], {}, "must be at least one"),
        ([[0, 1]], {"kind": "review"}, "one row each"),
        ([[0]], {"kind": "guess"}, "unknown kind of batch"),
        ([[0]], {"purpose": "fun"}, "unknown purpose"),
        ([[0]], {"annotators_per_unit": 0}, "annotators_per_unit"),
    ],
)
def test_wrong_batches_are_refused_and_leave_nothing(path, units, settings, message):
    with open_project(path) as project:
        with pytest.raises((InvalidInputError, UnknownNameError), match=message):
            project.add_batch(units, **{"name": "b", "kind": "grade", **settings})
        assert len(project.batches()) == 1


def test_a_repeated_request_is_stored_once_and_another_answer_under_it_is_refused(path):
    with open_project(path) as project:
        first = answer(project, "same")
        assert answer(project, "same") == first
        with pytest.raises(InvalidInputError, match="request must be a new one"):
            answer(project, "same", value=0)
        assert answer(project, "same", annotator="bob").id != first.id
        assert len(project.events()) == 2


def test_an_event_cannot_be_changed_or_removed_nor_undone_twice(path):
    with open_project(path) as project:
        first = answer(project, "r")
        undo = {"kind": "undo", "value": None, "undoes": first.id}
        answer(project, "u", **undo)
        with pytest.raises(BadFileError, match="UNIQUE"):
            answer(project, "again", **undo)
        assert len(project.events()) == 2
    connection = sqlite3.connect(path)
    for statement in ("UPDATE events SET value = 0", "DELETE FROM events"):
        with pytest.raises(sqlite3.IntegrityError, match="only ever added"):
            connection.execute(statement)
    connection.close()


def test_judgements_are_those_that_stand(path):
    with open_project(path) as project:
        answer(project, "1")
        wrong = answer(project, "2", unit=1, value=0)
        answer(project, "3", unit=1, kind="undo", value=None, undoes=wrong.id)
        answer(project, "4", unit=1, value=1)
        answer(project, "5", unit=2, kind="skip", value=None)
        pairs = project.add_batch([[3, 4, 5]], name="pairs", kind="pairs")
        answer(project, "6", batch=pairs.id, question="2,0", value=1)
        grades = project._rows("SELECT doc_id, row_id, grade, given_label FROM judgements ORDER BY doc_id")
        assert [tuple(row) for row in grades] == [("d0", 0, 2, 0), ("d1", 1, 1, 1)]
        (preference,) = project._rows("SELECT query_id, doc_id, other_doc_id, better FROM preferences")
        assert tuple(preference) == ("q1", "d5", "d3", 1)


def test_tokens_are_stored_as_hashes_and_can_be_taken_back(path):
    with open_project(path) as project:
        token = project.invite("ann")
        assert project.annotator_of(token) == "ann"
        assert project.annotator_of(token[:-1]) is None
        renewed = project.invite("ann")
        assert project.annotator_of(token) is None
        answer(project, "r", annotator="guest")
        who = [(each.name, each.has_token, each.n_answers) for each in project.annotators()]
        assert who == [("ann", True, 0), ("guest", False, 1)]
        project.revoke("ann")
        assert project.annotator_of(renewed) is None
        with pytest.raises(UnknownNameError, match="unknown annotator 'nobody'"):
            project.revoke("nobody")
    assert renewed.encode() not in path.read_bytes()


@pytest.mark.parametrize("name", ["", " ann", "a\nb", "x" * 65, "a\u202eb", None])
def test_names_that_cannot_be_shown_are_refused(path, name):
    with open_project(path) as project, pytest.raises(InvalidInputError, match="annotator must be a name"):
        project.invite(name)


def change(path, *statements):
    connection = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        connection.execute(statement)
    connection.close()


@pytest.mark.parametrize(
    ("statements", "message"),
    [
        (["DROP TRIGGER events_stay"], "others: events_stay"),
        (["CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM claims; END"], "others: t"),
        (["DROP VIEW judgements", "CREATE VIEW judgements AS SELECT 1"], "others: judgements"),
        (["PRAGMA user_version = 99"], "schema version 1; got version 99"),
        (["PRAGMA application_id = 5"], "must be a labelling project; got another program's"),
        (["DELETE FROM project WHERE key = 'scale'"], "must say its name, scale"),
        (["UPDATE project SET value = '{'"], "must say its name, scale"),
    ],
)
def test_a_changed_file_is_refused(path, statements, message):
    change(path, *statements)
    with pytest.raises(BadFileError, match=message):
        open_project(path)


@pytest.mark.parametrize(
    ("statement", "read"),
    [
        ("UPDATE documents SET fields = '[1'", lambda project: project.document(0)),
        ("UPDATE documents SET features = x'00'", lambda project: project.document(0)),
        ("UPDATE units SET about = '3'", lambda project: project.units(1)),
        ("""UPDATE units SET "rows" = '[0, 77]'""", lambda project: project.units(1)),
        ("""UPDATE units SET "rows" = '{"a": 1}'""", lambda project: project.units(1)),
        ("UPDATE batches SET settings = 'x'", lambda project: project.batch(1)),
    ],
)
def test_a_file_with_broken_cells_says_so(path, statement, read):
    change(path, statement)
    with open_project(path) as project, pytest.raises(BadFileError, match="Do not use a changed file"):
        read(project)


def test_damaged_files_are_refused(path, tmp_path):
    (tmp_path / "text.sqlite").write_text("no database at all, but long enough to look at" * 100)
    with pytest.raises(BadFileError, match="must be a labelling project; got another kind of file"):
        open_project(tmp_path / "text.sqlite")
    (tmp_path / "half.sqlite").write_bytes(path.read_bytes()[:1000] + bytes(99))
    with pytest.raises(BadFileError, match="must be an undamaged SQLite file"):
        open_project(tmp_path / "half.sqlite")
    with pytest.raises(InvalidInputError, match="project must be a new file"):
        create_project(path, name="again", scale=SCALE)


def test_a_failed_creation_leaves_no_file(tmp_path):
    twice = [Document(0, "q", "a"), Document(0, "q", "b")]
    with pytest.raises(InvalidInputError):
        create_project(tmp_path / "p.sqlite", twice, name="p", scale=SCALE)
    assert list(tmp_path.iterdir()) == []


def test_judgements_are_the_grades_that_stand(path):
    with open_project(path) as project:
        first = answer(project, "1", unit=1, seconds=2.5)
        answer(project, "2", unit=1, annotator="bob", value=0)
        answer(project, "3", unit=1, kind="undo", value=None, undoes=first.id)
        answer(project, "4", unit=2, kind="skip", value=None)
        columns = project.judgements()
        shown = ("query_id", "doc_id", "project_row", "annotator", "grade", "given_label", "gold_grade")
        assert [columns[name] for name in shown] == [["q0"], ["d1"], [1], ["bob"], [0], [1], [None]]


def test_the_version_changes_with_whatever_is_added(path):
    with open_project(path) as project:
        seen = [project.version]
        answer(project, "1")
        seen.append(project.version)
        project.add_batch([[0]], name="more", kind="grade")
        seen.append(project.version)
        project.add_documents([Document(6, "q2", "d6")], {})
        seen.append(project.version)
        project.claim(1, 0, "ann")
    assert seen == [(5, 1, -1), (5, 1, 1), (5, 2, 1), (6, 2, 1)]


def test_threads_lose_nothing(path):
    with open_project(path) as project:

        def work(name):
            for number in range(25):
                answer(project, f"{number}", annotator=name, unit=number % 3)

        threads = [threading.Thread(target=work, args=(f"a{i}",)) for i in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len({(e.annotator, e.request) for e in project.events()}) == 200


WRITER = """
import sys
from cleanrank.labeling.store import open_project
path, name = sys.argv[1:]
with open_project(path) as project:
    for number in range(100_000):
        project.append(annotator=name, batch=1, unit=number % 3, kind="answer", question="0", value=1,
                       request=str(number))
        print(number, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill_of_either_of_two_processes(path):
    writers = {
        name: subprocess.Popen([sys.executable, "-c", WRITER, str(path), name], stdout=subprocess.PIPE)
        for name in ("ann", "bob")
    }
    acknowledged = {}
    for name, process in writers.items():
        for line in process.stdout:
            if int(line) == 40:
                break
        os.kill(process.pid, signal.SIGKILL)
        rest = process.stdout.read().split(b"\n")[:-1]
        acknowledged[name] = int(rest[-1]) if rest else 40
        process.wait()
    with open_project(path) as project:
        for name, last in acknowledged.items():
            numbers = [int(event.request) for event in project.events(annotator=name)]
            assert numbers == list(range(len(numbers)))
            assert len(numbers) - 1 in (last, last + 1)  # the last may have been stored but not yet printed
        assert answer(project, "after").id == len(project.events())


def test_a_lock_is_waited_for_and_named(path, monkeypatch):
    monkeypatch.setattr(sqlite_file, "BUSY_SECONDS", 0.05)
    with open_project(path) as holder, open_project(path) as other:
        with holder.writing(), pytest.raises(BadFileError, match="Another program holds it"):
            answer(other, "r")
        answer(other, "r")
