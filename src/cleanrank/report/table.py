"""One table value for the terminal, Markdown, LaTeX and web pages; evaluations and comparisons as tables.

A table holds texts. A cell may add the value that it shows, a style class and a richer form of its text.
Significance marks are made here too: one sign for p < .05, two for p < .01.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

from cleanrank.errors import CleanrankError, invalid
from cleanrank.metrics.comparison import Comparison
from cleanrank.metrics.evaluation import Evaluation
from cleanrank.metrics.measure import Measure
from cleanrank.types import plain

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

ABSENT = "–"
_MARKDOWN = {"\\": r"\\", "|": r"\|", "\n": " "}
_LATEX = {"&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
          "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "\\": r"\textbackslash{}"}  # fmt: skip


@dataclass(frozen=True)
class Cell:
    """A text and the value that it shows; for pages its classes and markup to show instead."""

    text: str
    value: float | str | None = None
    kind: str = ""
    html: "Markup | None" = None


Line: TypeAlias = list[str | Cell]


def number(value: float | None, form: str = ".4f", *, absent: str = ABSENT, kind: str = "") -> Cell:
    """A number with a real minus; None and NaN are a dash.

    >>> number(-0.5).text, number(None).text, number(float("nan"), absent="never").text
    ('−0.5000', '–', 'never')
    """
    if value is None or value != value:
        return Cell(absent, None, f"none {kind}".strip())
    return Cell(f"{value:{form}}".replace("-", "−"), float(value), kind)


@dataclass(frozen=True)
class Table:
    r"""A table before it is printed.

    Attributes:
        head: the headings.
        rows: a text or Cell for each heading.
        caption: what the table holds; shown by pages alone.
        align: "l" or "r" for each column; "" aligns the row headings left and all others right.
        headed: how many columns, from the left, name a row.
        explained: heading -> what it means; a tooltip of pages.
        notes: remarks below the table; a page shows them where it likes.
        row_kinds: style classes of the rows.

    >>> print(Table(("a", "n"), [("x", "10"), ("y|z", "9")]).markdown(), end="")
    | a | n |
    | :-- | --: |
    | x | 10 |
    | y\|z | 9 |
    """

    head: Sequence[str]
    rows: Sequence[Sequence["str | Cell"]]
    caption: str = ""
    align: str = ""
    headed: int = 1
    explained: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    row_kinds: Sequence[str] = ()

    def __post_init__(self) -> None:
        n = len(self.head)
        if not self.align:
            object.__setattr__(self, "align", ("l" * self.headed).ljust(n, "r"))
        for row in self.rows:
            if len(row) != n:
                raise invalid("a row of a table", f"must have a cell for each of {n} headings", len(row))

    @classmethod
    def of(
        cls, records: Iterable[Mapping[str, Any]], columns: Sequence[Sequence[str]], **options: Any
    ) -> "Table":
        """A table of plain records.

        Args:
            records: one per row.
            columns: (heading, key, format, explanation, text for None) each, of which the last three may be
                left out; "limits.bend" leads into a nested record, "low..high" shows two values; columns
                without a format are words.
            options: further fields of the table.

        >>> print(Table.of([{"x": {"y": 0.25}, "n": "b"}], [("name", "n"), ("share", "x.y", ".0%")]))
        name  share
        b       25%
        """
        columns = [(*c, *("", "", "", ABSENT)[len(c) - 1 :]) for c in columns]
        rows = [[_cell(r, key, form, absent) for _, key, form, _, absent in columns] for r in records]
        return cls(
            [c[0] for c in columns],
            rows,
            align="".join("r" if c[2] else "l" for c in columns),
            explained={c[0]: c[3] for c in columns if c[3]},
            **options,
        )

    def without(self, *headings: str) -> "Table":
        """The table without some columns that name no row."""
        keep = [i for i, name in enumerate(self.head) if name not in headings]
        rows = [[row[i] for i in keep] for row in self.rows]
        align = "".join(self.align[i] for i in keep)
        return replace(self, head=[self.head[i] for i in keep], rows=rows, align=align)

    @property
    def cells(self) -> list[list[Cell]]:
        """The rows, all of cells."""
        return [[c if isinstance(c, Cell) else Cell(c) for c in row] for row in self.rows]

    @property
    def texts(self) -> list[list[str]]:
        """The rows, all of texts."""
        return [[c.text for c in row] for row in self.cells]

    def text(self) -> str:
        """Columns in line."""
        lines = [list(self.head), *self.texts]
        widths = [max(len(line[i]) for line in lines) for i in range(len(self.head))]

        def line_of(line: Sequence[str]) -> str:
            padded = zip(line, widths, self.align, strict=True)
            return "  ".join(t.ljust(w) if a == "l" else t.rjust(w) for t, w, a in padded).rstrip()

        return "\n".join([*map(line_of, lines), *self.notes])

    __str__ = text

    def markdown(self) -> str:
        """A Markdown table; notes become a paragraph or a list below it."""
        rule = [":--" if a == "l" else "--:" for a in self.align]
        head, *rows = ([_replaced(t, _MARKDOWN) for t in line] for line in (self.head, *self.texts))
        table = "".join(f"| {' | '.join(line)} |\n" for line in (head, rule, *rows))
        bullet = "- " if len(self.notes) > 1 else ""
        text = table + "\n" * bool(self.notes) + "".join(f"{bullet}{note}\n" for note in self.notes)
        return re.sub(r"<(?=[A-Za-z/!?])", "&lt;", text)  # no markup

    def latex(self) -> str:
        """A LaTeX table for the package booktabs; notes become comments."""
        lines = (" & ".join(_replaced(t, _LATEX) for t in line) + r" \\" for line in (self.head, *self.texts))
        head, *rows = lines
        top, end = rf"\begin{{tabular}}{{{self.align}}}", r"\end{tabular}"
        notes = [f"% {note}" for note in self.notes]
        return "\n".join([top, r"\toprule", head, r"\midrule", *rows, r"\bottomrule", end, *notes, ""])

    def html(self) -> "Markup":
        """A table of a page."""
        from markupsafe import Markup

        worded = max((len(row[0]) for row in self.texts), default=0) > 14  # long names
        return Markup(templates().get_template("table.html").render(table=self, worded=worded))

    __html__ = html  # so that {{ table }} in a template is its markup


def _cell(record: Mapping[str, Any], key: str, form: str, absent: str) -> Cell:
    if ".." in key:
        low, high = (_cell(record, part, form, absent) for part in key.split(".."))
        return low if low.value is None else Cell(f"{low.text} to {high.text}", low.value)
    value: Any = record
    for part in key.split("."):
        value = value[part]
    if form:
        return number(value, form, absent=absent)
    return Cell(absent if value is None else str(value))


def _replaced(text: str, signs: Mapping[str, str]) -> str:
    return "".join(signs.get(c, c) for c in text)


@cache
def templates(*, escaped: bool = True) -> "Environment":
    """The templates of pages, in which whatever is not markup already is escaped, or those of texts."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("cleanrank.report"),
        autoescape=escaped,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.globals["table"] = Table.of
    made.filters["number"] = lambda value, form=".4f", absent=ABSENT: number(value, form, absent=absent).text
    made.filters["many"] = many
    made.filters["marked"] = marked
    made.filters["shares"] = shares
    made.filters["plain_number"] = lambda v: number(v, ",.0f" if v is None or v == int(v) else ".4g").text
    return made


def many(n: int, thing: str, things: str = "") -> str:
    """A number and its noun.

    >>> many(1, "label"), many(2_000, "label"), many(3, "query", "queries")
    ('1 label', '2,000 labels', '3 queries')
    """
    return f"{n:,} {thing}" if n == 1 else f"{n:,} {things or thing + 's'}"


def marked(text: str) -> "Markup":
    """A text of a page with what stands between backticks as code.

    >>> marked("see `cleanrank plan` & <b>")
    Markup('see <code>cleanrank plan</code> &amp; &lt;b&gt;')
    """
    from markupsafe import Markup, escape

    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def shares(values: Sequence[float], form: str = ".3g") -> str:
    """Shares in percent.

    >>> shares([0.517, 0.483])
    '51.7 : 48.3'
    """
    return " : ".join(f"{100 * v:{form}}" for v in values)


def mark(p: float | None, sign: str = "*") -> str:
    """The mark of a p-value: one sign for p < .05, two for p < .01.

    >>> mark(0.04), mark(0.001, "▲"), mark(0.2), mark(None)
    ('*', '▲▲', '', '')
    """
    return "" if p is None or not p < 0.05 else sign * (1 + (p < 0.01))


def canonical(measure: str) -> str:
    """The text under which a measure's values are kept; a text that is no measure of ours stays as it is.

    >>> canonical("NDCG@10:lightgbm"), canonical("clicks per view")
    ('ndcg@10', 'clicks per view')
    """
    try:
        return str(Measure.parse(measure))
    except CleanrankError:
        return measure


def convention(measure: str) -> str:
    """What a measure's text stands for, in words; a text that is no measure of ours stands for itself.

    >>> convention("clicks per view")
    'clicks per view'
    """
    try:
        return Measure.parse(measure).describe()
    except CleanrankError:
        return measure


def evaluation_table(evaluation: Evaluation, digits: int = 4, *, level: float = 0.95, seed: int = 0) -> Table:
    """A row per measure: its mean, interval and the queries that count.

    >>> from cleanrank.metrics import evaluate_arrays
    >>> print(evaluation_table(evaluate_arrays([0, 1], [2.0, 1.0], [0, 2], "mrr")).markdown().splitlines()[2])
    | mrr | 0.5000 | [0.5000, 0.5000] | 1 |
    """
    rows = []
    for (name, mean), (low, high) in zip(
        evaluation.means.items(), evaluation.intervals(level, seed).values(), strict=True
    ):
        used = int((evaluation[name] == evaluation[name]).sum())
        interval = f"[{_figure(low, digits)}, {_figure(high, digits)}]"
        rows.append([name, _figure(mean, digits), interval, f"{used:,}"])
    notes = [m.describe() for m in evaluation.measures]
    return Table(("measure", "mean", f"{100 * level:g}% interval", "queries"), rows, notes=notes)


def comparison_table(comparison: Comparison, digits: int = 4, *, long: bool = False) -> Table:
    """A row per system and a column per measure, marked against the baseline.

    ``long`` gives a row per system and measure with intervals, both p-values and wins, ties and losses.
    """
    notes = [m.describe() for m in comparison.measures]
    if long:
        level = f"{100 * comparison.settings['level']:g}% interval"
        long_head = ("system", "measure", "mean", "difference", level, "p", "p (Holm)", "won/tied/lost")
        rows = [_long_row(row, digits) for row in comparison.rows()]
        return Table(long_head, rows, headed=2, notes=[*notes, f"Against {_test(comparison)}."])
    by_system: dict[str, list[str]] = {}
    for row in comparison.rows():
        text = _figure(row["mean"], digits)
        if not row["baseline"]:
            p = row["p"] if row["p_corrected"] is None else row["p_corrected"]
            text += f"{mark(p)} ({row['difference']:+.{digits}f}, p={p:.3g})"
        by_system.setdefault(row["system"], []).append(text)
    head = ("system", *(str(m) for m in comparison.measures))
    notes.append(f"* p < .05, ** p < .01 against {_test(comparison)}.")
    return Table(head, [[system, *texts] for system, texts in by_system.items()], notes=notes)


def _test(comparison: Comparison) -> str:
    s = comparison.settings
    randomised = f"Fisher's randomisation test ({s['permutations']} permutations, seed {s['seed']})"
    test = randomised if s["test"] == "fisher" else "paired t-test"
    corrected = ", Holm's correction" if s["correction"] else ""
    return f"{comparison.baseline}: {test}, {s['alternative']}{corrected}"


def _long_row(row: Mapping[str, Any], digits: int) -> list[str]:
    names = [row["system"], row["measure"], _figure(row["mean"], digits)]
    if row["baseline"]:
        return [*names, "baseline", "", "", "", ""]
    return [
        *names,
        f"{row['difference']:+.{digits}f}",
        f"[{row['low']:+.{digits}f}, {row['high']:+.{digits}f}]",
        f"{row['p']:.2g}",
        "" if row["p_corrected"] is None else f"{row['p_corrected']:.2g}",
        f"{row['wins']}/{row['ties']}/{row['losses']}",
    ]


def _figure(value: float, digits: int) -> str:
    return "-" if math.isnan(value) else f"{value:.{digits}f}"


def to_json(result: Evaluation | Comparison, per_query: bool = False) -> str:
    """JSON with means, intervals and tests, and with the values of every query if asked; NaN becomes null.

    >>> from cleanrank.metrics import evaluate_arrays
    >>> json.loads(to_json(evaluate_arrays([0, 1], [2.0, 1.0], [0, 2], "mrr")))["means"]
    {'mrr': 0.5}
    """
    values: dict[str, Any]
    by_query: dict[str, Any]
    if isinstance(result, Evaluation):
        queries = result.query_ids
        values = {"means": result.means, "intervals": result.intervals(), "queries": len(queries)}
        by_query = {text: result[text] for text in result}
    else:
        queries = result.evaluations[result.baseline].query_ids
        values = {"baseline": result.baseline, "settings": dict(result.settings), "rows": result.rows()}
        by_query = {name: {t: e[t] for t in e} for name, e in result.evaluations.items()}
    values["conventions"] = {str(m): m.describe() for m in result.measures}
    if per_query:
        values |= {"query_ids": [str(q) for q in queries], "values": by_query}
    return json.dumps(plain(values), indent=2, allow_nan=False) + "\n"
