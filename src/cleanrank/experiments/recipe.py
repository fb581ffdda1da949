"""Recipes: TOML files that name data, noise, methods, measures and seeds, read strictly into frozen values.

A recipe, such as ``recipes/noise/quick.toml``, may open with a comment that holds the command that runs it.
Keys and types are those of the classes below; an error names the file, the key, the rule and the value.
"""

import difflib
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from msgspec import Meta

import cleanrank
from cleanrank.errors import CleanrankError, UnknownNameError, invalid
from cleanrank.experiments.figures import figures_of
from cleanrank.experiments.methods import METHODS
from cleanrank.experiments.noises import CLICK_FLIPS, NOISES, SPLITS
from cleanrank.experiments.sources import GENERATORS, source_of
from cleanrank.experiments.studies import CTR, STUDIES, TUNED, algorithm
from cleanrank.experiments.toml import check_distinct, check_table, known, placed, read_toml, typed
from cleanrank.metrics.measure import Measure
from cleanrank.noise.scales import DERIVED
from cleanrank.report.published import Published
from cleanrank.validation import check_integer, check_memory, one_of

COMMAND = "cleanrank reproduce"
FOLDER = "recipes"
LAST_SEED = 2**31 - 1  # LightGBM's
SET_BY_READER = ("name", "command")

NOT_EMPTY = Meta(min_length=1)
LARGEST = 1.7e308
Finite: TypeAlias = Annotated[float, Meta(ge=-LARGEST, le=LARGEST)]
Names: TypeAlias = Annotated[tuple[str, ...], NOT_EMPTY]
Folds: TypeAlias = Annotated[tuple[int, ...], NOT_EMPTY]
Rates: TypeAlias = Annotated[tuple[Annotated[float, Meta(ge=0, le=1)], ...], NOT_EMPTY]
Seeds: TypeAlias = Annotated[tuple[Annotated[int, Meta(ge=0, le=LAST_SEED)], ...], NOT_EMPTY]


@dataclass(frozen=True)
class Data:
    """A data set of the grid: its name, the label it is shown under, its folds, options of generated data."""

    name: str
    label: str = ""
    folds: Folds = (1,)
    options: Mapping[str, Any] = field(default_factory=dict)
    derived: str | None = None  # a set made of it: merged grades, sampled queries


@dataclass(frozen=True)
class Noise:
    """A noise, the rates to try, and the splits whose labels it changes (never test)."""

    profile: str
    rates: Rates
    on: Names = SPLITS

    def level(self, rate: float) -> str:
        """Noise and rate together, as in "uniform 0.2"."""
        return f"{self.profile} {rate:g}"


@dataclass(frozen=True)
class RecipeMethod:
    """A method or study under a label: all its parameters, and the grid searched on validation data."""

    method: str
    label: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Quick:
    """What ``--quick`` keeps of the whole (None: all); noise without one of the ``levels`` is left out."""

    folds: Folds | None = None
    seeds: Seeds | None = None
    rates: Rates | None = None
    levels: Names | None = None


@dataclass(frozen=True)
class Recipe:
    """Complete typed inputs of a grid."""

    title: str
    measures: Names
    seeds: Seeds  # one run of every cell for each
    data: Annotated[tuple[Data, ...], NOT_EMPTY]
    methods: Annotated[tuple[RecipeMethod, ...], NOT_EMPTY]
    source: str = ""  # the paper or table behind it
    about: str = ""  # a paragraph for the report
    noise: tuple[Noise, ...] = ()  # none: labels as they are
    show: Names = ()  # the measures of a short table; all unless given
    select: str = "ndcg@10"  # the measure that validation data are judged by
    baseline: str | None = None  # the label that others are tested against
    quick: Quick = field(default_factory=Quick)
    published: tuple[Published, ...] = ()  # figures of papers come from the package's own files
    name: str = ""  # the path below ``recipes/`` without its ending
    command: str = ""  # what runs it

    def reduced(self) -> "Recipe":
        """The recipe that ``--quick`` runs; what it shares with the whole is computed once."""
        quick = self.quick
        noises = []
        for noise in self.noise:
            rates = _part(noise.rates, quick.rates)
            if quick.levels is not None:
                rates = tuple(r for r in rates if noise.level(r) in quick.levels)
            if rates:
                noises.append(replace(noise, rates=rates))
        return replace(
            self,
            title=f"{self.title} (quick)",
            data=tuple(replace(d, folds=_part(d.folds, quick.folds)) for d in self.data),
            noise=tuple(noises),
            seeds=_part(self.seeds, quick.seeds),
        )


def _part(whole: tuple[Any, ...], kept: tuple[Any, ...] | None) -> tuple[Any, ...]:
    return whole if kept is None else tuple(v for v in whole if v in kept) or whole[:1]


def shipped_recipes() -> Path:
    """The folder of the recipes that come with cleanrank: in the package, or beside it in a checkout."""
    package = Path(cleanrank.__file__).parent
    return next((f for f in (package / FOLDER, package.parents[1] / FOLDER) if f.is_dir()), package / FOLDER)


def find_recipe(text: str) -> Path:
    """The file that a person means: a path, or the name of a known recipe such as noise/quick."""
    if Path(text).is_file():
        return Path(text)
    known = known_recipes()
    name = text.removeprefix(f"{FOLDER}/").removesuffix(".toml")
    if name in known:
        return known[name]
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
    close += [each for each in known if name and each.split("/")[0] == name and each not in close]
    hint = f" Did you mean {' or '.join(close[:3])}?" if close else ""
    places = f"{text!r}, {FOLDER}/ here and {str(shipped_recipes())!r}"
    raise UnknownNameError(
        f"there is no recipe {text!r}. Looked for {places}.{hint} List all with: cleanrank recipes"
    )


def known_recipes() -> dict[str, Path]:
    """Name -> file of every recipe below ``recipes/`` here, and of those that come with cleanrank."""
    files = [*all_recipes(shipped_recipes()), *all_recipes(FOLDER)]
    return dict(sorted((recipe_name(path), path) for path in files))


def all_recipes(folder: str | Path) -> list[Path]:
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
    """Reads a recipe; an error gives the key, its place, the known ones and the closest."""
    path = Path(path)
    text, values = read_toml(path)
    first = text.lstrip().partition("\n")[0].lstrip("# ").strip()
    if not text.lstrip().startswith("#") or not first.startswith(COMMAND):
        first = f"{COMMAND} {shlex.quote(str(path))}"
    place = f"{path.name}: "
    check_table(values, Recipe, place, hidden=SET_BY_READER)
    recipe: Recipe = typed(values, Recipe, place)
    return _with_figures(_checked(replace(recipe, name=recipe_name(path), command=first), place))


def _with_figures(recipe: Recipe) -> Recipe:
    """The recipe with the published figures of its name; a changed copy has those that still fit."""
    own = _study_measures(recipe.methods, "")
    fitting = []
    for figure in figures_of(recipe.name):
        if figure.published is not None:
            with suppress(CleanrankError):
                fitting.append(_figure(figure.published, recipe, own, recipe.name))
    return replace(recipe, published=(*recipe.published, *fitting))


def _checked(recipe: Recipe, place: str) -> Recipe:
    """The recipe with all defaults, after checks of names and of what must fit together."""
    data = tuple(_data(d, f"{place}data[{i}]") for i, d in enumerate(recipe.data))
    methods = tuple(_method(m, f"{place}methods[{i}]") for i, m in enumerate(recipe.methods))
    for i, noise in enumerate(recipe.noise):
        known("noise profile", noise.profile, NOISES, f"{place}noise[{i}].profile")
        for split in noise.on:
            known("split", split, SPLITS, f"{place}noise[{i}].on")
    labels = [m.label for m in methods]
    check_distinct([d.label for d in data], f"{place}labels of data")
    check_distinct([n.profile for n in recipe.noise], f"{place}noise profiles")
    check_distinct(labels, f"{place}labels of methods")
    for i, method in enumerate(methods):
        for other in methods[:i]:
            if replace(method, label=other.label) == other:
                raise invalid(f"{place}methods[{i}]", f"must differ from {other.label!r}")
    _check_clicks(recipe, data, methods, place)
    own = _study_measures(methods, place)
    measures = tuple(dict.fromkeys(_measure(m, f"{place}measures", own) for m in recipe.measures))
    show = tuple(_measure(m, f"{place}show", own) for m in recipe.show)
    for measure in show:
        known("measure", measure, measures, f"{place}show")
    if recipe.baseline is not None:
        known("method label", recipe.baseline, labels, f"{place}baseline")
    select = _measure(recipe.select, f"{place}select")
    recipe = replace(
        recipe, data=data, methods=methods, measures=measures, show=show or measures, select=select
    )
    _check_quick(recipe, f"{place}quick")
    figures = (_figure(f, recipe, own, f"{place}published[{i}]") for i, f in enumerate(recipe.published))
    return replace(recipe, published=tuple(figures))


def _data(data: Data, place: str) -> Data:
    """Data under the catalogue's name, checked whether they are on this machine or not."""
    with placed(f"{place}.name"):
        source = source_of(data.name)
    _params(data.options, source.options, f"{place}.options")
    if data.name in GENERATORS:
        check_memory(f"{place}.options", GENERATORS[data.name].size({**source.options, **data.options}))
    if data.options.get("relevant", 1) < 1:
        raise invalid(f"{place}.options.relevant", "must be a grade >= 1", data.options["relevant"])
    for fold in data.folds:
        if source.folds is None:
            check_integer(f"{place}.folds", fold, least=1)
        else:
            _check_fold(fold, source.folds, f"{place}.folds")
    if data.derived is not None:
        known("derived set", data.derived, DERIVED, f"{place}.derived")
    return replace(data, name=source.name, label=data.label or data.derived or source.name)


def _check_clicks(recipe: Recipe, data: Sequence[Data], methods: Sequence[RecipeMethod], place: str) -> None:
    """Refuses rankings of logs of clicks, models of clicks on judged data, and noise of the other kind."""
    clicks = [method.method == CTR for method in methods]
    for i, each in enumerate(data):
        for method, wanted in zip(methods, clicks, strict=True):
            if source_of(each.name).clicks != wanted:
                kind = "a log of clicks" if wanted else "judged rows"
                raise invalid(f"{place}data[{i}]", f"must be {kind} for {method.method}", each.name)
    for i, noise in enumerate(recipe.noise):
        if (noise.profile in CLICK_FLIPS) != clicks[0]:
            kinds = f"one of {', '.join(CLICK_FLIPS)} for clicks, and another one for grades"
            raise invalid(f"{place}noise[{i}].profile", f"must be {kinds}", noise.profile)


def _check_fold(fold: int | str, folds: Sequence[int], place: str) -> None:
    if fold not in folds:
        raise invalid(place, f"must be among {', '.join(map(str, folds))}", fold)


def _method(entry: RecipeMethod, place: str) -> RecipeMethod:
    known("method", entry.method, (*METHODS, *STUDIES), f"{place}.method")
    defaults = algorithm(entry.method).params
    params = _params(entry.params, defaults, f"{place}.params")
    grid = _params(entry.grid, defaults, f"{place}.grid", lists=True)
    if grid and entry.method in STUDIES and entry.method not in TUNED:
        raise invalid(f"{place}.grid", f"goes with methods and the studies {', '.join(TUNED)}", entry.method)
    for key, values in grid.items():
        check_distinct(values, f"{place}.grid.{key}")
        if key in params:
            raise invalid(f"{place}.grid.{key}", "must not be given both in params and in grid")
    return replace(entry, label=entry.label or entry.method, params={**defaults, **params}, grid=grid)


def _params(
    values: Mapping[str, Any], defaults: Mapping[str, Any], place: str, *, lists: bool = False
) -> dict[str, Any]:
    """The values of a table, or lists of them, in the types of the defaults."""
    converted = {}
    for key, value in values.items():
        known("key", key, defaults, place)
        kind: Any = Finite if isinstance(defaults[key], float) else type(defaults[key])
        kind = Annotated[tuple[kind, ...], NOT_EMPTY] if lists else kind
        converted[key] = typed(value, kind, f"{place}.{key}")
    return converted


def _study_measures(methods: Sequence[RecipeMethod], place: str) -> list[str] | None:
    """The measures that all studies of a recipe bring; None where rankings are measured."""
    studies = [STUDIES[m.method] for m in methods if m.method in STUDIES]
    if not studies:
        return None
    if len(studies) < len(methods):
        counts = f"{len(studies)} of {len(methods)} studies"
        raise invalid(f"{place}methods", "must all rank, or all be studies", counts)
    return [m for m in studies[0].measures if all(m in s.measures for s in studies)]


def _measure(text: str, place: str, own: list[str] | None = None) -> str:
    """The canonical text of a measure, which must be one of a study's ``own``."""
    with placed(place):
        return str(Measure.parse(text)) if own is None else one_of("measure of this study", text, own)


def _check_quick(recipe: Recipe, place: str) -> None:
    levels = [(rate, noise.level(rate)) for noise in recipe.noise for rate in noise.rates]
    whole: dict[str, set[Any]] = {
        "folds": {fold for data in recipe.data for fold in data.folds},
        "seeds": set(recipe.seeds),
        "rates": {rate for rate, _ in levels},
        "levels": {level for _, level in levels},
    }
    for key, values in whole.items():
        for value in getattr(recipe.quick, key) or ():
            if value not in values:
                raise invalid(f"{place}.{key}", "must be a part of the whole recipe's", value)


def _figure(figure: Published, recipe: Recipe, own: list[str] | None, place: str) -> Published:
    """A published figure that fits the recipe; one for context may name other methods and rates."""
    measure = _measure(figure.measure, f"{place}.measure", own)
    known("measure of this recipe", measure, recipe.measures, f"{place}.measure")
    known("data set of this recipe", figure.dataset, [d.label for d in recipe.data], f"{place}.dataset")
    if not figure.context:
        known("method label", figure.method, [m.label for m in recipe.methods], f"{place}.method")
    if figure.noise is not None:
        known("noise profile", figure.noise, NOISES, f"{place}.noise")
    if figure.decimals is not None and figure.decimals < 0:
        raise invalid(f"{place}.decimals", "must not be negative", figure.decimals)
    folds = next(d.folds for d in recipe.data if d.label == figure.dataset)
    if figure.fold is not None:
        _check_fold(figure.fold, folds, f"{place}.fold")
    rates = {rate for n in recipe.noise if figure.noise in (None, n.profile) for rate in n.rates}
    if figure.rate and figure.rate not in rates and not figure.context:
        raise invalid(f"{place}.rate", "must be among the rates of the recipe's noise", figure.rate)
    return replace(figure, measure=measure)
