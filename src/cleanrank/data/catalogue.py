"""Finding, loading and listing the data sets of ``catalogue.toml``.

They lie under one folder, named by ``root=`` or the environment variable CLEANRANK_DATA. Nothing is fetched:
what is not there gives an error that says what was looked for and how to obtain it.
"""

import difflib
import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.resources import files as package_files
from pathlib import Path
from typing import Any, Literal, TypeAlias, overload

from cleanrank.data.behaviours import ClickRows, ClickSplits
from cleanrank.data.split import Splits, split
from cleanrank.errors import MissingDataError, UnknownNameError, invalid
from cleanrank.types import RankingData
from cleanrank.validation import check_path, one_of

VARIABLE = "CLEANRANK_DATA"
PARTS = ("train", "validation", "test")
LOADED = ("letor", "text", "judged")
OF_CLICKS = ("ratings", "behaviours")
Root: TypeAlias = str | os.PathLike[str] | None


@dataclass(frozen=True)
class Fact:
    """A published figure.

    Attributes:
        what: what is counted: "queries", "documents", "features", "grade 0", "users", ...
        value: the figure.
        source: where it was published.
        part: "all", or the part it holds for: "train", "validation", "test".
        fold: the fold it holds for; None for every fold, or for the union of the test parts of all folds.
    """

    what: str
    value: int
    source: str
    part: str = "all"
    fold: int | None = None


@dataclass(frozen=True)
class Entry:
    """One data set of the catalogue; ``catalogue.toml`` says what each field holds."""

    name: str
    title: str
    kind: str
    folders: tuple[str, ...]
    files: Mapping[str, tuple[str, ...]]
    facts: tuple[Fact, ...]
    page: str
    how_to_get: str
    terms: str
    folds: tuple[int, ...]
    notes: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    columns: int = 0
    features_used: bool = False
    form: str = ""

    def folder_of(self, folder: Path, fold: int) -> Path:
        """The folder of a fold; the set's own where folds have no folders."""
        return folder / f"Fold{fold}" if self.has_fold_folders else folder

    @property
    def has_fold_folders(self) -> bool:
        """Whether folds are shipped as folders, not cut from one table."""
        return len(self.folds) > 1 and "all" not in self.files


@dataclass(frozen=True)
class Location:
    """Where a data set lies.

    Attributes:
        entry: the catalogue's entry.
        folder: its folder.
        form: empty for the whole set, else what part or form of it lies there.
        facts: the published figures of this form.
    """

    entry: Entry
    folder: Path
    form: str
    facts: tuple[Fact, ...]


@dataclass(frozen=True)
class DatasetInfo:
    """One line of ``list_datasets``.

    Attributes:
        name: its key.
        title: its full name.
        kind: "letor", "text" and "judged" load as ranking data; "ratings" and "behaviours" as rows of clicks.
        folds: how many folds it ships.
        queries: as published, over all parts; None where it is not published.
        documents: as published.
        features: as published.
        form: empty for the whole set, else what part or form of it this is.
        path: its folder; None where it is not on this machine.
    """

    name: str
    title: str
    kind: str
    folds: int
    queries: int | None
    documents: int | None
    features: int | None
    form: str
    path: Path | None


def list_datasets(root: Root = None) -> list[DatasetInfo]:
    """The known data sets and where they lie on this machine.

    Args:
        root: the folder of the data sets; CLEANRANK_DATA when not given.

    Returns:
        A DatasetInfo for every data set of the catalogue.

    >>> [info.name for info in list_datasets() if info.title.startswith("Microsoft")]
    ['mslr-web10k', 'mslr-web30k']
    """
    if root is not None or os.environ.get(VARIABLE):
        # A folder that is named but not there would look like one without data.
        data_root(root)
    rows = []
    for entry in CATALOGUE.values():
        figures = {fact.what: fact.value for fact in entry.facts if fact.part == "all" and fact.fold is None}
        at = _find_or_none(entry.name, root)
        rows.append(
            DatasetInfo(
                name=entry.name,
                title=entry.title,
                kind=entry.kind,
                folds=len(entry.folds),
                queries=figures.get("queries"),
                documents=figures.get("documents"),
                features=figures.get("features"),
                form=entry.form if at is None else at.form,
                path=None if at is None else at.folder,
            )
        )
    return rows


def entry_of(name: str) -> Entry:
    """The entry of a name or alias; case, blanks, dots and dashes do not matter.

    >>> entry_of("MSLR-WEB30K").name, entry_of("20 newsgroups").name
    ('mslr-web30k', '20-newsgroups')
    """
    spellings = {
        _plain(each): entry.name for entry in CATALOGUE.values() for each in (entry.name, *entry.aliases)
    }
    key = _plain(str(name))
    if key in spellings:
        return CATALOGUE[spellings[key]]
    close = difflib.get_close_matches(key, spellings, n=1, cutoff=0.5)
    hint = f" Did you mean {spellings[close[0]]!r}?" if close else ""
    raise UnknownNameError(f"unknown data set {name!r}.{hint} Known: {', '.join(CATALOGUE)}.")


def data_root(root: Root = None, wanted: str = "data sets") -> Path:
    """The folder of the data sets: ``root``, else what CLEANRANK_DATA names; ``wanted`` is for the error."""
    name = str(check_path(root)) if root is not None else os.environ.get(VARIABLE, "")
    if not name:
        raise MissingDataError(
            f"{wanted}: no data folder is named. Set {VARIABLE} to the folder that holds the data sets, "
            "or give root= in Python."
        )
    folder = Path(name)
    if not folder.is_dir():
        origin = "root" if root is not None else VARIABLE
        raise MissingDataError(f"{origin} names {name!r}, which is no folder. Make it or name another.")
    return folder


def find(name: str, root: Root = None) -> Location:
    """Where a data set lies; a MissingDataError says what was looked for and how to get it."""
    entry = entry_of(name)
    top = data_root(root, entry.name)
    for spelling in entry.folders:
        folder = top / spelling
        if folder.is_dir() and _holds(entry, folder):
            form, facts = FORMS.get(Path(spelling).name, (entry.form, entry.facts))
            return Location(entry, folder, form, facts)
    folders = ", ".join(str(top / spelling) for spelling in entry.folders)
    names = "; ".join(" or ".join(spellings) for spellings in entry.files.values())
    inside = f" in Fold1..Fold{entry.folds[-1]}" if entry.has_fold_folders else ""
    raise MissingDataError(
        f"{entry.name} is not on this machine. Looked for {names}{inside} under {folders}. "
        f"{entry.how_to_get} It is published at {entry.page} ({entry.terms})."
    )


@overload
def load_dataset(
    name: Literal["movielens-100k", "ml-100k", "taobao", "tmall", "alipay"],
    fold: int = ...,
    part: None = ...,
    root: Root = ...,
    *,
    seed: int = ...,
    validation: float = ...,
    **options: Any,
) -> ClickSplits: ...


@overload
def load_dataset(
    name: str,
    fold: int = ...,
    part: None = ...,
    root: Root = ...,
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
    root: Root = ...,
    *,
    seed: int = ...,
    validation: float = ...,
    **options: Any,
) -> RankingData: ...


def load_dataset(
    name: str,
    fold: int = 1,
    part: str | None = None,
    root: Root = None,
    *,
    seed: int = 0,
    validation: float = 0.2,
    **options: Any,
) -> Splits | RankingData | ClickSplits | ClickRows:
    """Training, validation and test data of a data set on this machine.

    Args:
        name: a name of the catalogue, in any spelling.
        fold: which of the shipped folds; sets with one split know fold 1 only.
        part: "train", "validation" or "test" for that part alone.
        root: the folder of the data sets; CLEANRANK_DATA when not given.
        seed: draws the validation queries (of texts, documents) of a set that ships none, such as Istella.
        validation: the share of training queries used for validation then (of texts, documents; of sessions
            of clicks, sessions).
        options: what ``read_letor`` takes, such as ``dense`` and ``cache``; for texts, what
            ``cleanrank.data.newsgroups.make_splits`` takes, such as ``terms`` and ``weighting``; for dl19 and
            dl20, ``judge``: whose grades stand beside NIST's, as ``extra["judge"]``; for logs of clicks, what
            ``load_clicks`` takes, such as ``protocol``.

    Returns:
        The three parts as Splits, or the one part that ``part`` names; of a log of clicks (movielens-100k,
        taobao, tmall, alipay) ClickSplits, or its ClickRows.
    """
    entry = entry_of(name)
    if fold not in entry.folds:
        rule = f"must be one of {', '.join(map(str, entry.folds))} for {entry.name}"
        raise invalid("fold", rule, repr(fold))
    if part is not None:
        one_of("part", part, PARTS)
    if entry.kind in OF_CLICKS:
        from cleanrank.data.click_sets import load_clicks

        clicks = load_clicks(name, root, seed=seed, validation=validation, **options)
        return clicks if part is None else dict(zip(PARTS, clicks, strict=True))[part]
    at = find(name, root)
    if entry.kind == "text":
        from cleanrank.data.newsgroups import make_splits, read_newsgroups

        documents = read_newsgroups(part_files(at, "all"))
        splits = make_splits(documents, seed=seed, validation=validation, **options)
    elif entry.kind == "judged":
        from cleanrank.data.judged import judged_splits

        labels, features = part_files(at, "all")
        splits = judged_splits(labels, features, fold, **options)
    elif part == "test" or "validation" in entry.files:
        if part is not None:
            return read_part(at, part, fold, **options)
        train, held_out, test = (read_part(at, each, fold, **options) for each in PARTS)
        splits = Splits(train, held_out, test)
    else:
        train, held_out = split(read_part(at, "train", fold, **options), (1 - validation, validation), seed)
        if part is not None:
            return held_out if part == "validation" else train
        splits = Splits(train, held_out, read_part(at, "test", fold, **options), made_validation=True)
    return splits if part is None else dict(zip(PARTS, splits, strict=True))[part]


def read_part(at: Location, part: str, fold: int = 1, **options: Any) -> RankingData:
    """One part as its files give it."""
    from cleanrank.data.letor import read_letor

    files = part_files(at, part, fold)
    return read_letor(files, **{"n_features": at.entry.columns, "zero_based": False, **options})


def part_files(at: Location, part: str, fold: int = 1) -> list[Path]:
    """The files of one part; several belong together."""
    folder = at.entry.folder_of(at.folder, fold)
    for spelling in at.entry.files[part]:
        files = [folder / name for name in spelling.split("+")]
        if all(file.exists() for file in files):
            return files
    lacks = f"there is no {' or '.join(at.entry.files[part])} in {str(folder)!r}"
    raise MissingDataError(f"{at.entry.name} lacks its {part} part: {lacks}. {at.entry.how_to_get}")


def describe(name: str, root: Root = None) -> dict[str, Any]:
    """All that the catalogue knows of a data set, JSON-like, and where it lies (empty: not here)."""
    entry, at = entry_of(name), _find_or_none(name, root)
    hidden = ("facts", "columns", "features_used")
    return {
        **{field: value for field, value in asdict(entry).items() if field not in hidden},
        "form": entry.form if at is None else at.form,
        "statistics": [
            {"part": part_name(f.part, f.fold), "what": f.what, "value": f.value, "source": f.source}
            for f in (entry.facts if at is None else at.facts)
        ],
        "path": "" if at is None else str(at.folder),
    }


def dataset_path(name: str, root: Root = None) -> Path:
    """The folder (or, for a set of one file, the file) of a data set on this machine."""
    at = find(name, root)
    files = part_files(at, "all") if "all" in at.entry.files else []
    return files[0] if len(files) == 1 else at.folder


def part_name(part: str, fold: int | None) -> str:
    """A part of a fold in words: "fold 1 train", "train", "all"."""
    return part if fold is None else f"fold {fold} {part}"


def _find_or_none(name: str, root: Root) -> Location | None:
    try:
        return find(name, root)
    except MissingDataError:
        return None


def _holds(entry: Entry, folder: Path) -> bool:
    """Whether any part of any fold lies in the folder."""
    return any(
        all((entry.folder_of(folder, fold) / name).exists() for name in spelling.split("+"))
        for fold in entry.folds
        for names in entry.files.values()
        for spelling in names
    )


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _facts(rows: list[dict[str, Any]], sources: Mapping[str, str]) -> tuple[Fact, ...]:
    facts = []
    for row in rows:
        part, fold, source = row.pop("part", "all"), row.pop("fold", None), sources[row.pop("source")]
        grades = {f"grade {g}": count for g, count in enumerate(row.pop("grades", ()))}
        facts += [Fact(what, value, source, part, fold) for what, value in {**row, **grades}.items()]
    return tuple(facts)


def _read_catalogue() -> tuple[dict[str, Entry], dict[str, tuple[str, tuple[Fact, ...]]]]:
    """The entries by name, and what is known of samples and other forms by the name of their folder."""
    text = (package_files("cleanrank.data") / "catalogue.toml").read_text(encoding="utf-8")
    tables = tomllib.loads(text)
    entries = {}
    for row in tables["dataset"]:
        fields = {"facts": [], **tables["family"].get(row.pop("family", ""), {}), **row}
        fields["files"] = {part: tuple(names) for part, names in fields["files"].items()}
        fields["folds"] = tuple(range(1, fields.get("folds", 1) + 1))
        fields["facts"] = _facts(fields["facts"], tables["source"])
        lists = {field: tuple(fields.get(field, ())) for field in ("folders", "notes", "aliases")}
        entries[fields["name"]] = Entry(**{**fields, **lists})
    forms = {
        folder: (form["form"], _facts(form["facts"], tables["source"]))
        for folder, form in tables["form"].items()
    }
    return entries, forms


CATALOGUE, FORMS = _read_catalogue()
