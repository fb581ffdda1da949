"""Logs of what users did: one event a row, from CSV, Parquet or a frame, as numbers.

Files are read in pieces, and of each piece only the columns that are named and the behaviours that count are
kept, so that 100 million events need a few gigabytes. Ids may be whole numbers or texts.
"""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from cleanrank.data.behaviours import Codes
from cleanrank.data.event_files import PIECE, add_piece, record_batches, trimmed
from cleanrank.errors import BadFileError, InvalidInputError, UnknownNameError, invalid
from cleanrank.types import Array, IntArray

# A table from id to number is quicker than sorting where ids are not much sparser than this many per event.
SPARSEST = 8
CLICKED, ROW = "\0clicked", "\0row"  # no names of columns


@dataclass(frozen=True, eq=False, repr=False)
class Events:
    """Events of users with items, in the order of the file; users and items are numbered from 0.

    Attributes:
        users: (E,) the number of the user.
        items: (E,) the number of the item.
        user_ids: (U,) the ids as they were given.
        item_ids: (I,) the same of items.
        times: (E,) seconds; None where the order of the file is the order of time.
        clicked: (E,) False where an item was shown but not clicked; None: all were clicked.
        parts: (E,) 0 for training, 1 for validation, 2 for test events where files say so; else None.
        user_fields: name -> (U,) codes, 0 for unknown: age, gender, ...
        item_fields: name -> (I,) codes, 0 for unknown: category, brand, ...
        values: name of a field -> what its codes from 1 on stand for; without, they stand for themselves.
        rows: (E,) the row of the file, from 0, where it was asked for; else None.
        anonymous: whether users are no persons who return (sessions): their ids get no codes then.
        report: counts of what was read, kept and dropped, by reason.
    """

    users: Codes
    items: Codes
    user_ids: Array
    item_ids: Array
    times: IntArray | None = None
    clicked: npt.NDArray[np.bool_] | None = None
    parts: npt.NDArray[np.int8] | None = None
    user_fields: Mapping[str, Codes] = field(default_factory=dict)
    item_fields: Mapping[str, Codes] = field(default_factory=dict)
    values: Mapping[str, Array] = field(default_factory=dict)
    rows: IntArray | None = None
    anonymous: bool = False
    report: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("users", "items", "times", "clicked", "parts", "rows"):
            column = getattr(self, name)
            if column is not None and np.shape(column) != (len(self.users),):
                rule = f"must have one entry per event ({len(self.users)})"
                raise invalid(name, rule, f"shape {np.shape(column)}")
        for name, ids in (("users", self.user_ids), ("items", self.item_ids)):
            _check_numbers_of_ids(name, getattr(self, name), len(ids))
        if self.parts is not None and len(wrong := np.flatnonzero((self.parts < 0) | (self.parts > 2))):
            rule = "must be 0 (training), 1 (validation) or 2 (test)"
            raise invalid("parts", rule, int(self.parts[wrong[0]]), at=f"event {wrong[0]}")
        for kind, ids in (("user", self.user_ids), ("item", self.item_ids)):
            for name, codes in getattr(self, f"{kind}_fields").items():
                if np.shape(codes) != (len(ids),) or (len(codes) and np.min(codes) < 0):
                    rule = f"must have one code >= 0 per {kind} ({len(ids)})"
                    raise invalid(f"{kind} field {name!r}", rule, f"shape {np.shape(codes)}")
                if name in self.values and np.max(codes, initial=0) > len(self.values[name]):
                    rule = f"must be at most {len(self.values[name])}, the number of its values"
                    raise invalid(f"codes of {kind} field {name!r}", rule, int(np.max(codes)))
        if not len(self.users):
            raise invalid("events", "must not be empty", remedy="Check the file and the names of the clicks.")

    def __len__(self) -> int:
        return len(self.users)

    def __repr__(self) -> str:
        counts = f"{len(self):,} events, {len(self.user_ids):,} users, {len(self.item_ids):,} items"
        return f"Events({counts}, {'without' if self.times is None else 'with'} times)"


def read_events(
    source: Any,
    *,
    user: str = "user",
    item: str = "item",
    time: str | None = "time",
    behaviour: str | None = None,
    clicks: Sequence[str] | None = None,
    shown: Sequence[str] = (),
    known: Sequence[str] | None = None,
    user_fields: Sequence[str] = (),
    item_fields: Sequence[str] = (),
    names: Sequence[str] | None = None,
    delimiter: str = ",",
    row_numbers: bool = False,
) -> Events:
    """Reads a log of events.

    An event without a user, an item or a time is dropped and counted in ``report``; so is one of a behaviour
    that is neither among ``clicks`` nor among ``shown``. Of a field of items (users) whose value changes, the
    first value in the file holds, and events that say otherwise are counted; a missing one is a value too.

    Args:
        source: a CSV or Parquet file, or a pandas, polars or pyarrow table.
        user: the column of user ids.
        item: the column of item ids.
        time: the column of times: whole seconds or timestamps; None if the file is in the order of time.
        behaviour: the column of what the user did ("pv", "buy", ...); None if every event is a click.
        clicks: the behaviours that count as a click; needed with ``behaviour``.
        shown: the behaviours that say an item was shown and not clicked.
        known: all behaviours there are, where that is known: another one in the log is an error then.
        user_fields: columns that describe the user.
        item_fields: columns that describe the item.
        names: the columns of a text file without a header.
        delimiter: between the columns of a text file.
        row_numbers: whether ``rows`` of the result says which row of the file each event is.

    Returns:
        The events.

    >>> import pyarrow as pa
    >>> log = {"user": [7, 7, 9], "item": ["a", "b", "a"], "time": [3, 5, 4], "did": ["pv", "buy", "pv"]}
    >>> events = read_events(pa.table(log), behaviour="did", clicks=["pv"])
    >>> events
    Events(2 events, 2 users, 1 items, with times)
    >>> events.report["events of other behaviours"]
    1
    """
    if (behaviour is None) != (clicks is None):
        rule = "must be given together"
        raise invalid("behaviour= and clicks=", rule, remedy="clicks= names the behaviours that count.")
    clicks = None if clicks is None else listed("clicks=", clicks)
    shown, known = listed("shown=", shown), None if known is None else listed("known=", known)
    user_fields, item_fields = listed("user_fields=", user_fields), listed("item_fields=", item_fields)
    columns = {"user": user, "item": item, "time": time, "behaviour": behaviour}
    roles = {role: name for role, name in columns.items() if name is not None}
    uses = [(f"{role}=NAME", name) for role, name in roles.items()]
    uses += [("user_fields=NAME", name) for name in user_fields] + [
        ("item_fields=NAME", name) for name in item_fields
    ]
    wanted = [name for _, name in uses]
    if twice := [name for name, times in Counter(wanted).items() if times > 1]:
        raise invalid("columns of the log", "must have one use each", f"{twice[0]!r} twice")
    counts: Counter[str] = Counter()
    kept: dict[str, Any] = {name: [] for name in [*wanted, CLICKED, ROW]}
    try:
        for piece in record_batches(source, uses, names, delimiter):
            for name, column in _kept(piece, roles, clicks, shown, counts, row_numbers).items():
                add_piece(kept[name], column)
        if clicks is not None:
            _check_behaviours({name[1:] for name in counts if name[0] == "="}, clicks, shown, known)
        kept = {name: trimmed(pieces) for name, pieces in kept.items()}
        if not any(len(column) for column in kept[user]):
            remedy = "Check the file and the names of the clicks."
            raise invalid("the log", "must hold at least one event that counts", remedy=remedy)
    except (InvalidInputError, UnknownNameError) as error:
        if not isinstance(source, str | os.PathLike) or isinstance(error, BadFileError):
            raise
        raise BadFileError(f"{str(source)!r}: {error}", str(source)) from error
    users, user_ids = _numbered(kept.pop(user))
    items, item_ids = _numbered(kept.pop(item))
    sides: dict[str, dict[str, Codes]] = {"user": {}, "item": {}}
    values: dict[str, Array] = {}
    for kind, fields in (("user", user_fields), ("item", item_fields)):
        owners, n = (users, len(user_ids)) if kind == "user" else (items, len(item_ids))
        for name in fields:
            sides[kind][name], values[name], differ = _first_values(owners, kept.pop(name), n)
            counts[f"events that change the {name} of their {kind}"] += differ
    return Events(
        users,
        items,
        user_ids,
        item_ids,
        times=None if time is None else np.concatenate(kept.pop(time)),
        clicked=np.concatenate(kept[CLICKED]) if shown else None,
        user_fields=sides["user"],
        item_fields=sides["item"],
        values=values,
        rows=np.concatenate(kept[ROW]) if row_numbers else None,
        report={name: count for name, count in counts.items() if not name.startswith("=")},
    )


def listed(argument: str, names: Any) -> list[str]:
    """Names as a list; one text is refused, since its letters would be taken for names."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise invalid(argument, "must be a list of names", repr(names), remedy=f"Write [{names!r}].")
    return [str(name) for name in names]


def _kept(
    piece: Any,
    roles: Mapping[str, str],
    clicks: Sequence[str] | None,
    shown: Sequence[str],
    counts: Counter[str],
    row_numbers: bool,
) -> dict[str, Any]:
    """The columns of the events that count, as Arrow or NumPy arrays; the other events are counted."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if row_numbers:
        rows = np.arange(counts["events read"], counts["events read"] + piece.num_rows)
        piece = piece.append_column(ROW, pa.array(rows))
    counts["events read"] += piece.num_rows
    clicked = None
    if clicks is not None:
        did = _texts(roles["behaviour"], piece.column(roles["behaviour"]))
        for each in pc.value_counts(did).to_pylist():
            counts[f"={each['values']}"] += each["counts"]
        clicked = pc.is_in(did, pa.array(clicks, pa.string()))
        counted = pc.or_(clicked, pc.is_in(did, pa.array(shown, pa.string())))
        counts["events of other behaviours"] += piece.num_rows - (pc.sum(counted).as_py() or 0)
        piece, clicked = piece.filter(counted), clicked.filter(counted)
    needed = [piece.column(roles[role]) for role in ("user", "item", "time") if role in roles]
    if any(column.null_count for column in needed):
        there = needed[0].is_valid()
        for column in needed[1:]:
            there = pc.and_(there, column.is_valid())
        counts["events without a user, an item or a time"] += len(there) - pc.sum(there).as_py()
        piece = piece.filter(there)
        clicked = None if clicked is None else clicked.filter(there)
    columns = {name: piece.column(name) for name in piece.schema.names if name != roles.get("behaviour")}
    columns = {name: _plain_column(name, column) for name, column in columns.items()}
    if row_numbers:
        columns[ROW] = piece.column(ROW).to_numpy()
    if "time" in roles:
        columns[roles["time"]] = _seconds(roles["time"], piece.column(roles["time"]))
    if clicked is not None:
        columns[CLICKED] = clicked.to_numpy(zero_copy_only=False)
    return columns


def _plain_column(name: str, column: Any) -> Any:
    """Whole numbers as NumPy, in 32 bits where they fit; anything else as an Arrow array of texts.

    Only fields of users and items can still have missing values: -1 among numbers, "" among texts.
    """
    import pyarrow as pa

    if pa.types.is_floating(column.type) and len(column) > column.null_count:
        # As pandas keeps whole numbers where one is missing.
        numbers = column.drop_null().to_numpy()
        if ((np.abs(numbers) < 2**53) & (numbers == np.trunc(numbers))).all():
            column = column.cast(pa.int64())
    if pa.types.is_integer(column.type):
        numbers = (column.fill_null(-1) if column.null_count else column).to_numpy()
        small = not len(numbers) or (numbers.min() >= 0 and numbers.max() < 2**31)
        return numbers.astype(np.int32 if small else np.int64)
    return _texts(name, column)


def _texts(name: str, column: Any) -> Any:
    import pyarrow as pa

    try:
        return column.cast(pa.string())
    except pa.ArrowException:
        remedy = "Convert the column first; a text file must be in UTF-8."
        raise invalid(f"column {name!r}", "must hold numbers or texts", column.type, remedy=remedy) from None


def _seconds(name: str, column: Any) -> IntArray:
    """Times in whole seconds."""
    import pyarrow as pa

    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        column = column.cast(pa.timestamp("s"), safe=False).cast(pa.int64())
    if pa.types.is_floating(column.type):  # as pandas keeps whole numbers where one is missing
        numbers = column.to_numpy()
        if ((np.abs(numbers) < 2**53) & (numbers == np.trunc(numbers))).all():
            return np.asarray(numbers, dtype=np.int64)
    if not pa.types.is_integer(column.type):
        value = f"{column[0].as_py()!r} (type {column.type})" if len(column) else f"type {column.type}"
        remedy = "Convert the column first; time=None takes the order of the file."
        raise invalid(
            f"times in column {name!r}", "must be whole seconds or timestamps", value, remedy=remedy
        )
    return np.asarray(column.to_numpy(), dtype=np.int64)


def _check_behaviours(
    there: set[str], clicks: Sequence[str], shown: Sequence[str], known: Sequence[str] | None
) -> None:
    if known is not None and (others := sorted(there - set(known))):
        rule = f"must be one of {', '.join(known)}"
        raise invalid("behaviours of the log", rule, repr(others[0]), remedy="Remove or rename such events.")
    allowed = there if known is None else known
    for argument, wanted in (("clicks=", clicks), ("shown=", shown)):
        for name in wanted:
            if name not in allowed:
                remedy = f"It has: {', '.join(sorted(allowed)[:20])}."
                raise invalid(argument, "must name behaviours of the log", repr(name), remedy=remedy)


def _numbered(pieces: list[Any]) -> tuple[Codes, Array]:
    """The number of every id, from 0 in rising order of ids, and the ids; empties the list of pieces."""
    if all(isinstance(piece, np.ndarray) for piece in pieces):
        filled = [piece for piece in pieces if len(piece)]
        n, lowest = sum(map(len, filled)), min(int(piece.min()) for piece in filled)
        highest = max(int(piece.max()) for piece in filled)
        if highest - lowest >= SPARSEST * n + PIECE:
            values, numbers = np.unique(np.concatenate(filled), return_inverse=True)
            return numbers.astype(np.int32), values
        lowest = 0 if 0 <= lowest < PIECE else lowest
        used = np.zeros(highest - lowest + 1, dtype=np.bool_)
        for piece in filled:
            for part in np.split(piece, range(PIECE, len(piece), PIECE)):
                used[part - lowest if lowest else part] = True
        table = np.cumsum(used, dtype=np.int32) - np.int32(1)
        codes, end = np.empty(n, dtype=np.int32), 0
        pieces.clear()
        while filled:
            piece = filled.pop(0)
            for part in np.split(piece, range(PIECE, len(piece), PIECE)):
                begin, end = end, end + len(part)
                np.take(table, part - lowest if lowest else part, out=codes[begin:end], mode="clip")
        return codes, np.flatnonzero(used) + lowest
    import pyarrow as pa

    texts = [pa.array(p).cast(pa.string()) if isinstance(p, np.ndarray) else p for p in pieces]
    coded = pa.chunked_array(texts).fill_null("").combine_chunks().dictionary_encode()
    values = np.asarray(coded.dictionary.to_pylist(), dtype=str)
    order = np.argsort(values)
    number = np.empty(len(values), dtype=np.int32)
    number[order] = np.arange(len(values), dtype=np.int32)
    return number[coded.indices.to_numpy()], values[order]


def _first_values(owners: Codes, pieces: list[Any], n: int) -> tuple[Codes, Array, int]:
    """Codes (from 1) of the first value of each owner, the values, and how many events say otherwise."""
    from cleanrank.data._event_kernels import first_values

    names: Array | None = None
    if not all(isinstance(piece, np.ndarray) for piece in pieces):
        numbers, names = _numbered(pieces)
        pieces = [numbers]
    table, has_value = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    differ = end = 0
    for piece in pieces:
        begin, end = end, end + len(piece)
        differ += first_values(owners[begin:end], piece, table, has_value)
    codes, values = _numbered([table])
    return codes + np.int32(1), values if names is None else names[values], differ


def _check_numbers_of_ids(name: str, numbers: Array, n: int) -> None:
    if len(numbers) and (numbers.min() < 0 or numbers.max() >= n):
        event = int(np.argmax((numbers < 0) | (numbers >= n)))
        rule, remedy = (
            f"must be from 0 to {n - 1}, the places of the ids",
            "Ids beyond the table have no number.",
        )
        raise invalid(name, rule, int(numbers[event]), at=f"event {event}", remedy=remedy)


def codes_of(ids: Array, table_ids: Array, values: Array) -> tuple[Codes, Array, int]:
    """Codes (from 1) of the values that a side table has for ids, 0 for ids that it lacks.

    Returns:
        The codes, the values that they stand for, and how many ids the table lacks.

    >>> codes, values, missing = codes_of(np.array([3, 5, 8]), np.array([8, 3]), np.array(["f", "m"]))
    >>> codes.tolist(), values.tolist(), missing
    ([2, 0, 1], ['f', 'm'], 1)
    """
    order = np.argsort(table_ids, kind="stable")
    place = np.minimum(np.searchsorted(table_ids[order], ids), len(order) - 1)
    there = table_ids[order][place] == ids
    kinds, kind_of = np.unique(values, return_inverse=True)
    codes = kind_of.astype(np.int32)[order][place] + np.int32(1)
    return np.where(there, codes, np.int32(0)), kinds, int(np.count_nonzero(~there))
