"""The exceptions and the wording of every error message.

A message names the subject, the rule, the value, the place and a remedy:
``labels must be finite; got nan at row 812 (query '17'). Drop or impute it first.``
"""

import warnings
from collections.abc import Sequence
from typing import Any

_NO_VALUE: Any = object()


class CleanrankError(Exception):
    """Every error that cleanrank raises on purpose."""


class InvalidInputError(CleanrankError, ValueError):
    """A value breaks a rule."""


class BadFileError(InvalidInputError):
    """A file cannot be read as what it should be; ``path`` and ``line`` (1-based) say where."""

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


class LostWorkerError(CleanrankError, RuntimeError):
    """A cluster lost workers in the middle of a task, and trying again did not help."""


class UntrustedNoiseWarning(UserWarning):
    """A noise estimate is used that did not pass its own checks."""


class NonRandomGoldWarning(UserWarning):
    """Gold labels do not look like a random sample, which intervals rest on."""


def error_text(subject: str, rule: str, value: Any = _NO_VALUE, *, at: str = "", remedy: str = "") -> str:
    """Words an error: subject, rule, value, place, remedy.

    >>> error_text("labels", "must be finite", float("nan"), at="row 812 (query '17')", remedy="Drop it.")
    "labels must be finite; got nan at row 812 (query '17'). Drop it."
    >>> error_text("weights", "need one value per row")
    'weights need one value per row.'
    """
    got = "" if value is _NO_VALUE else f"; got {value}"
    place = f" at {at}" if at else ""
    return f"{subject} {rule}{got}{place}." + (f" {remedy}" if remedy else "")


def invalid(
    subject: str, rule: str, value: Any = _NO_VALUE, *, at: str = "", remedy: str = ""
) -> InvalidInputError:
    """The error of a value that breaks a rule; the caller raises it."""
    return InvalidInputError(error_text(subject, rule, value, at=at, remedy=remedy))


def warn_untrusted(trusted: bool, reasons: Sequence[str]) -> None:
    """Warns of a noise estimate that did not pass its own checks, wherever one is taken as the noise."""
    if not trusted:
        why = "; ".join(reasons) or "no reason is recorded"
        rule = "is not trusted, and what rests on it may be far off"
        remedy = "Judge more rows again (cleanrank gold sample)."
        text = error_text("the noise estimate", f"{rule}: {why}", remedy=remedy)
        warnings.warn(text, UntrustedNoiseWarning, stacklevel=3)
