"""Pages of judging: the work there is, signing in, one question at a time."""

from collections.abc import Callable
from statistics import median
from typing import Annotated, Any

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from cleanrank.labeling.session import Asked, Session
from cleanrank.labeling.store import Project
from cleanrank.web.api import BatchId, session_of
from cleanrank.web.rendering import render, set_cookie
from cleanrank.web.security import (
    Person,
    Refused,
    SignedIn,
    address_of,
    check_csrf,
    person_of,
    signed_in,
    site_of,
)
from cleanrank.web.server import path_of

router = APIRouter()
PURPOSES = {
    "label": "New labels for the documents",
    "gold": "A random sample, to measure how many labels are wrong",
    "evaluation": "A sample, to measure systems",
    "repair": "A review, to mend labels",
}


@router.get("/")
def home(request: Request, token: str = "") -> Response:
    """The batches of the project; a token in the address signs in."""
    if token and site_of(request).tokens:
        return sign_in(request, token)
    person = signed_in(request)
    project = site_of(request).project
    batches = [
        {
            "batch": batch,
            "path": path_of(batch),
            "purpose": PURPOSES[batch.purpose],
            "asked": Session(project, batch.id, person.name).asked(claim=False),
        }
        for batch in project.batches()
    ]
    return render(request, "home.html", project.name, person, batches=batches)


@router.post("/sign-in")
def sign_in(request: Request, token: Annotated[str, Form(max_length=200)]) -> Response:
    """Takes the token of an invitation, from a link or the form.

    The answer is a page that goes on by itself: after a redirect from a link on another site the browser
    would not send the cookie.
    """
    site = site_of(request)
    name = person_of(site, token.strip())
    if name is None:
        if not site.strangers.allows(address_of(request)):
            raise Refused(429, "Too many requests without a valid token. Wait a minute.")
        raise Refused(401, "This token is not valid, or no longer. Ask for a new invitation.")
    response = render(request, "welcome.html", f"Welcome, {name}")
    set_cookie(request, response, token.strip())
    return response


@router.post("/sign-out")
def sign_out(request: Request, csrf: Annotated[str, Form(max_length=100)]) -> Response:
    """Forgets the token in this browser."""
    cookie = site_of(request).cookie
    check_csrf(request.cookies.get(cookie, ""), csrf)
    response = RedirectResponse("/", 303)
    response.delete_cookie(cookie)
    return response


@router.get("/judge/{batch:int}")
def judge(request: Request, batch: BatchId, person: SignedIn) -> Response:
    """The open question of a batch: a grade, or which of two documents is better."""
    return render_question(request, batch, person, "judge.html")


Extra = Callable[[Session, Asked | None], dict[str, Any]]


def render_question(
    request: Request,
    batch: int,
    person: Person,
    template: str,
    extra: Extra = lambda session, asked: {},
) -> Response:
    """A page with the open question of a batch; its form is what ``static/judge.js`` sends.

    The template gets batch, asked (None when all is done), scale, feature_names, seconds_left, ``following``
    (when all is done: the batch that the person may go on with, and its page) and what ``extra`` returns.
    """
    session = session_of(request, batch, person.name)
    own_path = path_of(session.batch)
    if request.url.path != own_path:
        return RedirectResponse(own_path, 303)
    asked = session.asked()
    project = session.project
    times = [event.seconds for event in session.history()[-20:] if event.seconds]
    return render(
        request,
        template,
        session.batch.name,
        person,
        batch=session.batch,
        asked=asked,
        scale=project.scale,
        feature_names=project.feature_names,
        seconds_left=median(times) * (asked.n_expected - asked.n_answered) if asked and times else None,
        following=None if asked else _following(project, person),
        **extra(session, asked),
    )


def _following(project: Project, person: Person) -> dict[str, Any] | None:
    """The first batch with a question for a person; None where there is nothing to do."""
    for batch in project.batches():
        if Session(project, batch.id, person.name).asked(claim=False) is not None:
            return {"name": batch.name, "path": path_of(batch), "purpose": PURPOSES[batch.purpose]}
    return None
