"""Answers in JSON: stored once, or refused with nothing stored, whatever is sent."""

from uuid import uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cleanrank.labeling.store import open_project

from .conftest import BATCHES, N_DOCUMENTS

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
FIELDS = ("unit", "question", "value", "seconds", "request")
# Bodies that look like answers, with some of the fields replaced by anything, or by what might pass.
PLAUSIBLE = {
    "unit": st.integers(-1, 3),
    "question": st.sampled_from(["0", "1", "0,1", "1,0", "0,0", "-1", "0,1,2", "7", "", "0 ", "٣"]),
    "value": st.integers(-2, 4) | st.sampled_from(["drop", "unsure", "1", "keep", "'"]),
    "seconds": st.floats(-1, 1e9),
    "request": st.sampled_from(["abcdefgh", "short", "x" * 65, "a b c d e f", "'; DROP TABLE events"]),
}
BODIES = st.fixed_dictionaries({}, optional={name: PLAUSIBLE[name] | JSON for name in FIELDS}) | JSON


def events(path):
    with open_project(path) as project:
        return project.events()


@pytest.mark.parametrize(("kind", "value"), [("grade", 2), ("pairs", 1), ("top-k", 0), ("review", "drop")])
def test_an_answer_is_stored_with_who_what_and_how_long(local, project_file, kind, value):
    batch = BATCHES[kind]
    before = local.state(batch)
    response = local.answer(batch, value, seconds=2.25)
    assert response.status_code == 200
    (event,) = events(project_file)
    assert (event.id, event.annotator, event.batch, event.kind) == (
        response.json()["event"],
        "ann",
        batch,
        "answer",
    )
    assert (event.unit, event.question, event.value) == (before["unit"], before["question"], value)
    assert event.seconds == 2.25
    after = response.json()
    assert (after["unit"], after["question"]) != (before["unit"], before["question"])


def test_a_batch_can_be_answered_skipped_and_undone_to_its_end(local, project_file):
    batch = BATCHES["grade"]
    for place in range(2 * N_DOCUMENTS):
        state = local.state(batch)
        assert not state["done"]
        if place % 3 == 0:  # answered, taken back, asked again
            assert local.answer(batch, 0).status_code == 200
            undone = local.post(f"/api/batches/{batch}/undo", {"request": uuid4().hex}).json()
            assert (undone["unit"], undone["question"]) == (state["unit"], state["question"])
        if place % 4 == 3:
            body = {
                "unit": state["unit"],
                "question": state["question"],
                "seconds": 0,
                "request": uuid4().hex,
            }
            assert local.post(f"/api/batches/{batch}/skip", body).status_code == 200
        else:
            assert local.answer(batch, place % 3).status_code == 200
    assert local.state(batch) == {"done": True, "unit": None, "question": None}
    kinds = [event.kind for event in events(project_file)]
    assert (kinds.count("answer"), kinds.count("skip"), kinds.count("undo")) == (13, 3, 4)


@pytest.mark.parametrize("action", ["answer", "skip", "undo"])
def test_a_repeated_request_is_stored_once(local, project_file, action):
    local.answer(1, 1)
    state = local.state(1)
    body = {"request": "repeated-1"}
    if action != "undo":
        body |= {"unit": state["unit"], "question": state["question"], "seconds": 1.0}
    if action == "answer":
        body["value"] = 2
    first, again = (local.post(f"/api/batches/1/{action}", body) for _ in range(2))
    assert first.status_code == again.status_code == 200
    assert first.json() == again.json()
    assert len(events(project_file)) == 2


@pytest.mark.parametrize(
    "forged",
    [
        {"question": "0,5"},
        {"question": "5,0"},
        {"question": "0"},
        {"unit": 1},
        {"unit": 99},
        {"value": 3},
        {"value": -1},
        {"value": "drop"},
        {"value": True},
        {"value": None},
        {"seconds": -1},
        {"seconds": "1"},
        {"request": "x"},
        {"annotator": "bob"},
    ],
)
def test_forged_answers_are_refused_and_nothing_is_stored(local, project_file, forged, caplog):
    response = local.answer(BATCHES["pairs"], 1, **forged)
    assert response.status_code in (409, 422)
    assert response.json()["error"]
    assert any("refused 4" in text for text in caplog.messages)
    assert events(project_file) == ()


def test_an_answer_to_a_question_of_a_minute_ago_is_refused(local, project_file):
    old = local.state(BATCHES["pairs"])
    assert local.answer(BATCHES["pairs"], 1).status_code == 200
    stale = local.answer(BATCHES["pairs"], 2, unit=old["unit"], question=old["question"])
    assert stale.status_code == 409
    assert len(events(project_file)) == 1


@pytest.mark.parametrize("batch", ["0", "77", "-1", "1.0", "x", "1%00", "9" * 30, "..%2f1"])
def test_batches_that_are_not_there_are_refused(local, project_file, batch):
    for action in ("answer", "skip", "undo"):
        body = {"unit": 0, "question": "0", "value": 1, "seconds": 1, "request": "abcdefgh"}
        assert local.post(f"/api/batches/{batch}/{action}", body).status_code in (404, 422)
    assert local.get(f"/judge/{batch}").status_code in (404, 422)
    assert events(project_file) == ()


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(sorted(BATCHES.values())), st.sampled_from(["answer", "skip", "undo"]), BODIES)
def test_whatever_is_sent_is_stored_rightly_or_refused(local, project_file, batch, action, body):
    local.http.app.state.site.known._left.clear()  # the rate is not what is tested here
    before, state = events(project_file), local.state(batch)
    response = local.post(f"/api/batches/{batch}/{action}", body)
    after = events(project_file)
    if response.status_code == 200:
        assert action == "undo" or before + after[-1:] == after or before == after
        if len(after) > len(before) and action != "undo":
            assert (after[-1].unit, after[-1].question) == (state["unit"], state["question"])
            assert after[-1].value == (body["value"] if action == "answer" else None)
    else:
        assert 400 <= response.status_code < 500
        assert response.json()["error"]
        assert after == before


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.binary(max_size=200), st.sampled_from(["application/json", "text/plain", "multipart/form-data", ""])
)
def test_bytes_that_are_no_json_are_refused(local, project_file, content, kind):
    local.http.app.state.site.known._left.clear()
    headers = {"x-csrf-token": local.csrf, "content-type": kind}
    response = local.http.post("/api/batches/1/undo", content=content, headers=headers)
    assert 400 <= response.status_code < 500
    assert events(project_file) == ()
