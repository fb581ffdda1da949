"""The app as a whole: what is not there, what must not be reached, and what fails inside."""

import logging

import pytest

from cleanrank.errors import BadFileError, MissingDataError
from cleanrank.labeling.session import Session
from cleanrank.web.app import create_app


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/..\\app.py",
        "/static/%00",
        "/static/templates/base.html",
        "/docs",
        "/openapi.json",
        "/fruit.sqlite",
        "/judge/../fruit.sqlite",
    ],
)
def test_nothing_but_the_app_s_own_files_is_served(local, path):
    response = local.get(path)
    assert response.status_code in (404, 422)
    assert "create_app" not in response.text
    assert "root:" not in response.text


@pytest.mark.parametrize("name", ["judge.js", "app.css", "report.css", "icon.svg"])
def test_static_files_are_there(local, name):
    assert local.get(f"/static/{name}").status_code == 200


def test_a_missing_page_says_so(local):
    response = local.get("/nothing")
    assert response.status_code == 404
    assert "There is no such page" in response.text


def test_a_failure_inside_is_logged_and_shows_nothing_of_the_inside(local, monkeypatch, caplog):
    def fail(self):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(Session, "asked", fail)
    with caplog.at_level(logging.ERROR, "cleanrank.web"):
        response = local.get("/judge/1")
    assert response.status_code == 500
    assert "secret" not in response.text
    assert "default-src" in response.headers["content-security-policy"]
    assert "secret detail" in caplog.text


def test_a_file_that_cannot_be_used_is_not_the_client_s_fault(local, monkeypatch, caplog):
    def fail(self):
        raise BadFileError("project must be usable; got disk full in '/secret/place'.", "/secret/place")

    monkeypatch.setattr(Session, "asked", fail)
    response = local.get("/api/batches/1/question")
    assert response.status_code == 503
    assert "/secret" not in response.text
    assert "disk full" in caplog.text


def test_a_project_that_is_not_there_is_no_app(tmp_path):
    with pytest.raises(MissingDataError, match="there is no file"):
        create_app(tmp_path / "none.sqlite", tokens=False)
