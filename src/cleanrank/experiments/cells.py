"""Cells: the points of a recipe's grid, each with a key that hashes everything its figures depend on.

The key covers the data (by the SHA-256 of their files), fold, noise, method, the method's version, all
parameters, grid, measures and seed, and PROTOCOL. It leaves out labels, the recipe and the versions of
libraries: the first two do not change figures, and the last are recorded beside the result instead, so that
an upgrade of a library does not throw away what was computed. Where it must, a method's version goes up.
"""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from cleanrank.errors import invalid
from cleanrank.experiments.recipe import Noise, Recipe
from cleanrank.experiments.results import to_json
from cleanrank.experiments.studies import algorithm
from cleanrank.validation import one_of

# Goes up when reading data, corrupting labels or measuring changes figures for reasons outside a method.
PROTOCOL = 1
CLEAN = Noise("none", (0.0,))
SHOWN_ONLY = ("dataset", "method")
FILTERS = ("dataset", "fold", "noise", "rate", "method", "seed")

Fingerprint = Callable[[str, int, Mapping[str, Any]], str]


@dataclass(frozen=True)
class CellSpec:
    """One point of the grid.

    Attributes:
        key: hash of all inputs.
        inputs: JSON-like; what the worker gets and the store keeps.
    """

    key: str
    inputs: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The inputs as canonical JSON."""
        return to_json(self.inputs)

    def __str__(self) -> str:
        i = self.inputs
        noise = f" {i['noise']} {i['rate']:g}" if i["rate"] else ""
        return f"{i['dataset']} fold {i['fold']}{noise}, {i['method']}, seed {i['seed']}"


def key_of(inputs: Mapping[str, Any]) -> str:
    """The SHA-256 of what the figures depend on; a noise rate of 0 is no noise, whatever its profile."""
    counted = {k: v for k, v in inputs.items() if k not in SHOWN_ONLY}
    if counted["rate"] == 0:
        counted |= {"noise": "none", "on": []}
    # Neither the order of measures nor where a data set is mentioned twice changes a figure.
    counted["measures"] = sorted(counted["measures"])
    return hashlib.sha256(to_json({"protocol": PROTOCOL, **counted}).encode()).hexdigest()


def expand(recipe: Recipe, fingerprint: Fingerprint) -> list[CellSpec]:
    """All cells of a recipe; those that share data and noise stand together, so that workers reuse them.

    Args:
        recipe: what to expand.
        fingerprint: (data set, fold, options) -> identity of the data.
    """
    cells: dict[str, CellSpec] = {}
    for data, fold in ((d, fold) for d in recipe.data for fold in d.folds):
        identity = fingerprint(data.name, fold, data.options)
        for (noise, rate), seed, method in product(_levels(recipe), recipe.seeds, recipe.methods):
            inputs = {
                "dataset": data.label,
                "method": method.label,
                "data": data.name,
                "options": dict(data.options),
                "identity": identity,
                "fold": fold,
                "noise": noise.profile,
                "rate": rate,
                "on": list(noise.on),
                "algorithm": method.method,
                "version": algorithm(method.method).version,
                "params": dict(method.params),
                "grid": {k: list(v) for k, v in method.grid.items()},
                "select": recipe.select,
                "seed": seed,
                "measures": list(recipe.measures),
            }
            if data.derived:  # left out otherwise, so that cells of plain data keep their keys
                inputs["derived"] = data.derived
            # Through JSON and back, so that a cell is the same before and after a visit to the store.
            cell = CellSpec(key_of(inputs), json.loads(to_json(inputs)))
            if (other := cells.setdefault(cell.key, cell)) is not cell:
                both = f"{str(cell)!r} and {str(other)!r}"
                raise invalid("cells", "must differ in more than their labels", both)
    return list(cells.values())


def _levels(recipe: Recipe) -> Iterator[tuple[Noise, float]]:
    """The noise levels; rate 0 comes once, as no noise, and starts the curve of every profile."""
    clean_seen = False
    for noise in recipe.noise or (CLEAN,):
        for rate in noise.rates:
            if rate or not clean_seen:
                yield noise if rate else CLEAN, rate
            clean_seen = clean_seen or not rate


def filter_cells(cells: Sequence[CellSpec], only: Sequence[str]) -> list[CellSpec]:
    """Keeps the cells that every ``field=value[,value...]`` lets through; case does not matter.

    >>> filter_cells([], ["color=red"])
    Traceback (most recent call last):
    cleanrank.errors.UnknownNameError: unknown filter 'color'. Known: dataset, fold, noise, ...
    """
    kept = list(cells)
    for text in only:
        field, equals, values = text.partition("=")
        if not equals:
            remedy = "As in --only dataset=mq2008."
            raise invalid("--only", "must read field=value", repr(text), remedy=remedy)
        one_of("filter", field, FILTERS)
        present = {_text(c.inputs[field]): None for c in cells}
        allowed = {one_of(field, _text(_number(v.strip())), present) for v in values.split(",")}
        kept = [c for c in kept if _text(c.inputs[field]) in allowed]
    return kept


def _number(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value).lower()
