"""The web app over a project."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from fastapi.staticfiles import StaticFiles
from starlette.exceptions import HTTPException

from cleanrank.errors import BadFileError, CleanrankError
from cleanrank.experiments.store import Store
from cleanrank.labeling.store import open_project
from cleanrank.web import api, downloads, progress, reports, reviews, views
from cleanrank.web.rendering import render
from cleanrank.web.security import LOG, Guard, Refused, Site, log_refused
from cleanrank.web.server import login_name

TITLES = {401: "Sign in", 403: "Not allowed", 404: "Not found", 409: "Not stored", 429: "Too fast"}


def create_app(
    path: str | os.PathLike[str],
    *,
    tokens: bool,
    owner: str | None = None,
    runs: str | os.PathLike[str] | None = None,
) -> FastAPI:
    """The app over a project, for any ASGI server; the project stays open as long as the app lives.

    Args:
        path: the project's file.
        tokens: whether people need a token (``Project.invite``); without, whoever asks is the owner, and the
            app answers only under the names of this machine.
        owner: the name of whoever starts it, who also sees the reports; the login name unless given.
        runs: a file of runs (``cleanrank reproduce``) whose reports are shown too.

    Returns:
        The app.
    """
    if runs is not None:
        with Store(str(runs), create=False):
            pass  # another file is refused now
    project = open_project(path)
    site = Site(project, tokens, login_name() if owner is None else owner, runs)

    @asynccontextmanager
    async def closing(_: FastAPI) -> AsyncIterator[None]:
        with project:
            yield
            site.background.close()

    app = FastAPI(title="cleanrank", docs_url=None, redoc_url=None, openapi_url=None, lifespan=closing)
    app.state.site = site
    app.add_middleware(Guard, tokens=tokens)
    for router in (
        views.router,
        reviews.router,
        progress.router,
        downloads.router,
        reports.router,
        api.router,
    ):
        app.include_router(router)
    static = Path(__file__).parent / "static"
    app.mount("/static", StaticFiles(directory=static, packages=[("cleanrank.report", "assets")]))
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(CleanrankError, _broken_rule)
    app.add_exception_handler(RequestValidationError, _wrong_request)
    app.add_exception_handler(HTTPException, _http_error)
    return app


def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _answer(request, error.status, error.reason)


def _broken_rule(request: Request, error: Exception) -> Response:
    if isinstance(error, BadFileError):  # a full disk, a lock: not the client's fault
        LOG.error("%s", error)
        return _answer(request, 503, "The project cannot be used just now; nothing was stored. Try again.")
    return _answer(request, 409, str(error))


def _wrong_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    places = (".".join(str(part) for part in each["loc"]) for each in error.errors())
    return _answer(request, 422, f"The request breaks a rule at {', '.join(dict.fromkeys(places))}."[:500])


def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    reason = "There is no such page." if error.status_code == 404 else str(error.detail)
    return _answer(request, error.status_code, reason)


def _answer(request: Request, status: int, reason: str) -> Response:
    """A refusal in the form of what was asked for: JSON of the API, a page else."""
    log_refused(request.scope, status, reason)
    if request.url.path.startswith("/api/"):
        return JSONResponse({"error": reason}, status)
    template = "sign_in.html" if status == 401 else "message.html"
    return render(request, template, TITLES.get(status, "Not served"), status=status, text=reason)
