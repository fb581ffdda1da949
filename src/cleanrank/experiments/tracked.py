"""Results that travel: ``results/<recipe>.parquet`` holds what ran elsewhere, as ``runs export`` writes it.

A cell of such a file counts for a recipe whose cell has the same inputs; the contents of data files are left
out of the comparison, so that results are shown where the data are not. ``recall`` puts the results of these
files and of a store together without computing anything.
"""

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import cleanrank
from cleanrank.data.spreadsheet import read_frame
from cleanrank.errors import BadFileError, error_text
from cleanrank.experiments.cells import CellSpec, expand, key_of, setting_of
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
    """What is known of a recipe: its cells, their records in the same order, keys of those that travelled."""

    cells: tuple[CellSpec, ...]
    records: tuple[RunRecord, ...]
    tracked: frozenset[str]


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
    frame = read_frame(path)
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


def recall(recipe: Recipe, store: Store | None = None, folder: str | Path | None = None) -> Known:
    """All that is known of a recipe, computed here or elsewhere; nothing is computed and no file is hashed.

    Args:
        recipe: what to look for.
        store: results of this machine, which come first; none unless given.
        folder: of results that travel; those that come with cleanrank unless given.

    Returns:
        Its cells and their records.
    """
    cells = _cells(recipe)
    there = _by_place(cells, tracked_records(recipe.name, folder))
    here = {} if store is None else _by_place(cells, store.records(recipe=recipe.name))
    both = {**there, **{place: r for place, r in here.items() if r.status == "done" or place not in there}}
    keys = frozenset(r.key for place, r in both.items() if r is there.get(place))
    return Known(tuple(cells), aligned([both[place] for place in sorted(both)], keys), keys)


def asked_today(name: str, store: Store) -> list[RunRecord]:
    """The results of a store that a recipe asks for as it stands; all that it ever had if it is gone.

    Keys are cut short for the sake of small files: they follow from the inputs.
    """
    records, known = store.records(recipe=name), known_recipes()
    if name in known:
        records = list(_by_place(_cells(read_recipe(known[name])), records).values())
    return [replace(record, key=record.key[:SHORT]) for record in records]


def _cells(recipe: Recipe) -> list[CellSpec]:
    """The cells of a recipe, without the contents of files."""

    def identity(name: str, fold: int, options: Mapping[str, Any]) -> str:
        return identity_of(name, fold, options) if name in GENERATORS else ""

    return expand(recipe, identity)


def _by_place(cells: Sequence[CellSpec], records: Iterable[RunRecord]) -> dict[int, RunRecord]:
    """Records by the place of the cell that has their inputs, and labelled like it; the last that ran."""
    by_setting: dict[str, RunRecord] = {}
    for record in sorted(records, key=lambda r: (r.status == "done", r.started_at)):
        by_setting[setting_of(record.cell)] = record
    placed = {place: by_setting.get(setting_of(cell.inputs)) for place, cell in enumerate(cells)}
    return {
        place: replace(r, cell={**cells[place].inputs, "identity": r.cell["identity"]})
        for place, r in placed.items()
        if r is not None
    }


def aligned(records: Sequence[RunRecord], tracked: Collection[str]) -> tuple[RunRecord, ...]:
    """Records of here and elsewhere that can be set side by side: names of queries do not travel."""
    alike = all(r.key in tracked for r in records) or not any(r.values for r in records if r.key in tracked)
    return tuple(records if alike else (replace(record, query_ids=None) for record in records))
