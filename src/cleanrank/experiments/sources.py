"""Where the data of a cell come from: the catalogue or a generator, and how their identity is known.

The identity of files is the SHA-256 over their contents, so a copy elsewhere is the same data and a changed
file is not. The identity of made-up data is the generator's name and version.
"""

import hashlib
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from cleanrank.data import catalogue
from cleanrank.data.arrays import from_arrays
from cleanrank.data.split import Splits, split
from cleanrank.data.synthetic import make_haddad, make_ranking
from cleanrank.errors import UnknownNameError
from cleanrank.experiments.strict import Table
from cleanrank.theory.simulation import make_labels

SYNTHETIC = "synthetic"
# Goes up when make_ranking or the split gives other rows for the same options.
SYNTHETIC_VERSION = 1
SYNTHETIC_OPTIONS: dict[str, Any] = {
    "n_queries": 300,
    "n_features": 20,
    "docs_per_query": 20.0,
    "signal": 0.7,
    "shape": "mslr",
}


# Labels alone, with the share of relevant documents rising evenly over queries.
PREVALENCE = "prevalence"
PREVALENCE_VERSION = 1
PREVALENCE_OPTIONS: dict[str, Any] = {
    "n_queries": 100,
    "n_docs": 50,
    "lowest": 0.1,
    "highest": 0.9,
    "n_grades": 2,
}
# A linear model of its own for every query (Haddad 2022), which has documents in all splits.
THETAS = "thetas"
THETAS_VERSION = 1
THETAS_OPTIONS: dict[str, Any] = {"n_queries": 20, "train": 400, "validation": 100, "test": 500, "dim": 5}
MADE_UP: dict[str, dict[str, Any]] = {
    SYNTHETIC: SYNTHETIC_OPTIONS,
    PREVALENCE: PREVALENCE_OPTIONS,
    THETAS: THETAS_OPTIONS,
}
# Of data from files: the lowest grade that becomes 1, all others 0; without it grades stay as they are.
FILE_OPTIONS: dict[str, Any] = {"relevant": 1}
# Of texts: what their preparation takes.
TEXT_OPTIONS: dict[str, Any] = {"terms": 5000, "weighting": "counts", "share": 1.0, "negatives": 0}


class Notes(Protocol):
    """Remembers hashes of files, so that a large one is read once."""

    def file_hash(self, path: str, size: int, modified_ns: int) -> str | None:
        """The hash noted for a file of this size and time."""
        ...

    def note_file(self, path: str, size: int, modified_ns: int, sha256: str) -> None:
        """Notes one."""
        ...


def check_data(table: Table, name: str, folds: Sequence[int], options: Mapping[str, Any]) -> str:
    """Checks what a recipe says about a data set, at hand or not; returns the catalogue's name of it."""
    if name in MADE_UP:
        given = Table(options, table.at("options"), MADE_UP[name])
        for key, default in MADE_UP[name].items():
            given.get(key, type(default), default)
        for fold in folds:
            if fold < 1:
                table.fail("folds", "must be 1 or more", fold)
        return name
    ranked = [e.name.lower() for e in catalogue.CATALOGUE.values() if e.kind in catalogue.LOADED]
    try:
        entry = catalogue.entry_of(name)
    except UnknownNameError:
        entry = None
    if entry is None or entry.kind not in catalogue.LOADED:
        table.known("name", "data set", name, [*ranked, *MADE_UP])
    assert entry is not None
    known = TEXT_OPTIONS if entry.kind == "text" else FILE_OPTIONS
    given = Table(options, table.at("options"), known)
    for key, default in known.items():
        given.get(key, type(default), default)
    if options.get("relevant", 1) < 1:
        given.fail("relevant", "must be a grade from 1 on", options["relevant"])
    there = entry.folds or (1,)
    for fold in folds:
        if fold not in there:
            table.fail("folds", f"must be among {', '.join(map(str, there))}", fold)
    return entry.name


def load_splits(name: str, fold: int, options: Mapping[str, Any]) -> Splits:
    """Train, validation and test data; a fold of made-up data is a draw of its own."""
    if name == PREVALENCE:
        return _prevalence(fold, {**PREVALENCE_OPTIONS, **options})
    if name == THETAS:
        return _thetas(fold, {**THETAS_OPTIONS, **options})
    if name != SYNTHETIC:
        texts = catalogue.entry_of(name).kind == "text"
        found: Splits = catalogue.load_dataset(name, fold=fold, **(options if texts else {}))
        return _binary(found, options["relevant"]) if "relevant" in options else found
    given = {**SYNTHETIC_OPTIONS, **options}
    train, validation, test = split(make_ranking(**given, seed=fold), (0.6, 0.2, 0.2), seed=fold)
    return Splits(train, validation, test)


def _prevalence(fold: int, given: Mapping[str, Any]) -> Splits:
    """The same queries as training, validation and test data, without features."""
    shares = np.linspace(given["lowest"], given["highest"], given["n_queries"])
    y, indptr = make_labels(shares, given["n_docs"], np.random.default_rng(fold), given["n_grades"])
    data = from_arrays(np.zeros((len(y), 1), dtype=np.float32), y, group=np.diff(indptr))
    return Splits(data, data, data)


def _thetas(fold: int, given: Mapping[str, Any]) -> Splits:
    sizes = [given[part] for part in ("train", "validation", "test")]
    data = make_haddad(given["n_queries"], sum(sizes), dim=given["dim"], seed=fold)
    place = np.arange(data.n_docs) % sum(sizes)
    ends = np.cumsum([0, *sizes])
    train, validation, test = (
        data.select((place >= low) & (place < high)) for low, high in itertools.pairwise(ends)
    )
    return Splits(train, validation, test)


def _binary(splits: Splits, relevant: int) -> Splits:
    train, validation, test = (
        d.with_labels(d.y >= relevant) for d in (splits.train, splits.validation, splits.test)
    )
    return Splits(train, validation, test)


def identity_of(name: str, fold: int, options: Mapping[str, Any], *, notes: Notes | None = None) -> str:
    """What tells these data from all others."""
    if name == SYNTHETIC:
        return f"{SYNTHETIC} {SYNTHETIC_VERSION}"
    if name == PREVALENCE:
        return f"{PREVALENCE} {PREVALENCE_VERSION}"
    if name == THETAS:
        return f"{THETAS} {THETAS_VERSION}"
    whole = hashlib.sha256()
    found = catalogue.find(name)
    for part in found.entry.files:
        for path in _single_files(catalogue.part_files(found, part, fold)):
            whole.update(f"{part} {_hash(path, notes)}\n".encode())
    return whole.hexdigest()


def _single_files(paths: Sequence[Path]) -> list[Path]:
    """Files, and of folders the files below them."""
    below = (sorted(p.rglob("*")) if p.is_dir() else [p] for p in paths)
    return [file for files in below for file in files if file.is_file()]


def _hash(path: Path, notes: Notes | None) -> str:
    stat = path.stat()
    place = str(path.resolve()), stat.st_size, stat.st_mtime_ns
    if notes is not None and (noted := notes.file_hash(*place)):
        return noted
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if notes is not None:
        notes.note_file(*place, found)
    return found
