"""Logs of the catalogue as rows of clicks: MovieLens, Taobao, Tmall, Alipay, sessions of items.

* MovieLens: a rating of at least 4 is a click. Lower ratings are ignored: they are neither history nor
  target, and such an item may be drawn as a negative. With ``shown=True`` they are rows "shown, not clicked"
  instead, and no negatives are drawn: a harder question, since the user chose to rate both.
* Taobao: page views ("pv") are clicks, other behaviours are ignored. Times are shifted to China's (UTC+8).
* Tmall's log: all four actions are clicks, as in UBR4CTR; ``clicks=`` names others. Dates have no year; 2015
  is assumed, as there. ``user_info_format1.csv`` gives age and gender where it lies beside the log.
* Tmall's sessions: a session is a user; there are no times, and the user's field is 0 throughout. Test
  sessions are those of the test file; validation sessions are drawn from the training ones.
* Alipay: behaviour 0 (a click) counts, 1 (a purchase) is ignored.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.data.behaviours import ClickSplits
from cleanrank.data.catalogue import Root, find, part_files
from cleanrank.data.events import Events, codes_of, read_events
from cleanrank.data.protocols import prepare_clicks
from cleanrank.errors import BadFileError, invalid
from cleanrank.types import Array, IntArray
from cleanrank.validation import check_number

LIKED, OTHERS = ("4", "5"), ("1", "2", "3")  # ratings
PAGE_VIEWS, TAOBAO_KNOWN = ("pv",), ("pv", "buy", "cart", "fav")
ACTIONS = ("0", "1", "2", "3")
CHINA = 8 * 3600
YEAR = 2015
GENRES = 19


def load_clicks(name: str, root: Root = None, *, validation: float = 0.2, **options: Any) -> ClickSplits:
    """Rows of clicks of a log of the catalogue on this machine.

    Args:
        name: "movielens-100k", "taobao", "tmall" or "alipay", in any spelling of the catalogue.
        root: the folder of the data sets; CLEANRANK_DATA when not given.
        validation: the share of training sessions to validate with, of a set whose files say what is training
            and what is test, such as Tmall's sessions.
        options: what ``prepare_clicks`` takes; for MovieLens also ``shown``, for the other logs ``clicks``.

    Returns:
        The rows to train on, to validate and to test with.
    """
    at = find(name, root)
    if at.entry.name not in CLICK_SETS:
        known = ", ".join(CLICK_SETS)
        rule = f"needs a log of clicks, one of {known}"
        raise invalid(f"load_clicks({at.entry.name!r})", rule, f"a set of kind {at.entry.kind!r}")
    files = part_files(at, "all")
    chosen = SESSIONS if files[0].suffix == ".jsonl" else CLICK_SETS[at.entry.name]
    mine: dict[str, Any] = {option: options.pop(option) for option in chosen.options if option in options}
    if chosen is SESSIONS:
        mine = {"validation": validation, "seed": options.get("seed", 0)}
    settings: dict[str, Any] = {"context": chosen.context, "targets": chosen.targets}
    if options.get("protocol") == "ubr":
        settings = {"context": chosen.context, "own": chosen.own}
    return prepare_clicks(chosen.read(files, **mine), **{**settings, **options})


def read_ratings(files: Sequence[Path], *, shown: bool = False) -> Events:
    """MovieLens 100K: u.data, and u.user and u.item if they are among the files."""
    names = ("user", "item", "rating", "time")
    events = read_events(
        files[0],
        behaviour="rating",
        clicks=LIKED,
        shown=OTHERS if shown else (),
        known=OTHERS + LIKED,
        names=names,
        delimiter="\t",
    )
    fields: dict[str, dict[str, Any]] = {"user": {}, "item": {}}
    meanings: dict[str, Array] = {}
    report = dict(events.report)
    for kind, ids in (("user", events.user_ids), ("item", events.item_ids)):
        table = next((file for file in files if file.name == f"u.{kind}"), None)
        if table is None:
            continue
        lines = [line.split("|") for line in table.read_text(encoding="latin-1").splitlines() if line.strip()]
        try:
            columns = (_user_columns if kind == "user" else _item_columns)(lines)
            table_ids = np.array([int(line[0]) for line in lines])
        except (ValueError, IndexError) as error:
            words = f"{str(table)!r} cannot be read as MovieLens' table of {kind}s: {error}."
            raise BadFileError(words, str(table)) from error
        for name, values in columns.items():
            fields[kind][name], meanings[name], missing = codes_of(ids, table_ids, values)
            report[f"{kind}s that are not in {table.name}"] = missing
    read = replace(events, user_fields=fields["user"], item_fields=fields["item"])
    return replace(read, values=meanings, report=report)


def _user_columns(lines: list[list[str]]) -> dict[str, Array]:
    return {
        "age": np.array([int(line[1]) // 10 for line in lines]),
        "gender": np.array([line[2] for line in lines]),
        "occupation": np.array([line[3] for line in lines]),
    }


def _item_columns(lines: list[list[str]]) -> dict[str, Array]:
    flags = np.array([[int(flag) for flag in line[-GENRES:]] for line in lines])
    years = [line[2][-4:] for line in lines]
    return {"genre": flags.argmax(axis=1), "year": np.array(years)}


def read_taobao(files: Sequence[Path], *, clicks: Sequence[str] = PAGE_VIEWS) -> Events:
    """UserBehavior.csv: user, item, category, behaviour, seconds; no header."""
    names = ("user", "item", "category", "behaviour", "time")
    events = read_events(
        files[0],
        behaviour="behaviour",
        clicks=clicks,
        known=TAOBAO_KNOWN,
        item_fields=("category",),
        names=names,
    )
    assert events.times is not None
    return replace(events, times=events.times + CHINA)


def read_tmall(files: Sequence[Path], *, clicks: Sequence[str] = ACTIONS) -> Events:
    """user_log_format1.csv, and user_info_format1.csv if it is among the files."""
    events = read_events(
        files[0],
        user="user_id",
        item="item_id",
        time="time_stamp",
        behaviour="action_type",
        clicks=clicks,
        known=ACTIONS,
        item_fields=("cat_id", "seller_id", "brand_id"),
    )
    assert events.times is not None
    report, fields, values = dict(events.report), {}, dict(events.values)
    for info in files[1:]:
        from cleanrank.data.spreadsheet import read_frame

        frame = read_frame(info)
        for name in ("age_range", "gender"):
            table_ids, column = frame["user_id"].to_numpy(np.int64), frame[name].astype(str).to_numpy(str)
            fields[name], values[name], missing = codes_of(events.user_ids, table_ids, column)
            report[f"users that are not in {info.name}"] = missing
    times = _day_seconds(files[0], events.times + YEAR * 10_000)
    return replace(events, times=times, user_fields=fields, values=values, report=report)


def read_alipay(files: Sequence[Path], *, clicks: Sequence[str] = ACTIONS[:1]) -> Events:
    """ijcai2016_taobao.csv: use_ID, sel_ID, ite_ID, cat_ID, act_ID, time (yyyymmdd)."""
    events = read_events(
        files[0],
        user="use_ID",
        item="ite_ID",
        time="time",
        behaviour="act_ID",
        clicks=clicks,
        known=ACTIONS[:2],
        item_fields=("cat_ID", "sel_ID"),
    )
    assert events.times is not None
    return replace(events, times=_day_seconds(files[0], events.times))


def read_sessions(files: Sequence[Path], *, validation: float = 0.2, seed: int = 0) -> Events:
    """Lines of JSON: items of training sessions; prefixes and targets of test sessions, longest prefix first.

    A test session is put together from its lines, so that each of them gives one target.
    """
    check_number("validation", validation, above=0, below=1)
    train = list(item_lines(files[0], lambda line: line))
    tests: list[list[int]] = []
    longer: list[int] = []
    for items in item_lines(files[1], lambda line: [*line[0], line[1]]):
        if items != longer[:-1]:
            tests.append(items)
        longer = items
    sessions = train + tests
    lengths = np.array([len(items) for items in sessions])
    part = np.zeros(len(sessions), dtype=np.int8)
    part[len(train) :] = 2
    held = np.random.default_rng(seed).permutation(len(train))[: round(validation * len(train))]
    part[held] = 1
    flat = np.concatenate([np.array(items, dtype=np.int64) for items in sessions])
    item_ids, numbers = np.unique(flat, return_inverse=True)
    return Events(
        users=np.repeat(np.arange(len(sessions), dtype=np.int32), lengths),
        items=numbers.astype(np.int32),
        user_ids=np.arange(len(sessions)),
        item_ids=item_ids,
        parts=np.repeat(part, lengths),
        anonymous=True,
        report={"training sessions": len(train) - len(held), "validation sessions": len(held)},
    )


def item_lines(file: Path, items_of: Callable[[Any], Any]) -> Iterator[list[int]]:
    """The item ids of every line of JSON."""
    with file.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, start=1):
            where = f"{str(file)!r}, line {number},"
            try:
                session = items_of(json.loads(line))
            except (ValueError, TypeError, IndexError, KeyError) as error:
                raise BadFileError(f"{where} is no JSON of sessions: {error}.", str(file), number) from None
            if not isinstance(session, list) or not all(isinstance(item, int) for item in session):
                raise BadFileError(f"{where} must list item ids.", str(file), number)
            yield session


def _day_seconds(file: Path, days: IntArray) -> IntArray:
    """Dates written as the number yyyymmdd, in seconds."""
    kinds, kind_of = np.unique(days, return_inverse=True)
    try:
        texts = [f"{day // 10_000:04d}-{day // 100 % 100:02d}-{day % 100:02d}" for day in kinds.tolist()]
        seconds = np.array(texts, dtype="datetime64[s]").astype(np.int64)
    except ValueError as error:
        raise BadFileError(f"{str(file)!r} has a date that is none: {error}.", str(file)) from error
    return seconds[kind_of]


@dataclass(frozen=True)
class ClickSet:
    """How a log is read, and its settings: fields of the moment, targets per user and part, UBR's ``own``."""

    read: Callable[..., Events]
    options: tuple[str, ...]
    context: tuple[str, ...] = ()
    targets: int | None = None
    own: float = 0.5


SESSIONS = ClickSet(read_sessions, ())
DATES = ("season", "half_month")
CLICK_SETS: Mapping[str, ClickSet] = {
    "movielens-100k": ClickSet(read_ratings, ("shown",), ("weekday",)),
    "taobao": ClickSet(read_taobao, ("clicks",), ("weekend",), targets=10),
    "tmall": ClickSet(read_tmall, ("clicks",), DATES, targets=10),
    "alipay": ClickSet(read_alipay, ("clicks",), DATES, targets=10, own=0.8),
}
