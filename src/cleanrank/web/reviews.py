"""The page of a review: one doubted label at a time, with what a person needs to decide."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from cleanrank.labeling.records import Event
from cleanrank.labeling.session import Asked, Session
from cleanrank.labeling.shown import ShownIssue, answer_words, shown_issue
from cleanrank.labeling.work import Work
from cleanrank.web.api import BatchId
from cleanrank.web.security import SignedIn
from cleanrank.web.views import render_question

router = APIRouter()
PICTURED = 8  # features with a picture; the others are in a list
WIDTH = 240  # of a picture, in its own units
APART = 11  # of the names of grades under it


@router.get("/review/{batch:int}")
def review(request: Request, batch: BatchId, person: SignedIn) -> Response:
    """The open question of a review."""

    def extra(session: Session, asked: Asked | None) -> dict[str, Any]:
        issue = None if asked is None else shown_issue(session.project, session.batch, asked.unit)
        pictures = [] if issue is None else _pictures(issue)
        others = [] if asked is None or not person.is_owner else _others(session, asked.unit.position)
        last = _last_answer(session)
        return {"issue": issue, "pictures": pictures, "others": others, "last": last}

    return render_question(request, batch, person, "review.html", extra)


def _pictures(issue: ShownIssue) -> list[dict[str, Any]]:
    """The histograms of the most unusual features: bars and marks in the units of the drawing."""
    pictures = []
    for place in issue.features[:PICTURED]:
        step, most = WIDTH / len(place.counts), max(place.counts)
        bars = [(number * step, 30 * count / most) for number, count in enumerate(place.counts) if count]
        pictures.append(
            {
                "place": place,
                "step": step,
                "bars": bars,
                "own": None if place.at is None else place.at * WIDTH,
                "grades": spread({grade: at * WIDTH for grade, at in place.by_grade.items()}, WIDTH, APART),
            }
        )
    return pictures


def spread(places: Mapping[int, float], width: float, apart: float) -> dict[int, float]:
    """Places of names along a line, moved so that neighbours are ``apart`` and all lie on it.

    >>> spread({0: 3.0, 1: 1.0, 2: 20.0}, width=20, apart=5)
    {1: 1.0, 0: 6.0, 2: 20.0}
    """
    moved: dict[int, float] = {}
    last = -apart
    for name, place in sorted(places.items(), key=lambda each: each[1]):
        last = moved[name] = max(place, last + apart)
    following = width + apart
    for name in reversed(moved):
        following = moved[name] = min(moved[name], following - apart)
    return moved


def _others(session: Session, unit: int) -> list[tuple[str, str]]:
    """Name and answer of all others who judged a unit; nobody's in blind mode."""
    if session.batch.blind:
        return []
    with session.project.lock:
        opinions = Work.of(session.project, session.batch.id).opinions(unit)
    given = session.project.document(session.project.units(session.batch.id)[unit].rows[0]).given_label
    words = ((who, answer_words(value, session.project.scale, given)) for who, value in opinions.items())
    return sorted((who, said) for who, said in words if who != session.annotator)


def _last_answer(session: Session) -> dict[str, Any] | None:
    """The person's latest answer, which undo takes back, and what others said of it."""
    with session.project.lock:
        history = Work.of(session.project, session.batch.id).history(session.annotator)
    if not history:
        return None
    event: Event = history[-1]
    document = session.project.document(session.project.units(session.batch.id)[event.unit].rows[0])
    given = None if session.batch.blind else document.given_label
    words = answer_words(event.value, session.project.scale, given)
    answered = event.kind == "answer"
    return {
        "title": document.fields.get("title"),
        "doc_id": document.doc_id,
        "answer": words,
        "others": _others(session, event.unit) if answered else [],
    }
