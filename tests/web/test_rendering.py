"""One frame for all pages, those of reports too."""

from types import SimpleNamespace

import pytest

from cleanrank.report.table import Table
from cleanrank.web.rendering import environment, is_web_link, render
from cleanrank.web.security import Person


@pytest.fixture
def request_of(local):
    """A request as pages get it."""
    return SimpleNamespace(
        app=local.http.app, cookies={}, url=SimpleNamespace(path="/report", scheme="http"), method="GET"
    )


@pytest.mark.parametrize("is_owner", [True, False])
def test_a_template_of_reports_becomes_a_page_of_the_app(request_of, is_owner, monkeypatch):
    monkeypatch.setattr("cleanrank.web.rendering.NAVIGATION", (("/", "Work"), ("/report", "A report")))
    named = [
        ("section-1", {"heading": "<Figures>", "parts": ["Words & more.", Table(("a", "n"), [("x", "1")])]})
    ]
    values = {"named": named, "lede": "", "figures": ()}
    page = render(request_of, "sections.html", "Report", Person("eve", is_owner), **values).body.decode()
    assert "&lt;Figures&gt;" in page
    assert "Words &amp; more." in page
    assert "<table" in page
    assert "/static/app.css" in page
    assert ("A report" in page) == is_owner
    assert "<style" not in page


@pytest.mark.parametrize(
    "address", ["JavaScript:alert(1)", " https://a", "file:///etc/passwd", "data:text/html,x", "//a"]
)
def test_only_addresses_of_the_web_become_links(address):
    assert not is_web_link(address)
    source = "{% if address is web_link %}link{% endif %}"
    assert environment().from_string(source).render(address="HTTPS://a") == "link"
