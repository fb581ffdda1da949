"""Features that stay on disk: rows of memory-mapped shards, read as float32 when they are asked for.

They behave as SciPy's sparse matrices do: ``X[rows]`` selects rows without reading them, ``toarray`` makes an
array of float32, ``len(X)`` is refused in favour of ``X.shape[0]``. Columns are read at once: ``X[:, [3]]``.
A pickle of them is a path and the rows, so that another process opens the files itself.
"""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cleanrank.errors import BadFileError, error_text, invalid
from cleanrank.validation import check_memory

FEATURES = "features-{:05d}.npy"
CODES = "codes.npy"
BLOCK_VALUES = 1 << 22
MISSING_CODE = 255
MAPPED = 256

Rows = npt.NDArray[np.int64]


class StoredFeatures:
    """Rows of a folder of shards, (N, F) float32.

    Args:
        folder: where the shards lie.
        rows: places of the rows among those of the folder, in any order; None: all of them.

    Attributes:
        shape: (N, F).
        stored_as: the type of the values in the files: float32, float16, or uint8 for codes of values.
    """

    ndim = 2
    dtype = np.dtype(np.float32)

    def __init__(self, folder: str | Path, rows: npt.ArrayLike | None = None) -> None:
        self.folder = Path(folder)
        self._stamp = _stamp(self.folder)
        self._whole = _open(str(self.folder), self._stamp)
        self._rows: Rows | None = None if rows is None else np.asarray(rows, dtype=np.int64)
        n = int(self._whole.starts[-1]) if self._rows is None else len(self._rows)
        self.shape = (n, self._whole.width)

    @property
    def stored_as(self) -> np.dtype[Any]:
        """The type of the values in the files."""
        return self._whole.dtype

    @property
    def size(self) -> int:
        """The number of values."""
        return int(self.shape[0] * self.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes that the values would take in memory."""
        return self.size * 4

    def __repr__(self) -> str:
        n, width = self.shape
        return f"StoredFeatures({n:,} x {width:,}, {self.stored_as} in {str(self.folder)!r})"

    def __len__(self) -> int:
        raise TypeError("the length of stored features is ambiguous; use X.shape[0]")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self.folder), self._rows)

    def whole_shards(self) -> list[tuple[int, Path]] | None:
        """(first row, file) of every shard, if these are all rows of the folder; else None."""
        if self._rows is not None:
            return None
        starts = self._whole.starts[:-1].tolist()
        return [(start, self.folder / FEATURES.format(k)) for k, start in enumerate(starts)]

    def identity(self) -> tuple[Any, ...]:
        """What tells these features from others: the files, when they were written, and the rows."""
        return str(self.folder.absolute()), self._stamp, self._whole.starts, self._rows

    def _shard(self, number: int) -> Any:
        return _mapped(str(self.folder / FEATURES.format(number)), self._stamp)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if copy is False:
            raise ValueError("features that stay on disk must be copied to become an array")
        return self.toarray() if dtype is None else self.toarray().astype(dtype, copy=False)

    def __getitem__(self, key: Any) -> Any:
        """``X[rows]`` is StoredFeatures again; ``X[rows, columns]`` an array of values."""
        if isinstance(key, tuple):
            rows, columns = key
            return self._select(rows)._columns(columns, isinstance(rows, int | np.integer))
        return self._select(key)

    def _select(self, key: Any) -> "StoredFeatures":
        if isinstance(key, slice) and key == slice(None):
            return self
        n = self.shape[0]
        if isinstance(key, slice):
            places: Any = np.arange(*key.indices(n))
        else:
            places = np.atleast_1d(np.asarray(key))
            if places.dtype == np.bool_:
                if places.shape != (n,):
                    raise IndexError(f"a mask of rows must have {n} entries; got shape {places.shape}")
                places = np.flatnonzero(places)
            places = places.astype(np.int64)
            if len(places) and not (-n <= places.min() and places.max() < n):
                raise IndexError(f"rows must lie below {n}; got {places.min()} to {places.max()}")
            places = np.where(places < 0, places + n, places)
        return StoredFeatures(self.folder, places if self._rows is None else self._rows[places])

    def _columns(self, columns: Any, single: bool) -> Any:
        width = np.arange(self.shape[1])[columns].shape
        values = np.empty((self.shape[0], *width), dtype=np.float32)
        for start, block in self.blocks():
            values[start : start + len(block)] = block[:, columns]
        return values[0] if single else values

    def read(self, start: int, stop: int) -> npt.NDArray[np.float32]:
        """Rows ``start`` to ``stop`` as float32; not a copy where they lie in one shard as such."""
        stop = min(stop, self.shape[0])
        if self._rows is None:
            return self._range(start, stop)
        rows = self._rows[start:stop]
        if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
            return self._range(int(rows[0]), int(rows[-1]) + 1)
        block = np.empty((len(rows), self.shape[1]), dtype=self.stored_as)
        starts = self._whole.starts
        shard = np.searchsorted(starts, rows, side="right") - 1
        for number in np.unique(shard).tolist():
            here = shard == number
            block[here] = self._shard(number)[rows[here] - starts[number]]
        return self._decoded(block)

    def _range(self, start: int, stop: int) -> npt.NDArray[np.float32]:
        starts = self._whole.starts
        first, last = np.searchsorted(starts, (start, max(stop - 1, start)), side="right") - 1
        pieces = [
            self._shard(k)[max(start - starts[k], 0) : stop - starts[k]]
            for k in range(first, min(int(last) + 1, len(starts) - 1))
        ]
        return self._decoded(pieces[0] if len(pieces) == 1 else np.concatenate(pieces))

    def _decoded(self, stored: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
        if self._whole.values is None:
            return np.asarray(stored).astype(np.float32, copy=False)
        codes = np.arange(stored.shape[1], dtype=np.int64) * (MISSING_CODE + 1) + stored
        values: npt.NDArray[np.float32] = self._whole.values.ravel()[codes]
        return values

    def blocks(self, rows: int | None = None) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
        """(first row, values) of blocks of so many rows, of about 16 MB when not given."""
        step = max(1, BLOCK_VALUES // max(1, self.shape[1])) if rows is None else rows
        for start in range(0, self.shape[0], step):
            yield start, self.read(start, start + step)

    def toarray(self) -> npt.NDArray[np.float32]:
        """All values in memory; refused where they do not fit."""
        check_memory(f"the features of {self.shape[0]:,} rows", self.nbytes)
        values = np.empty(self.shape, dtype=np.float32)
        for start, block in self.blocks():
            values[start : start + len(block)] = block
        return values


def as_array(X: Any) -> npt.NDArray[np.float32]:
    """Features, dense, sparse or stored, as a dense array in memory.

    >>> as_array(np.zeros((2, 1), np.float32)).tolist()
    [[0.0], [0.0]]
    """
    return X if isinstance(X, np.ndarray) else X.toarray()


def is_dense(X: Any) -> bool:
    """Whether every value is stored, in memory or on disk; else the features are sparse."""
    return isinstance(X, np.ndarray | StoredFeatures)


def blocks(X: Any, rows: int | None = None) -> Iterator[tuple[int, npt.NDArray[np.float32]]]:
    """(first row, dense values) of blocks of rows of dense, sparse or stored features.

    >>> [(start, block.tolist()) for start, block in blocks(np.zeros((3, 1), np.float32), 2)]
    [(0, [[0.0], [0.0]]), (2, [[0.0]])]
    """
    if isinstance(X, StoredFeatures):
        yield from X.blocks(rows)
        return
    step = max(1, BLOCK_VALUES // max(1, X.shape[1])) if rows is None else rows
    for start in range(0, X.shape[0], step):
        yield start, as_array(X[start : start + step])


def code_values(sample: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """The values that the codes 0 to 254 of every column stand for, (F, 256); code 255 means missing.

    The values of a column that has no more than 255, else means of as many parts of equal size.

    >>> code_values(np.array([[3.0], [1.0], [3.0]], np.float32))[0, :3].tolist()
    [1.0, 3.0, inf]
    """
    table = np.full((sample.shape[1], MISSING_CODE + 1), np.inf, dtype=np.float32)
    table[:, MISSING_CODE] = np.nan
    for j, column in enumerate(sample.T):
        values = np.unique(column[~np.isnan(column)])
        if len(values) > MISSING_CODE:
            parts = np.array_split(np.sort(column[~np.isnan(column)]), MISSING_CODE)
            values = np.unique([part.mean(dtype=np.float64) for part in parts]).astype(np.float32)
        table[j, : len(values)] = values
    return table


def encoded(X: npt.NDArray[np.float32], table: npt.NDArray[np.float32]) -> npt.NDArray[np.uint8]:
    """The code of the nearest value of each column's table, by rows."""
    codes = np.empty(X.shape, dtype=np.uint8)
    for j, column in enumerate(X.T):
        values = table[j, :MISSING_CODE]
        values = values[: np.searchsorted(values, np.inf)]
        cuts = (values[1:].astype(np.float64) + values[:-1]) / 2
        nearest = np.searchsorted(cuts, column)
        codes[:, j] = np.where(np.isnan(column), MISSING_CODE, nearest)
    return codes


def _stamp(folder: Path) -> tuple[int, int]:
    """What tells a folder from one that took its place: identity and time of its first shard."""
    first = folder / FEATURES.format(0)
    if not first.is_file():
        raise invalid("a folder of features", f"must hold {first.name}", repr(str(folder)))
    return first.stat().st_ino, first.stat().st_mtime_ns


class _Folder(NamedTuple):
    """What the shards of a folder hold together."""

    starts: Rows  # the first row of each, and the number of all
    width: int
    dtype: np.dtype[Any]
    values: npt.NDArray[np.float32] | None  # of codes


@lru_cache(maxsize=64)
def _open(folder: str, stamp: tuple[int, int]) -> _Folder:
    lengths: list[int] = []
    while (path := Path(folder) / FEATURES.format(len(lengths))).is_file():
        shard = _mapped(str(path), stamp)
        lengths.append(len(shard))
    starts = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    codes = Path(folder) / CODES
    values = np.load(codes, allow_pickle=False) if codes.is_file() else None
    return _Folder(starts, shard.shape[1], shard.dtype, values)


@lru_cache(maxsize=MAPPED)
def _mapped(path: str, stamp: tuple[int, int]) -> Any:
    """A shard, mapped; so many of them at a time, as each takes one of the files that a process may open."""
    if _stamp(Path(path).parent) != stamp:
        rule = "must stay as it was when it was opened"
        raise BadFileError(error_text(f"{path!r}", rule, "another folder", remedy="Open it again."), path)
    try:
        shard = np.load(path, mmap_mode="r", allow_pickle=False)
        if shard.ndim == 2 and shard.dtype in (np.float32, np.float16, np.uint8):
            return shard
        reason = f"shape {shard.shape}, type {shard.dtype}"
    except Exception as error:  # damage shows as any error
        reason = f"{type(error).__name__}: {error}"
    remedy = "Convert the data again."
    raise BadFileError(
        error_text(f"{path!r}", "must be a whole shard of features", reason, remedy=remedy), path
    )
