"""Answers in JSON: each is stored before the response says so, and a repeated request is stored once."""

from typing import Annotated, Any

from fastapi import APIRouter, Path, Request
from pydantic import BaseModel, ConfigDict, Field

from cleanrank.errors import UnknownNameError
from cleanrank.labeling.session import Session
from cleanrank.web.security import Refused, SignedIn, site_of

router = APIRouter(prefix="/api/batches/{batch:int}")

BatchId = Annotated[int, Path(ge=1, le=2**31)]
RequestId = Annotated[str, Field(pattern=r"^[A-Za-z0-9-]{8,64}$")]
Seconds = Annotated[float, Field(ge=0, le=86_400, allow_inf_nan=False)]


class Said(BaseModel):
    """What a client sends; nothing else is taken."""

    model_config = ConfigDict(extra="forbid", strict=True)
    request: RequestId


class SkipBody(Said):
    """A question that is passed over."""

    unit: Annotated[int, Field(ge=0, le=2**31)]
    question: Annotated[str, Field(max_length=40)]
    seconds: Seconds


class AnswerBody(SkipBody):
    """An answer to a question: a grade, a side, or a word of the review."""

    value: Annotated[int, Field(ge=-1, le=1000)] | Annotated[str, Field(max_length=20)]


def session_of(request: Request, batch: int, name: str) -> Session:
    """The work of a person on a batch."""
    try:
        return Session(site_of(request).project, batch, name)
    except UnknownNameError as error:
        raise Refused(404, "There is no such batch.") from error


@router.get("/question")
def question(request: Request, batch: BatchId, person: SignedIn) -> dict[str, Any]:
    """The open question of the person who asks."""
    return _state(session_of(request, batch, person.name))


@router.post("/answer")
def answer(request: Request, batch: BatchId, said: AnswerBody, person: SignedIn) -> dict[str, Any]:
    """Stores an answer."""
    session = session_of(request, batch, person.name)
    event = session.answer(
        said.value, unit=said.unit, question=said.question, seconds=said.seconds, request=said.request
    )
    return {"event": event.id} | _state(session)


@router.post("/skip")
def skip(request: Request, batch: BatchId, said: SkipBody, person: SignedIn) -> dict[str, Any]:
    """Stores that a question was passed over."""
    session = session_of(request, batch, person.name)
    event = session.skip(unit=said.unit, question=said.question, seconds=said.seconds, request=said.request)
    return {"event": event.id} | _state(session)


@router.post("/undo")
def undo(request: Request, batch: BatchId, said: Said, person: SignedIn) -> dict[str, Any]:
    """Takes the latest answer of the person back."""
    session = session_of(request, batch, person.name)
    return {"event": session.undo(said.request).id} | _state(session)


def _state(session: Session) -> dict[str, Any]:
    asked = session.asked()
    if asked is None:
        return {"done": True, "unit": None, "question": None}
    return {"done": False, "unit": asked.unit.position, "question": asked.question.key}
