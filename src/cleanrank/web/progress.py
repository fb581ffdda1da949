"""What the answers have changed, and the form that asks for the next rows: for the owner of the project."""

import warnings
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Form, Request
from fastapi.responses import RedirectResponse, Response

from cleanrank.labeling.loop import Proposal, ask_for, project_progress
from cleanrank.labeling.records import Batch
from cleanrank.labeling.store import open_project
from cleanrank.report.pages import Page
from cleanrank.report.progress_tables import progress_page
from cleanrank.web.downloads import FILES
from cleanrank.web.rendering import render
from cleanrank.web.security import Owner, OwnerByForm, Refused, new_key, site_of

router = APIRouter()
FIGURES, BATCH = "figures", "batch"  # names of the work
MOST_ROWS = 100_000


@router.get("/progress")
def progress(request: Request, person: Owner, count: bool = True) -> Response:
    """The figures after every batch; ``count`` starts to count answers that are not in them yet."""
    site = site_of(request)
    project, background, version = site.project, site.background, site.project.version
    if count:
        background.start(FIGURES, version, partial(_figures, project.path))
    counting, asking = background.is_under_way(FIGURES), background.is_under_way(BATCH)
    counted, made = background.ended(FIGURES), background.ended(BATCH)
    shown: dict[str, Any] = {"named": [], "lede": "", "figures": [], "proposals": [], "has_systems": False}
    problem = "" if counted is None else counted.problem
    if counted is not None and not problem:
        page, proposals, has_systems = counted.future.result()
        shown |= {**page.values, "proposals": proposals, "has_systems": has_systems}
    refused = "" if made is None else made.problem
    batch, remarks = (None, []) if made is None or refused else made.future.result()
    return render(
        request,
        "progress.html",
        "What the answers have changed",
        person,
        **shown,
        problem=problem,
        counting=counting,
        is_old=counted is not None and counted.version != version,
        asking=asking,
        refused=refused,
        made=batch if batch is not None and not project.events(batch.id) else None,
        remarks=remarks,
        files={name: what for name, (_, what) in FILES.items()},
    )


def _figures(path: Path) -> tuple[Page, list[Proposal], bool]:
    """The page, what is worth asking for, and whether there are systems to measure."""
    with open_project(path) as project:
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
    site, own = site_of(request), new_key()
    options = {"n": n, "annotators_per_unit": annotators, "blind": bool(blind)}
    work = site.background.start(BATCH, own, partial(_batch, site.project.path, purpose, options))
    if work.version != own:
        raise Refused(409, "A batch is being made already. Wait until it is there.")
    return RedirectResponse("/progress", 303)


def _batch(path: Path, purpose: str, options: dict[str, Any]) -> tuple[Batch, list[str]]:
    """The batch, and what was remarked while it was made."""
    with open_project(path) as project, warnings.catch_warnings(record=True) as caught:
        batch = ask_for(project, purpose, **options)
    return batch, [str(each.message) for each in caught if each.category is UserWarning]
