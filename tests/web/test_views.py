"""Pages of judging, without and with a browser."""

import re
from html.parser import HTMLParser
from uuid import uuid4

import pytest

from cleanrank.labeling.records import Document, Scale
from cleanrank.labeling.store import create_project, open_project
from cleanrank.web.app import create_app

from .conftest import BATCHES, HOSTILE, SCALE, Client


class Markup(HTMLParser):
    """The elements of a page with their attributes, and its text."""

    def __init__(self, page):
        super().__init__()
        self.elements, self.text = [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.text += data


def test_the_start_lists_the_batches_and_where_one_stands(local):
    local.answer(BATCHES["grade"], 1)
    page = Markup(local.get("/").text)
    links = [attributes["href"] for tag, attributes in page.elements if tag == "a"]
    assert [f"/{'review' if kind == 'review' else 'judge'}/{number}" for kind, number in BATCHES.items()] == [
        link for link in links if re.search(r"\d", link)
    ]
    assert "1 answer, about 11 left" in page.text
    assert "Fruit" in page.text
    assert "2. Batch pairs" in page.text
    assert "New labels for the documents; each by 5 people." in page.text


def test_a_grade_is_asked_with_the_descriptions_of_the_scale(local):
    page = Markup(local.get("/judge/1").text)
    buttons = [attributes for tag, attributes in page.elements if tag == "button"]
    keys = [each.get("data-key") for each in buttons]
    assert keys == ["0", "1", "2", "s", "u"]
    for description in (*SCALE.descriptions, "how do apples ripen", "Title 0", "Text of document 0."):
        assert description in page.text


def test_a_pair_is_asked_side_by_side(local):
    page = Markup(local.get(f"/judge/{BATCHES['pairs']}").text)
    buttons = [attributes for tag, attributes in page.elements if tag == "button"]
    assert [each.get("data-key") for each in buttons] == ["1", "0", "2", "s", "u"]
    first, second = local.state(BATCHES["pairs"])["question"].split(",")
    assert page.text.index(f"Document d{first}") < page.text.index(f"Document d{second}")


def test_neither_of_two_may_be_relevant_where_that_is_an_answer(project_file):
    with open_project(project_file) as project:
        settings = {"k": 3, "neither": True}
        batch = project.add_batch([tuple(range(6))], name="Best", kind="top-k", settings=settings)
    client = Client(create_app(project_file, tokens=False, owner="ann"))
    with client.http:
        page = Markup(client.get(f"/judge/{batch.id}").text)
        buttons = [attributes for tag, attributes in page.elements if tag == "button"]
        assert [each.get("data-key") for each in buttons] == ["1", "0", "2", "3", "s", "u"]
        while not client.state(batch.id)["done"]:
            assert client.answer(batch.id, 3).status_code == 200
        assert client.answer(BATCHES["pairs"], 3).status_code == 409
    with open_project(project_file) as project:
        said = [event.value for event in project.events(batch.id)]
    assert said == [3, 3, 3]  # nobody is asked twice about a document


@pytest.mark.parametrize("kind", ["grade", "pairs", "top-k"])
def test_texts_that_want_to_be_run_are_only_shown(local, kind):
    page = local.get(f"/judge/{BATCHES[kind]}").text
    while HOSTILE not in (shown := Markup(page)).text:
        local.answer(BATCHES[kind], 1)
        page = local.get(f"/judge/{BATCHES[kind]}").text
    scripts = [attributes for tag, attributes in shown.elements if tag == "script"]
    assert [set(each) for each in scripts] == [{"src", "defer"}]
    assert not any(tag == "img" or any(name.startswith("on") for name in attributes)
                   for tag, attributes in shown.elements)  # fmt: skip
    assert not any("javascript:" in (attributes.get("href") or "") for _, attributes in shown.elements)
    assert not any("style" in attributes or tag == "style" for tag, attributes in shown.elements)


def test_documents_without_texts_show_their_features(tmp_path):
    documents = [Document(0, "q", "d0", features=[0.25, 7.0])]
    path = tmp_path / "features.sqlite"
    with create_project(
        path, documents, {}, name="p", scale=Scale(("no", "yes")), feature_names=("bm25", "<b>")
    ) as project:
        project.add_batch([[0]], name="all", kind="grade", settings={"n_grades": 2})
    page = Client(create_app(path, tokens=False, owner="ann")).get("/judge/1").text
    assert re.search(r"<dt>bm25</dt>\s*<dd>0.25</dd>", page)
    assert "&lt;b&gt;" in page
    assert "<b>" not in page


def test_features_of_a_pair_stand_side_by_side_those_that_differ_first(tmp_path):
    documents = [Document(0, "q", "d0", features=[0.25, 7.0]), Document(1, "q", "d1", features=[0.5, 7.0])]
    path = tmp_path / "features.sqlite"
    names = ("bm25", "<b>")
    with create_project(path, documents, {}, name="p", scale=SCALE, feature_names=names) as project:
        project.add_batch([[0, 1]], name="all", kind="pairs")
    client = Client(create_app(path, tokens=False, owner="ann"))
    page = client.get("/judge/1").text
    values = ("0.25", "0.5") if client.state(1)["question"] == "0,1" else ("0.5", "0.25")
    cells = "".join(rf'<td class="num">{value}</td>' for value in values)
    assert "1 feature in which they differ" in page
    assert f'<th scope="row">bm25</th>{cells}' in page
    assert page.index("1 feature in which they are equal") < page.index("<dt>&lt;b&gt;</dt><dd>7</dd>")
    assert "<b>" not in page


def test_after_the_last_question_a_page_says_so_and_offers_undo(local):
    batch = BATCHES["grade"]
    while not local.state(batch)["done"]:
        local.answer(batch, 0)
    page = Markup(local.get(f"/judge/{batch}").text)
    assert "All done" in page.text
    buttons = [attributes["data-action"] for tag, attributes in page.elements if tag == "button"]
    assert buttons == ["undo"]
    assert Markup(local.get("/").text).text.count("done") == 1
    assert local.post(f"/api/batches/{batch}/undo", {"request": uuid4().hex}).status_code == 200
    assert "All done" not in local.get(f"/judge/{batch}").text
    assert "done" not in Markup(local.get("/").text).text


def test_keys_answer_skip_and_undo_in_a_browser(live, open_page, project_file):
    server = live()
    page = open_page(f"{server.url}/judge/{BATCHES['grade']}")
    said = page.locator(".progress")
    for key, count in (("2", 1), ("s", 2), ("0", 3), ("U", 2), ("1", 3)):
        page.keyboard.press(key)
        said.get_by_text(f"{count} answer").wait_for()
    with open_project(project_file) as project:
        events = project.events()
    assert [(e.kind, e.question, e.value) for e in events] == [
        ("answer", "0", 2),
        ("skip", "1", None),
        ("answer", "2", 0),
        ("undo", "2", None),
        ("answer", "2", 1),
    ]
    assert all(0 < event.seconds < 60 for event in events if event.kind != "undo")
    assert page.title() == "Batch grade · Fruit"  # and not what a script in a text wanted
