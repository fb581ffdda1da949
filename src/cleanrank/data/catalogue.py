"""Finding, loading and listing the data sets of the catalogue.

They lie under one folder, named by ``root=`` or the environment variable CLEANRANK_DATA. Nothing is fetched:
what is not there gives an error that says what was looked for and how to obtain it.
"""

import difflib
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, overload

from cleanrank.data.layouts import CATALOGUE, FORMS, Entry, Fact
from cleanrank.data.split import Splits, split
from cleanrank.errors import MissingDataError, UnknownNameError, invalid
from cleanrank.types import RankingData
from cleanrank.validation import one_of

VARIABLE = "CLEANRANK_DATA"
PARTS = ("train", "validation", "test")
LOADED = ("letor", "text")
WHAT_OTHERS_ARE = {
    "ratings": "a table of users' ratings of items",
    "behaviours": "a log of users' behaviour towards items",
}


@dataclass(frozen=True)
class Found:
    """Where a data set lies.

    Attributes:
        entry: the catalogue's entry.
        folder: its folder.
        form: empty for the whole set, else what part or form of it was found.
        facts: the figures that this form is held against.
    """

    entry: Entry
    folder: Path
    form: str
    facts: tuple[Fact, ...]


def entry_of(name: str) -> Entry:
    """The entry of a name or alias; case, blanks, dots and dashes do not matter.

    >>> entry_of("MSLR-WEB30K").name, entry_of("20 newsgroups").name
    ('mslr-web30k', '20-newsgroups')
    """
    spelt = {
        _plain(each): entry.name for entry in CATALOGUE.values() for each in (entry.name, *entry.aliases)
    }
    key = _plain(str(name))
    if key in spelt:
        return CATALOGUE[spelt[key]]
    close = difflib.get_close_matches(key, spelt, n=1, cutoff=0.5)
    hint = f" Did you mean {spelt[close[0]]!r}?" if close else ""
    raise UnknownNameError(f"unknown data set {name!r}.{hint} Known: {', '.join(CATALOGUE)}.")


def data_root(root: str | os.PathLike[str] | None = None) -> Path:
    """The folder of the data sets: ``root``, else what CLEANRANK_DATA names."""
    named = os.fspath(root) if root is not None else os.environ.get(VARIABLE, "")
    if not named:
        raise MissingDataError(
            f"no data folder is named. Set {VARIABLE} to the folder that holds the data sets, or give root=."
        )
    folder = Path(named)
    if not folder.is_dir():
        origin = "root" if root is not None else VARIABLE
        raise MissingDataError(f"{origin} names {named!r}, which is no folder. Make it or name another.")
    return folder


def find(name: str, root: str | os.PathLike[str] | None = None) -> Found:
    """Where a data set lies; a MissingDataError says what was looked for and how to get it."""
    entry = entry_of(name)
    top = data_root(root)
    for spelling in entry.folders:
        folder = top / spelling
        if folder.is_dir() and _holds(entry, folder):
            form, facts = FORMS.get(Path(spelling).name, (entry.form, entry.facts))
            return Found(entry, folder, form, facts)
    looked = ", ".join(str(top / spelling) for spelling in entry.folders)
    wanted = "; ".join(" or ".join(names) for names in entry.files.values())
    inside = f" in Fold1..Fold{entry.folds[-1]}" if len(entry.folds) > 1 else ""
    raise MissingDataError(
        f"{entry.name} is not on this machine. Looked for {wanted}{inside} under {looked}. "
        f"{entry.how} It is published at {entry.page} ({entry.terms})."
    )


@overload
def load_dataset(
    name: str,
    fold: int = ...,
    part: None = ...,
    root: str | os.PathLike[str] | None = ...,
    *,
    seed: int = ...,
    validation: float = ...,
    **options: Any,
) -> Splits: ...


@overload
def load_dataset(
    name: str,
    fold: int = ...,
    part: Literal["train", "validation", "test"] = ...,
    root: str | os.PathLike[str] | None = ...,
    *,
    seed: int = ...,
    validation: float = ...,
    **options: Any,
) -> RankingData: ...


def load_dataset(
    name: str,
    fold: int = 1,
    part: str | None = None,
    root: str | os.PathLike[str] | None = None,
    *,
    seed: int = 0,
    validation: float = 0.2,
    **options: Any,
) -> Splits | RankingData:
    """Training, validation and test data of a data set at hand.

    Args:
        name: a name of the catalogue, in any spelling.
        fold: which of the shipped folds; sets with one split know fold 1 only.
        part: "train", "validation" or "test" for that part alone.
        root: the folder of the data sets; CLEANRANK_DATA when not given.
        seed: draws the validation queries (of texts, documents) of a set that ships none, such as Istella.
        validation: the share of training queries given up for validation (of texts, documents).
        options: what ``read_letor`` takes, such as ``dense`` and ``cache``; for texts, what
            ``cleanrank.data.newsgroups.make_splits`` takes, such as ``terms`` and ``weighting``.
    """
    entry = entry_of(name)
    if entry.kind not in LOADED:
        raise invalid(
            f"load_dataset({entry.name!r})",
            "needs a set of query-document features",
            WHAT_OTHERS_ARE[entry.kind],
            remedy="It has no features of its own to rank by.",
        )
    if fold not in entry.folds:
        raise invalid(
            "fold", f"must be one of {', '.join(map(str, entry.folds))} for {entry.name}", repr(fold)
        )
    if part is not None:
        one_of("part", part, PARTS)
    found = find(name, root)
    if entry.kind == "text":
        from cleanrank.data.newsgroups import load_newsgroups

        splits = load_newsgroups(part_files(found, "all"), seed=seed, validation=validation, **options)
        return splits if part is None else dict(zip(PARTS, splits, strict=True))[part]
    shipped = "validation" in entry.files

    def read(which: str) -> RankingData:
        return read_part(found, which, fold, **options)

    if not shipped and part != "test":
        train, chosen = split(read("train"), (1 - validation, validation), seed)
        if part is not None:
            return chosen if part == "validation" else train
        return Splits(train, chosen, read("test"), made_validation=True)
    if part is not None:
        return read(part)
    return Splits(read("train"), read("validation"), read("test"))


def read_part(found: Found, part: str, fold: int = 1, **options: Any) -> RankingData:
    """One part as its files give it."""
    from cleanrank.data.letor import read_letor

    files = part_files(found, part, fold)
    width = {"n_features": found.entry.columns, "zero_based": False}
    return read_letor(files if len(files) > 1 else files[0], **{**width, **options})


def part_files(found: Found, part: str, fold: int = 1) -> list[Path]:
    """The files of one part; several belong together."""
    folder = fold_folder(found.entry, found.folder, fold)
    for spelling in found.entry.files[part]:
        files = [folder / name for name in spelling.split("+")]
        if all(file.exists() for file in files):
            return files
    names = " or ".join(found.entry.files[part])
    raise MissingDataError(
        f"{found.entry.name} lacks its {part} part: there is no {names} in {str(folder)!r}. {found.entry.how}"
    )


def files(name: str, fold: int = 1, root: str | os.PathLike[str] | None = None) -> list[tuple[str, Path]]:
    """(part, file) of every file that a fold is read from."""
    found = find(name, root)
    return [(part, file) for part in found.entry.files for file in part_files(found, part, fold)]


def datasets_table(root: str | os.PathLike[str] | None = None) -> list[dict[str, Any]]:
    """One row per data set: name, kind, folds, published figures (None: not published), where it lies."""
    if root is not None or os.environ.get(VARIABLE):
        # A folder that is named but not there would look like one without data.
        data_root(root)
    rows = []
    for entry in CATALOGUE.values():
        known = {fact.what: fact.value for fact in entry.facts if fact.part == "all" and fact.fold is None}
        try:
            found: Found | None = find(entry.name, root)
        except MissingDataError:
            found = None
        rows.append(
            {
                "name": entry.name,
                "title": entry.title,
                "kind": entry.kind,
                "folds": len(entry.folds),
                "queries": known.get("queries"),
                "documents": known.get("documents"),
                "features": known.get("features"),
                "here": found is not None,
                "form": found.form if found is not None else entry.form,
                "path": "" if found is None else str(found.folder),
            }
        )
    return rows


def describe(name: str, root: str | os.PathLike[str] | None = None) -> dict[str, Any]:
    """All that the catalogue knows of a data set, JSON-like, and where it lies (empty: not at hand)."""
    entry = entry_of(name)
    try:
        found: Found | None = find(name, root)
    except MissingDataError:
        found = None
    facts = entry.facts if found is None else found.facts
    return {
        "name": entry.name,
        "aliases": list(entry.aliases),
        "title": entry.title,
        "kind": entry.kind,
        "form": entry.form if found is None else found.form,
        "folders": list(entry.folders),
        "files": {part: list(names) for part, names in entry.files.items()},
        "folds": list(entry.folds),
        "statistics": [
            {
                "part": scope_of(fact.part, fact.fold),
                "what": fact.what,
                "value": fact.value,
                "source": fact.source,
            }
            for fact in facts
        ],
        "terms": entry.terms,
        "page": entry.page,
        "how": entry.how,
        "notes": list(entry.notes),
        "path": "" if found is None else str(found.folder),
    }


def dataset_path(name: str, root: str | os.PathLike[str] | None = None) -> Path:
    """The folder (or, for a set of one file, the file) of a data set at hand."""
    found = find(name, root)
    if "all" not in found.entry.files:
        return found.folder
    files = part_files(found, "all")
    return files[0] if len(files) == 1 else found.folder


def scope_of(part: str, fold: int | None) -> str:
    """Words for a part of a fold: "fold 1 train", "train", "all"."""
    return part if fold is None else f"fold {fold} {part}"


def fold_folder(entry: Entry, folder: Path, fold: int) -> Path:
    """The folder of a fold; the set's own where there are no folds."""
    return folder / f"Fold{fold}" if len(entry.folds) > 1 else folder


def _holds(entry: Entry, folder: Path) -> bool:
    """Whether any part of any fold lies in the folder."""
    return any(
        all((fold_folder(entry, folder, fold) / name).exists() for name in spelling.split("+"))
        for fold in entry.folds
        for names in entry.files.values()
        for spelling in names
    )


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
