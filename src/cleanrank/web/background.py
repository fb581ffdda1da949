"""Work that takes long, in processes of its own, so that nobody who answers waits for it.

A thread would not do: it would hold the interpreter, and answers of a busy server would wait for seconds.
"""

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import BrokenExecutor, Future
from dataclasses import dataclass
from typing import Any

from fastapi.concurrency import run_in_threadpool
from joblib.externals.loky import ProcessPoolExecutor

from cleanrank.errors import CleanrankError

LOG = logging.getLogger(__name__)
AT_ONCE = 2  # works that go on at a time: what takes minutes does not hold up the rest
IDLE_SECONDS = 60  # after which a process ends


@dataclass(frozen=True)
class Work:
    """Some work: the version of what it is made from, and what comes of it."""

    version: Hashable
    future: Future[Any]

    @property
    def problem(self) -> str:
        """Why nothing came of it, for people; empty where something did. It waits for the end."""
        error = self.future.exception()
        if error is None or isinstance(error, CleanrankError):
            return "" if error is None else str(error)
        return "The server failed at this; its log says why."


def processes() -> Any:
    """Processes that step back behind the server and end when they are idle."""
    return ProcessPoolExecutor(AT_ONCE, timeout=IDLE_SECONDS, initializer=_begin, initargs=(os.getpid(),))


def _begin(server: int) -> None:
    """Runs first in a process: Ctrl-C is for the server, which goes before it and with which it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(server,), daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(10)


def _end_with(server: int) -> None:
    while os.getppid() == server:
        time.sleep(0.5)
    os._exit(1)


class Background:
    """Work by name: one at a time of each name; what came of the last that ended is kept.

    Args:
        executor: makes what does the work; ``processes`` unless given.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> background = Background(ThreadPoolExecutor)
    >>> background.start("sum", version=1, make=lambda: 1 + 2).future.result()
    3
    >>> background.is_under_way("sum"), background.ended("sum").version
    (False, 1)
    """

    def __init__(self, executor: Callable[[], Any] | None = None) -> None:
        self._lock = threading.Lock()
        self._new_executor = executor or processes
        self._executor: Any = None
        self._last: dict[str, Work] = {}
        self._before: dict[str, Work] = {}

    def start(self, name: str, version: Hashable, make: Callable[[], Any]) -> Work:
        """Work that is under way, whatever its version; else what ended with this version; else new work.

        What failed is tried again.
        """
        with self._lock:
            last = self._last.get(name)
            if last is not None:
                if not last.future.done() or (last.version == version and last.future.exception() is None):
                    return last
                self._before[name] = last
            work = self._last[name] = Work(version, self._submit(make))
        work.future.add_done_callback(lambda future: _log(name, future))
        return work

    async def value(self, name: str, version: Hashable, make: Callable[[], Any]) -> Any:
        """What comes of the work; who asks while it is under way waits for it."""
        work = await run_in_threadpool(self.start, name, version, make)
        return await asyncio.shield(asyncio.wrap_future(work.future))  # others may wait for it too

    def is_under_way(self, name: str) -> bool:
        """Whether work of this name goes on."""
        work = self._last.get(name)
        return work is not None and not work.future.done()

    def ended(self, name: str) -> Work | None:
        """The last work of this name that has ended."""
        with self._lock:
            work = self._last.get(name)
            return work if work is None or work.future.done() else self._before.get(name)

    def close(self) -> None:
        """Ends what is under way: nobody will see it."""
        with self._lock:
            if self._executor is not None:
                self._executor.shutdown(kill_workers=True)

    def _submit(self, make: Callable[[], Any]) -> Future[Any]:
        if self._executor is None:
            self._executor = self._new_executor()
        try:
            future: Future[Any] = self._executor.submit(make)
        except BrokenExecutor:  # a process died, as where memory ends
            self._executor = self._new_executor()
            future = self._executor.submit(make)
        return future


def _log(name: str, future: Future[Any]) -> None:
    if not future.cancelled() and (error := future.exception()) is not None:
        known = isinstance(error, CleanrankError)
        LOG.warning("%s: %s", name, error, exc_info=None if known else error)
