"""Where the data of a cell come from: the catalogue or a generator, and how their identity is known.

The identity of files is the SHA-256 over their contents, so a copy elsewhere is the same data and a changed
file is not. The identity of generated data is the generator's name and version; each fold is a draw.
"""

import hashlib
import itertools
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cleanrank.data import catalogue
from cleanrank.data.files import file_sha256
from cleanrank.data.split import Splits, split
from cleanrank.data.synthetic import make_haddad, make_ranking, size_of
from cleanrank.errors import UnknownNameError
from cleanrank.ragged import from_arrays
from cleanrank.validation import one_of

if TYPE_CHECKING:
    from cleanrank.experiments.store import Store

# Of data from files: the lowest grade that becomes 1, all others 0; without it grades stay as they are.
FILE_OPTIONS: dict[str, Any] = {"relevant": 1}
# What loading takes, by kind: the preparation of texts, and the judge whose grades the noise "judge" puts in.
LOADING_OPTIONS: Mapping[str, dict[str, Any]] = {
    "text": {"terms": 5000, "weighting": "counts", "share": 1.0, "negatives": 0},
    "judged": {"judge": ""},
    **{kind: {"protocol": "sound", "history": 20, "negatives": 1} for kind in catalogue.OF_CLICKS},
}


LOADABLE = (*catalogue.LOADED, *catalogue.OF_CLICKS)


@dataclass(frozen=True)
class Generator:
    """Generated data; the version goes up when the same options (with their defaults) give other rows."""

    version: int
    make: Callable[[int, Mapping[str, Any]], Splits]
    options: Mapping[str, Any]
    size: Callable[[Mapping[str, Any]], float]  # bytes, about


@dataclass(frozen=True)
class Source:
    """What a recipe may say of a data set: its options (name -> default) and folds (None: any >= 1)."""

    name: str
    options: Mapping[str, Any]
    folds: tuple[int, ...] | None = None
    clicks: bool = False  # whether it is a log of clicks


def source_of(name: str) -> Source:
    """The source of a name, on this machine or not, under the catalogue's spelling.

    >>> source_of("mslr-web10k").folds
    (1, 2, 3, 4, 5)
    """
    if name in GENERATORS:
        return Source(name, GENERATORS[name].options)
    names = [e.name.lower() for e in catalogue.CATALOGUE.values() if e.kind in LOADABLE]
    with suppress(UnknownNameError):
        name = catalogue.entry_of(name).name.lower()
    entry = catalogue.entry_of(one_of("data set", name, [*names, *GENERATORS]))
    options = LOADING_OPTIONS.get(entry.kind, FILE_OPTIONS)
    return Source(entry.name, options, entry.folds or (1,), entry.kind in catalogue.OF_CLICKS)


def load_splits(name: str, fold: int, options: Mapping[str, Any]) -> Any:
    """Train, validation and test data: Splits, of a log of clicks ClickSplits."""
    if name in GENERATORS:
        generator = GENERATORS[name]
        return generator.make(fold, {**generator.options, **options})
    loading = LOADING_OPTIONS.get(catalogue.entry_of(name).kind, {})
    taken = {key: value for key, value in options.items() if key in loading}
    splits: Any = catalogue.load_dataset(name, fold=fold, **taken)
    if "relevant" in options:
        train, validation, test = (part.with_labels(part.y >= options["relevant"]) for part in splits)
        return Splits(train, validation, test)
    return splits


def _synthetic(fold: int, options: Mapping[str, Any]) -> Splits:
    """Three fifths train, one validates, one tests; ``test_queries``, if given, are tested on beside them."""
    shape = {key: value for key, value in options.items() if key != "test_queries"}
    n, tested = options["n_queries"], options["test_queries"]
    parts = (0.6, 0.2, 0.2) if not tested else tuple(k / (n + tested) for k in (0.75 * n, 0.25 * n, tested))
    data = make_ranking(**{**shape, "n_queries": n + tested}, seed=fold)
    train, validation, test = split(data, parts, seed=fold)
    return Splits(train, validation, test)


def _prevalence(fold: int, options: Mapping[str, Any]) -> Splits:
    """Labels alone, the same as training, validation and test data; relevant documents grow more by query."""
    from cleanrank.theory.simulation import make_labels  # imports numba

    shares = np.linspace(options["lowest"], options["highest"], options["n_queries"])
    y, indptr = make_labels(shares, options["n_docs"], np.random.default_rng(fold), options["n_grades"])
    data = from_arrays(np.zeros((len(y), 1), dtype=np.float32), y, group=np.diff(indptr))
    return Splits(data, data, data)


def _thetas(fold: int, options: Mapping[str, Any]) -> Splits:
    """A linear model of its own for every query (Haddad 2022), which has documents in all splits."""
    sizes = [options[part] for part in ("train", "validation", "test")]
    data = make_haddad(options["n_queries"], sum(sizes), dim=options["dim"], seed=fold)
    place = np.arange(data.n_docs) % sum(sizes)
    ends = itertools.pairwise(np.cumsum([0, *sizes]))
    train, validation, test = (data.select((place >= low) & (place < high)) for low, high in ends)
    return Splits(train, validation, test)


def identity_of(name: str, fold: int, options: Mapping[str, Any], *, hashes: "Store | None" = None) -> str:
    """What distinguishes these data from all others; ``hashes`` remembers hashes of large files."""
    if name in GENERATORS:
        return f"{name} {GENERATORS[name].version}"
    whole = hashlib.sha256()
    location = catalogue.find(name)
    for part in location.entry.files:
        for path in catalogue.part_files(location, part, fold):
            for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
                if file.is_file():
                    whole.update(f"{part} {_hash(file, hashes)}\n".encode())
    return whole.hexdigest()


def _hash(path: Path, hashes: "Store | None") -> str:
    stat = path.stat()
    place = str(path.resolve()), stat.st_size, stat.st_mtime_ns
    if hashes is not None and (noted := hashes.file_hash(*place)):
        return noted
    sha256 = file_sha256(path)
    if hashes is not None:
        hashes.note_file(*place, sha256)
    return sha256


GENERATORS: Mapping[str, Generator] = {
    "synthetic": Generator(
        1,
        _synthetic,
        {
            "n_queries": 300,
            "n_features": 20,
            "docs_per_query": 20.0,
            "signal": 0.7,
            "shape": "mslr",
            "test_queries": 0,
        },
        lambda o: size_of(
            o["n_queries"] + o["test_queries"], o["n_features"], o["docs_per_query"], o["shape"]
        ),
    ),
    "prevalence": Generator(
        1,
        _prevalence,
        {"n_queries": 100, "n_docs": 50, "lowest": 0.1, "highest": 0.9, "n_grades": 2},
        lambda o: 8.0 * o["n_queries"] * o["n_docs"],
    ),
    "thetas": Generator(
        1,
        _thetas,
        {"n_queries": 20, "train": 400, "validation": 100, "test": 500, "dim": 5},
        lambda o: 8.0 * o["n_queries"] * (o["train"] + o["validation"] + o["test"]) * o["dim"],
    ),
}
