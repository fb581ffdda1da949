"""The exceptions, the wording of every complaint, and the check for optional parts.

A message names the subject, the rule, the value found, the place and a remedy:
``labels must be finite; got nan at row 812 (query '17'). Drop or impute it first.``
"""

import difflib
import importlib.util
import numbers
from collections.abc import Iterable
from typing import Any, NoReturn, TypeGuard

EXTRAS: dict[str, tuple[str, ...]] = {
    "nn": ("torch",),
    "web": ("fastapi", "uvicorn", "jinja2"),
    "dask": ("dask", "distributed"),
}


class CleanrankError(Exception):
    """Every error that cleanrank raises on purpose."""


class InvalidInputError(CleanrankError, ValueError):
    """A value breaks a rule."""


class BadFileError(InvalidInputError):
    """A file cannot be read as what it should be; ``path`` and ``line`` (from 1) say where."""

    def __init__(self, message: str, path: str = "", line: int | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.line = line

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.path, self.line)


class UnknownNameError(CleanrankError, ValueError):
    """A name is not in the list of known ones."""


class MissingExtraError(CleanrankError, ImportError):
    """An optional part of cleanrank is not installed."""


class MissingDataError(CleanrankError, FileNotFoundError):
    """A data set is not on this machine."""


def complaint(subject: str, rule: str, value: object, *, at: str = "", remedy: str = "") -> str:
    """Words a complaint.

    >>> complaint("labels", "must be finite", float("nan"), at="row 812 (query '17')", remedy="Drop it.")
    "labels must be finite; got nan at row 812 (query '17'). Drop it."
    """
    place = f" at {at}" if at else ""
    return f"{subject} {rule}; got {value}{place}." + (f" {remedy}" if remedy else "")


def fail(subject: str, rule: str, value: object, *, at: str = "", remedy: str = "") -> NoReturn:
    """Raises InvalidInputError with the usual wording."""
    raise InvalidInputError(complaint(subject, rule, value, at=at, remedy=remedy))


def known(kind: str, name: str, names: Iterable[str]) -> str:
    """Returns ``name`` if it is one of ``names``; else raises with the known ones and the closest.

    >>> known("gain", "exp", ["exp", "linear"])
    'exp'
    """
    listed = list(names)
    if name in listed:
        return name
    close = difflib.get_close_matches(str(name), listed, n=1, cutoff=0.5)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    raise UnknownNameError(f"unknown {kind} {name!r}.{hint} Known: {', '.join(listed)}.")


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number of Python or NumPy; True and False are none.

    >>> is_whole(3), is_whole(3.0), is_whole(True)
    (True, False, False)
    """
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def check_seed(seed: Any) -> None:
    """Refuses what cannot start a random stream: whole numbers from 0 on can."""
    if not is_whole(seed) or seed < 0:
        fail("seed", "must be a whole number from 0 on", repr(seed))


def check_n_jobs(n_jobs: Any) -> None:
    """Refuses what is no number of threads."""
    if n_jobs is not None and (not is_whole(n_jobs) or n_jobs == 0 or n_jobs < -1):
        fail("n_jobs", "must be a positive number, -1 or None", repr(n_jobs))


def require(extra: str) -> None:
    """Raises MissingExtraError with the pip command when the modules of an extra are not installed."""
    modules = EXTRAS[known("extra", extra, EXTRAS)]
    missing = [m for m in modules if importlib.util.find_spec(m) is None]
    if missing:
        raise MissingExtraError(
            f"this needs {', '.join(missing)}, which is not installed. "
            f"Install it with: pip install 'cleanrank[{extra}]'"
        )
