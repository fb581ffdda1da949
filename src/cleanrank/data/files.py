"""Files: written whole or not at all, compressed or not, text mapped into memory."""

import bz2
import gzip
import hashlib
import lzma
import mmap
import os
import secrets
import tempfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cleanrank.errors import (
    BadFileError,
    CleanrankError,
    InvalidInputError,
    MissingDataError,
    error_text,
    invalid,
)
from cleanrank.validation import check_path


@contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Gives a temporary path in the same folder; it takes the place of ``path`` when the block ends well.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with written_whole(Path(folder) / "a.txt") as part:
    ...         _ = part.write_text("whole")
    ...     (Path(folder) / "a.txt").read_text()
    'whole'
    """
    target = check_path(path)
    if target.is_dir():
        raise InvalidInputError(f"{str(target)!r} is a folder, not a file. Name a file in it.")
    if not target.parent.is_dir():
        raise MissingDataError(f"the folder {str(target.parent)!r} does not exist. Make it first.")
    part = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    try:
        yield part
        part.replace(target)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno and not isinstance(error, CleanrankError):
            # A full disk, for one, does not say which file.
            error.filename = str(target) if error.filename in (None, str(part)) else error.filename
        part.unlink(missing_ok=True)
        raise


def existing_file(path: str | os.PathLike[str]) -> Path:
    """The path, if there is a file; else an error that names the folder and what lies in it."""
    file = check_path(path)
    if file.is_file():
        return file
    if file.is_dir():
        raise MissingDataError(f"{str(file)!r} is a folder, not a file. Name a file in it.")
    if not file.parent.is_dir():
        raise MissingDataError(f"there is no file {str(file)!r}: its folder does not exist either.")
    names = sorted(p.name for p in file.parent.iterdir() if not p.name.startswith("."))
    listed = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "") if names else "nothing"
    raise MissingDataError(f"there is no file {str(file)!r}. Its folder holds: {listed}.")


def check_outputs(
    *paths: str | os.PathLike[str] | None,
    inputs: Sequence[str | os.PathLike[str] | None] = (),
    force: bool = False,
    suffixes: Sequence[str] | None = None,
) -> None:
    """Raises unless every output can be written, before any work is done for it.

    Args:
        paths: the files to write; None is left out. Each needs a folder that can be written to.
        inputs: what is read; no output may be one of them, by whichever name, not even when forced.
        force: overwrite files that exist.
        suffixes: those the writer knows, such as FRAMES; with "" among them also any suffix that promises no
            format of its own. None allows all.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     check_outputs(f"{folder}/issues.csv", suffixes=FRAMES)
    """
    outputs = [Path(path) for path in paths if path is not None]
    sources = [f"{path}{side}" for path in inputs if path is not None for side in ("", *SIDE_FILES)]
    for number, out in enumerate(outputs):
        same = next((other for other in outputs[:number] if other.absolute() == out.absolute()), None)
        if same is not None:
            raise invalid("outputs", "must be different files", f"{str(out)!r} twice")
        check_suffix(out, suffixes)
        if any(_same_file(out, Path(source)) for source in sources):
            raise invalid(
                "output", "must differ from every input", repr(str(out)), remedy="Name another file."
            )
        _check_place(out)
        if out.exists() and not force:
            raise invalid("output", "must not exist yet", repr(str(out)), remedy="Overwrite with --force.")


FRAMES = (".csv", ".tsv", ".parquet", ".xlsx")
PAGES = (".html", ".htm")
SIDE_FILES = (".query", ".weight", ".position")  # of LightGBM, beside a file of data
PACKED = (".gz", ".bz2", ".xz", ".zst")
DATA = ("", ".csv", ".tsv", ".parquet", ".pq", *PACKED)
SCORES = ("", ".npy", ".csv")
MODELS = ("",)
BINARY = (".parquet", ".pq")
# A text by another name than these surprises nobody.
FORMATS = {
    *FRAMES, *PAGES, *PACKED, ".pq", ".xls", ".ods", ".json", ".npy", ".npz", ".png", ".svg", ".md", ".pdf",
}  # fmt: skip


def check_suffix(out: Path, suffixes: Sequence[str] | None) -> None:
    """Raises where the suffix promises a format that is not among ``suffixes``; see ``check_outputs``."""
    if suffixes is None:
        return
    endings = [ending.lower() for ending in out.suffixes[-2:]]
    inner = endings[:-1] if endings and endings[-1] in PACKED and endings[-1] in suffixes else endings
    suffix = inner[-1] if inner else ""
    packed_twice = suffix in BINARY and inner != endings
    if not packed_twice and (suffix in suffixes or ("" in suffixes and suffix not in FORMATS)):
        return
    known = ", ".join(known for known in suffixes if known) + (" or a text file" if "" in suffixes else "")
    raise invalid(
        "output", f"must be {known.removeprefix(' or ')}", repr(str(out)), remedy="Change its ending."
    )


def _check_place(out: Path) -> None:
    if out.is_dir():
        raise InvalidInputError(f"{str(out)!r} is a folder, not a file. Name a file in it.")
    if not out.parent.is_dir():
        raise MissingDataError(f"the folder {str(out.parent)!r} does not exist. Make it first.")
    if out.exists() and not out.is_file():
        raise invalid("output", "must be a file", repr(str(out)), remedy="Name a file.")
    if not os.access(out.parent, os.W_OK | os.X_OK):
        remedy = "Write to another folder."
        raise invalid(f"the folder {str(out.parent)!r}", "must be writable", "read-only", remedy=remedy)


def _same_file(out: Path, source: Path) -> bool:
    if out.exists() and source.exists():
        return out.samefile(source)
    return out.resolve() == source.resolve()


def file_sha256(path: str | os.PathLike[str]) -> str:
    """SHA-256 of a file's bytes; of a folder, of the names and checksums of its files."""
    if os.path.isdir(path):
        folder = Path(path)
        files = sorted(each for each in folder.rglob("*") if each.is_file())
        lines = [f"{file_sha256(each)} {each.relative_to(folder).as_posix()}\n" for each in files]
        return hashlib.sha256("".join(lines).encode()).hexdigest()
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


SMALL = 1 << 20
PART = 1 << 22
BLOCK = 1 << 20
MARK = b"\xef\xbb\xbf"
# What is packed may unpack to so many times its size, and to so many bytes in any case.
MOST_EXPANSION = 250
LEAST_LIMIT = 256 << 20


@dataclass(frozen=True, eq=False)
class Text:
    """Whole lines of one file.

    Attributes:
        path: the file.
        raw: its bytes.
        start: where the lines begin among these.
        end: where they end.
        first_line: the number (from 1) in the file of the line that begins at ``origin``.
        origin: where lines are counted from; ``start`` when None.
    """

    path: str
    raw: "bytes | mmap.mmap"
    start: int
    end: int
    first_line: int
    origin: int | None = None

    @property
    def buf(self) -> npt.NDArray[np.uint8]:
        """The bytes, read-only."""
        return np.frombuffer(self.raw, np.uint8)

    def parts(self) -> list[tuple[int, int]]:
        """Ranges of whole lines, of about ``PART`` bytes each."""
        ranges, start = [], self.start
        while start < self.end:
            end = min(start + PART, self.end)
            if end < self.end:
                end = self.raw.find(b"\n", end - 1) + 1
            ranges.append((start, end))
            start = end
        return ranges

    def line_of(self, at: int) -> int:
        """The number of the line that holds a position."""
        first = self.start if self.origin is None else self.origin
        return self.first_line + sum(
            self.raw[i : min(i + BLOCK, at)].count(b"\n") for i in range(first, at, BLOCK)
        )

    def line_end(self, at: int) -> int:
        """The position of the line feed that ends the line."""
        return self.raw.find(b"\n", at)


def open_texts(path: str | os.PathLike[str]) -> list[Text]:
    r"""The texts of a plain, gzip, bz2, xz or zstd file (told apart by its first bytes).

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     where = Path(folder) / "a.txt"
    ...     _ = where.write_bytes(gzip.compress(b"0 qid:1"))
    ...     open_texts(where)[0].raw
    b'0 qid:1\n'
    """
    where = existing_file(path)
    with where.open("rb") as file:
        packing = _packing_of(file)
        if packing is None:
            return _texts_of(str(where), file)
        with tempfile.TemporaryFile() as plain:
            for block in _unpacked(where, file, packing):
                plain.write(block)
            return _texts_of(str(where), plain)


def read_unpacked(path: str | os.PathLike[str]) -> bytes:
    """All bytes of a plain, gzip, bz2, xz or zstd file."""
    where = existing_file(path)
    with where.open("rb") as file:
        packing = _packing_of(file)
        return file.read() if packing is None else b"".join(_unpacked(where, file, packing))


def read_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, bytes]]:
    r"""(number, bytes) of every line that is not blank, of a plain or packed file, piece by piece.

    >>> with tempfile.TemporaryDirectory() as folder:
    ...     where = Path(folder) / "a.gz"
    ...     _ = where.write_bytes(gzip.compress(b"{}\n\n[]"))
    ...     list(read_lines(where))
    [(1, b'{}'), (3, b'[]')]
    """
    where = existing_file(path)
    with where.open("rb") as file:
        packing = _packing_of(file)
        lines = file if packing is None else _lines_of(_unpacked(where, file, packing))
        for number, line in enumerate(lines, start=1):
            text = line.removeprefix(MARK) if number == 1 else line
            if text := text.strip():
                yield number, text


def _lines_of(blocks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for block in blocks:
        *whole, rest = (rest + block).split(b"\n")
        yield from whole
    yield rest


def first_bytes(path: str | os.PathLike[str], size: int) -> bytes:
    """The first bytes of a file, unpacked; fewer, or none, where it is damaged: reading it will say so."""
    where = existing_file(path)
    with where.open("rb") as file:
        packing = _packing_of(file)
        if packing is None:
            return file.read(size)
        try:
            return next(_unpacked(where, file, packing), b"")[:size]
        except BadFileError:
            return b""


def is_packed(path: str | os.PathLike[str]) -> bool:
    """Whether a file is compressed, by its first bytes."""
    with open(path, "rb") as file:
        return _packing_of(file) is not None


def _packing_of(file: IO[bytes]) -> "Packing | None":
    head = file.read(6)
    file.seek(0)
    return next((each for each in PACKINGS.values() if head.startswith(each.magic)), None)


def _unpacked(where: Path, file: IO[bytes], packing: "Packing") -> Iterator[bytes]:
    size, limit = 0, max(LEAST_LIMIT, MOST_EXPANSION * where.stat().st_size)
    try:
        for block in packing.blocks(file):
            size += len(block)
            if size > limit:
                rule = f"must unpack to at most {limit >> 20:,} MiB ({MOST_EXPANSION} times its size)"
                remedy = "If it is no trap, unpack it yourself and read the plain file."
                raise BadFileError(error_text(f"{where}", rule, "more", remedy=remedy), str(where))
            yield block
    except (EOFError, lzma.LZMAError, zlib.error, OSError, ValueError) as error:
        if isinstance(error, BadFileError) or (isinstance(error, OSError) and error.errno):
            raise
        words = error_text(
            f"{where}", f"must be a whole {packing.name} file", str(error), remedy="Fetch it again."
        )
        raise BadFileError(words, str(where)) from error


def _texts_of(path: str, file: IO[bytes]) -> list[Text]:
    file.flush()
    size = os.fstat(file.fileno()).st_size
    if size <= SMALL:
        file.seek(0)
        raw = file.read()
        raw += b"" if raw.endswith(b"\n") else b"\n"
        return [Text(path, raw, len(MARK) if raw.startswith(MARK) else 0, len(raw), 1)]
    mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if hasattr(mmap, "MADV_SEQUENTIAL"):
        mapped.madvise(mmap.MADV_SEQUENTIAL)
    end = mapped.rfind(b"\n") + 1
    text = Text(path, mapped, len(MARK) if mapped[:3] == MARK else 0, end, 1)
    if end == len(mapped):
        return [text]
    rest = mapped[end:] + b"\n"
    tail = Text(path, rest, 3 if end == 0 and rest.startswith(MARK) else 0, len(rest), text.line_of(end))
    return [text, tail] if end else [tail]


class Packing(NamedTuple):
    """A kind of compression: its name, first bytes, reader of blocks and opener for writing."""

    name: str
    magic: bytes
    blocks: Callable[[IO[bytes]], Iterator[bytes]]
    writer: Callable[[Path], AbstractContextManager[Any]]


def _blocks(opener: Callable[..., Any], file: IO[bytes]) -> Iterator[bytes]:
    with opener(file) as plain:
        while block := plain.read(BLOCK):
            yield block


def _zstd_blocks(file: IO[bytes]) -> Iterator[bytes]:
    """Frame by frame, since the library's own reader takes a cut-off frame for the end of the file."""
    import zstandard

    frame, started = zstandard.ZstdDecompressor().decompressobj(), False
    try:
        while block := file.read(BLOCK):
            while block:
                if frame.eof:
                    frame = zstandard.ZstdDecompressor().decompressobj()
                started = True
                yield frame.decompress(block)
                block = frame.unused_data if frame.eof else b""
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
    if started and not frame.eof:
        raise EOFError("a file that ends before its data do")


@contextmanager
def _gzip_writer(path: Path) -> Iterator[Any]:
    # A fixed time and no name make the same data the same bytes.
    with path.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
        yield packed


def _zstd_writer(path: Path) -> AbstractContextManager[Any]:
    import zstandard

    writer: AbstractContextManager[Any] = zstandard.open(path, "wb")
    return writer


def open_packed(path: Path, suffix: str) -> AbstractContextManager[Any]:
    """Opens a file for writing, compressed as the suffix (one of PACKED) says."""
    return PACKINGS[suffix].writer(path) if suffix in PACKINGS else path.open("wb")


PACKINGS: dict[str, Packing] = {
    ".gz": Packing("gzip", b"\x1f\x8b", partial(_blocks, gzip.open), _gzip_writer),
    ".bz2": Packing("bz2", b"BZh", partial(_blocks, bz2.open), partial(bz2.open, mode="wb")),
    ".xz": Packing("xz", b"\xfd7zXZ\x00", partial(_blocks, lzma.open), partial(lzma.open, mode="wb")),
    ".zst": Packing("zstd", b"\x28\xb5\x2f\xfd", _zstd_blocks, _zstd_writer),
}
