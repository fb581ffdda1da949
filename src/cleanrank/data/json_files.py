"""JSON documents and JSON lines; whatever is wrong in them is named by its place."""

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from cleanrank.data.files import PACKED, existing_file, read_lines, read_unpacked
from cleanrank.errors import BadFileError, error_text
from cleanrank.validation import is_number

JSON_LINES = (".jsonl", ".ndjson")
ENDINGS = tuple(f"{ending}{packed}" for ending in JSON_LINES for packed in ("", *PACKED))
KINDS: dict[str, Any] = {"object": dict, "list": list, "text": str}


@dataclass(frozen=True, slots=True)
class Node:
    """A value of a JSON document.

    Attributes:
        value: the value.
        file: where it stands.
        place: where in the file, as in ``ratings[3].docId``.
        line: its line in a file of JSON lines.
    """

    value: Any
    file: Path
    place: str = ""
    line: int | None = None

    def __contains__(self, name: str) -> bool:
        return isinstance(self.value, dict) and self.value.get(name) is not None

    def child(self, name: str) -> "Node":
        """A member of an object, which must be there."""
        members = self._as("object")
        if members.get(name) is None:
            raise self.bad(f"must have a member {name!r}", ", ".join(map(repr, list(members)[:8])) or "none")
        return Node(members[name], self.file, f"{self.place}.{name}" if self.place else name, self.line)

    def find(self, *names: str) -> "Node":
        """A member of a member and so on; its value is None where there is none."""
        value = self.value
        for name in names:
            value = value.get(name) if isinstance(value, dict) else None
        return Node(value, self.file, ".".join(filter(None, (self.place, *names))), self.line)

    def members(self) -> Iterator[tuple[str, "Node"]]:
        """The members of an object."""
        for name in self._as("object"):
            yield name, self.find(name)

    def entries(self) -> Iterator["Node"]:
        """The entries of a list."""
        for number, value in enumerate(self._as("list")):
            yield Node(value, self.file, f"{self.place}[{number}]", self.line)

    def text(self) -> str:
        """A text; a whole number counts as one."""
        if isinstance(self.value, int) and not isinstance(self.value, bool):
            return str(self.value)
        # NumPy's strings cannot end in a NUL.
        if not isinstance(self.value, str) or not self.value.strip() or "\0" in self.value:
            raise self.bad("must be a text", _short(self.value))
        return self.value

    def number(self) -> float:
        """A number, also one that is written as a text."""
        value = float("nan")
        if isinstance(self.value, str) or is_number(self.value):
            with contextlib.suppress(ValueError, OverflowError):
                value = float(self.value)
        if not abs(value) < float("inf"):
            raise self.bad("must be a number", _short(self.value))
        return value

    def bad(self, rule: str, value: object, remedy: str = "") -> BadFileError:
        """The error for something wrong with the value."""
        line = "" if self.line is None else f", line {self.line}"
        at = f"{self.file}{line}"
        return BadFileError(
            error_text(self.place or "the document", rule, value, at=at, remedy=remedy),
            str(self.file),
            self.line,
        )

    def _as(self, kind: str) -> Any:
        if type(self.value) is not KINDS[kind]:
            raise self.bad(f"must be {'an' if kind == 'object' else 'a'} {kind}", _short(self.value))
        return self.value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def is_json_lines(path: str | os.PathLike[str]) -> bool:
    """Whether a file is JSON lines, plain or packed, by its name.

    >>> is_json_lines("log.v2.JSONL.gz"), is_json_lines("jsonl.csv")
    (True, False)
    """
    return os.fspath(path).lower().endswith(ENDINGS)


def read_json(path: str | os.PathLike[str]) -> Node:
    """The document of a plain or packed file."""
    file = existing_file(path)
    return _decoded(read_unpacked(file).removeprefix(b"\xef\xbb\xbf"), file, None)


def read_json_lines(path: str | os.PathLike[str]) -> Iterator[Node]:
    """The documents of a plain or packed file, one a line; only the line at hand is held in memory."""
    file = existing_file(path)
    for number, line in read_lines(file):
        yield _decoded(line, file, number)


def _decoded(raw: bytes, file: Path, line: int | None) -> Node:
    try:
        return Node(msgspec.json.decode(raw), file, line=line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        at = f"{file}" if line is None else f"{file}, line {line}"
        subject = "the document" if line is None else "a line"
        words = error_text(subject, "must be JSON", str(error).rstrip("."), at=at)
        raise BadFileError(words, str(file), line) from None
