"""Counts a data set on this machine and compares it with its published figures."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from cleanrank.data.catalogue import PARTS, Fact, Location, Root, find, part_files, part_name, read_part
from cleanrank.data.click_sets import item_lines
from cleanrank.data.judged import judges_of, read_judged
from cleanrank.data.newsgroups import read_newsgroups
from cleanrank.data.spreadsheet import read_frame
from cleanrank.errors import BadFileError
from cleanrank.stored import blocks, is_dense
from cleanrank.types import Array, IntArray, RankingData

IN_TWO_PARTS = "queries in two parts"
NOT_TESTED_BEFORE = "validation queries not tested one fold earlier"
Counts: TypeAlias = dict[tuple[str, int | None], dict[str, int]]


@dataclass(frozen=True)
class Check:
    """One statistic, as published and as counted.

    Attributes:
        part: what was counted: "all", "train", "fold 2 test", ...
        published: the published figure; None when there is none.
        counted: the figure on this machine; None when the part is not there.
        verdict: "ok", "differs", "not published" or "not at hand".
        form: empty for the whole set, else what part or form of it was counted.
    """

    dataset: str
    part: str
    what: str
    published: int | None
    counted: int | None
    verdict: str
    source: str
    form: str = ""


def verify(name: str, root: Root = None, *, cache: bool = True) -> list[Check]:
    """Counts a data set on this machine and compares every statistic with the published one.

    A sample or another form of a set is compared with its own figures and says so in ``form``; the figures of
    the whole set do not apply to it. ``cache`` is that of ``read_letor``.
    """
    at = find(name, root)
    counts = COUNTERS[at.entry.kind](at, cache)
    # A figure without a fold holds for the whole of every fold.
    wholes = [fold for part, fold in counts if part == "all"] or [None]
    facts = {
        (fact.part, fold, fact.what): fact
        for fact in at.facts
        for fold in (wholes if fact.part == "all" and fact.fold is None else [fact.fold])
    }
    counted = {(*place, what): n for place, values in counts.items() for what, n in values.items()}

    def check(key: tuple[str, int | None, str]) -> Check:
        part, fold, what = key
        zero = Fact(what, 0, "the fold table") if what in (IN_TWO_PARTS, NOT_TESTED_BEFORE) else None
        fact, n = facts.get(key, zero), counted.get(key)
        published = None if fact is None else fact.value
        verdict = "not published" if fact is None else "ok" if n == published else "differs"
        verdict = "not at hand" if n is None else verdict
        source = "" if fact is None else fact.source
        return Check(at.entry.name, part_name(part, fold), what, published, n, verdict, source, at.form)

    return [check(key) for key in {**counted, **facts}]


def passed(rows: list[Check]) -> bool:
    """Whether nothing differs."""
    return all(row.verdict != "differs" for row in rows)


@dataclass(frozen=True)
class _Tally:
    queries: set[Any]
    documents: int
    used: Array
    grades: IntArray

    @classmethod
    def of(cls, data: RankingData) -> "_Tally":
        X: Any = data.X
        if is_dense(X):
            used: Array = np.any([block.any(axis=0) for _, block in blocks(X)], axis=0)
        else:
            used = np.bincount(X.indices[X.data != 0], minlength=X.shape[1]) > 0
        return cls(set(data.query_ids.tolist()), data.n_docs, used, np.bincount(data.y))


def _count_letor(at: Location, cache: bool) -> Counts:
    entry = at.entry
    parts = [part for part in PARTS if part in entry.files]
    tallies: dict[int, dict[str, _Tally]] = {}
    counts: Counts = {}
    for fold in entry.folds:
        if not entry.folder_of(at.folder, fold).is_dir():
            continue
        tallies[fold] = {part: _Tally.of(read_part(at, part, fold, cache=cache)) for part in parts}
        number = fold if len(entry.folds) > 1 else None
        for part, tally in tallies[fold].items():
            counts[part, number] = {"queries": len(tally.queries), "documents": tally.documents}
        counts["all", number] = _summed(list(tallies[fold].values()), entry.features_used)
    for fold in tallies:
        before = entry.folds[entry.folds.index(fold) - 1]
        if len(entry.folds) > 1 and before in tallies:
            stray = tallies[fold]["validation"].queries ^ tallies[before]["test"].queries
            counts["all", fold][NOT_TESTED_BEFORE] = len(stray)
    return counts


def _summed(tallies: list[_Tally], features_used: bool) -> dict[str, int]:
    queries = set().union(*(tally.queries for tally in tallies))
    most = max(len(tally.grades) for tally in tallies)
    grades = np.sum([np.pad(t.grades, (0, most - len(t.grades))) for t in tallies], axis=0)
    used = np.any([tally.used for tally in tallies], axis=0)
    last = int(np.max(np.flatnonzero(used), initial=-1)) + 1
    return {
        "queries": len(queries),
        "documents": sum(tally.documents for tally in tallies),
        "features": int(used.sum()) if features_used else last,
        **{f"grade {g}": int(count) for g, count in enumerate(grades)},
        IN_TWO_PARTS: sum(len(tally.queries) for tally in tallies) - len(queries),
    }


def _count_text(at: Location, _cache: bool) -> Counts:
    documents = read_newsgroups(part_files(at, "all"))
    parts = Counter(document.part for document in documents)
    groups = {document.group for document in documents}
    return {
        ("all", None): {"documents": len(documents), "groups": len(groups)},
        **{(part, None): {"documents": parts[part]} for part in ("train", "test")},
    }


def _count_judged(at: Location, _cache: bool) -> Counts:
    labels, features = part_files(at, "all")
    tally = _Tally.of(data := read_judged(labels, features))
    counts = _summed([tally], features_used=False)
    del counts[IN_TWO_PARTS]
    judges = judges_of([str(name) for name in read_frame(labels).columns])
    return {("all", None): {**counts, "features": data.n_features, "judges": len(judges)}}


def _count_ratings(at: Location, _cache: bool) -> Counts:
    file, names = part_files(at, "all")[0], ("users", "items", "rating", "time")
    return {("all", None): _count_table(file, names, "\t", "ratings", counted=2)}


def _count_behaviours(at: Location, _cache: bool) -> Counts:
    files = part_files(at, "all")
    if files[0].suffix == ".jsonl":
        return _count_sessions(*files)
    if at.entry.name != "taobao":
        with files[0].open("rb") as stream:
            blocks = iter(lambda: stream.read(1 << 20), b"")
            return {("all", None): {"rows": sum(block.count(b"\n") for block in blocks)}}
    names = ("users", "items", "categories", "behaviour", "time")
    return {("all", None): _count_table(files[0], names, ",", "rows", counted=3)}


def _count_sessions(train: Path, test: Path) -> Counts:
    sessions = list(item_lines(train, lambda line: line))
    tests = list(item_lines(test, lambda line: [*line[0], line[1]]))
    clicks = sum(map(len, sessions))
    counts = {
        "training samples": clicks - len(sessions),
        "test samples": len(tests),
        "items": len(set().union(*sessions, *tests)),
        "clicks": clicks,
    }
    return {("all", None): counts, ("train", None): {"sessions": len(sessions)}}


def _count_table(
    file: Path, names: tuple[str, ...], delimiter: str, rows: str, *, counted: int
) -> dict[str, int]:
    """The rows of a table without a header, and the different values of its first ``counted`` columns."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv

    read = pyarrow.csv.ReadOptions(column_names=list(names))
    try:
        table = pyarrow.csv.read_csv(file, read, pyarrow.csv.ParseOptions(delimiter=delimiter))
    except (pa.ArrowException, OSError) as error:
        raise BadFileError(f"{str(file)!r} cannot be read: {error}.", str(file)) from error
    different = {name: pc.count_distinct(table.column(name)).as_py() for name in names[:counted]}
    return {rows: table.num_rows, **different}


COUNTERS: Mapping[str, Callable[[Location, bool], Counts]] = {
    "letor": _count_letor,
    "text": _count_text,
    "judged": _count_judged,
    "ratings": _count_ratings,
    "behaviours": _count_behaviours,
}
