"""Rows of clicks with the history before them: what models of the click-through rate learn from.

A row is a user, a candidate item and a context, all as whole-number codes of named fields, with the label 1
(clicked) or 0 (not clicked). Rows refer to a history by its number, because the clicked item and its
negatives share one. Code 0 stands for an unknown value in every field.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from cleanrank.errors import invalid
from cleanrank.types import Array, IntArray, RowChoice
from cleanrank.validation import check_integer

if TYPE_CHECKING:
    from cleanrank.data.vocabulary import Vocabulary

Codes = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Layout:
    """The fields of rows: their names and how many codes each has (0 for unknown included).

    Attributes:
        user: field name -> size; a code is below its size.
        item: those of a candidate item and of a behaviour, the id first.
        context: those of the moment, such as the weekday; empty without.

    >>> Layout(user={"user": 10}, item={"item": 5, "category": 3}).item["category"]
    3
    """

    user: Mapping[str, int]
    item: Mapping[str, int]
    context: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for part in ("user", "item", "context"):
            sizes: Any = getattr(self, part)
            if not isinstance(sizes, Mapping):
                rule = "must be a mapping from field names to sizes"
                raise invalid(f"the {part} fields of a layout", rule, repr(sizes))
            checked = {
                str(name): check_integer(f"the size of the {part} field {name!r}", size, least=1)
                for name, size in sizes.items()
            }
            object.__setattr__(self, part, checked)
        if not self.item:
            remedy = "Name at least the item's id."
            raise invalid("the item fields of a layout", "must not be empty", remedy=remedy)


@dataclass(frozen=True, eq=False, repr=False)
class ClickRows:
    """Rows to learn from or to score; immutable. Arrays are taken as they are: do not write to them later.

    Attributes:
        user: (N, Fu) int32 codes; 0 stands for an unknown value everywhere.
        item: (N, Fi) the candidate item: id, category, ...
        context: (N, Fc) such as the weekday; (N, 0) without.
        y: (N,) 1 clicked, 0 not.
        history_of: (N,) the row of ``histories``; several candidates share one.
        histories: (H, T, Fi) item codes, oldest first, valid ones at the front, 0 behind them.
        lengths: (H,) how many behaviours are valid, at most T.
        layout: names and sizes of the fields; a code is below the size of its field.
        users: (N,) the user of a row (a number), for grouped AUC and intervals.
        times: (N,) when the candidate was shown, in seconds; None where times are unknown.
        vocabulary: which ids the codes of users and items stand for; None where that is unknown.

    >>> layout = Layout(user={"user": 3}, item={"item": 5})
    >>> rows = ClickRows(
    ...     user=[[1], [1]], item=[[4], [2]], context=np.zeros((2, 0)), y=[1, 0], history_of=[0, 0],
    ...     histories=[[[1], [3], [0]]], lengths=[2], layout=layout, users=[0, 0])
    >>> rows
    ClickRows(2 rows, 1 clicked, 1 users, 1 histories of at most 3 behaviours)
    >>> rows.select([1]).y.tolist(), rows.with_labels([0, 1]).y.tolist()
    ([0], [0, 1])
    """

    user: Codes
    item: Codes
    context: Codes
    y: Codes
    history_of: IntArray
    histories: Codes
    lengths: Codes
    layout: Layout
    users: IntArray
    times: IntArray | None = None
    vocabulary: "Vocabulary | None" = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        dimensions = {"user": 2, "item": 2, "context": 2, "histories": 3}
        for name in ("user", "item", "context", "histories", "y", "lengths", "history_of", "users", "times"):
            if name == "times" and self.times is None:
                continue
            dtype = np.int64 if name in ("history_of", "users", "times") else np.int32
            put(self, name, _whole_numbers(name, getattr(self, name), dimensions.get(name, 1), dtype))
        n, (n_histories, most, _) = len(self.y), self.histories.shape
        for name in ("user", "item", "context", "history_of", "users", "times"):
            column = getattr(self, name)
            if column is not None and len(column) != n:
                raise invalid(name, f"must have one entry per row of y ({n})", f"shape {column.shape}")
        for name, part in (("user", "user"), ("item", "item"), ("context", "context"), ("histories", "item")):
            _check_codes(name, getattr(self, name), getattr(self.layout, part))
        if len(self.lengths) != n_histories:
            rule = f"must have one entry per history ({n_histories})"
            raise invalid("lengths", rule, f"shape {self.lengths.shape}")
        _check_range("y", self.y, 1, remedy="1 says clicked, 0 not clicked.")
        _check_range("lengths", self.lengths, most, remedy="Keep the last behaviours of a longer history.")
        _check_range("history_of", self.history_of, n_histories - 1)
        if self.vocabulary is not None:
            for kind in ("user", "item"):
                if self.vocabulary.sizes(kind) != getattr(self.layout, kind):
                    rule = f"must have the {kind} fields of the layout and as many codes"
                    raise invalid("vocabulary", rule, repr(self.vocabulary))
        padding = np.arange(most) >= self.lengths[:, None]
        if self.histories[padding].any():
            behind = padding & self.histories.any(axis=2)
            history = int(np.argmax(behind.any(axis=1)))
            rule = f"must be 0 behind the {self.lengths[history]} valid behaviours"
            place = int(np.argmax(behind[history]))
            value = self.histories[history, place].tolist()
            remedy = "Put valid behaviours at the front, oldest first."
            raise invalid(
                "histories", rule, value, at=f"behaviour {place} of history {history}", remedy=remedy
            )

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        count = f"{len(self):,} rows, {int(self.y.sum()):,} clicked, {len(np.unique(self.users)):,} users"
        n_histories, most, _ = self.histories.shape
        return f"ClickRows({count}, {n_histories:,} histories of at most {most} behaviours)"

    @property
    def unknown(self) -> dict[str, int]:
        """How many rows have code 0, by field of users and items: values that are rare in training or new."""
        return {
            name: int(np.count_nonzero(codes[:, column] == 0))
            for codes, fields in ((self.user, self.layout.user), (self.item, self.layout.item))
            for column, name in enumerate(fields)
        }

    def select(self, rows: RowChoice) -> "ClickRows":
        """Some rows (a mask or positions, in the order given); all histories stay, and their numbers."""
        names = ("user", "item", "context", "y", "history_of", "users", "times")
        chosen = np.asarray(rows)
        if chosen.dtype != np.bool_:
            chosen = _whole_numbers("rows", chosen, 1, np.int64)
            _check_range("rows", chosen, len(self) - 1)
        elif chosen.shape != (len(self),):
            raise invalid("rows", f"as a mask must have {len(self)} entries", f"shape {chosen.shape}")
        columns: dict[str, Any] = {name: getattr(self, name) for name in names}
        changed: dict[str, Any] = {n: column[chosen] for n, column in columns.items() if column is not None}
        return replace(self, **changed)

    def with_labels(self, y: npt.ArrayLike) -> "ClickRows":
        """The rows with other labels, 0 and 1, row by row."""
        return replace(self, y=np.asarray(y))


@dataclass(frozen=True)
class ClickSplits:
    """Rows to learn from, to select by and to report on; ``train, validation, test = splits`` unpacks them.

    Attributes:
        train: what a model learns from.
        validation: what epochs and settings are chosen by.
        test: what is reported.
        report: counts of what was read, kept and dropped, by reason.
    """

    train: ClickRows
    validation: ClickRows
    test: ClickRows
    report: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("validation", "test"):
            if getattr(self, name).layout != self.train.layout:
                rule = "must have the layout of the training rows"
                raise invalid(
                    f"{name} rows", rule, getattr(self, name).layout, remedy="Prepare them together."
                )

    def __iter__(self) -> Iterator[ClickRows]:
        return iter((self.train, self.validation, self.test))


def _whole_numbers(name: str, values: Any, dimensions: int, dtype: Any) -> Array:
    """A read-only view of whole numbers with this many dimensions."""
    numbers = np.asarray(values)
    if numbers.ndim != dimensions:
        raise invalid(
            name, f"must have {dimensions} dimension{'s' * (dimensions > 1)}", f"shape {numbers.shape}"
        )
    if numbers.size and numbers.dtype.kind not in "iub":
        raise invalid(name, "must hold whole numbers", f"dtype {numbers.dtype}")
    if numbers.size and np.dtype(dtype) == np.int32 and numbers.dtype.itemsize > 4:
        _check_range(name, numbers, np.iinfo(np.int32).max, least=np.iinfo(np.int32).min)
    view = np.ascontiguousarray(numbers, dtype=dtype).view()
    view.flags.writeable = False
    return view


def _check_codes(name: str, codes: Codes, sizes: Mapping[str, int]) -> None:
    """Raises unless there is one column per field and every code is at least 0 and below its size."""
    if codes.shape[-1] != len(sizes):
        fields = ", ".join(sizes) or "none"
        rule = f"must have one column for each of the {len(sizes)} fields of the layout ({fields})"
        raise invalid(name, rule, f"shape {codes.shape}")
    if not codes.size:
        return
    some_negative = codes.min() < 0
    for column, (label, size) in enumerate(sizes.items()):
        values = codes[..., column]
        if values.max() >= size or (some_negative and values.min() < 0):
            place = np.argwhere((values < 0) | (values >= size))[0]
            value = int(values[tuple(place)])
            rule = f"of field {label!r} must be from 0 to {size - 1}, below the size in the layout"
            at = f"row {place[0]}" if codes.ndim == 2 else f"behaviour {place[1]} of history {place[0]}"
            raise invalid(
                f"codes in {name}", rule, value, at=at, remedy="Code 0 stands for an unknown value."
            )


def _check_range(name: str, values: Array, most: int, *, least: int = 0, remedy: str = "") -> None:
    if values.size and (values.min() < least or values.max() > most):
        entry = np.argwhere((values < least) | (values > most))[0]
        at = f"entry {', '.join(map(str, entry))}"
        rule = f"must be from {least} to {most}"
        raise invalid(name, rule, int(values[tuple(entry)]), at=at, remedy=remedy)
