"""Addresses and invitations of a server."""

import socket

import pytest

from cleanrank.errors import InvalidInputError, UnknownNameError
from cleanrank.labeling.store import open_project
from cleanrank.web.server import DEFAULT_PORT, PortTakenError, address_of, invite, listen, login_name


def test_without_a_host_only_this_machine_is_served():
    with listen(port=0) as listening:
        assert listening.getsockname()[0] == "127.0.0.1"
        with socket.create_connection(listening.getsockname()):
            pass


def test_a_port_that_was_named_must_be_free():
    with listen(port=0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortTakenError, match=rf"port must be free; got {port}\. .*give another port"):
            listen(port=port)


def test_where_the_usual_port_is_taken_another_one_serves(monkeypatch):
    with listen(port=0) as taken:
        monkeypatch.setattr("cleanrank.web.server.DEFAULT_PORT", taken.getsockname()[1])
        with listen() as other:
            assert other.getsockname()[1] != taken.getsockname()[1]


@pytest.mark.parametrize(
    ("host", "port"), [("no such host", 0), ("203.0.113.7", 0), (None, 70_000), (None, -1)]
)
def test_addresses_that_cannot_be_used_are_refused(host, port):
    with pytest.raises(InvalidInputError, match="must be"):
        listen(host, port)


def test_the_address_is_one_that_a_browser_can_open():
    assert address_of(None, DEFAULT_PORT) == f"http://127.0.0.1:{DEFAULT_PORT}"
    assert address_of("0.0.0.0", 1) == f"http://{socket.gethostname()}:1"
    assert address_of("judge.example", 1) == "http://judge.example:1"


def test_invitations_give_a_token_each_and_revoking_takes_it_back(project_file):
    first, bob = invite(project_file, ["ann", "bob"])
    (second,) = invite(project_file, ["ann"], revoked=["bob"])
    with open_project(project_file) as project:
        owners = [project.annotator_of(token) for token in (first.token, second.token, bob.token)]
    assert owners == [None, "ann", None]
    with pytest.raises(UnknownNameError, match="unknown annotator 'eve'"):
        invite(project_file, [], revoked=["eve"])


def test_a_machine_without_names_of_users_still_has_an_owner(monkeypatch):
    monkeypatch.setattr("getpass.getuser", lambda: (_ for _ in ()).throw(KeyError("no user")))
    assert login_name() == "owner"
