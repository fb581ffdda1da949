"""Who may ask, and what every answer carries.

A person is known by a token in a cookie that scripts cannot read and other sites cannot send. What changes
something also carries a check value derived from that cookie, which another site cannot read. Without tokens
(on this machine alone) the cookie is a random value, and requests under another host name are refused, so
that no foreign page reaches the project by a name that it points to this machine. What is refused is logged.
"""

import hashlib
import hmac
import logging
import secrets
import threading
import time
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from typing import Annotated, NamedTuple

from fastapi import Depends, Form, Request
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from cleanrank.labeling.store import Project
from cleanrank.web.background import Background

LOG = logging.getLogger("cleanrank.web")
LOCAL_NAMES = frozenset({"127.0.0.1", "localhost", "::1"})
MOST_BYTES = 64 * 1024
MOST_KEYS = 10_000
SAFE_METHODS = frozenset({"GET", "HEAD"})
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
}


class Refused(Exception):
    """A request that is not served; ``reason`` is shown to whoever asked."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(status, reason)  # both, so that it can come from another process
        self.status = status
        self.reason = reason


class Person(NamedTuple):
    """Who asks; the owner of the project also sees the reports."""

    name: str
    is_owner: bool


class Rate:
    """At most ``burst`` requests of a key at once and ``per_second`` of them in the long run.

    >>> rate = Rate(per_second=1, burst=2)
    >>> [rate.allows("ann", now=0.0), rate.allows("ann", now=0.0), rate.allows("ann", now=0.5)]
    [True, True, False]
    >>> rate.allows("ann", now=1.5), rate.allows("bob", now=1.5)
    (True, True)
    """

    def __init__(self, *, per_second: float, burst: float) -> None:
        self.per_second = per_second
        self.burst = burst
        self._left: dict[str, tuple[float, float]] = {}  # key -> requests left, when that was so
        self._lock = threading.Lock()

    def allows(self, key: str, now: float | None = None) -> bool:
        """Whether one more request of this key may be served; if so, it counts."""
        moment = time.monotonic() if now is None else now
        with self._lock:
            left, since = self._left.get(key, (self.burst, moment))
            left = min(self.burst, left + (moment - since) * self.per_second)
            allowed = left >= 1
            self._left[key] = (left - allowed, moment)
            if len(self._left) > MOST_KEYS:  # those that have been quiet long enough start anew anyway
                quiet = moment - self.burst / self.per_second
                self._left = {name: state for name, state in self._left.items() if state[1] > quiet}
        return allowed


@dataclass(frozen=True)
class Site:
    """What the app serves, and to whom.

    Attributes:
        project: the open project.
        tokens: whether people need a token.
        owner: the name of whoever started the server; without tokens everybody is this person.
        runs: the file of runs whose reports are shown; None where there is none.
        background: what is made beside the answering.
        known: how fast one person may ask.
        strangers: how often one address may ask without a valid token.
    """

    project: Project
    tokens: bool
    owner: str
    runs: str | PathLike[str] | None = None
    background: Background = field(default_factory=Background)
    known: Rate = field(default_factory=lambda: Rate(per_second=20, burst=100))
    strangers: Rate = field(default_factory=lambda: Rate(per_second=1, burst=20))

    @cached_property
    def cookie(self) -> str:
        """The name of the cookie: browsers share cookies among all ports of a machine."""
        return f"cleanrank_{hashlib.sha256(str(self.project.path.resolve()).encode()).hexdigest()[:12]}"


def site_of(request: Request) -> Site:
    """The site that a request is about."""
    site = request.app.state.site
    assert isinstance(site, Site)
    return site


def address_of(request: Request) -> str:
    """The address of whoever asks."""
    return request.client.host if request.client else ""


def person_asking(request: Request) -> Person:
    """The person who asks, whatever they ask; a stranger is refused."""
    site = site_of(request)
    name = person_of(site, request.cookies.get(site.cookie, "")) if site.tokens else site.owner
    if name is None:
        if not site.strangers.allows(address_of(request)):
            raise Refused(429, "Too many requests without a valid token. Wait a minute.")
        raise Refused(401, "Open the link of your invitation, or enter its token here.")
    if not site.known.allows(name):
        raise Refused(429, "Too many requests at once. Wait a few seconds.")
    return Person(name, not site.tokens or name == site.owner)


def signed_in(request: Request) -> Person:
    """The person who asks; what changes something needs the check value in a header."""
    person = person_asking(request)
    if request.method not in SAFE_METHODS:
        cookie = request.cookies.get(site_of(request).cookie, "")
        check_csrf(cookie, request.headers.get("x-csrf-token", ""))
    return person


def person_of(site: Site, token: str) -> str | None:
    """The name that a token belongs to; None for none."""
    return site.project.annotator_of(token) if token and len(token) <= 200 else None


def owner_only(person: Annotated[Person, Depends(signed_in)]) -> Person:
    """The owner of the project; all others are refused."""
    if not person.is_owner:
        raise Refused(403, "This page is for the owner of the project, who started the server.")
    return person


def owner_by_form(request: Request, csrf: Annotated[str, Form(max_length=100)]) -> Person:
    """The owner of the project, who sends a form with the check value in it; all others are refused."""
    person = owner_only(person_asking(request))
    check_csrf(request.cookies.get(site_of(request).cookie, ""), csrf)
    return person


SignedIn = Annotated[Person, Depends(signed_in)]
Owner = Annotated[Person, Depends(owner_only)]
OwnerByForm = Annotated[Person, Depends(owner_by_form)]


def new_key() -> str:
    """A random value for a cookie."""
    return secrets.token_urlsafe(32)


def csrf_of(cookie: str) -> str:
    """The check value of a cookie; it outlives a restart of the server.

    >>> csrf_of("a") == csrf_of("a"), csrf_of("a") == csrf_of("b")
    (True, False)
    """
    return hmac.new(cookie.encode("utf-8", "replace"), b"cleanrank csrf", hashlib.sha256).hexdigest()


def check_csrf(cookie: str, value: str) -> None:
    """Raises unless a request carries the check value of its cookie."""
    if not cookie or not hmac.compare_digest(csrf_of(cookie).encode(), value.encode("utf-8", "replace")):
        raise Refused(403, "The page is out of date or the request came from elsewhere. Load the page again.")


def log_refused(scope: Scope, status: int, reason: str) -> None:
    """Notes a refused request; whatever the client chose is quoted."""
    address = scope["client"][0] if scope.get("client") else ""
    told = (scope["method"], scope["path"], address, reason)
    LOG.warning("refused %d: %s %.200r from %s: %.500r", status, *told)


class Guard:
    """Middleware around everything: host name, origin and size of requests, headers of responses.

    What fails inside becomes a plain page that says nothing about the inside.
    """

    def __init__(self, app: ASGIApp, *, tokens: bool) -> None:
        self.app = app
        self.tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves or refuses a request."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        started = False

        async def send_guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("cache-control", "no-store")
            await send(message)

        problem = self.problem(scope)
        if problem is not None:
            log_refused(scope, *problem)
            response = PlainTextResponse(problem[1], problem[0], {"connection": "close"})
            await response(scope, receive, send_guarded)
            return
        try:
            await self.app(scope, receive, send_guarded)
        except Exception:
            LOG.exception("failed: %s %.200r", scope["method"], scope["path"])
            if started:
                raise
            text = "The server failed at this request; its log says why. Nothing was stored."
            await PlainTextResponse(text, 500)(scope, receive, send_guarded)

    def problem(self, scope: Scope) -> tuple[int, str] | None:
        """The status and reason of a request that is not let in."""
        headers = Headers(scope=scope)
        if not self.tokens and host_name(headers.get("host", "")) not in LOCAL_NAMES:
            return 400, "This server answers on this machine alone: open it at http://127.0.0.1 and its port."
        if scope["method"] in SAFE_METHODS:
            return None
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return 403, "Requests from other sites are refused."
        length = headers.get("content-length", "")
        # Where a request says both, the server reads it in chunks, whatever length it claims.
        if "transfer-encoding" in headers or not length.isascii() or not length.isdigit():
            return 411, "A request that changes something must say its length."
        if int(length[:20]) > MOST_BYTES:
            return 413, f"A request must be at most {MOST_BYTES:,} bytes long."
        return None


def host_name(host: str) -> str:
    """The name in a Host header, without its port.

    >>> host_name("localhost:8000"), host_name("[::1]:8000"), host_name("127.0.0.1")
    ('localhost', '::1', '127.0.0.1')
    """
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host
