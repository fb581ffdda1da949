"""What was judged, as files: what the library writes, for the owner alone."""

import pytest

from cleanrank.labeling.export import export_judgements
from cleanrank.labeling.store import open_project
from cleanrank.web.app import create_app
from cleanrank.web.downloads import FILES

from .conftest import BATCHES, Client


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_what_the_library_writes(local, project_file, tmp_path, name):
    local.answer(BATCHES["grade"], 2)
    local.answer(BATCHES["pairs"], 1)
    response = local.get(f"/export/{name}")
    with open_project(project_file) as project:
        written = export_judgements(project, tmp_path / name, form=FILES[name][0]).path.read_bytes()
    assert response.content == written
    assert response.headers["content-disposition"] == f'attachment; filename="{name}"'
    local.answer(BATCHES["grade"], 0)
    local.answer(BATCHES["pairs"], 2)
    assert local.get(f"/export/{name}").content != written  # later answers are in it


@pytest.mark.parametrize("name", ["labels.csv", "labels.qrels"])
def test_without_answers_a_page_says_why_there_is_no_file(local, name):
    response = local.get(f"/export/{name}")
    assert response.status_code == 409
    assert "Judge some documents first." in response.text


@pytest.mark.parametrize("name", ["fruit.sqlite", "..%2ffruit.sqlite", "%2e%2e", "labels.exe", "x" * 300])
def test_no_other_file_is_given_out(local, name):
    assert local.get(f"/export/{name}").status_code == 404


def test_files_are_for_the_owner(project_file):
    with open_project(project_file) as project:
        tokens = {name: project.invite(name) for name in ("ann", "bob")}
    app = create_app(project_file, tokens=True, owner="ann")
    assert Client(app, host="judge.example", token=tokens["bob"]).get("/export/labels.csv").status_code == 403
    assert Client(app, host="judge.example").get("/export/labels.csv").status_code == 401
