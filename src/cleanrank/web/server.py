"""Serving a project: addresses, invitations, the browser."""

import errno
import getpass
import os
import socket
import sys
import webbrowser
from collections.abc import Sequence
from contextlib import closing, suppress
from typing import NamedTuple

from cleanrank.errors import InvalidInputError, error_text, invalid
from cleanrank.labeling.records import Batch
from cleanrank.labeling.store import open_project
from cleanrank.validation import check_integer, require

LOCAL = "127.0.0.1"
DEFAULT_PORT = 8765
EVERYWHERE = ("0.0.0.0", "::", "")


class PortTakenError(InvalidInputError):
    """Another server listens there."""


class Invitation(NamedTuple):
    """A person and the token that they sign in with."""

    name: str
    token: str


def invite(
    path: str | os.PathLike[str], names: Sequence[str], *, revoked: Sequence[str] = ()
) -> list[Invitation]:
    """New tokens for people, in place of earlier ones; those who are ``revoked`` lose theirs."""
    with open_project(path) as project:
        for name in revoked:
            project.revoke(name)
        return [Invitation(name, project.invite(name)) for name in names]


def listen(host: str | None = None, port: int | None = None) -> socket.socket:
    """An open socket; without a port the usual one, or any where that is taken.

    Args:
        host: a name or address of this machine; this machine alone unless given.
        port: 0 means any that is free.

    Raises:
        InvalidInputError: where the address cannot be used.

    >>> with listen(port=0) as listening:
    ...     listening.getsockname()[0]
    '127.0.0.1'
    """
    wanted = DEFAULT_PORT if port is None else check_integer("port", port, least=0, most=65_535)
    for number in (wanted, 0) if port is None else (wanted,):
        try:
            return _bound(LOCAL if host is None else host, number)
        except OSError as error:
            if error.errno == errno.EADDRINUSE and port is None and number:
                continue
            if error.errno == errno.EADDRINUSE:
                remedy = "Another server uses it; give another port, or 0 for any."
                raise PortTakenError(error_text("port", "must be free", wanted, remedy=remedy)) from error
            rule = "must be a name or address of this machine"
            reason = f"{host!r} with port {wanted} ({error.strerror or error})"
            raise invalid("host", rule, reason, remedy="0.0.0.0 means all of them.") from error
    raise AssertionError("unreachable")


def _bound(host: str, port: int) -> socket.socket:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    made = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # so that a server may follow on another at once; elsewhere it would share
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(512)
    except BaseException:
        made.close()
        raise
    return made


def address_of(host: str | None, port: int) -> str:
    """The address of a server for people's browsers.

    >>> address_of(None, 8765), address_of("::1", 80)
    ('http://127.0.0.1:8765', 'http://[::1]:80')
    """
    name = socket.gethostname() if host in EVERYWHERE else host or LOCAL
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"


def path_of(batch: Batch) -> str:
    """The page on which a batch is judged.

    >>> path_of(Batch(7, "doubted", "review", "repair", {}, 1, blind=False))
    '/review/7'
    """
    return f"/{'review' if batch.kind == 'review' else 'judge'}/{batch.id}"


def serve(
    path: str | os.PathLike[str],
    listening: socket.socket,
    *,
    tokens: bool,
    owner: str | None = None,
    runs: str | os.PathLike[str] | None = None,
    open_link: str = "",
) -> None:
    """Serves a project until the process is stopped.

    Args:
        path: the project.
        listening: of ``listen``; it is closed at the end.
        tokens: whether people need a token.
        owner: the name of whoever serves; the login name unless given.
        runs: a file of runs whose reports are shown too.
        open_link: what a browser of this machine opens, if there is one.
    """
    require("web")
    import uvicorn

    from cleanrank.web.app import create_app

    with closing(listening):
        app = create_app(path, tokens=tokens, owner=owner, runs=runs)
        # The access log would hold tokens; what is refused is logged by the app.
        config = uvicorn.Config(
            app,
            access_log=False,
            log_level="warning",
            server_header=False,
            ws="none",
            limit_concurrency=1000,
            timeout_graceful_shutdown=5,
        )
        if open_link and _has_browser():
            webbrowser.open(open_link)
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])


def login_name() -> str:
    """The name of whoever runs this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "owner"


def _has_browser() -> bool:
    """Whether a page opened here would be seen: on a terminal alone a text browser would take it over."""
    return sys.platform in ("darwin", "win32") or bool(
        os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    )
