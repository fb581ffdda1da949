"""Results that travel: ``results/<recipe>.parquet`` holds what ran elsewhere, as ``runs export`` writes it.

A cell of such a file counts for a recipe whose cell has the same inputs; the contents of data files are left
out of the comparison, so that results are shown where the data are not. ``recall`` puts the results of these
files and of a store together without computing anything.
"""

import json
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import cleanrank
from cleanrank.data.spreadsheet import read_frame
from cleanrank.errors import BadFileError, error_text
from cleanrank.experiments.cells import CellSpec, Inputs, expand, key_of, setting_of
from cleanrank.experiments.recipe import Recipe, known_recipes, read_recipe
from cleanrank.experiments.results import COLUMNS, INPUTS, REALISED, or_nan
from cleanrank.experiments.sources import GENERATORS, identity_of
from cleanrank.experiments.store import Store
from cleanrank.report.means import plain_mean
from cleanrank.types import RunRecord

FOLDER = "results"
OF_JSON = ("params", "grid", "options", "on", "measures")
SHORT = 16
OF_CELL = ("status", "error", "wall_seconds", "started_at")


@dataclass(frozen=True)
class Known:
    """What is known of a recipe.

    Attributes:
        cells: what it asks for.
        records: their results, in the same order.
        tracked: keys of results that travelled.
        older: keys of results that an earlier version of their method gave.
    """

    cells: tuple[CellSpec, ...]
    records: tuple[RunRecord, ...]
    tracked: frozenset[str]
    older: frozenset[str] = frozenset()


def tracked_results() -> Path:
    """The folder of results that come with cleanrank: in the package, or beside it in a checkout."""
    package = Path(cleanrank.__file__).parent
    return next((f for f in (package / FOLDER, package.parents[1] / FOLDER) if f.is_dir()), package / FOLDER)


def tracked_records(recipe: str, folder: str | Path | None = None) -> list[RunRecord]:
    """The results of a recipe that travel with cleanrank.

    Args:
        recipe: its name, as ``cleanrank recipes`` lists it.
        folder: where the files lie; those that come with cleanrank unless given.

    Returns:
        One record per cell, in the order of the file; none where there is no file.

    >>> tracked_records("no/such/recipe")
    []
    """
    path = Path(folder or tracked_results()) / f"{recipe}.parquet"
    return read_results(path) if path.is_file() else []


def read_results(path: str | Path) -> list[RunRecord]:
    """Reads what ``cleanrank runs export FILE.parquet`` wrote.

    Args:
        path: a .parquet file.

    Returns:
        One record per cell; values of queries where the file has them.
    """
    path = Path(path)
    try:
        frame = read_frame(path)
    except BadFileError as error:
        raise _bad(path, str(error).rstrip(".")) from error
    if missing := [name for name in COLUMNS if name not in frame.columns]:
        raise _bad(path, f"a table without the column{'s' * (len(missing) > 1)} {', '.join(missing[:4])}")
    frame = frame.astype(object).where(frame.notna(), None)
    cells: dict[str, list[dict[str, Any]]] = {}
    for row in frame.to_dict("records"):
        cells.setdefault(str(row["key"]), []).append({str(name): value for name, value in row.items()})
    try:
        return [_record(rows) for rows in cells.values()]
    except (ValueError, TypeError, KeyError) as error:
        raise _bad(path, f"{type(error).__name__}: {error}") from error


def _bad(path: Path, problem: str) -> BadFileError:
    remedy = "Write it again with `cleanrank runs export`, or move it away."
    rule = "must be a table that `cleanrank runs export` wrote"
    return BadFileError(error_text(path.name, rule, problem, remedy=remedy), str(path))


def _record(rows: Sequence[Mapping[str, Any]]) -> RunRecord:
    first = rows[0]
    cell = {name: first[name] for name in INPUTS}
    cell |= {name: json.loads(cell[name]) for name in OF_JSON}
    cell |= {name: int(cell[name]) for name in ("fold", "version", "seed")} | {"rate": float(cell["rate"])}
    if cell["derived"] is None:
        del cell["derived"]
    done = {str(row["measure"]): row for row in rows if row["status"] == "done"}
    noise = {name: float(first[name]) for name in REALISED if first[name] is not None}
    values = {m: np.asarray(row["values"], float) for m, row in done.items() if row.get("values") is not None}
    return RunRecord(
        key=key_of(cell),
        recipe=first["recipe"],
        cell=cell,
        values=values,
        means={m: _mean(or_nan(row["mean"]), values.get(m)) for m, row in done.items()},
        query_se={m: float(row["query_se"]) for m, row in done.items() if row["query_se"] is not None},
        n_queries={m: int(row["n_queries"] or 0) for m, row in done.items()},
        chosen={**json.loads(first["chosen"]), **noise},
        versions=json.loads(first["versions"]),
        **{name: first[name] for name in OF_CELL},
    )


def _mean(mean: float, values: "np.ndarray[Any, Any] | None") -> float:
    """The mean; that of the values where it is the plain one, for values travel in single precision."""
    plain = math.nan if values is None else plain_mean(values)
    return plain if math.isclose(plain, mean, rel_tol=1e-6, abs_tol=1e-7) else mean


def recall(
    recipe: Recipe, store: Store | None = None, folder: str | Path | None = None, *, older: bool = False
) -> Known:
    """All that is known of a recipe, computed here or elsewhere; nothing is computed and no file is hashed.

    Args:
        recipe: what to look for.
        store: results of this machine, which come first; none unless given.
        folder: of results that travel; those that come with cleanrank unless given.
        older: whether results of earlier versions of a method count where there is none of today's.

    Returns:
        Its cells and their records.
    """
    here = [] if store is None else store.records(recipe=recipe.name)
    return _known(recipe, here, tracked_records(recipe.name, folder), older)


def _known(recipe: Recipe, here: Sequence[RunRecord], there: Sequence[RunRecord], older: bool) -> Known:
    cells = _cells(recipe)
    found = _by_place(cells, there)
    found |= {p: r for p, r in _by_place(cells, here).items() if r.status == "done" or p not in found}
    any_version = _by_place(cells, (*there, *here), _any_version) if older else {}
    earlier = {place: record for place, record in any_version.items() if place not in found}
    found |= earlier
    travelled = {r.key for r in there} - {r.key for r in here if r.status == "done"}
    keys = frozenset(r.key for r in found.values() if r.key in travelled)
    records = aligned([found[place] for place in sorted(found)], keys)
    return Known(tuple(cells), records, keys, frozenset(r.key for r in earlier.values()))


def to_travel(name: str, store: Store, there: Sequence[RunRecord] = ()) -> list[RunRecord]:
    """The results of a recipe for a file that travels: what it asks for as it stands, or all if it is gone.

    Keys are cut short for the sake of small files: they follow from the inputs.

    Args:
        name: of the recipe.
        store: results of this machine, which come first.
        there: what the file holds already; results of earlier versions of a method stay until there are new.

    Returns:
        One record per cell.
    """
    here, known = store.records(recipe=name), known_recipes()
    if name in known:
        records = list(_known(read_recipe(known[name]), here, there, older=True).records)
    else:
        records = list({r.key: r for r in (*there, *here)}.values())
    return [replace(record, key=record.key[:SHORT]) for record in records]


def _cells(recipe: Recipe) -> list[CellSpec]:
    """The cells of a recipe, without the contents of files."""

    def identity(name: str, fold: int, options: Mapping[str, Any]) -> str:
        return identity_of(name, fold, options) if name in GENERATORS else ""

    return expand(recipe, identity)


def _any_version(inputs: Inputs) -> str:
    """What the figures depend on, but for the contents of files and the version of the method."""
    return setting_of({**inputs, "version": 0})


def _by_place(
    cells: Sequence[CellSpec], records: Iterable[RunRecord], setting: Callable[[Inputs], str] = setting_of
) -> dict[int, RunRecord]:
    """Records by the place of the cell that has their setting, and labelled like it; the last that ran."""
    by_setting: dict[str, RunRecord] = {}
    for record in sorted(records, key=lambda r: (r.status == "done", r.started_at)):
        by_setting[setting(record.cell)] = record
    placed = {place: by_setting.get(setting(cell.inputs)) for place, cell in enumerate(cells)}
    return {
        place: replace(
            r, cell={**cells[place].inputs, "identity": r.cell["identity"], "version": r.cell["version"]}
        )
        for place, r in placed.items()
        if r is not None
    }


def aligned(records: Sequence[RunRecord], tracked: Collection[str]) -> tuple[RunRecord, ...]:
    """Records of here and elsewhere that can be set side by side: names of queries do not travel."""
    alike = all(r.key in tracked for r in records) or not any(r.values for r in records if r.key in tracked)
    return tuple(records if alike else (replace(record, query_ids=None) for record in records))
