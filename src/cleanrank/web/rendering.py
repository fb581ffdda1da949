"""Pages of the app: one environment of templates, one way to answer with a page.

The app's templates stand before those of reports, so that a template of a report that extends ``base.html``
becomes a page of the app, with its navigation.
"""

from functools import cache
from typing import Any

from fastapi import Request
from fastapi.responses import HTMLResponse, Response
from jinja2 import ChoiceLoader, Environment, PackageLoader

from cleanrank import __version__
from cleanrank.report.table import templates
from cleanrank.web.security import Person, csrf_of, new_key, site_of

COOKIE_SECONDS = 90 * 86_400
# (path, title) of the pages; all but the first are for the owner of the project.
NAVIGATION = (
    ("/", "Work"),
    ("/progress", "Progress"),
    ("/annotators", "Annotators"),
    ("/data-set", "Data set"),
    ("/judge-report", "Judge report"),
    ("/runs", "Runs"),
)


@cache
def environment() -> Environment:
    """The templates of the app and of reports; whatever is not markup already is escaped."""
    loaders = [PackageLoader("cleanrank.web"), PackageLoader("cleanrank.report")]
    made = templates().overlay(loader=ChoiceLoader(loaders))
    made.tests["web_link"] = is_web_link
    return made


def is_web_link(address: str) -> bool:
    """Whether an address of a document may become a link: no ``javascript:``, no file of this machine.

    >>> is_web_link("https://example.org/a"), is_web_link("javascript:alert(1)"), is_web_link("d17")
    (True, False, False)
    """
    return address.lower().startswith(("http://", "https://"))


def render(
    request: Request,
    template: str,
    title: str,
    person: Person | None = None,
    *,
    status: int = 200,
    **values: Any,
) -> HTMLResponse:
    """A page of the app.

    Args:
        request: that it answers.
        template: of ``web/templates`` or of ``report/templates``.
        title: of the page.
        person: who asks; None leaves the navigation out.
        status: of the answer.
        values: what the template shows.
    """
    site = site_of(request)
    cookie = request.cookies.get(site.cookie, "")
    key = cookie or ("" if site.tokens else new_key())
    links = NAVIGATION if person is not None and person.is_owner else NAVIGATION[:1]
    values |= {
        "title": title,
        "project_name": site.project.name,
        "person": person,
        "tokens": site.tokens,
        "navigation": links if person is not None else [],
        "path": request.url.path,
        "csrf": csrf_of(key) if key else "",
        "version": __version__,
    }
    response = HTMLResponse(environment().get_template(template).render(values), status)
    if key != cookie:
        set_cookie(request, response, key)
    return response


def set_cookie(request: Request, response: Response, value: str) -> None:
    """Gives the cookie that a person is known by."""
    response.set_cookie(
        site_of(request).cookie,
        value,
        max_age=COOKIE_SECONDS,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
    )
