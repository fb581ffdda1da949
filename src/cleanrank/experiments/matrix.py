"""The reproduction matrix: every published figure, ours beside it, a verdict or the reason why there is none.

A number on the paper's own data *agrees* or *differs* (see ``report.published``). On other data only a
direction is judged: whether the figure lies on the same side of its reference, another row of the table, as
in the paper. A claim in words is judged by its checks. Results come from the files that travel with cleanrank
and from a store; nothing is computed and no data are needed.
"""

import functools
import math
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from cleanrank.data.catalogue import find
from cleanrank.errors import MissingDataError
from cleanrank.experiments.figures import Check, Figure, all_figures
from cleanrank.experiments.recipe import find_recipe, read_recipe
from cleanrank.experiments.sources import GENERATORS
from cleanrank.experiments.store import Store
from cleanrank.experiments.tracked import FOLDER, recall
from cleanrank.report.means import count_queries, mean_of
from cleanrank.report.published import AGREES, DIFFERS, NOT_RUN, Published, Z, judge, matching_row, tolerance
from cleanrank.report.summaries import Row, Summary, summarise
from cleanrank.report.table import canonical
from cleanrank.types import RunRecord

SAME, OPPOSITE = "same direction", "opposite direction"
ABSENT, WRONG = "not computable here", "wrong in the paper"
VERDICTS = (AGREES, DIFFERS, SAME, OPPOSITE, WRONG, ABSENT, NOT_RUN)
REAL, STAND_IN = "real", "stand-in"
NO_RECIPE = "No recipe measures it."
NO_COUNTERPART = "On other data only differences between rows are compared; this is the row others refer to."
Summaries: TypeAlias = Mapping[str, "Evidence"]


@dataclass(frozen=True)
class Line:
    """A figure of the matrix.

    Attributes:
        figure: what was published.
        verdict: one of VERDICTS.
        observed: our number, or our findings in words; None where there is none.
        low: the lower end of its 95 % interval.
        high: the upper end.
        data: "real", "stand-in" or None where nothing was measured.
        dataset: the data set that it was measured on.
        why: the size of a difference and its explanation, what a stand-in compares, or why nothing is there.
        recipe: the recipe that measures it.
        command: what runs it again.
        origin: the file the results came from, their day and the versions of packages.
        clear: whether a difference from the reference lies beyond its error; None where none was judged.
    """

    figure: Figure
    verdict: str
    observed: float | str | None = None
    low: float | None = None
    high: float | None = None
    data: str | None = None
    dataset: str = ""
    why: str = ""
    recipe: str = ""
    command: str = ""
    origin: Mapping[str, str] = field(default_factory=dict)
    clear: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """The line as JSON has it."""
        f = self.figure
        expected = f.value if f.relation == "=" and not f.printed else f.expected
        return {
            **dict(zip(("source", "table", "row", "column"), f.name, strict=True)),
            "expected": expected,
            **{name: getattr(self, name) for name in ("observed", "verdict", "data", "why")},
            "recipe": self.recipe or None,
            **{name: getattr(self, name) for name in ("low", "high", "dataset", "clear", "command")},
            "erratum": f.erratum or None,
            "facts": dict(f.facts),
            "origin": dict(self.origin),
        }


@dataclass(frozen=True)
class Evidence:
    """What is known of a recipe as far as figures need it."""

    name: str
    summary: Summary | None
    records: tuple[RunRecord, ...]
    tracked: frozenset[str]
    names: Mapping[str, str]  # label of a data set -> its name

    def row(self, figure: Figure | Published) -> Row | None:
        """The row that a figure asks for, whether complete or not."""
        if self.summary is None:
            return None
        return matching_row(self.summary, _asked(figure))

    def origin(self, figure: Figure) -> dict[str, str]:
        """Where the results behind a figure came from."""
        mine = [
            r
            for r in self.records
            if r.cell["dataset"] == figure.dataset and (figure.checks or r.cell["method"] == figure.method)
        ]
        if not mine:
            return {}
        travelled = {r.key in self.tracked for r in mine}
        places = [f"{FOLDER}/{self.name}.parquet"] * (True in travelled) + ["store"] * (False in travelled)
        versions = Counter(tuple(sorted(r.versions.items())) for r in mine).most_common(1)[0][0]
        days = sorted({r.started_at[:10] for r in mine if r.started_at})
        words = ", ".join(f"{package} {version}" for package, version in versions)
        return {"from": " and ".join(places), "ran": days[-1] if days else "", "versions": words}

    def command(self, dataset: str) -> str:
        """What runs the recipe again, on one of its data sets."""
        only = f" --only {shlex.quote(f'dataset={dataset}')}" if len(self.names) > 1 and dataset else ""
        return f"cleanrank reproduce {self.name}{only} --recompute"


def _asked(figure: Figure | Published) -> Published:
    """What to look up for a figure; the value does not matter."""
    return Published(
        figure.dataset, figure.method, canonical(figure.measure), 0.0, "", figure.noise, figure.rate
    )


def matrix(
    store: str | Path | None = None,
    *,
    results: str | Path | None = None,
    figures: Sequence[Figure] | None = None,
) -> list[Line]:
    """Every published figure with its verdict.

    Args:
        store: an existing file of runs of this machine; none unless given.
        results: the folder of results that travel; those that come with cleanrank unless given.
        figures: those to judge; all published ones unless given.

    Returns:
        One line per figure, in the order of the files.
    """
    figures = all_figures() if figures is None else tuple(figures)
    asked: dict[str, list[Figure]] = {}
    for figure in figures:
        for each in [figure, *(figure.on(other) for other in figure.stand_in)]:
            if each.recipe:
                asked.setdefault(each.recipe, []).append(each)
    runs = Store(store, create=False) if store is not None else None
    try:
        evidence = {name: _evidence(name, mine, runs, results) for name, mine in asked.items()}
    finally:
        if runs is not None:
            runs.__exit__()
    by_row: dict[tuple[str, str, str], list[Figure]] = {}
    for figure in figures:
        by_row.setdefault((figure.source, figure.table, figure.row), []).append(figure)
    return [_line(figure, evidence, by_row) for figure in figures]


def _evidence(
    name: str, figures: Sequence[Figure], store: Store | None, results: str | Path | None
) -> Evidence:
    recipe = read_recipe(find_recipe(name))
    known = recall(recipe, store, results)
    datasets = {text for f in figures for text in _texts(f, "dataset")}
    methods = {text for f in figures for text in _texts(f, "method")}
    measures = {canonical(text) for f in figures for text in _texts(f, "measure")}

    def needed(cell: Mapping[str, Any]) -> bool:
        return cell["dataset"] in datasets and cell["method"] in methods

    records = tuple(r for r in known.records if needed(r.cell))
    names = {data.label: data.name for data in recipe.data}
    if not any(r.status == "done" for r in records):
        return Evidence(name, None, records, known.tracked, names)
    shown = [m for m in recipe.measures if m in measures and any(m in r.means for r in records)]
    expected = [cell.inputs for cell in known.cells if needed(cell.inputs)]
    summary = summarise(records, measures=shown, expected=expected) if shown else None
    return Evidence(name, summary, records, known.tracked, names)


def _texts(figure: Figure, name: str) -> Iterable[str]:
    """The data sets, methods or measures that a figure and its checks name."""
    yield getattr(figure, name)
    for check in figure.checks:
        yield from (getattr(check, name) or getattr(figure, name), str(check.than.get(name, "")))


def _line(figure: Figure, evidence: Summaries, rows: Mapping[Any, Sequence[Figure]]) -> Line:
    lines = [_on_own_data(figure, evidence)] if figure.recipe else []
    if not lines or lines[0].observed is None:
        lines += [_on_other_data(figure, place, evidence, rows) for place in range(len(figure.stand_in))]
    measured = next((line for line in lines if line.observed is not None), None)
    line = _unmeasured(figure, lines) if measured is None else measured
    if figure.erratum:
        line = _wrong(line)
    return replace(line, why=f"{line.why} {figure.note}".strip())


def _wrong(line: Line) -> Line:
    """A figure that its erratum refutes; other data refute nothing, so what they gave is only mentioned."""
    if line.data != STAND_IN:
        return replace(line, verdict=WRONG)
    observed = f"{line.observed:.4f}" if isinstance(line.observed, float) else line.observed
    why = f"On {line.dataset}, a stand-in, it is {observed}. {line.why}"
    return replace(line, verdict=WRONG, observed=None, low=None, high=None, data=None, clear=None, why=why)


def _unmeasured(figure: Figure, lines: Sequence[Line]) -> Line:
    """A figure without one of ours: not run though it could, or out of reach."""
    waiting = next((line for line in lines if line.verdict == NOT_RUN), None)
    line = waiting or (lines[0] if lines else Line(figure, ABSENT, why=NO_RECIPE))
    why = " ".join(dict.fromkeys(w for w in (figure.why, line.why) if w))
    if figure.why and line.why == NO_RECIPE:
        why = figure.why
    return replace(line, why=why)


def _on_own_data(figure: Figure, evidence: Summaries) -> Line:
    known = evidence[figure.recipe]
    found = _holds(figure, known) if figure.checks else _number(figure, known)
    if found is None:
        return _lacking(figure, known)
    observed, low, high, sd, se, holds = found
    if holds is None:
        allowed = tolerance(sd, se, figure.decimals)
        verdict = judge(float(observed), float(figure.value), allowed, figure.relation)
        size = f"{float(observed) - float(figure.value):+.{max(figure.decimals, 2)}f}, allowed {allowed:.4f}."
        why = f"{size} {figure.why}".strip() if verdict == DIFFERS else ""
    else:
        verdict, why = (AGREES, "") if holds else (DIFFERS, figure.why)
    return replace(
        _blank(figure, known, REAL), verdict=verdict, observed=observed, low=low, high=high, why=why
    )


def _blank(figure: Figure, known: Evidence, data: str | None) -> Line:
    """A line with all but its verdict and figures."""
    return Line(
        figure,
        NOT_RUN,
        data=data,
        dataset=figure.dataset,
        recipe=figure.recipe,
        command=known.command(figure.dataset),
        origin=known.origin(figure),
    )


Found: TypeAlias = tuple[
    float | str, float | None, float | None, float | None, float | None, bool | None
]  # observed, low, high, seed_sd, query_se, whether all checks hold


def _number(figure: Figure, known: Evidence) -> Found | None:
    """Our number for a figure; None where its cells are not all done, or where words have no check."""
    row = known.row(figure)
    if row is None or row.state != "complete" or row.mean is None or isinstance(figure.value, str):
        return None
    if not figure.drop:
        return row.mean, row.low, row.high, row.seed_sd, row.query_se, None
    clean = known.row(replace(figure, rate=0.0))
    if clean is None or clean.state != "complete" or not clean.mean:
        return None
    drop, error = 1 - row.mean / clean.mean, _drop_error(figure, known)
    if error is None:
        error = math.hypot(*(e or 0.0 for r in (row, clean) for e in (r.query_se, r.seed_sd))) / clean.mean
    return drop, drop - Z * error, drop + Z * error, None, error, None


def _drop_error(figure: Figure, known: Evidence) -> float | None:
    """The standard error of a relative drop, from folds, in which the same queries have both labels.

    That of a ratio of means; None with fewer than three folds.
    """
    cells: dict[int, tuple[list[RunRecord], list[RunRecord]]] = {}
    for record in known.records:
        if (record.cell["dataset"], record.cell["method"], record.status) == (
            figure.dataset,
            figure.method,
            "done",
        ):
            noisy, clean = cells.setdefault(record.cell["fold"], ([], []))
            if record.cell["rate"] == 0.0:
                clean.append(record)
            elif (record.cell["noise"], record.cell["rate"]) == (figure.noise, figure.rate):
                noisy.append(record)
    measure = canonical(figure.measure)
    both = [(
        count_queries(clean[0], measure),
        *(float(np.mean([mean_of(r, measure) for r in some])) for some in (noisy, clean)),
    ) for noisy, clean in cells.values() if noisy and clean]  # fmt: skip
    if len(both) < 3:
        return None
    weight, noisy_mean, clean_mean = np.array(both, dtype=np.float64).T
    whole = weight @ clean_mean
    off = weight * (noisy_mean - (weight @ noisy_mean) / whole * clean_mean) / whole
    return float(np.sqrt((off**2).sum() * len(both) / (len(both) - 1)))


def _holds(figure: Figure, known: Evidence) -> Found | None:
    """The checks of a claim in words; None where a cell of one is not done."""
    words, held = [], []
    for check in figure.checks:
        own = {n: v for n in ("dataset", "method", "measure", "noise", "rate") if (v := getattr(check, n))}
        left = replace(figure, checks=(), **own) if check.rate != 0.0 else _clean(figure, own)
        than: dict[str, Any] = dict(check.than)
        right = replace(left, **than) if than else None
        rows = [known.row(each) for each in (left, right) if each is not None]
        if any(row is None or row.state != "complete" or row.mean is None for row in rows):
            return None
        means = [float(row.mean) for row in rows if row is not None and row.mean is not None]
        other = means[1] if right is not None else float(check.value or 0.0)
        held.append(_compare(means[0], other, check, rows[0]))
        words.append(_in_words(left, check, means[0], other, held[-1]))
    failing = [text for text, holds in zip(words, held, strict=True) if not holds]
    shown = "; ".join((failing or words)[:4])
    return f"{sum(held)} of {len(held)} hold: {shown}", None, None, None, None, all(held)


def _clean(figure: Figure, own: Mapping[str, Any]) -> Figure:
    return replace(figure, checks=(), **{**own, "rate": 0.0})


def _compare(left: float, right: float, check: Check, row: Row | None) -> bool:
    if check.relation in ("=", "~"):
        seed_sd, query_se = (None, None) if row is None else (row.seed_sd, row.query_se)
        return abs(left - right) <= tolerance(seed_sd, query_se, check.decimals) + 1e-12
    return left > right + check.margin if check.relation == ">" else left < right - check.margin


def _in_words(figure: Figure, check: Check, left: float, right: float, holds: bool) -> str:
    level = f" at {figure.rate:g}" if figure.rate else ""
    than = " ".join(f"{v:g}" if isinstance(v, float) else str(v) for v in check.than.values())
    sign = check.relation if holds else {">": "not >", "<": "not <"}.get(check.relation, "not =")
    said = f"{figure.measure} of {figure.method}{level}: {left:.4g} {sign} {than} {right:.4g}"
    return said.replace("  ", " ")


def _on_other_data(
    figure: Figure, place: int, evidence: Summaries, rows: Mapping[Any, Sequence[Figure]]
) -> Line:
    """Whether a figure lies on the same side of its reference as in the paper; never more than that."""
    asked = figure.on(figure.stand_in[place])
    known = evidence[asked.recipe]
    blank = replace(_blank(asked, known, STAND_IN), figure=figure)
    if asked.checks:
        found = _holds(asked, known)
        if found is None:
            return replace(_lacking(asked, known), figure=figure)
        words = _sentence(figure.stand_in[place].why)
        return replace(blank, verdict=SAME if found[5] else OPPOSITE, observed=found[0], why=words)
    reference = _reference(figure, rows)
    if isinstance(figure.value, str) or (reference is None and figure.relation not in ("<", ">")):
        return replace(blank, verdict=ABSENT, data=None, why=NO_COUNTERPART)
    number = _number(asked, known)
    if number is None:
        return replace(_lacking(asked, known), figure=figure)
    line = replace(blank, observed=number[0], low=number[1], high=number[2])
    words = _sentence(figure.stand_in[place].why)
    if reference is None:
        direction = judge(float(number[0]), figure.value, 0.0, figure.relation) == AGREES
        return replace(line, verdict=SAME if direction else OPPOSITE, why=words)
    base = reference.on(_like(reference, figure, place))
    there = _number(base, known)
    if there is None or isinstance(reference.value, str):
        return replace(_lacking(asked, known), figure=figure)
    published = round(figure.value - reference.value, max(figure.decimals, reference.decimals))
    ours = float(number[0]) - float(there[0])
    alike = _sign(published) == _sign(ours if published else round(ours, figure.decimals))
    error = _error(known.row(asked), known.row(base)) if not figure.drop else None
    spread = "" if error is None else f" (± {Z * error:.4f})"
    compared = f"Against {figure.reference}: {published:+.{figure.decimals}f} in the paper, {ours:+.4f} here"
    return replace(
        line,
        verdict=SAME if alike else OPPOSITE,
        why=f"{compared}{spread}. {words}".strip(),
        clear=None if error is None or not published else abs(ours) > Z * error,
    )


def _error(row: Row | None, base: Row | None) -> float | None:
    """The standard error of a difference over queries and seeds; of pairs where queries have values."""
    if row is None or base is None or row.query_se is None or base.query_se is None:
        return None
    seeds = math.hypot(row.seed_sd or 0.0, base.seed_sd or 0.0)
    if row.values is None or base.values is None or row.queries != base.queries:
        return math.hypot(row.query_se, base.query_se, seeds)
    gaps = (row.values - base.values)[~np.isnan(row.values - base.values)]
    return math.hypot(float(gaps.std(ddof=1)) / math.sqrt(len(gaps)), seeds) if len(gaps) > 1 else None


def _reference(figure: Figure, rows: Mapping[Any, Sequence[Figure]]) -> Figure | None:
    """The figure that another is compared with, of the same column where the table has it there.

    None where it has none, or is one itself.
    """
    same_row = rows.get((figure.source, figure.table, figure.reference), [])
    found = next((f for f in same_row if f.column == figure.column), same_row[0] if same_row else None)
    return None if found is None or found.name == figure.name else found


def _like(reference: Figure, figure: Figure, place: int) -> Any:
    """The stand-in of a reference that belongs to the figure's: its own, or else the figure's."""
    mine = figure.stand_in[place]
    own = [s for s in reference.stand_in if s.recipe == mine.recipe]
    return next((s for s in own if s.dataset == mine.dataset), own[0] if own else replace(mine, method=""))


def _sentence(text: str) -> str:
    """A text with a capital at its start and a full stop at its end."""
    return f"{text[0].upper()}{text[1:].rstrip('.')}." if text else ""


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)


def _lacking(figure: Figure, known: Evidence) -> Line:
    """A figure whose cells are not all done, with the reason."""
    line = _blank(figure, known, None)
    name = known.names.get(figure.dataset, "")
    if (absent := _absence(name)) is not None:
        return replace(line, verdict=ABSENT, why=absent)
    if isinstance(figure.value, str) and not figure.checks:
        return replace(line, verdict=ABSENT, why="A claim in words that no check stands for yet.")
    row = None if figure.checks else known.row(figure)
    done = f"{row.done} of {row.cells} cells have run" if row is not None else "no cell has run"
    return replace(line, verdict=NOT_RUN, why=f"{done.capitalize()}: run {line.command}")


@functools.cache
def _absence(name: str) -> str | None:
    """Why a data set cannot be used on this machine; None where it can."""
    if not name or name in GENERATORS:
        return None
    try:
        find(name)
    except MissingDataError:
        return f"Needs the official files of {name}, which are not here (cleanrank datasets show {name})."
    return None
