"""Work that takes long, in threads of its own, so that nobody who answers waits for it."""

import logging
import threading
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from cleanrank.errors import CleanrankError

LOG = logging.getLogger(__name__)
AT_ONCE = 2  # works that go on at a time: what takes minutes does not hold up the rest


@dataclass(frozen=True)
class Work:
    """Some work: the version of what it is made from, and what comes of it."""

    version: Hashable
    future: Future[Any] = field(default_factory=Future)

    @property
    def problem(self) -> str:
        """Why nothing came of it, for people; empty where something did. It must have ended."""
        error = self.future.exception()
        if error is None or isinstance(error, CleanrankError):
            return "" if error is None else str(error)
        return "The server failed at this; its log says why."


class Background:
    """Work by name: one at a time of each name; what came of the last that ended is kept.

    >>> background = Background()
    >>> background.start("sum", version=1, make=lambda: 1 + 2).future.result()
    3
    >>> background.is_under_way("sum"), background.ended("sum").version
    (False, 1)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._turns = threading.Semaphore(AT_ONCE)
        self._under_way: dict[str, Work] = {}
        self._ended: dict[str, Work] = {}

    def start(self, name: str, version: Hashable, make: Callable[[], Any]) -> Work:
        """Work that is under way, whatever its version; else what ended with this version; else new work.

        What failed is tried again.
        """
        with self._lock:
            if name in self._under_way:
                return self._under_way[name]
            last = self._ended.get(name)
            if last is not None and last.version == version and last.future.exception() is None:
                return last
            work = self._under_way[name] = Work(version)
        # A daemon: whoever stops the server does not wait for a page that nobody will see.
        threading.Thread(target=self._run, args=(name, work, make), name=name, daemon=True).start()
        return work

    def is_under_way(self, name: str) -> bool:
        """Whether work of this name goes on."""
        with self._lock:
            return name in self._under_way

    def ended(self, name: str) -> Work | None:
        """The last work of this name that has ended."""
        with self._lock:
            return self._ended.get(name)

    def _run(self, name: str, work: Work, make: Callable[[], Any]) -> None:
        work.future.set_running_or_notify_cancel()  # from here on nobody can cancel it
        value, failure = None, None
        try:
            with self._turns:
                value = make()
        except BaseException as error:  # goes to whoever asks for the value
            failure = error
            known = isinstance(error, CleanrankError)
            LOG.warning("%s: %s", name, error, exc_info=None if known else error)
        with self._lock:
            self._ended[name] = work
            del self._under_way[name]
            if failure is None:
                work.future.set_result(value)
            else:
                work.future.set_exception(failure)
