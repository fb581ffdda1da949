"""Parsed files kept on disk, so that a second read is as fast as the disk.

An entry is a folder of ``.npy`` files and ``entry.json`` in the user's cache folder (``CLEANRANK_CACHE``
names another). It stands for the paths of the files and the options that change the result. It is valid while
the size, modification time, change time and inode of every file (side files too) and the version of the
parser are the same.

Every read checks the description (CRC-32), the length and header of every array, and a checksum over all
bytes of all arrays: XOR and sum of the 64-bit words of each block of 1 MiB, and a CRC-32 over the blocks. An
entry that fails a check counts as absent and is written anew.

Entries appear whole or not at all (a folder is renamed into place), so several processes may share the cache.
Where it cannot be written, files are read without it. The folder may be deleted at any time.
"""

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import sys
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from cleanrank.types import Array

PARSER_VERSION = 2
DESCRIPTION = "entry.json"
BLOCK_WORDS = 1 << 17
CLOCK_TICK_NS = 20_000_000
AN_HOUR = 3600
SPARSE = ("data", "indices", "indptr")


@dataclass(frozen=True)
class Entry:
    """Where an entry lies and what it must say about its files to be valid."""

    folder: Path
    files: tuple[Path, ...]
    state: Mapping[str, Any]

    @classmethod
    def of(cls, files: Sequence[Path], options: Mapping[str, Any]) -> "Entry":
        """The entry of files and options; call it before the files are read."""
        paths = [str(Path(os.path.abspath(path))) for path in files]
        key = json.dumps([paths, sorted(options.items())])
        name = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()[:32]
        state = {"key": key, "files": _stamps(files), "parser": PARSER_VERSION, "byteorder": sys.byteorder}
        return cls(cache_folder() / name, tuple(files), state)


def cache_folder() -> Path:
    """The folder of the cache: ``$CLEANRANK_CACHE``, or ``cleanrank`` in the user's cache folder."""
    folder = os.environ.get("CLEANRANK_CACHE")
    if folder:
        return Path(folder).expanduser() / "letor"
    import platformdirs

    return Path(platformdirs.user_cache_dir("cleanrank", appauthor=False)) / "letor"


def _stamps(files: Sequence[Path]) -> list[list[int]]:
    """Size and times of each file; waits until the clock has left the tick in which a file was changed."""
    stamps = []
    for path in files:
        age = time.time_ns() - path.stat().st_mtime_ns
        if 0 <= age < CLOCK_TICK_NS:
            # A second change within the tick could leave size and times as they are.
            time.sleep((CLOCK_TICK_NS - age) / 1e9)
        stat = path.stat()
        stamps.append([stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino])
    return stamps


def load(entry: Entry) -> dict[str, Any] | None:
    """The columns of a valid entry, mapped read-only; None if there is none."""
    try:
        description = _described(entry.folder)
        if {name: description.get(name) for name in entry.state} != dict(entry.state):
            return None
        arrays = {name: _mapped(entry.folder, name, facts) for name, facts in description["arrays"].items()}
        return _columns(arrays, description["shape"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, EOFError):
        return None


def _described(folder: Path) -> dict[str, Any]:
    raw = (folder / DESCRIPTION).read_bytes()
    body, _, check = raw.rpartition(b"\n")
    if int(check, 16) != zlib.crc32(body):
        raise ValueError("the description is damaged")
    description: dict[str, Any] = json.loads(body)
    return description


def _mapped(folder: Path, name: str, facts: Mapping[str, Any]) -> Array:
    path = folder / f"{name}.npy"
    empty = 0 in facts["shape"]
    array: Array = np.load(path, mmap_mode=None if empty else "r", allow_pickle=False)
    if facts != _facts(path, array):
        raise ValueError("an array is damaged")
    return np.asarray(array)


def _facts(path: Path, array: Array) -> dict[str, Any]:
    """What must stay the same of an array in a file."""
    shape, size = list(array.shape), path.stat().st_size
    return {"dtype": array.dtype.str, "shape": shape, "bytes": size, "checksum": checksum(array)}


def checksum(array: Array) -> int:
    """A checksum over all bytes at about the speed of memory.

    >>> checksum(np.arange(4)) != checksum(np.array([0, 1, 2, 4]))
    True
    """
    raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    whole = len(raw) // 8 * 8
    words = raw[:whole].view(np.uint64)
    starts = range(0, len(words), BLOCK_WORDS)
    sums = np.empty((len(starts), 2), np.uint64)
    for k, start in enumerate(starts):
        block = words[start : start + BLOCK_WORDS]
        sums[k] = np.bitwise_xor.reduce(block), np.add.reduce(block)
    return zlib.crc32(raw[whole:].tobytes(), zlib.crc32(sums.tobytes()))


def _columns(arrays: dict[str, Array], shape: Sequence[int]) -> dict[str, Any]:
    if "X" in arrays:
        return dict(arrays)
    from scipy.sparse import csr_matrix

    data, indices, indptr = (arrays.pop(f"X_{part}") for part in SPARSE)
    return {"X": csr_matrix((data, indices, indptr), shape=(shape[0], shape[1])), **arrays}


def store(entry: Entry, columns: Mapping[str, Any]) -> bool:
    """Writes an entry, unless a file has changed since it was read; False where it cannot be written."""
    part = entry.folder.with_name(f"{entry.folder.name}.{secrets.token_hex(6)}.part")
    try:
        if _stamps(entry.files) != entry.state["files"]:
            return False
        part.mkdir(parents=True, mode=0o700)
        try:
            _write(part, entry, columns)
            put_in_place(part, entry.folder)
            _sweep(entry.folder)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError:
        return False
    return True


def _write(folder: Path, entry: Entry, columns: Mapping[str, Any]) -> None:
    arrays = {name: column for name, column in columns.items() if name != "X" and column is not None}
    X = columns["X"]
    if isinstance(X, np.ndarray):
        arrays["X"] = X
    else:
        arrays |= {f"X_{part}": getattr(X, part) for part in SPARSE}
    facts = {}
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", np.ascontiguousarray(array), allow_pickle=False)
        facts[name] = _facts(folder / f"{name}.npy", array)
    body = json.dumps({**entry.state, "arrays": facts, "shape": list(X.shape)}).encode()
    (folder / DESCRIPTION).write_bytes(body + f"\n{zlib.crc32(body):08x}".encode())


def put_in_place(part: Path, folder: Path) -> None:
    """Renames a finished folder into place; what stood there goes, unless another process is quicker."""
    old = part.with_suffix(".old")
    with contextlib.suppress(FileNotFoundError):
        folder.rename(old)
    try:
        part.rename(folder)
    finally:
        shutil.rmtree(old, ignore_errors=True)


def _sweep(folder: Path) -> None:
    """Removes what processes that were killed while writing this entry have left behind."""
    for left in folder.parent.glob(f"{folder.name}.*"):
        if time.time() - left.stat().st_mtime > AN_HOUR:
            shutil.rmtree(left, ignore_errors=True)
