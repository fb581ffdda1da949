"""Pages of reports, for the owner of the project: what the data, the annotators and the answers are worth.

They may take long to make. Each is made beside the answering, and kept until what it shows has changed; who
asks while it is made waits for it.
"""

from collections.abc import Callable, Hashable
from functools import partial
from pathlib import Path as FilePath
from typing import Annotated

from fastapi import APIRouter, Depends, Path, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import Response

from cleanrank.errors import BadFileError, InvalidInputError
from cleanrank.report.pages import Page
from cleanrank.web import report_pages
from cleanrank.web.rendering import render
from cleanrank.web.security import Owner, Person, site_of

router = APIRouter()


def version_of(request: Request) -> tuple[int, int, int]:
    """The version of the project."""
    return site_of(request).project.version


def runs_version(request: Request) -> Hashable:
    """Size and time of the file of runs and of what was last written beside it."""
    runs = site_of(request).runs
    files = [] if runs is None else [FilePath(runs), FilePath(f"{runs}-wal")]
    return tuple((each.stat().st_size, each.stat().st_mtime_ns) for each in files if each.exists())


Version = Annotated[tuple[int, int, int], Depends(version_of)]
RunsVersion = Annotated[Hashable, Depends(runs_version)]


@router.get("/annotators")
async def annotators(request: Request, person: Owner, version: Version) -> Response:
    """Who has answered what, and who is reliable."""
    make = partial(report_pages.annotators_of, site_of(request).project.path)
    return await _show(request, person, "Annotators", version, make)


@router.get("/data-set")
async def data_set(request: Request, person: Owner, version: Version) -> Response:
    """The diagnosis of the given labels."""
    make = partial(report_pages.data_set_of, site_of(request).project.path)
    return await _show(request, person, "Data set", version[0], make)


@router.get("/judge-report")
async def judge_report(request: Request, person: Owner, version: Version) -> Response:
    """Given labels and annotators beside gold answers."""
    make = partial(report_pages.judges_of, site_of(request).project.path)
    return await _show(request, person, "Judge report", version, make)


@router.get("/runs")
async def runs(request: Request, person: Owner, version: RunsVersion) -> Response:
    """The recipes that were run."""
    make = partial(report_pages.runs_of, site_of(request).runs)
    return await _show(request, person, "Runs", version, make)


@router.get("/runs/{recipe:path}")
async def run(
    request: Request, recipe: Annotated[str, Path(max_length=200)], person: Owner, version: RunsVersion
) -> Response:
    """The report of a recipe."""
    make = partial(report_pages.run_of, site_of(request).runs, recipe)
    return await _show(request, person, f"Runs of {recipe}", version, make)


async def _show(
    request: Request, person: Person, name: str, version: Hashable, make: Callable[[], Page]
) -> Response:
    page = await site_of(request).background.value(name, version, partial(_made, name, make))
    return await run_in_threadpool(render, request, page.template, page.title, person, **page.values)


def _made(name: str, make: Callable[[], Page]) -> Page:
    """A page; where the answers do not suffice, one that says why."""
    try:
        return make()
    except BadFileError:
        raise
    except InvalidInputError as error:
        return report_pages.needed(name, str(error))
