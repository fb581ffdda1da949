"""Tensors in files: the safetensors format, in plain NumPy.

Eight bytes hold the length of a JSON header (little endian), the header says of each tensor its type, shape
and place, and the bytes follow; ``__metadata__`` maps text to text. Nothing in such a file is ever executed.
The ``safetensors`` package reads what is written here and writes what is read here.
"""

import json
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from cleanrank.data.files import existing_file, written_whole
from cleanrank.errors import BadFileError, error_text, invalid
from cleanrank.types import Array

TYPES: dict[str, str] = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U8": "|u1",
    "BOOL": "|b1",
}
_NAMES = {np.dtype(code): name for name, code in TYPES.items()}
ALIGNMENT = 8
MOST_HEADER = 100_000_000


def write_tensors(
    path: str | PathLike[str], tensors: Mapping[str, Array], metadata: Mapping[str, Any] | None = None
) -> None:
    """Writes arrays and metadata whole or not at all; values of the metadata are kept as JSON.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "w.safetensors"
    ...     write_tensors(path, {"w": np.arange(3.0)}, {"epoch": 2})
    ...     tensors, metadata = read_tensors(path)
    >>> tensors["w"].tolist(), metadata
    ([0.0, 1.0, 2.0], {'epoch': 2})
    """
    header: dict[str, Any] = {}
    if metadata is not None:
        header["__metadata__"] = {name: json.dumps(value) for name, value in metadata.items()}
    arrays = {name: _plain(name, values) for name, values in tensors.items()}
    start = 0
    # Wider types first keep every tensor aligned.
    ordered = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    for name in ordered:
        values = arrays[name]
        stop = start + values.nbytes
        header[name] = {
            "dtype": _NAMES[values.dtype],
            "shape": list(values.shape),
            "data_offsets": [start, stop],
        }
        start = stop
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % ALIGNMENT)
    with written_whole(path) as part, part.open("wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for name in ordered:
            file.write(arrays[name].tobytes())


def read_tensors(path: str | PathLike[str]) -> tuple[dict[str, Array], dict[str, Any]]:
    """Reads arrays and metadata; a broken file is refused with what is wrong."""
    found = existing_file(path)
    raw = found.read_bytes()
    header = _header(raw, found)
    texts = header.pop("__metadata__", {})
    if not isinstance(texts, dict):
        _broken(found, "must have an object as its metadata", type(texts).__name__)
    metadata = {name: _json(text) for name, text in texts.items()}
    body = memoryview(raw)[8 + int.from_bytes(raw[:8], "little") :]
    return {name: _tensor(name, entry, body, found) for name, entry in header.items()}, metadata


def is_tensor_file(path: str | PathLike[str]) -> bool:
    """Whether a file looks like safetensors: a length, then a JSON object of that length."""
    with Path(path).open("rb") as file:
        start = file.read(9)
    return len(start) == 9 and start[8:] == b"{" and int.from_bytes(start[:8], "little") <= MOST_HEADER


def _plain(name: str, values: Array) -> Array:
    found = np.ascontiguousarray(values).reshape(np.shape(values))
    found = found.astype(found.dtype.newbyteorder("<"), copy=False)
    if found.dtype not in _NAMES:
        raise invalid(f"tensor {name!r}", f"must be of a type among {', '.join(TYPES)}", found.dtype)
    return found


def _header(raw: bytes, path: Path) -> dict[str, Any]:
    length = int.from_bytes(raw[:8], "little")
    if len(raw) < 8 or length > MOST_HEADER or length > len(raw) - 8:
        _broken(path, "must begin with the length of its header", f"{len(raw)} bytes")
    try:
        header: dict[str, Any] = json.loads(raw[8 : 8 + length])
    except ValueError:
        _broken(path, "must have a header of JSON", repr(raw[8:24]))
    if not isinstance(header, dict):
        _broken(path, "must have a JSON object as its header", type(header).__name__)
    return header


def _tensor(name: str, entry: Any, body: memoryview, path: Path) -> Array:
    try:
        dtype, shape = np.dtype(TYPES[entry["dtype"]]), tuple(map(int, entry["shape"]))
        start, stop = map(int, entry["data_offsets"])
    except (KeyError, TypeError, ValueError):
        _broken(path, f"must say type, shape and place of {name!r}", entry)
    if min(shape, default=0) < 0 or not 0 <= start <= stop <= len(body):
        _broken(path, f"must hold the bytes of {name!r}; it may have been cut short", f"{len(body)} bytes")
    if int(np.prod(shape, dtype=np.int64)) * dtype.itemsize != stop - start:
        _broken(path, f"must give {name!r} as many bytes as its shape needs", f"{stop - start}")
    return np.frombuffer(body[start:stop], dtype=dtype).reshape(shape).copy()


def _json(text: Any) -> Any:
    """Metadata of other writers is plain text."""
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text


def _broken(path: Path, rule: str, value: object) -> NoReturn:
    raise BadFileError(error_text(f"tensor file {str(path)!r}", rule, value), str(path))
