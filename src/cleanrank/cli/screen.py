"""What commands share: options, and how results, notes and progress are shown.

A result is tables on stdout with notes on stderr, or one JSON document on stdout.
"""

import functools
import inspect
import json
import shlex
import shutil
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table as RichTable

from cleanrank.data.spreadsheet import checked_delimiter
from cleanrank.errors import invalid
from cleanrank.report.table import Table
from cleanrank.types import plain

# A pipe or a file gets whole lines; only a terminal's width may fold a table.
WIDE = 200
LINE_SECONDS = 5.0
# What pipes brought; ``main`` removes it at its end.
SPOOL = ExitStack()
READ_ONCE: set[str] = set()
SPOOLED: set[Path] = set()


def piped(value: Any) -> Any:
    """The path of an input; of a pipe (``-``, /dev/stdin, ``<(...)``) that of a file with all it brought.

    It is the callback of every argument and option that names an input.
    """
    if isinstance(value, list | tuple):
        return [piped(each) for each in value]
    path = None if value is None else Path(value)
    if path is None or (str(path) != "-" and not path.is_fifo()):
        return path
    name = "stdin" if str(path) in ("-", "/dev/stdin") else "pipe"
    if name in READ_ONCE:
        raise invalid("stdin", "must be named once", "a second input from it", remedy="Name a file.")
    if name == "stdin":
        READ_ONCE.add(name)
        SPOOL.callback(READ_ONCE.clear)
    spool = Path(SPOOL.enter_context(tempfile.TemporaryDirectory(prefix="cleanrank-")), name)
    SPOOLED.add(spool)
    with sys.stdin.buffer if str(path) == "-" else path.open("rb") as pipe, spool.open("wb") as file:
        shutil.copyfileobj(pipe, file)
    return spool


def own_page(page: Path) -> bool:
    """Whether a file is a page that cleanrank wrote, which a later run may replace."""
    return page.is_file() and b'name="generator" content="cleanrank' in page.read_bytes()[:4096]


def check_page(html: Path | None, inputs: Sequence[Any], force: bool) -> None:
    """Raises unless a page may be written there: a new file, one of our own pages, or with --force."""
    from cleanrank.data.files import PAGES, check_outputs

    may_replace = force or (html is not None and own_page(html))
    check_outputs(html, inputs=inputs, force=may_replace, suffixes=PAGES)


def in_option(metavar: str, description: str) -> Any:
    """An option that names a file to read."""
    return typer.Option(metavar=metavar, help=description, callback=piped)


LABELS = "TREC qrels, or a table (.csv, .xlsx, .parquet) with qid, docid and grade"
DATA_FORMATS = "LETOR/SVMlight, CSV, Parquet, others (see convert); - reads stdin"
Data = Annotated[Path, typer.Argument(metavar="DATA", help=f"Judged data: {DATA_FORMATS}.", callback=piped)]
Seed = Annotated[int, typer.Option(min=0, help="Same seed, same result.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Threads.")]
Scheduler = Annotated[
    str | None,
    typer.Option(metavar="ADDRESS", help="Train trees on this Dask cluster, as in tcp://host:8786."),
]
Force = Annotated[bool, typer.Option("--force", help="Overwrite existing files.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Html = Annotated[Path | None, typer.Option("--html", help="Also write a page of one file.")]
Level = Annotated[float, typer.Option(min=0.5, max=0.999, help="Level of the intervals.")]
GoldColumns = Annotated[
    str | None,
    typer.Option(
        metavar="ROLE=NAME,...",
        help="Headings of the gold file that are not usual ones, as in query=Search,doc=URL,grade=Mark.",
    ),
]
Runs = Annotated[
    list[Path] | None,
    in_option("RUN", "Systems: a TREC file (of several, told apart by their tags) or a folder; repeatable."),
]
Options = Annotated[
    list[str] | None,
    typer.Option("--option", metavar="NAME=VALUE", help="A further setting by its name; repeatable."),
]


COLUMN_OPTIONS = {
    "label": Annotated[str | None, typer.Option(help="Column of grades in CSV or Parquet; else label.")],
    "qid": Annotated[str | None, typer.Option(help="Column of query ids in CSV or Parquet; else qid.")],
    "doc_id": Annotated[
        str | None, typer.Option(help="Column of document ids; else doc_id, if there is one.")
    ],
    "features": Annotated[
        list[str] | None,
        typer.Option(metavar="NAME,...", help="Columns of features; else all others that hold numbers."),
    ],
    "gains": Annotated[
        str | None, typer.Option(help="Column of real-valued gains; else gain, if there is one.")
    ],
    "distribution": Annotated[
        list[str] | None,
        typer.Option(metavar="NAME,...", help="Columns with the share of every grade from 0: soft grades."),
    ],
    "delimiter": Annotated[
        str | None, typer.Option(help="Of a text table; else the one that its header holds most.")
    ],
    "ratings": Annotated[
        str | None,
        typer.Option(metavar="RULE", help="Ratings as grades: whole, levels, even:N or cuts such as .2,.5."),
    ],
}


LISTED = {"features", "distribution"}
TABLES = " ".join(COLUMN_OPTIONS)
# The options of ``read_data`` that were given.
Columns = dict[str, Any]


def with_columns(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the COLUMN_OPTIONS; those that are given reach it as ``columns``."""

    @functools.wraps(command)
    def run(**arguments: Any) -> None:
        given = {name: arguments.pop(name) for name in COLUMN_OPTIONS}
        names = {name: value for name, value in given.items() if value}
        for name in LISTED & names.keys():
            names[name] = [part.strip() for text in names[name] for part in text.split(",")]
        if "delimiter" in names:
            names["delimiter"] = checked_delimiter(names["delimiter"])
        command(**arguments, columns=names)

    signature = inspect.signature(command)
    own = [parameter for name, parameter in signature.parameters.items() if name != "columns"]
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in COLUMN_OPTIONS.items()
    ]
    # Typer reads options off the signature.
    run.__signature__ = signature.replace(parameters=[*own, *added])  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in (*own, *added)}
    return run


def refuse(context: typer.Context, names: str, rule: str, *value: Any) -> None:
    """Raises where one of some options (by the names of their arguments) was typed and nothing reads it."""
    for parameter in context.command.params:
        source = context.get_parameter_source(str(parameter.name))
        if parameter.name in names.split() and source is not None and source.name == "COMMANDLINE":
            raise invalid(max(parameter.opts, key=len), rule, *value)


def command(*words: str | Path, columns: Columns) -> str:
    """A command to type next, with the column options of this one; a pipe's content is ``-`` again.

    >>> command("gold", "read", "a sheet.csv", "shop.csv", columns={"features": ["a", "b c"]})
    "cleanrank gold read 'a sheet.csv' shop.csv --features 'a,b c'"
    """
    from cleanrank.data.tables import column_options

    texts = ["-" if Path(word) in SPOOLED else str(word) for word in words]
    return shlex.join(["cleanrank", *texts, *column_options(columns)])


def out_file(metavar: str, description: str) -> Any:
    """The option that names the file to write."""
    return typer.Option("--out", "-o", metavar=metavar, help=description)


def parse_options(texts: list[str] | None, reserved: Iterable[str] = ()) -> dict[str, Any]:
    """NAME=VALUE pairs; values are numbers, JSON, lists (1,2,3 or [1, 2, 3]) or words.

    Args:
        texts: the pairs.
        reserved: names that the command itself gives.

    >>> parse_options(["rho=.3", "row_weights=1,2,2", "way=second"])
    {'rho': 0.3, 'row_weights': [1.0, 2.0, 2.0], 'way': 'second'}
    """
    options = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise invalid("--option", "must read NAME=VALUE", repr(text), remedy="As in --option rho=.3.")
        own = name.strip().replace("-", "_")
        if own in reserved:
            raise invalid("--option", "must not name what the command itself sets", repr(text))
        options[own] = _value(value.strip())
    return options


def detector_options(texts: list[str] | None) -> dict[str, Any]:
    """``--option`` of a detector: what ``find_label_issues`` has no argument for, but for the noise."""
    from cleanrank.issues.find import find_label_issues

    own = {*inspect.signature(find_label_issues).parameters, "n_jobs", "progress"} - {"noise", "options"}
    return parse_options(texts, own)


def _value(text: str) -> Any:
    for parse in (int, float, json.loads, lambda t: [float(part) for part in t.split(",")]):
        try:
            return parse(text)
        except (ValueError, RecursionError):
            continue
    return text


def parse_columns(option: str, text: str | None) -> dict[str, str] | None:
    """ROLE=NAME pairs with commas between them.

    >>> parse_columns("--gold-columns", "query=Search term,doc=URL")
    {'query': 'Search term', 'doc': 'URL'}
    """
    pairs = [part.partition("=") for part in (text or "").split(",") if part]
    if any(not (role.strip() and name.strip()) for role, _, name in pairs):
        raise invalid(
            option, "must read ROLE=NAME,ROLE=NAME", repr(text), remedy="As in query=Search,doc=URL."
        )
    return {role.strip(): name.strip() for role, _, name in pairs} or None


def parse_numbers(name: str, text: str, separator: str = ",") -> list[float]:
    """Numbers with a separator between them.

    >>> parse_numbers("--proportions", "70:16:14", ":")
    [70.0, 16.0, 14.0]
    """
    try:
        return [float(part) for part in text.split(separator)]
    except ValueError:
        raise invalid(name, f"must be numbers joined by {separator!r}", repr(text)) from None


def console() -> Console:
    """Stdout, where texts stay as they are: a name such as ``bm25[k1]`` or ``:x:`` is no markup."""
    width = None if sys.stdout.isatty() else WIDE
    return Console(width=width, highlight=False, markup=False, emoji=False)


def note(text: str) -> None:
    """A remark: stderr."""
    typer.echo(text, err=True)


def show_warnings() -> None:
    """Makes warnings of the library remarks on stderr, each once."""
    shown: set[str] = set()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        if str(message) not in shown:
            shown.add(str(message))
            typer.secho(f"warning: {message}", err=True, fg="yellow")

    warnings.showwarning = show


def print_json(value: Any) -> None:
    """One JSON document on stdout; NaN becomes null."""
    typer.echo(json.dumps(plain(value), indent=2, allow_nan=False))


def show_table(table: Table) -> None:
    """A table on stdout under its caption, its notes on stderr."""
    rich = RichTable(
        title=table.caption or None, title_justify="left", header_style="bold", box=None, pad_edge=False
    )
    for heading, align in zip(table.head, table.align, strict=True):
        rich.add_column(heading, justify="left" if align == "l" else "right", overflow="fold")
    for row in table.texts:
        rich.add_row(*row)
    console().print(rich)
    for text in table.notes:
        note(text)


def show(record: Any, as_json: bool, *parts: Table | str) -> None:
    """The record as JSON, or else tables on stdout, with a line between them, and texts on stderr."""
    if as_json:
        print_json(record)
        return
    first = True
    for part in parts:
        if isinstance(part, str):
            note(part)
            continue
        if not first:
            typer.echo()
        show_table(part)
        first = False


def facts(record: Mapping[str, Any], heading: str = "", align: str = "lr") -> Table:
    """A table of names and values; None is left out."""
    rows = [(name, text_of(value)) for name, value in record.items() if value is not None]
    return Table(("", heading), rows, align=align)


def text_of(value: Any) -> str:
    """A value as tables show it.

    >>> text_of(12345), text_of(0.25), text_of("as it is")
    ('12,345', '0.2500', 'as it is')
    """
    if isinstance(value, bool | str) or not isinstance(value, int | float):
        return str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.4f}"


@contextmanager
def progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on a terminal's stderr, silence elsewhere; yields ``tick(done, total)``."""
    stderr = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def steps(count: int) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for work of several named steps; yields ``tick(step, done, total)``.

    The bar shows steps done and, within a step that knows its size, how far it is. Elsewhere than on a
    terminal each step is one line on stderr.
    """
    stderr = Console(stderr=True)
    place = TextColumn("{task.fields[place]}")
    columns = (place, BarColumn(), TimeElapsedColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as bar:
        task = bar.add_task("", total=count, place="")
        seen: list[str] = []

        def tick(step: str, done: int, total: int) -> None:
            if step not in seen:
                seen.append(step)
                if not stderr.is_terminal:
                    note(f"{step} ...")
            part = min(done / total, 1.0) if total else 0.0
            bar.update(task, completed=len(seen) - 1 + part, description=step, place=f"{len(seen)}/{count}")

        yield tick


@contextmanager
def counter(title: str) -> Iterator[Callable[[int, int, str], None]]:
    """A bar on a terminal, a line now and then elsewhere; yields ``tick(done, total, words)``."""
    stderr = Console(stderr=True)
    last = time.monotonic()
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[words]}"))
    with Progress(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as bar:
        task = bar.add_task(title, total=None, words="")

        def tick(done: int, total: int, words: str) -> None:
            nonlocal last
            bar.update(task, completed=done, total=total, words=words)
            if not stderr.is_terminal and time.monotonic() - last >= LINE_SECONDS:
                last = time.monotonic()
                note(words)

        yield tick
