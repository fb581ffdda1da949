"""Every published figure, from the files of ``published/``, and which result of which recipe stands for it.

A file holds groups. A group has the fields of ``Figure`` that its figures share, and ``figures``, a list of
short tables with the rest::

    [[group]]
    source = "Marcuzzi et al. (2022)"
    table = "Tab. 6"
    column = "MSLR-30K NDCG@10"
    decimals = 4
    recipe = "sour/table6"      # measures it on the paper's own data; absent where nothing can
    dataset = "MSLR-WEB30K"     # labels of the recipe
    measure = "ndcg@10"
    reference = "p-SOUR 10%"    # stand-ins: the row of the same column that others are compared with
    figures = [
      { row = "p-SOUR 10%", value = 0.5169, method = "p-SOUR 10%", facts = { trees = 676 } },
    ]
    [[group.stand_in]]          # the same question on other data
    recipe = "sour/here-table6"
    dataset = "MSLR sample"
    methods = { "p-SOUR 10%" = "p-SOUR, p=.1" }

A number is judged by ``value`` and ``decimals`` (``relation`` ">" or "<" for bounds, "~" for about), a claim
in words by its ``checks``. What a stand-in lacks, it has from the figure.
"""

import functools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any, Literal, TypeAlias

from cleanrank.errors import invalid
from cleanrank.experiments.toml import check_table, known, read_toml, typed
from cleanrank.report.published import Published

FOLDER = "published"
PAPERS = ("sour", "peerrank", "niu", "haddad", "letor")
Relation: TypeAlias = Literal["=", "~", ">", "<"]


@dataclass(frozen=True)
class Check:
    """One comparison of a claim; fields that are empty are the figure's.

    Attributes:
        relation: of the result to ``value``, or to the result that ``than`` describes.
        value: a number to compare with.
        decimals: digits that "=" and "~" look at.
        than: the fields in which the other result differs from this one, as in ``{ method = "ranknet" }``.
        margin: how much larger or smaller it must be.
        dataset: label of the data set.
        method: label of the method.
        measure: text of the measure.
        noise: kind of noise.
        rate: noise rate.
    """

    relation: Relation
    value: float | None = None
    decimals: int = 2
    than: Mapping[str, str | float] = field(default_factory=dict)
    margin: float = 0.0
    dataset: str = ""
    method: str = ""
    measure: str = ""
    noise: str | None = None
    rate: float | None = None


@dataclass(frozen=True)
class StandIn:
    """Other data on which the question of a figure is asked; empty fields are the figure's own.

    Attributes:
        recipe: what measures it.
        dataset: label of the recipe's data set.
        method: label of the method, for one figure.
        measure: text of the measure.
        noise: kind of noise.
        rate: noise rate.
        fold: one fold.
        methods: label that the figure names -> label of the stand-in's recipe.
        checks: of claims; the figure's unless given.
        why: what differs from the paper's data and settings.
    """

    recipe: str
    dataset: str
    method: str = ""
    measure: str = ""
    noise: str | None = None
    rate: float | None = None
    fold: int | None = None
    methods: Mapping[str, str] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Figure:
    """A published number or claim.

    Attributes:
        source: the paper.
        table: its table, figure or section.
        row: what the row says.
        column: what the column says.
        value: the number, or the claim in words.
        decimals: digits printed after the point.
        relation: what is said of the number.
        printed: how the paper prints the number, where that differs from ``value``.
        facts: what else the table says of it.
        recipe: the recipe that measures it on the paper's own data; empty where none can.
        dataset: label of the recipe's data set.
        method: label of the method; the row's unless given.
        measure: text of the measure.
        noise: kind of noise; None means clean labels.
        rate: noise rate.
        fold: one fold; None means all.
        drop: whether it is a relative drop, 1 - the mean / that of clean labels.
        reference: the row that stand-ins compare with.
        checks: the comparisons that a claim in words comes to.
        stand_in: other data, the nearest first.
        why: why it differs, or cannot be computed here.
        note: what a reader should know whatever the verdict.
        erratum: the anchor of docs/errata.md that shows it wrong.
    """

    source: str
    table: str
    row: str
    column: str
    value: float | str
    decimals: int = 4
    relation: Relation = "="
    printed: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
    recipe: str = ""
    dataset: str = ""
    method: str = ""
    measure: str = ""
    noise: str | None = None
    rate: float | None = None
    fold: int | None = None
    drop: bool = False
    reference: str = ""
    checks: tuple[Check, ...] = ()
    stand_in: tuple[StandIn, ...] = ()
    why: str = ""
    note: str = ""
    erratum: str = ""

    @property
    def name(self) -> tuple[str, str, str, str]:
        """Source, table, row and column, which no other figure shares."""
        return self.source, self.table, self.row, self.column

    @property
    def expected(self) -> str:
        """The figure as the paper prints it."""
        if self.printed or isinstance(self.value, str):
            return self.printed or str(self.value)
        return f"{'' if self.relation == '=' else self.relation}{self.value:.{self.decimals}f}"

    @property
    def published(self) -> Published | None:
        """The number as the pages of its recipe show it; None for claims, drops and what no recipe has."""
        if isinstance(self.value, str) or self.drop or not (self.recipe and self.dataset and self.measure):
            return None
        return Published(
            dataset=self.dataset,
            method=self.method,
            measure=self.measure,
            value=self.value,
            source=f"{self.source}, {self.table}",
            noise=self.noise,
            rate=self.rate,
            fold=self.fold,
            decimals=self.decimals,
            relation=self.relation,
        )

    def on(self, other: StandIn) -> "Figure":
        """The figure as asked on other data."""
        method = other.method or other.methods.get(self.method, self.method)
        given = {name: getattr(other, name) for name in ("measure", "noise", "rate", "fold", "checks", "why")}
        changes = {name: value for name, value in given.items() if value not in ("", None, ())}
        return replace(self, recipe=other.recipe, dataset=other.dataset, method=method, **changes)


@functools.cache
def all_figures() -> tuple[Figure, ...]:
    """The published figures that come with cleanrank, paper by paper.

    Returns:
        Figures in the order of the files.

    >>> sum(f.table == "Tab. 5" and f.source.startswith("Marcuzzi") for f in all_figures())
    42
    """
    folder = Path(str(package_files("cleanrank.experiments") / FOLDER))
    figures = [figure for paper in PAPERS for figure in read_figures(folder / f"{paper}.toml")]
    return tuple(_distinct(figures))


def figures_of(recipe: str) -> tuple[Figure, ...]:
    """The figures that a recipe measures on the paper's own data."""
    return tuple(f for f in all_figures() if f.recipe == recipe)


def read_figures(path: Path) -> tuple[Figure, ...]:
    """Reads a file of published figures; an error names the group, the figure and the key.

    Args:
        path: a TOML file.

    Returns:
        The figures, in the order of the file.
    """
    _, values = read_toml(path)
    figures = []
    for i, group in enumerate(values.get("group", [])):
        place = f"{path.name}: group[{i}]."
        shared = {key: value for key, value in group.items() if key != "figures"}
        for j, entry in enumerate(group.get("figures", [])):
            figures.append(_figure({**shared, **entry}, f"{place}figures[{j}]."))
    return tuple(_distinct(figures))


def _figure(values: dict[str, Any], place: str) -> Figure:
    check_table(values, Figure, place)
    figure: Figure = typed(values, Figure, place)
    for i, check in enumerate(figure.checks):
        for key in check.than:
            known("key", key, ("dataset", "method", "measure", "noise", "rate"), f"{place}checks[{i}].than.")
    return figure if figure.method else replace(figure, method=figure.row)


def _distinct(figures: Iterable[Figure]) -> Iterable[Figure]:
    by_name: dict[tuple[str, str, str, str], Figure] = {}
    for figure in figures:
        if figure.name in by_name:
            raise invalid("published figures", "must differ in source, table, row or column", figure.name)
        by_name[figure.name] = figure
    return by_name.values()
