"""The frame of a page: escaped markup, sortable tables, styles, scripts, and a policy that lets nothing in.

Text becomes markup in one place only, ``tag``: whatever is not ``Safe`` already is escaped. A page is one
file; its policy allows its own scripts and style by their hashes and no request at all.
"""

import base64
import hashlib
import html
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from cleanrank.data.files import written_whole

VOID = {"meta", "br", "hr", "input"}


class Safe(str):
    """Markup that needs no escaping."""

    __slots__ = ()


def escape(text: object) -> Safe:
    """Escapes a text unless it is Safe.

    >>> escape("<b>"), escape(Safe("<b>"))
    ('&lt;b&gt;', '<b>')
    """
    return text if isinstance(text, Safe) else Safe(html.escape(str(text), quote=True))


def tag(name: str, /, *children: object, **attributes: object) -> Safe:
    """One element; False and None attributes are left out, underscores become hyphens.

    >>> tag("a", "R & D", href="#x", class_="k", hidden=False)
    '<a href="#x" class="k">R &amp; D</a>'
    """
    written = "".join(
        f" {key.rstrip('_').replace('_', '-')}" + ("" if value is True else f'="{escape(value)}"')
        for key, value in attributes.items()
        if value is not None and value is not False
    )
    if name in VOID:
        return Safe(f"<{name}{written}>")
    return Safe(f"<{name}{written}>{joined(children)}</{name}>")


def joined(parts: Iterable[object]) -> Safe:
    """Markup put together."""
    return Safe("".join(escape(p) for p in parts if p is not None))


@dataclass(frozen=True)
class Td:
    """One cell of a table: what it shows, what it sorts by, its class."""

    shown: object
    value: float | str | None = None
    kind: str = ""


def number(value: float | None, form: str = ".4f", *, kind: str = "", absent: str = "–") -> Td:
    """A cell with a number, or a dash where there is none; a number that is not finite is none.

    >>> number(0.5).shown, number(None).shown, number(float("nan")).shown
    ('0.5000', '–', '–')
    """
    if value is None or value != value:
        return Td(absent, None, "num none")
    shown = f"{value:{form}}".replace("-", "−")
    return Td(shown, value, f"num {kind}".strip())


def table(
    columns: Sequence[tuple[str, str]],
    rows: Iterable[Sequence[Td | str]],
    *,
    caption: str,
    headed: int = 1,
    row_kinds: Sequence[str] = (),
) -> Safe:
    """A table whose columns can be sorted.

    Args:
        columns: (heading, explanation or "") of each.
        rows: one cell per column; a plain text stands for itself.
        caption: what the table holds.
        headed: how many columns, from the left, head a row; the last of them is the row's heading.
        row_kinds: a class for each row.
    """
    body = []
    numeric = [False] * len(columns)
    for i, row in enumerate(rows):
        cells = [c if isinstance(c, Td) else Td(c) for c in row]
        numeric = [n or c.kind.startswith("num") for n, c in zip(numeric, cells, strict=True)]
        made = [_td(c, heading=k == headed - 1) for k, c in enumerate(cells)]
        body.append(tag("tr", *made, class_=(row_kinds[i] if row_kinds else "") or None))
    head = [
        tag(
            "th",
            tag(
                "button",
                name,
                tag("span", class_="arrow", aria_hidden="true"),
                type="button",
                title=why or None,
            ),
            scope="col",
            aria_sort="none",
            class_="num" if is_number else None,
        )
        for (name, why), is_number in zip(columns, numeric, strict=True)
    ]
    inner = tag("table", tag("caption", caption), tag("thead", tag("tr", *head)), tag("tbody", *body))
    return tag("div", inner, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _td(cell: Td, *, heading: bool) -> Safe:
    value = f"{cell.value:.12g}" if isinstance(cell.value, float) else cell.value
    if heading:
        return tag("th", cell.shown, scope="row", data_v=value, class_=cell.kind or None)
    return tag("td", cell.shown, data_v=value, class_=cell.kind or None)


def asset(name: str) -> str:
    """The text of one of the files beside this module."""
    return resources.files("cleanrank.report").joinpath(f"assets/{name}").read_text("utf-8")


def data_block(name: str, value: Any) -> Safe:
    """JSON that a script of the page reads; it cannot end its element early."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for sign, code in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"), ("\u2028", "\\u2028")):
        text = text.replace(sign, code)
    return tag("script", Safe(text), type="application/json", id=name)


def page(title: str, body: Iterable[object], *, scripts: Sequence[str], extra_style: str = "") -> str:
    """The whole text of a page."""
    style = asset("report.css") + extra_style
    allowed = " ".join(_hash(s) for s in scripts)
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src {_hash(style)}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("style", Safe(style)),
    )
    written = joined(tag("script", Safe(s)) for s in scripts)
    document = tag("html", head, tag("body", *body, written), lang="en")
    return f"<!doctype html>\n{document}\n"


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode("utf-8")).digest()
    return f"'sha256-{base64.b64encode(digest).decode('ascii')}'"


def write_page(path: str | os.PathLike[str], text: str) -> Path:
    """Writes a page whole or not at all."""
    with written_whole(path) as part:
        part.write_bytes(text.encode("utf-8"))
    return Path(path)
