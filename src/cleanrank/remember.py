"""Equal work done once: functions marked ``remembered`` keep their last results while a memory is in use.

A result is found by the content of all arguments, bit by bit, so that what comes out is what would be
computed. Arguments without content, such as a callback, mean that the work is done. Nothing is remembered
unless somebody says so: ``with remembering(Memory()):``. Experiments do, because their methods share
predictions and forests.
"""

import dataclasses
import functools
import hashlib
import inspect
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from types import FunctionType
from typing import Any, ParamSpec, TypeVar

import numpy as np

from cleanrank.stored import StoredFeatures

P = ParamSpec("P")
R = TypeVar("R")
PLAIN = (bool, int, float, str, bytes, type(None), np.generic)


class Memory:
    """The last ``size`` results, by content; ``hits`` counts those that were found."""

    def __init__(self, size: int = 128) -> None:
        self.size, self.hits = size, 0
        self._results: OrderedDict[bytes, Any] = OrderedDict()

    def recall(self, key: bytes, work: Callable[[], Any]) -> Any:
        """The result of a key, else that of the work."""
        if key in self._results:
            self.hits += 1
            self._results.move_to_end(key)
        else:
            self._results[key] = work()
            while len(self._results) > self.size:
                self._results.popitem(last=False)
        return _own(self._results[key])


_memory: ContextVar[Memory | None] = ContextVar("memory", default=None)


@contextmanager
def remembering(memory: Memory) -> Iterator[Memory]:
    """Work inside is looked up in the memory first."""
    token = _memory.set(memory)
    try:
        yield memory
    finally:
        _memory.reset(token)


def is_remembering() -> bool:
    """Whether a memory is in use."""
    return _memory.get() is not None


def remembered(function: Callable[P, R]) -> Callable[P, R]:
    """Marks a function whose result follows from its arguments, ``progress`` left aside.

    >>> @remembered
    ... def squares(values, progress=None):
    ...     print("at work")
    ...     return values**2
    >>> with remembering(Memory()):
    ...     squares(np.arange(3)), squares(np.arange(3))
    at work
    (array([0, 1, 4]), array([0, 1, 4]))
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def looked_up(*args: P.args, **kwargs: P.kwargs) -> R:
        memory = _memory.get()
        if memory is None:
            return function(*args, **kwargs)
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        known = {name: value for name, value in bound.arguments.items() if name != "progress"}
        digest = hashlib.blake2b(f"{function.__module__}.{function.__qualname__}".encode())
        try:
            _add(digest, known)
        except _NoContentError:
            return function(*args, **kwargs)
        result: R = memory.recall(digest.digest(), lambda: function(*args, **kwargs))
        return result

    return looked_up


class _NoContentError(Exception):
    """A value of which only its identity is known."""


def _add(digest: Any, value: Any) -> None:
    """Adds the content of a value, its type and size first, so that no two values read alike."""
    digest.update(f"{type(value).__module__}.{type(value).__qualname__}(".encode())
    if isinstance(value, PLAIN):
        digest.update(repr(value).encode())
    elif isinstance(value, np.ndarray):
        digest.update(f"{value.dtype.str}{value.shape}".encode())
        if value.dtype.hasobject:
            parts = value.ravel().tolist()
            if not all(isinstance(part, PLAIN) for part in parts):
                raise _NoContentError
            digest.update(repr(parts).encode())
        else:
            digest.update(np.ascontiguousarray(value).view(np.uint8).data if value.size else b"")
    elif isinstance(value, StoredFeatures):
        _add(digest, value.identity())
    elif hasattr(value, "tocsr"):
        _add(digest, (value.format, value.shape, value.data, value.indices, value.indptr))
    elif isinstance(value, Mapping):
        _add(digest, [part for item in value.items() for part in item])
    elif isinstance(value, Sequence):
        digest.update(f"{len(value)}:".encode())
        for part in value:
            _add(digest, part)
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        for each in dataclasses.fields(value):
            _add(digest, getattr(value, each.name))
    elif isinstance(value, functools.partial):
        _add(digest, (value.func, value.args, value.keywords))
    elif isinstance(value, FunctionType) and "<" not in value.__qualname__:
        digest.update(f"{value.__module__}.{value.__qualname__}".encode())
    else:
        raise _NoContentError
    digest.update(b")")


def _own(value: Any) -> Any:
    """A result whose arrays the caller may write to."""
    if isinstance(value, np.ndarray):
        return value.copy()
    return type(value)(_own(part) for part in value) if type(value) in (list, tuple) else value
