"""Recipes: TOML files that name data, noise, methods, measures and seeds, read strictly into frozen values.

A recipe opens with a comment that holds the command that runs it::

    # cleanrank reproduce recipes/noise/quick.toml
    title = "..."
    measures = ["ndcg@10", "map:letor"]
    seeds = [1, 2, 3]
    [[data]]
    name = "mq2008"
    folds = [1, 2]
    [[noise]]
    profile = "uniform"
    rates = [0.0, 0.2]
    [[methods]]
    label = "norm on"
    method = "lambdarank"
    params = { norm = true }
    grid = { num_leaves = [7, 31] }
"""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cleanrank.errors import BadFileError, CleanrankError, invalid
from cleanrank.experiments.methods import METHODS
from cleanrank.experiments.noises import NOISES, SPLITS
from cleanrank.experiments.sources import check_data
from cleanrank.experiments.strict import Table
from cleanrank.experiments.studies import STUDIES, contender
from cleanrank.metrics.measure import Measure
from cleanrank.noise.scales import DERIVED
from cleanrank.report.published import Published
from cleanrank.validation import one_of

COMMAND = "cleanrank reproduce"
LAST_SEED = 2**31 - 1  # LightGBM's
TOP = (
    "title",
    "source",
    "about",
    "measures",
    "show",
    "select",
    "seeds",
    "baseline",
    "data",
    "noise",
    "methods",
    "quick",
    "published",
)


@dataclass(frozen=True)
class Data:
    """A data set of the grid: its name, the label it is shown under, its folds, options of made-up data.

    ``derived`` names a derived set (merged grades, sampled queries) that is made of it.
    """

    name: str
    label: str
    folds: tuple[int, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    derived: str | None = None


@dataclass(frozen=True)
class Noise:
    """A noise profile, the rates to try, and the splits whose labels it changes (never test)."""

    profile: str
    rates: tuple[float, ...]
    on: tuple[str, ...] = SPLITS


@dataclass(frozen=True)
class Contender:
    """A method under a label: all its parameters, and the grid searched on validation data."""

    label: str
    method: str
    params: Mapping[str, Any]
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Quick:
    """What ``--quick`` puts in place of the whole; None leaves a part as it is.

    ``levels`` names noise and rate together, as in "uniform 0.2"; noise without a level is left out.
    """

    folds: tuple[int, ...] | None = None
    seeds: tuple[int, ...] | None = None
    rates: tuple[float, ...] | None = None
    levels: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Recipe:
    """Complete typed inputs of a grid.

    Attributes:
        name: the path below ``recipes/`` without its ending.
        command: what runs it.
        title: one line.
        source: the paper or table behind it.
        about: a paragraph for the report.
        data: data sets and folds.
        noise: none means labels as they are.
        contenders: the methods.
        measures: canonical texts.
        show: the measures a short table shows; all unless given.
        select: the measure that validation data are judged by.
        seeds: one run of every cell for each.
        baseline: the label that others are tested against.
        quick: what ``--quick`` reduces.
        published: figures to set beside ours.
    """

    name: str
    command: str
    title: str
    source: str
    about: str
    data: tuple[Data, ...]
    noise: tuple[Noise, ...]
    contenders: tuple[Contender, ...]
    measures: tuple[str, ...]
    show: tuple[str, ...]
    select: str
    seeds: tuple[int, ...]
    baseline: str | None
    quick: Quick
    published: tuple[Published, ...]

    def quickly(self) -> "Recipe":
        """The recipe that ``--quick`` runs; what it shares with the whole is computed once."""
        q = self.quick
        return replace(
            self,
            title=f"{self.title} (quick)",
            data=tuple(replace(d, folds=_kept(d.folds, q.folds)) for d in self.data),
            noise=tuple(_quick_noise(n, q) for n in self.noise if _quick_noise(n, q).rates),
            seeds=_kept(self.seeds, q.seeds),
        )


def _quick_noise(noise: Noise, quick: Quick) -> Noise:
    rates = _kept(noise.rates, quick.rates)
    if quick.levels is not None:
        rates = tuple(r for r in rates if _level(noise, r) in quick.levels)
    return replace(noise, rates=rates)


def _level(noise: Noise, rate: float) -> str:
    return f"{noise.profile} {rate:g}"


def _kept(whole: tuple[Any, ...], wanted: tuple[Any, ...] | None) -> tuple[Any, ...]:
    return whole if wanted is None else tuple(v for v in whole if v in wanted) or whole[:1]


def find_recipe(text: str, folder: str | Path = "recipes") -> Path:
    """The file a person means: a path, or a name below ``recipes/`` such as noise/quick."""
    tried = [Path(text), Path(folder) / text, Path(folder) / f"{text}.toml"]
    for path in tried:
        if path.is_file():
            return path
    names = [recipe_name(p) for p in all_recipes(folder)]
    if not names or Path(text).suffix == ".toml" or Path(text).is_dir():
        known = f"Or a name: {', '.join(names)}." if names else ""
        raise invalid("recipe", "must be a TOML file that exists", repr(text), remedy=known)
    return Path(folder) / f"{one_of('recipe', text, names)}.toml"


def all_recipes(folder: str | Path = "recipes") -> list[Path]:
    """Every recipe below a folder, by path."""
    return sorted(Path(folder).glob("**/*.toml"))


def recipe_name(path: str | Path) -> str:
    """The path below the last folder called recipes, without its ending; else the bare file name.

    >>> recipe_name("work/recipes/noise/quick.toml"), recipe_name("mine.toml")
    ('noise/quick', 'mine')
    """
    parts = Path(path).with_suffix("").parts
    below = len(parts) - 1 - parts[::-1].index("recipes") if "recipes" in parts[:-1] else len(parts) - 2
    return "/".join(parts[below + 1 :])


def read_recipe(path: str | Path) -> Recipe:
    """Reads a recipe; a mistake gives the key, its place, the known ones and the closest."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
        values = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadFileError(f"{path.name} must be valid TOML; got {error}.", str(path)) from error
    first = text.lstrip().partition("\n")[0].lstrip("# ").strip()
    if not text.lstrip().startswith("#") or not first.startswith(COMMAND):
        raise invalid(
            f"{path.name}: line 1",
            "must be a comment with the command that runs the recipe",
            repr(first[:60]),
            remedy=f"Write: # {COMMAND} recipes/{recipe_name(path)}.toml",
        )
    return _recipe(Table(values, path.name, TOP), recipe_name(path), first)


def _recipe(top: Table, name: str, command: str) -> Recipe:
    contenders = tuple(_contender(t) for t in _tables(top, "methods", ("label", "method", "params", "grid")))
    own = _own_measures(top, contenders)
    measures = tuple(_measure(top, "measures", m, own) for m in top.many("measures", str))
    labels = [c.label for c in contenders]
    _distinct(top, "methods", labels)
    for i, c in enumerate(contenders):
        for other in contenders[:i]:
            if (c.method, c.params, c.grid) == (other.method, other.params, other.grid):
                top.fail(f"methods[{i}]", f"must differ from {other.label!r}", f"the same under {c.label!r}")
    data = tuple(_data(t) for t in _tables(top, "data", ("name", "label", "folds", "options", "derived")))
    _distinct(top, "data", [d.label for d in data])
    noise = tuple(_noise(t) for t in _tables(top, "noise", ("profile", "rates", "on"), needed=False))
    _distinct(top, "noise", [n.profile for n in noise])
    show = tuple(
        top.known("show", "measure", _measure(top, "show", m, own), measures)
        for m in top.many("show", str, ())
    )
    seeds = _seeds(top)
    baseline = top.get("baseline", str, None)
    if baseline is not None:
        top.known("baseline", "method label", baseline, labels)
    return Recipe(
        name=name,
        command=command,
        title=top.get("title", str),
        source=top.get("source", str, ""),
        about=top.get("about", str, ""),
        data=data,
        noise=noise,
        contenders=contenders,
        measures=tuple(dict.fromkeys(measures)),
        show=show or tuple(dict.fromkeys(measures)),
        select=_measure(top, "select", top.get("select", str, "ndcg@10")),
        seeds=seeds,
        baseline=baseline,
        quick=_quick(top, data, noise, seeds),
        published=tuple(
            _published(top, i, measures, data, noise, labels, own) for i in range(_count(top, "published"))
        ),
    )


def _seeds(top: Table) -> tuple[int, ...]:
    seeds: tuple[int, ...] = top.many("seeds", int)
    for seed in seeds:
        if not 0 <= seed <= LAST_SEED:
            top.fail("seeds", f"must lie in [0, {LAST_SEED}]", seed)
    return seeds


def _tables(top: Table, key: str, keys: tuple[str, ...], *, needed: bool = True) -> list[Table]:
    found = top.get(key, list, [] if not needed else ...)
    if found is ... or (needed and not found):
        top.fail(key, f"must be given at least once, as [[{key}]]", "nothing")
    for i, each in enumerate(found):
        if not isinstance(each, dict):
            top.fail(f"{key}[{i}]", f"must be a table, as [[{key}]]", repr(each))
    return [Table(each, f"{top.at(key)}[{i}]", keys) for i, each in enumerate(found)]


def _count(top: Table, key: str) -> int:
    return len(top.get(key, list, []))


def _distinct(top: Table, key: str, names: list[str]) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            top.fail(f"{key}[{i}]", "must have a label of its own", repr(name))


def _own_measures(top: Table, contenders: Sequence[Contender]) -> tuple[str, ...] | None:
    """The measures that all studies of a recipe bring; None where rankings are measured."""
    studies = [STUDIES[c.method] for c in contenders if c.method in STUDIES]
    if not studies:
        return None
    if len(studies) < len(contenders):
        top.fail(
            "methods", "must all rank, or all be studies", f"{len(studies)} of {len(contenders)} studies"
        )
    return tuple(m for m in studies[0].measures if all(m in s.measures for s in studies))


def _measure(table: Table, key: str, text: str, own: tuple[str, ...] | None = None) -> str:
    if own is not None:
        return table.known(key, "measure of this study", text, own)
    try:
        return str(Measure.parse(text))
    except CleanrankError as error:
        raise type(error)(f"{table.at(key)}: {error}") from None


def _data(table: Table) -> Data:
    name = table.get("name", str)
    options = dict(table.get("options", dict, {}))
    folds = table.many("folds", int, (1,))
    name = check_data(table, name, folds, options)
    derived = None if "derived" not in table else table.among("derived", "derived set", DERIVED)
    return Data(name, table.get("label", str, derived or name), folds, options, derived)


def _noise(table: Table) -> Noise:
    rates = table.many("rates", float)
    for rate in rates:
        if not 0 <= rate <= 1:
            table.fail("rates", "must lie in [0, 1]", rate)
    on = table.many("on", str, SPLITS)
    for split in on:
        table.known("on", "split", split, SPLITS)
    return Noise(table.among("profile", "noise profile", NOISES), rates, on)


def _contender(table: Table) -> Contender:
    name = table.among("method", "method", (*METHODS, *STUDIES))
    defaults = contender(name).params
    given = table.get("params", dict, {})
    params = Table(given, table.at("params"), defaults)
    chosen = {key: params.get(key, type(default), default) for key, default in defaults.items()}
    grid = Table(table.get("grid", dict, {}), table.at("grid"), defaults)
    for key in grid.values:
        if key in given:
            grid.fail(key, "must not be given both in params and in grid", repr(given[key]))
    searched = {key: grid.many(key, type(defaults[key])) for key in grid.values}
    return Contender(table.get("label", str, name), name, chosen, searched)


def _quick(top: Table, data: Sequence[Data], noise: Sequence[Noise], seeds: Sequence[int]) -> Quick:
    table = Table(top.get("quick", dict, {}), top.at("quick"), ("folds", "seeds", "rates", "levels"))
    whole: dict[str, set[Any]] = {
        "folds": {fold for d in data for fold in d.folds},
        "seeds": set(seeds),
        "rates": {rate for n in noise for rate in n.rates},
        "levels": {_level(n, rate) for n in noise for rate in n.rates},
    }
    kinds: dict[str, type] = {"folds": int, "seeds": int, "rates": float, "levels": str}
    chosen = {key: table.many(key, kind, None) for key, kind in kinds.items()}
    for key, values in chosen.items():
        for value in values or ():
            if value not in whole[key]:
                table.fail(key, "must be a part of the whole recipe's", value)
    return Quick(**chosen)


def _published(
    top: Table,
    i: int,
    measures: tuple[str, ...],
    data: tuple[Data, ...],
    noise: tuple[Noise, ...],
    labels: list[str],
    own: tuple[str, ...] | None,
) -> Published:
    keys = ("dataset", "method", "measure", "value", "source", "noise", "rate", "fold", "context", "decimals")
    table = _tables(top, "published", keys)[i]
    context = table.get("context", bool, False)
    method = table.get("method", str)
    if not context:
        table.known("method", "method label", method, labels)
    dataset = table.among("dataset", "data set of this recipe", [d.label for d in data])
    measure = _measure(table, "measure", table.get("measure", str), own)
    figure = Published(
        dataset=dataset,
        method=method,
        measure=table.known("measure", "measure of this recipe", measure, measures),
        value=table.get("value", float),
        source=table.get("source", str),
        noise=None if "noise" not in table else table.among("noise", "noise profile", NOISES),
        rate=table.get("rate", float, None),
        fold=table.get("fold", int, None),
        context=context,
        decimals=table.get("decimals", int, None),
    )
    if figure.decimals is not None and figure.decimals < 0:
        table.fail("decimals", "must not be negative", figure.decimals)
    folds = next(d.folds for d in data if d.label == dataset)
    if figure.fold is not None and figure.fold not in folds:
        table.fail("fold", f"must be among the recipe's {', '.join(map(str, folds))}", figure.fold)
    rates = {rate for n in noise if figure.noise in (None, n.profile) for rate in n.rates}
    if figure.rate and figure.rate not in rates and not context:
        table.fail("rate", "must be among the rates of the recipe's noise", figure.rate)
    return figure
