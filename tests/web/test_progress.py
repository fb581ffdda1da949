"""The page of progress: what answers have changed, and the next rows; nobody waits for either."""

import re
import threading

import pytest

import cleanrank as cr
from cleanrank.labeling.loop import project_progress, share
from cleanrank.labeling.projects import add_evaluation_batch, add_gold_batch, add_label_batch, make_project
from cleanrank.labeling.store import open_project
from cleanrank.web import progress
from cleanrank.web.app import create_app

from .conftest import Client

TRUTH = cr.make_ranking(30, 3, docs_per_query=10, seed=0)
GIVEN = cr.corrupt(TRUTH, rate=0.2, seed=1).data
NEXT = {"purpose": "gold", "n": "20", "annotators": "2"}


def answer_all(path, batch):
    """Ann gives the true grades of all units of a batch."""
    with open_project(path) as project:
        for unit in project.units(batch):
            said = {
                "batch": batch,
                "unit": unit.position,
                "kind": "answer",
                "request": f"{batch}-{unit}"[:99],
            }
            (row,) = unit.rows
            project.append(annotator="ann", question="0", value=int(TRUTH.y[row]), seconds=1.0, **said)


@pytest.fixture
def path(tmp_path):
    """A project with a random sample of 60 labels that nobody has answered."""
    with make_project(tmp_path / "p.sqlite", GIVEN, name="Demo") as project:
        add_gold_batch(project, 60)
    return tmp_path / "p.sqlite"


@pytest.fixture
def owner(path):
    client = Client(create_app(path, tokens=False, owner="ann"))
    with client.http:
        yield client


def settle(client):
    """Waits until nothing is under way."""
    background = client.http.app.state.site.background
    for name in (progress.FIGURES, progress.BATCH):
        if background.is_under_way(name):
            background.start(name, None, None).future.exception()


class Page:
    """What the page of progress shows once nothing is under way."""

    def __init__(self, client):
        client.get("/progress")
        settle(client)
        self.text = client.get("/progress?count=false").text
        assert "data-busy" not in self.text

    def checked(self):
        """The purpose that is chosen already, and how many rows."""
        purpose = re.search(r'value="(\w+)" required[^>]* checked', self.text)
        return purpose and purpose[1], int(re.search(r'name="n"[^>]* value="(\d+)"', self.text)[1])


def post(client, **changes):
    form = {"csrf": client.csrf, **NEXT, **changes}
    return client.http.post("/progress", data=form, follow_redirects=False)


def batches(path):
    with open_project(path) as project:
        return project.batches()


def test_before_any_answer_a_random_sample_is_proposed(owner):
    page = Page(owner)
    assert "No document was graded yet" in page.text
    assert page.checked() == ("gold", 100)
    assert " style=" not in page.text


def test_after_a_batch_its_figures_are_shown_with_intervals_and_what_to_do_next(owner, path):
    answer_all(path, 1)
    with open_project(path) as project:
        found = project_progress(project)
    page = Page(owner)
    labels = found.last.labels
    for each in (labels.before, labels.after, labels.won_back, labels.pairs_before):
        assert share(each) in page.text
    assert labels.before.low < (GIVEN.y != TRUTH.y).mean() < labels.before.high
    for sentence in found.verdicts():
        assert sentence in page.text
    first = found.proposals()[0]
    assert page.checked() == (first.purpose, first.n)


def test_a_sample_tells_though_a_batch_of_everything_was_begun(tmp_path):
    with make_project(tmp_path / "p.sqlite", GIVEN, name="Demo") as project:
        first = add_label_batch(project)
        project.append(
            annotator="ann", batch=first.id, unit=0, kind="answer", question="0", value=1, request="a"
        )
        sample = add_gold_batch(project, 60)
    answer_all(tmp_path / "p.sqlite", sample.id)
    with open_project(tmp_path / "p.sqlite") as project:
        labels = project_progress(project).last.labels
    assert labels.before is not None
    assert labels.before.low < (GIVEN.y != TRUTH.y).mean() < labels.before.high


def test_once_all_labels_are_judged_nothing_is_proposed(tmp_path):
    with make_project(tmp_path / "p.sqlite", GIVEN, name="Demo") as project:
        add_gold_batch(project, GIVEN.n_docs)
    answer_all(tmp_path / "p.sqlite", 1)
    with open_project(tmp_path / "p.sqlite") as project:
        found = project_progress(project)
    assert found.last.labels.judged == GIVEN.n_docs
    assert found.proposals() == []


def test_the_page_is_there_and_answers_are_taken_while_figures_are_counted(owner, path, monkeypatch):
    go_on, counted = threading.Event(), []

    def slow(project):
        counted.append(project.version)
        assert go_on.wait(60)
        return project_progress(project)

    monkeypatch.setattr(progress, "project_progress", slow)
    for _ in range(2):
        assert "The answers are being counted." in owner.get("/progress").text
    assert owner.answer(1, 1).status_code == 200
    go_on.set()
    page = Page(owner)
    assert "Answers have come since." in page.text
    assert len(counted) == 1
    assert "Answers have come since." not in Page(owner).text
    assert len(counted) == 2


def test_to_look_does_not_start_to_count(owner, monkeypatch):
    monkeypatch.setattr(progress, "project_progress", lambda project: pytest.fail("was counted"))
    assert "data-busy" not in owner.get("/progress?count=false").text


def test_figures_stay_while_newer_ones_are_counted(owner, path, monkeypatch):
    answer_all(path, 1)
    before = Page(owner)
    go_on = threading.Event()
    assert post(owner).status_code == 303
    settle(owner)
    monkeypatch.setattr(progress, "project_progress", lambda project: go_on.wait(60))
    text = owner.get("/progress").text
    go_on.set()
    assert "below is what was known before them" in text
    assert re.findall(r"<td[^>]*>[^<]*%[^<]*</td>", text) == re.findall(
        r"<td[^>]*>[^<]*%[^<]*</td>", before.text
    )


@pytest.mark.parametrize("purpose", ["gold", "evaluation", "repair"])
def test_the_next_rows_are_asked_for(owner, path, purpose):
    with open_project(path) as project:
        scores = TRUTH.y[GIVEN.row_ids] + GIVEN.X[:, 0] / 10
        add_evaluation_batch(project, {"one": scores, "two": GIVEN.X[:, 1]}, 30)
    answered = post(owner, purpose=purpose)
    assert (answered.status_code, answered.headers["location"]) == (303, "/progress")
    page = Page(owner)
    batch = batches(path)[-1]
    assert (batch.id, batch.purpose, batch.annotators_per_unit) == (3, purpose, 2)
    assert f"“{batch.name}” is there." in page.text
    owner.answer(3, 1)
    assert "is there." not in Page(owner).text


def test_an_evaluation_without_systems_is_refused_with_what_to_do(owner, path):
    assert 'value="evaluation" required disabled' in Page(owner).text
    post(owner, purpose="evaluation")
    assert "The batch was not made: an evaluation needs systems to go on with" in Page(owner).text
    assert len(batches(path)) == 1


def test_one_batch_is_made_at_a_time(owner, path, monkeypatch):
    go_on = threading.Event()
    monkeypatch.setattr(progress, "ask_for", lambda project, *_, **__: go_on.wait(60) and project.batch(1))
    assert post(owner).status_code == 303
    assert "The next batch is being made" in owner.get("/progress").text
    assert post(owner).status_code == 409
    go_on.set()
    Page(owner)
    assert post(owner).status_code == 303


def test_a_failure_inside_is_told_without_the_inside(owner, monkeypatch):
    def fail(project):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(progress, "project_progress", fail)
    page = Page(owner)
    assert "The figures could not be computed: The server failed at this" in page.text
    assert "secret" not in page.text


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"csrf": "0" * 64}, 403),
        ({"csrf": ""}, 422),
        ({"purpose": "label"}, 422),
        ({"purpose": "<script>"}, 422),
        ({"n": "0"}, 422),
        ({"n": "1e3"}, 422),
        ({"n": "9" * 30}, 422),
        ({"annotators": "101"}, 422),
        ({"blind": "perhaps"}, 422),
    ],
)
def test_forged_forms_are_refused_and_nothing_is_made(owner, path, changes, status):
    response = post(owner, **changes)
    assert response.status_code == status
    assert "<script>" not in response.text
    Page(owner)
    assert len(batches(path)) == 1


def test_progress_is_for_the_owner(path):
    with open_project(path) as project:
        tokens = {name: project.invite(name) for name in ("ann", "bob")}
    app = create_app(path, tokens=True, owner="ann")
    bob = Client(app, host="judge.example", token=tokens["bob"])
    assert bob.get("/progress").status_code == post(bob).status_code == 403
    assert 'href="/progress"' not in bob.page.text
    stranger = Client(app, host="judge.example")
    stranger.csrf = bob.csrf
    assert stranger.get("/progress").status_code == post(stranger).status_code == 401
    assert len(batches(path)) == 1
