"""The page of a review: what it shows, what it hides, what it takes."""

import re
from html import unescape
from itertools import pairwise
from uuid import uuid4

import numpy as np
import pytest

from cleanrank.labeling.records import Document, Scale
from cleanrank.labeling.store import create_project, open_project
from cleanrank.web.app import create_app
from cleanrank.web.reviews import spread

from .conftest import HOSTILE, Client
from .test_views import Markup

SCALE = Scale(("Bad", "Fair", f"Good {HOSTILE}"))
OPEN, BLIND = 1, 2
ABOUT = {
    "doubt": 0.83,
    "suggested_label": 0,
    "why": f"graded 2, but ranked 4th of 4 {HOSTILE}",
    "probabilities": [0.7, 0.21, 0.09],
    "scores": {"0": 1.51, "1": 0.26, "2": 1.07, "3": 0.54},
}


def review_project(path, *, given=2, about=ABOUT):
    """Four documents of a query; batches 1 (open) and 2 (blind) ask about documents 1 and 3."""
    values = np.array([[1.0, 5.0], [9.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    documents = [
        Document(row, "q", f"d{row}", row, label, {"title": f"Title {row} {HOSTILE}"}, values[row])
        for row, label in enumerate([0, given, 1, 1])
    ]
    names = ("bm25", f"<b>{HOSTILE}")
    with create_project(path, documents, {}, name="p", scale=SCALE, feature_names=names) as project:
        for blind in (False, True):
            units = [([1], about), ([3], {"doubt": 0.5})]
            options = {"kind": "review", "purpose": "repair", "annotators_per_unit": 3}
            project.add_batch(units, name="Suspects", blind=blind, **options)
    return path


@pytest.fixture
def path(tmp_path):
    return review_project(tmp_path / "p.sqlite")


@pytest.fixture
def ann(path):
    client = Client(create_app(path, tokens=False, owner="ann"))
    with client.http:
        yield client


@pytest.fixture
def people(path):
    """Clients of ann, who owns the project, and of bob and carl."""
    with open_project(path) as project:
        tokens = {name: project.invite(name) for name in ("ann", "bob", "carl")}
    app = create_app(path, tokens=True, owner="ann")
    return {name: Client(app, token=token) for name, token in tokens.items()}


def events(path):
    with open_project(path) as project:
        return [(e.annotator, e.unit, e.kind, e.value) for e in project.events()]


def words_of(page):
    """The text of a page, its parts separated by blanks."""
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", page.text)).split())


def test_an_issue_is_shown_with_reasons_ranking_and_features(ann):
    page = ann.get(f"/review/{OPEN}")
    text = words_of(page).replace(f" {HOSTILE}", "")
    for said in (
        "Query q",
        "Given grade 2 Good",
        "Suggested 0 Bad",
        "Doubt 0.83",
        "0 0.70 1 0.21 2 0.09",
        "Graded 2, but ranked 4th of 4",
        "bm25: 9, above 100% of the query's other documents",
    ):
        assert said in text
    ranking = text[text.index("Rank Document Expected Given") : text.index(" Its features")]
    shown = "1 Title 0 1.51 0 2 Title 2 1.07 1 3 Title 3 0.54 1 4 Title 1 0.26 2"
    assert ranking == f"Rank Document Expected Given {shown}"
    buttons = [attributes for tag, attributes in Markup(page.text).elements if tag == "button"]
    assert [(each["data-key"], each.get("data-value")) for each in buttons] == [
        *((f"{grade}", f"{grade}") for grade in range(3)),
        *(("k", "2"), ("d", '"drop"'), ("?", '"unsure"'), ("s", None), ("u", None)),
    ]


def test_documents_without_a_title_stand_in_the_ranking_with_the_start_of_their_text(tmp_path):
    documents = [Document(row, "q", f"d{row}", row, row, {"text": f"Text {row} " * 20}) for row in range(2)]
    about = {"doubt": 0.9, "scores": {"0": 1.5, "1": 0.5}}
    file = tmp_path / "texts.sqlite"
    with create_project(file, documents, {}, name="p", scale=SCALE) as project:
        project.add_batch([([1], about)], name="Suspects", kind="review", purpose="repair", blind=False)
    client = Client(create_app(file, tokens=False, owner="ann"))
    with client.http:
        text = words_of(client.get("/review/1"))
    ranking = text[text.index("Rank Document Expected Given") :]
    assert re.search(r"1 (Text 0 )+Text 0\.\.\. 1\.50 0 2 (Text 1 )+Text 1\.\.\. 0\.50 1", ranking)
    assert "d0" not in ranking


def test_texts_that_want_to_be_run_are_only_shown(ann):
    page = Markup(ann.get(f"/review/{OPEN}").text)
    assert HOSTILE in page.text
    scripts = [attributes for tag, attributes in page.elements if tag == "script"]
    assert [set(each) for each in scripts] == [{"src", "defer"}]
    for tag, attributes in page.elements:
        assert tag not in ("img", "style", "b")
        assert not any(name.startswith("on") or name == "style" for name in attributes)


@pytest.mark.parametrize("given", [0, 1])
def test_in_blind_mode_page_and_api_are_the_same_bytes_whatever_the_grade(tmp_path, given):
    """All that the given grade has entered differs between the two projects, others' answers too."""
    other = {
        "doubt": 0.11,
        "suggested_label": 1,
        "why": "else",
        "probabilities": [0.3, 0.3, 0.4],
        "scores": {"1": 2},
    }
    sent = []
    for name, label, about, said in (("a", 2, ABOUT, 2), ("b", given, other, "drop")):
        file = review_project(tmp_path / f"{name}.sqlite", given=label, about=about)
        with open_project(file) as project:
            tokens = [project.invite(who) for who in ("ann", "bob")]
        app = create_app(file, tokens=True, owner="ann")
        owner, bob = (Client(app, token=token) for token in tokens)
        bob.answer(BLIND, said)
        pages = [client.get(f"/review/{BLIND}") for client in (owner, bob)]
        assert owner.answer(BLIND, 1).status_code == 200
        pages += [owner.get(f"/review/{BLIND}"), owner.get(f"/api/batches/{BLIND}/question")]
        sent.append([re.sub(rb'name="csrf" (content|value)="\w+"', b"", page.content) for page in pages])
        assert all(page.status_code == 200 for page in pages)
        # bob's own last answer is his to see
        sent[-1][1] = sent[-1][1].split(b"Your last answer")[0]
    assert sent[0] == sent[1]
    assert b"Keep" not in sent[0][0]
    assert b"bm25: 9" in sent[0][0]


def test_second_opinions_are_for_the_owner_or_after_answering(people):
    assert people["bob"].answer(OPEN, 0).status_code == 200
    assert "bob: 0 (Bad)" in Markup(people["ann"].get(f"/review/{OPEN}").text).text
    assert "bob" not in people["carl"].get(f"/review/{OPEN}").text
    assert people["carl"].answer(OPEN, 2).status_code == 200
    after = Markup(people["carl"].get(f"/review/{OPEN}").text).text
    assert "bob: 0 (Bad)" in after
    assert f"keep 2 ({SCALE.descriptions[2]})" in after
    assert "carl" not in Markup(people["bob"].get(f"/review/{OPEN}").text).text.split("Your last answer")[
        0
    ].replace("carl\n", "")
    for client in people.values():
        client.answer(BLIND, 1)
    for name, client in people.items():
        page = client.get(f"/review/{BLIND}").text
        assert not any(other in page for other in people if other != name)


@pytest.mark.parametrize(
    "changes",
    [{"value": 3}, {"value": -1}, {"value": "keep"}, {"value": "1"}, {"value": True}, {"value": None},
     {"unit": 1}, {"unit": 7}, {"question": "1"}, {"question": "0,0"}],
)  # fmt: skip
def test_wrong_answers_are_refused_and_nothing_is_stored(ann, path, changes):
    said = changes.pop("value", 1)
    for batch in (OPEN, BLIND):
        assert ann.answer(batch, said, **changes).status_code in (409, 422)
    assert events(path) == []


def test_an_unsure_answer_and_a_kept_grade_are_stored_and_undone(ann, path):
    for said in (2, "unsure"):
        assert ann.answer(OPEN, said).status_code == 200
    page = Markup(ann.get(f"/review/{OPEN}").text).text
    assert "All done" in page
    assert "unsure" in page
    assert ann.post(f"/api/batches/{OPEN}/undo", {"request": uuid4().hex}).status_code == 200
    assert "Your last answer, on “Title 1 " in Markup(ann.get(f"/review/{OPEN}").text).text
    assert [(unit, kind, value) for _, unit, kind, value in events(path)] == [
        (0, "answer", 2),
        (1, "answer", "unsure"),
        (1, "undo", None),
    ]


def test_each_batch_has_one_page(ann):
    answer = ann.get(f"/judge/{OPEN}", follow_redirects=False)
    assert (answer.status_code, answer.headers["location"]) == (303, f"/review/{OPEN}")
    assert ann.get("/review/77").status_code == 404


def test_after_the_last_question_the_next_work_is_offered(ann):
    while not ann.state(OPEN)["done"]:
        ann.answer(OPEN, "drop")
    links = [a["href"] for tag, a in Markup(ann.get(f"/review/{OPEN}").text).elements if tag == "a"]
    assert links[-3:] == [f"/review/{BLIND}", "/progress", "/"]
    while not ann.state(BLIND)["done"]:
        ann.answer(BLIND, "drop")
    assert "nothing else for you to judge" in ann.get(f"/review/{OPEN}").text


def test_names_of_grades_never_overlap_nor_leave_the_picture():
    rng = np.random.default_rng(0)
    for _ in range(200):
        places = dict(enumerate(rng.random(rng.integers(1, 9)) * 240))
        moved = list(spread(places, 240, 11).values())
        assert all(b - a >= 11 - 1e-9 for a, b in pairwise(moved))
        assert moved[0] >= -1e-9
        assert moved[-1] <= 240
    assert spread({0: 10.0, 1: 200.0}, 240, 11) == {0: 10.0, 1: 200.0}


def test_keys_review_in_a_browser(live, open_page, project_file):
    server = live()
    page = open_page(f"{server.url}/review/4")
    count = page.locator(".progress")
    for key, expected in (("K", 1), ("?", 2), ("s", 3), ("U", 2), ("d", 3), ("2", 4)):
        page.keyboard.press(key)
        if expected < 4:
            count.get_by_text(f"{expected} answer").wait_for()
    page.get_by_text("All done").wait_for()
    # documents 0 to 3 have the given grades 0, 1, 2, 0
    assert [(unit, kind, value) for _, unit, kind, value in events(project_file)] == [
        (0, "answer", 0),
        (1, "answer", "unsure"),
        (2, "skip", None),
        (2, "undo", None),
        (2, "answer", "drop"),
        (3, "answer", 2),
    ]
    narrow = open_page(f"{server.url}/review/4", width=400)
    assert narrow.evaluate("document.documentElement.scrollWidth") == 400
