"""Lines of fields as TREC and BEIR write them, cut by a compiled scan; every message names its line."""

import codecs
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from cleanrank.data.files import existing_file, read_unpacked
from cleanrank.data.spreadsheet import decoded
from cleanrank.errors import BadFileError, error_text
from cleanrank.jit import kernel, mix64
from cleanrank.ragged import indptr_of
from cleanrank.types import Array, IntArray

Bytes = npt.NDArray[np.uint8]
NEW_LINE, TAB, BLANK, RETURN, HIGHEST_ASCII = 10, 9, 32, 13, 127
FNV_PRIME = 0x100000001B3
_mix = kernel(inline=True)(mix64)


class LineFields:
    """Some fields of every line of a file.

    Attributes:
        file: the file.
        columns: the fields as Arrow strings.
        lines: the number of every line, from 1; empty lines are skipped.
    """

    def __init__(self, file: Path, columns: list[Any], lines: IntArray) -> None:
        self.file, self.columns, self.lines = file, columns, lines

    def select(self, rows: IntArray) -> "LineFields":
        """The fields of some rows."""
        kept = pa.array(rows)
        return LineFields(self.file, [column.take(kept) for column in self.columns], self.lines[rows])

    def numbers(self, column: int, kind: Any, subject: str, rule: str) -> Array:
        """A column as numbers of an Arrow type."""
        texts = self.columns[column]
        try:
            return np.asarray(texts.cast(kind).to_numpy())
        except pa.ArrowInvalid:
            low, high = 0, len(texts)
            while high - low > 1:
                middle = (low + high) // 2
                try:
                    texts[low:middle].cast(kind)
                    low = middle
                except pa.ArrowInvalid:
                    high = middle
            raise self.bad(low, subject, rule, repr(texts[low].as_py())) from None

    def bad(self, row: int, subject: str, rule: str, value: object, remedy: str = "") -> BadFileError:
        """The error for something wrong in a row."""
        return bad_line(self.file, int(self.lines[row]), subject, rule, value, remedy)

    def topics(self, column: int = 0) -> tuple[Array, IntArray]:
        """The different texts of a column, in order of appearance, and every line's place among them."""
        coded = self.columns[column].dictionary_encode()
        return texts_of(coded.dictionary), coded.indices.to_numpy().astype(np.int64)

    def refuse_repeated(self, topic: IntArray, doc_column: int) -> None:
        """Raises where a pair of topic and document comes twice."""
        docs = self.columns[doc_column]
        _, offsets, data = docs.buffers()
        hashes = np.empty(len(docs), dtype=np.uint64)
        _hash_pairs(topic, *_of_buffers(docs, offsets, data), hashes)
        hashes.sort()
        if (hashes[1:] == hashes[:-1]).any():
            self._refuse_repeated_exactly(topic, docs)

    def _refuse_repeated_exactly(self, topic: IntArray, docs: Any) -> None:
        coded = docs.dictionary_encode()
        key = topic * max(len(coded.dictionary), 1) + coded.indices.to_numpy()
        order = np.argsort(key, kind="stable")
        again = np.flatnonzero(key[order][1:] == key[order][:-1])
        if len(again):
            at = int(again[np.argmin(order[again + 1])])
            first, second = order[at], order[at + 1]
            pair = f"{self.columns[0][int(second)].as_py()} {docs[int(second)].as_py()}"
            repeated = f"{pair!r} of line {self.lines[first]} again"
            subject, rule = "a pair of topic and document", "must come once only"
            raise self.bad(int(second), subject, rule, repeated, "Keep one of the two lines.")

    def texts(self, column: int, order: IntArray) -> Array:
        """The texts of a column in another order."""
        values = self.columns[column]
        _, offsets, data = values.buffers()
        ends, text = _of_buffers(values, offsets, data)
        if len(text) and text.max() > HIGHEST_ASCII:
            return texts_of(values)[order]
        width = max(int(np.diff(ends).max(initial=0)), 1)
        letters = np.zeros((len(order), width), dtype=np.uint32)
        _spread(text, ends, order, letters)
        letters.flags.writeable = False
        joined = letters.view(f"U{width}")[:, 0]
        joined.flags.writeable = False
        return joined


def bad_line(file: Path, line: int, subject: str, rule: str, value: object, remedy: str = "") -> BadFileError:
    """The error for something wrong in a line."""
    at = f"{file}, line {line}"
    return BadFileError(error_text(subject, rule, value, at=at, remedy=remedy), str(file), line)


def texts_of(values: Any) -> Array:
    """Arrow strings as NumPy's."""
    return np.asarray(values.to_pylist(), dtype=str) if len(values) else np.zeros(0, dtype="U1")


def read_fields(
    path: str | os.PathLike[str], names: Sequence[str], columns: Sequence[int], *, tabs: bool = False
) -> LineFields:
    """Some fields of every line; empty lines are skipped.

    Args:
        path: a plain or packed file.
        names: what the fields of a line are called.
        columns: those that are wanted, in order.
        tabs: fields are parted by tabs alone; else by blanks or tabs.
    """
    file = existing_file(path)
    raw = read_unpacked(file)
    if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):  # as PowerShell writes
        raw = decoded(raw, str(file)).encode()
    text = np.frombuffer(raw.removeprefix(codecs.BOM_UTF8), dtype=np.uint8)
    most = int(np.count_nonzero(text == NEW_LINE)) + 1
    starts = np.empty((len(columns), most), dtype=np.int64)
    ends = np.empty((len(columns), most), dtype=np.int64)
    lines = np.empty(most, dtype=np.int64)
    n, bad_fields = _cut(text, len(names), np.array(columns), tabs, starts, ends, lines)
    if bad_fields >= 0:
        rule = f"must have {len(names)} fields ({' '.join(names)})"
        remedy = "Fields are parted by tabs." if tabs else "Fields are parted by blanks or tabs."
        raise bad_line(file, int(lines[n]), "a line", rule, f"{bad_fields} fields", remedy)
    if (text == 0).any():  # NumPy's strings cannot end in a NUL
        line = 1 + int(np.count_nonzero(text[: int(np.argmin(text != 0))] == NEW_LINE))
        raise bad_line(file, line, "a line", "must be text", "a NUL character")
    fields = []
    for j in range(len(columns)):
        offsets = indptr_of(ends[j, :n] - starts[j, :n])
        joined = np.empty(int(offsets[-1]), dtype=np.uint8)
        _gather(text, starts[j, :n], offsets, joined)
        field = pa.LargeStringArray.from_buffers(n, pa.py_buffer(offsets), pa.py_buffer(joined))
        try:
            field.validate(full=True)
        except pa.ArrowInvalid:
            raise _not_utf8(file, text.tobytes()) from None
        fields.append(field)
    return LineFields(file, fields, lines[:n])


def _not_utf8(file: Path, raw: bytes) -> BadFileError:
    """The error for bytes that are no UTF-8."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        line, value = 1 + raw.count(b"\n", 0, error.start), repr(raw[error.start : error.start + 8])
        return bad_line(file, line, "a line", "must be UTF-8 text", value, "Save the file as UTF-8.")
    return BadFileError(error_text(repr(str(file)), "must be UTF-8 text"), str(file))


def _of_buffers(values: Any, offsets: Any, data: Any) -> tuple[IntArray, Bytes]:
    """Where texts end, and their bytes, of an Arrow array that may be a slice of another."""
    where = np.frombuffer(offsets, dtype=np.int64)[values.offset : values.offset + len(values) + 1]
    return where, np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else np.zeros(
        0, np.uint8
    )


@kernel()
def _cut(
    text: Bytes,
    n_fields: int,
    wanted: IntArray,
    tabs: bool,
    starts: IntArray,
    ends: IntArray,
    lines: IntArray,
) -> tuple[int, int]:
    """Finds the wanted fields; returns (lines kept, -1) or (the bad line's place, its number of fields)."""
    kept, line, i, n = 0, 0, 0, len(text)
    parts = np.zeros(256, dtype=np.bool_)
    parts[TAB] = parts[RETURN] = parts[NEW_LINE] = True
    parts[BLANK] = not tabs
    while i < n:
        line += 1
        fields, next_wanted = 0, 0
        while i < n and text[i] != NEW_LINE:
            while i < n and parts[text[i]] and text[i] != NEW_LINE:
                i += 1
            if i == n or text[i] == NEW_LINE:
                break
            start = i
            while i < n and not parts[text[i]]:
                i += 1
            if next_wanted < len(wanted) and fields == wanted[next_wanted]:
                starts[next_wanted, kept] = start
                ends[next_wanted, kept] = i
                next_wanted += 1
            fields += 1
        i += 1
        if fields == 0:
            continue
        lines[kept] = line
        if fields != n_fields:
            return kept, fields
        kept += 1
    return kept, -1


@kernel()
def _gather(text: Bytes, starts: IntArray, offsets: IntArray, joined: Bytes) -> None:
    for row in range(len(starts)):
        start, at = starts[row], offsets[row]
        for k in range(offsets[row + 1] - at):
            joined[at + k] = text[start + k]


@kernel()
def _spread(text: Bytes, offsets: IntArray, order: IntArray, letters: npt.NDArray[np.uint32]) -> None:
    for place in range(len(order)):
        start = offsets[order[place]]
        for k in range(offsets[order[place] + 1] - start):
            letters[place, k] = text[start + k]


@kernel()
def _hash_pairs(topic: IntArray, offsets: IntArray, text: Bytes, hashes: npt.NDArray[np.uint64]) -> None:
    for row in range(len(topic)):
        value = _mix(np.uint64(topic[row]))
        for k in range(offsets[row], offsets[row + 1]):
            value = (value ^ np.uint64(text[k])) * np.uint64(FNV_PRIME)
        hashes[row] = _mix(value)
