"""Who is let in: tokens, check values, host names, rates; and what every response carries."""

import logging
import pickle
import socket
from urllib.parse import quote, urlsplit

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cleanrank.labeling.store import open_project
from cleanrank.web.app import create_app
from cleanrank.web.security import MOST_BYTES, Rate, Refused, host_name

from .conftest import Client


@pytest.fixture
def invited(project_file):
    """An app that demands tokens, and the tokens of ann (its owner) and bob."""
    with open_project(project_file) as project:
        tokens = {name: project.invite(name) for name in ("ann", "bob")}
    return create_app(project_file, tokens=True, owner="ann"), tokens


def n_events(path):
    with open_project(path) as project:
        return len(project.events())


@given(st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 3)), max_size=60))
def test_in_any_stretch_of_time_a_key_gets_its_burst_and_its_rate(steps):
    rate, moment, served = Rate(per_second=2, burst=3), 0.0, []
    for key, pause in steps:
        moment += pause
        if rate.allows(key, moment):
            served.append((key, moment))
        else:  # refused only if three and what came back since were used up
            recent = [t for k, t in served if k == key]
            assert any(len(recent) - i > 2 + 2 * (moment - t) - 1e-6 for i, t in enumerate(recent))
    for key in "ab":
        times = [t for k, t in served if k == key]
        for i, start in enumerate(times):
            for j in range(i, len(times)):
                assert j - i + 1 <= 3 + 2 * (times[j] - start) + 1e-6


def test_a_refusal_comes_from_another_process_as_it_was_raised():
    refused = pickle.loads(pickle.dumps(Refused(404, "There is no such recipe.")))
    assert (refused.status, refused.reason) == (404, "There is no such recipe.")


def test_the_memory_of_rates_is_bounded(monkeypatch):
    monkeypatch.setattr("cleanrank.web.security.MOST_KEYS", 10)
    rate = Rate(per_second=1, burst=2)
    for moment in range(100):
        assert rate.allows(f"address {moment}", float(moment))
    assert len(rate._left) <= 11


def check_policy(response):
    """Whatever a response is, a browser runs nothing in it that is not the app's own."""
    headers = response.headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"
    assert "server" not in headers


RESPONSES = [
    ("GET", "/", {}, 200),
    ("GET", "/judge/1", {}, 200),
    ("GET", "/review/1", {}, 303),
    ("GET", "/progress", {}, 200),
    ("GET", "/api/batches/1/question", {}, 200),
    ("GET", "/static/judge.js", {}, 200),
    ("HEAD", "/static/report.css", {}, 200),
    ("GET", "/static/nothing.js", {}, 404),
    ("GET", "/nothing", {}, 404),
    ("GET", "/api/batches/99/question", {}, 404),
    ("GET", "/judge/0", {}, 422),
    ("GET", "/", {"host": "evil.example"}, 400),
    ("DELETE", "/judge/1", {}, 411),
    ("DELETE", "/judge/1", {"content-length": "0"}, 405),
    ("OPTIONS", "/api/batches/1/answer", {"content-length": "0"}, 405),
    ("TRACE", "/", {"content-length": "0"}, 405),
    ("POST", "/static/judge.js", {"content-length": "0"}, 405),
    ("POST", "/progress", {"content-length": "0", "sec-fetch-site": "cross-site"}, 403),
    ("POST", "/progress", {"content-length": str(MOST_BYTES + 1)}, 413),
    ("POST", "/progress", {"content-length": "-1"}, 411),
    ("POST", "/progress", {"content-length": "5", "transfer-encoding": "chunked"}, 411),
    ("POST", "/progress", {"content-length": "9" * 5000}, 413),
]


@pytest.mark.parametrize(("method", "path", "headers", "status"), RESPONSES)
def test_every_response_carries_the_policy(local, method, path, headers, status):
    response = local.http.request(method, path, headers=headers, follow_redirects=False)
    assert response.status_code == status
    check_policy(response)


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["", "static/", "judge/", "review/", "runs/", "export/", "api/batches/"]),
    st.text(max_size=30)
    | st.lists(st.sampled_from(["..", ".", "%2e%2e", "app.py", "etc", "1", ""])).map("/".join),
    st.dictionaries(st.sampled_from(["token", "count", "x"]), st.text(max_size=20), max_size=2),
)
def test_whatever_is_asked_for_is_a_page_or_refused(local, project_file, start, path, query):
    local.http.app.state.site.known._left.clear()  # the rate is not what is tested here
    response = local.get(f"/{start}{quote(path, safe='/%')}", params=query)
    assert response.status_code < 500
    check_policy(response)
    assert "create_app" not in response.text
    assert n_events(project_file) == 0


def test_what_a_client_chooses_cannot_write_lines_of_the_log(local, caplog):
    forged = "x\nrefused 200: GET '/forged'"
    with caplog.at_level(logging.WARNING, "cleanrank.web"):
        local.post("/api/batches/1/undo", {"request": "abcdefgh", forged: 1})
        local.get("/" + quote(forged))
    assert len(caplog.messages) == 2
    assert not any("\n" in text for text in caplog.messages)


def test_the_cookie_is_kept_from_scripts_and_other_sites(local, invited):
    app, tokens = invited
    signed = Client(app, host="judge.example").http.get("/", params={"token": tokens["bob"]})
    for response in (local.page, signed):
        cookie = response.headers["set-cookie"].lower()
        assert "httponly" in cookie
        assert "samesite=strict" in cookie
        assert "secure" not in cookie  # over http; see the next lines
    secure = Client(app, host="judge.example")
    secure.http.base_url = "https://judge.example"
    assert "secure" in secure.get("/", params={"token": tokens["bob"]}).headers["set-cookie"].lower()


def test_without_a_token_nothing_is_shown_or_stored(invited, project_file):
    app, _ = invited
    stranger = Client(app, host="judge.example")
    for path in ("/", "/judge/1", "/api/batches/1/question"):
        response = stranger.get(path)
        assert response.status_code == 401
        assert "apples" not in response.text
    assert stranger.post("/api/batches/1/undo", {"request": "abcdefgh"}).status_code == 401
    assert n_events(project_file) == 0


@pytest.mark.parametrize("wrong", ["", "x", "x" * 300, "' OR 1=1 --", "\x00", "ü", "../../etc/passwd"])
def test_wrong_tokens_are_refused_and_logged(invited, wrong, caplog):
    app, _ = invited
    client = Client(app, host="judge.example")
    caplog.clear()
    with caplog.at_level(logging.WARNING, "cleanrank.web"):
        assert client.http.get("/", params={"token": wrong}).status_code == 401
        assert client.http.post("/sign-in", data={"token": wrong}).status_code in (401, 422)
        assert client.get("/judge/1").status_code == 401
    assert sum("refused 4" in text for text in caplog.messages) == 3
    assert not any(cookie.value == wrong for cookie in client.http.cookies.jar)


def test_a_token_signs_in_by_link_and_by_form_until_it_is_revoked(invited, project_file):
    app, tokens = invited
    by_link = Client(app, host="judge.example", token=tokens["bob"])
    by_form = Client(app, host="judge.example")
    assert by_form.http.post("/sign-in", data={"token": f" {tokens['bob']} "}).status_code == 200
    for client in (by_link, by_form):
        page = client.get("/judge/1")
        assert page.status_code == 200
        assert "bob" in page.text
        assert tokens["bob"] not in page.text
    with open_project(project_file) as project:
        project.revoke("bob")
    assert by_link.get("/judge/1").status_code == 401


def test_answers_count_for_the_person_of_the_token(invited, project_file):
    app, tokens = invited
    clients = {name: Client(app, host="judge.example", token=token) for name, token in tokens.items()}
    for name, client in clients.items():
        assert client.answer(1, 1 if name == "ann" else 2).status_code == 200
    with open_project(project_file) as project:
        assert [(e.annotator, e.value) for e in project.events()] == [("ann", 1), ("bob", 2)]


def test_one_person_s_check_value_does_not_serve_another(invited, project_file):
    app, tokens = invited
    ann, bob = (Client(app, host="judge.example", token=tokens[name]) for name in ("ann", "bob"))
    ann.csrf = bob.csrf
    assert ann.answer(1, 1).status_code == 403
    assert n_events(project_file) == 0


ELSEWHERE = [
    {"x_csrf_token": None},
    {"x_csrf_token": "0" * 64},
    {"x_csrf_token": "ü".encode()},
    {"sec_fetch_site": "cross-site"},
    {"sec_fetch_site": "same-site"},
    {"host": "evil.example"},
]


@pytest.mark.parametrize("headers", ELSEWHERE)
def test_requests_from_elsewhere_are_refused_logged_and_not_stored(local, project_file, headers, caplog):
    state = local.state(1)
    body = {"unit": state["unit"], "question": state["question"], "value": 1, "seconds": 1.0}
    with caplog.at_level(logging.WARNING, "cleanrank.web"):
        response = local.post("/api/batches/1/answer", body | {"request": "abcdefgh"}, **headers)
    assert response.status_code in (400, 403)
    assert any("refused 40" in text for text in caplog.messages)
    assert n_events(project_file) == 0


def test_a_request_without_the_cookie_is_refused(local, project_file):
    local.http.cookies.clear()
    assert local.post("/api/batches/1/undo", {"request": "abcdefgh"}).status_code == 403
    assert n_events(project_file) == 0


def test_large_requests_and_those_without_a_length_are_refused(local, project_file):
    padded = {"request": "x" * MOST_BYTES}
    assert local.post("/api/batches/1/undo", padded).status_code == 413
    chunks = iter([b"{", b"}"])
    headers = {"x-csrf-token": local.csrf, "content-type": "application/json"}
    assert local.http.post("/api/batches/1/undo", content=chunks, headers=headers).status_code == 411
    assert n_events(project_file) == 0


def test_a_person_who_asks_too_fast_waits_and_others_do_not(invited):
    app, tokens = invited
    site = app.state.site
    ann, bob = (Client(app, host="judge.example", token=tokens[name]) for name in ("ann", "bob"))
    site.known._left["bob"] = (0.0, 10.0**12)
    assert bob.get("/").status_code == 429
    assert ann.get("/").status_code == 200
    site.strangers._left["testclient"] = (0.0, 10.0**12)
    assert Client(app, host="judge.example").page.status_code == 429
    assert ann.get("/").status_code == 200


def test_signing_out_forgets_the_token(invited):
    app, tokens = invited
    bob = Client(app, host="judge.example", token=tokens["bob"])
    assert bob.http.post("/sign-out", data={"csrf": "no"}).status_code == 403
    assert bob.get("/").status_code == 200
    assert bob.http.post("/sign-out", data={"csrf": bob.csrf}, follow_redirects=False).status_code == 303
    assert bob.get("/").status_code == 401


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::2]"])
def test_other_names_of_this_machine_are_refused_without_tokens(local, host):
    assert local.get("/", headers={"host": host}).status_code == 400
    assert local.get("/", headers={"host": "localhost:99"}).status_code == 200


@given(st.text())
def test_any_host_header_has_a_name(text):
    assert isinstance(host_name(text), str)


ANSWER = b'{"request": "abcdefgh", "unit": 0, "question": "0", "value": 1, "seconds": 1}'
# What breaks HTTP: smuggled requests, lines in headers, lengths that lie, headers without end.
BROKEN = [
    b"POST /api/batches/1/answer HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nPOST /api/batches/1/answer HTTP/1.1\r\n\r\n",
    b"POST /progress HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1\r\nContent-Length: 77\r\n\r\n" + ANSWER,
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: a\rSet-Cookie: b\r\n\r\n",
    b"GET /\x00\x01 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: " + b"x" * 200_000 + b"\r\n\r\n",
    b"GET " + b"/x" * 100_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    ANSWER + b"\r\n\r\n",
]


def raw(url, content):
    """The first that a server says to some bytes; nothing if it closes the connection without a word."""
    address = urlsplit(url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as connection:
        try:
            connection.sendall(content)
            return connection.recv(65_536)
        except ConnectionError:
            return b""


def test_broken_requests_are_refused_and_the_server_goes_on(live, project_file):
    server = live()
    for content in BROKEN:
        said = raw(server.url, content)
        assert said.startswith(b"HTTP/1.1 4"), (content[:80], said[:200])
        assert b"evil.example" not in said
    page = raw(server.url, b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
    assert page.startswith(b"HTTP/1.1 200")
    assert n_events(project_file) == 0
