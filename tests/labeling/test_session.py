import os
import random
import signal
import subprocess
import sys
import threading
import time
from datetime import UTC, datetime

import pytest

from cleanrank.errors import BadFileError, CleanrankError, InvalidInputError
from cleanrank.labeling.records import Document, Scale
from cleanrank.labeling.session import Session
from cleanrank.labeling.store import create_project, open_project
from cleanrank.labeling.tasks import ask, label_judge, make_task
from cleanrank.labeling.work import HOLD_SECONDS, Work

N = 6
SCALE = Scale(("no", "maybe", "yes"))


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "p.sqlite"
    documents = [Document(i, f"q{i // N}", f"d{i}", i, i % 3) for i in range(2 * N)]
    create_project(path, documents, {"q0": "first"}, name="p", scale=SCALE).close()
    return path


@pytest.fixture
def project(path):
    with open_project(path) as project:
        yield project


def add(project, kind="grade", units=None, **settings):
    single = [[row] for row in range(2 * N)]
    return project.add_batch(units or single, name=kind, kind=kind, **settings).id


def requests():
    return (f"request-{number}" for number in range(10**9))


def reply(session, value, request):
    asked = session.asked()
    where = {"unit": asked.unit.position, "question": asked.question.key, "request": request}
    return session.skip(**where) if value is None else session.answer(value, **where)


def test_the_history_is_what_stands_of_one_annotator(project):
    batch, request = add(project), requests()
    ann, bob = (Session(project, batch, name) for name in ("ann", "bob"))
    for session, value in ((ann, 2), (bob, 1), (ann, None), (ann, 0)):
        reply(session, value, next(request))
    ann.undo(next(request))
    assert [(event.kind, event.value) for event in ann.history()] == [("answer", 2), ("skip", None)]
    assert [event.annotator for event in bob.history()] == ["bob"]


def test_two_annotators_share_the_units_and_each_is_judged_once(project):
    batch, request = add(project), requests()
    sessions = {name: Session(project, batch, name) for name in ("ann", "bob")}
    assert sessions["ann"].asked().unit.position == 0
    assert sessions["bob"].asked().unit.position == 1
    assert sessions["ann"].asked().unit.position == 0
    while any(session.asked() for session in sessions.values()):
        for name, session in sessions.items():
            if session.asked():
                reply(session, {"ann": 0, "bob": 2}[name], next(request))
    units = [event.unit for event in project.events(batch)]
    assert sorted(units) == list(range(2 * N))
    assert Work.of(project, batch).n_settled == 2 * N


def test_progress_counts_down_to_nothing(project):
    batch, request = add(project), requests()
    session = Session(project, batch, "ann")
    for number in range(2 * N):
        asked = session.asked()
        assert (asked.n_answered, asked.n_expected) == (number, 2 * N)
        reply(session, 1, next(request))
    assert session.asked() is None


def test_gold_questions_go_to_everybody_and_skipped_units_to_others(project):
    gold = {"is_gold": True, "true_grade": 2}
    batch, request = add(project, units=[[0], ([1], gold), [2]]), requests()
    ann, bob = Session(project, batch, "ann"), Session(project, batch, "bob")
    while (asked := ann.asked()) is not None:
        reply(ann, [None, 2, 1][asked.unit.position], next(request))
    assert bob.asked().n_expected == 2
    assert {reply(bob, 0, next(request)).unit for _ in range(2)} == {0, 1}
    assert bob.asked() is None
    rows = project._rows("SELECT doc_id, annotator, gold_grade FROM judgements ORDER BY 1, 2")
    expected = [("d0", "bob", None), ("d1", "ann", 2), ("d1", "bob", 2), ("d2", "ann", None)]
    assert [tuple(row) for row in rows] == expected


def test_gold_questions_are_strewn_among_the_others(project):
    units = [[0]] * 90 + [([1], {"is_gold": True, "true_grade": 2})] * 10
    batch, request = add(project, units=units, annotators_per_unit=2), requests()
    places = []
    for name in ("ann", "bob"):
        session = Session(project, batch, name)
        order = [reply(session, 1, next(request)).unit for _ in range(100)]
        assert session.asked() is None
        assert sorted(order) == list(range(100))
        places.append([place for place, unit in enumerate(order) if unit >= 90])
    assert places[0] != places[1]
    assert all(min(each) < 30 and max(each) > 60 for each in places)


def test_a_unit_that_was_left_goes_to_others_after_a_while(project, monkeypatch):
    batch = add(project)
    ann, bob = Session(project, batch, "ann"), Session(project, batch, "bob")
    assert [ann.asked().unit.position, bob.asked(claim=False).unit.position] == [0, 1]
    monkeypatch.setattr("cleanrank.labeling.work.HOLD_SECONDS", -1)
    assert bob.asked().unit.position == 0
    assert ann.asked().unit.position == 0  # and still has it, should she return


def test_who_comes_back_to_a_unit_holds_it_again(project, monkeypatch):
    batch = add(project)
    ann, bob = Session(project, batch, "ann"), Session(project, batch, "bob")
    assert ann.asked().unit.position == 0
    later = time.time() + 2 * HOLD_SECONDS
    monkeypatch.setattr("cleanrank.labeling.work.time.time", lambda: later)
    assert bob.asked(claim=False).unit.position == 0
    stamp = datetime.fromtimestamp(later, UTC).isoformat()
    monkeypatch.setattr("cleanrank.labeling.store.now", lambda: stamp)
    assert ann.asked().unit.position == 0
    assert bob.asked().unit.position == 1
    claims = project.claims(batch)
    ann.asked()
    assert project.claims(batch) == claims  # it is held: nothing to write


def test_looking_claims_nothing(project):
    batch = add(project)
    assert Session(project, batch, "ann").asked(claim=False).unit.position == 0
    assert Session(project, batch, "bob").asked().unit.position == 0
    assert Session(project, batch, "ann").asked(claim=False).unit.position == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"unit": 1}, "must be to the open question"),
        ({"unit": "0"}, "must be to the open question"),
        ({"unit": True}, "must be to the open question"),
        ({"question": "1"}, "must be to the open question"),
        ({"question": "0,1"}, "must be to the open question"),
        ({"question": None}, "must be to the open question"),
        ({"value": 3}, "must be one of 0, 1, 2"),
        ({"value": -1}, "must be one of"),
        ({"value": 1.0}, "must be one of"),
        ({"value": True}, "must be one of"),
        ({"value": "drop"}, "must be one of"),
        ({"value": None}, "must be one of"),
        ({"request": ""}, "request must be a text"),
        ({"request": "x" * 1000}, "request must be a text"),
        ({"seconds": -1}, "seconds must be a number"),
        ({"seconds": float("nan")}, "seconds must be a number"),
    ],
)
def test_what_was_not_asked_is_refused_and_nothing_stored(project, change, message):
    session = Session(project, add(project), "ann")
    session.asked()
    fields = {"value": 1, "unit": 0, "question": "0", "request": "r", **change}
    with pytest.raises(InvalidInputError, match=message):
        session.answer(fields.pop("value"), **fields)
    assert project.events() == ()
    assert session.asked().unit.position == 0


def test_nobody_answers_the_unit_of_another(project):
    batch = add(project)
    Session(project, batch, "ann").asked()
    bob = Session(project, batch, "bob")
    for asked in (None, bob.asked()):
        with pytest.raises(InvalidInputError, match="must be to the open question"):
            bob.answer(1, unit=0, question="0", request=f"r{asked}")
    assert project.events() == ()


def test_a_repeated_request_answers_one_question_once(project):
    session = Session(project, add(project), "ann")
    session.asked()
    first = session.answer(1, unit=0, question="0", request="r")
    assert session.answer(1, unit=0, question="0", request="r") == first
    undone = session.undo("u")
    assert session.undo("u") == undone
    assert len(project.events()) == 2
    with pytest.raises(InvalidInputError, match="request must be a new one"):
        session.answer(1, unit=0, question="0", request="u")
    with pytest.raises(InvalidInputError, match="needs an answer to take back"):
        session.undo("u2")


def test_review_takes_grades_and_words(project):
    batch, request = add(project, "review", purpose="repair"), requests()
    session = Session(project, batch, "ann")
    assert session.asked().values == (0, 1, 2, "drop", "unsure")
    for value in ("drop", 2, "unsure", None):
        reply(session, value, next(request))
    session.undo(next(request))
    assert session.asked().unit.position == 3
    with pytest.raises(InvalidInputError, match="must be one of"):
        reply(session, "keep", next(request))
    # Who is unsure leaves the row to others.
    bob = Session(project, batch, "bob")
    assert bob.asked().unit.position == 2
    assert [tuple(r) for r in project._rows("SELECT doc_id, grade FROM judgements")] == [("d1", 2)]


@pytest.mark.parametrize("kind", ["grade", "pairs", "top-k"])
def test_a_unit_of_many_documents_is_asked_as_its_task_asks(project, kind):
    settings = {"k": 3} if kind == "top-k" else {}
    rows = list(range(N))
    batch, request = add(project, kind, [rows, [N]], settings=settings), requests()
    labels = [0, 2, 1, 2, 0, 1]
    judge = label_judge(labels)
    session = Session(project, batch, "ann")
    while (asked := session.asked()) is not None and asked.unit.position == 0:
        assert [document.row for document in asked.documents] == list(asked.question.documents)
        reply(session, judge(asked.question), next(request))
    grades = {"n_grades": 3} if kind == "grade" else {}
    expected = ask(make_task(kind, N, **settings, **grades), judge)
    assert Work.of(project, batch).task(0, "ann") == expected
    # One document alone is no pair: there is nothing to ask about it.
    assert (session.asked() is None) == (kind != "grade")


@pytest.mark.parametrize("seed", range(6))
def test_any_course_of_answers_undos_and_restarts_leaves_what_a_plain_list_would(path, seed):
    rng, request = random.Random(seed), requests()
    k = rng.choice([1, 2])
    with open_project(path) as project:
        batch = add(
            project, units=[[0, 1, 2], [3], [6, 7]] + [[row] for row in (8, 9)], annotators_per_unit=k
        )
    projects = [open_project(path), open_project(path)]  # as two processes have it
    standing = {name: [] for name in ("ann", "bob", "cyd")}
    for _ in range(120):
        place = rng.randrange(2)
        if rng.random() < 0.05:
            projects[place].close()
            projects[place] = open_project(path)
        name = rng.choice(sorted(standing))
        session = Session(projects[place], batch, name)
        if rng.random() < 0.25:
            if standing[name]:
                session.undo(next(request))
                undone = standing[name].pop()
                asked = session.asked()
                assert (asked.unit.position, asked.question.key) == undone[:2]
            continue
        asked = session.asked()
        if asked is not None:
            value = rng.choice([0, 1, 2, None])
            reply(session, value, next(request))
            standing[name].append((asked.unit.position, asked.question.key, value))
    fresh = open_project(path)
    work = Work.of(fresh, batch)
    for name, answers in standing.items():
        history = [(event.unit, event.question, event.value) for event in work.history(name)]
        assert history == answers
        assert len({(unit, question) for unit, question, _ in answers}) == len(answers)
    grades = [tuple(row) for row in fresh._rows("SELECT annotator, project_row, grade FROM judgements")]
    rows = [unit.rows for unit in fresh.units(batch)]
    expected = [(n, rows[u][int(q)], v) for n, a in standing.items() for u, q, v in a if v is not None]
    assert sorted(grades) == sorted(expected)
    for project in (*projects, fresh):
        project.close()


def test_many_annotators_at_once_lose_and_double_nothing(path):
    with open_project(path) as project:
        batch = add(project, units=[[row] for row in range(2 * N)] * 10)
        problems = []

        def work(name):
            request, session = requests(), Session(project, batch, name)
            try:
                while session.asked() is not None:
                    reply(session, 1, next(request))
            except CleanrankError as error:
                problems.append(error)

        threads = [threading.Thread(target=work, args=(f"a{i}",)) for i in range(12)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert problems == []
        assert sorted(event.unit for event in project.events(batch)) == list(range(20 * N))


ANNOTATOR = """
import sys
from cleanrank.labeling.session import Session
from cleanrank.labeling.store import open_project
with open_project(sys.argv[1]) as project:
    session = Session(project, 1, "ann")
    while (asked := session.asked()) is not None:
        event = session.answer(1, unit=asked.unit.position, question=asked.question.key,
                               request=f"{asked.unit.position}-{asked.question.key}")
        print(event.id, flush=True)
"""


def test_work_goes_on_where_a_killed_process_left_it(path):
    with open_project(path) as project:
        batch = add(project, units=[[row] for row in range(2 * N)] * 50)
    process = subprocess.Popen([sys.executable, "-c", ANNOTATOR, str(path)], stdout=subprocess.PIPE)
    acknowledged = [int(process.stdout.readline()) for _ in range(20)]
    os.kill(process.pid, signal.SIGKILL)
    acknowledged += [int(line) for line in process.stdout.read().split(b"\n")[:-1]]
    process.wait()
    with open_project(path) as project:
        events = project.events(batch)
        assert [event.id for event in events][: len(acknowledged)] == acknowledged
        assert [event.unit for event in events] == list(range(len(events)))
        assert Session(project, batch, "ann").asked().unit.position == len(events)


def test_answers_that_fit_no_question_of_a_changed_file_are_named(path):
    with open_project(path) as project:
        batch = add(project)
        project.append(
            annotator="ann", batch=batch, unit=0, kind="answer", question="7", value=1, request="r"
        )
        with pytest.raises(BadFileError, match="must have answers to its own questions"):
            Session(project, batch, "ann").asked()
