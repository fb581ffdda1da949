"""One page with every recipe: its command, what was expected, what came out, and how it stands."""

import os
from collections.abc import Sequence
from pathlib import Path

from cleanrank import __version__
from cleanrank.report.page import Safe, Td, asset, number, page, table, tag, write_page
from cleanrank.report.published import STATUSES, MatrixFigure, MatrixRow
from cleanrank.report.sections import command_block, theme_button
from cleanrank.report.shown import RULE, SHAPE_OF

AT_ONCE = 12  # figures of a recipe shown before the rest is folded away


def write_matrix(
    rows: Sequence[MatrixRow],
    path: str | os.PathLike[str],
    *,
    title: str = "Every recipe, expected and observed",
) -> Path:
    """Writes the matrix of recipes; the same rows give the same bytes.

    Colours come with a shape and a word: ``STATUSES`` lists them.
    """
    groups = dict.fromkeys(r.group for r in rows)
    body = [
        tag(
            "header",
            tag("div", tag("h1", title), theme_button(), class_="top"),
            tag("ul", *(_tally(rows, name) for name in STATUSES), class_="tally"),
            _overview(rows),
        ),
        tag("main", *(_group(name, [r for r in rows if r.group == name]) for name in groups)),
        tag(
            "footer",
            tag("p", RULE, class_="hint"),
            tag("p", f"Made with cleanrank {__version__}.", class_="hint"),
        ),
    ]
    return write_page(path, page(title, body, scripts=[asset("report.js")]))


def _status(name: str) -> Safe:
    status = STATUSES[name]
    return tag(
        "span", f"{status.shape} {status.word}", class_=f"status {status.colour}", title=status.meaning
    )


def _tally(rows: Sequence[MatrixRow], name: str) -> Safe:
    count = sum(r.status == name for r in rows)
    return tag("li", _status(name), f" {count} ", tag("span", STATUSES[name].meaning, class_="hint"))


def _overview(rows: Sequence[MatrixRow]) -> Safe:
    columns = [("Recipe", ""), ("Group", ""), ("Status", ""), ("Agree", ""), ("Differ", ""), ("Not run", "")]
    listed: list[list[Td | str]] = [
        [
            Td(tag("a", r.title, href=f"#{_anchor(r)}"), r.title),
            r.group or "–",
            Td(_status(r.status), str(list(STATUSES).index(r.status))),
            *(
                number(float(sum(f.verdict == w for f in r.rows)), ".0f")
                for w in ("agrees", "differs", "not run")
            ),
        ]
        for r in rows
    ]
    return table(columns, listed, caption="Recipes")


def _anchor(row: MatrixRow) -> str:
    return "recipe-" + "".join(c if c.isalnum() else "-" for c in row.recipe)


def _group(name: str, rows: Sequence[MatrixRow]) -> Safe:
    heading = tag("h2", name) if name else None
    return tag("section", heading, *(_recipe(r) for r in rows))


def _recipe(row: MatrixRow) -> Safe:
    shown, rest = row.rows[:AT_ONCE], row.rows[AT_ONCE:]
    content: list[object] = [
        tag("h3", row.title, _status(row.status)),
        tag("p", row.recipe, class_="hint"),
        command_block(row.command),
    ]
    if shown:
        content.append(_figures(shown, f"Figures of {row.title}"))
    if rest:
        more = tag("summary", f"{len(rest)} more figures")
        content.append(tag("details", more, _figures(rest, f"More figures of {row.title}")))
    return tag("article", *content, class_=f"recipe {STATUSES[row.status].colour}", id=_anchor(row))


def _figures(figures: Sequence[MatrixFigure], caption: str) -> Safe:
    columns = [("Figure", ""), ("Expected", ""), ("Observed", ""), ("Interval", ""), ("Verdict", "")]
    return table(columns, [_line(f) for f in figures], caption=caption)


def _line(figure: MatrixFigure) -> list[Td]:
    shape, kind = SHAPE_OF.get(figure.verdict, SHAPE_OF[""])
    interval = figure.interval
    return [
        Td(figure.what),
        number(figure.expected),
        number(figure.observed),
        Td(
            "–" if interval is None else f"{interval[0]:.4f} – {interval[1]:.4f}",
            interval and interval[0],
            "num",
        ),
        Td(tag("span", f"{shape} {figure.verdict}", class_=f"pill {kind}"), figure.verdict),
    ]
