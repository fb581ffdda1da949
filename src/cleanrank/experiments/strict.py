"""Strict reading of TOML tables: every key is known and of one type, and a complaint says where it stands."""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

from cleanrank.errors import UnknownNameError, invalid
from cleanrank.validation import one_of

MISSING: Any = object()
WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a finite number",
    str: "text",
    list: "a list",
    dict: "a table",
}


class Table:
    """A table of a recipe and the keys that may stand in it; ``place`` words where it is.

    >>> Table({"sede": 1}, "quick.toml", ["seed"])
    Traceback (most recent call last):
    cleanrank.errors.UnknownNameError: quick.toml: unknown key 'sede'. Did you mean 'seed'? Known: seed.
    """

    def __init__(self, values: Mapping[str, Any], place: str, keys: Iterable[str]) -> None:
        self.values = values
        self.place = place
        self.keys = tuple(keys)
        for key in values:
            if key not in self.keys:
                try:
                    one_of("key", key, self.keys)
                except UnknownNameError as error:
                    raise UnknownNameError(f"{place}: {error}") from None

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def at(self, key: str) -> str:
        """The place of a key, in words."""
        return f"{self.place}.{key}" if ": " in self.place else f"{self.place}: {key}"

    def fail(self, key: str, rule: str, value: object, remedy: str = "") -> NoReturn:
        """Complains about the value of a key."""
        raise invalid(self.at(key), rule, value, remedy=remedy)

    def get(self, key: str, kind: type, default: Any = MISSING) -> Any:
        """The value of a key, of the type ``kind``; an int passes as a float."""
        if key not in self.values:
            if default is MISSING:
                self.fail(key, f"must be given ({WORDS[kind]})", "nothing")
            return default
        value = self.values[key]
        if not fits(value, kind):
            self.fail(key, f"must be {WORDS[kind]}", repr(value))
        return float(value) if kind is float else value

    def many(self, key: str, kind: type, default: Any = MISSING, *, empty: bool = False) -> Any:
        """A list whose entries are all of one type, none twice, as a tuple."""
        found = self.get(key, list, default)
        if found is default:
            return found
        for i, each in enumerate(found):
            if not fits(each, kind):
                raise invalid(f"{self.at(key)}[{i}]", f"must be {WORDS[kind]}", repr(each))
        values = tuple(float(v) if kind is float else v for v in found)
        if not values and not empty:
            self.fail(key, "must list at least one", "none")
        for i, value in enumerate(values):
            if value in values[:i]:
                self.fail(key, "must not repeat an entry", repr(value))
        return values

    def among(self, key: str, kind: str, names: Iterable[str], default: Any = MISSING) -> str:
        """A name that must be one of those known."""
        return self.known(key, kind, self.get(key, str, default), names)

    def known(self, key: str, kind: str, name: str, names: Iterable[str]) -> str:
        """Checks a name, and says the place when it is not known."""
        try:
            return one_of(kind, name, names)
        except UnknownNameError as error:
            raise UnknownNameError(f"{self.at(key)}: {error}") from None


def fits(value: object, kind: type) -> bool:
    """Whether a TOML value is of a type; true is no number, whole numbers are numbers, nan and inf are none.

    >>> fits(1, float), fits(True, int), fits(1.0, int), fits(float("nan"), float)
    (True, False, False, False)
    """
    if kind in (int, float) and isinstance(value, bool):
        return False
    if kind is float:
        return isinstance(value, int | float) and math.isfinite(value)
    return isinstance(value, kind)
