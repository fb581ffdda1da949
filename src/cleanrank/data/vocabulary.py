"""Which code stands for which id, so that a later log is coded as the one that a model was trained on."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cleanrank.data.behaviours import Codes
from cleanrank.data.events import Events
from cleanrank.errors import invalid
from cleanrank.types import Array, IntArray

KINDS = ("user", "item")


@dataclass(frozen=True, eq=False, repr=False)
class Vocabulary:
    """The ids and values that have codes. Code 0 stands for any other: rare in training, or new.

    Attributes:
        user: field -> its ids or values in rising order, of codes 1, 2, ...; the user's id first.
        item: the same of items.

    >>> tables = Vocabulary(user={"user": np.array([7, 9])}, item={"item": np.array(["a", "c"])})
    >>> tables
    Vocabulary(user: 2 ids, item: 2 ids)
    >>> tables.fingerprint[:8]
    '37f5ea7d'
    """

    user: Mapping[str, Array]
    item: Mapping[str, Array]

    def __repr__(self) -> str:
        tables = (each for kind in KINDS for each in getattr(self, kind).items())
        return f"Vocabulary({', '.join(f'{name}: {len(ids):,} ids' for name, ids in tables)})"

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 of all tables with their names: equal where ids are coded alike."""
        whole = hashlib.sha256()
        for name, array in sorted(self.arrays().items()):
            whole.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            whole.update(np.ascontiguousarray(array).data)
        return whole.hexdigest()

    def sizes(self, kind: str) -> dict[str, int]:
        """How many codes the fields of users or of items have, 0 included."""
        return {name: len(ids) + 1 for name, ids in getattr(self, kind).items()}

    def codes(self, events: Events, kind: str) -> Codes:
        """The codes of all users or all items of a log, (U, Fu) or (I, Fi); 0 for what has none here.

        Ids are equal if they are written alike: the number 7 and the text "7" are one id.
        """
        (own, known), *fields = getattr(self, kind).items()
        ids, coded = (
            (events.user_ids, events.user_fields) if kind == "user" else (events.item_ids, events.item_fields)
        )
        if list(coded) != [name for name, _ in fields]:
            names = ", ".join(name for name, _ in fields) or "none"
            rule = f"must have the {kind} fields of the training log ({names})"
            remedy = f"Name them in {kind}_fields=, in this order."
            raise invalid("events", rule, ", ".join(coded) or "none", remedy=remedy)
        columns = [
            np.zeros(len(ids), dtype=np.int32) if events.anonymous and kind == "user" else _places(ids, known)
        ]
        for name, table in fields:
            values = values_of(events, name, coded[name])
            columns.append(np.append(np.int32(0), _places(values, table))[coded[name]])
        if own == "item" and not columns[0].any():
            remedy = "Check the column of items: a model that knows none of them has nothing to say."
            raise invalid(
                "events", "must have items of the training log", f"none of {len(ids):,}", remedy=remedy
            )
        return np.stack(columns, axis=1)

    def arrays(self) -> dict[str, Array]:
        """The tables as arrays of numbers; texts as their bytes in UTF-8 and where each of them ends."""
        arrays: dict[str, Array] = {}
        for kind in KINDS:
            for name, ids in getattr(self, kind).items():
                if ids.dtype.kind in "iub":
                    arrays[f"{kind}/{name}"] = ids.astype(np.int64)
                    continue
                texts = [text.encode() for text in ids.astype(str).tolist()]
                arrays[f"{kind}/{name}/bytes"] = np.frombuffer(b"".join(texts), dtype=np.uint8)
                arrays[f"{kind}/{name}/ends"] = np.cumsum([len(text) for text in texts], dtype=np.int64)
        return arrays

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, Array], fields: Mapping[str, Any]) -> "Vocabulary":
        """What ``arrays`` gave, for the names of the fields of users and of items."""
        return cls(
            **{kind: {name: _read(arrays, f"{kind}/{name}") for name in fields[kind]} for kind in KINDS}
        )


def vocabulary_of(
    events: Events, of_user: IntArray, of_item: IntArray, rare: int
) -> tuple[Vocabulary, Codes, Codes]:
    """Codes for what has at least ``rare`` clicks: the tables, and the codes of all users and all items.

    ``of_user`` and ``of_item`` count the clicks that are learnt from.
    """
    tables: dict[str, dict[str, Array]] = {}
    codes = []
    for kind, ids, fields, clicks in (
        ("user", events.user_ids, events.user_fields, of_user),
        ("item", events.item_ids, events.item_fields, of_item),
    ):
        named = not (kind == "user" and events.anonymous)
        known = np.flatnonzero((clicks >= rare) & named)
        tables[kind], columns = {kind: ids[known]}, [_from_one(known, len(ids))]
        for name, values in fields.items():
            of_value = np.bincount(values, weights=clicks, minlength=1)
            of_value[0] = 0
            known = np.flatnonzero(of_value >= rare)
            tables[kind][name] = values_of(events, name, values)[known - 1]
            columns.append(_from_one(known, len(of_value))[values])
        codes.append(np.stack(columns, axis=1))
    return Vocabulary(**tables), codes[0], codes[1]


def values_of(events: Events, name: str, codes: Codes) -> Array:
    """What the codes of a field from 1 on stand for."""
    return events.values[name] if name in events.values else np.arange(1, codes.max(initial=0) + 1)


def _from_one(known: IntArray, n: int) -> Codes:
    """Codes 1, 2, ... at the places that are known, 0 elsewhere."""
    codes = np.zeros(n, dtype=np.int32)
    codes[known] = np.arange(1, len(known) + 1, dtype=np.int32)
    return codes


def _places(ids: Array, known: Array) -> Codes:
    """The code of every id: its place among the known ones plus one, 0 for others."""
    order = None
    if (ids.dtype.kind in "iub") != (known.dtype.kind in "iub"):
        ids, known = ids.astype(str), known.astype(str)
        order = np.argsort(known)
        known = known[order]
    if not len(known):
        return np.zeros(len(ids), dtype=np.int32)
    place = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    codes = (place if order is None else order[place]).astype(np.int32) + np.int32(1)
    return np.where(known[place] == ids, codes, np.int32(0))


def _read(arrays: Mapping[str, Array], name: str) -> Array:
    """One table; raises KeyError or ValueError where it is not whole."""
    if name in arrays:
        if arrays[name].ndim != 1 or (np.diff(arrays[name]) <= 0).any():
            raise ValueError(f"the table of {name} must hold rising ids")
        return arrays[name]
    raw, ends = arrays[f"{name}/bytes"].tobytes(), arrays[f"{name}/ends"].tolist()
    starts = [0, *ends[:-1]]
    if (ends[-1] if ends else 0) != len(raw) or any(a > b for a, b in zip(starts, ends, strict=True)):
        raise ValueError(f"the table of {name} must hold whole texts")
    texts = np.array([raw[a:b].decode() for a, b in zip(starts, ends, strict=True)], dtype=str)
    if (texts[1:] <= texts[:-1]).any():
        raise ValueError(f"the table of {name} must hold rising ids")
    return texts
