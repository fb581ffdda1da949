"""``cleanrank serve`` in a process of its own."""

import re
import signal
from functools import partial

import httpx2 as httpx
import pytest

from cleanrank.labeling.store import open_project
from tests.web.conftest import Live, make_project

PATIENCE = 60.0  # seconds; the first page of a process imports what it needs
get = partial(httpx.get, timeout=PATIENCE)


@pytest.fixture
def project(tmp_path):
    return make_project(tmp_path / "fruit.sqlite")


@pytest.fixture
def start(project):
    servers = []

    def run(*options):
        servers.append(Live(project, *options))
        return servers[-1]

    yield run
    for each in servers:
        if each.process.poll() is None:
            each.kill()


def test_a_project_is_served_on_this_machine_without_tokens(start):
    server = start()
    assert server.process.stdout.readline().strip() == f"{server.url}/"
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+", server.url)
    page = get(server.url)
    assert page.status_code == 200
    assert "ann" in page.text
    server.process.send_signal(signal.SIGINT)
    out, err = server.process.communicate(timeout=30)
    assert (out, err, server.process.returncode) == ("", "", 0)


def test_those_who_are_invited_get_links_that_sign_in(start, project, cli):
    server = start("--invite", "bob")
    links = dict(server.process.stdout.readline().strip().split("\t") for _ in range(2))
    assert links.keys() == {"bob", "ann"}
    assert get(server.url).status_code == 401
    with httpx.Client(timeout=PATIENCE) as browser:
        assert "Welcome, bob" in browser.get(links["bob"]).text
        assert browser.get(f"{server.url}/judge/1").status_code == 200
        # Another invitation while the server runs, and bob's is taken back.
        port = server.url.rpartition(":")[2]
        done = cli("serve", project, "--port", port, "--invite", "cy", "--revoke", "bob")
        assert done.code == 0, done.err
        assert "A server runs there already" in done.err
        assert browser.get(f"{server.url}/judge/1").status_code == 401
    name, link = done.out.strip().split("\t")
    assert name == "cy"
    assert "Welcome, cy" in get(link).text
    token = link.partition("token=")[2]
    assert token.encode() not in project.read_bytes()  # only its hash is kept
    with open_project(project) as opened:
        assert opened.annotator_of(token) == "cy"


def test_with_a_host_tokens_are_demanded(start):
    server = start("--host", "127.0.0.1")
    name, link = server.process.stdout.readline().strip().split("\t")
    assert name == "ann"
    assert get(server.url).status_code == 401
    assert "Welcome, ann" in get(link).text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--host", "no such host", "--port", "0"), "host must be a name or address of this machine"),
        (("--port", "0", "--revoke", "eve"), "unknown annotator 'eve'"),
        (("--port", "0", "--invite", " "), "annotator must be a name"),
    ],
)
def test_what_cannot_be_served_is_refused(cli, project, options, words):
    done = cli("serve", project, "--no-open", *options)
    assert done.code == 2
    assert words in done.err


def test_a_file_that_is_no_project_is_refused(cli, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("no project")
    done = cli("serve", file, "--no-open", "--port", "0")
    assert done.code == 2
    assert "project" in done.err
