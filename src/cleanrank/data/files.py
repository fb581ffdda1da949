"""Files written whole or not at all."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cleanrank.errors import InvalidInputError, MissingDataError


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
    target = Path(path)
    if target.is_dir():
        raise InvalidInputError(f"{str(target)!r} is a folder, not a file. Name a file in it.")
    if not target.parent.is_dir():
        raise MissingDataError(f"the folder {str(target.parent)!r} does not exist. Make it first.")
    part = target.with_name(f".{target.name}.{secrets.token_hex(6)}")
    try:
        yield part
        part.replace(target)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def existing_file(path: str | os.PathLike[str]) -> Path:
    """The path, if there is a file; else an error that names the folder and what lies in it."""
    found = Path(path)
    if found.is_file():
        return found
    if found.is_dir():
        raise MissingDataError(f"{str(found)!r} is a folder, not a file. Name a file in it.")
    if not found.parent.is_dir():
        raise MissingDataError(f"there is no file {str(found)!r}: its folder does not exist either.")
    near = sorted(p.name for p in found.parent.iterdir() if not p.name.startswith("."))
    beside = ", ".join(near[:8]) + (", ..." if len(near) > 8 else "") if near else "nothing"
    raise MissingDataError(f"there is no file {str(found)!r}. Its folder holds: {beside}.")
