"""Counting what lies on this machine and holding it against what was published."""

import json
import os
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.data.catalogue import PARTS, Found, find, fold_folder, part_files, read_part, scope_of
from cleanrank.errors import BadFileError
from cleanrank.types import Array, IntArray, RankingData

BLOCK_ROWS = 65_536
Counts = Mapping[tuple[str, int | None], Mapping[str, int]]


@dataclass(frozen=True)
class Check:
    """One statistic, expected and found.

    Attributes:
        dataset: the data set.
        part: what was counted: "all", "train", "fold 2 test", ...
        what: the statistic.
        expected: the published figure; None when there is none.
        found: the counted figure; None when the part is not at hand.
        verdict: "ok", "differs", "not published" or "not at hand".
        source: where the figure was published.
        form: empty for the whole set, else what part or form of it was counted.
    """

    dataset: str
    part: str
    what: str
    expected: int | None
    found: int | None
    verdict: str
    source: str
    form: str = ""


def verify(name: str, root: str | os.PathLike[str] | None = None, *, cache: bool = True) -> list[Check]:
    """Counts a data set at hand and compares every statistic with the published one.

    A sample or another form of a set is held against its own figures and says so in ``form``; the figures of
    the whole set do not apply to it. ``cache`` is that of ``read_letor``.
    """
    found = find(name, root)
    counts = COUNTERS[found.entry.kind](found, cache)
    expected = {
        (fact.part, fold, fact.what): fact
        for fact in found.facts
        for fold in _folds_of(fact.part, fact.fold, counts)
    }
    rows = []
    for (part, fold), values in counts.items():
        for what, value in values.items():
            fact = expected.pop((part, fold, what), None)
            known = 0 if what in MUST_BE_NONE else None if fact is None else fact.value
            verdict = "not published" if known is None else "ok" if known == value else "differs"
            source = "the fold table" if what in MUST_BE_NONE else "" if fact is None else fact.source
            rows.append(
                Check(found.entry.name, scope_of(part, fold), what, known, value, verdict, source, found.form)
            )
    rows += [
        Check(
            found.entry.name,
            scope_of(part, fold),
            what,
            fact.value,
            None,
            "not at hand",
            fact.source,
            found.form,
        )
        for (part, fold, what), fact in expected.items()
    ]
    return rows


def passed(rows: list[Check]) -> bool:
    """Whether nothing differs."""
    return all(row.verdict != "differs" for row in rows)


MUST_BE_NONE = ("queries in two parts", "validation queries not tested one fold earlier")


def _folds_of(part: str, fold: int | None, counts: Counts) -> list[int | None]:
    """A figure without a fold holds for the whole of every fold."""
    if fold is not None or part != "all":
        return [fold]
    return [k for p, k in counts if p == "all"] or [None]


def _count_letor(found: Found, cache: bool) -> Counts:
    entry = found.entry
    counts: dict[tuple[str, int | None], dict[str, int]] = {}
    tested: dict[int, set[Any]] = {}
    chosen: dict[int, set[Any]] = {}
    for fold in entry.folds:
        if not fold_folder(entry, found.folder, fold).is_dir():
            continue
        number = fold if len(entry.folds) > 1 else None
        tallies = {
            part: _tally(read_part(found, part, fold, cache=cache)) for part in PARTS if part in entry.files
        }
        for part, tally in tallies.items():
            counts[part, number] = {"queries": len(tally.queries), "documents": tally.documents}
        counts["all", number] = _summed(list(tallies.values()), entry.features_used)
        tested[fold] = tallies["test"].queries
        chosen[fold] = tallies["validation"].queries if "validation" in tallies else set()
    for fold in tested:
        before = entry.folds[entry.folds.index(fold) - 1] if len(entry.folds) > 1 else None
        if before is not None and before in tested:
            counts["all", fold][MUST_BE_NONE[1]] = len(chosen[fold] ^ tested[before])
    return counts


@dataclass(frozen=True)
class _Tally:
    queries: set[Any]
    documents: int
    used: Array
    grades: IntArray


def _tally(data: RankingData) -> _Tally:
    return _Tally(set(data.query_ids.tolist()), data.n_docs, _used(data.X), np.bincount(data.y))


def _used(X: Any) -> Array:
    """Which columns hold a value other than 0; blocks of rows keep the memory small."""
    if not isinstance(X, np.ndarray):
        return np.bincount(X.indices[X.data != 0], minlength=X.shape[1]) > 0
    used = np.zeros(X.shape[1], dtype=np.bool_)
    for start in range(0, len(X), BLOCK_ROWS):
        used |= np.any(X[start : start + BLOCK_ROWS] != 0, axis=0)
    return used


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
        MUST_BE_NONE[0]: sum(len(tally.queries) for tally in tallies) - len(queries),
    }


def _count_text(found: Found, _cache: bool) -> Counts:
    files = part_files(found, "all")
    names = list(_members(files[0]) if len(files) == 1 else _files_below(files))
    groups = {name.split("/")[-2] for name in names}
    per_part = {
        part: sum(name.split("/")[-3].endswith(f"-{part}") for name in names) for part in ("train", "test")
    }
    return {
        ("all", None): {"documents": len(names), "groups": len(groups)},
        **{(part, None): {"documents": count} for part, count in per_part.items()},
    }


def _members(archive: Path) -> Iterator[str]:
    try:
        with tarfile.open(archive, "r|*") as tar:
            yield from (member.name for member in tar if member.isfile() and member.name.count("/") >= 2)
    except (tarfile.TarError, EOFError, OSError) as error:
        raise BadFileError(f"{str(archive)!r} cannot be unpacked: {error}.", str(archive)) from error


def _files_below(folders: list[Path]) -> Iterator[str]:
    for folder in folders:
        yield from (f"{folder.name}/{file.parent.name}/{file.name}" for file in folder.glob("*/*"))


def _count_ratings(found: Found, _cache: bool) -> Counts:
    table = _table(part_files(found, "all")[0], ("user", "item", "rating", "time"), "\t")
    return {("all", None): {"ratings": table.num_rows, **_distinct(table, users="user", items="item")}}


def _count_behaviours(found: Found, _cache: bool) -> Counts:
    files = part_files(found, "all")
    if files[0].suffix == ".jsonl":
        return _count_sessions(files)
    if found.entry.name != "taobao":
        return {("all", None): {"rows": _count_lines(files[0])}}
    table = _table(files[0], ("user", "item", "category", "behaviour", "time"), ",")
    kinds = _distinct(table, users="user", items="item", categories="category")
    return {("all", None): {"rows": table.num_rows, **kinds}}


def _count_sessions(files: list[Path]) -> Counts:
    items: set[int] = set()
    sessions = clicks = tests = 0
    for number, session in _json_lines(files[0]):
        _check_session(files[0], number, session)
        sessions += 1
        clicks += len(session)
        items.update(session)
    for number, (prefix, target) in _json_lines(files[1]):
        _check_session(files[1], number, [*prefix, target])
        tests += 1
        items.update(prefix)
        items.add(target)
    counts = {
        "training samples": clicks - sessions,
        "test samples": tests,
        "items": len(items),
        "clicks": clicks,
    }
    return {("all", None): counts, ("train", None): {"sessions": sessions}}


def _json_lines(file: Path) -> Iterator[tuple[int, Any]]:
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            try:
                yield number, json.loads(line)
            except ValueError as error:
                raise BadFileError(
                    f"{str(file)!r}, line {number}, is no JSON: {error}.", str(file), number
                ) from None


def _check_session(file: Path, number: int, session: Any) -> None:
    if not isinstance(session, list) or not all(isinstance(item, int) for item in session):
        raise BadFileError(f"{str(file)!r}, line {number}, must list item ids.", str(file), number)


def _table(file: Path, names: tuple[str, ...], delimiter: str) -> Any:
    import pyarrow as pa
    import pyarrow.csv

    try:
        return pyarrow.csv.read_csv(
            file,
            read_options=pyarrow.csv.ReadOptions(column_names=list(names)),
            parse_options=pyarrow.csv.ParseOptions(delimiter=delimiter),
        )
    except (pa.ArrowException, OSError) as error:
        raise BadFileError(f"{str(file)!r} cannot be read: {error}.", str(file)) from error


def _distinct(table: Any, **columns: str) -> dict[str, int]:
    import pyarrow.compute as pc

    return {what: int(pc.count_distinct(table.column(name)).as_py()) for what, name in columns.items()}


def _count_lines(file: Path) -> int:
    with file.open("rb") as stream:
        return sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))


COUNTERS: Mapping[str, Callable[..., Counts]] = {
    "letor": _count_letor,
    "text": _count_text,
    "ratings": _count_ratings,
    "behaviours": _count_behaviours,
}
