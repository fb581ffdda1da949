"""A person at a browser: Chromium against a server in a process of its own."""

import re

import pandas as pd
import pytest
from axe_playwright_python.sync_playwright import Axe

import cleanrank as cr
from cleanrank.labeling.answers import standing
from cleanrank.labeling.projects import add_gold_batch
from cleanrank.labeling.projects import make_project as make_labels
from cleanrank.labeling.questions import Answer, Question
from cleanrank.labeling.store import open_project
from cleanrank.labeling.tasks import make_task

from .conftest import BATCHES, HOSTILE, N_DOCUMENTS, Live, make_judged, make_runs

NARROW = 375  # pixels of a telephone
# What a question looks like; it changes when the next one is shown.
STATE = """() => {
  const {unit, question} = document.querySelector(".answers").dataset;
  return unit + "/" + question + "/" + document.querySelector(".progress")?.innerText;
}"""
TRUTH = cr.make_ranking(20, 3, docs_per_query=8, seed=0)
PAGES = {
    "/": "Grades left",
    "/judge/5": "How relevant is the document?",
    "/judge/3": "Which document is better?",
    "/judge/1": "All done",
    "/review/4": "Is the grade right?",
    "/progress": "Worth asking for next",
    "/annotators": "Answers so far",
    "/data-set": "How fragile the labels are",
    "/judge-report": "What they are good enough for",
    "/runs": "Recipes that were run",
    "/runs/demo/two": "Against noise",
    "/runs/demo/none": "No cell of this recipe is done yet.",
    "/nothing": "There is no such page.",
}


def press(page, key):
    """Presses a key and waits until the next question is there."""
    before = page.evaluate(STATE)
    page.keyboard.press(key)
    page.wait_for_function(f"before => ({STATE})() !== before", arg=before)


def shown(page):
    """The numbers of the documents on the page."""
    return [int(text) for text in re.findall(r"Document d(\d+)", page.inner_text("main"))]


def better(page):
    """The key of the better document: the one with the larger number."""
    first, second = shown(page)
    return "1" if first > second else "2"


def events(path):
    with open_project(path) as project:
        return project.events()


def problems(page, **options):
    """What axe finds serious or critical, with the places."""
    found = Axe().run(page, options={"resultTypes": ["violations"], **options}).response["violations"]
    grave = [each for each in found if each["impact"] in ("serious", "critical")]
    return [(each["id"], [node["html"][:200] for node in each["nodes"][:3]]) for each in grave]


def check_readable(page):
    """No grave finding by light or in the dark, and no scrolling sideways on a telephone."""
    assert problems(page) == []
    page.emulate_media(color_scheme="dark")
    assert problems(page, runOnly=["color-contrast"]) == []
    size = page.viewport_size
    page.set_viewport_size({"width": NARROW, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= NARROW
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(size)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A server over a project with answers, and some runs."""
    folder = tmp_path_factory.mktemp("site")
    server = Live(make_judged(folder / "judged.sqlite"), "--runs", str(make_runs(folder / "runs.sqlite")))
    yield server
    server.kill()


def test_a_query_is_judged_by_keyboard_though_the_server_is_killed(live, open_page, project_file):
    server = live()
    page = open_page(f"{server.url}/judge/{BATCHES['top-k']}")
    page.get_by_text("how do apples ripen").wait_for()
    for _ in range(3):
        press(page, better(page))
    before = shown(page)
    press(page, better(page))
    press(page, "u")  # a slip, taken back
    assert shown(page) == before
    press(page, "1" if better(page) == "2" else "2")
    press(page, "u")
    server.kill()
    state = page.evaluate(STATE)
    page.keyboard.press(better(page))
    page.get_by_text("Your answer is kept here and sent again").wait_for()
    server.restart()
    page.wait_for_function(f"before => ({STATE})() !== before", arg=state)
    assert page.locator("#status").inner_text() == ""
    while page.evaluate(STATE).startswith("0/"):
        press(page, better(page))
    assert "how do apples ripen" not in page.inner_text("h1")  # the other query
    all_events = events(project_file)
    assert len({event.request for event in all_events}) == len(all_events)
    assert [event.kind for event in all_events].count("undo") == 2
    kept = standing(all_events)
    answers = tuple(Answer(Question.of(event.question), event.value) for event in kept)
    assert len({answer.question for answer in answers}) == len(answers)
    assert make_task("top-k", N_DOCUMENTS, k=3, answers=answers).grades().tolist() == [0, 0, 0, 1, 2, 3]


def test_an_answer_whose_response_is_lost_is_stored_once(live, open_page, project_file):
    server = live()
    page = open_page(f"{server.url}/judge/{BATCHES['grade']}")
    lost = []

    def lose_the_first(route):
        response = route.fetch()  # the server has stored it
        if lost:
            route.fulfill(response=response)
        else:
            lost.append(response.status)
            route.abort()

    page.route("**/answer", lose_the_first)
    press(page, "2")
    press(page, "1")
    assert lost == [200]
    assert [(event.question, event.value) for event in events(project_file)] == [("0", 2), ("1", 1)]


def test_a_page_that_is_no_question_is_said_and_judging_goes_on(live, open_page, project_file):
    server = live()
    address = f"{server.url}/judge/{BATCHES['grade']}"
    page = open_page(address)
    page.route(address, lambda route: route.fulfill(body="<p>A proxy says no.</p>", status=403))
    page.keyboard.press("2")
    page.get_by_text("The next question could not be loaded.").wait_for()
    page.unroute(address)
    page.reload()
    press(page, "1")
    assert [(event.question, event.value) for event in events(project_file)] == [("0", 2), ("1", 1)]


def test_a_connection_that_breaks_within_a_response_holds_nothing_up(live, open_page, project_file):
    page = open_page(f"{live().url}/judge/{BATCHES['grade']}")
    page.evaluate("""() => {
      const text = Response.prototype.text;
      const broken = new Set();  // the first response of each address
      Response.prototype.text = function () {
        if (broken.has(this.url)) return text.call(this);
        broken.add(this.url);
        return Promise.reject(new TypeError("network error"));
      };
    }""")
    press(page, "2")
    press(page, "1")
    assert [(event.question, event.value) for event in events(project_file)] == [("0", 2), ("1", 1)]


def test_two_annotators_judge_at_once_each_with_a_token(live, open_page, project_file):
    server = live("--invite", "bob")
    links = dict(server.process.stdout.readline().strip().split("\t") for _ in range(2))
    pages = {name: open_page(links[name]) for name in ("ann", "bob")}
    for name, page in pages.items():
        page.get_by_role("link", name="Batch grade").click()
        page.get_by_text("How relevant is the document?").wait_for()
        assert name in page.inner_text("nav")
        assert "token" not in page.url
    assert "Annotators" in pages["ann"].inner_text("nav")
    assert "Annotators" not in pages["bob"].inner_text("nav")
    for step in range(N_DOCUMENTS):
        press(pages["ann"], str(step % 3))
        press(pages["bob"], str((step + 1) % 3))
    said = {name: [e.value for e in events(project_file) if e.annotator == name] for name in pages}
    assert said == {"ann": [0, 1, 2, 0, 1, 2], "bob": [1, 2, 0, 1, 2, 0]}
    bob = pages["bob"]
    bob.get_by_role("button", name="Sign out").click()
    bob.get_by_text("Sign in").first.wait_for()
    check_readable(bob)
    bob.get_by_label("Token").fill("wrong")
    bob.keyboard.press("Enter")
    bob.get_by_text("not valid").wait_for()
    bob.get_by_label("Token").fill(links["bob"].partition("token=")[2])
    bob.keyboard.press("Enter")
    bob.get_by_role("link", name="Batch grade").wait_for()


def test_suspects_are_reviewed_by_keyboard(live, open_page, project_file):
    server = live()
    page = open_page(f"{server.url}/review/{BATCHES['review']}")
    for key in ("k", "2", "d", "u", "?"):
        press(page, key)
    kept = standing(events(project_file))
    assert [(event.unit, event.value) for event in kept] == [(0, 0), (1, 2), (2, "unsure")]


def test_a_review_comes_out_as_files_without_what_was_dropped(live, open_page, tmp_path):
    server = live()
    page = open_page(f"{server.url}/review/{BATCHES['review']}")
    for key in ("2", "d", "k", "?"):  # given: 0, 1, 2, 0
        press(page, key)
    page.get_by_text("All done, thank you.").wait_for()
    page.get_by_role("link", name="What the answers have changed").click()
    with page.expect_download() as coming:
        page.get_by_role("link", name="judgements.csv").click()
    judged = pd.read_csv(coming.value.path(), dtype=str).dropna(subset="grade")
    assert dict(zip(judged["doc_id"], judged["grade"], strict=True)) == {"d0": "2", "d2": "2"}
    with page.expect_download() as coming:
        page.get_by_role("link", name="labels.qrels").click()
    coming.value.save_as(tmp_path / "labels.qrels")
    assert [line.split() for line in (tmp_path / "labels.qrels").read_text().splitlines()] == [
        ["q1", "0", "d0", "2"],
        ["q1", "0", "d2", "2"],
    ]


def test_the_owner_sees_what_answers_changed_and_asks_for_the_next_rows(open_page, tmp_path):
    path = tmp_path / "noisy.sqlite"
    given = cr.corrupt(TRUTH, rate=0.2, seed=1).data
    with make_labels(path, given, name="Noisy") as project:
        add_gold_batch(project, 12)
    server = Live(path)
    try:
        page = open_page(f"{server.url}/progress")
        page.get_by_text("No document was graded yet").wait_for()
        page.get_by_role("link", name="Work").click()
        page.get_by_role("link", name="A random sample of 12 labels").click()
        page.locator(".answers").wait_for()
        for _ in range(12):
            document = re.search(r"Document (\S+)", page.inner_text("main"))[1]
            press(page, str(TRUTH.y[int(document)]))
        page.get_by_role("link", name="What the answers have changed").click()
        page.get_by_role("heading", name="Which grades are given to which").wait_for()
        check_readable(page)
        for name in ("The most doubtful labels", "A random sample"):
            wanted = page.get_by_role("radio", name=name)
            wanted.check()
            rows = page.get_by_role("spinbutton", name="How many")
            assert rows.input_value() == wanted.get_attribute("data-rows")
        rows.fill("7")
        page.get_by_role("button", name="Ask for them").click()
        page.get_by_text("“A random sample of 7 labels” is there.").wait_for()
        page.get_by_role("link", name="To the work").click()
        page.get_by_role("link", name="A random sample of 7 labels").wait_for()
    finally:
        server.kill()


def test_all_can_be_reached_by_keyboard_alone(live, open_page, project_file):
    server = live()
    page = open_page(server.url)

    def tab_to(name):
        focused = "document.activeElement.innerText.trim()"
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate(focused).endswith(name):
                outline = "getComputedStyle(document.activeElement).outlineStyle"
                assert page.evaluate(outline) != "none"
                return
        raise AssertionError(f"{name} was not reached")

    tab_to("Batch pairs")
    page.keyboard.press("Enter")
    page.get_by_text("Which document is better?").wait_for()
    tab_to("Second is better")
    press(page, "Enter")
    tab_to("Undo")
    press(page, "Space")
    tab_to("Skip")
    press(page, "Enter")
    assert [event.kind for event in events(project_file)] == ["answer", "undo", "skip"]
    tab_to("Annotators")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Annotators: Fruit").wait_for()


def test_texts_that_want_to_be_run_are_only_read(live, open_page):
    server = live()
    page = open_page(f"{server.url}/judge/{BATCHES['grade']}")
    press(page, "0")
    assert HOSTILE in page.inner_text("main")
    for _ in range(N_DOCUMENTS - 1):
        press(page, "0")
    assert HOSTILE in page.inner_text("h1")
    assert page.title() == "Batch grade · Fruit"


@pytest.mark.parametrize("path", PAGES)
def test_pages_can_be_read_by_everybody(site, open_page, path):
    page = open_page(f"{site.url}{path}")
    page.get_by_text(PAGES[path]).first.wait_for()
    check_readable(page)


def test_what_cannot_be_read_would_be_seen(site, open_page):
    page = open_page(site.url)
    page.evaluate("document.querySelector('h1').className = 'url'")
    page.evaluate("document.querySelector('h1').style.color = '#eee'")
    page.evaluate("document.querySelector('main').append(new Image())")
    assert {name for name, _ in problems(page)} == {"color-contrast", "image-alt"}
