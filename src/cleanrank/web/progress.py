"""What the answers have changed, and the form that asks for the next rows: for the owner of the project."""

from functools import partial
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from cleanrank.labeling.loop import ask_for, project_progress
from cleanrank.labeling.records import Batch
from cleanrank.labeling.store import open_project
from cleanrank.report.pages import Page
from cleanrank.report.progress_tables import progress_page
from cleanrank.web.background import Background
from cleanrank.web.rendering import render
from cleanrank.web.security import Owner, OwnerByForm, Refused, site_of

router = APIRouter()
FIGURES, BATCH = "figures", "batch"  # names of the work
MOST_ROWS = 100_000


def background_of(request: Request) -> Background:
    """The work of the app that goes on beside the answering."""
    background = request.app.state.background
    assert isinstance(background, Background)
    return background


@router.get("/progress")
def progress(request: Request, person: Owner) -> Response:
    """The figures after every batch, those of the latest answers as soon as they are computed."""
    site, background = site_of(request), background_of(request)
    path, version = site.project.path, site.project.version
    found = background.latest(FIGURES, version, partial(_figures, path))
    made = background.outcome(BATCH)
    page: dict[str, Any] = {}
    if found is not None and not found.problem:
        shown, proposals, has_systems = found.value
        page = {**shown.values, "proposals": proposals, "has_systems": has_systems}
    title = "What the answers have changed"
    return render(
        request,
        "progress.html",
        title,
        person,
        **{"named": [], "lede": "", "figures": [], "proposals": [], "has_systems": False} | page,
        problem="" if found is None else found.problem,
        counting=background.is_running(FIGURES),
        asking=background.is_running(BATCH),
        made=None if made is None else made.value,
        refused="" if made is None else made.problem,
    )


def _figures(path: Any) -> tuple[Page, list[Any], bool]:
    with open_project(path) as project:  # a connection of its own: answers do not wait
        found = project_progress(project)
    return progress_page(found), found.proposals(), found.has_systems


@router.post("/progress")
def ask(
    request: Request,
    person: OwnerByForm,
    purpose: Annotated[Literal["gold", "evaluation", "repair"], Form()],
    n: Annotated[int, Form(ge=1, le=MOST_ROWS)],
    annotators: Annotated[int, Form(ge=1, le=100)] = 1,
    blind: Annotated[Literal["on", ""], Form()] = "",
) -> Response:
    """Asks for the next rows; the batch is made beside the answering."""
    path = site_of(request).project.path
    options = {"n": n, "annotators_per_unit": annotators, "blind": bool(blind)}
    if not background_of(request).start(BATCH, partial(_batch, path, purpose, options)):
        raise Refused(409, "A batch is being made already. Wait until it is there.")
    return RedirectResponse("/progress", 303)


def _batch(path: Any, purpose: str, options: dict[str, Any]) -> Batch:
    with open_project(path) as project:
        return ask_for(project, purpose, **options)
