"""Pages of reports: for the owner alone, made beside the answering, kept until something has changed."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from cleanrank.errors import BadFileError, InvalidInputError
from cleanrank.labeling.store import open_project
from cleanrank.report.pages import Page
from cleanrank.web import report_pages
from cleanrank.web.app import create_app
from cleanrank.web.rendering import NAVIGATION

from .conftest import Client, make_judged, make_runs

PATHS = [path for path, _ in NAVIGATION[2:]] + ["/runs/demo/two"]
EMPTY = Page("sections.html", "Empty", {"lede": "", "figures": (), "named": []})


@pytest.fixture
def owner(project_file, tmp_path):
    app = create_app(project_file, tokens=False, owner="ann", runs=make_runs(tmp_path / "runs.sqlite"))
    client = Client(app)
    with client.http:
        yield client


@pytest.mark.parametrize("path", PATHS)
def test_every_report_is_shown_under_the_policy_even_without_answers(owner, path):
    page = owner.get(path)
    assert page.status_code == 200
    assert " style=" not in page.text
    assert "<style" not in page.text
    assert "<script" not in page.text
    assert f'href="{path}" aria-current="page"' in page.text or path.startswith("/runs/")


@pytest.mark.parametrize("path", PATHS)
def test_reports_are_for_the_owner(project_file, path):
    with open_project(project_file) as project:
        tokens = {name: project.invite(name) for name in ("ann", "bob")}
    app = create_app(project_file, tokens=True, owner="ann")
    bob = Client(app, host="judge.example", token=tokens["bob"])
    assert bob.get(path).status_code == 403
    assert Client(app, host="judge.example").get(path).status_code == 401
    assert path not in bob.page.text


def test_reports_of_a_judged_project_are_shown(tmp_path):
    client = Client(create_app(make_judged(tmp_path / "p.sqlite"), tokens=False, owner="ann"))
    for path, word in (("/annotators", "cy"), ("/data-set", "bm25"), ("/judge-report", "given labels")):
        page = client.get(path)
        assert page.status_code == 200
        assert word in page.text or path == "/data-set"
        assert ("<svg" in page.text) == (path != "/annotators")
        assert " style=" not in page.text


def test_a_report_is_made_again_only_when_something_has_changed(owner, monkeypatch):
    made = []
    for name in ("annotators_of", "data_set_of"):
        monkeypatch.setattr(report_pages, name, lambda path, name=name: made.append(name) or EMPTY)
    for _ in range(2):
        for path in ("/annotators", "/data-set"):
            assert owner.get(path).status_code == 200
    assert made == ["annotators_of", "data_set_of"]
    owner.answer(1, 2)
    for path in ("/annotators", "/data-set"):
        owner.get(path)
    assert made == ["annotators_of", "data_set_of", "annotators_of"]  # answers do not change the data


def test_answers_do_not_wait_for_a_report(owner, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()

    def slow(path):
        begun.set()
        assert go_on.wait(60)
        return EMPTY

    monkeypatch.setattr(report_pages, "annotators_of", slow)
    shown = []
    asking = threading.Thread(target=lambda: shown.append(owner.get("/annotators").status_code))
    asking.start()
    assert begun.wait(60)
    assert owner.answer(1, 2).status_code == 200
    assert shown == []
    go_on.set()
    asking.join()
    assert shown == [200]


def test_who_asks_while_a_page_is_made_waits_for_the_same_one(owner, monkeypatch):
    begun, go_on, made = threading.Event(), threading.Event(), []

    def slow(path):
        made.append(path)
        begun.set()
        assert go_on.wait(60)
        return EMPTY

    monkeypatch.setattr(report_pages, "annotators_of", slow)
    with ThreadPoolExecutor() as pool:
        shown = [pool.submit(owner.get, "/annotators")]
        assert begun.wait(60)
        owner.answer(1, 2)
        shown.append(pool.submit(owner.get, "/annotators"))
        go_on.set()
        assert [each.result().status_code for each in shown] == [200, 200]
    assert 1 <= len(made) <= 2  # the second request may have come after the first page
    owner.get("/annotators")
    owner.get("/annotators")
    assert len(made) == 2  # the answer is newer than the first page


def test_what_failed_is_tried_again(owner, monkeypatch):
    def fail(path):
        raise BadFileError("project must be usable; got disk full in '/secret'.", "/secret")

    monkeypatch.setattr(report_pages, "annotators_of", fail)
    assert owner.get("/annotators").status_code == 503
    monkeypatch.setattr(report_pages, "annotators_of", lambda path: EMPTY)
    assert owner.get("/annotators").status_code == 200


def test_why_there_is_no_report_is_said_on_its_page(owner, monkeypatch):
    def fail(path):
        raise InvalidInputError("judgements must <be> there; got none.")

    monkeypatch.setattr(report_pages, "judges_of", fail)
    page = owner.get("/judge-report")
    assert page.status_code == 200
    assert "judgements must &lt;be&gt; there; got none." in page.text


@pytest.mark.parametrize("recipe", ["nothing", "../app.py", "%2e%2e%2fapp.py", "x" * 300, "<script>"])
def test_recipes_that_are_not_there_are_not_found(owner, recipe):
    page = owner.get(f"/runs/{recipe}")
    assert page.status_code in (404, 422)
    assert "<script>" not in page.text
    assert "create_app" not in page.text


def test_a_file_that_holds_no_runs_is_refused_at_the_start(project_file):
    with pytest.raises(BadFileError, match="a file of runs"):
        create_app(project_file, tokens=False, runs=project_file)
