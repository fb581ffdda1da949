"""TOML files read strictly into frozen dataclasses: errors name the file, the key, the rule and the value."""

import math
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import is_dataclass
from pathlib import Path
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from cleanrank.errors import BadFileError, CleanrankError, InvalidInputError, invalid
from cleanrank.validation import one_of

# The types of msgspec's messages in words.
WORDS = {"bool": "true or false", "int": "a whole number", "float": "a number", "str": "text"}
WORDS |= {"array": "a list", "object": "a table"}


def read_toml(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a TOML file and its values."""
    try:
        text = path.read_text(encoding="utf-8")
        return text, tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadFileError(f"{path.name} must be valid TOML; got {error}.", str(path)) from error
    except RecursionError:
        message = f"{path.name} must be valid TOML; got brackets nested too deep to read."
        raise BadFileError(message, str(path)) from None


def check_table(table: Mapping[str, Any], kind: Any, place: str, *, hidden: Collection[str] = ()) -> None:
    """Refuses unknown keys and repeated entries of lists, in tables within the table too.

    Args:
        table: what the file holds.
        kind: the dataclass whose fields are the known keys.
        place: the file and the table, for errors.
        hidden: fields that a file must not set.
    """
    types = {key: each for key, each in get_type_hints(kind).items() if key not in hidden}
    for key, value in table.items():
        known("key", key, types, place)
        if isinstance(value, dict) and is_dataclass(types[key]):
            check_table(value, types[key], f"{place}{key}.")
        if isinstance(value, list) and get_origin(types[key]) is tuple:
            check_distinct(value, f"{place}{key}")
            for i, entry in enumerate(value):
                if isinstance(entry, dict) and is_dataclass(inner := get_args(types[key])[0]):
                    check_table(entry, inner, f"{place}{key}[{i}].")


def check_distinct(values: Sequence[Any], place: str) -> None:
    """Refuses a value that is in a list twice; tables are not looked at."""
    for i, value in enumerate(values):
        if not isinstance(value, dict) and value in values[:i]:
            raise invalid(place, "must not repeat an entry", repr(value))


def typed(value: Any, kind: Any, place: str) -> Any:
    """A TOML value as a type; msgspec's error in our words."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        rule, _, path = str(error).partition(" - at `$")
    path = path.rstrip("`").removeprefix("." if place.endswith((": ", ".")) else "")
    if missing := re.fullmatch(r"Object missing required field `(\w+)`", rule):
        raise invalid(f"{place}{path}.{missing[1]}".replace(": .", ": ").replace("..", "."), "must be given")
    if not rule.startswith("Expected "):
        raise InvalidInputError(f"{place}{path}: {rule}")
    for key, index in re.findall(r"(\w+)|\[(\d+)\]", path):
        value = value[key] if key else value[int(index)]
    rule = re.sub(r", got .*", "", rule).replace("Expected ", "must be ")
    rule = re.sub(r"`(.*?)`", lambda types: " or ".join(WORDS.get(t, t) for t in types[1].split(" | ")), rule)
    if isinstance(value, float) and not math.isfinite(value):
        rule = "must be a finite number"
    raise invalid(f"{place}{path}", rule.removesuffix(" or null"), repr(value))


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Puts the file and the key before the words of an error."""
    try:
        yield
    except CleanrankError as error:
        raise type(error)(f"{place.removesuffix('.').removesuffix(': ')}: {error}") from None


def known(kind: str, name: str, names: Iterable[str], place: str) -> str:
    """The name, which must be one of ``names``."""
    with placed(place):
        return one_of(kind, name, names)
